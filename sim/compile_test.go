package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// batched is a trace as a source that delivers several ranks at a time, in memory that the next batch overwrites, as
// readers of files do.
type batched struct {
	*dag.Trace
	batches []dag.Batch
	fail    func(b dag.Batch) error                          // nil, or the error of reading a batch
	lie     func(b dag.Batch, ranks []*dag.Rank) []*dag.Rank // nil, or the ranks delivered instead
}

// inBatchesOf returns a trace in batches of the given number of ranks, which report too many dependencies.
func inBatchesOf(t *dag.Trace, n int, moreDeps int64) *batched {
	s := &batched{Trace: t}
	for first := 0; first < len(t.Ranks); first += n {
		b := dag.Batch{First: first, Last: min(first+n, len(t.Ranks))}
		for i := b.First; i < b.Last; i++ {
			b.Ops += int64(t.Ranks[i].Len())
			b.Deps += int64(len(t.Ranks[i].Deps.Off))
			b.StartDeps += int64(len(t.Ranks[i].StartDeps.Off))
		}
		b.Deps += moreDeps
		s.batches = append(s.batches, b)
	}
	return s
}

func (s *batched) Header() (*dag.Header, error) {
	return &dag.Header{
		Meta: s.Meta, Comms: s.Comms, Ranks: len(s.Ranks), Ops: s.Ops(), Kinds: s.Kinds(), Batches: s.batches,
	}, nil
}

func (s *batched) Close() error { return nil }

func (s *batched) NewReader(dag.Columns) dag.Reader {
	var last []*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		for i := range last {
			r := last[i]
			for _, e := range []*dag.Edges{&r.Deps, &r.StartDeps, &r.Order, &r.StartOrder} {
				clear(e.End)
				clear(e.Off)
			}
			clear(r.Kind)
			clear(r.Bytes)
			clear(r.Tag)
			clear(r.Peer)
		}
		last = dag.CopyRanks(s.Ranks[b.First:b.Last])
		for _, r := range last {
			if r.Len() == 0 {
				continue
			}
			for _, e := range []*dag.Edges{&r.Deps, &r.StartDeps, &r.Order, &r.StartOrder} {
				e.End, e.Off = slices.Clone(e.End), slices.Clone(e.Off)
			}
			r.Kind, r.Bytes = slices.Clone(r.Kind), slices.Clone(r.Bytes)
			r.Tag, r.Peer = slices.Clone(r.Tag), slices.Clone(r.Peer)
		}
		if s.fail != nil {
			if err := s.fail(b); err != nil {
				return nil, err
			}
		}
		if s.lie != nil {
			return s.lie(b, last), nil
		}
		return last, nil
	}
}

// variedTrace returns a trace with ops of all kinds supported by replays, with all relevant fields, and with empty
// ranks in between.
func variedTrace(random *rand.Rand) *dag.Trace {
	ranks := random.IntN(20)
	b := dag.NewBuilder(ranks)
	world := b.AddComm(dag.World(ranks))
	other := b.AddComm(dag.World(ranks))
	tags := []int64{0, 1, 1 << 31, 1<<31 - 1, 1 << 40, dag.CollectiveTag, dag.CollectiveTag - 1, dag.AnyTag}
	streams := []int32{0, 1, 5, 63, 64, 65535}
	sparse := random.IntN(2) == 0 // most columns end early
	for r := range ranks {
		rank := b.Rank(r)
		if random.IntN(3) == 0 {
			rank.KeepOrder()
		}
		n := random.IntN(3) * random.IntN(2*tile)
		for i := range n {
			op := dag.Op{Kind: []dag.Kind{dag.Calc, dag.Send, dag.Recv}[random.IntN(3)]}
			if sparse && i > n/3 {
				rank.Add(op)
				continue
			}
			op.Stream, op.NIC = streams[random.IntN(len(streams))], random.Int32N(256)
			op.Release = dag.Time(random.IntN(2) * random.IntN(1000))
			if op.Kind == dag.Calc {
				op.Duration, op.Flops = dag.Time(1+random.Int64N(5000)), random.Int64N(2)
				rank.Add(op)
				continue
			}
			op.Bytes, op.Peer, op.Tag = random.Int64N(100), int32(random.IntN(ranks)), tags[random.IntN(len(tags))]
			op.Comm = []int32{0, world, other}[random.IntN(3)]
			if op.Kind == dag.Recv && random.IntN(5) == 0 {
				op.Peer = dag.AnySource
			}
			rank.Add(op)
		}
		for range 2 * n {
			op := random.IntN(n)
			on := random.IntN(min(n, op+1+random.IntN(2)*n))
			if random.IntN(3) == 0 {
				rank.RequiresStart(op, on)
			} else {
				rank.Requires(op, on)
			}
		}
	}
	return b.Trace()
}

