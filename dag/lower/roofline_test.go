package lower

import (
	"context"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestRoofline(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	for _, op := range []dag.Op{
		{Kind: dag.Calc, Duration: 5, Flops: 1000},   // has its duration
		{Kind: dag.Calc, Flops: 1000, Bytes: 10},     // 1 us for the operations
		{Kind: dag.Calc, Flops: 1, Bytes: 1_000_001}, // 1000001 ns for the bytes
		{Kind: dag.Calc, Bytes: 10},                  // nothing says that it computes
		{Kind: dag.Send, Bytes: 10, Flops: 7},
		{Kind: dag.Calc},
	} {
		r.Add(op)
	}
	before := b.Trace()
	after, err := Roofline(context.Background(), before, 1_000_000_000, 1_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	want := []dag.Time{5, 1 * dag.Microsecond, 1_000_001 * dag.Nanosecond, 0, 0, 0}
	for i, d := range want {
		if got := after.Ranks[0].Duration.At(i); got != d {
			t.Errorf("op %d takes %v, expected %v", i, got, d)
		}
	}
	if before.Ranks[0].Duration.At(1) != 0 {
		t.Error("the trace itself has changed")
	}
	if again, err := Roofline(context.Background(), after, 1, 1); err != nil || again != after {
		t.Error("a trace without such calcs is copied")
	}
}
