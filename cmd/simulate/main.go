// Command simulate runs a trace on a simulation backend.
package main

import (
	"os"

	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
)

func main() { os.Exit(cli.Main(newCommand, formats.All)) }
