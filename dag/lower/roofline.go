package lower

import "github.com/tracedag/tracedag/dag"

// Roofline returns the trace with a duration for every calc that has operations but no duration: the longer of its
// operations at peak operations per second and its bytes at a memory bandwidth in bytes per second (S. Williams et al.,
// "Roofline", CACM 52(4), 2009). Both rates must be above 0. The result shares all else with t, and is t if it sets no
// duration.
func Roofline(t *dag.Trace, peak, bandwidth int64) *dag.Trace {
	out := *t
	out.Ranks = make([]dag.Rank, len(t.Ranks))
	changed := false
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		copied := false
		for i, flops := range r.Flops {
			if flops <= 0 || i >= len(r.Kind) || r.Kind[i] != dag.Calc || r.Duration.At(i) != 0 {
				continue
			}
			if !copied {
				copied, changed = true, true
				r.Duration = append(dag.Column[dag.Time](nil), r.Duration...)
			}
			r.Duration.Set(i, max(dag.AtRate(flops, peak), dag.AtRate(max(r.Bytes.At(i), 0), bandwidth)))
		}
		out.Ranks[rank] = r
	}
	if !changed {
		return t
	}
	return &out
}
