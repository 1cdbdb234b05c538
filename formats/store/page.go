package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codecs, as numbered in parquet.thrift.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecBrotli = 4
	codecZstd   = 6
	codecLZ4Raw = 7
)

// page is a data page, decompressed: levels and values of n entries.
type page struct {
	n        int
	rep, def levels
	encoding encoding
	values   []byte
}

// hasNumbers reports whether the values are numbers of values in the dictionary.
func (p *page) hasNumbers() bool {
	return p.encoding == encRLEDictionary || p.encoding == encPlainDictionary
}

// levels are the encoded levels of a page.
type levels struct {
	width int    // bits of a level; 0: all levels are 0, and there are no bytes
	bytes []byte // in the hybrid encoding
}

// decoder reads chunks, one at a time, with buffers that it keeps.
type decoder struct {
	zstd     *zstd.Decoder
	raw      []byte // the chunk as stored
	buffer   []byte // the page at hand
	page     page
	rep, def []uint8
	ints     []int64
	ranks    rankReader
}

func newDecoder() *decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return &decoder{zstd: z}
}

func (f *File) decoder() *decoder {
	if d, ok := f.decoders.Get().(*decoder); ok {
		return d
	}
	return newDecoder()
}

// pageReader takes the pages of a chunk. What it gets is valid during the call only.
type pageReader interface {
	// dictionary takes the body of the dictionary page, if there is one, which comes first and has n values.
	dictionary(body []byte, n int) error
	// page takes a data page.
	page(p *page) error
}

// pages reads the pages of a chunk.
func (f *File) pages(d *decoder, c *chunkMeta, l leaf, r pageReader) error {
	return f.eachPage(d, c, func(h pageHeader, body []byte) (err error) {
		switch h.typ {
		case pageDictionary:
			if body, err = d.dictionaryPage(h, body, c); err != nil {
				return err
			}
			return r.dictionary(body, int(h.values))
		case pageData, pageDataV2:
			if d.page, err = d.dataPage(h, body, c, l); err == nil {
				err = r.page(&d.page)
			}
		}
		return err
	})
}

// eachPage calls do with the pages of a chunk, as they are stored, up to the one that completes its values.
func (f *File) eachPage(d *decoder, c *chunkMeta, do func(h pageHeader, body []byte) error) error {
	start := c.start()
	d.raw = resize(d.raw, int(c.compressedSize))
	if err := f.read(d.raw, start); err != nil {
		return err
	}
	rest, seen := d.raw, int64(0)
	for seen < c.values {
		offset := start + int64(len(d.raw)-len(rest))
		h, n, err := readPageHeader(rest)
		if err != nil {
			return f.syntaxError(offset, "a page header", err.Error())
		}
		rest = rest[n:]
		if h.compressed < 0 || int(h.compressed) > len(rest) || h.size < 0 {
			return f.syntaxError(offset, fmt.Sprintf("a page in the %d bytes that are left of the chunk", len(rest)),
				fmt.Sprintf("one of %d", h.compressed))
		}
		body := rest[:h.compressed]
		rest = rest[h.compressed:]
		if h.hasCRC && crc32.ChecksumIEEE(body) != h.crc {
			return f.syntaxError(offset, fmt.Sprintf("a page with checksum %08x", h.crc),
				fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)))
		}
		if h.typ == pageData || h.typ == pageDataV2 {
			if h.values < 0 || int64(h.values) > c.values-seen {
				return f.syntaxError(offset, fmt.Sprintf("a page of %d values at most", c.values-seen),
					fmt.Sprintf("%d", h.values))
			}
			seen += int64(h.values)
		}
		if err := do(h, body); err != nil {
			return f.syntaxError(offset, "a valid page", err.Error())
		}
	}
	return nil
}

// dictionaryPage decompresses a dictionary page of h.values values.
func (d *decoder) dictionaryPage(h pageHeader, body []byte, c *chunkMeta) ([]byte, error) {
	if h.encoding != encPlain && h.encoding != encPlainDictionary {
		return nil, fmt.Errorf("a dictionary with encoding %d", h.encoding)
	}
	body, err := d.decompress(body, int(h.size), c.codec)
	if err != nil {
		return nil, err
	}
	if h.values < 0 || int(h.values) > len(body) {
		return nil, fmt.Errorf("a dictionary of %d values in %d bytes", h.values, len(body))
	}
	return body, nil
}

