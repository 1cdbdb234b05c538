// This file is the packet backend as this command knows it: its flags, and how they become a run.

package main

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

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim/packet"
	"github.com/tracedag/tracedag/sim/topology"
)

// packetBackend runs the packet backend.
type packetBackend struct {
	messages
	p      *cli.Program
	cmd    *cobra.Command
	common *options
	flags  packetFlags

	network   *topology.Network
	transport *packet.Transport
	coupling  packet.Compat // whose rules
	base      packet.Params
	paths     packet.Paths
	failures  []packet.Failure // of the flags
	failed    []packet.Failure // of the trace
	hosts     []uint32         // that a file places ranks on; nil: there is none
	nodes     []int32          // that the trace places ranks on; nil: rank r on node r
	ranks     int
	replay    *packet.Replay
}

// packetFlags are the backend's flags.
type packetFlags struct {
	topology, transport, coupling string

	mss, queue, controlQueue int64
	ecn, queueing            string
	balance                  string
	entropy                  int64
	flowletGap               dag.Time
	whole                    bool
	set                      []string

	placement    string
	nics         int
	paths        string
	failures     []string
	ackEnds      bool
	localRate    units.Rate
	localLatency dag.Time
	end          dag.Time

	sample                dag.Time
	samples, flows, ports string
	maxFlows              int
}

// packetShares are flags of other backends that this one takes, too.
var packetShares = []string{"o", "g", "S"}

func registerPacket(p *cli.Program, cmd *cobra.Command, o *options) runner {
	b := &packetBackend{p: p, cmd: cmd, common: o}
	f, flags := &b.flags, cmd.Flags()
	flags.StringVar(&f.topology, "topology", "",
		"`network`, such as fattree:k=8,rate=200Gbps or leafspine:hosts=128,tor=16,spines=16, or a .topo file or list of links "+
			"(packet, flit)")
	var names []string
	for _, t := range packet.Transports {
		names = append(names, t.Name)
	}
	balances := packet.Balances()
	flags.StringVar(&f.transport, "transport", "ndp", "`transport` of messages: "+strings.Join(names, ", ")+" (packet)")
	cli.CompleteWith(cmd, "transport", names)
	flags.StringSliceVar(&f.set, "set", nil,
		"parameters of the transport, such as `NAME=VALUE`,... with units; --list-transports has them (packet); or of routers; --list-presets has those (flit)")
	flags.BoolVar(&o.listTransports, "list-transports", false, "print the transports and their parameters, and do nothing else")
	flags.StringVar(&f.coupling, "coupling", "",
		"`rules` by which messages use the network: own, htsim for lists of flows, or atlahs (packet; default: as --compat)")

	cli.SizeVar(flags, &f.mss, "mss", 4096, "payload of a full packet (packet)")
	flags.BoolVar(&f.whole, "whole-packets", false, "send the last packet of a message as long as the others (packet)")
	flags.StringVar(&f.queueing, "queueing", "",
		"what ports of switches do with what they cannot send: `law` "+strings.Join(packet.Queueings(), ", ")+
			" (packet; default: by the transport)")
	cli.CompleteWith(cmd, "queueing", packet.Queueings())
	cli.SizeVar(flags, &f.queue, "queue", 0, "data that a port of a switch holds (packet; default: by the transport)")
	cli.SizeVar(flags, &f.controlQueue, "control-queue", 0,
		"control packets that it holds, where they have a queue of their own (packet; default: twice --queue)")
	flags.StringVar(&f.ecn, "ecn", "",
		"bytes in a queue, or percent of it, above which packets begin to be marked and all are: `KMIN[,KMAX]`, or none "+
			"(packet; default: by the transport)")
	flags.StringVar(&f.balance, "balance", "",
		"`way` to spread packets over ways of equal length: "+strings.Join(balances, ", ")+" (packet; default: by the transport)")
	cli.CompleteWith(cmd, "balance", balances)
	flags.Int64Var(&f.entropy, "entropy", 128, "how many values the packets of a message have that switches hash (packet)")
	cli.TimeVar(flags, &f.flowletGap, "flowlet-gap", 10*dag.Microsecond, 0, "pause after which a flowlet begins (packet)")
	flags.StringVar(&f.paths, "paths", "",
		"take the ways of `FILE`: lines of source, destination, number of the path and of that of its acks; or a result with "+
			"paths (packet)")
	flags.StringArrayVar(&f.failures, "fail", nil,
		"have a `link` fail, as in tor3-agg1@2ms..5ms, or have another rate, as in tor3-agg1@2ms:25Gbps; may be repeated (packet)")

	flags.StringVar(&f.placement, "placement", "packed",
		"which host each rank is on: `law` packed, random, strided:N, nodes of the trace, or a file with a host a line (packet, flit)")
	flags.IntVar(&f.nics, "nics", 1, "how many hosts of the network are the interfaces of one rank (packet)")
	flags.BoolVar(&f.ackEnds, "ack-ends", false,
		"end a send when its last byte is acknowledged, not when it has left the host (packet)")
	cli.RateVar(flags, &f.localRate, "local-rate", units.Rate{Den: 1}, "",
		"rate of messages between ranks on one host (packet; default: without limit)")
	cli.TimeVar(flags, &f.localLatency, "local-latency", 0, 0, "latency of those (packet)")
	cli.TimeVar(flags, &f.end, "end", 0, 0, "stop the network at a time (packet; default: when nothing is left to do)")

	cli.TimeVar(flags, &f.sample, "sample", 0, 0, "period at which to sample how full queues are (packet; default: never)")
	flags.StringVar(&f.samples, "samples", "", "write the samples to `FILE` as comma-separated values (packet)")
	flags.StringVar(&f.flows, "flows", "", "write what became of each message to `FILE` as comma-separated values (packet)")
	flags.StringVar(&f.ports, "ports", "", "write what each port did to `FILE` as comma-separated values (packet, flit)")
	flags.IntVar(&f.maxFlows, "max-flows", 100_000,
		"up to how many messages --json lists one by one; of more it has quantiles (packet)")
	return b
}

