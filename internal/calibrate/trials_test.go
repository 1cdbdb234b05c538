package calibrate

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// TestTrials: equal traces are replayed once, others apart, and heavy ones only above their limit.
func TestTrials(t *testing.T) {
	ctx, replays := context.Background(), 0
	time := machine(dag.Microsecond)
	all := newTrials(func(ctx context.Context, t *dag.Trace, marks [][]int) ([][]float64, []float64, error) {
		replays++
		return time(ctx, t, marks)
	}, outcomeOf)
	run := func(algorithm string, bytes, limit int64) (float64, error) {
		choice, err := collective.ParseChoice("alltoall=" + algorithm)
		if err != nil {
			t.Fatal(err)
		}
		s := newScene(8)
		s.mark()
		s.collective(dag.Alltoall, 8*bytes)
		s.mark()
		o, err := all.run(ctx, s, choice, limit)
		return o.longest, err
	}
	const all8 = 8 * 7 * 8 * 7 // all messages at once
	var h heavy
	if _, err := run("linear", 64, all8-1); !errors.As(err, &h) || h.work != all8 || replays != 0 {
		t.Fatalf("%v after %d replays, expected a trace of %d units of work without replay", err, replays, all8)
	}
	first, err := run("linear", 64, all8)
	if err != nil || replays != 1 {
		t.Fatalf("%v after %d replays, expected one replay", err, replays)
	}
	if again, err := run("linear", 64, 0); err != nil || again != first || replays != 1 {
		t.Errorf("%g, %v after %d replays, expected %g of the first one", again, err, replays, first)
	}
	if _, err := run("linear", 65, math.MaxInt64); err != nil || replays != 2 {
		t.Errorf("%v after %d replays, expected one of messages of another size", err, replays)
	}
	// Each round of a ring follows the receives of the last one.
	if _, err := run("shift", 64, 7*8*8-1); !errors.As(err, &h) || h.work != 7*8*8 {
		t.Errorf("%v, expected a trace of %d units of work", err, 7*8*8)
	}
}

// TestHeavy: algorithms with thousands of messages at once are replayed if no other explains a time, within the budget.
func TestHeavy(t *testing.T) {
	const ranks, bytes = 68, 4096
	ctx, time := context.Background(), machine(dag.Microsecond)
	for _, c := range []struct {
		algorithm string
		factor    float64 // of the times
		least     int     // number of heavy replays
		most      int
	}{
		{"pairwise", 1, 0, 0},
		{"linear", 1, 1, 8},
		{"linear", 100, 1, allHeavy / (ranks * (ranks - 1) * ranks * (ranks - 1))},
	} {
		p := newPredictor(time, 1)
		var rows []fit.Measurement
		for _, size := range []int64{bytes, 2 * bytes} {
			o, err := p.predict(ctx, &group{kind: dag.Alltoall, ranks: ranks}, size, fresh, c.algorithm, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, fit.Measurement{Test: "alltoall", Bytes: size, Ranks: ranks, Seconds: c.factor * o.longest})
		}
		var heavies atomic.Int64
		found, err := identify(ctx, rows, 2, func(ctx context.Context, t *dag.Trace, marks [][]int) ([][]float64,
			[]float64, error) {
			if work(t) > allLight {
				heavies.Add(1)
			}
			return time(ctx, t, marks)
		}, "")
		if err != nil {
			t.Fatal(err)
		}
		if n := int(heavies.Load()); n < c.least || n > c.most {
			t.Errorf("%s: %d replays of heavy algorithms, expected %d to %d", c.algorithm, n, c.least, c.most)
		}
		for _, f := range found.choices {
			if f.None != (c.factor > 1) || !f.None && math.Abs(f.Error) > certain {
				t.Errorf("%s: %+v", c.algorithm, f)
			}
		}
	}
}
