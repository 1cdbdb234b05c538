// This file warns about runs whose result may mislead: an unused network, thresholds below a round trip, parameters
// without effect, too few packets.

package packet

import (
	"fmt"
	"sync"

	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
)

// warnBefore warns before a run. Runs that reproduce a reference simulator have its parameters on purpose.
func warnBefore(p *sim.Program, n *network, o *Options) {
	if unused := o.Network.UnusedFabric(n.ends.Messages(p)); unused != "" {
		o.warn("%s", unused)
	}
	if o.Params.Compat == CompatNone {
		n.warnQueues(o)
		n.warnIneffective(o)
	}
}

// warnAfter warns after a run.
func warnAfter(r *Report, n *network, o *Options, flows bool) {
	if o.Params.Compat != CompatNone {
		return
	}
	n.warnPauses(o)
	if flows {
		warnFew(r, o)
	}
}

// warnQueues warns about a capacity below the bandwidth-delay product, other than that of lossless queues.
func (n *network) warnQueues(o *Options) {
	if most := n.bandwidthDelay(); n.pfc == nil && o.given("queue") && uint64(o.Params.Queue) < most {
		o.warn("--queue %s is less than the bandwidth-delay product of %s, the round trip at the rate of a link: "+
			"ports drop or trim bursts of a window and may be idle before more data arrives; use --queue %s",
			units.FormatSize(o.Params.Queue), units.FormatSize(int64(most)), units.FormatSize(int64(most)))
	}
}

// given reports whether the caller set a parameter.
func (o *Options) given(name string) bool {
	return o.Given != nil && o.Given(name)
}

// warnPauses warns about pauses of links whose round trip exceeds the resume threshold: after a pause, the queue is
// empty before data arrives again.
func (n *network) warnPauses(o *Options) {
	if n.pfc == nil {
		return
	}
	pauses := uint64(0)
	var worst *port
	most := uint64(0)
	for i := range n.ports {
		pt := &n.ports[i]
		if pt.toHost || pt.pausesReceived == 0 {
			continue
		}
		pauses += uint64(pt.pausesReceived)
		delay := pauseDelay(pt, o.Params.TransportParams["pfc-delay"]) + pt.wireLatency
		if trip := uint64(float64(delay)/pt.byteTime().float()) + uint64(n.fullSize); trip > most {
			worst, most = pt, trip
		}
	}
	if worst == nil || n.pfc.xon >= most {
		return
	}
	low, high := o.Params.TransportParams["pfc-low"], o.Params.TransportParams["pfc-high"]
	need := (most + uint64(o.Params.MSS) - 1) / uint64(o.Params.MSS)
	o.warn("pfc-low=%v, %s, is less than the %s on the round trip of a link of %.4g Gb/s: after each of %d "+
		"pauses, ports may be idle until data arrives again; use --set pfc-low=%d,pfc-high=%d", low,
		units.FormatSize(int64(n.pfc.xon)), units.FormatSize(int64(most)), 8e3/worst.byteTime().float(), pauses, need,
		need+max(1, uint64(high-low)))
}

// warnIneffective warns about parameters that were given but have no effect with the others.
func (n *network) warnIneffective(o *Options) {
	p := &o.Params
	t, err := FindTransport(p.Transport)
	if err != nil || o.Given == nil {
		return
	}
	d := discipline(0)
	for i := range n.ports {
		if pt := &n.ports[i]; pt.host == none {
			d = pt.discipline
			break
		}
	}
	paths := sync.OnceValue(func() bool { return n.given == nil && n.severalPaths(o.Network.Switches) })
	single := "the network has one path between any two hosts; use a topology with several"
	ports := fmt.Sprintf("switch ports with the queueing discipline %s", queueings[d])
	twoQueues := d == trimming || d == controlFirst || d == markingFirst || d == aeolus
	marks := d == trimming || d == markingDropTail || d == markingFirst || d == lossless
	htsim := p.Coupling.Rules == CompatHTSim
	for _, c := range []struct {
		name  string
		none  bool
		cause string
	}{
		{"buffer", !d.shares(), ports + " do not share a buffer; use --queue"},
		{"buffer-share", n.buffers == nil, "ports do not share a buffer; use it with --buffer or without --queue"},
		{"control-ratio", !twoQueues, ports + " have one queue; use --queueing trim or priority"},
		{"control-queue", !twoQueues, ports + " have one queue; use --queueing trim or priority"},
		{"ecn", !marks, ports + " do not mark; use --queueing ecn"},
		{"ecn", marks && t.ignoresMarks,
			"the transport " + t.Name + " ignores marks; use one that reacts, such as dctcp"},
		{"entropy", p.Balance != Spray,
			fmt.Sprintf("--balance %v has no entropy values; use --balance spray", p.Balance)},
		{"flowlet-gap", p.Balance != Flowlet, fmt.Sprintf("--balance %v has no flowlets; use --balance flowlet",
			p.Balance)},
		{"flowlet-gap", p.Balance == Flowlet && o.Given("flowlet-gap") && !paths(), single},
		{"balance", p.Balance != Valiant && p.Balance != UGAL && o.Given("balance") && !paths(), single},
		{"o", htsim, "the coupling htsim has no processor time; use --coupling own"},
		{"g", htsim, "the coupling htsim has no gap; use --coupling own"},
		{"S", htsim, "the coupling htsim has no rendezvous; use --coupling own"},
		{"ack-ends", htsim, "with the coupling htsim, sends always end with the last ACK; use --coupling own"},
	} {
		if c.none && o.Given(c.name) {
			o.warn("--%s has no effect: %s", c.name, c.cause)
		}
	}
	if t.goBackN && p.Balance.reorders() && paths() {
		o.warn("--balance %v sends packets of a message over several paths, but %s takes packets out of order for "+
			"losses and goes back: use --balance flow, host or fixed, or a transport for several paths",
			p.Balance, t.Name)
	}
}

// severalPaths reports whether a switch can send packets to some host over several ports.
func (n *network) severalPaths(switches int) bool {
	seen := make([]bool, switches)
	for host := range n.hosts {
		edge := n.intact.Edge(host)
		if seen[edge] {
			continue
		}
		seen[edge] = true
		for sw := range uint32(switches) {
			if sw != edge && len(n.intact.Next(sw, edge)) > 1 {
				return true
			}
		}
	}
	return false
}

// reorders reports whether a policy may send packets of a flow over several paths.
func (b Balance) reorders() bool {
	switch b {
	case ByFlow, ByHost, Fixed:
		return false
	}
	return true
}

// enoughPackets is the number of data packets below which distributions of a list of flows are unreliable.
const enoughPackets = 1000

// warnFew warns about lists of several flows, whose result is a distribution, with few packets.
func warnFew(r *Report, o *Options) {
	packets, flows := uint64(0), 0
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Delivered > 0 {
			packets += packetCount(f.Bytes, uint64(o.Params.MSS))
			flows++
		}
	}
	if len(r.Flows) > 1 && packets < enoughPackets {
		o.warn("only %d packets of %d flows were measured, expected at least %d: means, percentiles and loads are "+
			"unreliable; use more or larger flows", packets, flows, enoughPackets)
	}
}
