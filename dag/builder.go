package dag

import (
	"errors"
	"fmt"
	"slices"
)

// Builder makes a trace op by op. Goroutines may build different ranks concurrently.
type Builder struct {
	trace Trace
	ranks []*RankBuilder // nil: without ops
	err   error
}

// NewBuilder returns a builder of a trace with n ranks. Communicator 0 contains all of them.
func NewBuilder(n int) *Builder {
	return &Builder{trace: Trace{Comms: []Comm{World(n)}}, ranks: make([]*RankBuilder, n)}
}

// Meta returns the metadata of the trace; the caller fills it.
func (b *Builder) Meta() *Meta {
	return &b.trace.Meta
}

// AddComm adds a communicator and returns its number.
func (b *Builder) AddComm(c Comm) int32 {
	b.trace.Comms = append(b.trace.Comms, c)
	return int32(len(b.trace.Comms) - 1)
}

// Rank returns the builder of rank i.
func (b *Builder) Rank(i int) *RankBuilder {
	if b.ranks[i] == nil {
		b.ranks[i] = new(RankBuilder)
	}
	return b.ranks[i]
}

// Trace finishes every rank and returns the trace. After it, only Err may be called.
func (b *Builder) Trace() *Trace {
	b.err = b.Err()
	b.trace.Ranks = NewRanks(len(b.ranks))
	for i, rank := range b.ranks {
		if rank != nil {
			r := rank.Rank()
			b.trace.Ranks[i] = r.Keep()
			b.ranks[i] = nil
		}
	}
	b.ranks = nil
	return &b.trace
}

// Err returns the error of the first rank that has one, see [RankBuilder.Err].
func (b *Builder) Err() error {
	for i, rank := range b.ranks {
		if rank != nil && rank.err != nil {
			return fmt.Errorf("rank %d: %w", i, rank.err)
		}
	}
	return b.err
}

// RankBuilder makes the DAG of one rank. The zero value is an empty rank.
type RankBuilder struct {
	rank        Rank
	deps, start edgeBuilder
	keepOrder   bool
	textless    bool
	step        int32
	err         error
}

// Errors of a rank that exceeds a limit.
var (
	errOps   = fmt.Errorf("more than %d ops", MaxOps)
	errDeps  = fmt.Errorf("more than %d dependencies", int64(MaxDeps))
	errText  = errors.New("more than 4 GiB of names or attributes")
	errIndex = fmt.Errorf("dependency of an op that was not added, or on an index outside 0..%d", MaxOps-1)
)

// Err returns the first reason why the rank is incomplete: more ops, dependencies or text than a rank can have, or a
// dependency of an op not yet added or on an index that no op can have. Err stays valid after Rank. Only
// [Rank.CheckReferences] finds dependencies on ops that were never added.
func (b *RankBuilder) Err() error {
	return b.err
}

