package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// The hybrid of run lengths and bit packing, the encoding of levels and dictionary indices (Encodings.md, "Run Length
// Encoding / Bit-Packing Hybrid"). In comments, the index of a dictionary value is its number.

// appendRun appends a run of count equal values of width bits.
func appendRun(dst []byte, value uint32, width, count int) []byte {
	dst = binary.AppendUvarint(dst, uint64(count)<<1)
	for ; width > 0; width -= 8 {
		dst = append(dst, byte(value))
		value >>= 8
	}
	return dst
}

// appendPackedHeader begins a run of n bit-packed values; n is rounded up to a multiple of eight.
func appendPackedHeader(dst []byte, n int) []byte {
	return binary.AppendUvarint(dst, uint64(n+7)/8<<1|1)
}

// appendNumbers appends dictionary numbers in page format: one byte with their width, then whole bytes per number, so
// that zstd can find repetitions of values as repetitions of bytes.
func appendNumbers(dst []byte, numbers []uint16, distinct int) []byte {
	padding := -len(numbers) & 7
	if distinct <= 256 {
		dst = appendPackedHeader(append(dst, 8), len(numbers))
		at := len(dst)
		dst = slices.Grow(dst, len(numbers)+padding)[:at+len(numbers)]
		packed := dst[at:]
		for i, n := range numbers {
			packed[i] = byte(n)
		}
	} else {
		dst = appendPackedHeader(append(dst, 16), len(numbers))
		dst = slices.Grow(dst, 2*(len(numbers)+padding))
		for _, n := range numbers {
			dst = append(dst, byte(n), byte(n>>8))
		}
		padding *= 2
	}
	return append(dst, make([]byte, padding)...)
}

// appendRuns appends dictionary numbers in page format: one byte with their width, then runs of equal numbers, for a
// column that rarely changes.
func appendRuns(dst []byte, numbers []uint16, distinct int) []byte {
	width := bits.Len(uint(distinct - 1))
	dst = append(dst, byte(width))
	for first := 0; first < len(numbers); {
		number, end := numbers[first], first+1
		for end < len(numbers) && numbers[end] == number {
			end++
		}
		dst = appendRun(dst, uint32(number), width, end-first)
		first = end
	}
	return dst
}

// Bitmap collects levels of one bit. The zero value is empty.
type Bitmap struct {
	words []uint64
	n     int
	Ones  int // number of levels that are 1
}

// Reset clears the bitmap.
func (b *Bitmap) Reset() {
	b.words, b.n, b.Ones = b.words[:0], 0, 0
}

// Append appends a level, 0 or 1.
func (b *Bitmap) Append(bit uint64) {
	if b.n&63 == 0 {
		b.words = append(b.words, 0)
	}
	b.words[b.n>>6] |= bit << (b.n & 63)
	b.n++
	b.Ones += int(bit)
}

// Len returns the number of levels.
func (b *Bitmap) Len() int {
	return b.n
}

// AppendSame appends the level count times; a negative count appends none.
func (b *Bitmap) AppendSame(bit uint64, count int) {
	for ; count > 0 && b.n&63 != 0; count-- {
		b.Append(bit)
	}
	for ; count >= 64; count -= 64 {
		b.words = append(b.words, -bit)
		b.n += 64
		b.Ones += 64 * int(bit)
	}
	for ; count > 0; count-- {
		b.Append(bit)
	}
}

