package loggops

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// randomTrace returns a schedule in which much happens at the same time: few lengths, few sizes (0 among them), several
// streams and NICs, wildcards, forward references, cycles, ops without a partner.
func randomTrace(random *rand.Rand, big bool) *dag.Trace {
	ranks := 1 + random.IntN(6)
	count := 40
	if big {
		count = 400
	}
	b := dag.NewBuilder(ranks)
	sizes := []int64{1, 1, 2, 8, 64, 100, 1000, 70000}
	if random.IntN(3) == 0 {
		sizes = append(sizes, 0, 0)
	}
	streams, nics, wild := 1+random.Int32N(3), 1+random.Int32N(2), random.IntN(3) == 0
	for range ranks * count / 2 {
		op := dag.Op{Stream: random.Int32N(streams), NIC: random.Int32N(nics)}
		from := random.IntN(ranks)
		if random.IntN(3) == 0 {
			op.Duration = dag.Time(random.IntN(4)*random.IntN(1000)) * dag.Nanosecond
			b.Rank(from).Add(op)
			continue
		}
		to := random.IntN(ranks)
		op.Kind, op.Peer, op.Bytes, op.Tag = dag.Send, int32(to), sizes[random.IntN(len(sizes))], random.Int64N(3)
		if wild && random.IntN(10) == 0 {
			op.Tag = dag.AnyTag
		}
		if random.IntN(30) > 0 {
			b.Rank(from).Add(op)
		}
		op.Kind, op.Peer, op.Stream, op.NIC = dag.Recv, int32(from), random.Int32N(streams), random.Int32N(nics)
		if wild && random.IntN(4) == 0 {
			op.Peer = dag.AnySource
		}
		if wild && random.IntN(4) == 0 {
			op.Tag = dag.AnyTag
		}
		if random.IntN(30) > 0 {
			b.Rank(to).Add(op)
		}
	}
	for r := range ranks {
		rank := b.Rank(r)
		n := rank.Len()
		if n == 0 {
			continue
		}
		for range random.IntN(2 * n) {
			op := random.IntN(n)
			on := random.IntN(op + 1)
			if random.IntN(200) == 0 {
				on = random.IntN(n)
			}
			if on == op && random.IntN(50) > 0 {
				continue
			}
			if random.IntN(5) == 0 {
				rank.RequiresStart(op, on)
			} else {
				rank.Requires(op, on)
			}
		}
	}
	return b.Trace()
}

// TestLogGOPSimIsLiteral holds the fast replay against the one that follows the rules word by word.
func TestLogGOPSimIsLiteral(t *testing.T) {
	wraps := ^uint64(0) - 5
	params := []nanoseconds{
		{L: 2500, o: 1500, g: 1000, G: 6, O: 0, S: 65535},
		{L: 3700, o: 200, g: 5, G: 2, O: 1, S: 64},
		{L: 1100, o: 70, g: 310, G: 1, O: 3, S: 1000},
		{L: 10, o: 10, g: 10, G: 0, O: 0, S: 1},
		{L: 100, o: 1, g: 1, G: 3, O: 2, S: 50}, // empty messages take clocks back
		{L: 0, o: 0, g: 0, G: 0, O: 0, S: 0},
		{L: 5, o: wraps, g: 7, G: 1, O: 1, S: 100},
	}
	fast := 0
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 9))
		trace := randomTrace(random, seed%10 == 0)
		n := params[seed%uint64(len(params))]
		compile := func() *sim.Program {
			p, err := sim.Compile(sim.InMemory(trace), sim.CompileOptions{Unit: dag.Nanosecond})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := compile()
		if p.Plain && clocksAdvance(p, n) {
			fast++
		}
		got, err := runLogGOPSim(p, n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := runLiteral(compile(), n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Finish, want.Finish) || got.Events != want.Events || !slices.Equal(got.Ran, want.Ran) {
			t.Errorf("seed %d: finish %v, %d events; expected %v, %d", seed, got.Finish, got.Events, want.Finish, want.Events)
		}
		for host := range got.Finish {
			if !slices.Equal(got.Unexpected[host], want.Unexpected[host]) || !slices.Equal(got.Posted[host], want.Posted[host]) {
				t.Errorf("seed %d: host %d: left over %v and %v, expected %v and %v", seed, host, got.Unexpected[host],
					got.Posted[host], want.Unexpected[host], want.Posted[host])
			}
		}
	}
	if fast < 500 {
		t.Errorf("only %d schedules took the fast way", fast)
	}
}
