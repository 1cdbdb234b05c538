// Package jobs declares the flags of programs that compose traces or run several traces as jobs, and reads plans from
// flags and files. docs/reference/compose.md describes both.
package jobs

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/internal/cli"
)

// Flags are the flags of a program that runs several traces as concurrent jobs.
type Flags struct {
	ShareNIC *bool // whether the ranks on a node share its NICs; nil: if these are of several jobs

	plan     string
	traces   words
	mappings []string
	nodes    int
	cores    int
	flags    *pflag.FlagSet
}

// words is a repeatable flag. Flags with different names may share it.
type words []string

func (w *words) String() string { return strings.Join(*w, " ") }
func (w *words) Type() string   { return "string" }

func (w *words) Set(text string) error {
	*w = append(*w, text)
	return nil
}

// Register adds the flags to the command, which must have a flag called seed.
func (f *Flags) Register(cmd *cobra.Command) {
	f.flags = cmd.Flags()
	registerPlanFile(f.flags, &f.plan)
	f.flags.Var(&f.traces, "trace",
		"another trace, `FILE[@START][,KEY=VALUE...]`: a job that starts at START, such as 5ms; "+
			"keys as in a plan; repeatable")
	f.flags.Var(&f.traces, "job", "same as --trace, for a `trace`")
	f.flags.StringArrayVar(&f.mappings, "mapping", nil,
		"placement `policy` of all jobs, or once per job: "+compose.Policies+" with a node per line")
	cli.CompleteWith(cmd, "mapping", placements)
	f.flags.IntVar(&f.nodes, "nodes", 0, "number of nodes (default: as needed)")
	f.flags.IntVar(&f.cores, "cores-per-node", 1, "largest number of ranks per node")
	f.flags.Func("nodes-share-nic", "share the NICs of a node among its ranks: `WHEN` auto (if these are of several "+
		"jobs), true or false (default auto)", func(text string) error {
		if f.ShareNIC = nil; text == "auto" {
			return nil
		}
		share, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("expected auto, true or false")
		}
		f.ShareNIC = &share
		return nil
	})
	f.flags.BoolFunc("share-nic", "share the NICs of a node among its ranks; =false gives each rank its own "+
		"(default: share among jobs)", func(text string) error {
		share, err := strconv.ParseBool(text)
		f.ShareNIC = &share
		return err
	})
}

// Jobs are traces to merge as jobs of one trace.
type Jobs struct{ *Plan }

// Jobs returns the jobs that the flags select. The first job is the trace in the argument, which starts at 0. Without
// argument, --trace and --plan, it is standard input.
func (f *Flags) Jobs(p *cli.Program, args []string) (*Jobs, error) {
	if f.plan != "" {
		if len(args)+len(f.traces)+len(f.mappings) > 0 || f.places() {
			return nil, errPlanBeside
		}
		plan, err := readPlan(p, f.plan, f.flags)
		return &Jobs{plan}, err
	}
	jobs, err := jobSettings(p, args, "--trace", f.traces)
	if err != nil {
		return nil, err
	}
	if err := f.checkCount("nodes", f.nodes); err != nil {
		return nil, err
	}
	if err := f.checkCount("cores-per-node", f.cores); err != nil {
		return nil, err
	}
	mappings, err := f.parseMappings(len(jobs))
	if err != nil {
		return nil, err
	}
	var settings []compose.Setting
	if f.nodes > 0 {
		settings = append(settings, compose.Setting{Key: "nodes", Value: strconv.Itoa(f.nodes)})
	}
	if mappings != nil {
		settings = append(settings, compose.Setting{Key: "cores-per-node", Value: strconv.Itoa(f.cores)},
			compose.Setting{Key: "one-rank-per-node", Value: "false"})
	}
	for _, name := range nodeFlagNames {
		if flag := f.flags.Lookup(name); flag != nil && flag.Changed {
			settings = append(settings, compose.Setting{Key: name, Value: flag.Value.String()})
		}
	}
	plan, err := compose.NewPlan(settings, jobs)
	if err != nil {
		return nil, cli.FlagError(err)
	}
	for i := range mappings {
		if j := &plan.Jobs[i]; j.Nodes == nil && j.Placement == nil {
			j.Placement = &mappings[i]
		}
	}
	seeded, err := seeded(&Plan{Plan: plan}, f.flags)
	return &Jobs{seeded}, err
}

// places reports whether the flags set the number of nodes or of cores.
func (f *Flags) places() bool {
	return f.flags.Changed("nodes") || f.flags.Changed("cores-per-node")
}

func (f *Flags) checkCount(flag string, n int) error {
	if f.flags.Changed(flag) && (n < 1 || n > math.MaxInt32) {
		return cli.Usagef("--%s: expected 1 to %d, found %d", flag, math.MaxInt32, n)
	}
	return nil
}

// parseMappings returns one placement per job, or nil.
func (f *Flags) parseMappings(jobs int) ([]compose.Placement, error) {
	texts := f.mappings
	if len(texts) == 0 && f.places() {
		texts = []string{"packed"}
	}
	if len(texts) > 1 && len(texts) != jobs {
		return nil, cli.Usagef("--mapping: expected 1 policy, or 1 per job (%d), found %d", jobs, len(texts))
	}
	var mappings []compose.Placement
	for _, text := range texts {
		m, err := compose.ParsePlacement(text)
		if err != nil {
			return nil, cli.Usagef("--mapping: %v", err)
		}
		if err := m.Load(f.nodes); err != nil {
			return nil, err
		}
		mappings = append(mappings, m)
	}
	if len(mappings) == 1 {
		mappings = slices.Repeat(mappings, jobs)
	}
	return mappings, nil
}

// Build merges the jobs into one trace and returns its name for messages. lower may be nil.
func (j *Jobs) Build(p *cli.Program, f cli.ReadFlags, lower cli.Pass) (built *compose.Built, name string, err error) {
	if built, err = j.Plan.Build(p, f, cli.ReadOptions{Digest: true}, lower); err != nil {
		return nil, "", err
	}
	return built, strings.Join(built.Names, " + "), nil
}
