// This file makes the report of a run from what the network counted: what became of flows, ports and tiers.

package packet

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// Report is what a run has to tell beyond its result.
type Report struct {
	Flows []Flow // in the order of their starts, then of their numbers
	// Ideal is how long each flow takes until it is delivered where nothing is in its way: its first packet the whole way
	// (serialised at every link, and all latencies), and the others as long as the slowest link of the way takes for them.
	// 0 where no way leads to the destination.
	Ideal []dag.Time

	Incomplete int          // flows whose sender does not know that they are over
	FCTs       []float64    // picoseconds from start to the last acknowledgement at the sender, of complete flows, ascending
	FCT        Distribution // the same
	Delivered  Distribution // picoseconds from start to the last byte at the receiver, of delivered flows
	Slowdown   Distribution // the time until delivered, divided by the ideal
	Sizes      []SizeClass  // the same by the size of flows, ascending
	Last       dag.Time     // when the last flow was over; 0: none was
	Bytes      uint64       // of complete flows
	Jain       float64      // Jain's index of fairness over Bytes / FCT of complete flows: sum(x)^2 / (n sum(x^2))

	Counters Counters
	Ports    []PortReport // those that packets came to, the one that sent the most bytes first, then by number
	Tiers    []TierReport // from hosts up to cores and down again
	Sampled  bool         // queues were sampled
}

// Distribution is what is usually told of a distribution. Percentiles are those of sorted values at (n-1)p, linear in
// between.
type Distribution struct {
	Count                               int
	Min, Mean, P50, P95, P99, P999, Max float64
}

// SizeClass is the flows of one size, or, where flows have more than 32 sizes, of those above one power of two up to the next.
type SizeClass struct {
	Bytes    uint64 // the largest size of the class
	FCT      Distribution
	Slowdown Distribution
}

// Counters are sums over the network. Queues and what they do are those of switches, not of hosts.
type Counters struct {
	Events          int64  `json:"events"`                     // of the network
	TrimsArriving   uint64 `json:"switch_trims_arriving"`      // packets that lost their payload when they came,
	TrimsTail       uint64 `json:"switch_trims_tail"`          // or to one that came
	Drops           uint64 `json:"switch_drops"`               // data packets
	ControlOrPauses uint64 `json:"header_drops_or_pfc_pauses"` // the sum of the next two, of which a network has one
	ControlDrops    uint64 `json:"header_drops"`               // control packets, and headers of trimmed ones
	Pauses          uint64 `json:"pfc_pauses"`                 // that switches sent
	Unroutable      uint64 `json:"no_way_drops"`               // packets for which failures had left no way
	Marks           uint64 `json:"ecn_marks"`
	MaxDataQueue    uint64 `json:"max_data_queue_bytes"`
	MaxControlQueue uint64 `json:"max_control_queue_bytes"`
	Retransmitted   uint64 `json:"retransmitted_packets"`
	Nacks           uint64 `json:"nacks"`
}

// PortReport is what a port did.
type PortReport struct {
	Port         int    // as topology.Network.Ports has them
	Name         string // such as tor0->host3; of the second of several links between the same nodes, agg1->core0#2
	Tier         string // as in TierReport
	Packets      uint64
	Bytes        uint64 // with headers
	Trims        uint64
	Drops        uint64
	ControlDrops uint64
	Marks        uint64
	MaxQueue     uint64   // bytes of data, with the packet in service
	Pauses       uint64   // that it was sent
	Paused       dag.Time // how long it was paused
	Utilization  float64  // share of the time until Report.Last in which it sent, 0 to 1

	// Of samples, in bytes; see Options.Sample.
	MeanQueue float64
	P99Queue  float64
}

