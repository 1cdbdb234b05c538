package store

// Reading of a trace while it is written.

import (
	"fmt"
	"iter"
	"runtime"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// maxAhead is how many ops are read ahead at most, if batches are no larger.
const maxAhead = 1 << 23

// delivery is a batch of ranks that was read.
type delivery struct {
	ranks []*dag.Rank
	err   error
}

// readAhead yields the ranks of a source in order, after the checks that Write makes, and reads some batches ahead. It
// ends with an error if the source has not what it told.
func readAhead(s dag.Source, h *dag.Header) iter.Seq2[*dag.Rank, error] {
	reader := func() func(dag.Batch) delivery {
		read := s.NewReader(dag.All)
		return func(b dag.Batch) (d delivery) {
			d.err = guard(func() (err error) {
				d.ranks, err = readBatch(read, b, len(h.Comms), len(h.Jobs))
				return err
			})
			return d
		}
	}
	return func(yield func(*dag.Rank, error) bool) {
		largest := int64(1)
		for _, b := range h.Batches {
			largest = max(largest, b.Ops)
		}
		readers := int(min(max(maxAhead/largest, 1), int64(runtime.GOMAXPROCS(0))))
		ranks, ops := 0, int64(0)
		for d := range par.Ordered(slices.Values(h.Batches), readers, readers-1, reader) {
			if d.err != nil {
				yield(nil, d.err)
				return
			}
			for i, r := range d.ranks {
				d.ranks[i] = nil // so that its memory goes when it is written
				ranks++
				ops += int64(r.Len())
				if !yield(r, nil) {
					return
				}
			}
		}
		if ranks != h.Ranks || ops != h.Ops {
			yield(nil, fmt.Errorf("the trace has %d ops on %d ranks, expected %d on %d", ops, ranks, h.Ops, h.Ranks))
		}
	}
}

// readBatch reads a batch into memory of its own.
func readBatch(read dag.Reader, b dag.Batch, comms, jobs int) ([]*dag.Rank, error) {
	ranks, err := read(b)
	if err != nil {
		return nil, err
	}
	copies := make([]*dag.Rank, len(ranks))
	for i := range ranks {
		if err := checkRank(&ranks[i], comms, jobs); err != nil {
			return nil, fmt.Errorf("rank %d: %w", b.First+i, err)
		}
		copies[i] = ranks[i].Clone()
	}
	return copies, nil
}
