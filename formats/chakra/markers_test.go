package chakra

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim/ideal"
)

// TestWithoutMarkers checks on random ranks that dependencies instead of markers start all other ops at the same time.
func TestWithoutMarkers(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	all := int64(0)
	for n := range 2000 {
		b := dag.NewBuilder(1)
		r := b.Rank(0)
		for i := range 1 + random.IntN(30) {
			op := dag.Op{Kind: dag.Calc, Duration: dag.Time(1 + random.IntN(100))}
			if random.IntN(3) == 0 {
				op = dag.Op{Kind: dag.Calc, Subkind: dag.Marker}
				if random.IntN(8) == 0 {
					op.Name = "kept"
				}
			}
			at := r.Add(op)
			for k := range i {
				if random.IntN(i+1) < 2 {
					r.Requires(at, k)
				}
			}
		}
		trace := b.Trace()
		rank, removed := withoutMarkers(trace.Ranks[0])
		all += removed
		joined := &dag.Trace{Comms: trace.Comms, Ranks: []*dag.Rank{&rank}}
		if problems := dag.Validate(joined); len(problems) > 0 {
			t.Fatal(problems)
		}
		want, err := ideal.Run(trace)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ideal.Run(joined)
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		for i := range trace.Ranks[0].Len() {
			if onlyJoins(trace.Ranks[0], i) {
				continue
			}
			if rank.Op(k) != trace.Ranks[0].Op(i) || got.Start(0, k) != want.Start(0, i) {
				t.Fatalf("case %d: op %d is %+v at %v, expected %+v at %v", n, k, rank.Op(k), got.Start(0, k),
					trace.Ranks[0].Op(i), want.Start(0, i))
			}
			k++
		}
		if k != rank.Len() || int64(trace.Ranks[0].Len()-k) != removed {
			t.Fatalf("case %d: %d ops and %d markers removed, expected %d ops", n, rank.Len(), removed, k)
		}
	}
	if all < 1000 {
		t.Errorf("%d markers, too few to tell", all)
	}
}

// TestManyDependencies checks that a marker stays whose replacement needs many more dependencies.
func TestManyDependencies(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	for range 1000 {
		r.Calc(1)
	}
	marker := r.Add(dag.Op{Kind: dag.Calc, Subkind: dag.Marker})
	for i := range marker {
		r.Requires(marker, i)
	}
	for range 1000 {
		r.Calc(1, marker)
	}
	trace := b.Trace()
	if rank, removed := withoutMarkers(trace.Ranks[0]); removed != 0 || len(rank.Deps.Off) != 2000 {
		t.Errorf("%d markers removed, %d dependencies", removed, len(rank.Deps.Off))
	}
}

// TestSameTimesAsTrace checks that a trace and its files, which keep the collectives of Chakra, take the same time on
// the analytical backend: every rank finishes at the same nanosecond. With compat, bcasts take no time, as in ASTRA-sim.
func TestSameTimesAsTrace(t *testing.T) {
	g := gen.Named("horovod")
	c := g.New()
	if err := c.Params().Apply(param.Texts{"ranks": {"8"}, "batches": {"1"}}); err != nil {
		t.Fatal(err)
	}
	s, err := c.Source(&generator.Env{})
	if err != nil {
		t.Fatal(err)
	}
	trace, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err = collective.LowerNeeded(context.Background(), dag.FromTrace(trace), collective.Choice{},
		Format.Lacks.Collectives)
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	compat := quiet
	compat.Compat = true
	for _, f := range []*format.Format{&Format, &JSON} {
		files, _ := written(t, f, lowered, newWriteOptions())
		back := decode(t, f, files, quiet)
		for _, params := range [][]string{
			{"network=Ring(8)@50GB/s,500ns"}, {"network=Ring(4)_Switch(2)@100,50GB/s,500,900ns"},
			{"network=Switch(8)@50GB/s,500ns", "congestion=aware"},
		} {
			want, got := simulated(t, trace, "analytical", params...), simulated(t, back, "analytical", params...)
			for rank := range want.Finish {
				if got.Finish[rank] != want.Finish[rank] {
					t.Errorf("%s, %s: rank %d finishes at %v, expected %v", f.Name, params, rank, got.Finish[rank],
						want.Finish[rank])
					break
				}
			}
			replayed := simulated(t, decode(t, f, files, compat), "analytical", params...)
			if replayed.Makespan.Ticks >= got.Makespan.Ticks {
				t.Errorf("%s, %s: makespan %v as in ASTRA-sim, expected below %v", f.Name, params, replayed.Makespan,
					got.Makespan)
			}
		}
	}
}
