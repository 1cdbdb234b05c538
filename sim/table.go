package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Table is a table of a result: named columns and rows of cells. Cells are stored as text, since there may be many.
type Table struct {
	Columns []string
	Shown   string // label of the rows, if the table is not complete
	Rows    int    // number of rows
	cells   []byte // cells separated by commas, rows by newlines
}

// Begin starts a row.
func (t *Table) Begin() {
	if t.Rows > 0 {
		t.cells = append(t.cells[:len(t.cells)-1], '\n')
	}
	t.Rows++
}

// Uint adds a cell with an unsigned integer.
func (t *Table) Uint(v uint64) { t.cells = append(strconv.AppendUint(t.cells, v, 10), ',') }

// Int adds a cell with an integer.
func (t *Table) Int(v int64) { t.cells = append(strconv.AppendInt(t.cells, v, 10), ',') }

// Span adds a cell with the time from start to end in picoseconds, or null if the end is unknown.
func (t *Table) Span(start, end dag.Time) {
	if end == 0 {
		t.Null()
		return
	}
	t.Int(int64(end - start))
}

// Float adds a cell with a number with the given number of decimals.
func (t *Table) Float(v float64, digits int) {
	t.cells = append(strconv.AppendFloat(t.cells, v, 'f', digits, 64), ',')
}

// Exact adds a cell with a finite number, with as many digits as it needs.
func (t *Table) Exact(v float64) {
	t.cells = append(strconv.AppendFloat(t.cells, v, 'g', -1, 64), ',')
}

// Text adds a text cell.
func (t *Table) Text(s string) {
	text, err := MarshalJSON(s)
	if err != nil {
		panic(fmt.Sprintf("unreachable: a text cannot be encoded: %v", err))
	}
	t.cells = append(append(t.cells, text...), ',')
}

// TextOrNull adds a text cell, or null for an empty text.
func (t *Table) TextOrNull(s string) {
	if s == "" {
		t.Null()
		return
	}
	t.Text(s)
}

// Null adds an empty cell.
func (t *Table) Null() { t.cells = append(t.cells, "null,"...) }

// MarshalJSON returns an object with columns and rows.
func (t *Table) MarshalJSON() ([]byte, error) {
	columns, err := json.Marshal(t.Columns)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(t.cells)+2*t.Rows+len(columns)+100)
	b = append(append(b, `{"columns":`...), columns...)
	if t.Shown != "" {
		b = fmt.Appendf(b, `,"shown":%q`, t.Shown)
	}
	b = append(b, `,"rows":[`...)
	if t.Rows > 0 {
		b = append(b, '[')
		for _, c := range t.cells[:len(t.cells)-1] {
			if c == '\n' {
				b = append(b, "],["...)
			} else {
				b = append(b, c)
			}
		}
		b = append(b, ']')
	}
	return append(b, "]}"...), nil
}

// WriteCSV writes the table as comma-separated values; null becomes an empty cell.
func (t *Table) WriteCSV(w io.Writer) {
	for i, column := range t.Columns {
		if i > 0 {
			io.WriteString(w, ",")
		}
		io.WriteString(w, column)
	}
	io.WriteString(w, "\n")
	if t.Rows == 0 {
		return
	}
	for rest := t.cells; len(rest) > 0; {
		n := cellLength(rest)
		switch cell := rest[:n]; {
		case cell[0] == '"':
			writeText(w, cell)
		case string(cell) != "null":
			w.Write(cell)
		}
		end := rest[n : n+1]
		if rest = rest[n+1:]; len(rest) == 0 {
			end = []byte{'\n'}
		}
		w.Write(end)
	}
}

// cellLength returns the length of the first of several cells. A text has no line end, but may have commas.
func cellLength(cells []byte) int {
	n := 0
	if cells[0] == '"' {
		for n = 1; cells[n] != '"'; n++ {
			if cells[n] == '\\' {
				n++
			}
		}
	}
	for cells[n] != ',' && cells[n] != '\n' {
		n++
	}
	return n
}

// writeText writes a text cell in quotation marks, those within it doubled.
func writeText(w io.Writer, cell []byte) {
	var text string
	if err := json.Unmarshal(cell, &text); err != nil {
		panic(fmt.Sprintf("unreachable: a cell cannot be decoded: %v", err))
	}
	io.WriteString(w, `"`+strings.ReplaceAll(text, `"`, `""`)+`"`)
}

// PrintColumns prints rows with aligned columns; the last column is not padded.
func PrintColumns(w io.Writer, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("  " + cell)
			if !slices.Equal(row[i+1:], make([]string, len(row)-i-1)) {
				line.WriteString(strings.Repeat(" ", widths[i]-len(cell)))
			}
		}
		fmt.Fprintln(w, line.String())
	}
}
