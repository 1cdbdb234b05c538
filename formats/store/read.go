package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// ReadRanks reads the ranks first to last-1, and of the file no more than the row groups that hold them. It may be
// called from several goroutines at the same time.
func (f *File) ReadRanks(first, last int) ([]dag.Rank, error) {
	if first < 0 || last < first || last > f.NumRanks() {
		return nil, fmt.Errorf("%s: ranks %d to %d, expected some of 0 to %d", f.name, first, last-1, f.NumRanks()-1)
	}
	ranks := make([]dag.Rank, last-first)
	blocks, err := f.blocks(ranks, int32(first))
	if err != nil {
		return nil, f.wrap(err)
	}
	err = parallel(len(blocks)*numColumns, func(i int) error {
		d := f.decoder()
		defer f.decoders.Put(d)
		column := readOrder[i%numColumns]
		if err := f.readColumn(d, &blocks[i/numColumns], column); err != nil {
			return fmt.Errorf("column %s: %w", columns[column].name, err)
		}
		return nil
	})
	if err == nil {
		err = checkRanks(ranks, first, len(f.descr.comms), len(f.descr.Jobs))
	}
	if err != nil {
		return nil, f.wrap(err)
	}
	return ranks, nil
}

// readOrder is the columns in the order in which they are read: those that take longest first, so that no core has a
// long column left when the others are done.
var readOrder = func() (order [numColumns]int) {
	for i := range order {
		order[i] = (i + colDeps) % numColumns
	}
	return order
}()

// block is a run of rows that are decoded into common slices: whole ranks, in as few row groups as there are between
// two boundaries of rank that are boundaries of row groups too.
type block struct {
	rows  int
	parts []part
	ranks []blockRank
}

// part is what a block takes from a row group.
type part struct {
	group       *group
	first, last int // rows of the group
}

// blockRank is a rank of a block.
type blockRank struct {
	rank        *dag.Rank
	first, last int // rows of the block
}

// rankRun is a run of rows of one rank.
type rankRun struct {
	rank int32
	rows int
}

