package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/analytical"
	"github.com/tracedag/tracedag/sim/ideal"
)

// analyticalBackend runs the analytical backend.
type analyticalBackend struct {
	p      *cli.Program
	common *options
	flags  analyticalFlags

	network analytical.Network
	system  analytical.System
	memory  analytical.Memory

	program    *analytical.Program
	exactSizes bool
	node       func(rank, op int) uint64 // the number of an op in the trace's format; nil: not known
	localMem   localMem
}

// analyticalFlags are the backend's flags.
type analyticalFlags struct {
	network, system, memory string
	congestion              string
	queues                  int
	replicate               bool
	rendezvous              bool
	injectionScale          float64
}

// congestion are the values of --congestion.
var congestion = []string{"unaware", "aware"}

func registerAnalytical(p *cli.Program, cmd *cobra.Command, o *options) runner {
	b := &analyticalBackend{p: p, common: o}
	flags := cmd.Flags()
	flags.StringVar(&b.flags.network, "network", "",
		"`file` with ASTRA-sim's network configuration, or a network such as 'Ring(4)_Switch(8)@100,50GB/s,500ns' "+
			"(analytical)")
	flags.StringVar(&b.flags.system, "system", "",
		"`file` with ASTRA-sim's system configuration (analytical; default: what suits the network)")
	flags.StringVar(&b.flags.memory, "memory", "",
		"`file` with ASTRA-sim's configuration of remote memory (analytical; default: there is none)")
	flags.StringVar(&b.flags.congestion, "congestion", congestion[0],
		"whether messages wait for links that others use: `mode` unaware or aware (analytical)")
	cli.CompleteWith(cmd, "congestion", congestion)
	flags.IntVar(&b.flags.queues, "queues-per-dim", 1,
		"in how many queues chunks of collectives wait for a dimension (analytical)")
	flags.BoolVar(&b.flags.replicate, "replicate-rank0", false,
		"have all NPUs do what the file of rank 0 says, the only one that is read (analytical)")
	flags.BoolVar(&b.flags.rendezvous, "rendezvous", false,
		"send no message before its receiver has asked for it (analytical)")
	flags.Float64Var(&b.flags.injectionScale, "injection-scale", 1,
		"`factor` for the endpoint-delay of the system file (analytical)")
	return b
}

func (b *analyticalBackend) check() error {
	switch o, f := b.common, &b.flags; {
	case o.timeline != "":
		return cli.Usagef("--timeline: the analytical backend writes none")
	case o.ops || o.criticalPath:
		return cli.Usagef("--ops and --critical-path are for the ideal backend")
	case f.network == "":
		return cli.Usagef("--network: the analytical backend needs a network")
	case f.congestion != "unaware" && f.congestion != "aware":
		return cli.Usagef("--congestion: expected unaware or aware, found %q", f.congestion)
	case f.queues < 1 || f.queues > analytical.MaxQueues:
		return cli.Usagef("--queues-per-dim: expected 1 to %d, found %d", analytical.MaxQueues, f.queues)
	}
	if err := b.readNetwork(); err != nil {
		return err
	}
	if b.flags.replicate {
		b.common.read.Ranks = b.network.NPUs()
	}
	if err := b.readMemory(); err != nil {
		return err
	}
	return b.readSystem()
}

// readNetwork reads the network from a file, or from the flag itself.
func (b *analyticalBackend) readNetwork() error {
	text, err := readConfig(b.flags.network)
	switch {
	case err == nil:
		b.network, err = analytical.ReadNetwork(text, b.flags.network, b.p.Warn)
	case errors.Is(err, os.ErrNotExist) && strings.ContainsAny(b.flags.network, "(@"):
		if b.network, err = analytical.ParseNetwork(b.flags.network); err != nil {
			return cli.Usagef("--network: %v", err)
		}
	}
	b.network.Aware = b.flags.congestion == "aware"
	return err
}

func (b *analyticalBackend) readMemory() error {
	if b.flags.memory == "" {
		return nil
	}
	text, err := readConfig(b.flags.memory)
	if err != nil {
		return err
	}
	if b.memory, err = analytical.ReadMemory(text, b.flags.memory, b.p.Warn); err != nil {
		return err
	}
	if err := b.memory.Check(b.network.NPUs()); err != nil {
		return fmt.Errorf("%s: %w", b.flags.memory, err)
	}
	return nil
}

