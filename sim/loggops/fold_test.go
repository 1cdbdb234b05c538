package loggops

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// alike returns a trace whose ranks do the same with different partners, tags and communicators, and calcs of some or
// all of them differ in length if varied. If odd, a few ranks differ in some op.
func alike(random *rand.Rand, odd, varied bool) *dag.Trace {
	type step struct {
		shift int // of the partner
		op    dag.Op
		tags  bool // the tag depends on the ranks
		group bool // the communicator is that of the even or the odd ranks
		deps  []int
	}
	ranks, streams, nics := 64+random.IntN(30)*2, 1+random.IntN(2)*random.IntN(3), 1+random.IntN(2)
	var steps []step
	for len(steps) < 64+random.IntN(40) {
		s := step{op: dag.Op{Kind: dag.Calc, Duration: dag.Time(random.IntN(50)) * dag.Nanosecond}}
		s.op.Stream, s.op.NIC = int32(random.IntN(streams)), int32(random.IntN(nics))
		depend := func() {
			for range random.IntN(3) {
				if n := len(steps); n > 0 {
					s.deps = append(s.deps, n-1-min(n-1, random.IntN(12)*random.IntN(2)))
				}
			}
		}
		depend()
		if random.IntN(3) == 0 {
			steps = append(steps, s)
			continue
		}
		s.shift, s.tags, s.group = 1+random.IntN(4), random.IntN(3) == 0, random.IntN(3) == 0
		if s.group {
			s.shift *= 2
		}
		s.op = dag.Op{Kind: dag.Send, Bytes: int64([]int{1, 8, 20, 2000}[random.IntN(4)]), Tag: int64(random.IntN(3)),
			Stream: s.op.Stream, NIC: s.op.NIC}
		if random.IntN(8) == 0 {
			s.op.Tag = dag.AnyTag - 1 - s.op.Tag // of a lowered collective
		}
		steps = append(steps, s)
		s.op.Kind, s.deps = dag.Recv, nil
		depend()
		steps = append(steps, s)
	}
	if random.IntN(2) == 0 { // an op with many dependencies
		s := step{op: dag.Op{Kind: dag.Calc, Duration: 3 * dag.Nanosecond}}
		for i := range steps[:20+random.IntN(len(steps)-20)] {
			s.deps = append(s.deps, i)
		}
		steps = append(steps, s)
	}
	lengths := 1 + random.IntN(2*ranks) // number of different lengths of each calc
	markers := random.IntN(3) == 0
	b := dag.NewBuilder(ranks)
	var comms [2]int32
	for k := range comms {
		half := dag.Range{First: int32(k), Stride: 2, Count: int32(ranks / 2)}
		comms[k] = b.AddComm(dag.Comm{Ranges: []dag.Range{half}})
	}
	for r := range ranks {
		differs := -1
		if odd && random.IntN(40) == 0 {
			differs = random.IntN(len(steps))
		}
		for i, s := range steps {
			op, from := s.op, r
			switch op.Kind {
			case dag.Send:
				op.Peer = int32((r + s.shift) % ranks)
			case dag.Recv:
				from = (r - s.shift + ranks) % ranks
				op.Peer = int32(from)
			}
			if s.tags && op.Tag >= 0 {
				op.Tag += int64(from * 10)
			}
			if s.group {
				op.Comm = comms[r%2]
			}
			if varied && op.Kind == dag.Calc {
				op.Duration += dag.Time(r%lengths*(i%5)*1300) * dag.Picosecond
				if markers && i%7 == 0 {
					op.Subkind = dag.Marker
				}
			}
			if i == differs {
				switch random.IntN(4) {
				case 0:
					op.Bytes++
				case 1:
					op.Tag++
				case 2:
					op.Duration += 7 * dag.Nanosecond
				default:
					op.Peer = int32(random.IntN(ranks))
				}
			}
			b.Rank(r).Add(op, s.deps...)
		}
	}
	return b.Trace()
}

// reusing is a source of small batches whose readers use their memory again. Ranks with the same kinds or lengths as
// the rank before share these.
type reusing struct {
	dag.Source
	batch int
}

func (s reusing) Header() (*dag.Header, error) {
	h, err := s.Source.Header()
	if err != nil {
		return nil, err
	}
	own := *h
	own.Stable, own.Batches = false, nil
	read := s.Source.NewReader(dag.All)
	for _, b := range h.Batches {
		ranks, err := read.Ranks(b)
		if err != nil {
			return nil, err
		}
		for first := 0; first < len(ranks); first += s.batch {
			last := min(first+s.batch, len(ranks))
			part := dag.Batch{First: b.First + first, Last: b.First + last}
			for _, r := range ranks[first:last] {
				part.Ops += int64(r.Len())
				part.Deps += int64(len(r.Deps.Off))
			}
			own.Batches = append(own.Batches, part)
		}
	}
	return &own, nil
}

func (s reusing) NewReader(columns dag.Columns) dag.Reader {
	h, err := s.Source.Header()
	read := s.Source.NewReader(columns)
	memory := make([]dag.Rank, s.batch)
	return func(b dag.Batch) (out []*dag.Rank, _ error) {
		if err != nil {
			return nil, err
		}
		for i, whole := range h.Batches {
			if b.First < whole.First || b.First >= whole.Last {
				continue
			}
			ranks, err := read.Ranks(h.Batches[i])
			if err != nil {
				return nil, err
			}
			for k, r := range ranks[b.First-whole.First : b.Last-whole.First] {
				own, before := &memory[k], dag.Rank{}
				if k > 0 {
					before = *out[k-1]
				}
				got := *r
				got.Kind = reuse(&own.Kind, r.Kind, before.Kind)
				got.Bytes = reuse(&own.Bytes, r.Bytes, before.Bytes)
				got.Tag = reuse(&own.Tag, r.Tag, before.Tag)
				got.Duration = reuse(&own.Duration, r.Duration, before.Duration)
				got.Peer = reuse(&own.Peer, r.Peer, nil)
				out = append(out, &got)
			}
		}
		return out, nil
	}
}

