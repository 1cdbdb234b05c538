// This file is the credit that receivers grant senders, in EQDS (Olteanu et al., NSDI 2022, section 3) and in the
// receiver-driven congestion control of the Ultra Ethernet Specification 1.0 (RCCC). A sender begins on speculation, with a
// window, and each of its packets says how much credit it wants in all, its target. The receiver's host has one pacer for
// all flows, which grants credit at the rate of its link, in turns, by the total so far. As soon as the sender hears of the
// receiver, what it has not sent on speculation has to wait for credit.

package packet

import "math"

// credits is the credit of all flows.
type credits struct {
	t       *uet
	quantum int64   // bytes; targets and totals count in it, modulo 1<<32
	grants  uint32  // quanta that a pull grants
	limit   int64   // bytes that a sender has or asks for at most
	period  float64 // picoseconds between pulls, or where exactly is set, for each quantum that was granted
	exactly bool    // no more is granted than was asked for
	again   bool    // those whose packets were trimmed come first
	capped  bool    // a sender keeps no more credit than limit

	quirks        eqdsQuirks // of EQDS; those of RCCC are off
	grantFinished bool       // see quirks

	sources []creditSource
	sinks   []creditSink
	pacers  []pacer

	cut *rateCut // nil: the rate of the pulls does not change
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
	target  uint32 // the highest that came
	total   uint32 // quanta granted
	lost    uint32 // quanta for packets that were trimmed
	active  bool   // in the pacer's list of those that want credit
	idle    bool   // in the list of those that have had all
	endless bool   // the target has wrapped around
}

// pacer grants credit for a host.
type pacer struct {
	lost, active, idle ring // flows that have trimmed packets, that want credit, that have had it
	running            bool // there is a timer
}

// wrapped says of a data packet that its target has wrapped around.
const wrapped = pulls

// newCredits returns the credit of a transport, in quanta of so many bytes, of which a pull grants as many as there are in
// some bytes, at least one.
func newCredits(t *uet, quantum, bytes float64) *credits {
	c := &credits{t: t, quantum: int64(min(quantum, math.MaxUint16)), pacers: make([]pacer, t.n.hosts)}
	c.grants = uint32(max(1, int64(min(bytes, math.MaxInt32))/c.quantum))
	t.credit = c
	return c
}

// setLimit sets the limit to some bytes, but to a packet at least and to what totals can be compared with at most.
func (c *credits) setLimit(bytes float64) {
	c.limit = max(int64(min(bytes, math.MaxInt32/2)), int64(c.t.mss+c.t.header))
}

func (c *credits) open(f uint32) {
	for int(f) >= len(c.sources) {
		c.sources = append(c.sources, creditSource{})
		c.sinks = append(c.sinks, creditSink{})
	}
	c.sources[f] = creditSource{speculative: c.limit, speculating: true}
	c.sinks[f] = creditSink{}
}

// left returns the bytes of credit that a flow has. While there is any, a packet may be sent, however long.
func (c *credits) left(f uint32) int64 {
	return c.sources[f].pulled + c.sources[f].speculative
}

