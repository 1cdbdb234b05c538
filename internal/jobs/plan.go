// This file reads plans from files and flags. docs/reference/compose.md describes plans.

package jobs

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
)

// PlanFlags are the flags of a program that composes traces.
type PlanFlags struct {
	file  string
	jobs  []string
	flags *pflag.FlagSet
}

// placements are the completions of placement policies; those with a colon precede an argument.
var placements = []string{"packed", "roundrobin", "strided:", "random", "random:", "nodes", "file:"}

// jobPage is the help of --job.
const jobPage = `--job FILE[@START][,KEY=VALUE...] adds the trace in FILE as a job that starts at START, such as 5ms. The keys
are name, start, count, from, nodes, placement, window, only-ranks, repeat and scale-compute.`

// Flags that are keys of a plan, and of edits of a single trace.
var (
	planFlagNames = []string{"mode", "placement", "nodes", "one-rank-per-node", "share-nic", "share-streams",
		"start-calc", "cores-per-node"}
	nodeFlagNames = []string{"intra-bw", "unique-nic"} // shared with --lower; alone they select no plan
	editFlagNames = []string{"window", "only-ranks", "repeat", "scale-compute"}
)

// Register adds the flags to the command, which must have a flag called seed.
func (f *PlanFlags) Register(cmd *cobra.Command) {
	f.flags = cmd.Flags()
	registerPlanFile(f.flags, &f.file)
	f.flags.StringArrayVar(&f.jobs, "job", nil,
		"add a `job` FILE[@START][,KEY=VALUE...]; repeatable")
	manual.Section(cmd, "Jobs")
	f.flags.String("placement", "packed",
		"placement `policy` of the jobs' nodes: "+compose.Policies+" with the nodes of all jobs in order, one per line")
	f.flags.String("nodes", "", "`number` of nodes for jobs (default: as needed)")
	f.flags.String("cores-per-node", "",
		"place ranks of jobs one by one, up to this `number` per node (default: whole nodes)")
	f.flags.String("mode", "multi-job", "node `mode`: multi-job gives each job nodes of its own; "+
		"multi-tenant shares nodes")
	f.flags.Bool("one-rank-per-node", false,
		"join the ranks on a node (default: if no trace has several ranks on a node, or collectives)")
	f.flags.Bool("share-nic", true, "share the NICs of a node among jobs, with multi-tenant; "+
		"=false gives each job NICs of its own")
	f.flags.Bool("share-streams", false, "join streams of equal numbers on a node, with --one-rank-per-node")
	f.flags.Bool("start-calc", false,
		"represent starts of jobs and other release times by calcs, for backends without release times")
	cli.CompleteWith(cmd, "mode", []string{"multi-job", "multi-tenant"})
	cli.CompleteWith(cmd, "placement", placements)
	manual.Topic(cmd, manual.Group{Owner: "jobs", Title: "placement of jobs on nodes", Page: jobPage,
		File: "docs/reference/compose.md"})
	f.flags.String("window", "", "keep ops that start in `FROM..TO`; FROM becomes 0")
	f.flags.String("only-ranks", "", "keep `ranks` such as 0-7,12, numbered from 0")
	f.flags.String("repeat", "", "repeat the trace `N` times")
	f.flags.String("scale-compute", "", "scale durations of calcs by a `factor` such as 1/3")
	manual.Section(cmd, "Edits")
}

func registerPlanFile(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "plan", "", "merge the jobs of a plan `FILE` (YAML, JSON)")
}

// changed returns the flags among names that the command line sets, as settings of a plan.
func (f *PlanFlags) changed(names []string) (settings []compose.Setting) {
	for _, name := range names {
		if flag := f.flags.Lookup(name); flag.Changed {
			settings = append(settings, compose.Setting{Key: name, Value: flag.Value.String()})
		}
	}
	return settings
}

// Edit returns a function that edits a trace according to the flags, or nil without such flags.
func (f *PlanFlags) Edit(p *cli.Program) (func(t *dag.Trace, name string) (*dag.Trace, error), error) {
	settings := f.changed(editFlagNames)
	if len(settings) == 0 {
		return nil, nil
	}
	edits, err := compose.NewEdits(settings)
	if err != nil {
		return nil, cli.FlagError(err)
	}
	return func(t *dag.Trace, name string) (*dag.Trace, error) {
		return edits.Apply(context.Background(), t, name, notes(p))
	}, nil
}

func notes(p *cli.Program) compose.Notes {
	return compose.Notes{Info: p.Info, Warn: p.Warn}
}

// Plan is a plan to merge traces as jobs, and the file that it comes from.
type Plan struct {
	*compose.Plan
	inputs []dag.Input // the plan's file, if any
}

