package flit

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "flit",
	Title: "interconnection networks, cycle by cycle",
	New:   func() sim.Backend { return newBackend() },
	Lists: []sim.Listing{{
		Name: "presets", Help: "print the published networks and the keys of --set, and exit",
		Print: printPresets,
	}, {
		Name: "patterns", Help: "print the patterns of --synthetic with their parameters, and exit",
		Print: printPatterns,
	}},
}

// backend is the configuration of the backend.
type backend struct {
	preset    string
	topology  string
	params    Params
	placement topology.Placement
	placed    bool // the caller chose the placement, or the ranks per host
	cores     int
	links     string // file name

	synthetic       string
	load            string
	precision       float64
	routings        []Routing // given ones; nil: that of params
	warmup, measure int64
	window          int64
	trafficSeed     int64
	compat          string // of synthetic traffic: none or fogsim
	maxRequests     int
	maxCycles       int64  // 0: no limit
	rates           string // source of the topology's rates; "": defaults

	network *topology.Network
	points  []syntheticPoint // of synthetic traffic, without results; nil: the backend runs a trace
}

func newBackend() *backend {
	b := &backend{preset: Presets()[0].Name, placement: topology.DefaultPlacement, load: "0.1..1.0:10", warmup: 10_000,
		measure: 20_000, window: 1000, compat: "none"}
	b.params = Presets()[0].Params
	b.params.Seed = 1
	return b
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Nodes: true, Path: true}
}

func (b *backend) Params() param.Set {
	presets := Presets()
	names := make([]string, len(presets))
	for i, preset := range presets {
		names[i] = preset.Name
	}
	keys := b.params.keys()
	set := param.Set{
		param.Func("name", "preset", "published network with its parameters", func(text string) error {
			preset, err := FindPreset(text)
			if err != nil {
				return err
			}
			b.preset, preset.Params.Seed = text, b.params.Seed
			b.params = preset.Params
			return nil
		}).Among(names...).Default(b.preset),
		topology.ParamAbout(&b.topology, "network: specification such as dragonfly:h=2 or torus:dims=4x4, .topo file "+
			"or link list").Default("the preset's"),
		param.Func("name", "routing", "routing algorithm; with --synthetic also several, separated by commas",
			b.setRouting).Among(routings...).Default("minimal"),
		topology.PlacementParam(&b.placement),
		param.Int(&b.cores, "cores", "ranks per host").Default("the fewest that fit"),
		param.Func("key=value,...", "set", "router and NIC parameters; --list-presets lists them",
			func(text string) error { return keys.AssignAll(text) }).Repeats(),
		param.TimeIn(&b.params.Coupling.Overhead, dag.Nanosecond, "o",
			"processor time per message at both ends; without unit in ns").Sweep(),
		param.Int(&b.params.Seed, "seed", "seed of random choices").Sweep(),
		param.Int(&b.maxCycles, "max-cycles", "end the run with an error after N cycles; 0: no limit").
			Range(0, math.MaxInt64),
		param.File(&b.links, "ports", "write flits and utilization of each link to a CSV file").Output(),
		param.String(&b.synthetic, "synthetic", "run synthetic traffic instead of a trace, once per --load: "+
			"uniform, adversarial+I, hotspot:SHARE and others; --list-patterns lists them").Placeholder("traffic").
			Offer(patternNames()...),
		param.String(&b.load, "load", "loads of --synthetic in flits per cycle and host: comma-separated values "+
			"or FROM..TO:N; or saturation, which searches for the highest load that the network accepts").
			Placeholder("loads"),
		param.Float(&b.precision, "precision", "95 % interval of the mean latency relative to the mean, until which "+
			"--synthetic measures").Between(0, 0.5).Default("no extension; 0.02 for saturation"),
		param.Int(&b.warmup, "warmup", "warm-up cycles before the measurement, for --synthetic"),
		param.Int(&b.measure, "measure", "measured cycles, for --synthetic"),
		param.Int(&b.window, "window", "cycles per line of --synthetic transient"),
		param.Int(&b.maxRequests, "max-requests", "unanswered requests per host of --synthetic reactive; 0: no limit").
			Range(0, maxRequests),
		param.Int(&b.trafficSeed, "traffic-seed", "seed of the packets and targets of --synthetic; 0: --seed").
			Default("--seed"),
		param.Choice(&b.compat, "compat", "reproduce the patterns of a simulator, including the accidents of its code",
			"none", "fogsim").Placeholder("simulator"),
	}
	set.Find("routing").Synonyms = routingSynonyms
	set.Under("Network", "preset", "topology", "routing", "placement", "cores", "set", "o", "seed", "max-cycles")
	set.Under("Synthetic traffic", "synthetic", "load", "precision", "warmup", "measure", "window",
		"max-requests", "traffic-seed", "compat")
	set.Under("Output", "ports")
	return append(set, keys...)
}

