// Package flow simulates data-center networks with messages as fluids: each message is a flow with a rate, and all
// flows share the links fairly. Something is computed only when a flow starts or ends.
//
// The models are those of SimGrid. docs/reference/backends/flow.md defines the rules.
package flow

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/platform"
	"github.com/tracedag/tracedag/sim/topology"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "flow",
	Title: "data-center networks, messages as flows that share links fairly",
	New:   func() sim.Backend { return newBackend() },
}

// backend is the configuration of the backend.
type backend struct {
	topology  string
	placement topology.Placement
	placed    bool // the caller chose the placement
	nics      int
	seed      int64
	balance   string
	entropy   int

	modelName string
	model     model
	fixed     fixed
	acks      float64
	fitted    *fit.File // parameters of a file; nil: none

	overhead   dag.Time
	rendezvous int64
	smpi       smpi
	local      topology.Local

	failTexts []string
	failures  []topology.Failure

	sample                dag.Time
	flows, ports, samples string // file names
	maxFlows              int
	window                measure.Window
	gap                   dag.Time

	network  *topology.Network // nil: platform
	platform *platform.Platform
}

func newBackend() *backend {
	return &backend{nics: 1, seed: 1, placement: topology.DefaultPlacement, balance: balanceSpray,
		modelName: models[0].name, model: models[0].model, acks: simGridACKs,
		rendezvous: math.MaxInt64, smpi: defaultSMPI(), maxFlows: 100_000}
}

func (b *backend) Traits() sim.Traits { return sim.Traits{Nodes: true, Path: true} }

// byModel is the default of the model's parameters.
const byModel = "set by --flow-model"

// Limits of the model's parameters.
const (
	largestFactor = 1e6
	largestWeight = 1e12
)

