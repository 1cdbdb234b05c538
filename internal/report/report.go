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
	document []byte // the whole JSON document
	page     []byte // the part of it in the page
	omitted  []string
	root     value // of the page
	write    func(p *page)
	of       subject
}

// Simulation returns the report of a simulation from the JSON document of its result. A document that already has the
// member "report" keeps it.
func Simulation(document []byte) (*Report, error) { return simulation(document, nil) }

// simulation is Simulation with further numbers for the page, by name.
func simulation(document []byte, numbers map[string]any) (*Report, error) {
	return newReport(document, ofRun, func(root value) map[string]any {
		all := derive(root)
		maps.Copy(all, numbers)
		return all
	}, (*page).simulation)
}

// Trace returns the report of a trace from the JSON document of its summary.
func Trace(document []byte) (*Report, error) {
	return newReport(document, ofTrace, func(value) map[string]any { return nil }, (*page).trace)
}

func newReport(document []byte, of subject, derive func(root value) map[string]any, write func(p *page)) (*Report,
	error) {
	root, err := decode(document)
	if err != nil {
		return nil, err
	}
	r := &Report{document: bytes.TrimSpace(document), write: write, of: of}
	if root.get("report").known {
		derive = func(value) map[string]any { return nil }
	}
	if derived := derive(root); len(derived) > 0 {
		member, err := marshal(derived)
		if err != nil {
			return nil, err
		}
		r.document = append(bytes.TrimSuffix(r.document, []byte("}")), `,"report":`...)
		r.document = append(append(r.document, member...), '}')
	}
	r.page, r.omitted = cut(r.document, root.get("finish_ps").len())
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
	p := &page{root: r.root}
	r.write(p)
	return p.writeTo(w, r)
}
