// This file checks that the routing of a network is deadlock-free, with its channel dependency graph (Dally and Seitz,
// 1987). The nodes of the graph are the virtual channels of the links between routers. An edge leads from a channel to
// each channel that a packet in it may request. Without a cycle, packets cannot wait for each other in a circle. For
// routings with free and ordered channels, the graph contains the ordered channels only: every packet may enter them at
// any router and does not leave them.

package flit

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/tracedag/tracedag/sim"
)

// dependencies is the channel dependency graph.
type dependencies struct {
	n    *worker
	at   []int    // by channel: start of its bits
	bits []uint64 // by channel: one bit per output port and virtual channel of the router at its end
	seen []uint32 // by channel: last target of a visit
}

// mostPairs is the largest number of router pairs up to which the check includes trees, dragonflies and meshes, whose
// routing is free of cycles by construction. Other networks are checked at any size.
const mostPairs = 1 << 26

// checkDependencies returns an error with a cycle, if there is one, or the context's error if the context ends.
func checkDependencies(ctx context.Context, n *worker) error {
	if p := n.routing.paths; (p == nil || p.tree) && n.routers*n.routers > mostPairs {
		return nil
	}
	g := &dependencies{n: n, at: make([]int, len(n.ports)*int(n.vcs)+1), seen: make([]uint32, len(n.ports)*int(n.vcs))}
	words := 0
	for q := range n.ports {
		w := 0
		if pt := &n.ports[q]; pt.kind != hostPort {
			r := n.ports[pt.peer].router
			w = g.words(r)
		}
		for v := range n.vcs {
			g.at[q*int(n.vcs)+int(v)] = words
			words += w
		}
	}
	g.at[len(g.at)-1] = words
	if words > 1<<28 {
		return errors.New("the network has too many virtual channels to check its routing for deadlock; " +
			"use fewer routers or virtual channels")
	}
	g.bits = make([]uint64, words)
	if err := g.explore(ctx); err != nil {
		return err
	}
	if cycle := g.cycle(); cycle != nil {
		return fmt.Errorf("routing %v may deadlock: %s", n.p.Routing, n.chain(cycle))
	}
	return nil
}

// words returns the number of words for the channels of a router's outputs.
func (g *dependencies) words(r uint32) int {
	return int((g.n.base[r+1]-g.n.base[r])*g.n.vcs+63) / 64
}

// explore adds all edges unless the context ends.
func (g *dependencies) explore(ctx context.Context) error {
	n := g.n
	var target []uint32 // by router: one of its hosts
	known := make([]bool, n.routers)
	for h, r := range n.edge {
		if !known[r] {
			known[r] = true
			target = append(target, uint32(h))
		}
	}
	var landings *landings
	if n.routing.transit != nil || n.routing.routers {
		g.follow()
		return nil
	}
	if n.routing.dragonfly != nil && n.p.Routing != Minimal {
		landings = g.detours(target)
	}
	stamp := uint32(0)
	for _, to := range target {
		stamp++
		if err := sim.Interrupted(ctx); err != nil {
			return err
		}
		for _, from := range target {
			if from == to {
				continue
			}
			pk := packet{to: to, via: none}
			if n.routing.paths != nil {
				g.spread(n.edge[from], pk, none, stamp)
			} else {
				g.walk(n.edge[from], pk, none, stamp)
			}
			if landings != nil {
				pk.stage = landings.stage
				landings.record(n.edge[from], g.walk(n.edge[from], pk, none, none))
			}
		}
	}
	if landings != nil {
		landings.join()
	}
	return nil
}

// follow adds the edges of dragonflies in which packets take any hop that the sequence of virtual channels has. These
// are at least those of all paths through a router, and of the minimal paths that are open to every packet that is
// routed in transit, which may wait for these only (Duato, A necessary and sufficient condition for deadlock-free
// routing in cut-through and store-and-forward networks, 1996).
func (g *dependencies) follow() {
	n, s := g.n, g.n.routing.sequence
	for q := range n.ports {
		pt := &n.ports[q]
		if pt.kind == hostPort {
			continue
		}
		for place, kind := range s.kinds {
			if kind != pt.kind {
				continue
			}
			for out := n.base[pt.beyond]; out < n.base[pt.beyond+1]; out++ {
				next := n.ports[out].kind
				stage, vc := s.hop(uint8(place)+1, next)
				if next != hostPort && stage != noStage {
					g.add(uint32(q)*n.vcs+uint32(s.vcs[place]), out*n.vcs+uint32(vc))
				}
			}
		}
	}
}

// walk follows a packet from a router until it arrives, or until an earlier walk to the same target visited the same
// channel. It returns the first channel, or none.
func (g *dependencies) walk(at uint32, pk packet, before, stamp uint32) (first uint32) {
	n := g.n
	first = none
	for {
		n.routing.route(n, at, &pk)
		if n.ports[pk.out].kind == hostPort {
			return first
		}
		channel := pk.out*n.vcs + uint32(pk.vc)
		if before != none {
			g.add(before, channel)
		}
		if first == none {
			first = channel
		}
		if stamp != none {
			if g.seen[channel] == stamp {
				return first
			}
			g.seen[channel] = stamp
		}
		before = channel
		at = n.ports[n.ports[pk.out].peer].router
		pk.hops++
	}
}