// TierReport is what the ports of one kind did: those from hosts up, from ToRs up, ... , from ToRs down to hosts.
type TierReport struct {
	Name            string
	Ports           int // idle ones, too
	Packets         uint64
	Bytes           uint64
	Trims           uint64
	Drops           uint64
	Marks           uint64
	MaxQueue        uint64
	MeanUtilization float64
	MaxUtilization  float64
	Imbalance       float64 // bytes of the port that sent the most, divided by the mean of all; 0 where none sent any

	// Of samples of all these ports, in bytes.
	MeanQueue float64
	P99Queue  float64
}

// newReport makes the report of a network that has run.
func newReport(n *network, o *Options) *Report {
	r := &Report{Flows: n.records}
	slices.SortStableFunc(r.Flows, func(a, b Flow) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	routes := n.routes
	if n.failures != nil {
		routes = intactRoutes(o.Network)
	}
	r.Ideal = idealTimes(r.Flows, routes, o)
	r.summarize()
	r.Counters.Events = n.events
	if n.failures != nil {
		r.Counters.Unroutable = n.failures.unroutable
	}
	if n.sampler != nil {
		r.Sampled = true
		r.Counters.Events -= n.sampler.taken
		n.sampler.finish(r.Last)
	}
	r.countPorts(n, o.Network)
	return r
}

// intactRoutes returns the ways where all links work.
func intactRoutes(t *topology.Network) *topology.Routes {
	routes, err := topology.NewRoutes(t, nil)
	if err != nil {
		panic(err) // the run has had them
	}
	return routes
}

// idealTimes returns how long each flow takes where nothing is in its way.
func idealTimes(flows []Flow, routes *topology.Routes, o *Options) []dag.Time {
	t, err := FindTransport(o.Params.Transport)
	if err != nil {
		panic(err) // the run had it
	}
	ideal := make([]dag.Time, len(flows))
	for i := range flows {
		f := &flows[i]
		first, rest := wireBytes(f.Bytes, uint64(o.Params.MSS), uint64(t.header), o.Params.PadLastPacket)
		time, slowest := unloadedPath(o.Network, routes, f.Source, f.Target, first)
		if slowest > 0 {
			ideal[i] = dag.Time(time + rest*slowest)
		}
	}
	return ideal
}

// wireBytes returns how many bytes the first packet of a flow has, and all others.
func wireBytes(bytes, mss, header uint64, whole bool) (first, rest uint64) {
	packets := max(1, (bytes+mss-1)/mss)
	total := bytes + packets*header
	if whole {
		total = packets * (mss + header)
	}
	first = min(total, mss+header)
	return first, total - first
}

// unloadedWay returns how long a packet takes from one host to another where nothing is in its way, and how many
// picoseconds the slowest link takes for a byte, 0 if no way leads there.
func unloadedPath(t *topology.Network, routes *topology.Routes, from, to uint32, size uint64) (time, slowest uint64) {
	edge := routes.Edge(to)
	for port := routes.NIC(from); ; {
		link := &t.Links[port/2]
		perByte := picosecondsPerByte(link.Rate)
		slowest = max(slowest, perByte)
		time += size*perByte + uint64(link.Latency)
		at := link.B
		if port%2 == 1 {
			at = link.A
		}
		if at == to {
			return time, slowest
		}
		sw := at - uint32(t.Hosts)
		time += uint64(t.SwitchLatency[sw])
		if port = routes.HostPort(to); sw != edge {
			ways := routes.Next(sw, edge)
			if len(ways) == 0 {
				return 0, 0
			}
			port = ways[0]
		}
	}
}

// summarise computes what is told of all flows.
func (r *Report) summarize() {
	var fct, delivered, slowdown []float64
	var sum, squares float64
	classOf, classes := sizeClasses(r.Flows)
	r.Sizes = make([]SizeClass, len(classes))
	byClass := make([]struct{ fct, slowdown []float64 }, len(classes))
	for i := range r.Flows {
		f := &r.Flows[i]
		class := &byClass[classOf(f.Bytes)]
		r.Counters.Retransmitted += uint64(f.Retransmits)
		r.Counters.Nacks += uint64(f.Nacks)
		if f.Delivered > 0 {
			took := float64(f.Delivered - f.Start)
			delivered = append(delivered, took)
			if r.Ideal[i] > 0 {
				slowdown = append(slowdown, took/float64(r.Ideal[i]))
				class.slowdown = append(class.slowdown, took/float64(r.Ideal[i]))
			}
		}
		if f.Acknowledged == 0 {
			r.Incomplete++
			continue
		}
		took := float64(f.Acknowledged - f.Start)
		fct = append(fct, took)
		class.fct = append(class.fct, took)
		r.Last = max(r.Last, f.Acknowledged)
		r.Bytes += f.Bytes
		throughput := float64(f.Bytes) / took
		sum += throughput
		squares += throughput * throughput
	}
	if squares > 0 {
		r.Jain = sum * sum / (float64(len(fct)) * squares)
	}
	r.FCTs = fct
	r.FCT, r.Delivered, r.Slowdown = distribution(fct), distribution(delivered), distribution(slowdown)
	for i := range r.Sizes {
		r.Sizes[i] = SizeClass{classes[i], distribution(byClass[i].fct), distribution(byClass[i].slowdown)}
	}
}

// listedSizes is up to how many sizes of flows have a class each.
const maxSizeClasses = 32

// sizeClasses returns the largest size of each class, ascending, and of which class a flow is by its size.
func sizeClasses(flows []Flow) (classOf func(uint64) int, classes []uint64) {
	seen := make(map[uint64]bool)
	for i := range flows {
		if seen[flows[i].Bytes] = true; len(seen) > maxSizeClasses {
			break
		}
	}
	if many := len(seen) > maxSizeClasses; many {
		clear(seen)
		for i := range flows {
			seen[nextPowerOfTwo(flows[i].Bytes)] = true
		}
	}
	for bytes := range seen {
		classes = append(classes, bytes)
	}
	slices.Sort(classes)
	return func(bytes uint64) int {
		i, _ := slices.BinarySearch(classes, bytes)
		return i
	}, classes
}

// powerAbove returns the least power of two that is not below n.
func nextPowerOfTwo(n uint64) uint64 {
	p := uint64(1)
	for p < n && p < 1<<63 {
		p <<= 1
	}
	return p
}

// distribution describes values, which it sorts.
func distribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return Distribution{
		Count: len(values), Min: values[0], Mean: sum / float64(len(values)), P50: Quantile(values, 0.5),
		P95: Quantile(values, 0.95), P99: Quantile(values, 0.99), P999: Quantile(values, 0.999), Max: values[len(values)-1],
	}
}

