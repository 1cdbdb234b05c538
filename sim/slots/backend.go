// Package slots simulates a data-center network in time slots: at the start of each slot, a scheduler gives each queued
// flow a number of packets.
//
// The model is that of the simulator of TrafPy (C. Parsonson et al., Traffic generation for benchmarking data centre
// networks, Optical Switching and Networking 46, 2022). docs/reference/backends/slots.md defines the rules.
package slots

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "slots",
	Title: "schedulers of data-center flows, in time slots",
	New:   func() sim.Backend { return newBackend() },
}

// backend is the configuration of the backend.
type backend struct {
	topology  string
	placement topology.Placement
	placed    bool // the caller chose the placement
	nics      int

	policy   policy
	compat   string   // none or trafpy
	length   dag.Time // of a slot
	packet   int64    // bytes
	limit    int      // flows per queue
	paths    int      // per pair of hosts
	channels int      // per port
	seed     int64

	end         dag.Time // 0: when all flows are done or dropped
	atLast      bool     // the run ends with the last arrival
	from, until dag.Time // of the measurement; -1: automatic
	flows       string   // file name
	jobs        string   // file name

	network *topology.Network
}

func newBackend() *backend {
	return &backend{placement: topology.DefaultPlacement, nics: 1, policy: policy{name: "srpt"}, compat: "none",
		length: dag.Millisecond, packet: 300, limit: 50, paths: 2, channels: 1, seed: 1, from: -1, until: -1}
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Nodes: true, Path: true}
}

// Largest values of parameters.
const (
	maxPaths    = 256
	maxChannels = 256
)

func (b *backend) Params() param.Set {
	window := func(at *dag.Time) func(text string) error {
		return func(text string) (err error) {
			if *at = -1; text != "auto" {
				*at, err = units.ParseTime(text, 0)
			}
			return err
		}
	}
	set := param.Set{
		topology.ParamAbout(&b.topology, "network: specification such as leafspine:hosts=64,tor=16,spines=2 or "+
			"star:hosts=16, .topo file or link list; its latencies do not count"),
		topology.PlacementParam(&b.placement),
		param.Int(&b.nics, "nics", "NICs per rank; each NIC is one host of the network"),
		param.Count(&b.paths, "shortest-paths", "shortest paths per pair of hosts", maxPaths).Sweep(),
		param.Count(&b.channels, "channels", "channels per link and direction, which share its rate evenly",
			maxChannels).Sweep(),
		param.Func("name", "scheduler", "scheduler: srpt (shortest remaining time), fs (fair share), ff (first fit), "+
			"random, lambda:SHARE (share of srpt, the rest fs) or maxmin (progressive filling)",
			func(text string) (err error) {
				b.policy, err = parsePolicy(text)
				return err
			}).Default(b.policy.String()).Offer("srpt", "fs", "ff", "random", "lambda:", "maxmin"),
		param.Choice(&b.compat, "compat", "reproduce the schedulers of a simulator, including the accidents of its "+
			"code",
			"none", "trafpy").Placeholder("simulator"),
		param.Time(&b.length, "slot", "length of a slot").Sweep(),
		param.Size(&b.packet, "packet-size", "bytes per packet").Range(1, math.MaxInt64).Sweep(),
		param.Count(&b.limit, "max-flows", "flows per queue, which an ordered pair of hosts has; others are dropped",
			math.MaxInt32).Sweep(),
		param.Int(&b.seed, "seed", "seed of random choices").Sweep(),
		param.Func("time", "end", "simulated time at which the run stops, or last-arrival", b.setEnd).
			Default("when all flows are done or dropped").Offer("last-arrival"),
		param.Func("time", "measure-from", "start of the measurement", window(&b.from)).
			Default("a tenth of the last arrival"),
		param.Func("time", "measure-until", "end of the measurement", window(&b.until)).
			Default("a slot after the end of the run"),
		param.File(&b.flows, "flows", "write arrival, completion time and fate of each flow to a CSV file").Output(),
		param.File(&b.jobs, "jobs", "write arrival, completion time and fate of each job graph to a CSV file").Output(),
	}
	set.Under("Network", "topology", "placement", "nics", "shortest-paths", "channels")
	set.Under("Scheduling", "scheduler", "compat", "slot", "packet-size", "max-flows", "seed", "end")
	set.Under("Output", "measure-from", "measure-until", "flows", "jobs")
	return set
}

// setEnd parses the end of runs.
func (b *backend) setEnd(text string) (err error) {
	b.end = 0
	if b.atLast = text == "last-arrival"; !b.atLast {
		b.end, err = units.ParseTime(text, 0)
	}
	return err
}