func (b *analyticalBackend) readSystem() error {
	b.system = analytical.DefaultSystem(&b.network)
	if name := b.flags.system; name != "" {
		text, err := readConfig(name)
		if err != nil {
			return err
		}
		file, err := analytical.ReadSystem(text, name, b.p.Warn)
		if err != nil {
			return err
		}
		if err := file.ScaleInjection(b.flags.injectionScale); err != nil {
			return cli.Usagef("--injection-scale: %v", err)
		}
		b.system = file.System
		if err := b.readCustom(file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.localMem.prefix = file.LocalMemTrace
		if err := b.localMem.check(b.p, b.network.NPUs(), b.common.sweep != ""); err != nil {
			return err
		}
	} else if b.flags.injectionScale != 1 {
		return cli.Usagef("--injection-scale needs --system, with an endpoint-delay")
	}
	b.system.Queues, b.system.Rendezvous = b.flags.queues, b.flags.rendezvous
	return nil
}

// readCustom reads the collectives that are given as traces.
func (b *analyticalBackend) readCustom(file *analytical.SystemFile) (err error) {
	for c, prefix := range file.CustomTraces {
		if prefix == "" {
			continue
		}
		if b.system.Custom[c], err = b.readCustomTrace(prefix); err != nil {
			return err
		}
	}
	if file.CustomNodesFile == "" {
		return nil
	}
	name := b.beside(file.CustomNodesFile, "")
	text, err := readConfig(name)
	if err != nil {
		return err
	}
	nodes, err := analytical.ReadCustomNodes(text, name)
	if err != nil {
		return err
	}
	b.system.CustomNodes = make(map[uint64]*analytical.Program, len(nodes))
	programs := make(map[string]*analytical.Program) // by prefix
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		prefix := nodes[id]
		if programs[prefix] == nil {
			if programs[prefix], err = b.readCustomTrace(prefix); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		b.system.CustomNodes[id] = programs[prefix]
	}
	return nil
}

// firstFile is how the name of a Chakra trace's first file goes on after its prefix.
const firstFile = ".0.et"

func (b *analyticalBackend) readCustomTrace(prefix string) (*analytical.Program, error) {
	read, err := b.p.ReadTrace(b.beside(prefix, firstFile), cli.ReadFlags{From: "chakra"}, cli.ReadOptions{})
	if err != nil {
		return nil, err
	}
	program, err := analytical.Compile(dag.FromTrace(read.Trace))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", read.Name, err)
	}
	return program, nil
}

// beside returns a path that the system file has: relative to the working directory, or, where there is no such file
// with the suffix, to the system file.
func (b *analyticalBackend) beside(path, suffix string) string {
	if _, err := os.Stat(path + suffix); err == nil || filepath.IsAbs(path) {
		return path
	}
	other := filepath.Join(filepath.Dir(b.flags.system), path)
	if _, err := os.Stat(other + suffix); err == nil {
		return other
	}
	return path
}

// maxConfigFile is how much of a configuration file is read: more than any may have.
const maxConfigFile = 1<<20 + 1

func readConfig(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxConfigFile))
}

func (b *analyticalBackend) lowers(t *dag.Trace) func(dag.Subkind) bool {
	// ASTRA-sim has no algorithm for a bcast: it takes the time that its trace has on record.
	bcast := t != nil && knowsRoots(t) && (!isChakra(t.Meta) || b.common.collective != "")
	return func(kind dag.Subkind) bool {
		switch kind {
		case dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Alltoall:
			return false
		case dag.Bcast:
			return bcast
		}
		return true
	}
}

// isChakra reports whether all of a trace comes from Chakra's format.
func isChakra(meta dag.Meta) bool {
	return attr.FromChakra(meta.Attrs)
}

// knowsRoots reports whether the trace tells the root of some bcast.
func knowsRoots(t *dag.Trace) bool {
	for i := range t.Ranks {
		r := &t.Ranks[i]
		for op, kind := range r.Kind {
			if kind == dag.Coll && r.Subkind.At(op) == dag.Bcast && r.Peer.At(op) != dag.UnknownRoot {
				return true
			}
		}
	}
	return false
}