// spread is walk along all shortest paths.
func (g *dependencies) spread(at uint32, pk packet, before, stamp uint32) {
	n, p := g.n, g.n.routing.paths
	if at == n.edge[pk.to] {
		return
	}
	pk.vc = p.vc(n, &pk)
	for _, link := range p.routes.Next(at, n.edge[pk.to]) {
		out := p.links[link]
		channel := out*n.vcs + uint32(pk.vc)
		if before != none {
			g.add(before, channel)
		}
		if g.seen[channel] == stamp {
			continue
		}
		g.seen[channel] = stamp
		next := pk
		next.hops++
		g.spread(n.ports[n.ports[out].peer].router, next, channel, stamp)
	}
}

// add adds an edge.
func (g *dependencies) add(from, to uint32) {
	n := g.n
	r := n.ports[n.ports[from/n.vcs].peer].router
	bit := to - n.base[r]*n.vcs
	g.bits[g.at[from]+int(bit/64)] |= 1 << (bit % 64)
}

// landings records, per router of a dragonfly, the channels on which packets arrive that detour through its group, and
// the channels on which they continue.
type landings struct {
	g     *dependencies
	stage uint8
	came  [][]uint32
	goes  [][]uint64
}

// detours follows packets from all routers to all groups that they may detour through.
func (g *dependencies) detours(target []uint32) *landings {
	n, d := g.n, g.n.routing.dragonfly
	l := &landings{g: g, came: make([][]uint32, n.routers), goes: make([][]uint64, n.routers)}
	known := make([]bool, len(g.seen))
	for r := range uint32(n.routers) {
		l.goes[r] = make([]uint64, g.words(r))
		for group := range d.Groups {
			if group == d.Group(int(r)) {
				continue
			}
			// The target is in the group of r: the packet is still on its detour when it reaches the intermediate
			// group.
			pk, at, before := packet{to: target[int(r)/d.A*d.A], via: uint32(group)}, r, uint32(none)
			for d.Group(int(at)) != group {
				n.routing.route(n, at, &pk)
				channel := pk.out*n.vcs + uint32(pk.vc)
				if before != none {
					g.add(before, channel)
				}
				before, at = channel, n.ports[n.ports[pk.out].peer].router
			}
			l.stage = pk.stage
			if !known[before] {
				known[before] = true
				l.came[at] = append(l.came[at], before)
			}
		}
	}
	return l
}

// record records that packets that landed at a router continue on a channel.
func (l *landings) record(at, channel uint32) {
	if channel != none {
		bit := channel - l.g.n.base[at]*l.g.n.vcs
		l.goes[at][bit/64] |= 1 << (bit % 64)
	}
}

// join adds the edges from arrival channels to continuation channels.
func (l *landings) join() {
	for r := range l.came {
		for _, channel := range l.came[r] {
			for w, word := range l.goes[r] {
				l.g.bits[l.g.at[channel]+w] |= word
			}
		}
	}
}

// cycle returns the channels of a cycle, or nil if there is none, by depth-first search.
func (g *dependencies) cycle() []uint32 {
	n := g.n
	const (
		fresh = iota
		open
		closed
	)
	state := make([]uint8, len(g.seen))
	type frame struct {
		channel uint32
		word    int
		rest    uint64 // remaining bits of the word
	}
	var stack []frame
	push := func(channel uint32) {
		state[channel] = open
		stack = append(stack, frame{channel: channel, word: -1})
	}
	for start := range g.seen {
		if state[start] == fresh {
			push(uint32(start))
		}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			words := g.bits[g.at[f.channel]:g.at[f.channel+1]]
			for f.rest == 0 && f.word+1 < len(words) {
				f.word++
				f.rest = words[f.word]
			}
			if f.rest == 0 {
				state[f.channel] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			bit := uint32(f.word*64 + bits.TrailingZeros64(f.rest))
			f.rest &= f.rest - 1
			r := n.ports[n.ports[f.channel/n.vcs].peer].router
			switch next := n.base[r]*n.vcs + bit; state[next] {
			case fresh:
				push(next)
			case open:
				cycle := []uint32{}
				for _, f := range stack {
					if len(cycle) > 0 || f.channel == next {
						cycle = append(cycle, f.channel)
					}
				}
				return cycle
			}
		}
	}
	return nil
}

// chain formats channels each of which waits for the next, and the last for the first.
func (n *worker) chain(channels []uint32) string {
	const most = 16
	var b strings.Builder
	for i, c := range channels {
		if i == most {
			fmt.Fprintf(&b, "... (%d more) -> ", len(channels)-most)
			break
		}
		b.WriteString(n.channelName(c) + " -> ")
	}
	return b.String() + n.channelName(channels[0])
}

// channelName formats a virtual channel of a link between routers.
func (n *worker) channelName(c uint32) string {
	pt := &n.ports[c/n.vcs]
	hosts := uint32(n.hosts)
	return fmt.Sprintf("%s-%s VC %d", n.topology.Name(pt.router+hosts), n.topology.Name(n.ports[pt.peer].router+hosts),
		c%n.vcs)
}
