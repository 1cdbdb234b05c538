// Simulate runs a trace on a simulated machine.
package main

import (
	"os"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/program/simulate"
	"github.com/tracedag/tracedag/internal/program/tracegen"
	"github.com/tracedag/tracedag/sim/backends"
)

func main() {
	os.Exit(cli.Main(simulate.New(backends.All, tracegen.New(gen.All)), formats.All))
}
