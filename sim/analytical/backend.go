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
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/fit"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "analytical",
	Title: "ASTRA-sim's analytical model of hierarchical networks",
	New:   func() sim.Backend { return newBackend() },
}

// backend is the configuration of the backend.
type backend struct {
	networkFile    string    // or a network in one line
	fitted         *fit.File // parameters of a file; nil: none
	fittedFile     string
	systemFile     string
	memoryFile     string
	congestion     string
	queues         int
	replicate      bool
	rendezvous     bool
	injectionScale float64
	explain        bool

	env      *sim.Env
	network  Network
	system   System
	memory   Memory
	localMem string // prefix of the local memory trace files; "": none
}

func newBackend() *backend {
	return &backend{congestion: "unaware", queues: 1, injectionScale: 1, system: DefaultSystem(&Network{})}
}

func (b *backend) Traits() sim.Traits { return sim.Traits{Path: true, Memory: true} }

func (b *backend) Params() param.Set {
	set := param.Set{
		param.Func("file", "params", "parameter file that --fit wrote", b.setParams),
		param.File(&b.networkFile, "network",
			"network: ASTRA-sim configuration file, or specification such as "+
				"'Ring(4)_Switch(8)@100,50GB/s,500ns', or conv-3d and other systems of the paper (required)"),
		param.File(&b.systemFile, "system", "ASTRA-sim system configuration file").Default("set by the network"),
		param.File(&b.memoryFile, "memory", "ASTRA-sim remote memory configuration file").Default("none"),
		param.Choice(&b.congestion, "congestion", "contention of messages for links: unaware (none) or aware",
			"unaware", "aware"),
		param.Int(&b.queues, "queues-per-dim", "queues of collective chunks per network dimension").Range(1, MaxQueues),
		param.Bool(&b.replicate, "replicate-rank0", "run the trace file of rank 0 on all NPUs"),
		param.Bool(&b.rendezvous, "rendezvous", "send messages only after the receiver requests them"),
		param.Float(&b.injectionScale, "injection-scale", "scale factor of endpoint-delay in the system file"),
		param.Bool(&b.explain, "explain", "report link loads and times of chunks of the accesses to a memory pool"),
	}
	return append(set, b.numbers(&b.network, &b.system)...)
}

// Replicas returns the number of NPUs if all run the file of rank 0, and 0 otherwise.
func (b *backend) Replicas() int {
	if !b.replicate {
		return 0
	}
	return b.network.NPUs()
}

func (b *backend) Check(env *sim.Env) error {
	if b.networkFile == "" {
		return param.Errorf("network", "the analytical backend needs a network, such as 'Ring(8)@100GB/s,500ns'")
	}
	b.env = env.OrEmpty()
	if err := b.selectFitted(); err != nil {
		return err
	}
	if err := b.readNetwork(); err != nil {
		return err
	}
	if err := b.applyFitted(); err != nil {
		return err
	}
	if err := b.readMemory(); err != nil {
		return err
	}
	return b.readSystem()
}

