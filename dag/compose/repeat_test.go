package compose

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/ideal"
)

func run(t *testing.T, trace *dag.Trace) *ideal.Timeline {
	t.Helper()
	timeline, err := ideal.Run(trace)
	if err != nil {
		t.Fatal(err)
	}
	return timeline
}

func mustRepeat(t *testing.T, trace *dag.Trace, n int) *dag.Trace {
	t.Helper()
	repeated, err := Repeat(context.Background(), trace, n)
	if err != nil {
		t.Fatal(err)
	}
	return repeated
}

// TestRepeatEnds checks how iterations hang together, by how many ops begin and end one.
func TestRepeatEnds(t *testing.T) {
	fan := func(in, out int, step int32) *dag.Trace { // a calc that waits for some and for which some wait
		b := dag.NewBuilder(1)
		b.Meta().Jobs, b.Meta().Steps = []string{"x", "y"}, 2*step
		r := b.Rank(0)
		var first []int
		for range in {
			first = append(first, r.Calc(3))
		}
		middle := r.Add(dag.Op{Duration: 2, Name: "m", Attrs: "{}", Job: 1, Step: step, Timed: true, MeasuredStart: 1,
			MeasuredEnd: 2}, first...)
		for range out {
			r.Calc(1, middle)
		}
		return b.Trace()
	}
	for _, c := range []struct {
		in, out, ops, deps int
		step               int32 // of the middle op; 0: the trace has no steps
	}{
		{0, 0, 1, 0, 0}, {1, 1, 3, 2, 1}, {3, 0, 4, 3, 0}, {0, 3, 4, 3, 1}, {2, 3, 6, 5, 0}, {2, 3, 6, 5, 1},
	} {
		trace := fan(c.in, c.out, c.step)
		const n = 4
		repeated := mustRepeat(t, trace, n)
		if problems := dag.Validate(repeated); len(problems) > 0 {
			t.Errorf("%v: %v", c, problems)
		}
		between := (max(1, c.in) * max(1, c.out)) * (n - 1)
		ops := n * c.ops
		if c.in > 1 && c.out > 1 {
			between, ops = (c.in+c.out)*(n-1), ops+n-1
		}
		r := repeated.Ranks[0]
		if r.Len() != ops || len(r.Deps.Off) != n*c.deps+between {
			t.Errorf("%v: %d ops, %d dependencies, expected %d and %d", c, r.Len(), len(r.Deps.Off), ops, n*c.deps+between)
		}
		one, all := run(t, trace), run(t, repeated)
		if all.Makespan() != n*one.Makespan() {
			t.Errorf("%v: makespan %v, of one %v", c, all.Makespan(), one.Makespan())
		}
		period := (ops - c.ops) / (n - 1)
		if want := n * max(1, 2*c.step); repeated.Steps != want {
			t.Errorf("%v: %d steps, expected %d", c, repeated.Steps, want)
		}
		for i := c.ops; i < ops && period > c.ops; i += period {
			if got, want := r.Step.At(i), int32(i/period+1)*max(1, 2*c.step); got != want {
				t.Errorf("%v: the marker after iteration %d has step %d, expected %d", c, i/period, got, want)
			}
		}
		for i := range c.ops {
			for k := range n {
				got, want := r.Op(k*period+i), trace.Ranks[0].Op(i)
				if k > 0 {
					want.Timed, want.MeasuredStart, want.MeasuredEnd = false, 0, 0
				}
				switch {
				case c.step == 0:
					want.Step = int32(k + 1)
				case want.Step > 0:
					want.Step += int32(2 * k)
				}
				if got != want {
					t.Errorf("%v: op %d of iteration %d is %+v, expected %+v", c, i, k, got, want)
				}
			}
		}
	}
}

// chain is a trace in which ranks pass a message round, one op after the other.
func chain(random *rand.Rand) *dag.Trace {
	ranks := 2 + random.IntN(3)
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		r := b.Rank(rank)
		last := []int{}
		then := func(op dag.Op) { last = []int{r.Add(op, last...)} }
		before, next := int32((rank+ranks-1)%ranks), int32((rank+1)%ranks)
		if rank > 0 {
			then(dag.Op{Kind: dag.Recv, Peer: before, Bytes: 8, Tag: 7})
		}
		then(dag.Op{Duration: dag.Time(1 + random.IntN(50))})
		then(dag.Op{Kind: dag.Send, Peer: next, Bytes: 8, Tag: 7})
		if rank == 0 {
			then(dag.Op{Kind: dag.Recv, Peer: before, Bytes: 8, Tag: 7})
		}
	}
	return b.Trace()
}

