package ideal

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/loggops"
)

func mustRun(t *testing.T, trace *dag.Trace) *Timeline {
	t.Helper()
	timeline, err := Run(trace)
	if err != nil {
		t.Fatal(err)
	}
	return timeline
}

// checkPath checks that a critical path is one.
func checkPath(t *testing.T, timeline *Timeline) {
	t.Helper()
	p := timeline.CriticalPath()
	if p.Length != timeline.Makespan() || p.Length != p.Compute+p.Memory+p.IO+p.Wait {
		t.Errorf("length %v, makespan %v, parts %v, %v, %v and %v", p.Length, timeline.Makespan(), p.Compute, p.Memory, p.IO,
			p.Wait)
	}
	at, sum := dag.Time(0), dag.Time(0)
	for k := range p.Ops() {
		e := p.Entry(k)
		if e.Lead == sim.ByRelease && k == 0 {
			at = p.Wait
		}
		if e.Start != at || (e.Lead <= sim.ByRelease) != (k == 0) {
			t.Fatalf("entry %d is %+v, the one before ends at %v", k, e, at)
		}
		if start, end := timeline.Start(e.Rank, e.Op), timeline.End(e.Rank, e.Op); e.Start < start || e.End > max(end, start) {
			t.Errorf("entry %d is %+v, the op ran from %v to %v", k, e, start, end)
		}
		if k > 0 {
			before := p.Entry(k - 1)
			switch e.Lead {
			case sim.ByMessage:
				if rank, op, ok := timeline.Sender(e.Rank, e.Op); !ok || rank != before.Rank || op != before.Op {
					t.Errorf("entry %d is %+v, the one before is %+v", k, e, before)
				}
			case sim.ByCollective:
				if before.Kind != dag.Coll || e.Kind != dag.Coll {
					t.Errorf("entry %d is %+v, the one before is %+v", k, e, before)
				}
			default:
				if before.Rank != e.Rank {
					t.Errorf("entry %d is %+v, the one before is %+v", k, e, before)
				}
			}
		}
		at = e.End
		sum += e.End - e.Start
	}
	if at != p.Length || sum+p.Wait != p.Length {
		t.Errorf("the path ends at %v, its parts are %v and %v, expected %v", at, sum, p.Wait, p.Length)
	}
}

// TestAgainstOracle runs random traces by the rules alone, too.
func TestAgainstOracle(t *testing.T) {
	incomplete := 0
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := wild{wildcards: seed%2 > 0, startDeps: seed%3 > 0, forward: seed%5 == 0, high: seed%7 > 2,
			unmatched: seed%4 == 0}
		trace := randomTrace(random, w)
		got, want := mustRun(t, trace), newOracle(trace)
		want.run()
		never := int64(0)
		unended := false
		for rank := range trace.Ranks {
			finish := dag.Time(0)
			for i := range trace.Ranks[rank].Len() {
				start, end := want.start[rank][i], want.end[rank][i]
				finish = max(finish, end)
				if start == Never {
					never++
				}
				unended = unended || end == Never
				if got.Start(rank, i) != start || got.End(rank, i) != end || got.Ran(rank, i) != (end != Never) {
					t.Fatalf("seed %d, %+v: rank %d op %d ran from %d to %d, expected %d to %d", seed, w, rank, i,
						got.Start(rank, i), got.End(rank, i), start, end)
				}
				fromRank, fromOp, ok := got.Sender(rank, i)
				from, met := want.sender[[2]int{rank, i}]
				if ok != met || ok && from != [2]int{fromRank, fromOp} {
					t.Fatalf("seed %d, %+v: rank %d op %d met rank %d op %d, expected %v", seed, w, rank, i, fromRank, fromOp, from)
				}
			}
			if clock := got.Result.Finish[rank]; dag.Time(clock.Ticks) != finish {
				t.Fatalf("seed %d: rank %d finishes at %v, expected %v", seed, rank, clock, finish)
			}
		}
		r := got.Result
		if r.NeverRun != never || r.Complete != (!unended && len(want.sent)+len(want.posted) == 0) ||
			r.Unmatched.Count() != int64(len(want.sent)+len(want.posted)) || got.Makespan() != want.makespan() ||
			r.Complete == (len(r.Stuck) > 0) {
			t.Fatalf("seed %d: %+v, makespan %v, expected %v, %d that never ran, %d messages and %d receives left", seed, r,
				got.Makespan(), want.makespan(), never, len(want.sent), len(want.posted))
		}
		if !r.Complete {
			incomplete++
		}
		checkPath(t, got)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if incomplete < 100 || incomplete > 3900 {
		t.Errorf("%d traces are incomplete, expected some and not all", incomplete)
	}
}

