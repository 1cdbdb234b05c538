// Package parquet encodes and decodes column chunks and footers of Apache Parquet files
// (https://github.com/apache/parquet-format, version 2): the compact Thrift structures, pages of version 1 and 2,
// every encoding and codec of integers and strings, and lists of one level.
//
// It works on whole chunks in memory, performs no input or output, and has no fixed schema. To read, a caller maps
// its columns to leaves of the schema ([NewLeaf]), passes the bytes of a chunk to a [Decoder], receives the pages as
// a [PageReader], and decodes each page into its own slices ([Integers], [Texts], [Decoder.Lists]). To write, an
// [Encoder] turns the values of a chunk into pages, and [AppendFooter] describes all chunks.
//
// Comments cite sections of README.md, Encodings.md, LogicalTypes.md, Compression.md and parquet.thrift of the format
// specification.
package parquet

import (
	"errors"
	"fmt"
	"math"
)

// Magic begins and ends a Parquet file (README.md, "File format").
const Magic = "PAR1"

// Type is a physical type, as numbered in parquet.thrift.
type Type int32

// The physical types that this package encodes. It decodes no Double, and Boolean in PLAIN encoding only.
const (
	Boolean   Type = 0
	Int32     Type = 1
	Int64     Type = 2
	Double    Type = 5
	ByteArray Type = 6
)

var typeNames = [...]string{
	"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
}

