package loggops

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// simultaneous returns a schedule for shards: one stream, no wildcards on sends, and much that happens at the same time,
// for lengths and sizes are few.
func simultaneous(random *rand.Rand) *dag.Trace {
	ranks := 2 + random.IntN(12)
	b := dag.NewBuilder(ranks)
	last := make([]int, ranks)
	for r := range last {
		last[r] = -1
	}
	add := func(r int, op dag.Op) {
		i := b.Rank(r).Add(op)
		if last[r] >= 0 && random.IntN(3) > 0 {
			b.Rank(r).Requires(i, last[r]-random.IntN(min(last[r]+1, 4)))
		}
		last[r] = i
	}
	nics, sizes := 1+random.Int32N(2), []int64{1, 1, 2, 8, 64}
	alike := random.IntN(2) == 0
	for range 30 {
		distance := 1 + random.IntN(ranks)
		for r := range ranks {
			if !alike && random.IntN(3) == 0 {
				add(r, dag.Op{Duration: dag.Time(random.IntN(3)*100) * dag.Nanosecond})
				continue
			}
			if !alike {
				distance = 1 + random.IntN(ranks)
			}
			to, size, tag := (r+distance)%ranks, sizes[random.IntN(len(sizes))], random.Int64N(2)
			add(r, dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: size, Tag: tag, NIC: random.Int32N(nics)})
			recv := dag.Op{Kind: dag.Recv, Peer: int32(r), Bytes: size, Tag: tag}
			if random.IntN(20) == 0 {
				recv.Peer = dag.AnySource
			}
			if random.IntN(100) > 0 {
				add(to, recv)
			}
		}
	}
	return b.Trace()
}

// TestShards holds the replay on several threads, which go on on one at any point, against the one on one.
func TestShards(t *testing.T) {
	params := []nanoseconds{
		{L: 2500, o: 1500, g: 1000, G: 6, O: 0, S: 65535},
		{L: 100, o: 100, g: 100, G: 1, O: 1, S: 65535},
		{L: 1, o: 0, g: 0, G: 0, O: 0, S: 64},
		{L: 0, o: 7, g: 50, G: 2, O: 3, S: 64},
	}
	left := 0
	for seed := range uint64(1200) {
		random := rand.New(rand.NewPCG(seed, 17))
		trace, n := simultaneous(random), params[seed%uint64(len(params))]
		compile := func() *sim.Program {
			p, err := sim.Compile(sim.InMemory(trace), sim.CompileOptions{Unit: dag.Nanosecond})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		o := Options{}
		if seed%5 == 0 {
			o.Noise = &NoiseTrace{Seed: int64(seed), start: []uint64{0, 40, 100000}, length: []uint64{5, 3, 1}}
		}
		want, err := runLogGOPSim(compile(), n, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newLogGOPSim(compile(), n, o)
		if err != nil {
			t.Fatal(err)
		}
		if !s.divisible() {
			t.Fatalf("seed %d: not divisible", seed)
		}
		all := s.divide(2 + int(seed%3))
		if all.minDrawn = 0; seed%4 == 1 {
			all.minDrawn, all.trial = 1<<30, 1+random.IntN(30)
		}
		if err := all.replay(s); err != nil {
			t.Fatal(err)
		}
		if s.queue.Len() > 0 {
			left++
		}
		if err := s.finish(); err != nil {
			t.Fatal(err)
		}
		got := s.outcome(s.leftover())
		if !slices.Equal(got.Finish, want.Finish) || got.Events != want.Events || !slices.Equal(got.Ran, want.Ran) ||
			got.Messages != want.Messages || got.Bytes != want.Bytes || !slices.Equal(got.noise, want.noise) {
			t.Errorf("seed %d: finish %v, %d events; expected %v, %d", seed, got.Finish, got.Events, want.Finish, want.Events)
		}
		for host := range got.Finish {
			if !slices.Equal(got.Unexpected[host], want.Unexpected[host]) || !slices.Equal(got.Posted[host], want.Posted[host]) {
				t.Errorf("seed %d: host %d: left over %v and %v, expected %v and %v", seed, host, got.Unexpected[host],
					got.Posted[host], want.Unexpected[host], want.Posted[host])
			}
		}
	}
	if left < 100 {
		t.Errorf("only %d replays went on on one thread", left)
	}
}
