package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

// EncodedChunk is a column chunk, ready to be written.
type EncodedChunk struct {
	Data []byte // pages with their headers
	Meta Chunk  // offsets are from the start of Data, see [Chunk.At]
}

// Encoder encodes chunks, one at a time. It reuses its buffers.
//
// A caller begins a chunk with Reset. It collects the levels of the chunk in Rep and Def, if the column has any, and
// then calls one of Zeros, Integers and Strings, or AppendText for each string and EndTexts.
type Encoder struct {
	Rep, Def Bitmap // repetition and definition levels of the chunk; Rep is empty for columns without lists
	Frugal   bool   // do not keep large buffers and windows for later use, which takes some time

	fast, better *compressor
	dictionary   dictionary
	numbers      []uint16
	page, other  []byte // the current data page, and a candidate with another encoding
	body         []byte // content of the dictionary page
	packed       []byte
	repacked     []byte
	best         []byte // page.fast
	texts        textChunk
}

// NewEncoder returns an encoder. Its tables take several megabytes.
func NewEncoder() *Encoder {
	return &Encoder{
		fast:   newCompressor(zstd.SpeedFastest, 4<<20),
		better: newCompressor(zstd.SpeedBetterCompression, 8<<20),
	}
}

// compressor compresses pages at one level. Its window has room for the largest page so far, up to the window of the
// level: a larger one takes memory, but changes no output.
type compressor struct {
	level        zstd.EncoderLevel
	window, most int           // bytes
	encoder      *zstd.Encoder // nil: none since release
}

// firstWindow is the window of a new compressor in bytes.
const firstWindow = 1 << 18

// newCompressor returns a compressor. most is the window of the level, a power of 2.
func newCompressor(level zstd.EncoderLevel, most int) *compressor {
	c := &compressor{level: level, window: firstWindow, most: most}
	c.create()
	return c
}

func (c *compressor) create() {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(c.level), zstd.WithWindowSize(c.window),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true))
	if err != nil {
		panic(err) // the options are valid
	}
	c.encoder = z
}

// reserve makes room for pages of a size.
func (c *compressor) reserve(size int) {
	if size <= c.window || c.window == c.most {
		return
	}
	for c.window < min(size, c.most) {
		c.window *= 2
	}
	c.encoder = nil
}

// release frees the window if it is large, and tables with it.
func (c *compressor) release() {
	if c.window > keptBuffer {
		c.free()
	}
}

// free frees window and tables.
func (c *compressor) free() {
	c.window, c.encoder = firstWindow, nil
}

// encode appends the compressed page to dst.
func (c *compressor) encode(page, dst []byte) []byte {
	c.reserve(len(page))
	if c.encoder == nil {
		c.create()
	}
	return c.encoder.EncodeAll(page, dst)
}

// Reserve makes room for pages of a size in bytes at once, which takes less memory than growing page by page.
func (e *Encoder) Reserve(size int) {
	e.fast.reserve(size)
	e.better.reserve(size)
}

// keptBuffer is the largest capacity, in bytes, of buffers and windows that release keeps.
const keptBuffer = 3 << 20

// release frees buffers that are large.
func (e *Encoder) release(buffers ...*[]byte) {
	for _, b := range buffers {
		if cap(*b) > keptBuffer {
			*b = nil
		}
	}
}

// Release frees large buffers and windows between chunks.
func (e *Encoder) Release() {
	e.release(&e.page, &e.other, &e.body, &e.packed, &e.repacked, &e.best)
	if cap(e.numbers) > keptBuffer/2 {
		e.numbers = nil
	}
	e.fast.release()
	e.better.release()
}

// Indices returns a slice for n dictionary indices, the argument of Strings. It is valid until the chunk is encoded.
func (e *Encoder) Indices(n int) []uint16 {
	e.numbers = slices.Grow(e.numbers[:0], n)[:n]
	return e.numbers
}

// Reset begins a chunk. It clears Rep and Def.
func (e *Encoder) Reset() {
	e.Rep.Reset()
	e.Def.Reset()
}

