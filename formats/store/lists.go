package store

// Decoding of columns of lists: their levels say how long each list is.

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// listReader reads a column of lists of integers.
type listReader struct {
	chunkReader

	// Of the block: the elements of all its lists, and where the list of each row ends among them, which is where the
	// one before ends if it is empty: absent. Ranks that were delivered have their ends from their own first element.
	offsets []int32
	block   buffer[uint32]
	start   uint32 // of the lists of the rank to be delivered next

	group   buffer[uint32] // as block, of a row group of which the block takes a part only
	numbers []int32        // the values of the dictionary

	decoder *decoder
	out     *buffer[uint32] // where the ends of the row group at hand go
	first   int             // the first row of it
	row     int             // the row of it to which the last entry belongs
	last    int             // the last row of it
	count   uint32          // where the list of that row ends
}

func (r *listReader) read(d *decoder, b *block) error {
	r.block.begin(b.rows, 0)
	r.offsets, r.start, r.decoder = r.offsets[:0], 0, d
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

// readPart reads a part of a row group into the rows of the block from the given one on.
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
	r.offsets = r.offsets[:before+copy(own, own[from:to])] // without what belongs to other ranks
	ends := r.block.room(row, after)
	for i, end := range r.group.values[p.first:p.last] {
		ends[i] = uint32(before) + (end - from)
	}
	return nil
}

// readGroup reads a row group: the ends of its lists, the first of which starts at count, into the rows of a buffer
// from the given one on.
func (r *listReader) readGroup(g *group, out *buffer[uint32], row int, count uint32) error {
	r.out, r.first, r.row, r.last, r.count = out, row, row-1, row+g.rows-1, count
	r.numbers = r.numbers[:0]
	if err := r.pages(r.decoder, g, r); err != nil {
		return err
	}
	if r.row != r.last {
		return fmt.Errorf("lists of %d rows, expected %d", r.row+1-r.first, g.rows)
	}
	return nil
}

func (r *listReader) dictionary(body []byte, n int) (err error) {
	r.numbers, err = loadIntegers(r.numbers, body, n, r.leaf)
	return err
}

func (r *listReader) page(p *page) error {
	if p.n == 0 {
		return nil
	}
	before := r.count
	if err := r.levels(p); err != nil {
		return err
	}
	n, present := len(r.offsets), int(r.count-before)
	if uint64(n)+uint64(present) > dag.MaxDeps {
		return fmt.Errorf("more than %d dependencies", int64(dag.MaxDeps))
	}
	r.offsets = slices.Grow(r.offsets, present)[:n+present]
	_, err := integers(r.decoder, r.offsets[n:], p, r.leaf, r.numbers)
	return err
}

// levels goes through the levels of a page, which has an entry for each element and for each empty list, and sets where
// the lists end.
func (r *listReader) levels(p *page) error {
	rep, repBits := p.rep.bits(p.n)
	def, defBits := p.def.bits(p.n)
	if level, same := p.def.constant(p.n); same && int(level) < r.leaf.slotDef && repBits && rep.ones(p.n) == 0 {
		if err := r.checkRows(0, p.n); err != nil {
			return err
		}
		r.out.absent = r.count
		r.out.skip(r.row+1, r.row+1+p.n)
		r.row += p.n
		return nil
	}
	if repBits && defBits && r.leaf.maxDef == 1 {
		rows := p.n - rep.ones(p.n)
		if err := r.checkRows(rep.word(0)&1, rows); err != nil {
			return err
		}
		r.out.room(r.row+1, r.row+1+rows)
		r.bitLevels(rep, def, p.n)
		return nil
	}
	return r.byteLevels(p)
}

// checkRows returns an error if a page, the first entry of which has the given repetition level, cannot begin as many
// lists.
func (r *listReader) checkRows(rep uint64, rows int) error {
	if r.row+rows > r.last {
		return fmt.Errorf("lists of more rows than the %d of the row group", r.last+1-r.first)
	}
	if r.row < r.first && rep != 0 {
		return errors.New("the first list has no start")
	}
	return nil
}