// reuse returns a column like that of a rank: in the memory of the column of the rank before if both are equal, else in
// memory, which it uses again.
func reuse[C ~[]T, T comparable](memory *C, column, before C) C {
	if len(column) > 0 && slices.Equal(column, before) {
		return before
	}
	*memory = append((*memory)[:0], column...)
	return *memory
}

// TestFolded compares replays of folded programs with those of others, including incomplete ones and short receives.
func TestFolded(t *testing.T) {
	folded, incomplete, complete := 0, 0, 0
	for seed := range sampled(150) {
		random := rand.New(rand.NewPCG(seed, 41))
		trace, n := alike(random, random.IntN(3) > 0, random.IntN(2) == 0), randomCosts(random)
		if random.IntN(2) == 0 {
			n.S = 5000 // without messages that wait for their receive, on which most of these programs end early
		}
		o := Options{Noise: randomNoise(random), Threads: 1}
		batch := 1 + random.IntN(9)
		compiled := func(fold bool) *sim.Program {
			source := dag.FromTrace(trace)
			if fold {
				source = reusing{source, batch}
			}
			p, err := sim.Compile(source, sim.CompileOptions{Unit: dag.Nanosecond, Fold: fold})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		run := func(p *sim.Program) (*outcome, *sim.Result, []string) {
			var warnings []string
			p.WarnShortReceives(&sim.Env{Warn: func(message string, args ...any) {
				warnings = append(warnings, fmt.Sprintf(message, args...))
			}})
			out, err := runLogGOPSim(p, n, o)
			if err != nil {
				t.Fatal(err)
			}
			return out, out.Result(p), warnings
		}
		p := compiled(true)
		if p.Folded() != nil {
			folded++
		}
		want, wantResult, wantWarnings := run(compiled(false))
		clone := p.Clone()
		for _, p := range []*sim.Program{p, clone} {
			got, result, warnings := run(p)
			sameOutcome(t, seed, got, want)
			if !reflect.DeepEqual(result, wantResult) {
				t.Errorf("seed %d: result %+v, expected %+v", seed, result, wantResult)
			}
			if !reflect.DeepEqual(warnings, wantWarnings) {
				t.Errorf("seed %d: warnings %v, expected %v", seed, warnings, wantWarnings)
			}
		}
		if wantResult.Complete {
			complete++
		} else {
			incomplete++
		}
		// Ops of their own, after the compilation and on several threads.
		p = compiled(true)
		p.Unfold()
		got, _, _ := run(p)
		sameOutcome(t, seed, got, want)
		s, err := newLogGOPSim(compiled(true), n, o)
		if err != nil {
			t.Fatal(err)
		}
		if s.divisible() {
			s.begin()
			if err := s.replayOn(2, &sim.ThreadTuner{}); err != nil {
				t.Fatal(err)
			}
			sameOutcome(t, seed, s.outcome(s.unmatched()), want)
		}
	}
	if folded == 0 || incomplete == 0 || complete == 0 {
		t.Errorf("%d programs folded, %d replays complete, %d incomplete, expected some of each", folded, complete,
			incomplete)
	}
}

// TestFoldedStrict compares strict replays of folded programs with those of others, including incomplete ones, those of
// ranks with several streams or NICs, and those with messages that wait for their receive, which are unfolded.
func TestFoldedStrict(t *testing.T) {
	folded, unfolded, incomplete, complete := 0, 0, 0, 0
	for seed := range sampled(150) {
		random := rand.New(rand.NewPCG(seed, 47))
		trace := alike(random, random.IntN(3) > 0, random.IntN(2) == 0)
		pick := func(values ...int64) int64 { return values[random.IntN(len(values))] }
		o := Options{Params: inNanoseconds(pick(0, 1, 20, 20, 2500), pick(0, 5, 1500), pick(0, 1, 10, 10, 1000),
			pick(0, 1, 6), pick(10, 5000, 5000, 5000)), Threads: 2}
		if random.IntN(6) == 0 {
			o.Params.OPerByte = nsPerByte(1, 2)
		}
		if random.IntN(6) == 0 {
			o.Params.GPerByte = nsPerByte(1, 3)
		}
		compiled := func(fold bool) *sim.Program {
			p, err := sim.Compile(dag.FromTrace(trace), sim.CompileOptions{DenseStreams: true, Fold: fold})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		run := func(p *sim.Program) (*outcome, *sim.Result) {
			out, err := runStrict(p, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			if p.Folded() != nil {
				folded++
			} else {
				unfolded++
			}
			return out, out.Result(p)
		}
		want, wantResult := run(compiled(false))
		p := compiled(true)
		clone := p.Clone()
		for _, p := range []*sim.Program{p, clone} {
			got, result := run(p)
			sameOutcome(t, seed, got, want)
			if !reflect.DeepEqual(result, wantResult) {
				t.Errorf("seed %d: result %+v, expected %+v", seed, result, wantResult)
			}
		}
		if wantResult.Complete {
			complete++
		} else {
			incomplete++
		}
	}
	if folded == 0 || unfolded == 0 || incomplete == 0 || complete == 0 {
		t.Errorf("%d programs folded, %d not, %d replays complete, %d incomplete, expected some of each", folded, unfolded,
			complete, incomplete)
	}
}
