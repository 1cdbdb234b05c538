package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag/dag"
)

// segment is a run of ops of one rank: part of a row group.
type segment struct {
	number      int32 // of the rank
	rank        *dag.Rank
	first, last int // ops first..last-1
}

// chunk is one column of one row group, encoded.
type chunk struct {
	data []byte // pages with their headers
	meta chunkMeta
}

// chunkMeta is what the footer says of a chunk.
type chunkMeta struct {
	typ                         physicalType
	codec                       int32
	encodings                   []encoding
	values                      int64 // NULLs and empty lists included
	compressedSize, size        int64
	dictionaryOffset, firstPage int64  // from the start of the file; dictionaryOffset is 0 where there is none
	min, max                    []byte // PLAIN; nil: unknown
	nulls                       int64  // -1: unknown
}

// encoder encodes chunks, one at a time, with buffers that it keeps.
type encoder struct {
	fast, better *zstd.Encoder
	dictionary   dictionary
	values       []int64
	numbers      []uint16
	narrow       []int32
	rep, def     bitmap
	page, other  []byte // the data page at hand, and another to compare it with
	body         []byte // of the dictionary page
	packed       []byte
	repacked     []byte
}

// encoders are for reuse: their tables are large.
var encoders = sync.Pool{New: func() any { return newEncoder() }}

func newEncoder() *encoder {
	at := func(level zstd.EncoderLevel) *zstd.Encoder {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return z
	}
	return &encoder{fast: at(zstd.SpeedFastest), better: at(zstd.SpeedBetterCompression)}
}

// encode encodes a column of a row group of the given number of rows.
func (e *encoder) encode(column int, rows []segment, n int) (chunk, error) {
	e.rep.reset()
	e.def.reset()
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
	e.values = slices.Grow(e.values[:0], n)[:n]
	at, zero := 0, true
	for _, s := range rows {
		dst := e.values[at : at+s.last-s.first]
		switch copied := e.copyInts(dst, column, s); {
		case copied && zero:
			clear(e.values[:at])
			zero = false
		case !copied && !zero:
			clear(dst)
		}
		at += len(dst)
	}
	if zero {
		return e.zeros(column, n), nil
	}
	return e.ints(column, e.values, n), nil
}

// copyInts copies an integer column of a segment, unless it is known to be zero in all of it: it reports that.
func (e *encoder) copyInts(dst []int64, column int, s segment) bool {
	r := s.rank
	switch column {
	case colRank:
		fill(dst, int64(s.number))
		return s.number != 0
	case colBytes:
		return widen(dst, r.Bytes, s.first)
	case colRecvBytes:
		return widen(dst, r.RecvBytes, s.first)
	case colPeer:
		return widen(dst, r.Peer, s.first)
	case colTag:
		return widen(dst, r.Tag, s.first)
	case colComm:
		return e.widenNarrow(dst, &r.Comm, s.first)
	case colDuration:
		return widen(dst, r.Duration, s.first)
	case colFlops:
		return widen(dst, r.Flops, s.first)
	case colRelease:
		return widen(dst, r.Release, s.first)
	case colStream:
		return e.widenNarrow(dst, &r.Stream, s.first)
	case colNIC:
		return e.widenNarrow(dst, &r.NIC, s.first)
	case colJob:
		return e.widenNarrow(dst, &r.Job, s.first)
	case colHost:
		return e.widenNarrow(dst, &r.Host, s.first)
	case colDims:
		return e.widenNarrow(dst, &r.Dims, s.first)
	case colPriority:
		return e.widenNarrow(dst, &r.Priority, s.first)
	}
	panic(fmt.Sprintf("column %d is not of integers", column))
}

func widen[T ~int32 | ~int64](dst []int64, src []T, first int) bool {
	if first >= len(src) {
		return false
	}
	src = src[first:min(len(src), first+len(dst))]
	for i, v := range src {
		dst[i] = int64(v)
	}
	clear(dst[len(src):])
	return true
}

func (e *encoder) widenNarrow(dst []int64, src *dag.Narrow, first int) bool {
	if first >= src.Len() {
		return false
	}
	e.narrow = slices.Grow(e.narrow[:0], len(dst))[:len(dst)]
	src.Copy(e.narrow, first)
	return widen(dst, e.narrow, 0)
}

