package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The compact protocol of Thrift, which encodes footers and page headers:
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.

// Types of the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// thriftWriter appends a struct to buf, field by field in ascending order of their ids.
type thriftWriter struct {
	buf   []byte
	last  int16   // ID of the last field of the current struct
	outer []int16 // the same for enclosing structs
}

func (w *thriftWriter) header(id int16, typ byte) {
	w.buf = append(w.buf, byte(id-w.last)<<4|typ)
	w.last = id
}

func (w *thriftWriter) int32(id int16, v int32) {
	w.header(id, thriftI32)
	w.buf = binary.AppendVarint(w.buf, int64(v))
}

func (w *thriftWriter) int64(id int16, v int64) {
	w.header(id, thriftI64)
	w.buf = binary.AppendVarint(w.buf, v)
}

func (w *thriftWriter) bool(id int16, v bool) {
	if v {
		w.header(id, thriftTrue)
	} else {
		w.header(id, thriftFalse)
	}
}

func (w *thriftWriter) string(id int16, s string) {
	w.header(id, thriftBinary)
	w.stringItem(s)
}

// list begins a list of n items. They follow by stringItem, int32Item, or beginItem and end.
func (w *thriftWriter) list(id int16, typ byte, n int) {
	w.header(id, thriftList)
	if n < 15 {
		w.buf = append(w.buf, byte(n)<<4|typ)
		return
	}
	w.buf = append(w.buf, 0xf0|typ)
	w.buf = binary.AppendUvarint(w.buf, uint64(n))
}

func (w *thriftWriter) stringItem(s string) {
	w.buf = binary.AppendUvarint(w.buf, uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *thriftWriter) int32Item(v int32) {
	w.buf = binary.AppendVarint(w.buf, int64(v))
}

// begin opens a struct as a field; end closes it.
func (w *thriftWriter) begin(id int16) {
	w.header(id, thriftStruct)
	w.beginItem()
}

// beginItem opens a struct as an item of a list; end closes it.
func (w *thriftWriter) beginItem() {
	w.outer = append(w.outer, w.last)
	w.last = 0
}

// end closes the struct.
func (w *thriftWriter) end() {
	w.buf = append(w.buf, 0)
	if n := len(w.outer); n > 0 {
		w.last, w.outer = w.outer[n-1], w.outer[:n-1]
	}
}

var errThriftShort = errors.New("the structure ends early")

// thriftReader reads structs from buf. err is the first error; after it, every read returns zero.
type thriftReader struct {
	buf []byte
	pos int
	err error
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.buf)
}

func (r *thriftReader) byte() byte {
	if r.pos >= len(r.buf) {
		r.fail(errThriftShort)
		return 0
	}
	r.pos++
	return r.buf[r.pos-1]
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.buf[r.pos:])
	if n <= 0 {
		r.fail(errThriftShort)
		return 0
	}
	r.pos += n
	return v
}

func (r *thriftReader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// thriftField is the header of a field; typ is 0 at the end of a struct.
type thriftField struct {
	id  int16
	typ byte
}

// fields calls f for every field of a struct. If f returns false, fields skips the value.
func (r *thriftReader) fields(f func(thriftField) bool) {
	id := int16(0)
	for r.err == nil {
		b := r.byte()
		if b == 0 {
			return
		}
		if b>>4 != 0 {
			id += int16(b >> 4)
		} else {
			id = int16(r.varint())
		}
		field := thriftField{id: id, typ: b & 15}
		if r.err == nil && !f(field) {
			r.skip(field.typ, 0)
		}
	}
}

// int reads an integer field of any width that fits in 64 bits.
func (r *thriftReader) int(f thriftField) int64 {
	switch f.typ {
	case thriftByte:
		return int64(int8(r.byte()))
	case thriftI16, thriftI32, thriftI64:
		return r.varint()
	}
	r.fail(fmt.Errorf("field %d has type %d, expected an integer", f.id, f.typ))
	return 0
}

// int32 reads an integer field that must fit in 32 bits.
func (r *thriftReader) int32(f thriftField) int32 {
	v := r.int(f)
	if int64(int32(v)) != v {
		r.fail(fmt.Errorf("field %d is %d, expected 32 bits", f.id, v))
		return 0
	}
	return int32(v)
}

func (r *thriftReader) bool(f thriftField) bool {
	if f.typ != thriftTrue && f.typ != thriftFalse {
		r.fail(fmt.Errorf("field %d has type %d, expected a boolean", f.id, f.typ))
	}
	return f.typ == thriftTrue
}

// bytes reads a string field; the result is part of buf.
func (r *thriftReader) bytes(f thriftField) []byte {
	if f.typ != thriftBinary {
		r.fail(fmt.Errorf("field %d has type %d, expected a string", f.id, f.typ))
		return nil
	}
	return r.bytesItem()
}

func (r *thriftReader) bytesItem() []byte {
	n := r.uvarint()
	if n > uint64(len(r.buf)-r.pos) {
		r.fail(errThriftShort)
		return nil
	}
	r.pos += int(n)
	return r.buf[r.pos-int(n) : r.pos]
}

// list reads the header of a list field whose items must have the given type, and returns their number. Every item
// takes at least one byte, which bounds the number.
func (r *thriftReader) list(f thriftField, typ byte) int {
	if f.typ != thriftList {
		r.fail(fmt.Errorf("field %d has type %d, expected a list", f.id, f.typ))
		return 0
	}
	n, found := r.listHeader()
	if n > 0 && found != typ {
		r.fail(fmt.Errorf("field %d lists items of type %d, expected %d", f.id, found, typ))
		return 0
	}
	return n
}

func (r *thriftReader) listHeader() (n int, typ byte) {
	b := r.byte()
	size := uint64(b >> 4)
	if size == 15 {
		size = r.uvarint()
	}
	if size > uint64(len(r.buf)-r.pos) {
		r.fail(errThriftShort)
		return 0, 0
	}
	return int(size), b & 15
}

// isStruct reports whether the field is a struct, and fails if not.
func (r *thriftReader) isStruct(f thriftField) bool {
	if f.typ != thriftStruct {
		r.fail(fmt.Errorf("field %d has type %d, expected a structure", f.id, f.typ))
		return false
	}
	return true
}

const thriftMaxDepth = 32

// skip skips a value of the given type.
func (r *thriftReader) skip(typ byte, depth int) {
	if depth > thriftMaxDepth {
		r.fail(errors.New("structures are nested too deep"))
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		for range 8 {
			r.byte()
		}
	case thriftBinary:
		r.bytesItem()
	case thriftList, thriftSet:
		n, item := r.listHeader()
		for i := 0; i < n && r.err == nil; i++ {
			r.skipItem(item, depth)
		}
	case thriftMap:
		n := r.uvarint()
		if n == 0 {
			return
		}
		types := r.byte()
		for i := uint64(0); i < n && r.err == nil; i++ {
			r.skipItem(types>>4, depth)
			r.skipItem(types&15, depth)
		}
	case thriftStruct:
		for r.err == nil {
			b := r.byte()
			if b == 0 {
				return
			}
			if b>>4 == 0 {
				r.uvarint()
			}
			r.skip(b&15, depth+1)
		}
	default:
		r.fail(fmt.Errorf("unknown type %d", typ))
	}
}

// skipItem skips an item of a list, set or map. A boolean item takes one byte.
func (r *thriftReader) skipItem(typ byte, depth int) {
	if typ == thriftTrue || typ == thriftFalse {
		r.byte()
		return
	}
	r.skip(typ, depth+1)
}
