package gen_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/param"
)

// each runs a test for every generator.
func each(t *testing.T, test func(t *testing.T, g *generator.Generator)) {
	for _, g := range gen.All {
		t.Run(g.Name, func(t *testing.T) { test(t, g) })
	}
}

// env opens the files of parameters.
func env(t *testing.T) *generator.Env {
	return &generator.Env{
		Warn: t.Logf,
		Open: func(name string, read func(name string, r io.Reader) error) error {
			file, err := os.Open(name)
			if err != nil {
				return err
			}
			defer file.Close()
			return read(name, file)
		},
	}
}

// configure returns a configuration with texts of parameters, and its table. A seed other than 0 replaces the default.
func configure(t *testing.T, g *generator.Generator, texts param.Texts, seed int64) (generator.Config, param.Set) {
	t.Helper()
	c := g.New()
	set := c.Params()
	if err := set.Apply(texts); err != nil {
		t.Fatal(err)
	}
	if random, ok := c.(generator.Random); ok && seed != 0 {
		*random.RandomSeed() = seed
	}
	return c, set
}

// source returns the trace of the texts.
func source(t *testing.T, g *generator.Generator, texts param.Texts, seed int64) dag.Source {
	t.Helper()
	c, _ := configure(t, g, texts, seed)
	s, err := c.Source(env(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEntries checks names, titles and texts of the registry.
func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	each(t, func(t *testing.T, g *generator.Generator) {
		if !regexp.MustCompile(`^[a-z][a-z0-9]*$`).MatchString(g.Name) || seen[g.Name] || gen.Named(g.Name) != g {
			t.Errorf("name %q", g.Name)
		}
		seen[g.Name] = true
		if g.Title == "" || len(g.Title) > 90 || strings.ContainsAny(g.Title, "\n") || strings.HasSuffix(g.Title, ".") {
			t.Errorf("title %q", g.Title)
		}
		if !slices.Contains(generator.Groups(), g.Group) {
			t.Errorf("group %q", g.Group)
		}
		if !strings.HasPrefix(strings.ToLower(g.Page), g.Name+" generates ") {
			t.Errorf("page %q", g.Page)
		}
		for line := range strings.Lines(g.Page) {
			if len(strings.TrimSuffix(line, "\n")) > 110 {
				t.Errorf("page has the line %q", line)
			}
		}
		set := g.New().Params()
		for _, name := range slices.Concat(g.Exclusive...) {
			if set.Find(name) == nil {
				t.Errorf("excludes %s, which is no parameter", name)
			}
		}
		if p := set.Find(g.Argument); g.Argument != "" && (p == nil || !p.Key) {
			t.Errorf("argument %q is no key", g.Argument)
		}
		checkExample(t, g, set)
	})
	if gen.Named("none") != nil {
		t.Error("there is a generator none")
	}
}

// programFlags are the flags of examples that belong to programs.
var programFlags = []string{"to", "lower", "emit-spec", "backend"}

// checkExample checks that every flag of the examples exists.
func checkExample(t *testing.T, g *generator.Generator, set param.Set) {
	if !strings.Contains(g.Example, "tracegen "+g.Name) {
		t.Errorf("example %q", g.Example)
	}
	for _, flag := range regexp.MustCompile(`--([a-z0-9-]+)`).FindAllStringSubmatch(g.Example, -1) {
		if set.Find(flag[1]) == nil && !slices.Contains(programFlags, flag[1]) {
			t.Errorf("example has the flag --%s", flag[1])
		}
	}
}

// TestParameters checks the tables: names, help, defaults that can be set, and the list of values.
func TestParameters(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		_, set := configure(t, g, nil, 0)
		seen := map[string]bool{}
		for i := range set {
			p := &set[i]
			for _, name := range append([]string{p.Name}, p.Aliases...) {
				if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(name) || seen[name] {
					t.Errorf("parameter %q", name)
				}
				seen[name] = true
			}
			if p.Help == "" || strings.HasSuffix(p.Help, ".") {
				t.Errorf("%s: help %q", p.Name, p.Help)
			}
			text := p.Value.String()
			if p.Key || p.Repeated || text == "" {
				continue
			}
			_, fresh := configure(t, g, param.Texts{p.Name: {text}}, 0)
			if again := fresh.Find(p.Name).Value.String(); again != text {
				t.Errorf("%s: set to the default %q it is %q", p.Name, text, again)
			}
		}
		_, random := g.New().(generator.Random)
		if hasSeed := set.Find("seed") != nil; hasSeed != random {
			t.Errorf("seed is a parameter: %v, declared as random: %v", hasSeed, random)
		}
	})
}

