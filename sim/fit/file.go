package fit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// File is a parameter file: what --fit estimates and --params reads.
type File struct {
	Backend    string               `json:"backend"`
	Model      string               `json:"model"`
	Topology   string               `json:"topology,omitempty"` // network, as --topology or --network names it
	Parameters map[string]Parameter `json:"parameters"`
	Segments   []FileSegment        `json:"segments"` // ascending, the first from 0
	Choices    []Choice             `json:"collectives,omitempty"`
	Collective string               `json:"collective,omitempty"` // the choices as a value of --collective
	Sources    []Source             `json:"sources,omitempty"`
	Residuals  []Residual           `json:"residuals,omitempty"`
	Remarks    []string             `json:"remarks,omitempty"` // what the tables do not determine
	Seed       uint64               `json:"seed"`              // of the bootstrap
	Version    string               `json:"version,omitempty"`

	curves []*curve // of an estimate
}

// Parameter is an estimate with its 95 % interval.
type Parameter struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Unit  string  `json:"unit"` // s, s/B, B/s, B or 1 (a factor or number)
}

// UnmarshalJSON reads a parameter. A value must be given: 0 would be another machine. Without an interval, it is the
// value.
func (p *Parameter) UnmarshalJSON(data []byte) error {
	var read struct {
		Value *float64 `json:"value"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
		Unit  string   `json:"unit"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil {
		return err
	}
	if read.Value == nil {
		return errors.New(`expected a parameter with "value", found none`)
	}
	*p = exactly(*read.Value, read.Unit)
	if read.Low != nil {
		p.Low = *read.Low
	}
	if read.High != nil {
		p.High = *read.High
	}
	return nil
}

// FileSegment has the parameters of messages from From bytes to below To bytes; To 0: no end.
type FileSegment struct {
	From       int64                `json:"from"`
	To         int64                `json:"to,omitempty"`
	Parameters map[string]Parameter `json:"parameters"`
}

// Source is a table that an estimate used.
type Source struct {
	Name   string `json:"name"`
	Tool   string `json:"tool"`
	SHA256 string `json:"sha256"`
}

// Residual has the relative errors of the ping-pongs of a table, or of another test.
type Residual struct {
	Table   string  `json:"table,omitempty"`
	Test    string  `json:"test,omitempty"` // of several messages at once, all tables; empty: ping-pong
	Points  int     `json:"points"`
	Mean    float64 `json:"mean"`
	Largest float64 `json:"largest"`
}

// Choice is the algorithm of a collective that predicts measured times best, for a range of sizes.
type Choice struct {
	Collective    string  `json:"collective"`
	Ranks         int     `json:"ranks"`
	From          int64   `json:"from"` // smallest and largest measured size in bytes, as the table counts them
	To            int64   `json:"to"`
	Algorithm     string  `json:"algorithm"`
	Error         float64 `json:"error"` // relative, the largest of the range
	RunnerUp      string  `json:"runner_up,omitempty"`
	RunnerUpError float64 `json:"runner_up_error,omitempty"`
	None          bool    `json:"none,omitempty"` // the error is too large for the measured algorithm
}

// add adds the tables as sources.
func (f *File) add(tables []*Table) {
	f.Parameters = map[string]Parameter{}
	for _, t := range tables {
		f.Sources = append(f.Sources, Source{Name: t.Name, Tool: t.Tool, SHA256: t.SHA256})
		for _, text := range t.remarks {
			f.Remark("%s: %s", t.Name, text)
		}
	}
}

// Names returns the names of the parameters of all sizes in alphabetical order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Parameters)) }

func (f *File) set(name string, p Parameter) { f.Parameters[name] = p }
func (f *File) unset(name string)            { delete(f.Parameters, name) }

// Remark adds a remark about what the tables do not determine.
func (f *File) Remark(text string, args ...any) {
	f.Remarks = append(f.Remarks, fmt.Sprintf(text, args...))
}

// missed is the error from which predictions with a file need a warning.
const missed = 0.02

// Misses describes the measured times that the parameters miss by more than 2 %, by test; "" if there are none.
func (f *File) Misses() string {
	var tests []string
	errs := map[string]float64{}
	for _, r := range f.Residuals {
		test := cmp.Or(r.Test, PingPong)
		if r.Largest <= missed {
			continue
		}
		if _, is := errs[test]; !is {
			tests = append(tests, test)
		}
		errs[test] = max(errs[test], r.Largest)
	}
	if len(tests) == 0 {
		return ""
	}
	largest := 0.0
	for i, test := range tests {
		largest = max(largest, errs[test])
		tests[i] = fmt.Sprintf("%s by up to %s%%", test, twoDigits(100*errs[test]))
	}
	return fmt.Sprintf("the parameters miss measured times: %s; predicted times of such messages are off by up to %s%%",
		strings.Join(tests, ", "), twoDigits(100*largest))
}

// Write writes the file as JSON.
func (f *File) Write(w io.Writer) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// Limits of a parameter file.
const (
	maxFile         = 1 << 20 // bytes
	maxFileSegments = 1000
)

// ReadFile reads the parameter file with a name. Errors name the file.
func ReadFile(name string) (*File, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%s: expected a file, which can be read several times, found a pipe or device; write "+
			"the parameters to a file first", name)
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	f, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Parse parses a parameter file. Unknown members are errors, as is a value that is negative or no number. The error
// does not name the file.
func Parse(data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("expected a parameter file of at most %d bytes, found more", maxFile)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	f := new(File)
	switch err := d.Decode(f); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("expected a parameter file as --fit writes it, found an empty file")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("expected a parameter file as --fit writes it, found only the beginning of one")
	case err != nil:
		return nil, fmt.Errorf("expected a parameter file as --fit writes it: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one JSON object, found more behind it")
	}
	if len(f.Segments) > maxFileSegments {
		return nil, fmt.Errorf("expected at most %d segments, found %d", maxFileSegments, len(f.Segments))
	}
	if err := check(f.Parameters); err != nil {
		return nil, err
	}
	next := int64(0)
	for i, s := range f.Segments {
		if i > 0 && next == 0 || s.From != next || s.To != 0 && s.To <= s.From {
			return nil, fmt.Errorf("segment %d: expected ranges of sizes that begin at 0 and follow each other, found "+
				"from %d to %d", i+1, s.From, s.To)
		}
		if err := check(s.Parameters); err != nil {
			return nil, fmt.Errorf("segment %d: %w", i+1, err)
		}
		next = s.To
	}
	if next != 0 {
		return nil, fmt.Errorf("the last segment ends at %d bytes, expected no end", next)
	}
	return f, nil
}

