// This file is the transport of senders with a window of packets, each of which is acknowledged by itself, and of the
// headers of those that switches trim; with four ways to set the window:
//
//   - mprdma: MP-RDMA's, Lu et al., Multi-path transport for RDMA in datacenters, NSDI 2018, section 3.3.1.
//   - constant: the window does not change.
//   - single: one packet.
//   - swiftlike: by the delay, after Swift (Kumar et al., SIGCOMM 2020), as ATLAHS's transport of that name does.
//
// ATLAHS calls this transport UEC.

package packet

import (
	"math"

	simevent "github.com/tracedag/tracedag/sim/event"
)

// window is the transport.
type window struct {
	pushing
	n        *network
	mss      uint64
	header   uint32
	control  uint32
	whole    bool
	quirks   quirks
	rate     uint64 // bit/s of the interfaces
	rto      uint64
	control_ windowControl
	initial  float64 // as a share of the bandwidth-delay product
	cap      float64
	target   float64 // of the delay, as a share of the lowest

	sources []windowSource
	sinks   []reassembly
}

// windowControl is what sets windows.
type windowControl struct {
	acked func(t *window, s *windowSource, marked bool, rtt uint64)
	nack  func(t *window, s *windowSource)
}

// windowSource is the sender of a flow. Bytes are of payload; delays are nanoseconds, rounded down, as ATLAHS has them.
type windowSource struct {
	window  uint64 // bytes that may be under way
	most    uint64 // that the window may be
	bdp     uint64 // bandwidth-delay product to begin with
	lowest  uint64 // delay
	target  uint64 // delay
	total   uint64 // packets of the flow
	sent    uint64 // packets, of new data
	flying  uint64 // packets under way: sent, and neither acknowledged nor trimmed
	acked   reassembly
	again   simevent.MinHeap // trimmed, to be sent again
	silence watchdog
}

func newWindow(c windowControl) func(n *network, s *settings) transport {
	return func(n *network, s *settings) transport {
		return &window{
			n: n, mss: s.mss, header: s.header, control: s.control, whole: s.whole, quirks: s.quirks, rate: s.rate,
			rto: s.time("rto"), initial: s.number("initial"), cap: s.number("cap"), target: s.number("target"), control_: c,
		}
	}
}

func (t *window) open(f uint32) {
	for int(f) >= len(t.sources) {
		t.sources = append(t.sources, windowSource{})
		t.sinks = append(t.sinks, reassembly{})
	}
	s := &t.sources[f]
	acked := s.acked
	acked.reset()
	t.sinks[f].reset()
	*s = windowSource{
		total: packetsOf(t.n.flows[f].bytes, t.mss), acked: acked, again: s.again[:0], silence: watchdog{set: s.silence.set},
	}
	src, dst := t.n.flows[f].src, t.n.flows[f].dst
	if t.quirks.fixedRoundTrip {
		s.bdp = t.n.bandwidthDelay(int64(t.rate), 0)
		s.lowest = atlahsRoundTrip(t.rate)
	} else {
		rtt := t.n.unloaded(src, dst, uint32(t.mss)+t.header) + t.n.unloaded(dst, src, t.control)
		s.lowest = rtt / 1000
		s.bdp = uint64(float64(rtt) * float64(t.rate) / 8e12)
	}
	s.most = max(t.mss, uint64(t.cap*float64(s.bdp)))
	s.window = max(t.mss, uint64(t.initial*float64(s.bdp)))
	s.target = uint64(t.target * float64(s.lowest))
}

// packetsOf returns how many packets carry so many bytes. No bytes need one, too.
func packetsOf(bytes, mss uint64) uint64 {
	return max(1, (bytes+mss-1)/mss)
}

func (t *window) start(f uint32) {
	s := &t.sources[f]
	s.silence.hear(t.n)
	t.sendWindow(f, s)
	s.silence.watch(t.n, f, t.rto, timerA)
}

// sendWindow sends what the window allows: what is to be sent again, then new packets.
func (t *window) sendWindow(f uint32, s *windowSource) {
	for len(s.again) > 0 && s.flying*t.mss < s.window {
		t.transmit(f, s, uint64(s.again.Pop()), retransmit)
	}
	for s.sent < s.total && (s.flying+1)*t.mss <= s.window {
		marks := flags(0)
		if s.sent+1 == s.total {
			marks = last
		}
		s.sent++
		t.transmit(f, s, s.sent-1, marks)
	}
}

func (t *window) transmit(f uint32, s *windowSource, seq uint64, marks flags) {
	s.flying++
	t.n.sendData(f, seq, uint32(t.n.payload(f, seq, t.mss, t.whole))+t.header, marks)
}

func (t *window) receive(p uint32) {
	pk := t.n.packets[p]
	switch pk.kind {
	case data:
		t.arrived(p, &pk)
		return
	case ack:
		t.acknowledged(&pk)
	case nack:
		t.missed(&pk)
	}
	t.n.free(p)
}

