// Package tracedag runs the programs of the suite with additional formats, generators and backends. A program that
// registers its own calls [Main]:
//
//	func main() {
//		os.Exit(tracedag.Main(os.Args, tracedag.Extensions{Formats: []format.Format{myFormat}}))
//	}
//
// The library is in the packages below: dag is the model, formats reads and writes files, dag/gen generates, dag/lower
// and dag/compose transform, sim simulates.
package tracedag

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/docs"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/program/simulate"
	"github.com/tracedag/tracedag/internal/program/tracecat"
	"github.com/tracedag/tracedag/internal/program/traceconv"
	"github.com/tracedag/tracedag/internal/program/tracegen"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// Extensions are formats, generators and backends that a program adds to those of this module. Their names must be new.
type Extensions struct {
	Formats    []format.Format // are probed before those of this module
	Generators []*generator.Generator
	Backends   []sim.Kind

	// Pages are reference pages in Markdown by names such as "formats/edges", "generators/token" or "backends/mine".
	// "PROGRAM --help NAME" prints them.
	Pages map[string]string
}

// programs are the programs of the suite by name.
var programs = []struct {
	name string
	make func(e *Extensions) func(*cli.Program) *cobra.Command
}{
	{"tracegen", func(e *Extensions) func(*cli.Program) *cobra.Command {
		return tracegen.New(slices.Concat(gen.All, e.Generators))
	}},
	{"traceconv", func(*Extensions) func(*cli.Program) *cobra.Command { return traceconv.New }},
	{"tracecat", func(*Extensions) func(*cli.Program) *cobra.Command { return tracecat.New }},
	{"simulate", func(e *Extensions) func(*cli.Program) *cobra.Command {
		return simulate.New(slices.Concat(backends.All, e.Backends),
			tracegen.New(slices.Concat(gen.All, e.Generators)))
	}},
}

// Main runs a program with extensions and returns its exit status: 0 for success, 1 for an invalid input, 2 for invalid
// usage, 3 for a loss with --strict. The name of the program is that of the executable file or link (args[0]), or else
// the first argument: "mytools simulate x.parquet".
func Main(args []string, e Extensions) int {
	if err := e.check(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(args[0]), err)
		return cli.ExitUsage
	}
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
		switch {
		case strings.TrimSuffix(filepath.Base(args[0]), ".exe") == p.name:
		case len(args) > 1 && args[1] == p.name:
			args = args[1:]
		default:
			continue
		}
		docs.Add(e.Pages)
		return cli.MainOf(args, p.make(&e), slices.Concat(format.List(e.Formats), formats.All))
	}
	fmt.Fprintf(os.Stderr, "%s: expected the name of a program as the first argument: %s\n", filepath.Base(args[0]),
		strings.Join(names, ", "))
	return cli.ExitUsage
}

// check returns an error if an extension has no name, or the name of another, or if a page belongs to no extension.
func (e *Extensions) check() error {
	seen := make(map[string]bool)
	claim := func(kind, name string) error {
		if name == "" || seen[kind+" "+name] {
			return fmt.Errorf("the name of the %s %q is empty or in use", kind, name)
		}
		seen[kind+" "+name] = true
		return nil
	}
	for _, f := range slices.Concat(formats.All, e.Formats) {
		if err := claim("format", f.Name); err != nil {
			return err
		}
	}
	for _, g := range slices.Concat(gen.All, e.Generators) {
		if err := claim("generator", g.Name); err != nil {
			return err
		}
	}
	for _, b := range slices.Concat(backends.All, e.Backends) {
		if err := claim("backend", b.Name); err != nil {
			return err
		}
	}
	for page := range e.Pages {
		kind, name, _ := strings.Cut(page, "s/")
		if !seen[kind+" "+name] || docs.Page(page) != "" {
			return fmt.Errorf("reference page %q: expected formats/NAME, generators/NAME or backends/NAME of an "+
				"extension",
				page)
		}
	}
	return nil
}
