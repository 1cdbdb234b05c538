package tracedag

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/origin"
)

// flagsOf returns the flags of a program and its commands by name.
func flagsOf(t *testing.T, newCommand func(*cli.Program) *cobra.Command) map[string]*pflag.Flag {
	t.Helper()
	var root *cobra.Command
	got := clitest.Run(func(p *cli.Program) *cobra.Command {
		root = newCommand(p)
		return root
	}, "--help")
	if got.Status != cli.ExitOK {
		t.Fatal(got)
	}
	flags := make(map[string]*pflag.Flag)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if other := flags[f.Name]; other != nil && origin.Shapes(f) != origin.Shapes(other) {
					t.Errorf("%s: only one of two flags --%s shapes a trace", cmd.CommandPath(), f.Name)
				}
				flags[f.Name] = f
			})
		}
		for _, sub := range cmd.Commands() {
			if sub.Name() != "completion" {
				visit(sub)
			}
		}
	}
	visit(root)
	return flags
}

// TestFlagsOfTraces checks which flags of all programs do not shape traces, so that a new flag cannot be forgotten, and
// that Normalize knows the flags of programs that write traces.
func TestFlagsOfTraces(t *testing.T) {
	common := "max-memory quiet verbose"
	want := map[string]string{
		"tracegen": common + " approx lowered no-sync output record-paths report strict to",
		"traceconv": common + " approx dry-run jobs lowered no-sync output record-paths report shard shard-base shards " +
			"skip-existing strict to" +
			" all-or-nothing bump citation creator croissant date description exclude frictionless include kaggle " +
			"keyword" +
			" license meta meta-template name no-wait partition publish remove replace rescale-report set-version tag url",
		"tracecat": common,
		"simulate": common + " flows jobs lowered ports samples shard shard-base shards",
	}
	never := []string{"help", "version"} // flags that write no trace
	for _, p := range programs {
		flags := flagsOf(t, p.make(&Extensions{}))
		var aside []string
		for _, name := range slices.Sorted(maps.Keys(flags)) {
			if !origin.Shapes(flags[name]) {
				aside = append(aside, name)
			}
		}
		expected := strings.Fields(want[p.name])
		if slices.Sort(expected); !slices.Equal(aside, expected) {
			t.Errorf("%s: %q do not shape a trace, expected %q", p.name, aside, expected)
		}
		if !strings.HasPrefix(p.name, "trace") || p.name == "tracecat" {
			continue
		}
		for name, f := range flags {
			if slices.Contains(never, name) {
				continue
			}
			flag, kept := "--"+name+"=v", []string{"--" + name, "v"}
			if f.NoOptDefVal != "" {
				flag, kept = "--"+name, kept[:1]
			}
			if !origin.Shapes(f) {
				kept = nil
			}
			inputs := []dag.Input{{Name: "w"}}
			expected := append(append([]string{p.name}, kept...), "w")
			if p.name == "tracegen" {
				inputs, expected = nil, append([]string{p.name, "w"}, kept...)
			}
			if name == "job" || name == "plan" {
				inputs = nil
			}
			command := []string{p.name, flag, "w"}
			if p.name == "traceconv" && f.NoOptDefVal != "" {
				command[2] = "x" // another name of the input w, and no value of the flag
			}
			step := origin.Normalize(dag.Provenance{Program: p.name, Command: command, Inputs: inputs})
			if !slices.Equal(step.Command, expected) {
				t.Errorf("%q: Normalize returns %q, expected %q", command, step.Command, expected)
			}
		}
	}
}