// Quantile returns the p-quantile, p from 0 to 1, of ascending values, of which there is at least one: that at (n-1)p,
// linear between two.
func Quantile(values []float64, p float64) float64 {
	at := float64(len(values)-1) * p
	i := int(at)
	if i+1 >= len(values) {
		return values[len(values)-1]
	}
	return values[i] + (values[i+1]-values[i])*(at-math.Floor(at))
}

// tiers are the kinds of ports, in the order of a report.
var tiers = []string{
	"host up", "tor up", "agg up", "router local", "router global", "switch", "core down", "agg down", "tor down", "router down",
	"switch down",
}

// tierOf returns of which kind a port is.
func tierOf(t *topology.Network, p topology.Port) string {
	if int(p.From) < t.Hosts {
		return "host up"
	}
	from := t.Tier[int(p.From)-t.Hosts]
	name := "switch"
	switch {
	case t.FatTree != nil:
		name = [...]string{"tor", "agg", "core"}[from]
	case t.Dragonfly != nil:
		name = "router"
	}
	switch {
	case int(p.To) < t.Hosts:
		return name + " down"
	case t.FatTree != nil && t.Tier[int(p.To)-t.Hosts] > from:
		return name + " up"
	case t.FatTree != nil:
		return name + " down"
	case t.Dragonfly != nil:
		d := t.Dragonfly
		if d.Group(int(p.From)-t.Hosts) == d.Group(int(p.To)-t.Hosts) {
			return name + " local"
		}
		return name + " global"
	}
	return name
}

