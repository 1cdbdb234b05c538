// This file implements the NICs of hosts, which serve flows in round robin: a fair queue into which transports push
// packets, and the list of ready flows of a NIC that requests packets from its transport.

package packet

import "slices"

// nic is the queue of a host's NIC: strict priorities, each with a queue per flow, served in round robin by flow
// number.
type nic struct {
	priorities [priorities]fairQueue
	waiting    int
}

// fairQueue has a queue per flow.
type fairQueue struct {
	flows    []fairEntry // in ascending order
	cursor   int         // index in flows of the next one to serve
	keepIdle bool        // see quirks.keepIdleFlows
}

type fairEntry struct {
	flow uint32 // flow number
	fifo fifo
}

func (q *fairQueue) push(n *network, flow, p uint32) {
	i := len(q.flows)
	if i > 0 && q.flows[i-1].flow >= flow {
		i, _ = slices.BinarySearchFunc(q.flows, flow, func(e fairEntry, flow uint32) int {
			return int(int64(e.flow) - int64(flow))
		})
	}
	if i == len(q.flows) || q.flows[i].flow != flow {
		q.flows = slices.Insert(q.flows, i, fairEntry{flow, newFIFO()})
		if i <= q.cursor {
			q.cursor++
		}
	}
	n.pushPacket(&q.flows[i].fifo, p)
}

// pop removes and returns the next packet, or none.
func (q *fairQueue) pop(n *network) uint32 {
	for range 2 {
		for ; q.cursor < len(q.flows); q.cursor++ {
			e := &q.flows[q.cursor]
			if e.fifo.head == none {
				continue
			}
			p := n.popPacket(&e.fifo)
			if e.fifo.head == none && !q.keepIdle {
				q.flows = slices.Delete(q.flows, q.cursor, q.cursor+1)
			} else {
				q.cursor++
			}
			return p
		}
		q.cursor = 0
	}
	q.cursor = len(q.flows)
	return none
}

// drop frees the packets of a flow, and removes the flow.
func (q *fairQueue) drop(n *network, flow uint32) (dropped int) {
	i := slices.IndexFunc(q.flows, func(e fairEntry) bool { return e.flow == flow })
	if i < 0 {
		return 0
	}
	for q.flows[i].fifo.head != none {
		n.free(n.popPacket(&q.flows[i].fifo))
		dropped++
	}
	q.flows = slices.Delete(q.flows, i, i+1)
	if q.cursor > i {
		q.cursor--
	}
	return dropped
}

func (c *nic) push(n *network, d discipline, p uint32) {
	pk := &n.packets[p]
	k := pk.priority
	if d == fairFlows {
		k = highPriority
	}
	c.priorities[k].push(n, n.flows[pk.flow].id, p)
	c.waiting++
}

func (c *nic) pop(n *network) uint32 {
	if c.waiting == 0 {
		return none
	}
	for k := range c.priorities {
		if p := c.priorities[k].pop(n); p != none {
			c.waiting--
			return p
		}
	}
	return none
}

// passThrough accounts for a packet that is sent without waiting.
func (c *nic) passThrough(n *network, d discipline, p uint32) {
	if c.priorities[0].keepIdle {
		c.push(n, d, p)
		c.pop(n)
	}
}

// flowList is an ordered list of flows, linked through the flows. A flow is in at most one list.
type flowList struct {
	head, tail uint32
	count      int
}

func newFlowList() flowList {
	return flowList{head: none, tail: none}
}

// pushFlow appends a flow.
func (n *network) pushFlow(l *flowList, f uint32) {
	n.flows[f].behind = none
	if l.head == none {
		l.head = f
	} else {
		n.flows[l.tail].behind = f
	}
	l.tail = f
	l.count++
}

// popFlow removes and returns the first flow; there must be one.
func (n *network) popFlow(l *flowList) uint32 {
	f := l.head
	l.head = n.flows[f].behind
	l.count--
	return f
}

// removeFlow removes a flow, which must be in the list.
func (n *network) removeFlow(l *flowList, f uint32) {
	before := none
	for g := l.head; g != f; g = n.flows[g].behind {
		before = g
	}
	if before == none {
		l.head = n.flows[f].behind
	} else {
		n.flows[before].behind = n.flows[f].behind
	}
	if l.tail == f {
		l.tail = before
	}
	l.count--
}

// nicQueue is the queue of a NIC that requests packets from its transport: control packets, and flows that are ready to
// send.
type nicQueue struct {
	port    uint32
	control fifo
	flows   flowList
}

func (n *network) newNICQueue(host uint32) nicQueue {
	return nicQueue{port: n.routes.NIC(host), control: newFIFO(), flows: newFlowList()}
}