func (b *backend) Check(env *sim.Env) error {
	env = env.OrEmpty()
	b.placed = env.IsGiven("placement") || env.IsGiven("cores")
	switch {
	case b.cores < 0:
		return param.Errorf("cores", "expected 1 or more, or 0 for the fewest that fit, found %d", b.cores)
	case b.links != "" && (env.Sweep || b.synthetic != ""):
		return &param.Error{Err: errors.New("--ports needs a single run of a trace; remove --sweep or --synthetic")}
	}
	if b.links != "" && env.CheckOutput != nil {
		if err := env.CheckOutput(b.links, false); err != nil {
			return err
		}
	}
	preset, err := FindPreset(b.preset)
	if err != nil {
		return &param.Error{Name: "preset", Err: err}
	}
	if b.topology == "" {
		b.topology = preset.Topology
	}
	_, notFile := os.Stat(b.topology)
	b.rates = ratesGiven(b.topology, notFile == nil)
	if b.topology == preset.Topology {
		b.rates = ""
	}
	if b.network, err = topology.Load(withDefaults(b.topology, preset.Topology)); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if err := b.network.RefuseGPUs(); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if !env.Sweep { // in a sweep, a bad point does not stop the others
		if err := b.params.Check(); err != nil {
			return &param.Error{Err: err}
		}
	}
	if b.synthetic != "" {
		return b.checkSynthetic(env)
	}
	if len(b.routings) > 1 {
		return param.Needs("routing", "--synthetic for several algorithms")
	}
	for _, name := range []string{"load", "precision", "warmup", "measure", "window", "max-requests", "traffic-seed",
		"compat"} {
		if env.IsGiven(name) {
			return param.Needs(name, "--synthetic")
		}
	}
	return b.placement.Check()
}

// setRouting parses routing algorithms.
func (b *backend) setRouting(texts string) error {
	b.routings = nil
	for text := range strings.SplitSeq(texts, ",") {
		var r Routing
		if err := r.UnmarshalText([]byte(param.Resolve(text, routings, routingSynonyms...))); err != nil {
			return err
		}
		if slices.Contains(b.routings, r) {
			return fmt.Errorf("expected each algorithm once, found %v again", r)
		}
		b.routings = append(b.routings, r)
	}
	b.params.Routing = b.routings[0]
	return nil
}

// routingSynonyms are further names of routing algorithms.
var routingSynonyms = []param.Synonym{
	{Choice: "minimal", Names: []string{"min"}}, {Choice: "valiant", Names: []string{"vlb", "val"}},
	{Choice: "ugal", Names: []string{"ugal-l"}},
}

// withDefaults adds missing keys to a topology specification: all keys of the preset for a network of the preset's
// kind, otherwise the latency of links. It does not change file names.
func withDefaults(text, preset string) string {
	kind, keys, described := strings.Cut(text, ":")
	if _, err := os.Stat(text); err == nil || !described {
		return text
	}
	presetKind, presetKeys, _ := strings.Cut(preset, ":")
	for pair := range strings.SplitSeq(presetKeys, ",") {
		key, _, _ := strings.Cut(pair, "=")
		if (kind == presetKind || key == "latency") && !strings.Contains(","+keys, ","+key+"=") {
			text += "," + pair
		}
	}
	return text
}

