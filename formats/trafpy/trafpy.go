// Package trafpy reads and writes the demand data of TrafPy's flow-centric mode: a table of flows, as JSON or CSV.
// docs/reference/formats/trafpy.md specifies it.
package trafpy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/flowio"
)

// JSON and CSV are the two forms of the table.
var (
	JSON = format.Format{
		Name:       "trafpy",
		Title:      "TrafPy demand data as JSON",
		Extensions: []string{".trafpy"},
		Detect:     detectJSON,
		Read:       readJSON,
		Options:    flowio.Table,
		Lacks:      lower.Everything(),
		Losses:     lossesOfJSON,
		Write:      writeJSON,
	}
	CSV = format.Format{
		Name:       "trafpycsv",
		Title:      "TrafPy demand data as CSV",
		Extensions: []string{".csv"},
		Detect:     detectCSV,
		Read:       readCSV,
		Options:    flowio.Table,
		Lacks:      lower.Everything(),
		Losses:     losses,
		Write:      writeCSV,
	}
)

// The columns in TrafPy's order.
const (
	flowID = iota
	sourceNode
	destinationNode
	flowSize
	eventTime
	establish
	index
	numColumns
)

var columnNames = [numColumns]string{"flow_id", "sn", "dn", "flow_size", "event_time", "establish", "index"}

// column returns the number of a column, or -1 if no column has the name.
func column(name string) int {
	return slices.Index(columnNames[:], name)
}

// style is the layout of a file's values, the content of dag.Meta.Attrs under the key "trafpy".
type style struct {
	Unit     int      `json:"unit"`             // times are in units of 10^Unit picoseconds
	Decimals int      `json:"decimals"`         // minimum number of decimals of times; 0: no point
	Point    bool     `json:"point,omitempty"`  // sizes end with ".0"
	Prefix   string   `json:"prefix,omitempty"` // text before the number in the label of a rank
	Labels   []string `json:"labels,omitempty"` // label of each rank, if they are not numbers with a common prefix
}

// microseconds is the usual unit of times, as in TrafPy's benchmarks.
const microseconds = 6

// usual is the style of traces from other formats.
var usual = style{Unit: microseconds, Decimals: 1}

// valueAttrs keeps the values of a flow that are not in the file's style.
type valueAttrs struct {
	Time string `json:"time,omitempty"`
	Size string `json:"size,omitempty"`
}

// table collects the columns of a file.
type table struct {
	file    string
	options *format.ReadOptions
	style   style
	styled  [numColumns]bool // whether the first value has set the style

	columns [numColumns]int // number of values of each column; -1: missing
	flows   []flowio.Flow   // sources and destinations are label numbers
	labels  map[string]int32
	names   []string // labels
	rounded int64    // number of sizes that are not whole
	moved   int64    // number of flows whose index is not their position
}

func newTable(in *format.Input, o *format.ReadOptions) (*table, error) {
	t := &table{file: in.Name, options: o, style: style{Unit: microseconds}, labels: map[string]int32{}}
	for c := range t.columns {
		t.columns[c] = -1
	}
	cycle := flowio.OptionsOf(o).Cycle
	if cycle == 0 {
		return t, nil
	}
	unit, ok := flowio.Exponent(cycle)
	if !ok {
		return nil, format.FileErrorf(in.Name, "--cycle (unit of times): expected a power of ten from 1ps "+
			"to 1s, found %v", cycle)
	}
	t.style.Unit = unit
	return t, nil
}

// valueError reports the expected and the found value.
type valueError struct{ expected, found string }

func (e *valueError) Error() string { return "expected " + e.expected + ", found " + e.found }

func wrong(expected string, found []byte) error {
	const most = 40
	if len(found) > most {
		return &valueError{expected, fmt.Sprintf("%q...", found[:most])}
	}
	return &valueError{expected, fmt.Sprintf("%q", found)}
}

