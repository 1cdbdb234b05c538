package parquet

import (
	"errors"
	"math/bits"
)

// Lists of one level. Repetition and definition levels encode their lengths (README.md, "Nested Encoding").

// Lists are the lists of a data page. They are valid while the page is.
type Lists struct {
	Rows      int  // lists that begin in the page
	Continues bool // the first entry belongs to a list of the page before
	Empty     bool // all lists are empty, as the encoding shows without decoding
	n         int  // entries
	leaf      Leaf

	bits     bool // levels have one bit each and are in rep and def; otherwise one byte each, in the other fields
	rep, def levelBits
	first    int // the first entry in rep and def

	repBytes, defBytes []uint8
}

// Lists returns the lists of a page that has an entry for each element and one for each empty list.
func (d *Decoder) Lists(p *Page, l Leaf) (Lists, error) {
	out := Lists{n: p.N, leaf: l}
	if p.N == 0 {
		out.Empty = true
		return out, nil
	}
	var repBits, defBits bool
	out.rep, repBits = p.rep.bits(p.N)
	out.def, defBits = p.def.bits(p.N)
	if level, same := p.def.constant(p.N); same && int(level) < l.slotDef && repBits && out.rep.ones(0, p.N) == 0 {
		out.Rows, out.Empty = p.N, true
		return out, nil
	}
	if repBits && defBits && l.MaxDef == 1 {
		out.bits = true
		out.Rows, out.Continues = p.N-out.rep.ones(0, p.N), out.rep.word(0)&1 != 0
		return out, nil
	}
	return out, out.expand(d, p)
}

// expand sets the levels as bytes.
func (l *Lists) expand(d *Decoder, p *Page) error {
	d.rep, d.def = Resize(d.rep, p.N), Resize(d.def, p.N)
	if err := p.rep.expand(d.rep); err != nil {
		return err
	}
	if err := p.def.expand(d.def); err != nil {
		return err
	}
	l.bits, l.Rows, l.repBytes, l.defBytes = false, 0, d.rep, d.def
	for _, rep := range d.rep {
		l.Rows += int(1 - rep&1)
	}
	l.Continues = d.rep[0] != 0
	return nil
}

// Ends sets the ends of the lists, in elements: ends[at+1] is that of the first list that begins in the page. at is the
// index of the list before, -1 if there is none, and count its end so far. It returns both for the next page. ends must
// have at+1+l.Rows elements.
func (l *Lists) Ends(ends []uint32, at int, count uint32) (int, uint32, error) {
	if l.bits {
		at, count = l.bitEnds(ends, at, count)
		return at, count, nil
	}
	return l.byteEnds(ends, at, count)
}

// HasBits reports whether levels have one bit each. Then all other methods are fast, and lists can be cut.
func (l *Lists) HasBits() bool { return l.bits }

// Elements returns the number of elements of lists whose levels have one bit each.
func (l *Lists) Elements() int {
	return l.def.ones(l.first, l.n)
}

// Cut removes some rows from the front of lists whose levels have one bit each, and returns those. The lists must have
// as many rows, and the first one must begin in the page.
func (l *Lists) Cut(rows int) Lists {
	entries, begun := 0, 0
	for ; entries < l.n; entries += 64 {
		begins := ^l.rep.word(l.first + entries)
		if begun += bits.OnesCount64(begins); begun > rows {
			for ; begun > rows; begun-- { // the entry after the last one is that of the highest of these bits
				entry := bits.Len64(begins) - 1
				begins &^= 1 << entry
				if begun == rows+1 {
					entries += entry
				}
			}
			break
		}
	}
	cut := *l
	cut.n, cut.Rows = min(entries, l.n), rows
	l.first, l.n, l.Rows = l.first+cut.n, l.n-cut.n, l.Rows-rows
	return cut
}

// Same reports whether lists of the same page have the same lengths. Their levels must have one bit each.
func (l *Lists) Same(m *Lists) bool {
	return l.n == m.n && l.rep.same(l.first, m.first, l.n) && l.def.same(l.first, m.first, l.n)
}

// bitEnds is Ends for levels of one bit: an entry begins a list where rep is 0, and is an element where def is 1.
func (l *Lists) bitEnds(ends []uint32, at int, count uint32) (int, uint32) {
	for first := 0; first < l.n; first += 64 {
		more, present := l.rep.word(l.first+first), l.def.word(l.first+first)
		entries := min(64, l.n-first)
		if more&present == ^uint64(0) && entries == 64 { // inside a long list
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
			// Each entry that begins a list ends the previous one; its end is the number of elements before the
			// entry. The loop always sets eight ends; the next entries overwrite surplus ones.
			before := spreadBits[present8] * 0x0101010101010100 // sums of the lower bytes, per byte
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
	return at, count
}

// onesOf contains, for each byte, the positions of its 1 bits, ascending, as the bytes of a word.
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

// byteEnds is Ends for any levels.
func (l *Lists) byteEnds(ends []uint32, at int, count uint32) (int, uint32, error) {
	for i, rep := range l.repBytes {
		at += int(1 - rep&1)
		switch def := int(l.defBytes[i]); {
		case def == l.leaf.MaxDef:
			count++
		case def > l.leaf.MaxDef, def >= l.leaf.slotDef:
			return at, count, errors.New("NULL in a list")
		case rep != 0:
			return at, count, errors.New("an empty list within a list")
		}
		ends[at] = count
	}
	return at, count, nil
}

// levelBits are levels of one bit: the bits of packed, least significant first, or all the same if packed is nil.
type levelBits struct {
	packed []byte
	same64 uint64 // 64 levels, if packed is nil
}

// bits returns n levels as bits, if each has one bit and all are in one run.
func (l *levels) bits(n int) (levelBits, bool) {
	if l.width != 1 {
		return levelBits{}, false
	}
	h := hybrid{src: l.bytes, width: 1}
	count, value, packed, err := h.next()
	if err != nil || count < n || value > 1 {
		return levelBits{}, false
	}
	return levelBits{packed: packed, same64: -uint64(value)}, true
}

// word returns the levels of entries i to i+63.
func (b levelBits) word(i int) uint64 {
	if b.packed == nil {
		return b.same64
	}
	return bitsAt(b.packed, i, 64)
}

// ones returns the number of 1s among n levels from the first on.
func (b levelBits) ones(first, n int) int {
	if b.packed == nil {
		return int(b.same64&1) * n
	}
	ones := 0
	for i := 0; i < n; i += 64 {
		word := b.word(first + i)
		if n-i < 64 {
			word &= 1<<(n-i) - 1
		}
		ones += bits.OnesCount64(word)
	}
	return ones
}

// same reports whether n levels from the first on are those from another one on.
func (b levelBits) same(first, other, n int) bool {
	if b.packed == nil {
		return true
	}
	for i := 0; i < n; i += 64 {
		differ := b.word(first+i) ^ b.word(other+i)
		if n-i < 64 {
			differ &= 1<<(n-i) - 1
		}
		if differ != 0 {
			return false
		}
	}
	return true
}
