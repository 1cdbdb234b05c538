// This file is the credit that receivers grant senders, in EQDS (Olteanu et al., NSDI 2022, section 3) and in the
// receiver-driven congestion control of the Ultra Ethernet Specification 1.0 (RCCC). A sender begins on speculation, with a
// window, and each of its packets says how much credit it wants in all, its target. The receiver's host has one pacer for
// all flows, which grants credit at the rate of its link, in turns, by the total so far. As soon as the sender hears of the
// receiver, what it has not sent on speculation has to wait for credit.

package packet

import "math"

// credits is the credit of all flows.
type creditManager struct {
	t             *uet
	quantum       int64   // bytes; targets and totals count in it, modulo 1<<32
	quantaPerPull uint32  // quanta that a pull grants
	limit         int64   // bytes that a sender has or asks for at most
	period        float64 // picoseconds between pulls, or where exactly is set, for each quantum that was granted
	grantExact    bool    // no more is granted than was asked for
	trimmedFirst  bool    // those whose packets were trimmed come first
	capCredit     bool    // a sender keeps no more credit than limit

	quirks        eqdsQuirks // of EQDS; those of RCCC are off
	grantFinished bool       // see quirks

	sources []creditSource
	sinks   []creditSink
	pacers  []pacer

	rate *pullRateControl // nil: the rate of the pulls does not change
}

// creditSource is what the sender of a flow has.
type creditSource struct {
	pulled      int64 // bytes of credit from the receiver
	speculative int64 // and of its own; both may be negative by a packet
	speculating bool  // nothing was heard of the receiver
	total       uint32
	target      uint32
}

// creditSink is what the receiver of a flow knows.
type creditSink struct {
	target        uint32 // the highest that came
	total         uint32 // quanta granted
	trimmedQuanta uint32 // quanta for packets that were trimmed
	inActive      bool   // in the pacer's list of those that want credit
	inIdle        bool   // in the list of those that have had all
	endless       bool   // the target has wrapped around
}

// pacer grants credit for a host.
type pacer struct {
	trimmed, active, idle ring // flows that have trimmed packets, that want credit, that have had it
	running               bool // there is a timer
}

// wrapped says of a data packet that its target has wrapped around.
const targetWrapped = carriesPull

// newCredits returns the credit of a transport, in quanta of so many bytes, of which a pull grants as many as there are in
// some bytes, at least one.
func newCredits(t *uet, quantum, bytes float64) *creditManager {
	c := &creditManager{t: t, quantum: int64(min(quantum, math.MaxUint16)), pacers: make([]pacer, t.n.hosts)}
	c.quantaPerPull = uint32(max(1, int64(min(bytes, math.MaxInt32))/c.quantum))
	t.credit = c
	return c
}

// setLimit sets the limit to some bytes, but to a packet at least and to what totals can be compared with at most.
func (c *creditManager) setLimit(bytes float64) {
	c.limit = max(int64(min(bytes, math.MaxInt32/2)), int64(c.t.mss+c.t.header))
}

func (c *creditManager) open(f uint32) {
	for int(f) >= len(c.sources) {
		c.sources = append(c.sources, creditSource{})
		c.sinks = append(c.sinks, creditSink{})
	}
	c.sources[f] = creditSource{speculative: c.limit, speculating: true}
	c.sinks[f] = creditSink{}
}

// left returns the bytes of credit that a flow has. While there is any, a packet may be sent, however long.
func (c *creditManager) available(f uint32) int64 {
	return c.sources[f].pulled + c.sources[f].speculative
}

// spend takes the credit for a packet. It returns false where it must not be sent.
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

// stopSpeculating ends what a flow sends before it has heard of the receiver.
func (c *creditManager) stopSpeculating(f uint32) {
	s := &c.sources[f]
	s.speculating = false
	if !c.quirks.drainSpeculation {
		s.speculative = min(s.speculative, 0)
	}
}

