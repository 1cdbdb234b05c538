package store

// Reading of a trace during writing.

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// The maximum number of ops to read ahead, unless a single batch is larger; frugalAhead if memory matters more than the
// use of all processors.
const (
	maxAhead    = 1 << 23
	frugalAhead = 1 << 16
)

// delivery is a batch of ranks that was read.
type delivery struct {
	ranks []packedRank
	err   error
}

// readAhead yields the ranks of a source in order, after the checks of Write, and reads up to maxAhead ops ahead, or
// frugalAhead if frugal is set, or one batch. It ends with an error if the source differs from its header.
func readAhead(s dag.Source, h *dag.Header, frugal bool) iter.Seq2[packedRank, error] {
	ahead := int64(maxAhead)
	if frugal {
		ahead = frugalAhead
	}
	reader := func() func(dag.Batch) delivery {
		read := s.NewReader(dag.All)
		return func(b dag.Batch) (d delivery) {
			d.err = guard(func() (err error) {
				d.ranks, err = readBatch(read, b, h, frugal)
				return err
			})
			return d
		}
	}
	return func(yield func(packedRank, error) bool) {
		largest := int64(1)
		for _, b := range h.Batches {
			largest = max(largest, b.Ops)
		}
		readers := int(min(max(ahead/largest, 1), int64(runtime.GOMAXPROCS(0))))
		deliveries := par.Ordered(slices.Values(h.Batches), readers, readers-1, reader)
		if p := dag.PartsOf(s); frugal && p != nil && slices.ContainsFunc(h.Batches, p.InParts) {
			deliveries = partsAhead(h, p, reader())
		}
		ranks, ops := 0, int64(0)
		for d := range deliveries {
			if d.err != nil {
				yield(packedRank{}, d.err)
				return
			}
			for i, r := range d.ranks {
				d.ranks[i] = packedRank{} // free its memory after writing
				if r.part.first == 0 {
					ranks++
				}
				ops += int64(r.Len())
				if !yield(r, nil) {
					return
				}
			}
		}
		if ranks != h.Ranks || ops != h.Ops {
			yield(packedRank{}, fmt.Errorf("expected %d ops on %d ranks, as in the header, found %d on %d", h.Ops,
				h.Ranks, ops, ranks))
		}
	}
}

// partsAhead yields the ranks of a source that delivers long ones in parts, and reads a few parts ahead. read reads the
// others.
func partsAhead(h *dag.Header, p dag.Parted, read func(dag.Batch) delivery) iter.Seq[delivery] {
	const ahead = 8 // a part is a few hundred kilobytes
	errStop := errors.New("no further parts")
	deliveries := func(yield func(delivery) bool) {
		for _, b := range h.Batches {
			if !p.InParts(b) {
				if !yield(read(b)) {
					return
				}
				continue
			}
			stopped := false
			err := guard(func() error {
				return p.ReadParts(b, func(run dag.Run) error {
					if run.Ops.Len() == 0 {
						return nil
					}
					part, err := newPart(run, b, h)
					if stopped = err == nil && !yield(delivery{ranks: []packedRank{part}}); stopped {
						return errStop
					}
					return err
				})
			})
			if stopped || err != nil && !yield(delivery{err: err}) {
				return
			}
		}
	}
	return par.Ordered(deliveries, 1, ahead, func() func(delivery) delivery {
		var scratch []byte
		return func(d delivery) delivery {
			for i := range d.ranks {
				if d.ranks[i].part.of > 0 {
					scratch = d.ranks[i].compress(scratch)
				}
			}
			return d
		}
	})
}

// newPart returns a part of the only rank of a batch in memory of its own.
func newPart(run dag.Run, b dag.Batch, h *dag.Header) (packedRank, error) {
	err := checkValues(run.Ops, run.First, len(h.Comms), &h.Meta)
	if err == nil {
		err = checkPartReferences(run, int(b.Ops))
	}
	if err != nil {
		return packedRank{}, fmt.Errorf("rank %d: %w", run.Rank, err)
	}
	packed := pack(run.Ops)
	packed.part = span{first: run.First, of: int(b.Ops), edges: b.Deps + b.StartDeps}
	return packed, nil
}

// readBatch reads a batch into memory of its own, unless the columns stay valid anyway. If frugal is set, it compresses
// long ranks.
func readBatch(read dag.Reader, b dag.Batch, h *dag.Header, frugal bool) ([]packedRank, error) {
	ranks, err := read(b)
	if err != nil {
		return nil, err
	}
	var scratch []byte
	copies := make([]packedRank, len(ranks))
	for i, r := range ranks {
		if r.Len() == 0 {
			copies[i].Rank = empty
			continue
		}
		if err := checkRank(r, len(h.Comms), &h.Meta); err != nil {
			return nil, fmt.Errorf("rank %d: %w", b.First+i, err)
		}
		if copies[i].Rank = r; !h.Stable {
			copies[i] = pack(r)
		}
		if frugal && leastDense <= r.Len() && r.Len() <= maxGroupRows { // longer ones are opened for each row group
			scratch = copies[i].compress(scratch)
		}
	}
	return copies, nil
}

// empty is a rank without ops.
var empty = new(dag.Rank).Keep()
