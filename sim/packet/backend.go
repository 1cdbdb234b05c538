// This file implements the contract of backends: parameters, checks, runs.

package packet

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Backend is the entry of this backend in a registry.
var Backend = sim.Kind{
	Name:  "packet",
	Title: "data-center networks, packet by packet",
	New:   func() sim.Backend { return newBackend() },
	Lists: []sim.Listing{{
		Name: "transports", Help: "print the transports and their parameters, and do nothing else", Print: printTransports,
	}},
}

// backend is the configuration of the backend.
type backend struct {
	params    Params
	compat    string // simulator whose accidents a run reproduces; "": none
	coupling  string // "": as compat
	topology  string
	ecn       string
	balance   string
	pathsFile string
	failTexts []string
	placement topology.Placement
	nics      int

	sample                dag.Time
	samples, flows, ports string // files
	maxFlows              int

	network  *topology.Network
	paths    Paths
	failures []Failure
}

func newBackend() *backend {
	b := &backend{nics: 1, maxFlows: 100_000, placement: topology.DefaultPlacement}
	b.params, _ = NewParams("ndp", CompatNone) // it exists
	return b
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Timelines: []string{".json"}, Nodes: true, Columns: sweepColumns}
}

// setTransport sets the defaults of a transport.
func (b *backend) setTransport(name string) (err error) {
	compat, err := ParseCompat(b.compat)
	if err != nil {
		return err
	}
	seed := b.params.Seed
	if b.params, err = NewParams(name, compat); err != nil {
		b.params, _ = NewParams("ndp", CompatNone)
	}
	b.params.Seed = seed
	return err
}

func (b *backend) Params() param.Set {
	names := make([]string, len(Transports))
	for i, t := range Transports {
		names[i] = t.Name
	}
	p := &b.params
	c := &p.Coupling
	compat := param.Func("simulator", "compat", "reproduce the accidents of a reference simulator", func(text string) error {
		if text == "true" || text == "false" { // no simulator is named
			return nil
		}
		b.compat = text
		return b.setTransport(p.Transport)
	}).Among(Simulators()...)
	transport := param.Func("name", "transport", "transport of messages", b.setTransport).Default(p.Transport).Among(names...)
	const byTransport = "by the transport"
	queueing := param.Choice(&p.Queueing, "queueing", "queueing discipline of switch ports", queueings[:]...).Default(byTransport)
	balance := param.Func("policy", "balance", "load balancing over equal-cost paths", func(text string) (err error) {
		b.balance = text
		p.Balance, err = ParseBalance(text)
		return err
	}).Default(byTransport).Among(Balances()...)
	set := param.Set{
		compat.Hidden(),
		transport,
		param.String(&b.topology, "topology",
			"network, such as fattree:k=8,rate=200Gbps or leafspine:hosts=128,tor=16,spines=16, or a .topo file or list of links").
			Placeholder("network"),
		param.Choice(&b.coupling, "coupling", "model of messages on the network; htsim: for lists of flows",
			"own", "htsim", "atlahs").Default("as --compat"),
		topology.PlacementParam(&b.placement),
		param.Int(&b.nics, "nics", "NICs per rank; each NIC is one host of the network"),
		param.Size(&p.MSS, "mss", "payload of a full packet").Sweep(),
		param.Bool(&p.PadLastPacket, "whole-packets", "pad the last packet of a message to full size"),
		queueing,
		param.Size(&p.Queue, "queue", "switch queue capacity per port").Default(byTransport).Sweep(),
		param.Size(&p.ControlQueue, "control-queue", "capacity of the separate queue of control packets per port").
			Default("twice --queue").Sweep(),
		param.String(&b.ecn, "ecn", "ECN marking thresholds KMIN[,KMAX], in bytes or percent of the queue, or none").
			Default(byTransport).Placeholder("kmin[,kmax]"),
		balance,
		param.Custom("int", "entropy", "entropy values of a sprayed message", parseEntropy, func(x *big.Rat) (err error) {
			p.Entropy, err = param.Rounded(x)
			return err
		}, func() string { return strconv.FormatInt(p.Entropy, 10) }).Default("128").Sweep(),
		param.Time(&p.Flowlet, "flowlet-gap", "idle time after which a flowlet begins").Sweep(),
		param.File(&b.pathsFile, "paths",
			"paths of flows: lines of source, destination, path and ACK path; or a result with paths"),
		param.Strings(&b.failTexts, "fail",
			"fail a link, such as tor3-agg1@2ms..5ms, or change its rate, such as tor3-agg1@2ms:25Gbps; repeatable").Placeholder("link"),
		param.Func("key=value,...", "set", "parameters of the transport, with units; --list-transports lists them", b.assign).Repeats(),
		param.TimeIn(&c.Overhead, dag.Nanosecond, "o", "overhead per message at a processor").Sweep(),
		param.TimeIn(&c.Gap, dag.Nanosecond, "g", "gap between messages at a NIC").Sweep(),
		param.Size(&c.Rendezvous, "S", "largest message that is sent eagerly").Default("unlimited").Sweep(),
		param.Bool(&c.AckEnds, "ack-ends", "end a send when its last byte is acknowledged, not when it leaves the host"),
		param.Func("rate", "local-rate", "rate of messages between ranks on one host", b.setLocalRate).Default("unlimited"),
		param.Time(&c.LocalLatency, "local-latency", "latency of messages between ranks on one host").Sweep(),
		param.Time(&p.End, "end", "time at which the network stops").Default("when idle"),
		param.Int(&p.Seed, "seed", "seed of random choices").Sweep(),
		param.Time(&b.sample, "sample", "sampling period of queue lengths").Default("no samples"),
		param.File(&b.samples, "samples", "CSV file for the samples"),
		param.File(&b.flows, "flows", "CSV file for the outcome of each message"),
		param.File(&b.ports, "ports", "CSV file for the counters of each port"),
		param.Int(&b.maxFlows, "max-flows", "largest number of messages that --json lists; beyond it, quantiles").
			Range(0, math.MaxInt32),
	}
	set.Under("Network", "topology", "placement", "nics", "fail", "local-rate", "local-latency", "seed", "end")
	set.Under("Switches", "queueing", "queue", "control-queue", "ecn", "balance", "entropy", "flowlet-gap", "paths")
	set.Under("Transport", "transport", "set", "mss", "whole-packets")
	set.Under("Messages", "coupling", "o", "g", "S", "ack-ends")
	set.Under("Output", "sample", "samples", "flows", "ports", "max-flows")
	return append(set, b.transportParams()...)
}

