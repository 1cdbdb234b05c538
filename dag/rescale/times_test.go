package rescale_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/rescale"
)

// computing is blocks that go around a ring, with calcs of their own trends: before and after each message, and at the
// end. The first one makes a communicator.
func computing(n int, before, after, last, creates float64) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		if creates > 0 {
			add(dag.Op{Duration: dag.Time(creates) + 5000, Attrs: attr.CallTime(int64(creates))})
		}
		for i := range 3 {
			add(dag.Op{Duration: dag.Time(before)})
			add(dag.Op{Kind: dag.Send, Peer: int32((rank + 1) % n), Bytes: int64(3<<20) / int64(n), Tag: int64(i)})
			add(dag.Op{Duration: dag.Time(after)})
			add(dag.Op{Kind: dag.Recv, Peer: int32((rank + n - 1) % n), Bytes: int64(3<<20) / int64(n), Tag: int64(i)})
		}
		add(dag.Op{Duration: dag.Time(last)})
	})
}

// TestTimes checks calcs whose time grows with the number of ranks in other ways than the sizes of the messages.
func TestTimes(t *testing.T) {
	power := func(f, p float64) func(n float64) float64 {
		return func(n float64) float64 { return f * math.Pow(n/16, p) }
	}
	still := power(1e6, 0)
	for _, c := range []struct {
		name                         string
		before, after, last, creates func(n float64) float64
		others                       []int
		to                           int
		want                         string
	}{
		{"fixed", still, still, still, power(0, 0), []int{32}, 128, "100 % fixed"},
		{"as sizes do", power(4e6, -1), power(1e6, -1), power(1e6, -1), power(0, 0), []int{32}, 128, "100 % as 1/N"},
		{"of two kinds", power(4e6, -1), still, still, power(0, 0), []int{24}, 96, "as 1/N"},
		{"some grow", still, still, power(1e5, 1), power(0, 0), []int{32}, 64, "as N"},
		{"borders", power(9e6, -0.5), still, still, power(0, 0), []int{32, 64}, 256, "as N^-0.5"},
		{"a fixed part", func(n float64) float64 { return 5e6 + 16e6/n }, still, still, power(0, 0), []int{64, 128}, 512,
			"83 % fixed and 17 % as 1/N"},
		{"communicators", still, still, still, func(n float64) float64 { return 1e4*n - 5e4 }, []int{32, 64}, 256,
			"in calls of MPI as N"},
		{"larger communicators", still, still, still, power(2e5, 1), []int{32}, 256, "in calls of MPI as N"},
		{"a least time", func(n float64) float64 { return max(64e6/n, 1.5e6) }, still, still, power(0, 0),
			[]int{32, 64}, 256, "as 1/N, at least 37.5 %"},
		{"a least time of the first trace", func(n float64) float64 { return max(6.4e6/n, 0.7e6) }, still, still,
			power(0, 0), []int{4, 8}, 256, "as 1/N, at least"},
		{"fewer ranks", power(4e6, -1), still, still, power(1e5, 1), []int{32}, 8, "fixed"},
	} {
		make := func(n int) *dag.Trace {
			v := float64(n)
			return computing(n, c.before(v), c.after(v), c.last(v), c.creates(v))
		}
		var others []*dag.Trace
		for _, n := range c.others {
			others = append(others, make(n))
		}
		from, want := make(16), make(c.to)
		d, err := rescale.Decide(context.Background(), from, others, rescale.Options{Ranks: c.to}, false)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, report := mustRescale(t, from, d.Options)
		checkEqual(t, c.name, got, want)
		for i, kind := range want.Ranks[0].Kind {
			if kind != dag.Calc {
				continue
			}
			if a, b := got.Ranks[0].Duration.At(i), want.Ranks[0].Duration.At(i); math.Abs(float64(a-b)) > 0.01*float64(b)+5000 { // of the first calc, which is beside a larger one
				t.Errorf("%s: op %d takes %v, expected %v", c.name, i, a, b)
			}
		}
		if text := strings.Join(report.Summary(), "\n"); !strings.Contains(text, c.want) || d.Others[0].Calcs > 0.01 {
			t.Errorf("%s: calcs differ by %v, report %q, expected %q", c.name, d.Others[0].Calcs, text, c.want)
		}
	}
}

