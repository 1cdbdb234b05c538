package dag

import (
	"math"
	"unsafe"
)

// Column is one field of every op of a rank. Ops beyond its end have the value zero, so a field that a format does
// not support takes no memory.
type Column[T ~int8 | ~uint8 | ~int32 | ~int64] []T

// At returns the value of op i, zero beyond the end of the column.
func (c Column[T]) At(i int) T {
	if uint(i) < uint(len(c)) {
		return c[i]
	}
	return 0
}

// Equal reports whether two columns have the same stored values. It takes constant time for columns in the same memory.
func (c Column[T]) Equal(d Column[T]) bool {
	return equal(c, d)
}

// Set sets the value of op i to v. It extends the column unless v is zero.
func (c *Column[T]) Set(i int, v T) {
	if i < len(*c) {
		(*c)[i] = v
		return
	}
	if v == 0 {
		return
	}
	*c = append(extend(*c, i), v)
}

// extend returns s extended with zeros to length n. It grows like append, so a series of calls takes linear time.
func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if n <= cap(s) {
		clear(s[len(s):n])
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// trim returns s without its spare capacity.
func trim[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	if cap(s) == len(s) {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// room returns an empty slice with space for as many values as s has, nil for none.
func room[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return make([]T, 0, len(s))
}

// Narrow is a column of int32 values that are nearly always small: one byte per op while all lie in 0..255, four
// bytes per op after the first other value. Ops beyond its end have the value zero, as in a [Column]. The zero value
// is an empty column.
type Narrow struct {
	small []uint8
	wide  []int32 // if not nil, used instead of small
}

// NewNarrow returns a column with the values of one of two slices; the other must be nil. The column owns the slice.
func NewNarrow(small []uint8, wide []int32) Narrow {
	return Narrow{small: small, wide: wide}
}

// At returns the value of op i.
func (c *Narrow) At(i int) int32 {
	if uint(i) < uint(len(c.small)) {
		return int32(c.small[i])
	}
	if uint(i) < uint(len(c.wide)) {
		return c.wide[i]
	}
	return 0
}

// Len returns the number of stored values. All later ops have the value zero.
func (c *Narrow) Len() int {
	return len(c.small) + len(c.wide)
}

// Set sets the value of op i to v.
func (c *Narrow) Set(i int, v int32) {
	if i >= c.Len() && v == 0 {
		return
	}
	if c.wide == nil && uint32(v) > 255 {
		c.wide = make([]int32, len(c.small), max(2*len(c.small), i+1))
		for k, s := range c.small {
			c.wide[k] = int32(s)
		}
		c.small = nil
	}
	if c.wide != nil {
		c.wide = extend(c.wide, i+1)
		c.wide[i] = v
		return
	}
	c.small = extend(c.small, i+1)
	c.small[i] = uint8(v)
}

// SetRange sets the values of ops first, first+1, ... It is faster than calls of Set.
func (c *Narrow) SetRange(first int, values []int32) {
	if first < c.Len() {
		for k, v := range values {
			c.Set(first+k, v)
		}
		return
	}
	for len(values) > 0 && values[len(values)-1] == 0 {
		values = values[:len(values)-1]
	}
	if len(values) == 0 {
		return
	}
	narrow := c.wide == nil
	for _, v := range values {
		if uint32(v) > 255 {
			narrow = false
			break
		}
	}
	end := first + len(values)
	if narrow {
		c.small = extend(c.small, end)
		for k, v := range values {
			c.small[first+k] = uint8(v)
		}
		return
	}
	if c.wide == nil {
		c.wide = make([]int32, len(c.small), max(len(c.small), end))
		for k, s := range c.small {
			c.wide[k] = int32(s)
		}
		c.small = nil
	}
	c.wide = extend(c.wide, end)
	copy(c.wide[first:], values)
}

// Copy copies the values of ops first, first+1, ... to dst.
func (c *Narrow) Copy(dst []int32, first int) {
	n := 0
	switch {
	case first < len(c.wide):
		n = copy(dst, c.wide[first:])
	case first < len(c.small):
		small := c.small[first:]
		n = min(len(small), len(dst))
		for k, v := range small[:n] {
			dst[k] = int32(v)
		}
	}
	clear(dst[n:])
}

// Equal reports whether two columns have the same stored values. It takes constant time for columns in the same memory.
func (c *Narrow) Equal(d *Narrow) bool {
	return equal(c.small, d.small) && equal(c.wide, d.wide)
}

// equal is slices.Equal for integers. It compares their bytes, since the runtime does that many times faster than a
// loop, and takes constant time for slices in the same memory.
func equal[T ~int8 | ~uint8 | ~int32 | ~uint32 | ~int64](a, b []T) bool {
	return len(a) == len(b) && bytesOf(a) == bytesOf(b)
}

// bytesOf returns the memory of a slice as a string, which is valid until the slice changes.
func bytesOf[T any](s []T) string {
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// Text is an optional column of strings; an op without a string has "". It takes four bytes per op up to the last op
// with a string, plus the strings. The zero value is an empty column.
type Text struct {
	end  []uint32
	data []byte
}

// At returns the string of op i, "" if it has none.
func (c *Text) At(i int) string {
	return string(c.of(i))
}

// of returns the bytes of the string of op i in the column.
func (c *Text) of(i int) []byte {
	if i >= len(c.end) {
		return nil
	}
	start := uint32(0)
	if i > 0 {
		start = c.end[i-1]
	}
	return c.data[start:c.end[i]]
}

// Equal reports whether two columns have the same strings. It takes constant time for columns in the same memory.
func (c *Text) Equal(d *Text) bool {
	return equal(c.end, d.end) && equal(c.data, d.data)
}

// Len returns the number of stored strings. All later ops have "".
func (c *Text) Len() int {
	return len(c.end)
}

// Append sets the string of op i to s. Ops must come in ascending order. It returns false if the strings of the
// column would exceed 4 GiB.
func (c *Text) Append(i int, s string) bool {
	return appendText(c, i, s)
}

func appendText[S string | []byte](c *Text, i int, s S) bool {
	if len(s) == 0 {
		return true
	}
	if i < len(c.end) || uint64(len(c.data))+uint64(len(s)) > math.MaxUint32 {
		return false
	}
	for len(c.end) < i {
		c.end = append(c.end, uint32(len(c.data)))
	}
	c.data = append(c.data, s...)
	c.end = append(c.end, uint32(len(c.data)))
	return true
}

// AppendFrom appends, as Append does, the string of op k of another column.
func (c *Text) AppendFrom(i int, from *Text, k int) bool {
	if k >= len(from.end) {
		return true
	}
	start := uint32(0)
	if k > 0 {
		start = from.end[k-1]
	}
	return appendText(c, i, from.data[start:from.end[k]])
}
