// This file computes the report of a run: flows, ports and tiers.

package packet

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// Report is the result of a run beyond [sim.Result]. Times are in picoseconds.
type Report struct {
	Flows []Flow // by start, then by number
	// Ideal is the delivery time of each flow in an idle network, a lower bound: the first packet over all links with
	// all latencies, and the other packets at the rate of the slowest link that all of them use. It is 0 without a
	// path.
	Ideal []dag.Time

	Incomplete int // number of incomplete flows
	Excluded   int // number of flows that start outside of Options.Window
	// FCTs to Bins and Jain are of the other flows.

	// of complete flows, from the start to the last ACK at the sender, ascending
	FCTs      []float64
	FCT       measure.Distribution[float64] // of FCTs
	Delivered measure.Distribution[float64] // of delivered flows, from the start to the last byte at the receiver
	Slowdown  measure.Distribution[float64] // Delivered divided by Ideal
	Sizes     []SizeClass                   // by flow size, ascending
	Bins      []FlowBin                     // of all flows, of each job and of each class, ascending
	Last      dag.Time                      // time of the last completion; 0: none
	Bytes     uint64                        // bytes of complete flows
	// Jain is the fairness index sum(x)^2 / (n sum(x^2)) of the throughput of complete flows.
	Jain float64

	// Deadlock lists the paused ports of a PFC deadlock at the end of the run, each of which waits for the next and the
	// last for the first; empty: none. DeadlockSince is the time at which the last of them was paused.
	Deadlock      []string
	DeadlockSince dag.Time

	Counters Counters
	Ports    []PortReport // ports with traffic, by descending bytes, then by number
	Tiers    []TierReport // from hosts up to cores, and down again
	Sampled  bool         // queues were sampled

	slowdowns []float64     // of Slowdown, ascending
	queues    *queueSection // nil without figures or samples
	figures   bool          // Options.figures
	window    measure.Window
	labels    *measure.Labels // nil: unknown
	program   *sim.Program
}

// SizeClass is the flows of one size or, with more than 32 sizes, the flows between two powers of two.
type SizeClass struct {
	Bytes    uint64 // largest size of the class
	FCT      measure.Distribution[float64]
	Slowdown measure.Distribution[float64]
}

// FlowBin is the complete flows of a bin of sizes.
type FlowBin struct {
	Job, Class string // of these flows; "": any
	measure.Bin
	FCT      measure.Distribution[dag.Time] // by measure.NearestRank, as Slowdown
	Slowdown measure.Distribution[float64]
}

// Counters are sums over the network. Queue counters include switches only.
type Counters struct {
	Events          int64  `json:"events"`                     // events of the network
	TrimsArriving   uint64 `json:"switch_trims_arriving"`      // trimmed arriving packets
	TrimsTail       uint64 `json:"switch_trims_tail"`          // queued packets trimmed for an arriving one
	Drops           uint64 `json:"switch_drops"`               // dropped data packets
	ControlOrPauses uint64 `json:"header_drops_or_pfc_pauses"` // sum of the next two; a network has only one of them
	ControlDrops    uint64 `json:"header_drops"`               // dropped control packets and headers of trimmed packets
	Pauses          uint64 `json:"pfc_pauses"`                 // pauses sent by switches
	Unroutable      uint64 `json:"no_way_drops"`               // packets dropped for lack of a path after failures
	Marks           uint64 `json:"ecn_marks"`                  // marked data packets
	HeaderMarks     uint64 `json:"ecn_header_marks"`           // marked headers of trimmed packets
	MaxDataQueue    uint64 `json:"max_data_queue_bytes"`
	MaxControlQueue uint64 `json:"max_control_queue_bytes"`
	Retransmitted   uint64 `json:"retransmitted_packets"`
	Nacks           uint64 `json:"nacks"`
}

// PortReport contains the statistics of a port.
type PortReport struct {
	Port         int    // index in topology.Network.Ports
	Name         string // for example tor0->host3; the second of several parallel links is agg1->core0#2
	Tier         string // as in TierReport
	Packets      uint64
	Bytes        uint64 // bytes sent, including headers
	Trims        uint64
	Drops        uint64
	ControlDrops uint64
	Marks        uint64   // marked data packets
	HeaderMarks  uint64   // marked headers of trimmed packets
	MaxQueue     uint64   // largest queue in bytes of data, including the packet in service
	Pauses       uint64   // received pauses
	Paused       dag.Time // total pause time
	Utilization  float64  // share of the time until Report.Last in which the port was sending, 0 to 1

	// Sampled queue lengths in bytes; see Options.Sample.
	MeanQueue float64
	P99Queue  float64
}

