package rescale_test

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
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

func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name       string
		from, want *dag.Trace
		grid       []int
	}{
		{"parities", parities(16), parities(32), nil},
		{"leaders", leaders(4, 4), leaders(4, 8), []int{4, 8}},
		{"longer leaders", leaders(4, 8), leaders(8, 16), nil},
		{"tagged", tagged(16), tagged(24), nil},
	} {
		got, _ := mustRescale(t, c.from, rescale.Options{Ranks: len(c.want.Ranks), Grid: c.grid})
		checkEqual(t, c.name, got, c.want)
	}
}