func (b *backend) Params() param.Set {
	names := make([]string, len(models))
	for i := range models {
		names[i] = models[i].name
	}
	set := param.Set{
		topology.Param(&b.topology),
		topology.PlacementParam(&b.placement),
		param.Int(&b.nics, "nics", "NICs per rank; each NIC is one host of the network"),
		param.Strings(&b.failTexts, "fail",
			"fail a link, such as tor3-agg1@2ms..5ms, or change its rate, such as tor3-agg1@2ms:25Gbps; repeatable").
			Placeholder("link"),
		param.Func("rate", "local-rate", "rate of messages between ranks on one host", b.local.SetRate).
			Default("unlimited"),
		param.Time(&b.local.Latency, "local-latency", "latency of messages between ranks on one host").Sweep(),
		param.Int(&b.seed, "seed", "seed of random choices").Sweep(),
		param.Choice(&b.balance, "balance", "load balancing over equal-cost paths: spray (equal parts on all paths), "+
			"flow (by a hash), least (fewest bytes in flight) or fixed (by destination)",
			balanceSpray, balanceFlow, balanceLeast, balanceFixed).
			Synonym(balanceFlow, "ecmp", "per-flow", "hash").
			Synonym(balanceSpray, "packet-spray", "packet-spraying", "per-packet"),
		param.Int(&b.entropy, "entropy", "entropy values per flow, whose hashes select the paths of sprayed flows; "+
			"0: equal parts on all paths").Range(0, 1<<16).Sweep(),
		param.Func("file", "params", "parameter file that --fit wrote", b.setParams).OrFile(),
		param.Func("name", "flow-model", "sharing of links: fair (max-min), or cm02, lv08 or smpi as in SimGrid",
			b.setModel).Default(b.modelName).Among(names...).Alias("network/model"),
		param.Float(&b.model.latencyFactor, "latency-factor",
			"multiple of the latency of paths (SimGrid: network/latency-factor)").
			Between(0,
				largestFactor).Check(b.replaceLatencies).Default(byModel).Alias("network/latency-factor").Sweep(),
		param.Float(&b.model.bandwidthFactor, "bandwidth-factor",
			"rate of a flow relative to its share of the links (SimGrid: network/bandwidth-factor)").
			Between(1/largestFactor, largestFactor).Check(b.replaceBandwidths).Default(byModel).
			Alias("network/bandwidth-factor").Sweep(),
		param.Float(&b.model.weightS, "weight-s",
			"bytes per rate of each link that lower the weight of a flow like latency (SimGrid: network/weight-S)").
			Between(0, largestWeight).Check(b.fix(&b.fixed.weight)).Default(byModel).
			Alias("weight-S", "network/weight-S").Sweep(),
		param.Size(&b.model.gamma, "tcp-gamma", "window of a flow, which limits its rate to window / (2 latency); "+
			"0: no limit (SimGrid: network/TCP-gamma)").Check(b.fix(&b.fixed.gamma)).Default(byModel).
			Alias("TCP-gamma", "network/TCP-gamma").Sweep(),
		param.Bool(&b.model.crossTraffic, "cross-traffic",
			"acknowledgements take --ack-share of the rate of a flow in the opposite direction (SimGrid: "+
				"network/crosstraffic)").
			Check(b.fix(&b.fixed.crossTraffic)).Default(byModel).Alias("crosstraffic", "network/crosstraffic"),
		param.Float(&b.acks, "ack-share",
			"share of the rate of a flow that acknowledgements take with --cross-traffic").Between(0, 1).Sweep(),
		param.TimeIn(&b.overhead, dag.Nanosecond, "o",
			"processor time per message at both ends; without unit in ns").Sweep(),
		param.TimeIn(&b.gap, dag.Nanosecond, "g", "gap between messages of a NIC; without unit in ns").Sweep(),
		param.Size(&b.rendezvous, "S", "largest eager message; larger ones wait for their receive").
			Default("unlimited").Sweep(),
	}
	set = append(set, b.smpiParams()...)
	set = append(set, b.window.Params()...)
	set = append(set,
		param.Time(&b.sample, "sample", "sampling period of the rates of ports").Default("no samples"),
		param.File(&b.samples, "samples", "write the samples to a CSV file").Output(),
		param.File(&b.flows, "flows",
			"write source, destination, start, completion, job, class and name of each flow to a CSV file").Output(),
		param.File(&b.ports, "ports", "write bytes and utilization of each port to a CSV file").Output(),
		param.Int(&b.maxFlows, "max-flows", "largest number of flows that --json lists").Range(0, math.MaxInt32))
	set.Under("Network", "topology", "placement", "nics", "fail", "local-rate", "local-latency", "seed", "balance",
		"entropy")
	set.Under("Flows", "params", "flow-model", "latency-factor", "bandwidth-factor", "weight-s", "tcp-gamma",
		"cross-traffic", "ack-share")
	set.Under("Messages", "o", "g", "S")
	set.Under("Protocol of SMPI", smpiNames...)
	set.Under("Output", "measure-from", "measure-until", "sample", "samples", "flows", "ports", "max-flows")
	return set
}

func (b *backend) Check(env *sim.Env) (err error) {
	env = env.OrEmpty()
	b.placed = env.IsGiven("placement")
	switch {
	case b.topology == "":
		return param.Errorf("topology", "the flow backend needs a network, such as fattree:k=8,rate=200Gbps or a file")
	case b.samples != "" && b.sample <= 0:
		return param.Needs("samples", "--sample, the period")
	case b.sample > 0 && b.samples == "":
		return param.Needs("sample", "--samples, the file")
	case b.nics < 1:
		return param.Errorf("nics", "expected 1 or more, found %d", b.nics)
	case b.window.Check() != nil:
		return b.window.Check()
	case b.gap > 0 && b.smpi.on():
		return param.Errorf("g", "the protocol smpi has no gap")
	case min(b.overhead, b.gap, b.local.Latency) < 0 || min(b.rendezvous, b.model.gamma) < 0:
		return errors.New("expected times and sizes of at least 0, found a negative one")
	}
	for _, file := range []struct{ name, path string }{{"flows", b.flows}, {"ports", b.ports},
		{"samples", b.samples}} {
		switch {
		case file.path == "":
		case env.Sweep:
			return param.Exclude(file.name, "sweep")
		case env.CheckOutput != nil:
			if err := env.CheckOutput(file.path, false); err != nil {
				return err
			}
		}
	}
	if b.network, b.platform = nil, nil; topology.IsPlatform(b.topology) {
		b.platform, err = platform.Load(b.topology)
		if err == nil {
			err = b.configure(env)
		}
		if b.balance == balanceSpray && !env.IsGiven("balance") {
			b.balance = balanceFixed
		}
	} else {
		b.network, err = topology.Load(b.topology)
	}
	if err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if text := b.fitted.OtherNetwork(b.topology); text != "" {
		env.Warnf("%s", text)
	}
	err = cmp.Or(b.readOptions(env), b.smpi.check(b, env), b.parseFailures(), b.checkBalance(),
		b.placement.CheckNames(b.platform.HostNames()))
	if err == nil && env.IsGiven("ack-share") && !b.model.crossTraffic {
		err = param.Needs("ack-share", "--cross-traffic")
	}
	return err
}

