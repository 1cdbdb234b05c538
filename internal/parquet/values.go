package parquet

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// IntegerDictionary decodes the n integers of a dictionary page. It reuses the memory of dst if that is large enough.
func IntegerDictionary[T Number](dst []T, src []byte, n int, l Leaf) ([]T, error) {
	if n*l.Type.Width() != len(src) {
		return dst[:0], fmt.Errorf("a dictionary of %d values in %d bytes", n, len(src))
	}
	dst = Resize(dst, max(n, byteNumbers))[:n] // lookUpBytes is fast with this length
	_, err := plainIntegers(dst, src, l)
	return dst, err
}

// plainIntegers decodes len(dst) integers in PLAIN encoding (Encodings.md, "Plain"). It returns the bitwise OR of the
// values, and an error for a value out of the range of T.
func plainIntegers[T Number](dst []T, src []byte, l Leaf) (int64, error) {
	width, n := l.Type.Width(), len(dst)
	if err := wantBytes(src, n*width); err != nil {
		return 0, err
	}
	all, lost := int64(0), int64(0)
	set := func(dst *T, v int64) {
		t := T(v)
		all |= v
		lost |= v ^ int64(t)
		*dst = t
	}
	le, i := binary.LittleEndian, 0
	if width == 8 {
		for ; i+4 <= n; i += 4 {
			in, out := (*[32]byte)(src[8*i:]), (*[4]T)(dst[i:])
			set(&out[0], int64(le.Uint64(in[0:])))
			set(&out[1], int64(le.Uint64(in[8:])))
			set(&out[2], int64(le.Uint64(in[16:])))
			set(&out[3], int64(le.Uint64(in[24:])))
		}
		for ; i < n; i++ {
			set(&dst[i], int64(le.Uint64(src[8*i:])))
		}
	} else {
		for ; i+4 <= n; i += 4 {
			in, out := (*[16]byte)(src[4*i:]), (*[4]T)(dst[i:])
			set(&out[0], int64(int32(le.Uint32(in[0:]))))
			set(&out[1], int64(int32(le.Uint32(in[4:]))))
			set(&out[2], int64(int32(le.Uint32(in[8:]))))
			set(&out[3], int64(int32(le.Uint32(in[12:]))))
		}
		for ; i < n; i++ {
			set(&dst[i], int64(int32(le.Uint32(src[4*i:]))))
		}
	}
	if lost == 0 && (!l.Unsigned || all >= 0) {
		return all, nil
	}
	all = 0
	for i := range dst {
		var v int64
		if width == 8 {
			v = int64(binary.LittleEndian.Uint64(src[8*i:]))
		} else {
			v = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
		t, err := convert[T](v, l)
		if err != nil {
			return 0, err
		}
		all |= int64(t)
		dst[i] = t
	}
	return all, nil
}

// convert returns a value of the physical type of the leaf, sign-extended to 64 bits, as a T.
func convert[T Number](v int64, l Leaf) (T, error) {
	if l.Unsigned {
		if l.Type == Int32 {
			v = int64(uint32(v))
		} else if v < 0 {
			return 0, fmt.Errorf("value %d, expected 63 bits", uint64(v))
		}
	}
	t := T(v)
	if int64(t) != v {
		return 0, fmt.Errorf("value %d, expected 32 bits", v)
	}
	return t, nil
}

// Integers decodes len(dst) integers of a page, of any encoding. It returns the bitwise OR of all values that are not
// from the dictionary, and an error for a value out of the range of T.
func Integers[T Number](d *Decoder, dst []T, p *Page, l Leaf, dictionary []T) (int64, error) {
	switch p.encoding {
	case encRLEDictionary, encPlainDictionary:
		return 0, lookUp(dst, p.values, dictionary)
	case encPlain:
		return plainIntegers(dst, p.values, l)
	case encDeltaBinary:
		_, all, lost, err := decodeDelta(dst, p.values, l.Type)
		if err != nil || lost == 0 && (!l.Unsigned || all >= 0) {
			return all, err
		}
		d.ints = Resize(d.ints, len(dst))
		if _, _, _, err := decodeDelta(d.ints, p.values, l.Type); err != nil {
			return 0, err
		}
	case encByteStreamSplit:
		d.ints = Resize(d.ints, len(dst))
		if err := decodeByteStreamSplit(d.ints, p.values, l.Type); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("integers with encoding %d", p.encoding)
	}
	all := int64(0)
	for i, v := range d.ints {
		t, err := convert[T](v, l)
		if err != nil {
			return 0, err
		}
		all |= int64(t)
		dst[i] = t
	}
	return all, nil
}

// decodeByteStreamSplit decodes len(dst) values: the first bytes of all values, then the second bytes, and so on
// (Encodings.md, "Byte Stream Split").
func decodeByteStreamSplit(dst []int64, src []byte, typ Type) error {
	width, n := typ.Width(), len(dst)
	if err := wantBytes(src, n*width); err != nil {
		return err
	}
	for i := range dst {
		v := uint64(0)
		for b := range width {
			v |= uint64(src[b*n+i]) << (8 * b)
		}
		if width == 4 {
			v = uint64(int64(int32(v)))
		}
		dst[i] = int64(v)
	}
	return nil
}

// Booleans decodes len(dst) booleans of a page in PLAIN encoding (Encodings.md, "Plain").
func Booleans(dst []bool, p *Page) error {
	if p.encoding != encPlain {
		return fmt.Errorf("booleans with encoding %d", p.encoding)
	}
	if err := wantBytes(p.values, (len(dst)+7)/8); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = p.values[i/8]>>(i%8)&1 == 1
	}
	return nil
}