// TierReport contains the statistics of all ports of a tier: from hosts up, from ToRs up, ..., from ToRs down to hosts.
type TierReport struct {
	Name            string
	Ports           int // number of ports, including idle ones
	Packets         uint64
	Bytes           uint64
	Trims           uint64
	Drops           uint64
	Marks           uint64
	HeaderMarks     uint64
	MaxQueue        uint64
	MeanUtilization float64
	MaxUtilization  float64
	Imbalance       float64 // bytes of the busiest port divided by the mean; 0 without traffic

	// Sampled queue lengths of all ports of the tier in bytes.
	MeanQueue float64
	P99Queue  float64
}

// newReport returns the report of a completed run.
func newReport(p *sim.Program, n *network, o *Options) *Report {
	r := &Report{Flows: n.records, figures: o.figures, window: o.Window, labels: o.labels, program: p}
	slices.SortStableFunc(r.Flows, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	routes := n.routes
	if n.failures != nil {
		routes = intactRoutes(o.Network)
	}
	r.Ideal = idealTimes(r.Flows, routes, o)
	r.summarize(o)
	r.Counters.Events = n.events
	if n.failures != nil {
		r.Counters.Unroutable = n.failures.unroutable
	}
	if n.sampler != nil {
		r.Sampled = true
		r.Counters.Events -= n.sampler.count.Taken()
		n.sampler.finish(r.Last)
		if o.figures {
			r.queues = n.queues(o.Network)
		}
		if n.observed != nil {
			n.observed.idle()
		}
	}
	r.countPorts(n, o.Network)
	if cycle := n.findDeadlock(); cycle != nil {
		names := o.Network.PortNames()
		for _, i := range cycle {
			r.Deadlock = append(r.Deadlock, names[i])
			r.DeadlockSince = max(r.DeadlockSince, dag.Time(n.ports[i].pausedAt))
		}
	}
	return r
}

// intactRoutes returns the routes without failures.
func intactRoutes(t *topology.Network) *topology.Routes {
	routes, err := topology.NewRoutes(context.Background(), t, nil)
	if err != nil {
		panic(err) // the run was able to build them
	}
	return routes
}

// idealTimes returns the delivery time of each flow in an idle network.
func idealTimes(flows []Flow, routes *topology.Routes, o *Options) []dag.Time {
	ideal, time := make([]dag.Time, len(flows)), idealTime(routes, o)
	for i := range flows {
		ideal[i] = time(&flows[i])
	}
	return ideal
}

// idealTime returns a function that returns the delivery time of a flow in an idle network, or 0 without a path.
func idealTime(routes *topology.Routes, o *Options) func(f *Flow) dag.Time {
	if !quirksOf(o.Params.Compat).firstPathIdeal {
		return newIdealTimer(routes, o, uint64(o.Params.HeaderSize)).time
	}
	return func(f *Flow) dag.Time {
		first, rest := wireBytes(f.Bytes, uint64(o.Params.MSS), uint64(o.Params.HeaderSize), o.Params.PadLastPacket)
		time, slowest := unloadedPath(o.Network, routes, f.Source, f.Target, first)
		if slowest == 0 {
			return 0
		}
		return dag.Time(time + rest*slowest)
	}
}

// wireBytes returns the wire bytes of the first packet of a flow, and of all other packets.
func wireBytes(bytes, mss, header uint64, pad bool) (first, rest uint64) {
	packets := max(1, (bytes+mss-1)/mss)
	total := bytes + packets*header
	if pad {
		total = packets * (mss + header)
	}
	first = min(total, mss+header)
	return first, total - first
}

// unloadedPath returns the time of a packet from one host to another in an idle network, and the picoseconds per byte
// of the slowest link; 0 without a path.
func unloadedPath(t *topology.Network, routes *topology.Routes, from, to uint32, size uint64) (time, slowest uint64) {
	at := from
	for port := range t.FirstPath(routes, from, to) {
		link := &t.Links[port/2]
		perByte := picosecondsPerByte(link.Rate)
		slowest = max(slowest, perByte)
		time += size*perByte + uint64(link.Latency)
		if at = t.Head(port); at != to {
			time += uint64(t.SwitchLatency[at-uint32(t.Hosts)])
		}
	}
	if at != to {
		return 0, 0
	}
	return time, slowest
}

// summarize computes the statistics of flows.
func (r *Report) summarize(o *Options) {
	var fct, delivered, slowdown []float64
	var sum, squares float64
	classOf, classes := r.sizeClasses(o)
	var complete []int // measured ones
	r.Sizes = make([]SizeClass, len(classes))
	byClass := make([]struct{ fct, slowdown []float64 }, len(classes))
	for i := range r.Flows {
		f := &r.Flows[i]
		measured := o.Window.Holds(f.Start)
		r.Counters.Retransmitted += uint64(f.Retransmits)
		r.Counters.Nacks += uint64(f.Nacks)
		if !measured {
			r.Excluded++
		} else if f.Delivered > 0 {
			took := float64(f.Delivered - f.Start)
			delivered = append(delivered, took)
			if r.Ideal[i] > 0 {
				class := &byClass[classOf(f.Bytes)]
				slowdown = append(slowdown, took/float64(r.Ideal[i]))
				class.slowdown = append(class.slowdown, took/float64(r.Ideal[i]))
			}
		}
		if f.Acknowledged == 0 {
			r.Incomplete++
			continue
		}
		r.Last = max(r.Last, f.Acknowledged)
		r.Bytes += f.Bytes
		if !measured {
			continue
		}
		complete = append(complete, i)
		took := float64(f.Acknowledged - f.Start)
		fct = append(fct, took)
		class := &byClass[classOf(f.Bytes)]
		class.fct = append(class.fct, took)
		throughput := float64(f.Bytes) / took
		sum += throughput
		squares += throughput * throughput
	}
	if squares > 0 {
		r.Jain = sum * sum / (float64(len(fct)) * squares)
	}
	r.FCTs, r.slowdowns = fct, slowdown
	r.FCT, r.Delivered = measure.Interpolate(fct), measure.Interpolate(delivered)
	r.Slowdown = measure.Interpolate(slowdown)
	for i := range r.Sizes {
		c := &byClass[i]
		r.Sizes[i] = SizeClass{classes[i], measure.Interpolate(c.fct), measure.Interpolate(c.slowdown)}
	}
	r.divide(complete, o)
}

// divide divides complete flows into bins: all flows, those of each job in order, and those of each class by name.
func (r *Report) divide(flows []int, o *Options) {
	r.addBins("", "", flows, o)
	if r.labels == nil {
		return
	}
	jobs, classes := make(map[int32][]int), make(map[string][]int)
	for _, i := range flows {
		job, class, _ := r.labels.Of(r.program, r.Flows[i].message)
		if job >= 0 {
			jobs[job] = append(jobs[job], i)
		}
		if class != "" {
			classes[class] = append(classes[class], i)
		}
	}
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		r.addBins(r.labels.JobName(job), "", jobs[job], o)
	}
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		r.addBins("", class, classes[class], o)
	}
}