// dataPage decompresses a data page and finds its parts.
func (d *decoder) dataPage(h pageHeader, body []byte, c *chunkMeta, l leaf) (page, error) {
	p := page{n: int(h.values), encoding: h.encoding}
	p.rep.width, p.def.width = levelWidth(l.maxRep), levelWidth(l.maxDef)
	if h.typ == pageDataV2 {
		rep, def := int(h.repBytes), int(h.defBytes)
		if rep < 0 || def < 0 || rep > len(body) || def > len(body)-rep || rep+def > int(h.size) {
			return p, fmt.Errorf("levels of %d and %d bytes in a page of %d", rep, def, len(body))
		}
		p.rep.bytes, p.def.bytes, p.values = body[:rep], body[rep:rep+def], body[rep+def:]
		if h.uncompressed {
			return p, nil
		}
		var err error
		p.values, err = d.decompress(p.values, int(h.size)-rep-def, c.codec)
		return p, err
	}
	body, err := d.decompress(body, int(h.size), c.codec)
	if err != nil {
		return p, err
	}
	for _, part := range []struct {
		levels   *levels
		encoding encoding
	}{{&p.rep, h.repEncoding}, {&p.def, h.defEncoding}} {
		if part.levels.width == 0 {
			continue
		}
		if part.encoding != encRLE {
			return p, fmt.Errorf("levels with encoding %d", part.encoding)
		}
		if len(body) < 4 {
			return p, errShortPage
		}
		n := binary.LittleEndian.Uint32(body)
		if uint64(n) > uint64(len(body)-4) {
			return p, errShortPage
		}
		part.levels.bytes, body = body[4:4+n], body[4+n:]
	}
	p.values = body
	return p, nil
}

// definitions returns for each entry of a page whether its value is there: 1, or NULL: 0.
func (d *decoder) definitions(p *page, l leaf) ([]uint8, error) {
	d.def = resize(d.def, p.n)
	if err := p.def.expand(d.def); err != nil {
		return nil, err
	}
	for i, def := range d.def {
		d.def[i] = 0
		if int(def) == l.maxDef {
			d.def[i] = 1
		}
	}
	return d.def, nil
}

var errShortPage = errors.New("its values end early")

// levelWidth returns the bits of levels up to the given one.
func levelWidth(highest int) int {
	width := 0
	for highest>>width > 0 {
		width++
	}
	return width
}

// expansion bounds how much larger than its compressed form a page can be, by codec.
var expansion = map[int32]int64{
	codecSnappy: 32, codecGzip: 1100, codecBrotli: 1 << 20, codecZstd: 1 << 16, codecLZ4Raw: 256,
}

// decompress returns the size bytes that body stands for.
func (d *decoder) decompress(body []byte, size int, codec int32) ([]byte, error) {
	if codec == codecNone {
		if len(body) != size {
			return nil, fmt.Errorf("%d bytes, expected %d", len(body), size)
		}
		return body, nil
	}
	ratio, ok := expansion[codec]
	if !ok {
		return nil, fmt.Errorf("unknown compression codec %d", codec)
	}
	if size == 0 && len(body) == 0 {
		return nil, nil
	}
	if int64(size) > (int64(len(body))+16)*ratio {
		return nil, fmt.Errorf("%d bytes said to be %d compressed", size, len(body))
	}
	d.buffer = resize(d.buffer, size+zstdRoom)[:size]
	n, err := d.decompressInto(d.buffer, body, codec)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if n != size {
		return nil, fmt.Errorf("decompressed to %d bytes, expected %d", n, size)
	}
	return d.buffer, nil
}

// zstdRoom is how much more room than it needs the zstd decoder must have to copy long runs at once in its last block.
const zstdRoom = 128<<10 + 16

// decompressInto decompresses body into dst, of which the capacity is zstdRoom more than the length, and returns how
// long it is.
func (d *decoder) decompressInto(dst, body []byte, codec int32) (int, error) {
	switch codec {
	case codecZstd:
		out, err := d.zstd.DecodeAll(body, dst[:0:len(dst)+zstdRoom])
		return len(out), err
	case codecSnappy:
		n, err := snappy.DecodedLen(body)
		if err != nil || n != len(dst) {
			return n, err
		}
		_, err = snappy.Decode(dst, body)
		return n, err
	case codecGzip:
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		return readAll(r, dst)
	case codecBrotli:
		return readAll(brotli.NewReader(bytes.NewReader(body)), dst)
	}
	return lz4.UncompressBlock(body, dst)
}

// readAll fills dst from r, which must end there.
func readAll(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	var more [1]byte
	extra, err := io.ReadFull(r, more[:])
	if err == io.EOF {
		err = nil
	}
	return n + extra, err
}
