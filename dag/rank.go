package dag

import (
	"cmp"
	"slices"
)

// This file contains all code that lists every field of an op: Rank, Op, and the conversions between them.

// Rank is the DAG of one rank, with one column per field. Only Kind always has one value per op. [Fields] describes
// the columns.
//
// An op takes one byte for Kind, one byte for each [Narrow] column and for Subkind, four or eight bytes for each
// other column that the rank uses, four bytes each for the lists of Deps and StartDeps, and four bytes per
// dependency.
type Rank struct {
	Kind      []Kind
	Subkind   Column[Subkind]
	Bytes     Column[int64] // message, tensor or I/O size; collectives: bytes contributed by this rank
	RecvBytes Column[int64] // collectives: bytes received by this rank; 0 = equal to Bytes
	Peer      Column[int32] // partner rank; rooted collectives: the root's rank, or UnknownRoot; AnySource
	Tag       Column[int64] // message tag; AnyTag; collectives: a number defined by the format
	Comm      Narrow        // communicator, an index of Trace.Comms
	Duration  Column[Time]  // compute, memory or I/O time; other ops: recorded duration, see CalcTime
	Flops     Column[int64] // floating-point operations, for roofline models; 0 = unknown
	Release   Column[Time]  // earliest start after the start of the trace; 0 = no limit
	Stream    Narrow        // compute stream: ops on one stream do not overlap
	NIC       Narrow        // NIC of the rank
	Job       Narrow        // job of a merged trace
	Host      Narrow        // 1: runs on the host processor instead of the accelerator of the rank
	Dims      Narrow        // collectives: network dimensions that take part, bit d for dimension d; 0 = all
	Priority  Narrow        // collectives: higher goes first in backends that schedule by priority
	Deps      Edges         // ops that must finish first, as (this index - that index)
	StartDeps Edges         // ops that must have started first, as (this index - that index)

	// Orders of dependents that are not ascending, as (that index - this index): the whole list for such an op, an
	// empty list for the others. Order belongs to Deps, StartOrder to StartDeps.
	Order, StartOrder Edges

	Name  Text // name for people
	Attrs Text // data of the format that the model does not have: a JSON object

	// Measured start and end of the op; Unmeasured, or beyond the end of the column, if the tracer did not record
	// them. They never constrain the op.
	MeasuredStart, MeasuredEnd []Time

	Step Narrow // number of the iteration, from 1; 0 = none
}

// Len returns the number of ops.
func (r *Rank) Len() int {
	return len(r.Kind)
}

// none is the rank without ops that traces share: a rank takes nearly 1 KiB even if it has none.
var none Rank

// NewRanks returns n ranks without ops, in a few bytes each. They are one rank in common that must not be changed:
// assign others in its place, or use [Trace.Change].
func NewRanks(n int) []*Rank {
	return AppendRanks(nil, n)
}

// Change returns rank i for changes in place: its own, in place of the rank of NewRanks.
func (t *Trace) Change(i int) *Rank {
	if t.Ranks[i] == &none {
		t.Ranks[i] = new(Rank)
	}
	return t.Ranks[i]
}

// checkNone panics if the rank of NewRanks was changed, before that makes wrong traces.
func checkNone() {
	if none.Len() > 0 {
		panic("the rank in common of all ranks without ops was changed: see dag.NewRanks")
	}
}

// AppendRanks appends n ranks of NewRanks.
func AppendRanks(ranks []*Rank, n int) []*Rank {
	checkNone()
	ranks = slices.Grow(ranks, n)
	for range n {
		ranks = append(ranks, &none)
	}
	return ranks
}

// Keep returns the rank for [Trace.Ranks]: a copy that shares its columns. Without ops it is that of NewRanks.
func (r *Rank) Keep() *Rank {
	if r.Len() == 0 && len(r.Deps.End) == 0 && len(r.StartDeps.End) == 0 {
		return &none
	}
	kept := *r
	return &kept
}

