package store

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// segment is a run of ops of one rank, a part of a row group.
type segment struct {
	number      int32 // ops first..last-1
	rank        packedRank
	first, last int // ops first..last-1
}

// encoder encodes chunks, one at a time, with buffers that it reuses.
type encoder struct {
	*parquet.Encoder
	values []int64 // memory of room

	lengths []int32 // of the lists of a segment
	opened  []byte  // a column of a segment without compression
}

// room returns an empty slice with room for n values in memory, valid until the next call.
func room[T parquet.Number](memory *[]int64, n int) []T {
	size := int(unsafe.Sizeof(T(0)))
	words := (n*size + 7) / 8
	if cap(*memory) < words {
		*memory = nil // free it before the next one is allocated
		*memory = make([]int64, 0, words)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(*memory))), cap(*memory)*8/size)[:0]
}

// encoders is a pool, because the tables of an encoder are large.
var encoders = newPool(func() *encoder { return &encoder{Encoder: parquet.NewEncoder()} })

// release frees large buffers of a frugal encoder after a row group: the next one has to be read first.
func (e *encoder) release() {
	if !e.Frugal {
		return
	}
	e.Release()
	if cap(e.values) > keptValues {
		e.values = nil
	}
}

// keptValues is the number of values whose memory a frugal encoder keeps between row groups.
const keptValues = 1 << 19

// encode encodes a column of a row group with n rows.
func (e *encoder) encode(column int, rows []segment, n int) (parquet.EncodedChunk, error) {
	e.Reset()
	if !e.Frugal { // most pages are smaller
		e.Reserve(8 * n)
	}
	switch columns[column].shape {
	case label:
		return e.labels(column, rows, n), nil
	case optText:
		return e.text(column, rows, n)
	case list:
		return e.lists(column, rows)
	case optInt64s:
		return e.times(column, rows, n), nil
	}
	if columns[column].shape.physical() == parquet.Int64 {
		return integers(e, column, rows, n, (*parquet.Encoder).Integers64), nil
	}
	return integers(e, column, rows, n, (*parquet.Encoder).Integers32), nil
}

// integers encodes an integer column with a method of the encoder.
func integers[T int32 | int64](e *encoder, column int, rows []segment, n int,
	encode func(e *parquet.Encoder, values []T, entries int, inRuns bool) parquet.EncodedChunk) parquet.EncodedChunk {
	values := room[T](&e.values, n)[:n]
	at, zero := 0, true
	for _, s := range rows {
		dst := values[at : at+s.last-s.first]
		switch copied := copyInts(e, dst, column, s); {
		case copied && zero:
			clear(values[:at])
			zero = false
		case !copied && !zero:
			clear(dst)
		}
		at += len(dst)
	}
	drop(rows, column)
	if zero {
		return e.Zeros(columns[column].shape.physical(), n)
	}
	return encode(e.Encoder, values, n, column == colRank)
}

// copyInts copies an integer column of a segment. It returns false, without copying, if the whole column is zero.
func copyInts[T int32 | int64](e *encoder, dst []T, column int, s segment) bool {
	if column == colRank {
		parquet.Fill(dst, T(s.number))
		return s.number != 0
	}
	if p := s.rank.find(column); p != nil {
		return unpack(e.open(p), dst, s.first)
	}
	switch src := values(s.rank.Rank, column).(type) {
	case *dag.Column[int64]:
		return convert(dst, *src, s.first)
	case *dag.Column[dag.Time]:
		return convert(dst, *src, s.first)
	case *dag.Column[int32]:
		return convert(dst, *src, s.first)
	case *dag.Narrow:
		return copyNarrow(e, dst, src, s.first)
	}
	panic(fmt.Sprintf("column %d is not of integers", column))
}

// open returns a column without compression, valid until the next call.
func (e *encoder) open(p *packedColumn) *packedColumn {
	var open packedColumn
	open, e.opened = p.open(e.opened)
	return &open
}

// convert copies the values from the first on, which are in the range of the other type.
func convert[D int32 | int64, S ~int32 | ~int64](dst []D, src []S, first int) bool {
	if first >= len(src) {
		return false
	}
	src = src[first:min(len(src), first+len(dst))]
	for i, v := range src {
		dst[i] = D(v)
	}
	clear(dst[len(src):])
	return true
}

