package simulate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/calibrate"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim/fit"
)

// fitFlags are the flags of --fit.
type fitFlags struct {
	wanted bool
	file   string   // of parameters
	on     string   // backend
	traces []string // recorded ones
}

// ownFitFlags are the flags that need --fit.
var ownFitFlags = []string{"fit-out", "fit-backend", "fit-trace"}

const fitPage = `--fit estimates the parameters of the loggops backend, model strict, from tables of micro-benchmarks,
or those of flow, packet or analytical on a network:

  simulate --fit --fit-out machine.json pingpong.csv osu_latency.txt
  simulate --fit --fit-backend flow --topology cluster.xml --fit-out machine.json tables.csv
  simulate --fit --fit-backend packet --topology cluster.xml --transport dctcp tables.csv
  simulate --fit --fit-backend analytical --network 'Switch(8)_Switch(4)@1GB/s,1us' tables.csv
  simulate --params machine.json trace.parquet

Tables are CSV with a header (bytes or size, and a time or rate with its unit, such as seconds, us or MB/s; optionally
test, where and ranks), or the output of OSU micro-benchmarks, NetPIPE 3, nccl-tests or netgauge. A table without a test
is a ping-pong, half of a round trip. Other tests separate the parameters: send_call and isend_call (time in the call),
recv_late (time in a receive long after its message), send_late (time in a send whose receive is late), windowN (N
messages at once), exchange, allexchange and incastK (messages that share links).

The result has segments of message size with L, G, o and O, or with os, ois, or and factors of latency and bandwidth;
packet has one set of o, mss, header size and factors, analytical the latency and bandwidth of each dimension: each
with its 95 % interval, the residuals, and what the tables do not determine. Times of collectives, with their number of
ranks, identify algorithms. --params applies the file: its backend and its algorithms, too, unless --backend and
--collective set them. --fit-trace TRACE adds the messages of recorded traces, for loggops and flow. For loggops, these
are the shortest times from the start of a send to the end of a blocking receive that waited for it; for flow, the times
of messages alone that explain the recorded ends of receives and waits, the times in calls, and the sizes from which
calls wait. --json prints the parameter file; --seed selects the draws of the intervals. --plot fit=FILE.svg draws
measured and fitted times by size, and the residuals.`

// register adds the flags. All flags before have a heading or topic.
func (f *fitFlags) register(cmd *cobra.Command, flags *pflag.FlagSet) {
	flags.BoolVar(&f.wanted, "fit", false, "estimate parameters of a backend from tables of measured times")
	flags.StringVar(&f.on, "fit-backend", calibrate.Backends[0], "`backend` whose parameters --fit estimates: "+
		"loggops, flow or packet on a --topology, or analytical on a --network")
	cli.CompleteWith(cmd, "fit-backend", calibrate.Backends)
	flags.StringArrayVar(&f.traces, "fit-trace", nil, "recorded `TRACE` whose messages --fit uses, for loggops and "+
		"flow; may be repeated")
	cli.OutputVar(flags, &f.file, "fit-out", "write the parameters to `FILE`, for --params")
	manual.Topic(cmd, manual.Group{Owner: "fit", Title: "parameters from measured times", Page: fitPage,
		File: "docs/reference/fit.md"})
}

// checkUnused returns an error if flags of --fit are set without it.
func (f *fitFlags) checkUnused(flags *pflag.FlagSet) error {
	for _, name := range ownFitFlags {
		if flags.Changed(name) {
			return cli.Usagef("--%s needs --fit", name)
		}
	}
	return nil
}

// fit estimates parameters from the tables.
func (o *options) fit(p *cli.Program, args []string) error {
	if len(args) == 0 && len(o.fitting.traces) == 0 {
		return cli.Usagef("--fit needs tables of measured times: name files, or - for standard input")
	}
	if err := o.checkFit(p); err != nil {
		return err
	}
	var names []string
	var err error
	if len(args) > 0 {
		if names, err = p.InputNames(args); err != nil {
			return err
		}
	}
	seed, err := o.Flags.GetInt64("seed")
	if err != nil {
		return err
	}
	to := calibrate.Options{Seed: uint64(seed), Threads: o.Threads, Backend: o.fitting.on,
		Topology: o.Own.Text("topology"), Transport: o.Own.Text("transport"), Network: o.Own.Text("network"),
		Congestion: o.Own.Text("congestion"), Version: p.Version}
	var tables []*fit.Table
	for _, name := range names {
		table, err := readTable(p, name)
		if err != nil {
			return err
		}
		tables = append(tables, table)
	}
	for i, name := range o.fitting.traces {
		table, err := o.readMessages(p, name, &to)
		if errors.Is(err, calibrate.ErrFewMessages) && (len(tables) > 0 || i+1 < len(o.fitting.traces)) {
			p.Warn("%v; only its collectives are used", err)
			continue
		}
		if err != nil {
			return err
		}
		tables = append(tables, table)
	}
	estimate, err := calibrate.Estimate(p.Context(), tables, to)
	if err != nil {
		return err
	}
	if text := estimate.Misses(); text != "" {
		p.Warn("%s", text)
	}
	if o.fitting.file != "" {
		estimate.From(filepath.Dir(o.fitting.file))
		if err := p.WriteOutput(o.fitting.file, estimate.Write); err != nil {
			return err
		}
	}
	if err := o.Outputs.WriteFit(estimate.WriteCurves); err != nil {
		return err
	}
	print := estimate.WriteTable
	if o.JSON {
		print = estimate.Write
	}
	return p.WriteOutput("", print)
}

