package compose

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/ideal"
)

func mustOnly(t *testing.T, trace *dag.Trace, job int32) *dag.Trace {
	t.Helper()
	alone, err := Only(context.Background(), trace, job)
	if err != nil {
		t.Fatal(err)
	}
	return alone
}

// checkOnly checks the remaining ops of a rank for a job.
func checkOnly(t *testing.T, trace *dag.Trace, job int32, want *dag.Trace) {
	t.Helper()
	got := mustOnly(t, trace, job)
	var gotText, wantText bytes.Buffer
	for out, trace := range map[*bytes.Buffer]*dag.Trace{&gotText: got, &wantText: want} {
		r := trace.Ranks[0]
		for i := range r.Kind {
			fmt.Fprintf(out, "%+v after %v and starts of %v\n", r.Op(i), r.Deps.Of(i), r.StartDeps.Of(i))
		}
	}
	if gotText.String() != wantText.String() {
		t.Errorf("job %d:\n%s, expected\n%s", job, &gotText, &wantText)
	}
}

// TestOnlyOfMerged checks that a job of a merged trace equals the original, except for the numbers of its ranks.
func TestOnlyOfMerged(t *testing.T) {
	merged := mustMerge(t, Job{"a", first(), 0}, Job{"b", second(), 1000})
	a, b := mustOnly(t, merged, 0), mustOnly(t, merged, 1)
	for rank := range merged.Ranks {
		own, other := a, b
		if rank >= 3 {
			own, other = b, a
		}
		if !reflect.DeepEqual(own.Ranks[rank], merged.Ranks[rank]) || other.Ranks[rank].Len() != 0 {
			t.Errorf("rank %d: %+v and %+v", rank, own.Ranks[rank], other.Ranks[rank])
		}
	}
	if !reflect.DeepEqual(a.Meta, merged.Meta) || !reflect.DeepEqual(b.Comms, merged.Comms) {
		t.Errorf("metadata %+v, communicators %v", a.Meta, b.Comms)
	}
}

// TestOnlyOfShared takes apart a rank of two jobs that three calcs of job 0 join: before, between and after them.
func TestOnlyOfShared(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	begin := r.Calc(0)
	x := r.Add(dag.Op{Duration: 5, Name: "x", Release: 9, Timed: true, MeasuredStart: 1, MeasuredEnd: 2}, begin)
	y := r.Add(dag.Op{Duration: 7, Job: 1, Stream: 3}, begin)
	middle := r.Add(dag.Op{Stream: 4}, x, y)
	z := r.Add(dag.Op{Duration: 8, Job: 1}, middle)
	r.Calc(0, z)
	trace := b.Trace()

	b = dag.NewBuilder(1)
	r = b.Rank(0)
	y = r.Add(dag.Op{Duration: 7, Job: 1, Stream: 3})
	r.Add(dag.Op{Duration: 8, Job: 1}, y)
	checkOnly(t, trace, 1, b.Trace())

	b = dag.NewBuilder(1)
	r = b.Rank(0)
	begin = r.Calc(0)
	x = r.Add(dag.Op{Duration: 5, Name: "x", Release: 9, Timed: true, MeasuredStart: 1, MeasuredEnd: 2}, begin)
	middle = r.Add(dag.Op{Stream: 4}, x, begin)
	r.Calc(0, middle)
	checkOnly(t, trace, 0, b.Trace())
	if got := mustOnly(t, trace, 2).Ranks[0]; got.Len() != 0 {
		t.Errorf("job 2 has %+v", got)
	}
}

// TestOnlyJoins checks that removing an op of another job between ops of a job adds no dependencies.
func TestOnlyJoins(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	join := r.Add(dag.Op{Duration: 3, Job: 1, Release: 50})
	last := r.Add(dag.Op{Duration: 3, Job: 1, Stream: 2}, join)
	for i := range dag.Time(3) {
		r.Requires(join, r.Calc(i+1))
		r.Calc(i+4, last)
	}
	trace := b.Trace()

	b = dag.NewBuilder(1)
	r = b.Rank(0)
	join = r.Add(dag.Op{Subkind: dag.Marker})
	for i := range dag.Time(3) {
		r.Requires(join, r.Calc(i+1))
		r.Calc(i+4, join)
	}
	checkOnly(t, trace, 0, b.Trace())
}