// longestPath returns the end of an op as the longest path to it, for a trace in which each receive matches one message
// only. It does not simulate the run.
type longestPath struct {
	trace *dag.Trace
	sends map[int64][2]int // by tag
	ends  map[[2]int]dag.Time
}

func (l *longestPath) start(rank, i int) dag.Time {
	r := l.trace.Ranks[rank]
	t := r.Release.At(i)
	for _, off := range r.Deps.Of(i) {
		t = max(t, l.end(rank, i-int(off)))
	}
	for _, off := range r.StartDeps.Of(i) {
		t = max(t, l.start(rank, i-int(off)))
	}
	return t
}

func (l *longestPath) end(rank, i int) dag.Time {
	if end, known := l.ends[[2]int{rank, i}]; known {
		return end
	}
	r := l.trace.Ranks[rank]
	t := l.start(rank, i)
	switch r.Kind[i] {
	case dag.Calc:
		t += r.Duration.At(i)
	case dag.Recv:
		from := l.sends[r.Tag.At(i)]
		t = max(t, l.start(from[0], from[1]))
	}
	l.ends[[2]int{rank, i}] = t
	return t
}

// TestLongestPath compares complete traces with their longest paths.
func TestLongestPath(t *testing.T) {
	complete := 0
	for seed := range uint64(500) {
		trace := randomTrace(rand.New(rand.NewPCG(seed, 2)), wild{startDeps: seed%2 == 0})
		timeline := mustRun(t, trace)
		if !timeline.Result.Complete {
			continue // it is one with a deadlock
		}
		complete++
		l := &longestPath{trace: trace, sends: make(map[int64][2]int), ends: make(map[[2]int]dag.Time)}
		for rank := range trace.Ranks {
			for i, kind := range trace.Ranks[rank].Kind {
				if kind == dag.Send {
					l.sends[trace.Ranks[rank].Tag.At(i)] = [2]int{rank, i}
				}
			}
		}
		for rank := range trace.Ranks {
			for i := range trace.Ranks[rank].Len() {
				if got, want := timeline.End(rank, i), l.end(rank, i); got != want {
					t.Fatalf("seed %d: rank %d op %d ends at %v, expected %v", seed, rank, i, got, want)
				}
			}
		}
	}
	if complete < 100 {
		t.Errorf("%d traces were complete", complete)
	}
}

// TestBound checks that no replay over a network is shorter, with collectives lowered for it.
func TestBound(t *testing.T) {
	params, err := loggops.Preset("default")
	if err != nil {
		t.Fatal(err)
	}
	free := params
	free.L, free.Overhead, free.Gap = 0, 0, 0
	compared := 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 3))
		trace := randomTrace(random, wild{startDeps: seed%2 == 0, high: seed%3 > 0})
		for r := range trace.Ranks { // not supported by loggops
			rank := trace.Ranks[r]
			for i, kind := range rank.Kind {
				if kind == dag.Mem || kind == dag.IO {
					rank.Kind[i] = dag.Calc
					rank.Subkind.Set(i, dag.NoSubkind)
				}
			}
		}
		lowered, err := collective.Lower(context.Background(), trace, collective.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		ideal := mustRun(t, trace)
		for _, p := range []loggops.Params{params, free} {
			compiled, err := loggops.Compile(dag.FromTrace(lowered), loggops.Strict, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			other, err := compiled.Run(loggops.Options{Params: p})
			if err != nil {
				t.Fatal(err)
			}
			if !other.Complete {
				continue
			}
			compared++
			if !ideal.Result.Complete || other.Makespan.Ticks < uint64(ideal.Makespan()) {
				t.Fatalf("seed %d: complete: %v, makespan %v, loggops has %v", seed, ideal.Result.Complete, ideal.Makespan(),
					other.Makespan)
			}
		}
	}
	if compared < 200 {
		t.Errorf("%d replays were compared", compared)
	}
}

