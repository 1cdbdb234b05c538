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
	r := f.newBatchReader(columns)
	for _, b := range r.batches {
		r.block.mostRows = max(r.block.mostRows, int(b.Ops))
	}
	return r.reader(r.read)
}

func (f *File) newBatchReader(columns dag.Columns) *batchReader {
	r := &batchReader{file: f, decoder: newDecoder()}
	r.block.columns = &newColumnSets(f, columns, 1)[0]
	f.eachBatch(func(b dag.Batch, groups []group) {
		r.batches = append(r.batches, b)
		r.groups = append(r.groups, groups)
	})
	return r
}

// reader returns the reader of a method.
func (r *batchReader) reader(read func(dag.Batch) error) dag.Reader {
	return func(b dag.Batch) ([]*dag.Rank, error) {
		err := guard(func() error { return read(b) })
		if err != nil {
			return nil, r.file.wrap(err)
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
	packs      bool // columns share memory; after load, they are packed
	block      block
	ranks      []*dag.Rank
	rows       []dag.Rank // the ranks with rows
	references dag.ReferenceChecker
}

func (r *batchReader) read(b dag.Batch) error {
	if err := r.load(b); err != nil {
		return err
	}
	return r.deliver(b, r.block.ranks, 0)
}

// load decodes the columns of a batch. If they share memory, it packs them.
func (r *batchReader) load(b dag.Batch) error {
	i, found := slices.BinarySearchFunc(r.batches, b.First, func(b dag.Batch, first int) int { return b.First - first })
	if !found || r.batches[i] != b {
		return fmt.Errorf("expected a batch of the header, found ranks %d to %d", b.First, b.Last-1)
	}
	r.block.groups, r.block.alike = r.groups[i], !r.packs
	if err := r.block.findRows(r.file, r.decoder, b.First, b.Last); err != nil {
		return err
	}
	for _, column := range readOrder { // the lists, which take most memory, before others are packed
		if err := r.block.read(r.decoder, column); err != nil {
			return err
		}
		if reader := r.block.columns.readers[column]; r.packs && reader != nil {
			reader.pack()
		}
	}
	return nil
}

// deliver sets r.ranks to those of b, a batch or a part of it. The ones with rows are those of the block from the
// first-th on.
func (r *batchReader) deliver(b dag.Batch, ranks []rankRows, first int) error {
	r.ranks = dag.AppendRanks(r.ranks[:0], b.Last-b.First)
	r.rows = parquet.Resize(r.rows, len(ranks))
	suspect := r.block.columns.suspect()
	for k, rank := range ranks {
		own := &r.rows[k]
		r.ranks[rank.number-b.First] = own
		r.block.columns.deliver(own, first+k, rows{rank.first - ranks[0].first, rank.last - ranks[0].first})
		if !suspect && r.block.columns.sameLists(first+k) {
			continue // those of the rank before are valid
		}
		if err := r.file.checkRead(&r.references, own, rank.number, suspect); err != nil {
			return err
		}
	}
	return nil
}
