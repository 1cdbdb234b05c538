package store

// Decoding of the rank column, which gives the rows of each rank.

import (
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/internal/parquet"
)

// rankRun is a run of rows of one rank.
type rankRun struct {
	rank int32
	rows int
}

// rankReader reads the ranks of a row group, which must be ascending and within the bounds in the footer.
type rankReader struct {
	decoder *decoder
	leaf    parquet.Leaf
	group   *group
	runs    []rankRun
	numbers []int32 // values of the dictionary
	ranks   []int32
}

// rankRuns reads the ranks of a row group. They are valid until the decoder reads the next row group.
func (f *File) rankRuns(d *decoder, g *group) ([]rankRun, error) {
	r := &d.ranks
	r.decoder, r.leaf, r.group = d, f.leaves[colRank], g
	r.runs, r.numbers = r.runs[:0], r.numbers[:0]
	if err := f.pages(d, g, colRank, r); err != nil {
		return nil, inColumn("rank", err)
	}
	first, last := r.runs[0].rank, r.runs[len(r.runs)-1].rank
	if f.unverified != "" && g.last < math.MaxInt32 && (first != g.first || last != g.last) {
		return nil, fmt.Errorf(
			"column rank of row group %d: expected ranks %d to %d, as in the statistics, found %d to %d",
			g.number, g.first, g.last, first, last)
	}
	return r.runs, nil
}

func (r *rankReader) Dictionary(body []byte, n int) (err error) {
	r.numbers, err = parquet.IntegerDictionary(r.numbers, body, n, r.leaf)
	return err
}

func (r *rankReader) Page(p *parquet.Page) error {
	if r.leaf.MaxDef > 0 {
		present, err := r.decoder.Present(p, r.leaf)
		if err != nil {
			return err
		}
		if slices.Contains(present, 0) {
			return parquet.ErrNull
		}
	}
	if p.HasDictionary() {
		return parquet.Runs(p, r.numbers, r.add)
	}
	r.ranks = parquet.Resize(r.ranks, p.N)
	if _, err := parquet.Integers(r.decoder.Decoder, r.ranks, p, r.leaf, r.numbers); err != nil {
		return err
	}
	for _, rank := range r.ranks {
		if err := r.add(rank, 1); err != nil {
			return err
		}
	}
	return nil
}

// add adds rows of a rank.
func (r *rankReader) add(rank int32, rows int) error {
	n := len(r.runs)
	switch {
	case n > 0 && r.runs[n-1].rank == rank:
		r.runs[n-1].rows += rows
		return nil
	case n > 0 && r.runs[n-1].rank > rank:
		return fmt.Errorf("rank %d after rank %d (rows must be sorted by rank)", rank, r.runs[n-1].rank)
	case rank < r.group.first || rank > r.group.last:
		return fmt.Errorf("rank %d, outside the range %d..%d in the footer", rank, r.group.first, r.group.last)
	}
	r.runs = append(r.runs, rankRun{rank, rows})
	return nil
}