// blocks returns the blocks that hold the given ranks, of which the first has number first.
func (f *File) blocks(ranks []dag.Rank, first int32) ([]block, error) {
	var groups []*group
	for i := range f.groups {
		if g := &f.groups[i]; g.last >= first && int(g.first) < int(first)+len(ranks) {
			groups = append(groups, g)
		}
	}
	runs := make([][]rankRun, len(groups))
	err := parallel(len(groups), func(i int) (err error) {
		runs[i], err = f.rankRuns(groups[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var blocks []block
	previous := int32(-1) // rank of the last row seen
	for i, g := range groups {
		p := part{group: g}
		row := 0
		for _, run := range runs[i] {
			inside := run.rank >= first && int(run.rank) < int(first)+len(ranks)
			if inside {
				if p.first == p.last {
					p.first, p.last = row, row
					if run.rank != previous {
						blocks = append(blocks, block{})
					}
				}
				b := &blocks[len(blocks)-1]
				if run.rank != previous {
					b.ranks = append(b.ranks, blockRank{rank: &ranks[run.rank-first], first: b.rows, last: b.rows})
				}
				b.rows += run.rows
				b.ranks[len(b.ranks)-1].last = b.rows
				p.last = row + run.rows
				previous = run.rank
			}
			row += run.rows
		}
		if p.last > p.first {
			b := &blocks[len(blocks)-1]
			b.parts = append(b.parts, p)
		}
	}
	for i := range blocks {
		for _, r := range blocks[i].ranks {
			if r.last-r.first > dag.MaxOps {
				return nil, fmt.Errorf("a rank of %d ops, expected %d at most", r.last-r.first, dag.MaxOps)
			}
		}
	}
	return blocks, nil
}

// rankRuns reads the ranks of a row group, which must be ascending and within those that the footer tells.
func (f *File) rankRuns(g *group) ([]rankRun, error) {
	d := f.decoder()
	defer f.decoders.Put(d)
	var runs []rankRun
	add := func(rank int32, rows int) error {
		n := len(runs)
		switch {
		case n > 0 && runs[n-1].rank == rank:
			runs[n-1].rows += rows
			return nil
		case n > 0 && runs[n-1].rank > rank:
			return fmt.Errorf("rank %d after rank %d: the rows must be sorted by rank", rank, runs[n-1].rank)
		case rank < g.first || rank > g.last:
			return fmt.Errorf("rank %d, expected one of %d to %d", rank, g.first, g.last)
		}
		runs = append(runs, rankRun{rank, rows})
		return nil
	}
	l := f.leaves[colRank]
	var dictionary, ranks []int32
	err := f.pages(d, &g.chunks[colRank], l, func(body []byte, n int) (err error) {
		dictionary, err = appendFrom(dictionary[:0], body, n, l)
		return err
	}, func(p *page) error {
		if l.maxDef > 0 {
			present, err := d.definitions(p, l)
			if err != nil {
				return err
			}
			if slices.Contains(present, 0) {
				return errNull
			}
		}
		if p.hasNumbers() {
			return lookUpRuns(p.values, p.n, dictionary, add)
		}
		ranks = slices.Grow(ranks[:0], p.n)[:p.n]
		if err := integers(d, ranks, p, l, dictionary); err != nil {
			return err
		}
		for _, r := range ranks {
			if err := add(r, 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("column rank: %w", err)
	}
	return runs, nil
}

// lookUpRuns is lookUp run by run.
func lookUpRuns(src []byte, n int, dictionary []int32, add func(rank int32, rows int) error) error {
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
			if number >= uint64(len(dictionary)) {
				return numberError(number, len(dictionary))
			}
			if err := add(dictionary[number], each); err != nil {
				return err
			}
		}
	}
	return nil
}

// readColumn reads a column of a block into its ranks.
func (f *File) readColumn(d *decoder, b *block, column int) error {
	if f.leaves[column].index < 0 {
		return nil
	}
	switch column {
	case colRank:
		return nil
	case colKind:
		values, err := readLabels[dag.Kind](f, d, b, column)
		if err != nil {
			return err
		}
		for _, r := range b.ranks {
			r.rank.Kind = values[r.first:r.last:r.last]
		}
	case colSubkind:
		values, err := readLabels[dag.Subkind](f, d, b, column)
		distribute(b, values, func(r *dag.Rank, v []dag.Subkind) { r.Subkind = v })
		return err
	case colBytes:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int64) { r.Bytes = v })
	case colRecvBytes:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int64) { r.RecvBytes = v })
	case colPeer:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int32) { r.Peer = v })
	case colTag:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int64) { r.Tag = v })
	case colComm:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int32) { r.Comm.SetRange(0, v) })
	case colDuration:
		return readInts(f, d, b, column, func(r *dag.Rank, v []dag.Time) { r.Duration = v })
	case colFlops:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int64) { r.Flops = v })
	case colRelease:
		return readInts(f, d, b, column, func(r *dag.Rank, v []dag.Time) { r.Release = v })
	case colStream:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int32) { r.Stream.SetRange(0, v) })
	case colNIC:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int32) { r.NIC.SetRange(0, v) })
	case colJob:
		return readInts(f, d, b, column, func(r *dag.Rank, v []int32) { r.Job.SetRange(0, v) })
	case colDeps:
		return f.readLists(d, b, column, func(r *dag.Rank) *dag.Edges { return &r.Deps })
	case colStartDeps:
		return f.readLists(d, b, column, func(r *dag.Rank) *dag.Edges { return &r.StartDeps })
	case colDependents:
		return f.readLists(d, b, column, func(r *dag.Rank) *dag.Edges { return &r.Order })
	case colStartDependents:
		return f.readLists(d, b, column, func(r *dag.Rank) *dag.Edges { return &r.StartOrder })
	case colName, colAttrs:
		return f.readText(d, b, column)
	case colMeasuredStart:
		return readTimes(f, d, b, column, func(r *dag.Rank, v []dag.Time) { r.MeasuredStart = v })
	case colMeasuredEnd:
		return readTimes(f, d, b, column, func(r *dag.Rank, v []dag.Time) { r.MeasuredEnd = v })
	}
	return nil
}

// distribute gives the ranks of a block their parts of its values, without the zeros at the end of each.
func distribute[T ~uint8 | ~int32 | ~int64](b *block, values []T, give func(r *dag.Rank, v []T)) {
	if values == nil {
		return
	}
	for _, r := range b.ranks {
		last := r.last
		for last > r.first && values[last-1] == 0 {
			last--
		}
		if last > r.first {
			give(r.rank, values[r.first:last:last])
		}
	}
}

