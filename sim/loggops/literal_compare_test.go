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

// TestLogGOPSimIsLiteral compares the fast replay with the literal one.
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
		p := compile(t, trace)
		if p.Plain && clocksAdvance(p, n, nil) {
			fast++
		}
		got, err := runLogGOPSim(p, n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := runLiteral(compile(t, trace), n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameOutcome(t, seed, got, want)
	}
	if fast < 500 {
		t.Errorf("only %d schedules took the fast way", fast)
	}
}

// sameOutcome checks that a replay ended as another did.
func sameOutcome(t *testing.T, seed uint64, got, want *outcome) {
	t.Helper()
	if !slices.Equal(got.Finish, want.Finish) || got.Events != want.Events || !slices.Equal(got.Ran, want.Ran) ||
		got.Messages != want.Messages || got.Bytes != want.Bytes || !slices.Equal(got.noise, want.noise) {
		t.Errorf("seed %d: finish %v, %d events; expected %v, %d", seed, got.Finish, got.Events, want.Finish, want.Events)
	}
	of := func(lists [][]uint32, host int) []uint32 { // lists is nil if all are empty
		if lists == nil {
			return nil
		}
		return lists[host]
	}
	for host := range got.Finish {
		unexpected, posted := of(got.Unexpected, host), of(got.Posted, host)
		if !slices.Equal(unexpected, of(want.Unexpected, host)) || !slices.Equal(posted, of(want.Posted, host)) {
			t.Errorf("seed %d: host %d: unmatched %v and %v, expected %v and %v", seed, host, unexpected, posted,
				of(want.Unexpected, host), of(want.Posted, host))
		}
	}
}

// crowd configures crowded.
type crowd struct {
	ranks, streams, nics int
	phases, width        int // per rank: number of phases, and about the number of ops that become ready together in each
	sizes                []int64
	complete             bool // no message is for a receive of another phase, and no receive is missing
}

func randomCrowd(random *rand.Rand) crowd {
	return crowd{
		ranks: 1 + random.IntN(5), streams: 1 + random.IntN(3), nics: 1 + random.IntN(3), phases: 1 + random.IntN(4),
		width: 1 + random.IntN(24), sizes: []int64{1, 1, 2, 5, 64},
	}
}

// crowded returns a schedule in which many ops become ready at the same time, to wait for few clocks: in each phase of
// a rank, ops that wait for nothing but a calc, which joins the phase before.
func crowded(random *rand.Rand, c crowd) *dag.Trace {
	b := dag.NewBuilder(c.ranks)
	place := func(op dag.Op) dag.Op {
		op.Stream, op.NIC = random.Int32N(int32(c.streams)), random.Int32N(int32(c.nics))
		return op
	}
	joins, ready := make([]int, c.ranks), make([][]int, c.ranks)
	add := func(rank int, op dag.Op) {
		i := b.Rank(rank).Add(place(op))
		if random.IntN(10) == 0 {
			b.Rank(rank).RequiresStart(i, joins[rank])
		} else {
			b.Rank(rank).Requires(i, joins[rank])
		}
		ready[rank] = append(ready[rank], i)
	}
	for phase := range c.phases {
		for rank := range c.ranks {
			joins[rank] = b.Rank(rank).Add(place(dag.Op{Duration: dag.Time(random.IntN(3)*50) * dag.Nanosecond}))
			for _, i := range ready[rank] {
				if random.IntN(4) > 0 { // the others overlap with later ops
					b.Rank(rank).Requires(joins[rank], i)
				}
			}
			ready[rank] = ready[rank][:0]
		}
		for from := range c.ranks {
			for range c.width {
				if random.IntN(4) == 0 {
					add(from, dag.Op{Duration: dag.Time(random.IntN(4)) * dag.Nanosecond})
					continue
				}
				to := random.IntN(c.ranks)
				op := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: c.sizes[random.IntN(len(c.sizes))], Tag: random.Int64N(2)}
				if c.complete {
					op.Tag = int64(phase)
				}
				add(from, op)
				op.Kind, op.Peer = dag.Recv, int32(from)
				if !c.complete && random.IntN(30) == 0 {
					op.Peer = dag.AnySource
				}
				if c.complete || random.IntN(100) > 0 {
					add(to, op)
				}
			}
		}
	}
	return b.Trace()
}

// randomCosts returns parameters of which many are 0 or alike.
func randomCosts(random *rand.Rand) nanoseconds {
	cost := func() uint64 { return []uint64{0, 0, 1, 2, 10, 100}[random.IntN(6)] }
	return nanoseconds{L: cost(), o: cost(), g: cost(), G: cost() / 2, O: cost() / 2,
		S: []uint32{0, 1, 4, 1000, 1000}[random.IntN(5)]}
}

// randomNoise returns noise that is longer than any op of crowded takes, mostly none.
func randomNoise(random *rand.Rand) *NoiseTrace {
	if random.IntN(4) > 0 {
		return nil
	}
	return &NoiseTrace{Seed: random.Int64(), start: []uint64{0, 40, 900, 100000}, length: []uint64{5, 30, 1, 1}}
}

// TestCrowds compares the fast replay with the literal one if nearly all ops wait for clocks.
func TestCrowds(t *testing.T) {
	for seed := range uint64(1500) {
		crowds(t, seed)
	}
}

func crowds(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 23))
	c, n := randomCrowd(random), randomCosts(random)
	if random.IntN(4) == 0 && n.o >= max(n.O, n.G) && n.g >= n.G {
		c.sizes = append(c.sizes, 0) // takes no clock back
	}
	trace, o := crowded(random, c), Options{Noise: randomNoise(random)}
	p := compile(t, trace)
	if !p.Plain || !clocksAdvance(p, n, nil) {
		t.Fatalf("seed %d: not the fast way", seed)
	}
	got, err := runLogGOPSim(p, n, o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := runLiteral(compile(t, trace), n, o)
	if err != nil {
		t.Fatal(err)
	}
	sameOutcome(t, seed, got, want)
}

// compile compiles a trace for the replays in nanoseconds.
func compile(t *testing.T, trace *dag.Trace) *sim.Program {
	t.Helper()
	p, err := sim.Compile(dag.FromTrace(trace), sim.CompileOptions{Unit: dag.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNoiseWithoutBound compares the fast replay with the literal one if noise makes the clocks wrap around, so that
// they go backwards.
func TestNoiseWithoutBound(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 37))
		c := randomCrowd(random)
		c.phases, c.sizes = 20, []int64{1, 2, 5}
		n := nanoseconds{L: 100, o: 10, g: 10, G: 1, O: 1, S: 1000}
		long := uint64(1) << 53
		o := Options{Noise: &NoiseTrace{Seed: int64(seed), start: []uint64{0, 1, 7}, length: []uint64{0, long, long}}}
		if seed%2 == 0 { // longer than every op
			o.Noise = &NoiseTrace{Seed: int64(seed)}
			for k := range uint64(200) {
				o.Noise.start, o.Noise.length = append(o.Noise.start, k), append(o.Noise.length, long)
			}
		}
		trace := crowded(random, c)
		got, err := runLogGOPSim(compile(t, trace), n, o)
		if err != nil {
			continue // an op exactly as long as the noise
		}
		want, err := runLiteral(compile(t, trace), n, o)
		if err != nil {
			t.Fatal(err)
		}
		sameOutcome(t, seed, got, want)
	}
}
