package compose

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// rankWithGone is a trace of one rank of calcs with both kinds of dependencies, of which some are to go.
func rankWithGone(random *rand.Rand) (trace *dag.Trace, gone []bool) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	n := 1 + random.IntN(30)
	at := random.Perm(n) // when each op has its turn
	if random.IntN(2) == 0 {
		for i := range at {
			at[i] = i
		}
	}
	for i := range n {
		op := dag.Op{Duration: dag.Time(random.IntN(20)), Stream: random.Int32N(3), Name: strconv.Itoa(i)}
		gone = append(gone, random.IntN(3) == 0)
		if gone[i] {
			op.Duration = 0 // so that what is left runs as before
		}
		if random.IntN(6) == 0 {
			op.Release = dag.Time(random.IntN(100))
		}
		r.Add(op)
	}
	if random.IntN(3) == 0 {
		r.KeepOrder()
	}
	for range random.IntN(3 * n) {
		on, op := random.IntN(n), random.IntN(n)
		if at[on] >= at[op] {
			continue
		}
		if random.IntN(4) == 0 {
			r.RequiresStart(op, on)
		} else {
			r.Requires(op, on)
		}
	}
	return b.Trace(), gone
}

// TestRemove checks on random ranks that the remaining ops run at the same times, with no more dependencies.
func TestRemove(t *testing.T) {
	junctions, ordered := 0, 0
	for seed := range uint64(5000) {
		trace, gone := rankWithGone(rand.New(rand.NewPCG(seed, 0)))
		before, whole := run(t, trace), trace.Ranks[0]
		left, err := remove(whole, gone)
		if err != nil {
			t.Fatal(err)
		}
		if most := len(whole.Deps.Off) + len(whole.StartDeps.Off); len(left.Deps.Off)+len(left.StartDeps.Off) > most {
			t.Fatalf("seed %d: %d and %d dependencies of %d", seed, len(left.Deps.Off), len(left.StartDeps.Off), most)
		}
		cut := &dag.Trace{Comms: trace.Comms, Ranks: []*dag.Rank{&left}}
		if problems := dag.Validate(cut); len(problems) > 0 {
			t.Fatalf("seed %d: problems: %v", seed, problems)
		}
		after := run(t, cut)
		next := 0
		for i := range left.Len() {
			op := left.Op(i)
			if op.Subkind == dag.Marker {
				junctions++
				continue
			}
			for gone[next] {
				next++
			}
			want := whole.Op(next)
			if op.Release = want.Release; op != want {
				t.Fatalf("seed %d: op %d is %+v, expected %+v", seed, i, op, want)
			}
			if got, want := after.Start(0, i), before.Start(0, next); got != want {
				t.Fatalf("seed %d: op %d, before %d, starts at %v, expected %v", seed, i, next, got, want)
			}
			next++
		}
		for ; next < len(gone); next++ {
			if !gone[next] {
				t.Fatalf("seed %d: op %d is not left", seed, next)
			}
		}
		if len(left.Order.Off) > 0 {
			ordered++
		}
	}
	if junctions < 100 || ordered < 100 {
		t.Errorf("%d junctions and %d ranks with orders of their own, too few to tell", junctions, ordered)
	}
}

// TestRemoveJoins checks that a marker remains only if a removed op joins ops for remaining ones.
func TestRemoveJoins(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	x, y := r.Calc(1), r.Calc(2)
	fork := [2]int{r.Calc(0, x), r.Calc(0, x)} // both stand for x
	same := r.Calc(0, fork[0], fork[1], x)
	join := r.Add(dag.Op{Kind: dag.Send, Bytes: 9, Stream: 4, Job: 3}, same, y)
	r.Calc(3, join)
	r.Calc(4, join)
	r.Calc(5, same)
	last := r.Calc(0, x, y) // brings them together for one that goes
	r.Calc(0, last, y)
	left, err := remove(b.Trace().Ranks[0], []bool{false, false, true, true, true, true, false, false, false, true, true})
	if err != nil {
		t.Fatal(err)
	}
	want := dag.NewBuilder(1)
	r = want.Rank(0)
	x, y = r.Calc(1), r.Calc(2)
	join = r.Add(dag.Op{Subkind: dag.Marker, Stream: 4, Job: 3}, x, y)
	r.Calc(3, join)
	r.Calc(4, join)
	r.Calc(5, x)
	expected := want.Trace().Ranks[0]
	if left.Len() != expected.Len() || !reflect.DeepEqual(left.Deps, expected.Deps) {
		t.Fatalf("%d ops, dependencies %v, expected %d, %v", left.Len(), left.Deps, expected.Len(), expected.Deps)
	}
	for i := range left.Len() {
		if left.Op(i) != expected.Op(i) {
			t.Errorf("op %d is %+v, expected %+v", i, left.Op(i), expected.Op(i))
		}
	}
}

func TestRemoveAll(t *testing.T) {
	trace, gone := rankWithGone(rand.New(rand.NewPCG(7, 7)))
	none, err := remove(trace.Ranks[0], make([]bool, len(gone)))
	if err != nil || !reflect.DeepEqual(none.Kind, trace.Ranks[0].Kind) {
		t.Errorf("without removing any: %+v, error %v", none, err)
	}
	for i := range gone {
		gone[i] = true
	}
	if all, err := remove(trace.Ranks[0], gone); err != nil || all.Len() != 0 || len(all.Deps.Off) != 0 {
		t.Errorf("without all: %+v, error %v", all, err)
	}
	b := dag.NewBuilder(1)
	b.Rank(0).Calc(1)
	b.Rank(0).Calc(1, 0)
	b.Rank(0).Requires(0, 1)
	if _, err := remove(b.Trace().Ranks[0], make([]bool, 2)); err != errCycle {
		t.Errorf("error %v of a cycle", err)
	}
}
