// This file runs the workers of a replay. Unlike with synthetic traffic, ranks react between the routers' and the NICs'
// parts of a cycle. So the first worker's thread runs the replay, and the other threads help it with single parts.

package flit

import (
	"context"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
)

// team is the threads of the workers of a replay.
type team struct {
	part    func(w *worker) // what all workers run next; nil: they end
	barrier *sim.Barrier
	wait    sync.WaitGroup
	least   int // number of active routers or NICs from which several threads run a part
}

// notice is a call of the driver that a worker has postponed.
type notice struct {
	op, message uint32 // message: its number if it was received, none if its last packet was taken
	began, t    uint64
}

// leastActive is the number of active routers or NICs per worker from which several threads are worthwhile.
const leastActive = 64

// newTeam divides the network of a replay among count workers, or returns nil if it does not. The messages have packets
// of at least fewestFlits, and the packets in the network may take a quarter of the memory limit of the context.
func (n *worker) newTeam(ctx context.Context, count int, fewestFlits uint64, least int) *team {
	for h := range n.nics {
		n.nics[h].generates = never
	}
	most := min(mostPackets, int(memory.Limit(ctx)/4/int64(unsafe.Sizeof(packet{}))))
	if !n.divide(count, int(max(1, fewestFlits)), most) {
		return nil
	}
	return &team{least: least * len(n.workers)}
}

// fewestFlits returns the smallest number of flits of a packet of a trace.
func (n *worker) fewestFlits(p *sim.Program) uint64 {
	least := uint64(n.p.PacketFlits)
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Flags&sim.IsColl == sim.IsSend {
			if rest := n.flitsOf(op.Size) % uint64(n.p.PacketFlits); rest > 0 {
				least = min(least, rest)
			}
		}
	}
	return least
}

// do runs a part of the cycle at all workers, by their threads if many routers or NICs are active, and then notifies
// the driver.
func (m *team) do(n *worker, active int, part func(w *worker)) {
	if active < m.least {
		for _, w := range n.workers {
			part(w)
		}
		return
	}
	if m.barrier == nil {
		m.barrier = sim.NewBarrier(len(n.workers))
		for _, w := range n.workers[1:] {
			m.wait.Go(func() {
				for m.barrier.Wait(); m.part != nil; m.barrier.Wait() {
					m.part(w)
					m.barrier.Wait()
				}
			})
		}
	}
	m.part = part
	m.barrier.Wait()
	part(n)
	m.barrier.Wait()
}

// end ends the threads.
func (m *team) end() {
	if m != nil && m.barrier != nil {
		m.part = nil
		m.barrier.Wait()
		m.wait.Wait()
	}
}

// runRouters is runRouters of all workers.
func (m *team) runRouters(n *worker, t uint64) {
	active := 0
	for _, w := range n.workers {
		active += onesIn(w.routerBits[int(t&w.mask)*w.routerW:][:w.routerW])
	}
	m.do(n, active, func(w *worker) {
		w.clearLetters()
		w.runRouters(t)
	})
	m.do(n, active, (*worker).collect)
	m.notify(n)
}

// runNICs is runNICs of all workers.
func (m *team) runNICs(n *worker) {
	active := 0
	for _, w := range n.workers {
		active += onesIn(w.nicBits[int(w.now&w.mask)*w.nicW:][:w.nicW])
	}
	m.do(n, active, (*worker).runNICs)
	m.notify(n)
}

func onesIn(words []uint64) (count int) {
	for _, word := range words {
		count += bits.OnesCount64(word)
	}
	return count
}

// notify makes the postponed calls of the driver. Their order has no effect, as the engine orders events of equal time
// by their ops.
func (m *team) notify(n *worker) {
	for _, w := range n.workers {
		for _, x := range w.notices {
			if x.message == none {
				n.driver.taken(x.op, x.began, x.t)
				continue
			}
			n.driver.received(x.op, x.t)
			n.messages[x.message].next, n.freeMess = n.freeMess, x.message
		}
		w.notices = w.notices[:0]
	}
}

// nextCycle is nextCycle of all workers.
func (m *team) nextCycle(n *worker) uint64 {
	t := n.nextCycle()
	for _, w := range n.workers {
		t = min(t, w.nextCycle())
	}
	return t
}

// taken notifies the driver that the NIC takes the last packet of a message.
func (n *worker) taken(op uint32, began, t uint64) {
	if n.workers == nil {
		n.driver.taken(op, began, t)
		return
	}
	n.notices = append(n.notices, notice{op, none, began, t})
}

// received notifies the driver of the reception of a message, and frees the message.
func (n *worker) received(message uint32) {
	m := &n.messages[message]
	if n.workers == nil {
		n.driver.received(m.op, m.last)
		m.next, n.freeMess = n.freeMess, message
		return
	}
	n.notices = append(n.notices, notice{op: m.op, message: message, t: m.last})
}

// ofHost returns the worker of a host.
func (n *worker) ofHost(h uint32) *worker {
	if n.workers == nil {
		return n
	}
	return n.workers[n.edge[h]/n.each]
}

// inNetwork returns the number of packets in the network.
func (n *worker) inNetwork() int64 {
	if n.workers == nil {
		return n.live
	}
	live := int64(0)
	for _, w := range n.workers {
		live += w.live
	}
	return live
}
