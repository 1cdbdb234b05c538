package sim

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// ErrTooLong ends a run in which a time exceeds the range of dag.Time. Backends return it as a [*TooLongError], which
// names the op.
var ErrTooLong = errors.New("the simulated time exceeds 106 days, the longest that fits into 64 bits of picoseconds")

// TooLongError is the [ErrTooLong] of an op: its start, its end or the arrival of its message is out of range.
type TooLongError struct {
	Rank, Op int // index within the rank
	Kind     dag.Kind
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("rank %d op %d (%v): %v", e.Rank, e.Op, e.Kind, ErrTooLong)
}

// Unwrap returns [ErrTooLong].
func (e *TooLongError) Unwrap() error { return ErrTooLong }

// TooLong returns the error about a time of op i that is out of range.
func (p *Program) TooLong(i uint32) error {
	return &TooLongError{Rank: int(p.Ops[i].Rank), Op: p.Index(i), Kind: p.Kind(i)}
}

// TooLong returns the error about a time that is out of range inside the network: that of the first message in it.
func (e *Engine) TooLong() error {
	err := error(nil)
	e.p.EachInMemory(func(i uint32, op *Op) {
		inside := e.ready[i] == underWay || e.ready[i] == awaited
		if inside && op.Flags&(hasRun|IsColl) == hasRun|IsSend && err == nil {
			err = e.p.TooLong(i)
		}
	})
	return cmp.Or(err, ErrTooLong)
}

// Overflow is the section "overflow" of a result whose clocks left the range of dag.Time, which happens in models that
// reproduce the arithmetic of another simulator.
type Overflow struct {
	Rank    int    `json:"rank"`
	Op      int    `json:"op"`      // index within the rank, the first whose clock wrapped around; -1: none
	Wrapped bool   `json:"wrapped"` // a clock wrapped around, so that all later times are wrong
	Message string `json:"message"`
}

// AddOverflow adds the section "overflow": that a clock of the op of that number wrapped around, or if op is [NoOp],
// that a rank finishes after 106 days. It adds nothing if neither holds.
func (r *Result) AddOverflow(p *Program, op uint32) {
	o := Overflow{Op: -1}
	if op != NoOp {
		of := p.op(op)
		o = Overflow{Rank: int(of.Rank), Op: int(op - p.Start[of.Rank]), Wrapped: true}
		o.Message = fmt.Sprintf("rank %d op %d (%v): a clock wrapped around at 2^64 ns, as in the reproduced "+
			"simulator; times are its numbers, not durations", o.Rank, o.Op, of.Kind())
	} else {
		for o.Rank < len(r.Finish) && r.Finish[o.Rank].InRange() {
			o.Rank++
		}
		if o.Rank == len(r.Finish) {
			return
		}
		o.Message = fmt.Sprintf("rank %d finishes after 106 days, the range of times in other models", o.Rank)
	}
	r.Add(Section{Key: "overflow", Value: o, At: Early, Rows: []Row{{"overflow", o.Message}}, RowsAfter: "makespan"})
}
