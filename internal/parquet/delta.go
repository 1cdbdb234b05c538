package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding") suits values that grow steadily, such as consecutive message
// tags.

const (
	deltaBlock      = 128
	deltaMiniblocks = 4
	deltaMiniblock  = deltaBlock / deltaMiniblocks
)

// appendDelta appends the values, at least one.
func appendDelta[T integer](dst []byte, values []T, typ Type) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaMiniblocks)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	previous := int64(values[0])
	dst = binary.AppendVarint(dst, previous)
	var deltas [deltaBlock]int64
	for rest := values[1:]; len(rest) > 0; {
		n := min(len(rest), deltaBlock)
		dst = growDelta(dst, start, len(values)-len(rest), len(rest))
		smallest := int64(0)
		for i, value := range rest[:n] {
			v := int64(value)
			d := v - previous
			if typ == Int32 {
				d = int64(int32(d)) // readers add modulo 2^32
			}
			deltas[i], previous = d, v
			if i == 0 || d < smallest {
				smallest = d
			}
		}
		rest = rest[n:]
		dst = binary.AppendVarint(dst, smallest)
		widths := len(dst)
		dst = append(dst, make([]byte, deltaMiniblocks)...)
		for m := 0; m*deltaMiniblock < n; m++ {
			mini := deltas[m*deltaMiniblock : (m+1)*deltaMiniblock]
			used := min(deltaMiniblock, n-m*deltaMiniblock)
			all := uint64(0)
			for i := range mini {
				if i < used {
					mini[i] -= smallest
				} else {
					mini[i] = 0
				}
				all |= uint64(mini[i])
			}
			width := bits.Len64(all)
			dst[widths+m] = byte(width)
			dst = appendPacked(dst, mini, width)
		}
	}
	return dst
}

// growDelta makes room in dst for one block. If that needs other memory, it is as much as all blocks need if each of
// the rest of the values takes as many bytes as those done, which have the bytes from start on, and a 16th.
func growDelta(dst []byte, start, done, rest int) []byte {
	const (
		largest = binary.MaxVarintLen64 + deltaMiniblocks + 8*deltaBlock
		few     = 64 * deltaBlock // values that show little about the rest
	)
	if cap(dst)-len(dst) >= largest {
		return dst
	}
	more := 8 * int64(min(rest, few))
	if done >= few {
		more = int64(len(dst)-start) * int64(rest) / int64(done)
	}
	return slices.Grow(dst, int(more+more/16)+largest)
}

// appendPacked appends the low width bits of each value; the number of values is a multiple of eight.
func appendPacked(dst []byte, values []int64, width int) []byte {
	buffer, filled := uint64(0), 0
	for _, v := range values {
		buffer |= uint64(v) << filled
		filled += width
		if filled >= 64 {
			dst = binary.LittleEndian.AppendUint64(dst, buffer)
			filled -= 64
			buffer = uint64(v) >> (width - filled) // 0 for a shift of 64
		}
	}
	for ; filled > 0; filled -= 8 {
		dst = append(dst, byte(buffer))
		buffer >>= 8
	}
	return dst
}

var errDelta = errors.New("its differences end early")

// decodeDelta decodes len(dst) values and returns the remaining bytes. A value out of the range of T is truncated and
// sets some bit of lost; all is the bitwise OR of the values.
func decodeDelta[T Number](dst []T, src []byte, typ Type) (rest []byte, all, lost int64, err error) {
	short := false
	uvarint := func() uint64 {
		v, n := binary.Uvarint(src)
		if n <= 0 {
			short, n, v = true, 0, 0
		}
		src = src[n:]
		return v
	}
	varint := func() int64 {
		u := uvarint()
		return int64(u>>1) ^ -int64(u&1)
	}
	block, miniblocks, total, value := uvarint(), uvarint(), uvarint(), varint()
	if short {
		return nil, 0, 0, errDelta
	}
	if total != uint64(len(dst)) {
		return nil, 0, 0, fmt.Errorf("%d differences of %d values", total, len(dst))
	}
	if miniblocks == 0 || miniblocks > 1<<16 || block > 1<<24 || block%miniblocks != 0 || block/miniblocks%8 != 0 ||
		block == 0 {
		return nil, 0, 0, fmt.Errorf("differences in %d parts of blocks of %d", miniblocks, block)
	}
	size := int(block / miniblocks)
	if len(dst) == 0 {
		return src, 0, 0, nil
	}
	sum := deltaSum{value: value}
	dst[0] = T(value)
	all, lost = value, value^int64(dst[0])
	for dst = dst[1:]; len(dst) > 0; {
		sum.step = varint()
		if short || uint64(len(src)) < miniblocks {
			return nil, 0, 0, errDelta
		}
		widths := src[:miniblocks]
		src = src[miniblocks:]
		for _, w := range widths {
			if len(dst) == 0 {
				break
			}
			width, n := int(w), min(size, len(dst))
			if width > 64 {
				return nil, 0, 0, fmt.Errorf("differences of %d bits", width)
			}
			bytes := min(size*width/8, len(src)) // some writers omit the padding of the last
			if bytes < (n*width+7)/8 {
				return nil, 0, 0, errDelta
			}
			var a, l int64
			if typ == Int32 {
				a, l = addDeltas[T, int32](dst[:n], src, width, &sum)
			} else {
				a, l = addDeltas[T, int64](dst[:n], src, width, &sum)
			}
			all, lost = all|a, lost|l
			src, dst = src[bytes:], dst[n:]
		}
	}
	return src, all, lost, nil
}

// deltaSum is the state of a prefix sum of differences.
type deltaSum struct {
	value, step int64 // last value; minimum of the block, added to each stored difference
}

// addDeltas sets dst to the values, of the physical type P, given by differences of width bits each at the start of
// packed, which may be longer. It returns all and lost of decodeDelta.
func addDeltas[T Number, P int32 | int64](dst []T, packed []byte, width int, sum *deltaSum) (all, lost int64) {
	value, step := sum.value, sum.step
	add := func(dst *T, delta uint64) {
		value += step + int64(delta)
		v := int64(P(value))
		t := T(v)
		all |= v
		lost |= v ^ int64(t)
		*dst = t
	}
	le, i, mask := binary.LittleEndian, 0, uint64(1)<<width-1
	switch spare := len(packed) - 8; {
	case spare < 0:
	case width <= 8: // a word contains eight differences
		shift := uint(width) & 63
		for at := 0; i+8 <= len(dst) && at <= spare; at += width {
			word, out := le.Uint64(packed[at:]), (*[8]T)(dst[i:])
			add(&out[0], word&mask)
			word >>= shift
			add(&out[1], word&mask)
			word >>= shift
			add(&out[2], word&mask)
			word >>= shift
			add(&out[3], word&mask)
			word >>= shift
			add(&out[4], word&mask)
			word >>= shift
			add(&out[5], word&mask)
			word >>= shift
			add(&out[6], word&mask)
			word >>= shift
			add(&out[7], word&mask)
			i += 8
		}
	case width <= 56: // a word contains one, at any bit of its first byte
		for n := min(len(dst), (8*spare+7)/width+1); i < n; i++ {
			bit := i * width
			add(&dst[i], le.Uint64(packed[bit>>3:])>>(bit&7)&mask)
		}
	}
	for ; i < len(dst); i++ {
		add(&dst[i], bitsAt(packed, i*width, width))
	}
	sum.value = value
	return all, lost
}
