package simulate

import (
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/internal/program/tracegen"
	"github.com/tracedag/tracedag/sim/backends"
)

// newCommand returns the program's command with all backends and generators.
var newCommand = New(backends.All, tracegen.New(gen.All))