// checkBalance returns an error if load balancing is requested although the routes are given, and if entropy values
// have no effect.
func (b *backend) checkBalance() error {
	if b.entropy > 0 && b.balance != balanceSpray {
		return param.Needs("entropy", fmt.Sprintf("--balance %s, found %s", balanceSpray, b.balance))
	}
	if b.platform != nil && b.balance != balanceFixed {
		return param.Errorf("balance", "expected %s, because platform files have one route between two hosts, "+
			"found %s", balanceFixed, b.balance)
	}
	return nil
}

// linkName returns the name of a link.
func (b *backend) linkName(l int) string {
	if b.platform != nil {
		return b.platform.Links[l].Name
	}
	return b.network.LinkName(l)
}

// size returns the number of hosts.
func (b *backend) size() int {
	if b.platform != nil {
		return len(b.platform.Hosts)
	}
	return b.network.Hosts
}

// fixed are the parameters of the model that the caller has set, which a model leaves.
type fixed struct {
	latency, bandwidth, weight, gamma, crossTraffic bool
}

// fix returns a function that notes that the caller has set a parameter.
func (b *backend) fix(set *bool) func() error {
	return func() error { *set = true; return nil }
}

// setModel selects a model with its parameters.
func (b *backend) setModel(name string) error {
	before := b.model
	i := slices.IndexFunc(models, func(m namedModel) bool { return m.name == strings.ToLower(name) })
	if i < 0 {
		return fmt.Errorf("expected fair, cm02, lv08 or smpi, found %q", name)
	}
	b.modelName, b.model = models[i].name, models[i].model
	m := &b.model
	if b.fixed.latency {
		m.latencyFactor, m.latencies = before.latencyFactor, before.latencies
	}
	if b.fixed.bandwidth {
		m.bandwidthFactor, m.bandwidths = before.bandwidthFactor, before.bandwidths
	}
	if b.fixed.weight {
		m.weightS = before.weightS
	}
	if b.fixed.gamma {
		m.gamma = before.gamma
	}
	if b.fixed.crossTraffic {
		m.crossTraffic = before.crossTraffic
	}
	return nil
}

// switches are SimGrid's words for on and off.
var switches = map[string]string{"yes": "on", "no": "off"}

// simGridSwitch returns the value of a parameter from SimGrid's text.
func simGridSwitch(name, text string) string {
	if on, is := switches[strings.ToLower(text)]; is && name == "cross-traffic" {
		return on
	}
	return text
}

// configure applies the options network/... of a platform file that the caller has not set.
func (b *backend) configure(env *sim.Env) error {
	set := b.Params()
	for _, name := range slices.Sorted(maps.Keys(b.platform.Settings)) {
		i := slices.IndexFunc(set, func(p param.Param) bool { return slices.Contains(p.Aliases, name) })
		if i < 0 || env.IsGiven(set[i].Name) {
			continue
		}
		text := simGridSwitch(set[i].Name, b.platform.Settings[name])
		if err := set[i].Value.Set(text); err != nil {
			return fmt.Errorf("%s: option %s: %w", b.topology, name, err)
		}
	}
	return nil
}

// replaceLatencies replaces the latency factors by size.
func (b *backend) replaceLatencies() error {
	b.fixed.latency, b.model.latencies = true, nil
	return nil
}

