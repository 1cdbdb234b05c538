// This file reads and writes the table as CSV in the layout of pandas: a header, and an unnamed first column with
// row numbers.

package trafpy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// detectCSV reports whether the first line has the column names.
func detectCSV(head []byte) bool {
	first, _, _ := bytes.Cut(head, []byte("\n"))
	names := strings.Split(strings.TrimSuffix(string(first), "\r"), ",")
	for _, name := range columnNames[:establish] {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

func readCSV(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a list of flows")
	if err != nil {
		return nil, err
	}
	t, err := newTable(in, &o)
	if err != nil {
		return nil, err
	}
	r := format.NewCSV(o.Context, in.Name, in.Reader)
	header, err := r.Read()
	if err == io.EOF {
		return nil, &format.SyntaxError{
			File: in.Name, Line: 1, Expected: "column names", Found: "the end of the file",
		}
	} else if err != nil {
		return nil, err
	}
	columns, err := t.header(header)
	if err != nil {
		return nil, err
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return t.trace()
		} else if err != nil {
			return nil, err
		}
		for i, c := range columns {
			if c < 0 {
				continue
			}
			if err := t.add(c, []byte(row[i])); err != nil {
				var v *valueError
				if !errors.As(err, &v) {
					return nil, err
				}
				line, _ := r.FieldPos(i)
				return nil, &format.SyntaxError{File: in.Name, Line: int64(line), Expected: v.expected, Found: v.found}
			}
		}
	}
}

// header returns the column numbers of the names in a header, -1 for unknown names.
func (t *table) header(names []string) ([]int, error) {
	columns := make([]int, len(names))
	for i, name := range names {
		c := column(name)
		columns[i] = c
		switch {
		case c < 0 && name == "" && i == 0: // row numbers
		case c < 0:
			t.options.Warn("%s: the column %q is not kept", t.file, name)
		case t.columns[c] >= 0:
			return nil, &format.SyntaxError{File: t.file, Line: 1, Expected: "every column once",
				Found: name + " again"}
		default:
			t.columns[c] = 0
		}
	}
	return columns, nil
}

func writeCSV(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	rows, err := newRows(t)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<18)
	fmt.Fprintf(out, ",%s\n", strings.Join(columnNames[:], ","))
	var name []byte
	for k := range rows.sends {
		line := strconv.AppendInt(out.AvailableBuffer(), int64(k), 10)
		for c := range columnNames {
			line = append(line, ',')
			if c <= destinationNode {
				name = rows.append(name[:0], k, c)
				line = appendField(line, name)
			} else {
				line = rows.append(line, k, c)
			}
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// appendField appends a field, quoted if necessary.
func appendField(to, text []byte) []byte {
	if !bytes.ContainsAny(text, "\",\r\n") && len(text) > 0 {
		return append(to, text...)
	}
	to = append(to, '"')
	to = append(to, bytes.ReplaceAll(text, []byte(`"`), []byte(`""`))...)
	return append(to, '"')
}
