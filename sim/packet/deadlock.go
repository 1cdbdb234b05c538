// This file detects deadlocks of priority flow control: cycles of paused ports each of which waits for the next.

package packet

// findDeadlock returns the ports of a deadlock, each of which waits for the next and the last for the first, or nil. A
// port is in a deadlock if the bytes that arrived over it and wait at other ports in a deadlock suffice to keep it
// paused.
func (n *network) findDeadlock() (cycle []uint32) {
	if n.pfc == nil {
		return nil
	}
	dead := make([]bool, len(n.ports))
	candidates := 0
	for i := range n.ports {
		if pt := &n.ports[i]; pt.paused && n.pfc.inputs[i].paused {
			dead[i] = true
			candidates++
		}
	}
	stuck := make([]uint64, len(n.ports)) // bytes by input
	next := make([]uint32, len(n.ports))  // by input: a port at which some of them wait
	for changed := true; changed && candidates > 0; {
		changed = false
		clear(stuck)
		for i := range n.ports {
			if !dead[i] || n.ports[i].host != none {
				continue
			}
			for p := n.ports[i].queues[dataQueue].head; p != none; p = n.packets[p].next {
				pk := &n.packets[p]
				stuck[pk.port] += uint64(pk.size)
				next[pk.port] = uint32(i)
			}
		}
		for i := range n.ports {
			if dead[i] && stuck[i] < n.pfc.xon {
				dead[i], changed = false, true
				candidates--
			}
		}
	}
	if candidates == 0 {
		return nil
	}
	at := uint32(0)
	for !dead[at] {
		at++
	}
	visited := make([]bool, len(n.ports))
	for !visited[at] {
		visited[at] = true
		at = next[at]
	}
	for first := at; ; {
		cycle = append(cycle, at)
		if at = next[at]; at == first {
			return cycle
		}
	}
}
