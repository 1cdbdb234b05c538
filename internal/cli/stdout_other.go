//go:build !linux

package cli

import (
	"io"
	"os"
)

// processStdout returns standard output of the process.
func processStdout() io.Writer { return os.Stdout }
