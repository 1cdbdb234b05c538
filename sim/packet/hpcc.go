// This file implements HPCC (Li et al., HPCC: High precision congestion control, SIGCOMM 2019). Data packets collect
// telemetry of the ports on their path (INT), and ACKs return it. From the telemetry the sender computes the load of
// each link and its own window.

package packet

import "slices"

// telemetry is the telemetry collected by data packets, indexed by packet.
type telemetry struct {
	stride  uint32 // capacity in records per packet
	counts  []uint32
	records []telemetryRecord
}

// telemetryRecord is the record of a switch port.
type telemetryRecord struct {
	time   uint64
	sent   uint64 // bytes sent before the packet
	queued uint64 // queued bytes
	port   uint32
}

// minStride suffices for most paths.
const minStride = 8

// clear removes the records of a packet.
func (c *telemetry) clear(p uint32) {
	for int(p) >= len(c.counts) {
		c.counts = append(c.counts, 0)
		c.records = slices.Grow(c.records, int(c.stride))[:len(c.records)+int(c.stride)]
	}
	c.counts[p] = 0
}

// path returns the records of a packet.
func (c *telemetry) path(p uint32) []telemetryRecord {
	at := p * c.stride
	return c.records[at : at+c.counts[p]]
}

// copy copies the records of one packet to another.
func (c *telemetry) copy(to, from uint32) {
	c.clear(to)
	c.counts[to] = c.counts[from]
	copy(c.path(to), c.path(from))
}

// record adds the record of a port to a data packet.
func (c *telemetry) record(n *network, i, p uint32, queued uint64) {
	pt := &n.ports[i]
	if pt.host != none || n.packets[p].kind != data {
		return
	}
	if c.counts[p] == c.stride {
		c.widen()
	}
	sent := pt.sent
	if n.quirks.telemetryAtServiceEnd { // includes the packet
		sent -= uint64(pt.servingSize)
	}
	c.records[p*c.stride+c.counts[p]] = telemetryRecord{n.now, sent, queued, i}
	c.counts[p]++
}

// widen doubles the capacity for records.
func (c *telemetry) widen() {
	wide := make([]telemetryRecord, 2*len(c.records))
	for p := range c.counts {
		copy(wide[2*p*int(c.stride):], c.path(uint32(p)))
	}
	c.stride, c.records = 2*c.stride, wide
}

// hpcc is the window and rate control of all flows.
type hpcc struct {
	mss      uint64
	rtt      uint64  // T: unloaded round trip of the reference path in picoseconds
	fixedRTT bool    // rtt was specified
	eta      float64 // target utilization of links
	minRate  float64 // lowest rate as a share of the NIC's rate
	maxStage uint32  // additive increases before a multiplicative change
	wAI      uint64  // W_AI: bytes of an additive increase; 0: by flow
	flows    float64 // expected number of flows
	quirks   *quirks

	sources []hpccSource
}

// hpccSource is the sender of a flow. Letters are from algorithm 1.
type hpccSource struct {
	rtt           uint64 // T: unloaded round trip in picoseconds
	wAI           uint64 // W_AI: bytes of an additive increase
	maxWindow     uint64 // bytes
	window        uint64 // W
	reference     uint64 // W^c, updated once per round trip
	lastUpdateSeq uint64 // first packet of the next round
	stage         uint32
	utilization   float64           // U
	path          []telemetryRecord // L
}

func newHPCC(n *network, s *transportConfig) transport {
	t := makeRoCE(n, s)
	n.telemetry = &telemetry{stride: minStride}
	h := &hpcc{
		mss: s.mss, eta: s.number("eta"), maxStage: uint32(s.number("max-stage")),
		minRate: min(s.number("rate-min"), 1), quirks: &t.quirks,
	}
	if rtt := s.number("rtt"); rtt > 0 {
		h.rtt, h.fixedRTT = uint64(rtt), true
	} else {
		h.rtt = n.reference.roundTrip
	}
	switch add := s.number("w-ai"); {
	case add >= 0:
		h.wAI = max(uint64(add), 1)
	case h.quirks.increaseByMSS:
		h.wAI = s.mss
	default: // section 3.3
		h.flows = s.number("flows")
	}
	t.hpcc = h
	return t
}

// open initializes a flow with the rate of its NIC in bit/s.
func (h *hpcc) open(n *network, f uint32, line float64) {
	for int(f) >= len(h.sources) {
		h.sources = append(h.sources, hpccSource{})
	}
	rtt := h.rtt
	if !h.fixedRTT && !n.quirks.firstHostRate {
		path := n.path(n.flows[f].src, n.flows[f].dst)
		rtt = max(rtt, path.roundTrip)
	}
	bdp := float64(rtt) * line / 8e12
	window := max(h.mss, uint64(bdp))
	r := &h.sources[f]
	*r = hpccSource{rtt: rtt, wAI: h.wAI, maxWindow: window, window: window, reference: window, utilization: 1,
		path: r.path[:0]}
	if h.wAI == 0 {
		r.wAI = max(1, uint64(bdp*(1-h.eta)/h.flows))
	}
	if h.quirks.startAtTarget {
		r.utilization = h.eta
	}
}

// windowOpen reports whether a flow with the given bytes in flight may send. The window may be smaller than a packet.
func (h *hpcc) windowOpen(f uint32, flying uint64) bool {
	if h.quirks.wholePacketWindow {
		return flying+h.mss <= h.sources[f].window
	}
	return flying < h.sources[f].window
}

