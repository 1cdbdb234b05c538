package lower

import (
	"context"
	"errors"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/param"
)

// Machine is a machine that gives calcs durations, see [Roofline].
type Machine struct {
	Peak      int64 // floating-point operations per second
	Bandwidth int64 // of the memory, in bytes per second
}

// Params returns the table of the machine's rates, which are keys of --lower roofline.
func (m *Machine) Params() param.Set {
	return param.Set{
		param.FLOPS(&m.Peak, "peak-flops", "peak rate of floating-point operations, such as 312TFLOPS"),
		param.Bandwidth(&m.Bandwidth, "mem-bw", "memory bandwidth, such as 2TB/s"),
	}.AsKeys("Keys of roofline, both required")
}

// parseMachine parses a rule such as "roofline:peak-flops=312TFLOPS,mem-bw=2TB/s".
func parseMachine(rule string) (*Machine, error) {
	m := &Machine{}
	if err := setKeys(m.Params(), rule); err != nil {
		return nil, err
	}
	if m.Peak == 0 || m.Bandwidth == 0 {
		return nil, errors.New("expected both peak-flops and mem-bw, such as peak-flops=312TFLOPS,mem-bw=2TB/s")
	}
	return m, nil
}

// Roofline returns the trace with a duration for every calc that has operations but no duration: the longer of its
// operations at peak operations per second and its bytes at a memory bandwidth in bytes per second (S. Williams et al.,
// "Roofline", CACM 52(4), 2009). Both rates must be above 0. The result shares all else with t, and is t if it sets no
// duration. Roofline ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Roofline(ctx context.Context, t *dag.Trace, peak, bandwidth int64) (*dag.Trace, error) {
	out := *t
	out.Ranks = dag.NewRanks(len(t.Ranks))
	changed := false
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		r := t.Ranks[rank]
		out.Ranks[rank] = r.Timed(func(i int) dag.Time {
			return max(dag.AtRate(r.Flops[i], peak), dag.AtRate(max(r.Bytes.At(i), 0), bandwidth))
		})
		changed = changed || out.Ranks[rank] != r
	}
	if !changed {
		return t, nil
	}
	return &out, nil
}
