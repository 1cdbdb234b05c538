// This file builds the network of a run.

package packet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
	simevent "github.com/tracedag/tracedag/sim/event"
	"github.com/tracedag/tracedag/sim/topology"
)

// wheelGranularity is log2 of the bucket length of the event queue in picoseconds, found by measurement. In networks of
// manyPorts ports, buckets of half the length have fewer events to sort.
const (
	wheelGranularity = 9
	manyPorts        = 1 << 15
)

func newQueue(ports int) *simevent.Wheel {
	if ports >= manyPorts {
		return simevent.NewWheel(wheelGranularity - 1)
	}
	return simevent.NewWheel(wheelGranularity)
}

// picosecondsPerByte returns the transmission time of a byte at a rate in bit/s, rounded down as in htsim.
func picosecondsPerByte(rate int64) uint64 {
	return uint64(8e12) / uint64(rate)
}

// byteTime is the transmission time of a byte.
type byteTime struct {
	ps   uint64
	part uint8 // of a picosecond, in units of 1/256
}

// exactRate is the rate in bit/s above which a part of a picosecond per byte is more than an eighth of the time.
const exactRate = 1e12

// byteTimeOf returns the time of a byte at a rate in bit/s. Whole picoseconds are exact enough up to [exactRate]; with
// the quirk wholePicoseconds, all times are whole.
func (q *quirks) byteTimeOf(rate int64) byteTime {
	t := byteTime{ps: picosecondsPerByte(rate)}
	if rate > exactRate && !q.wholePicoseconds {
		t.part = uint8(uint64(8e12) % uint64(rate) * 256 / uint64(rate))
	}
	return t
}

// of returns the time of a number of bytes in picoseconds, rounded up.
func (t byteTime) of(bytes uint64) uint64 {
	return bytes*t.ps + (bytes*uint64(t.part)+255)>>8
}

// float returns the time in picoseconds.
func (t byteTime) float() float64 { return float64(t.ps) + float64(t.part)/256 }

// less reports whether a byte takes less time.
func (t byteTime) less(other byteTime) bool {
	return t.ps < other.ps || t.ps == other.ps && t.part < other.part
}

// byteTime returns the transmission time of a byte.
func (pt *port) byteTime() byteTime { return byteTime{uint64(pt.psPerByte), pt.partPerByte} }

// slowest is the lowest rate of a link in bit/s: a port has 32 bits for the picoseconds of a byte.
const slowest = int64(8e12)/math.MaxUint32 + 1

// checkRates returns an error if a link is too slow.
func checkRates(t *topology.Network) error {
	for i := range t.Links {
		if rate := t.Links[i].Rate; rate < slowest {
			return fmt.Errorf("topology: expected links of at least %d bit/s, found link %d with %d bit/s", slowest, i,
				rate)
		}
	}
	return nil
}

