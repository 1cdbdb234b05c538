package rescale_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/rescale"
)

// calls returns a trace of n ranks that make the calls that program adds, one after the other.
func calls(n int, program func(rank int, add func(dag.Op))) *dag.Trace {
	return ops(n, func(rank int, b *dag.RankBuilder) {
		program(rank, func(op dag.Op) {
			if i := b.Add(op); i > 0 {
				b.Requires(i, i-1)
			}
		})
	})
}

// parities is a ring in which ranks of even number send before they receive, and the others after.
func parities(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 5 {
			add(dag.Op{Duration: 1000})
			send := dag.Op{Kind: dag.Send, Peer: int32((rank + 1) % n), Bytes: 8}
			recv := dag.Op{Kind: dag.Recv, Peer: int32((rank + n - 1) % n), Bytes: 8}
			if rank%2 == 0 {
				add(send)
				add(recv)
			} else {
				add(recv)
				add(send)
			}
		}
	})
}

// leaders is a reduction in two levels: along the rows, then among the first ranks of the rows.
func leaders(x, y int) *dag.Trace {
	t := calls(x*y, func(rank int, add func(dag.Op)) {
		row, first := int32(1+rank/x), int32(rank/x*x)
		for range 3 {
			add(dag.Op{Duration: 1000})
			add(dag.Op{Kind: dag.Coll, Subkind: dag.Reduce, Bytes: 8, Peer: first, Comm: row})
			if rank%x == 0 {
				add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 8, Comm: int32(1 + y)})
			}
			add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 8, Peer: first, Comm: row})
		}
	})
	for r := range y {
		t.Comms = append(t.Comms, dag.Comm{Ranges: []dag.Range{{First: int32(r * x), Stride: 1, Count: int32(x)}}})
	}
	t.Comms = append(t.Comms, dag.Comm{Ranges: []dag.Range{{First: 0, Stride: int32(x), Count: int32(y)}}})
	return t
}

// tagged is a ring whose messages have the rank of the sender as tag.
func tagged(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		before, next := (rank+n-1)%n, (rank+1)%n
		for range 5 {
			add(dag.Op{Kind: dag.Send, Peer: int32(next), Bytes: 8, Tag: int64(100 + rank)})
			add(dag.Op{Kind: dag.Recv, Peer: int32(before), Bytes: 8, Tag: int64(100 + before)})
		}
	})
}

// halo is a halo exchange on a grid of y rows of x ranks, periodic along y only. Each direction has a tag.
func halo(x, y int) *dag.Trace {
	return calls(x*y, func(rank int, add func(dag.Op)) {
		col, row := rank%x, rank/x
		for range 2 {
			for tag, to := range []int{rank - 1, rank + 1, (row+y-1)%y*x + col, (row+1)%y*x + col} {
				if tag == 0 && col == 0 || tag == 1 && col == x-1 {
					continue
				}
				add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 64, Tag: int64(tag)})
			}
			for tag, from := range []int{rank + 1, rank - 1, (row+1)%y*x + col, (row+y-1)%y*x + col} {
				if tag == 0 && col == x-1 || tag == 1 && col == 0 {
					continue
				}
				add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 64, Tag: int64(tag)})
			}
		}
	})
}

// panels is a product of matrices: each column of ranks in turn broadcasts its panel along the rows, and each row along
// the columns. The panels of the whole matrices have n rows.
func panels(x, y, n int) *dag.Trace {
	t := calls(x*y, func(rank int, add func(dag.Op)) {
		col, row := rank%x, rank/x
		bcast := func(comm, root int, bytes int64) {
			op := dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: int32(root), Comm: int32(comm), RecvBytes: bytes}
			if root == rank {
				op.Bytes, op.RecvBytes = bytes, 0
			}
			add(op)
		}
		for k := range max(x, y) {
			bcast(1+row, row*x+k%x, int64(n/y))
			bcast(1+y+col, k%y*x+col, int64(n/x))
			add(dag.Op{Duration: 1000})
		}
	})
	for row := range y {
		t.Comms = append(t.Comms, dag.Comm{Ranges: []dag.Range{{First: int32(row * x), Stride: 1, Count: int32(x)}}})
	}
	for col := range x {
		t.Comms = append(t.Comms, dag.Comm{Ranges: []dag.Range{{First: int32(col), Stride: int32(x), Count: int32(y)}}})
	}
	return t
}

// master is a rank that gathers a message of each other one and answers.
func master(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 2 {
			for other := 1; other < n && rank == 0; other++ {
				add(dag.Op{Kind: dag.Recv, Peer: int32(other), Bytes: 4096, Tag: 3})
			}
			for other := 1; other < n && rank == 0; other++ {
				add(dag.Op{Kind: dag.Send, Peer: int32(other), Bytes: 8, Tag: 4})
			}
			if rank > 0 {
				add(dag.Op{Duration: 1000})
				add(dag.Op{Kind: dag.Send, Bytes: 4096, Tag: 3})
				add(dag.Op{Kind: dag.Recv, Bytes: 8, Tag: 4})
			}
		}
	})
}

