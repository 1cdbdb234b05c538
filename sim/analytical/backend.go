package analytical

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Backend is the entry of this backend in a registry.
var Backend = sim.Kind{
	Name:  "analytical",
	Title: "ASTRA-sim's analytical model of hierarchical networks",
	New:   func() sim.Backend { return newBackend() },
}

// backend is the configuration of the backend.
type backend struct {
	networkFile    string // or a network in one line
	systemFile     string
	memoryFile     string
	congestion     string
	queues         int
	replicate      bool
	rendezvous     bool
	injectionScale float64

	env      *sim.Env
	network  Network
	system   System
	memory   Memory
	localMem string // prefix of the files that track local memory; "": none
}

func newBackend() *backend {
	return &backend{congestion: "unaware", queues: 1, injectionScale: 1, system: DefaultSystem(&Network{})}
}

func (b *backend) Traits() sim.Traits { return sim.Traits{} }

func (b *backend) Params() param.Set {
	set := param.Set{
		param.File(&b.networkFile, "network",
			"ASTRA-sim network configuration, or a network such as 'Ring(4)_Switch(8)@100,50GB/s,500ns' (required)"),
		param.File(&b.systemFile, "system", "ASTRA-sim system configuration").Default("by the network"),
		param.File(&b.memoryFile, "memory", "ASTRA-sim configuration of remote memory").Default("none"),
		param.Choice(&b.congestion, "congestion", "contention of messages for links", "unaware", "aware"),
		param.Int(&b.queues, "queues-per-dim", "queues of collective chunks per dimension").Range(1, MaxQueues),
		param.Bool(&b.replicate, "replicate-rank0", "run the file of rank 0 on all NPUs"),
		param.Bool(&b.rendezvous, "rendezvous", "delay messages until the receiver requests them"),
		param.Float(&b.injectionScale, "injection-scale", "factor of endpoint-delay in the system file"),
	}
	return append(set, b.numbers(&b.network, &b.system)...)
}

// Replicas returns the number of NPUs if all run the file of rank 0.
func (b *backend) Replicas() int {
	if !b.replicate {
		return 0
	}
	return b.network.NPUs()
}

func (b *backend) Check(env *sim.Env) error {
	if b.networkFile == "" {
		return param.Errorf("network", "the analytical backend needs a network")
	}
	b.env = env.OrEmpty()
	if err := b.readNetwork(); err != nil {
		return err
	}
	if err := b.readMemory(); err != nil {
		return err
	}
	return b.readSystem()
}

// readNetwork reads the network from a file, or from the flag itself.
func (b *backend) readNetwork() error {
	text, err := readConfig(b.networkFile)
	switch {
	case err == nil:
		b.network, err = ReadNetwork(text, b.networkFile, b.env.Warnf)
	case errors.Is(err, os.ErrNotExist) && strings.ContainsAny(b.networkFile, "(@"):
		if b.network, err = ParseNetwork(b.networkFile); err != nil {
			return &param.Error{Name: "network", Err: err}
		}
	}
	b.network.Aware = b.congestion == "aware"
	return err
}

func (b *backend) readMemory() error {
	if b.memoryFile == "" {
		return nil
	}
	text, err := readConfig(b.memoryFile)
	if err != nil {
		return err
	}
	if b.memory, err = ReadMemory(text, b.memoryFile, b.env.Warnf); err != nil {
		return err
	}
	if err := b.memory.Check(b.network.NPUs()); err != nil {
		return fmt.Errorf("%s: %w", b.memoryFile, err)
	}
	return nil
}

