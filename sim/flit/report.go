// This file computes the report of a run from its counters.

package flit

import (
	"maps"
	"math/bits"
	"time"

	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// counters are the counts of the measured cycles.
type counters struct {
	created   uint64 // flits of generated packets
	dropped   uint64 // packets of synthetic traffic dropped for lack of room
	packets   uint64 // received packets; the following counts refer to them
	flits     uint64
	endToEnd  uint64 // sums over flits, in cycles
	network   uint64
	total     uint64 // sums over packets, in cycles
	injection uint64
	hops      uint64
	detoured  uint64 // packets off the minimal path
	messages  uint64
	waited    uint64 // sum over messages, in cycles
	shortest  uint64
	longest   uint64
	latencies [histogramSize]uint64
	stalls    [stalls]uint64
	end       uint64            // cycle in which the last packet is complete
	batches   [numBatches]batch // of synthetic traffic
	windows   []batch
	replies   batch  // of Reactive
	requested uint64 // sum over the replies, from the generation of their requests to their own, in cycles
}

// channelUse is the buffer occupancy of one virtual channel, over all input ports of a kind.
type channelUse struct {
	packets   uint64
	residence uint64 // flits times cycles
}

// The latency histogram has one bin per cycle below 2^exactBits, and the same number of bins per power of two above.
const (
	exactBits     = 11
	histogramSize = 1 << exactBits * (64 - exactBits + 1)
)

func histogramPlace(x uint64) int {
	if x < 1<<exactBits {
		return int(x)
	}
	shift := bits.Len64(x) - exactBits - 1
	return (shift+1)<<exactBits + int(x>>shift) - 1<<exactBits
}

// histogramValue returns the lowest value of a bin.
func histogramValue(place int) uint64 {
	if place < 1<<exactBits {
		return uint64(place)
	}
	shift := place>>exactBits - 1
	return uint64(place&(1<<exactBits-1)|1<<exactBits) << shift
}

// receive counts a packet whose head is received in cycle t. It is complete in cycle end.
func (c *counters) receive(pk *packet, t, end uint64) {
	flits := uint64(pk.flits)
	behind := flits * (flits - 1) / 2 // sum of the delays of its flits relative to its head
	c.packets++
	c.flits += flits
	c.endToEnd += flits*(t-pk.created) + behind
	c.network += flits*(t-pk.injected) + behind
	total := end - pk.created
	c.total += total
	c.injection += min(pk.left, t) - pk.created
	c.hops += uint64(pk.hops)
	if pk.flags&nonminimal != 0 {
		c.detoured++
	}
	if c.shortest == 0 || total < c.shortest {
		c.shortest = total
	}
	c.longest = max(c.longest, total)
	c.end = max(c.end, end)
	c.latencies[histogramPlace(total)]++
	if pk.flags&isReply != 0 {
		c.replies.packets++
		c.replies.total += total
		c.requested += uint64(pk.message)
	}
}

// add adds the counts of d.
func (c *counters) add(d *counters) {
	for _, sum := range [...]struct {
		into *uint64
		from uint64
	}{
		{&c.created, d.created}, {&c.dropped, d.dropped}, {&c.packets, d.packets}, {&c.flits, d.flits},
		{&c.endToEnd, d.endToEnd},
		{&c.network, d.network}, {&c.total, d.total}, {&c.injection, d.injection}, {&c.hops, d.hops},
		{&c.detoured, d.detoured},
		{&c.messages, d.messages}, {&c.waited, d.waited},
	} {
		*sum.into += sum.from
	}
	if c.shortest == 0 || d.shortest != 0 && d.shortest < c.shortest {
		c.shortest = d.shortest
	}
	c.longest = max(c.longest, d.longest)
	c.end = max(c.end, d.end)
	c.replies.add(&d.replies)
	c.requested += d.requested
	for i := range d.windows {
		if i == len(c.windows) {
			c.windows = append(c.windows, batch{})
		}
		c.windows[i].add(&d.windows[i])
	}
	for i, count := range d.latencies {
		c.latencies[i] += count
	}
	for i, cycles := range d.stalls {
		c.stalls[i] += cycles
	}
	for i := range d.batches {
		c.batches[i].add(&d.batches[i])
	}
}

// Report is the backend's part of a result. Latencies are in cycles.
type Report struct {
	Cycles  uint64 `json:"cycles"` // measured cycles
	Packets uint64 `json:"packets"`
	Flits   uint64 `json:"flits"`   // received flits
	Dropped uint64 `json:"dropped"` // packets of synthetic traffic dropped for lack of room

	// Applied and Accepted are the loads of generated packets and of received packets (the throughput), in flits per
	// cycle and host.
	Applied  float64 `json:"applied_load"`
	Accepted float64 `json:"accepted_load"`
	// IdleHosts is the share of hosts that are their own targets and generate no packets, from 0 to 1.
	IdleHosts float64 `json:"idle_hosts,omitempty"`

	// Mean latencies of flits until their reception: from the generation of their packet, and from the cycle in which
	// the packet's head left the NIC.
	FlitLatency        float64 `json:"flit_latency"`
	FlitNetworkLatency float64 `json:"flit_network_latency"`

	// Packet is the latency of packets, from generation to the end of the cycle in which the last flit is received. The
	// two means below divide it at the cycle in which the head leaves the first router.
	Packet           measure.Distribution[uint64] `json:"packet_latency"`
	Interval         *Interval                    `json:"packet_latency_interval,omitempty"`
	InjectionLatency float64                      `json:"packet_injection_latency"`
	NetworkLatency   float64                      `json:"packet_network_latency"`
	Hops             float64                      `json:"hops"` // mean number of links between routers
	// Nonminimal is the share of packets that did not take a minimal path in a dragonfly, from 0 to 1.
	Nonminimal float64 `json:"nonminimal_share,omitempty"`

	Windows  []Window        `json:"windows,omitempty"` // of Transient
	Reactive *ReactiveReport `json:"reactive,omitempty"`

	// MessageLatency is the mean over the messages of a trace, from handover to the reception of the last flit.
	Messages       uint64  `json:"messages"`
	MessageLatency float64 `json:"message_latency"`

	Links  []LinkReport  `json:"links"`  // one per direction of the routers' links, by router and port
	VCs    []VCReport    `json:"vcs"`    // by kind and number
	Stalls []StallReport `json:"stalls"` // by cause

	Events int64         `json:"events"` // packets granted, sent or received since the start
	Wall   time.Duration `json:"-"`      // for synthetic traffic

	batches *[numBatches]batch
}

// reportUnits are the units of the parts that all reports have.
var reportUnits = map[string]string{
	"cycles": "cycles", "applied_load": "flits/cycle", "accepted_load": "flits/cycle", "flit_latency": "cycles",
	"flit_network_latency": "cycles", "packet_latency": "cycles", "packet_injection_latency": "cycles",
	"packet_network_latency": "cycles", "message_latency": "cycles", "vcs.occupancy": "flits",
	"stalls.cycles": "cycles", "packet_latency_interval.half_width": "cycles", "saturation.load": "flits/cycle",
	"saturation.throughput": "flits/cycle", "saturation.zero_load": "flits/cycle",
	"saturation.zero_load_latency": "cycles", "saturation.zero_load_interval.half_width": "cycles",
}

// units returns the units of the report, those of its optional parts only with these.
func (r *Report) units() map[string]string {
	units := maps.Clone(reportUnits)
	if len(r.Windows) > 0 {
		units["windows.cycle"], units["windows.packet_latency"] = "cycles", "cycles"
		units["windows.accepted_load"] = "flits/cycle"
	}
	if r.Reactive != nil {
		units["reactive.request_latency"], units["reactive.reply_latency"] = "cycles", "cycles"
		units["reactive.round_trip"] = "cycles"
	}
	return units
}

// LinkReport describes one direction of a link.
type LinkReport struct {
	From        string  `json:"from"`
	To          string  `json:"to"`
	Kind        string  `json:"kind"`  // host, local or global
	Flits       uint64  `json:"flits"` // sent flits
	Utilization float64 `json:"use"`   // fraction of busy cycles
}

// VCReport describes a virtual channel of all input ports of a kind.
type VCReport struct {
	Kind      string  `json:"kind"` // kind of port: from hosts, local or global
	VC        int     `json:"vc"`
	Packets   uint64  `json:"packets"`   // packets that left the buffers
	Occupancy float64 `json:"occupancy"` // mean flits per buffer
	Share     float64 `json:"share"`     // mean fraction of the capacity in use
}

// StallReport is the number of cycles in which the first packet of an input buffer could not leave, by cause: "input":
// another packet was leaving the port; "output": another was arriving at the output; "buffer": the output buffer was
// full; "credits": the next router's buffer was full; "arbitration": another was served.
type StallReport struct {
	Cause  string `json:"cause"`
	Cycles uint64 `json:"cycles"`
}

var kindNames = [...]string{"host", "local", "global"}

// ratio returns a/b, or 0 if b is 0.
func ratio[T uint64 | float64](a T, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// report returns the report of the given number of measured cycles.
func (n *worker) report(cycles uint64) *Report {
	c := &n.counters
	all := cycles * uint64(n.hosts)
	r := &Report{
		Cycles: cycles, Packets: c.packets, Flits: c.flits, Dropped: c.dropped,
		Applied: ratio(c.created, all), Accepted: ratio(c.flits, all),
		FlitLatency: ratio(c.endToEnd, c.flits), FlitNetworkLatency: ratio(c.network, c.flits),
		Packet:           c.distribution(),
		InjectionLatency: ratio(c.injection, c.packets), NetworkLatency: ratio(c.total-c.injection, c.packets),
		Hops: ratio(c.hops, c.packets), Nonminimal: ratio(c.detoured, c.packets),
		Messages: c.messages, MessageLatency: ratio(c.waited, c.messages),
		Events: n.events, Reactive: n.reactiveReport(),
	}
	if n.traffic != nil {
		r.IdleHosts, r.Windows = n.traffic.idleShare(), n.windows(cycles)
	}
	if n.batch > 0 {
		r.batches = new([numBatches]batch)
		*r.batches = c.batches
	}
	n.reportLinks(r)
	n.reportVCs(r)
	for cause := stallInput; cause < stalls; cause++ {
		r.Stalls = append(r.Stalls, StallReport{stallNames[cause], c.stalls[cause]})
	}
	return r
}

// distribution returns the distribution of packet latencies in cycles. Percentiles are exact up to 2047, and at most
// 0.05 % too low above.
func (c *counters) distribution() measure.Distribution[uint64] {
	d := measure.Distribution[uint64]{
		Count: int64(c.packets), Mean: ratio(c.total, c.packets), Min: c.shortest, Max: c.longest,
	}
	sum := uint64(0)
	for place, count := range c.latencies {
		if count == 0 {
			continue
		}
		sum += count
		for _, q := range [...]struct {
			percent uint64
			into    *uint64
		}{{50, &d.P50}, {95, &d.P95}, {99, &d.P99}} {
			if *q.into == 0 && sum*100 >= c.packets*q.percent {
				*q.into = histogramValue(place)
			}
		}
	}
	return d
}

func (n *worker) reportLinks(r *Report) {
	hosts := uint32(n.hosts)
	for q := range n.ports {
		pt := &n.ports[q]
		to := pt.peer - uint32(len(n.ports)) // port to a host
		if pt.kind != hostPort {
			to = n.ports[pt.peer].router + hosts
		}
		r.Links = append(r.Links, LinkReport{n.topology.Name(pt.router + hosts), n.topology.Name(to),
			kindNames[pt.kind], n.sent[q],
			ratio(n.sent[q], r.Cycles)})
	}
}

// traffic returns the traffic of each port of the network. That of hosts is unknown.
func (r *Report) traffic(t *topology.Network, flitBytes int) []topology.Traffic {
	type pair struct{ from, to string }
	links := make(map[pair][]int) // several between two routers: in the order of both lists
	for i := range r.Links {
		k := pair{r.Links[i].From, r.Links[i].To}
		links[k] = append(links[k], i)
	}
	all := make([]topology.Traffic, 2*len(t.Links))
	for i, p := range t.Ports() {
		k := pair{t.Name(p.From), t.Name(p.To)}
		if len(links[k]) == 0 {
			all[i].Unknown = true
			continue
		}
		l := &r.Links[links[k][0]]
		links[k] = links[k][1:]
		all[i] = topology.Traffic{Bytes: l.Flits * uint64(flitBytes), Use: l.Utilization}
	}
	return all
}

func (n *worker) reportVCs(r *Report) {
	var ports [3]uint64
	for q := range n.ports {
		ports[n.ports[q].kind]++
	}
	for kind, count := range ports {
		for vc := 0; vc < int(n.count[kind]) && count > 0; vc++ {
			use := &n.channelUse[kind*maxVCs+vc]
			v := VCReport{Kind: kindNames[kind], VC: vc, Packets: use.packets,
				Occupancy: ratio(use.residence, r.Cycles*count)}
			v.Share = v.Occupancy / float64(n.capacity[kind])
			r.VCs = append(r.VCs, v)
		}
	}
}
