package store

// Decoding of list columns, whose levels give the length of each list.

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/parquet"
)

// listReader reads a column of lists of integers.
type listReader struct {
	chunkReader

	// For the block: the elements of all lists, and the end of each row's list among them. An absent list is empty:
	// it ends where the previous list ends. The ends of delivered ranks count from the rank's first element.
	offsets []int32
	block   buffer[uint32]
	start   uint32 // start of the lists of the next rank to deliver

	packed packedList // the block after pack

	like      likeRanks
	delivered dag.Edges // of the last rank, shared by those like it

	group   buffer[uint32] // as block, for a row group of which the block needs only a part
	numbers []int32        // values of the dictionary

	decoder *decoder
	out     *buffer[uint32] // destination of the ends of the current row group
	first   int             // its first row
	row     int             // its row with the latest entry
	last    int             // its last row
	count   uint32          // end of that row's list
	entries int64           // of the row group
}

func (r *listReader) read(d *decoder, b *block) error {
	r.block.most = b.mostRows
	r.block.begin(b.rows, 0)
	if r.block.shared != nil {
		r.offsets = nil // grow takes memory
	}
	r.offsets, r.start, r.decoder = r.offsets[:0], 0, d
	r.like.begin(b)
	at := 0
	for i := range b.parts {
		p := &b.parts[i]
		var err error
		if p.whole() {
			err = r.readGroup(p.group, &r.block, at, uint32(len(r.offsets)))
		} else {
			err = r.readPart(p, at)
		}
		if err != nil {
			return err
		}
		at += p.last - p.first
	}
	return nil
}

// readPart reads a part of a row group into the block, starting at the given row.
func (r *listReader) readPart(p *part, row int) error {
	before := len(r.offsets)
	r.group.begin(p.group.rows, 0)
	if err := r.readGroup(p.group, &r.group, 0, 0); err != nil {
		return err
	}
	after := row + p.last - p.first
	if !r.group.used {
		r.block.absent = uint32(before)
		r.block.skip(row, after)
		return nil
	}
	from, to := uint32(0), r.group.values[p.last-1]
	if p.first > 0 {
		from = r.group.values[p.first-1]
	}
	own := r.offsets[before:]
	r.offsets = r.offsets[:before+copy(own, own[from:to])] // discard the lists of other ranks
	ends := r.block.room(row, after)
	for i, end := range r.group.values[p.first:p.last] {
		ends[i] = uint32(before) + (end - from)
	}
	return nil
}

// readGroup reads the ends of a row group's lists into a buffer, starting at the given row. The first list starts
// at count.
func (r *listReader) readGroup(g *group, out *buffer[uint32], row int, count uint32) error {
	r.out, r.first, r.row, r.last, r.count = out, row, row-1, row+g.rows-1, count
	r.numbers, r.entries = r.numbers[:0], g.chunks[r.column].Values
	if err := r.pages(r.decoder, g, r); err != nil {
		return err
	}
	if r.row != r.last {
		return fmt.Errorf("lists of %d rows instead of %d", r.row+1-r.first, g.rows)
	}
	return nil
}

func (r *listReader) Dictionary(body []byte, n int) (err error) {
	r.numbers, err = parquet.IntegerDictionary(r.numbers, body, n, r.leaf)
	return err
}

func (r *listReader) Page(p *parquet.Page) error {
	if p.N == 0 {
		return nil
	}
	lists, err := r.decoder.Lists(p, r.leaf)
	if err != nil {
		return err
	}
	if err := r.checkRows(&lists); err != nil {
		return err
	}
	if r.like.enabled && r.out == &r.block && lists.HasBits() && int64(p.N) == r.entries {
		if numbers, ok := p.Numbers(lists.Elements()); ok {
			return r.ranks(lists, numbers)
		}
	}
	before := r.count
	if err := r.levels(&lists); err != nil {
		return err
	}
	n, present := len(r.offsets), int(r.count-before)
	if uint64(n)+uint64(present) > dag.MaxDeps {
		return fmt.Errorf("more than %d dependencies", int64(dag.MaxDeps))
	}
	switch {
	case r.block.shared != nil:
		r.growShared(present)
	case cap(r.offsets) == 0 && present > 0:
		r.offsets = r.newOffsets(present, r.row+1-r.first)
	}
	r.offsets = slices.Grow(r.offsets, present)[:n+present]
	_, err = parquet.Integers(r.decoder.Decoder, r.offsets[n:], p, r.leaf, r.numbers)
	return err
}