func (b *backend) readSystem() error {
	b.system = DefaultSystem(&b.network)
	if name := b.systemFile; name != "" {
		text, err := readConfig(name)
		if err != nil {
			return err
		}
		file, err := ReadSystem(text, name, b.env.Warnf)
		if err != nil {
			return err
		}
		if err := file.ScaleInjection(b.injectionScale); err != nil {
			return &param.Error{Name: "injection-scale", Err: err}
		}
		b.system = file.System
		if err := b.readCustom(file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.localMem = file.LocalMemTrace
		files := localMemFiles{prefix: b.localMem}
		if err := files.check(b.env, b.network.NPUs()); err != nil {
			return err
		}
	} else if b.injectionScale != 1 {
		return param.Needs("injection-scale", "--system, with an endpoint-delay")
	}
	b.system.Queues, b.system.Rendezvous = b.queues, b.rendezvous
	return nil
}

// readCustom reads the collectives that are given as traces.
func (b *backend) readCustom(file *SystemFile) (err error) {
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
	nodes, err := ReadCustomNodes(text, name)
	if err != nil {
		return err
	}
	b.system.CustomNodes = make(map[uint64]*Program, len(nodes))
	programs := make(map[string]*Program) // by prefix
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

func (b *backend) readCustomTrace(prefix string) (*Program, error) {
	if b.env.Read == nil {
		return nil, errors.New("custom collectives are read from files, and the caller reads none")
	}
	trace, name, err := b.env.Read(b.beside(prefix, firstFile), "chakra")
	if err != nil {
		return nil, err
	}
	program, err := compile(b.env.Context, dag.FromTrace(trace))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return program, nil
}

// beside returns a path that the system file has: relative to the working directory, or, where there is no such file
// with the suffix, to the system file.
func (b *backend) beside(path, suffix string) string {
	if _, err := os.Stat(path + suffix); err == nil || filepath.IsAbs(path) {
		return path
	}
	other := filepath.Join(filepath.Dir(b.systemFile), path)
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

// Lowers leaves to the backend the collectives that ASTRA-sim has. It has no algorithm for a broadcast, which takes the
// time that its trace records; other traces' broadcasts are lowered.
func (b *backend) Lowers(s dag.Source) func(dag.Subkind) bool {
	bcast := s != nil && b.lowersBcast(s)
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

func (b *backend) lowersBcast(s dag.Source) bool {
	t, err := dag.ReadAll(s)
	return err == nil && knowsRoots(t) && (!attr.FromChakra(t.Attrs) || b.env.Collective)
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

// replay is a compiled trace with the backend's configuration.
type replay struct {
	b          *backend
	program    *Program
	system     System // for the trace
	exactSizes bool
	node       func(rank, op int) uint64 // the number of an op in the trace's format; nil: not known
	localMem   localMemFiles
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	env = env.OrEmpty()
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	if ranks, npus := h.Ranks, b.network.NPUs(); ranks != npus {
		hint := fmt.Sprintf("choose a network of %d NPUs", ranks)
		if ranks < npus {
			hint += fmt.Sprintf(", a trace of %d ranks, or with --replicate-rank0 one rank for all NPUs", npus)
		}
		return nil, fmt.Errorf("the trace has %d ranks, and the network %v has %d NPUs: %s", ranks,
			b.network.Shape(), npus, hint)
	}
	r := &replay{b: b, localMem: localMemFiles{prefix: b.localMem, env: b.env}}
	if r.program, err = compile(env.Context, s); err != nil {
		return nil, err
	}
	if n := r.program.Rounded(); n > 0 {
		env.Warnf("%d durations or release times are no whole number of nanoseconds, and are rounded to the nearest", n)
	}
	if n := r.program.Untimed(); n > 0 && !b.system.Roofline {
		env.Warnf("%d calcs have operations but no duration, and take 1 ns each, as in ASTRA-sim: "+
			"\"roofline-enabled\": 1 in the system file lets local-mem-bw and peak-perf say how long they take", n)
	}
	r.exactSizes = attr.FromChakra(h.Attrs) // as ASTRA-sim matches messages
	r.system = b.system.For(&b.network, r.program.Uses, env.Warnf)
	if b.localMem != "" {
		if r.localMem.trace, err = dag.ReadAll(s); err != nil {
			return nil, err
		}
	}
	return r, r.numberOps(s, h.Stable)
}

// numberOps finds out by which numbers the trace's format knows its ops: for single custom collectives and, where the
// format has such numbers and the trace is at hand, for messages.
func (r *replay) numberOps(s dag.Source, inMemory bool) error {
	custom := r.system.CustomNodes != nil
	if !custom && !(inMemory && r.exactSizes) {
		return nil
	}
	trace, err := dag.ReadAll(s)
	if err != nil {
		return err
	}
	rank := loweredRank(trace)
	switch {
	case rank >= 0 && custom:
		return fmt.Errorf("%s: per-node-custom-implementation is for traces whose collectives ASTRA-sim has, "+
			"and rank %d has others, which were lowered to messages", r.b.systemFile, rank)
	case rank >= 0: // so its ops are not those of the format
	case custom:
		ids := make([][]uint64, len(trace.Ranks))
		for rank := range ids {
			ids[rank] = trace.Ranks[rank].IDs()
		}
		r.node = func(rank, op int) uint64 { return ids[rank][op] }
	default:
		r.node = func(rank, op int) uint64 { return trace.Ranks[rank].ID(op) }
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

// Clone returns the replay itself: a run leaves the program as it is.
func (r *replay) Clone() sim.Replay { return r }

func (r *replay) Run(o sim.RunOptions) (*sim.Result, error) {
	network, system := r.b.network, r.system
	network.Dims = slices.Clone(network.Dims)
	if err := r.b.numbers(&network, &system).Override(o.Settings); err != nil {
		return nil, err
	}
	values := r.b.parametersOf(&network, &system)
	done, err := r.program.Run(Options{Context: o.Context, Network: network, System: system, Memory: r.b.memory,
		ExactSizes: r.exactSizes, Node: r.node, Tensors: r.localMem.tensors(), Ended: o.OpEnded, Progress: o.Progress})
	if err != nil {
		return &sim.Result{Backend: Backend.Name, Model: r.b.congestion, Params: values}, err
	}
	if done.LocalMem != nil && o.Files {
		if err := r.localMem.write(done.LocalMem); err != nil {
			return nil, err
		}
	}
	done.Params, done.Settings = values, settings(&network, values)
	stats := &done.NPUs
	done.Add(sim.Section{Key: "npu_stats", Value: stats, Ranks: len(stats.Cycles) > 0,
		Tables: func(w io.Writer) { printBreakdown(w, stats) }})
	return done.Result, nil
}
