package simulate

import "github.com/tracedag/tracedag/sim/backends"

// newCommand makes the program with all backends.
var newCommand = New(backends.All)