// add adds the next value of a column.
func (t *table) add(column int, value []byte) error {
	k := t.columns[column]
	t.columns[column]++
	if k == len(t.flows) {
		t.flows = append(t.flows, flowio.Flow{})
	}
	f := &t.flows[k]
	if column <= destinationNode && !utf8.Valid(value) {
		return wrong("a name in UTF-8", value)
	}
	switch column {
	case flowID:
		if !isUsualID(value, k) {
			f.Name = string(value)
		}
	case sourceNode, destinationNode:
		label, err := t.label(value)
		if column == sourceNode {
			f.Source = label
		} else {
			f.Destination = label
		}
		return err
	case flowSize:
		return t.size(k, value)
	case eventTime:
		return t.time(k, value)
	case establish:
		if n, err := strconv.ParseFloat(string(value), 64); err != nil || n != 1 {
			return wrong("1 (an established flow)", value)
		}
	case index:
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return wrong("a flow index", value)
		}
		if n != float64(k) {
			t.moved++
		}
	}
	return nil
}

// isUsualID reports whether a name is the default name of flow number k.
func isUsualID(name []byte, k int) bool {
	digits, ok := strings.CutPrefix(string(name), "flow_")
	return ok && digits == strconv.Itoa(k)
}

// label returns the number of a label.
func (t *table) label(value []byte) (int32, error) {
	if n, ok := t.labels[string(value)]; ok {
		return n, nil
	}
	if len(t.names) == flowio.MaxRanks {
		return 0, wrong(fmt.Sprintf("at most %d end points", flowio.MaxRanks), value)
	}
	n := int32(len(t.names))
	t.names = append(t.names, string(value))
	t.labels[string(value)] = n
	return n, nil
}

// decimal returns a number in decimal notation without an exponent.
func decimal(value []byte) ([]byte, bool) {
	plain := len(value) > 0
	for _, c := range value {
		plain = plain && (c >= '0' && c <= '9' || c == '.')
	}
	if plain {
		return value, true
	}
	if strings.Trim(string(value), "0123456789.eE+-") != "" {
		return nil, false // the standard library also accepts infinities, NaN and hexadecimal digits
	}
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil || v < 0 || v > math.MaxInt64 {
		return nil, false
	}
	return strconv.AppendFloat(nil, math.Abs(v), 'f', -1, 64), true
}

// time adds the start of flow number k.
func (t *table) time(k int, value []byte) error {
	expected := fmt.Sprintf("a time in units of %v", flowio.Unit(t.style.Unit))
	text, ok := decimal(value)
	if !ok {
		return wrong(expected, value)
	}
	l := blockio.NewLine(text)
	start, decimals := l.Time(expected, t.style.Unit)
	if l.Failed() || !l.End() {
		return wrong(expected+", at most 106 days", value)
	}
	if !t.styled[eventTime] {
		t.styled[eventTime] = true
		t.style.Decimals = min(1, max(0, decimals))
	}
	t.flows[k].Start = start
	if string(t.style.appendTime(nil, start)) != string(value) {
		t.keep(k, "time", value)
	}
	return nil
}

// size adds the size of flow number k.
func (t *table) size(k int, value []byte) error {
	const expected = "a size in bytes (0..9223372036854775807)"
	text, ok := decimal(value)
	if !ok {
		return wrong(expected, value)
	}
	whole, part, point := strings.Cut(string(text), ".")
	if point && (whole == "" || part == "" || strings.Trim(part, "0123456789") != "") {
		return wrong(expected, value)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return wrong(expected, value)
	}
	if strings.Trim(part, "0") != "" {
		t.rounded++
		if part[0] >= '5' && n < math.MaxInt64 {
			n++
		}
	}
	if !t.styled[flowSize] {
		t.styled[flowSize] = true
		t.style.Point = point
	}
	t.flows[k].Bytes = n
	if string(t.style.appendSize(nil, n)) != string(value) {
		t.keep(k, "size", value)
	}
	return nil
}