// String returns the name in parquet.thrift.
func (t Type) String() string {
	if t >= 0 && int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Width returns the size of an integer of the type in PLAIN encoding, in bytes.
func (t Type) Width() int {
	if t == Int64 {
		return 8
	}
	return 4
}

// Repetition is the repetition type of a schema element, as numbered in parquet.thrift.
type Repetition int32

// The repetitions.
const (
	Required Repetition = 0
	Optional Repetition = 1
	Repeated Repetition = 2
)

// Converted is a converted type, as numbered in parquet.thrift, or ConvertedNone. A logical type, its newer form, is
// read as the converted type of equal meaning; both are written (LogicalTypes.md).
type Converted int32

// The converted types that this package distinguishes.
const (
	ConvertedNone   Converted = -1
	ConvertedUTF8   Converted = 0
	ConvertedList   Converted = 3
	convertedUint8  Converted = 11
	convertedUint64 Converted = 14
	convertedInt8   Converted = 15
	convertedInt64  Converted = 18
	convertedOther  Converted = -2 // not an integer, string or list
)

// Element is a node of a schema: a group, or a leaf with a type. A schema is a slice of elements in depth-first order
// from the root.
type Element struct {
	Name       string
	Type       Type // leaves only
	Repetition Repetition
	Children   int32 // 0: a leaf
	Converted  Converted
}

// FieldSize returns the number of elements of the first field of a flattened schema, 0 if it is incomplete.
func FieldSize(schema []Element) int {
	open := int64(1) // elements still missing
	for i, e := range schema {
		open += int64(max(0, e.Children)) - 1
		if open == 0 {
			return i + 1
		}
	}
	return 0
}

// Leaf is the position and the type of a column in a file.
type Leaf struct {
	Index    int // among the leaves of the schema; -1: the file lacks the column
	Type     Type
	Integers bool // the values are integers, not decimals, dates or times
	Unsigned bool // the integers are unsigned
	MaxRep   int  // 1 for lists
	MaxDef   int  // definition level of a value that is present
	slotDef  int  // lists: definition level of an element, NULL or not
}

// NewLeaf returns the leaf of a field with a single leaf (README.md, "Nested Encoding"). Its Index is 0.
func NewLeaf(field []Element) (Leaf, error) {
	l := Leaf{}
	for i, e := range field {
		if e.Children > 1 || e.Children == 0 && i < len(field)-1 {
			return l, errors.New("it is a structure")
		}
		switch e.Repetition {
		case Required:
		case Optional:
			l.MaxDef++
		case Repeated:
			l.MaxDef++
			l.MaxRep++
			l.slotDef = l.MaxDef
		default:
			return l, fmt.Errorf("unknown repetition %d", e.Repetition)
		}
	}
	if l.MaxDef > math.MaxUint8 {
		return l, errors.New("it is nested too deep")
	}
	e := field[len(field)-1]
	l.Type = e.Type
	l.Unsigned = e.Converted >= convertedUint8 && e.Converted <= convertedUint64
	signed := e.Converted == ConvertedNone || e.Converted >= convertedInt8 && e.Converted <= convertedInt64
	l.Integers = (e.Type == Int32 || e.Type == Int64) && (signed || l.Unsigned)
	return l, nil
}

// Codec is a compression codec, as numbered in parquet.thrift (Compression.md).
type Codec int32

// The codecs. Chunks are written with Zstd.
const (
	Uncompressed Codec = 0
	Snappy       Codec = 1
	Gzip         Codec = 2
	Brotli       Codec = 4
	Zstd         Codec = 6
	LZ4Raw       Codec = 7
)

// encoding is the encoding of the values of a page, as numbered in parquet.thrift (Encodings.md).
type encoding int32

const (
	encPlain           encoding = 0
	encPlainDictionary encoding = 2
	encRLE             encoding = 3
	encDeltaBinary     encoding = 5
	encDeltaLength     encoding = 6
	encDeltaByteArray  encoding = 7
	encRLEDictionary   encoding = 8
	encByteStreamSplit encoding = 9
)

// pageType is the type of a page, as numbered in parquet.thrift.
type pageType int32

const (
	pageData       pageType = 0
	pageDictionary pageType = 2
	pageDataV2     pageType = 3
)

// Chunk is the metadata of a column chunk, one column of one row group (parquet.thrift, ColumnMetaData).
type Chunk struct {
	Type                        Type
	Codec                       Codec
	Values                      int64 // including NULLs and empty lists
	CompressedSize, Size        int64
	DictionaryOffset, FirstPage int64  // from the start of the file; DictionaryOffset is 0 without a dictionary
	Min, Max                    []byte // in PLAIN encoding; nil: unknown
	Nulls                       int64  // -1: unknown
	encodings                   []encoding
}

// Start returns the offset of the chunk's first page of any type.
func (c *Chunk) Start() int64 {
	if c.DictionaryOffset > 0 {
		return min(c.DictionaryOffset, c.FirstPage)
	}
	return c.FirstPage
}

// At returns the metadata of an encoded chunk that begins at the given offset of the file.
func (c Chunk) At(offset int64) Chunk {
	if c.FirstPage > 0 {
		c.DictionaryOffset = offset
	}
	c.FirstPage += offset
	return c
}

// RowGroup is the metadata of a row group.
type RowGroup struct {
	Rows   int64
	Chunks []Chunk // by leaf of the schema
}

// Error is an error in a chunk.
type Error struct {
	Offset          int64 // from the start of the file
	Expected, Found string
}

// Error returns "offset N: expected X, found Y".
func (e *Error) Error() string {
	return fmt.Sprintf("offset %d: expected %s, found %s", e.Offset, e.Expected, e.Found)
}

// ErrNull reports a NULL in a column that must have none.
var ErrNull = errors.New("NULL")

// Number is a type into which integers can be decoded.
type Number interface {
	~uint8 | ~int32 | ~uint32 | ~int64
}

// Resize returns a slice of n elements of arbitrary values. It reuses the memory of s if that is large enough;
// otherwise it allocates a quarter more than needed.
func Resize[T any](s []T, n int) []T {
	switch {
	case cap(s) >= n:
		return s[:n]
	case cap(s) == 0:
		return make([]T, n)
	}
	return make([]T, n, n+n/4)
}

// Fill sets all elements of dst to v.
func Fill[T any](dst []T, v T) {
	const head = 1024 // larger slices are filled by copying, which is faster
	first := dst[:min(head, len(dst))]
	for i := range first {
		first[i] = v
	}
	for at := len(first); at < len(dst); {
		at += copy(dst[at:], first)
	}
}
