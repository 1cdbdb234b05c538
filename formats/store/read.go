package store

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// ReadRanks reads the ranks first to last-1. It reads only the row groups with these ranks. Several goroutines may
// call it at the same time.
func (f *File) ReadRanks(first, last int) ([]*dag.Rank, error) {
	if first < 0 || last < first || last > f.descr.ranks {
		return nil, format.FileErrorf(f.name, "expected ranks in 0..%d, found %d..%d", f.descr.ranks-1, first, last-1)
	}
	ranks := dag.NewRanks(last - first)
	if err := f.readRanks(ranks, first); err != nil {
		return nil, f.wrap(err)
	}
	return ranks, nil
}

// readRanks reads the ranks from the given one on.
func (f *File) readRanks(ranks []*dag.Rank, first int) error {
	var blocks []*block
	f.eachBatch(func(b dag.Batch, groups []group) {
		if b.Last > first && b.First < first+len(ranks) {
			blocks = append(blocks, &block{groups: groups})
		}
	})
	sets := newColumnSets(f, dag.All, len(blocks))
	for i := range sets {
		blocks[i].columns = &sets[i]
	}
	err := parallel(len(blocks), func(i int) error {
		d := decoders.get()
		defer decoders.put(d)
		return blocks[i].findRows(f, d, first, first+len(ranks))
	})
	if err != nil {
		return err
	}
	err = parallel(len(blocks)*numColumns, func(i int) error {
		d := decoders.get()
		defer decoders.put(d)
		column := readOrder[i%numColumns]
		if r := blocks[i/numColumns].columns.readers[column]; r != nil {
			defer r.tidy()
		}
		return blocks[i/numColumns].read(d, column)
	})
	if err != nil {
		return err
	}
	var suspect atomic.Bool
	err = parallel(len(blocks), func(i int) error {
		b := blocks[i]
		own := make([]dag.Rank, len(b.ranks))
		for k := range b.ranks {
			ranks[b.ranks[k].number-first] = &own[k]
			b.columns.deliver(&own[k], k, b.ranks[k].rows)
		}
		if b.columns.suspect() {
			suspect.Store(true)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return parallel(len(ranks), func(i int) error {
		return f.checkRead(new(dag.ReferenceChecker), ranks[i], first+i, suspect.Load())
	})
}

// checkRead checks a rank that was read. It checks the values only if they are suspect.
func (f *File) checkRead(references *dag.ReferenceChecker, r *dag.Rank, number int, suspect bool) error {
	err := references.Check(r)
	if suspect {
		err = checkRank(r, len(f.descr.comms), &f.descr.Meta)
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", number, err)
	}
	return nil
}

// readOrder is the columns in the order of reading: the slowest first, so that all cores finish at about the same
// time.
var readOrder = func() (order [numColumns]int) {
	for i := range order {
		order[i] = (i + colDeps) % numColumns
	}
	return order
}()

// block is ranks that are decoded into common slices: the ranks of a batch, or some of them.
type block struct {
	groups  []group // of the batch
	rows    int
	parts   []part
	ranks   []rankRows // ranks with rows
	columns *columnSet

	mostRows int  // the most rows of the blocks that share columns
	alike    bool // ranks with the same values in a column may share memory
}

// part is the rows of a row group that a block needs.
type part struct {
	group       *group
	first, last int // rows of the group
}

// whole reports whether the part is all of its row group.
func (p *part) whole() bool {
	return p.last-p.first == p.group.rows
}

// rankRows is the position of a rank in a block.
type rankRows struct {
	number int
	start  int // number of its first op in the block; 0 unless the block begins within the rank
	rows
}

// rows are rows first to last-1 of a block.
type rows struct {
	first, last int
}

// findRows finds the rows of the ranks first to last-1.
func (b *block) findRows(f *File, d *decoder, first, last int) error {
	b.rows, b.parts, b.ranks = 0, b.parts[:0], b.ranks[:0]
	previous := int32(-1) // rank of the last row seen
	for i := range b.groups {
		g := &b.groups[i]
		if int(g.last) < first || int(g.first) >= last {
			continue
		}
		runs, err := f.rankRuns(d, g)
		if err != nil {
			return err
		}
		p := part{group: g}
		row := 0
		for _, run := range runs {
			if n := int(run.rank); n >= first && n < last {
				if p.first == p.last {
					p.first = row
				}
				if run.rank != previous {
					b.ranks = append(b.ranks, rankRows{number: n, rows: rows{first: b.rows}})
					previous = run.rank
				}
				b.rows += run.rows
				b.ranks[len(b.ranks)-1].last = b.rows
				p.last = row + run.rows
			}
			row += run.rows
		}
		if p.last > p.first {
			b.parts = append(b.parts, p)
		}
	}
	for _, r := range b.ranks {
		if n := r.last - r.first; n > dag.MaxOps {
			return fmt.Errorf("expected at most %d ops in a rank, found %d", dag.MaxOps, n)
		}
	}
	return nil
}

// read reads a column of the block.
func (b *block) read(d *decoder, column int) error {
	r := b.columns.readers[column]
	if r == nil {
		return nil
	}
	if err := r.read(d, b); err != nil {
		return inColumn(columns[column].name, err)
	}
	return nil
}

// inColumn adds the name of a column to an error, behind the name of the file.
func inColumn(name string, err error) error {
	if l := (*labelError)(nil); errors.As(err, &l) {
		return err // names it
	}
	if s := (*format.SyntaxError)(nil); errors.As(err, &s) {
		named := *s
		named.Class = "column " + name
		return &named
	}
	return fmt.Errorf("column %s: %w", name, err)
}