// countPorts adds what the ports did.
func (r *Report) countPorts(n *network, t *topology.Network) {
	ports, names := t.Ports(), PortNames(t)
	sums := make([]TierReport, len(tiers))
	samples := make([]histogram, len(tiers))
	for i := range n.ports {
		pt := &n.ports[i]
		tier := slices.Index(tiers, tierOf(t, ports[i]))
		row := PortReport{
			Port: i, Name: names[i], Tier: tiers[tier], Packets: pt.packets, Bytes: pt.sent, Trims: pt.trims + pt.trimsTail,
			Drops: pt.drops, ControlDrops: pt.controlDrops, Marks: pt.marks, MaxQueue: pt.peak[dataQueue],
			Pauses: uint64(pt.pausesReceived), Paused: dag.Time(pt.pausedFor(n.now)),
		}
		if r.Last > 0 {
			row.Utilization = min(1, float64(pt.sent)*float64(pt.psPerByte)/float64(r.Last))
		}
		if n.sampler != nil {
			h := &n.sampler.queues[i]
			row.MeanQueue, row.P99Queue = h.mean(n.sampler.count), h.quantile(n.sampler.count, 0.99)
			samples[tier].add(h)
		}
		sums[tier].count(&row)
		if pt.host == none {
			r.Counters.count(pt)
		}
		if row.Packets > 0 || row.Trims+row.Drops+row.ControlDrops > 0 {
			r.Ports = append(r.Ports, row)
		}
	}
	slices.SortStableFunc(r.Ports, func(a, b PortReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range sums {
		s := &sums[i]
		if s.Ports == 0 {
			continue
		}
		s.Name = tiers[i]
		s.MeanUtilization /= float64(s.Ports)
		if s.Bytes > 0 {
			s.Imbalance *= float64(s.Ports) / float64(s.Bytes)
		}
		if n.sampler != nil {
			all := n.sampler.count * uint64(s.Ports)
			s.MeanQueue, s.P99Queue = samples[i].mean(all), samples[i].quantile(all, 0.99)
		}
		r.Tiers = append(r.Tiers, *s)
	}
}

// count adds a port. The mean utilisation is a sum until all are there, and the imbalance the most bytes of a port.
func (s *TierReport) count(p *PortReport) {
	s.Ports++
	s.Packets += p.Packets
	s.Bytes += p.Bytes
	s.Trims += p.Trims
	s.Drops += p.Drops
	s.Marks += p.Marks
	s.MaxQueue = max(s.MaxQueue, p.MaxQueue)
	s.MeanUtilization += p.Utilization
	s.MaxUtilization = max(s.MaxUtilization, p.Utilization)
	s.Imbalance = max(s.Imbalance, float64(p.Bytes))
}

func (c *Counters) count(pt *port) {
	c.TrimsArriving += pt.trims
	c.TrimsTail += pt.trimsTail
	c.Drops += pt.drops
	c.ControlDrops += pt.controlDrops
	c.Marks += pt.marks
	c.Pauses += uint64(pt.pausesSent)
	c.ControlOrPauses = c.ControlDrops + c.Pauses
	c.MaxDataQueue = max(c.MaxDataQueue, pt.peak[dataQueue])
	c.MaxControlQueue = max(c.MaxControlQueue, pt.peak[controlQueue])
}

// PortNames returns the names of all ports, as in [PortReport].
func PortNames(t *topology.Network) []string {
	type pair struct{ from, to uint32 }
	ports := t.Ports()
	names := make([]string, len(ports))
	parallel := make(map[pair]int)
	for i, p := range ports {
		names[i] = t.Name(p.From) + "->" + t.Name(p.To)
		k := pair{p.From, p.To}
		if parallel[k]++; parallel[k] > 1 {
			names[i] += fmt.Sprintf("#%d", parallel[k])
		}
	}
	return names
}
