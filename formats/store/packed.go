package store

// Compact columns of ranks that wait for their row group.

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// packedRank is a rank whose wide integer columns and lists are packed: their values are usually near each other.
type packedRank struct {
	*dag.Rank // without the packed columns
	packed    []packedColumn
	lists     []packedList
	part      span // zero: it is a whole rank
}

// span is the position of ops in a rank that is read in parts.
type span struct {
	first int   // number of its first op
	of    int   // number of ops of the rank
	edges int64 // dependencies of the rank
}

// packedList is a column of lists: their lengths, and their values in sequence.
type packedList struct {
	column          int // of the store
	lengths, values packedColumn
}

// packedColumn is a column of integers in frames of frameRows rows, the last of which may be shorter.
type packedColumn struct {
	column int // of the store
	n      int
	dense  bool   // data is compressed
	data   []byte // the heads of all frames, and then the values of each
}

const (
	frameRows = 1 << 12
	frameHead = 9 // bytes
)

// frame is how values are packed: each is the distance from the smallest one, in a unit and a number of bytes.
type frame struct {
	least int64
	width uint8 // in bytes: 0, 1, 2, 4 or 8
	nanos bool  // the unit is a nanosecond, as for times that come from formats in nanoseconds; else it is 1
}

// nanosecond is a unit of distances.
const nanosecond = int64(dag.Nanosecond)

// leastDense is the number of ops from which the columns of a rank are compressed while they wait, if memory matters:
// row groups of shorter ranks are small.
const leastDense = usualGroupRows / fewRanks

// leastPacked is the number of ops from which packing a rank saves memory.
const leastPacked = 64

// pack returns a copy of a rank, packed if that saves memory.
func pack(r *dag.Rank) packedRank {
	if r.Len() < leastPacked {
		return packedRank{Rank: r.Clone()}
	}
	rest := *r
	var packed []packedColumn
	var lists []packedList
	var lengths []int32
	for id := range dag.Fields {
		switch c := dag.Fields[id].Of(&rest).(type) {
		case *dag.Column[int32]:
			packed, *c = packColumn(packed, fieldColumn+id, *c), nil
		case *dag.Column[int64]:
			packed, *c = packColumn(packed, fieldColumn+id, *c), nil
		case *dag.Column[dag.Time]:
			packed, *c = packColumn(packed, fieldColumn+id, *c), nil
		case *dag.Edges:
			if len(c.Off) == 0 {
				continue
			}
			lengths = slices.Grow(lengths[:0], len(c.End))[:len(c.End)]
			start := uint32(0)
			for i, end := range c.End {
				lengths[i], start = int32(end-start), end
			}
			lists = append(lists, packedList{fieldColumn + id, packValues(lengths, nil), packValues(c.Off, nil)})
			*c = dag.Edges{}
		}
	}
	return packedRank{Rank: rest.Clone(), packed: slices.Clip(packed), lists: slices.Clip(lists)}
}

// packColumn appends a column, packed, unless it is empty.
func packColumn[T integer](packed []packedColumn, column int, values []T) []packedColumn {
	if len(values) == 0 {
		return packed
	}
	p := packValues(values, nil)
	p.column = column
	return append(packed, p)
}

// integer is a type of values that are packed.
type integer interface {
	~uint8 | ~int32 | ~uint32 | ~int64
}

// packValues returns one value or more, packed, as a column without number. It reuses the memory of data if that is
// large enough.
func packValues[T integer](values []T, data []byte) packedColumn {
	data, size := data[:0], 0
	for part := range slices.Chunk(values, frameRows) {
		f := frameOf(part)
		data = f.appendHead(data)
		size += len(part) * int(f.width)
	}
	p := packedColumn{n: len(values), data: slices.Grow(data, size)}
	for k := range p.frames() {
		first := k * frameRows
		f, part := p.frame(k), values[first:min(first+frameRows, p.n)]
		at := len(p.data)
		p.data = p.data[:at+len(part)*int(f.width)]
		packFrame(f, p.data[at:], part)
	}
	return p
}

// frameOf returns the narrowest frame of values.
func frameOf[T integer](values []T) frame {
	least, most := values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	span := uint64(int64(most)) - uint64(int64(least))
	f := frame{least: int64(least), width: widthOf(span)}
	width := widthOf(span / uint64(nanosecond))
	if width == f.width {
		return f
	}
	for _, v := range values {
		if (uint64(int64(v))-uint64(f.least))%uint64(nanosecond) != 0 {
			return f
		}
	}
	f.width, f.nanos = width, true
	return f
}

// widthOf returns the number of bytes for values up to most.
func widthOf(most uint64) uint8 {
	switch {
	case most == 0:
		return 0
	case most < 1<<8:
		return 1
	case most < 1<<16:
		return 2
	case most < 1<<32:
		return 4
	}
	return 8
}

// appendHead appends the head of the frame.
func (f frame) appendHead(b []byte) []byte {
	form := f.width << 1
	if f.nanos {
		form++
	}
	return append(binary.LittleEndian.AppendUint64(b, uint64(f.least)), form)
}

// frames returns the number of frames.
func (p *packedColumn) frames() int { return (p.n + frameRows - 1) / frameRows }

// frame returns the k-th frame.
func (p *packedColumn) frame(k int) frame {
	head := p.data[k*frameHead:][:frameHead]
	form := head[frameHead-1]
	return frame{int64(binary.LittleEndian.Uint64(head)), form >> 1, form&1 != 0}
}

