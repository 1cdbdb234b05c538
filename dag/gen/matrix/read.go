// Readers of matrices, values and mass functions: comma-separated numbers, a line per row. They skip empty lines, and a
// first line with names of columns.

package matrix

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

const (
	maxLine = 1 << 20 // bytes; allows 60 per cell in a row of the largest matrix
	maxRows = MaxFlows
)

// rows calls row with the numbers of each line, which are valid until it returns, and header with a first line that
// begins with a name, unless header is nil.
func rows(file io.Reader, header func(text string) error, row func(line int64, fields []float64) error) (lines int64,
	err error) {
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, maxLine)
	var values []float64
	for scanner.Scan() {
		lines++
		text := strings.TrimSpace(scanner.Text())
		if lines == 1 && header != nil && text != "" && isHeader(text) {
			if err := header(text); err != nil {
				return lines, err
			}
		}
		if text == "" || lines == 1 && isHeader(text) {
			continue
		}
		values = values[:0]
		for field := range strings.SplitSeq(text, ",") {
			v, err := number(strings.TrimSpace(field))
			if err != nil {
				return lines, lineError(lines, "numbers with commas between them", fmt.Sprintf("%.40q", field))
			}
			values = append(values, v)
		}
		if err := row(lines, values); err != nil {
			return lines, err
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return lines, lineError(lines+1, fmt.Sprintf("a line of less than %d bytes", maxLine), "a longer one")
	} else if err != nil {
		return lines, fmt.Errorf("reading: %w", err)
	}
	return lines, nil
}

// isHeader reports whether a line begins with a name, not a number.
func isHeader(text string) bool {
	first, _, _ := strings.Cut(text, ",")
	_, err := strconv.ParseFloat(first, 64) // also accepts nan and inf
	letter := text[0] | 0x20
	return err != nil && (letter >= 'a' && letter <= 'z' || text[0] == '_' || text[0] == '"')
}

func lineError(line int64, expected, found string) error {
	return &openloop.LineError{Line: line, Expected: expected, Found: found}
}

// ReadValues reads a value per line. A line that does not parse is an *openloop.LineError.
func (q Quantity) ReadValues(file io.Reader) ([]float64, error) {
	var values []float64
	lines, err := rows(file, nil, func(line int64, fields []float64) error {
		switch {
		case len(fields) != 1:
			return lineError(line, "one number", fmt.Sprintf("%d", len(fields)))
		case !q.has(fields[0]):
			return lineError(line, q.expected(), fmt.Sprint(fields[0]))
		case len(values) == maxRows:
			return lineError(line, fmt.Sprintf("at most %d values", maxRows), "more")
		}
		values = append(values, fields[0])
		return nil
	})
	if err == nil && len(values) == 0 {
		err = lineError(max(1, lines), "values", "none")
	}
	return values, err
}