// spend takes the credit for a packet. It returns false where it must not be sent.
func (c *credits) spend(f uint32, size int64) bool {
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
func (c *credits) stopSpeculating(f uint32) {
	s := &c.sources[f]
	s.speculating = false
	if !c.quirks.drainSpeculation {
		s.speculative = min(s.speculative, 0)
	}
}

// ask puts the target into a packet that a flow sends, one of so many flows of its host that want to. It returns flags for
// the packet.
func (c *credits) ask(f uint32, about flags, rivals int, pk *packet) flags {
	s, u := &c.sources[f], &c.t.sources[f]
	var marks flags
	if s.speculating {
		marks |= flagA
	}
	left := s.pulled + s.speculative
	if c.exactly && left <= 0 || !c.exactly && s.pulled < 0 {
		marks |= flagB
	}
	if c.quirks.repeatTarget && about&retransmit != 0 {
		pk.pull = s.target
		return marks
	}
	wants := u.unsent
	if !c.again {
		wants += u.lostBytes
	}
	wants = min(wants, c.limit) - left
	if full := int64(c.t.mss + c.t.header); !c.quirks.wrapTarget && s.speculating && u.unsent > 0 {
		// However much there is to speculate with, it may have to stop before all is sent.
		wants = max(wants, full)
	}
	if c.exactly && rivals > 1 {
		wants /= int64(rivals)
	}
	quanta := (wants + c.quantum - 1) / c.quantum
	if c.quirks.wrapTarget && int64(s.total)+quanta < 0 {
		marks |= wrapped
	}
	s.target = s.total + uint32(int32(max(quanta, math.MinInt32)))
	pk.pull = s.target
	return marks
}

// granted takes the total that the receiver has granted.
func (c *credits) granted(f, total uint32) {
	s := &c.sources[f]
	c.stopSpeculating(f)
	if extra := int32(total - s.total); extra > 0 {
		s.pulled += int64(extra) * c.quantum
		if c.capped {
			s.pulled = min(s.pulled, c.limit)
		}
		s.total = total
	}
}

// asked takes a target at the receiver.
func (c *credits) asked(f, target uint32, endless bool) {
	k := &c.sinks[f]
	more := int32(target-k.target) > 0
	if more {
		k.target = target
	}
	if endless && !k.endless {
		k.endless, more = true, true
	}
	if more && k.lost == 0 {
		c.resume(f)
	}
}

// resume has the pacer grant credit to a flow.
func (c *credits) resume(f uint32) {
	k := &c.sinks[f]
	if k.active {
		return
	}
	k.active = true
	c.t.n.hold(f)
	host := c.t.n.flows[f].dst
	c.pacers[host].active.put(f)
	c.run(host)
}

// trimmed notes that a packet of a flow was trimmed.
func (c *credits) trimmed(f uint32) {
	if !c.again {
		c.resume(f)
		return
	}
	k := &c.sinks[f]
	first := k.lost == 0
	k.lost += uint32((int64(c.t.mss+c.t.header) + c.quantum - 1) / c.quantum)
	if first {
		c.t.n.hold(f)
		host := c.t.n.flows[f].dst
		c.pacers[host].lost.put(f)
		c.run(host)
	}
}

// goOn starts the pacers again that had stopped although flows are granted credit for ever.
func (c *credits) goOn() {
	if !c.quirks.wrapTarget {
		return
	}
	for host := range c.pacers {
		if c.pacers[host].active.count > 0 {
			c.run(uint32(host))
		}
	}
}

// run starts the pacer of a host.
func (c *credits) run(host uint32) {
	if !c.pacers[host].running {
		c.pacers[host].running = true
		c.t.n.at(c.t.n.now, timerA, host)
	}
}

// wants reports whether the flow wants more than it was granted.
func (k *creditSink) wants() bool {
	return k.endless || int32(k.target-k.total) > 0
}

// grant has the pacer of a host send a pull: to one whose packets were trimmed, else to one that wants credit, else to one
// that has had all it wanted, so that it need not speculate if it has something to send after all.
func (c *credits) grant(host uint32) {
	w := &c.pacers[host]
	w.running = false
	switch {
	case c.next(&w.lost):
		f := w.lost.take()
		k := &c.sinks[f]
		k.lost -= min(k.lost, c.grants)
		c.pull(f, c.grants)
		if k.lost > 0 {
			w.lost.put(f)
		} else {
			c.t.n.letGo(f)
		}
	case c.next(&w.active):
		if c.sinks[w.active.items[w.active.head]].endless && c.t.live == 0 {
			return // until there are others to share with
		}
		f := w.active.take()
		k := &c.sinks[f]
		quanta := c.grants
		if c.exactly {
			quanta = uint32(min(int32(quanta), max(0, int32(k.target-k.total))))
		}
		c.pull(f, quanta)
		if k.wants() {
			w.active.put(f)
			return
		}
		k.active = false
		if k.idle && !c.grantFinished {
			c.t.n.letGo(f)
			return
		}
		k.idle = true
		w.idle.put(f)
	case c.next(&w.idle):
		f := w.idle.take()
		k := &c.sinks[f]
		c.pull(f, c.grants)
		if !k.wants() && int64(int32(k.total-k.target)) < c.limit/c.quantum {
			w.idle.put(f)
			return
		}
		k.idle = false
		c.t.n.letGo(f)
	}
}

// next drops the flows at the head of a list that are over, and reports whether there are others.
func (c *credits) next(r *ring) bool {
	for r.count > 0 && !c.grantFinished && c.t.n.flows[r.items[r.head]].received {
		f := r.take()
		c.t.n.letGo(f)
	}
	return r.count > 0
}

// pull sends a pull that grants so many quanta more, and has the pacer wait.
func (c *credits) pull(f, quanta uint32) {
	n := c.t.n
	k := &c.sinks[f]
	k.total += quanta
	p := n.newPacket(f, pull, c.t.control)
	pk := &n.packets[p]
	pk.pull = k.total
	n.balance.label(n, pk)
	host := n.flows[f].dst
	wait := c.period
	if c.exactly {
		if quanta == 0 {
			quanta = uint32(max(1, 1024/c.quantum)) // a pull that grants nothing takes time, too
		}
		wait *= float64(quanta)
	}
	if c.cut != nil {
		wait /= c.cut.rates[host].rate
	}
	c.pacers[host].running = true
	c.t.answer(host, p)
	n.at(n.now+max(1, uint64(wait)), timerA, host)
}

// note has the rate of the pulls follow what a data packet says of congestion.
func (c *credits) note(f uint32, pk *packet) {
	if c.cut != nil {
		c.cut.note(c.t.n, f, pk)
	}
}

// adapt sets the rate of the pulls of a host anew.
func (c *credits) adapt(host uint32) {
	c.cut.adapt(c.t.n, host)
}
