package loggops

import "github.com/tracedag/tracedag/sim"

// nicOrder records, for the critical path, the message or request that a NIC handled before another one that waited for
// it. An entry is the number of the message plus 1, and asRequest; 0: it did not wait.
type nicOrder struct {
	sent     []uint32 // by message
	request  []uint32 // by message; nil if no message has a request
	received []uint32 // by message

	lastSent, lastReceived []uint32 // by NIC
}

// asRequest marks an entry of nicOrder as the request of the message.
const asRequest = 1 << 31

// record makes the wire record the order of messages at NICs; sent has an element per op.
func (w *wire) record(sent []uint32, p *sim.Program) {
	w.queues = &nicOrder{sent: sent, received: make([]uint32, p.NumOps()), lastSent: make([]uint32, len(w.free)),
		lastReceived: make([]uint32, len(w.free))}
	if p.LargestMessage > w.eager {
		w.queues.request = make([]uint32, p.NumOps())
	}
}

// sends records that a NIC sends message m or its request, after it waited for the NIC or not.
func (q *nicOrder) sends(nic int, m uint32, request, waited bool) {
	of, entry := q.sent, m+1
	if request {
		of, entry = q.request, entry|asRequest
	}
	if waited {
		of[m] = q.lastSent[nic]
	}
	q.lastSent[nic] = entry
}

// receives records that a NIC receives message m, after it waited for the NIC or not.
func (q *nicOrder) receives(nic int, m uint32, waited bool) {
	if waited {
		q.received[m] = q.lastReceived[nic]
	}
	q.lastReceived[nic] = m + 1
}

// Trace walks back through the network; see [sim.Tracer].
func (w *wire) Trace(walk *sim.PathWalk, m uint32, leaves bool) (message uint32, posted bool) {
	n := walk.Counts()
	size := func(m uint32) uint64 { return max(walk.Op(m).Size, 1) - 1 }
	bytes := func(m uint32) { // of message m itself
		op := walk.Op(m)
		if !w.here.ownRate || !w.local(op) {
			n.GBytes += int64(size(m))
		}
		walk.Step(m, sim.PathBytes, w.bytes(op), sim.ByNetwork)
	}
	behind := func(m uint32, request bool) { // the time of message m or its request at a NIC
		if !request {
			n.GBytes += int64(size(m))
			walk.Step(m, sim.PathQueueing, w.bytes(walk.Op(m)), sim.ByNetwork)
		}
		n.Gap++
		walk.Step(m, sim.PathGap, w.gap, sim.ByNetwork)
	}
	latency := func(m uint32, of func(*sim.Op) uint64) {
		op := walk.Op(m)
		if !w.here.ownLatency || !w.local(op) {
			n.L++
		}
		walk.Step(m, sim.PathLatency, of(op), sim.ByNetwork)
	}
	if bytes(m); !leaves {
		for q := w.queues.received[m]; q != 0; q = w.queues.received[m] {
			m = q - 1
			behind(m, false)
		}
		latency(m, w.delay)
	}
	for request := false; ; {
		q := w.queues.sent[m]
		if request {
			q = w.queues.request[m]
		}
		switch {
		case q != 0:
			m, request = q&^asRequest-1, q&asRequest != 0
			behind(m, request)
		case request || walk.Op(m).Size <= w.eager:
			return m, false
		default: // the grant, and the request before it unless the message waited for its receive
			if latency(m, w.control); walk.Posted(m) {
				return m, true
			}
			latency(m, w.control)
			request = true
		}
	}
}