func (b *backend) Check(env *sim.Env) (err error) {
	env = env.OrEmpty()
	b.placed = env.IsGiven("placement")
	switch {
	case b.topology == "":
		return param.Errorf("topology", "the slots backend needs a network, such as "+
			"leafspine:hosts=64,tor=16,spines=2,rate=5Gbps/40Gbps or a file")
	case b.nics < 1:
		return param.Errorf("nics", "expected 1 or more, found %d", b.nics)
	case b.flows != "" && env.Sweep:
		return param.Exclude("flows", "sweep")
	case b.jobs != "" && env.Sweep:
		return param.Exclude("jobs", "sweep")
	}
	for _, file := range []string{b.flows, b.jobs} {
		if file != "" && env.CheckOutput != nil {
			if err := env.CheckOutput(file, false); err != nil {
				return err
			}
		}
	}
	if b.network, err = topology.Load(b.topology); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if err := b.network.RefuseGPUs(); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if !env.Sweep { // in a sweep, a bad point does not stop the others
		if err := b.checkValues(); err != nil {
			return err
		}
	}
	return b.placement.Check()
}

// checkValues checks the parameters that a sweep may vary.
func (b *backend) checkValues() error {
	switch {
	case b.length < 1:
		return param.Errorf("slot", "expected a time above 0, found %v", b.length)
	case b.end < 0:
		return param.Errorf("end", "expected a time above 0, found %v", b.end)
	case b.until >= 0 && b.until <= b.from:
		return param.Errorf("measure-until", "expected a time after --measure-from %v, found %v", b.from, b.until)
	}
	return nil
}

// Lowers selects all collectives: the backend runs sends, receives and calcs only.
func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// place returns the first hosts of the ranks.
func (b *backend) place(ranks int, nodes []int32, shared bool) ([]uint32, error) {
	by := b.placement.OrNodes(shared, b.placed)
	hosts, err := by.Place(ranks, b.network.Hosts, b.nics, b.seed, nodes)
	if err == nil {
		err = topology.CheckHosts(hosts, b.nics, ranks, b.network.Hosts)
	}
	return hosts, err
}

// replay is a compiled trace with the backend's configuration.
type replay struct {
	b       *backend
	env     *sim.Env
	program *sim.Program
	graphs  *jobGraphs      // nil: the trace has none
	labels  *measure.Labels // nil: no output needs them
	hosts   []uint32        // by rank
	nodes   []int32         // by rank, if ranks are on nodes because these are shared; nil: as --placement selects
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
	r := &replay{b: b, env: env}
	if r.hosts, err = b.place(h.Ranks, h.Nodes, shared); err != nil {
		return nil, err
	}
	if shared && !b.placed {
		r.nodes = h.Nodes
	}
	if b.flows != "" {
		r.labels, s = measure.NewLabels(s, h, true)
	}
	var edges *jobSource
	if len(h.Jobs) > 0 {
		edges = newJobSource(s, h.Ranks)
		s = edges
	}
	if r.program, err = sim.Compile(s, sim.CompileOptions{DenseStreams: true, Context: env.Context}); err != nil {
		return nil, err
	}
	if edges != nil {
		if r.graphs, err = edges.graphs(r.program, h.Jobs); err != nil {
			return nil, err
		}
	}
	if b.jobs != "" && r.graphs == nil {
		return nil, param.Errorf("jobs", "needs a trace of job graphs, such as from tracegen jobs, found none")
	}
	if b.atLast && !r.program.Releases {
		return nil, param.Errorf("end", "last-arrival needs a trace with release times, found none; give a time")
	}
	r.program.WarnShortReceives(env)
	return r, nil
}

func (r *replay) Clone() sim.Replay {
	clone := *r
	clone.program = r.program.Clone()
	return &clone
}

func (r *replay) Recycle() { r.program.Recycle() }

func (r *replay) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *r.b
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	if b.atLast {
		b.end = dag.Time(r.program.LatestRelease())
	}
	failed := &sim.Result{Backend: Backend.Name, Model: b.policy.String(), Params: b.values()}
	if err := b.checkValues(); err != nil {
		return failed, err
	}
	flows, err := r.create("flows", b.flows, &o)
	if err != nil {
		return failed, err
	}
	jobs, err := r.create("jobs", b.jobs, &o)
	if err != nil {
		flows.close()
		return failed, err
	}
	defer flows.close()
	defer jobs.close()
	started := time.Now()
	c, out, path, err := r.simulate(&b, &o)
	if err != nil {
		return failed, err
	}
	result := out.Result(r.program)
	result.Finished(started)
	result.Backend, result.Model, result.Params = failed.Backend, failed.Model, failed.Params
	result.Settings = fmt.Sprintf("slot=%v packet-size=%s shortest-paths=%d max-flows=%d", b.length,
		units.FormatSize(b.packet), b.paths, b.limit)
	result.Topology = b.network.Describe(b.topology)
	result.Topology.Placement = b.placement.String()
	report := newReport(c, &b)
	report.complete(result, out)
	if err := flows.write(func() *sim.Table { return report.flowTable(r.labels) }); err != nil {
		return failed, err
	}
	if err := jobs.write(report.jobTable); err != nil {
		return failed, err
	}
	report.addSections(result, o.Figures)
	if path != nil {
		result.Path = path
		result.Add(path.Section(o.Path))
	}
	result.AddSharedNICs(r.nodes)
	return result, nil
}