// arrived takes a data packet, or the header of one. What is in order, or was there before, is acknowledged with all that
// is there without a gap; what is not, alone.
func (t *window) arrived(p uint32, pk *packet) {
	f, got := pk.flow, &t.sinks[pk.flow]
	answer, upTo := ack, pk.seq+1
	marks := flags(0)
	if pk.flags&trimmed != 0 {
		answer = nack
	} else {
		inOrder := pk.seq <= got.next
		got.add(pk.seq)
		if inOrder {
			upTo, marks = got.next, flagA
		}
	}
	if pk.flags&marked != 0 {
		marks |= echo
	}
	t.n.free(p)
	a := t.n.newPacket(f, answer, t.control)
	reply := &t.n.packets[a]
	reply.seq, reply.ack, reply.flags, reply.sent = pk.seq, upTo, marks, pk.sent
	whole := got.next >= t.sources[f].total
	t.n.send(t.n.flows[f].dst, a)
	if whole {
		t.n.deliver(f)
	}
}

func (t *window) acknowledged(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].over {
		return
	}
	s.silence.hear(t.n)
	rtt := (t.n.now - pk.sent) / 1000
	if rtt < s.lowest {
		s.lowest = rtt
		s.target = uint64(t.target * float64(rtt))
		if t.quirks.capAtLowestRTT {
			s.most = rtt * (t.rate / 1e9) / 8
			s.window = min(s.window, s.most)
		}
	}
	from := pk.seq
	if pk.flags&flagA != 0 {
		from = s.acked.next
	}
	for i := from; i < pk.ack; i++ {
		if s.acked.add(i) {
			s.flying--
		}
	}
	if s.acked.next >= s.total && (pk.ack >= s.total || !t.quirks.finishOnLastACK) {
		t.n.acknowledge(f)
		return
	}
	t.control_.acked(t, s, pk.flags&echo != 0, rtt)
	s.window = max(min(s.window, s.most), t.mss)
	t.sendWindow(f, s)
}

// missed handles the news that a packet was trimmed.
func (t *window) missed(pk *packet) {
	f, s := pk.flow, &t.sources[pk.flow]
	if t.n.flows[f].over || s.acked.has(pk.seq) {
		return
	}
	s.silence.hear(t.n)
	t.n.record(f).Nacks++
	t.control_.nack(t, s)
	s.window = max(min(s.window, s.most), t.mss)
	s.flying--
	if s.flying*t.mss < s.window {
		t.transmit(f, s, pk.seq, retransmit)
	} else {
		s.again.Push(uint32(pk.seq))
	}
}

// timer has a sender that has heard nothing for long take all that is not acknowledged for lost.
func (t *window) timer(_ event, f uint32) {
	s := &t.sources[f]
	if !s.silence.bark(t.n, f, t.rto, timerA) {
		return
	}
	s.again, s.flying = s.again[:0], 0
	for seq := s.acked.next; seq < s.sent; seq++ {
		if !s.acked.has(seq) {
			s.again.Push(uint32(seq))
		}
	}
	t.control_.nack(t, s)
	s.window = max(min(s.window, s.most), t.mss)
	t.sendWindow(f, s)
}

var mprdma = windowControl{
	acked: func(t *window, s *windowSource, marked bool, _ uint64) {
		if marked {
			s.window -= t.mss / 2
		} else {
			s.window += t.mss * t.mss / s.window
		}
	},
	nack: func(_ *window, s *windowSource) { s.window /= 2 },
}

var constant = windowControl{
	acked: func(*window, *windowSource, bool, uint64) {},
	nack:  func(*window, *windowSource) {},
}

var swiftLike = windowControl{
	acked: func(t *window, s *windowSource, _ bool, rtt uint64) {
		if rtt < s.target {
			s.window = uint64(float64(s.window) + float64(t.mss)/float64(s.window)*float64(t.mss))
			return
		}
		s.window = uint64(float64(s.window) * math.Max(1-(float64(rtt)-float64(s.target))/float64(rtt), 0.75))
	},
	nack: func(_ *window, s *windowSource) { s.window /= 2 },
}

// windowTransport returns the transport with a way to set windows: from how much of the bandwidth-delay product, and up to
// how much; of ATLAHS, at first.
func windowTransport(name, title string, c windowControl, initial, most float64) Transport {
	return Transport{
		Name: name, Title: title, queue: trimming, nic: fairClasses, header: 64, control: 64, balance: Spray, queueBDPs: 1,
		ecn: marks{least: 0.2, most: 0.8}, make: newWindow(c),
		Parameters: []Parameter{
			{Name: "initial", Value: min(2*initial, 1), Least: 0, Compat: number(initial), Doc: "window at the start, in bandwidth-delay products; at least a packet"},
			{Name: "cap", Value: most, Least: 0, Compat: number(min(most, 1)), Doc: "largest window, in bandwidth-delay products; at least a packet"},
			{Name: "target", Value: 1.5, Least: 1, Doc: "delay above which the window shrinks, in lowest delays; of swiftlike"},
			{Name: "rto", Unit: Time, Value: 1e9, Compat: number(0),
				Doc: "after so long without a word from the receiver, send again what may be lost; 0: never"},
		},
	}
}

var (
	mprdmaTransport    = windowTransport("mprdma", "MP-RDMA: a window, by marks of single packets", mprdma, 0.5, 8)
	constantTransport  = windowTransport("constant", "a constant window of one bandwidth-delay product", constant, 1, 1)
	singleTransport    = windowTransport("single", "a window of one packet", constant, 0, 0)
	swiftLikeTransport = windowTransport("swiftlike", "a window by delay, as ATLAHS's swift_like", swiftLike, 1, 1)
)
