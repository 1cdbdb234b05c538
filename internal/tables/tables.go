// Package tables writes results of simulations as three tables whose columns are the same for every backend: points,
// one row per run; results, one row per number of a run; summary, one row per point and metric over the replicas of the
// point. docs/reference/simulate.md defines the columns.
//
// All rows derive from the JSON documents of runs: a new number in a result appears in the tables without a change
// here.
package tables

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Names are the names of the tables.
var Names = []string{"points", "results", "summary"}

// Few is the number of runs per point below which the intervals of the summary are wide.
const Few = 5

// File is a file that appears with Commit and is discarded by Close without Commit.
type File interface {
	io.Writer
	Commit() error
	Close()
}

// Tables writes the tables of several runs.
type Tables struct {
	points, results []tableWriter
	summary         *summary // nil if no output needs it
	all             []tableWriter
	axes            []string
	replicas        int
	measure         []string // patterns of numbers; empty: all
	reference       *Reference
	files           []File
}

// kind is the type of a column.
type kind uint8

const (
	textColumn kind = iota
	int64Column
	int32Column
	doubleColumn
	boolColumn
)

// column is a column of a table. Texts are never NULL.
type column struct {
	name string
	kind kind
}

// value is a cell; the column decides which field it has.
type value struct {
	present bool
	text    string
	int     int64 // also a bool: 0 or 1
	float   float64
}

func text(s string) value    { return value{present: true, text: s} }
func integer(i int64) value  { return value{present: true, int: i} }
func number(f float64) value { return value{present: !math.IsNaN(f) && !math.IsInf(f, 0), float: f} }

var pointColumns = []column{
	{"study", textColumn}, {"point", textColumn}, {"run", textColumn}, {"index", int64Column}, {"replica", int32Column},
	{"seed", int64Column}, {"trace", textColumn}, {"trace_sha256", textColumn}, {"command", textColumn},
	{"backend", textColumn}, {"model", textColumn}, {"transport", textColumn}, {"topology", textColumn},
	{"placement", textColumn}, {"routing", textColumn}, {"collective", textColumn}, {"factors", textColumn},
	{"params", textColumn}, {"status", textColumn}, {"error", textColumn}, {"complete", boolColumn},
	{"makespan_ps", int64Column}, {"ops", int64Column}, {"messages", int64Column}, {"bytes", int64Column},
	{"version", textColumn},
}

var resultColumns = []column{
	{"study", textColumn}, {"point", textColumn}, {"run", textColumn}, {"seed", int64Column}, {"factors", textColumn},
	{"metric", textColumn}, {"scope", textColumn}, {"value", doubleColumn}, {"value_int", int64Column},
	{"unit", textColumn},
}

// tableWriter writes the rows of a table in a file format.
type tableWriter interface {
	write(row []value) error
	flush() error // makes the rows so far visible, if the format can
	close() error
}

// New returns a writer of no tables yet. axes are the names of the factors that the runs will have. replicas is the
// number of runs with the same point.
func New(axes []string, replicas int) *Tables {
	return &Tables{axes: axes, replicas: replicas}
}

// Measure selects the numbers of the tables results and summary by patterns of their names, such as fct_ps.p99 or
// jobs.*.makespan_ps. The name * is any name, at the end one or more names. A number of an entry of a list has the name
// of the entry after that of the list. Without patterns, the tables have all numbers.
func (t *Tables) Measure(patterns []string) { t.measure = patterns }

// Reference is a value of an axis with which the summary compares the others.
type Reference struct{ Axis, Value string }

// CompareTo adds columns to the summary: the ratio of each number to that of the point with another value of an axis, a
// mean over the seeds that both points have, and its 95 % interval. The mean is that of the logarithms, so only numbers
// above 0 are compared. Call it before Write. The summary then needs the memory of all its numbers.
func (t *Tables) CompareTo(r Reference) { t.reference = &r }

// measures reports whether the patterns select a number.
func (t *Tables) measures(m *metric) bool {
	if len(t.measure) == 0 || matches(t.measure, m.path) {
		return true
	}
	list, number, found := strings.Cut(m.path, ".")
	for part := range strings.SplitSeq(m.scope, ",") {
		if _, entry, named := strings.Cut(part, "="); named && found && matches(t.measure, list+"."+entry+"."+number) {
			return true
		}
	}
	return false
}

// matches reports whether one of the patterns matches a name.
func matches(patterns []string, name string) bool {
	parts := strings.Split(name, ".")
	for _, pattern := range patterns {
		wanted := strings.Split(pattern, ".")
		found := parts
		if wanted[len(wanted)-1] == "*" && len(found) > len(wanted) {
			found = found[:len(wanted)]
		}
		if slices.EqualFunc(wanted, found, func(want, part string) bool { return want == "*" || want == part }) {
			return true
		}
	}
	return false
}

// Write adds an output: one of the tables of Names, as Parquet or as CSV.
func (t *Tables) Write(table string, asParquet bool, to io.Writer) {
	columns := pointColumns
	switch table {
	case "results":
		columns = resultColumns
	case "summary":
		columns = summaryColumns(t.axes, t.reference)
	}
	var w tableWriter
	if asParquet {
		w = newParquetWriter(to, columns)
	} else {
		w = newCSVWriter(to, columns)
	}
	t.all = append(t.all, w)
	switch table {
	case "results":
		t.results = append(t.results, w)
	case "summary":
		t.summarize(w)
	default:
		t.points = append(t.points, w)
	}
}

// summarize adds a writer of the summary.
func (t *Tables) summarize(w tableWriter) {
	if t.summary == nil {
		t.summary = newSummary(t.axes, t.replicas, t.reference)
	}
	t.summary.writers = append(t.summary.writers, w)
}

