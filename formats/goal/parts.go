// This file passes long blocks on in parts, so that they are never in memory as a whole. The first pass over a text
// passes on ops without their dependencies, which it counts, and finds the blocks that a second pass can divide: those
// whose dependencies are in the order of their ops, and not far behind them.

package goal

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

const (
	// partOps is the number of ops from which a part is passed on.
	partOps = 1 << 15
	// longestLag is the greatest number of ops between an op and a line with a dependency of it in a block that is
	// read in parts.
	longestLag = 1 << 16
)

// parting is how a reader passes blocks on in parts.
type parting struct {
	ops     int  // number of ops from which a part is passed on
	lag     int  // the greatest number of ops between an op and the lines with its dependencies
	whole   bool // blocks of fewer ops than that are passed on as a whole, and no part has dependencies
	clocked bool // marks of clocks have no meaning

	// take takes a part, which is valid until it returns.
	take func(part dag.Run) error
	// end ends a block with the given greatest lag; noLag: its dependencies are not in the order of their ops.
	end func(lag int) error
}

// noLag is the lag of a block that cannot be read in parts.
const noLag = math.MaxInt

var (
	// errClocked reports a mark of a clock in a block of which parts were passed on.
	errClocked = errors.New("a clock after the first ops of a block")
	// errDisorder reports a block that could be read in parts when it was read first.
	errDisorder = errors.New("dependencies in another order")
)

// inParts reports whether the current block is passed on in parts.
func (r *textReader) inParts() bool {
	return r.parts != nil && (!r.parts.whole || r.block.base > 0)
}

// passOn passes on the ops whose dependencies are complete, if they are many.
func (r *textReader) passOn() error {
	p, b := r.parts, &r.block
	if p == nil || len(b.kind) < p.ops+p.lag || r.numRanks == 0 || r.clock >= 0 && !p.clocked {
		return nil
	}
	return r.passOps(len(b.kind) - p.lag)
}

// passOps passes on the first n ops of the block.
func (r *textReader) passOps(n int) error {
	b := &r.block
	if r.parts.whole {
		b.deps.dropAll()
		b.start.dropAll()
	} else if !b.deps.inOrder(b.base) || !b.start.inOrder(b.base) {
		return errDisorder
	}
	part, err := b.head(n)
	if err != nil {
		return r.tooMuch(err)
	}
	if err := r.parts.take(dag.Run{Rank: r.rank, First: b.base, Ops: &part}); err != nil {
		return err
	}
	if err := b.drop(n); err != nil {
		return r.tooMuch(err)
	}
	return nil
}

// finishParts ends a block that is passed on in parts.
func (r *textReader) finishParts() error {
	b := &r.block
	if uint64(max(b.deps.count(), b.start.count())) > dag.MaxDeps {
		return r.tooMuch(errTooMuch)
	}
	if err := r.passOps(len(b.kind)); err != nil {
		return err
	}
	lag := max(b.deps.lag, b.start.lag)
	if b.deps.unsorted || b.start.unsorted {
		lag = noLag
	}
	if err := r.parts.end(lag); err != nil {
		return err
	}
	b.end()
	r.endBlock()
	return nil
}

// InParts reports whether a batch is one rank that ReadParts reads.
func (t *textSource) InParts(b dag.Batch) bool {
	h, err := t.Header()
	if err != nil {
		return false
	}
	k, found := h.Find(b)
	return found && t.places[k].lag > 0
}

// ReadParts reads a batch of one rank in parts. It parses the text on the calling goroutine.
func (t *textSource) ReadParts(b dag.Batch, take func(dag.Run) error) error {
	h, err := t.Header()
	if err != nil {
		return err
	}
	k, _ := h.Find(b)
	p := t.places[k]
	r := t.newReaderAt(p, b.First, h.Ranks)
	found := dag.Batch{First: b.First, Last: b.Last}
	r.parts = &parting{ops: t.part, lag: p.lag, clocked: true, end: func(int) error {
		found.Deps += r.block.deps.count()
		found.StartDeps += r.block.start.count()
		return nil
	}}
	r.parts.take = func(part dag.Run) error {
		if err := par.Interrupted(t.o.Context); err != nil {
			return fmt.Errorf("reading the trace: %w", err)
		}
		found.Ops += int64(part.Ops.Len())
		return take(part)
	}
	err = format.EachLines(t.o.Context, io.NewSectionReader(t.in.At, p.from, p.to-p.from), r.parse)
	if err == nil && r.rank < b.Last { // the file ends within the last block
		err = r.finishBlock()
	}
	if err == errDisorder || err == nil && found != h.Batches[k] {
		return t.changed(b, found.Ops)
	}
	return err
}
