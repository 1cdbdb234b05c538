// This file implements NDP (Handley et al., Re-architecting datacenter networks and stacks for low latency and high
// performance, SIGCOMM 2017). The sender sends a window without waiting. After that, the receiver's host pulls packets
// at the rate of its link, flow by flow. Switches trim packets that do not fit, so that the receiver immediately knows
// the missing ones.

package packet

import simevent "github.com/tracedag/tracedag/sim/event"

// ndp is the transport.
type ndp struct {
	pushTransport
	n       *network
	mss     uint64 // payload of a full packet in bytes
	control uint32 // size of an ACK, NACK or pull in bytes
	header  uint32
	padLast bool // pad the last packet of a flow to full size
	window  initialWindow
	rto     uint64 // silence of the receiver after which missing packets are retransmitted; 0: never

	sources []ndpSource
	sinks   []ndpSink
	pacers  []ndpPacer
}

type ndpSource struct {
	sent        uint64           // number of new packets sent
	total       uint64           // number of packets of the flow
	rto         uint64           // as the transport's, but longer than the round trip; 0: never
	pulled      uint32           // last pull used
	granted     uint32           // highest pull received
	retransmits simevent.MinHeap // packets to retransmit
	acked       reassembly
	watchdog    watchdog
}

type ndpSink struct {
	got      reassembly
	lastPull uint32 // number of the last pull
}

// ndpPacer is the queue of pulls of a host.
type ndpPacer struct {
	perByte float64 // picoseconds between pulls per byte of the packet that the earlier one requests
	next    uint64  // earliest time of the next pull
	waiting int
	queue   fairQueue
}

// ndpPackets is the smallest automatic initial window, in packets.
const ndpPackets = 50

func newNDP(n *network, s *transportConfig) transport {
	t := &ndp{
		n: n, mss: s.mss, control: s.control, header: s.header, padLast: s.padLast,
		window: s.windowPackets("window", ndpPackets),
		rto:    s.time("rto"), pacers: make([]ndpPacer, n.hosts),
	}
	for i := range t.pacers {
		// Pulls have 99 % of the rate of packets by default.
		t.pacers[i].perByte = 8e12 / float64(n.hostRate(uint32(i))) / s.number("pull-rate")
		t.pacers[i].queue.keepIdle = true
	}
	return t
}

func (t *ndp) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, ndpSource{})
		t.sinks = append(t.sinks, ndpSink{})
	}
	s, k := &t.sources[f], &t.sinks[f]
	acked, again, got := s.acked, s.retransmits[:0], k.got
	acked.reset()
	got.reset()
	*s = ndpSource{
		total: packetCount(t.n.flows[f].bytes, t.mss), retransmits: again, acked: acked, rto: t.n.silence(f, t.rto),
		watchdog: watchdog{armed: s.watchdog.armed},
	}
	*k = ndpSink{got: got}
}

func (t *ndp) start(f uint32) {
	s := &t.sources[f]
	s.watchdog.recordHeard(t.n)
	window := t.window.of(t.n, f)
	for s.sent < s.total && s.sent*t.mss < window {
		t.transmit(f, s)
	}
	s.watchdog.arm(t.n, f, s.rto, timerB)
}

// transmit sends the lowest packet to retransmit, or otherwise the next new one. It returns false if there is none.
func (t *ndp) transmit(f uint32, s *ndpSource) bool {
	var seq uint64
	var marks flags
	switch {
	case len(s.retransmits) > 0:
		seq, marks = uint64(s.retransmits.Pop()), retransmit
	case s.sent < s.total:
		seq = s.sent
		s.sent++
		if s.sent == s.total {
			marks = lastPacket
		}
	default:
		return false
	}
	t.n.sendData(f, seq, uint32(t.n.payload(f, seq, t.mss, t.padLast))+t.header, marks)
	return true
}

func (t *ndp) receive(p uint32) {
	pk := t.n.packets[p]
	switch pk.kind {
	case data:
		t.arrived(p, &pk)
		return
	case ack:
		t.acknowledged(&pk)
	case nack:
		s := &t.sources[pk.flow]
		s.watchdog.recordHeard(t.n)
		t.n.record(pk.flow).Nacks++
		if !t.n.flows[pk.flow].complete && !s.acked.has(pk.seq) {
			s.retransmits.Push(uint32(pk.seq))
		}
		if pk.flags&carriesPull != 0 || s.pulled < s.granted {
			t.pull(pk.flow, pk.pull)
		}
	case pull:
		t.pull(pk.flow, pk.pull)
	}
	t.n.free(p)
}

func (t *ndp) prefetch(pk *packet) { prefetchEnd(t.sources, t.sinks, pk) }

func (t *ndp) acknowledged(pk *packet) {
	s := &t.sources[pk.flow]
	s.watchdog.recordHeard(t.n)
	s.acked.add(pk.seq)
	if pk.ack >= s.total {
		t.n.completeFlow(pk.flow)
		return
	}
	if pk.flags&carriesPull != 0 {
		t.pull(pk.flow, pk.pull)
	}
}

