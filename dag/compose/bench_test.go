package compose

import (
	"context"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// ring is a trace in which ranks pass messages round, with compute between.
func ring(ranks, steps int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		r := b.Rank(rank)
		last := r.Calc(5)
		for step := range int64(steps) {
			s := r.Send(int32((rank+1)%ranks), 4096, step, last)
			v := r.Recv(int32((rank+ranks-1)%ranks), 4096, step, last)
			last = r.Calc(1000, s, v)
		}
	}
	return b.Trace()
}

func BenchmarkCompose(b *testing.B) {
	t := ring(64, 5000)
	jobs := []Job{{Name: "a", Trace: t}, {Name: "b", Trace: t, Start: 5}}
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		r.MeasuredStart, r.MeasuredEnd = make([]dag.Time, r.Len()), make([]dag.Time, r.Len())
		for i := range r.Kind {
			r.MeasuredStart[i] = dag.Time(i)
		}
	}
	half := make([]int32, 32)
	for i := range half {
		half[i] = int32(i)
	}
	var m Machine
	nodes, err := m.Place(jobs, make([]Placement, len(jobs)))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() (*dag.Trace, error)
	}{
		{"Merge", func() (*dag.Trace, error) { return Merge(context.Background(), jobs) }},
		{"OnNodes", func() (*dag.Trace, error) { return OnNodes(context.Background(), jobs, nodes) }},
		{"Repeat", func() (*dag.Trace, error) { return Repeat(context.Background(), t, 2) }},
		{"Scale", func() (*dag.Trace, error) { t, _, err := Scale(context.Background(), t, 1, 3); return t, err }},
		{"KeepRanks", func() (*dag.Trace, error) { t, _, err := KeepRanks(context.Background(), t, half); return t, err }},
		{"Window", func() (*dag.Trace, error) { t, _, err := Window(context.Background(), t, 5000, 10000); return t, err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			ops := int64(0)
			for b.Loop() {
				made, err := c.do()
				if err != nil {
					b.Fatal(err)
				}
				ops += max(made.Ops(), t.Ops())
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
