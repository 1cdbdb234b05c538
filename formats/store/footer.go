package store

import (
	"errors"
	"fmt"
	"math"
)

// The footer of a Parquet file, as specified in parquet.thrift
// (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift); numbers of fields are its.

const magic = "PAR1"

// keyValue is an entry of the metadata of a file.
type keyValue struct{ key, value string }

// appendFooter appends the footer of a file of this package's schema.
func appendFooter(dst []byte, groups []groupMeta, keys []keyValue) []byte {
	w := &thriftWriter{buf: dst}
	w.int32(1, 2)
	schema := writtenSchema()
	w.list(2, thriftStruct, len(schema))
	for _, e := range schema {
		appendElement(w, e)
	}
	rows := int64(0)
	for i := range groups {
		rows += groups[i].rows
	}
	w.int64(3, rows)
	w.list(4, thriftStruct, len(groups))
	for i := range groups {
		appendGroup(w, &groups[i])
	}
	w.list(5, thriftStruct, len(keys))
	for _, k := range keys {
		w.beginItem()
		w.string(1, k.key)
		w.string(2, k.value)
		w.end()
	}
	w.string(6, "tracedag version "+Version)
	w.list(7, thriftStruct, numColumns) // columns are ordered as their types define: min and max hold
	for range numColumns {
		w.beginItem()
		w.begin(1)
		w.end()
		w.end()
	}
	w.end()
	return w.buf
}

func appendElement(w *thriftWriter, e element) {
	w.beginItem()
	if e.children == 0 {
		w.int32(1, int32(e.typ))
	}
	w.int32(3, int32(e.repetition))
	w.string(4, e.name)
	if e.children > 0 {
		w.int32(5, e.children)
	}
	logical := int16(0)
	switch e.converted {
	case convertedUTF8:
		logical = 1
	case convertedList:
		logical = 3
	}
	if logical != 0 {
		w.int32(6, e.converted)
		w.begin(10)
		w.begin(logical)
		w.end()
		w.end()
	}
	w.end()
}

func appendGroup(w *thriftWriter, g *groupMeta) {
	w.beginItem()
	size, compressed := int64(0), int64(0)
	w.list(1, thriftStruct, len(g.chunks))
	for column := range g.chunks {
		c := &g.chunks[column]
		size += c.size
		compressed += c.compressedSize
		appendChunkMeta(w, c, path(column))
	}
	w.int64(2, size)
	w.int64(3, g.rows)
	w.list(4, thriftStruct, 1) // sorted by rank
	w.beginItem()
	w.int32(1, colRank)
	w.bool(2, false)
	w.bool(3, false)
	w.end()
	w.int64(6, compressed)
	w.end()
}

func appendChunkMeta(w *thriftWriter, c *chunkMeta, path []string) {
	w.beginItem()
	w.int64(2, 0)
	w.begin(3)
	w.int32(1, int32(c.typ))
	w.list(2, thriftI32, len(c.encodings))
	for _, e := range c.encodings {
		w.int32Item(int32(e))
	}
	w.list(3, thriftBinary, len(path))
	for _, p := range path {
		w.stringItem(p)
	}
	w.int32(4, c.codec)
	w.int64(5, c.values)
	w.int64(6, c.size)
	w.int64(7, c.compressedSize)
	w.int64(9, c.firstPage)
	if c.dictionaryOffset > 0 {
		w.int64(11, c.dictionaryOffset)
	}
	if c.min != nil || c.nulls >= 0 {
		w.begin(12)
		if c.nulls >= 0 {
			w.int64(3, c.nulls)
		}
		if c.min != nil {
			w.string(5, string(c.max))
			w.string(6, string(c.min))
		}
		w.end()
	}
	w.end()
	w.end()
}

// fileMeta is a footer.
type fileMeta struct {
	schema []element
	rows   int64
	groups []groupMeta // chunks by leaf of the schema
	keys   []keyValue
}

var errEncrypted = errors.New("the file is encrypted")

// readFooter reads a footer.
func readFooter(b []byte) (*fileMeta, error) {
	r := &thriftReader{buf: b}
	m := &fileMeta{}
	seen := 0 // a bit for each field
	r.fields(func(f thriftField) bool {
		if f.id >= 0 && f.id < 16 {
			seen |= 1 << f.id
		}
		switch f.id {
		case 2:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				m.schema = append(m.schema, readElement(r))
			}
		case 3:
			m.rows = r.int(f)
		case 4:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				m.groups = append(m.groups, readGroup(r))
			}
		case 5:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				m.keys = append(m.keys, readKeyValue(r))
			}
		case 8:
			r.fail(errEncrypted)
		default:
			return false
		}
		return true
	})
	if r.err != nil {
		return nil, r.err
	}
	if needed := 1<<1 | 1<<2 | 1<<3 | 1<<4; seen&needed != needed {
		return nil, errors.New("no version, schema, number of rows or row groups")
	}
	rows := int64(0)
	for _, g := range m.groups {
		if rows += g.rows; rows < 0 {
			break
		}
	}
	if rows != m.rows {
		return nil, fmt.Errorf("%d rows in the row groups and %d in all", rows, m.rows)
	}
	if left := len(r.buf) - r.pos; left > 0 {
		return nil, fmt.Errorf("%d bytes after its end", left)
	}
	return m, nil
}

