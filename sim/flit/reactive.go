// This file generates requests and replies. A host replies to each request that it consumes. Requests and replies use
// separate virtual channels. A request leaves the network only if its host has room for the reply, so requests may wait
// for replies, but replies never for requests.

package flit

import (
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/sim/topology"
)

// maxRequests is the largest limit of requests under way per host.
const maxRequests = 1 << 20

// isReply is a flag of replies.
const isReply = 1 << 6

// reactive is the state of the hosts of [Reactive] traffic.
type reactive struct {
	replies  []fifo // by host: replies that wait for the router, each from the cycle of its creation on
	consumed []fifo // by host: packets for replies that leave the network, each until its head; with a limit
	underWay []uint32
	limit    uint32 // requests under way per host; 0: no limit
}

// fifo is a list of packets.
type fifo struct{ first, last uint32 }

func (f *fifo) push(n *worker, id uint32) {
	n.packets[id].next = none
	if f.first == none {
		f.first = id
	} else {
		n.packets[f.last].next = id
	}
	f.last = id
}

func (f *fifo) pop(n *worker) (id uint32) {
	id = f.first
	f.first = n.packets[id].next
	return id
}

// replyRoom returns the flits of the replies that a host holds, including those to requests that are granted the host's
// port.
func (p *Params) replyRoom() int {
	if p.SourceQueue > 0 {
		return p.SourceQueue
	}
	return p.InjectionBuffer
}

// startReplies gives each host room for its replies, as credits of the first channel of its router's port.
func startReplies(n *worker, t *Traffic) *reactive {
	if t.Pattern != Reactive {
		return nil
	}
	a := &reactive{replies: make([]fifo, n.hosts), limit: uint32(t.MaxRequests)}
	for h, q := range n.hostPorts {
		a.replies[h].first = none
		n.channels[q*n.vcs].credits = int32(n.p.replyRoom())
		n.channels[q*n.vcs+1].credits = maxBuffer // for replies, which do not wait
	}
	if a.limit > 0 {
		a.underWay, a.consumed = make([]uint32, n.hosts), make([]fifo, n.hosts)
		for h := range a.consumed {
			a.consumed[h].first = none
		}
	}
	return a
}

// classOffset returns the first virtual channel of a packet on a link of a kind.
func (n *worker) classOffset(pk *packet, kind uint8) uint8 {
	if pk.flags&isReply != 0 {
		return n.lanes[kind]
	}
	return 0
}

// sendRequest generates the due request of a host, unless it has no room or too many requests are under way.
func (n *worker) sendRequest(h uint32, t uint64) {
	a := n.traffic.reactive
	if a.limit > 0 && a.underWay[h] == a.limit {
		n.drop(t)
		return
	}
	id := n.create(h, n.traffic.target(n, h), t)
	if id == none {
		n.drop(t)
		return
	}
	n.packets[id].message = h
	if a.limit > 0 {
		a.underWay[h]++
	}
}

// reply makes the reply to a request whose last flit is consumed in the cycle before t, which may be in the future.
func (n *worker) reply(request *packet, t uint64) {
	h, to, flits := request.to, request.message, request.flits
	waited := uint32(min(t-request.created, none-1))
	id := n.newPacket() // may move the packets
	n.packets[id] = packet{flags: isReply}
	n.begin(id, h, to, flits, t)
	n.packets[id].message = waited
	n.traffic.reactive.replies[h].push(n, id)
	n.wakeNIC(h, t)
}