// newNetwork builds the network of a run, and sets the parameters that depend on it.
func newNetwork(o *Options) (*network, error) {
	t, p := o.Network, &o.Params
	m, err := FindTransport(p.Transport)
	if err != nil {
		return nil, err
	}
	if err := checkRates(t); err != nil {
		return nil, err
	}
	routes, err := topology.NewRoutes(o.Context, t, nil)
	if err != nil {
		return nil, err
	}
	n := &network{
		queue:  newQueue(2 * len(t.Links)),
		quirks: quirksOf(p.Compat), fullSize: uint32(p.MSS + p.HeaderSize), headerSize: uint32(p.HeaderSize),
		controlSize: uint32(p.ControlSize),
		freePacket:  none, freeFlow: none,
		topology: t, given: t.Given, routes: routes, intact: routes, hosts: uint32(t.Hosts), seed: p.Seed,
		ctx: o.Context,
	}
	d, err := p.discipline(m)
	if err != nil {
		return nil, err
	}
	if _, ok := p.TransportParams["pfc"]; ok && d != lossless {
		p.TransportParams = maps.Clone(p.TransportParams)
		p.TransportParams["pfc"] = 0
	}
	if p.ControlRatio == 0 {
		p.ControlRatio = n.quirks.controlTurns
	}
	n.buildPorts(t, m, d, p)
	n.large = len(n.ports) >= largeNetwork && n.given == nil
	n.findReference()
	if p.Queue == 0 && d == lossless && p.TransportParams["pfc"] != 0 {
		p.Queue = n.losslessCapacity(p, t.Switches, uint64(n.fullSize))
	}
	least := int64(0) // capacity without drops
	if d == lossless && p.TransportParams["pfc"] != 0 && !n.quirks.overfillLossless {
		least = n.losslessCapacity(p, t.Switches, uint64(n.fullSize))
		if p.Queue < least {
			o.warn("--queue %s is less than the %s that arrive at a switch until pauses take effect; the run uses the "+
				"latter, since lossless queues never drop; lower pfc-high for shorter queues",
				units.FormatSize(p.Queue), units.FormatSize(least))
			p.Queue = least
		}
	}
	byFile := p.Queue == 0 // queues have the capacities of the topology file, if specified
	p.complete(m, &n.quirks, n.bandwidthDelay())
	if full := p.MSS + p.HeaderSize; p.Queue < full {
		return nil, fmt.Errorf("--queue: expected at least a full packet of %d bytes, found %d", full, p.Queue)
	}
	n.configureQueues(t, m, p, byFile, least)
	if d == lossless && p.TransportParams["pfc"] == 0 {
		d = markingDropTail
	}
	n.shareBuffers(t, d, p, byFile)
	n.drainReference()
	n.sampler = newSampler(o, len(n.ports))
	n.balance = newBalance(p.Balance, uint32(p.Entropy), p.Seed, t.Switches, uint64(p.Flowlet))
	if p.Balance == Valiant || p.Balance == UGAL {
		if n.balance.dragonfly = t.Dragonfly; t.Dragonfly == nil {
			return nil, fmt.Errorf("--balance: %v needs a dragonfly, such as --topology dragonfly:p=4,a=8,h=4",
				p.Balance)
		}
	}
	n.balance.shuffle = !n.quirks.fixedEntropyOrder
	n.balance.paths = o.Paths
	n.nics = make([]nic, t.Hosts)
	if n.quirks.keepIdleFlows {
		for i := range n.nics {
			for k := range n.nics[i].priorities {
				n.nics[i].priorities[k].keepIdle = true
			}
		}
	}
	n.switches = make([]switchDelay, t.Switches)
	for i := range n.switches {
		n.switches[i] = switchDelay{latency: uint64(t.SwitchLatency[i]), queue: newFIFO()}
	}
	if len(o.Failures) > 0 {
		n.failures = &failures{topology: t, list: o.Failures, down: make([]int, len(t.Links)),
			routes: make(map[string]*topology.Routes)}
		for i := range o.Failures {
			if err := checkFailure(&o.Failures[i], t); err != nil {
				return nil, err
			}
		}
		n.failures.schedule(n)
	}
	sizes := p.takeSizes(m, n.reference.bandwidthDelay())
	n.transport = m.build(n, &transportConfig{
		mss: uint64(p.MSS), header: uint32(p.HeaderSize), control: uint32(p.ControlSize), rate: n.reference.rate,
		padLast: p.PadLastPacket,
		quirks:  n.quirks, params: p.TransportParams, sizes: sizes,
	})
	return n, nil
}

// bandwidthDelay returns the bandwidth-delay product of the network in bytes.
func (n *network) bandwidthDelay() uint64 {
	if rate := n.reference.rate; n.quirks.fixedRoundTrip {
		return atlahsRoundTrip(rate) * (rate / 1e9) / 8
	}
	return n.reference.bandwidthDelay()
}

// atlahsRoundTrip returns the initial round trip of ATLAHS at a rate in bit/s, in nanoseconds.
func atlahsRoundTrip(rate uint64) uint64 {
	gbps := max(rate/1e9, 1)
	return 8000 + 4*(4096*8/gbps) + 4*(64*8/gbps)
}

func (n *network) buildPorts(t *topology.Network, m *Transport, d discipline, p *Params) {
	ports := t.Ports()
	n.ports = cpu.InHugePages(make([]port, len(ports)))
	for i, from := range ports {
		link := &t.Links[from.Link]
		pt := &n.ports[i]
		perByte := n.quirks.byteTimeOf(link.Rate)
		*pt = port{
			psPerByte: uint32(perByte.ps), partPerByte: perByte.part, serving: none, discipline: d,
			queues: [2]fifo{newFIFO(), newFIFO()}, wire: newFIFO(), wireLatency: uint64(link.Latency),
			latency: uint64(link.Latency), random: sim.NewRandom(p.Seed, forPort, uint64(i)),
			markHeaders: !m.ecn.noHeaders, controlTurns: uint32(p.ControlRatio),
		}
		if !n.quirks.onePacketPerTurn {
			pt.dataTurn = int64(n.fullSize)
		}
		pt.toHost = int(from.To) < t.Hosts
		pt.to = from.To
		if !pt.toHost {
			pt.to -= uint32(t.Hosts)
			pt.latency += uint64(t.SwitchLatency[pt.to])
		}
		if int(from.From) < t.Hosts {
			pt.discipline, pt.host = m.nic, from.From
		} else {
			pt.host = none
		}
		switch pt.discipline {
		case trimming, controlFirst, markingFirst, aeolus:
			pt.twoQueues = true
		}
		pt.direct = !n.quirks.stagedEvents && pt.latency > 0
		if n.given != nil {
			pt.virtual = n.given.Virtual(from.Link)
			pt.direct = pt.direct && !pt.virtual
		}
	}
}

