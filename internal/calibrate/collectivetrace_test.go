package calibrate

import (
	"context"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
)

// collectives returns a program of collectives that ranks enter at different times, with marks around each.
func collectives(ranks int) *scene {
	s := newScene(ranks)
	for i, size := range []int64{8, 20000} {
		for round := range 3 {
			for _, kind := range []dag.Subkind{dag.Allreduce, dag.Bcast, dag.Alltoall, dag.Allgather, dag.Reduce} {
				s.pause()
				for r := range ranks {
					s.add(r, dag.Op{Kind: dag.Calc, Duration: dag.Time(r*7%5*(round+i)) * dag.Microsecond})
				}
				s.mark()
				s.collective(kind, size*int64(ranks))
				s.mark()
			}
		}
	}
	return s
}

// TestCollectivesOfTrace finds the algorithms of a recording whose ranks enter collectives at different times.
func TestCollectivesOfTrace(t *testing.T) {
	const ranks, network = 9, "star:hosts=9,rate=10Gbps,latency=2us"
	settings := [][2]string{{"topology", network}, {"flow-model", "smpi"}, {"protocol", "smpi"}, {"os", "0:1e-6"},
		{"or", "0:5e-7"}}
	for _, algorithms := range []string{"smpi-mpich", "smpi-ompi", "openmpi;allreduce=ring;alltoall=linear"} {
		choice, err := collective.ParseChoice(algorithms)
		if err != nil {
			t.Fatal(err)
		}
		at, _, err := collectives(ranks).run(context.Background(), choice, replayOn("flow", settings))
		if err != nil {
			t.Fatal(err)
		}
		trace := collectives(ranks).builder.Trace()
		for rank, r := range trace.Ranks {
			r.MeasuredStart, r.MeasuredEnd = make([]dag.Time, r.Len()), make([]dag.Time, r.Len())
			k := 0
			for i := range r.Len() {
				if r.MeasuredStart[i], r.MeasuredEnd[i] = dag.Unmeasured, dag.Unmeasured; r.Kind[i] == dag.Coll {
					r.MeasuredStart[i], r.MeasuredEnd[i] = ticks(at[rank][k]), ticks(at[rank][k+1])
					k += 2
				}
			}
		}
		found, err := identifyRecorded(context.Background(), []*dag.Trace{trace}, &fit.File{Topology: network}, 2,
			replayOn("flow", settings), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := collective.ParseChoice(found.expression)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found.choices {
			kind, _ := subkind(c.Collective)
			g := group{kind: kind, ranks: ranks}
			want := choice.Selected(kind, g.largest(c.From), ranks)
			if c.Error > 0.01 || got.Selected(kind, g.largest(c.From), ranks) != c.Algorithm {
				t.Errorf("%s: %+v, expected %s", algorithms, c, want)
			}
		}
		if first, _, _ := strings.Cut(algorithms, ";"); !strings.HasPrefix(found.expression, first) {
			t.Errorf("found %q, expected %s", found.expression, algorithms)
		}
		if len(found.choices) != 10 {
			t.Errorf("found %d choices, expected 10", len(found.choices))
		}
	}
}