// bitLevels sets the ends of lists from n levels of one bit: an entry begins a list where rep is 0, and is an element
// where def is 1.
func (r *listReader) bitLevels(rep, def levelBits, n int) {
	ends, at, count := r.out.values, r.row, r.count
	for first := 0; first < n; first += 64 {
		more, present := rep.word(first), def.word(first)
		entries := min(64, n-first)
		if more&present == ^uint64(0) && entries == 64 { // the middle of a long list
			count += 64
			ends[at] = count
			continue
		}
		for ; entries > 0; entries -= 8 {
			more8, present8 := uint8(more), uint8(present)
			more, present = more>>8, present>>8
			if entries < 8 || at < 0 || at+8 >= len(ends) || more8 != 0 && present8 != 0xff {
				for range min(entries, 8) {
					at += int(^more8 & 1)
					count += uint32(present8 & 1)
					more8, present8 = more8>>1, present8>>1
					ends[at] = count
				}
				continue
			}
			// Each entry that begins a list ends the one before it, after as many elements as there are before the
			// entry. These are set for eight such entries, whether there are as many or not: what is too much is set
			// again with the next entries.
			before := spreadBits[present8] * 0x0101010101010100 // the sums of the bytes below each
			if more8 != 0 {
				before = onesOf[^more8]
			}
			out := (*[8]uint32)(ends[at:])
			out[0] = count + uint32(uint8(before))
			out[1] = count + uint32(uint8(before>>8))
			out[2] = count + uint32(uint8(before>>16))
			out[3] = count + uint32(uint8(before>>24))
			out[4] = count + uint32(uint8(before>>32))
			out[5] = count + uint32(uint8(before>>40))
			out[6] = count + uint32(uint8(before>>48))
			out[7] = count + uint32(uint8(before>>56))
			at += 8 - bits.OnesCount8(more8)
			count += uint32(bits.OnesCount8(present8))
			ends[at] = count
		}
	}
	r.row, r.count = at, count
}

// onesOf has the positions of the bits of each byte that are 1, ascending, as the bytes of a word.
var onesOf = func() (table [256]uint64) {
	for b := range table {
		for bit, k := 0, 0; bit < 8; bit++ {
			if b>>bit&1 != 0 {
				table[b] |= uint64(bit) << (8 * k)
				k++
			}
		}
	}
	return table
}()

// byteLevels is levels for any levels.
func (r *listReader) byteLevels(p *page) error {
	d, l := r.decoder, r.leaf
	d.rep, d.def = resize(d.rep, p.n), resize(d.def, p.n)
	if err := p.rep.expand(d.rep); err != nil {
		return err
	}
	if err := p.def.expand(d.def); err != nil {
		return err
	}
	rows := 0
	for _, rep := range d.rep {
		rows += int(1 - rep&1)
	}
	if err := r.checkRows(uint64(d.rep[0]), rows); err != nil {
		return err
	}
	r.out.room(r.row+1, r.row+1+rows)
	ends, at, count := r.out.values, r.row, r.count
	for i, rep := range d.rep {
		at += int(1 - rep&1)
		switch def := int(d.def[i]); {
		case def == l.maxDef:
			count++
		case def > l.maxDef, def >= l.slotDef:
			return errors.New("NULL in a list")
		case rep != 0:
			return errors.New("an empty list within a list")
		}
		ends[at] = count
	}
	r.row, r.count = at, count
	return nil
}

func (r *listReader) tidy() {
	r.numbers, r.group = nil, buffer[uint32]{}
}

// edges returns the lists of some rows of the block, which must be asked for in order and once.
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

// levelBits are levels of one bit, in the bits of packed from the lowest of its first byte on or, where that is nil,
// all the same.
type levelBits struct {
	packed []byte
	same   uint64 // 64 of them
}

// bits returns n levels as bits, if they are that and in one run.
func (l *levels) bits(n int) (levelBits, bool) {
	if l.width != 1 {
		return levelBits{}, false
	}
	h := hybrid{src: l.bytes, width: 1}
	count, value, packed, err := h.next()
	if err != nil || count < n || value > 1 {
		return levelBits{}, false
	}
	return levelBits{packed: packed, same: -uint64(value)}, true
}

// word returns the levels of entry i, a multiple of 64, and the 63 after it.
func (b levelBits) word(i int) uint64 {
	if b.packed == nil {
		return b.same
	}
	return bitsAt(b.packed, i, 64)
}

// ones returns how many of the first n levels are 1.
func (b levelBits) ones(n int) int {
	if b.packed == nil {
		return int(b.same&1) * n
	}
	ones := 0
	for i := 0; i < n; i += 64 {
		word := b.word(i)
		if n-i < 64 {
			word &= 1<<(n-i) - 1
		}
		ones += bits.OnesCount64(word)
	}
	return ones
}