// TestValues checks that all parameters are listed with the values that they were set to.
func TestValues(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		_, set := configure(t, g, g.Large, 0)
		var names []string
		for _, v := range generator.Values(set) {
			names = append(names, v.Name)
			if texts := g.Large[v.Name]; texts != nil && v.Value != strings.Join(texts, ",") {
				t.Errorf("%s is %q, set to %q", v.Name, v.Value, texts)
			}
		}
		if !slices.Equal(names, set.Names()) {
			t.Errorf("values of %v, parameters %v", names, set.Names())
		}
		for name := range g.Large {
			if set.Find(name) == nil {
				t.Errorf("%s is no parameter", name)
			}
		}
	})
}

// TestTrace checks that traces are valid, and that batches, readers and the whole trace agree.
func TestTrace(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		s := source(t, g, g.Small, 0)
		defer s.Close()
		h, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		want, err := dag.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(want); len(problems) > 0 {
			t.Fatal(problems[0])
		}
		if h.Ranks != len(want.Ranks) || h.Ops != want.Ops() || h.Title == "" {
			t.Errorf("%d ranks and %d ops, title %q; the trace has %d and %d", h.Ranks, h.Ops, h.Title, len(want.Ranks),
				want.Ops())
		}
		for _, kind := range want.Kinds() {
			if !slices.Contains(h.Kinds, kind) {
				t.Errorf("ops of the kind %v, declared are %v", kind, h.Kinds)
			}
		}
		next, first, second := 0, s.NewReader(dag.All), s.NewReader(dag.All)
		for _, b := range h.Batches {
			if b.First != next {
				t.Fatalf("batch %+v begins after rank %d", b, next)
			}
			next = b.Last
			for _, read := range []dag.Reader{first, second} {
				ranks, err := read(b)
				if err != nil || !reflect.DeepEqual(ranks, want.Ranks[b.First:b.Last]) {
					t.Fatalf("batch %+v differs from the trace, error %v", b, err)
				}
			}
		}
		if next != h.Ranks {
			t.Errorf("batches end at rank %d of %d", next, h.Ranks)
		}
	})
}

// write returns the store of a trace.
func write(t *testing.T, s dag.Source) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := store.WriteSource(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSeeds checks that equal seeds give equal bytes, whatever the number of processors, and other seeds other bytes.
func TestSeeds(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		want := write(t, source(t, g, g.Small, 5))
		processors := runtime.GOMAXPROCS(1)
		again := write(t, source(t, g, g.Small, 5))
		runtime.GOMAXPROCS(processors)
		if !bytes.Equal(again, want) {
			t.Error("the same seed gives other bytes")
		}
		if _, random := g.New().(generator.Random); random && bytes.Equal(write(t, source(t, g, g.Small, 6)), want) {
			t.Error("another seed gives the same bytes")
		}
	})
}

// TestStreaming checks that a trace written batch by batch has the bytes of the trace in memory.
func TestStreaming(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		runs := []param.Texts{g.Small, g.Large}
		if g.Name == "pattern" {
			runs = append(runs, long[g.Name])
		}
		for _, texts := range runs {
			s := source(t, g, texts, 3)
			whole, err := dag.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			if err := store.Write(&want, whole); err != nil {
				t.Fatal(err)
			}
			for _, processors := range []int{1, 4} {
				before := runtime.GOMAXPROCS(processors)
				got := write(t, s)
				runtime.GOMAXPROCS(before)
				if !bytes.Equal(got, want.Bytes()) {
					t.Errorf("%v on %d processors: the stream has other bytes than the trace in memory", texts, processors)
				}
			}
		}
	})
}

// long are parameters of traces of several batches.
var long = map[string]param.Texts{
	"horovod":      {"ranks": {"512"}},
	"llm":          {"dp": {"64"}, "layers": {"8"}, "steps": {"150"}},
	"fft":          {"iterations": {"1000"}},
	"graph500":     {"scale": {"20"}, "ranks": {"64"}},
	"masterworker": {"ranks": {"64"}, "tasks": {"200000"}},
	"nbody":        {"ranks": {"64"}, "steps": {"100"}},
	"stencil":      {"grid": {"8x8"}, "cells": {"64x64"}, "iterations": {"2000"}},
	"sweep3d":      {"iterations": {"100"}},
	"collective":   {"ranks": {"20000"}, "repeat": {"40"}},
	"pattern":      {"name": {"alltoall"}, "ranks": {"64"}, "iterations": {"100"}},
	"schedgen":     {"pattern": {"random_bisect"}, "ranks": {"400000"}},
}