// distance returns that of a value from the smallest.
func (f frame) distance(v int64) uint64 {
	d := uint64(v) - uint64(f.least)
	if f.nanos {
		d /= uint64(nanosecond)
	}
	return d
}

// packFrame packs the values of a frame.
func packFrame[T integer](f frame, dst []byte, values []T) {
	switch f.width {
	case 1:
		for i, v := range values {
			dst[i] = uint8(f.distance(int64(v)))
		}
	case 2:
		for i, v := range values {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(f.distance(int64(v))))
		}
	case 4:
		for i, v := range values {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(f.distance(int64(v))))
		}
	case 8:
		for i, v := range values {
			binary.LittleEndian.PutUint64(dst[8*i:], f.distance(int64(v)))
		}
	}
}

// unpackFrame sets dst to the values of a frame from some position on.
func unpackFrame[T integer](f frame, dst []T, data []byte) {
	least, unit := T(f.least), T(1)
	if f.nanos {
		factor := nanosecond
		unit = T(factor)
	}
	switch f.width {
	case 0:
		parquet.Fill(dst, least)
	case 1:
		for i := range dst {
			dst[i] = least + T(data[i])*unit
		}
	case 2:
		for i := range dst {
			dst[i] = least + T(binary.LittleEndian.Uint16(data[2*i:]))*unit
		}
	case 4:
		for i := range dst {
			dst[i] = least + T(binary.LittleEndian.Uint32(data[4*i:]))*unit
		}
	case 8:
		for i := range dst {
			dst[i] = least + T(binary.LittleEndian.Uint64(data[8*i:]))*unit
		}
	}
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

// list returns a packed column of lists, nil if there is none.
func (r *packedRank) list(column int) *packedList {
	for i := range r.lists {
		if r.lists[i].column == column {
			return &r.lists[i]
		}
	}
	return nil
}

// size returns the numbers of ops and dependencies of the rank, also of one of which r is a part.
func (r *packedRank) size() (ops, edges int64) {
	if r.part.of > 0 {
		return int64(r.part.of), r.part.edges
	}
	return int64(r.Len()), r.edges()
}

// edges returns the number of dependencies.
func (r *packedRank) edges() int64 {
	n := int64(len(r.Deps.Off)) + int64(len(r.StartDeps.Off))
	for _, column := range []int{colDeps, colStartDeps} {
		if l := r.list(column); l != nil {
			n += int64(l.values.n)
		}
	}
	return n
}

// before returns the number of values of the lists before an op.
func (l *packedList) before(op int) (count int) {
	var lengths [1 << 10]int32
	for first := 0; first < op; first += len(lengths) {
		part := lengths[:min(len(lengths), op-first)]
		unpack(&l.lengths, part, first)
		for _, n := range part {
			count += int(n)
		}
	}
	return count
}

// unpack sets dst to the values of a column, which is not compressed, from the first on, zero behind the last. It
// returns false, without setting any, if there are none.
func unpack[T integer](p *packedColumn, dst []T, first int) bool {
	if first >= p.n {
		return false
	}
	n := min(len(dst), p.n-first)
	clear(dst[n:])
	dst = dst[:n]
	at := p.frames() * frameHead
	for k := 0; len(dst) > 0; k++ {
		f, rows := p.frame(k), min(frameRows, p.n-k*frameRows)
		if skip := first - k*frameRows; skip < rows {
			n := min(len(dst), rows-skip)
			unpackFrame(f, dst[:n], p.data[at+skip*int(f.width):])
			dst, first = dst[n:], first+n
		}
		at += rows * int(f.width)
	}
	return true
}

// compress compresses the columns of a long rank, with the given scratch space, and returns that space. It takes a
// tenth of the time of encoding them, and most columns become several times smaller.
func (r *packedRank) compress(scratch []byte) []byte {
	for i := range r.packed {
		scratch = r.packed[i].compress(scratch)
	}
	for i := range r.lists {
		scratch = r.lists[i].values.compress(scratch)
	}
	return scratch
}

// compress compresses the column if that makes it smaller.
func (p *packedColumn) compress(scratch []byte) []byte {
	most := s2.MaxEncodedLen(len(p.data))
	if most < 0 {
		return scratch // too large
	}
	scratch = slices.Grow(scratch[:0], most)[:most]
	if dense := s2.Encode(scratch, p.data); len(dense) < len(p.data)-len(p.data)/8 {
		p.data, p.dense = slices.Clone(dense), true
	}
	return scratch
}

// open returns the column without compression, in scratch space, which it returns too.
func (p *packedColumn) open(scratch []byte) (packedColumn, []byte) {
	if !p.dense {
		return *p, scratch
	}
	raw, err := s2.Decode(scratch[:cap(scratch)], p.data)
	if err != nil {
		panic(err) // compress wrote it
	}
	open := *p
	open.data, open.dense = raw, false
	return open, raw
}

// drop frees the memory of a packed column of segments whose values have been copied.
func drop(rows []segment, column int) {
	for i := range rows {
		rows[i].drop(column)
	}
}

// drop frees the memory of a packed column of a segment, unless other row groups have a part of its rank.
func (s *segment) drop(column int) {
	if s.first > 0 || s.last < s.rank.Len() {
		return
	}
	if p := s.rank.find(column); p != nil {
		p.data = nil
	}
	if l := s.rank.list(column); l != nil {
		l.lengths.data, l.values.data = nil, nil
	}
}