func (b *RankBuilder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// KeepOrder keeps the dependents of an op in the order of the Requires and RequiresStart calls, for formats in which
// this order has a meaning. Without KeepOrder the order is ascending.
func (b *RankBuilder) KeepOrder() {
	b.keepOrder = true
}

// Reserve allocates space in an empty rank for the given number of sends, receives and calcs, and of dependencies on
// ends of ops. It affects speed only.
func (b *RankBuilder) Reserve(ops, deps int) {
	r := &b.rank
	r.Kind, r.Bytes, r.Peer = make([]Kind, 0, ops), make([]int64, 0, ops), make([]int32, 0, ops)
	b.deps.edges = Edges{End: make([]uint32, 0, ops), Off: make([]int32, 0, deps)}
}

// ReserveLike allocates space in an empty rank for the values of another rank. It affects speed only.
func (b *RankBuilder) ReserveLike(r *Rank) {
	for id := range Fields {
		f := &Fields[id]
		f.Of(&b.rank).reserve(f.Of(r))
	}
	b.deps.edges, b.rank.Deps = b.rank.Deps, Edges{}
	b.start.edges, b.rank.StartDeps = b.rank.StartDeps, Edges{}
}

// Deliver restricts the rank to columns, before its first op: names and attributes of ops are absent where a reader
// need not deliver them.
func (b *RankBuilder) Deliver(columns Columns) {
	b.textless = !columns.Has(FieldName) && !columns.Has(FieldAttrs)
}

// ReserveMeasured is Reserve for measured traces: it also allocates durations, measured times, and the given number
// of bytes of attributes.
func (b *RankBuilder) ReserveMeasured(ops, attrs int) {
	r := &b.rank
	r.Duration = make([]Time, 0, ops)
	r.MeasuredStart, r.MeasuredEnd = make([]Time, 0, ops), make([]Time, 0, ops)
	r.Attrs = Text{end: make([]uint32, 0, ops), data: make([]byte, 0, attrs)}
}

// Len returns the number of ops added so far, which is the index of the next op.
func (b *RankBuilder) Len() int {
	return len(b.rank.Kind)
}

// Calc appends a computation of duration d on stream 0.
func (b *RankBuilder) Calc(d Time, deps ...int) int {
	return b.Add(Op{Kind: Calc, Duration: d}, deps...)
}

// Send appends a send of a message to rank peer.
func (b *RankBuilder) Send(peer int32, bytes, tag int64, deps ...int) int {
	return b.Add(Op{Kind: Send, Peer: peer, Bytes: bytes, Tag: tag}, deps...)
}

// Recv appends a receive of a message from rank peer.
func (b *RankBuilder) Recv(peer int32, bytes, tag int64, deps ...int) int {
	return b.Add(Op{Kind: Recv, Peer: peer, Bytes: bytes, Tag: tag}, deps...)
}

// Step sets the step of the ops that are added from now on without one, from 1; 0: none.
func (b *RankBuilder) Step(step int32) {
	b.step = step
}

// Measure sets the measured start and end of op i.
func (b *RankBuilder) Measure(i int, start, end Time) {
	r := &b.rank
	for len(r.MeasuredStart) <= i {
		r.MeasuredStart = append(r.MeasuredStart, Unmeasured)
		r.MeasuredEnd = append(r.MeasuredEnd, Unmeasured)
	}
	r.MeasuredStart[i], r.MeasuredEnd[i] = start, end
}

// Requires makes op wait for the end of op on. Op must exist; on may be added later.
func (b *RankBuilder) Requires(op, on int) {
	b.require(&b.deps, op, on)
}

// RequiresStart makes op wait for the start of op on. Op must exist; on may be added later.
func (b *RankBuilder) RequiresStart(op, on int) {
	b.require(&b.start, op, on)
}

func (b *RankBuilder) require(edges *edgeBuilder, op, on int) {
	switch {
	case uint(op) >= uint(b.Len()) || uint(on) >= MaxOps:
		b.fail(errIndex)
	case int64(edges.len()) >= MaxDeps:
		b.fail(errDeps)
	default:
		edges.add(op, on)
	}
}

// Rank finishes the rank and returns it. After it, only Err may be called.
func (b *RankBuilder) Rank() Rank {
	b.rank.Deps, b.rank.Order = b.deps.finish(b.Len(), b.keepOrder)
	b.rank.StartDeps, b.rank.StartOrder = b.start.finish(b.Len(), b.keepOrder)
	b.rank.trim() // in place: a copy would escape to the heap
	r := b.rank
	*b = RankBuilder{err: b.err}
	return r
}

// edgeBuilder collects the dependencies of a rank. Nearly all arrive in the order of the dependent ops and are stored
// at once; the others wait in late.
type edgeBuilder struct {
	edges Edges
	late  []lateEdge
}

type lateEdge struct {
	op, on int32
	before uint32 // number of edges that came in order before this one
}

func (b *edgeBuilder) len() int {
	return len(b.edges.Off) + len(b.late)
}

func (b *edgeBuilder) add(op, on int) {
	if op+1 < len(b.edges.End) {
		b.late = append(b.late, lateEdge{op: int32(op), on: int32(on), before: uint32(len(b.edges.Off))})
		return
	}
	b.edges.Append(op, int32(op-on))
}

// finish returns the dependencies of a rank of n ops and, if keepOrder is set, the orders of dependents that are not
// ascending. Only late edges can cause such orders.
func (b *edgeBuilder) finish(n int, keepOrder bool) (edges, order Edges) {
	if len(b.late) == 0 {
		return b.edges, Edges{}
	}
	if keepOrder {
		order = b.order(n)
	}
	// Merge: the late edges of an op follow its edges that came in order, because those were added before any later
	// op.
	slices.SortStableFunc(b.late, func(x, y lateEdge) int { return int(x.op) - int(y.op) })
	edges.Off = make([]int32, 0, b.len())
	edges.End = make([]uint32, 0, len(b.edges.End))
	late := b.late
	for i := range b.edges.End {
		edges.Off = append(edges.Off, b.edges.Of(i)...)
		for ; len(late) > 0 && int(late[0].op) == i; late = late[1:] {
			edges.Off = append(edges.Off, late[0].op-late[0].on)
		}
		edges.End = append(edges.End, uint32(len(edges.Off)))
	}
	return edges, order
}

// order lists the dependents of each op in the order in which the edges were added, for the ops whose order is not
// ascending. It skips edges on ops that do not exist: CheckReferences reports them.
func (b *edgeBuilder) order(n int) Edges {
	type edge struct{ on, op int32 }
	all := make([]edge, 0, b.len())
	late, at := b.late, uint32(0)
	for i := range b.edges.End {
		for _, off := range b.edges.Of(i) {
			for ; len(late) > 0 && late[0].before <= at; late = late[1:] {
				all = append(all, edge{late[0].on, late[0].op})
			}
			all = append(all, edge{int32(i) - off, int32(i)})
			at++
		}
	}
	for ; len(late) > 0; late = late[1:] {
		all = append(all, edge{late[0].on, late[0].op})
	}
	all = slices.DeleteFunc(all, func(e edge) bool { return int(e.on) >= n })
	last := make([]int32, n) // the latest dependent so far of each op
	deviates := make([]bool, n)
	for _, e := range all {
		if e.op < last[e.on] {
			deviates[e.on] = true
		}
		last[e.on] = e.op
	}
	kept := slices.DeleteFunc(all, func(e edge) bool { return !deviates[e.on] })
	slices.SortStableFunc(kept, func(x, y edge) int { return int(x.on) - int(y.on) })
	var order Edges
	for _, e := range kept {
		order.Append(int(e.on), e.op-e.on)
	}
	return order
}