// Timed returns the rank with a duration for each calc that has operations but none: the time of its index. The result
// shares all else with r, and is r if there is no such calc.
func (r *Rank) Timed(time func(i int) Time) *Rank {
	out := r
	for i, flops := range r.Flops {
		if flops <= 0 || i >= len(r.Kind) || r.Kind[i] != Calc || r.Duration.At(i) != 0 {
			continue
		}
		if out == r {
			out = r.Keep()
			out.Duration = append(Column[Time](nil), r.Duration...)
		}
		out.Duration.Set(i, time(i))
	}
	return out
}

// CopyRanks returns ranks that can be changed without changing the given ones, but share their columns. Those without
// ops are that of NewRanks.
func CopyRanks(ranks []*Rank) []*Rank {
	copies := make([]*Rank, len(ranks))
	for i, r := range ranks {
		copies[i] = r.Keep()
	}
	return copies
}

// Op is one op of a rank with all fields except dependencies, for [RankBuilder.Add] and [Rank.Op]. The fields are
// those of [Rank].
type Op struct {
	Kind                       Kind
	Subkind                    Subkind
	Bytes, RecvBytes           int64
	Peer                       int32
	Tag                        int64
	Comm                       int32
	Duration                   Time
	Flops                      int64
	Release                    Time
	Stream, NIC, Job           int32
	Host, Dims, Priority, Step int32
	Name, Attrs                string
	Timed                      bool // the measured times are set
	MeasuredStart, MeasuredEnd Time
}

// Op returns op i.
func (r *Rank) Op(i int) Op {
	start, end := r.Measured(i)
	op := Op{
		Kind: r.Kind[i], Subkind: r.Subkind.At(i), Bytes: r.Bytes.At(i), RecvBytes: r.RecvBytes.At(i),
		Peer: r.Peer.At(i), Tag: r.Tag.At(i), Comm: r.Comm.At(i), Duration: r.Duration.At(i), Flops: r.Flops.At(i),
		Release: r.Release.At(i), Stream: r.Stream.At(i), NIC: r.NIC.At(i), Job: r.Job.At(i),
		Host: r.Host.At(i), Dims: r.Dims.At(i), Priority: r.Priority.At(i), Step: r.Step.At(i),
		Name: r.Name.At(i), Attrs: r.Attrs.At(i),
	}
	if start != Unmeasured || end != Unmeasured {
		op.Timed, op.MeasuredStart, op.MeasuredEnd = true, start, end
	}
	return op
}

// Add appends an op that waits for the end of the ops deps, and returns its index. If the op does not fit, Err
// reports it.
func (b *RankBuilder) Add(op Op, deps ...int) int {
	r := &b.rank
	i := len(r.Kind)
	if i >= MaxOps {
		b.fail(errOps)
		return i
	}
	r.Kind = append(r.Kind, op.Kind)
	r.Subkind.Set(i, op.Subkind)
	r.Bytes.Set(i, op.Bytes)
	r.RecvBytes.Set(i, op.RecvBytes)
	r.Peer.Set(i, op.Peer)
	r.Tag.Set(i, op.Tag)
	r.Comm.Set(i, op.Comm)
	r.Duration.Set(i, op.Duration)
	r.Flops.Set(i, op.Flops)
	r.Release.Set(i, op.Release)
	r.Stream.Set(i, op.Stream)
	r.NIC.Set(i, op.NIC)
	r.Job.Set(i, op.Job)
	r.Host.Set(i, op.Host)
	r.Dims.Set(i, op.Dims)
	r.Priority.Set(i, op.Priority)
	r.Step.Set(i, cmp.Or(op.Step, b.step))
	if !b.textless && (!r.Name.Append(i, op.Name) || !r.Attrs.Append(i, op.Attrs)) {
		b.fail(errText)
	}
	if op.Timed {
		b.Measure(i, op.MeasuredStart, op.MeasuredEnd)
	}
	for _, d := range deps {
		b.Requires(i, d)
	}
	return i
}