func readInts[T integer](f *File, d *decoder, b *block, column int, give func(r *dag.Rank, v []T)) error {
	values, err := readIntegers(f, d, b, column, T(0))
	distribute(b, values, give)
	return err
}

// readTimes reads a column of measured times, which are Unmeasured where there is none.
func readTimes(f *File, d *decoder, b *block, column int, give func(r *dag.Rank, v []dag.Time)) error {
	values, err := readIntegers(f, d, b, column, dag.Unmeasured)
	if values == nil {
		return err
	}
	for _, r := range b.ranks {
		last := r.last
		for last > r.first && values[last-1] == dag.Unmeasured {
			last--
		}
		if last > r.first {
			give(r.rank, values[r.first:last:last])
		}
	}
	return err
}

// readIntegers returns the values of a column of a block, or nil if all are absent, where NULL is absent.
func readIntegers[T integer](f *File, d *decoder, b *block, column int, absent T) ([]T, error) {
	l := f.leaves[column]
	return readValues(f, d, b, &valueReader[T]{
		column: column,
		absent: absent,
		load:   func(dst []T, body []byte, n int) ([]T, error) { return appendFrom(dst, body, n, l) },
		decode: func(dst []T, p *page, dictionary []T) error { return integers(d, dst, p, l, dictionary) },
	})
}

// readLabels returns the kinds or subkinds of a block, or nil if all are absent.
func readLabels[T ~uint8](f *File, d *decoder, b *block, column int) ([]T, error) {
	parse := parseLabel[T](column)
	return readValues(f, d, b, &valueReader[T]{
		column:   column,
		required: column == colKind,
		load: func(dst []T, body []byte, n int) ([]T, error) {
			err := plainTexts(body, n, func(_ int, s string) error {
				code, err := parse(s)
				dst = append(dst, code)
				return err
			})
			return dst, err
		},
		decode: func(dst []T, p *page, dictionary []T) error { return labels(d, dst, p, dictionary, parse) },
	})
}

// valueReader decodes the pages of a column of one value a row.
type valueReader[T ~uint8 | ~int32 | ~int64] struct {
	column   int
	absent   T    // what NULL stands for
	required bool // NULL is an error, and the values are wanted even if all are absent

	load   func(dst []T, body []byte, n int) ([]T, error) // appends the values of a dictionary page
	decode func(dst []T, p *page, dictionary []T) error   // decodes the len(dst) values that a data page has

	dictionary []T
	dense      []T
}

// readValues returns the values of a column of a block, or nil if all are absent.
func readValues[T ~uint8 | ~int32 | ~int64](f *File, d *decoder, b *block, r *valueReader[T]) ([]T, error) {
	var values []T
	at := 0
	for _, part := range b.parts {
		n := part.last - part.first
		if n == part.group.rows {
			err := r.readGroup(f, d, part.group, func() []T {
				if values == nil {
					values = r.allocate(b.rows)
				}
				return values[at : at+n]
			})
			if err != nil {
				return nil, err
			}
			at += n
			continue
		}
		var group []T
		err := r.readGroup(f, d, part.group, func() []T {
			if group == nil {
				group = r.allocate(part.group.rows)
			}
			return group
		})
		if err != nil {
			return nil, err
		}
		if group != nil {
			if values == nil {
				values = r.allocate(b.rows)
			}
			copy(values[at:], group[part.first:part.last])
		}
		at += n
	}
	return values, nil
}

// allocate returns n absent values.
func (r *valueReader[T]) allocate(n int) []T {
	values := make([]T, n)
	if r.absent != 0 {
		for i := range values {
			values[i] = r.absent
		}
	}
	return values
}

// readGroup decodes a row group into the slice that room returns, all of whose values are absent. It does not ask for
// it if they all stay so.
func (r *valueReader[T]) readGroup(f *File, d *decoder, g *group, room func() []T) error {
	l := f.leaves[r.column]
	row, loaded := 0, false
	return f.pages(d, &g.chunks[r.column], l, func(body []byte, n int) (err error) {
		loaded = true
		r.dictionary, err = r.load(r.dictionary[:0], body, n)
		return err
	}, func(p *page) error {
		first := row
		row += p.n
		if p.hasNumbers() && !loaded {
			return errors.New("it has no dictionary")
		}
		if r.allAbsent(p, l) {
			return nil
		}
		dst := room()[first:row]
		if l.maxDef == 0 {
			return r.decode(dst, p, r.dictionary)
		}
		present, err := d.definitions(p, l)
		if err != nil {
			return err
		}
		return r.scatter(dst, p, present)
	})
}

