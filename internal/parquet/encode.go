package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

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
	window, most int // bytes
	encoder      *zstd.Encoder
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
	c.create()
}

// release frees the window if it is large.
func (c *compressor) release() {
	if c.window > keptBuffer {
		c.window = firstWindow
		c.create()
	}
}

// encode appends the compressed page to dst.
func (c *compressor) encode(page, dst []byte) []byte {
	c.reserve(len(page))
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
	e.release(&e.page, &e.other, &e.body, &e.packed, &e.repacked)
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
	e.dataPage(&c, encRLEDictionary)
	c.Meta.Min, c.Meta.Max = bounds(typ, 0, 0)
	return c
}

// Integers encodes the integers of the entries that are present according to Rep and Def. If inRuns is set, it writes
// dictionary indices as runs of equal indices, which suits columns that rarely change.
func (e *Encoder) Integers(typ Type, values []int64, entries int, inRuns bool) EncodedChunk {
	c := e.begin(typ, entries)
	e.page = e.appendLevels(e.page[:0])
	if len(values) == 0 {
		e.dataPage(&c, encPlain)
		return c
	}
	if !e.dictionary.number(values, e.Indices(len(values))) {
		c.Meta.Min, c.Meta.Max = bounds(typ, slices.Min(values), slices.Max(values))
		e.page = appendInts(e.page, values, typ)
		e.dataPage(&c, e.smallest(encPlain, values, typ, 0))
		return c
	}
	distinct := len(e.dictionary.values)
	c.Meta.Min, c.Meta.Max = bounds(typ, slices.Min(e.dictionary.values), slices.Max(e.dictionary.values))
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
		e.body = appendInts(e.body[:0], e.dictionary.values, typ)
		e.packed = e.fast.encode(e.body, e.packed[:0])
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

// Doubles encodes the numbers of the entries that are present according to Def.
func (e *Encoder) Doubles(values []float64, entries int) EncodedChunk {
	c := e.begin(Double, entries)
	e.page = e.appendLevels(e.page[:0])
	for _, v := range values {
		e.page = binary.LittleEndian.AppendUint64(e.page, math.Float64bits(v))
	}
	e.dataPage(&c, encPlain)
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
	e.dataPage(&c, encPlain)
	return c
}

// smallest compares the page in e.page, which has the given encoding and costs extra bytes elsewhere, with other
// encodings of it. It leaves the smallest page in e.page and returns its encoding.
func (e *Encoder) smallest(enc encoding, values []int64, typ Type, extra int) encoding {
	e.packed = e.fast.encode(e.page, e.packed[:0])
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
		e.packed = e.fast.encode(e.other, e.packed[:0])
		if len(e.packed) < size {
			enc, size = try, len(e.packed)
			e.page, e.other = e.other, e.page
		}
	}
	if e.Frugal {
		e.fast.release()
		e.release(&e.other)
	}
	return enc
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
	e.dataPage(&c, encRLEDictionary)
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
	e.dataPageOf(&e.texts.chunk, encPlain, e.Def.n)
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
	e.appendPage(c, body, pageDictionary, func(w *thriftWriter) {
		w.begin(7)
		w.int32(1, int32(n))
		w.int32(2, int32(encPlain))
		w.end()
	})
	c.Meta.FirstPage = int64(len(c.Data))
	c.Meta.encodings = append(c.Meta.encodings, encPlain)
}

// dataPage appends e.page as a data page with all entries of the chunk.
func (e *Encoder) dataPage(c *EncodedChunk, enc encoding) {
	e.dataPageOf(c, enc, int(c.Meta.Values))
}

// dataPageOf appends e.page as a data page with n entries.
func (e *Encoder) dataPageOf(c *EncodedChunk, enc encoding, n int) {
	e.appendPage(c, e.page, pageData, func(w *thriftWriter) {
		w.begin(5)
		w.int32(1, int32(n))
		w.int32(2, int32(enc))
		w.int32(3, int32(encRLE))
		w.int32(4, int32(encRLE))
		w.end()
	})
	if !slices.Contains(c.Meta.encodings, enc) {
		c.Meta.encodings = append(c.Meta.encodings, enc)
	}
}

func (e *Encoder) appendPage(c *EncodedChunk, page []byte, typ pageType, header func(w *thriftWriter)) {
	compressed := e.compress(page)
	w := thriftWriter{buf: c.Data}
	w.int32(1, int32(typ))
	w.int32(2, int32(len(page)))
	w.int32(3, int32(len(compressed)))
	w.int32(4, int32(crc32.ChecksumIEEE(compressed)))
	header(&w)
	w.end()
	c.Meta.Size += int64(len(w.buf) - len(c.Data) + len(page))
	c.Data = append(w.buf, compressed...)
	c.Meta.CompressedSize = int64(len(c.Data))
}

// compress compresses a page. Data with little repetition becomes smaller at the fast level, which ignores accidental
// matches.
func (e *Encoder) compress(page []byte) []byte {
	e.packed = e.better.encode(page, e.packed[:0])
	if e.Frugal {
		e.better.release()
	}
	if len(e.packed) < len(page)/32 {
		return e.packed
	}
	e.repacked = e.fast.encode(page, e.repacked[:0])
	if e.Frugal {
		e.fast.release()
	}
	if len(e.repacked) < len(e.packed) {
		return e.repacked
	}
	return e.packed
}
