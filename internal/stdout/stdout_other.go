//go:build !linux

package stdout

import (
	"io"
	"os"
)

// Open returns standard output of the process.
func Open() io.Writer { return os.Stdout }
