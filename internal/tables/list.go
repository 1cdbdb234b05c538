package tables

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteList writes a table of a result as Parquet. list is its JSON: an object with the names of columns and a list of
// rows. Columns of whole numbers are int64, of numbers double, of others text; null is NULL, in texts "".
func WriteList(w io.Writer, list []byte) error {
	var table struct {
		Columns []string
		Rows    [][]any
	}
	decoder := json.NewDecoder(strings.NewReader(string(list)))
	decoder.UseNumber()
	if err := decoder.Decode(&table); err != nil {
		return fmt.Errorf("reading a table: %w", err)
	}
	columns := make([]column, len(table.Columns))
	for i, name := range table.Columns {
		columns[i] = column{name, kindOf(table.Rows, i)}
	}
	out := newParquetWriter(w, columns)
	cells := make([]value, len(columns))
	for _, row := range table.Rows {
		if len(row) != len(columns) {
			return fmt.Errorf("reading a table: expected rows of %d values, found %d", len(columns), len(row))
		}
		for i, of := range row {
			cells[i] = cellOf(columns[i].kind, of)
		}
		if err := out.write(cells); err != nil {
			return err
		}
	}
	return out.close()
}

// kindOf returns the type of a column.
func kindOf(rows [][]any, at int) kind {
	found := int64Column
	for _, row := range rows {
		if at >= len(row) || row[at] == nil {
			continue
		}
		n, is := row[at].(json.Number)
		if !is {
			return textColumn
		}
		if _, err := n.Int64(); err != nil {
			found = doubleColumn
		}
	}
	return found
}

// cellOf returns a value of a column.
func cellOf(k kind, of any) value {
	n, isNumber := of.(json.Number)
	switch {
	case k == textColumn && of == nil:
		return text("")
	case k == textColumn:
		return text(fmt.Sprint(of))
	case !isNumber:
		return value{}
	case k == doubleColumn:
		f, _ := n.Float64()
		return number(f)
	}
	i, _ := n.Int64()
	return integer(i)
}
