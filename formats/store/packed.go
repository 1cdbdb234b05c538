package store

// Compact columns of ranks that wait for their row group.

import (
	"encoding/binary"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// packedRank is a rank whose wide integer columns are packed: their values are usually near each other.
type packedRank struct {
	*dag.Rank // without the packed columns
	packed    []packedColumn
}

// packedColumn is a column of integers, each the distance from the smallest in a whole number of bytes.
type packedColumn struct {
	column int // of the store
	n      int
	least  int64
	width  uint8 // bytes per value: 0, 1, 2, 4 or 8
	data   []byte
}

// leastPacked is the number of ops from which packing a rank saves memory.
const leastPacked = 64

// pack returns a copy of a rank, packed if that saves memory.
func pack(r *dag.Rank) packedRank {
	if r.Len() < leastPacked {
		return packedRank{Rank: r.Clone()}
	}
	rest := *r
	var packed []packedColumn
	for id := range dag.Fields {
		switch c := dag.Fields[id].Of(&rest).(type) {
		case *dag.Column[int32]:
			packed, *c = packColumn(packed, fieldColumn+id, *c), nil
		case *dag.Column[int64]:
			packed, *c = packColumn(packed, fieldColumn+id, *c), nil
		case *dag.Column[dag.Time]:
			packed, *c = packColumn(packed, fieldColumn+id, *c), nil
		}
	}
	return packedRank{rest.Clone(), slices.Clip(packed)}
}

// packColumn appends a column, packed, unless it is empty.
func packColumn[T ~int32 | ~int64](packed []packedColumn, column int, values []T) []packedColumn {
	if len(values) == 0 {
		return packed
	}
	least, most := values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	p := packedColumn{column: column, n: len(values), least: int64(least)}
	switch span := uint64(int64(most)) - uint64(int64(least)); {
	case span == 0:
	case span < 1<<8:
		p.width, p.data = 1, make([]byte, len(values))
		for i, v := range values {
			p.data[i] = uint8(v - least)
		}
	case span < 1<<16:
		p.width, p.data = 2, make([]byte, 2*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint16(p.data[2*i:], uint16(v-least))
		}
	case span < 1<<32:
		p.width, p.data = 4, make([]byte, 4*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint32(p.data[4*i:], uint32(v-least))
		}
	default:
		p.width, p.data = 8, make([]byte, 8*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint64(p.data[8*i:], uint64(int64(v))-uint64(p.least))
		}
	}
	return append(packed, p)
}

// find returns a packed column, nil if there is none.
func (r *packedRank) find(column int) *packedColumn {
	for i := range r.packed {
		if r.packed[i].column == column {
			return &r.packed[i]
		}
	}
	return nil
}

// unpack sets dst to the values from the first on, zero behind the last. It returns false, without setting any, if
// there are none.
func (p *packedColumn) unpack(dst []int64, first int) bool {
	if first >= p.n {
		return false
	}
	n := min(len(dst), p.n-first)
	clear(dst[n:])
	dst = dst[:n]
	data := p.data[int(p.width)*first:]
	switch p.width {
	case 0:
		parquet.Fill(dst, p.least)
	case 1:
		for i := range dst {
			dst[i] = p.least + int64(data[i])
		}
	case 2:
		for i := range dst {
			dst[i] = p.least + int64(binary.LittleEndian.Uint16(data[2*i:]))
		}
	case 4:
		for i := range dst {
			dst[i] = p.least + int64(binary.LittleEndian.Uint32(data[4*i:]))
		}
	case 8:
		for i := range dst {
			dst[i] = int64(uint64(p.least) + binary.LittleEndian.Uint64(data[8*i:]))
		}
	}
	return true
}

// drop frees the memory of a packed column of a segment that is encoded, unless other row groups have a part of its
// rank.
func (s *segment) drop(column int) {
	if s.first > 0 || s.last < s.rank.Len() {
		return
	}
	if p := s.rank.find(column); p != nil {
		p.data = nil
	}
}