// binary is a reduction in a binary tree, whose ranks compute for different times.
func binary(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 3 {
			add(dag.Op{Duration: 1000})
			for child := 2*rank + 1; child <= 2*rank+2 && child < n; child++ {
				add(dag.Op{Kind: dag.Recv, Peer: int32(child), Bytes: 64})
				add(dag.Op{Duration: 100})
			}
			if rank > 0 {
				add(dag.Op{Kind: dag.Send, Peer: int32((rank - 1) / 2), Bytes: 64})
			}
		}
	})
}

// levels is a multigrid method, on whose coarser levels every second rank of the level before takes part.
func levels(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 2 {
			for tag, d := int64(0), 1; d < n && rank%d == 0; tag, d = tag+1, 2*d {
				for _, side := range []int{d, -d} {
					if to := rank + side; to >= 0 && to < n {
						add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 512, Tag: tag})
					}
					if from := rank - side; from >= 0 && from < n {
						add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 512, Tag: tag})
					}
				}
				add(dag.Op{Duration: 1000})
			}
			add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
		}
	})
}

// butterfly is exchanges by exclusive or whose tag is the distance.
func butterfly(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for range 3 {
			for d := 1; d < n; d *= 2 {
				add(dag.Op{Kind: dag.Send, Peer: int32(rank ^ d), Bytes: 8, Tag: int64(d)})
				add(dag.Op{Kind: dag.Recv, Peer: int32(rank ^ d), Bytes: 8, Tag: int64(d)})
				if rank%3 > 0 || d > 1 { // tracers omit short calcs
					add(dag.Op{Duration: 10})
				}
			}
		}
	})
}

// rows is conjugate gradients on a grid as square as powers of two allow: sums along the rows by exclusive or, and an
// exchange with the transposed rank, or of pairs of ranks if the rows are twice as long as the columns. All messages
// have the same tag.
func rows(n int) *dag.Trace {
	down := 1
	for 2*down*2*down <= n {
		down *= 2
	}
	across := n / down
	return calls(n, func(rank int, add func(dag.Op)) {
		exchange := func(with int, bytes int64) {
			if with != rank {
				add(dag.Op{Kind: dag.Send, Peer: int32(with), Bytes: bytes, Tag: 1})
				add(dag.Op{Kind: dag.Recv, Peer: int32(with), Bytes: bytes, Tag: 1})
			}
		}
		pairs := across / down
		transposed := (rank/pairs%down*down+rank/pairs/down)*pairs + rank%pairs
		for range 2 {
			add(dag.Op{Duration: 1000})
			for d := 1; d < across; d *= 2 {
				exchange(rank^d, 4096)
			}
			exchange(transposed, 4096)
			add(dag.Op{Duration: 100})
			for d := 1; d < across; d *= 2 {
				exchange(rank^d, 8)
			}
		}
	})
}

// particles is an alltoallv that sends most to the nearest ranks on a ring, and bytes to the others.
func particles(n int, others int64) *dag.Trace {
	t := calls(n, func(rank int, add func(dag.Op)) {
		list := attr.Counts{}
		op := dag.Op{Kind: dag.Coll, Subkind: dag.Alltoallv}
		for other := range n {
			d := max(rank-other, other-rank)
			bytes := []int64{4000, 1000, 250, others}[min(d, n-d, 3)]
			list.Send, list.Recv = append(list.Send, bytes), append(list.Recv, bytes)
			op.Bytes, op.RecvBytes = op.Bytes+bytes, op.RecvBytes+bytes
		}
		op.Attrs = attr.WithCounts("", &list)
		add(op)
	})
	return t
}

// integers are allreduces of elements of 4 bytes, from a trace with the times of calls unless they are 0.
func integers(n int, call int64) *dag.Trace {
	return calls(n, func(_ int, add func(dag.Op)) {
		attrs := ""
		if call > 0 {
			attrs = attr.CallTime(call)
		}
		add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 400, Attrs: attr.WithElement(attrs, 4)})
	})
}

