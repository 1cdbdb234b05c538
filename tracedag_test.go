package tracedag

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/docs"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/program/traceconv"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
)

func TestMainRunsEveryProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.goal")
	for _, args := range [][]string{
		{"mytools", "tracegen", "-q", "pattern", "ring", "--ranks", "4", "-o", path},
		{"/usr/bin/traceconv", "-q", path, "-o", path + ".parquet"},
		{"mytools", "tracecat", "--check", path},
		{"simulate.exe", "-q", "--backend", "ideal", "--json", path},
	} {
		if status := Main(args, Extensions{}); status != cli.ExitOK {
			t.Errorf("%q: status %d", args, status)
		}
	}
	for _, args := range [][]string{{"mytools"}, {"mytools", "nothing"}} {
		if status := Main(args, Extensions{}); status != cli.ExitUsage {
			t.Errorf("%q: status %d", args, status)
		}
	}
}

func TestMainRefusesNamesTwice(t *testing.T) {
	for name, e := range map[string]Extensions{
		"format":    {Formats: []format.Format{{Name: "goal"}}},
		"no name":   {Formats: []format.Format{{}}},
		"generator": {Generators: []*generator.Generator{{Name: "new"}, {Name: "new"}}},
		"backend":   {Backends: []sim.Kind{{Name: "packet"}}},
		"page":      {Pages: map[string]string{"formats/new": "# new"}},
		"page twice": {
			Formats: []format.Format{{Name: "new"}}, Pages: map[string]string{"formats/goal": "# goal"},
		},
	} {
		if status := Main([]string{"mytools", "tracecat", "--version"}, e); status != cli.ExitUsage {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

// TestPagesOfExtensions checks that --help prints the reference page of an extension.
func TestPagesOfExtensions(t *testing.T) {
	e := Extensions{
		Formats: []format.Format{{Name: "edges", Title: "messages", Read: readNothing}},
		Pages:   map[string]string{"formats/edges": "# edges\n\nMessages, one per line.\n\n## Source\n\nNone.\n"},
	}
	if err := e.check(); err != nil {
		t.Fatal(err)
	}
	docs.Add(e.Pages)
	defer docs.Add(nil)
	s := clitest.Session{Formats: slices.Concat(format.List(e.Formats), formats.All)}
	got := s.Run(traceconv.New, "--help", "edges")
	if want := "edges\n\nMessages, one per line.\n\nSOURCE\n\nNone.\n"; got.Status != cli.ExitOK || got.Stdout != want {
		t.Errorf("exit status %d, stdout %q, expected %q", got.Status, got.Stdout, want)
	}
}

func readNothing([]*format.Input, format.ReadOptions) (*dag.Trace, error) { return new(dag.Trace), nil }