// TestCompile compares the programs of random traces, read in batches and from memory, with the traces.
func TestCompile(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		trace := variedTrace(random)
		sources := []dag.Source{
			dag.FromTrace(trace),
			inBatchesOf(trace, 1+random.IntN(6), 0),
			inBatchesOf(trace, 1+random.IntN(6), int64(random.IntN(100))),
			inBatchesOf(trace, 1+random.IntN(6), 1<<40),
		}
		for k, source := range sources {
			for _, o := range []CompileOptions{{}, {Unit: dag.Nanosecond, DenseStreams: true}} {
				p, err := Compile(source, o)
				if err != nil {
					t.Fatalf("seed %d, source %d: %v", seed, k, err)
				}
				if problem := compareProgram(p, trace, o); problem != "" {
					t.Fatalf("seed %d, source %d, %+v: %s", seed, k, o, problem)
				}
			}
		}
	}
}

// compareProgram returns the first difference between a program and its trace, "" if there is none.
func compareProgram(p *Program, trace *dag.Trace, o CompileOptions) string {
	if p.Ranks() != len(trace.Ranks) || p.NumOps() != int(trace.Ops()) || int(p.Start[p.Ranks()]) != p.NumOps() {
		return fmt.Sprintf("%d ranks, %d ops, the last start at %d", p.Ranks(), p.NumOps(), p.Start[p.Ranks()])
	}
	type pair struct {
		comm int32
		tag  int64
	}
	matches, pairs := make(map[pair]uint32), make(map[uint32]pair)
	want := Program{Plain: true}
	at, release := uint32(0), p.ReleaseTimes()
	for r := range trace.Ranks {
		rank := trace.Ranks[r]
		dependents, startDependents := rank.Dependents(), rank.StartDependents()
		if p.Start[r] != at {
			return fmt.Sprintf("rank %d starts at %d, expected %d", r, p.Start[r], at)
		}
		var roots []uint32
		for i := range rank.Len() {
			op, was := &p.Ops[at], rank.Op(i)
			where := fmt.Sprintf("rank %d op %d, %+v: ", r, i, *op)
			numbers := func(ops []int32) (all []uint32) {
				for _, k := range ops {
					all = append(all, p.Start[r]+uint32(k))
				}
				return all
			}
			switch {
			case int(op.Rank) != r || p.Index(at) != i || p.Kind(at) != was.Kind:
				return where + "who it is"
			case int(op.Waits) != rank.Deps.Count(i)+rank.StartDeps.Count(i):
				return where + "what it waits for"
			case !slices.Equal(p.AppendDependents(nil, at), numbers(dependents.Of(i))):
				return where + fmt.Sprintf("dependents %v, expected %v", p.AppendDependents(nil, at), dependents.Of(i))
			case !slices.Equal(p.StartDependents(at), numbers(startDependents.Of(i))):
				return where + fmt.Sprintf("start dependents %v, expected %v", p.StartDependents(at), startDependents.Of(i))
			case p.Stream(op) != was.Stream || !o.DenseStreams && int32(op.Stream) != was.Stream || int32(op.NIC) != was.NIC:
				return where + fmt.Sprintf("stream %d", p.Stream(op))
			case release[at] != uint64(was.Release):
				return where + "release"
			}
			want.Streams, want.NICs = max(want.Streams, int(op.Stream)+1), max(want.NICs, int(op.NIC)+1)
			want.Releases = want.Releases || was.Release > 0
			if op.Waits == 0 {
				roots = append(roots, at)
			}
			at++
			if was.Kind == dag.Calc {
				length := uint64(was.Duration)
				if o.Unit == dag.Nanosecond {
					length = (length + 500) / 1000
					if was.Duration%1000 != 0 {
						want.Rounded++
					}
				}
				if op.Size != length || op.Flags != 0 {
					return where + "length"
				}
				want.CalcTime += length
				want.LongestCalc = max(want.LongestCalc, length)
				continue
			}
			if op.Size != uint64(was.Bytes) || op.Peer != was.Peer || p.Tag(op) != was.Tag || p.Comm(op) != was.Comm ||
				(op.Flags&AnySource != 0) != (was.Kind == dag.Recv && was.Peer == dag.AnySource) ||
				(op.Flags&AnyTag != 0) != (was.Tag == dag.AnyTag) || (op.Flags&Internal != 0) != (was.Tag < dag.AnyTag) {
				return where + fmt.Sprintf("expected %+v", was)
			}
			want.LargestMessage = max(want.LargestMessage, op.Size)
			if was.Kind == dag.Send {
				want.Sends++
				want.SendBytes += op.Size
				want.EmptySend = want.EmptySend || op.Size == 0
				want.Plain = want.Plain && was.Tag != dag.AnyTag
			}
			if was.Tag == dag.AnyTag && was.Kind == dag.Recv {
				continue
			}
			m := pair{was.Comm, was.Tag}
			if n, known := matches[m]; known && n != op.Match {
				return where + "equal tags have different numbers"
			}
			if other, known := pairs[op.Match]; known && other != m {
				return where + "different tags have equal numbers"
			}
			matches[m], pairs[op.Match] = op.Match, m
		}
		if !slices.Equal(p.Roots(r), roots) {
			return fmt.Sprintf("rank %d: roots %v, expected %v", r, p.Roots(r), roots)
		}
	}
	type facts struct {
		plain, releases, empty                           bool
		rounded                                          int64
		streams, nics                                    int
		sends, bytes, calcs, largestMessage, longestCalc uint64
	}
	of := func(p *Program) facts {
		return facts{p.Plain, p.Releases, p.EmptySend, p.Rounded, max(p.Streams, 1), max(p.NICs, 1), p.Sends, p.SendBytes,
			p.CalcTime, p.LargestMessage, p.LongestCalc}
	}
	if of(p) != of(&want) {
		return fmt.Sprintf("facts %+v, expected %+v", of(p), of(&want))
	}
	return ""
}