// Zeros encodes a column of n integers that are all zero.
func (e *Encoder) Zeros(typ Type, n int) EncodedChunk {
	c := e.begin(typ, n)
	e.dictionaryPage(&c, appendInts(e.body[:0], []int64{0}, typ), 1)
	e.page = appendRun(append(e.page[:0], 0), 0, 0, n)
	e.dataPage(&c, page{enc: encRLEDictionary, data: e.page})
	c.Meta.Min, c.Meta.Max = bounds(typ, 0, 0)
	return c
}

// Integers encodes the integers of the entries that are present according to Rep and Def. If inRuns is set, it writes
// dictionary indices as runs of equal indices, which suits columns that rarely change.
func (e *Encoder) Integers(typ Type, values []int64, entries int, inRuns bool) EncodedChunk {
	return encodeIntegers(e, typ, values, entries, inRuns)
}

// Integers64 is Integers for the type [Int64].
func (e *Encoder) Integers64(values []int64, entries int, inRuns bool) EncodedChunk {
	return encodeIntegers(e, Int64, values, entries, inRuns)
}

// Integers32 is Integers for the type [Int32].
func (e *Encoder) Integers32(values []int32, entries int, inRuns bool) EncodedChunk {
	return encodeIntegers(e, Int32, values, entries, inRuns)
}

func encodeIntegers[T integer](e *Encoder, typ Type, values []T, entries int, inRuns bool) EncodedChunk {
	c := e.begin(typ, entries)
	if len(values) == 0 {
		e.page = e.appendLevels(e.page[:0])
		e.dataPage(&c, page{enc: encPlain, data: e.page})
		return c
	}
	if !number(&e.dictionary, values, e.Indices(len(values))) {
		c.Meta.Min, c.Meta.Max = bounds(typ, int64(slices.Min(values)), int64(slices.Max(values)))
		if e.Frugal {
			e.dictionary, e.numbers = dictionary{}, nil
		}
		e.dataPage(&c, smallest(e, plain(e, &e.page, values, typ), values, typ, 0))
		return c
	}
	distinct := len(e.dictionary.values)
	c.Meta.Min, c.Meta.Max = bounds(typ, slices.Min(e.dictionary.values), slices.Max(e.dictionary.values))
	e.page = e.appendLevels(e.page[:0])
	switch {
	case distinct == 1:
		e.page = appendRun(append(e.page, 0), 0, 0, len(values))
	case inRuns:
		e.page = appendRuns(e.page, e.numbers, distinct)
	case distinct <= 256:
		e.page = appendNumbers(e.page, e.numbers, distinct)
	default:
		e.dictionary.spread(e.numbers)
		e.page = appendNumbers(e.page, e.numbers, distinct)
		entries := len(e.dictionary.values)
		e.body = appendInts(e.body[:0], e.dictionary.values, typ)
		if e.Frugal {
			e.dictionary, e.numbers = dictionary{}, nil
		}
		e.packed = e.fast.encode(e.body, e.packed[:0])
		best := smallest(e, page{enc: encRLEDictionary, data: e.page}, values, typ, len(e.packed))
		if best.enc == encRLEDictionary {
			e.dictionaryPage(&c, e.body, entries)
		}
		e.dataPage(&c, best)
		return c
	}
	e.dictionaryPage(&c, appendInts(e.body[:0], e.dictionary.values, typ), distinct)
	e.dataPage(&c, page{enc: encRLEDictionary, data: e.page})
	return c
}

// page is a data page.
type page struct {
	enc  encoding
	data []byte
	fast []byte // compressed at the fast level; nil: not yet
}

// plain returns the values in PLAIN encoding, in the buffer or, if possible, as the memory of the values.
func plain[T integer](e *Encoder, buffer *[]byte, values []T, typ Type) page {
	if typ.Width() == int(unsafe.Sizeof(T(0))) && e.Rep.n == 0 && e.Def.n == 0 {
		if b := bytesOf(values); b != nil {
			return page{enc: encPlain, data: b}
		}
	}
	*buffer = appendInts(e.appendLevels((*buffer)[:0]), values, typ)
	return page{enc: encPlain, data: *buffer}
}

// Doubles encodes the numbers of the entries that are present according to Def.
func (e *Encoder) Doubles(values []float64, entries int) EncodedChunk {
	c := e.begin(Double, entries)
	e.page = e.appendLevels(e.page[:0])
	for _, v := range values {
		e.page = binary.LittleEndian.AppendUint64(e.page, math.Float64bits(v))
	}
	e.dataPage(&c, page{enc: encPlain, data: e.page})
	return c
}

