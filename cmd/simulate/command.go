package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/ideal"
	"github.com/tracedag/tracedag/sim/packet"
)

const long = `simulate runs a trace on a model of the machine and its network, and prints when each rank finishes.

The trace comes from a file or from standard input, in any format that tracedag reads. Collectives that the backend
does not run itself are lowered to sends and receives first; --collective chooses the algorithms.

The result is a table, or with --json one JSON object with the same fields for every backend: backend, model, params,
complete, makespan_ps, finish_ps (by rank), ops, never_run, events, messages, bytes, wall_s, ops_per_s, and, where
they apply, leftover, stuck, aborted, backend_stats, critical_path, op_times, jobs and compare. Times are picoseconds.

The ideal backend runs the trace without a network: messages take no time, and the makespan is the length of the
trace's critical path, which --critical-path prints. --ops prints when each op starts and ends.

The analytical backend runs the trace as ASTRA-sim does, with its configuration files: --network, --system, --memory and
--comm-groups. Its result has npu_stats, too: arrays by NPU, in nanoseconds.

The packet backend runs the trace on a network of hosts and switches, --topology, packet by packet, with a transport's
congestion control: --transport; --list-transports lists them with their parameters, which --set sets. Its result has
flows, fct_ps, slowdown, counters, ports and tiers, too.

The flit backend runs the trace on a network of routers with virtual channels and credits, cycle by cycle; --list-presets
lists published networks, one of which --preset takes, with the parameters that --set changes. Its result has latencies,
throughput, the use of links and channels, and stalls, in backend_stats. With --synthetic it runs no trace but random traffic at
each --load, and prints a table (--csv: comma-separated values; --json: a JSON object a line).

Of a trace that has several jobs, the result has for each when it ran, and how much of its computation went on without
communication beside it; --alone also runs each job alone and says how much slower it is beside the others. --compare
holds the times of the ranks against those that the tracer measured.

A run that ends with ops that never ran, or with messages or receives without a partner, is not complete: the first
ten are listed with what they wait for, "complete" is false, and the exit status is 1.

--sweep runs a grid of parameters over one trace, several points at the same time, and prints one JSON line for each,
in the order of the grid (--csv: a table without the finish times of the ranks). A parameter is L, o, g, G, O or S, and
with the analytical backend bw0, lat0, splits and others that its page lists, with the packet backend queue, mss, seed,
parameters of the transport and others, with the flit backend those of --set; its values are separated by commas, and
FROM..TO:N stands for N values at equal distances. A point that fails has its parameters and an error in its line, and
does not stop the others; the exit status is 1 then.`

const examples = `  simulate x.parquet
  tracegen horovod | simulate
  simulate --params ai --G 400Gbps --json x.parquet
  simulate --model loggopsim --L 2500 --o 1500 --g 1000 --G 6 --O 0 --S 65535 --json x.bin
  simulate --backend ideal --critical-path x.parquet
  simulate --backend analytical --network 'Ring(4)_Switch(8)@100,50GB/s,500ns' x.parquet
  simulate --backend analytical --network n.yml --system s.json --memory m.json --json PREFIX
  simulate --backend packet --topology leafspine:hosts=128,tor=16,oversubscription=4 --transport dctcp x.parquet
  simulate --backend flit --preset graph500-dragonfly x.parquet
  simulate --backend flit --preset graph500-dragonfly --routing valiant --synthetic adversarial+1 --load 0.1..0.6:6
  simulate --timeline x.json x.parquet        (open x.json in https://ui.perfetto.dev)
  simulate --noise-trace noise.txt --seed 7 x.parquet
  simulate --sweep 'L=1us..10us:10;G=0.02,0.04' --csv x.parquet
  simulate --trace x.parquet --trace x.parquet@5ms --alone
  simulate --compare --json measured.parquet`

