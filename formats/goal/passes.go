// This file reads a trace in two passes, batch by batch: the first surveys it before the first byte, the second
// writes it.

package goal

import (
	"errors"
	"fmt"
	"io"
	"runtime"

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
	if own := format.Own(o.Own, func() *WriteOptions { return new(WriteOptions) }); !own.NoClock && !o.Compat {
		var err error
		if c, err = withClock(s, binary); err != nil {
			return err
		}
		s = c
	}
	h, err := s.Header()
	if err != nil {
		return err
	}
	p := plan{binary: binary, compat: o.Compat, counts: o.Losses != nil}
	in, err := newIntake(s, h)
	if err != nil {
		return err
	}
	found, err := p.examine(in)
	if err != nil {
		return err
	}
	if h.Ranks == 0 {
		return errors.New("expected at least 1 rank, found none")
	}
	if err := found.err(); err != nil {
		return err
	}
	found.addClock(c, binary)
	if o.Losses != nil {
		if err := o.Losses(found.losses(h.Nodes)); err != nil {
			return err
		}
	}
	out := output{w: w}
	if binary {
		if err := writeHeader(&out, found); err != nil {
			return err
		}
		return in.write(&out, func(out *output, rank int, r *dag.Rank) error {
			if sectionSize(r) != found.sections[rank] {
				return fmt.Errorf("rank %d changed between the two passes", rank)
			}
			writeSection(out, r)
			return nil
		})
	}
	writeTextHead(&out, h.Ranks)
	return in.write(&out, func(out *output, rank int, r *dag.Rank) error {
		return writeBlock(out, rank, r, c != nil && c.Ticks(rank) > 0)
	})
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
		in, err = newIntake(s, h)
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
		all.append(found)
		*found = survey{sections: found.sections[:0]}
		return nil
	})
}

// intake reads a trace part by part, several parts at the same time.
type intake struct {
	parts   [][]dag.Batch
	readers []dag.Reader
}

func newIntake(s dag.Source, h *dag.Header) (*intake, error) {
	parts, readers, err := divide(h)
	if err != nil {
		return nil, err
	}
	in := &intake{parts: parts}
	for range readers {
		in.readers = append(in.readers, s.NewReader(dag.All))
	}
	return in, nil
}

// write runs the second pass: write writes every rank.
func (in *intake) write(out *output, write func(*output, int, *dag.Rank) error) error {
	if err := out.flush(); err != nil {
		return err
	}
	if len(in.readers) > 1 {
		return inOrder(len(in.parts), perReader(in, write), out.take)
	}
	for _, part := range in.parts {
		err := eachRank(in.readers[0], part, func(rank int, r *dag.Rank) error {
			if err := write(out, rank, r); err != nil {
				return err
			}
			return out.err
		})
		if err != nil {
			return err
		}
	}
	return out.flush()
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
