// The writer of schedules into ranks.

package schedgen

import "github.com/tracedag/tracedag/dag"

// Emitter appends ops and dependencies to a rank in the order of the lines of a GOAL schedule, and keeps that order,
// including the order of an op's dependents and repeated dependencies. Ops are indices in the rank: Schedgen's labels
// minus one.
type Emitter struct {
	b *dag.RankBuilder // nil: only count

	ops  int   // counted
	deps int64 // counted

	marked bool
	mark   int     // first op whose sides are recorded
	sides  []uint8 // by op from mark on: its sides in dependencies; calcs have both
}

const (
	left = 1 << iota
	right
)

// NewEmitter returns an emitter of ops for the end of a rank.
func NewEmitter(b *dag.RankBuilder) *Emitter {
	b.KeepOrder()
	return &Emitter{b: b}
}

// Send emits a send and returns its index.
func (e *Emitter) Send(peer int, bytes, tag int64) int {
	return e.emit(dag.Op{Kind: dag.Send, Peer: int32(peer), Bytes: bytes, Tag: tag})
}

// Recv emits a receive and returns its index.
func (e *Emitter) Recv(peer int, bytes, tag int64) int {
	return e.emit(dag.Op{Kind: dag.Recv, Peer: int32(peer), Bytes: bytes, Tag: tag})
}

// Calc emits a computation on a stream, which GOAL calls a cpu, and returns its index.
func (e *Emitter) Calc(d dag.Time, stream int32) int {
	return e.emit(dag.Op{Kind: dag.Calc, Duration: d, Stream: stream})
}

func (e *Emitter) emit(op dag.Op) int {
	if e.marked {
		side := uint8(0)
		if op.Kind == dag.Calc {
			side = left | right
		}
		e.sides = append(e.sides, side)
	}
	if e.b == nil {
		e.ops++
		return e.ops - 1
	}
	return e.b.Add(op)
}

// Requires emits "op requires on".
func (e *Emitter) Requires(op, on int) {
	e.note(op, on)
	if e.b != nil {
		e.b.Requires(op, on)
	}
}

// IRequires emits "op irequires on".
func (e *Emitter) IRequires(op, on int) {
	e.note(op, on)
	if e.b != nil {
		e.b.RequiresStart(op, on)
	}
}

func (e *Emitter) note(op, on int) {
	e.deps++
	if !e.marked {
		return
	}
	if op >= e.mark {
		e.sides[op-e.mark] |= left
	}
	if on >= e.mark {
		e.sides[on-e.mark] |= right
	}
}

// Mark begins a group of ops for [Emitter.First] and [Emitter.Last]: all later ops. They must all come from this
// emitter.
func (e *Emitter) Mark() {
	e.marked, e.mark, e.sides = true, e.len(), e.sides[:0]
}

func (e *Emitter) len() int {
	if e.b == nil {
		return e.ops
	}
	return e.b.Len()
}

// First appends to list the sends and receives since the mark without dependencies, ascending.
func (e *Emitter) First(list []int) []int {
	return e.without(left, list)
}

// Last appends to list the sends and receives since the mark that no op depends on, ascending.
func (e *Emitter) Last(list []int) []int {
	return e.without(right, list)
}

func (e *Emitter) without(side uint8, list []int) []int {
	for i, s := range e.sides {
		if s&side == 0 {
			list = append(list, e.mark+i)
		}
	}
	return list
}