// sendReply moves a host's first reply to its router if the reply exists and there are credits for all of it. It
// reports whether it did.
func (n *worker) sendReply(h uint32, c *nic, t uint64) bool {
	list := &n.traffic.reactive.replies[h]
	if list.first == none {
		return false
	}
	id := list.first
	pk := &n.packets[id]
	if pk.created > t { // the NIC wakes up then
		return false
	}
	ch := &n.channels[(uint32(len(n.ports))+h)*n.vcs+uint32(pk.vc)]
	if !n.accepts(h, c, ch, pk.flits, t) {
		return false
	}
	list.pop(n)
	n.freeReply(h, pk.flits, t)
	if n.p.SourceQueue == 0 {
		n.put(h, id, ch, t)
		if list.first != none {
			n.wakeNIC(h, max(t+1, n.packets[list.first].created))
		}
		return true
	}
	c.sendsReply = true
	n.transmit(h, c, id, ch, t)
	return true
}

// serveReplies sends a reply of a host. It reports whether the NIC has no more to do in cycle t.
func (n *worker) serveReplies(h uint32, c *nic, t uint64) (done bool) {
	if n.p.SourceQueue == 0 {
		n.sendReply(h, c, t)
		return true
	}
	if c.linkFree <= t {
		n.sendReply(h, c, t)
	}
	if list := &n.traffic.reactive.replies[h]; list.first != none && c.linkFree > t {
		n.wakeNIC(h, max(c.linkFree, n.packets[list.first].created))
	}
	return false
}

// freeReply returns the room of a reply to the requests that wait at a host's port. They see it in the next cycle.
func (n *worker) freeReply(h, flits uint32, t uint64) {
	q := n.hostPorts[h]
	n.channels[q*n.vcs].credits += int32(flits)
	if pt := &n.ports[q]; pt.blocked {
		pt.blocked = false
		n.unpark(pt.router, t+1)
	}
}

// consume handles a packet of reactive traffic whose last flit is consumed in the cycle before t.
func (n *worker) consume(pk *packet, t uint64) {
	a := n.traffic.reactive
	switch {
	case pk.flags&isReply == 0:
		n.reply(pk, t)
	case a.limit > 0:
		to := pk.to
		id := n.newPacket() // one of this worker, which settle releases; may move the packets
		n.packets[id].head = t
		a.consumed[to].push(n, id)
		n.wakeNIC(to, t)
	}
}

// settle ends the requests of a host whose replies are consumed.
func (n *worker) settle(h uint32, t uint64) {
	a := n.traffic.reactive
	if a.limit == 0 {
		return
	}
	for list := &a.consumed[h]; list.first != none && n.packets[list.first].head <= t; {
		a.underWay[h]--
		n.release(list.pop(n))
	}
}

// ReactiveReport describes requests and replies. Latencies are means in cycles.
type ReactiveReport struct {
	Requests       uint64  `json:"requests"` // consumed
	Replies        uint64  `json:"replies"`  // received
	RequestLatency float64 `json:"request_latency"`
	ReplyLatency   float64 `json:"reply_latency"`
	RoundTrip      float64 `json:"round_trip"` // from the generation of a request to the reception of its reply
}

// reactiveReport returns the report of requests and replies, nil for other traffic.
func (n *worker) reactiveReport() *ReactiveReport {
	if n.traffic == nil || n.traffic.reactive == nil {
		return nil
	}
	c := &n.counters
	requests := c.packets - c.replies.packets
	return &ReactiveReport{Requests: requests, Replies: c.replies.packets,
		RequestLatency: ratio(c.total-c.replies.total, requests),
		ReplyLatency:   ratio(c.replies.total, c.replies.packets),
		RoundTrip:      ratio(c.replies.total+c.requested, c.replies.packets)}
}

// parseReactive parses PATTERN.
func parseReactive(text string, t *Traffic) error {
	if text == "" {
		return errors.New("reactive: expected a pattern as in reactive:uniform, found none")
	}
	return t.parseParts(text)
}

func formatReactive(t *Traffic) string { return t.Of[0] }

func checkReactive(t *Traffic, n *topology.Network) error {
	if t.MaxRequests < 0 || t.MaxRequests > maxRequests {
		return fmt.Errorf("max-requests: expected 0 to %d, found %d", maxRequests, t.MaxRequests)
	}
	return checkParts(t, n, 1)
}