// Setting is an option of a backend that has the value of a parameter of all sizes, times a scale.
type Setting struct {
	Parameter, Option, Unit string
	Scale                   float64
}

// Apply calls set with each option that the file has a parameter for, and its text, in the order of the settings. It
// returns an error about a file of another backend, or with segments of size, an unknown parameter, or a value with
// another unit or above 10^15.
func (f *File) Apply(backend string, settings []Setting, set func(option, text string) error) error {
	const most = 1e15
	if f.Backend != backend {
		return fmt.Errorf("expected parameters of backend %s, found backend %q", backend, f.Backend)
	}
	if len(f.Segments) > 0 {
		return fmt.Errorf("expected parameters for all sizes, as backend %s has them, found segments of size", backend)
	}
	known := 0
	for _, s := range settings {
		p, is := f.Parameters[s.Parameter]
		if !is {
			continue
		}
		known++
		v := p.Value * s.Scale
		switch {
		case p.Unit != s.Unit:
			return fmt.Errorf("%s is %g %s, expected the unit %s", s.Parameter, p.Value, p.Unit, s.Unit)
		case v > most:
			return fmt.Errorf("%s is %g %s, expected at most %g", s.Parameter, p.Value, p.Unit, most/s.Scale)
		case p.Unit == "B":
			v = math.Round(v)
		case p.Unit == "s":
			v = math.Round(v*1e3) / 1e3
		}
		if err := set(s.Option, strconv.FormatFloat(v, 'f', -1, 64)); err != nil {
			return fmt.Errorf("%s: %w", s.Parameter, err)
		}
	}
	if known < len(f.Parameters) {
		var names []string
		for _, s := range settings {
			names = append(names, s.Parameter)
		}
		return fmt.Errorf("unknown parameter among %s, expected %s", strings.Join(f.Names(), ", "),
			strings.Join(names, ", "))
	}
	return nil
}

// Beside returns the name of the file's network: if there is no file of that name, one beside the parameter file.
func (f *File) Beside(name string) string {
	if _, err := os.Stat(f.Topology); err == nil || f.Topology == "" || filepath.IsAbs(f.Topology) {
		return f.Topology
	}
	beside := filepath.Join(filepath.Dir(name), f.Topology)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside
	}
	return f.Topology
}

// On reports whether name is the network of the file: the same text or, from any folder, a file of the same name.
func (f *File) On(name string) bool {
	return f.Topology == name || !strings.ContainsAny(f.Topology+name, ":@") && // descriptions, such as fattree:k=4
		filepath.Base(f.Topology) == filepath.Base(name)
}

// OtherNetwork returns a warning if the parameters of a file multiply those of another network than the file's, or "".
// The file may be nil.
func (f *File) OtherNetwork(name string) string {
	if f == nil || f.On(name) {
		return ""
	}
	return fmt.Sprintf("the parameters were estimated with the network %s, not %s: their factors multiply latencies "+
		"and rates of links", f.Topology, name)
}

// From makes the name of the file's network, if it is that of a file, one from the folder of the parameter file.
func (f *File) From(folder string) {
	if info, err := os.Stat(f.Topology); err != nil || !info.Mode().IsRegular() || filepath.IsAbs(f.Topology) {
		return
	}
	from, err := filepath.Abs(folder)
	if err != nil {
		return
	}
	at, err := filepath.Abs(f.Topology)
	if err != nil {
		return
	}
	if name, err := filepath.Rel(from, at); err == nil {
		f.Topology = filepath.ToSlash(name)
	}
}

func check(parameters map[string]Parameter) error {
	for name, p := range parameters {
		if !(p.Value >= 0) || math.IsInf(p.Value, 0) {
			return fmt.Errorf("%s: expected a value of at least 0, found %g", name, p.Value)
		}
		switch p.Unit {
		case "s", "s/B", "B/s", "B", "1":
		default:
			return fmt.Errorf("%s: expected the unit s, s/B, B/s, B or 1, found %q", name, p.Unit)
		}
	}
	return nil
}