// options are the flags that do not depend on the backend.
type options struct {
	read       cli.ReadFlags
	lower      cli.LowerFlags
	jobs       cli.JobFlags
	backend    string
	collective string
	json       bool
	timeline   string
	seed       int64
	sweep      string
	csv        bool
	threads    int
	profile    string
	alone      bool
	compare    bool

	costs          logGOPSFlags // of messages; those that backends share
	listTransports bool
	listPresets    bool

	// Of the backends that tell when each op ran.
	ops          bool
	criticalPath bool
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
	cli.CompleteWith(cmd, "backend", backendNames())
	runs := make(map[string]runner)
	owners := make(map[string][]string) // of a flag, the backends that it is for; none: it is for all
	flags.VisitAll(func(f *pflag.Flag) { owners[f.Name] = nil })
	for _, b := range backends {
		runs[b.name] = b.register(p, cmd, &o)
		flags.VisitAll(func(f *pflag.Flag) {
			if _, known := owners[f.Name]; !known || slices.Contains(b.shares, f.Name) {
				owners[f.Name] = append(owners[f.Name], b.name)
			}
		})
	}
	flags.StringVar(&o.collective, "collective", "",
		"`algorithms` of collectives, such as 'mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling'")
	flags.Int64Var(&o.seed, "seed", 1, "seed of every random choice")
	flags.BoolVar(&o.json, "json", false, "print the result as a JSON object")
	flags.StringVar(&o.timeline, "timeline", "",
		"write what happens to `FILE`: .json for Perfetto and Chrome, .viz for the viewer of LogGOPSim")
	flags.StringVar(&o.sweep, "sweep", "",
		"run a `grid` of parameters, such as 'L=1us..10us:10;G=0.02,0.04', and print a JSON line for each point")
	flags.BoolVar(&o.csv, "csv", false, "with --sweep or --synthetic: print comma-separated values instead")
	flags.IntVar(&o.threads, "threads", runtime.GOMAXPROCS(0), "how many processors to use; the result is the same")
	flags.BoolVar(&o.alone, "alone", false,
		"run each job of the trace alone, too, and print how much slower it is beside the others")
	flags.BoolVar(&o.compare, "compare", false, "hold the time of each rank against the one that the tracer measured")
	flags.StringVar(&o.profile, "profile", "",
		"profile this program for go tool pprof: processor time to `FILE`, or memory if its name begins with mem")
	o.jobs.Register(cmd)
	o.read.Simulators = packet.Simulators()
	o.read.Register(p, cmd)
	o.lower.Register(p, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		run, known := runs[o.backend]
		if o.listTransports {
			return printTransports(p)
		}
		if o.listPresets {
			return printPresets(p)
		}
		if !known {
			return cli.Usagef("no backend %q, expected one of %s", o.backend, strings.Join(backendNames(), ", "))
		}
		var foreign error
		flags.Visit(func(f *pflag.Flag) {
			if of := owners[f.Name]; of != nil && !slices.Contains(of, o.backend) && foreign == nil {
				foreign = cli.Usagef("--%s is for the %s backend, not for %s", f.Name, strings.Join(of, " and the "), o.backend)
			}
		})
		if foreign != nil {
			return foreign
		}
		if s := o.read.Simulator; s != "" && o.backend != "packet" {
			return cli.Usagef("--compat %s is for the packet backend, not for %s", s, o.backend)
		}
		if o.compare && (flags.Changed("regroup") || flags.Changed("gpus-per-node")) {
			return cli.Usagef("--compare: the trace was measured on its own nodes, not on those of --regroup or --gpus-per-node")
		}
		return simulate(p, &o, run, args)
	}
	return cmd
}

// standalone is a runner that its flags may ask to run without a trace.
type standalone interface {
	standsAlone() bool
	runAlone(args []string) error
}

func simulate(p *cli.Program, o *options, run runner, args []string) error {
	choice, err := collective.ParseChoice(o.collective)
	if err != nil {
		return cli.Usagef("--collective: %v", err)
	}
	grid, err := o.check(run)
	if err != nil {
		return err
	}
	if s, ok := run.(standalone); ok && s.standsAlone() {
		stop, err := startProfile(p, o.profile)
		if err != nil {
			return err
		}
		return errors.Join(s.runAlone(args), stop())
	}
	o.read.CheckedComms = !o.read.Lenient // by checkGroups
	jobs, err := o.jobs.Jobs(p, args)
	if err != nil {
		return err
	}
	stop, err := startProfile(p, o.profile)
	if err != nil {
		return err
	}
	err = simulateJobs(p, o, run, jobs, choice, grid)
	err = errors.Join(err, stop())
	runtime.KeepAlive(run) // so that a profile of memory has what was in use
	return err
}

// check returns what is wrong with the flags, and the points of the sweep if there is one.
func (o *options) check(run runner) (grid [][]setting, err error) {
	if err := run.check(); err != nil {
		return nil, err
	}
	if o.threads < 1 {
		return nil, cli.Usagef("--threads: expected 1 or more, found %d", o.threads)
	}
	o.threads = min(o.threads, runtime.GOMAXPROCS(0))
	if o.sweep == "" {
		if s, ok := run.(standalone); o.csv && !(ok && s.standsAlone()) {
			return nil, cli.Usagef("--csv needs --sweep")
		}
		return nil, nil
	}
	if o.timeline != "" {
		return nil, cli.Usagef("--timeline and --sweep exclude each other")
	}
	if o.alone {
		return nil, cli.Usagef("--alone and --sweep exclude each other")
	}
	if grid, err = parseGrid(o.sweep, run.parameters()); err != nil {
		return nil, cli.Usagef("--sweep: %v", err)
	}
	return grid, nil
}