// addBins adds the bins of flows.
func (r *Report) addBins(job, class string, flows []int, o *Options) {
	sizes := make([]uint64, len(flows))
	for i, k := range flows {
		sizes[i] = r.Flows[k].Bytes
	}
	for _, bin := range o.Bins.Divide(sizes) {
		fcts := make([]dag.Time, len(bin.Members))
		slowdowns := make([]float64, 0, len(bin.Members))
		for i, k := range bin.Members {
			f := &r.Flows[flows[k]]
			fcts[i] = f.Acknowledged - f.Start
			if ideal := r.Ideal[flows[k]]; ideal > 0 {
				slowdowns = append(slowdowns, float64(f.Delivered-f.Start)/float64(ideal))
			}
		}
		bin.Members = nil
		r.Bins = append(r.Bins, FlowBin{job, class, bin, measure.NearestRank(fcts), measure.NearestRank(slowdowns)})
	}
}

// maxSizeClasses is the largest number of flow sizes with a class per size.
const maxSizeClasses = 32

// sizeClasses returns the largest size of each class of measured flows in ascending order, and a function from a size
// to its class.
func (r *Report) sizeClasses(o *Options) (classOf func(uint64) int, classes []uint64) {
	flows := r.Flows
	seen := make(map[uint64]bool)
	for i := range flows {
		if !o.Window.Holds(flows[i].Start) {
			continue
		}
		if seen[flows[i].Bytes] = true; len(seen) > maxSizeClasses {
			break
		}
	}
	if many := len(seen) > maxSizeClasses; many {
		clear(seen)
		for i := range flows {
			if o.Window.Holds(flows[i].Start) {
				seen[nextPowerOfTwo(flows[i].Bytes)] = true
			}
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

// nextPowerOfTwo returns the smallest power of two that is at least n.
func nextPowerOfTwo(n uint64) uint64 {
	p := uint64(1)
	for p < n && p < 1<<63 {
		p <<= 1
	}
	return p
}

// countPorts adds the statistics of ports and tiers.
func (r *Report) countPorts(n *network, t *topology.Network) {
	ports, names := t.Ports(), t.PortNames()
	sums := make([]TierReport, len(topology.Tiers))
	samples := make([]histogram, len(topology.Tiers))
	rows := make([]PortReport, 0, len(n.ports))
	for i := range n.ports {
		if !n.exists(i) {
			continue
		}
		pt := &n.ports[i]
		tier := slices.Index(topology.Tiers, t.TierOf(ports[i]))
		row := PortReport{
			Port: i, Name: names[i], Tier: topology.Tiers[tier], Packets: pt.packets, Bytes: pt.sent,
			Trims: pt.trims + pt.trimsTail,
			Drops: pt.drops, ControlDrops: pt.controlDrops,
			Marks: n.marksOf(pt), HeaderMarks: pt.headerMarks, MaxQueue: pt.peak[dataQueue],
			Pauses: uint64(pt.pausesReceived), Paused: dag.Time(pt.pausedFor(n.now)),
		}
		if r.Last > 0 {
			row.Utilization = min(1, float64(pt.sent)*pt.byteTime().float()/float64(r.Last))
		}
		if n.sampler != nil {
			h := &n.sampler.queues[i]
			row.MeanQueue, row.P99Queue = h.mean(n.sampler.samples), h.quantile(n.sampler.samples, 0.99)
			samples[tier].add(h)
		}
		sums[tier].count(&row)
		if pt.host == none {
			r.Counters.count(pt, n.marksOf(pt))
		}
		if row.Packets > 0 || row.Trims+row.Drops+row.ControlDrops > 0 {
			rows = append(rows, row)
		}
	}
	r.Ports = busiestFirst(rows)
	for i := range sums {
		s := &sums[i]
		if s.Ports == 0 {
			continue
		}
		s.Name = topology.Tiers[i]
		s.MeanUtilization /= float64(s.Ports)
		if s.Bytes > 0 {
			s.Imbalance *= float64(s.Ports) / float64(s.Bytes)
		}
		if n.sampler != nil {
			all := n.sampler.samples * uint64(s.Ports)
			s.MeanQueue, s.P99Queue = samples[i].mean(all), samples[i].quantile(all, 0.99)
		}
		r.Tiers = append(r.Tiers, *s)
	}
}

// busiestFirst returns ports in descending order of bytes, and ports with equal bytes in their order. It sorts short
// keys: moving the reports of a large network takes longer than simulating short messages.
func busiestFirst(ports []PortReport) (sorted []PortReport) {
	type key struct {
		bytes uint64
		at    int
	}
	keys := make([]key, len(ports))
	for i := range ports {
		keys[i] = key{ports[i].Bytes, i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.at, b.at))
	})
	sorted = slices.Grow(sorted, len(keys))
	for _, k := range keys {
		sorted = append(sorted, ports[k.at])
	}
	return sorted
}

// traffic returns the traffic of each port.
func (r *Report) traffic(t *topology.Network) []topology.Traffic {
	all := make([]topology.Traffic, 2*len(t.Links))
	for i := range r.Ports {
		all[r.Ports[i].Port] = topology.Traffic{Bytes: r.Ports[i].Bytes, Use: r.Ports[i].Utilization}
	}
	return all
}

// count adds a port. Until all ports are added, MeanUtilization is the sum and Imbalance the maximum.
func (s *TierReport) count(p *PortReport) {
	s.Ports++
	s.Packets += p.Packets
	s.Bytes += p.Bytes
	s.Trims += p.Trims
	s.Drops += p.Drops
	s.Marks += p.Marks
	s.HeaderMarks += p.HeaderMarks
	s.MaxQueue = max(s.MaxQueue, p.MaxQueue)
	s.MeanUtilization += p.Utilization
	s.MaxUtilization = max(s.MaxUtilization, p.Utilization)
	s.Imbalance = max(s.Imbalance, float64(p.Bytes))
}

// marksOf returns the marked data packets of a port; with the quirk countHeaderMarks, marked headers too.
func (n *network) marksOf(pt *port) uint64 {
	if n.quirks.countHeaderMarks {
		return pt.marks
	}
	return pt.marks - pt.headerMarks
}

// count adds a port with the given marks.
func (c *Counters) count(pt *port, marks uint64) {
	c.TrimsArriving += pt.trims
	c.TrimsTail += pt.trimsTail
	c.Drops += pt.drops
	c.ControlDrops += pt.controlDrops
	c.Marks += marks
	c.HeaderMarks += pt.headerMarks
	c.Pauses += uint64(pt.pausesSent)
	c.ControlOrPauses = c.ControlDrops + c.Pauses
	c.MaxDataQueue = max(c.MaxDataQueue, pt.peak[dataQueue])
	c.MaxControlQueue = max(c.MaxControlQueue, pt.peak[controlQueue])
}
