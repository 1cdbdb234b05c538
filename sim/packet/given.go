// This file forwards packets along routes that the network gives, those of platforms of SimGrid.

package packet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// exists reports whether a port is part of the network. Links of a platform may have one direction.
func (n *network) exists(port int) bool {
	return n.given == nil || n.given.Exists(port)
}

// follow sends a packet over the link after the last one on the route of its flow, or hands it to its host.
func (n *network) follow(p uint32) {
	pk := &n.packets[p]
	route := n.given.Route(n.flows[pk.flow].labelsOf(pk).fixed)
	next := slices.Index(route, pk.port) + 1
	if next == len(route) {
		n.transport.receive(p)
		return
	}
	if n.pfc != nil {
		n.pfc.enter(n, pk.port, pk.size)
	}
	out := route[next]
	switch {
	case n.failures != nil && n.failures.down[out/2] > 0:
		n.dropUnroutable(p)
	case n.given.Fat(int(out / 2)):
		n.pass(out, p)
	default:
		n.enqueue(out, p)
	}
}

// pass sends a packet over a link on which packets do not wait for each other.
func (n *network) pass(i, p uint32) {
	pt, pk := &n.ports[i], &n.packets[p]
	pt.packets++
	pt.sent += uint64(pk.size)
	n.fly(i, p, n.now+pt.byteTime().of(uint64(pk.size))+pt.latency)
}

// fly schedules the arrival of a packet over a port.
func (n *network) fly(i, p uint32, t uint64) {
	pk := &n.packets[p]
	pk.port, pk.due = i, uint64(n.ports[i].to)<<1
	n.at(t, arrival, p)
}

// handOver hands a packet that a virtual NIC starts to send to the first link of its route. The link takes at least as
// long as the NIC. The NIC keeps the flow until it ends the packet, which may be lost before.
func (n *network) handOver(i uint32, pt *port, p uint32) {
	pk := &n.packets[p]
	pt.handed = none
	if pt.discipline == fairFlows && pk.kind == data {
		pt.handed = pk.flow
		n.retain(pk.flow)
	}
	n.fly(i, p, n.now)
}

// give builds the network of the routes between the hosts of messages, with failures between all NICs of their ranks,
// and maps failures of links of the platform to it.
func (o *Options) give(p *sim.Program) (err error) {
	if o.Params.Compat != CompatNone {
		return fmt.Errorf("topology: expected no platform of SimGrid with --compat %v, whose simulator has none; "+
			"remove --compat", o.Params.Compat)
	}
	switch o.Params.Balance {
	case Valiant, UGAL:
		return fmt.Errorf("balance: expected a policy for networks whose routes are given, such as fixed, found %v",
			o.Params.Balance)
	}
	ends := topology.NewEnds(nil, nil, o.Placement.Hosts, o.Placement.NICs, p)
	spare := ends.Spare(p)
	if len(o.Failures) == 0 {
		spare = func(func(from, to uint32) bool) {}
	}
	o.Network, err = topology.FromPlatform(o.Platform, ends.Messages(p), spare)
	if err != nil {
		return err
	}
	if p, ok := o.Params.TransportParams["pfc"]; ok && p != 0 && o.Network.Given.AnyFat() {
		return errors.New("topology: expected no FATPIPE links with flow control, which could not pause them; make " +
			"them SHARED, or use --set pfc=0")
	}
	failures := make([]Failure, 0, len(o.Failures))
	for _, f := range o.Failures {
		if f.Links = o.Network.Given.Links(f.Links); len(f.Links) > 0 {
			failures = append(failures, f)
		}
	}
	o.Failures = failures
	return nil
}