// Plan returns the plan that the flags describe, or nil without such flags.
func (f *PlanFlags) Plan(p *cli.Program, args []string) (*Plan, error) {
	settings, edits := f.changed(planFlagNames), f.changed(editFlagNames)
	if f.file != "" {
		if len(args)+len(f.jobs)+len(settings)+len(edits) > 0 {
			return nil, errPlanBeside
		}
		return readPlan(p, f.file, f.flags)
	}
	if len(f.jobs)+len(settings) == 0 {
		return nil, nil
	}
	if len(args) > 1 {
		return nil, cli.Usagef("%d inputs in addition to --job: name all of them with --job", len(args))
	}
	settings = append(settings, f.changed(nodeFlagNames)...)
	jobs, err := jobSettings(p, args, "--job", f.jobs)
	if err != nil {
		return nil, err
	}
	for _, s := range edits {
		switch {
		case s.Key == "scale-compute":
			settings = append(settings, s)
		case len(jobs) == 1:
			jobs[0] = append(jobs[0], s)
		default:
			return nil, cli.Usagef("--%s: name the job that it applies to, as in --job FILE,%s=%s", s.Key, s.Key,
				s.Value)
		}
	}
	plan, err := compose.NewPlan(settings, jobs)
	if err != nil {
		return nil, cli.FlagError(err)
	}
	return seeded(&Plan{Plan: plan}, f.flags)
}

var errPlanBeside = cli.Usagef("--plan excludes inputs, jobs and their flags: enter them in the plan")

// jobSettings returns the jobs of the arguments and of a flag's values. Without either, it returns standard input.
func jobSettings(p *cli.Program, args []string, flag string, values []string) (jobs [][]compose.Setting, err error) {
	var names []string
	for _, name := range args {
		names = append(names, name)
		jobs = append(jobs, []compose.Setting{{Key: "file", Value: name}})
	}
	for _, text := range values {
		job, err := compose.ParseJob(text)
		if err != nil {
			return nil, cli.Usagef("%s %v", flag, err)
		}
		names = append(names, job[len(job)-1].Value)
		jobs = append(jobs, job)
	}
	if names, err = p.InputNames(names); err == nil && len(jobs) == 0 {
		jobs = append(jobs, []compose.Setting{{Key: "file", Value: names[0]}})
	}
	return jobs, err
}

// readPlan reads the plan in a file.
func readPlan(p *cli.Program, file string, flags *pflag.FlagSet) (*Plan, error) {
	in, err := p.Open(file, true)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in.Reader, compose.MaxPlanSize+1))
	if err != nil {
		return nil, format.FileErrorf(in.Name, "reading: %w", format.Cause(err))
	}
	plan, err := compose.ReadPlan(text, in.Name)
	if err == nil {
		err = in.Finish()
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range plan.Jobs {
		names = append(names, plan.Jobs[i].File)
	}
	if file == "-" {
		names = append(names, "-")
	}
	if _, err := p.InputNames(names); err != nil {
		return nil, err
	}
	digest, err := in.Digest()
	if err != nil {
		return nil, err
	}
	inputs := []dag.Input{digest}
	if p.RecordsOrigin() {
		inputs = p.Named(digest)
	}
	return seeded(&Plan{Plan: plan, inputs: inputs}, flags)
}

// seeded sets the seed of a plan without one to the flag --seed.
func seeded(p *Plan, flags *pflag.FlagSet) (*Plan, error) {
	if p.Seed != nil {
		return p, nil
	}
	seed, err := flags.GetInt64("seed")
	p.Seed = &seed
	return p, err
}

// Build merges the jobs into one trace. lower may be nil.
func (pl *Plan) Build(p *cli.Program, f cli.ReadFlags, o cli.ReadOptions, lower cli.Pass) (*compose.Built, error) {
	env := compose.Env{Notes: notes(p), Open: func(file, from string) (*compose.Opened, error) {
		flags := f
		if from != "" {
			flags.From = from
		}
		return readJob(p, file, flags, o)
	}}
	if lower != nil {
		env.Lower = func(s dag.Source) (dag.Source, error) {
			s, err := lower(s, pl.Name())
			if err != nil {
				return nil, format.InFile(pl.Name(), err)
			}
			return s, nil
		}
	}
	built, err := compose.Build(pl.Plan, env)
	if err == nil {
		built.Inputs = append(slices.Clone(pl.inputs), built.Inputs...)
		err = pl.addPlacements(p, built)
	}
	return built, err
}

func readJob(p *cli.Program, name string, f cli.ReadFlags, o cli.ReadOptions) (*compose.Opened, error) {
	in, err := p.OpenTrace(name, f, o)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	opened := &compose.Opened{Name: in.Name, Seed: in.Seed()}
	if opened.Trace, err = in.Read(); err != nil {
		return nil, err
	}
	if o.Digest {
		opened.Inputs, err = in.Inputs()
	}
	return opened, err
}

// addPlacements adds the files that place jobs to the inputs of a composition.
func (pl *Plan) addPlacements(p *cli.Program, built *compose.Built) error {
	placements := []*compose.Placement{&pl.Placement}
	for i := range pl.Jobs {
		placements = append(placements, pl.Jobs[i].Placement)
	}
	seen := map[string]bool{"": true}
	for _, placement := range placements {
		if placement == nil || seen[placement.File] {
			continue
		}
		seen[placement.File] = true
		file, err := p.FileInput(placement.File)
		if err != nil {
			return err
		}
		built.Inputs = append(built.Inputs, file...)
	}
	return nil
}