// Booleans encodes the booleans, 0 or 1, of the entries that are present according to Def.
func (e *Encoder) Booleans(values []int64, entries int) EncodedChunk {
	c := e.begin(Boolean, entries)
	e.page = e.appendLevels(e.page[:0])
	for i, v := range values {
		if i%8 == 0 {
			e.page = append(e.page, 0)
		}
		e.page[len(e.page)-1] |= byte(v&1) << (i % 8)
	}
	e.dataPage(&c, page{enc: encPlain, data: e.page})
	return c
}

// smallest compares a page, which costs extra bytes elsewhere and is not in e.other, with other encodings of it, and
// returns the smallest one. It is valid until the next use of the encoder or the values.
func smallest[T integer](e *Encoder, p page, values []T, typ Type, extra int) page {
	large := e.Frugal && int(unsafe.Sizeof(T(0)))*len(values) > keptBuffer
	if large {
		e.better.free() // compress creates it again
	}
	e.best = e.fast.encode(p.data, e.best[:0])
	p.fast = e.best
	for _, try := range []encoding{encDeltaBinary, encPlain} {
		if try == p.enc {
			continue
		}
		var other page
		if try == encPlain {
			other = plain(e, &e.other, values, typ)
		} else {
			e.other = appendDelta(e.appendLevels(e.other[:0]), values, typ)
			other = page{enc: try, data: e.other}
		}
		e.packed = e.fast.encode(other.data, e.packed[:0])
		if len(e.packed) < len(p.fast)+extra {
			p, extra = other, 0
			e.page, e.other = e.other, e.page // the next candidate is another buffer
			e.best, e.packed = e.packed, e.best
			p.fast = e.best
		}
	}
	if e.Frugal {
		e.fast.release()
		e.release(&e.other)
	}
	if large {
		runtime.GC() // the better compressor takes as much as the candidates
	}
	return p
}

// appendLevels appends the repetition and definition levels, if the column has them.
func (e *Encoder) appendLevels(page []byte) []byte {
	if e.Rep.n > 0 {
		page = e.Rep.appendLevels(page)
	}
	if e.Def.n > 0 {
		page = e.Def.appendLevels(page)
	}
	return page
}

// bounds returns the smallest and the largest value in the form of statistics (parquet.thrift, Statistics).
func bounds(typ Type, smallest, largest int64) (low, high []byte) {
	return appendInts(nil, []int64{smallest}, typ), appendInts(nil, []int64{largest}, typ)
}

// Strings encodes the strings of the entries that are present according to Def. numbers are indices of distinct,
// which has 1 to MaxDictionary strings.
func (e *Encoder) Strings(distinct []string, numbers []uint16, entries int) EncodedChunk {
	e.page = e.appendLevels(e.page[:0])
	if len(distinct) == 1 {
		e.page = appendRun(append(e.page, 0), 0, 0, len(numbers))
	} else {
		e.page = appendNumbers(e.page, numbers, len(distinct))
	}
	body := e.body[:0]
	for _, s := range distinct {
		body = appendString(body, s)
	}
	c := e.begin(ByteArray, entries)
	e.dictionaryPage(&c, body, len(distinct))
	e.dataPage(&c, page{enc: encRLEDictionary, data: e.page})
	return c
}

// DictionaryTexts encodes the strings of the entries that are present according to Def, as [Encoder.Strings] does. At
// most MaxDictionary of them may be distinct.
func (e *Encoder) DictionaryTexts(texts []string, entries int) EncodedChunk {
	numberOf := make(map[string]uint16)
	var distinct []string
	numbers := e.Indices(len(texts))
	for i, s := range texts {
		number, found := numberOf[s]
		if !found {
			number = uint16(len(distinct))
			numberOf[s] = number
			distinct = append(distinct, s)
		}
		numbers[i] = number
	}
	if len(distinct) == 0 {
		distinct = []string{""}
	}
	return e.Strings(distinct, numbers, entries)
}

