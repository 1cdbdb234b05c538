package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// DELTA_BINARY_PACKED: https://parquet.apache.org/docs/file-format/data-pages/encodings/. It suits values that grow
// steadily, such as tags that count messages.

const (
	deltaBlock      = 128
	deltaMiniblocks = 4
	deltaMiniblock  = deltaBlock / deltaMiniblocks
)

// appendDelta appends values, of which there must be one at least.
func appendDelta(dst []byte, values []int64, typ physicalType) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaMiniblocks)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	dst = binary.AppendVarint(dst, values[0])
	previous := values[0]
	var deltas [deltaBlock]int64
	for rest := values[1:]; len(rest) > 0; {
		n := min(len(rest), deltaBlock)
		smallest := int64(0)
		for i, v := range rest[:n] {
			d := v - previous
			if typ == typeInt32 {
				d = int64(int32(d)) // readers add in 32 bits
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

// appendPacked appends the low width bits of the values, a multiple of eight of them.
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

// decodeDelta decodes len(dst) values and returns what follows them.
func decodeDelta(dst []int64, src []byte, typ physicalType) ([]byte, error) {
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
		return nil, errDelta
	}
	if total != uint64(len(dst)) {
		return nil, fmt.Errorf("%d differences of %d values", total, len(dst))
	}
	if miniblocks == 0 || miniblocks > 1<<16 || block > 1<<24 || block%miniblocks != 0 || block/miniblocks%8 != 0 ||
		block == 0 {
		return nil, fmt.Errorf("differences in %d parts of blocks of %d", miniblocks, block)
	}
	size := int(block / miniblocks)
	if len(dst) == 0 {
		return src, nil
	}
	dst[0] = value
	for dst = dst[1:]; len(dst) > 0; {
		smallest := varint()
		if short || uint64(len(src)) < miniblocks {
			return nil, errDelta
		}
		widths := src[:miniblocks]
		src = src[miniblocks:]
		for _, w := range widths {
			if len(dst) == 0 {
				break
			}
			width, n := int(w), min(size, len(dst))
			if width > 64 {
				return nil, fmt.Errorf("differences of %d bits", width)
			}
			bytes := min(size*width/8, len(src)) // some writers leave out the padding of the last
			if bytes < (n*width+7)/8 {
				return nil, errDelta
			}
			packed := src[:bytes]
			src = src[bytes:]
			for i := range dst[:n] {
				value += smallest + int64(bitsAt(packed, i*width, width))
				if typ == typeInt32 {
					value = int64(int32(value))
				}
				dst[i] = value
			}
			dst = dst[n:]
		}
	}
	return src, nil
}
