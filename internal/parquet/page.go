package parquet

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

// Page is a decompressed data page: levels and values of N entries (README.md, "Data Pages").
type Page struct {
	N        int
	rep, def levels
	encoding encoding
	values   []byte
}

// HasDictionary reports whether the values are indices of values in the dictionary of the chunk.
func (p *Page) HasDictionary() bool {
	return p.encoding.hasDictionary()
}

func (e encoding) hasDictionary() bool {
	return e == encRLEDictionary || e == encPlainDictionary
}

// AllNull reports whether the encoding shows, without decoding, that all entries are NULL.
func (p *Page) AllNull(l Leaf) bool {
	def, same := p.def.constant(p.N)
	return same && int(def) < l.MaxDef
}

// levels are the encoded levels of a page.
type levels struct {
	width int    // bits of a level; 0: all levels are 0, and there are no bytes
	bytes []byte // in the hybrid encoding
}

// Decoder decodes chunks, one at a time. It reuses its buffers.
type Decoder struct {
	zstd     *zstd.Decoder
	raw      []byte // the stored chunk
	buffer   []byte // the current page
	page     Page
	rep, def []uint8
	ints     []int64
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return &Decoder{zstd: z}
}

// Buffer returns a buffer of n bytes for a chunk, valid until the next call.
func (d *Decoder) Buffer(n int64) []byte {
	d.raw = Resize(d.raw, int(n))
	return d.raw
}

// PageReader receives the pages of a chunk. Its arguments are valid during the call only.
type PageReader interface {
	// Dictionary receives the decompressed dictionary page with n values. It is called first, if there is such a
	// page.
	Dictionary(body []byte, n int) error
	// Page receives a data page.
	Page(p *Page) error
}

// Pages passes the pages of a chunk to r; raw is the stored chunk. Its errors are of type [*Error].
func (d *Decoder) Pages(c *Chunk, raw []byte, l Leaf, r PageReader) error {
	return eachPage(c, raw, func(h pageHeader, body []byte) (err error) {
		switch h.typ {
		case pageDictionary:
			if body, err = d.dictionaryPage(h, body, c); err != nil {
				return err
			}
			return r.Dictionary(body, int(h.values))
		case pageData, pageDataV2:
			if d.page, err = d.dataPage(h, body, c, l); err == nil {
				err = r.Page(&d.page)
			}
		}
		return err
	})
}

// Dictionary passes only the dictionary page of a chunk to read; it decompresses no data page. It reports whether all
// data pages use the dictionary. It checks headers and checksums of all pages, which proves that the chunk has pages
// for all its values. Its errors are of type [*Error].
func (d *Decoder) Dictionary(c *Chunk, raw []byte, read func(body []byte, n int) error) (all bool, err error) {
	all = true
	err = eachPage(c, raw, func(h pageHeader, body []byte) error {
		if h.typ != pageDictionary {
			all = all && h.encoding.hasDictionary()
			return nil
		}
		body, err := d.dictionaryPage(h, body, c)
		if err != nil {
			return err
		}
		return read(body, int(h.values))
	})
	return all, err
}

// eachPage calls do with the stored pages of a chunk, which must hold its values and nothing else.
func eachPage(c *Chunk, raw []byte, do func(h pageHeader, body []byte) error) error {
	rest, seen := raw, int64(0)
	for seen < c.Values || len(rest) > 0 {
		offset := c.Start() + int64(len(raw)-len(rest))
		h, n, err := readPageHeader(rest)
		if err != nil {
			return &Error{offset, "a page header", err.Error()}
		}
		if h.typ == pageDictionary && len(rest) < len(raw) {
			return &Error{offset, "a dictionary page before all others of the chunk", "one after another page"}
		}
		rest = rest[n:]
		if h.compressed < 0 || int(h.compressed) > len(rest) || h.size < 0 {
			return &Error{offset, fmt.Sprintf("a page in the %d bytes that are left of the chunk", len(rest)),
				fmt.Sprintf("one of %d", h.compressed)}
		}
		body := rest[:h.compressed]
		rest = rest[h.compressed:]
		if h.hasCRC && crc32.ChecksumIEEE(body) != h.crc {
			return &Error{offset, fmt.Sprintf("a page with checksum %08x", h.crc),
				fmt.Sprintf("%08x", crc32.ChecksumIEEE(body))}
		}
		if h.typ == pageData || h.typ == pageDataV2 {
			if h.values < 0 || int64(h.values) > c.Values-seen {
				return &Error{offset, fmt.Sprintf("a page of %d values at most", c.Values-seen),
					fmt.Sprintf("%d", h.values)}
			}
			seen += int64(h.values)
		}
		if err := do(h, body); err != nil {
			return &Error{offset, "a valid page", err.Error()}
		}
	}
	return nil
}

