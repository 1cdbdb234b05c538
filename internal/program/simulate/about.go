package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/sim"
)

// about is the section "run" of a result: what ran. It has no times, hosts or folders of the program, so equal runs
// have equal results.
type about struct {
	Program  string            `json:"program"`
	Version  string            `json:"version"`
	Commit   string            `json:"commit,omitempty"` // of the source; "+dirty" after it: with changes
	Command  []string          `json:"command"`
	Seed     int64             `json:"seed"`
	Trace    *aboutTrace       `json:"trace,omitempty"` // nil for synthetic traffic
	Topology *sim.Topology     `json:"topology,omitempty"`
	Settings map[string]any    `json:"settings"` // flags on the command line that are not output, by name
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
	Ranks  int         `json:"ranks"`
	Ops    int64       `json:"ops"` // after the lowering of collectives
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
		Settings: r.settings(), Warnings: r.warnings.list(),
	}
	var err error
	if a.Seed, err = r.o.flags.GetInt64("seed"); err != nil || l == nil {
		return a, err
	}
	inputs, err := l.inputs()
	if err != nil {
		return nil, err
	}
	a.Trace = &aboutTrace{Name: l.name, Title: l.title, Format: l.format, Ranks: l.ranks, Ops: l.ops}
	if len(inputs) == 1 {
		a.Trace.SHA256 = inputs[0].SHA256
	} else {
		a.Trace.SHA256, a.Trace.Inputs = digestOf(inputs), inputs
	}
	return a, nil
}

// describe returns the description of the run with a result, which may be nil if the run failed. Warnings are those up
// to now or, in a sweep, whose points run in any order, those before the first point.
func (r *run) describe(result *sim.Result) *about {
	a := *r.about
	if r.grid == nil {
		a.Warnings = r.warnings.list()
	}
	if result != nil {
		a.Topology, a.Units = result.Topology, result.Units()
		if described := result.Section("run"); described != nil {
			described.Value = &a
		} else {
			result.Add(sim.Section{Key: "run", Value: &a, At: sim.First})
		}
		result.Timing = r.o.timing
	}
	return &a
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

// output is the heading of flags that do not change results.
const output = "Output"

// settings returns the flags on the command line that may change results, with their texts: a text, or a list of them
// for flags that were repeated.
func (r *run) settings() map[string]any {
	all := make(map[string]any)
	r.o.flags.Visit(func(f *pflag.Flag) {
		silent := []string{"backend", "seed", "sweep", "threads", "alone", "compare", "quiet", "verbose", "max-memory"}
		own := r.backend.Params().Find(f.Name)
		if manual.InSection(f, output) || own != nil && own.Heading == output || slices.Contains(silent, f.Name) {
			return
		}
		if texts := cli.FlagTexts(f); len(texts) == 1 {
			all[f.Name] = texts[0]
		} else {
			all[f.Name] = texts
		}
	})
	return all
}