// TestMemory checks that no more than a batch of a long trace is in use, beside the model.
func TestMemory(t *testing.T) {
	const (
		opBytes   = 96      // of a batch, with its dependencies and strings
		emptyRank = 1 << 10 // of a batch
		rankBytes = 40      // of the trace
		model     = 8 << 20
	)
	for name, texts := range long {
		t.Run(name, func(t *testing.T) {
			before := inUse()
			s := source(t, gen.Named(name), texts, 0)
			h, err := s.Header()
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Batches) < 3 {
				t.Fatalf("%d batches of %d ops", len(h.Batches), h.Ops)
			}
			read := s.NewReader(dag.All)
			largest := int64(0)
			for k, b := range h.Batches {
				largest = max(largest, opBytes*b.Ops+int64(emptyRank*(b.Last-b.First)))
				ranks, err := read(b)
				if err != nil {
					t.Fatal(err)
				}
				if k%max(1, len(h.Batches)/4) > 0 {
					continue
				}
				if used, limit := inUse()-before, largest+model+int64(rankBytes*h.Ranks); used > limit {
					t.Fatalf("after batch %d of %d, of at most %d bytes, %d bytes are in use, expected at most %d", k,
						len(h.Batches), largest, used, limit)
				}
				runtime.KeepAlive(ranks)
			}
		})
	}
}

// inUse returns the bytes of reachable objects.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSparseNumbers sets each parameter to a number far from all others, and checks that a generator refuses it or
// does without memory for the numbers in between.
func TestSparseNumbers(t *testing.T) {
	const limit = 128 << 20
	each(t, func(t *testing.T, g *generator.Generator) {
		_, set := configure(t, g, nil, 0)
		for _, name := range set.Names() {
			texts := maps.Clone(g.Small)
			if texts == nil {
				texts = param.Texts{}
			}
			texts[name] = []string{"2000000000"}
			c := g.New()
			if c.Params().Apply(texts) != nil {
				continue
			}
			// Large counts take long; the context ends the count.
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			e := env(t)
			e.Context = ctx
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, err := c.Source(e)
			if err == nil {
				h, err := s.Header()
				if err == nil && len(h.Batches) > 0 && h.Batches[0].Ops < 1<<20 {
					_, _ = s.NewReader(dag.All)(h.Batches[0])
				}
				s.Close()
			}
			runtime.ReadMemStats(&after)
			cancel()
			if n := after.TotalAlloc - before.TotalAlloc; n > limit {
				t.Errorf("--%s 2000000000 allocates %d MiB, error %v", name, n>>20, err)
			}
		}
	})
}

// cost returns the number of ops of a trace and the bytes that generating it allocates.
func cost(t *testing.T, g *generator.Generator, texts param.Texts) (ops, allocated float64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := source(t, g, texts, 0)
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		if _, err := read(b); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return float64(h.Ops), float64(after.TotalAlloc - before.TotalAlloc)
}

// TestCost checks that allocations grow in proportion to ops at most.
func TestCost(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		cost(t, g, g.Small) // fills caches
		ops, allocated := cost(t, g, g.Small)
		moreOps, more := cost(t, g, g.Large)
		if moreOps < 2*ops {
			t.Errorf("%v ops, and %v in the larger run", ops, moreOps)
		}
		if more/moreOps > 1.5*allocated/ops {
			t.Errorf("%.0f bytes per op of %v, %.0f per op of %v", allocated/ops, ops, more/moreOps, moreOps)
		}
	})
}

// TestDocumentation checks the table of flags in the page of each generator. -update rewrites it.
func TestDocumentation(t *testing.T) {
	each(t, func(t *testing.T, g *generator.Generator) {
		page := "../../docs/reference/generators/" + g.Name + ".md"
		golden.Section(t, page, "<!-- flags of "+g.Name+" -->\n", "<!-- end of flags -->", g.New().Params().Flags().Markdown("Flags"))
	})
}
