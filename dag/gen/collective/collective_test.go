package collective

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/ideal"
)

// TestRuns makes every collective in groups of several shapes, and checks that the trace has nothing wrong, can be
// lowered, takes just the computation without a network, and is the same rank by rank.
func TestRuns(t *testing.T) {
	choice, err := collective.ParseChoice("default")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range Types() {
		for _, shape := range []struct{ ranks, group, stride, root int }{
			{1, 0, 1, 0}, {6, 0, 1, 5}, {12, 4, 1, 2}, {12, 3, 2, 2}, {12, 3, 4, 0}, {12, 12, 1, 7}, {5, 1, 1, 0},
			{6, 1, 3, 0},
		} {
			p := Default()
			p.Type, p.Size, p.Repeat, p.Compute = kind, 1000, 3, 7*dag.Microsecond
			p.Ranks, p.Group, p.Stride, p.Root = shape.ranks, shape.group, shape.stride, shape.root
			what := fmt.Sprintf("%+v", p)
			s, err := NewSource(p)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			tr, err := dag.ReadAll(s)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if problems := dag.Validate(tr); len(problems) > 0 {
				t.Fatalf("%s: %v", what, problems)
			}
			timeline, err := ideal.Run(tr)
			if err != nil || !timeline.Result.Complete || timeline.Makespan() != 2*p.Compute {
				t.Errorf("%s: makespan %v, error %v", what, timeline.Makespan(), err)
			}
			if _, err := collective.Lower(context.Background(), tr, choice); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			h, err := s.Header()
			if err != nil {
				t.Fatal(err)
			}
			var ranks []*dag.Rank
			read := s.NewReader(dag.All)
			for _, b := range h.Batches {
				some, err := read(b)
				if err != nil {
					t.Fatal(err)
				}
				ranks = append(ranks, some...)
			}
			if !reflect.DeepEqual(ranks, tr.Ranks) || h.Ops != tr.Ops() {
				t.Errorf("%s: not the same rank by rank", what)
			}
		}
	}
}

// TestOps looks at every op of a small benchmark.
func TestOps(t *testing.T) {
	tr, err := readAll(NewSource(Params{
		Type: dag.Bcast, Size: 1 << 20, Ranks: 8, Group: 2, Stride: 2, Root: 1, Repeat: 2, Compute: 5, Dims: 0b101,
		Priority: -3,
	}))
	if err != nil {
		t.Fatal(err)
	}
	for g, want := range []string{"0 1 2 3 4 5 6 7", "0 2", "1 3", "4 6", "5 7"} {
		if got := strings.Trim(fmt.Sprint(tr.Comms[g].Members()), "[]"); got != want {
			t.Errorf("communicator %d is %s, expected %s", g, got, want)
		}
		if name := tr.Comms[g].Name; g > 0 && name != fmt.Sprint(g) {
			t.Errorf("communicator %d has the name %q", g, name)
		}
	}
	comms, roots := []int32{1, 2, 1, 2, 3, 4, 3, 4}, []int32{2, 3, 2, 3, 6, 7, 6, 7}
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		bcast := dag.Op{
			Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 1 << 20, Peer: roots[rank], Comm: comms[rank], Stream: 2,
			Dims: 0b101, Priority: -3,
		}
		want := []dag.Op{bcast, {Kind: dag.Calc, Duration: 5}, bcast}
		got := []dag.Op{}
		for i := range r.Len() {
			got = append(got, r.Op(i))
			if off := r.Deps.Of(i); i > 0 && !slices.Equal(off, []int32{1}) || i == 0 && len(off) > 0 {
				t.Errorf("rank %d, op %d depends on %v before", rank, i, off)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("rank %d is %+v, expected %+v", rank, got, want)
		}
	}
}

// TestSizes compares the contributions of each rank with the model of the collective.
func TestSizes(t *testing.T) {
	for _, kind := range Types() {
		p := Default()
		p.Type, p.Size, p.Ranks, p.Root = kind, 100, 3, 1
		tr, err := readAll(NewSource(p))
		if err != nil {
			t.Fatal(err)
		}
		for rank := range tr.Ranks {
			want := int64(100)
			if kind == dag.Barrier || kind == dag.Scatter && rank != p.Root {
				want = 0
			}
			if got := tr.Ranks[rank].Bytes.At(0); got != want {
				t.Errorf("%v: rank %d has %d bytes, expected %d", kind, rank, got, want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		`type is "gatherv", expected one of allreduce, `: func(p *Params) { p.Type = dag.Gatherv },
		`type is ""`:                          func(p *Params) { p.Type = dag.NoSubkind },
		"size is -1":                          func(p *Params) { p.Size = -1 },
		"size is 9223372036854775807":         func(p *Params) { p.Size = math.MaxInt64 },
		"ranks is 0, expected 1..16777216":    func(p *Params) { p.Ranks = 0 },
		"ranks is 16777217":                   func(p *Params) { p.Ranks = 1<<24 + 1 },
		"group is 9, expected 0..8":           func(p *Params) { p.Group = 9 },
		"group is -1":                         func(p *Params) { p.Group = -1 },
		"stride is 0":                         func(p *Params) { p.Stride = 0 },
		"stride is 9, expected 1..8":          func(p *Params) { p.Stride = 9 },
		"stride is 2, but there are no group": func(p *Params) { p.Stride = 2 },
		"multiple of group x stride, 6":       func(p *Params) { p.Group, p.Stride = 2, 3 },
		"root is 4, expected 0..3":            func(p *Params) { p.Group, p.Root = 4, 4 },
		"root is -1":                          func(p *Params) { p.Root = -1 },
		"repeat is 0":                         func(p *Params) { p.Repeat = 0 },
		"rank 0 has 4294967293 ops":           func(p *Params) { p.Repeat, p.Compute = 1<<31-1, 1 },
		"compute time is -1ps":                func(p *Params) { p.Compute = -1 },
		"dims is -2147483648":                 func(p *Params) { p.Dims = math.MinInt32 },
	} {
		p := Default()
		change(&p)
		if _, err := NewSource(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}

func BenchmarkSource(b *testing.B) {
	p := Default()
	p.Ranks = 1_000_000
	ranks := 0
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewSource(p)
		if err != nil {
			b.Fatal(err)
		}
		h, err := s.Header()
		if err != nil {
			b.Fatal(err)
		}
		read := s.NewReader(dag.All)
		for _, batch := range h.Batches {
			some, err := read(batch)
			if err != nil {
				b.Fatal(err)
			}
			ranks += len(some)
		}
	}
	b.ReportMetric(float64(ranks)/b.Elapsed().Seconds(), "ranks/s")
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
