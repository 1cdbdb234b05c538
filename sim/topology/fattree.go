// This file builds fat trees with two tiers (leaf-spine) or three. Switches, links and numbers match those of htsim.

package topology

import (
	"errors"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// FatTreeTier describes the switches of a tier. Tier 0 is the ToRs, tier 1 the aggregation switches or spines, tier 2
// the cores.
type FatTreeTier struct {
	Rate          int64    // rate of the links below this tier, bit/s
	Latency       dag.Time // latency of the links below this tier
	SwitchLatency dag.Time // latency of a switch

	Down, Up int // ports per switch; 0: derived. The top tier has no ports up
	Bundle   int // parallel links to each connected switch of the tier below; 0: one. Tier 0 always has one

	// Oversubscription is the ratio of the capacities, or of the numbers, of a switch's ports down to its ports up. If
	// Up is given, it is optional (0) and must match one of both ratios. Otherwise it is the ratio of capacities, and 0
	// means 1.
	Oversubscription int

	QueueDown, QueueUp int64 // queue capacity per port down and per port up, in bytes; 0: not specified
}

// FatTreeParams describes a fat tree. Within a pod, every ToR is connected to every aggregation switch. With three
// tiers, each core is connected to one aggregation switch of each pod. With two tiers there is one pod.
type FatTreeParams struct {
	// Hosts is the number of hosts; 0: that of a tree of switches with K ports, K*K*K/4 with three tiers and K*K/2 with
	// two.
	Hosts int
	// K is the even number of ports of a switch. It is used only if the ports of ToRs or the hosts of a pod are not
	// given; 0: the K that matches Hosts.
	K int
	// PodHosts is the number of hosts per pod; 0: K*K/4, or all hosts with two tiers.
	PodHosts int
	Tiers    []FatTreeTier // two or three
}

// FatTree builds a fat tree. Host h is connected to ToR h / (ports down of a ToR). With a aggregation switches per pod,
// core c is connected to aggregation switch c mod a of each pod. Links are in this order: host links; links by ToR and
// aggregation switch; links by aggregation switch and core. Links of a bundle are adjacent. The candidates of
// [Routes.Next] have the same order.
//
// [Network.FatTree] has the complete parameters.
func FatTree(p FatTreeParams) (*Network, error) {
	n, err := fatTree(p)
	if err != nil {
		return nil, fmt.Errorf("fat tree: %w", err)
	}
	return n, nil
}

func fatTree(p FatTreeParams) (*Network, error) {
	p.Tiers = append([]FatTreeTier(nil), p.Tiers...)
	if err := p.complete(); err != nil {
		return nil, err
	}
	tors, aggs, cores := p.tors(), p.aggs(), p.Cores()
	links := p.Hosts + tors*p.Tiers[0].Up
	if len(p.Tiers) == 3 {
		links += aggs * p.Tiers[1].Up
	}
	if links > maxLinks {
		return nil, fmt.Errorf("expected at most %d links, found %d", maxLinks, links)
	}
	n := &Network{Hosts: p.Hosts, FatTree: &p, Links: make([]Link, 0, links), Name: func(node uint32) string {
		switch number := int(node) - p.Hosts; {
		case number < 0:
			return numbered("host", int(node))
		case number < tors:
			return numbered(tierNames[0], number)
		case number < tors+aggs:
			return numbered(tierNames[1], number-tors)
		default:
			return numbered(tierNames[2], number-tors-aggs)
		}
	}}
	for t, count := range []int{tors, aggs, cores}[:len(p.Tiers)] {
		for range count {
			n.Tier = append(n.Tier, int8(t))
			n.SwitchLatency = append(n.SwitchLatency, p.Tiers[t].SwitchLatency)
		}
	}
	n.Switches = len(n.Tier)
	for host := range p.Hosts {
		n.bundle(uint32(host), n.node(host/p.Tiers[0].Down), &p.Tiers[0])
	}
	aggsPerPod := p.aggsPerPod()
	for tor := range tors {
		pod := tor / p.torsPerPod()
		for a := range aggsPerPod {
			n.bundle(n.node(tor), n.node(tors+pod*aggsPerPod+a), &p.Tiers[1])
		}
	}
	for agg := range aggs {
		for core := agg % aggsPerPod; core < cores; core += aggsPerPod {
			n.bundle(n.node(tors+agg), n.node(tors+aggs+core), &p.Tiers[2])
		}
	}
	return n, n.Validate()
}

// bundle adds the links between a and b; t is the tier of b.
func (n *Network) bundle(a, b uint32, t *FatTreeTier) {
	for range t.Bundle {
		n.Links = append(n.Links, Link{A: a, B: b, Rate: t.Rate, Latency: t.Latency})
	}
}

// tors returns the number of ToRs. This and the following methods need complete parameters, as in [Network.FatTree].
func (p *FatTreeParams) tors() int { return p.Hosts / p.Tiers[0].Down }

// aggs returns the number of aggregation switches, or of spines with two tiers.
func (p *FatTreeParams) aggs() int { return p.pods() * p.aggsPerPod() }

// Cores returns the number of core switches, or 0 with two tiers.
func (p *FatTreeParams) Cores() int {
	if len(p.Tiers) == 2 {
		return 0
	}
	return p.aggsPerPod() * (p.Tiers[1].Up / p.Tiers[2].Bundle)
}

func (p *FatTreeParams) pods() int       { return p.Hosts / p.PodHosts }
func (p *FatTreeParams) torsPerPod() int { return p.PodHosts / p.Tiers[0].Down }
func (p *FatTreeParams) aggsPerPod() int { return p.Tiers[0].Up / p.Tiers[1].Bundle }

// CoreLink returns link number up, from 0, of an aggregation switch's links to cores. htsim's connection matrices
// identify a failed link by the same numbers, switch_id and link_id.
func (n *Network) CoreLink(agg, up int) (link int, err error) {
	p := n.FatTree
	if p == nil || len(p.Tiers) != 3 {
		return 0, errors.New("expected a fat tree of three tiers, which has links between aggregation switches and " +
			"cores")
	}
	switch {
	case agg < 0 || agg >= p.aggs():
		return 0, fmt.Errorf("expected an aggregation switch from 0 to %d, found %d", p.aggs()-1, agg)
	case up < 0 || up >= p.Tiers[1].Up:
		return 0, fmt.Errorf("expected a link of agg%d up from 0 to %d, found %d", agg, p.Tiers[1].Up-1, up)
	}
	return p.Hosts + p.tors()*p.Tiers[0].Up + agg*p.Tiers[1].Up + up, nil
}

// Queue returns the queue capacity in bytes that the network specifies for a switch's output port, or 0 if it specifies
// none.
func (n *Network) Queue(port int) int64 {
	if n.FatTree == nil {
		return 0
	}
	link := n.Links[port/2]
	from, up := link.A, port%2 == 0
	if !up {
		from = link.B
	}
	if int(from) < n.Hosts {
		return 0
	}
	tier := &n.FatTree.Tiers[n.Tier[int(from)-n.Hosts]]
	if up {
		return tier.QueueUp
	}
	return tier.QueueDown
}

// complete derives missing parameters and checks the given ones.
func (p *FatTreeParams) complete() error {
	if len(p.Tiers) != 2 && len(p.Tiers) != 3 {
		return fmt.Errorf("expected 2 or 3 tiers, found %d", len(p.Tiers))
	}
	for t := range p.Tiers {
		if err := p.Tiers[t].check(); err != nil {
			return fmt.Errorf("tier %d: %w", t, err)
		}
	}
	tor, agg, top := &p.Tiers[0], &p.Tiers[1], &p.Tiers[len(p.Tiers)-1]
	switch {
	case tor.Bundle != 1:
		return fmt.Errorf("tier 0: expected a bundle of 1 since a host has one link, found %d", tor.Bundle)
	case top.Up != 0 || top.QueueUp != 0:
		return fmt.Errorf("tier %d: expected no ports up from the top tier", len(p.Tiers)-1)
	case top.Oversubscription > 1:
		return fmt.Errorf("tier %d: expected no oversubscription of the top tier, found %d", len(p.Tiers)-1,
			top.Oversubscription)
	}
	if err := p.completeSize(); err != nil {
		return err
	}
	if p.PodHosts < 1 || p.Hosts%p.PodHosts != 0 {
		return fmt.Errorf("expected a multiple of the pod's %d hosts, found %d hosts",
			p.PodHosts, p.Hosts)
	}
	if p.PodHosts%tor.Down != 0 {
		return fmt.Errorf("expected a multiple of the ToR's %d hosts per pod, found %d hosts", tor.Down,
			p.PodHosts)
	}
	if err := p.completeUp(0); err != nil {
		return err
	}
	if err := fit(&agg.Down, p.torsPerPod()*agg.Bundle); err != nil {
		return fmt.Errorf("tier 1: %w, %d for each of a pod's %d ToRs", err, agg.Bundle, p.torsPerPod())
	}
	if len(p.Tiers) == 2 {
		return nil
	}
	if err := p.completeUp(1); err != nil {
		return err
	}
	if err := fit(&top.Down, p.pods()*top.Bundle); err != nil {
		return fmt.Errorf("tier 2: %w, %d for each of %d pods", err, top.Bundle, p.pods())
	}
	return nil
}

// check checks the parameters of a single tier.
func (t *FatTreeTier) check() error {
	if t.Bundle == 0 {
		t.Bundle = 1
	}
	for _, count := range []struct {
		name  string
		value int
	}{
		{"ports down", t.Down}, {"ports up", t.Up}, {"bundle", t.Bundle}, {"oversubscription", t.Oversubscription},
	} {
		if count.value < 0 || count.value > maxPorts {
			return fmt.Errorf("%s: expected at most %d, found %d", count.name, maxPorts, count.value)
		}
	}
	switch {
	case t.QueueDown < 0 || t.QueueUp < 0:
		return fmt.Errorf("expected queues of 0 bytes or more, found %d and %d", t.QueueDown, t.QueueUp)
	case t.Rate < 1 || t.Rate > maxRate:
		return fmt.Errorf("expected a rate of 1bps to 8Tbps, found %dbps", t.Rate)
	}
	return nil
}

// completeSize derives the numbers of hosts: of the tree, per pod and per ToR.
func (p *FatTreeParams) completeSize() error {
	three := len(p.Tiers) == 3
	tor := &p.Tiers[0]
	switch {
	case p.Hosts < 0 || p.Hosts > maxNodes:
		return fmt.Errorf("expected at most %d hosts, found %d", maxNodes, p.Hosts)
	case p.PodHosts < 0 || p.PodHosts > maxNodes:
		return fmt.Errorf("expected at most %d hosts in a pod, found %d", maxNodes, p.PodHosts)
	case p.K < 0 || p.K > 4096 || p.K%2 != 0:
		return fmt.Errorf("expected an even k from 2 to 4096, found %d", p.K)
	}
	if !three && p.PodHosts == 0 {
		p.PodHosts = p.Hosts
	}
	size, formula := func(k int) int { return k * k / 2 }, "k^2/2"
	if three {
		size, formula = func(k int) int { return k * k * k / 4 }, "k^3/4"
	}
	if p.Hosts == 0 || tor.Down == 0 || p.PodHosts == 0 {
		if p.K == 0 {
			if p.Hosts == 0 {
				return errors.New("expected hosts or k, found neither")
			}
			for p.K = 2; size(p.K) < p.Hosts; p.K += 2 {
			}
			if size(p.K) != p.Hosts {
				return fmt.Errorf("expected %s hosts with an even k, unless tor and pod are given, "+
					"found %d", formula, p.Hosts)
			}
		}
		if p.Hosts == 0 {
			p.Hosts = size(p.K)
		}
		if p.Hosts > maxNodes {
			return fmt.Errorf("expected at most %d hosts, found %d", maxNodes, p.Hosts)
		}
		if tor.Down == 0 {
			tor.Down = p.K / 2
		}
		switch {
		case p.PodHosts != 0:
		case three:
			p.PodHosts = p.K * p.K / 4
		default:
			p.PodHosts = p.Hosts
		}
	}
	if !three && p.PodHosts != p.Hosts {
		return fmt.Errorf("expected one pod of all %d hosts with two tiers, found pods of %d", p.Hosts,
			p.PodHosts)
	}
	return nil
}

// completeUp derives or checks the ports up of tier t, given those down.
func (p *FatTreeParams) completeUp(t int) error {
	low, high := &p.Tiers[t], &p.Tiers[t+1]
	if low.Down > maxPorts {
		return fmt.Errorf("tier %d: expected at most %d ports down, found %d", t, maxPorts, low.Down)
	}
	down, up := int64(low.Down)*low.Rate, high.Rate // maxPorts * maxRate fits
	switch over := int64(low.Oversubscription); {
	case low.Up == 0:
		if over == 0 {
			low.Oversubscription, over = 1, 1
		}
		if over > math.MaxInt64/up || down%(up*over) != 0 {
			return fmt.Errorf("tier %d: expected a whole number of ports up, found %d ports of %dbps down, "+
				"%dbps up and an oversubscription of %d", t, low.Down, low.Rate, up, over)
		}
		ports := down / (up * over)
		if ports > maxPorts {
			return fmt.Errorf("tier %d: expected at most %d ports up, found %d", t, maxPorts, ports)
		}
		low.Up = int(ports)
	case over == 0:
	case int64(low.Down/low.Up) == over: // htsim's rule: the ratio of port numbers, regardless of rates
	case over <= math.MaxInt64/(up*int64(low.Up)) && up*int64(low.Up)*over == down:
	default:
		return fmt.Errorf("tier %d: expected an oversubscription of %.4g, found %d: a switch has %d ports of %dbps "+
			"down, %d of %dbps up", t, float64(down)/(float64(low.Up)*float64(up)), over, low.Down,
			low.Rate, low.Up, up)
	}
	if low.Up%high.Bundle != 0 {
		return fmt.Errorf("tier %d: expected a multiple of the bundle of tier %d as ports up, "+
			"%d, found %d", t, t+1, high.Bundle, low.Up)
	}
	return nil
}

// fit sets a number of ports that is not given, and checks one that is given.
func fit(ports *int, want int) error {
	if *ports == 0 {
		*ports = want
	}
	if *ports != want {
		return fmt.Errorf("expected %d ports down, found %d", want, *ports)
	}
	return nil
}