// attrsPrefix begins the attributes of a flow.
const attrsPrefix = `{"trafpy":{`

// keep stores the text of a number as an attribute of flow number k.
func (t *table) keep(k int, name string, number []byte) {
	f := &t.flows[k]
	before := attrsPrefix
	if f.Attrs != "" {
		before = f.Attrs[:len(f.Attrs)-len("}}")] + ","
	}
	f.Attrs = fmt.Sprintf(`%s"%s":"%s"}}`, before, name, number)
}

// appendTime appends a time in the style of the file.
func (s *style) appendTime(text []byte, start dag.Time) []byte {
	return flowio.AppendDecimal(text, start, s.Unit, s.Decimals)
}

// appendSize appends a size in the style of the file.
func (s *style) appendSize(text []byte, bytes int64) []byte {
	text = strconv.AppendInt(text, bytes, 10)
	if s.Point {
		text = append(text, ".0"...)
	}
	return text
}

// trace builds the trace from all columns.
func (t *table) trace() (*dag.Trace, error) {
	for c, n := range t.columns {
		switch {
		case n < 0 && c < establish:
			return nil, format.FileErrorf(t.file, "expected a column %s, found none", columnNames[c])
		case n >= 0 && n != len(t.flows):
			return nil, format.FileErrorf(t.file, "expected columns of the same length, found %d values of %s and %d "+
				"of another", n, columnNames[c], len(t.flows))
		}
	}
	ranks, of := t.place()
	for k := range t.flows {
		f := &t.flows[k]
		f.Source, f.Destination = of[f.Source], of[f.Destination]
	}
	trace, err := flowio.Trace(t.options.Context, flowio.Ranks(ranks, t.options), t.flows)
	if err != nil {
		return nil, &format.FileError{File: t.file, Err: err}
	}
	trace.Attrs = attr.Encode("trafpy", t.style)
	if t.rounded > 0 {
		t.options.Warn("%s: %d sizes are rounded to whole bytes", t.file, t.rounded)
	}
	if t.moved > 0 {
		t.options.Warn("%s: the column index is not kept: it differs from the position of the flow (%d flows)",
			t.file, t.moved)
	}
	return trace, nil
}

// place returns the number of ranks and the rank of each label: the number at its end, if all labels are numbers
// with the same prefix, else its position in alphabetical order with numbers ordered by value.
func (t *table) place() (ranks int32, of []int32) {
	of = make([]int32, len(t.names))
	if prefix, ok := numbers(t.names, of); ok {
		most := int32(0)
		for _, rank := range of {
			most = max(most, rank+1)
		}
		if flowio.CheckRanks(int(most), len(t.flows)) == nil {
			t.style.Prefix = prefix
			return most, of
		}
	}
	order := make([]int, len(t.names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareLabels(t.names[a], t.names[b]) })
	for rank, label := range order {
		of[label] = int32(rank)
		t.style.Labels = append(t.style.Labels, t.names[label])
	}
	return int32(len(order)), of
}

// splitLabel splits a label into text and the number at its end. The number is -1 if it is missing, not below
// MaxRanks, or has leading zeros.
func splitLabel(label string) (prefix string, number int32) {
	prefix = strings.TrimRight(label, "0123456789")
	digits := label[len(prefix):]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n >= flowio.MaxRanks || digits[0] == '0' && len(digits) > 1 {
		return label, -1
	}
	return prefix, int32(n)
}

// numbers sets the numbers at the ends of labels and returns their common prefix. ok is false if there is none.
func numbers(labels []string, of []int32) (prefix string, ok bool) {
	for i, label := range labels {
		text, n := splitLabel(label)
		if n < 0 || i > 0 && text != prefix {
			return "", false
		}
		prefix, of[i] = text, n
	}
	return prefix, true
}

func compareLabels(a, b string) int {
	x, m := splitLabel(a)
	y, n := splitLabel(b)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(m, n))
}