func (b *packetBackend) check() (err error) {
	f, o := &b.flags, b.common
	switch {
	case o.ops || o.criticalPath:
		return cli.Usagef("--ops and --critical-path are for the ideal backend")
	case f.topology == "":
		return cli.Usagef("--topology: the packet backend needs a network, such as fattree:k=8,rate=200Gbps or a file")
	case f.samples != "" && f.sample <= 0:
		return cli.Usagef("--samples needs --sample, the period")
	case f.maxFlows < 0:
		return cli.Usagef("--max-flows: expected 0 or more, found %d", f.maxFlows)
	case f.nics < 1:
		return cli.Usagef("--nics: expected 1 or more, found %d", f.nics)
	}
	for name, path := range map[string]string{"samples": f.samples, "flows": f.flows, "ports": f.ports} {
		if path != "" && o.sweep != "" {
			return cli.Usagef("--%s and --sweep exclude each other", name)
		}
	}
	for _, path := range []string{f.samples, f.flows, f.ports} {
		if path != "" {
			if err := b.p.CheckOutput(path, false); err != nil {
				return err
			}
		}
	}
	if b.network, err = topology.Load(f.topology); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	if err := b.readParams(); err != nil {
		return err
	}
	for _, text := range f.failures {
		failure, err := parseFailure(text, b.network)
		if err != nil {
			return cli.Usagef("--fail: %v", err)
		}
		b.failures = append(b.failures, failure)
	}
	if f.paths != "" {
		if b.paths, err = readPaths(f.paths); err != nil {
			return err
		}
	}
	if err := b.readPlacement(); err != nil {
		return err
	}
	if o.timeline != "" {
		_, err = b.timeline(io.Discard, o.timeline, nil)
	}
	return err
}