func readElement(r *thriftReader) element {
	e := element{typ: -1, converted: convertedNone}
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			e.typ = physicalType(r.int32(f))
		case 3:
			e.repetition = repetition(r.int32(f))
		case 4:
			e.name = string(r.bytes(f))
		case 5:
			e.children = r.int32(f)
		case 6:
			e.converted = r.int32(f)
		case 10:
			if r.isStruct(f) {
				if c := readLogicalType(r); c != convertedNone {
					e.converted = c
				}
			}
		default:
			return false
		}
		return true
	})
	return e
}

// readLogicalType reads a LogicalType and returns the converted type that says the same; for those that are no plain
// integer, string or list, one that is none either.
func readLogicalType(r *thriftReader) int32 {
	converted := int32(convertedNone)
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1, 4, 12: // string, enum, JSON
			converted = convertedUTF8
		case 3:
			converted = convertedList
		case 10:
			converted = convertedInt8
			if !r.isStruct(f) {
				return true
			}
			width, signed := int64(0), true
			r.fields(func(f thriftField) bool {
				switch f.id {
				case 1:
					width = r.int(f)
				case 2:
					signed = r.bool(f)
				default:
					return false
				}
				return true
			})
			switch {
			case signed:
			case width == 64:
				converted = convertedUint64
			default:
				converted = convertedUint8
			}
			return true
		case 2, 5, 6, 7, 8: // map, decimal, date, time, timestamp
			converted = convertedOther
		}
		return false
	})
	return converted
}

func readKeyValue(r *thriftReader) keyValue {
	var k keyValue
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			k.key = string(r.bytes(f))
		case 2:
			k.value = string(r.bytes(f))
		default:
			return false
		}
		return true
	})
	return k
}

func readGroup(r *thriftReader) groupMeta {
	var g groupMeta
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				g.chunks = append(g.chunks, readChunk(r))
			}
		case 3:
			g.rows = r.int(f)
		default:
			return false
		}
		return true
	})
	return g
}

func readChunk(r *thriftReader) chunkMeta {
	c := chunkMeta{values: -1, nulls: -1}
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			if r.fail(fmt.Errorf("a column lies in another file, %q", r.bytes(f))); true {
				return true
			}
		case 3:
			if r.isStruct(f) {
				readChunkMeta(r, &c)
			}
		case 8, 9:
			r.fail(errEncrypted)
		default:
			return false
		}
		return true
	})
	return c
}

func readChunkMeta(r *thriftReader, c *chunkMeta) {
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			c.typ = physicalType(r.int32(f))
		case 4:
			c.codec = r.int32(f)
		case 5:
			c.values = r.int(f)
		case 7:
			c.compressedSize = r.int(f)
		case 9:
			c.firstPage = r.int(f)
		case 11:
			c.dictionaryOffset = r.int(f)
		case 12:
			if r.isStruct(f) {
				readStatistics(r, c)
			}
		default:
			return false
		}
		return true
	})
}

func readStatistics(r *thriftReader, c *chunkMeta) {
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 3:
			c.nulls = r.int(f)
		case 5:
			c.max = r.bytes(f)
		case 6:
			c.min = r.bytes(f)
		default:
			return false
		}
		return true
	})
}

// pageHeader is the header of a page.
type pageHeader struct {
	typ                pageType
	size, compressed   int32
	crc                uint32
	hasCRC             bool
	values             int32
	encoding           encoding
	repEncoding        encoding
	defEncoding        encoding
	repBytes, defBytes int32 // of a data page of version 2, whose levels are not compressed
	uncompressed       bool  // the values of a data page of version 2 are not compressed
}

// readPageHeader reads the header at the start of b and returns its length.
func readPageHeader(b []byte) (h pageHeader, n int, err error) {
	r := &thriftReader{buf: b[:min(len(b), math.MaxInt32)]}
	h.values = -1
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			h.typ = pageType(r.int32(f))
		case 2:
			h.size = r.int32(f)
		case 3:
			h.compressed = r.int32(f)
		case 4:
			h.crc, h.hasCRC = uint32(r.int32(f)), true
		case 5, 7, 8:
			if r.isStruct(f) {
				readDataHeader(r, &h, f.id == 8)
			}
		default:
			return false
		}
		return true
	})
	return h, r.pos, r.err
}

// readDataHeader reads the header that only data pages and dictionary pages have.
func readDataHeader(r *thriftReader, h *pageHeader, v2 bool) {
	r.fields(func(f thriftField) bool {
		switch {
		case f.id == 1:
			h.values = r.int32(f)
		case f.id == 2 && !v2, f.id == 4 && v2:
			h.encoding = encoding(r.int32(f))
		case f.id == 3 && !v2 && f.typ == thriftI32:
			h.defEncoding = encoding(r.int32(f))
		case f.id == 4 && !v2:
			h.repEncoding = encoding(r.int32(f))
		case f.id == 5 && v2:
			h.defBytes = r.int32(f)
		case f.id == 6 && v2:
			h.repBytes = r.int32(f)
		case f.id == 7 && v2:
			h.uncompressed = !r.bool(f)
		default:
			return false
		}
		return true
	})
}
