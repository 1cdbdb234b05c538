package rescale_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/rescale"
)

// swap adds an exchange of messages with a rank, if it exists.
func swap(n, with int, bytes int64, add func(dag.Op)) {
	if with >= 0 && with < n {
		add(dag.Op{Kind: dag.Send, Peer: int32(with), Bytes: bytes})
		add(dag.Op{Kind: dag.Recv, Peer: int32(with), Bytes: bytes})
	}
}

// oddEven is rounds of exchanges of pairs of ranks that alternate.
func oddEven(n, rounds int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for i := range rounds {
			add(dag.Op{Duration: 1000})
			swap(n, rank+1-2*((i+rank)%2), 256, add)
		}
	})
}

// stages is a pipeline of blocks.
func stages(n, blocks int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range blocks {
			if rank > 0 {
				add(dag.Op{Kind: dag.Recv, Peer: int32(rank - 1), Bytes: 64})
			}
			add(dag.Op{Duration: 1000})
			if rank < n-1 {
				add(dag.Op{Kind: dag.Send, Peer: int32(rank + 1), Bytes: 64})
			}
		}
	})
}

// turns is shifts of blocks along the rows of a grid, which are periodic.
func turns(x, y, rounds int) *dag.Trace {
	return calls(x*y, func(rank int, add func(dag.Op)) {
		col, row := rank%x, rank-rank%x
		for range rounds {
			add(dag.Op{Duration: 1000})
			add(dag.Op{Kind: dag.Send, Peer: int32(row + (col+1)%x), Bytes: 64})
			add(dag.Op{Kind: dag.Recv, Peer: int32(row + (col+x-1)%x), Bytes: 64})
		}
		for tag, to := range []int{rank + x, rank - x} { // borders of the columns
			if to >= 0 && to < x*y {
				add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 64, Tag: int64(1 + tag)})
			}
			if from := 2*rank - to; from >= 0 && from < x*y {
				add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 64, Tag: int64(1 + tag)})
			}
		}
	})
}

// borders is a halo exchange on a periodic grid of x by y ranks of a whole of n by n elements of 8 bytes, with elements
// for corners along each dimension.
func borders(x, y, n, alongX, alongY int) *dag.Trace {
	return calls(x*y, func(rank int, add func(dag.Op)) {
		col, row := rank%x, rank/x
		for tag, d := range [][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			bytes := int64(8 * (n/y + alongX))
			if d[1] != 0 {
				bytes = int64(8 * (n/x + alongY))
			}
			at := func(sign int) int32 { return int32((row+y+sign*d[1])%y*x + (col+x+sign*d[0])%x) }
			add(dag.Op{Kind: dag.Send, Peer: at(1), Bytes: bytes, Tag: int64(tag)})
			add(dag.Op{Kind: dag.Recv, Peer: at(-1), Bytes: bytes, Tag: int64(tag)})
		}
		add(dag.Op{Duration: dag.Time(1 << 20 / (x * y))})
	})
}

// torus is a halo exchange on a periodic grid, with a tag for each direction.
func torus(grid ...int) *dag.Trace {
	n := 1
	for _, extent := range grid {
		n *= extent
	}
	return calls(n, func(rank int, add func(dag.Op)) {
		for d, stride := 0, 1; d < len(grid); stride, d = stride*grid[d], d+1 {
			at := rank / stride % grid[d]
			for k, step := range []int{1, grid[d] - 1} {
				to := rank + ((at+step)%grid[d]-at)*stride
				from := rank + ((at+grid[d]-step)%grid[d]-at)*stride
				add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 64, Tag: int64(2*d + k)})
				add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 64, Tag: int64(2*d + k)})
			}
		}
		add(dag.Op{Duration: 1000})
	})
}

// nodes is messages of the ranks of each node of four to its first one, which collects them.
func nodes(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 2 {
			add(dag.Op{Duration: 1000})
			for k := 1; k < 4 && rank%4 == 0; k++ {
				add(dag.Op{Kind: dag.Recv, Peer: int32(rank + k), Bytes: 4096, Tag: 5})
			}
			if rank%4 != 0 {
				add(dag.Op{Kind: dag.Send, Peer: int32(rank - rank%4), Bytes: 4096, Tag: 5})
			}
			add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
		}
	})
}

// blocks is blocks of a whole of elements of 8 bytes that go around a ring.
func blocks(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		bytes := int64(32000/n) * 8
		for range 2 {
			add(dag.Op{Kind: dag.Send, Peer: int32((rank + 1) % n), Bytes: bytes})
			add(dag.Op{Kind: dag.Recv, Peer: int32((rank + n - 1) % n), Bytes: bytes})
		}
		add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	})
}

// counted is an allreduce of one number of 4 bytes for each rank.
func counted(n int) *dag.Trace {
	return calls(n, func(_ int, add func(dag.Op)) {
		add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: int64(4 * n)})
	})
}