// TestRepeatChain checks that n repetitions of a chain take n times as long, and its ops keep their times modulo
// that.
func TestRepeatChain(t *testing.T) {
	for seed := range uint64(50) {
		trace := chain(rand.New(rand.NewPCG(seed, 0)))
		n := 2 + int(seed%5)
		repeated := mustRepeat(t, trace, n)
		if problems := dag.Validate(repeated); len(problems) > 0 {
			t.Fatalf("problems: %v", problems)
		}
		if one, all := run(t, trace).Makespan(), run(t, repeated).Makespan(); all != dag.Time(n)*one {
			t.Errorf("seed %d: %d times %v take %v", seed, n, one, all)
		}
	}
}

// TestRepeatTags checks that a receive from any source gets no message of a later iteration.
func TestRepeatTags(t *testing.T) {
	b := dag.NewBuilder(3)
	b.Rank(1).Send(0, 1, 5) // at once
	b.Rank(2).Send(0, 1, 5, b.Rank(2).Calc(100))
	for range 2 {
		b.Rank(0).Add(dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Bytes: 1, Tag: 5})
	}
	b.Rank(1).Send(0, 1, dag.CollectiveTag)
	b.Rank(0).Recv(1, 1, dag.CollectiveTag)
	trace := b.Trace()
	repeated := mustRepeat(t, trace, 3)
	if problems := dag.Validate(repeated); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	want := dag.Column[int64]{5, -2, 0, 11, -3, 0, 17, -4}
	if got := repeated.Ranks[1].Tag; !reflect.DeepEqual(got, want) {
		t.Errorf("tags %v, expected %v", got, want)
	}
	timeline := run(t, repeated)
	if got := timeline.Makespan(); got != 300 {
		t.Errorf("makespan %v, expected 300", got)
	}
	for k := range dag.Time(3) { // the first iteration of rank 0 ends when its slow message is there
		if end := max(timeline.End(0, 4*int(k)), timeline.End(0, 4*int(k)+1)); end != (k+1)*100 {
			t.Errorf("iteration %d of rank 0 ends at %v", k, end)
		}
	}
}

// TestRepeatOrder checks that explicit orders of dependents are those of each iteration.
func TestRepeatOrder(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	r.KeepOrder()
	for range 4 {
		r.Calc(1)
	}
	r.Requires(3, 0)
	r.Requires(1, 0)
	r.RequiresStart(3, 2)
	r.RequiresStart(1, 2)
	trace := b.Trace()
	repeated := mustRepeat(t, trace, 3)
	if problems := dag.Validate(repeated); len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	one, all := trace.Ranks[0].Dependents(), repeated.Ranks[0].Dependents()
	ones, alls := trace.Ranks[0].StartDependents(), repeated.Ranks[0].StartDependents()
	for k := range 3 {
		for i := range 4 {
			for _, c := range []struct{ one, all []int32 }{{one.Of(i), all.Of(5*k + i)}, {ones.Of(i), alls.Of(5*k + i)}} {
				for m, op := range c.one {
					if c.all[m] != int32(5*k)+op {
						t.Errorf("iteration %d op %d has dependents %v, expected %v", k, i, c.all, c.one)
					}
				}
			}
		}
	}
}

func TestRepeatErrors(t *testing.T) {
	recv := func(peer int32, tag int64) *dag.Trace {
		b := dag.NewBuilder(2)
		b.Rank(1).Recv(peer, 1, tag)
		return b.Trace()
	}
	released := dag.NewBuilder(1)
	released.Rank(0).Add(dag.Op{Release: 7})
	for _, c := range []struct {
		trace *dag.Trace
		n     int
		want  string
	}{
		{first(), 0, "0 iterations, expected at least one"},
		{recv(0, dag.AnyTag), 2, "rank 1: op 0: receive of any tag could match a message of the next iteration"},
		{released.Trace(), 2, "rank 0: op 0: release time 7ps has no known value in later iterations"},
		{recv(dag.AnySource, 1<<61), 4, "tags 0..2305843009213693952 leave no room for other tags in each of 4 iterations"},
		{recv(dag.AnySource, math.MinInt64), 2, "leave no room for other tags"},
		{chain(rand.New(rand.NewPCG(1, 1))), math.MaxInt32,
			"rank 0: more than 2147483647 ops or 4294967295 dependencies"},
	} {
		if got, err := Repeat(context.Background(), c.trace, c.n); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
	trace := first()
	if got, err := Repeat(context.Background(), trace, 1); got != trace || err != nil {
		t.Errorf("once is %v, error %v", got, err)
	}
}