// zeros encodes a column that is zero in each of n rows.
func (e *encoder) zeros(column, n int) chunk {
	typ := columns[column].shape.physical()
	c := e.begin(typ, n)
	e.dictionaryPage(&c, appendInts(e.body[:0], []int64{0}, typ), 1)
	e.page = appendRun(append(e.page[:0], 0), 0, 0, n)
	e.dataPage(&c, encRLEDictionary)
	c.meta.min, c.meta.max = bounds(typ, 0, 0)
	return c
}

// ints encodes integers, after the levels of entries entries in e.rep and e.def, of which some may have no value.
func (e *encoder) ints(column int, values []int64, entries int) chunk {
	typ := columns[column].shape.physical()
	c := e.begin(typ, entries)
	e.page = e.appendLevels(e.page[:0])
	if len(values) == 0 {
		e.dataPage(&c, encPlain)
		return c
	}
	e.numbers = slices.Grow(e.numbers[:0], len(values))[:len(values)]
	if !e.dictionary.number(values, e.numbers) {
		c.meta.min, c.meta.max = bounds(typ, slices.Min(values), slices.Max(values))
		e.page = appendInts(e.page, values, typ)
		e.dataPage(&c, e.smallest(encPlain, values, typ, 0))
		return c
	}
	distinct := len(e.dictionary.values)
	c.meta.min, c.meta.max = bounds(typ, slices.Min(e.dictionary.values), slices.Max(e.dictionary.values))
	switch {
	case distinct == 1:
		e.page = appendRun(append(e.page, 0), 0, 0, len(values))
	case column == colRank:
		e.page = appendRuns(e.page, e.numbers, distinct)
	case distinct <= 256:
		e.page = appendNumbers(e.page, e.numbers, distinct)
	default:
		e.dictionary.spread(e.numbers)
		e.page = appendNumbers(e.page, e.numbers, distinct)
		e.body = appendInts(e.body[:0], e.dictionary.values, typ)
		e.packed = e.fast.EncodeAll(e.body, e.packed[:0])
		enc := e.smallest(encRLEDictionary, values, typ, len(e.packed))
		if enc == encRLEDictionary {
			e.dictionaryPage(&c, e.body, len(e.dictionary.values))
		}
		e.dataPage(&c, enc)
		return c
	}
	e.dictionaryPage(&c, appendInts(e.body[:0], e.dictionary.values, typ), distinct)
	e.dataPage(&c, encRLEDictionary)
	return c
}

// smallest compares the page in e.page, which has the given encoding and costs extra bytes besides, with what other
// encodings of the values make of it, leaves the smallest in e.page and returns its encoding.
func (e *encoder) smallest(enc encoding, values []int64, typ physicalType, extra int) encoding {
	e.packed = e.fast.EncodeAll(e.page, e.packed[:0])
	size := len(e.packed) + extra
	for _, try := range []encoding{encDeltaBinary, encPlain} {
		if try == enc {
			continue
		}
		e.other = e.appendLevels(e.other[:0])
		if try == encPlain {
			e.other = appendInts(e.other, values, typ)
		} else {
			e.other = appendDelta(e.other, values, typ)
		}
		e.packed = e.fast.EncodeAll(e.other, e.packed[:0])
		if len(e.packed) < size {
			enc, size = try, len(e.packed)
			e.page, e.other = e.other, e.page
		}
	}
	return enc
}

// appendLevels appends the repetition and definition levels, where the column has them.
func (e *encoder) appendLevels(page []byte) []byte {
	if e.rep.n > 0 {
		page = e.rep.appendLevels(page)
	}
	if e.def.n > 0 {
		page = e.def.appendLevels(page)
	}
	return page
}

// bounds returns the smallest and the largest value as statistics have them.
func bounds(typ physicalType, smallest, largest int64) (low, high []byte) {
	return appendInts(nil, []int64{smallest}, typ), appendInts(nil, []int64{largest}, typ)
}

// times encodes a column of measured times.
func (e *encoder) times(column int, rows []segment, n int) chunk {
	e.values = e.values[:0]
	for _, s := range rows {
		src := s.rank.MeasuredStart
		if column == colMeasuredEnd {
			src = s.rank.MeasuredEnd
		}
		for i := s.first; i < min(s.last, len(src)); i++ {
			if src[i] == dag.Unmeasured {
				e.def.append(0)
				continue
			}
			e.def.append(1)
			e.values = append(e.values, int64(src[i]))
		}
		e.def.appendSame(0, min(s.last-s.first, s.last-len(src)))
	}
	c := e.ints(column, e.values, n)
	c.meta.nulls = int64(n - len(e.values))
	return c
}

