package packet

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestATLAHSCoupling compares with times worked out by hand: 4,675,840 ps from a message of one full packet to its ACK,
// over four links of 200 Gb/s and 500 ns, in nanoseconds rounded down.
func TestATLAHSCoupling(t *testing.T) {
	const ack = 4675 // ns, for a handover at a whole nanosecond
	for _, test := range []struct {
		name   string
		make   func(a, b *dag.RankBuilder)
		finish [2]uint64 // of ranks 0 and 3, ns
	}{
		{"both ends end with the ack", func(a, b *dag.RankBuilder) {
			a.Calc(500_000, a.Send(3, 4096, 0, a.Calc(1_000_000)))
			b.Calc(700_000, b.Recv(0, 4096, 0))
		}, [2]uint64{1000 + ack + 500, 1000 + ack + 700}},
		{"a late receive holds up the sender", func(a, b *dag.RankBuilder) {
			a.Calc(500_000, a.Send(3, 4096, 0))
			b.Recv(0, 4096, 0, b.Calc(100_000_000))
		}, [2]uint64{100_000 + 500, 100_000}},
		{"calcs of no time take a nanosecond", func(a, b *dag.RankBuilder) {
			a.Calc(0, a.Calc(0))
		}, [2]uint64{2, 0}},
		{"a second send waits for the gap, 0.04 ns for each byte of two packets", func(a, b *dag.RankBuilder) {
			start := a.Calc(1_000_000)
			a.Send(3, 4096, 0, start)
			a.Send(3, 4096, 1, start)
			b.Recv(0, 4096, 0)
			b.Recv(0, 4096, 1)
		}, [2]uint64{1000 + 332 + ack, 1000 + 332 + ack}},
		{"messages to oneself are calcs of a nanosecond", func(a, b *dag.RankBuilder) {
			a.Recv(0, 4096, 0, a.Send(0, 4096, 0))
		}, [2]uint64{2, 0}},
	} {
		b := dag.NewBuilder(4)
		test.make(b.Rank(0), b.Rank(3))
		result, _ := try{network: leafSpine, transport: "mprdma", compat: CompatATLAHS}.run(t, b.Trace())
		if got := [2]uint64{result.Finish[0].Ticks, result.Finish[3].Ticks}; got != test.finish || !result.Complete {
			t.Errorf("%s: %v, want %v; %v", test.name, got, test.finish, result.Stuck)
		}
	}
}

// TestATLAHSStuck checks that ops without a partner end the run and are named.
func TestATLAHSStuck(t *testing.T) {
	b := dag.NewBuilder(4)
	b.Rank(0).Calc(1000, b.Rank(0).Send(3, 4096, 7))
	b.Rank(1).Recv(2, 4096, 8)
	result, _ := try{network: leafSpine, transport: "mprdma", compat: CompatATLAHS}.run(t, b.Trace())
	if result.Complete || result.NeverRun != 1 || result.Unmatched.Count() != 2 || len(result.Stuck) != 3 {
		t.Errorf("%+v", result)
	}
}
