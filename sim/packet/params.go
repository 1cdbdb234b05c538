// This file defines the parameters of runs: those shared by all transports, and those of each transport.

package packet

import (
	"fmt"
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

// Compat is a reference simulator to reproduce, including the accidents of its code; see [Params].Compat.
type Compat uint8

// Compatibility modes.
const (
	CompatNone   Compat = iota // none
	CompatHTSim                // htsim (Broadcom/csg-htsim)
	CompatATLAHS               // the htsim in ATLAHS, and its coupling of GOAL traces to packets
)

// Unit is the unit of a parameter.
type Unit uint8

// Units of parameters.
const (
	Plain   Unit = iota // number without unit
	Bytes               // whole bytes
	Time                // whole picoseconds
	Switch              // 0 or 1
	Packets             // full packets, or a size in whole bytes; see Size
	BDPs                // bandwidth-delay products, or a size in whole bytes; see Size
)

// Size returns the value of a parameter with the unit [Packets] or [BDPs] for a size in bytes instead: the sum of the
// size and a number above all others.
func Size(bytes int64) float64 { return float64(sizes + bytes) }

// sizes is the value of a size of 0 bytes, mostPackets the largest number of packets or bandwidth-delay products, and
// mostBytes the largest size.
const (
	sizes       = 1 << 50
	mostPackets = 1 << indexBits
	mostBytes   = 1 << 44
)

// kinds are the placeholders of values in help, by unit.
var kinds = [...]string{
	Plain: "number", Bytes: "size", Time: "time", Switch: "on|off", Packets: "packets|size", BDPs: "number|size",
}

// unitNames are the units of values in results.
var unitNames = [...]string{Plain: "", Bytes: "B", Time: "ps", Switch: "", Packets: "packets", BDPs: "BDP"}

// Parameter describes a parameter of a transport.
type Parameter struct {
	Name  string
	Unit  Unit
	Value float64 // default, in bytes or picoseconds according to Unit; negative: derived as described by Doc
	Min   float64
	Doc   string
	// Compat is the default with [CompatHTSim] or [CompatATLAHS]; nil: Value.
	Compat *float64
}

// Transport describes a transport.
type Transport struct {
	Name, Title string
	Parameters  []Parameter

	discipline discipline // default queueing discipline of switches
	nic        discipline
	header     uint32 // header size of a data packet in bytes
	control    uint32 // size of an ACK or another control packet in bytes
	bareCompat bool   // with --compat, data has no header and control packets have 40 bytes
	balance    Balance
	ecn        ecnDefaults
	// ignoresMarks is set if the transport does not react to ECN marks, goBackN if it needs packets in order.
	ignoresMarks, goBackN bool
	// neverPad is set if the reference does not pad the last packet of a flow.
	neverPad bool

	queueBDPs float64 // default capacity of a switch port in bandwidth-delay products
	build     func(n *network, s *transportConfig) transport
}

// ecnDefaults are the default ECN thresholds of switches; the zero value disables marking.
type ecnDefaults struct {
	minShare, maxShare float64  // shares of the queue
	packets            int64    // or a step threshold in full packets
	bytes              [2]int64 // or thresholds in bytes
	notToHosts         bool     // ports to hosts do not mark
	noHeaders          bool     // headers of trimmed packets are not marked
}

// Transports lists all transports.
var Transports = []*Transport{
	&ndpTransport, &mprdmaTransport, &constantTransport, &singleTransport, &swiftLikeTransport,
	&tcpTransport, &dctcpTransport, &swiftTransport, &roceTransport, &dcqcnTransport, &hpccTransport,
	&eqdsTransport, &nsccTransport, &rcccTransport,
}

// FindTransport returns the named transport. The error lists all names.
func FindTransport(name string) (*Transport, error) {
	var names []string
	for _, t := range Transports {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return nil, fmt.Errorf("unknown transport %q, expected one of %s", name, strings.Join(names, ", "))
}

// Params are the parameters of a run. Their JSON form is part of results.
type Params struct {
	Transport     string `json:"transport"`
	Compat        Compat `json:"compat,omitempty"`
	MSS           int64  `json:"mss_bytes"`     // payload of a full packet
	HeaderSize    int64  `json:"header_bytes"`  // header of a data packet, and a trimmed packet
	ControlSize   int64  `json:"control_bytes"` // ACK or another control packet
	PadLastPacket bool   `json:"whole_packets"` // pad the last packet of a flow to full size, as in htsim

	// Settings of all switch ports. The defaults for "" and 0 depend on the transport.
	Queueing string `json:"queueing,omitempty"` // queueing discipline, one of [Queueings]
	Queue    int64  `json:"queue_bytes"`        // capacity for data
	// capacity for control packets, if they have their own queue
	ControlQueue int64 `json:"control_queue_bytes"`
	// SharedBuffer is the buffer that drop-tail ports of a switch share, BufferShare the multiple of its free part that
	// the packets waiting at a port may take.
	SharedBuffer int64   `json:"shared_buffer_bytes,omitempty"`
	BufferShare  float64 `json:"buffer_share"`
	// ControlRatio is the number of control packets that a port sends per full data packet while both wait; 0: default
	ControlRatio int64 `json:"control_ratio"`
	ECNMin       int64 `json:"ecn_kmin_bytes"` // queue length above which marking starts
	ECNMax       int64 `json:"ecn_kmax_bytes"` // queue length above which all packets are marked; [NoECN]: never
	// ECNShares are ECNMin and ECNMax as shares of Queue, 0 to 1. They take precedence unless the second is 0.
	ECNShares [2]float64 `json:"-"`

	sharesOfQueue bool // ECN thresholds are shares of the queue

	Balance Balance  `json:"balance"`
	Entropy int64    `json:"entropy"` // number of entropy values of a sprayed flow
	Flowlet dag.Time `json:"flowlet_gap_ps"`

	TransportParams map[string]float64 `json:"transport_params"` // by name, in bytes and picoseconds
	Coupling        Coupling           `json:"coupling"`
	Seed            int64              `json:"seed"`
	// end of the run; 0: when no event is left
	End dag.Time `json:"end_ps,omitempty"`
}

// values returns the parameters for results.
func (p *Params) values() sim.Values {
	all := sim.ValuesOf(*p)
	if t, err := FindTransport(p.Transport); err == nil {
		own := all.Get("transport_params").(sim.Values)
		for i := range own {
			if parameter, err := t.Find(own[i].Name); err == nil {
				own[i].Unit = unitNames[parameter.Unit]
			}
		}
	}
	return all
}

// NoECN is an ECN threshold that no queue exceeds.
const NoECN = math.MaxInt64

// DefaultTransport is the transport unless the caller selects another one.
const DefaultTransport = "ndp"

// NewParams returns the default parameters of a transport.
func NewParams(transport string, c Compat) (Params, error) {
	t, err := FindTransport(transport)
	if err != nil {
		return Params{}, err
	}
	p := Params{
		Transport: transport, Compat: c, MSS: 4096, PadLastPacket: quirksOf(c).padLastPacket && !t.neverPad,
		Balance: t.balance, Entropy: 128, Flowlet: 10 * dag.Microsecond, Seed: 1,
		ControlRatio: quirksOf(c).controlTurns, BufferShare: defaultBufferShare,
		HeaderSize: int64(t.header), ControlSize: int64(t.control),
		TransportParams: make(map[string]float64),
	}
	if c != CompatNone && t.bareCompat {
		p.HeaderSize, p.ControlSize = 0, 40
	}
	for i := range t.Parameters {
		p.TransportParams[t.Parameters[i].Name] = t.Parameters[i].value(c)
	}
	p.Coupling = Coupling{Rules: c, Rendezvous: math.MaxInt64}
	return p, nil
}

// queueings are the names of the queueing disciplines of switches.
var queueings = [...]string{
	dropTail: "droptail", markingDropTail: "ecn", trimming: "trim", randomDrop: "randomdrop", controlFirst: "priority",
	markingFirst: "ecnpriority", aeolus: "aeolus", lossless: "pfc",
}

// Queueings returns the names of the queueing disciplines of switches.
func Queueings() []string {
	return slices.Clone(queueings[:])
}

// discipline returns the queueing discipline of switches. Trimming requires a transport that handles trimmed packets,
// and lossless queues require a transport designed for them.
func (p *Params) discipline(t *Transport) (discipline, error) {
	if p.Queueing == "" {
		return t.discipline, nil
	}
	i := slices.Index(queueings[:], p.Queueing)
	if i < 0 {
		return 0, fmt.Errorf("unknown queueing discipline %q, expected one of %s", p.Queueing,
			strings.Join(queueings[:], ", "))
	}
	d := discipline(i)
	if (d == trimming || d == lossless) && t.discipline != d {
		return 0, fmt.Errorf("the queueing discipline %s does not support the transport %s", p.Queueing, t.Name)
	}
	return d, nil
}

// complete sets the parameters that depend on the network; bdp is the bandwidth-delay product in bytes.
func (p *Params) complete(t *Transport, q *quirks, bdp uint64) {
	full := p.MSS + p.HeaderSize
	if p.Queue == 0 {
		fewest := fewestPackets * full
		if q.firstHostRate {
			fewest = full
		}
		p.Queue = max(fewest, int64(t.queueBDPs*float64(bdp)))
	}
	if p.ControlQueue == 0 {
		p.ControlQueue = max(q.controlQueues*p.Queue, q.controlBytes)
	}
	if s := p.ECNShares; s[1] > 0 {
		p.ECNMin, p.ECNMax = int64(s[0]*float64(p.Queue)), int64(s[1]*float64(p.Queue))
		p.sharesOfQueue = true
	}
	if p.ECNMin == 0 && p.ECNMax == 0 {
		p.ECNMin, p.ECNMax = NoECN, NoECN
		switch e := t.ecn; {
		case e.bytes[1] > 0:
			p.ECNMin, p.ECNMax = e.bytes[0], e.bytes[1]
		case e.packets > 0:
			p.ECNMin = e.packets * full
			p.ECNMax = p.ECNMin
		case e.maxShare > 0:
			p.ECNMin, p.ECNMax = int64(e.minShare*float64(p.Queue)), int64(e.maxShare*float64(p.Queue))
			p.sharesOfQueue = true
		}
	}
}

// transportConfig is the configuration of a transport.
type transportConfig struct {
	mss     uint64
	header  uint32
	control uint32
	rate    uint64 // rate of NICs in bit/s
	padLast bool
	quirks  quirks
	params  map[string]float64
	sizes   map[string]int64 // parameters given as sizes, which params has in packets or bandwidth-delay products
}

// bytes returns a parameter in bytes.
func (s *transportConfig) bytes(name string) uint64 { return uint64(s.number(name)) }

// time returns a parameter in picoseconds.
func (s *transportConfig) time(name string) uint64 { return uint64(s.number(name)) }

// packets returns a parameter in full packets, converted to bytes.
func (s *transportConfig) packets(name string) uint64 {
	return uint64(min(s.number(name)*float64(s.mss), 1<<62))
}

// timeout returns a time, or byPath if it follows from the path.
func (s *transportConfig) timeout(name string) uint64 {
	if s.number(name) < 0 {
		return byPath
	}
	return s.time(name)
}

// initialWindow is the initial window of flows, without headers.
type initialWindow struct {
	bytes uint64 // if auto, the smallest window
	auto  bool   // at least the bandwidth-delay product of the path
}

// windowPackets returns an initial window with the unit [Packets]. least is the smallest automatic one in packets.
func (s *transportConfig) windowPackets(name string, least uint64) initialWindow {
	if s.number(name) < 0 {
		return initialWindow{least * s.mss, true}
	}
	return initialWindow{s.packets(name), false}
}

// of returns the window of a flow in bytes.
func (w *initialWindow) of(n *network, f uint32) uint64 {
	if !w.auto {
		return w.bytes
	}
	path, full := n.path(n.flows[f].src, n.flows[f].dst), uint64(n.fullSize)
	return max(w.bytes, (path.bandwidthDelay()+full-1)/full*(full-uint64(n.headerSize)))
}

// enabled returns a parameter with the unit [Switch]. Automatic ones are off.
func (s *transportConfig) enabled(name string) bool { return s.number(name) > 0 }

// takeSizes replaces parameters given as sizes by numbers of packets, or of the given bandwidth-delay product in bytes.
// It returns the sizes.
func (p *Params) takeSizes(t *Transport, bdp uint64) map[string]int64 {
	given := make(map[string]int64)
	for i := range t.Parameters {
		own := &t.Parameters[i]
		if v := p.TransportParams[own.Name]; own.takesSize() && v >= sizes {
			given[own.Name] = int64(v) - sizes
		}
	}
	if len(given) == 0 {
		return nil
	}
	p.TransportParams = maps.Clone(p.TransportParams)
	for name, bytes := range given {
		unit := p.MSS
		if own, _ := t.Find(name); own.Unit == BDPs {
			unit = max(1, int64(bdp))
		}
		p.TransportParams[name] = float64(bytes) / float64(unit)
	}
	return given
}

// takesSize reports whether a parameter may be a size instead of a number.
func (p *Parameter) takesSize() bool { return p.Unit == Packets || p.Unit == BDPs }

func (s *transportConfig) number(name string) float64 {
	v, ok := s.params[name]
	if !ok {
		panic("no parameter " + name)
	}
	return v
}

// value returns the default of a parameter.
func (p *Parameter) value(c Compat) float64 {
	if c != CompatNone && p.Compat != nil {
		return *p.Compat
	}
	return p.Value
}

// check returns an error if a value is out of range.
func (p *Parameter) check(v float64) error {
	switch {
	case p.Value < 0 && v == p.Value:
		return nil
	case math.IsNaN(v) || v < p.Min || v > 1<<53:
		return fmt.Errorf("%s: expected at least %v, found %v", p.Name, p.Min, v)
	case p.takesSize() && v >= sizes && (v <= sizes || v > sizes+mostBytes):
		return fmt.Errorf("%s: expected 1 to %d bytes, found %v", p.Name, int64(mostBytes), v-sizes)
	case p.takesSize() && v < sizes && v > mostPackets:
		unit := map[Unit]string{Packets: "packets", BDPs: "bandwidth-delay products"}[p.Unit]
		return fmt.Errorf("%s: expected %v to %d %s, found %v; a size has a unit, such as 64KiB", p.Name, p.Min,
			mostPackets, unit, v)
	case p.Unit == Switch && v != 0 && v != 1, (p.Unit == Bytes || p.Unit == Time) && v != math.Trunc(v):
		return fmt.Errorf("%s: value %v is out of range", p.Name, v)
	}
	return nil
}

// Find returns the named parameter of the transport. The error lists all names.
func (t *Transport) Find(name string) (*Parameter, error) {
	i := slices.IndexFunc(t.Parameters, func(p Parameter) bool { return p.Name == name })
	if i >= 0 {
		return &t.Parameters[i], nil
	}
	var names []string
	for i := range t.Parameters {
		names = append(names, t.Parameters[i].Name)
	}
	return nil, fmt.Errorf("transport %s: unknown parameter %q, expected one of %s", t.Name, name,
		strings.Join(names, ", "))
}

var compats = []string{"", "htsim", "atlahs"}

// Simulators returns the names of the reference simulators.
func Simulators() []string {
	return compats[1:]
}

// ParseCompat returns the named compatibility mode.
func ParseCompat(name string) (Compat, error) {
	for i, c := range compats {
		if c == name {
			return Compat(i), nil
		}
	}
	return 0, fmt.Errorf("unknown simulator %q, expected htsim or atlahs", name)
}

// String returns the name, or "" for [CompatNone].
func (c Compat) String() string {
	return compats[c]
}

// MarshalText returns the name, or "" for [CompatNone].
func (c Compat) MarshalText() ([]byte, error) {
	return []byte(compats[c]), nil
}

// setTransport selects a transport with its defaults.
func (b *backend) setTransport(name string) (err error) {
	compat, err := ParseCompat(b.compat)
	if err != nil {
		return err
	}
	seed := b.params.Seed
	if b.params, err = NewParams(name, compat); err != nil {
		b.params, _ = NewParams(DefaultTransport, CompatNone)
	}
	b.params.Seed = seed
	return err
}

// largestFactor is the largest factor of latencies and rates.
const largestFactor = 1e6

func (b *backend) Params() param.Set {
	names := make([]string, len(Transports))
	for i, t := range Transports {
		names[i] = t.Name
	}
	p := &b.params
	c := &p.Coupling
	compat := param.Func("simulator", "compat", "reproduce a reference simulator, including the accidents of its code",
		func(text string) error {
			if text == "true" || text == "false" { // flag without a simulator
				return nil
			}
			b.compat = text
			return b.setTransport(p.Transport)
		}).Among(Simulators()...)
	transport := param.Func("name", "transport", "transport protocol with its congestion control",
		func(name string) error { b.chosen = true; return b.setTransport(name) }).Default(p.Transport).Among(names...)
	const byTransport = "set by the transport"
	queueing := param.Choice(&p.Queueing, "queueing", "queueing discipline of switch ports",
		queueings[:]...).Default(byTransport).
		Synonym("droptail", "fifo", "tail-drop").Synonym("trim", "trimming", "packet-trimming").
		Synonym("pfc", "lossless").Synonym("ecn", "red").Synonym("priority", "strict-priority")
	balance := param.Func("policy", "balance", "load balancing over equal-cost paths", func(text string) (err error) {
		b.balance = text
		p.Balance, err = ParseBalance(text)
		return err
	}).Default(byTransport).Among(Balances()...).
		Synonym("flow", "ecmp", "per-flow", "hash").Synonym("spray", "packet-spray", "packet-spraying", "per-packet").
		Synonym("roundrobin", "rr").Synonym("valiant", "vlb").Synonym("host", "per-host")
	set := param.Set{
		compat.Hidden(),
		transport,
		param.Func("file", "params", "parameter file that --fit wrote", b.setParams),
		topology.Param(&b.topology),
		param.Float(&b.latencyFactor, "latency-factor", "multiple of the latencies of links and switches").
			Between(0, largestFactor),
		param.Float(&b.bandwidthFactor, "bandwidth-factor", "multiple of the rates of links").
			Between(1/largestFactor, largestFactor),
		param.Choice(&b.coupling, "coupling", "message model: own (MPI rules), htsim (lists of flows) or atlahs (GOAL)",
			"own", "htsim", "atlahs").Default("as --compat"),
		topology.PlacementParam(&b.placement),
		param.Int(&b.nics, "nics", "NICs per rank; each NIC is one host of the network"),
		param.Size(&p.MSS, "mss", "payload of a full packet in bytes").Sweep(),
		param.Size(&p.HeaderSize, "header-size", "header of a data packet in bytes, also the size of a trimmed packet").
			Default("64").Sweep(),
		param.Size(&p.ControlSize, "control-size", "ACK or another control packet in bytes").Default("64").Sweep(),
		param.Bool(&p.PadLastPacket, "whole-packets", "pad the last packet of a message to full size"),
		queueing,
		param.Size(&p.Queue, "queue", "switch queue capacity per port").Default(byTransport).Sweep(),
		param.Size(&p.ControlQueue, "control-queue", "capacity of the control packet queue per port").
			Default("8MiB, or twice --queue if larger").Sweep(),
		param.Size(&p.SharedBuffer, "buffer", "buffer that drop-tail ports of a switch share").
			Default("with --queue none, otherwise 5.12kB per Gb/s of the switch, at least 4MB").Sweep(),
		param.Float(&p.BufferShare, "buffer-share", "largest queue of a port relative to the free part of --buffer").
			Between(0.001, maxBufferShare).Sweep(),
		param.Int(&p.ControlRatio, "control-ratio", "control packets, such as headers of trimmed packets, that a port "+
			"sends per full data packet while both wait").Range(1, math.MaxInt32).Sweep(),
		param.String(&b.ecn, "ecn", "ECN marking thresholds KMIN[,KMAX], in bytes or percent of the queue, or none").
			Default(byTransport).Placeholder("kmin[,kmax]"),
		balance,
		param.Custom("int", "entropy", "number of entropy values of a sprayed flow", parseEntropy,
			func(x *big.Rat) (err error) {
				p.Entropy, err = param.Rounded(x)
				return err
			}, func() string { return strconv.FormatInt(p.Entropy, 10) }).Default("128").Sweep(),
		param.Time(&p.Flowlet, "flowlet-gap", "idle time of a flow after which a new flowlet starts").Sweep(),
		param.File(&b.pathsFile, "paths",
			"file with paths of flows: lines of source, destination, path and ACK path, or a JSON result with paths"),
		param.Strings(&b.failTexts, "fail",
			"fail a link, such as tor3-agg1@2ms..5ms, or change its rate, such as tor3-agg1@2ms:25Gbps; repeatable").
			Placeholder("link"),
		param.Func("key=value,...", "set", "transport parameters, with units; --list-transports lists them",
			b.assign).Repeats(),
		param.TimeIn(&c.Overhead, dag.Nanosecond, "o",
			"processor time per message at both ends; without unit in ns").Sweep(),
		param.TimeIn(&c.Gap, dag.Nanosecond, "g", "gap between messages of a NIC; without unit in ns").Sweep(),
		param.Size(&c.Rendezvous, "S", "largest eager message; larger ones wait for their receive").
			Default("unlimited").Sweep(),
		param.Bool(&c.AckEnds, "ack-ends",
			"end a send when its last byte is acknowledged instead of when it leaves the host"),
		param.Func("rate", "local-rate", "rate of messages between ranks on one host",
			b.setLocalRate).Default("unlimited"),
		param.Time(&c.LocalLatency, "local-latency", "latency of messages between ranks on one host").Sweep(),
		param.Time(&p.End, "end", "simulated time at which the run stops").Default("when idle"),
		param.Int(&p.Seed, "seed", "seed of random choices").Sweep(),
		param.Time(&b.sample, "sample", "sampling period of queue lengths").Default("no samples"),
		param.File(&b.samples, "samples", "write the samples to a CSV file").Output(),
		param.File(&b.flows, "flows",
			"write start, delivery, retransmissions, job, class and name of each flow to a CSV file").Output(),
		param.File(&b.ports, "ports", "write the counters of each port to a CSV file").Output(),
		param.New(&b.bins, "fct-bins", "bins of flow sizes in the table of flow completion times: decades, deciles "+
			"(ten equal numbers of flows), or the largest size of each bin, such as 10KB,100KB,1MB").
			Offer("decades", "deciles"),
	}
	set = append(set, b.window.Params()...)
	set = append(set, param.Int(&b.maxFlows, "max-flows",
		"largest number of flows that --json lists; above it, percentiles").Range(0, math.MaxInt32))
	set.Under("Network", "params", "topology", "latency-factor", "bandwidth-factor", "placement", "nics", "fail",
		"local-rate", "local-latency", "seed", "end")
	set.Under("Switches", "queueing", "queue", "buffer", "buffer-share", "control-queue", "control-ratio", "ecn",
		"balance", "entropy", "flowlet-gap", "paths")
	set.Under("Transport", "transport", "set", "mss", "header-size", "control-size", "whole-packets")
	set.Under("Messages", "coupling", "o", "g", "S", "ack-ends")
	set.Under("Output", "fct-bins", "measure-from", "measure-until", "sample", "samples", "flows", "ports",
		"max-flows")
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

// assign sets transport parameters by texts such as "rto=1ms,window=8".
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

// parseEntropy parses a number of entropy values. Params.Check checks the upper limit.
func parseEntropy(text string) (*big.Rat, error) {
	n, err := units.ParseCount(text, math.MinInt64, math.MaxInt64)
	return new(big.Rat).SetInt64(n), err
}

// String formats the parameters in one line.
func (p Params) String() string {
	text := fmt.Sprintf("mss=%s queue=%s", units.FormatSize(p.MSS), units.FormatSize(p.Queue))
	if p.SharedBuffer > 0 {
		text = fmt.Sprintf("mss=%s buffer=%s", units.FormatSize(p.MSS), units.FormatSize(p.SharedBuffer))
	}
	text += " balance=" + p.Balance.String()
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
