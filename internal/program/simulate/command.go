// Package simulate is the program simulate: its flags, and what it prints. Command simulate and package tracedag run it.
package simulate

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
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
  simulate --plan cluster.yaml --lower collectives=ring
  simulate --compare --json measured.parquet`

// options are the flags that do not depend on the backend.
type options struct {
	read       cli.ReadFlags
	lower      cli.LowerFlags
	jobs       cli.JobFlags
	own        *cli.Options // of backends
	backend    string
	collective string
	json       bool
	timeline   string
	sweep      string
	csv        bool
	threads    int
	profile    string
	alone      bool
	compare    bool
	lists      []bool // by listing of the registry
}

// New returns a function that makes the program's command, with the backends that it offers.
func New(kinds []sim.Kind) func(*cli.Program) *cobra.Command {
	return func(p *cli.Program) *cobra.Command { return newSimulate(p, kinds) }
}

func newSimulate(p *cli.Program, kinds []sim.Kind) *cobra.Command {
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
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].Name
	}
	flags.StringVar(&o.backend, "backend", names[0], "simulation backend `name`: "+strings.Join(names, ", "))
	cli.CompleteWith(cmd, "backend", names)
	flags.Int64("seed", 1, "seed of all random choices")
	flags.StringVar(&o.collective, "collective", "",
		"collective `algorithms`, such as 'mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling'")
	flags.BoolVar(&o.json, "json", false, "print the result as a JSON object")
	flags.StringVar(&o.timeline, "timeline", "",
		"write a timeline to `FILE`: .json for Perfetto and Chrome, .viz for the viewer of LogGOPSim")
	flags.StringVar(&o.sweep, "sweep", "",
		"run a `grid` of parameters, such as 'L=1us..10us:10;G=0.02,0.04', and print a JSON line for each point")
	flags.BoolVar(&o.csv, "csv", false, "with --sweep or --synthetic: print comma-separated values")
	flags.IntVar(&o.threads, "threads", runtime.GOMAXPROCS(0), "worker threads; results do not depend on it")
	flags.BoolVar(&o.alone, "alone", false, "run each job of the trace alone, too, and print its slowdown beside the others")
	flags.BoolVar(&o.compare, "compare", false, "compare the time of each rank with the recorded one")
	flags.StringVar(&o.profile, "profile", "",
		"profile this program for go tool pprof: CPU time to `FILE`, or memory if its name begins with mem")
	o.jobs.Register(cmd)
	o.read.Simulators = simulators(kinds)
	o.read.Register(p, cmd)
	o.lower.Register(p, cmd)
	o.own = cli.NewOptions(cmd)
	var lists []sim.Listing
	for _, kind := range kinds {
		o.own.Add(cmd, cli.Group{Owner: kind.Name, Title: kind.Title, Topic: true, Page: kind.Page, Params: kind.New().Params()})
		lists = append(lists, kind.Lists...)
	}
	o.lists = make([]bool, len(lists))
	for i, list := range lists {
		flags.BoolVar(&o.lists[i], "list-"+list.Name, false, list.Help)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if i := slices.Index(o.lists, true); i >= 0 {
			return printListing(p, lists[i])
		}
		at := slices.Index(names, o.backend)
		if at < 0 {
			return cli.Usagef("no backend %q, expected one of %s", o.backend, strings.Join(names, ", "))
		}
		kind := &kinds[at]
		if err := o.checkOwners(kind); err != nil {
			return err
		}
		return start(cmd.Context(), p, &o, kind, args)
	}
	return cmd
}

// simulators returns the simulators whose rules backends can follow.
func simulators(kinds []sim.Kind) (all []string) {
	for _, kind := range kinds {
		if compat := kind.New().Params().Find("compat"); compat != nil {
			all = append(all, compat.Choices...)
		}
	}
	return all
}

// checkOwners returns an error if a flag is for other backends than the one chosen.
func (o *options) checkOwners(kind *sim.Kind) error {
	if err := o.own.Foreign("backend", kind.Name); err != nil {
		return err
	}
	if s := o.read.Simulator; s != "" && kind.New().Params().Find("compat") == nil {
		return cli.Usagef("--compat %s is for the %s backend, not for %s", s, strings.Join(o.own.Owners("compat"), " and the "), kind.Name)
	}
	if o.compare && (o.own.Given("regroup") || o.own.Given("gpus-per-node")) {
		return cli.Usagef("--compare: the trace was measured on its own nodes, not on those of --regroup or --gpus-per-node")
	}
	return nil
}

func printListing(p *cli.Program, list sim.Listing) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	list.Print(out)
	return out.Commit()
}

// start checks the flags, and runs what they ask for under the profiler if there is to be a profile.
func start(ctx context.Context, p *cli.Program, o *options, kind *sim.Kind, args []string) error {
	r, err := newRun(ctx, p, o, kind)
	if err != nil {
		return err
	}
	work := r.simulate
	if r.standsAlone() {
		work = func() error { return r.withoutTrace(args) }
	} else {
		o.read.CheckedComms = !o.read.Lenient // checkGroups does
		if replicator, ok := r.backend.(sim.Replicator); ok {
			o.read.Ranks = replicator.Replicas()
		}
		if r.jobs, err = o.jobs.Jobs(p, args); err != nil {
			return err
		}
	}
	stop, err := startProfile(p, o.profile)
	if err != nil {
		return err
	}
	err = errors.Join(work(), stop())
	runtime.KeepAlive(r) // so that a profile of memory has what was in use
	return err
}
