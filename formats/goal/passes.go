// This file reads a trace batch by batch. If the output can be changed, one pass surveys and writes it. Else the first
// pass surveys it before the first byte, and the second writes it.

package goal

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/clock"
	"github.com/tracedag/tracedag/formats/format"
)

// plan is the task of the first pass.
type plan struct {
	binary bool
	compat bool
	counts bool // the losses are requested
}

// writeSource writes a trace in either form.
func writeSource(w io.Writer, s dag.Source, o format.WriteOptions, binary bool) error {
	var c *clock.Clock
	h, err := s.Header()
	if err != nil {
		return err
	}
	own := format.Own(o.Own, func() *WriteOptions { return new(WriteOptions) })
	if !own.NoClock && !o.Compat && !h.Unreleased {
		if c, err = withClock(s, binary); err != nil {
			return err
		}
		s = c
		if h, err = s.Header(); err != nil {
			return err
		}
	}
	p := plan{binary: binary, compat: o.Compat, counts: o.Losses != nil}
	in, err := newIntake(s, h, o.Frugal)
	if err != nil {
		return err
	}
	write := writer(c, binary)
	out := output{w: w}
	if o.Rewrite != nil {
		if err := writeHead(&out, h.Ranks, nil, binary); err != nil {
			return err
		}
		found, err := p.examineAndWrite(in, &out, write)
		if err != nil {
			return err
		}
		return complete(found, c, h, o, binary)
	}
	found, err := p.examine(in)
	if err != nil {
		return err
	}
	if err := refuse(found, c, h, o, binary); err != nil {
		return err
	}
	if err := writeHead(&out, h.Ranks, found, binary); err != nil {
		return err
	}
	return in.write(&out, func(out *output, rank int, r *dag.Rank) error {
		if binary && sectionSize(r) != found.sections[rank] {
			return fmt.Errorf("rank %d changed between the two passes", rank)
		}
		return write(out, rank, r)
	})
}

// writeOnce is writeSource in one pass over the source, for a trace without release times that become a clock.
func writeOnce(w io.Writer, s format.Stream, o format.WriteOptions, binary bool) (int64, error) {
	own := format.Own(o.Own, func() *WriteOptions { return new(WriteOptions) })
	clocks := !own.NoClock && !o.Compat
	p := plan{binary: binary, compat: o.Compat, counts: o.Losses != nil}
	found, out, write := new(survey), output{w: w}, writer(nil, binary)
	err := s.Once(func(ranks, first int, next []*dag.Rank) error {
		if first == 0 {
			if err := writeHead(&out, ranks, nil, binary); err != nil {
				return err
			}
		}
		for i, r := range next {
			if clocks && r.Release.Present() > 0 {
				return format.ErrTwice
			}
			if found.add(p, first+i, r); found.bad() {
				continue
			}
			if err := write(&out, first+i, r); err != nil {
				return err
			}
		}
		return out.err
	})
	if err != nil {
		return 0, err
	}
	if err := out.flush(); err != nil {
		return 0, err
	}
	h, err := s.Header()
	if err != nil {
		return 0, err
	}
	return found.ops, complete(found, nil, h, o, binary)
}

// writer returns the function that writes a rank in either form.
func writer(c *clock.Clock, binary bool) func(out *output, rank int, r *dag.Rank) error {
	if binary {
		return func(out *output, _ int, r *dag.Rank) error {
			writeSection(out, r)
			return nil
		}
	}
	return func(out *output, rank int, r *dag.Rank) error {
		return writeBlock(out, rank, r, c != nil && c.Ticks(rank) > 0)
	}
}

// writeHead writes the part before the first rank. found is nil if it is written again later.
func writeHead(out *output, ranks int, found *survey, binary bool) error {
	if !binary {
		writeTextHead(out, ranks)
		return nil
	}
	if found == nil {
		found = &survey{sections: make([]uint64, ranks)}
	}
	return writeHeader(out, found)
}

