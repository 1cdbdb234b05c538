// This file records the provenance of traces.

package cli

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/origin"
)

// version is set by the linker (-X) in releases.
var version string

// buildVersion returns the version of the running program: that of the linker, else that of the module in the build
// information, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Name returns the name of the program, such as "simulate".
func (p *Program) Name() string { return p.name }

// CommandLine returns the arguments as given, preceded by the base name of the program.
func (p *Program) CommandLine() []string {
	return append([]string{strings.TrimSuffix(filepath.Base(p.Args[0]), ".exe")}, p.Args[1:]...)
}

// Aside marks flags that do not shape the traces that a program writes.
func Aside(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		origin.Mark(flags.Lookup(name), false)
	}
}

// Made describes how a trace was made.
type Made struct {
	Words  []string    // arguments before the flags, such as the name of a generator
	Seed   *int64      // of random choices; nil: there were none
	Inputs []dag.Input // as Program.Named returns them
	Files  []string    // arguments after the flags
	From   *OpenTrace  // the only trace read; nil: none, or several
}

// Provenance returns the entry of this program for a trace that it writes, which depends on the trace alone; see
// package origin.
func (p *Program) Provenance(m Made, f *WriteFlags) dag.Provenance {
	line := origin.Command{
		Program: p.name, Words: m.Words, Flags: f.flags, Inputs: m.Files, Paths: p.recordsPaths,
		Foreign: func(flag *pflag.Flag) bool { return m.From.foreign(flag, f) },
	}
	return dag.Provenance{Program: p.name, Version: p.Version, Command: line.Line(), Seed: m.Seed, Inputs: m.Inputs}
}

// Named returns the inputs of one trace by the names of its provenance.
func (p *Program) Named(inputs ...dag.Input) []dag.Input {
	if p.recordsPaths {
		return inputs
	}
	return origin.Names(inputs)
}

// RecordsOrigin reports whether the program writes traces with provenance.
func (p *Program) RecordsOrigin() bool { return p.recordsOrigin }

// FileInput returns the name and digest of a file that an option names, for the provenance. It has no result if the
// program records none, and for an input that can be read only once.
func (p *Program) FileInput(name string) ([]dag.Input, error) {
	if info, err := os.Stat(name); !p.recordsOrigin || err != nil || !info.Mode().IsRegular() {
		return nil, nil // whoever needs the file reports that it is missing
	}
	in, err := p.Open(name, true)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	digest, err := in.Digest()
	return p.Named(digest), err
}

// foreign reports whether a flag is an option of other formats than those of the trace and of the output, so that it
// does not shape the trace.
func (t *OpenTrace) foreign(flag *pflag.Flag, to *WriteFlags) bool {
	if t == nil || t.flags == nil {
		return false
	}
	owners := slices.Concat(t.flags.options.Owners(flag.Name), to.formats.options.Owners(flag.Name))
	if c, ok := flag.Value.(*collected); !ok || len(owners) == 0 ||
		c.of != t.flags.options && c.of != to.formats.options {
		return false
	}
	return t.Format.Options == nil || !slices.Contains(owners, t.Format.Options.Name)
}
