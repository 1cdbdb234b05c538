package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
)

const long = `simulate runs a trace on a model of the machine and its network, and prints when each rank finishes.

The trace comes from a file or from standard input, in any format that tracedag reads. Collectives that the backend
does not run itself are lowered to sends and receives first; --collective chooses the algorithms.

The result is a table, or with --json one JSON object with the same fields for every backend: backend, model, params,
complete, makespan_ps, finish_ps (by rank), ops, never_run, events, messages, bytes, wall_s, ops_per_s, and, where
they apply, leftover, stuck, aborted and backend_stats. Times are picoseconds.

A run that ends with ops that never ran, or with messages or receives without a partner, is not complete: the first
ten are listed with what they wait for, "complete" is false, and the exit status is 1.`

const examples = `  simulate x.parquet
  tracegen horovod | simulate
  simulate --params ai --G 400Gbps --json x.parquet
  simulate --model loggopsim --L 2500 --o 1500 --g 1000 --G 6 --O 0 --S 65535 --json x.bin
  simulate --timeline x.json x.parquet        (open x.json in https://ui.perfetto.dev)
  simulate --noise-trace noise.txt --seed 7 x.parquet`

// options are the flags that do not depend on the backend.
type options struct {
	read       cli.ReadFlags
	backend    string
	collective string
	json       bool
	timeline   string
	seed       int64
}

func newCommand(p *cli.Program) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "simulate [flags] [TRACE]",
		Short:   "run a trace on a simulation backend",
		Long:    long,
		Example: examples,
		Args:    cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.backend, "backend", backends[0].name, "`name` of the backend: "+strings.Join(backendNames(), ", "))
	runs := make(map[string]runner)
	for _, b := range backends {
		runs[b.name] = b.register(p, cmd, &o)
	}
	flags.StringVar(&o.collective, "collective", "",
		"`algorithms` of collectives, such as 'allreduce=ring:>1MiB,recdoubling;bcast=binomial'")
	flags.Int64Var(&o.seed, "seed", 1, "seed of every random choice")
	flags.BoolVar(&o.json, "json", false, "print the result as a JSON object")
	flags.StringVar(&o.timeline, "timeline", "",
		"write what happens to `FILE`: .json for Perfetto and Chrome, .viz for the viewer of LogGOPSim")
	o.read.Register(p, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		run, known := runs[o.backend]
		if !known {
			return cli.Usagef("no backend %q, expected one of %s", o.backend, strings.Join(backendNames(), ", "))
		}
		return simulate(p, &o, run, args)
	}
	return cmd
}

func simulate(p *cli.Program, o *options, run runner, args []string) error {
	choice, err := lower.ParseChoice(o.collective)
	if err != nil {
		return cli.Usagef("--collective: %v", err)
	}
	if err := run.check(); err != nil {
		return err
	}
	names, err := p.InputNames(args)
	if err != nil {
		return err
	}
	read, err := p.ReadTrace(names[0], o.read, cli.ReadOptions{})
	if err != nil {
		return err
	}
	trace := read.Trace
	if hasCollectives(trace) {
		before := trace.Ops()
		if trace, err = lower.Collectives(trace, choice); err != nil {
			return fmt.Errorf("%s: lowering collectives: %w", read.Name, err)
		}
		p.Explain("lowered %d ops to %d", before, trace.Ops())
	}
	result, err := withTimeline(p, o, trace, run)
	if err != nil {
		return fmt.Errorf("%s: %w", read.Name, err)
	}
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	if o.json {
		document, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		out.Write(append(document, '\n'))
	} else {
		printTable(out, read.Name, trace, result)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if !result.Complete {
		explainIncomplete(p, read.Name, result)
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

func hasCollectives(t *dag.Trace) bool {
	for i := range t.Ranks {
		for _, k := range t.Ranks[i].Kind {
			if k == dag.Coll {
				return true
			}
		}
	}
	return false
}

// withTimeline runs the trace, and writes the timeline where one was asked for; a run that fails leaves none.
func withTimeline(p *cli.Program, o *options, trace *dag.Trace, run runner) (*sim.Result, error) {
	if o.timeline == "" {
		return run.run(trace, nil)
	}
	out, err := p.Create(o.timeline, false)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	timeline, err := run.timeline(out, o.timeline, trace)
	if err != nil {
		return nil, err
	}
	result, err := run.run(trace, timeline)
	if err != nil {
		return nil, err
	}
	if err := timeline.End(); err != nil {
		return nil, fmt.Errorf("writing the timeline: %w", err)
	}
	return result, out.Commit()
}

// explainIncomplete says on stderr why a run is not complete.
func explainIncomplete(p *cli.Program, name string, r *sim.Result) {
	unmatched := int64(0)
	if r.Leftover != nil {
		for _, queues := range []map[int][][2]int64{r.Leftover.Receive, r.Leftover.Unexpected} {
			for _, q := range queues {
				unmatched += int64(len(q))
			}
		}
	}
	if r.Aborted != "" {
		p.Info("%s: aborted: %s", name, r.Aborted)
	}
	p.Info("%s: incomplete: %d of %d ops never ran, %d messages and receives found no partner", name, r.NeverRun, r.Ops,
		unmatched)
	for _, s := range r.Stuck {
		p.Info("%s: rank %d op %d (%s) waits for %s", name, s.Rank, s.Op, s.Kind, s.Waits)
	}
	if total := r.NeverRun + unmatched; total > int64(len(r.Stuck)) {
		p.Info("%s: and %d more", name, total-int64(len(r.Stuck)))
	}
}
