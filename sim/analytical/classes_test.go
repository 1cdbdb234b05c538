package analytical

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// TestClasses compares runs with classes of collectives with runs of all messages: all results must be equal.
func TestClasses(t *testing.T) {
	byClass := 0
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 1))
		o := randomOptions(random)
		trace := randomTrace(random, &o.Network)
		p, err := Compile(dag.FromTrace(trace))
		if err != nil {
			t.Fatal(err)
		}
		if !p.hasClasses(&o) {
			t.Fatalf("seed %d: expected a program with classes", seed)
		}
		if got, err := p.run(&o, true); err == nil && got.Complete { // otherwise the run needs all messages
			byClass++
		}
		ops := int64(0)
		counted := o
		counted.Progress = func(n int64) { ops += n }
		got, err := p.Run(counted)
		messages := o
		messages.allMessages = true
		want, failed := p.Run(messages)
		if seed%3 == 0 && err == nil && failed == nil {
			checkTimeline(t, seed, p, o)
		}
		if err != nil || failed != nil {
			if fmt.Sprint(err) != fmt.Sprint(failed) {
				t.Errorf("seed %d: error %v, expected %v", seed, err, failed)
			}
			continue
		}
		if want := got.Ops - got.NeverRun - got.Unended; ops != want {
			t.Errorf("seed %d: %d ops reported as run, expected %d", seed, ops, want)
		}
		got.Wall, want.Wall, got.OpsPerS, want.OpsPerS = 0, 0, 0, 0
		if text, other := resultText(t, got), resultText(t, want); text != other {
			t.Errorf("seed %d, %+v: got\n%s\nexpected\n%s", seed, o, text, other)
		}
	}
	if byClass < 300 {
		t.Errorf("%d runs ended with classes, expected 300 or more", byClass)
	}
}

// checkTimeline checks that a run with classes reports the spans and the transfers of a run of all messages, those of
// each rank at the same time in any order.
func checkTimeline(t *testing.T, seed uint64, p *Program, o Options) {
	t.Helper()
	var got, want recorder
	o.Timeline = &got
	r, err := p.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Timeline, o.allMessages = &want, true
	all, err := p.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Wall, all.Wall, r.OpsPerS, all.OpsPerS = 0, 0, 0, 0
	if text, other := resultText(t, r), resultText(t, all); text != other {
		t.Errorf("seed %d: with a timeline got\n%s\nexpected\n%s", seed, text, other)
	}
	got.sort()
	want.sort()
	if got.begun != 1 || want.begun != 1 || !slices.Equal(got.spans, want.spans) || !slices.Equal(got.transfers, want.transfers) {
		t.Errorf("seed %d: timeline of %d spans and %d transfers, begun %d times, expected %d and %d", seed, len(got.spans),
			len(got.transfers), got.begun, len(want.spans), len(want.transfers))
	}
}

// recorder is a timeline in memory.
type recorder struct {
	begun     int
	spans     []sim.Span
	transfers []sim.Transfer
}

func (r *recorder) Begin(*sim.Layout)       { r.begun++ }
func (r *recorder) Span(s sim.Span)         { r.spans = append(r.spans, s) }
func (r *recorder) Transfer(s sim.Transfer) { r.transfers = append(r.transfers, s) }
func (r *recorder) End() error              { return nil }