// rate returns the pacing rate of the window in bit/s.
func (h *hpcc) rate(r *hpccSource) float64 {
	return float64(r.window) * 8e12 / float64(r.rtt)
}

// onNACK sets the window to one packet, and returns the rate.
func (h *hpcc) onNACK(f uint32) float64 {
	r := &h.sources[f]
	r.window = h.mss
	return h.rate(r)
}

// acknowledged handles an ACK, and returns the rate (NewAck of algorithm 1).
func (h *hpcc) acknowledged(n *network, f, p uint32, s *roceSource, acked uint64) float64 {
	r := &h.sources[f]
	if h.quirks.singleWindow {
		h.singleWindowACK(n, r, n.telemetry.path(p), s, acked)
		return h.rate(r)
	}
	update := acked > r.lastUpdateSeq
	if update {
		r.lastUpdateSeq = s.next
	}
	if h.measureInflight(n, r, n.telemetry.path(p)) {
		h.computeWindow(r, update)
	}
	return h.rate(r)
}

// measureInflight estimates the utilization of the most loaded link of the path (MeasureInflight of algorithm 1). It
// compares the path with that of the previous ACK, and returns false if they differ.
func (h *hpcc) measureInflight(n *network, r *hpccSource, path []telemetryRecord) bool {
	if !samePath(r.path, path) {
		r.path = append(r.path[:0], path...)
		return false
	}
	most, span := 0.0, uint64(0)
	for i := range path {
		now, before := &path[i], &r.path[i]
		if now.time <= before.time {
			continue
		}
		if u := n.linkUtilization(now, before, r.rtt); u > most {
			most, span = u, now.time-before.time
		}
	}
	copy(r.path, path)
	share := float64(min(span, r.rtt)) / float64(r.rtt)
	r.utilization = (1-share)*r.utilization + share*most
	return true
}

// linkUtilization returns the queue of a link relative to a round trip of data, plus the utilization of the link.
func (n *network) linkUtilization(now, before *telemetryRecord, rtt uint64) float64 {
	perByte := n.ports[now.port].byteTime().float()
	return float64(min(now.queued, before.queued))*perByte/float64(rtt) +
		float64(now.sent-before.sent)*perByte/float64(now.time-before.time)
}

func samePath(a, b []telemetryRecord) bool {
	return slices.EqualFunc(a, b, func(a, b telemetryRecord) bool { return a.port == b.port })
}

// computeWindow sets the window (ComputeWind of algorithm 1), limited to a round trip of data at the lowest rate and at
// line rate.
func (h *hpcc) computeWindow(r *hpccSource, update bool) {
	w := r.reference + r.wAI
	stage := r.stage + 1
	if r.utilization >= h.eta || r.stage >= h.maxStage {
		w = uint64(min(maxBytes, float64(r.reference)/(r.utilization/h.eta))) + r.wAI
		stage = 0
	}
	r.window = min(max(w, uint64(h.minRate*float64(r.maxWindow))), r.maxWindow)
	if update {
		r.reference, r.stage = r.window, stage
	}
}

// singleWindowACK is acknowledged with the quirk singleWindow: the window is its own reference, load is measured since
// the first ACK, and it counts in full after the first round trip.
func (h *hpcc) singleWindowACK(n *network, r *hpccSource, path []telemetryRecord, s *roceSource, acked uint64) {
	if len(path) != len(r.path) {
		r.path = append(r.path[:0], path...)
	} else {
		most, span := 0.0, r.rtt
		for i := range path {
			if u := n.linkUtilization(&path[i], &r.path[i], r.rtt); u > most {
				most, span = u, path[i].time-r.path[i].time
			}
		}
		if span >= r.rtt {
			r.utilization = most
		}
	}
	update := acked > r.lastUpdateSeq
	if update {
		r.lastUpdateSeq = s.next
	}
	w := r.window + r.wAI
	stage := r.stage + 1
	if r.utilization >= h.eta || r.stage >= h.maxStage {
		w = uint64(min(maxBytes, float64(r.window)/(r.utilization/h.eta))) + r.wAI
		stage = 0
	}
	r.window = w
	if update {
		r.stage = stage
	}
}

var hpccTransport = Transport{
	Name: "hpcc", Title: "HPCC on RoCE v2: senders adapt windows to in-band telemetry of switches",
	ignoresMarks: true, goBackN: true,
	discipline: lossless, nic: scheduled, header: 64, control: 64, balance: ByFlow, queueBDPs: 1, build: newHPCC,
	Parameters: append([]Parameter{
		{Name: "rtt", Unit: Time, Value: -1, Compat: number(12e6), Min: -1,
			Doc: "unloaded round trip; auto: that of the path with the largest " +
				"bandwidth-delay product; flows with longer paths use their own"},
		{Name: "eta", Value: 0.95, Min: 1e-3, Doc: "target utilization of links, 0 to 1"},
		{Name: "max-stage", Value: 5, Doc: "additive increases before a multiplicative change"},
		{Name: "w-ai", Unit: Bytes, Value: -1, Min: -1,
			Doc: "additive increase; -1: by the parameter flows or, with --compat htsim, the payload of a packet"},
		{Name: "flows", Value: 100, Min: 1, Doc: "expected number of concurrent flows on a link"},
		{Name: "rate-min", Value: 0.01, Compat: number(0),
			Doc: "lowest rate of a flow as a share of its NIC's rate, at most 1: 1 Gb/s at 100 Gb/s"},
	}, roceParameters...),
}
