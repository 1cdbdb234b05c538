// Package provenance describes what ran in the results of simulations: trace, network, options, and the identity of the
// run.
package provenance

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/internal/tables"
	"github.com/tracedag/tracedag/sim"
)

// Run is the section "run" of a result: what ran. It has no times, hosts or folders of the program, so equal runs
// have equal results.
type Run struct {
	Study    string            `json:"study,omitempty"` // name of the study; "" outside of one
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
	Trace    *Trace            `json:"trace,omitempty"` // nil for synthetic traffic
	Topology *sim.Topology     `json:"topology,omitempty"`
	Settings map[string]string `json:"settings"` // options that differ from their default, by name
	Units    map[string]string `json:"units"`    // of numbers whose names do not end with their unit, by path
	Warnings []string          `json:"warnings"` // printed before the result, sorted

	backend string
}

// Trace describes the trace of a run.
type Trace struct {
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

// Warnings collects the warnings of a run, sorted, because parallel work prints them in any order. Its methods may be
// called concurrently.
type Warnings struct {
	lock sync.Mutex
	all  []string
}

// Add adds a warning, unless it has it already. It reports whether the warning is new.
func (w *Warnings) Add(message string) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	i, found := slices.BinarySearch(w.all, message)
	if !found {
		w.all = slices.Insert(w.all, i, message)
	}
	return !found
}

// List returns the warnings so far.
func (w *Warnings) List() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return append([]string{}, w.all...)
}

// Command is a command line that runs simulations.
type Command struct {
	Program *cli.Program
	Flags   *pflag.FlagSet
	Options *cli.Options // the flags of backends among Flags
	Kind    *sim.Kind    // the backend
}

// Describe describes the runs of a trace, or of synthetic traffic if trace is nil. inputs are the files of the trace.
func (c *Command) Describe(trace *Trace, inputs []dag.Input) (*Run, error) {
	r := &Run{
		Program: c.Program.Name(), Version: c.Program.Version, Commit: commit(), Command: c.Program.CommandLine(),
		Trace:   trace,
		Factors: make(map[string]string), Units: make(map[string]string), Warnings: []string{},
	}
	var err error
	if r.Seed, err = c.Flags.GetInt64("seed"); err != nil {
		return nil, err
	}
	if r.Settings, err = c.settings(); err != nil {
		return nil, err
	}
	switch {
	case trace == nil:
	case len(inputs) > 0:
		if trace.SHA256 = origin.Digest(inputs); len(inputs) > 1 {
			trace.Inputs = inputs
		}
	}
	r.identify(c.Kind.FullName())
	return r, nil
}

// Complete takes over the trace and the warnings of the description of a run with the trace as read, and sets the
// identities.
func (r *Run) Complete(base *Run) {
	r.Trace, r.Warnings = base.Trace, base.Warnings
	r.identify(r.backend)
}

// identify sets the identities.
func (r *Run) identify(backend string) {
	r.backend = backend
	trace := ""
	if r.Trace != nil {
		trace = r.Trace.SHA256
	}
	r.ID = tables.Identity(backend, r.Settings, r.Seed, trace)
	r.Point = tables.Identity(backend, r.Settings, 0, trace)
}

// AddTo adds the description to a result as its first member, completed by the network of the result and the units of
// its numbers. timing adds wall-clock figures to its JSON. Further calls replace the description. A run that failed may
// have no result, nil.
func (r *Run) AddTo(result *sim.Result, timing bool) {
	if result == nil {
		return
	}
	result.Timing = timing
	r.Topology, r.Units = result.Topology, result.Units()
	var rows []sim.Row // lines of the summary
	if r.Seed != 1 {
		rows = append(rows, sim.Rowf("seed", "%d", r.Seed))
	}
	if described := result.Section("run"); described != nil {
		described.Value = r
		return
	}
	result.Add(sim.Section{Key: "run", Value: r, At: sim.First, Rows: rows, RowsAfter: "trace"})
}

// WriteLine writes a JSON object as a line, with the description as its first member.
func (r *Run) WriteLine(w io.Writer, object any) error {
	described, err := sim.MarshalJSON(struct {
		Run *Run `json:"run"`
	}{r})
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

// MadeBy returns the command that made a trace, nil if unknown.
func MadeBy(meta dag.Meta) []string {
	if n := len(meta.Provenance); n > 0 {
		return meta.Provenance[n-1].Command
	}
	return nil
}