// TestEveryCollective checks each rule for when parts of a collective end, with entries in both orders.
func TestEveryCollective(t *testing.T) {
	all := []dag.Time{40, 40, 40, 40}
	rules := map[dag.Subkind][]dag.Time{
		dag.Bcast: {20, 30, 20, 40}, dag.Scatter: {20, 30, 20, 40}, dag.Scatterv: {20, 30, 20, 40},
		dag.Reduce: {10, 30, 40, 40}, dag.Gather: {10, 30, 40, 40}, dag.Gatherv: {10, 30, 40, 40},
		dag.Scan: {10, 30, 30, 40}, dag.Exscan: {10, 30, 30, 40},
	}
	for kind := dag.Barrier; kind <= dag.Exscan; kind++ {
		want, given := rules[kind]
		if !given {
			want = all
		}
		for _, order := range [][]int32{{0, 1, 2, 3}, {3, 2, 1, 0}} { // the second communicator's ranks by position
			b := dag.NewBuilder(4)
			comm := b.AddComm(dag.NewComm("", order))
			for position, rank := range order {
				c := b.Rank(int(rank)).Calc([]dag.Time{10, 30, 20, 40}[position])
				b.Rank(int(rank)).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Comm: comm, Peer: order[2], Duration: 1000}, c)
			}
			timeline := mustRun(t, b.Trace())
			for position, rank := range order {
				if got := timeline.End(int(rank), 1); got != want[position] {
					t.Errorf("%s: the part at position %d ends at %d, expected %d", kind, position, got, want[position])
				}
			}
			checkPath(t, timeline)
		}
	}
}

// TestPath checks the path of a trace with a release time, ties, a message and a collective on it.
func TestPath(t *testing.T) {
	b := dag.NewBuilder(3)
	wait := b.Rank(0).Add(dag.Op{Release: 100, Duration: 10})
	b.Rank(0).Calc(105) // ends earlier
	long := b.Rank(0).Calc(1000, wait)
	send := b.Rank(0).Send(1, 8, 0, wait)
	b.Rank(0).RequiresStart(send, long)
	recv := b.Rank(1).Recv(0, 8, 0)
	load := b.Rank(1).Add(dag.Op{Kind: dag.Mem, Subkind: dag.Load, Duration: 20}, recv)
	for rank, dep := range []int{send, load} {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier}, dep)
	}
	b.Rank(2).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	b.Rank(2).Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Duration: 2000}, 0)
	timeline := mustRun(t, b.Trace())
	checkPath(t, timeline)
	p := timeline.CriticalPath()
	var got []Entry
	for k := range p.Ops() {
		got = append(got, p.Entry(k))
	}
	want := []Entry{
		// Op 3 may start when op 2 has started, at the end of op 0, which it waits for too. The lower number counts.
		{0, 0, dag.Calc, 100, 110, sim.ByRelease}, {0, 3, dag.Send, 110, 110, sim.ByDep},
		{1, 0, dag.Recv, 110, 110, sim.ByMessage}, {1, 1, dag.Mem, 110, 130, sim.ByDep}, {1, 2, dag.Coll, 130, 130, sim.ByDep},
		{2, 0, dag.Coll, 130, 130, sim.ByCollective}, {2, 1, dag.IO, 130, 2130, sim.ByDep},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if p.Length != 2130 || p.Compute != 10 || p.Memory != 20 || p.IO != 2000 || p.Wait != 100 {
		t.Errorf("got %+v", p)
	}
}

// TestStartDependency checks a path that leaves an op at its start.
func TestStartDependency(t *testing.T) {
	b := dag.NewBuilder(1)
	first := b.Rank(0).Calc(10)
	second := b.Rank(0).Calc(5, first)
	b.Rank(0).RequiresStart(b.Rank(0).Calc(100), second)
	p := mustRun(t, b.Trace()).CriticalPath()
	want := []Entry{
		{0, 0, dag.Calc, 0, 10, sim.AtZero}, {0, 1, dag.Calc, 10, 10, sim.ByDep}, {0, 2, dag.Calc, 10, 110, sim.ByStartDep},
	}
	for k := range want {
		if p.Ops() != len(want) || p.Entry(k) != want[k] {
			t.Fatalf("%d ops, op %d is %+v, expected %+v", p.Ops(), k, p.Entry(k), want[k])
		}
	}
}