func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// place returns the hosts of the ranks.
func (b *backend) place(ranks int, seed int64, nodes []int32, shared bool) (Placement, error) {
	all, by := b.network.Hosts, b.placement.OrNodes(shared, b.placed)
	if by.ByRank() {
		hosts, err := by.Place(ranks, all, 1, seed, nodes)
		return Placement{Hosts: hosts}, err
	}
	cores := b.cores
	if cores == 0 {
		cores = max(1, (ranks+all-1)/all)
	}
	used := (ranks + cores - 1) / cores
	if used > all {
		return Placement{}, fmt.Errorf("%d ranks with %d per host need %d hosts, but the network has %d; use a "+
			"larger --topology or --cores", ranks, cores, used, all)
	}
	at, err := by.Place(used, all, 1, seed, nil)
	if err != nil {
		return Placement{}, err
	}
	hosts := make([]uint32, ranks)
	for r := range hosts {
		hosts[r] = at[r/cores]
	}
	return Placement{Hosts: hosts}, nil
}

// configured is a replay with the backend's configuration.
type configured struct {
	b      *backend
	env    *sim.Env
	ranks  int
	nodes  []int32
	shared bool // ranks are on nodes because jobs share these
	replay *Replay
	warn   func(message string, args ...any) // of all runs
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	env = env.OrEmpty()
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	shared, err := env.SharesNICs(s)
	if err != nil {
		return nil, err
	}
	if _, err := b.place(h.Ranks, b.params.Seed, h.Nodes, shared); err != nil {
		return nil, err
	}
	r, err := newReplay(env.Context, s)
	if err != nil {
		return nil, err
	}
	r.program.WarnShortReceives(env)
	return &configured{b, env, h.Ranks, h.Nodes, shared && !b.placed, r, env.WarnOnce()}, nil
}

func (c *configured) Clone() sim.Replay {
	clone := *c
	clone.replay = c.replay.Clone()
	return &clone
}

func (c *configured) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *c.b
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	err := b.params.resolve(b.network)
	result := &sim.Result{Backend: Backend.Name, Model: b.params.Routing.String(), Params: sim.ValuesOf(b.params)}
	if err != nil {
		return result, err
	}
	if err := b.params.Check(); err != nil {
		return result, err
	}
	placement, err := b.place(c.ranks, c.b.params.Seed, c.nodes, c.shared)
	if err != nil {
		return result, err
	}
	var links sim.Output
	if b.links != "" && o.Files {
		if c.env.Create == nil {
			return result, errors.New("--ports: the caller does not support output files")
		}
		if links, err = c.env.Create(b.links); err != nil {
			return result, err
		}
		defer links.Close()
	}
	threads := 0 // as many as are worthwhile
	if o.Threads < 2 {
		threads = 1
	}
	done, report, err := c.replay.Run(Options{Context: o.Context, Threads: threads, Network: b.network,
		Params:    b.params,
		Placement: placement, Timeline: o.Timeline, Path: o.Path != nil, Progress: o.Progress,
		MaxCycles: uint64(b.maxCycles),
		Rates:     b.rates, Warn: c.warn})
	if err != nil {
		return result, err
	}
	if links != nil {
		linkTable(report, len(report.Links)).WriteCSV(links)
		if err := links.Commit(); err != nil {
			return result, err
		}
	}
	if c.shared {
		done.AddSharedNICs(c.nodes)
	}
	own := newFigures(report)
	done.Topology = b.network.Describe(b.topology)
	done.Topology.Placement = b.placement.String()
	done.Add(sim.Section{Key: "backend_stats", Value: own, At: sim.Early, Rows: own.rows(), Tables: own.printTables,
		Units: report.units()})
	if o.Figures {
		traffic := report.traffic(b.network, b.params.FlitBytes)
		done.Add(sim.Section{Key: "network", Value: topology.NewFigure(b.network, traffic), At: sim.Detail})
	}
	if done.Path != nil {
		done.Add(done.Path.Section(o.Path))
	}
	return done, nil
}