// randomDropPackets is the free space, in full packets, below which random drop queues start to drop.
const randomDropPackets = 3

// randomDropChance is the drop probability for transports without a parameter for it.
const randomDropChance = 0.1

// aeolusShare is the share of a queue available to speculative data (Hu et al., Aeolus, SIGCOMM 2020).
const aeolusShare = 0.2

// fewestPackets is the smallest default capacity of a port in full packets, from Handley et al., section 3.2.
// Bandwidth- delay products of slow links are smaller, but a few packets arrive back to back.
const fewestPackets = 8

// defaultQueue returns the default capacity of a port in bytes, given that of the fastest ports. Ports slower than the
// reference path have less, so that their queues take no longer to drain.
func (n *network) defaultQueue(i uint32, fastest uint64) uint64 {
	rate := n.linkRate(i)
	if n.quirks.firstHostRate || rate >= n.reference.rate {
		return fastest
	}
	share := uint64(float64(fastest) * (float64(rate) / float64(n.reference.rate)))
	return min(fastest, max(share, fewestPackets*uint64(n.fullSize)))
}

// configureQueues sets the capacities and marking thresholds of all ports. least is the smallest capacity that a
// topology file may set.
func (n *network) configureQueues(t *topology.Network, m *Transport, p *Params, byFile bool, least int64) {
	for i := range n.ports {
		pt := &n.ports[i]
		pt.kmin, pt.kmax, pt.markChance = uint64(p.ECNMin), uint64(p.ECNMax), alwaysMark
		if m.ecn.notToHosts && pt.toHost {
			pt.kmin, pt.kmax = NoECN, NoECN
		}
		pt.capacity = [2]uint64{uint64(p.Queue), uint64(p.ControlQueue)}
		if byFile {
			pt.capacity[dataQueue] = n.defaultQueue(uint32(i), uint64(p.Queue))
			if size := t.Queue(i); size > 0 {
				pt.capacity[dataQueue] = uint64(max(size, least))
			}
			if c := pt.capacity[dataQueue]; p.sharesOfQueue && !n.quirks.firstHostRate && pt.kmax != NoECN {
				pt.kmin, pt.kmax = scaled(pt.kmin, c, uint64(p.Queue)), scaled(pt.kmax, c, uint64(p.Queue))
			}
		}
		if pt.host != none {
			pt.capacity = [2]uint64{math.MaxUint64, math.MaxUint64}
		}
		pt.loadCapacity = pt.capacity[dataQueue]
		switch pt.discipline {
		case randomDrop:
			chance, ok := p.TransportParams["drop-chance"]
			if !ok {
				chance = randomDropChance
			}
			pt.kmin, pt.kmax = randomDropPackets*uint64(p.MSS), uint64(chance*(1<<53))
		case aeolus:
			pt.kmin = uint64(aeolusShare * float64(pt.capacity[dataQueue]))
		}
	}
}

// scaled returns x * numerator / denominator.
func scaled(x, numerator, denominator uint64) uint64 {
	if numerator == denominator {
		return x
	}
	return uint64(float64(x) * (float64(numerator) / float64(denominator)))
}

// ParseBalance returns the named load-balancing policy.
func ParseBalance(name string) (Balance, error) {
	for i, b := range balances {
		if b == name {
			return Balance(i), nil
		}
	}
	return 0, fmt.Errorf("unknown policy %q, expected one of %s", name, strings.Join(balances[:], ", "))
}

var balances = []string{
	ByFlow: "flow", ByHost: "host", Spray: "spray", Permute: "permute", Random: "random", Fixed: "fixed",
	RoundRobin: "roundrobin", Adaptive: "adaptive", Flowlet: "flowlet", Valiant: "valiant", UGAL: "ugal",
}

// Balances returns the names of all load-balancing policies.
func Balances() []string {
	return slices.Clone(balances)
}

// String returns the name of the policy.
func (b Balance) String() string {
	return balances[b]
}

// MarshalText returns the name of the policy.
func (b Balance) MarshalText() ([]byte, error) {
	return []byte(b.String()), nil
}
