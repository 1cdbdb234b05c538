// Package backends is the registry of simulation backends.
package backends

import (
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/analytical"
	"github.com/tracedag/tracedag/sim/busbw"
	"github.com/tracedag/tracedag/sim/exec"
	"github.com/tracedag/tracedag/sim/flit"
	"github.com/tracedag/tracedag/sim/flow"
	"github.com/tracedag/tracedag/sim/ideal"
	"github.com/tracedag/tracedag/sim/loggops"
	"github.com/tracedag/tracedag/sim/packet"
	"github.com/tracedag/tracedag/sim/slots"
)

// All lists the backends; the first is the default.
var All = []sim.Kind{
	loggops.Backend,
	analytical.Backend,
	packet.Backend,
	flow.Backend,
	flit.Backend,
	slots.Backend,
	ideal.Backend,
	busbw.Backend,
	exec.Backend,
}

// Named returns the backend with a name such as packet or exec:COMMAND, or nil.
func Named(name string) *sim.Kind {
	return sim.FindKind(All, name)
}

// Names returns the names of the backends; the first is the default.
func Names() []string {
	names := make([]string, len(All))
	for i := range All {
		names[i] = All[i].Name
	}
	return names
}
