// This file implements links that fail or slow down during a run.

package packet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/sim/topology"
)

// Failure is a failure or slowdown of links. Packets in service or on the wire of a failed link still arrive, queued
// packets are lost, and switches then use the remaining paths.
type Failure = topology.Failure

// checkFailure returns an error if a failure is invalid.
func checkFailure(f *Failure, t *topology.Network) error {
	switch {
	case len(f.Links) == 0:
		return errors.New("failure: expected at least one link, found none")
	case f.At < 0 || f.Until != 0 && f.Until <= f.At:
		return fmt.Errorf("failure: expected a start of at least 0 and a later end, found %v to %v", f.At, f.Until)
	case f.Rate < 0 || f.Rate > 8e12 || f.Rate > 0 && f.Rate < slowest:
		return fmt.Errorf("failure: expected a remaining rate of 0 or %d to 8e12 bit/s, found %d", slowest, f.Rate)
	}
	for _, l := range f.Links {
		if l < 0 || l >= len(t.Links) {
			return fmt.Errorf("failure: expected a link from 0 to %[2]d, found %[1]d", l, len(t.Links)-1)
		}
	}
	return nil
}

// failures is the state of all failures of a run.
type failures struct {
	topology   *topology.Network
	list       []Failure
	down       []int                       // by link, number of failures in effect
	routes     map[string]*topology.Routes // by the set of failed links, for links that fail repeatedly
	unroutable uint64                      // packets dropped for lack of a path
}

// schedule schedules the start and the end of each failure.
func (f *failures) schedule(n *network) {
	for i := range f.list {
		n.at(uint64(f.list[i].At), failing, uint32(2*i))
		if f.list[i].Until > 0 {
			n.at(uint64(f.list[i].Until), failing, uint32(2*i+1))
		}
	}
}

// works reports whether a link works at a time, before the other events of that time.
func (f *failures) works(link int, now uint64) bool {
	for i := range f.list {
		x := &f.list[i]
		if x.Rate == 0 && uint64(x.At) <= now && (x.Until == 0 || now < uint64(x.Until)) && slices.Contains(x.Links,
			link) {
			return false
		}
	}
	return true
}

// connects reports whether there is a path from one host to another now, and the NICs of both work, before the other
// events of this time.
func (n *network) connects(from, to uint32) bool {
	failed := func(port uint32) bool { return !n.failures.works(int(port/2), n.now) }
	if n.given != nil {
		number, ok := n.given.Number(from, to)
		return ok && !slices.ContainsFunc(n.given.Route(number), failed)
	}
	return !failed(n.intact.NIC(from)) && !failed(n.intact.NIC(to)) &&
		n.routes.Paths(n.routes.Edge(from), n.routes.Edge(to)) > 0
}

// apply starts failure i/2 if i is even, and ends it if i is odd.
func (f *failures) apply(n *network, i uint32) {
	failure := &f.list[i/2]
	if n.observed != nil {
		n.observed.failure(n.now, f.topology, failure, i%2 == 1)
	}
	for _, l := range failure.Links {
		switch {
		case failure.Rate > 0 && i%2 == 0:
			n.setRate(l, failure.Rate)
		case failure.Rate > 0:
			n.setRate(l, f.topology.Links[l].Rate)
		case i%2 == 0:
			if f.down[l]++; f.down[l] == 1 {
				n.dropQueued(uint32(2 * l))
				n.dropQueued(uint32(2*l + 1))
			}
		default:
			f.down[l]--
		}
	}
	if failure.Rate > 0 {
		return
	}
	n.routes = f.currentRoutes()
	for _, l := range failure.Links {
		if f.down[l] == 0 {
			n.wake(uint32(2 * l))
			n.wake(uint32(2*l + 1))
		}
	}
}

// wake serves the next packet of an idle port, including a packet that a transport provides.
func (n *network) wake(i uint32) {
	pt := &n.ports[i]
	if pt.serving != none {
		pt.finishService(n.now)
	}
	if pt.serving == none && !pt.paused {
		n.serveNext(i, pt)
	}
}

// currentRoutes returns the routes without the failed links.
func (f *failures) currentRoutes() *topology.Routes {
	var key strings.Builder
	for l, n := range f.down {
		if n > 0 {
			fmt.Fprintf(&key, "%d ", l)
		}
	}
	routes := f.routes[key.String()]
	if routes == nil {
		var err error
		down := func(l int) bool { return f.down[l] > 0 }
		if routes, err = topology.NewRoutes(context.Background(), f.topology, down); err != nil {
			panic(err) // the network was valid with all links
		}
		f.routes[key.String()] = routes
	}
	return routes
}

// setRate sets the rate of both directions of a link, starting with the next packet.
func (n *network) setRate(link int, rate int64) {
	for i := 2 * link; i < 2*link+2; i++ {
		perByte := n.quirks.byteTimeOf(rate)
		n.ports[i].psPerByte, n.ports[i].partPerByte = uint32(perByte.ps), perByte.part
	}
}

// dropQueued drops the packets queued at a port.
func (n *network) dropQueued(i uint32) {
	pt := &n.ports[i]
	for queue := range pt.queues {
		for pt.queues[queue].head != none {
			p := n.popPacket(&pt.queues[queue])
			pt.bytes[queue] -= uint64(n.packets[p].size)
			if pt.buffer != 0 && queue == dataQueue {
				n.buffers[pt.buffer-1].used -= uint64(n.packets[p].size)
			}
			n.drop(pt, p)
		}
	}
	if pt.host != none {
		for p := n.nics[pt.host].pop(n); p != none; p = n.nics[pt.host].pop(n) {
			pt.bytes[dataQueue] -= uint64(n.packets[p].size)
			n.drop(pt, p)
		}
	}
}
