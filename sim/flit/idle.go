package flit

// idle computes times of messages by sending them one at a time through a network without other traffic.
type idle struct {
	n     *worker
	known map[idleMessage]idleTimes

	took, came uint64 // cycles of the current message: its last packet is taken, and it is received
}

type idleMessage struct {
	from, to uint32 // hosts
	bytes    uint64
}

// idleTimes are times of a message in cycles after its handover: until the NIC takes its last packet, and until it is
// received.
type idleTimes struct{ taken, received uint64 }

func (i *idle) taken(_ uint32, _, t uint64) { i.took = t }
func (i *idle) received(_ uint32, t uint64) { i.came = t }

// times returns the times of a message.
func (i *idle) times(m idleMessage) idleTimes {
	if known, ok := i.known[m]; ok {
		return known
	}
	n := i.n
	began := n.over
	i.took, i.came = began, began
	for t := began; t != never; t = n.nextCycle() {
		n.runRouters(t)
		if t == began {
			n.post(0, m.from, m.to, m.bytes, t)
		}
		n.runNICs()
	}
	times := idleTimes{i.took - began, i.came - began}
	i.known[m] = times
	return times
}

// Unloaded returns the time of a message in the idle network; see [sim.Unloader].
func (c *coupling) Unloaded(m uint32, leaves bool) (bytes, latency uint64) {
	op := &c.p.Ops[m]
	from, to := c.hosts[op.Rank], c.hosts[op.Peer]
	if from == to {
		if leaves {
			return 0, 0
		}
		return 0, uint64(c.c.Local) * c.cycle
	}
	times := c.idle.times(idleMessage{from, to, op.Size})
	all, flits := times.received, c.n.flitsOf(op.Size)
	if leaves {
		if all = times.taken; c.c.Paced {
			all = max(all, flits-1)
		}
	}
	cycles := min(flits, all)
	return cycles * c.cycle, c.begins(c.posted[m]) - c.posted[m] + (all-cycles)*c.cycle
}
