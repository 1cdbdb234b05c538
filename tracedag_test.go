package tracedag

import (
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
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
	} {
		if status := Main([]string{"mytools", "tracecat", "--version"}, e); status != cli.ExitUsage {
			t.Errorf("%s: status %d", name, status)
		}
	}
}