// Texts calls f with n strings of a page, of any encoding. A string is valid during its call only.
func Texts(d *Decoder, n int, p *Page, dictionary []string, f func(i int, s string) error) error {
	switch p.encoding {
	case encRLEDictionary, encPlainDictionary:
		all := make([]string, n)
		if err := lookUp(all, p.values, dictionary); err != nil {
			return err
		}
		for i, s := range all {
			if err := f(i, s); err != nil {
				return err
			}
		}
		return nil
	case encPlain:
		return PlainTexts(p.values, n, f)
	case encDeltaLength:
		return d.deltaLengthTexts(p.values, n, f)
	case encDeltaByteArray:
		return d.deltaTexts(p.values, n, f)
	}
	return fmt.Errorf("strings with encoding %d", p.encoding)
}

// view returns b as a string without a copy. The string must not outlive b.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// PlainTexts calls f with n strings in PLAIN encoding, such as those of a dictionary page. A string is valid during its
// call only.
func PlainTexts(src []byte, n int, f func(i int, s string) error) error {
	for i := range n {
		if len(src) < 4 {
			return errShortPage
		}
		size := binary.LittleEndian.Uint32(src)
		if uint64(size) > uint64(len(src)-4) {
			return errShortPage
		}
		if err := f(i, view(src[4:4+size])); err != nil {
			return err
		}
		src = src[4+size:]
	}
	return wantBytes(src, 0)
}

// wantBytes returns an error unless the values of a page have n bytes: a page of more values than its header states
// is damaged, too.
func wantBytes(src []byte, n int) error {
	switch {
	case n > len(src):
		return errShortPage
	case n < len(src):
		return fmt.Errorf("%d bytes after its last value", len(src)-n)
	}
	return nil
}

// deltaLengthTexts decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all strings (Encodings.md, "Delta-length byte
// array").
func (d *Decoder) deltaLengthTexts(src []byte, n int, f func(i int, s string) error) error {
	lengths := make([]int64, n)
	src, _, _, err := decodeDelta(lengths, src, Int32)
	if err != nil {
		return err
	}
	for i, size := range lengths {
		if size < 0 || size > int64(len(src)) {
			return errShortPage
		}
		if err := f(i, view(src[:size])); err != nil {
			return err
		}
		src = src[size:]
	}
	return wantBytes(src, 0)
}

// deltaTexts decodes DELTA_BYTE_ARRAY: the lengths of the prefixes that strings share with their predecessors, then the
// suffixes (Encodings.md, "Delta Strings").
func (d *Decoder) deltaTexts(src []byte, n int, f func(i int, s string) error) error {
	prefixes := make([]int64, n)
	src, _, _, err := decodeDelta(prefixes, src, Int32)
	if err != nil {
		return err
	}
	var last []byte
	return d.deltaLengthTexts(src, n, func(i int, s string) error {
		if prefixes[i] < 0 || prefixes[i] > int64(len(last)) {
			return errShortPage
		}
		last = append(last[:prefixes[i]], s...)
		return f(i, view(last))
	})
}

// LabelDictionary decodes the n strings of a dictionary page and converts them by parse. It reuses the memory of dst
// if that is large enough.
func LabelDictionary[T Number](dst []T, src []byte, n int, parse func(s string) (T, error)) ([]T, error) {
	dst = Resize(dst, max(n, byteNumbers))[:n] // lookUpBytes is fast with this length
	return dst, PlainTexts(src, n, func(i int, s string) (err error) {
		dst[i], err = parse(s)
		return err
	})
}

// Labels decodes len(dst) strings of a page and converts them by parse. The values of the dictionary are converted
// already.
func Labels[T Number](d *Decoder, dst []T, p *Page, dictionary []T, parse func(s string) (T, error)) error {
	if p.HasDictionary() {
		return lookUp(dst, p.values, dictionary)
	}
	return Texts(d, len(dst), p, nil, func(i int, s string) error {
		var err error
		dst[i], err = parse(s)
		return err
	})
}
