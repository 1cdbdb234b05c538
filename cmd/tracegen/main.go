// Tracegen generates synthetic traces.
package main

import (
	"os"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/formats/base"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/program/tracegen"
)

func main() {
	os.Exit(cli.Main(tracegen.New(gen.All), base.Formats))
}