// allAbsent reports whether a page shows at once that it has nothing but absent values.
func (r *valueReader[T]) allAbsent(p *page, l leaf) bool {
	if r.required {
		return false
	}
	if p.hasNumbers() && len(r.dictionary) == 1 && r.dictionary[0] == r.absent {
		return true
	}
	def, same := p.def.constant(p.n)
	return same && int(def) < l.maxDef
}

// scatter decodes the values of a page to the rows in which they are present.
func (r *valueReader[T]) scatter(dst []T, p *page, present []uint8) error {
	count := 0
	for _, one := range present {
		count += int(one)
	}
	if r.required && count < len(present) {
		return errNull
	}
	r.dense = slices.Grow(r.dense[:0], count)[:count]
	if err := r.decode(r.dense, p, r.dictionary); err != nil {
		return err
	}
	k := 0
	for i, one := range present {
		if one != 0 {
			dst[i] = r.dense[k]
			k++
		}
	}
	return nil
}

// definitions returns for each entry of a page whether its value is there: 1, or NULL: 0.
func (d *decoder) definitions(p *page, l leaf) ([]uint8, error) {
	d.def = slices.Grow(d.def[:0], p.n)[:p.n]
	if err := p.def.expand(d.def); err != nil {
		return nil, err
	}
	for i, def := range d.def {
		d.def[i] = 0
		if int(def) == l.maxDef {
			d.def[i] = 1
		}
	}
	return d.def, nil
}

// readLists reads a column of lists of a block into the edges that edges returns.
func (f *File) readLists(d *decoder, b *block, column int, edges func(r *dag.Rank) *dag.Edges) error {
	var ends []uint32 // of the lists of the block, from its start
	var offsets []int32
	at := 0
	for _, part := range b.parts {
		g := part.group
		before := len(offsets)
		groupEnds, err := f.readListGroup(d, g, column, &offsets)
		if err != nil {
			return err
		}
		n := part.last - part.first
		if groupEnds == nil { // all lists are empty
			if ends != nil {
				last := uint32(before)
				for i := range ends[at : at+n] {
					ends[at+i] = last
				}
			}
			at += n
			continue
		}
		if n < g.rows { // drop what belongs to other ranks
			from, to := uint32(0), groupEnds[part.last-1]
			if part.first > 0 {
				from = groupEnds[part.first-1]
			}
			kept := copy(offsets[before:], offsets[before+int(from):before+int(to)])
			offsets = offsets[:before+kept]
			groupEnds = groupEnds[part.first:part.last]
			for i := range groupEnds {
				groupEnds[i] -= from
			}
		}
		if n == b.rows && before == 0 {
			ends = groupEnds
			at += n
			continue
		}
		if ends == nil {
			ends = make([]uint32, b.rows)
		}
		for i, end := range groupEnds {
			ends[at+i] = uint32(before) + end
		}
		at += n
	}
	if len(offsets) == 0 {
		return nil
	}
	offsets = slices.Clip(offsets)
	start := uint32(0)
	for _, r := range b.ranks {
		list := ends[r.first:r.last:r.last]
		end := list[len(list)-1]
		count := end - start
		if count == 0 {
			continue
		}
		last := len(list)
		for last > 1 && list[last-2] == end {
			last--
		}
		e := edges(r.rank)
		e.Off = offsets[start:end:end]
		e.End = list[:last:last]
		for i := range e.End {
			e.End[i] -= start
		}
		start = end
	}
	return nil
}

