package loggops

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// simultaneous returns a schedule for shards: one stream, no wildcards on sends, and few lengths and sizes, so that
// many times are equal.
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

// replayDivided replays some events on one thread, and then on several until proceed has been called the given number
// of times; to the end if that is negative.
func replayDivided(t *testing.T, s *loggopsim, threads, alone, looks int) {
	t.Helper()
	windows := 1 + alone%30
	for ; alone > 0 && s.queue.Len() > 0; alone-- {
		if err := s.handle(s.queue.Pop()); err != nil {
			t.Fatal(err)
		}
	}
	all := s.divide(threads)
	all.mostWindows = windows
	err := all.replay(s, func(uint64, int, time.Duration) bool {
		looks--
		return looks != -1
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestShards compares the replay on several threads, which may return to one thread at any point, with the replay on
// one.
func TestShards(t *testing.T) {
	params := []nanoseconds{
		{L: 2500, o: 1500, g: 1000, G: 6, O: 0, S: 65535},
		{L: 100, o: 100, g: 100, G: 1, O: 1, S: 65535},
		{L: 1, o: 0, g: 0, G: 0, O: 0, S: 64},
		{L: 0, o: 7, g: 50, G: 2, O: 3, S: 64},
	}
	left := 0
	for seed := range sampled(1200) {
		random := rand.New(rand.NewPCG(seed, 17))
		trace, n := simultaneous(random), params[seed%uint64(len(params))]
		o := Options{}
		if seed%5 == 0 {
			o.Noise = &NoiseTrace{Seed: int64(seed), start: []uint64{0, 40, 100000}, length: []uint64{5, 3, 1}}
		}
		want, err := runLogGOPSim(compile(t, trace), n, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newLogGOPSim(compile(t, trace), n, o)
		if err != nil {
			t.Fatal(err)
		}
		if !s.divisible() {
			t.Fatalf("seed %d: not divisible", seed)
		}
		looks := -1
		if seed%4 == 1 {
			looks = random.IntN(2)
		}
		s.begin()
		replayDivided(t, s, 2+int(seed%3), random.IntN(3)*random.IntN(200), looks)
		if s.queue.Len() > 0 {
			left++
		}
		if err := s.finish(); err != nil {
			t.Fatal(err)
		}
		sameOutcome(t, seed, s.outcome(s.unmatched()), want)
	}
	if left < 30 {
		t.Errorf("only %d replays went on on one thread", left)
	}
}

// sampled returns a third of the seeds of a test; with TRACEDAG_LONG, all.
func sampled(seeds uint64) uint64 {
	if os.Getenv("TRACEDAG_LONG") == "" {
		return seeds / 3
	}
	return seeds
}

// TestShardsInCrowds compares the replay on several threads with the literal one, if nearly all ops wait for clocks and
// windows are as short as possible.
func TestShardsInCrowds(t *testing.T) {
	for seed := range sampled(600) {
		shardCrowds(t, seed)
	}
}

func shardCrowds(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 29))
	c, n := randomCrowd(random), randomCosts(random)
	c.ranks, c.streams = 2+random.IntN(6), 1
	if n.S = 64; n.o+n.L == 0 {
		n.L = 1
	}
	trace, o := crowded(random, c), Options{Noise: randomNoise(random)}
	s, err := newLogGOPSim(compile(t, trace), n, o)
	if err != nil {
		t.Fatal(err)
	}
	if !s.divisible() {
		t.Fatalf("seed %d: not divisible", seed)
	}
	s.begin()
	for range 1 + random.IntN(4) {
		looks := -1
		if random.IntN(4) > 0 {
			looks = random.IntN(2)
		}
		replayDivided(t, s, 2+random.IntN(3), random.IntN(3)*random.IntN(200), looks)
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	want, err := runLiteral(compile(t, trace), n, o)
	if err != nil {
		t.Fatal(err)
	}
	sameOutcome(t, seed, s.outcome(s.unmatched()), want)
}

// TestShardsFromEndToEnd runs schedules of very many windows, some with enough events per window for several threads,
// some with too few.
func TestShardsFromEndToEnd(t *testing.T) {
	n := nanoseconds{L: 20, o: 5, g: 10, G: 1, O: 1, S: 65535}
	for seed, c := range []crowd{
		{ranks: 4, streams: 1, nics: 1, phases: 300, width: 2, sizes: []int64{1, 8}, complete: true},
		{ranks: 200, streams: 1, nics: 2, phases: 60, width: 4, sizes: []int64{1, 8, 20}, complete: true},
		{ranks: 3, streams: 1, nics: 1, phases: 1, width: 2, sizes: []int64{1}},
	} {
		trace := crowded(rand.New(rand.NewPCG(uint64(seed), 31)), c)
		want, err := runLiteral(compile(t, trace), n, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.complete && want.Ran.Count() != trace.Ops() {
			t.Errorf("schedule %d: only %d of %d ops ran", seed, want.Ran.Count(), trace.Ops())
		}
		for threads := range 6 {
			got, err := runLogGOPSim(compile(t, trace), n, Options{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			sameOutcome(t, uint64(seed), got, want)
		}
		for threads := 2; threads < 6; threads++ { // from the start, and after a few rounds
			for _, tuner := range []sim.ThreadTuner{{}, {MinEvents: minDrawn, MinSpeedup: minSpeedup}} {
				s, err := newLogGOPSim(compile(t, trace), n, Options{})
				if err != nil {
					t.Fatal(err)
				}
				s.begin()
				if err := s.replayOn(threads, &tuner); err != nil {
					t.Fatal(err)
				}
				sameOutcome(t, uint64(seed), s.outcome(s.unmatched()), want)
			}
		}
	}
}