// replaceBandwidths replaces the bandwidth factors by size.
func (b *backend) replaceBandwidths() error {
	b.fixed.bandwidth, b.model.bandwidths = true, nil
	return nil
}

// Lowers selects all collectives: the backend runs sends, receives and calcs only.
func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// replay is a compiled trace with the backend's configuration.
type replay struct {
	b       *backend
	env     *sim.Env
	program *sim.Program
	nodes   []int32  // by rank; nil: the trace has none
	shared  bool     // the ranks on a node share its NICs
	hosts   []uint32 // first ones by rank, unless a run has another seed
	labels  *measure.Labels
	modes   sendModes

	computed *platform.Computed // nil: no platform
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	env = env.OrEmpty()
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	r := &replay{b: b, env: env, nodes: h.Nodes}
	if r.shared, err = env.SharesNICs(s); err != nil {
		return nil, err
	}
	if r.hosts, err = b.place(h.Ranks, h.Nodes, r.shared); err != nil {
		return nil, err
	}
	if b.platform != nil {
		r.computed = b.platform.Compute(s, r.hosts)
		s = r.computed
	}
	if b.flows != "" || len(h.Jobs) > 0 {
		r.labels, s = measure.NewLabels(s, h, b.flows != "")
	}
	if b.smpi.on() || env.Sweep {
		source := &modeSource{s, make(sendModes, h.Ranks)}
		r.modes, s = source.modes, source
	}
	o := sim.CompileOptions{DenseStreams: true, Context: env.Context, Explain: env.Explain}
	// Messages between GPUs are numbered in advance, and labels belong to all messages.
	// The protocol of SMPI finds non-blocking sends in advance.
	o.Windows = (b.platform != nil || b.network.GPUs == nil) && r.labels == nil && !b.smpi.on()
	o.OpBytes = opBytes
	if r.program, err = sim.Compile(s, o); err != nil {
		return nil, err
	}
	r.program.WarnShortReceives(env)
	return r, nil
}

// opBytes is the memory of a replay per op with all ops in memory: 64 bytes, and half of a message's record and two
// values of distributions, since each message has two ops.
const opBytes = 64 + (int64(unsafe.Sizeof(record{}))+2*8)/2

func (r *replay) Clone() sim.Replay {
	clone := *r
	clone.program = r.program.Clone()
	return &clone
}

func (r *replay) Recycle() { r.program.Recycle() }

func (r *replay) Room() *sim.Room { return r.program.Room() }

func (r *replay) Close() error { return r.program.Close() }

// Hosts implements [sim.Placer].
func (b *backend) Hosts(ranks int) ([]uint32, error) {
	if !b.placed {
		return nil, nil
	}
	return b.place(ranks, nil, false)
}

// place returns the first hosts of a number of ranks on given nodes, whose NICs they may share.
func (b *backend) place(ranks int, nodes []int32, shared bool) ([]uint32, error) {
	by := b.placement.OrNodes(shared, b.placed)
	var hosts []uint32
	var err error
	if b.platform != nil {
		hosts, err = by.Place(ranks, b.size(), b.nics, b.seed, nodes)
	} else {
		hosts, err = b.network.Place(&by, ranks, b.nics, b.seed, nodes)
	}
	if err != nil {
		return nil, err
	}
	return hosts, topology.CheckHosts(hosts, b.nics, ranks, b.size())
}

