package collective

import (
	"context"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// forEachRank calls work(rank, r, scratch) for every rank of the source, as [par.EachWith] does, with the columns that
// a replay needs; r is valid until work returns.
func forEachRank[S any](ctx context.Context, s dag.Source, newScratch func() S,
	work func(rank int, r *dag.Rank, scratch S) error) error {
	return forEachRankWith(ctx, s, dag.Replay, nil, newScratch, work)
}

// forEachRankWith is forEachRank with the given columns, for the ranks for which needed is true; nil: for all.
func forEachRankWith[S any](ctx context.Context, s dag.Source, columns dag.Columns, needed []bool, newScratch func() S,
	work func(rank int, r *dag.Rank, scratch S) error) error {
	type own struct {
		scratch S
		read    dag.Reader
	}
	h, err := s.Header()
	if err != nil {
		return err
	}
	newOwn := func() own { return own{newScratch(), s.NewReader(columns)} }
	_, err = par.EachWith(len(h.Batches), newOwn, func(o own, k int) error {
		b := h.Batches[k]
		if needed != nil && !slices.Contains(needed[b.First:b.Last], true) {
			return nil
		}
		return forEachOf(ctx, b, o.read, needed, o.scratch, work)
	})
	return err
}

func forEachOf[S any](ctx context.Context, b dag.Batch, read dag.Reader, needed []bool, scratch S,
	work func(rank int, r *dag.Rank, scratch S) error) error {
	ranks, err := read.Ranks(b)
	if err != nil {
		return err
	}
	for i := range ranks {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		if needed != nil && !needed[b.First+i] {
			continue
		}
		if err := work(b.First+i, ranks[i], scratch); err != nil {
			return err
		}
	}
	return nil
}
