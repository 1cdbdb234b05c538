package store

import "github.com/tracedag/tracedag/internal/parquet"

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

// physical returns the type in which the values of the shape are written.
func (s shape) physical() parquet.Type {
	switch s {
	case int64s, optInt64s:
		return parquet.Int64
	case label, optText:
		return parquet.ByteArray
	}
	return parquet.Int32
}

// writtenSchema returns the schema of the files that this package writes, flattened depth first.
func writtenSchema() []parquet.Element {
	schema := []parquet.Element{{Name: "schema", Children: numColumns, Converted: parquet.ConvertedNone}}
	for _, c := range columns {
		e := parquet.Element{Name: c.name, Type: c.shape.physical(), Converted: parquet.ConvertedNone}
		switch c.shape {
		case list:
			schema = append(schema,
				parquet.Element{Name: c.name, Children: 1, Converted: parquet.ConvertedList},
				parquet.Element{Name: "list", Repetition: parquet.Repeated, Children: 1,
					Converted: parquet.ConvertedNone})
			e.Name = "element"
		case label:
			e.Converted = parquet.ConvertedUTF8
		case optText:
			e.Converted, e.Repetition = parquet.ConvertedUTF8, parquet.Optional
		case optInt64s:
			e.Repetition = parquet.Optional
		}
		schema = append(schema, e)
	}
	return schema
}
