package sizes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Syntax is a text layout of tables: a size in bytes and its cumulative probability per line. Readers skip empty lines
// and lines that begin with #.
type Syntax uint8

const (
	// CSV separates fields by commas or blanks. The first line may name the columns, probabilities may be percentages,
	// and sizes may repeat.
	CSV Syntax = iota
	// CDCNW separates fields by blanks and has strictly ascending sizes. The mean size may come first, alone.
	// docs/reference/generators/cdcnw.md specifies it.
	CDCNW
)

// Limits of files of sizes.
const (
	maxLine = 1 << 12 // bytes
	maxRows = 1 << 20
)

// Read reads a table. A line that does not parse is an *openloop.LineError.
func Read(name string, file io.Reader, syntax Syntax, rule Rule) (*Curve, error) {
	r := reader{Curve: &Curve{Name: name, Rule: rule, Unit: 1}, syntax: syntax}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r.line++
		if err := r.read(lines.Text()); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		r.line++
		return nil, r.fail(fmt.Sprintf("a line of less than %d bytes", maxLine), "a longer one")
	} else if err != nil {
		return nil, fmt.Errorf("reading sizes: %w", err)
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.Curve, nil
}

// reader is a table whose lines are being read.
type reader struct {
	*Curve
	syntax  Syntax
	line    int64
	started bool // a line with fields was read
}

func (r *reader) fail(expected, found string) error {
	return &openloop.LineError{Line: r.line, Expected: expected, Found: found}
}

func (r *reader) read(line string) error {
	fields := strings.FieldsFunc(line, func(c rune) bool { return unicode.IsSpace(c) || c == ',' && r.syntax == CSV })
	if len(fields) == 0 || fields[0][0] == '#' {
		return nil
	}
	first := !r.started
	r.started = true
	switch {
	case r.syntax == CSV && r.line == 1 && (fields[0][0] < '0' || fields[0][0] > '9'):
		return nil // names of columns
	case r.syntax == CDCNW && first && len(fields) == 1:
		return r.stated(fields[0])
	default:
		return r.row(fields)
	}
}

func (r *reader) stated(field string) (err error) {
	if r.StatedMean, err = decimal(field); err != nil {
		return r.fail("a size and a cumulative probability, or the mean size alone", strconv.Quote(field))
	}
	return nil
}

// row reads a size and its cumulative probability.
func (r *reader) row(fields []string) error {
	if len(fields) != 2 {
		return r.fail("a size and a cumulative probability", fmt.Sprintf("%d fields", len(fields)))
	}
	if len(r.sizes) == maxRows {
		return r.fail(fmt.Sprintf("at most %d sizes", maxRows), "more")
	}
	size, err := strconv.ParseUint(fields[0], 10, 63)
	if err != nil || size > openloop.MaxBytes {
		return r.fail(fmt.Sprintf("a size in bytes, a whole number up to %d", int64(openloop.MaxBytes)),
			strconv.Quote(fields[0]))
	}
	most, expected := 1+tolerance, "a cumulative probability from 0 to 1"
	if r.syntax == CSV {
		most, expected = 100*(1+tolerance), expected+", or to 100 %"
	}
	p, err := decimal(fields[1])
	if err != nil || p > most {
		return r.fail(expected, strconv.Quote(fields[1]))
	}
	if err := r.ascending(int64(size), p, fields); err != nil {
		return err
	}
	r.sizes, r.cdf = append(r.sizes, int64(size)), append(r.cdf, p)
	return nil
}

// ascending compares a row with the one before.
func (r *reader) ascending(size int64, p float64, fields []string) error {
	k := len(r.sizes) - 1
	switch {
	case k < 0:
		return nil
	case r.syntax == CSV && size < r.sizes[k]:
		return r.fail(fmt.Sprintf("a size of at least the %d of the line before", r.sizes[k]), fields[0])
	case r.syntax == CDCNW && size <= r.sizes[k]:
		return r.fail(fmt.Sprintf("a size above the %d of the line before", r.sizes[k]), fields[0])
	case p < r.cdf[k]:
		expected := fmt.Sprintf("a cumulative probability of at least the %v of the line before", r.cdf[k])
		return r.fail(expected, fields[1])
	}
	return nil
}

// decimal parses a number in decimal or exponent notation without a minus sign. Infinities, NaN and hexadecimal digits
// are errors.
func decimal(s string) (float64, error) {
	if strings.Trim(s, "0123456789.eE+-") != "" || strings.HasPrefix(s, "-") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// tolerance is the largest distance of the last cumulative probability from 1: 1e-6, and the rounding of that.
const tolerance = 1e-6 + 1e-12

// finish checks the table as a whole, and makes the last probability 1.
func (r *reader) finish() error {
	r.line = max(1, r.line)
	k := len(r.cdf) - 1
	if k < 0 {
		return r.fail("sizes with their cumulative probabilities", "none")
	}
	last := r.cdf[k]
	switch isOne := math.Abs(last-1) <= tolerance; {
	case isOne:
	case r.syntax == CDCNW:
		return r.fail("a last cumulative probability of 1", fmt.Sprint(last))
	case math.Abs(last/100-1) > tolerance:
		return r.fail("a last cumulative probability of 1, or 100 %", fmt.Sprint(last))
	default:
		for i := range r.cdf {
			r.cdf[i] /= 100
		}
	}
	for i, p := range r.cdf {
		r.cdf[i] = min(1, p)
	}
	r.cdf[k] = 1
	r.mean = r.drawnMean()
	if r.syntax == CSV && r.sizes[k] == 0 {
		return r.fail("a size above 0", "none")
	}
	if r.syntax == CDCNW && r.sizes[0] == 0 && r.cdf[0] == 1 {
		return r.fail("a size above 0 that messages have", "none")
	}
	return nil
}