// TestTimesOpen checks that times of which several traces leave open how they grow are refused if that matters.
func TestTimesOpen(t *testing.T) {
	make := func(n int) *dag.Trace {
		v := float64(n)
		return computing(n, 1e6, 1e6+64e6/v, 1e6, 1e4*v)
	}
	o := rescale.Options{Ranks: 512}
	d, err := rescale.Decide(context.Background(), make(16), []*dag.Trace{make(32)}, o, false)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = rescale.Rescale(context.Background(), make(16), d.Options)
	var refusal *rescale.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "the time of calcs") {
		t.Errorf("error %v, expected a refusal about times", err)
	}
	d.Options.Likeliest = true
	mustRescale(t, make(16), d.Options)
}

// collected is a program whose root computes with what it gathered, for a time that grows with the number of ranks.
func collected(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 2 {
			add(dag.Op{Duration: 1e6})
			gather := dag.Op{Kind: dag.Coll, Subkind: dag.Gather, Bytes: 24}
			if rank == 0 {
				gather.RecvBytes = 24 * int64(n)
			}
			add(gather)
			if rank == 0 {
				add(dag.Op{Duration: dag.Time(50000 * n)})
			}
			add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
		}
	})
}

// TestRoot checks that the calcs of a root stay with the root, and grow as the traces show.
func TestRoot(t *testing.T) {
	d, err := rescale.Decide(context.Background(), collected(16), []*dag.Trace{collected(32)},
		rescale.Options{Ranks: 128}, false)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := mustRescale(t, collected(16), d.Options)
	checkEqual(t, "root", got, collected(128))
	if a, b := makespan(t, got), makespan(t, collected(128)); a != b {
		t.Errorf("makespan %d, expected %d", a, b)
	}
}

// TestTimesDiffer checks that times of which no trend gives those of the trace with the nearest number of ranks are
// refused.
func TestTimesDiffer(t *testing.T) {
	make := func(n int) *dag.Trace {
		return computing(n, map[int]float64{16: 2e6, 32: 6e6, 64: 1e6}[n], 1e5, 1e5, 0)
	}
	decide := func(o rescale.Options) error {
		_, err := rescale.Decide(context.Background(), make(16), []*dag.Trace{make(32), make(64)}, o, false)
		return err
	}
	var refusal *rescale.Refusal
	if err := decide(rescale.Options{Ranks: 128}); !errors.As(err, &refusal) ||
		!strings.Contains(err.Error(), "no rule gives the time of calcs of all traces: rescaled to the 64 ranks") {
		t.Errorf("error %v, expected a refusal about times", err)
	}
	if err := decide(rescale.Options{Ranks: 128, Likeliest: true}); err != nil {
		t.Error(err)
	}
}

// TestShrinking checks that the report states that times become less than in any trace, and what that means.
func TestShrinking(t *testing.T) {
	make := func(n int) *dag.Trace { return computing(n, 48e6/float64(n), 0, 0, 0) }
	for _, c := range []struct {
		ranks int
		want  string // "": nothing
	}{
		{128, "assumed: 100 % of the time of calcs of the longest rank keeps shrinking, to 0.25 of the least in a " +
			"trace; for each percent of it that does not, the trace is 3 % longer"},
		{24, ""},
		{8, ""},
	} {
		o := rescale.Options{Ranks: c.ranks}
		d, err := rescale.Decide(context.Background(), make(16), []*dag.Trace{make(32)}, o, false)
		if err != nil {
			t.Fatal(err)
		}
		_, report := mustRescale(t, make(16), d.Options)
		text := strings.Join(report.Summary(), "\n")
		if c.want == "" && strings.Contains(text, "shrinking") || !strings.Contains(text, c.want) {
			t.Errorf("%d ranks: %q, expected %q", c.ranks, text, c.want)
		}
	}
}
