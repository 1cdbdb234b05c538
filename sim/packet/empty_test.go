package packet

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestEmptyMessages sends messages without bytes over all transports.
func TestEmptyMessages(t *testing.T) {
	for _, transport := range Transports {
		for _, compat := range []Compat{CompatNone, CompatHTSim, CompatATLAHS} {
			result, report := try{network: leafSpine, transport: transport.Name, compat: compat, rules: new(Compat), set: func(o *Options) {
				o.Params.End = 1e12
			}}.run(t, messages(4, [3]int{0, 3, 0}, [3]int{1, 2, 1}, [3]int{1, 3, 0}))
			if !result.Complete {
				t.Errorf("%s %d: %v, %+v", transport.Name, compat, result.Stuck, report.Flows)
			}
		}
	}
}

// TestUnreachable checks that a sender gives up if its receiver is unreachable, so that the run ends and names the
// message.
func TestUnreachable(t *testing.T) {
	links, err := parse(t, leafSpine).LinkByName("tor1-agg0")
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range Transports {
		result, report := try{network: leafSpine, transport: transport.Name, set: func(o *Options) {
			o.Failures = []Failure{{Links: links, At: 10 * dag.Microsecond}}
		}}.run(t, messages(4, [3]int{0, 3, 1 << 20}, [3]int{0, 1, 1 << 20}))
		if result.Complete || report.Incomplete != 1 || report.Flows[1].Acknowledged == 0 {
			t.Errorf("%s: %+v", transport.Name, report.Flows)
		}
	}
}