func TestOnlyCycle(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(1)
	one, other := r.Add(dag.Op{Job: 1}), r.Add(dag.Op{Job: 1})
	r.Requires(one, other)
	r.Requires(other, one)
	r.Calc(5, other)
	if _, err := Only(context.Background(), b.Trace(), 0); err == nil || err.Error() != "rank 1: ops wait for each other in a cycle" {
		t.Error(err)
	}
}

// TestOnlyKeepsOrder checks on random ranks of three jobs that the ops of each start and end as they do with the others
// there, those taking no time, and that the orders of their dependents are what is left of those before.
func TestOnlyKeepsOrder(t *testing.T) {
	stayed, ordered := 0, 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		trace := randomRank(random)
		for job := range int32(3) {
			alone, shared := mustOnly(t, trace, job), timeless(trace, job)
			old, left := trace.Ranks[0], alone.Ranks[0]
			if err := left.CheckReferences(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got, want := ownTimes(t, alone, job), ownTimes(t, shared, job); !slices.Equal(got, want) {
				t.Fatalf("seed %d: job %d: times %v, expected %v", seed, job, got, want)
			}
			oldList, leftList := old.Dependents(), left.Dependents()
			got, want := ownDependents(left, &leftList, job), ownDependents(old, &oldList, job)
			for i := range want {
				if !within(want[i], got[i]) {
					t.Fatalf("seed %d: job %d: dependents %v, expected %v and others", seed, job, got[i], want[i])
				}
			}
			ordered += len(left.Order.Off)
			for i := range left.Kind {
				if left.Subkind.At(i) == dag.Marker {
					stayed++
				}
			}
		}
	}
	if stayed < 500 || ordered < 500 {
		t.Errorf("%d ops of other jobs stayed and %d dependents are not in ascending order, too few to tell", stayed, ordered)
	}
}

// randomRank returns a trace of one rank whose ops, numbered in any order, are of three jobs and wait for each other.
func randomRank(random *rand.Rand) *dag.Trace {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	r.KeepOrder()
	n := 2 + random.IntN(20)
	for range n {
		op := dag.Op{Duration: dag.Time(1 + random.IntN(50)), Job: random.Int32N(3)}
		if random.IntN(8) == 0 {
			op.Release = dag.Time(random.IntN(100))
		}
		r.Add(op)
	}
	order := random.Perm(n)
	for range 2 * n {
		later := 1 + random.IntN(n-1)
		op, on := order[later], order[random.IntN(later)]
		if random.IntN(4) == 0 {
			r.RequiresStart(op, on)
		} else {
			r.Requires(op, on)
		}
	}
	return b.Trace()
}

// timeless returns a trace in which ops of jobs other than one take no time and have no release time.
func timeless(t *dag.Trace, job int32) *dag.Trace {
	out := *t
	out.Ranks = []*dag.Rank{t.Ranks[0].Clone()}
	r := out.Ranks[0]
	for i := range r.Kind {
		if r.Job.At(i) != job {
			r.Duration.Set(i, 0)
			r.Release.Set(i, 0)
		}
	}
	return &out
}

// ownTimes returns the starts and ends of the ops of a job that take time, in order.
func ownTimes(t *testing.T, trace *dag.Trace, job int32) (times []dag.Time) {
	t.Helper()
	ran, err := ideal.Run(trace)
	if err != nil || !ran.Result.Complete {
		t.Fatal(err, ran.Result.Stuck)
	}
	r := trace.Ranks[0]
	for i := range r.Kind {
		if r.Job.At(i) == job && r.Duration.At(i) > 0 {
			times = append(times, ran.Start(0, i), ran.End(0, i))
		}
	}
	return times
}

// ownDependents lists the dependents of each op of a job that are of it, each once, by their places among its ops.
func ownDependents(r *dag.Rank, of *dag.Dependents, job int32) (lists [][]int) {
	place, n := make([]int, r.Len()), 0
	own := func(i int) bool { return r.Job.At(i) == job && r.Duration.At(i) > 0 }
	for i := range place {
		place[i] = n
		if own(i) {
			n++
		}
	}
	for i := range place {
		if !own(i) {
			continue
		}
		var list []int
		for _, d := range of.Of(i) {
			if own(int(d)) && !slices.Contains(list, place[d]) {
				list = append(list, place[d])
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// within reports whether part is a subsequence of whole.
func within(part, whole []int) bool {
	for _, v := range whole {
		if len(part) > 0 && part[0] == v {
			part = part[1:]
		}
	}
	return len(part) == 0
}