// readNetwork reads the network from a file or from the flag itself.
func (b *backend) readNetwork() error {
	text, err := readConfig(b.networkFile)
	system, found := systemNetwork(b.networkFile)
	switch {
	case err == nil:
		b.network, err = ReadNetwork(text, b.networkFile, b.env.Warnf)
	case errors.Is(err, os.ErrNotExist) && found:
		b.network, err = ParseNetwork(system)
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
		if b.explain {
			return param.Needs("explain", "--memory, with a memory pool")
		}
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
	if b.explain && b.memory.stages() == 0 && b.memory.Direct == nil {
		return param.Errorf("explain", "expected a memory with links, such as HIERARCHICAL_POOL, in %s, found %v",
			b.memoryFile, b.memory.Kind)
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

// readCustom reads the collectives given as traces.
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

// firstFile is the suffix of the first file of a Chakra trace.
const firstFile = ".0.et"

func (b *backend) readCustomTrace(prefix string) (*Program, error) {
	if b.env.Read == nil {
		return nil, errors.New("the caller does not support reading custom collectives from files")
	}
	trace, name, err := b.env.Read(b.beside(prefix, firstFile), "chakra")
	if err != nil {
		return nil, err
	}
	program, err := compile(b.env.Context, dag.FromTrace(trace), false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return program, nil
}

// beside resolves a path of the system file: relative to the working directory or, if there is no such file with the
// suffix, relative to the system file.
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

// maxConfigFile is the number of bytes read from a configuration file, more than the largest valid size.
const maxConfigFile = 1<<20 + 1

func readConfig(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxConfigFile))
}

// Lowers selects the collectives that ASTRA-sim lacks. ASTRA-sim has no broadcast algorithm and uses the duration
// recorded in its traces, which have no roots; broadcasts with known roots are lowered.
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
	return err == nil && knowsRoots(t)
}

// knowsRoots reports whether the trace has the root of some bcast.
func knowsRoots(t *dag.Trace) bool {
	for i := range t.Ranks {
		r := t.Ranks[i]
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
	system     System // adapted to the trace
	exactSizes bool
	node       func(rank, op int) uint64 // number of an op in the trace's format; nil: unknown
	localMem   localMemFiles
	nodes      []int32 // of ranks that share NICs; nil: none do
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	env = env.OrEmpty()
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	if ranks, npus := h.Ranks, b.network.NPUs(); ranks != npus {
		hint := fmt.Sprintf("use a network with %d NPUs", ranks)
		if ranks < npus {
			hint += fmt.Sprintf(", a trace with %d ranks, or --replicate-rank0 to run one rank on all NPUs", npus)
		}
		return nil, fmt.Errorf("the trace has %d ranks, but the network %v has %d NPUs; %s", ranks,
			b.network.Shape(), npus, hint)
	}
	r := &replay{b: b, localMem: localMemFiles{prefix: b.localMem, env: b.env}}
	if r.program, err = compile(env.Context, s, b.system.MemoryOverlap); err != nil {
		return nil, err
	}
	if shared, err := env.SharesNICs(s); err != nil {
		return nil, err
	} else if shared {
		r.nodes = h.Nodes
	}
	if n := r.program.Rounded(); n > 0 {
		env.Warnf("%d durations or release times were rounded to whole nanoseconds", n)
	}
	if n := r.program.Untimed(); n > 0 && !b.system.Roofline {
		env.Warnf("%d calcs have flops but no duration and take 1 ns each, as in ASTRA-sim; "+
			"set \"roofline-enabled\": 1, local-mem-bw and peak-perf in the system file to compute durations", n)
	}
	r.exactSizes = attr.FromChakra(h.Attrs) // as in ASTRA-sim
	if !r.exactSizes {                      // otherwise, other sizes do not match
		r.program.warnShortReceives(env)
	}
	r.system = b.system.For(&b.network, r.program.Uses, env.Warnf)
	if b.localMem != "" {
		if r.localMem.trace, err = memory.ReadTrace(env.Context, s); err != nil {
			return nil, err
		}
	}
	return r, r.numberOps(s, h.Stable)
}

// numberOps determines the numbers of ops in the trace's format: for custom collectives of single ops and, if the
// format has numbers and the trace is in memory, for messages.
func (r *replay) numberOps(s dag.Source, inMemory bool) error {
	custom := r.system.CustomNodes != nil
	if !custom && !(inMemory && r.exactSizes) {
		return nil
	}
	trace, err := memory.ReadTrace(r.b.env.Context, s)
	if err != nil {
		return err
	}
	rank := loweredRank(trace)
	switch {
	case rank >= 0 && custom:
		return fmt.Errorf("%s: per-node-custom-implementation requires a trace with collectives of ASTRA-sim only, "+
			"but rank %d has others, which were lowered to messages", r.b.systemFile, rank)
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

// loweredRank returns the first rank with messages of a lowered collective, or -1 if there is none.
func loweredRank(t *dag.Trace) int {
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send && r.Tag.At(i) <= dag.CollectiveTag {
				return rank
			}
		}
	}
	return -1
}

// Clone returns the replay itself, since a run does not change the program.
func (r *replay) Clone() sim.Replay { return r }

func (r *replay) Run(o sim.RunOptions) (*sim.Result, error) {
	network, system := r.b.network, r.system
	network.Dims = slices.Clone(network.Dims)
	if err := r.b.numbers(&network, &system).Override(o.Settings); err != nil {
		return nil, err
	}
	values := r.b.parametersOf(&network, &system)
	done, err := r.program.Run(Options{Context: o.Context, Network: network, System: system, Memory: r.b.memory,
		ExactSizes: r.exactSizes, FreeMarkers: !r.exactSizes, Nodes: r.nodes,
		Node: r.node, Tensors: r.localMem.tensors(), Timeline: o.Timeline, Path: o.Path != nil, Progress: o.Progress})
	if err != nil {
		return &sim.Result{Backend: Backend.Name, Model: r.b.congestion, Params: values}, err
	}
	if done.LocalMem != nil && o.Files {
		if err := r.localMem.write(done.LocalMem); err != nil {
			return nil, err
		}
	}
	done.Params, done.Settings = values, settings(&network, values)
	done.Topology = network.describe(r.b.networkFile)
	done.AddSharedNICs(r.nodes)
	if done.Path != nil {
		done.Add(done.Path.Section(o.Path))
	}
	stats := &done.NPUs
	done.Add(sim.Section{Key: "npu_stats", Value: stats, Units: statUnits, Ranks: len(stats.Cycles) > 0,
		Tables: func(w io.Writer) { printBreakdown(w, stats) }})
	if r.b.explain {
		done.Add(r.b.memory.explain(r.program.accesses()))
	}
	if len(stats.Wrapped) > 0 {
		done.Add(sim.Section{Key: "npu_stats_wrapped", Value: stats.Wrapped, Rows: []sim.Row{sim.Rowf("wrapped",
			"%s of npu_stats: values below 0 are 2^64 larger, as in ASTRA-sim", strings.Join(stats.Wrapped, ", "))}})
	}
	return done.Result, nil
}
