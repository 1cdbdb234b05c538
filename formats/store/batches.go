package store

// Reading of a file batch by batch.

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// NewReader returns a reader. It decodes on the calling goroutine into memory that it reuses. For dag.Replay it
// skips the fields that no backend uses: names, attributes, measured times, jobs and steps.
func (f *File) NewReader(columns dag.Columns) dag.Reader {
	r := &batchReader{file: f, decoder: newDecoder()}
	r.block.columns = &newColumnSets(f, columns, 1)[0]
	f.eachBatch(func(b dag.Batch, groups []group) {
		r.batches = append(r.batches, b)
		r.groups = append(r.groups, groups)
		r.block.mostRows = max(r.block.mostRows, int(b.Ops))
	})
	return func(b dag.Batch) ([]*dag.Rank, error) {
		err := guard(func() error { return r.read(b) })
		if err != nil {
			return nil, f.wrap(err)
		}
		return r.ranks, nil
	}
}

// batchReader reads batches one after the other.
type batchReader struct {
	file       *File
	batches    []dag.Batch
	groups     [][]group // of the batches
	decoder    *decoder
	block      block
	ranks      []*dag.Rank
	rows       []dag.Rank // the ranks with rows
	references dag.ReferenceChecker
}

func (r *batchReader) read(b dag.Batch) error {
	i, found := slices.BinarySearchFunc(r.batches, b.First, func(b dag.Batch, first int) int { return b.First - first })
	if !found || r.batches[i] != b {
		return fmt.Errorf("expected a batch of the header, found ranks %d to %d", b.First, b.Last-1)
	}
	r.block.groups = r.groups[i]
	if err := r.block.findRows(r.file, r.decoder, b.First, b.Last); err != nil {
		return err
	}
	for column := range numColumns {
		if err := r.block.read(r.decoder, column); err != nil {
			return err
		}
	}
	r.ranks = dag.AppendRanks(r.ranks[:0], b.Last-b.First)
	r.rows = parquet.Resize(r.rows, len(r.block.ranks))
	suspect := r.block.columns.suspect()
	for k, rank := range r.block.ranks {
		own := &r.rows[k]
		r.ranks[rank.number-b.First] = own
		r.block.columns.deliver(own, k, rank.rows)
		if err := r.file.checkRead(&r.references, own, rank.number, suspect); err != nil {
			return err
		}
	}
	return nil
}