// TestTies checks that ops of equal time run by rank and index, that messages of one rank do not overtake, and that
// messages to the own rank arrive.
func TestTies(t *testing.T) {
	b := dag.NewBuilder(3)
	b.Rank(0).Recv(dag.AnySource, 1, 0)
	b.Rank(0).Recv(dag.AnySource, 1, dag.AnyTag, 0)
	b.Rank(0).Recv(dag.AnySource, 1, dag.AnyTag, 1)
	b.Rank(0).Send(0, 1, 9)
	b.Rank(2).Send(0, 1, 0)
	b.Rank(1).Send(0, 1, 0)
	timeline := mustRun(t, b.Trace())
	// The receive of tag 0 is posted first and takes rank 1's message. Among the messages of the same arrival time,
	// rank 0's own message precedes rank 2's.
	for op, want := range [][2]int{{1, 0}, {0, 3}, {2, 0}} {
		if rank, from, ok := timeline.Sender(0, op); !ok || [2]int{rank, from} != want {
			t.Errorf("receive %d took the message of rank %d op %d, expected %v", op, rank, from, want)
		}
	}
}

// TestStuck checks the result's description of incomplete runs.
func TestStuck(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		r := b.Rank(rank)
		if rank%2 == 1 {
			r.Recv(0, 1, 7)
		}
		i := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
		if rank%2 == 1 {
			r.Requires(i, 0)
		}
		r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Duration: 5}, i)
	}
	r := mustRun(t, b.Trace()).Result
	want := []sim.Stuck{
		{Rank: 1, Op: 0, Kind: "recv", Waits: "a message from rank 0, tag 7"},
		{Rank: 3, Op: 0, Kind: "recv", Waits: "a message from rank 0, tag 7"},
		{Rank: 0, Op: 0, Kind: "coll", Waits: "rank 1 to come to op 1, its part in the same barrier, and 1 more"},
		{Rank: 0, Op: 1, Kind: "io", Waits: "the end of op 0 (coll)"},
		{Rank: 1, Op: 1, Kind: "coll", Waits: "the end of op 0 (recv)"},
		{Rank: 1, Op: 2, Kind: "io", Waits: "the end of op 1 (coll)"},
		{Rank: 2, Op: 1, Kind: "io", Waits: "the end of op 0 (coll)"},
		{Rank: 3, Op: 1, Kind: "coll", Waits: "the end of op 0 (recv)"},
		{Rank: 3, Op: 2, Kind: "io", Waits: "the end of op 1 (coll)"},
	}
	if r.Complete || r.NeverRun != 6 || !reflect.DeepEqual(r.Stuck, want) {
		t.Errorf("complete: %v, %d never ran, stuck:", r.Complete, r.NeverRun)
		for _, s := range r.Stuck {
			t.Errorf("%+v", s)
		}
	}
}

// TestDisagreement checks that collectives on which ranks disagree are refused.
func TestDisagreement(t *testing.T) {
	coll := func(kind dag.Subkind, comm, root int32) dag.Op {
		return dag.Op{Kind: dag.Coll, Subkind: kind, Comm: comm, Peer: root}
	}
	barrier := coll(dag.Barrier, 0, 0)
	for _, c := range []struct {
		ops  [3]dag.Op
		want string
	}{
		{[3]dag.Op{barrier, barrier, {Kind: dag.Calc}},
			"rank 2 has no collective of communicator 0, expected 1 as rank 0 has"},
		{[3]dag.Op{barrier, coll(dag.Scan, 0, 0), barrier},
			"rank 1 op 0 is collective 0 of communicator 0, scan, expected barrier as the first member has"},
		{[3]dag.Op{coll(dag.Bcast, 0, 1), coll(dag.Bcast, 0, 1), coll(dag.Bcast, 0, 2)},
			"rank 2 op 0 is collective 0 of communicator 0, a bcast with root 2, expected root 1"},
		{[3]dag.Op{coll(dag.Bcast, 0, 9), coll(dag.Bcast, 0, 9), coll(dag.Bcast, 0, 9)},
			"the root of a bcast of communicator 0 is rank 9, which is no member"},
		{[3]dag.Op{barrier, barrier, coll(dag.Barrier, 5, 0)}, "rank 2 op 0 is a collective of communicator 5"},
		{[3]dag.Op{coll(dag.Barrier, 1, 0), coll(dag.Barrier, 1, 0), coll(dag.Barrier, 1, 0)},
			"rank 2 has a collective of communicator 1, of which it is no member"},
		{[3]dag.Op{{Kind: dag.Coll}, barrier, barrier}, `rank 0 op 0 is the collective "", expected one such as "allreduce"`},
		{[3]dag.Op{{Kind: dag.Coll, Subkind: dag.Load}, barrier, barrier}, `rank 0 op 0 is the collective "load"`},
		{[3]dag.Op{{Kind: 77}, barrier, barrier}, "rank 0 op 0 is of kind kind(77)"},
		{[3]dag.Op{{Flops: 5}, barrier, barrier}, "gives flops but no duration"},
	} {
		b := dag.NewBuilder(3)
		b.AddComm(dag.NewComm("", []int32{1, 0}))
		for rank, op := range c.ops {
			b.Rank(rank).Add(op)
		}
		if _, err := Run(b.Trace()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, expected %q", err, c.want)
		}
	}
	var refused *sim.NotCompiledError
	b := dag.NewBuilder(1)
	b.Rank(0).Send(3, 1, 1)
	if _, err := Run(b.Trace()); !errors.As(err, &refused) || refused.Rank != 0 || refused.Op != 0 {
		t.Errorf("got %v", err)
	}
}

