package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// File is a file that Commit gives its name.
type File interface {
	io.Writer
	Commit() error
	Close()
}

// Outputs are the page and the pictures of a result, and the files to which they go.
type Outputs struct {
	Page   string // file; "": none
	Plots  Plots
	Create func(name string) (File, error)

	Numbers map[string]any // further numbers of the page of a run, by name

	// Timeline returns the timeline of the run; nil: there is none.
	Timeline func() *Timeline

	of    subject
	sweep Sweep
}

// Any reports whether there is a page or a picture.
func (o *Outputs) Any() bool { return o.Page != "" || len(o.Plots.Files) > 0 }

// Begin returns an error about a picture that the result cannot have: of a sweep, of synthetic traffic (alone), or of a
// run. backend is its name; given reports whether an option is set.
func (o *Outputs) Begin(backend string, sweep, alone bool, given func(flag string) bool) error {
	switch {
	case alone:
		o.of = ofLoad
	case sweep:
		o.of = ofSweep
	default:
		o.of = ofRun
	}
	return o.Plots.check(o.of, backend, given)
}

// BeginTrace is Begin for a trace, or for a table or a timeline if all pictures are of one.
func (o *Outputs) BeginTrace() error {
	switch {
	case o.has(ofTable):
		o.of = ofTable
	case o.has(ofTimeline):
		o.of = ofTimeline
	default:
		o.of = ofTrace
	}
	return o.Plots.check(o.of, "", nil)
}

// IsTable reports whether a picture is one of a table or a timeline instead of a trace.
func (o *Outputs) IsTable() bool { return o.has(ofTable | ofTimeline) }

// has reports whether a picture is one of a subject.
func (o *Outputs) has(of subject) bool {
	return slices.ContainsFunc(o.Plots.Files, func(f PlotFile) bool {
		return f.Kind != "" && kindOf(f.Kind, of) != nil
	})
}

// WriteTable writes the pictures of a table or a timeline.
func (o *Outputs) WriteTable(in io.Reader) error {
	read := Table
	if o.of == ofTimeline {
		read = func(in io.Reader) (*Report, error) { return TimelineFile(in, uint64(o.Plots.MinBytes)) }
	}
	r, err := read(in)
	if err != nil {
		return err
	}
	return o.write(r)
}

// WantsLoad reports whether a picture of a trace shows its matrix.
func (o *Outputs) WantsLoad() bool { return o.Plots.wants(ofTrace)&Traffic != 0 }

// AreMatrices reports whether there are pictures, and all may be of node matrices.
func (o *Outputs) AreMatrices() bool {
	other := func(f PlotFile) bool { return f.Kind != "matrix" }
	return o.Page == "" && len(o.Plots.Files) > 0 && !slices.ContainsFunc(o.Plots.Files, other)
}

// Names returns the names of the files.
func (o *Outputs) Names() (names []string) {
	for _, name := range []string{o.Page, o.Plots.Data} {
		if name != "" {
			names = append(names, name)
		}
	}
	for _, f := range o.Plots.Files {
		names = append(names, f.Name)
	}
	return names
}

// Wants reports whether the page or a picture needs a feature of a run.
func (o *Outputs) Wants(f Feature) bool {
	return o.of == ofRun && (o.Page != "" || o.Plots.wants(o.of)&f != 0)
}

// WriteFit writes the pictures of a fit, whose JSON document write writes.
func (o *Outputs) WriteFit(write func(w io.Writer) error) error {
	if !o.Any() {
		return nil
	}
	var document bytes.Buffer
	if err := write(&document); err != nil {
		return err
	}
	return o.write(&Report{document: document.Bytes(), of: ofFit})
}

// Write writes the page and the pictures of the result of a run or of a trace, whose JSON document write writes. It
// returns nil without any.
func (o *Outputs) Write(write func(w io.Writer) error) (*Report, error) {
	if !o.Any() {
		return nil, nil
	}
	var document bytes.Buffer
	if err := write(&document); err != nil {
		return nil, err
	}
	var t *Timeline
	if o.Timeline != nil {
		t = o.Timeline()
	}
	read := Trace
	if o.of != ofTrace {
		read = func(text []byte) (*Report, error) { return simulation(text, o.Numbers, t) }
	}
	r, err := read(document.Bytes())
	if err != nil {
		return nil, err
	}
	return r, o.write(r)
}

// WriteKept writes the page and the pictures of kept results: of one run, of the points of one sweep, or of several
// runs side by side.
func (o *Outputs) WriteKept(all []Kept) error {
	var documents [][]byte
	for _, k := range all {
		list, err := split(k.Document)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		if documents = append(documents, list...); len(all) > 1 && len(list) != 1 {
			return fmt.Errorf("%s: expected one result to compare with others, found %d", k.Name, len(list))
		}
	}
	if o.of = ofRun; len(all) > 1 {
		o.of = ofSeveral
	} else if len(documents) > 1 {
		o.of = ofSweep
	}
	if len(all) == 1 && isLoad(documents[0]) {
		o.of = ofLoad
	}
	if err := o.Plots.check(o.of, "", nil); err != nil {
		return err
	}
	switch o.of {
	case ofSweep, ofLoad:
		for _, document := range documents {
			if err := o.sweep.Add(document); err != nil {
				return err
			}
		}
		return o.WritePoints()
	case ofSeveral:
		r, err := Compare(all)
		if err != nil {
			return err
		}
		return o.write(r)
	}
	r, err := Simulation(documents[0])
	if err != nil {
		return err
	}
	return o.write(r)
}

// isLoad reports whether a result is that of synthetic traffic.
func isLoad(document []byte) bool {
	root, err := decode(document)
	return err == nil && root.get("traffic", "load").known
}

// split returns the JSON documents of a text.
func split(text []byte) (all [][]byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		var one json.RawMessage
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("reading results: %w", err)
		}
		all = append(all, one)
	}
	return all, nil
}

// AddPoint adds a point of a sweep or load curve. write writes its JSON document.
func (o *Outputs) AddPoint(write func(w io.Writer) error) error {
	if !o.Any() {
		return nil
	}
	var document bytes.Buffer
	if err := write(&document); err != nil {
		return err
	}
	return o.sweep.Add(document.Bytes())
}

// WritePoints writes the page and the pictures of all points.
func (o *Outputs) WritePoints() error {
	if !o.Any() {
		return nil
	}
	r, err := o.sweep.Report()
	if err != nil {
		return err
	}
	r.of = o.of
	return o.write(r)
}

// write writes the page, the pictures and their numbers.
func (o *Outputs) write(r *Report) error {
	if o.Page != "" {
		if err := o.file(o.Page, r.WriteHTML); err != nil {
			return err
		}
	}
	var data *PlotData
	if o.Plots.Data != "" {
		data = new(PlotData)
	}
	for _, f := range o.Plots.Files {
		if err := o.file(f.Name, func(w io.Writer) error { return r.Plot(w, f, &o.Plots, data) }); err != nil {
			return err
		}
	}
	if data == nil {
		return nil
	}
	return o.file(o.Plots.Data, data.WriteCSV)
}

func (o *Outputs) file(name string, write func(w io.Writer) error) error {
	out, err := o.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out); err != nil {
		return err
	}
	return out.Commit()
}