func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name       string
		from, want *dag.Trace
		grid       []int
	}{
		{"parities", parities(16), parities(32), nil},
		{"leaders", leaders(4, 4), leaders(4, 8), []int{4, 8}},
		{"longer leaders", leaders(4, 8), leaders(8, 16), []int{8, 16}},
		{"tagged", tagged(16), tagged(24), nil},
		{"periodic rows", halo(4, 2), halo(4, 4), []int{4, 4}},
		{"panels", panels(4, 4, 1<<10), panels(8, 4, 1<<10), []int{8, 4}},
		{"more panels", panels(8, 4, 1<<10), panels(8, 8, 1<<10), nil},
		{"master", master(16), master(40), nil},
		{"binary tree", binary(16), binary(50), nil},
		{"levels", levels(16), levels(64), nil},
		{"butterfly", butterfly(16), butterfly(64), nil},
		{"rows", rows(16), rows(64), nil},
		{"more rows", rows(32), rows(64), nil},
		{"particles", particles(16, 0), particles(48, 0), nil},
		{"integers", integers(16, 0), integers(48, 0), nil},
		{"timed integers", integers(16, 300), integers(48, 0), nil},
		{"particles and counts", particles(16, 8), particles(48, 8), nil},
	} {
		o := rescale.Options{Ranks: len(c.want.Ranks), Grid: c.grid}
		if strings.Contains(c.name, "panels") {
			o.Scaling, o.Likeliest = rescale.Strong, true
		}
		got, _ := mustRescale(t, c.from, o)
		checkEqual(t, c.name, got, c.want)
		a, b := makespan(t, got), makespan(t, c.want)
		if o.Scaling == rescale.Weak && max(a, b)-min(a, b) > b/100_000 {
			t.Errorf("%s: makespan %d, expected %d", c.name, a, b)
		}
		for rank, r := range got.Ranks {
			for i := range r.Kind {
				if a := r.Attrs.At(i); a != c.want.Ranks[rank].Attrs.At(i) {
					t.Fatalf("%s: rank %d: attributes %s, expected %s", c.name, rank, a, c.want.Ranks[rank].Attrs.At(i))
				}
			}
		}
	}
}

// TestAssumptions checks that the report names what could as well depend on the number of ranks, and what is lost.
func TestAssumptions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	sent := [16][16]int64{}
	for from := range sent {
		for to := range sent {
			sent[from][to] = random.Int64N(100)
		}
	}
	scattered := calls(16, func(rank int, add func(dag.Op)) {
		list := attr.Counts{}
		op := dag.Op{Kind: dag.Coll, Subkind: dag.Alltoallv}
		for other := range sent {
			list.Send, list.Recv = append(list.Send, sent[rank][other]), append(list.Recv, sent[other][rank])
			op.Bytes, op.RecvBytes = op.Bytes+sent[rank][other], op.RecvBytes+sent[other][rank]
		}
		op.Attrs = attr.WithCounts("", &list)
		add(op)
	})
	for _, c := range []struct {
		from *dag.Trace
		want string
	}{
		{panels(4, 4, 1<<10), "member 0 on: 8 (max(Nx, Ny)) or 4 (fixed); the first is taken"},
		{scattered, "dropped: the bytes by partner of 1 alltoallv"},
		{generate(t, "stencil iterations=16 grid=16"), "assumed: 16 times send rank"},
		{generate(t, "pattern name=bitcomplement ranks=16"), ""},
	} {
		_, report := mustRescale(t, c.from, rescale.Options{Ranks: 64, Likeliest: true})
		if text := strings.Join(report.Summary(), "\n"); !strings.Contains(text, c.want) {
			t.Errorf("report %q, expected %q", text, c.want)
		}
	}
}

// sorted is a sort in rounds of exchanges by exclusive or of all data, of which each rank has a part.
func sorted(n int) *dag.Trace {
	return calls(n, func(rank int, add func(dag.Op)) {
		for d := 1; d < n; d *= 2 {
			add(dag.Op{Duration: dag.Time(64000 / n)})
			add(dag.Op{Kind: dag.Send, Peer: int32(rank ^ d), Bytes: int64(1<<20) / int64(n)})
			add(dag.Op{Kind: dag.Recv, Peer: int32(rank ^ d), Bytes: int64(1<<20) / int64(n)})
		}
	})
}

// segments is sums along the rows and columns of a vector whose parts are those of the rows, in both.
func segments(x, y int) *dag.Trace {
	t := panels(x, y, 1<<10)
	for rank := range t.Ranks {
		var b dag.RankBuilder
		add := func(sub dag.Subkind, comm int) {
			b.Add(dag.Op{Kind: dag.Coll, Subkind: sub, Comm: int32(comm), Bytes: int64(1<<16) / int64(y)})
		}
		add(dag.Allreduce, 1+rank/x)
		add(dag.Allreduce, 1+y+rank%x)
		r := b.Rank()
		t.Ranks[rank] = r.Keep()
	}
	return t
}

// TestLaws checks sizes of which only a second trace shows how they shrink.
func TestLaws(t *testing.T) {
	for _, c := range []struct {
		name   string
		from   *dag.Trace
		others []*dag.Trace
		want   *dag.Trace
	}{
		{"sorted", sorted(16), []*dag.Trace{sorted(32)}, sorted(128)},
		{"segments", segments(4, 4), []*dag.Trace{segments(4, 8), segments(8, 8)}, segments(8, 16)},
	} {
		d, err := rescale.Decide(context.Background(), c.from, c.others, rescale.Options{Ranks: 128}, false)
		if err != nil {
			t.Fatal(err)
		}
		got, report := mustRescale(t, c.from, d.Options)
		checkEqual(t, c.name, got, c.want)
		if d.Others[0].Bytes != 0 || report.Scaling != "strong" && c.name == "sorted" {
			t.Errorf("%s: bytes differ by %v, report %+v", c.name, d.Others[0].Bytes, report)
		}
	}
}