func copyNarrow[T int32 | int64](e *encoder, dst []T, src *dag.Narrow, first int) bool {
	if first >= src.Len() {
		return false
	}
	if dst, is := any(dst).([]int32); is {
		src.Copy(dst, first)
		return true
	}
	e.lengths = slices.Grow(e.lengths[:0], len(dst))[:len(dst)]
	src.Copy(e.lengths, first)
	return convert(dst, e.lengths, 0)
}

// times encodes a column of measured times.
func (e *encoder) times(column int, rows []segment, n int) parquet.EncodedChunk {
	present := room[int64](&e.values, n)
	def := &e.Def
	for _, s := range rows {
		src := *values(s.rank.Rank, column).(*dag.Times)
		for i := s.first; i < min(s.last, len(src)); i++ {
			if src[i] == dag.Unmeasured {
				def.Append(0)
				continue
			}
			def.Append(1)
			present = append(present, int64(src[i]))
		}
		def.AppendSame(0, min(s.last-s.first, s.last-len(src)))
	}
	nulls := n - len(present)
	c := e.Integers64(present, n, false)
	c.Meta.Nulls = int64(nulls)
	return c
}

// lists encodes a column of lists of integers.
func (e *encoder) lists(column int, rows []segment) (parquet.EncodedChunk, error) {
	count := 0
	for i := range rows {
		count += rows[i].listed(column)
	}
	all := room[int32](&e.values, count)
	rep, def := &e.Rep, &e.Def
	for _, s := range rows {
		all = e.listsOf(all, column, s)
		for _, n := range e.lengths {
			switch n {
			case 0:
				rep.Append(0)
				def.Append(0)
			case 1:
				rep.Append(0)
				def.Append(1)
			default:
				rep.Append(0)
				rep.AppendSame(1, int(n)-1)
				def.AppendSame(1, int(n))
			}
		}
		none := s.last - s.first - len(e.lengths)
		rep.AppendSame(0, none)
		def.AppendSame(0, none)
	}
	drop(rows, column)
	if rep.Len() > math.MaxInt32/8 { // the size of a page has 31 bits
		return parquet.EncodedChunk{}, fmt.Errorf("%s: an op has too many dependencies for the store",
			columns[column].name)
	}
	c := e.Integers32(all, rep.Len(), false)
	c.Meta.Nulls = int64(rep.Len() - count)
	return c, nil
}

// listsOf sets e.lengths to the lengths of the lists of a segment, without those behind the last that the rank has, and
// appends their values to all.
func (e *encoder) listsOf(all []int32, column int, s segment) []int32 {
	e.lengths = e.lengths[:0]
	if l := s.rank.list(column); l != nil {
		n := max(min(s.last, l.lengths.n)-s.first, 0)
		e.lengths = slices.Grow(e.lengths, n)[:n]
		unpack(&l.lengths, e.lengths, s.first)
		count := 0
		for _, n := range e.lengths {
			count += int(n)
		}
		at := len(all)
		all = slices.Grow(all, count)[:at+count]
		unpack(e.open(&l.values), all[at:], l.before(s.first))
		return all
	}
	lists := values(s.rank.Rank, column).(*dag.Edges)
	first := min(s.first, len(lists.End))
	start := uint32(0)
	if first > 0 {
		start = lists.End[first-1]
	}
	from := start
	for _, end := range lists.End[first:min(s.last, len(lists.End))] {
		e.lengths = append(e.lengths, int32(end-start))
		start = end
	}
	return append(all, lists.Off[from:start]...)
}

// listed returns the number of values of the lists of a segment.
func (s *segment) listed(column int) int {
	if l := s.rank.list(column); l != nil {
		if s.first == 0 && s.last >= l.lengths.n {
			return l.values.n
		}
		return l.before(min(s.last, l.lengths.n)) - l.before(min(s.first, l.lengths.n))
	}
	lists := values(s.rank.Rank, column).(*dag.Edges)
	before := func(op int) int {
		if op = min(op, len(lists.End)); op == 0 {
			return 0
		}
		return int(lists.End[op-1])
	}
	return before(s.last) - before(s.first)
}

