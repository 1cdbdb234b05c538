// This file converts the sizes of a collective in package dag (docs/reference/lowering.md) to those of its VEF
// records.

package vef

import "github.com/tracedag/tracedag/dag"

// sizes returns the fields send_size and recv_size of an op of a collective.
func (w *writer) sizes(g *collectiveInstance, r *dag.Rank, d *draft) (send, recv int64) {
	op := int(d.op)
	bytes, received := r.Bytes.At(op), r.RecvBytes.At(op)
	root := g.root == d.rank
	switch g.op {
	case opBroadcast, opReduce:
		if root == (g.op == opBroadcast) {
			return max(bytes, received), 0
		}
		return 0, max(bytes, received)
	case opAllreduce:
		if received == 0 {
			received = bytes
		}
		return bytes, received
	case opGather:
		if !root {
			return bytes, 0
		}
		if received == 0 {
			received = g.sum
		}
		return bytes, received
	case opScatter:
		return w.scatterSizes(g, r, d, root)
	case opAllgather:
		if received == 0 {
			received = g.sum
		}
		return bytes, received
	case opAlltoall:
		n := int64(len(w.groups[g.comm].tasks))
		if r.Subkind.At(op) == dag.Alltoall && bytes%n == 0 {
			return bytes / n, 0
		}
		return bytes, 1
	}
	return 0, 0
}

// scatterSizes returns the sizes of a scatter: its receivers state the blocks, or the blocks are equal parts of
// the whole.
func (w *writer) scatterSizes(g *collectiveInstance, r *dag.Rank, d *draft, root bool) (send, recv int64) {
	op := int(d.op)
	bytes, received := r.Bytes.At(op), r.RecvBytes.At(op)
	if r.Subkind.At(op) == dag.Scatterv {
		if root {
			return bytes, received
		}
		if received == 0 {
			received = bytes
		}
		return 0, received
	}
	if received == 0 {
		comm := &w.groups[g.comm]
		n := int64(len(comm.tasks))
		whole := w.t.Ranks[g.root].Bytes.At(int(w.member[g.members+int64(comm.position(g.root))]))
		received = whole / n
		if int64(comm.position(d.rank)) < whole%n {
			received++
		}
	}
	if root {
		return bytes, received
	}
	return 0, received
}
