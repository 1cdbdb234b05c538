package parquet

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// MaxDictionary is the maximum number of values of a dictionary that this package writes: an index takes two bytes.
const MaxDictionary = 1 << 16

// dictionary numbers the distinct values of a column chunk. The zero value is ready for use; a dictionary can be
// reused.
type dictionary struct {
	values []int64 // by number
	slots  []dictionarySlot
	shift  uint
}

type dictionarySlot struct {
	value  int64
	number uint32 // from 1; 0: the slot is free
}

const dictionarySlots = 1 << 10 // initial number of slots

// integer is the type of a value of a column.
type integer interface{ int32 | int64 }

// number sets numbers[i] to the number of values[i], in the order of first appearance. It returns false if there are
// more than MaxDictionary distinct values.
func number[T integer](d *dictionary, values []T, numbers []uint16) bool {
	d.values = d.values[:0]
	if cap(d.slots) < dictionarySlots {
		d.slots = make([]dictionarySlot, dictionarySlots)
	}
	d.slots = d.slots[:dictionarySlots]
	clear(d.slots)
	d.shift = 64 - 10
	last := uint32(0) // number of the previous value, which is the likeliest
	for i, value := range values {
		v := int64(value)
		if last > 0 && d.values[last-1] == v {
			numbers[i] = uint16(last - 1)
			continue
		}
		s := d.find(v)
		if s.number == 0 {
			if len(d.values) == MaxDictionary {
				return false
			}
			if 2*len(d.values) >= len(d.slots) {
				d.grow()
				s = d.find(v)
			}
			d.values = append(d.values, v)
			s.value, s.number = v, uint32(len(d.values))
		}
		last = s.number
		numbers[i] = uint16(last - 1)
	}
	return true
}

// find returns the slot of value v or, if there is none, the free slot for it.
func (d *dictionary) find(v int64) *dictionarySlot {
	slots := d.slots
	mask := uint(len(slots) - 1)
	at := uint(uint64(v) * 0x9e3779b97f4a7c15 >> d.shift)
	for {
		s := &slots[at&mask]
		if s.value == v && s.number != 0 || s.number == 0 {
			return s
		}
		at++
	}
}

func (d *dictionary) grow() {
	n := 2 * len(d.slots)
	if cap(d.slots) >= n {
		d.slots = d.slots[:n]
		clear(d.slots)
	} else {
		d.slots = make([]dictionarySlot, n)
	}
	d.shift--
	for i, v := range d.values {
		s := d.find(v)
		s.value, s.number = v, uint32(i+1)
	}
}

// spread renumbers a dictionary of more than 256 values so that both bytes of a number have about the same
// distribution: the ascending values are numbered with two digits, one byte each, of the smallest sufficient base. An
// entropy coder with one table for all bytes, such as zstd, then codes a pair of digits in the bits for one of n
// values; with consecutive numbers, the low and high bytes would distort each other's statistics. Unused numbers
// repeat the smallest value in the dictionary.
func (d *dictionary) spread(numbers []uint16) {
	n := len(d.values)
	base := int(math.Ceil(math.Sqrt(float64(n))))
	order := make([]uint16, n)
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortFunc(order, func(a, b uint16) int {
		if d.values[a] < d.values[b] {
			return -1
		}
		return 1
	})
	renumbered := make([]uint16, n)
	values := make([]int64, (n-1)/base<<8+(n-1)%base+1)
	for i := range values {
		values[i] = d.values[order[0]]
	}
	for i, old := range order {
		renumbered[old] = uint16(i/base<<8 + i%base)
		values[renumbered[old]] = d.values[old]
	}
	d.values = values
	for i, old := range numbers {
		numbers[i] = renumbered[old]
	}
}

// bytesOf returns the memory of values if that is their PLAIN encoding in the width of T; otherwise nil.
func bytesOf[T integer](values []T) []byte {
	if one := []uint16{1}; *(*byte)(unsafe.Pointer(&one[0])) == 0 {
		return nil // the processor stores the highest byte first
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), int(unsafe.Sizeof(T(0)))*len(values))
}

// appendInts appends values in PLAIN encoding.
func appendInts[T integer](dst []byte, values []T, typ Type) []byte {
	if typ == Int32 {
		dst = slices.Grow(dst, 4*len(values))
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
		return dst
	}
	dst = slices.Grow(dst, 8*len(values))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}