func (r *replay) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *r.b
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	if err := b.checkBalance(); err != nil {
		return nil, err
	}
	if err := b.smpi.checkRun(&b, r.program); err != nil {
		return nil, err
	}
	m := &b.model
	m.acks = b.acks
	failed := &sim.Result{Backend: Backend.Name, Model: b.modelName, Params: b.values(m)}
	if err := sim.Interrupted(o.Context); err != nil {
		return failed, err
	}
	hosts := r.hosts
	if b.seed != r.b.seed { // a placement may be random
		var err error
		if hosts, err = b.place(r.program.Ranks(), r.nodes, r.shared); err != nil {
			return failed, err
		}
	}
	if err := r.computed.Check(hosts, r.env.Warnf); err != nil {
		return failed, err
	}
	var files outputFiles
	if o.Files {
		if err := files.create(&b, r.env); err != nil {
			return failed, err
		}
		defer files.close()
	}
	result, more, err := r.simulate(&b, m, hosts, &o, files.samples)
	if err != nil {
		return failed, err
	}
	if err := files.write(more); err != nil {
		return failed, err
	}
	result.Backend, result.Model, result.Params = Backend.Name, b.modelName, b.values(m)
	result.Settings = fmt.Sprintf("balance=%s o=%v", b.balance, b.overhead)
	if b.smpi.on() {
		result.Settings = fmt.Sprintf("balance=%s protocol=%s", b.balance, protocolSMPI)
	}
	if b.platform != nil {
		result.Topology = b.platform.Describe()
	} else {
		result.Topology = b.network.Describe(b.topology)
	}
	result.Topology.Placement, result.Topology.Failures = b.placement.String(), b.failTexts
	if len(b.failTexts) > 0 {
		result.Params = append(result.Params, sim.Value{Name: "fail", Value: b.failTexts})
	}
	more.addSections(result, b.maxFlows, o.Figures)
	if result.Path != nil {
		result.Add(result.Path.Section(o.Path))
	}
	if r.shared && !b.placed {
		result.AddSharedNICs(r.nodes)
	}
	return result, nil
}

// simulate runs the trace.
func (r *replay) simulate(b *backend, m *model, hosts []uint32, o *sim.RunOptions, samples io.Writer) (*sim.Result,
	*results, error) {
	started := time.Now()
	c := &coupling{
		model: m, local: b.local, rendezvous: uint64(b.rendezvous), program: r.program, ctx: o.Context,
		gap: uint64(b.gap), nics: max(1, r.program.NICs), listed: b.maxFlows, window: b.window,
		leaves: m.leaves && !b.smpi.on(),
	}
	if b.smpi.on() {
		c.smpi, c.mode, c.calls = &b.smpi, r.modes.of(r.program), sendCalls(r.program)
	}
	if b.platform != nil {
		g := newGiven(b.platform)
		c.paths, c.fluid = g, newFluid(g.solverLinks())
		c.loops = b.local == topology.Local{}
		c.ends = topology.NewEnds(nil, nil, hosts, b.nics, r.program)
		if len(b.failures) > 0 {
			c.ends.SetWorks(func(from, to uint32) bool {
				_, err := g.find(&path{}, from, to, 0, nil)
				return err == nil
			})
		}
	} else {
		routes, err := topology.NewRoutes(o.Context, b.network, nil)
		if err != nil {
			return nil, nil, err
		}
		s := newSelector(b.network, routes, b.balance, b.seed, b.entropy, len(b.failures) > 0)
		c.ends = topology.NewEnds(b.network, routes, hosts, b.nics, r.program)
		if len(b.failures) > 0 {
			c.ends.SetWorks(func(from, to uint32) bool { return s.routes.Connects(from, to) })
		}
		c.paths, c.fluid, c.load = s, newFluid(s.links), s.load
	}
	defer func() { c.history.close() }()
	c.carried = make([]float64, len(c.fluid.links))
	if c.changes = changes(b.failures); len(c.changes) > 0 {
		c.fails, c.rates = true, make([]float64, len(c.fluid.links))
		for i := range c.rates {
			c.rates[i] = c.fluid.links[i].capacity
		}
	}
	if b.sample > 0 && samples != nil {
		c.sampler = newSampler(samples, uint64(b.sample), c)
	}
	messages := r.program.NumOps() / 2 // each has two ops
	if r.program.Windowed() {
		messages = min(messages, b.maxFlows, roomForRecords(o.Context))
	}
	c.records = cpu.InHugePages(make([]record, 0, messages))
	if b.balance == balanceSpray && b.entropy == 0 || b.balance == balanceFixed {
		c.cache = make(map[[2]uint32]*route)
		c.latest = make([]latestRoute, b.size())
	}
	if b.gap > 0 {
		c.nicFree = make([]uint64, r.program.Ranks()*c.nics)
	}
	if to, ok := o.Timeline.(sim.NetworkTimeline); ok && c.fails {
		c.marks, c.linkName = to, b.linkName
	}
	if o.Timeline != nil {
		c.sent = make([]uint64, r.program.NumOps())
		o.Timeline.Begin(r.program.Layout())
	}
	if o.Path != nil {
		if r.program.Windowed() {
			return nil, nil, sim.ErrWindowedTimeline
		}
		c.number = make([]uint32, r.program.NumOps())
	}
	host := sim.Host{
		Busy:       func(uint64) uint64 { return uint64(b.overhead) },
		Rendezvous: uint64(b.rendezvous), Timely: true, Acknowledged: true,
	}
	if c.smpi != nil {
		b.smpi.setHost(&host, r.program, r.modes, c.calls)
	}
	e, err := sim.NewEngine(r.program, host, c, o.Timeline, 1)
	if err != nil {
		return nil, nil, err
	}
	if o.Path != nil {
		e.RecordPath()
	}
	e.SetProgress(o.Progress)
	e.SetContext(o.Context)
	out, err := e.Run()
	if err = cmp.Or(c.err, err, c.sampler.finish()); err != nil {
		return nil, nil, err
	}
	out.Events += c.steps
	result := out.Result(r.program)
	if o.Path != nil {
		result.Path = e.Path()
	}
	result.Finished(started)
	more, err := newResults(c, r.labels, o.Figures)
	return result, more, err
}