// refuse returns an error if GOAL cannot represent the trace or its losses are not allowed.
func refuse(found *survey, c *clock.Clock, h *dag.Header, o format.WriteOptions, binary bool) error {
	if h.Ranks == 0 {
		return errors.New("expected at least 1 rank, found none")
	}
	if err := found.err(); err != nil {
		return err
	}
	found.addClock(c, binary)
	if o.Losses != nil {
		return o.Losses(found.losses(h.Nodes))
	}
	return nil
}

// complete writes the head of a binary whose ranks are written.
func complete(found *survey, c *clock.Clock, h *dag.Header, o format.WriteOptions, binary bool) error {
	if err := refuse(found, c, h, o, binary); err != nil || !binary {
		return err
	}
	head := output{w: io.NewOffsetWriter(o.Rewrite, 0)}
	if err := writeHeader(&head, found); err != nil {
		return err
	}
	return head.flush()
}

// losses returns the losses of a trace.
func losses(t *dag.Trace, binary bool) []format.Loss {
	s := dag.FromTrace(t)
	c, err := withClock(s, binary)
	if err != nil {
		return nil // writing reports the error
	}
	s = c
	h, err := s.Header()
	var in *intake
	if err == nil {
		in, err = newIntake(s, h, false)
	}
	var found *survey
	if err == nil {
		found, err = plan{binary: binary, counts: true}.examine(in)
	}
	if err != nil {
		panic(err) // reading a trace in memory cannot fail
	}
	found.addClock(c, binary)
	return found.losses(t.Nodes)
}

// examine runs the first pass.
func (p plan) examine(in *intake) (*survey, error) {
	all := new(survey)
	return all, inOrder(len(in.parts), perReader(in, func(found *survey, rank int, r *dag.Rank) error {
		found.add(p, rank, r)
		return nil
	}), func(found *survey) error {
		all.takeFrom(found)
		return nil
	})
}

// examineAndWrite is examine and intake.write in one pass. It writes no rank after one that GOAL cannot represent.
func (p plan) examineAndWrite(in *intake, out *output, write func(*output, int, *dag.Rank) error) (*survey, error) {
	all := new(survey)
	return all, in.each(out, func(t *piece, rank int, r *dag.Rank) error {
		if t.found.add(p, rank, r); t.found.bad() {
			return nil
		}
		return write(&t.out, rank, r)
	}, func(t *piece) { all.takeFrom(&t.found) })
}

// intake reads a trace part by part, several parts at the same time.
type intake struct {
	parts   [][]dag.Batch
	readers []dag.Reader
	frugal  bool // format one large rank at a time
}

func newIntake(s dag.Source, h *dag.Header, frugal bool) (*intake, error) {
	parts, readers, err := divide(h)
	if err != nil {
		return nil, err
	}
	in := &intake{parts: parts, frugal: frugal}
	if frugal {
		largest := int64(0)
		for _, b := range h.Batches {
			largest = max(largest, b.Ops+b.Deps+b.StartDeps)
		}
		if largest > 2*partLines { // their texts take more memory than the batches themselves
			readers = 1
		}
	}
	for range readers {
		in.readers = append(in.readers, s.NewReader(dag.All))
	}
	return in, nil
}

// write runs the second pass: write writes every rank.
func (in *intake) write(out *output, write func(*output, int, *dag.Rank) error) error {
	return in.each(out, func(t *piece, rank int, r *dag.Rank) error { return write(&t.out, rank, r) }, func(*piece) {})
}

// piece is the result of some ranks.
type piece struct {
	found survey
	out   output
}