func (r *recorder) sort() {
	slices.SortFunc(r.spans, func(a, b sim.Span) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(r.transfers, func(a, b sim.Transfer) int {
		return cmp.Or(cmp.Compare(a.Send, b.Send), cmp.Compare(a.Recv, b.Recv))
	})
}

func resultText(t *testing.T, r *Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// randomOptions returns a small network and a system. Few distinct numbers make many events simultaneous.
func randomOptions(random *rand.Rand) Options {
	o := Options{System: System{LocalBWAware: random.IntN(3) > 0, Splits: 1 + random.IntN(6),
		ActiveChunks: 1 + random.IntN(3), Queues: 1, EndpointDelay: int64(1 + random.IntN(12)),
		LocalMemBW: []float64{0, 1, 50}[random.IntN(3)], Scheduling: Scheduling(random.IntN(2)),
		Roofline: random.IntN(4) == 0, PeakPerf: 1e-3}, FreeMarkers: random.IntN(2) == 0}
	for range 1 + random.IntN(3) {
		d := Dim{Topology(random.IntN(3)), []int{2, 2, 3, 4, 4}[random.IntN(5)], []float64{1, 25, 1000}[random.IntN(3)],
			[]float64{1, 5, 10, 10.5}[random.IntN(4)]}
		o.Network.Dims = append(o.Network.Dims, d)
		for c := range o.System.Implementations {
			a := Algorithm{Name: []AlgorithmName{RingAlgorithm, Direct, HalvingDoubling}[random.IntN(3)]}
			if a.Name == HalvingDoubling && (d.NPUs == 3 || Collective(c) == AllToAll) {
				a.Name = Direct
			}
			if a.Name == Direct && random.IntN(2) == 0 {
				a.Window = 1 + random.IntN(2)
			}
			o.System.Implementations[c] = append(o.System.Implementations[c], a)
		}
	}
	o.System.Roofline = o.System.Roofline && o.System.LocalMemBW > 0
	return o
}

// randomTrace returns the trace of a few groups of ranks, each of which does the same things, with slight differences
// in some traces.
func randomTrace(random *rand.Rand, network *Network) *dag.Trace {
	ranks := network.NPUs()
	b := dag.NewBuilder(ranks)
	comms := []dag.Comm{dag.World(ranks)}
	parts := 1 // groups of consecutive ranks, whose size divides that of the network
	for _, d := range network.Dims[:random.IntN(len(network.Dims)+1)] {
		parts *= d.NPUs
	}
	size := ranks / parts
	for part := range parts {
		comms = append(comms, dag.Comm{Ranges: []dag.Range{{First: int32(part * size), Stride: 1, Count: int32(size)}}})
	}
	for i := range size {
		comms = append(comms, dag.Comm{Ranges: []dag.Range{{First: int32(i), Stride: int32(size), Count: int32(parts)}}})
	}
	last := make([][2]int, ranks) // by rank: last op of each of two chains
	for r := range last {
		last[r] = [2]int{-1, -1}
	}
	jitter := []int{0, 0, 3, 40}[random.IntN(4)]
	after := func(r, chain int, extra bool) (deps []int) {
		if k := last[r][chain]; k >= 0 {
			deps = append(deps, k)
		}
		if k := last[r][1-chain]; extra && k >= 0 {
			deps = append(deps, k)
		}
		return deps
	}
	for step := range 2 + random.IntN(12) {
		chain, extra := random.IntN(2), random.IntN(4) == 0
		bytes := int64([]int{0, 7, 64, 1000, 4096, 70000}[random.IntN(6)])
		duration := []int{1, 5, 10, 20, 100, 1000}[random.IntN(6)]
		kind := dag.Subkind([]dag.Subkind{dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Alltoall}[random.IntN(4)])
		what, distance, stream := random.IntN(8), 1+random.IntN(ranks-1), int32(random.IntN(2))
		dims := 1 + random.IntN(1<<len(network.Dims)-1)
		for r := range ranks {
			rank := b.Rank(r)
			deps := after(r, chain, extra)
			add := func(o dag.Op) { last[r][chain] = rank.Add(o, deps...) }
			switch what {
			case 0, 1, 2:
				if jitter > 0 {
					duration += random.IntN(jitter)
				}
				add(dag.Op{Kind: dag.Calc, Duration: dag.Time(duration) * dag.Nanosecond, Stream: stream, Flops: int64(duration),
					Bytes: int64(duration)})
			case 3:
				rank.Add(dag.Op{Kind: dag.Send, Peer: int32((r + distance) % ranks), Bytes: bytes, Tag: int64(step)}, deps...)
				add(dag.Op{Kind: dag.Recv, Peer: int32((r + ranks - distance) % ranks), Bytes: bytes, Tag: int64(step)})
			case 4:
				add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Comm: int32(1 + r/size)})
			case 5:
				add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Comm: int32(1 + parts + r%size)})
			case 6:
				add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Dims: int32(dims)})
			case 7:
				add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes})
			}
		}
	}
	// at least one collective
	for r := range ranks {
		b.Rank(r).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 64})
	}
	t := b.Trace()
	t.Comms = comms
	return t
}