// WriteFile is Write to a file that Commit commits and Close discards.
func (t *Tables) WriteFile(table string, asParquet bool, to File) {
	t.files = append(t.files, to)
	t.Write(table, asParquet, to)
}

// AddFrom is Add for a document that a function writes. Without outputs it does nothing.
func (t *Tables) AddFrom(write func(w io.Writer) error) error {
	if len(t.all) == 0 {
		return nil
	}
	document, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := t.Add(document)
	document.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if writing := <-written; err == nil && !errors.Is(writing, io.ErrClosedPipe) {
		err = writing
	}
	return err
}

// Add adds a run: one JSON object, as simulate --json prints it, with the description of the run as its first member.
// Runs are added in the order of their indices.
func (t *Tables) Add(document io.Reader) error {
	d, err := Parse(document)
	if err != nil {
		return err
	}
	return t.AddParsed(d)
}

// Document is what the tables take from the JSON document of a run.
type Document struct{ of *document }

// Parse reads a document for [Tables.AddParsed]. It may be called concurrently.
func Parse(text io.Reader) (Document, error) {
	d, err := parse(text)
	if err != nil {
		return Document{}, fmt.Errorf("reading a result: %w", err)
	}
	return Document{d}, nil
}

// AddParsed is Add for a document that was read before.
func (t *Tables) AddParsed(parsed Document) error {
	d := parsed.of
	if err := d.writePoint(t.points); err != nil {
		return err
	}
	d.kept = slices.DeleteFunc(slices.Clone(d.numbers), func(m metric) bool { return !t.measures(&m) })
	// Equal keys stay in the order of the document.
	slices.SortStableFunc(d.kept, func(a, b metric) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.scope, b.scope))
	})
	if err := d.writeResults(t.results); err != nil {
		return err
	}
	if t.summary != nil {
		if err := t.summary.add(d); err != nil {
			return err
		}
	}
	for _, w := range t.all {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}

// Commit completes the tables and commits the files.
func (t *Tables) Commit() error {
	if t.summary != nil {
		if err := t.summary.close(); err != nil {
			return err
		}
	}
	for _, w := range t.all {
		if err := w.close(); err != nil {
			return err
		}
	}
	for _, file := range t.files {
		if err := file.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// Close discards files that are not committed.
func (t *Tables) Close() {
	for _, file := range t.files {
		file.Close()
	}
}

func (d *document) writePoint(writers []tableWriter) error {
	if len(writers) == 0 {
		return nil
	}
	r := &d.run
	status := "done"
	if d.failed != "" {
		status = cmp.Or(d.status, "failed")
		d.complete = integer(0)
	}
	params := string(d.params)
	if d.traffic != nil && len(params) > 2 { // synthetic traffic
		params = params[:len(params)-1] + `,"traffic":` + string(d.traffic) + "}"
	}
	row := []value{
		text(r.Study), text(r.Point), text(r.ID), integer(r.Index), integer(int64(r.Replica)), integer(r.Seed),
		text(r.Trace.Name), text(r.Trace.SHA256), text(strings.Join(r.Trace.Command, " ")), text(d.backend),
		text(d.model), text(d.param("transport")), text(r.Topology.Given), text(r.Topology.Placement),
		text(d.param("routing")), text(r.Settings["collective"]), text(string(r.Factors)), text(params),
		text(status), text(d.failed), d.complete, d.whole("makespan_ps"), d.whole("ops"), d.whole("messages"),
		d.whole("bytes"), text(r.Version),
	}
	for _, w := range writers {
		if err := w.write(row); err != nil {
			return err
		}
	}
	return nil
}

// param returns a parameter of the result that is a text.
func (d *document) param(name string) string {
	var params map[string]json.RawMessage
	var s string
	if json.Unmarshal(d.params, &params) != nil || json.Unmarshal(params[name], &s) != nil {
		return ""
	}
	return s
}

// whole returns a common number of a run; NULL if it exceeds 64 bits or the run failed.
func (d *document) whole(name string) value {
	for i := range d.numbers {
		if m := &d.numbers[i]; m.path == name && m.scope == "" {
			return m.whole
		}
	}
	return value{}
}

func (d *document) writeResults(writers []tableWriter) error {
	if len(writers) == 0 {
		return nil
	}
	r := &d.run
	row := make([]value, len(resultColumns))
	copy(row, []value{text(r.Study), text(r.Point), text(r.ID), integer(r.Seed), text(string(r.Factors))})
	for i := range d.kept {
		m := &d.kept[i]
		row[5], row[6], row[7], row[8], row[9] = text(m.path), text(m.scope), number(m.float), m.whole, text(m.unit)
		for _, w := range writers {
			if err := w.write(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// Identity returns the identity of a run: the first 16 hexadecimal digits of the SHA-256 of the JSON object with its
// arguments, with sorted keys and without blanks. That of a point is the identity of its run with seed 0. settings are
// the options that differ from their default, in canonical text, by name; trace is the SHA-256 of the trace in
// hexadecimal.
func Identity(backend string, settings map[string]string, seed int64, trace string) string {
	if settings == nil {
		settings = map[string]string{}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Maps of texts and numbers have a JSON form, with sorted keys.
	e.Encode(map[string]any{"backend": backend, "seed": seed, "settings": settings, "trace": trace})
	sum := sha256.Sum256([]byte(strings.TrimSuffix(b.String(), "\n")))
	return hex.EncodeToString(sum[:8])
}

// formatFloat returns the shortest text that reads back as f, as in JSON.
func formatFloat(f float64) string {
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
