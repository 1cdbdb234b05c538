package dcnw

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Curve is a law of message sizes: some sizes, and how much of all messages is not larger than each.
type Curve struct {
	Name string // of the workload, or of the file it comes from
	law  *openloop.Steps
}

// Mean returns the mean size in bytes.
func (c *Curve) Mean() float64 {
	return c.law.Mean()
}

//go:embed sizes/*.csv
var sizes embed.FS

// workloads are the names of the curves that come with the package, each with its other name, if it has one: Homa's.
var workloads = [][]string{
	{"FB_KEYVALUE", "W1"},
	{"GOOGLE_SEARCH", "W2"},
	{"GOOGLE_ALL", "W3"},
	{"FB_HADOOP", "W4"},
	{"WEBSEARCH", "W5"},
	{"FB_CACHE"},
	{"FB_WEB"},
}

// Workloads returns the names of the curves that come with the package. sizes/README.md has their sources.
func Workloads() []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w[0]
	}
	return names
}

// Workload returns the curve of a name or of Homa's number for it (W1 to W5), in any case.
func Workload(name string) (*Curve, bool) {
	i := slices.IndexFunc(workloads, func(names []string) bool {
		return slices.Contains(names, strings.ToUpper(name))
	})
	if i < 0 {
		return nil, false
	}
	name = workloads[i][0]
	file, err := sizes.ReadFile("sizes/" + name + ".csv")
	if err != nil {
		panic(err) // it is part of the program
	}
	_, rows, _ := strings.Cut(string(file), "\n")
	c, _, err := ReadCurve(name, strings.NewReader(strings.ReplaceAll(rows, ",", " ")))
	if err != nil {
		panic(err)
	}
	return c, true
}

// CurveError says where and why a file of sizes cannot be understood.
type CurveError struct {
	Line            int64 // from 1
	Expected, Found string
}

func (e *CurveError) Error() string {
	return fmt.Sprintf("line %d: expected %s, found %s", e.Line, e.Expected, e.Found)
}

// Limits of files of sizes.
const (
	maxLine = 1 << 12 // bytes
	maxRows = 1 << 20
)

// ReadCurve reads a curve, and the mean that the file states for it, 0 where it states none. docs/generators/cdcnw.md
// specifies the format. What is wrong with the file is a CurveError.
func ReadCurve(name string, file io.Reader) (c *Curve, statedMean float64, err error) {
	r := curveReader{lines: bufio.NewScanner(file)}
	r.lines.Buffer(nil, maxLine)
	if err := r.read(); err != nil {
		return nil, 0, err
	}
	c = &Curve{Name: name, law: openloop.NewSteps(r.sizes, r.cumulative)}
	if !(c.Mean() > 0) {
		return nil, 0, r.fail("a size above 0 that messages have", "none")
	}
	return c, r.mean, nil
}

type curveReader struct {
	lines      *bufio.Scanner
	line       int64
	mean       float64
	sizes      []int64
	cumulative []float64
}

func (r *curveReader) fail(expected, found string) error {
	return &CurveError{r.line, expected, found}
}

func (r *curveReader) read() error {
	for first := true; r.lines.Scan(); {
		r.line++
		fields := strings.Fields(r.lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		var err error
		if first && len(fields) == 1 {
			err = r.stated(fields[0])
		} else {
			err = r.row(fields)
		}
		if err != nil {
			return err
		}
		first = false
	}
	if err := r.lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		r.line++
		return r.fail(fmt.Sprintf("a line of less than %d bytes", maxLine), "a longer one")
	} else if err != nil {
		return fmt.Errorf("reading sizes: %w", err)
	}
	return r.finish()
}

func (r *curveReader) stated(field string) (err error) {
	if r.mean, err = decimal(field); err != nil {
		return r.fail("a size and a cumulative probability, or the mean size alone", strconv.Quote(field))
	}
	return nil
}

// row reads a size and its cumulative probability.
func (r *curveReader) row(fields []string) error {
	if len(fields) != 2 {
		return r.fail("a size and a cumulative probability", fmt.Sprintf("%d fields", len(fields)))
	}
	if len(r.sizes) == maxRows {
		return r.fail(fmt.Sprintf("at most %d sizes", maxRows), "more")
	}
	size, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil || size > openloop.MaxBytes {
		return r.fail(fmt.Sprintf("a size in bytes, a whole number up to %d", int64(openloop.MaxBytes)),
			strconv.Quote(fields[0]))
	}
	p, err := decimal(fields[1])
	if err != nil || p > 1+tolerance {
		return r.fail("a cumulative probability from 0 to 1", strconv.Quote(fields[1]))
	}
	if k := len(r.sizes) - 1; k >= 0 {
		if int64(size) <= r.sizes[k] {
			return r.fail(fmt.Sprintf("a size above the %d of the line before", r.sizes[k]), fields[0])
		}
		if p < r.cumulative[k] {
			return r.fail(fmt.Sprintf("a cumulative probability of at least the %v of the line before", r.cumulative[k]),
				fields[1])
		}
	}
	r.sizes, r.cumulative = append(r.sizes, int64(size)), append(r.cumulative, p)
	return nil
}

// decimal parses a number that is not negative, in decimal or exponent notation.
func decimal(s string) (float64, error) {
	if strings.Trim(s, "0123456789.eE+-") != "" || strings.HasPrefix(s, "-") {
		return 0, strconv.ErrSyntax // what else the standard library takes: infinities, NaN, hexadecimal digits
	}
	return strconv.ParseFloat(s, 64)
}

// tolerance is by how much the last cumulative probability may differ from 1: 1e-6, and what rounding adds to that.
const tolerance = 1e-6 + 1e-12

func (r *curveReader) finish() error {
	k := len(r.sizes) - 1
	if k < 0 {
		r.line = max(1, r.line)
		return r.fail("sizes with their cumulative probabilities", "none")
	}
	if last := r.cumulative[k]; math.Abs(last-1) > tolerance {
		return r.fail("a last cumulative probability of 1", fmt.Sprint(last))
	}
	for ; k >= 0 && r.cumulative[k] > 1; k-- {
		r.cumulative[k] = 1
	}
	r.cumulative[len(r.cumulative)-1] = 1
	return nil
}
