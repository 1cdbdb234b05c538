package rescale

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/param"
)

// Generate returns the trace of a generator with settings such as "stencil grid=4x4 periodic=true".
func Generate(t testing.TB, text string) *dag.Trace {
	t.Helper()
	words := strings.Fields(text)
	config := gen.Named(words[0]).New()
	set := config.Params()
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if err := set.Apply(param.Texts{name: {value}}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := config.Source(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// planned returns a target for a trace whose ranks can be made.
func planned(t *testing.T, tr *dag.Trace, o Options) *target {
	t.Helper()
	m, err := analyze(context.Background(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := m.targetFor(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.assignDonors(context.Background()); err != nil {
		t.Fatal(err)
	}
	g.makeComms()
	g.findVarying()
	return g
}

// TestSource checks that a trace that is made batch by batch equals the one that is made as a whole, and that its
// messages and collectives fit.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		generator string
		o         Options
	}{
		{"stencil grid=4x4 allreduces=1", Options{Ranks: 400}},
		{"stencil grid=4x4 periodic=true", Options{Ranks: 144}},
		{"pattern name=binomial ranks=16", Options{Ranks: 256}},
		{"pattern name=ring ranks=16", Options{Ranks: 300}},
		{"sweep3d grid=4x4", Options{Ranks: 256, Grid: []int{16, 16}}},
		{"fft size=256x256x256 grid=4x4", Options{Ranks: 64, Scaling: Strong}},
	} {
		g := planned(t, Generate(t, c.generator), c.o)
		if ok, err := g.fits(context.Background()); err != nil || !ok {
			t.Errorf("%s: fits %v, %v, expected that the calls fit", c.generator, ok, err)
		}
		s, err := g.source(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got, err := dag.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(got); len(problems) > 0 {
			t.Errorf("%s: %v", c.generator, problems[0])
		}
		h, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		ops := int64(0)
		for rank, r := range got.Ranks {
			ops += int64(r.Len())
			made, err := g.newTemplate(rank) // all columns of its own
			if err != nil {
				t.Fatal(err)
			}
			for i := range dag.Fields {
				f := &dag.Fields[i]
				if a, b := f.Of(r), f.Of(&made.rank); a.Len() != b.Len() || a.Present() != b.Present() {
					t.Fatalf("%s: rank %d: column %s differs", c.generator, rank, f.Name)
				}
			}
			for i := range r.Len() {
				if a, b := r.Op(i), made.rank.Op(i); a != b || !slices.Equal(r.Deps.Of(i), made.rank.Deps.Of(i)) {
					t.Fatalf("%s: rank %d: op %d is %+v, expected %+v", c.generator, rank, i, a, b)
				}
			}
		}
		if ops != h.Ops || len(got.Ranks) != h.Ranks {
			t.Errorf("%s: %d ops of %d ranks, header %d of %d", c.generator, ops, len(got.Ranks), h.Ops, h.Ranks)
		}
	}
}

// TestFits checks that calls which do not fit together are seen.
func TestFits(t *testing.T) {
	tr := Generate(t, "stencil grid=4x4 allreduces=1")
	find := func(g *target, kind dag.Kind) *call {
		for i := range g.calls {
			if c := &g.calls[i]; c.kind == kind && g.slots[g.instances[i].slot].call != nil {
				return c
			}
		}
		return nil
	}
	for _, c := range []struct {
		name   string
		damage func(g *target)
	}{
		{"another partner", func(g *target) { find(g, dag.Send).at[0] += 5 }},
		{"no partner", func(g *target) { *find(g, dag.Recv) = call{kind: dag.Recv, rule: anyone} }},
		{"a collective too few", func(g *target) {
			bits := []byte(g.patterns[0].bits)
			for i := range g.calls {
				if g.calls[i].kind == dag.Coll {
					bits[i/8] &^= 1 << (i % 8)
				}
			}
			g.patterns[0].bits = string(bits)
		}},
	} {
		g := planned(t, tr, Options{Ranks: 64})
		c.damage(g)
		if ok, err := g.fits(context.Background()); err != nil || ok {
			t.Errorf("%s: fits %v, %v, expected that the calls do not fit", c.name, ok, err)
		}
	}
}

// TestSourceEnds checks that making a trace ends with its context.
func TestSourceEnds(t *testing.T) {
	g := planned(t, Generate(t, "stencil grid=4x4"), Options{Ranks: 1024})
	ctx, cancel := context.WithCancel(context.Background())
	s, err := g.source(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := dag.ReadAll(s); !errors.Is(err, context.Canceled) {
		t.Errorf("reading: error %v, expected the end of the context", err)
	}
	if _, err := g.fits(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("checking: error %v, expected the end of the context", err)
	}
	if _, err := s.NewReader(dag.All)(dag.Batch{First: 0, Last: 1025}); err == nil {
		t.Error("no error for a batch of other ranks")
	}
}
