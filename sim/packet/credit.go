// This file implements the credit that receivers grant to senders in EQDS (Olteanu et al., NSDI 2022, section 3) and in
// the receiver-driven congestion control of the Ultra Ethernet Specification 1.0 (RCCC). A sender starts speculatively
// with a window. Each packet carries its target, the total credit that the sender requests. A pacer per receiving host
// grants credit at the rate of its link, flow by flow, as a running total. After the first answer of the receiver, new
// data needs credit.

package packet

import "math"

// creditManager is the credit state of all flows.
type creditManager struct {
	t             *uet
	quantum       int64         // in bytes; targets and totals count quanta modulo 1<<32
	quantaPerPull uint32        // quanta granted by a pull
	window        initialWindow // if automatic: creditSource.limit, without headers
	limitBDPs     float64       // above 0: creditSource.limit in bandwidth-delay products
	limitBytes    float64       // otherwise: creditSource.limit
	grantIdle     bool          // grant credit without demand; it delays that of flows whose demand arrives later
	bySize        bool          // pulls of flows with small packets only take the time of these
	perQuantum    bool          // pacer.period is that of a quantum
	grantExact    bool          // grant no more than the demand; the time between pulls is that of the grant
	shareDemand   bool          // flows at a NIC share the requested credit
	trimmedFirst  bool          // serve flows with trimmed packets first
	capCredit     bool          // limit the credit of a sender to limit

	quirks        eqdsQuirks // for EQDS; RCCC has none
	grantFinished bool       // see quirks

	sources []creditSource
	sinks   []creditSink
	pacers  []pacer

	rate *pullRateControl // nil: constant pull rate
}

// creditSource is the credit of a sender.
type creditSource struct {
	limit       int64 // largest credit or demand in bytes
	pulled      int64 // bytes granted by the receiver
	speculative int64 // speculative bytes; both may be negative by one packet
	speculating bool  // the receiver has not answered yet
	total       uint32
	target      uint32
}

// creditSink is the credit state of a receiver.
type creditSink struct {
	target        uint32 // highest target received
	total         uint32 // quanta granted
	trimmedQuanta uint32 // quanta owed for trimmed packets
	inActive      bool   // in the pacer's list of flows with demand
	inIdle        bool   // in the pacer's list of satisfied flows
	endless       bool   // the target has wrapped around
}

// pacer grants the credit of a host.
type pacer struct {
	trimmed, active, idle ring    // flows with trimmed packets, with demand, and without demand
	running               bool    // a timer is set
	period                float64 // picoseconds between pulls or, with perQuantum, per granted quantum
}

// targetWrapped is the flag of a data packet whose target has wrapped around.
const targetWrapped = carriesPull

// newCredits returns the credit state of a transport, with the quantum and the credit of a pull in bytes. A pull grants
// at least one quantum.
func newCredits(t *uet, quantum, bytes float64) *creditManager {
	c := &creditManager{
		t: t, quantum: int64(min(quantum, math.MaxUint16)), pacers: make([]pacer, t.n.hosts),
		grantIdle: true,
	}
	c.quantaPerPull = uint32(max(1, int64(min(bytes, math.MaxInt32))/c.quantum))
	t.credit = c
	return c
}

// clampLimit returns a limit of credit in bytes: at least a packet, and small enough to compare totals modulo 1<<32.
func (c *creditManager) clampLimit(bytes float64) int64 {
	return max(int64(min(bytes, math.MaxInt32/2)), int64(c.t.mss+c.t.header))
}

// setPeriods sets the time between pulls of each host, given a function of the rate of its NIC in bit/s.
func (c *creditManager) setPeriods(period func(rate float64) float64) {
	for host := range c.pacers {
		c.pacers[host].period = period(float64(c.t.n.hostRate(uint32(host))))
	}
}

func (c *creditManager) open(f uint32) {
	for int(f) >= len(c.sources) {
		c.sources = append(c.sources, creditSource{})
		c.sinks = append(c.sinks, creditSink{})
	}
	limit := c.limitBytes
	switch {
	case c.window.auto:
		limit = float64(c.window.of(c.t.n, f) / c.t.mss * (c.t.mss + c.t.header))
	case c.limitBDPs > 0:
		bdp, _ := c.t.bandwidthDelay(f)
		limit = c.limitBDPs * bdp
	}
	most := c.clampLimit(limit)
	c.sources[f] = creditSource{limit: most, speculative: most, speculating: true}
	c.sinks[f] = creditSink{}
}

