package store

import "fmt"

// Version is the schema version of the files that this package writes. Readers accept every file of the same major
// version: a minor version only adds columns or metadata that may be ignored.
const Version = "1.1"

const majorVersion, minorVersion = 1, 1

// The columns, in the order in which they are written.
const (
	colRank = iota
	colKind
	colSubkind
	colBytes
	colRecvBytes
	colPeer
	colTag
	colComm
	colDuration
	colFlops
	colRelease
	colStream
	colNIC
	colJob
	colHost
	colDims
	colPriority
	colDeps
	colStartDeps
	colDependents
	colStartDependents
	colName
	colAttrs
	colMeasuredStart
	colMeasuredEnd
	numColumns
)

// shape is what a column holds in each row.
type shape uint8

const (
	int32s    shape = iota // one INT32
	int64s                 // one INT64
	optInt64s              // an INT64 or NULL
	label                  // a string of a small fixed set
	optText                // a string or NULL
	list                   // a LIST of INT32
)

var columns = [numColumns]struct {
	name  string
	shape shape
}{
	colRank:            {"rank", int32s},
	colKind:            {"kind", label},
	colSubkind:         {"subkind", label},
	colBytes:           {"bytes", int64s},
	colRecvBytes:       {"recv_bytes", int64s},
	colPeer:            {"peer", int32s},
	colTag:             {"tag", int64s},
	colComm:            {"comm", int32s},
	colDuration:        {"duration_ps", int64s},
	colFlops:           {"flops", int64s},
	colRelease:         {"release_ps", int64s},
	colStream:          {"stream", int32s},
	colNIC:             {"nic", int32s},
	colJob:             {"job", int32s},
	colHost:            {"host", int32s},
	colDims:            {"dims", int32s},
	colPriority:        {"priority", int32s},
	colDeps:            {"deps", list},
	colStartDeps:       {"start_deps", list},
	colDependents:      {"dependents", list},
	colStartDependents: {"start_dependents", list},
	colName:            {"name", optText},
	colAttrs:           {"attrs", optText},
	colMeasuredStart:   {"measured_start_ps", optInt64s},
	colMeasuredEnd:     {"measured_end_ps", optInt64s},
}

// since returns the minor schema version that brought a column.
func since(column int) int {
	switch column {
	case colHost, colDims, colPriority:
		return 1
	}
	return 0
}

// physicalType is a Parquet type, as numbered in parquet.thrift.
type physicalType int32

const (
	typeInt32     physicalType = 1
	typeInt64     physicalType = 2
	typeByteArray physicalType = 6
)

var typeNames = [...]string{
	"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY",
}

func (t physicalType) String() string {
	if t >= 0 && int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", int32(t))
}

// width returns the bytes that an integer of the type takes in PLAIN encoding.
func (t physicalType) width() int {
	if t == typeInt64 {
		return 8
	}
	return 4
}

// physical returns the type in which the values of the shape are written.
func (s shape) physical() physicalType {
	switch s {
	case int64s, optInt64s:
		return typeInt64
	case label, optText:
		return typeByteArray
	}
	return typeInt32
}

// path returns the path of a column's leaf in the schema that is written.
func path(column int) []string {
	if columns[column].shape == list {
		return []string{columns[column].name, "list", "element"}
	}
	return []string{columns[column].name}
}

// repetition says how often a schema element occurs, as numbered in parquet.thrift.
type repetition int32

const (
	required repetition = 0
	optional repetition = 1
	repeated repetition = 2
)

// Converted types of parquet.thrift that this package writes or has to tell from others.
const (
	convertedNone   = -1
	convertedUTF8   = 0
	convertedList   = 3
	convertedUint8  = 11
	convertedUint64 = 14
	convertedInt8   = 15
	convertedInt64  = 18
	convertedOther  = -2 // what is no integer, string or list
)

// element is a node of a Parquet schema: a group, or a leaf with a type.
type element struct {
	name       string
	typ        physicalType // of a leaf
	repetition repetition
	children   int32 // 0: a leaf
	converted  int32
}

// writtenSchema returns the schema of the files that this package writes, flattened depth first.
func writtenSchema() []element {
	schema := []element{{name: "schema", children: numColumns, converted: convertedNone}}
	for _, c := range columns {
		e := element{name: c.name, typ: c.shape.physical(), converted: convertedNone}
		switch c.shape {
		case list:
			schema = append(schema,
				element{name: c.name, children: 1, converted: convertedList},
				element{name: "list", repetition: repeated, children: 1, converted: convertedNone})
			e.name = "element"
		case label:
			e.converted = convertedUTF8
		case optText:
			e.converted, e.repetition = convertedUTF8, optional
		case optInt64s:
			e.repetition = optional
		}
		schema = append(schema, e)
	}
	return schema
}

// encoding is how the values of a page are written, as numbered in parquet.thrift.
type encoding int32

const (
	encPlain           encoding = 0
	encPlainDictionary encoding = 2
	encRLE             encoding = 3
	encBitPacked       encoding = 4
	encDeltaBinary     encoding = 5
	encDeltaLength     encoding = 6
	encDeltaByteArray  encoding = 7
	encRLEDictionary   encoding = 8
	encByteStreamSplit encoding = 9
)

// pageType is what a page holds, as numbered in parquet.thrift.
type pageType int32

const (
	pageData       pageType = 0
	pageDictionary pageType = 2
	pageDataV2     pageType = 3
)
