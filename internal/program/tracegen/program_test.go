package tracegen

import "github.com/tracedag/tracedag/dag/gen"

// newCommand makes the program with all generators.
var newCommand = New(gen.All)