func appendString(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// MaxTextPage is the number of string bytes after which a new page begins.
const MaxTextPage = 1 << 22

// textChunk is an incomplete chunk of strings.
type textChunk struct {
	chunk EncodedChunk
	ones  int // strings in complete pages
}

// BeginTexts begins a chunk of n entries whose strings follow one by one, without a dictionary and in pages of about
// MaxTextPage bytes. The caller appends a 0 to Def for each NULL between the strings.
func (e *Encoder) BeginTexts(n int) {
	e.Reset()
	e.texts = textChunk{chunk: e.begin(ByteArray, n)}
	e.body = e.body[:0]
}

// AppendText appends a string of at most 1 GiB.
func (e *Encoder) AppendText(s string) {
	if len(e.body) > 0 && len(e.body)+len(s) > MaxTextPage {
		e.endTextPage()
	}
	e.Def.Append(1)
	e.body = appendString(e.body, s)
}

func (e *Encoder) endTextPage() {
	e.texts.ones += e.Def.Ones
	e.page = append(e.Def.appendLevels(e.page[:0]), e.body...)
	e.dataPageOf(&e.texts.chunk, page{enc: encPlain, data: e.page}, e.Def.n)
	e.body = e.body[:0]
	e.Def.Reset()
}

// EndTexts completes the chunk and returns it with its number of strings.
func (e *Encoder) EndTexts() (c EncodedChunk, present int) {
	if e.Def.n > 0 {
		e.endTextPage()
	}
	c, present = e.texts.chunk, e.texts.ones
	e.texts = textChunk{}
	return c, present
}

// begin starts the pages of a chunk of n entries.
func (e *Encoder) begin(typ Type, n int) EncodedChunk {
	return EncodedChunk{Meta: Chunk{Type: typ, Codec: Zstd, Values: int64(n), encodings: []encoding{encRLE}}}
}

// dictionaryPage appends a dictionary page of n values in PLAIN encoding.
func (e *Encoder) dictionaryPage(c *EncodedChunk, body []byte, n int) {
	e.body = body
	e.appendPage(c, page{data: body}, pageDictionary, func(w *thriftWriter) {
		w.begin(7)
		w.int32(1, int32(n))
		w.int32(2, int32(encPlain))
		w.end()
	})
	c.Meta.FirstPage = int64(len(c.Data))
	c.Meta.encodings = append(c.Meta.encodings, encPlain)
}

// dataPage appends a data page with all entries of the chunk.
func (e *Encoder) dataPage(c *EncodedChunk, p page) {
	e.dataPageOf(c, p, int(c.Meta.Values))
}

// dataPageOf appends a data page with n entries.
func (e *Encoder) dataPageOf(c *EncodedChunk, p page, n int) {
	e.appendPage(c, p, pageData, func(w *thriftWriter) {
		w.begin(5)
		w.int32(1, int32(n))
		w.int32(2, int32(p.enc))
		w.int32(3, int32(encRLE))
		w.int32(4, int32(encRLE))
		w.end()
	})
	if !slices.Contains(c.Meta.encodings, p.enc) {
		c.Meta.encodings = append(c.Meta.encodings, p.enc)
	}
}

func (e *Encoder) appendPage(c *EncodedChunk, p page, typ pageType, header func(w *thriftWriter)) {
	compressed := e.compress(p)
	w := thriftWriter{buf: c.Data}
	w.int32(1, int32(typ))
	w.int32(2, int32(len(p.data)))
	w.int32(3, int32(len(compressed)))
	w.int32(4, int32(crc32.ChecksumIEEE(compressed)))
	header(&w)
	w.end()
	c.Meta.Size += int64(len(w.buf) - len(c.Data) + len(p.data))
	c.Data = append(w.buf, compressed...)
	c.Meta.CompressedSize = int64(len(c.Data))
}

// compress compresses a page. Data with little repetition becomes smaller at the fast level, which ignores accidental
// matches.
func (e *Encoder) compress(p page) []byte {
	e.packed = e.better.encode(p.data, slices.Grow(e.packed[:0], len(p.fast)+len(p.fast)/16))
	if e.Frugal {
		e.better.release()
	}
	if len(e.packed) < len(p.data)/32 {
		return e.packed
	}
	if p.fast == nil {
		e.repacked = e.fast.encode(p.data, e.repacked[:0])
		p.fast = e.repacked
		if e.Frugal {
			e.fast.release()
		}
	}
	if len(p.fast) < len(e.packed) {
		return p.fast
	}
	return e.packed
}
