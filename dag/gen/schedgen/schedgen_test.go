package schedgen

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestEmitter: sends and receives since the mark are first, last or neither, whatever the kind of dependency; a
// repeated dependency stays, and dependents keep their order.
func TestEmitter(t *testing.T) {
	var b dag.RankBuilder
	before := b.Calc(5)
	e := NewEmitter(&b)
	e.Requires(e.Send(1, 10, 0), before)
	e.Mark()
	a := e.Send(1, 10, dag.AnyTag)
	c := e.Calc(7, 3)
	r := e.Recv(2, 20, 1<<32-2)
	s := e.Send(3, 30, 4)
	e.Requires(s, r)
	e.Requires(s, r)
	e.IRequires(r, a)
	e.Requires(a, before)
	e.Requires(r, c)
	e.Requires(a, c)
	if first := e.First(nil); len(first) != 0 {
		t.Errorf("first %v, expected none", first)
	}
	if last := e.Last([]int{99}); !slices.Equal(last, []int{99, s}) {
		t.Errorf("last %v, expected 99 and %d", last, s)
	}
	e.Mark()
	x, y := e.Recv(1, 1, 1), e.Recv(2, 2, 2)
	e.Requires(x, s)
	if first, last := e.First(nil), e.Last(nil); !slices.Equal(first, []int{y}) || !slices.Equal(last, []int{x, y}) {
		t.Errorf("first %v, last %v, expected %d, and both %d and %d", first, last, y, x, y)
	}
	rank := b.Rank()
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	if got := rank.Dependents(); !slices.Equal(got.Of(r), []int32{int32(s), int32(s)}) ||
		!slices.Equal(got.Of(c), []int32{int32(r), int32(a)}) {
		t.Errorf("dependents of %d are %v, of %d %v", r, got.Of(r), c, got.Of(c))
	}
	want := []dag.Op{
		{Kind: dag.Calc, Duration: 5}, {Kind: dag.Send, Peer: 1, Bytes: 10}, {Kind: dag.Send, Peer: 1, Bytes: 10, Tag: -1},
		{Kind: dag.Calc, Duration: 7, Stream: 3}, {Kind: dag.Recv, Peer: 2, Bytes: 20, Tag: 1<<32 - 2},
		{Kind: dag.Send, Peer: 3, Bytes: 30, Tag: 4}, {Kind: dag.Recv, Peer: 1, Bytes: 1, Tag: 1},
		{Kind: dag.Recv, Peer: 2, Bytes: 2, Tag: 2},
	}
	for i, op := range want {
		if rank.Op(i) != op {
			t.Errorf("op %d is %+v, expected %+v", i, rank.Op(i), op)
		}
	}
}

// TestCollectives: collectives on any number of ranks, with any root, have nothing wrong.
func TestCollectives(t *testing.T) {
	collectives := map[string]func(*Emitter, Call){
		"dissemination": Dissemination, "binomial bcast": BinomialBcast, "binomial reduce": BinomialReduce,
		"linear alltoall": LinearAlltoall, "recursive doubling": RecursiveDoubling,
	}
	for name, collective := range collectives {
		for ranks := 1; ranks <= 34; ranks++ {
			for _, root := range []int{0, ranks / 2, ranks - 1} {
				b := dag.NewBuilder(ranks)
				for rank := range ranks {
					collective(NewEmitter(b.Rank(rank)), Call{Ranks: ranks, Rank: rank, Root: root, Bytes: 8, Tag: 77})
				}
				tr := b.Trace()
				if problems := dag.Validate(tr); len(problems) > 0 || b.Err() != nil {
					t.Fatalf("%s on %d ranks, root %d: %v, error %v", name, ranks, root, problems, b.Err())
				}
			}
		}
	}
}

// TestRecursiveDoubling lists the ops of the seven ranks of a group, which is not a power of two.
func TestRecursiveDoubling(t *testing.T) {
	for rank, want := range []string{
		"send 1, recv 1",
		"recv 0, send 3 after 0, recv 3, send 5 after 2, recv 5, send 0 after 4",
		"send 3, recv 3",
		"recv 2, send 1 after 0, recv 1, send 6 after 2, recv 6, send 2 after 4",
		"send 5, recv 5",
		"recv 4, send 6 after 0, recv 6, send 1 after 2, recv 1, send 4 after 4",
		"send 5, recv 5, send 3 after 1, recv 3",
	} {
		var b dag.RankBuilder
		RecursiveDoubling(NewEmitter(&b), Call{Ranks: 7, Rank: rank, Bytes: 8})
		r := b.Rank()
		var ops []string
		for i, kind := range r.Kind {
			op := fmt.Sprintf("%v %d", kind, r.Peer.At(i))
			for _, off := range r.Deps.Of(i) {
				op += fmt.Sprintf(" after %d", i-int(off))
			}
			ops = append(ops, op)
		}
		if got := strings.Join(ops, ", "); got != want {
			t.Errorf("rank %d: %s, expected %s", rank, got, want)
		}
	}
}

