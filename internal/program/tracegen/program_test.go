package tracegen

import "github.com/tracedag/tracedag/dag/gen"

// newCommand returns the program's command with all generators.
var newCommand = New(gen.All)
