// This file implements the backend interface: parameters, checks, runs.

package packet

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/platform"
	"github.com/tracedag/tracedag/sim/topology"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "packet",
	Title: "data-center networks, packet by packet",
	New:   func() sim.Backend { return newBackend() },
	Lists: []sim.Listing{{
		Name: "transports", Help: "print the transports and their parameters, and exit",
		Print: printTransports,
	}},
}

// backend is the configuration of the backend.
type backend struct {
	params    Params
	compat    string // reference simulator to reproduce; "": none
	coupling  string // "": as compat
	topology  string
	fitted    *fit.File // parameters of a file; nil: none
	ecn       string
	balance   string
	pathsFile string
	failTexts []string
	placement topology.Placement
	placed    bool // the caller chose the placement
	nics      int
	chosen    bool // the caller chose the transport

	latencyFactor, bandwidthFactor float64 // of all links

	sample                dag.Time
	samples, flows, ports string // file names
	maxFlows              int
	bins                  measure.Bins
	window                measure.Window

	network  *topology.Network // nil: platform
	platform *platform.Platform
	paths    Paths
	failures []Failure
}

func newBackend() *backend {
	b := &backend{nics: 1, maxFlows: 100_000, placement: topology.DefaultPlacement, latencyFactor: 1,
		bandwidthFactor: 1}
	b.params, _ = NewParams(DefaultTransport, CompatNone) // it always exists
	return b
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Nodes: true, Path: b.params.Coupling.Rules != CompatATLAHS}
}

