package simulate

import "github.com/tracedag/tracedag/sim/backends"

// newCommand returns the program's command with all backends.
var newCommand = New(backends.All)