func simulateJobs(p *cli.Program, o *options, run runner, jobs *cli.Jobs, choice collective.Choice, grid [][]setting) error {
	ph := newPhases()
	l, err := load(p, o, run, jobs, choice, ph)
	if err != nil {
		return err
	}
	if l.close != nil {
		defer l.close()
	}
	if o.alone && l.jobs == nil {
		return fmt.Errorf("%s: --alone: the trace has no jobs", l.name)
	}
	inner := run
	if l.jobs != nil {
		run = &withJobs{run, l.jobs}
	}
	if l.measured != nil {
		run = newComparison(run, l.measured, l.parts)
	}
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	if grid != nil {
		err := sweep(p, o, run, l.name, grid, out)
		ph.done("run")
		ph.explain(p, l.ops)
		return err
	}
	done, err := runOnce(p, o, l, run)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	ph.done("run")
	complete, times := done.Complete, run.opTimes()
	if o.alone {
		allAlone, err := runAlone(p, o, l, inner, done)
		if err != nil {
			return err
		}
		complete = complete && allAlone
		ph.done("alone")
	}
	if err := report(out, o, l, done, times); err != nil {
		return err
	}
	ph.done("report")
	ph.explain(p, l.ops)
	if !done.Complete {
		explainIncomplete(p, l.name, done)
		if done.packetResult != nil {
			done.packetResult.explain(p, l.name)
		}
	}
	if !complete {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// report prints the result; times is nil where the backend does not tell when each op ran.
func report(out *cli.Output, o *options, l *loaded, done *result, times *ideal.Timeline) error {
	var path *ideal.Path
	if times != nil {
		path = times.CriticalPath()
	}
	switch {
	case o.json:
		document, err := marshal(done)
		if err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		out.Write(document[:len(document)-1]) // all but the brace that ends it
		if path != nil {
			writeCriticalPath(out, path, o.criticalPath)
		}
		if o.ops {
			if err := writeOpTimes(out, l, times, true); err != nil {
				return err
			}
		}
		out.WriteString("}\n")
	case o.ops:
		if err := writeOpTimes(out, l, times, false); err != nil {
			return err
		}
	default:
		printTable(out, l, done, path)
		if o.criticalPath {
			printCriticalPath(out, path)
		}
	}
	return out.Commit()
}

// marshal returns a value as JSON, with <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes()[:b.Len()-1], nil // without the newline
}

// runOnce runs the trace, and writes the timeline where one was asked for; a run that fails leaves none.
func runOnce(p *cli.Program, o *options, l *loaded, run runner) (*result, error) {
	progress := p.Progress("simulating", l.ops, "ops")
	defer progress.Close()
	r := replay{threads: o.threads, progress: progress.Add}
	var io *accessTimes
	if l.trace != nil && o.measuresIO(l.trace.Meta) {
		io = &accessTimes{trace: l.trace}
	}
	var out *cli.Output
	if o.timeline != "" {
		var err error
		if out, err = p.Create(o.timeline, false); err != nil {
			return nil, err
		}
		defer out.Close()
		if r.timeline, err = run.timeline(out, o.timeline, l.trace); err != nil {
			return nil, err
		}
	}
	if io != nil {
		io.Timeline = r.timeline
		r.timeline = io
	}
	done, err := run.run(nil, r)
	if err != nil {
		return nil, err
	}
	if io != nil {
		done.IOLatency = latencies(io, run, done.Complete)
	}
	if out == nil {
		return done, nil
	}
	if err := r.timeline.End(); err != nil {
		return nil, fmt.Errorf("writing the timeline: %w", out.Failed(err))
	}
	return done, out.Commit()
}

// latencies returns the latencies of storage accesses after a run.
func latencies(io *accessTimes, run runner, complete bool) *ioLatency {
	if times := run.opTimes(); times != nil {
		io.from(times)
	}
	return io.latency(complete)
}

// incomplete says how much of a run did not come to its end.
func incomplete(r *sim.Result) string {
	s := fmt.Sprintf("%d of %d ops never ran, ", r.NeverRun, r.Ops)
	if r.Unended > 0 {
		s += fmt.Sprintf("%d more never ended, ", r.Unended)
	}
	return s + fmt.Sprintf("%d messages and receives found no partner", r.Leftover.Count())
}

// explainIncomplete says on stderr why a run is not complete.
func explainIncomplete(p *cli.Program, name string, r *result) {
	unmatched := r.Leftover.Count()
	if r.Aborted != "" {
		p.Info("%s: aborted: %s", name, r.Aborted)
	}
	p.Info("%s: incomplete: %s", name, incomplete(r.Result))
	for _, s := range r.Stuck {
		op := fmt.Sprintf("op %d (%s)", s.Op, s.Kind)
		if s.Node != "" {
			op = fmt.Sprintf("op %d (%s, node %s)", s.Op, s.Kind, s.Node)
		}
		p.Info("%s: rank %d %s waits for %s", name, s.Rank, op, s.Waits)
	}
	if total := r.NeverRun + max(unmatched, r.Unended); total > int64(len(r.Stuck)) {
		p.Info("%s: and %d more", name, total-int64(len(r.Stuck)))
	}
}