// ranks decodes the page with all lists of a row group rank by rank. The lists of ranks that equal those of the rank
// before are not in offsets, and their ends are undefined.
func (r *listReader) ranks(lists parquet.Lists, numbers parquet.Numbers) error {
	first, last := r.row+1, r.row+1+lists.Rows
	if last != r.last+1 {
		return fmt.Errorf("lists of %d rows instead of %d", lists.Rows, r.last-r.row)
	}
	if cap(r.offsets) == 0 {
		r.offsets = r.newOffsets(lists.Elements(), lists.Rows)
	}
	r.block.room(first, last)
	r.row = r.last
	var previous parquet.Lists // of the rank before
	from, at := 0, 0           // its first element and that of the rank
	return r.like.each(first, last, func(of, _ rows, comparable bool) (bool, error) {
		own := lists.Cut(of.last - of.first)
		elements := own.Elements()
		same := comparable && own.Same(&previous) && numbers.Same(at, from, elements)
		previous, from, at = own, at, at+elements
		if same {
			return true, nil
		}
		n := len(r.offsets)
		if uint64(n)+uint64(elements) > dag.MaxDeps {
			return false, fmt.Errorf("more than %d dependencies", int64(dag.MaxDeps))
		}
		r.offsets = slices.Grow(r.offsets, elements)[:n+elements]
		if err := parquet.LookUp(r.offsets[n:], numbers, from, r.numbers); err != nil {
			return false, err
		}
		var err error
		_, r.count, err = own.Ends(r.block.values[:of.last], of.first-1, r.count)
		return false, err
	})
}

// growShared makes room for more elements in the shared memory, behind the ends.
func (r *listReader) growShared(more int) {
	n, rows := len(r.offsets), r.block.rows
	if cap(r.offsets)-n >= more {
		return
	}
	memory, size := &r.block.shared.values, rows+n+n/4+more
	offsets := room[int32](memory, size)[rows:size]
	r.offsets = offsets[:copy(offsets, r.offsets)]
	if ends := room[uint32](memory, rows)[:rows]; r.block.used {
		copy(ends, r.block.values)
		r.block.values = ends
	}
}

// newOffsets returns memory for the elements of all lists of a block if they are as many per row as those of the first
// rows, and at most mostEach per row.
func (r *listReader) newOffsets(present, rows int) []int32 {
	const mostEach, spare = 4, 16
	most := max(r.block.most, r.block.rows)
	each := min(float64(present)/float64(max(1, rows)), mostEach)
	return cpu.InHugePages(make([]int32, 0, int(each*float64(most+most/spare))))
}

// levels sets the ends of a page's lists from its levels.
func (r *listReader) levels(lists *parquet.Lists) (err error) {
	next := r.row + 1
	if lists.Empty {
		r.out.absent = r.count
		r.out.skip(next, next+lists.Rows)
		r.row += lists.Rows
		return nil
	}
	r.out.room(next, next+lists.Rows)
	r.row, r.count, err = lists.Ends(r.out.values, r.row, r.count)
	return err
}

// checkRows returns an error if a page begins too many lists or continues no list.
func (r *listReader) checkRows(l *parquet.Lists) error {
	if r.row+l.Rows > r.last {
		return fmt.Errorf("lists of more rows than the %d of the row group", r.last+1-r.first)
	}
	if r.row < r.first && l.Continues {
		return errors.New("a list without a start")
	}
	return nil
}

func (r *listReader) tidy() {
	r.numbers, r.group = nil, buffer[uint32]{}
}

func (r *listReader) share(m *sharedMemory) {
	r.block.shared = m
}

// pack packs the lengths of the lists and their elements.
func (r *listReader) pack() {
	if r.packed.values.n = len(r.offsets); r.packed.values.n == 0 {
		return
	}
	start := uint32(0)
	for i, end := range r.block.values {
		r.block.values[i], start = end-start, end
	}
	r.block.pack()
	r.packed.lengths = r.block.packed
	r.packed.values = packValues(r.offsets, r.packed.values.data)
	r.offsets = nil
}

func (r *listReader) open(of rows) {
	if r.packed.values.n == 0 {
		return
	}
	r.block.open(of)
	end := uint32(0)
	for i, length := range r.block.values {
		end += length
		r.block.values[i] = end
	}
	r.offsets, r.start = take[int32](r.block.shared, int(end)), 0
	unpack(&r.packed.values, r.offsets, r.packed.before(of.first))
}

func (r *listReader) outOfRange() bool {
	return false
}

func (r *listReader) deliver(to dag.Values, k int, rows rows) {
	if !r.like.same(k) {
		r.delivered = r.edges(rows)
	}
	*to.(*dag.Edges) = r.delivered
}

// edges returns the lists of rows of the block. Calls must be in row order, once per row.
func (r *listReader) edges(of rows) dag.Edges {
	if len(r.offsets) == 0 {
		return dag.Edges{}
	}
	ends := r.block.values[of.first:of.last:of.last]
	start, end := r.start, ends[len(ends)-1]
	if start == end {
		return dag.Edges{}
	}
	r.start = end
	last := len(ends)
	for last > 1 && ends[last-2] == end {
		last--
	}
	ends = ends[:last:last]
	if start > 0 {
		for i := range ends {
			ends[i] -= start
		}
	}
	return dag.Edges{End: ends, Off: r.offsets[start:end:end]}
}