// dictionaryPage decompresses a dictionary page of h.values values.
func (d *Decoder) dictionaryPage(h pageHeader, body []byte, c *Chunk) ([]byte, error) {
	if h.encoding != encPlain && h.encoding != encPlainDictionary {
		return nil, fmt.Errorf("a dictionary with encoding %d", h.encoding)
	}
	body, err := d.decompress(body, int(h.size), c.Codec)
	if err != nil {
		return nil, err
	}
	if h.values < 0 || int(h.values) > len(body) {
		return nil, fmt.Errorf("a dictionary of %d values in %d bytes", h.values, len(body))
	}
	return body, nil
}

// dataPage decompresses a data page and splits it into levels and values.
func (d *Decoder) dataPage(h pageHeader, body []byte, c *Chunk, l Leaf) (Page, error) {
	p := Page{N: int(h.values), encoding: h.encoding}
	p.rep.width, p.def.width = levelWidth(l.MaxRep), levelWidth(l.MaxDef)
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
		p.values, err = d.decompress(p.values, int(h.size)-rep-def, c.Codec)
		return p, err
	}
	body, err := d.decompress(body, int(h.size), c.Codec)
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

// Present returns, for each entry of a page, 1 if its value is present and 0 if it is NULL. The result is valid until
// the next call.
func (d *Decoder) Present(p *Page, l Leaf) ([]uint8, error) {
	d.def = Resize(d.def, p.N)
	if err := p.def.expand(d.def); err != nil {
		return nil, err
	}
	for i, def := range d.def {
		d.def[i] = 0
		if int(def) == l.MaxDef {
			d.def[i] = 1
		}
	}
	return d.def, nil
}

var errShortPage = errors.New("its values end early")

// levelWidth returns the number of bits of levels from 0 to highest.
func levelWidth(highest int) int {
	width := 0
	for highest>>width > 0 {
		width++
	}
	return width
}

// expansion is the maximum ratio of the decompressed to the compressed size of a page, by codec.
var expansion = map[Codec]int64{
	Snappy: 32, Gzip: 1100, Brotli: 1 << 20, Zstd: 1 << 16, LZ4Raw: 256,
}

// decompress decompresses a body to size bytes.
func (d *Decoder) decompress(body []byte, size int, codec Codec) ([]byte, error) {
	if codec == Uncompressed {
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
	d.buffer = Resize(d.buffer, size+zstdRoom)[:size]
	n, err := d.decompressInto(d.buffer, body, codec)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if n != size {
		return nil, fmt.Errorf("decompressed to %d bytes, expected %d", n, size)
	}
	return d.buffer, nil
}

// zstdRoom is the spare capacity, in bytes, that lets the zstd decoder copy long runs at once in its last block.
const zstdRoom = 128<<10 + 16

// decompressInto decompresses body into dst and returns the decompressed length. The capacity of dst must exceed its
// length by zstdRoom.
func (d *Decoder) decompressInto(dst, body []byte, codec Codec) (int, error) {
	switch codec {
	case Zstd:
		out, err := d.zstd.DecodeAll(body, dst[:0:len(dst)+zstdRoom])
		return len(out), err
	case Snappy:
		n, err := snappy.DecodedLen(body)
		if err != nil || n != len(dst) {
			return n, err
		}
		_, err = snappy.Decode(dst, body)
		return n, err
	case Gzip:
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		return readAll(r, dst)
	case Brotli:
		return readAll(brotli.NewReader(bytes.NewReader(body)), dst)
	}
	return lz4.UncompressBlock(body, dst)
}

// readAll reads len(dst) bytes from r. It returns an error if r has more or fewer bytes.
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
