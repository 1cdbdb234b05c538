package compose

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestScale(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	r.Calc(5)
	r.Add(dag.Op{Kind: dag.Send, Peer: 1, Duration: 5})
	r.Add(dag.Op{Subkind: dag.Marker, Duration: 5})
	r.Add(dag.Op{Flops: 9})
	r.Add(dag.Op{Duration: 1, Flops: 9, Timed: true, MeasuredStart: 1, MeasuredEnd: 2})
	r.Calc(0)
	b.Rank(1).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Duration: 7})
	trace := b.Trace()
	scaled, without, err := Scale(context.Background(), trace, 1, 2)
	if err != nil || without != 1 {
		t.Fatalf("%d without a duration, error %v", without, err)
	}
	if got, want := scaled.Ranks[0].Duration, (dag.Column[dag.Time]{3, 5, 5, 0, 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("durations %v, expected %v", got, want)
	}
	if trace.Ranks[0].Duration[0] != 5 || scaled.Ranks[1].Duration.At(0) != 7 {
		t.Error("what was to stay did not")
	}
	for _, c := range []struct {
		numerator, denominator int64
		duration               dag.Time
		want                   string
	}{
		{-1, 1, 1, "factor -1/1, expected a number of 0 or more"},
		{1, 0, 1, "factor 1/0, expected a number of 0 or more"},
		{2, 1, dag.MaxTime/2 + 1, "rank 0: op 0: duration 4611686.018427387904s times 2/1 exceeds"},
		{math.MaxInt64, 1, dag.MaxTime, "exceeds"},
		{math.MaxInt64, 2, 3, "exceeds"},
		{1, 2, -4, "rank 0: op 0: duration -4ps, expected 0s or more"},
	} {
		b := dag.NewBuilder(1)
		b.Rank(0).Calc(c.duration)
		if got, _, err := Scale(context.Background(), b.Trace(), c.numerator, c.denominator); err == nil || got != nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%d/%d: error %v, expected %q", c.numerator, c.denominator, err, c.want)
		}
	}
}

// TestScaleTime compares with arithmetic of any size.
func TestScaleTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() int64 { return random.Int64() >> random.IntN(63) }
	fit := 0
	for range 200_000 {
		d, n, m := number(), number(), number()+1
		if random.IntN(4) == 0 {
			m = max(1, n/4*2) // halves
		}
		if m <= 0 {
			continue
		}
		want := new(big.Int).Mul(big.NewInt(d), big.NewInt(n))
		want.Mul(want, big.NewInt(2)).Add(want, big.NewInt(m)).Div(want, new(big.Int).Mul(big.NewInt(2), big.NewInt(m)))
		got, err := scaleTime(dag.Time(d), n, m)
		if want.IsInt64() != (err == nil) || err == nil && int64(got) != want.Int64() {
			t.Fatalf("%d * %d/%d = %d, error %v, expected %v", d, n, m, got, err, want)
		}
		if err == nil {
			fit++
		}
	}
	if fit < 10_000 {
		t.Errorf("only %d fit", fit)
	}
}