// ReadPMF reads a mass function: a value and its probability per line, in any order. A line that does not parse is an
// *openloop.LineError.
func (q Quantity) ReadPMF(file io.Reader) (*PMF, error) {
	p := &PMF{}
	lines, err := rows(file, nil, func(line int64, fields []float64) error {
		switch {
		case len(fields) != 2:
			return lineError(line, "a value and its probability", fmt.Sprintf("%d numbers", len(fields)))
		case !q.has(fields[0]):
			return lineError(line, q.expected(), fmt.Sprint(fields[0]))
		case !(fields[1] >= 0 && fields[1] <= 1+tolerance):
			return lineError(line, "a probability of 0..1", fmt.Sprint(fields[1]))
		case len(p.Values) == maxSupport:
			return lineError(line, fmt.Sprintf("at most %d values", maxSupport), "more")
		}
		p.Values, p.Probabilities = append(p.Values, fields[0]), append(p.Probabilities, fields[1])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if all := sum(p.Probabilities); math.Abs(all-1) > tolerance {
		return nil, lineError(max(1, lines), "probabilities that add up to 1", fmt.Sprint(all))
	}
	if v, twice := p.sortByValue(); twice {
		return nil, lineError(lines, "distinct values", fmt.Sprintf("%v twice", v))
	}
	return p, nil
}

// tolerance is the largest distance of the sum of probabilities from 1.
const tolerance = 1e-6

// ReadMatrix reads a node matrix, a line per source, and divides it by its sum. It keeps numbers below 0, which
// NewSource sets to 0 and reports. A first line "racks,0,16,..." has the first node of each rack. A line that does not
// parse is an *openloop.LineError.
func ReadMatrix(file io.Reader) (*Matrix, error) {
	m := &Matrix{}
	row := 0
	header := func(text string) (err error) {
		m.Racks, err = readRacks(text)
		return err
	}
	lines, err := rows(file, header, func(line int64, fields []float64) error {
		if row == 0 {
			m.N = len(fields)
		}
		switch {
		case row == 0 && m.Racks != nil && !m.Racks.Valid(m.N):
			return lineError(1, fmt.Sprintf("first nodes of racks, ascending from 0 to at most %d", m.N-1),
				fmt.Sprint([]int(m.Racks)))
		case m.N < 2 || m.N > MaxNodes:
			return lineError(line, fmt.Sprintf("2..%d numbers", MaxNodes), fmt.Sprintf("%d", m.N))
		case len(fields) != m.N || row == m.N:
			return lineError(line, fmt.Sprintf("%d rows of %d numbers each", m.N, m.N),
				fmt.Sprintf("%d numbers in row %d", len(fields), row+1))
		case fields[row] != 0:
			return lineError(line, fmt.Sprintf("0 from node %d to itself", row), fmt.Sprint(fields[row]))
		}
		m.Cells = append(m.Cells, fields...)
		row++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.N == 0 || row < m.N {
		return nil, lineError(max(1, lines), fmt.Sprintf("%d rows", max(2, m.N)), fmt.Sprintf("%d", row))
	}
	total := sum(m.Cells)
	if !(total > 0 && total < math.MaxFloat64) {
		return nil, lineError(lines, "numbers whose sum is above 0 and finite", fmt.Sprint(total))
	}
	for i := range m.Cells {
		m.Cells[i] /= total
	}
	return m, nil
}

// racksName begins the line of a node matrix that has its racks.
const racksName = "racks,"

// Detect reports whether a file begins like a node matrix: with a line of racks, or of several numbers.
func Detect(head []byte) bool {
	text := strings.TrimLeft(string(head), " \t\r\n")
	if strings.HasPrefix(text, racksName) {
		return true
	}
	line, _, whole := strings.Cut(text, "\n")
	fields := strings.Split(line, ",")
	if !whole { // the last one may be incomplete
		fields = fields[:len(fields)-1]
	}
	for _, field := range fields {
		if _, err := number(strings.TrimSpace(field)); err != nil {
			return false
		}
	}
	return len(fields) > 1
}

// readRacks reads the racks of a node matrix from its first line, nil if that has other names.
func readRacks(text string) (racks attr.Racks, err error) {
	list, ok := strings.CutPrefix(text, racksName)
	if !ok {
		return nil, nil
	}
	for field := range strings.SplitSeq(list, ",") {
		first, err := strconv.ParseUint(strings.TrimSpace(field), 10, 31)
		if err != nil || len(racks) == MaxNodes {
			return nil, lineError(1, "the first node of each rack", fmt.Sprintf("%.40q", field))
		}
		racks = append(racks, int(first))
	}
	return racks, nil
}

// WriteCSV writes the matrix as ReadMatrix reads it.
func (m *Matrix) WriteCSV(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	if m.Racks != nil {
		line := []byte(racksName)
		for _, first := range m.Racks {
			line = append(strconv.AppendInt(line, int64(first), 10), ',')
		}
		out.Write(append(line[:len(line)-1], '\n'))
	}
	var line []byte
	for row := range m.N {
		line = line[:0]
		for _, v := range m.Cells[row*m.N:][:m.N] {
			line = append(strconv.AppendFloat(line, v, 'g', -1, 64), ',')
		}
		line[len(line)-1] = '\n'
		out.Write(line)
	}
	return out.Flush()
}