// each calls do for every rank, for several ranks at the same time. It calls take with the results in order and writes
// their output.
func (in *intake) each(out *output, do func(t *piece, rank int, r *dag.Rank) error, take func(*piece)) error {
	if err := out.flush(); err != nil {
		return err
	}
	takeOut := func(t *piece) error {
		take(t)
		return out.take(&t.out)
	}
	if len(in.readers) > 1 {
		return inOrder(len(in.parts), perReader(in, do), takeOut)
	}
	direct := piece{out: output{w: out.w}} // a large rank is written while it is formatted
	for _, b := range slices.Concat(in.parts...) {
		ranks, err := in.readers[0].Ranks(b)
		if err != nil {
			return err
		}
		run := func(t *piece, s span) error {
			for i := s.first; i < s.last; i++ {
				if err := do(t, b.First+i, ranks[i]); err != nil {
					return err
				}
				if t.out.err != nil {
					return t.out.err
				}
			}
			return nil
		}
		pieces, largest := dividePieces(ranks)
		workers := min(runtime.GOMAXPROCS(0), len(pieces))
		if in.frugal && largest > 2*partLines {
			workers = 1
		}
		if workers > 1 {
			work := func(k int, t *piece) error { return run(t, pieces[k]) }
			err = inOrder(len(pieces), slices.Repeat([]func(int, *piece) error{work}, workers), takeOut)
		} else if err = run(&direct, span{0, len(ranks)}); err == nil {
			take(&direct)
			err = direct.out.flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// span is a run of ranks of a batch.
type span struct{ first, last int }

// dividePieces divides ranks into runs of up to partLines ops and dependencies. A rank that has more is one of its own;
// largest is the number of the largest rank.
func dividePieces(ranks []*dag.Rank) (pieces []span, largest int) {
	lines := 0
	for i, r := range ranks {
		n := r.Len() + len(r.Deps.Off) + len(r.StartDeps.Off)
		largest = max(largest, n)
		if k := len(pieces) - 1; k >= 0 && lines+n <= partLines {
			pieces[k].last++
			lines += n
			continue
		}
		pieces = append(pieces, span{i, i + 1})
		lines = n
	}
	return pieces, largest
}

// perReader returns, for each reader, a function that adds the ranks of a part to a T.
func perReader[T any](in *intake, add func(t *T, rank int, r *dag.Rank) error) []func(part int, t *T) error {
	var work []func(int, *T) error
	for _, read := range in.readers {
		work = append(work, func(i int, t *T) error {
			return eachRank(read, in.parts[i], func(rank int, r *dag.Rank) error { return add(t, rank, r) })
		})
	}
	return work
}

// At most maxLines ops and dependencies are read and formatted at the same time, unless batches are larger. A part
// has ranks with up to partLines.
const (
	maxLines  = 1 << 21
	partLines = 1 << 15
)

// divide divides the batches of a source into parts, and returns the number of parts to read at the same time.
func divide(h *dag.Header) (parts [][]dag.Batch, readers int, err error) {
	batches := h.Batches
	first, ranks := 0, 0
	lines, largest := int64(0), int64(1)
	for i, b := range batches {
		if b.First != ranks || b.Last < b.First {
			return nil, 0, fmt.Errorf("expected contiguous batches, found ranks %d to %d after rank %d", b.First,
				b.Last-1, ranks-1)
		}
		ranks = b.Last
		n := b.Ops + b.Deps + b.StartDeps
		if i > first && lines+n > partLines {
			parts = append(parts, batches[first:i])
			first, lines = i, 0
		}
		lines += n
		largest = max(largest, lines)
	}
	if ranks != h.Ranks {
		return nil, 0, fmt.Errorf("expected batches of %d ranks, found %d", h.Ranks, ranks)
	}
	if first < len(batches) {
		parts = append(parts, batches[first:])
	}
	readers = int(min(max(maxLines/largest, 1), int64(runtime.GOMAXPROCS(0)), int64(max(len(parts), 1))))
	return parts, readers, nil
}

// eachRank reads batches and calls do for every rank, which is valid until do returns.
func eachRank(read dag.Reader, batches []dag.Batch,
	do func(rank int, r *dag.Rank) error) error {
	for _, b := range batches {
		ranks, err := read(b)
		if err != nil {
			return err
		}
		if len(ranks) != b.Last-b.First {
			return fmt.Errorf("expected ranks %d to %d, found %d ranks", b.First, b.Last-1, len(ranks))
		}
		for i := range ranks {
			if err := do(b.First+i, ranks[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
