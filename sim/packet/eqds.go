// This file implements EQDS (Olteanu et al., An edge-queued datagram service for all datacenter traffic, NSDI 2022).
// Senders start speculatively, then receivers grant credit. The rest is in uet.go and credit.go.

package packet

// eqdsTimeout is the retransmission timeout in picoseconds, in addition to the time of six full queues.
const eqdsTimeout = 150_000_000

// eqdsPackets is the smallest automatic window, in packets.
const eqdsPackets = 50

func newEQDS(n *network, s *transportConfig) transport {
	t := newUET(n, s)
	t.ackExceeds = true
	t.setTimeout(s, eqdsTimeout)
	t.sprayer.mode = skipping
	t.sprayer.penalty.mark, t.sprayer.penalty.trim, t.sprayer.penalty.limit = 1, 1, 1
	t.sprayer.penalty.all, t.sprayer.penalty.edge = true, true
	full := float64(t.mss + t.header)
	c := newCredits(t, s.number("quantum"), float64(t.mss))
	c.trimmedFirst, c.quirks, c.grantFinished = true, s.quirks.eqds, s.quirks.grantFinished
	t.detachedNIC, t.waitForCredit = s.quirks.eqds.detachedNIC, s.quirks.waitForCredit
	if c.window = s.windowPackets("window", eqdsPackets); !c.window.auto {
		c.limitBytes = s.number("window") * full
	}
	c.bySize = !s.quirks.fullPackets
	const frame = 38 // preamble, Ethernet header, checksum and inter-packet gap, in bytes
	if c.quirks.fixedPullSize {
		full = 4160
	}
	c.setPeriods(func(rate float64) float64 {
		period := s.number("pull-interval") * 8e12 * (full + frame) / rate
		if credit := float64(int64(c.quantaPerPull) * c.quantum); credit > full {
			period *= credit / full
		}
		return period
	})
	return t
}

var eqdsTransport = Transport{
	Name: "eqds", Title: "EQDS: receivers grant credit, switches trim",
	discipline: trimming, nic: scheduled, header: 64, control: 64, balance: Spray, queueBDPs: 1, neverPad: true,
	build: newEQDS,
	Parameters: []Parameter{
		{Name: "window", Unit: Packets, Value: -1, Compat: number(eqdsPackets),
			Doc: "data sent speculatively, and limit of the requested credit, in packets or bytes; auto: 50 packets " +
				"or, if larger, the bandwidth-delay product of the path"},
		{Name: "quantum", Unit: Bytes, Value: 512, Min: 1,
			Doc: "unit of credit; a pull grants the payload of a packet, rounded down to quanta"},
		{Name: "pull-interval", Value: 0.99, Min: 1e-3,
			Doc: "time between pulls of a host, relative to the time of a full packet with its Ethernet frame"},
		{Name: "ack-every", Unit: Bytes, Value: 16384, Doc: "bytes received after which a receiver sends an ACK"},
		{Name: "control-turns", Value: 20, Min: 1, Doc: "control packets that a host sends in a row while " +
			"data waits"},
		{Name: "rto", Unit: Time, Value: -1, Min: -1,
			Doc: "retransmission timeout; 0: never; auto: 150 us plus the time of six full data queues and one " +
				"control queue; it doubles with each timeout without an answer, up to 64 times"},
	},
}
