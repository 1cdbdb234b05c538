// This file is links that fail or get slower in the course of a run.

package packet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// Failure is that links fail, or have another rate, for a time. What is being sent or on the wire when a link fails still
// arrives, what waits for it is lost, and from then on switches know the ways that are left.
type Failure struct {
	Links     []int    // of topology.Network.Links
	At, Until dag.Time // Until is 0: for good
	Rate      int64    // bit/s that are left of each; 0: none
}

// check returns what is wrong with a failure.
func (f *Failure) check(t *topology.Network) error {
	switch {
	case len(f.Links) == 0:
		return errors.New("a failure of no link")
	case f.At < 0 || f.Until != 0 && f.Until <= f.At:
		return fmt.Errorf("a failure from %v to %v", f.At, f.Until)
	case f.Rate < 0 || f.Rate > 8e12:
		return fmt.Errorf("a failure that leaves %d bit/s, expected 0 to 8e12", f.Rate)
	}
	for _, l := range f.Links {
		if l < 0 || l >= len(t.Links) {
			return fmt.Errorf("a failure of link %d, expected 0 to %d", l, len(t.Links)-1)
		}
	}
	return nil
}

// failures are those of a run.
type failures struct {
	topology   *topology.Network
	list       []Failure
	down       []int                       // of each link, failures that are under way
	routes     map[string]*topology.Routes // by the links that are down, for links that come and go
	unroutable uint64                      // packets for which there was no way
}

// schedule schedules the beginnings and ends of failures.
func (f *failures) schedule(n *network) {
	for i := range f.list {
		n.at(uint64(f.list[i].At), failing, uint32(2*i))
		if f.list[i].Until > 0 {
			n.at(uint64(f.list[i].Until), failing, uint32(2*i+1))
		}
	}
}

// happen has failure i/2 begin, or end where i is odd.
func (f *failures) apply(n *network, i uint32) {
	failure := &f.list[i/2]
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

// wake has a port send what there is: of a link that works again, there may be what its transport has for it.
func (n *network) wake(i uint32) {
	pt := &n.ports[i]
	if pt.serving != none {
		pt.finishService(n.now)
	}
	if pt.serving == none && !pt.paused {
		n.serveNext(i, pt)
	}
}

// routesNow returns the routes without the links that are down.
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
		if routes, err = topology.NewRoutes(f.topology, func(l int) bool { return f.down[l] > 0 }); err != nil {
			panic(err) // the same network was possible with all links
		}
		f.routes[key.String()] = routes
	}
	return routes
}

// setRate gives both directions of a link a rate, from the next packet on.
func (n *network) setRate(link int, rate int64) {
	for i := 2 * link; i < 2*link+2; i++ {
		n.ports[i].psPerByte = uint32(picosecondsPerByte(rate))
	}
}

// clear drops what waits at a port.
func (n *network) dropQueued(i uint32) {
	pt := &n.ports[i]
	for queue := range pt.queues {
		for pt.queues[queue].head != none {
			p := n.popPacket(&pt.queues[queue])
			pt.bytes[queue] -= uint64(n.packets[p].size)
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
