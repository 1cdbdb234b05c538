package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/tables"
	"github.com/tracedag/tracedag/sim"
)

// about is the section "run" of a result: what ran. It has no times, hosts or folders of the program, so equal runs
// have equal results.
type about struct {
	Program  string            `json:"program"`
	Version  string            `json:"version"`
	Commit   string            `json:"commit,omitempty"` // of the source; "+dirty" after it: with changes
	Command  []string          `json:"command"`
	Point    string            `json:"point"`   // identity of the run with seed 0
	ID       string            `json:"id"`      // identity of the run; see tables.Identity
	Index    int               `json:"index"`   // place in the grid
	Replica  int               `json:"replica"` // number of earlier runs of the point
	Factors  map[string]string `json:"factors"` // values of the axes of the grid, but the seed
	Seed     int64             `json:"seed"`
	Trace    *aboutTrace       `json:"trace,omitempty"` // nil for synthetic traffic
	Topology *sim.Topology     `json:"topology,omitempty"`
	Settings map[string]string `json:"settings"` // options that differ from their default, by name
	Units    map[string]string `json:"units"`    // of numbers whose names do not end with their unit, by path
	Warnings []string          `json:"warnings"` // printed before the result, sorted
}

// aboutTrace describes the trace of a run.
type aboutTrace struct {
	Name   string `json:"name"`
	Title  string `json:"title,omitempty"`
	Format string `json:"format,omitempty"` // "" for jobs
	// SHA256 is that of the file. For a trace of several files, it is the SHA-256 of their digests in hexadecimal, each
	// followed by a line feed, in the order of Inputs.
	SHA256 string      `json:"sha256"`
	Inputs []dag.Input `json:"inputs,omitempty"` // the files, if there are several
	// Command made the trace, if its provenance is known.
	Command []string `json:"command,omitempty"`
	Ranks   int      `json:"ranks"`
	Ops     int64    `json:"ops"` // after the lowering of collectives
}

// warnings collects the warnings of a run, sorted, because parallel work prints them in any order. Its methods may be
// called concurrently.
type warnings struct {
	lock sync.Mutex
	all  []string
}

func (w *warnings) add(message string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if i, found := slices.BinarySearch(w.all, message); !found {
		w.all = slices.Insert(w.all, i, message)
	}
}

func (w *warnings) list() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return append([]string{}, w.all...)
}

// newAbout describes the runs of a loaded trace; nil for synthetic traffic.
func (r *run) newAbout(l *loaded) (*about, error) {
	record := r.p.Provenance(nil)
	a := &about{
		Program: record.Program, Version: record.Version, Commit: commit(), Command: record.Command,
		Factors: make(map[string]string), Warnings: r.warnings.list(),
	}
	var err error
	if a.Seed, err = r.o.flags.GetInt64("seed"); err != nil {
		return nil, err
	}
	if a.Settings, err = r.settings(); err != nil {
		return nil, err
	}
	if a.identify(r.kind.Name); l == nil {
		return a, nil
	}
	inputs, err := l.inputs()
	if err != nil {
		return nil, err
	}
	a.Trace = &aboutTrace{Name: l.name, Title: l.title, Format: l.format, Ranks: l.ranks, Ops: l.ops,
		Command: l.command}
	if len(inputs) == 1 {
		a.Trace.SHA256 = inputs[0].SHA256
	} else {
		a.Trace.SHA256, a.Trace.Inputs = digestOf(inputs), inputs
	}
	a.identify(r.kind.Name)
	return a, nil
}

// identify sets the identities.
func (a *about) identify(backend string) {
	trace := ""
	if a.Trace != nil {
		trace = a.Trace.SHA256
	}
	a.ID = tables.Identity(backend, a.Settings, a.Seed, trace)
	a.Point = tables.Identity(backend, a.Settings, 0, trace)
}

// describe completes the description of a run by its result, which may be nil if the run failed. Warnings are those up
// to now or, in a sweep, whose points run in any order, those before the first point.
func (r *run) describe(a *about, result *sim.Result) {
	if r.grid == nil {
		a.Warnings = r.warnings.list()
	}
	if result != nil {
		a.Topology, a.Units = result.Topology, result.Units()
		if described := result.Section("run"); described != nil {
			described.Value = a
		} else {
			result.Add(sim.Section{Key: "run", Value: a, At: sim.First})
		}
		result.Timing = r.o.timing
	}
}

// writeLine writes a JSON object as a line, with the description as its first member.
func (a *about) writeLine(w io.Writer, object any) error {
	described, err := sim.MarshalJSON(struct {
		Run *about `json:"run"`
	}{a})
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	members, err := sim.MarshalJSON(object)
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	line := append(described[:len(described)-1], ',')
	_, err = w.Write(append(append(line, members[1:]...), '\n'))
	return err
}

// commit returns the commit of the program's source, "" if the build does not know it.
func commit() (id string) {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	dirty := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			id = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "+dirty"
		}
	}
	return id + dirty
}

// digestOf returns the digest of several files.
func digestOf(inputs []dag.Input) string {
	sum := sha256.New()
	for _, in := range inputs {
		sum.Write([]byte(in.SHA256 + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