// appendLevels appends the levels in the format of data pages of version 1: their size in four bytes, then one run.
func (b *Bitmap) appendLevels(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	switch b.Ones {
	case 0, b.n:
		dst = appendRun(dst, uint32(min(b.Ones, 1)), 1, b.n)
	default:
		dst = appendPackedHeader(dst, b.n)
		bytes := (b.n + 7) / 8
		dst = slices.Grow(dst, bytes+8)
		for _, w := range b.words {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
		dst = dst[:len(dst)-8*len(b.words)+bytes]
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// hybrid reads values of width bits in the hybrid encoding.
type hybrid struct {
	src   []byte
	width int
}

var errHybrid = errors.New("its run lengths end early")

// next returns the next run: count equal values or, if packed is not nil, at most count bit-packed values.
func (h *hybrid) next() (count int, value uint32, packed []byte, err error) {
	header, n := binary.Uvarint(h.src)
	if n <= 0 || header>>1 > math.MaxInt32 {
		return 0, 0, nil, errHybrid
	}
	h.src = h.src[n:]
	if header&1 == 0 {
		bytes := (h.width + 7) / 8
		if bytes > len(h.src) {
			return 0, 0, nil, errHybrid
		}
		for i, b := range h.src[:bytes] {
			value |= uint32(b) << (8 * i)
		}
		h.src = h.src[bytes:]
		return int(header >> 1), value, nil, nil
	}
	groups := int(header >> 1)
	bytes := min(groups*h.width, len(h.src)) // some writers omit the padding of the last group
	packed, h.src = h.src[:bytes:bytes], h.src[bytes:]
	if h.width == 0 {
		return 8 * groups, 0, nil, nil
	}
	return min(8*groups, 8*bytes/h.width), 0, packed, nil
}

// expand decodes len(dst) levels.
func (l *levels) expand(dst []uint8) error {
	h := hybrid{src: l.bytes, width: l.width}
	for len(dst) > 0 {
		count, value, packed, err := h.next()
		if err != nil {
			return err
		}
		if count == 0 {
			return errHybrid
		}
		if value>>l.width != 0 {
			return fmt.Errorf("level %d, expected %d bits", value, l.width)
		}
		count = min(count, len(dst))
		run := dst[:count]
		dst = dst[count:]
		switch {
		case packed == nil:
			Fill(run, uint8(value))
		case l.width == 1:
			expandBits(run, packed)
		default:
			for i := range run {
				run[i] = uint8(bitsAt(packed, i*l.width, l.width))
			}
		}
	}
	return nil
}

// constant returns the common level of all n entries, if the encoding shows it without decoding.
func (l *levels) constant(n int) (uint8, bool) {
	if l.width == 0 {
		return 0, true
	}
	h := hybrid{src: l.bytes, width: l.width}
	count, value, packed, err := h.next()
	return uint8(value), err == nil && packed == nil && count >= n
}

// expandBits sets each byte of dst to one bit of src.
func expandBits(dst []uint8, src []byte) {
	for ; len(dst) >= 8; dst, src = dst[8:], src[1:] {
		binary.LittleEndian.PutUint64(dst, spreadBits[src[0]])
	}
	for i := range dst {
		dst[i] = src[0] >> i & 1
	}
}

// spreadBits contains, for each byte, its bits as the bytes of a word.
var spreadBits = func() (table [256]uint64) {
	for b := range table {
		for bit := range 8 {
			table[b] |= uint64(b>>bit&1) << (8 * bit)
		}
	}
	return table
}()

// bitsAt returns the width bits (at most 64) that begin at the given bit of src. Bits beyond its end are 0.
func bitsAt(src []byte, bit, width int) uint64 {
	at, shift := bit>>3, bit&7
	var low, high uint64
	if at+9 <= len(src) {
		low, high = binary.LittleEndian.Uint64(src[at:]), uint64(src[at+8])
	} else {
		var rest [9]byte
		if at < len(src) {
			copy(rest[:], src[at:])
		}
		low, high = binary.LittleEndian.Uint64(rest[:]), uint64(rest[8])
	}
	v := low>>shift | high<<(64-shift)
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// lookUp decodes len(dst) dictionary numbers, preceded by one byte with their width, and sets dst to their values in
// the dictionary.
func lookUp[T any](dst []T, src []byte, dictionary []T) error {
	if len(dst) == 0 {
		return nil
	}
	if len(src) == 0 {
		return errHybrid
	}
	h := hybrid{src: src[1:], width: int(src[0])}
	if h.width > 32 {
		return fmt.Errorf("dictionary numbers of %d bits", h.width)
	}
	for len(dst) > 0 {
		count, value, packed, err := h.next()
		if err != nil {
			return err
		}
		if count == 0 {
			return errHybrid
		}
		count = min(count, len(dst))
		run := dst[:count]
		dst = dst[count:]
		if packed != nil {
			if err := lookUpPacked(run, packed, h.width, dictionary); err != nil {
				return err
			}
			continue
		}
		if int64(value) >= int64(len(dictionary)) {
			return numberError(uint64(value), len(dictionary))
		}
		Fill(run, dictionary[value])
	}
	return nil
}

func numberError(number uint64, n int) error {
	return fmt.Errorf("number %d of a dictionary of %d values", number, n)
}

// lookUpPacked is lookUp for one run of bit-packed numbers; packed must be long enough.
func lookUpPacked[T any](dst []T, packed []byte, width int, dictionary []T) error {
	switch {
	case width == 8:
		return lookUpBytes(dst, packed[:len(dst)], dictionary)
	case width == 16:
		return lookUpPairs(dst, packed[:2*len(dst)], dictionary)
	}
	i, n := 0, uint64(len(dictionary))
	if width < 8 { // a word contains eight numbers
		mask := uint64(1)<<width - 1
		for at := 0; i+8 <= len(dst) && at+8 <= len(packed); at += width {
			word, out := binary.LittleEndian.Uint64(packed[at:]), (*[8]T)(dst[i:])
			for k := range out {
				number := word & mask
				if number >= n {
					return numberError(number, len(dictionary))
				}
				out[k] = dictionary[number]
				word >>= uint(width) & 63
			}
			i += 8
		}
	}
	for ; i < len(dst); i++ {
		number := bitsAt(packed, i*width, width)
		if number >= n {
			return numberError(number, len(dictionary))
		}
		dst[i] = dictionary[number]
	}
	return nil
}

// Numbers are the dictionary numbers of a page with one run of them in which each has whole bytes, or all are equal.
// They are valid while the page is.
type Numbers struct {
	packed []byte
	width  int    // of a number in bytes; 0: all are value
	value  uint32 // the number of all values
}

// Numbers returns the numbers of the n values of a page with a dictionary. It returns false if they have another form.
func (p *Page) Numbers(n int) (Numbers, bool) {
	if !p.HasDictionary() || len(p.values) == 0 || p.values[0] > 16 {
		return Numbers{}, false
	}
	h := hybrid{src: p.values[1:], width: int(p.values[0])}
	count, value, packed, err := h.next()
	switch {
	case err != nil || count < n:
		return Numbers{}, false
	case packed == nil:
		return Numbers{value: value}, true
	}
	return Numbers{packed: packed, width: h.width / 8}, h.width == 8 || h.width == 16
}

// Same reports whether count numbers from a on are those from b on.
func (n Numbers) Same(a, b, count int) bool {
	return n.width == 0 ||
		bytes.Equal(n.packed[a*n.width:(a+count)*n.width], n.packed[b*n.width:(b+count)*n.width])
}

// LookUp sets dst to the dictionary's values of the numbers from the first on.
func LookUp[T any](dst []T, n Numbers, first int, dictionary []T) error {
	if n.width > 0 {
		return lookUpPacked(dst, n.packed[first*n.width:], 8*n.width, dictionary)
	}
	if int64(n.value) >= int64(len(dictionary)) {
		return numberError(uint64(n.value), len(dictionary))
	}
	Fill(dst, dictionary[n.value])
	return nil
}

// byteNumbers is the number of values of a byte.
const byteNumbers = 256

// lookUpBytes is lookUp for numbers of one byte. It is fast if the dictionary has capacity for byteNumbers values:
// then no look-up needs a bounds check, and eight numbers at a time are compared with the limit.
func lookUpBytes[T any](dst []T, numbers []byte, dictionary []T) error {
	i := 0
	if cap(dictionary) >= byteNumbers {
		const (
			low  = 0x7f7f7f7f7f7f7f7f // the low seven bits of eight bytes
			high = 0x8080808080808080 // the high bit of each
		)
		table, limit := (*[byteNumbers]T)(dictionary[:byteNumbers]), min(len(dictionary), byteNumbers)
		// The sum of add and the low bits of a number has the high bit set if the low bits are at least those of the
		// limit. If the limit has no high bit, the number is too high if the sum or the number has it; otherwise if
		// both have it.
		add, either, bad := (0x80-uint64(limit)&0x7f)*(high>>7), uint64(0), uint64(0)
		switch {
		case limit < 0x80:
			either = ^uint64(0)
		case limit == byteNumbers: // no number is too high
			add = 0
		}
		for ; i+8 <= len(dst); i += 8 {
			w := binary.LittleEndian.Uint64(numbers[i:])
			carry := w&low + add
			bad |= (carry | w&either) & (w | either)
			out := (*[8]T)(dst[i:])
			out[0] = table[uint8(w)]
			out[1] = table[uint8(w>>8)]
			out[2] = table[uint8(w>>16)]
			out[3] = table[uint8(w>>24)]
			out[4] = table[uint8(w>>32)]
			out[5] = table[uint8(w>>40)]
			out[6] = table[uint8(w>>48)]
			out[7] = table[uint8(w>>56)]
		}
		if bad&high != 0 {
			i = 0
		}
	}
	for ; i < len(dst); i++ {
		number := int(numbers[i])
		if number >= len(dictionary) {
			return numberError(uint64(number), len(dictionary))
		}
		dst[i] = dictionary[number]
	}
	return nil
}

// lookUpPairs is lookUp for numbers of two bytes.
func lookUpPairs[T any](dst []T, numbers []byte, dictionary []T) error {
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		w := binary.LittleEndian.Uint64(numbers[2*i:])
		a, b, c, d := int(uint16(w)), int(uint16(w>>16)), int(uint16(w>>32)), int(w>>48)
		if a >= len(dictionary) || b >= len(dictionary) || c >= len(dictionary) || d >= len(dictionary) {
			break
		}
		out := (*[4]T)(dst[i:])
		out[0], out[1], out[2], out[3] = dictionary[a], dictionary[b], dictionary[c], dictionary[d]
	}
	for ; i < len(dst); i++ {
		number := int(binary.LittleEndian.Uint16(numbers[2*i:]))
		if number >= len(dictionary) {
			return numberError(uint64(number), len(dictionary))
		}
		dst[i] = dictionary[number]
	}
	return nil
}

// Runs decodes the dictionary indices of a page and calls f for each run of equal indices, with the value and the
// length of the run.
func Runs[T any](p *Page, dictionary []T, f func(value T, count int) error) error {
	src, n := p.values, p.N
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
		number := uint64(value)
		for i := 0; i < count; {
			each := count // numbers equal to number i from i on
			if packed != nil {
				number, each = bitsAt(packed, i*h.width, h.width), 1
				for i+each < count && bitsAt(packed, (i+each)*h.width, h.width) == number {
					each++
				}
			}
			if number >= uint64(len(dictionary)) {
				return numberError(number, len(dictionary))
			}
			if err := f(dictionary[number], each); err != nil {
				return err
			}
			i += each
		}
	}
	return nil
}