// halved is a reduction by exclusive or in which the parts of a vector halve.
func halved(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for d, bytes := 1, int64(1<<16); d < n; d, bytes = 2*d, bytes/2 {
			swap(n, rank^d, bytes/2, add)
		}
	})
}

// scattered is a reduction in nodes of x ranks, and then of the parts of each rank of a node.
func scattered(x, y int) *dag.Trace {
	t := leaders(x, y)
	t.Comms = t.Comms[:1+y]
	for col := range x {
		t.Comms = append(t.Comms, dag.Comm{Ranges: []dag.Range{{First: int32(col), Stride: int32(x), Count: int32(y)}}})
	}
	for rank := range t.Ranks {
		var b dag.RankBuilder
		b.Add(dag.Op{Kind: dag.Coll, Subkind: dag.ReduceScatter, Bytes: 4096, RecvBytes: 4096 / int64(x),
			Comm: int32(1 + rank/x)})
		b.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 4096 / int64(x), Comm: int32(1 + y + rank%x)})
		r := b.Rank()
		t.Ranks[rank] = r.Keep()
	}
	return t
}

// TestDoubts checks that traces which several programs have are refused, and that each of these programs is right with
// the option or the traces that tell it.
func TestDoubts(t *testing.T) {
	traces := func(all ...*dag.Trace) []*dag.Trace { return all }
	fixed, growing := rescale.Options{FixedRounds: true}, rescale.Options{GrowingRounds: true}
	strong, likeliest := rescale.Options{Scaling: rescale.Strong}, rescale.Options{Likeliest: true}
	stencil := func(grid string) *dag.Trace { return generate(t, "stencil grid="+grid) }
	type remedy struct {
		o      rescale.Options
		others []*dag.Trace
		want   *dag.Trace
	}
	for _, c := range []struct {
		name     string
		from     *dag.Trace
		o        rescale.Options
		want     string
		remedies []remedy
	}{
		{"iterations or a sort", oddEven(16, 16), rescale.Options{Ranks: 64}, "7 (fixed) or 31 (N/2 - 1)", []remedy{
			{fixed, nil, oddEven(64, 16)}, {growing, nil, oddEven(64, 64)},
			{rescale.Options{}, traces(oddEven(32, 32)), oddEven(64, 64)},
			{rescale.Options{}, traces(oddEven(32, 16)), oddEven(64, 16)}}},
		{"blocks", stages(16, 32), rescale.Options{Ranks: 48}, "32 (fixed) or 96 (2 N)", []remedy{
			{fixed, nil, stages(48, 32)}, {growing, nil, stages(48, 96)},
			{rescale.Options{}, traces(stages(24, 48)), stages(48, 96)}}},
		{"a ring in rows", turns(4, 4, 3), rescale.Options{Ranks: 64}, "3 (fixed) or 7 (Nx - 1)", []remedy{
			{fixed, nil, turns(8, 8, 3)}, {growing, nil, turns(8, 8, 7)},
			{rescale.Options{}, traces(turns(8, 4, 7)), turns(8, 8, 7)}}},
		{"panels", panels(4, 4, 1<<10), rescale.Options{Ranks: 64, Scaling: rescale.Strong},
			"8 (max(Nx, Ny)) or 4 (fixed)", []remedy{
				{rescale.Options{GrowingRounds: true, Scaling: rescale.Strong}, nil, panels(8, 8, 1<<10)}}},
		{"the longer dimension", stencil("4x4"), rescale.Options{Ranks: 32}, "(recorded: 4x4, x first): ", []remedy{
			{rescale.Options{Grid: []int{4, 8}}, nil, stencil("8x4")},
			{rescale.Options{}, traces(stencil("16x8")), stencil("8x4")},
			{rescale.Options{}, traces(stencil("8x16")), stencil("4x8")}}},
		{"longer in all traces", stencil("2x8"), rescale.Options{Ranks: 64}, "(recorded: 8x2, x first): ", []remedy{
			{rescale.Options{}, traces(stencil("2x16")), stencil("2x32")},
			{rescale.Options{}, traces(stencil("8x32")), stencil("4x16")}}},
		{"nodes", leaders(4, 4), rescale.Options{Ranks: 64}, "8x8 or 16x4 or 4x16", []remedy{
			{rescale.Options{}, traces(leaders(4, 8), leaders(4, 32)), leaders(4, 16)}}},
		{"parts of nodes", scattered(4, 4), rescale.Options{Ranks: 64}, "8x8 or 16x4 or 4x16", []remedy{
			{rescale.Options{Grid: []int{4, 16}}, nil, scattered(4, 16)}}},
		{"a part of the data", sorted(16), rescale.Options{Ranks: 64, Scaling: rescale.Strong}, "65536 B or 16384 B",
			[]remedy{{strong, traces(sorted(32)), sorted(64)}}},
		{"corners along a dimension", borders(4, 4, 1024, 0, 2), rescale.Options{Ranks: 64, Scaling: rescale.Strong},
			"2064 B", []remedy{{strong, traces(borders(4, 8, 1024, 0, 2), borders(8, 16, 1024, 0, 2)),
				borders(8, 8, 1024, 0, 2)}}},
		{"corners", borders(4, 4, 1024, 4, 4), rescale.Options{Ranks: 64, Scaling: rescale.Strong},
			"1040 B or 1056 B (32 B for corners", []remedy{{strong,
				traces(borders(4, 8, 1024, 4, 4), borders(8, 16, 1024, 4, 4)), borders(8, 8, 1024, 4, 4)}}},
		{"remainders", borders(4, 4, 1000, 0, 0), rescale.Options{Ranks: 256, Scaling: rescale.Strong},
			"does not divide it", nil},
		{"a hypercube or a torus", torus(2, 2, 2, 2), rescale.Options{Ranks: 32}, "--old-grid 2x2x2x2", []remedy{
			{rescale.Options{OldGrid: []int{2, 2, 2, 2}, Grid: []int{4, 2, 2, 2}}, nil, torus(4, 2, 2, 2)}}},
		{"a torus by another trace", torus(2, 2, 2, 2), rescale.Options{Ranks: 64, Grid: []int{4, 4, 2, 2}},
			"or both neighbors", []remedy{
				{rescale.Options{Grid: []int{4, 4, 2, 2}}, traces(torus(4, 2, 2, 2)), torus(4, 4, 2, 2)}}},
		{"grids of two libraries", stencil("4x4"), rescale.Options{Ranks: 36}, "6x6 or 4x9 or 9x4", []remedy{
			{rescale.Options{Grid: []int{9, 4}}, nil, stencil("4x9")}, {likeliest, nil, stencil("6x6")},
			{rescale.Options{}, traces(stencil("10x10")), stencil("6x6")}}},
		{"nodes of ranks", nodes(24), rescale.Options{Ranks: 96}, "4 or 16 (a part of the ranks)", []remedy{
			{rescale.Options{}, traces(nodes(48)), nodes(96)}, {likeliest, nil, nodes(96)}}},
		{"nodes like rows", nodes(16), rescale.Options{Ranks: 96}, "", []remedy{
			{rescale.Options{}, traces(nodes(32)), nodes(96)}}},
		{"blocks of elements", blocks(12), rescale.Options{Ranks: 48, Scaling: rescale.Strong},
			"does not divide: 5336 B or 5328 B", nil},
		{"as many numbers as ranks", counted(16), rescale.Options{Ranks: 64}, "64 B or 256 B (as N)", []remedy{
			{rescale.Options{}, traces(counted(32)), counted(64)}}},
		{"halves", halved(16), rescale.Options{Ranks: 64}, "32768 B or 131072 B (as N)", []remedy{
			{rescale.Options{}, traces(halved(32)), halved(64)}, {likeliest, nil, halved(64)}}},
		{"a transpose", rows(16), rescale.Options{Ranks: 32}, "the transpose on 32 ranks", []remedy{
			{rescale.Options{}, traces(rows(128)), rows(32)}, {likeliest, nil, rows(32)}}},
		{"a program of its own", stencil("4x4"), rescale.Options{Ranks: 64}, "", []remedy{
			{rescale.Options{}, nil, stencil("8x8")}}},
	} {
		_, _, err := rescale.Rescale(context.Background(), c.from, c.o)
		var refusal *rescale.Refusal
		if c.want != "" && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, expected a refusal with %q", c.name, err, c.want)
		}
		for _, r := range c.remedies {
			o := r.o
			o.Ranks = c.o.Ranks
			if r.others != nil {
				d, err := rescale.Decide(context.Background(), c.from, r.others, o, o.Scaling == rescale.Strong)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					continue
				}
				o = d.Options
			}
			got, _, err := rescale.Rescale(context.Background(), c.from, o)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			checkEqual(t, c.name, got, r.want)
		}
	}
}

// TestDecideRefuses checks that traces of another program, and those that leave a rule open, are refused.
func TestDecideRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		from   *dag.Trace
		others []*dag.Trace
		ranks  int
		want   string
	}{
		{"another program", sorted(16), []*dag.Trace{butterfly(32)}, 64, "bytes would differ by"},
		{"equal ranks", sorted(16), []*dag.Trace{sorted(32), sorted(32)}, 64, "expected another number"},
		{"another grid", generate(t, "stencil grid=4x4"), []*dag.Trace{generate(t, "stencil grid=4x4x2")}, 64,
			"form a grid of 4x4"},
		{"two traces allow two laws", segments(4, 4), []*dag.Trace{segments(4, 8)}, 128, "(as 1/N)"},
		{"rounds that two traces leave open", turns(4, 4, 3), []*dag.Trace{turns(4, 8, 3)}, 128, "3 (fixed)"},
	} {
		d, err := rescale.Decide(context.Background(), c.from, c.others, rescale.Options{Ranks: c.ranks}, false)
		if err == nil {
			_, _, err = rescale.Rescale(context.Background(), c.from, d.Options)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", c.name, err, c.want)
		}
	}
}
