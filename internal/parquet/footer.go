package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Footers and page headers (parquet.thrift). Field numbers in the code are those of its structures.

// KeyValue is an entry of the metadata of a file.
type KeyValue struct {
	Key, Value string
	Offset     int // of the value's text in the footer; AppendFooter and ReadFooter set it
}

// Footer is the metadata of a file (parquet.thrift, FileMetaData).
type Footer struct {
	Schema    []Element
	Rows      int64 // AppendFooter uses the sum over Groups instead
	Groups    []RowGroup
	Keys      []KeyValue
	CreatedBy string // the program that wrote the file
	SortedBy  int32  // leaf by which rows ascend within a row group; not read by ReadFooter
}

// AppendFooter appends a footer, its length and Magic: all bytes after the last chunk of a file. It sets the offsets of
// f.Keys.
func AppendFooter(dst []byte, f *Footer) []byte {
	start := len(dst)
	w := &thriftWriter{buf: dst}
	w.int32(1, 2)
	w.list(2, thriftStruct, len(f.Schema))
	for _, e := range f.Schema {
		appendElement(w, e)
	}
	rows := int64(0)
	for i := range f.Groups {
		rows += f.Groups[i].Rows
	}
	w.int64(3, rows)
	paths := leafPaths(f.Schema)
	w.list(4, thriftStruct, len(f.Groups))
	for i := range f.Groups {
		appendGroup(w, &f.Groups[i], paths, f.SortedBy)
	}
	w.list(5, thriftStruct, len(f.Keys))
	for i := range f.Keys {
		k := &f.Keys[i]
		w.beginItem()
		w.string(1, k.Key)
		w.string(2, k.Value)
		k.Offset = len(w.buf) - len(k.Value) - start
		w.end()
	}
	w.string(6, f.CreatedBy)
	w.list(7, thriftStruct, len(paths)) // TYPE_ORDER for each column: min and max are valid
	for range paths {
		w.beginItem()
		w.begin(1)
		w.end()
		w.end()
	}
	w.end()
	dst = binary.LittleEndian.AppendUint32(w.buf, uint32(len(w.buf)-start))
	return append(dst, Magic...)
}

// leafPaths returns the path of each leaf of a schema, without the root.
func leafPaths(schema []Element) [][]string {
	var paths [][]string
	var path []string
	var open []int32 // children still missing, for each group on the path
	for i, e := range schema {
		if i == 0 {
			open = append(open, e.Children)
			continue
		}
		open[len(open)-1]--
		if path = append(path, e.Name); e.Children > 0 {
			open = append(open, e.Children)
			continue
		}
		paths = append(paths, slices.Clone(path))
		for path = path[:len(path)-1]; len(open) > 1 && open[len(open)-1] == 0; path = path[:len(path)-1] {
			open = open[:len(open)-1]
		}
	}
	return paths
}

func appendElement(w *thriftWriter, e Element) {
	w.beginItem()
	if e.Children == 0 {
		w.int32(1, int32(e.Type))
	}
	w.int32(3, int32(e.Repetition))
	w.string(4, e.Name)
	if e.Children > 0 {
		w.int32(5, e.Children)
	}
	logical := int16(0)
	switch e.Converted {
	case ConvertedUTF8:
		logical = 1
	case ConvertedList:
		logical = 3
	}
	if logical != 0 {
		w.int32(6, int32(e.Converted))
		w.begin(10)
		w.begin(logical)
		w.end()
		w.end()
	}
	w.end()
}

func appendGroup(w *thriftWriter, g *RowGroup, paths [][]string, sortedBy int32) {
	w.beginItem()
	size, compressed := int64(0), int64(0)
	w.list(1, thriftStruct, len(g.Chunks))
	for column := range g.Chunks {
		c := &g.Chunks[column]
		size += c.Size
		compressed += c.CompressedSize
		appendChunkMeta(w, c, paths[column])
	}
	w.int64(2, size)
	w.int64(3, g.Rows)
	w.list(4, thriftStruct, 1) // sorting_columns
	w.beginItem()
	w.int32(1, sortedBy)
	w.bool(2, false)
	w.bool(3, false)
	w.end()
	w.int64(6, compressed)
	w.end()
}