// values returns the parameters for results.
func (b *backend) values(m *model) sim.Values {
	var latency, bandwidth, eager any = m.latencyFactor, m.bandwidthFactor, nil
	if len(m.latencies) > 0 {
		latency = "by size"
	}
	if len(m.bandwidths) > 0 {
		bandwidth = "by size"
	}
	if b.rendezvous < math.MaxInt64 {
		eager = b.rendezvous
	}
	values := sim.Values{
		{Name: "balance", Value: b.balance}, {Name: "latency_factor", Value: latency},
		{Name: "bandwidth_factor", Value: bandwidth}, {Name: "weight_s_bytes", Value: m.weightS},
		{Name: "tcp_gamma_bytes", Value: m.gamma}, {Name: "cross_traffic", Value: m.crossTraffic},
		{Name: "equal_weights", Value: m.equal}, {Name: "o_ps", Value: b.overhead}, {Name: "S_bytes", Value: eager},
		{Name: "nics", Value: b.nics}, {Name: "placement", Value: b.placement.String()},
		{Name: "local_bits_s", Value: b.local.Rate}, {Name: "local_latency_ps", Value: b.local.Latency},
		{Name: "seed", Value: b.seed},
	}
	if b.gap > 0 {
		values = append(values, sim.Value{Name: "g_ps", Value: b.gap})
	}
	if m.crossTraffic && m.acks != simGridACKs {
		values = append(values, sim.Value{Name: "ack_share", Value: m.acks})
	}
	if b.entropy > 0 {
		values = append(values, sim.Value{Name: "entropy", Value: b.entropy})
	}
	return append(values, b.smpi.values()...)
}

// outputFiles are the files written by a run beside its result.
type outputFiles struct {
	flows, ports, samples sim.Output // nil: not requested
}

func (f *outputFiles) create(b *backend, env *sim.Env) error {
	for _, file := range []struct {
		path string
		out  *sim.Output
	}{{b.flows, &f.flows}, {b.ports, &f.ports}, {b.samples, &f.samples}} {
		if file.path == "" {
			continue
		}
		if env.Create == nil {
			return fmt.Errorf("%s: the caller does not support output files", file.path)
		}
		out, err := env.Create(file.path)
		if err != nil {
			f.close()
			return err
		}
		*file.out = out
	}
	return nil
}

func (f *outputFiles) close() {
	for _, out := range []sim.Output{f.flows, f.ports, f.samples} {
		if out != nil {
			out.Close()
		}
	}
}

func (f *outputFiles) write(r *results) error {
	if f.flows != nil {
		r.flowTable().WriteCSV(f.flows)
	}
	if f.ports != nil {
		r.portTable(len(r.ports)).WriteCSV(f.ports)
	}
	for _, out := range []sim.Output{f.flows, f.ports, f.samples} {
		if out != nil {
			if err := out.Commit(); err != nil {
				return err
			}
		}
	}
	return nil
}
