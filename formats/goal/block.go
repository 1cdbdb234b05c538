// This file collects the ops and dependencies of the text reader's current block and converts them to a rank.

package goal

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// block is an incomplete rank. All blocks share its columns.
type block struct {
	kind        []dag.Kind
	bytes       dag.Column[int64]
	peer        dag.Column[int32]
	tag         dag.Column[int64]
	duration    dag.Column[dag.Time]
	cpu, nic    dag.Column[int32]
	name        dag.Text
	deps, start edgeList
	labels      labelTable
}

// usedColumns are those columns of a block that have memory.
type usedColumns struct{ bytes, peer, tag, duration, cpu, nic bool }

func (b *block) used() usedColumns {
	return usedColumns{cap(b.bytes) > 0, cap(b.peer) > 0, cap(b.tag) > 0, cap(b.duration) > 0, cap(b.cpu) > 0,
		cap(b.nic) > 0}
}

// reserve makes room for a rank of known size in a block without memory, in the used columns of another rank.
func (b *block) reserve(size *dag.Batch, used usedColumns) {
	n := int(size.Ops)
	b.kind = make([]dag.Kind, 0, n)
	reserve(&b.bytes, n, used.bytes)
	reserve(&b.peer, n, used.peer)
	reserve(&b.tag, n, used.tag)
	reserve(&b.duration, n, used.duration)
	reserve(&b.cpu, n, used.cpu)
	reserve(&b.nic, n, used.nic)
	b.deps.edges = make([]edge, 0, size.Deps)
	b.start.edges = make([]edge, 0, size.StartDeps)
}

func reserve[S ~[]T, T any](column *S, n int, used bool) {
	if used {
		*column = make(S, 0, n)
	}
}

// errTooMuch reports a block that exceeds the limits of a rank.
var errTooMuch = fmt.Errorf("at most %d ops, %d dependencies of each kind and 4 GiB of labels in a block",
	dag.MaxOps, uint32(dag.MaxDeps))

// label sets the label of the next op.
func (b *block) label(label []byte) error {
	op := len(b.kind)
	if !b.labels.define(label, op) && !b.name.Append(op, string(label)) {
		return errTooMuch
	}
	return nil
}

// finish returns the rank and empties the block. With reuse, the rank shares the columns of the block until the next op
// is added.
func (b *block) finish(reuse bool) (dag.Rank, error) {
	n := len(b.kind)
	if uint64(max(len(b.deps.edges), len(b.start.edges))) > dag.MaxDeps {
		return dag.Rank{}, errTooMuch
	}
	r := dag.Rank{
		Kind:     take(&b.kind, reuse),
		Bytes:    take(&b.bytes, reuse),
		Peer:     take(&b.peer, reuse),
		Tag:      take(&b.tag, reuse),
		Duration: take(&b.duration, reuse),
		Name:     b.name,
	}
	r.Stream.SetRange(0, b.cpu)
	r.NIC.SetRange(0, b.nic)
	r.Deps, r.Order = b.deps.finish(n, reuse)
	r.StartDeps, r.StartOrder = b.start.finish(n, reuse)
	b.cpu, b.nic, b.name = b.cpu[:0], b.nic[:0], dag.Text{}
	b.labels.reset()
	return r, nil
}

// take returns the content of a column and empties it. It copies a small column and returns a large one itself, so
// that a large block is not in memory twice. With reuse, it always returns the column itself, which the next block
// overwrites.
func take[S ~[]T, T any](column *S, reuse bool) S {
	const large = 1 << 20
	s := *column
	switch {
	case len(s) == 0:
		return nil
	case reuse:
		*column = s[:0]
		return s[:len(s):len(s)]
	case len(s) >= large:
		*column = nil
		if cap(s)-len(s) <= len(s)/16 {
			return s
		}
	default:
		*column = s[:0]
	}
	return append(make(S, 0, len(s)), s...)
}

// edge is a dependency: op waits for on.
type edge struct{ op, on int32 }

// edgeList is the dependencies of a block in line order.
type edgeList struct {
	edges    []edge
	unsorted bool // whether a line's op precedes that of the previous line

	end []uint32 // memory of a list that finish returned for reuse
	off []int32
}

func (l *edgeList) add(op, on int) {
	if k := len(l.edges); k > 0 && l.edges[k-1].op > int32(op) {
		l.unsorted = true
	}
	l.edges = append(l.edges, edge{int32(op), int32(on)})
}

// finish returns the dependencies of a rank of n ops and the orders of dependents that are not ascending. It
// empties the list. With reuse, the dependencies are valid until the next call.
func (l *edgeList) finish(n int, reuse bool) (edges, order dag.Edges) {
	if len(l.edges) == 0 {
		return edges, order
	}
	if l.unsorted {
		order = l.order(n)
	}
	if reuse {
		l.end, l.off = slices.Grow(l.end[:0], n)[:n], slices.Grow(l.off[:0], len(l.edges))[:len(l.edges)]
		clear(l.end)
		edges = dag.Edges{End: l.end, Off: l.off}
	} else {
		edges = dag.Edges{End: make([]uint32, n), Off: make([]int32, len(l.edges))}
	}
	last := 0
	for _, e := range l.edges {
		edges.End[e.op]++
		last = max(last, int(e.op))
	}
	edges.End = edges.End[: last+1 : last+1]
	startsFromCounts(edges.End)
	for _, e := range l.edges {
		edges.Off[edges.End[e.op]] = e.op - e.on
		edges.End[e.op]++ // filling the list moves the start to the end
	}
	l.edges, l.unsorted = l.edges[:0], false
	return edges, order
}

// order returns, in line order, the dependents of every op whose dependents are not ascending.
func (l *edgeList) order(n int) (order dag.Edges) {
	type progress struct {
		last     int32 // the latest dependent
		count    uint32
		deviates bool
	}
	ops := make([]progress, n)
	for _, e := range l.edges {
		p := &ops[e.on]
		if e.op < p.last {
			p.deviates = true
		}
		p.last = e.op
		p.count++
	}
	end := 0
	for i := range ops {
		if ops[i].deviates {
			end = i + 1
		}
	}
	if end == 0 {
		return order
	}
	order.End = make([]uint32, end)
	total := uint32(0)
	for i := range order.End { // starts first; filling turns them into ends
		order.End[i] = total
		if ops[i].deviates {
			total += ops[i].count
		}
	}
	order.Off = make([]int32, total)
	for _, e := range l.edges {
		if ops[e.on].deviates {
			order.Off[order.End[e.on]] = e.op - e.on
			order.End[e.on]++
		}
	}
	return order
}

// startsFromCounts replaces the lengths of consecutive lists by their starts.
func startsFromCounts(counts []uint32) {
	total := uint32(0)
	for i, count := range counts {
		counts[i] = total
		total += count
	}
}
