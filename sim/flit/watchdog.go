// This file detects deadlocks: if packets are in the network when no event is left, they wait for each other.

package flit

import "fmt"

// DeadlockError reports packets that wait for each other in a circle.
type DeadlockError struct {
	Cycle   uint64 // cycle in which the last of them started to wait
	Packets int64  // packets in the network
	Chain   string // channels of the packets; each waits for the next, and the last for the first
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("deadlock in cycle %d with %d packets in the network: %s", e.Cycle, e.Packets, e.Chain)
}

// deadlock finds a circle of packets, each of which waits for room in a buffer whose first packet waits too.
func (n *worker) deadlock() error {
	e := &DeadlockError{Cycle: n.now, Packets: n.live}
	at := uint32(none)
	for i := range n.inputs {
		if n.inputs[i].first != none {
			at = uint32(i)
			break
		}
	}
	place := map[uint32]int{}
	var chain []uint32 // channel numbers
	for at != none {
		c := &n.inputs[at]
		if first, ok := place[c.channel]; ok {
			e.Chain = n.chain(chain[first:])
			return e
		}
		place[c.channel] = len(chain)
		chain = append(chain, c.channel)
		at = n.ports[c.out].peer*n.vcs + c.channel%n.vcs
		if int(at) >= len(n.inputs) || n.inputs[at].first == none {
			at = none
		}
	}
	e.Chain = "no circle was found"
	return e
}
