package backends_test

import (
	"math/bits"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestReductionTime compares the makespan of an allreduce of P ranks by recursive doubling with its closed form: log2 P
// rounds of T(s) + c s, with the time T(s) of a message of s bytes and the reduction time c per byte. On loggops, T(s)
// is L + 2 o + (s - 1) G.
func TestReductionTime(t *testing.T) {
	const perByte, messageTime = 250 * dag.Picosecond, (2500+2*1500)*dag.Nanosecond + 999*6*dag.Nanosecond
	for _, ranks := range []int{2, 8, 64} {
		const bytes = 1000
		b := dag.NewBuilder(ranks)
		for rank := range ranks {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: bytes})
		}
		trace := b.Trace()
		for text, reduction := range map[string]dag.Time{"": 0, ";reduction=0.25ns/B": perByte * bytes} {
			choice, err := collective.ParseChoice("allreduce=recdoubling" + text)
			if err != nil {
				t.Fatal(err)
			}
			result, err := backends.Run(trace, "loggops", backends.Set("L=2500ns", "o=1500ns", "g=1us", "G=6ns/B", "S=65535"),
				backends.Collectives(choice))
			if err != nil {
				t.Fatal(err)
			}
			rounds := dag.Time(bits.Len(uint(ranks)) - 1)
			if want := rounds * (messageTime + reduction); picoseconds(result.Makespan).Int64() != int64(want) {
				t.Errorf("%d ranks%s: makespan %v, expected %v", ranks, text, result.Makespan, want)
			}
		}
	}
}