// lists encodes a column of lists of integers.
func (e *encoder) lists(column int, rows []segment) (chunk, error) {
	e.values = e.values[:0]
	for _, s := range rows {
		lists := s.rank.Deps
		switch column {
		case colStartDeps:
			lists = s.rank.StartDeps
		case colDependents:
			lists = s.rank.Order
		case colStartDependents:
			lists = s.rank.StartOrder
		}
		from := uint32(0)
		if s.first > 0 && len(lists.End) > 0 {
			from = lists.End[min(s.first, len(lists.End))-1]
		}
		start := from
		last := max(s.first, min(s.last, len(lists.End)))
		for _, end := range lists.End[min(s.first, len(lists.End)):min(last, len(lists.End))] {
			switch end - start {
			case 0:
				e.rep.append(0)
				e.def.append(0)
			case 1:
				e.rep.append(0)
				e.def.append(1)
			default:
				e.rep.append(0)
				e.rep.appendSame(1, int(end-start)-1)
				e.def.appendSame(1, int(end-start))
			}
			start = end
		}
		for _, off := range lists.Off[from:start] {
			e.values = append(e.values, int64(off))
		}
		e.rep.appendSame(0, s.last-last)
		e.def.appendSame(0, s.last-last)
	}
	if e.rep.n > math.MaxInt32/8 { // the size of a page has 31 bits
		return chunk{}, fmt.Errorf("%s: an op has too many dependencies for the store", columns[column].name)
	}
	c := e.ints(column, e.values, e.rep.n)
	c.meta.nulls = int64(e.rep.n - len(e.values))
	return c, nil
}

