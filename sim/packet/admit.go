// This file decides on the admission of packets to queues: accept, trim or drop.

package packet

// admit decides whether a packet enters the queue of a port. If it returns false, the packet was dropped or is already
// queued. A trimmed packet becomes a control packet.
func (n *network) admit(pt *port, p uint32) bool {
	pk := &n.packets[p]
	size := uint64(pk.size)
	switch pt.discipline {
	case trimming:
		return n.admitTrimming(pt, p)
	case dropTail, markingDropTail, controlFirst, markingFirst:
		queue := pt.queueOf(pk)
		if pt.bytes[queue]+size > pt.capacity[queue] ||
			pt.buffer != 0 && queue == dataQueue && size > n.bufferLeft(pt) {
			return n.drop(pt, p)
		}
	case randomDrop:
		left := pt.capacity[dataQueue] - min(pt.bytes[dataQueue], pt.capacity[dataQueue])
		if pt.buffer != 0 {
			left = min(left, n.bufferLeft(pt))
		}
		if size > left || size+pt.kmin > left && pt.random.Next()>>11 < pt.kmax {
			return n.drop(pt, p)
		}
	case aeolus:
		room := pt.capacity[pt.queueOf(pk)]
		if pk.flags&flagA != 0 {
			room = pt.kmin
		}
		if pt.bytes[pt.queueOf(pk)]+size > room {
			return n.drop(pt, p)
		}
	case lossless: // the capacity suffices for all that arrives until pauses take effect
		if n.quirks.overfillLossless && pt.bytes[dataQueue]+size > pt.capacity[dataQueue] {
			pt.drops++
		}
	}
	return true
}

func (n *network) drop(pt *port, p uint32) bool {
	if n.packets[p].kind == data && n.packets[p].flags&trimmed == 0 {
		pt.drops++
	} else {
		pt.controlDrops++
	}
	if n.pfc != nil {
		n.pfc.lose(n, p)
	}
	n.free(p)
	return false
}

// admitTrimming is the admission policy of NDP (Handley et al., SIGCOMM 2017, section 3.2). If a data packet does not
// fit, either it or the last data packet in the queue is trimmed to its header, which enters the control queue. All
// packets that arrived for the last place have the same chance to keep it; with the quirk fairCoin, the last two have,
// as in the paper, so flows whose packets arrive in the same order again and again get unequal shares.
func (n *network) admitTrimming(pt *port, p uint32) bool {
	pk := &n.packets[p]
	if pk.kind != data || pk.flags&trimmed != 0 {
		return n.admitControl(pt, p)
	}
	if pt.bytes[dataQueue]+uint64(pk.size) <= pt.capacity[dataQueue] {
		pt.contenders = 1
		return true
	}
	if !n.quirks.trimInService && pk.size <= 2*n.headerSize { // trimming would save little, and cost a round trip
		return pt.bytes[dataQueue]+uint64(pk.size) <= pt.capacity[dataQueue]+pt.capacity[controlQueue] || n.drop(pt, p)
	}
	victim := p
	pt.contenders++
	if n.quirks.fairCoin {
		pt.contenders = 2
	}
	if uint64(pt.contenders)*(pt.random.Next()>>32)>>32 == 0 {
		switch {
		case pt.queues[dataQueue].tail != none:
			victim = n.popLastPacket(&pt.queues[dataQueue])
		case n.quirks.trimInService && pt.serving != none && pt.servingQueue == dataQueue:
			victim, pt.serving = pt.serving, p
			pt.bytes[dataQueue] += uint64(pk.size)
			pt.bytes[dataQueue] -= uint64(pt.servingSize)
			pt.servingSize = pk.size
			n.trim(pt, victim)
			if n.admitControl(pt, victim) {
				n.queueControl(pt, victim)
			}
			return false
		}
	}
	if victim == p {
		n.trim(pt, p)
		pt.trims++
		return n.admitControl(pt, p)
	}
	pt.bytes[dataQueue] -= uint64(n.packets[victim].size)
	n.trim(pt, victim)
	pt.trimsTail++
	if n.admitControl(pt, victim) {
		n.queueControl(pt, victim)
	}
	return true
}

func (n *network) queueControl(pt *port, p uint32) {
	pt.bytes[controlQueue] += uint64(n.packets[p].size)
	pt.peak[controlQueue] = max(pt.peak[controlQueue], pt.bytes[controlQueue])
	n.pushPacket(&pt.queues[controlQueue], p)
}

func (n *network) admitControl(pt *port, p uint32) bool {
	if pt.bytes[controlQueue]+uint64(n.packets[p].size) > pt.capacity[controlQueue] {
		return n.drop(pt, p)
	}
	return true
}

// trim reduces a data packet to its header.
func (n *network) trim(pt *port, p uint32) {
	pk := &n.packets[p]
	pk.size = n.headerSize
	pk.flags |= trimmed
	pk.priority = highPriority
	pk.trimmedAtLastHop = pt.toHost
}
