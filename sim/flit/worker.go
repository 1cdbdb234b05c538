// This file divides the routers of a network among workers, which run them at the same time. What one does to a router of
// another it writes down, and the other does it when all have run their routers of the cycle. None of it shows before the next
// cycle, so that results do not depend on how many workers there are.

package flit

import (
	"runtime"
	"slices"
	"sync"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/sim"
)

// worker runs some of the routers of a network, and their hosts. A network has one from the start.
type worker struct {
	*network
	eventQueue
	first, last uint32 // its routers: first to last-1
	index       uint32

	clock     uint64   // of stamps
	bestInput []uint32 // of each output of the router at hand, the input that is to be served; none: there is no request
	requested []uint32 // the outputs for which there are any
	until     uint64   // when the input port at hand may have something to request

	freePacket uint32
	fresh      uint32 // numbers of packets from here on were never in use; only where there are several workers
	live       int64  // packets under way: those made less those received
	events     int64  // packets granted, sent or received
	counters   counters
	channelUse []channelUse // by kind of port and virtual channel

	interfaces bool   // of the cycle at hand, the routers have acted and the interfaces have not
	over       uint64 // cycles that are over

	workers  []*worker // all of them; nil: this one is alone
	each     uint32    // routers of a worker
	own      uint32    // numbers of packets of a worker
	letters  []letters // to each
	upcoming uint64    // the next cycle that has anything to do
}

// letters are what a worker does to routers of another in a cycle.
type letters struct {
	packets []letter
	credits []creditLetter
	free    []uint32 // packets that were the other's
}

// letter is a packet that comes to a port.
type letter struct {
	packet, port uint32
	head         uint64
}

type creditLetter struct {
	creditEvent
	at uint64
}

// prepare makes what a worker has for itself.
func (n *worker) prepare() {
	n.eventQueue = newEventQueue(n.horizon, n.routers, n.hosts)
	n.channelUse = make([]channelUse, 3*maxVCs)
	n.bestInput = slices.Repeat([]uint32{none}, int(n.widest))
}

// newPacket returns the number of a packet that is not in use.
func (n *worker) newPacket() uint32 {
	n.live++
	if id := n.freePacket; id != none {
		n.freePacket = n.packets[id].next
		return id
	}
	if n.workers != nil {
		n.fresh++
		return n.fresh - 1
	}
	if len(n.packets) == cap(n.packets) {
		grown := cpu.InHugePages(make([]packet, 0, 2*cap(n.packets)+1024))
		n.packets = append(grown, n.packets...)
	}
	n.packets = append(n.packets, packet{})
	return uint32(len(n.packets) - 1)
}

// release makes the number of a packet one that is not in use.
func (n *worker) release(id uint32) {
	n.live--
	if n.workers != nil {
		if owner := id / n.own; owner != n.index {
			n.letters[owner].free = append(n.letters[owner].free, id)
			return
		}
	}
	n.packets[id].next, n.freePacket = n.freePacket, id
}

// others reports whether a router is another worker's.
func (n *worker) others(router uint32) bool {
	return router-n.first >= n.last-n.first
}

// collect does what others have written down for this worker.
func (n *worker) collect() {
	for _, other := range n.workers {
		l := &other.letters[n.index]
		for _, p := range l.packets {
			n.enqueue(p.packet, p.port, p.head, n.now)
		}
		for _, c := range l.credits {
			n.credit(c.channel, c.flits, c.at)
		}
		for _, id := range l.free {
			n.packets[id].next, n.freePacket = n.freePacket, id
		}
	}
}

// mostPackets is for how many packets memory is set aside at most, so that there can be several workers.
const mostPackets = 1 << 27

// divide divides a network with traffic of its own, which has not run, among as many workers. It reports whether it did.
func (n *worker) divide(count int) bool {
	// All buffers full of packets, which are whole ones, and one more for each host.
	whole := n.p.PacketFlits
	packets := n.hosts * (n.p.SourceQueue/whole + 2)
	for i := range n.ports {
		kind := n.ports[i].kind
		packets += int(n.count[kind])*(int(n.capacity[kind])/whole) + n.p.OutputBuffer/whole + 1
	}
	count = min(count, n.routers)
	if count < 2 || packets > mostPackets/count {
		return false
	}
	n.packets = cpu.InHugePages(make([]packet, packets*count))
	n.each, n.own = uint32((n.routers+count-1)/count), uint32(packets)
	var workers []*worker
	for k := range uint32(count) {
		w := n
		if k > 0 {
			w = &worker{network: n.network, freePacket: none, index: k, each: n.each, own: n.own}
		}
		w.prepare()
		w.first, w.last = min(k*n.each, uint32(n.routers)), min((k+1)*n.each, uint32(n.routers))
		w.fresh = k * w.own
		w.letters = make([]letters, count)
		workers = append(workers, w)
	}
	for _, w := range workers {
		w.workers = workers
	}
	for h := range n.nics {
		if w := workers[n.edge[h]/n.each]; n.nics[h].generates != never {
			w.wakeGenerator(uint32(h), 0)
		}
	}
	return true
}

// runWorkers runs all workers up to and without a cycle.
func (n *worker) runWorkers(end uint64) {
	barrier := sim.NewBarrier(len(n.workers))
	var wait sync.WaitGroup
	for _, w := range n.workers[1:] {
		wait.Go(func() { w.runTo(end, barrier) })
	}
	n.runTo(end, barrier)
	wait.Wait()
}

// runTo is what each worker does of that.
func (n *worker) runTo(end uint64, barrier *sim.Barrier) {
	for {
		n.upcoming = n.nextUsed()
		barrier.Wait()
		t := n.upcoming
		for _, w := range n.workers {
			t = min(t, w.upcoming)
		}
		if t >= end {
			barrier.Wait() // until all have looked
			return
		}
		for k := range n.letters {
			l := &n.letters[k]
			l.packets, l.credits, l.free = l.packets[:0], l.credits[:0], l.free[:0]
		}
		n.runRouters(t)
		barrier.Wait()
		n.collect()
		n.runInterfaces()
	}
}

// merge adds what the other workers counted to what this one did.
func (n *worker) merge() {
	for _, w := range n.workers {
		if w == n {
			continue
		}
		n.counters.add(&w.counters)
		n.events += w.events
		n.live += w.live
		for i := range n.channelUse {
			n.channelUse[i].packets += w.channelUse[i].packets
			n.channelUse[i].residence += w.channelUse[i].residence
		}
		w.counters, w.events, w.live = counters{}, 0, 0
		clear(w.channelUse)
	}
}

// threadsFor returns on how many threads a network runs fastest: small ones have too little to do in a cycle.
func (n *worker) threadsFor() int {
	const routers = 256 // of a thread, at least
	return min(runtime.GOMAXPROCS(0), n.routers/routers)
}