func appendChunkMeta(w *thriftWriter, c *Chunk, path []string) {
	w.beginItem()
	w.int64(2, 0)
	w.begin(3)
	w.int32(1, int32(c.Type))
	w.list(2, thriftI32, len(c.encodings))
	for _, e := range c.encodings {
		w.int32Item(int32(e))
	}
	w.list(3, thriftBinary, len(path))
	for _, p := range path {
		w.stringItem(p)
	}
	w.int32(4, int32(c.Codec))
	w.int64(5, c.Values)
	w.int64(6, c.Size)
	w.int64(7, c.CompressedSize)
	w.int64(9, c.FirstPage)
	if c.DictionaryOffset > 0 {
		w.int64(11, c.DictionaryOffset)
	}
	if c.Min != nil || c.Nulls >= 0 {
		w.begin(12)
		if c.Nulls >= 0 {
			w.int64(3, c.Nulls)
		}
		if c.Min != nil {
			w.string(5, string(c.Max))
			w.string(6, string(c.Min))
		}
		w.end()
	}
	w.end()
	w.end()
}

var errEncrypted = errors.New("the file is encrypted")

// ReadFooter parses a footer, without its length and Magic. Statistics share the memory of b.
func ReadFooter(b []byte) (*Footer, error) {
	r := &thriftReader{buf: b}
	m := &Footer{}
	seen := 0 // one bit per field
	r.fields(func(f thriftField) bool {
		if f.id >= 0 && f.id < 16 {
			seen |= 1 << f.id
		}
		switch f.id {
		case 2:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				m.Schema = append(m.Schema, readElement(r))
			}
		case 3:
			m.Rows = r.int(f)
		case 4:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				m.Groups = append(m.Groups, readGroup(r))
			}
		case 5:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				m.Keys = append(m.Keys, readKeyValue(r))
			}
		case 6:
			m.CreatedBy = string(r.bytes(f))
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
	for _, g := range m.Groups {
		if rows += g.Rows; rows < 0 {
			break
		}
	}
	if rows != m.Rows {
		return nil, fmt.Errorf("%d rows in the row groups and %d in all", rows, m.Rows)
	}
	if left := len(r.buf) - r.pos; left > 0 {
		return nil, fmt.Errorf("%d bytes after its end", left)
	}
	return m, nil
}

func readElement(r *thriftReader) Element {
	e := Element{Type: -1, Converted: ConvertedNone}
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			e.Type = Type(r.int32(f))
		case 3:
			e.Repetition = Repetition(r.int32(f))
		case 4:
			e.Name = string(r.bytes(f))
		case 5:
			e.Children = r.int32(f)
		case 6:
			e.Converted = Converted(r.int32(f))
		case 10:
			if r.isStruct(f) {
				if c := readLogicalType(r); c != ConvertedNone {
					e.Converted = c
				}
			}
		default:
			return false
		}
		return true
	})
	return e
}

// readLogicalType reads a LogicalType and returns the converted type of equal meaning, or convertedOther if it is not
// a plain integer, string or list.
func readLogicalType(r *thriftReader) Converted {
	converted := ConvertedNone
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1, 4, 12: // string, enum, JSON
			converted = ConvertedUTF8
		case 3:
			converted = ConvertedList
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

func readKeyValue(r *thriftReader) KeyValue {
	var k KeyValue
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			k.Key = string(r.bytes(f))
		case 2:
			k.Value = string(r.bytes(f))
			k.Offset = r.pos - len(k.Value)
		default:
			return false
		}
		return true
	})
	return k
}

func readGroup(r *thriftReader) RowGroup {
	var g RowGroup
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			for n := r.list(f, thriftStruct); n > 0 && r.err == nil; n-- {
				g.Chunks = append(g.Chunks, readChunk(r))
			}
		case 3:
			g.Rows = r.int(f)
		default:
			return false
		}
		return true
	})
	return g
}

func readChunk(r *thriftReader) Chunk {
	c := Chunk{Values: -1, Nulls: -1}
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

func readChunkMeta(r *thriftReader, c *Chunk) {
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 1:
			c.Type = Type(r.int32(f))
		case 4:
			c.Codec = Codec(r.int32(f))
		case 5:
			c.Values = r.int(f)
		case 7:
			c.CompressedSize = r.int(f)
		case 9:
			c.FirstPage = r.int(f)
		case 11:
			c.DictionaryOffset = r.int(f)
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

func readStatistics(r *thriftReader, c *Chunk) {
	r.fields(func(f thriftField) bool {
		switch f.id {
		case 3:
			c.Nulls = r.int(f)
		case 5:
			c.Max = r.bytes(f)
		case 6:
			c.Min = r.bytes(f)
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

// readDataHeader reads the header specific to data pages and dictionary pages.
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
