package rescale_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/rescale"
)

// rooted is a program whose root computes for a time of its own: between two collectives, or before a broadcast with
// the calcs of all ranks.
func rooted(n int, all, root float64, joined bool) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		collective := func(kind dag.Subkind) { add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: 8, RecvBytes: 8}) }
		for range 3 {
			d := all * (1 + 0.01*float64(rank%3))
			if rank == 0 && joined {
				d += root
			}
			add(dag.Op{Duration: dag.Time(d)})
			collective(dag.Allreduce)
			if rank == 0 && !joined {
				add(dag.Op{Duration: dag.Time(root)})
			}
			collective(dag.Allreduce)
		}
	})
}

// measured adds measured times to a trace: those of its calcs, and a time in each call.
func measured(tr *dag.Trace, call dag.Time) *dag.Trace {
	for _, r := range tr.Ranks {
		now := dag.Time(0)
		for i, kind := range r.Kind {
			d := call
			if kind == dag.Calc {
				d = r.Duration.At(i)
			}
			r.MeasuredStart, r.MeasuredEnd = append(r.MeasuredStart, now), append(r.MeasuredEnd, now+d)
			now += d
		}
	}
	return tr
}

// TestOpenTimes checks that times of which one trace does not show how they grow are refused if they may change the
// length of the new trace by more than 15 %, and otherwise kept, with the change in the report.
func TestOpenTimes(t *testing.T) {
	communicator := func(creates float64) *dag.Trace { return computing(16, 1e6, 1e6, 1e6, creates) }
	for _, c := range []struct {
		name    string
		trace   *dag.Trace
		ranks   int
		scaling rescale.Scaling
		refused bool
		change  float64 // 0: no report
		what    string
	}{
		// 2 of 9 us, times 6 for 4 times the ranks.
		{"communicators", communicator(2e6), 64, rescale.Weak, true, 10 / 9.005, "rank 0: op 0: 2us"},
		// The same of 3.75 us if other calcs shrink.
		{"shrinking calcs", communicator(2e6), 64, rescale.Strong, true, 10 / 3.75, "communicators"},
		{"short communicators", communicator(0.2e6), 64, rescale.Weak, false, 1 / 7.2, "communicators"},
		{"shorter communicators", communicator(0.01e6), 64, rescale.Weak, false, 0, ""},
		{"few ranks", communicator(2e6), 4, rescale.Weak, true, -2 * 7 / 8. / 9.005, "communicators"},
		{"long calls", measured(communicator(2e6), 20e6), 64, rescale.Weak, false, 10 / 129.005, "communicators"},
		{"root", rooted(16, 1e6, 0.5e6, false), 64, rescale.Weak, true, 1, "calcs that only rank 0 has"},
		{"root of shrinking calcs", rooted(16, 1e6, 0.5e6, false), 64, rescale.Strong, true, (3 * 0.5 * 3.75) / 1.125,
			"calcs that only rank 0 has"},
		{"short root", rooted(16, 1e6, 0.02e6, false), 64, rescale.Weak, false, 0.06 / 1.02, "calcs that only rank 0 has"},
		{"root beside others", rooted(16, 1e6, 2e6, true), 64, rescale.Weak, true, 3 * 1.9893 / 3,
			"calcs that only rank 0 has"},
		{"root like others", rooted(16, 1e6, 0.3e6, true), 64, rescale.Weak, false, 0, ""},
	} {
		o := rescale.Options{Ranks: c.ranks, Scaling: c.scaling}
		_, _, err := rescale.Rescale(context.Background(), c.trace, o)
		var r *rescale.Refusal
		if refused := errors.As(err, &r); refused != c.refused || refused && !strings.Contains(err.Error(), c.what) ||
			refused && !strings.Contains(err.Error(), "--growth") {
			t.Errorf("%s: error %v, expected a refusal: %v", c.name, err, c.refused)
		}
		o.Likeliest = true
		_, report := mustRescale(t, c.trace, o)
		if c.change == 0 {
			if report.Open != nil || report.Warnings != nil {
				t.Errorf("%s: warnings %q, expected none", c.name, report.Warnings)
			}
			continue
		}
		if len(report.Open) != 1 || math.Abs(report.Open[0].Change/c.change-1) > 0.02 ||
			len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], c.what) {
			t.Errorf("%s: report %+v, %q, expected a change of %v", c.name, report.Open, report.Warnings, c.change)
		}
	}
}