func (b *backend) Check(env *sim.Env) (err error) {
	env = env.OrEmpty()
	b.placed = env.IsGiven("placement")
	switch {
	case b.topology == "":
		return param.Errorf("topology", "the packet backend needs a network, such as fattree:k=8,rate=200Gbps or a "+
			"file")
	case b.samples != "" && b.sample <= 0:
		return param.Needs("samples", "--sample, the period")
	case b.window.Check() != nil:
		return b.window.Check()
	case b.nics < 1:
		return param.Errorf("nics", "expected 1 or more, found %d", b.nics)
	}
	for _, file := range []struct{ name, path string }{{"samples", b.samples}, {"flows", b.flows}, {"ports", b.ports}} {
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
	if err := b.load(); err != nil {
		return err
	}
	if text := b.fitted.OtherNetwork(b.topology); text != "" {
		env.Warnf("%s", text)
	}
	if err := b.scale(); err != nil {
		return fmt.Errorf("--latency-factor, --bandwidth-factor: %w", err)
	}
	if err := b.checkParams(env); err != nil {
		return err
	}
	find := b.network.LinkByName
	if b.platform != nil {
		find = b.platform.LinkByName
	}
	for _, text := range b.failTexts {
		failure, err := topology.ParseFailure(text, find)
		if err != nil {
			return &param.Error{Name: "fail", Err: err}
		}
		b.failures = append(b.failures, failure)
	}
	if b.platform != nil && env.IsGiven("entropy") {
		return param.Errorf("entropy", "expected a network with several paths, found a platform of SimGrid, whose "+
			"file has one route between two hosts; remove --entropy, or use another --topology")
	}
	if b.pathsFile != "" {
		if b.platform != nil {
			return param.Errorf("paths", "expected a network with several paths, found a platform of SimGrid, whose "+
				"file has the routes")
		}
		if b.paths, err = readPaths(b.pathsFile); err != nil {
			return err
		}
	}
	return b.placement.CheckNames(b.platform.HostNames())
}

// load reads the network or the platform.
func (b *backend) load() (err error) {
	if b.network, b.platform = nil, nil; topology.IsPlatform(b.topology) {
		b.platform, err = platform.Load(b.topology)
	} else {
		b.network, err = topology.Load(b.topology)
	}
	if err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	return nil
}

// checkParams completes and checks the parameters of runs.
func (b *backend) checkParams(env *sim.Env) error {
	p := &b.params
	switch p.Coupling.Rules, _ = ParseCompat(b.compat); b.coupling {
	case "":
	case "own":
		p.Coupling.Rules = CompatNone
	default:
		p.Coupling.Rules, _ = ParseCompat(b.coupling) // one of the choices of --coupling
	}
	if b.coupling == "atlahs" && p.End > 0 {
		return param.Errorf("end", "the coupling atlahs does not support --end; remove it or use another --coupling")
	}
	if b.pathsFile != "" {
		if b.balance == "" {
			p.Balance = Fixed
		}
		if p.Balance != Fixed {
			return param.Needs("paths", fmt.Sprintf("--balance %v, found %v", Fixed, p.Balance))
		}
	}
	if b.ecn != "" {
		if err := parseMarks(b.ecn, p); err != nil {
			return &param.Error{Name: "ecn", Err: err}
		}
	}
	if env.Sweep { // a bad point does not stop the others
		return nil
	}
	if err := p.Check(); err != nil {
		return &param.Error{Err: err}
	}
	return nil
}

// bitsPerSecond returns a rate in whole bits per second, at least 1.
func bitsPerSecond(r units.Rate) int64 {
	bits, _ := r.BitsPerSecond()
	return max(1, bits)
}

// Lowers selects all collectives: the backend runs sends, receives and calcs only.
func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// place returns the hosts of the given number of ranks.
func (b *backend) place(ranks int, nodes []int32, shared bool) (Placement, error) {
	by := b.placement.OrNodes(shared, b.placed)
	var hosts []uint32
	var err error
	if b.platform != nil {
		hosts, err = by.Place(ranks, len(b.platform.Hosts), b.nics, b.params.Seed, nodes)
	} else {
		hosts, err = b.network.Place(&by, ranks, b.nics, b.params.Seed, nodes)
	}
	return Placement{Hosts: hosts, NICs: b.nics}, err
}

// configured is a replay with the backend's configuration.
type configured struct {
	b         *backend
	env       *sim.Env
	placement Placement
	nodes     []int32 // by rank, if ranks are on nodes because these are shared; nil: as --placement selects
	rules     Compat
	failures  []Failure       // failures of the trace
	labels    *measure.Labels // nil: no output needs them
	replay    *Replay
	warn      func(message string, args ...any) // of all runs
	computed  *platform.Computed                // nil: no platform
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	env = env.OrEmpty()
	shared, err := env.SharesNICs(s)
	if err != nil {
		return nil, err
	}
	c := &configured{b: b, env: env, warn: env.WarnOnce(), rules: b.params.Coupling.Rules}
	if c.placement, err = b.place(h.Ranks, h.Nodes, shared); err != nil {
		return nil, err
	}
	if shared && !b.placed {
		c.nodes = h.Nodes
	}
	if b.platform != nil && len(c.placement.Hosts) >= h.Ranks {
		c.computed = b.platform.Compute(s, c.placement.Hosts)
		s = c.computed
	}
	matrix, err := connectionMatrix(h.Meta, b.network)
	if err != nil {
		return nil, err
	}
	c.failures = matrix.failures
	if matrix.is && b.coupling == "" && c.rules == CompatATLAHS {
		c.rules = CompatHTSim // a connection matrix, which ATLAHS runs like htsim
	}
	if c.rules == CompatATLAHS && b.params.End > 0 {
		return nil, errors.New("--end: the coupling atlahs does not support it; remove it or use another --coupling")
	}
	if texts := b.flows != "" || env.IsGiven("fct-bins"); texts || len(h.Jobs) > 0 {
		c.labels, s = measure.NewLabels(s, h, texts)
	}
	c.replay, err = newReplay(s, c.rules, env)
	return c, err
}

func (c *configured) Clone() sim.Replay {
	clone := *c
	clone.replay = c.replay.Clone()
	return &clone
}

func (c *configured) Recycle() { c.replay.program.Recycle() }

func (c *configured) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *c.b
	b.params.TransportParams = maps.Clone(b.params.TransportParams)
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	b.params.Coupling.Rules = c.rules
	failed := &sim.Result{Backend: Backend.Name, Model: b.params.Transport, Params: b.params.values()}
	options := Options{
		Context: o.Context,
		Network: b.network, Platform: b.platform, Params: b.params, Placement: c.placement, Paths: b.paths,
		Timeline: o.Timeline,
		Failures: slices.Concat(c.failures, b.failures), Progress: o.Progress, Sample: b.sample,
		Warn: c.warn, Given: c.env.IsGiven, Window: b.window, Bins: b.bins, labels: c.labels,
		Path: o.Path != nil && c.rules != CompatATLAHS, figures: o.Figures,
	}
	if err := b.params.Check(); err != nil {
		return failed, err
	}
	if err := c.computed.Check(c.placement.Hosts, c.warn); err != nil {
		return failed, err
	}
	files := outputFiles{}
	if o.Files {
		if err := files.create(&b, c.env); err != nil {
			return failed, err
		}
		defer files.close()
		options.OnSample = files.sampled()
		options.named = func(names []string) { files.names = names }
	}
	result, report, err := c.replay.Run(options)
	if err != nil {
		return failed, err
	}
	if err := files.write(report); err != nil {
		return failed, err
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
	addSections(result, report, b.maxFlows, c.env.IsGiven("fct-bins"))
	if o.Figures && b.network != nil {
		result.Add(sim.Section{Key: "network", Value: topology.NewFigure(b.network, report.traffic(b.network)),
			At: sim.Detail})
	}
	if b.latencyFactor != 1 || b.bandwidthFactor != 1 {
		result.Params = append(result.Params, sim.Value{Name: "latency_factor", Value: b.latencyFactor},
			sim.Value{Name: "bandwidth_factor", Value: b.bandwidthFactor})
	}
	if result.Path != nil {
		result.Add(result.Path.Section(o.Path))
	}
	result.AddSharedNICs(c.nodes)
	return result, nil
}

// outputFiles are the files written by a run beside its result.
type outputFiles struct {
	samples, flows, ports sim.Output // nil: not requested
	names                 []string   // names of ports
	line                  []byte
}

func (f *outputFiles) create(b *backend, env *sim.Env) error {
	for _, file := range []struct {
		path string
		out  *sim.Output
	}{{b.samples, &f.samples}, {b.flows, &f.flows}, {b.ports, &f.ports}} {
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
	if f.samples != nil {
		io.WriteString(f.samples, "time_ps,port,data_bytes,control_bytes\n")
	}
	return nil
}

func (f *outputFiles) close() {
	for _, out := range []sim.Output{f.samples, f.flows, f.ports} {
		if out != nil {
			out.Close()
		}
	}
}

// sampled returns the function that writes samples, or nil. A write error is reported at the end.
func (f *outputFiles) sampled() func(Sample) {
	if f.samples == nil {
		return nil
	}
	return func(s Sample) {
		f.line = strconv.AppendInt(f.line[:0], int64(s.At), 10)
		f.line = append(append(append(f.line, ','), f.names[s.Port]...), ',')
		f.line = append(strconv.AppendUint(f.line, s.Data, 10), ',')
		f.line = append(strconv.AppendUint(f.line, s.Control, 10), '\n')
		f.samples.Write(f.line)
	}
}

func (f *outputFiles) write(r *Report) error {
	if f.flows != nil {
		flowTable(r, r.labels).WriteCSV(f.flows)
	}
	if f.ports != nil {
		portTable(r, len(r.Ports)).WriteCSV(f.ports)
	}
	for _, out := range []sim.Output{f.samples, f.flows, f.ports} {
		if out != nil {
			if err := out.Commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

func printTransports(w io.Writer) {
	for i, t := range Transports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", t.Name, t.Title)
		rows := [][]string{{"parameter", "default", "with --compat", "meaning"}}
		for k := range t.Parameters {
			p := &t.Parameters[k]
			compat := ""
			if p.Compat != nil {
				compat = formatParameter(p, *p.Compat)
			}
			rows = append(rows, []string{p.Name, formatParameter(p, p.Value), compat, p.Doc})
		}
		sim.PrintColumns(w, rows)
	}
}
