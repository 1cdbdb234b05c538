// Tracecat shows a trace.
package main

import (
	"os"

	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/program/tracecat"
)

func main() {
	os.Exit(cli.Main(tracecat.New, formats.All))
}
