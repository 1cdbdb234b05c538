// Package report writes pages about results: one HTML file with figures and tables, without references to other files.
// It reads the JSON document of a result, so a page says only what the result has. The file docs/reference/report.md
// describes the pages.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
)

// Report is a result with the numbers that its page derives.
type Report struct {
	document  []byte // the whole JSON document
	page      []byte // the part of it in the page
	omitted   []string
	root      value // of the page
	write     func(p *page)
	of        subject
	table     *tableOf    // nil: none
	spacetime *spacetime  // a timeline file; nil: none
	whole     value       // the whole document, once a picture has decoded it
	drawn     *timelineOf // nil: none
	timeline  *Timeline   // nil: none
}

// Simulation returns the report of a simulation from the JSON document of its result. A document that already has the
// member "report" keeps it.
func Simulation(document []byte) (*Report, error) { return simulation(document, nil, nil) }

// simulation is Simulation with further numbers for the page, by name, and the timeline of the run; nil: none.
func simulation(document []byte, numbers map[string]any, t *Timeline) (*Report, error) {
	root, err := decode(document)
	if err != nil {
		return nil, err
	}
	derived, ranks := map[string]any(nil), root.get("finish_ps").len()
	if !root.get("report").known {
		derived = derive(root)
		maps.Copy(derived, numbers)
	}
	r, err := newReport(document, ofRun, ranks, derived, (*page).simulation)
	if err != nil || t == nil || derived == nil {
		return r, err
	}
	r.timeline = t
	var other bytes.Buffer
	if err := r.WriteHTML(&other); err != nil {
		return nil, err
	}
	drawn, err := t.prepare(other.Len())
	if err != nil || drawn == nil {
		return r, err
	}
	derived["timeline"] = drawn.facts
	if r, err = newReport(document, ofRun, ranks, derived, (*page).simulation); err == nil {
		r.drawn, r.timeline = drawn, t
	}
	return r, err
}

// Trace returns the report of a trace from the JSON document of its summary.
func Trace(document []byte) (*Report, error) {
	root, err := decode(document)
	if err != nil {
		return nil, err
	}
	return newReport(document, ofTrace, root.get("finish_ps").len(), nil, (*page).trace)
}

// newReport returns the report of a document about a number of ranks, with derived numbers.
func newReport(document []byte, of subject, ranks int, derived map[string]any, write func(p *page)) (r *Report,
	err error) {
	r = &Report{document: bytes.TrimSpace(document), write: write, of: of}
	if len(derived) > 0 {
		member, err := marshal(derived)
		if err != nil {
			return nil, err
		}
		whole := append(make([]byte, 0, len(r.document)+len(member)+11), bytes.TrimSuffix(r.document, []byte("}"))...)
		r.document = append(append(append(whole, `,"report":`...), member...), '}')
	}
	r.page, r.omitted = cut(r.document, ranks)
	if r.root, err = decode(r.page); err != nil {
		return nil, err
	}
	return r, nil
}

// decode decodes a JSON object.
func decode(document []byte) (value, error) {
	if !json.Valid(document) {
		return value{}, fmt.Errorf("reading a result: expected one JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	root := value{known: true}
	if err := decoder.Decode(&root.of); err != nil {
		return value{}, fmt.Errorf("reading a result: %w", err)
	}
	if _, is := root.of.(map[string]any); !is {
		return value{}, fmt.Errorf("reading a result: expected one JSON object")
	}
	return root, nil
}

// marshal returns a value as JSON without escaping <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing a report: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// WriteJSON writes the document, with the derived numbers as its member "report".
func (r *Report) WriteJSON(w io.Writer) error {
	_, err := w.Write(r.document)
	return err
}

// WriteHTML writes the page. Equal documents give equal pages.
func (r *Report) WriteHTML(w io.Writer) error {
	p := &page{root: r.root, lanes: r.drawn}
	r.write(p)
	return p.writeTo(w, r)
}