// TestGrowth checks that times whose growth is given are neither refused nor a cause of warnings, and grow so.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		growth rescale.Growth
		factor float64
	}{{rescale.Fixed, 1}, {rescale.Logarithmic, 1.5}, {rescale.Linear, 4}, {rescale.Linearithmic, 6},
		{rescale.Quadratic, 16}} {
		for _, scaling := range []rescale.Scaling{rescale.Weak, rescale.Strong} {
			others := map[rescale.Scaling]float64{rescale.Weak: 1, rescale.Strong: 0.25}[scaling]
			o := rescale.Options{Ranks: 64, Scaling: scaling, Growth: c.growth}
			check := func(what string, got *dag.Trace, rank, op int, want float64) {
				if d := float64(got.Ranks[rank].Duration.At(op)); math.Abs(d/want-1) > 0.02 {
					t.Errorf("%v, %v scaling: %s takes %v, expected %v", c.growth, scaling, what, d, want)
				}
			}
			got, report := mustRescale(t, computing(16, 1e6, 1e6, 1e6, 2e6), o)
			check("communicator", got, 5, 0, 2e6*c.factor)
			check("calc", got, 5, 1, 1e6*others)
			if report.Warnings != nil || report.Open != nil {
				t.Errorf("%v: warnings %q", c.growth, report.Warnings)
			}
			got, _ = mustRescale(t, rooted(16, 1e6, 0.5e6, false), o)
			check("root", got, 0, 2, 0.5e6*c.factor)
			got, _ = mustRescale(t, rooted(16, 1e6, 2e6, true), o)
			check("root beside others", got, 0, 0, 1.0107e6*others+1.9893e6*c.factor)
			check("other ranks", got, 33, 0, 1.01e6*others)
		}
	}
}

// TestJoinedRoot checks that what a root computes beside the others grows apart from their calcs, as the traces show,
// also if it is short on few ranks.
func TestJoinedRoot(t *testing.T) {
	for _, c := range []struct {
		name      string
		all, root func(n float64) float64
		second    int
		near      float64
	}{
		{"linear", func(float64) float64 { return 1e6 }, func(n float64) float64 { return 1e5 * n }, 32, 0.02},
		{"beside shrinking calcs", func(n float64) float64 { return 16e6 / n },
			func(n float64) float64 { return 1e5 * n }, 32, 0.02},
		{"quadratic", func(float64) float64 { return 1e6 }, func(n float64) float64 { return 5e3 * n * n }, 32, 0.02},
		{"short at first", func(float64) float64 { return 1e6 }, func(n float64) float64 { return 2e4 * n }, 64, 0.03},
		{"fixed", func(float64) float64 { return 1e6 }, func(float64) float64 { return 2e6 }, 32, 0.02},
	} {
		make := func(n int) *dag.Trace { return rooted(n, c.all(float64(n)), c.root(float64(n)), true) }
		o := rescale.Options{Ranks: 128}
		d, err := rescale.Decide(context.Background(), make(16), []*dag.Trace{make(c.second)}, o, false)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, report := mustRescale(t, make(16), d.Options)
		want := make(128)
		for _, rank := range []int{0, 1, 127} {
			a, b := got.Ranks[rank].Duration.At(0), want.Ranks[rank].Duration.At(0)
			if math.Abs(float64(a)/float64(b)-1) > c.near {
				t.Errorf("%s: the first calc of rank %d takes %v, expected %v: %q", c.name, rank, a, b,
					report.Summary())
			}
		}
	}
}