// applyFitted applies what a parameter file has beside the parameters, unless flags set it: the backend, and the
// algorithms of collectives. It returns an error about these algorithms.
func (o *options) applyFitted(p *cli.Program) error {
	name := o.Own.Text("params")
	if !strings.ContainsAny(name, "./") {
		return nil // none, or a preset
	}
	f, err := fit.ReadFile(name)
	if err != nil {
		return nil // the backend reports it
	}
	if !o.Flags.Changed("backend") && slices.Contains(calibrate.Backends, f.Backend) && f.Backend != o.Backend {
		o.Backend = f.Backend
		p.Info("%s: parameters of the backend %s", name, f.Backend)
	}
	if f.Backend == o.Backend && !o.Flags.Changed("topology") {
		if err := calibrate.CheckNetwork(f, name); err != nil {
			return err
		}
	}
	if o.Flags.Changed("collective") || f.Backend != o.Backend {
		return nil
	}
	if _, err := collective.ParseChoice(f.Collective); err != nil {
		return fmt.Errorf("%s: member \"collective\": %w", name, err)
	}
	if f.Collective != "" {
		o.Collective = f.Collective
		p.Info("%s: --collective '%s'", name, f.Collective)
	}
	if len(f.Sources) > 0 { // an estimate
		o.warnUncovered(p, name, f)
	}
	return nil
}

// warnUncovered warns about collectives of traces that the measurements of a parameter file do not cover.
func (o *options) warnUncovered(p *cli.Program, name string, f *fit.File) {
	var lock sync.Mutex
	warned := map[string]bool{}
	o.Lowering = func(t *dag.Trace, choice collective.Choice, kinds func(dag.Subkind) bool) {
		lock.Lock()
		defer lock.Unlock()
		for _, text := range calibrate.Uncovered(f, t, choice, kinds) {
			if !warned[text] {
				warned[text] = true
				p.Warn("%s: %s", name, text)
			}
		}
	}
}

// checkFit checks the flags of --fit.
func (o *options) checkFit(p *cli.Program) error {
	if !slices.Contains(calibrate.Backends, o.fitting.on) {
		return cli.Usagef("--fit-backend: expected %s, found %q", strings.Join(calibrate.Backends, ", "),
			o.fitting.on)
	}
	used := append(slices.Clone(ownFitFlags), "json", "seed", "threads")
	if len(o.fitting.traces) > 0 {
		used = append(used, "from", "lenient")
	}
	switch on := o.fitting.on; on {
	case "flow", "packet":
		if used = append(used, "topology"); o.Own.Text("topology") == "" {
			return cli.Usagef("--fit-backend %s needs the --topology of the machine, a network or a platform file", on)
		}
		if on == "packet" {
			used = append(used, "transport")
		}
	case "analytical":
		if used = append(used, "network", "congestion"); o.Own.Text("network") == "" {
			return cli.Usagef("--fit-backend analytical needs the --network of the machine, such as " +
				"'Switch(8)_Switch(4)@1GB/s,1us', whose bandwidths and latencies it replaces")
		}
	}
	if err := o.CheckThreads(); err != nil {
		return err
	}
	for _, name := range o.drawFlags {
		if name != "report" { // a page shows a run
			used = append(used, name)
		}
	}
	if err := o.checkKept("fit", used...); err != nil {
		return err
	}
	if err := o.Outputs.BeginFit(); err != nil {
		return cli.Usagef("%v", err)
	}
	return o.CreateOutputs(p)
}

// readTable reads the table in FILE, or in FILE@RANKS, whose collectives have that number of ranks.
func readTable(p *cli.Program, name string) (*fit.Table, error) {
	ranks := 0
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		if _, err := os.Stat(name); err != nil {
			if ranks, err = strconv.Atoi(name[at+1:]); err != nil || ranks < 1 {
				return nil, cli.Usagef("%s: expected FILE@RANKS with a number of ranks, found %q", name, name[at+1:])
			}
			name = name[:at]
		}
	}
	in, err := p.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := memory.ReadContent(p.Context(), in.Reader)
	if err != nil {
		return nil, format.InFile(in.Name, err)
	}
	table, err := fit.Read(in.Name, data)
	if err != nil || ranks == 0 {
		return table, err
	}
	return table, table.SetRanks(ranks)
}

// readMessages returns the times of messages of a recorded trace.
func (o *options) readMessages(p *cli.Program, name string, to *calibrate.Options) (*fit.Table, error) {
	read, err := p.ReadTrace(name, o.Read, cli.ReadOptions{Digest: true})
	if err != nil {
		return nil, err
	}
	to.Recorded = append(to.Recorded, read.Trace)
	table, err := calibrate.FromTrace(p.Context(), read.Trace, *to)
	if err != nil {
		return nil, format.InFile(read.Name, err)
	}
	table.Name, table.SHA256 = read.Name, origin.Digest(read.Inputs)
	return table, nil
}