// readListGroup appends the elements of a column of lists of a row group to offsets, and returns where the list of each
// row ends, counted from where they begin; nil if there are no elements.
func (f *File) readListGroup(d *decoder, g *group, column int, offsets *[]int32) ([]uint32, error) {
	l := f.leaves[column]
	var ends []uint32
	var dictionary []int32
	row, count := -1, uint32(0)
	err := f.pages(d, &g.chunks[column], l, func(body []byte, n int) (err error) {
		dictionary, err = appendFrom(dictionary[:0], body, n, l)
		return err
	}, func(p *page) error {
		rep, sameRep := p.rep.constant(p.n)
		def, sameDef := p.def.constant(p.n)
		if sameRep && sameDef && rep == 0 && int(def) < l.slotDef && row+p.n < g.rows && ends == nil {
			row += p.n
			return nil
		}
		if ends == nil {
			ends = make([]uint32, g.rows)
		}
		present, err := d.listLevels(p, l, ends, &row, &count)
		if err != nil {
			return err
		}
		if uint64(len(*offsets))+uint64(present) > dag.MaxDeps {
			return fmt.Errorf("more than %d dependencies", int64(dag.MaxDeps))
		}
		n := len(*offsets)
		*offsets = slices.Grow(*offsets, present)[:n+present]
		return integers(d, (*offsets)[n:], p, l, dictionary)
	})
	if err != nil {
		return nil, err
	}
	if row != g.rows-1 {
		return nil, fmt.Errorf("lists of %d rows, expected %d", row+1, g.rows)
	}
	if ends != nil && count == 0 {
		return nil, nil
	}
	return ends, nil
}

// listLevels goes through the levels of a page of lists, sets where the list of each row ends, and returns how many
// elements the page has. row is the row at hand and count the number of elements so far.
func (d *decoder) listLevels(p *page, l leaf, ends []uint32, row *int, count *uint32) (int, error) {
	d.rep = slices.Grow(d.rep[:0], p.n)[:p.n]
	d.def = slices.Grow(d.def[:0], p.n)[:p.n]
	if err := p.rep.expand(d.rep); err != nil {
		return 0, err
	}
	if err := p.def.expand(d.def); err != nil {
		return 0, err
	}
	rows := 0
	for _, rep := range d.rep {
		rows += int(1 - rep&1)
	}
	if *row+rows >= len(ends) {
		return 0, fmt.Errorf("lists of more rows than the %d of the row group", len(ends))
	}
	if *row < 0 && p.n > 0 && d.rep[0] != 0 {
		return 0, errors.New("the first list has no start")
	}
	at, n := *row, *count
	if l.maxDef == 1 {
		for i, rep := range d.rep {
			at += int(1 - rep&1)
			n += uint32(d.def[i])
			ends[at] = n
		}
	} else {
		for i, rep := range d.rep {
			at += int(1 - rep&1)
			switch def := int(d.def[i]); {
			case def == l.maxDef:
				n++
			case def > l.maxDef, def >= l.slotDef:
				return 0, errors.New("NULL in a list")
			case rep != 0:
				return 0, errors.New("an empty list within a list")
			}
			ends[at] = n
		}
	}
	present := int(n - *count)
	*row, *count = at, n
	return present, nil
}

// readText reads a column of optional strings of a block.
func (f *File) readText(d *decoder, b *block, column int) error {
	l := f.leaves[column]
	at, rank := 0, 0 // row of the block at which the part begins; index of the rank at hand
	for _, part := range b.parts {
		var dictionary []string
		row := 0
		err := f.pages(d, &part.group.chunks[column], l, func(body []byte, n int) error {
			dictionary = make([]string, n)
			return plainTexts(body, n, func(i int, s string) error {
				dictionary[i] = string([]byte(s))
				return nil
			})
		}, func(p *page) error {
			first := row
			row += p.n
			if def, same := p.def.constant(p.n); same && l.maxDef > 0 && int(def) < l.maxDef {
				return nil
			}
			var rows []int // of the values, in the group
			if l.maxDef > 0 {
				present, err := d.definitions(p, l)
				if err != nil {
					return err
				}
				for i, one := range present {
					if one != 0 {
						rows = append(rows, first+i)
					}
				}
			} else {
				for i := range p.n {
					rows = append(rows, first+i)
				}
			}
			return texts(d, len(rows), p, dictionary, func(i int, s string) error {
				if rows[i] < part.first || rows[i] >= part.last {
					return nil
				}
				inBlock := at + rows[i] - part.first
				for inBlock >= b.ranks[rank].last {
					rank++
				}
				r := b.ranks[rank]
				if !text(r.rank, column).Append(inBlock-r.first, s) {
					return errors.New("more than 4 GiB of strings in a rank")
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		at += part.last - part.first
	}
	return nil
}