// available returns the credit of a flow in bytes. While it is positive, a packet of any size may be sent.
func (c *creditManager) available(f uint32) int64 {
	return c.sources[f].pulled + c.sources[f].speculative
}

// spend consumes the credit of a packet. If it returns false, the packet must not be sent.
func (c *creditManager) spend(f uint32, size int64) bool {
	s := &c.sources[f]
	switch {
	case s.speculating && s.pulled <= 0:
		s.speculative -= size
	case !c.quirks.drainSpeculation || s.pulled > 0:
		s.pulled -= size
	default:
		s.speculative -= size
		return false
	}
	return true
}

// stopSpeculating ends the speculative phase of a flow.
func (c *creditManager) stopSpeculating(f uint32) {
	s := &c.sources[f]
	s.speculating = false
	if !c.quirks.drainSpeculation {
		s.speculative = min(s.speculative, 0)
	}
}

// stampDemand sets the target of a packet, given the number of flows that compete at the host's NIC. It returns flags
// for the packet.
func (c *creditManager) stampDemand(f uint32, about flags, competing int, pk *packet) flags {
	s, u := &c.sources[f], &c.t.sources[f]
	var marks flags
	if s.speculating {
		marks |= flagA
	}
	left := s.pulled + s.speculative
	if c.shareDemand && left <= 0 || !c.shareDemand && s.pulled < 0 {
		marks |= flagB
	}
	if c.quirks.repeatTarget && about&retransmit != 0 {
		pk.pull = s.target
		return marks
	}
	wants := u.unsent
	if !c.trimmedFirst {
		wants += u.lostBytes
	}
	wants = min(wants, s.limit) - left
	if full := int64(c.t.mss + c.t.header); !c.quirks.wrapTarget && s.speculating && u.unsent > 0 {
		// The speculative phase may end before all data is sent.
		wants = max(wants, full)
	}
	if c.shareDemand && competing > 1 {
		wants /= int64(competing)
	}
	quanta := (wants + c.quantum - 1) / c.quantum
	if c.quirks.wrapTarget && int64(s.total)+quanta < 0 {
		marks |= targetWrapped
	}
	s.target = s.total + uint32(int32(max(quanta, math.MinInt32)))
	pk.pull = s.target
	return marks
}

// addCredit adds the credit of a pull, given its running total.
func (c *creditManager) addCredit(f, total uint32) {
	s := &c.sources[f]
	c.stopSpeculating(f)
	if extra := int32(total - s.total); extra > 0 {
		s.pulled += int64(extra) * c.quantum
		if c.capCredit {
			s.pulled = min(s.pulled, s.limit)
		}
		s.total = total
	}
}

// updateDemand processes a target at the receiver.
func (c *creditManager) updateDemand(f, target uint32, endless bool) {
	k := &c.sinks[f]
	more := int32(target-k.target) > 0
	if more {
		k.target = target
	}
	if endless && !k.endless {
		k.endless, more = true, true
	}
	if more && k.trimmedQuanta == 0 {
		c.activate(f)
	}
}

// activate adds a flow to the list of flows with demand.
func (c *creditManager) activate(f uint32) {
	k := &c.sinks[f]
	if k.inActive {
		return
	}
	k.inActive = true
	c.t.n.retain(f)
	host := c.t.n.flows[f].dst
	c.pacers[host].active.push(f)
	c.startPacer(host)
}

// packetTrimmed records a trimmed packet of a flow, given its bytes.
func (c *creditManager) packetTrimmed(f uint32, bytes uint64) {
	if !c.trimmedFirst {
		c.activate(f)
		return
	}
	k := &c.sinks[f]
	first := k.trimmedQuanta == 0
	k.trimmedQuanta += uint32((int64(bytes) + c.quantum - 1) / c.quantum)
	if first {
		c.t.n.retain(f)
		host := c.t.n.flows[f].dst
		c.pacers[host].trimmed.push(f)
		c.startPacer(host)
	}
}

// restartPacers restarts stopped pacers that have endless flows.
func (c *creditManager) restartPacers() {
	if !c.quirks.wrapTarget {
		return
	}
	for host := range c.pacers {
		if c.pacers[host].active.count > 0 {
			c.startPacer(uint32(host))
		}
	}
}