// readParams sets the parameters that flags give; those of the transport stand where a flag is not used.
func (b *packetBackend) readParams() (err error) {
	f := &b.flags
	if b.transport, err = packet.FindTransport(f.transport); err != nil {
		return cli.Usagef("--transport: %v", err)
	}
	compat, err := packet.ParseCompat(b.common.read.Simulator)
	if err != nil {
		return cli.Usagef("--compat: %v", err)
	}
	switch b.coupling = compat; f.coupling {
	case "":
	case "own":
		b.coupling = packet.CompatNone
	default:
		if b.coupling, err = packet.ParseCompat(f.coupling); err != nil {
			return cli.Usagef("--coupling: expected own, htsim or atlahs, found %q", f.coupling)
		}
	}
	if f.coupling == "atlahs" && f.end > 0 {
		return cli.Usagef("--end: the coupling of ATLAHS runs until nothing is left to do")
	}
	if b.base, err = packet.NewParams(f.transport, compat); err != nil {
		return cli.Usagef("--transport: %v", err)
	}
	p := &b.base
	p.MSS, p.Queue, p.ControlQueue, p.Entropy, p.Flowlet = f.mss, f.queue, f.controlQueue, f.entropy, f.flowletGap
	p.Seed, p.End, p.Queueing = b.common.seed, f.end, f.queueing
	changed := b.cmd.Flags().Changed
	if changed("whole-packets") {
		p.PadLastPacket = f.whole
	}
	if f.balance != "" {
		if p.Balance, err = packet.ParseBalance(f.balance); err != nil {
			return cli.Usagef("--balance: %v", err)
		}
	} else if f.paths != "" {
		p.Balance = packet.Fixed
	}
	if f.paths != "" && p.Balance != packet.Fixed {
		return cli.Usagef("--paths needs --balance %v, found %v", packet.Fixed, p.Balance)
	}
	if f.ecn != "" {
		if err := parseMarks(f.ecn, p); err != nil {
			return cli.Usagef("--ecn: %v", err)
		}
	}
	for _, text := range f.set {
		if err := setOwn(b.transport, p, text); err != nil {
			return cli.Usagef("--set: %v", err)
		}
	}
	c, flags := &p.Coupling, b.common.costs
	c.Rules, c.AckEnds, c.LocalLatency = b.coupling, f.ackEnds, f.localLatency
	if f.localRate.Num > 0 {
		c.LocalRate = bitsPerSecond(f.localRate)
	}
	if changed("o") {
		c.Overhead = flags.o
	}
	if changed("g") {
		c.Gap = flags.g
	}
	if changed("S") {
		c.Rendezvous = flags.S
	}
	if b.common.sweep == "" { // in a sweep, a bad point does not stop the others
		if err := p.Check(); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	return nil
}

// bitsPerSecond returns a rate in whole bits per second, at least 1.
func bitsPerSecond(r units.Rate) int64 {
	bits, _ := r.BitsPerSecond()
	return max(1, bits)
}

func (b *packetBackend) readPlacement() error {
	law := b.flags.placement
	switch _, err := b.place(0); {
	case err == nil:
		return nil
	case strings.HasPrefix(law, "strided:"):
		return cli.Usagef("--placement: %v", err)
	}
	var err error
	b.hosts, err = readHosts(law)
	return err
}

// place returns on which hosts so many ranks are.
func (b *packetBackend) place(ranks int) (packet.Placement, error) {
	hosts, nics := b.network.Hosts, b.flags.nics
	law, text, _ := strings.Cut(b.flags.placement, ":")
	switch {
	case b.hosts != nil:
		return packet.Placement{Hosts: b.hosts, NICs: nics}, nil
	case b.flags.placement == "packed":
		return packet.Packed(ranks, hosts, nics)
	case b.flags.placement == "random":
		return packet.Shuffled(ranks, hosts, nics, b.common.seed)
	case law == "strided":
		stride, err := strconv.Atoi(text)
		if err != nil {
			return packet.Placement{}, fmt.Errorf("strided: expected a whole number, found %q", text)
		}
		return packet.Strided(ranks, hosts, nics, stride)
	case b.flags.placement == "nodes":
		p := packet.Placement{Hosts: make([]uint32, ranks), NICs: nics}
		for r := range p.Hosts {
			node := r
			if b.nodes != nil {
				node = int(b.nodes[r])
			}
			if (node+1)*nics > hosts {
				return p, fmt.Errorf("rank %d is on node %d, but the network has only %d hosts for %d a node", r, node, hosts, nics)
			}
			p.Hosts[r] = uint32(node * nics)
		}
		return p, nil
	}
	return packet.Placement{}, fmt.Errorf("no placement %q", b.flags.placement)
}

func (b *packetBackend) compile(t dag.Source, warn func(string, ...any)) error {
	h, err := t.Header()
	if err != nil {
		return err
	}
	b.ranks, b.nodes = h.Ranks, h.Nodes
	if _, err := b.place(b.ranks); err != nil {
		return err
	}
	matrix, err := connectionMatrix(h.Meta, b.network)
	if err != nil {
		return err
	}
	b.failed = matrix.failures
	if matrix.is && b.flags.coupling == "" && b.coupling == packet.CompatATLAHS {
		b.coupling = packet.CompatHTSim // a connection matrix, which ATLAHS runs as htsim does
		b.base.Coupling.Rules = b.coupling
	}
	if b.coupling == packet.CompatATLAHS && b.flags.end > 0 {
		return errors.New("--end: the coupling of ATLAHS runs until nothing is left to do")
	}
	b.replay, err = packet.Compile(t, b.coupling, warn)
	return err
}

// parameters lists the numbers of the network and the coupling, and those of the transport.
func (b *packetBackend) parameters() []parameter {
	all := []parameter{
		sizeParameter("mss"), sizeParameter("queue"), sizeParameter("control-queue"), {"entropy", parseCount(math.MaxUint32)},
		timeParameter("flowlet-gap", 0), timeParameter("o", dag.Nanosecond), timeParameter("g", dag.Nanosecond), sizeParameter("S"),
		timeParameter("local-latency", 0), {"seed", parseNumber},
	}
	for i := range b.transport.Parameters {
		own := &b.transport.Parameters[i]
		all = append(all, parameter{own.Name, func(text string) (*big.Rat, error) {
			v, err := parseOwn(own, text)
			return new(big.Rat).SetFloat64(v), err
		}})
	}
	return all
}

// with returns the parameters of the flags, with the given settings.
func (b *packetBackend) with(settings []setting) packet.Params {
	p := b.base
	p.TransportParams = maps.Clone(p.TransportParams)
	for _, s := range settings {
		switch n := s.rounded(); s.name {
		case "mss":
			p.MSS = n
		case "queue":
			p.Queue = n
		case "control-queue":
			p.ControlQueue = n
		case "entropy":
			p.Entropy = n
		case "flowlet-gap":
			p.Flowlet = dag.Time(n)
		case "o":
			p.Coupling.Overhead = dag.Time(n)
		case "g":
			p.Coupling.Gap = dag.Time(n)
		case "S":
			p.Coupling.Rendezvous = n
		case "local-latency":
			p.Coupling.LocalLatency = dag.Time(n)
		case "seed":
			p.Seed = n
		default:
			p.TransportParams[s.name] = s.float()
		}
	}
	return p
}

func (b *packetBackend) params(settings []setting) (model string, params any) {
	return b.flags.transport, packetParams(b.with(settings))
}

func (b *packetBackend) run(settings []setting, r replay) (*result, error) {
	compiled := b.replay
	if r.again {
		compiled = compiled.Clone()
	}
	o := packet.Options{
		Network: b.network, Params: b.with(settings), Paths: b.paths, Failures: slices.Concat(b.failed, b.failures), Timeline: r.timeline, Progress: r.progress,
		Sample: b.flags.sample,
	}
	if err := o.Params.Check(); err != nil {
		return nil, err
	}
	var err error
	if o.Placement, err = b.place(b.ranks); err != nil {
		return nil, err
	}
	files := packetFiles{}
	if !r.again && !r.part {
		if err := files.create(b); err != nil {
			return nil, err
		}
		defer files.close()
		o.OnSample = files.sampled()
	}
	done, report, err := compiled.Run(o)
	if err != nil {
		return nil, err
	}
	if err := files.write(report); err != nil {
		return nil, err
	}
	if params, ok := done.Params.(packet.Params); ok {
		done.Params = packetParams(params)
	}
	return &result{Result: done, packetResult: newPacketResult(report, b.flags.maxFlows)}, nil
}

// packetParams are the parameters of a run as its result has them.
type packetParams packet.Params

// String returns the parameters for the table.
func (p packetParams) String() string {
	text := fmt.Sprintf("mss=%s queue=%s balance=%v", units.FormatSize(p.MSS), units.FormatSize(p.Queue), p.Balance)
	if p.Balance == packet.Spray {
		text += fmt.Sprintf(" entropy=%d", p.Entropy)
	}
	if p.ECNMin != packet.NoECN {
		text += fmt.Sprintf(" ecn=%s,%s", units.FormatSize(p.ECNMin), units.FormatSize(p.ECNMax))
	}
	if p.Compat != packet.CompatNone {
		text += " rules=" + p.Compat.String()
	}
	transport, err := packet.FindTransport(p.Transport)
	if err != nil {
		return text
	}
	for i := range transport.Parameters {
		own := &transport.Parameters[i]
		if v := p.TransportParams[own.Name]; v != own.Value {
			text += fmt.Sprintf(" %s=%s", own.Name, formatOwn(own, v))
		}
	}
	return text
}

// packetFiles are the files that a run writes beside its result.
type packetFiles struct {
	samples, flows, ports *cli.Output // nil: not asked for
	names                 []string    // of ports
	line                  []byte
}

func (f *packetFiles) create(b *packetBackend) error {
	for _, file := range []struct {
		path string
		out  **cli.Output
	}{{b.flags.samples, &f.samples}, {b.flags.flows, &f.flows}, {b.flags.ports, &f.ports}} {
		if file.path == "" {
			continue
		}
		out, err := b.p.Create(file.path, false)
		if err != nil {
			f.close()
			return err
		}
		*file.out = out
	}
	if f.samples != nil {
		f.names = packet.PortNames(b.network)
		f.samples.WriteString("time_ps,port,data_bytes,control_bytes\n")
	}
	return nil
}

func (f *packetFiles) close() {
	for _, out := range []*cli.Output{f.samples, f.flows, f.ports} {
		if out != nil {
			out.Close()
		}
	}
}

// sampled returns what writes samples, nil if nothing does. An error of writing is noticed at the end.
func (f *packetFiles) sampled() func(packet.Sample) {
	if f.samples == nil {
		return nil
	}
	return func(s packet.Sample) {
		f.line = strconv.AppendInt(f.line[:0], int64(s.At), 10)
		f.line = append(append(append(f.line, ','), f.names[s.Port]...), ',')
		f.line = append(strconv.AppendUint(f.line, s.Data, 10), ',')
		f.line = append(strconv.AppendUint(f.line, s.Control, 10), '\n')
		f.samples.Write(f.line)
	}
}

func (f *packetFiles) write(r *packet.Report) error {
	if f.flows != nil {
		writeTable(f.flows, flowTable(r, len(r.Flows)))
	}
	if f.ports != nil {
		writeTable(f.ports, portTable(r, len(r.Ports)))
	}
	for _, out := range []*cli.Output{f.samples, f.flows, f.ports} {
		if out != nil {
			if err := out.Commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// printTransports prints all transports and their parameters.
func printTransports(p *cli.Program) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	writeTransports(out)
	return out.Commit()
}

func writeTransports(w io.Writer) {
	for i, t := range packet.Transports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", t.Name, t.Title)
		rows := [][]string{{"parameter", "default", "with --compat", "meaning"}}
		for k := range t.Parameters {
			p := &t.Parameters[k]
			compat := ""
			if p.Compat != nil {
				compat = formatOwn(p, *p.Compat)
			}
			rows = append(rows, []string{p.Name, formatOwn(p, p.Value), compat, p.Doc})
		}
		printColumns(w, rows)
	}
}

// printColumns prints rows, all cells of a column but the last as wide as the widest.
func printColumns(w io.Writer, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("  " + cell)
			if !slices.Equal(row[i+1:], make([]string, len(row)-i-1)) {
				line.WriteString(strings.Repeat(" ", widths[i]-len(cell)))
			}
		}
		fmt.Fprintln(w, line.String())
	}
}