// ask puts the target into a packet that a flow sends, one of so many flows of its host that want to. It returns flags for
// the packet.
func (c *creditManager) stampDemand(f uint32, about flags, rivals int, pk *packet) flags {
	s, u := &c.sources[f], &c.t.sources[f]
	var marks flags
	if s.speculating {
		marks |= flagA
	}
	left := s.pulled + s.speculative
	if c.grantExact && left <= 0 || !c.grantExact && s.pulled < 0 {
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
	wants = min(wants, c.limit) - left
	if full := int64(c.t.mss + c.t.header); !c.quirks.wrapTarget && s.speculating && u.unsent > 0 {
		// However much there is to speculate with, it may have to stop before all is sent.
		wants = max(wants, full)
	}
	if c.grantExact && rivals > 1 {
		wants /= int64(rivals)
	}
	quanta := (wants + c.quantum - 1) / c.quantum
	if c.quirks.wrapTarget && int64(s.total)+quanta < 0 {
		marks |= targetWrapped
	}
	s.target = s.total + uint32(int32(max(quanta, math.MinInt32)))
	pk.pull = s.target
	return marks
}

// granted takes the total that the receiver has granted.
func (c *creditManager) addCredit(f, total uint32) {
	s := &c.sources[f]
	c.stopSpeculating(f)
	if extra := int32(total - s.total); extra > 0 {
		s.pulled += int64(extra) * c.quantum
		if c.capCredit {
			s.pulled = min(s.pulled, c.limit)
		}
		s.total = total
	}
}

// asked takes a target at the receiver.
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

// resume has the pacer grant credit to a flow.
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

// trimmed notes that a packet of a flow was trimmed.
func (c *creditManager) packetTrimmed(f uint32) {
	if !c.trimmedFirst {
		c.activate(f)
		return
	}
	k := &c.sinks[f]
	first := k.trimmedQuanta == 0
	k.trimmedQuanta += uint32((int64(c.t.mss+c.t.header) + c.quantum - 1) / c.quantum)
	if first {
		c.t.n.retain(f)
		host := c.t.n.flows[f].dst
		c.pacers[host].trimmed.push(f)
		c.startPacer(host)
	}
}

// goOn starts the pacers again that had stopped although flows are granted credit for ever.
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

// run starts the pacer of a host.
func (c *creditManager) startPacer(host uint32) {
	if !c.pacers[host].running {
		c.pacers[host].running = true
		c.t.n.at(c.t.n.now, timerA, host)
	}
}

// wants reports whether the flow wants more than it was granted.
func (k *creditSink) hasDemand() bool {
	return k.endless || int32(k.target-k.total) > 0
}

// grant has the pacer of a host send a pull: to one whose packets were trimmed, else to one that wants credit, else to one
// that has had all it wanted, so that it need not speculate if it has something to send after all.
func (c *creditManager) sendGrant(host uint32) {
	w := &c.pacers[host]
	w.running = false
	switch {
	case c.anyWaiting(&w.trimmed):
		f := w.trimmed.pop()
		k := &c.sinks[f]
		k.trimmedQuanta -= min(k.trimmedQuanta, c.quantaPerPull)
		c.sendPull(f, c.quantaPerPull)
		if k.trimmedQuanta > 0 {
			w.trimmed.push(f)
		} else {
			c.t.n.release(f)
		}
	case c.anyWaiting(&w.active):
		if c.sinks[w.active.items[w.active.head]].endless && c.t.live == 0 {
			return // until there are others to share with
		}
		f := w.active.pop()
		k := &c.sinks[f]
		quanta := c.quantaPerPull
		if c.grantExact {
			quanta = uint32(min(int32(quanta), max(0, int32(k.target-k.total))))
		}
		c.sendPull(f, quanta)
		if k.hasDemand() {
			w.active.push(f)
			return
		}
		k.inActive = false
		if k.inIdle && !c.grantFinished {
			c.t.n.release(f)
			return
		}
		k.inIdle = true
		w.idle.push(f)
	case c.anyWaiting(&w.idle):
		f := w.idle.pop()
		k := &c.sinks[f]
		c.sendPull(f, c.quantaPerPull)
		if !k.hasDemand() && int64(int32(k.total-k.target)) < c.limit/c.quantum {
			w.idle.push(f)
			return
		}
		k.inIdle = false
		c.t.n.release(f)
	}
}

// next drops the flows at the head of a list that are over, and reports whether there are others.
func (c *creditManager) anyWaiting(r *ring) bool {
	for r.count > 0 && !c.grantFinished && c.t.n.flows[r.items[r.head]].delivered {
		f := r.pop()
		c.t.n.release(f)
	}
	return r.count > 0
}

// pull sends a pull that grants so many quanta more, and has the pacer wait.
func (c *creditManager) sendPull(f, quanta uint32) {
	n := c.t.n
	k := &c.sinks[f]
	k.total += quanta
	p := n.newPacket(f, pull, c.t.control)
	pk := &n.packets[p]
	pk.pull = k.total
	n.balance.label(n, pk)
	host := n.flows[f].dst
	wait := c.period
	if c.grantExact {
		if quanta == 0 {
			quanta = uint32(max(1, 1024/c.quantum)) // a pull that grants nothing takes time, too
		}
		wait *= float64(quanta)
	}
	if c.rate != nil {
		wait /= c.rate.rates[host].rate
	}
	c.pacers[host].running = true
	c.t.sendControl(host, p)
	n.at(n.now+max(1, uint64(wait)), timerA, host)
}

// note has the rate of the pulls follow what a data packet says of congestion.
func (c *creditManager) countPacket(f uint32, pk *packet) {
	if c.rate != nil {
		c.rate.count(c.t.n, f, pk)
	}
}

// adapt sets the rate of the pulls of a host anew.
func (c *creditManager) adaptRate(host uint32) {
	c.rate.adapt(c.t.n, host)
}