// labels encodes the kinds or subkinds.
func (e *encoder) labels(column int, rows []segment, n int) parquet.EncodedChunk {
	numbers := e.Indices(n)
	var numberOf [256]uint16 // index of each kind, from 1 in the order of first appearance
	var names []string
	number := func(code byte) uint16 {
		if numberOf[code] == 0 {
			name := dag.Subkind(code).String()
			if column == colKind {
				name = dag.Kind(code).String()
			}
			names = append(names, name)
			numberOf[code] = uint16(len(names))
		}
		return numberOf[code] - 1
	}
	at := 0
	for _, s := range rows {
		dst := numbers[at : at+s.last-s.first]
		at += len(dst)
		if column == colKind {
			for i, k := range s.rank.Kind[s.first:s.last] {
				dst[i] = number(byte(k))
			}
			continue
		}
		k := 0
		if s.first < len(s.rank.Subkind) {
			for ; k < min(len(dst), len(s.rank.Subkind)-s.first); k++ {
				dst[k] = number(byte(s.rank.Subkind[s.first+k]))
			}
		}
		if k < len(dst) {
			none := number(byte(dag.NoSubkind))
			for ; k < len(dst); k++ {
				dst[k] = none
			}
		}
	}
	c := e.Strings(names, numbers, n)
	c.Meta.Min, c.Meta.Max = []byte(slices.Min(names)), []byte(slices.Max(names))
	return c
}

// text encodes a column of optional strings.
func (e *encoder) text(column int, rows []segment, n int) (c parquet.EncodedChunk, err error) {
	var present int
	if distinct, numbers, ok := e.numberText(column, rows, n); ok {
		c, present = e.Strings(distinct, numbers, n), len(numbers)
	} else if c, present, err = e.plainText(column, rows, n); err != nil {
		return c, err
	}
	c.Meta.Nulls = int64(n - present)
	return c, nil
}

// numberText sets e.Def to the levels of the strings. It returns the distinct strings and the index of each string
// among them. ok is false if they are too many for a dictionary to save space.
func (e *encoder) numberText(column int, rows []segment, n int) (distinct []string, numbers []uint16, ok bool) {
	numberOf := map[string]uint16{}
	numbers = e.Indices(n)[:0]
	size := 0
	for _, s := range rows {
		src := values(s.rank.Rank, column).(*dag.Text)
		stored := max(s.first, min(s.last, src.Len()))
		for i := s.first; i < stored; i++ {
			v := src.At(i)
			if v == "" {
				e.Def.Append(0)
				continue
			}
			e.Def.Append(1)
			number, ok := numberOf[v]
			if !ok {
				size += len(v)
				if len(distinct) >= min(parquet.MaxDictionary, 64+len(numbers)/2) || size > parquet.MaxTextPage {
					return nil, nil, false
				}
				number = uint16(len(distinct))
				numberOf[v] = number
				distinct = append(distinct, v)
			}
			numbers = append(numbers, number)
		}
		e.Def.AppendSame(0, s.last-stored)
	}
	return distinct, numbers, len(distinct) > 0
}

// plainText encodes the strings in sequence, in pages of moderate size. It also returns their number.
func (e *encoder) plainText(column int, rows []segment, n int) (parquet.EncodedChunk, int, error) {
	e.BeginTexts(n)
	for _, s := range rows {
		src := values(s.rank.Rank, column).(*dag.Text)
		stored := max(s.first, min(s.last, src.Len()))
		for i := s.first; i < stored; i++ {
			v := src.At(i)
			if v == "" {
				e.Def.Append(0)
				continue
			}
			if len(v) > math.MaxInt32/2 {
				return parquet.EncodedChunk{}, 0, fmt.Errorf("op %d: %s: expected at most 1 GiB, found %d bytes", i,
					columns[column].name, len(v))
			}
			e.AppendText(v)
		}
		e.Def.AppendSame(0, s.last-stored)
	}
	c, present := e.EndTexts()
	return c, present, nil
}