func (b *analyticalBackend) timeline(io.Writer, string, *dag.Trace) (sim.Timeline, error) {
	return nil, errors.New("the analytical backend writes no timeline")
}

func (b *analyticalBackend) opTimes() *ideal.Timeline {
	return nil
}

func (b *analyticalBackend) compile(t dag.Source, warn func(string, ...any)) error {
	if warn == nil {
		warn = func(string, ...any) {}
	}
	h, err := t.Header()
	if err != nil {
		return err
	}
	if ranks, npus := h.Ranks, b.network.NPUs(); ranks != npus {
		hint := fmt.Sprintf("choose a network of %d NPUs", ranks)
		if ranks < npus {
			hint += fmt.Sprintf(", a trace of %d ranks, or with --replicate-rank0 one rank for all NPUs", npus)
		}
		return fmt.Errorf("the trace has %d ranks, and the network %v has %d NPUs: %s", ranks, b.network.Shape(), npus, hint)
	}
	if b.program, err = analytical.Compile(t); err != nil {
		return err
	}
	if n := b.program.Rounded(); n > 0 {
		warn("%d durations or release times are no whole number of nanoseconds, and are rounded to the nearest", n)
	}
	if n := b.program.Untimed(); n > 0 && !b.system.Roofline {
		warn("%d calcs have operations but no duration, and take 1 ns each, as in ASTRA-sim: \"roofline-enabled\": 1 in the "+
			"system file lets local-mem-bw and peak-perf say how long they take", n)
	}
	b.exactSizes = isChakra(h.Meta) // as ASTRA-sim matches messages
	b.system = b.system.For(&b.network, b.program.Uses, warn)
	if b.localMem.prefix != "" {
		if b.localMem.trace, err = dag.ReadAll(t); err != nil {
			return err
		}
	}
	return b.numberOps(t, h.Stable)
}

// numberOps finds out by which numbers the trace's format knows its ops: for single custom collectives and, where the
// format has such numbers and the trace is at hand, for messages.
func (b *analyticalBackend) numberOps(t dag.Source, inMemory bool) error {
	custom := b.system.CustomNodes != nil
	if !custom && !(inMemory && b.exactSizes) {
		return nil
	}
	trace, err := dag.ReadAll(t)
	if err != nil {
		return err
	}
	rank := loweredRank(trace)
	switch {
	case rank >= 0 && custom:
		return fmt.Errorf("%s: per-node-custom-implementation is for traces whose collectives ASTRA-sim has, and rank %d has "+
			"others, which were lowered to messages", b.flags.system, rank)
	case rank >= 0: // so its ops are not those of the format
	case custom:
		ids := make([][]uint64, len(trace.Ranks))
		for rank := range ids {
			ids[rank] = trace.Ranks[rank].IDs()
		}
		b.node = func(rank, op int) uint64 { return ids[rank][op] }
	default:
		b.node = func(rank, op int) uint64 { return trace.Ranks[rank].ID(op) }
	}
	return nil
}

// loweredRank returns the first rank with messages that stand for a collective, -1 if there is none.
func loweredRank(t *dag.Trace) int {
	for rank := range t.Ranks {
		r := &t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send && r.Tag.At(i) <= dag.CollectiveTag {
				return rank
			}
		}
	}
	return -1
}

func (b *analyticalBackend) run(settings []setting, r replay) (*result, error) {
	network, system := b.with(settings)
	done, err := b.program.Run(analytical.Options{Network: network, System: system, Memory: b.memory,
		ExactSizes: b.exactSizes, Node: b.node, Tensors: b.localMem.tensors(), Ended: r.opEnded, Progress: r.progress})
	if err != nil {
		return nil, err
	}
	if done.LocalMem != nil && !r.again && !r.part {
		if err := b.localMem.write(b.p, done.LocalMem); err != nil {
			return nil, err
		}
	}
	done.Params = b.parametersOf(network, system)
	return &result{Result: done.Result, NPUs: &done.NPUs}, nil
}

func (b *analyticalBackend) params(settings []setting) (model string, params any) {
	network, system := b.with(settings)
	return b.flags.congestion, b.parametersOf(network, system)
}
