// This file collects the ops and dependencies of the text reader's current block and converts them to a rank.

package goal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// block is an incomplete rank. All blocks share its columns.
type block struct {
	base        int // number of ops of the rank that were passed on; the columns begin with the next one
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

// ops returns the number of ops of the rank.
func (b *block) ops() int { return b.base + len(b.kind) }

// label sets the label of the next op.
func (b *block) label(label []byte) error {
	if !b.labels.define(label, b.ops()) && !b.name.Append(len(b.kind), string(label)) {
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

// head returns the first n ops of the columns, with the dependencies of those ops, which the reader has parsed in the
// order of ops. It is valid until the next op is added.
func (b *block) head(n int) (dag.Rank, error) {
	r := dag.Rank{
		Kind: b.kind[:n:n], Bytes: headOf(b.bytes, n), Peer: headOf(b.peer, n), Tag: headOf(b.tag, n),
		Duration: headOf(b.duration, n),
	}
	r.Stream.SetRange(0, headOf(b.cpu, n))
	r.NIC.SetRange(0, headOf(b.nic, n))
	for i := range min(n, b.name.Len()) {
		if name := b.name.At(i); name != "" && !r.Name.Append(i, name) {
			return r, errTooMuch
		}
	}
	r.Deps, r.StartDeps = b.deps.head(b.base, n), b.start.head(b.base, n)
	return r, nil
}

// headOf returns the first n values of a column.
func headOf[S ~[]T, T any](column S, n int) S {
	n = min(n, len(column))
	return column[:n:n]
}

// drop removes the first n ops of the columns.
func (b *block) drop(n int) error {
	b.base += n
	dropFrom(&b.kind, n)
	dropFrom(&b.bytes, n)
	dropFrom(&b.peer, n)
	dropFrom(&b.tag, n)
	dropFrom(&b.duration, n)
	dropFrom(&b.cpu, n)
	dropFrom(&b.nic, n)
	rest := dag.Text{}
	for i := n; i < b.name.Len(); i++ {
		if name := b.name.At(i); name != "" && !rest.Append(i-n, name) {
			return errTooMuch
		}
	}
	b.name = rest
	b.deps.drop(b.base)
	b.start.drop(b.base)
	return nil
}

// dropFrom removes the first n values of a column.
func dropFrom[S ~[]T, T any](column *S, n int) {
	*column = slices.Delete(*column, 0, min(n, len(*column)))
}

// end empties the block at the end of a rank of which ops were passed on.
func (b *block) end() {
	b.base = 0
	b.labels.reset()
	b.deps.reset()
	b.start.reset()
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
	dropped  int64 // number of edges of the rank that were passed on
	last     int32 // the op of the last line
	unsorted bool  // whether a line's op precedes that of the previous line
	lag      int   // the greatest distance from a line's op to the next op at that line

	end []uint32 // memory of a list that finish returned for reuse
	off []int32
}

// add adds the dependency of a line after some ops.
func (l *edgeList) add(op, on, ops int) {
	if l.last > int32(op) {
		l.unsorted = true
	}
	l.last, l.lag = int32(op), max(l.lag, ops-op)
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
	l.reset()
	return edges, order
}

// reset empties the list.
func (l *edgeList) reset() {
	l.edges, l.dropped, l.last, l.unsorted, l.lag = l.edges[:0], 0, 0, false, 0
}

// inOrder reports whether the dependencies are in the order of their ops, from the given one on.
func (l *edgeList) inOrder(first int) bool {
	return !l.unsorted && (len(l.edges) == 0 || int(l.edges[0].op) >= first)
}

// count returns the number of dependencies of the rank.
func (l *edgeList) count() int64 { return l.dropped + int64(len(l.edges)) }

// before returns the number of the dependencies of ops before one, which are the first ones.
func (l *edgeList) before(op int) int {
	n, _ := slices.BinarySearchFunc(l.edges, int32(op), func(e edge, op int32) int { return cmp.Compare(e.op, op) })
	return n
}

// head returns the dependencies of n ops from the given one on, in a list that is in the order of ops. It is valid
// until the next call.
func (l *edgeList) head(first, n int) (edges dag.Edges) {
	listed := l.edges[:l.before(first+n)]
	if len(listed) == 0 {
		return edges
	}
	l.off = slices.Grow(l.off[:0], len(listed))[:len(listed)]
	l.end = slices.Grow(l.end[:0], n)[:int(listed[len(listed)-1].op)-first+1]
	clear(l.end)
	for k, e := range listed {
		l.off[k] = e.op - e.on
		l.end[int(e.op)-first]++
	}
	total := uint32(0)
	for i, count := range l.end {
		total += count
		l.end[i] = total
	}
	return dag.Edges{End: l.end, Off: l.off}
}

// drop removes the dependencies of the ops before one.
func (l *edgeList) drop(op int) {
	n := l.before(op)
	l.dropped += int64(n)
	l.edges = slices.Delete(l.edges, 0, n)
}

// dropAll removes all dependencies.
func (l *edgeList) dropAll() {
	l.dropped += int64(len(l.edges))
	l.edges = l.edges[:0]
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
