// Traceconv converts traces from one format to another, and makes one trace of several jobs.
package main

import (
	"os"

	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/program/traceconv"
)

func main() {
	os.Exit(cli.Main(traceconv.New, formats.All))
}