// pull sends one packet per pull. Pulls without data to send remain valid.
func (t *ndp) pull(f uint32, number uint32) {
	s := &t.sources[f]
	s.watchdog.recordHeard(t.n)
	s.granted = max(s.granted, number)
	for s.pulled < s.granted && t.transmit(f, s) {
		s.pulled++
	}
}

// arrived handles a data packet or the header of a trimmed one.
func (t *ndp) arrived(p uint32, pk *packet) {
	f, k := pk.flow, &t.sinks[pk.flow]
	answer := ack
	if pk.flags&trimmed != 0 {
		answer = nack
	} else {
		k.got.add(pk.seq)
	}
	t.n.free(p)
	k.lastPull++
	a := t.n.newPacket(f, answer, t.control)
	reply := &t.n.packets[a]
	reply.seq, reply.ack, reply.pull, reply.sent = pk.seq, k.got.next, k.lastPull, pk.sent
	if answer == nack {
		reply.priority = lowPriority
	}
	complete := k.got.next >= t.sources[f].total
	t.reply(t.n.flows[f].dst, a)
	if complete {
		t.dropPulls(f)
		t.n.deliverFlow(f)
	}
}

// reply sends an ACK or NACK. If a pull is due, the reply is also the pull; otherwise a separate pull is queued.
func (t *ndp) reply(host, a uint32) {
	c, f := &t.pacers[host], t.n.packets[a].flow
	if c.waiting == 0 {
		if t.n.now >= c.next {
			c.next = t.n.now + t.pullTime(c, f)
			t.n.packets[a].flags |= carriesPull
			t.n.send(host, a)
			return
		}
		t.n.at(c.next, timerA, host)
	}
	p := t.n.newPacket(f, pull, t.control)
	t.n.packets[p].pull = t.n.packets[a].pull
	c.queue.push(t.n, t.n.flows[f].id, p)
	c.waiting++
	t.n.send(host, a)
}

// pullTime returns the time from a pull to the next one, in picoseconds: that of the packet that it requests. The
// receiver does not know which packet that will be, so it assumes the mean size of the flow's packets.
func (t *ndp) pullTime(c *ndpPacer, f uint32) uint64 {
	if t.n.quirks.fullPackets {
		return uint64(float64(t.mss+uint64(t.header)) * c.perByte)
	}
	return uint64(t.n.meanPacket(f, t.mss, t.header, t.padLast) * c.perByte)
}

// dropPulls removes the queued pulls of a delivered flow.
func (t *ndp) dropPulls(f uint32) {
	fl := &t.n.flows[f]
	c := &t.pacers[fl.dst]
	c.waiting -= c.queue.drop(t.n, fl.id)
}

func (t *ndp) timer(e event, i uint32) {
	if e == timerB {
		t.checkTimeout(i)
		return
	}
	c := &t.pacers[i]
	if c.waiting == 0 {
		return
	}
	p := c.queue.pop(t.n)
	c.waiting--
	c.next = t.n.now + t.pullTime(c, t.n.packets[p].flow)
	t.n.send(i, p)
	if c.waiting > 0 {
		t.n.at(c.next, timerA, i)
	}
}

// checkTimeout retransmits unacknowledged packets, at most a window, if the receiver was silent for the timeout.
func (t *ndp) checkTimeout(f uint32) {
	s := &t.sources[f]
	if !s.watchdog.expired(t.n, f, s.rto, timerB) {
		return
	}
	s.retransmits = s.retransmits[:0]
	window := t.window.of(t.n, f)
	for seq := s.acked.next; seq < s.sent && uint64(len(s.retransmits))*t.mss < window; seq++ {
		if !s.acked.has(seq) {
			s.retransmits.Push(uint32(seq))
		}
	}
	for len(s.retransmits) > 0 {
		t.transmit(f, s)
	}
}

var ndpTransport = Transport{
	Name: "ndp", Title: "NDP: receivers pull, switches trim",
	ignoresMarks: true,
	discipline:   trimming, nic: fairClasses, header: 64, control: 64, balance: Spray, queueBDPs: 1, build: newNDP,
	Parameters: []Parameter{
		{Name: "window", Unit: Packets, Value: -1, Min: 1, Compat: number(ndpPackets),
			Doc: "initial window in packets or bytes; auto: 50 packets or, if larger, the bandwidth-delay product of " +
				"the path"},
		{Name: "pull-rate", Value: 0.99, Min: 1e-3, Doc: "rate of pulls relative to the rate of full packets"},
		{Name: "rto", Unit: Time, Value: 1e9, Compat: number(0),
			Doc: "silence of the receiver after which unacknowledged packets are retransmitted; 0: never"},
	},
}

func number(v float64) *float64 { return &v }
