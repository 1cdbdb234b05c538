package tables

import (
	"encoding/csv"
	"io"
	"strconv"
)

// csvWriter writes comma-separated values as RFC 4180 defines them, with LF as the line end. NULL is an empty cell.
type csvWriter struct {
	csv     *csv.Writer
	columns []column
	record  []string
	head    bool // the header is written
}

func newCSVWriter(w io.Writer, columns []column) *csvWriter {
	return &csvWriter{csv: csv.NewWriter(w), columns: columns, record: make([]string, len(columns))}
}

func (w *csvWriter) header() error {
	if w.head {
		return nil
	}
	w.head = true
	for i, c := range w.columns {
		w.record[i] = c.name
	}
	return w.csv.Write(w.record)
}

func (w *csvWriter) write(row []value) error {
	if err := w.header(); err != nil {
		return err
	}
	for i, c := range w.columns {
		v := &row[i]
		switch {
		case !v.present:
			w.record[i] = ""
		case c.kind == textColumn:
			w.record[i] = v.text
		case c.kind == doubleColumn:
			w.record[i] = formatFloat(v.float)
		case c.kind == boolColumn:
			w.record[i] = strconv.FormatBool(v.int != 0)
		default:
			w.record[i] = strconv.FormatInt(v.int, 10)
		}
	}
	return w.csv.Write(w.record)
}

func (w *csvWriter) flush() error {
	w.csv.Flush()
	return w.csv.Error()
}

func (w *csvWriter) close() error {
	if err := w.header(); err != nil {
		return err
	}
	return w.flush()
}