// tableFile is an output file for a table; nil: none.
type tableFile struct{ sim.Output }

// create creates the file of a flag, if it is given.
func (r *replay) create(flag, name string, o *sim.RunOptions) (*tableFile, error) {
	switch {
	case name == "" || !o.Files:
		return nil, nil
	case r.env.Create == nil:
		return nil, fmt.Errorf("--%s: the caller does not support output files", flag)
	}
	file, err := r.env.Create(name)
	if err != nil {
		return nil, err
	}
	return &tableFile{file}, nil
}

// write writes and commits a table.
func (f *tableFile) write(table func() *sim.Table) error {
	if f == nil {
		return nil
	}
	table().WriteCSV(f)
	return f.Commit()
}

func (f *tableFile) close() {
	if f != nil {
		f.Close()
	}
}

// simulate runs the program. The critical path is nil unless the options ask for it.
func (r *replay) simulate(b *backend, o *sim.RunOptions) (*coupling, *sim.Outcome, *sim.Path, error) {
	n, err := newNetwork(o.Context, b.network, b.length, b.packet, b.channels, b.paths, b.policy.parts())
	if err != nil {
		return nil, nil, nil, err
	}
	policy := b.policy
	policy.compat = b.compat == "trafpy"
	draw := rand.New(rand.NewPCG(uint64(b.seed), 0x736c6f7473))
	c := &coupling{
		program: r.program, net: n, policy: policy, hosts: r.hosts, nics: b.nics, length: uint64(b.length),
		end: math.MaxInt64, packet: uint64(b.packet), limit: b.limit, context: o.Context, slot: newSlot(n, draw),
		served: make([]uint64, 2*len(b.network.Links)), jobs: newJobRun(r.graphs),
	}
	if b.end > 0 {
		c.end = uint64(b.end)
	}
	if o.Timeline != nil {
		c.sent = make([]uint64, r.program.NumOps())
		o.Timeline.Begin(r.program.Layout())
	}
	host := sim.Host{
		Busy: func(uint64) uint64 { return 0 }, Rendezvous: math.MaxUint64, Timely: true, Acknowledged: true,
	}
	e, err := sim.NewEngine(r.program, host, c, o.Timeline, 1)
	if err != nil {
		return nil, nil, nil, err
	}
	if o.Path != nil {
		e.RecordPath()
	}
	e.SetProgress(o.Progress)
	e.SetContext(o.Context)
	out, err := e.Run()
	if err == nil && c.stopped {
		c.admit(math.MaxUint64) // the flows that arrived in the last slot
	}
	if err = cmp.Or(c.err, err); err != nil {
		return nil, nil, nil, err
	}
	out.Events += c.slots
	out.Messages -= c.handed.flows
	out.Bytes -= int64(c.handed.bytes)
	if o.Path != nil {
		return c, out, e.Path(), nil
	}
	return c, out, nil, nil
}

// values returns the parameters for results.
func (b *backend) values() sim.Values {
	time := func(t dag.Time, known bool) any {
		if !known {
			return nil
		}
		return t
	}
	values := sim.Values{
		{Name: "scheduler", Value: b.policy.String()}, {Name: "slot_ps", Value: b.length},
		{Name: "packet_bytes", Value: b.packet}, {Name: "max_flows", Value: b.limit},
		{Name: "shortest_paths", Value: b.paths}, {Name: "channels", Value: b.channels},
		{Name: "end_ps", Value: time(b.end, b.end > 0)},
		{Name: "measure_from_ps", Value: time(b.from, b.from >= 0)},
		{Name: "measure_until_ps", Value: time(b.until, b.until >= 0)},
		{Name: "placement", Value: b.placement.String()}, {Name: "nics", Value: b.nics},
		{Name: "seed", Value: b.seed},
	}
	if b.compat != "none" {
		values = append(values, sim.Value{Name: "compat", Value: b.compat})
	}
	return values
}
