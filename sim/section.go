package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Section is a named part of a result beyond the common fields: a member of the JSON document, summary lines, tables,
// or several of these. Programs print sections without knowing their backend.
type Section struct {
	Key   string // JSON name; "" for a section without JSON
	Value any    // JSON value; a [StreamedJSON] writes itself
	At    Place

	// Units are the units of numbers in Value whose names do not end with their unit, by path within Value: names
	// separated by dots, "" for all of Value. A path applies to all numbers below it.
	Units map[string]string

	Rows      []Row                   // lines of the summary
	RowsAfter string                  // label of the summary line that they follow; "": at the end
	Tables    func(w io.Writer)       // writes tables below the summary with cells separated by tabs; nil: none
	Ranks     bool                    // Tables replaces the table of finish times
	Instead   func(w io.Writer) error // writes a text that replaces all other human-readable output; nil: none

	Incomplete []string // messages about an incomplete run
}

// Place is the position of a section in the JSON document and among the tables.
type Place uint8

// Places of sections. Sections of equal places keep the order in which they were added.
const (
	Middle Place = iota // after the wall-clock figures
	Early               // before the wall-clock figures
	First               // before all other members
	Detail              // after the sections of Middle
	Late                // at the end
)

// Row is a summary line: a label and a text.
type Row struct{ Label, Text string }

// Rowf returns a summary line with a formatted text.
func Rowf(label, format string, args ...any) Row {
	return Row{label, fmt.Sprintf(format, args...)}
}

// StreamedJSON is a JSON value too large for memory. WriteJSON writes it.
type StreamedJSON interface {
	WriteJSON(w io.Writer) error
}

// Add appends a section.
func (r *Result) Add(s Section) {
	r.Sections = append(r.Sections, s)
}

// Section returns the section with the given key, or nil.
func (r *Result) Section(key string) *Section {
	for i := range r.Sections {
		if r.Sections[i].Key == key {
			return &r.Sections[i]
		}
	}
	return nil
}

// WriteJSON writes the result as one JSON object without a newline: the common fields, and each section with a key.
func (r *Result) WriteJSON(w io.Writer) error {
	d := document{w: w}
	d.sections(r.Sections, First)
	d.member("backend", r.Backend, true)
	d.member("model", r.Model, r.Model != "")
	d.member("params", r.Params, true)
	d.member("complete", r.Complete, true)
	d.member("aborted", r.Aborted, r.Aborted != "")
	d.member("makespan_ps", r.Makespan, true)
	d.member("finish_ps", r.Finish, true)
	d.member("ops", r.Ops, true)
	d.member("never_run", r.NeverRun, true)
	d.member("unended", r.Unended, r.Unended != 0)
	d.member("events", r.Events, true)
	d.member("messages", r.Messages, true)
	d.member("bytes", r.TotalBytes(), true)
	d.member("leftover", r.Unmatched, r.Unmatched != nil)
	d.member("stuck", r.Stuck, len(r.Stuck) > 0)
	d.sections(r.Sections, Early)
	d.member("wall_s", r.Wall, r.Timing)
	d.member("ops_per_s", r.OpsPerS, r.Timing)
	d.sections(r.Sections, Middle)
	d.sections(r.Sections, Detail)
	d.sections(r.Sections, Late)
	d.text("}")
	return d.err
}

// Units returns the units of the parameters and of the results whose names do not end with their unit, by path in the
// JSON document.
func (r *Result) Units() map[string]string {
	units := make(map[string]string)
	r.Params.Units("params.", units)
	for i := range r.Sections {
		for path, unit := range r.Sections[i].Units {
			units[strings.TrimSuffix(r.Sections[i].Key+"."+path, ".")] = unit
		}
	}
	return units
}

// document writes the members of a JSON object and keeps the first error.
type document struct {
	w     io.Writer
	begun bool
	err   error
}

func (d *document) text(s string) {
	if d.err == nil {
		_, d.err = io.WriteString(d.w, s)
	}
}

func (d *document) member(key string, value any, present bool) {
	if !present || d.err != nil {
		return
	}
	lead := ","
	if !d.begun {
		lead, d.begun = "{", true
	}
	d.text(lead + `"` + key + `":`)
	if s, streamed := value.(StreamedJSON); streamed {
		if d.err == nil {
			d.err = s.WriteJSON(d.w)
		}
		return
	}
	b, err := MarshalJSON(value)
	if err != nil {
		d.err = fmt.Errorf("writing %q of the result: %w", key, err)
		return
	}
	d.text(string(b))
}

func (d *document) sections(sections []Section, at Place) {
	for i := range sections {
		s := &sections[i]
		d.member(s.Key, s.Value, s.Key != "" && s.At == at)
	}
}

// MarshalJSON returns v as JSON without escaping <, > and &.
func MarshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil // without the line end
}

// ListedRanks is the largest number of ranks that human-readable tables list one by one.
const ListedRanks = 16
