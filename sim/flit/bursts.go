// This file generates packets in bursts.

package flit

import (
	"math"

	"github.com/tracedag/tracedag/sim"
)

// bursts is the state of hosts that are on or off. In every cycle, a host that is off starts a burst with a
// probability, and a host that is on generates a packet for the target of the burst, if there is room. After each
// packet the burst ends with probability 1/length.
type bursts struct {
	logFail float64 // log of the probability that a host that is off does not start a burst
	end     float64 // probability that a burst ends before another packet
	to      []uint32
	fresh   []bool // by host: the burst has not sent a packet yet
}

// startBursts switches all hosts off. The share of cycles with a packet is x = load / flits of a packet: a burst of L
// cycles on average follows (1-p)/p cycles without a packet, so p = x / (L + x (1 - L)).
func (g *traffic) startBursts(n *worker) {
	x := g.Load / float64(n.p.PacketFlits)
	start := x / (g.Burst + x*(1-g.Burst))
	b := &bursts{logFail: math.Log1p(-start), end: 1 / g.Burst, to: make([]uint32, n.hosts),
		fresh: make([]bool, n.hosts)}
	for h := range b.to {
		b.to[h] = none
	}
	g.bursts = b
}

// off returns the cycles until the next burst of a host that is off; 0: the burst starts at once.
func (b *bursts) off(r *sim.Random) uint64 {
	return gap(r, b.logFail) - 1
}

// continueBurst generates the due packet of a host and returns the cycle of the next one, or of the next attempt: a
// host without room for a packet stays on.
func (n *worker) continueBurst(h uint32, t uint64) (next uint64) {
	g := n.traffic
	b, r := g.bursts, &g.random[h]
	if b.to[h] == none {
		b.to[h], b.fresh[h] = g.target(n, h), true
	}
	if !n.hasRoom(h, b.to[h], t) {
		return t + 1
	}
	if !b.fresh[h] && uniform(r) <= b.end {
		b.to[h] = none
		if wait := b.off(r); wait > 0 {
			return t + wait
		}
		b.to[h], b.fresh[h] = g.target(n, h), true
	}
	if n.create(h, b.to[h], t) != none {
		b.fresh[h] = false
	}
	return t + 1
}