// TestCompileNothing compiles traces without ops, and without ranks.
func TestCompileNothing(t *testing.T) {
	for ranks := range 3 {
		trace := dag.NewBuilder(ranks).Trace()
		for _, source := range []dag.Source{dag.FromTrace(trace), inBatchesOf(trace, 2, 1<<40)} {
			p, err := Compile(source, CompileOptions{DenseStreams: true})
			if err != nil {
				t.Fatal(err)
			}
			e, err := NewEngine(p, Host{}, &pipe{5}, nil, 2)
			if err != nil {
				t.Fatal(err)
			}
			out, err := e.Run()
			if err != nil {
				t.Fatal(err)
			}
			if r := out.Result(p); !r.Complete || r.Ops != 0 || len(r.Finish) != ranks || r.Makespan.Ticks != 0 {
				t.Errorf("%d ranks: %+v", ranks, r)
			}
		}
	}
}

// TestCompileErrors checks the errors of sources that fail or contradict their batches.
func TestCompileErrors(t *testing.T) {
	b := dag.NewBuilder(40)
	for r := range 40 {
		for i := range 5 {
			op := b.Rank(r).Calc(1)
			if i > 0 {
				b.Rank(r).Requires(op, op-1)
			}
		}
	}
	trace := b.Trace()
	broken := func(b dag.Batch) error {
		if b.First >= 12 {
			return fmt.Errorf("batch %d is broken", b.First)
		}
		return nil
	}
	less := func(n int) func(dag.Batch, []*dag.Rank) []*dag.Rank { // one op less in the first rank of batch 12, or more
		other := dag.NewBuilder(1)
		for range 5 - n {
			other.Rank(0).Calc(1)
		}
		ranks := other.Trace().Ranks
		return func(b dag.Batch, all []*dag.Rank) []*dag.Rank {
			if b.First == 12 {
				all[0] = ranks[0]
			}
			return all
		}
	}
	for _, c := range []struct {
		name   string
		source func(s *batched)
		expect string
	}{
		{"reader", func(s *batched) { s.fail = broken }, "batch 12 is broken"},
		{"less ops", func(s *batched) { s.lie = less(1) }, "batch from rank 12 on lacks 1 ops"},
		{"more ops", func(s *batched) { s.lie = less(-1) }, "rank 15 has more ops than its batch"},
		{"more ranks", func(s *batched) {
			s.lie = func(b dag.Batch, all []*dag.Rank) []*dag.Rank {
				if b.First == 36 {
					all = append(all, new(dag.Rank))
				}
				return all
			}
		}, "the trace reader returned 5 ranks for ranks 36 to 39"},
		{"less ranks", func(s *batched) {
			s.batches[9].Ops -= 5
			s.lie = func(b dag.Batch, all []*dag.Rank) []*dag.Rank {
				if b.First == 36 {
					all = all[:3]
				}
				return all
			}
		}, "the trace reader returned 3 ranks for ranks 36 to 39"},
		{"too many ops", func(s *batched) { s.batches[3].Ops = 1 << 40 }, "expected at most 536870910"},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := inBatchesOf(trace, 4, 0)
			c.source(source)
			if _, err := Compile(source, CompileOptions{}); err == nil || !strings.Contains(err.Error(), c.expect) {
				t.Errorf("error %v, expected %q", err, c.expect)
			}
		})
	}
}