// transportParams returns the table of the transport's own parameters.
func (b *backend) transportParams() (set param.Set) {
	t, err := FindTransport(b.params.Transport)
	if err != nil {
		return nil
	}
	values := b.params.TransportParams
	for i := range t.Parameters {
		own := &t.Parameters[i]
		parse := func(text string) (*big.Rat, error) {
			v, err := parseParameter(own, text)
			return new(big.Rat).SetFloat64(v), err
		}
		set = append(set, param.Custom(kinds[own.Unit], own.Name, own.Doc, parse, func(x *big.Rat) error {
			values[own.Name], _ = x.Float64()
			return nil
		}, func() string { return formatParameter(own, values[own.Name]) }).
			Only().Sweep().In("Keys of --set with --transport "+t.Name+" (--list-transports: of all)"))
	}
	return set
}

// assign sets parameters of the transport by texts such as "rto=1ms,window=8".
func (b *backend) assign(texts string) error {
	t, err := FindTransport(b.params.Transport)
	if err != nil {
		return err
	}
	for text := range strings.SplitSeq(texts, ",") {
		if name, _, found := strings.Cut(text, "="); found {
			if _, err := t.Find(name); err != nil {
				return err
			}
		}
		if err := b.transportParams().Assign(text); err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) setLocalRate(text string) error {
	r, err := units.ParseRate(text, "")
	if err == nil && r.Num > 0 {
		b.params.Coupling.LocalRate = bitsPerSecond(r)
	}
	return err
}

// parseEntropy parses a number of entropy values; Params.Check knows the upper limit.
func parseEntropy(text string) (*big.Rat, error) {
	n, err := units.ParseCount(text, math.MinInt64, math.MaxInt64)
	return new(big.Rat).SetInt64(n), err
}

func (b *backend) Check(env *sim.Env) (err error) {
	env = env.OrEmpty()
	switch {
	case b.topology == "":
		return param.Errorf("topology", "the packet backend needs a network, such as fattree:k=8,rate=200Gbps or a file")
	case b.samples != "" && b.sample <= 0:
		return param.Needs("samples", "--sample, the period")
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
	if b.network, err = topology.Load(b.topology); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if err := b.checkParams(env); err != nil {
		return err
	}
	for _, text := range b.failTexts {
		failure, err := parseFailure(text, b.network)
		if err != nil {
			return &param.Error{Name: "fail", Err: err}
		}
		b.failures = append(b.failures, failure)
	}
	if b.pathsFile != "" {
		if b.paths, err = readPaths(b.pathsFile); err != nil {
			return err
		}
	}
	return b.placement.Check()
}

// checkParams completes and checks the parameters of runs.
func (b *backend) checkParams(env *sim.Env) error {
	p := &b.params
	switch p.Coupling.Rules, _ = ParseCompat(b.compat); b.coupling {
	case "":
	case "own":
		p.Coupling.Rules = CompatNone
	default:
		p.Coupling.Rules, _ = ParseCompat(b.coupling) // one of its choices
	}
	if b.coupling == "atlahs" && p.End > 0 {
		return param.Errorf("end", "the coupling of ATLAHS runs until nothing is left to do")
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

// Lowers reports that the backend runs sends, receives and calcs only.
func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// NewTimeline returns a timeline for Perfetto.
func (b *backend) NewTimeline(w io.Writer, _ string, t *dag.Trace) (sim.Timeline, error) {
	return sim.NewChromeTimeline(w, t), nil
}

// place returns the hosts of so many ranks.
func (b *backend) place(ranks int, nodes []int32) (Placement, error) {
	hosts, err := b.placement.Place(ranks, b.network.Hosts, b.nics, b.params.Seed, nodes)
	return Placement{Hosts: hosts, NICs: b.nics}, err
}

// configured is a replay with the backend's configuration.
type configured struct {
	b         *backend
	env       *sim.Env
	placement Placement
	rules     Compat
	failures  []Failure // of the trace
	replay    *Replay
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	env = env.OrEmpty()
	c := &configured{b: b, env: env, rules: b.params.Coupling.Rules}
	if c.placement, err = b.place(h.Ranks, h.Nodes); err != nil {
		return nil, err
	}
	matrix, err := connectionMatrix(h.Meta, b.network)
	if err != nil {
		return nil, err
	}
	c.failures = matrix.failures
	if matrix.is && b.coupling == "" && c.rules == CompatATLAHS {
		c.rules = CompatHTSim // a connection matrix, which ATLAHS runs as htsim does
	}
	if c.rules == CompatATLAHS && b.params.End > 0 {
		return nil, errors.New("--end: the coupling of ATLAHS runs until nothing is left to do")
	}
	c.replay, err = newReplay(s, c.rules, env)
	return c, err
}

func (c *configured) Clone() sim.Replay {
	clone := *c
	clone.replay = c.replay.Clone()
	return &clone
}

func (c *configured) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *c.b
	b.params.TransportParams = maps.Clone(b.params.TransportParams)
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	b.params.Coupling.Rules = c.rules
	failed := &sim.Result{Backend: Backend.Name, Model: b.params.Transport, Params: sim.ValuesOf(b.params)}
	options := Options{
		Context: o.Context,
		Network: b.network, Params: b.params, Placement: c.placement, Paths: b.paths, Timeline: o.Timeline,
		Failures: slices.Concat(c.failures, b.failures), Progress: o.Progress, Sample: b.sample,
	}
	if err := b.params.Check(); err != nil {
		return failed, err
	}
	files := outputFiles{}
	if o.Files {
		if err := files.create(&b, c.env); err != nil {
			return failed, err
		}
		defer files.close()
		options.OnSample = files.sampled()
	}
	result, report, err := c.replay.Run(options)
	if err != nil {
		return failed, err
	}
	if err := files.write(report); err != nil {
		return failed, err
	}
	addSections(result, report, b.maxFlows)
	return result, nil
}

// String returns the parameters in one line for people.
func (p Params) String() string {
	text := fmt.Sprintf("mss=%s queue=%s balance=%v", units.FormatSize(p.MSS), units.FormatSize(p.Queue), p.Balance)
	if p.Balance == Spray {
		text += fmt.Sprintf(" entropy=%d", p.Entropy)
	}
	if p.ECNMin != NoECN {
		text += fmt.Sprintf(" ecn=%s,%s", units.FormatSize(p.ECNMin), units.FormatSize(p.ECNMax))
	}
	if p.Compat != CompatNone {
		text += " rules=" + p.Compat.String()
	}
	transport, err := FindTransport(p.Transport)
	if err != nil {
		return text
	}
	for i := range transport.Parameters {
		own := &transport.Parameters[i]
		if v := p.TransportParams[own.Name]; v != own.Value {
			text += fmt.Sprintf(" %s=%s", own.Name, formatParameter(own, v))
		}
	}
	return text
}

// outputFiles are the files that a run writes beside its result.
type outputFiles struct {
	samples, flows, ports sim.Output // nil: not asked for
	names                 []string   // of ports
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
			return fmt.Errorf("%s: the caller writes no files", file.path)
		}
		out, err := env.Create(file.path)
		if err != nil {
			f.close()
			return err
		}
		*file.out = out
	}
	if f.samples != nil {
		f.names = PortNames(b.network)
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

// sampled returns what writes samples, nil if nothing does. An error of writing is noticed at the end.
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
		flowTable(r, len(r.Flows)).WriteCSV(f.flows)
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
