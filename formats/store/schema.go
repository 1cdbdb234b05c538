package store

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

const majorVersion = 1

// minorVersion is that of the digest or of the model's latest field, whichever is newer.
var minorVersion = func() int {
	latest := digestSince
	for _, f := range dag.Fields {
		latest = max(latest, f.Since)
	}
	return latest
}()

// Version is the schema version of the files that this package writes, all of which have the same columns. Readers
// accept every file of the same major version: a minor version only adds columns or metadata that readers may ignore.
var Version = versionText(minorVersion)

func versionText(minor int) string {
	return fmt.Sprintf("%d.%d", majorVersion, minor)
}

// The columns in the order of writing: the rank, then the fields of the model.
const (
	colRank      = 0
	colKind      = fieldColumn + int(dag.FieldKind)
	colDeps      = fieldColumn + int(dag.FieldDeps)
	colStartDeps = fieldColumn + int(dag.FieldStartDeps)
	numColumns   = fieldColumn + int(dag.NumFields)

	fieldColumn = 1 // the first field
)

// shape is the type of the values of a column.
type shape uint8

const (
	int32s    shape = iota // one INT32
	int64s                 // one INT64
	optInt64s              // an INT64 or NULL
	label                  // a string of a small fixed set
	optText                // a string or NULL
	list                   // a LIST of INT32
)

// columns are the names and shapes of the columns. Times are in picoseconds.
var columns = func() (columns [numColumns]struct {
	name  string
	shape shape
}) {
	columns[colRank].name = "rank"
	for id, f := range dag.Fields {
		c := &columns[fieldColumn+id]
		c.name = f.Name
		switch f.Of(new(dag.Rank)).(type) {
		case *dag.Column[dag.Kind], *dag.Column[dag.Subkind]:
			c.shape = label
		case *dag.Column[int32], *dag.Narrow:
			c.shape = int32s
		case *dag.Column[int64]:
			c.shape = int64s
		case *dag.Column[dag.Time]:
			c.name, c.shape = f.Name+"_ps", int64s
		case *dag.Times:
			c.name, c.shape = f.Name+"_ps", optInt64s
		case *dag.Text:
			c.shape = optText
		case *dag.Edges:
			c.shape = list
		}
	}
	return columns
}()

// since returns the minor schema version that introduced a column.
func since(column int) int {
	if column < fieldColumn {
		return 0
	}
	return dag.Fields[column-fieldColumn].Since
}

// values returns a column of a rank.
func values(r *dag.Rank, column int) dag.Values {
	return dag.Fields[column-fieldColumn].Of(r)
}

// physical returns the Parquet type of the shape's values.
func (s shape) physical() parquet.Type {
	switch s {
	case int64s, optInt64s:
		return parquet.Int64
	case label, optText:
		return parquet.ByteArray
	}
	return parquet.Int32
}

// writtenSchema returns the schema of files, flattened depth first.
func writtenSchema() []parquet.Element {
	schema := []parquet.Element{{Name: "schema", Children: int32(len(columns)), Converted: parquet.ConvertedNone}}
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
