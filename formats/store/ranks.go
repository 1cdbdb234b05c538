package store

// Decoding of the column of ranks, which says where the others have the rows of each rank.

import (
	"fmt"
	"slices"
)

// rankRun is a run of rows of one rank.
type rankRun struct {
	rank int32
	rows int
}

// rankReader reads the ranks of a row group, which must be ascending and within those that the footer tells.
type rankReader struct {
	decoder *decoder
	leaf    leaf
	group   *group
	runs    []rankRun
	numbers []int32 // the values of the dictionary
	ranks   []int32
}

// rankRuns reads the ranks of a row group; they are valid until the decoder reads those of another.
func (f *File) rankRuns(d *decoder, g *group) ([]rankRun, error) {
	r := &d.ranks
	r.decoder, r.leaf, r.group = d, f.leaves[colRank], g
	r.runs, r.numbers = r.runs[:0], r.numbers[:0]
	if err := f.pages(d, &g.chunks[colRank], r.leaf, r); err != nil {
		return nil, fmt.Errorf("column rank: %w", err)
	}
	return r.runs, nil
}

func (r *rankReader) dictionary(body []byte, n int) (err error) {
	r.numbers, err = loadIntegers(r.numbers, body, n, r.leaf)
	return err
}

func (r *rankReader) page(p *page) error {
	if r.leaf.maxDef > 0 {
		present, err := r.decoder.definitions(p, r.leaf)
		if err != nil {
			return err
		}
		if slices.Contains(present, 0) {
			return errNull
		}
	}
	if p.hasNumbers() {
		return r.lookUp(p.values, p.n)
	}
	r.ranks = resize(r.ranks, p.n)
	if _, err := integers(r.decoder, r.ranks, p, r.leaf, r.numbers); err != nil {
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
		return fmt.Errorf("rank %d after rank %d: the rows must be sorted by rank", rank, r.runs[n-1].rank)
	case rank < r.group.first || rank > r.group.last:
		return fmt.Errorf("rank %d, expected one of %d to %d", rank, r.group.first, r.group.last)
	}
	r.runs = append(r.runs, rankRun{rank, rows})
	return nil
}

// lookUp is the function lookUp, run by run.
func (r *rankReader) lookUp(src []byte, n int) error {
	if n == 0 {
		return nil
	}
	if len(src) == 0 || src[0] > 32 {
		return errHybrid
	}
	h := hybrid{src: src[1:], width: int(src[0])}
	for n > 0 {
		count, value, packed, err := h.next()
		if err != nil {
			return err
		}
		if count == 0 {
			return errHybrid
		}
		count = min(count, n)
		n -= count
		times, each := 1, count
		if packed != nil {
			times, each = count, 1
		}
		for i := range times {
			number := uint64(value)
			if packed != nil {
				number = bitsAt(packed, i*h.width, h.width)
			}
			if number >= uint64(len(r.numbers)) {
				return numberError(number, len(r.numbers))
			}
			if err := r.add(r.numbers[number], each); err != nil {
				return err
			}
		}
	}
	return nil
}