// TestDependentsFarAway checks dependents at the distances at which their encoding changes, in both directions and in
// every combination with others.
func TestDependentsFarAway(t *testing.T) {
	const middle, ops = 70_000, 140_000
	distances := []int{1, -1, 2, nearMost, nearMost + 1, -nearMost, 1 << 16, -1 << 16}
	b := dag.NewBuilder(2)
	for r := range 2 {
		rank := b.Rank(r)
		for range ops {
			rank.Calc(1)
		}
		for set := range 1 << len(distances) {
			for k, d := range distances {
				if on := middle + set*3; set>>k&1 != 0 {
					rank.Requires(on+d, on)
				}
			}
		}
	}
	trace := b.Trace()
	p, err := Compile(dag.FromTrace(trace), CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if found := compareProgram(p, trace, CompileOptions{}); found != "" {
		t.Error(found)
	}
}

// TestNotCompiled checks the errors of ops that no replay loop runs.
func TestNotCompiled(t *testing.T) {
	calc := func(stream, nic int32) dag.Op { return dag.Op{Stream: stream, NIC: nic} }
	for _, c := range []struct {
		op     dag.Op
		dense  bool
		expect string
	}{
		{dag.Op{Kind: dag.Coll, Subkind: dag.Barrier}, true, "is of kind coll"},
		{dag.Op{Kind: dag.Mem}, true, "is of kind mem"},
		{dag.Op{Kind: dag.IO}, true, "is of kind io"},
		{dag.Op{Flops: 5}, true, "gives flops but no duration"},
		{dag.Op{Kind: dag.Send, Peer: 3}, true, "sends to rank 3, expected 0..2"},
		{dag.Op{Kind: dag.Send, Peer: dag.AnySource}, true, "sends to rank -1"},
		{dag.Op{Kind: dag.Recv, Peer: 3}, true, "receives from rank 3, expected 0..2 or any"},
		{dag.Op{Kind: dag.Recv, Peer: -2}, true, "receives from rank -2"},
		{calc(65536, 0), false, "is on stream 65536, NIC 0, expected 0..65535 and 0..255"},
		{calc(-1, 0), false, "is on stream -1"},
		{calc(0, 256), true, "NIC 256"},
		{calc(0, -1), true, "NIC -1"},
	} {
		b := dag.NewBuilder(3)
		for range 2*tile + 3 {
			b.Rank(1).Add(dag.Op{Stream: 7})
		}
		b.Rank(1).Add(c.op)
		b.Rank(1).Calc(1)
		_, err := Compile(inBatchesOf(b.Trace(), 3, 0), CompileOptions{DenseStreams: c.dense})
		var refused *NotCompiledError
		if !errors.As(err, &refused) || refused.Rank != 1 || refused.Op != 2*tile+3 || refused.Kind != c.op.Kind ||
			!strings.Contains(refused.Why, c.expect) {
			t.Errorf("%+v: error %v, expected %q", c.op, err, c.expect)
		}
	}
}

// TestDenseStreams numbers as many streams as a rank may have, and one more; those that are looked up otherwise,
// because their numbers are small, come last.
func TestDenseStreams(t *testing.T) {
	for _, streams := range []int{65535, 65536, 65537} {
		b := dag.NewBuilder(1)
		for i := range streams {
			b.Rank(0).Add(dag.Op{Stream: int32(65600 - i)})
		}
		trace := b.Trace()
		trace.Ranks[0].Stream.Set(streams-1, 3)
		p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
		if streams > 65536 {
			var refused *NotCompiledError
			if !errors.As(err, &refused) || refused.Op != 65536 {
				t.Errorf("%d streams: error %v", streams, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d streams: %v", streams, err)
			continue
		}
		for i := range p.Ops {
			if int(p.Ops[i].Stream) != i || p.Stream(&p.Ops[i]) != trace.Ranks[0].Stream.At(i) {
				t.Fatalf("op %d is on stream %d, number %d", i, p.Stream(&p.Ops[i]), p.Ops[i].Stream)
			}
		}
	}
}

// TestTagCache requests many more pairs than the cache stores, from caches with a common table.
func TestTagCache(t *testing.T) {
	table := newTagTable()
	caches := [2]*tagCache{{table: table}, {table: table}}
	random := rand.New(rand.NewPCG(1, 1))
	numbers := make(map[commTag]uint32)
	taken := make(map[uint32]bool)
	for range 200000 {
		pair := commTag{random.Int32N(4), random.Int64N(8)<<31 | random.Int64N(1000)}
		if random.IntN(10) == 0 {
			pair.tag = -pair.tag
		}
		n := caches[random.IntN(2)].number(pair.comm, pair.tag)
		want, known := numbers[pair]
		if known && n != want || !known && taken[n] || table.tag(n) != pair.tag || table.comm(n) != pair.comm {
			t.Fatalf("%+v has number %d, which stands for tag %d of communicator %d; before it was %d, %v", pair, n,
				table.tag(n), table.comm(n), want, known)
		}
		numbers[pair], taken[n] = n, true
	}
	if len(numbers) < 2*len(caches[0].known) {
		t.Errorf("only %d pairs", len(numbers))
	}
}