// needsRequest reports whether the request of a flow for a retransmission adds to its credit: not while credit for
// trimmed packets is due, for which a sender asks again when its timer expires in a large incast.
func (c *creditManager) needsRequest(f uint32) bool {
	return c.t.n.quirks.fullPackets || c.sinks[f].trimmedQuanta == 0
}

// startPacer starts the pacer of a host.
func (c *creditManager) startPacer(host uint32) {
	if !c.pacers[host].running {
		c.pacers[host].running = true
		c.t.n.at(c.t.n.now, timerA, host)
	}
}

// hasDemand reports whether the flow requests more than it was granted.
func (k *creditSink) hasDemand() bool {
	return k.endless || int32(k.target-k.total) > 0
}

// sendGrant sends a pull to a flow with trimmed packets, otherwise to one with demand and, with grantIdle, otherwise to
// one without demand, which then needs no speculation for further data.
func (c *creditManager) sendGrant(host uint32) {
	w := &c.pacers[host]
	w.running = false
	switch {
	case c.anyWaiting(&w.trimmed):
		f := w.trimmed.pop()
		k := &c.sinks[f]
		quanta := c.quantaPerPull
		if c.grantExact {
			quanta = min(quanta, k.trimmedQuanta)
		}
		k.trimmedQuanta -= min(k.trimmedQuanta, c.quantaPerPull)
		c.sendPull(f, quanta)
		if k.trimmedQuanta > 0 {
			w.trimmed.push(f)
		} else {
			c.t.n.release(f)
		}
	case c.anyWaiting(&w.active):
		if c.sinks[w.active.items[w.active.head]].endless && c.t.live == 0 {
			return // until other flows share the network
		}
		f := w.active.pop()
		k := &c.sinks[f]
		quanta := c.quantaPerPull
		if c.grantExact {
			quanta = uint32(min(int32(quanta), max(0, int32(k.target-k.total))))
		}
		if quanta == 0 && !c.grantIdle {
			k.inActive = false
			c.t.n.release(f)
			c.sendGrant(host)
			return
		}
		c.sendPull(f, quanta)
		if k.hasDemand() {
			w.active.push(f)
			return
		}
		k.inActive = false
		if !c.grantIdle || k.inIdle && !c.grantFinished {
			c.t.n.release(f)
			return
		}
		k.inIdle = true
		w.idle.push(f)
	case c.anyWaiting(&w.idle):
		f := w.idle.pop()
		k := &c.sinks[f]
		c.sendPull(f, c.quantaPerPull)
		if !k.hasDemand() && int64(int32(k.total-k.target)) < c.sources[f].limit/c.quantum {
			w.idle.push(f)
			return
		}
		k.inIdle = false
		c.t.n.release(f)
	}
}

// anyWaiting drops delivered flows at the head of a list, and reports whether flows are left.
func (c *creditManager) anyWaiting(r *ring) bool {
	for r.count > 0 && !c.grantFinished && c.t.n.flows[r.items[r.head]].delivered {
		f := r.pop()
		c.t.n.release(f)
	}
	return r.count > 0
}

// sendPull grants quanta to a flow, and sets the pacer's timer.
func (c *creditManager) sendPull(f, quanta uint32) {
	n := c.t.n
	k := &c.sinks[f]
	k.total += quanta
	p := n.newPacket(f, pull, c.t.control)
	pk := &n.packets[p]
	pk.pull = k.total
	n.balance.label(n, pk)
	host := n.flows[f].dst
	wait := c.pacers[host].period
	if c.perQuantum {
		if quanta == 0 {
			quanta = uint32(max(1, 1024/c.quantum)) // a pull that grants nothing takes time too
		}
		wait *= float64(quanta)
	}
	if c.bySize {
		wait *= n.meanPacket(f, c.t.mss, uint32(c.t.header), c.t.padLast) / float64(c.t.mss+c.t.header)
	}
	if c.rate != nil {
		wait /= c.rate.rates[host].rate
	}
	c.pacers[host].running = true
	c.t.sendControl(host, p)
	n.at(n.now+max(1, uint64(wait)), timerA, host)
}

// countPacket reports a data packet to the pull rate control.
func (c *creditManager) countPacket(f uint32, pk *packet) {
	if c.rate != nil {
		c.rate.count(c.t.n, f, pk)
	}
}

// adaptRate updates the pull rate of a host.
func (c *creditManager) adaptRate(host uint32) {
	c.rate.adapt(c.t.n, host)
}