// TestTooLong checks that times beyond the range of dag.Time are an error, and those at its end are not.
func TestTooLong(t *testing.T) {
	for _, c := range []struct {
		lengths []dag.Time
		release dag.Time
		ok      bool
	}{
		{[]dag.Time{math.MaxInt64}, 0, true}, {[]dag.Time{math.MaxInt64, 0, 0}, 0, true},
		{[]dag.Time{math.MaxInt64, 1}, 0, false},
		{[]dag.Time{math.MaxInt64, math.MaxInt64, math.MaxInt64}, 0, false}, {[]dag.Time{1}, math.MaxInt64, false},
		{[]dag.Time{0}, math.MaxInt64, true}, {[]dag.Time{-1}, 0, false}, {[]dag.Time{0}, -1, false},
	} {
		b := dag.NewBuilder(1)
		for i, length := range c.lengths {
			b.Rank(0).Add(dag.Op{Duration: length, Release: c.release})
			if i > 0 {
				b.Rank(0).Requires(i, i-1)
			}
		}
		last := b.Rank(0).Send(0, 1, 1, len(c.lengths)-1)
		b.Rank(0).Recv(0, 1, 1)
		timeline, err := Run(b.Trace())
		if c.ok && (err != nil || timeline.End(0, last) != math.MaxInt64) || !c.ok && !errors.Is(err, sim.ErrTooLong) {
			t.Errorf("%v, released at %d: %v", c.lengths, c.release, err)
		}
	}
}

// TestThreads checks that the result does not depend on how many processors there are.
func TestThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(50) {
		trace := randomTrace(rand.New(rand.NewPCG(seed, 4)), wild{wildcards: true, startDeps: true, high: true})
		var first *Timeline
		for _, n := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(n)
			timeline := mustRun(t, trace)
			if first == nil {
				first = timeline
				continue
			}
			same := slices.Equal(timeline.cause, first.cause)
			for i := range first.program.Ops {
				same = same && timeline.ready[i] == first.ready[i] &&
					timeline.program.Ops[i].Link() == first.program.Ops[i].Link()
			}
			if !same {
				t.Errorf("seed %d: the runs on 1 and %d processors differ", seed, n)
			}
		}
	}
}

// TestNothing runs traces without ops, and without ranks.
func TestNothing(t *testing.T) {
	for ranks := range 3 {
		timeline := mustRun(t, dag.NewBuilder(ranks).Trace())
		if r := timeline.Result; !r.Complete || r.Ops != 0 || timeline.Makespan() != 0 || timeline.CriticalPath().Ops() != 0 {
			t.Errorf("%d ranks: %+v", ranks, r)
		}
	}
}

// TestOnce checks that a replay is not run twice, and reports every op once.
func TestOnce(t *testing.T) {
	const calcs = 3 << 15 // enough for two reports
	b := dag.NewBuilder(1)
	for range calcs {
		b.Rank(0).Calc(1)
	}
	r, err := Compile(dag.FromTrace(b.Trace()))
	if err != nil {
		t.Fatal(err)
	}
	ops, calls := int64(0), 0
	if _, err := r.Run(Options{Progress: func(n int64) { ops, calls = ops+n, calls+1 }}); err != nil {
		t.Fatal(err)
	}
	if ops != calcs || calls != 2 {
		t.Errorf("%d ops were reported in %d calls", ops, calls)
	}
	if _, err := r.Run(Options{}); err == nil {
		t.Error("a replay was run twice")
	}
}
