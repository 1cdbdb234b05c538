package compose

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestPostpone checks on random ranks that everything runs as much later.
func TestPostpone(t *testing.T) {
	ordered := 0
	for seed := range uint64(3000) {
		trace, _ := rankWithGone(rand.New(rand.NewPCG(seed, 1)))
		later, err := Postpone(context.Background(), trace, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(later); len(problems) > 0 {
			t.Fatalf("seed %d: problems: %v", seed, problems)
		}
		before, after, r := run(t, trace), run(t, later), &later.Ranks[0]
		if first := r.Op(0); first != (dag.Op{Duration: 1000, Stream: first.Stream}) {
			t.Fatalf("seed %d: the first op is %+v", seed, first)
		}
		for i := range trace.Ranks[0].Len() {
			got, want := r.Op(i+1), trace.Ranks[0].Op(i)
			if want.Release > 0 {
				want.Release += 1000
			}
			if got != want || got.Stream == r.Stream.At(0) {
				t.Fatalf("seed %d: op %d is %+v, expected %+v", seed, i, got, want)
			}
			if got, want := after.Start(0, i+1), before.Start(0, i)+1000; got != want {
				t.Fatalf("seed %d: op %d starts at %v, expected %v", seed, i, got, want)
			}
		}
		ordered += len(r.Order.Off) + len(r.StartOrder.Off)
	}
	if ordered < 500 {
		t.Errorf("%d dependents in an order of their own, too few to tell", ordered)
	}
}

func TestPostponeErrors(t *testing.T) {
	if got, err := Postpone(context.Background(), first(), -1); err == nil || got != nil || err.Error() != "later by -1ps, expected 0s or more" {
		t.Errorf("error %v", err)
	}
	if got, err := Postpone(context.Background(), first(), dag.MaxTime); err == nil || got != nil ||
		!strings.Contains(err.Error(), "rank 0: op 1: release 7ps plus") {
		t.Errorf("error %v", err)
	}
	later, err := Postpone(context.Background(), first(), 5)
	if err != nil {
		t.Fatal(err)
	}
	if start, end := later.Ranks[0].Measured(1); start != 15 || end != 16 || later.Ranks[1].Len() != 0 {
		t.Errorf("measured from %v to %v; an empty rank has %d ops", start, end, later.Ranks[1].Len())
	}
	if problems := dag.Validate(later); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}
