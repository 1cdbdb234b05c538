package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
)

// integer is how a trace holds an integer column.
type integer interface{ ~int32 | ~int64 }

// appendFrom appends integers in PLAIN encoding, and fails on one that T cannot hold.
func appendFrom[T integer](dst []T, src []byte, n int, l leaf) ([]T, error) {
	width := 4
	if l.typ == typeInt64 {
		width = 8
	}
	if n*width > len(src) {
		return dst, errShortPage
	}
	dst = slices.Grow(dst, n)
	for i := range n {
		var v int64
		if width == 8 {
			v = int64(binary.LittleEndian.Uint64(src[8*i:]))
		} else {
			v = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
		t, err := convert[T](v, l)
		if err != nil {
			return dst, err
		}
		dst = append(dst, t)
	}
	return dst, nil
}

// convert returns a value of the physical type of the leaf, sign-extended to 64 bits, as a T.
func convert[T integer](v int64, l leaf) (T, error) {
	if l.unsigned {
		if l.typ == typeInt32 {
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

// integers decodes len(dst) values of a page.
func integers[T integer](d *decoder, dst []T, p *page, l leaf, dictionary []T) error {
	switch p.encoding {
	case encRLEDictionary, encPlainDictionary:
		return lookUp(dst, p.values, dictionary)
	case encPlain:
		_, err := appendFrom(dst[:0], p.values, len(dst), l)
		return err
	case encDeltaBinary:
		d.ints = slices.Grow(d.ints[:0], len(dst))[:len(dst)]
		if _, err := decodeDelta(d.ints, p.values, l.typ); err != nil {
			return err
		}
	case encByteStreamSplit:
		d.ints = slices.Grow(d.ints[:0], len(dst))[:len(dst)]
		if err := decodeByteStreamSplit(d.ints, p.values, l.typ); err != nil {
			return err
		}
	default:
		return fmt.Errorf("integers with encoding %d", p.encoding)
	}
	for i, v := range d.ints {
		t, err := convert[T](v, l)
		if err != nil {
			return err
		}
		dst[i] = t
	}
	return nil
}

// decodeByteStreamSplit decodes len(dst) values: all first bytes, then all second bytes, and so on.
func decodeByteStreamSplit(dst []int64, src []byte, typ physicalType) error {
	width, n := 4, len(dst)
	if typ == typeInt64 {
		width = 8
	}
	if n*width > len(src) {
		return errShortPage
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

// texts calls f with n strings of a page, which are valid during the call only.
func texts(d *decoder, n int, p *page, dictionary []string, f func(i int, s string) error) error {
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
		return plainTexts(p.values, n, f)
	case encDeltaLength:
		_, err := d.deltaLengthTexts(p.values, n, f)
		return err
	case encDeltaByteArray:
		return d.deltaTexts(p.values, n, f)
	}
	return fmt.Errorf("strings with encoding %d", p.encoding)
}

// view returns b as a string without a copy; it must not outlive the bytes.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func plainTexts(src []byte, n int, f func(i int, s string) error) error {
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
	return nil
}

// deltaLengthTexts decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all strings.
func (d *decoder) deltaLengthTexts(src []byte, n int, f func(i int, s string) error) ([]byte, error) {
	lengths := make([]int64, n)
	src, err := decodeDelta(lengths, src, typeInt32)
	if err != nil {
		return nil, err
	}
	for i, size := range lengths {
		if size < 0 || size > int64(len(src)) {
			return nil, errShortPage
		}
		if err := f(i, view(src[:size])); err != nil {
			return nil, err
		}
		src = src[size:]
	}
	return src, nil
}

// deltaTexts decodes DELTA_BYTE_ARRAY: how much each string shares with the one before, then the rests.
func (d *decoder) deltaTexts(src []byte, n int, f func(i int, s string) error) error {
	prefixes := make([]int64, n)
	src, err := decodeDelta(prefixes, src, typeInt32)
	if err != nil {
		return err
	}
	var last []byte
	_, err = d.deltaLengthTexts(src, n, func(i int, s string) error {
		if prefixes[i] < 0 || prefixes[i] > int64(len(last)) {
			return errShortPage
		}
		last = append(last[:prefixes[i]], s...)
		return f(i, view(last))
	})
	return err
}

// parseLabel returns a function that turns the strings of a label column into kinds or subkinds.
func parseLabel[T ~uint8](column int) func(s string) (T, error) {
	if column == colKind {
		return func(s string) (T, error) {
			if k, ok := dag.ParseKind(s); ok {
				return T(k), nil
			}
			return 0, fmt.Errorf("unknown kind %q", s)
		}
	}
	return func(s string) (T, error) {
		if k, ok := dag.ParseSubkind(s); ok {
			return T(k), nil
		}
		return 0, fmt.Errorf("unknown subkind %q", s)
	}
}

// labels decodes len(dst) kinds or subkinds of a page.
func labels[T ~uint8](d *decoder, dst []T, p *page, dictionary []T, parse func(s string) (T, error)) error {
	if p.hasNumbers() {
		return lookUp(dst, p.values, dictionary)
	}
	return texts(d, len(dst), p, nil, func(i int, s string) error {
		var err error
		dst[i], err = parse(s)
		return err
	})
}

var errNull = errors.New("NULL")
