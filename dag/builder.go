package dag

import (
	"errors"
	"fmt"
	"slices"
)

// Builder makes a trace op by op. Different ranks may be built at the same time.
type Builder struct {
	trace Trace
	ranks []RankBuilder
	err   error
}

// NewBuilder returns a builder of a trace with n ranks, and communicator 0 of all of them.
func NewBuilder(n int) *Builder {
	return &Builder{trace: Trace{Comms: []Comm{World(n)}}, ranks: make([]RankBuilder, n)}
}

// Meta returns the metadata of the trace, for the caller to fill.
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
	return &b.ranks[i]
}

// Trace finishes every rank and returns the trace. Nothing but Err may be called afterwards.
func (b *Builder) Trace() *Trace {
	b.err = b.Err()
	b.trace.Ranks = make([]Rank, len(b.ranks))
	for i := range b.ranks {
		b.trace.Ranks[i] = b.ranks[i].Rank()
	}
	b.ranks = nil
	return &b.trace
}

// Err returns the error of the first rank that has one, see [RankBuilder.Err].
func (b *Builder) Err() error {
	for i := range b.ranks {
		if err := b.ranks[i].err; err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
	}
	return b.err
}

// RankBuilder makes the DAG of one rank. The zero value is an empty rank.
type RankBuilder struct {
	rank        Rank
	deps, start edgeBuilder
	keepOrder   bool
	err         error
}

// What a rank cannot hold.
var (
	errOps   = fmt.Errorf("more than %d ops", MaxOps)
	errDeps  = fmt.Errorf("more than %d dependencies", int64(MaxDeps))
	errText  = errors.New("more than 4 GiB of names or attributes")
	errIndex = errors.New("a dependency of or on an op with an impossible index")
)

// Err returns the first reason why something was left out of the rank: more ops, dependencies or text than a rank can
// hold, or a dependency of an op not yet added or on an index that no op can have. It stays valid after Rank. (That a
// dependency is on an op that was never added only shows at the end: [Rank.CheckReferences] tells.)
func (b *RankBuilder) Err() error {
	return b.err
}

func (b *RankBuilder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// KeepOrder makes the order of an op's dependents that of the Requires and RequiresStart calls, for formats in which
// it carries meaning; without it the order is ascending.
func (b *RankBuilder) KeepOrder() {
	b.keepOrder = true
}

// Reserve makes room in an empty rank for so many sends, receives and calcs, and dependencies on ends of ops. It only
// saves time.
func (b *RankBuilder) Reserve(ops, deps int) {
	r := &b.rank
	r.Kind, r.Bytes, r.Peer = make([]Kind, 0, ops), make([]int64, 0, ops), make([]int32, 0, ops)
	b.deps.edges = Edges{End: make([]uint32, 0, ops), Off: make([]int32, 0, deps)}
}

// ReserveMeasured is Reserve for what ops of measured traces have beside that: durations, measured times, and
// attributes of so many bytes in all.
func (b *RankBuilder) ReserveMeasured(ops, attrs int) {
	r := &b.rank
	r.Duration = make([]Time, 0, ops)
	r.MeasuredStart, r.MeasuredEnd = make([]Time, 0, ops), make([]Time, 0, ops)
	r.Attrs = Text{end: make([]uint32, 0, ops), data: make([]byte, 0, attrs)}
}

// Len returns the number of ops so far: the index of the next.
func (b *RankBuilder) Len() int {
	return len(b.rank.Kind)
}

// Calc appends a computation of length d on stream 0.
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

// Measure sets when the tracer saw op i start and end.
func (b *RankBuilder) Measure(i int, start, end Time) {
	r := &b.rank
	for len(r.MeasuredStart) <= i {
		r.MeasuredStart = append(r.MeasuredStart, Unmeasured)
		r.MeasuredEnd = append(r.MeasuredEnd, Unmeasured)
	}
	r.MeasuredStart[i], r.MeasuredEnd[i] = start, end
}

// Requires makes op, which must have been added, wait for the end of op on, which may still be to come.
func (b *RankBuilder) Requires(op, on int) {
	b.require(&b.deps, op, on)
}

// RequiresStart makes op, which must have been added, wait for the start of op on, which may still be to come.
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

// Rank finishes the rank and returns it. Nothing but Err may be called afterwards.
func (b *RankBuilder) Rank() Rank {
	b.rank.Deps, b.rank.Order = b.deps.finish(b.Len(), b.keepOrder)
	b.rank.StartDeps, b.rank.StartOrder = b.start.finish(b.Len(), b.keepOrder)
	b.rank.trim() // in place: a copy would move to the heap
	r := b.rank
	*b = RankBuilder{err: b.err}
	return r
}

// edgeBuilder collects the dependencies of a rank. Nearly all come in the order of the dependent ops and go straight
// to their place; the others wait in late.
type edgeBuilder struct {
	edges Edges
	late  []lateEdge
}

type lateEdge struct {
	op, on int32
	before uint32 // how many edges came in order before this one
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
// ascending. Only late edges can cause those.
func (b *edgeBuilder) finish(n int, keepOrder bool) (edges, order Edges) {
	if len(b.late) == 0 {
		return b.edges, Edges{}
	}
	if keepOrder {
		order = b.order(n)
	}
	// Merge: the late edges of an op follow those that came in order, for those were added before a later op's.
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

// order lists the dependents of each op in the order in which the edges were added, for the ops where that is not
// ascending. Edges on ops that do not exist are passed over: they are an error that others report.
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
	last := make([]int32, n) // of each op, its latest dependent so far
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