func TestNWayRounds(t *testing.T) {
	for _, c := range [][3]int{
		{1, 1, 0}, {1, 2, 1}, {1, 8, 3}, {1, 9, 4}, {2, 9, 2}, {2, 27, 3}, {2, 28, 4}, {4, 124, 3}, {4, 125, 4}, {4, 126, 4},
		{6, 16807, 6}, {9, 1000, 3}, {65536, 65537, 1},
	} {
		if got := nwayRounds(c[0], c[1]); got != c[2] {
			t.Errorf("%d-way on %d ranks: %d rounds, expected %d", c[0], c[1], got, c[2])
		}
	}
	for _, x := range inexact {
		power := 1
		for power < x[1] {
			power *= x[0] + 1
		}
		if power != x[1] || power > maxRanks {
			t.Errorf("%d is no power of %d, or too large", x[1], x[0]+1)
		}
	}
}

func TestDeterministic(t *testing.T) {
	for _, pattern := range []string{"random_bisect", "linear_alltoallv", "resnet"} {
		p := Default()
		p.Ranks, p.Bytes = 100, 1000
		want, err := readAll(NewSource(pattern, p, 3))
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.GOMAXPROCS(1)
		got, err := readAll(NewSource(pattern, p, 3))
		runtime.GOMAXPROCS(before)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s depends on the number of processors, error %v", pattern, err)
		}
	}
}

// TestVariants: the two programs differ as docs/reference/generators/schedgen.md describes.
func TestVariants(t *testing.T) {
	for _, pattern := range Patterns() {
		if len(pattern.Has) == 1 {
			continue
		}
		p := Default()
		p.Bytes = 1000
		upstream, err := readAll(NewSource(pattern.Name, p, 1))
		if err != nil {
			t.Fatal(err)
		}
		p.Variant = ATLAHS
		atlahs, err := readAll(NewSource(pattern.Name, p, 1))
		if err != nil {
			t.Fatal(err)
		}
		differ := slices.Contains([]string{"allreduce_ring", "chained_dissem", "random_bisect", "random_bisect_fd_sym"},
			pattern.Name)
		if got := !reflect.DeepEqual(upstream.Ranks, atlahs.Ranks); got != differ {
			t.Errorf("%s: the variants differ: %v, expected %v", pattern.Name, got, differ)
		}
	}
}

func TestRefused(t *testing.T) {
	for want, c := range map[string]struct {
		pattern string
		change  func(p *Params)
	}{
		"upstream has no pattern \"resnet152\"":        {"resnet152", func(p *Params) {}},
		"variant is 2, expected 0..1":                  {"gather", func(p *Params) { p.Variant = 2 }},
		"ranks is 0, expected 1..16777216":             {"gather", func(p *Params) { p.Ranks = 0 }},
		"ranks is 16777217, expected 1..":              {"gather", func(p *Params) { p.Ranks = 1<<24 + 1 }},
		"bytes is -1, expected 0..274877906944":        {"gather", func(p *Params) { p.Bytes = -1 }},
		"root is 8, expected 0..7":                     {"gather", func(p *Params) { p.Root = 8 }},
		"root is -1, expected 0..7":                    {"binomialtreereduce", func(p *Params) { p.Root = -1 }},
		"segmentsize is 0, expected 1..":               {"pipelinedring", func(p *Params) { p.SegmentSize = 0 }},
		"expected fewer than 1073741824 segment":       {"pipelinedring", func(p *Params) { p.Bytes = 1 << 38 }},
		"nway is 0, expected 1..65536":                 {"gather", func(p *Params) { p.NWay = 0 }},
		"cpu is 256, expected 0..255":                  {"gather", func(p *Params) { p.CPU = 256 }},
		"nb is -2ps, expected 0 or more":               {"gather", func(p *Params) { p.NB = -2 }},
		"nb-poll is -1ps, expected 0 or more":          {"gather", func(p *Params) { p.NBPoll = -1 }},
		"fewer than 1073741824 computations":           {"gather", func(p *Params) { p.NB, p.NBPoll = dag.MaxTime, 1 }},
		"rpl-dep-cmp is -2ps, expected 0 or":           {"gather", func(p *Params) { p.RplDepCmp = -2 }},
		"a2av-skew-ratio is 0, expected 1 or":          {"gather", func(p *Params) { p.SkewRatio = 0 }},
		"a2av-skew-ratio is 2, expected at most bytes": {"linear_alltoallv", func(p *Params) { p.SkewRatio = 2 }},
		"ranks is 1, expected 2 or more":               {"random_bisect", func(p *Params) { p.Ranks = 1 }},
		"ranks is 70000, expected at most 65536":       {"linear_alltoallv", func(p *Params) { p.Ranks = 70000 }},
	} {
		p := Default()
		c.change(&p)
		if _, err := readAll(NewSource(c.pattern, p, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
	p := Default()
	p.NB, p.NBPoll = dag.MaxTime, dag.MaxTime-1
	if tr, err := readAll(NewSource("gather", p, 1)); err != nil || tr.Ranks[0].Len() != 2+7 {
		t.Errorf("the longest computation in two parts: error %v", err)
	}
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
