// This file divides the routers of a network among workers, which run concurrently. A worker records its effects on
// another worker's routers, which applies them after all workers have run their routers of the cycle. Effects become
// visible in the next cycle only, so results do not depend on the number of workers.

package flit

import (
	"runtime"
	"slices"
	"sync"

	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/sim"
)

// worker runs some routers of a network, and their hosts. A network starts with one worker.
type worker struct {
	*network
	eventQueue
	first, last uint32 // its routers are first to last-1
	index       uint32

	clock     uint64   // last number in stamps
	bestInput []uint32 // by output of the current router: input to serve; none: no request
	requested []uint32 // outputs with requests
	touched   []uint32 // routers whose queues of global ports have changed in this cycle; with piggybacking
	until     uint64   // cycle in which the current input port may have something to request

	freePacket uint32
	fresh      uint32 // packet numbers from here on are unused; only with several workers
	live       int64  // packets in the network: generated minus received
	events     int64  // packets granted, sent or received
	counters   counters
	channelUse []channelUse // by kind of port and virtual channel

	nicsPending bool   // in the current cycle, the routers have run and the NICs have not
	over        uint64 // completed cycles

	workers  []*worker // all workers; nil: only one
	each     uint32    // routers per worker
	own      uint32    // packet numbers per worker
	letters  []letters // to each worker
	notices  []notice  // postponed calls of the driver
	upcoming uint64    // next active cycle
}

// letters are the effects of a worker on another worker's routers in a cycle.
type letters struct {
	packets []letter
	credits []creditLetter
	free    []uint32 // released packets of the other worker
}

// letter is a packet that arrives at a port.
type letter struct {
	packet, port uint32
	head         uint64
}

type creditLetter struct {
	creditEvent
	at uint64
}

// prepare allocates the state of a worker.
func (n *worker) prepare() {
	n.eventQueue = newEventQueue(n.horizon, n.routers, n.hosts)
	n.channelUse = make([]channelUse, 3*maxVCs)
	n.bestInput = slices.Repeat([]uint32{none}, int(n.widest))
}

// newPacket returns an unused packet number.
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

// release returns a packet number to the free list.
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

// others reports whether a router belongs to another worker.
func (n *worker) others(router uint32) bool {
	return router-n.first >= n.last-n.first
}

// clearLetters removes the effects of the cycle before.
func (n *worker) clearLetters() {
	for k := range n.letters {
		l := &n.letters[k]
		l.packets, l.credits, l.free = l.packets[:0], l.credits[:0], l.free[:0]
	}
}

// collect applies the effects that other workers recorded for this one.
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

// mostPackets limits the packets for which memory is allocated in advance, which several workers require.
const mostPackets = 1 << 27

// divide divides a network, which has not run, among count workers. It reports whether it did: not if it would need
// memory for more than most packets. All packets have at least whole flits.
func (n *worker) divide(count, whole, most int) bool {
	// All buffers full of packets, and one more packet per host.
	packets := n.hosts * (n.p.SourceQueue/whole + 2)
	if n.reactive { // replies, and packets on the links to the hosts
		packets += n.hosts * (n.p.replyRoom()/whole + 2 + int(n.horizon)/whole)
	}
	for i := range n.ports {
		kind := n.ports[i].kind
		packets += int(n.count[kind])*(int(n.capacity[kind])/whole) + n.p.OutputBuffer/whole + 1
	}
	count = min(count, n.routers)
	if count < 2 || packets > most/count {
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

// runWorkers runs all workers up to, but not including, a cycle.
func (n *worker) runWorkers(end uint64) {
	barrier := sim.NewBarrier(len(n.workers))
	var wait sync.WaitGroup
	for _, w := range n.workers[1:] {
		wait.Go(func() { w.runTo(end, barrier) })
	}
	n.runTo(end, barrier)
	wait.Wait()
}

// runTo is the part of one worker.
func (n *worker) runTo(end uint64, barrier *sim.Barrier) {
	for k := 1; ; k++ {
		n.upcoming = n.nextUsed()
		if n.index == 0 && k%checkCycles == 0 {
			n.network.interrupted = sim.Interrupted(n.ctx) // all workers read it after the barrier
		}
		barrier.Wait()
		t := n.upcoming
		for _, w := range n.workers {
			t = min(t, w.upcoming)
		}
		if t >= end || n.network.interrupted != nil {
			barrier.Wait() // until all workers have read it
			return
		}
		n.clearLetters()
		n.runRouters(t)
		barrier.Wait()
		n.collect()
		n.runNICs()
	}
}

// merge adds the counts of the other workers to this one's.
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

// threadsFor returns the number of threads that run a network fastest. Small networks have too little work per cycle.
func (n *worker) threadsFor() int {
	const routers = 256 // minimum per thread
	return min(runtime.GOMAXPROCS(0), n.routers/routers)
}