// labels encodes the kinds or subkinds.
func (e *encoder) labels(column int, rows []segment, n int) chunk {
	e.numbers = slices.Grow(e.numbers[:0], n)[:n]
	var numberOf [256]uint16 // of a kind, from 1 in the order of first appearance
	var names []string
	number := func(code byte) uint16 {
		if numberOf[code] == 0 {
			name := dag.Kind(code).String()
			if column == colSubkind {
				name = dag.Subkind(code).String()
			}
			names = append(names, name)
			numberOf[code] = uint16(len(names))
		}
		return numberOf[code] - 1
	}
	at := 0
	for _, s := range rows {
		dst := e.numbers[at : at+s.last-s.first]
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
	e.page = e.page[:0]
	c := e.strings(names, n)
	c.meta.min, c.meta.max = []byte(slices.Min(names)), []byte(slices.Max(names))
	return c
}

// strings encodes the strings that e.numbers picks from distinct, after the levels in e.page.
func (e *encoder) strings(distinct []string, entries int) chunk {
	if len(distinct) == 1 {
		e.page = appendRun(append(e.page, 0), 0, 0, len(e.numbers))
	} else {
		e.page = appendNumbers(e.page, e.numbers, len(distinct))
	}
	body := e.body[:0]
	for _, s := range distinct {
		body = appendString(body, s)
	}
	c := e.begin(typeByteArray, entries)
	e.dictionaryPage(&c, body, len(distinct))
	e.dataPage(&c, encRLEDictionary)
	return c
}

func appendString(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// text encodes a column of optional strings.
func (e *encoder) text(column int, rows []segment, n int) (chunk, error) {
	var c chunk
	if distinct, ok := e.numberText(column, rows); ok {
		e.page = e.def.appendLevels(e.page[:0])
		c = e.strings(distinct, n)
	} else {
		var err error
		if c, err = e.plainText(column, rows, n); err != nil {
			return chunk{}, err
		}
	}
	c.meta.nulls = int64(n - e.def.ones)
	return c, nil
}

func text(r *dag.Rank, column int) *dag.Text {
	if column == colAttrs {
		return &r.Attrs
	}
	return &r.Name
}

// numberText sets e.def to the levels of the strings and e.numbers to their numbers, and returns the distinct ones, as
// long as they are few enough for a dictionary to pay.
func (e *encoder) numberText(column int, rows []segment) (distinct []string, ok bool) {
	numberOf := map[string]uint16{}
	e.numbers = e.numbers[:0]
	size := 0
	for _, s := range rows {
		src := text(s.rank, column)
		stored := max(s.first, min(s.last, src.Len()))
		for i := s.first; i < stored; i++ {
			v := src.At(i)
			if v == "" {
				e.def.append(0)
				continue
			}
			e.def.append(1)
			number, ok := numberOf[v]
			if !ok {
				size += len(v)
				if len(distinct) >= min(maxDictionary, 64+len(e.numbers)/2) || size > maxTextPage {
					return nil, false
				}
				number = uint16(len(distinct))
				numberOf[v] = number
				distinct = append(distinct, v)
			}
			e.numbers = append(e.numbers, number)
		}
		e.def.appendSame(0, s.last-stored)
	}
	return distinct, len(distinct) > 0
}

// maxTextPage is how many bytes of strings a page takes before the next one begins.
const maxTextPage = 1 << 22

// plainText encodes the strings one after the other, in pages of a sensible size, and leaves in e.def.ones how many
// there are.
func (e *encoder) plainText(column int, rows []segment, n int) (chunk, error) {
	e.def.reset()
	c := e.begin(typeByteArray, n)
	body := e.body[:0]
	flush := func() {
		e.page = append(e.def.appendLevels(e.page[:0]), body...)
		e.dataPageOf(&c, encPlain, e.def.n)
		body = body[:0]
		e.def.reset()
	}
	ones := 0
	for _, s := range rows {
		src := text(s.rank, column)
		stored := max(s.first, min(s.last, src.Len()))
		for i := s.first; i < stored; i++ {
			v := src.At(i)
			if v == "" {
				e.def.append(0)
				continue
			}
			if len(v) > math.MaxInt32/2 {
				return chunk{}, fmt.Errorf("op %d: %s of %d bytes, expected 1 GiB at most", i, columns[column].name, len(v))
			}
			if len(body) > 0 && len(body)+len(v) > maxTextPage {
				ones += e.def.ones
				flush()
			}
			e.def.append(1)
			body = appendString(body, v)
		}
		e.def.appendSame(0, s.last-stored)
	}
	if e.def.n > 0 {
		ones += e.def.ones
		flush()
	}
	e.def.ones = ones
	e.body = body
	return c, nil
}

// begin starts a chunk of n entries.
func (e *encoder) begin(typ physicalType, n int) chunk {
	return chunk{meta: chunkMeta{typ: typ, codec: codecZstd, values: int64(n), encodings: []encoding{encRLE}}}
}

// dictionaryPage appends a dictionary page of n values, as PLAIN has them.
func (e *encoder) dictionaryPage(c *chunk, body []byte, n int) {
	e.body = body
	e.appendPage(c, body, pageDictionary, func(w *thriftWriter) {
		w.begin(7)
		w.int32(1, int32(n))
		w.int32(2, int32(encPlain))
		w.end()
	})
	c.meta.firstPage = int64(len(c.data))
	c.meta.encodings = append(c.meta.encodings, encPlain)
}

// dataPage appends the data page in e.page, which has all entries of the chunk.
func (e *encoder) dataPage(c *chunk, enc encoding) {
	e.dataPageOf(c, enc, int(c.meta.values))
}

// dataPageOf appends the data page in e.page, which has n entries.
func (e *encoder) dataPageOf(c *chunk, enc encoding, n int) {
	e.appendPage(c, e.page, pageData, func(w *thriftWriter) {
		w.begin(5)
		w.int32(1, int32(n))
		w.int32(2, int32(enc))
		w.int32(3, int32(encRLE))
		w.int32(4, int32(encRLE))
		w.end()
	})
	if !slices.Contains(c.meta.encodings, enc) {
		c.meta.encodings = append(c.meta.encodings, enc)
	}
}

func (e *encoder) appendPage(c *chunk, page []byte, typ pageType, header func(w *thriftWriter)) {
	compressed := e.compress(page)
	w := thriftWriter{buf: c.data}
	w.int32(1, int32(typ))
	w.int32(2, int32(len(page)))
	w.int32(3, int32(len(compressed)))
	w.int32(4, int32(crc32.ChecksumIEEE(compressed)))
	header(&w)
	w.end()
	c.meta.size += int64(len(w.buf) - len(c.data) + len(page))
	c.data = append(w.buf, compressed...)
	c.meta.compressedSize = int64(len(c.data))
}

// compress compresses a page. What repeats little comes out smaller at the fast level, which does not take chance
// matches.
func (e *encoder) compress(page []byte) []byte {
	e.packed = e.better.EncodeAll(page, e.packed[:0])
	if len(e.packed) < len(page)/32 {
		return e.packed
	}
	e.repacked = e.fast.EncodeAll(page, e.repacked[:0])
	if len(e.repacked) < len(e.packed) {
		return e.repacked
	}
	return e.packed
}
