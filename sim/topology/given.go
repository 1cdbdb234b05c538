// This file builds networks whose routes are given: those of platform files of SimGrid.

package topology

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim/platform"
)

// IsPlatform reports whether a topology is a platform file of SimGrid, by the ending of its name.
func IsPlatform(text string) bool { return strings.EqualFold(filepath.Ext(text), ".xml") }

// Param declares the parameter for the specification or file of a network, or for a platform file of SimGrid.
func Param(text *string) param.Param {
	return ParamAbout(text, "network: specification such as fattree:k=8,rate=200Gbps or "+
		"leafspine:hosts=128,tor=16,spines=16, .topo file, link list or platform of SimGrid (.xml)")
}

// ParamAbout is Param with a description, for backends with other networks.
func ParamAbout(text *string, about string) param.Param {
	return param.String(text, "topology", about).Placeholder("network").Offer(Completions()...).OrFile()
}

// Given has explicit routes, one per pair of hosts, instead of shortest paths. Ends of links are at one switch if a
// route connects them, or if they are ends of both directions of a link. These directions are one link of the network
// if their rates and latencies are equal. Other links have one port, 2*l.
type Given struct {
	pairs   [][2]uint32          // source and destination, by number of the route
	routes  [][]uint32           // ports, by number of the route
	numbers map[[2]uint32]uint32 // of routes, by source and destination
	nics    []uint32             // by host: port
	names   []string             // by port; "": the port does not exist
	virtual int                  // the first of the virtual links
	fat     []bool               // by link
	links   []int                // by link of the platform: that of the network; -1: none
}

// Pairs returns the source and the destination of each route.
func (g *Given) Pairs() [][2]uint32 { return g.pairs }

// Number returns the number of the route from one host to another, and whether there is one.
func (g *Given) Number(from, to uint32) (number uint32, ok bool) {
	number, ok = g.numbers[[2]uint32{from, to}]
	return number, ok
}

// Route returns the ports of a route by its number. Callers must not modify them.
func (g *Given) Route(number uint32) []uint32 { return g.routes[number] }

// Fat reports whether a link limits each message, not their sum: packets do not wait for each other.
func (g *Given) Fat(link int) bool { return g.fat[link] }

// AnyFat reports whether there is such a link.
func (g *Given) AnyFat() bool { return slices.Contains(g.fat, true) }

// Virtual reports whether a link stands between a host and the first links of its routes, which it feeds at the rate of
// the fastest one without a delay of its own. It is in no route. Other hosts have a link of their own.
func (g *Given) Virtual(link int) bool { return link >= g.virtual }

// Exists reports whether a port is one of a link of the platform.
func (g *Given) Exists(port int) bool { return g.names[port] != "" && !g.Virtual(port/2) }

// Links returns the links of the network for those of the platform, without the ones that no route uses.
func (g *Given) Links(links []int) (used []int) {
	for _, l := range links {
		if link := g.links[l]; link >= 0 {
			used = append(used, link)
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// FromPlatform returns the network of the routes of a platform between pairs of hosts, in both directions. Pairs of one
// host are skipped, and spare pairs without both routes. It returns an error for routes that packets cannot take: those
// with a link twice, with a latency beyond that of their links, and with a FATPIPE link that is slower than all links
// before it, which would have to limit each message.
func FromPlatform(p *platform.Platform, pairs, spare iter.Seq2[uint32, uint32]) (*Network, error) {
	b := &givenBuilder{p: p, router: platform.NewRouter(p), used: make(map[uint32]*givenLink),
		g: &Given{numbers: make(map[[2]uint32]uint32), links: slices.Repeat([]int{-1}, len(p.Links))},
		n: &Network{Hosts: len(p.Hosts)}}
	b.n.Given = b.g
	for from, to := range pairs {
		if err := b.addPair(from, to); err != nil {
			return nil, err
		}
	}
	tried := make(map[[2]uint32]bool)
	for from, to := range spare {
		pair := [2]uint32{from, to}
		if !tried[pair] && b.routed(from, to) && b.routed(to, from) {
			if err := b.addPair(from, to); err != nil {
				return nil, err
			}
		}
		tried[pair] = true
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.n, nil
}

// givenBuilder builds a network.
type givenBuilder struct {
	p      *platform.Platform
	router *platform.Router
	g      *Given
	n      *Network
	used   map[uint32]*givenLink // by link of the platform
	joins  []uint32              // by end of a link: another end at the same place, or itself; see root
}

// givenLink is a link that routes use.
type givenLink struct {
	Link
	tail, head  uint32 // ends, as in joins
	first, last single // hosts whose routes begin or end with it
	middle      bool   // it has links before and behind it in a route
	nic         bool   // it is the NIC of the host first
	port        uint32
}

// single is none, one or several values.
type single struct {
	value uint32 // the first
	count int    // 2: several
}

func (s *single) add(value uint32) {
	switch {
	case s.count == 0:
		*s = single{value, 1}
	case s.value != value:
		s.count = 2
	}
}

// routed reports whether the platform has a route from one host to another.
func (b *givenBuilder) routed(from, to uint32) bool {
	_, err := b.router.Route(from, to)
	return err == nil
}

// addPair adds the routes between two hosts, unless it is one host or they are known.
func (b *givenBuilder) addPair(from, to uint32) error {
	if _, known := b.g.Number(from, to); known || from == to {
		return nil
	}
	return cmp.Or(b.add(from, to), b.add(to, from))
}

// add adds the route from one host to another. Until build, routes are lists of links of the platform.
func (b *givenBuilder) add(from, to uint32) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: route from %s to %s: "+format+"; --backend flow has no such limit",
			append([]any{b.p.File, b.p.Hosts[from], b.p.Hosts[to]}, args...)...)
	}
	path, err := b.router.Route(from, to)
	if err != nil {
		return err
	}
	latency, slowest := 0.0, math.Inf(1)
	for i, l := range path.Links {
		w := &b.p.Links[l]
		if w.Fat && i > 0 && w.Rate < slowest {
			return fail("%w", errFat(w.Name))
		}
		latency, slowest = latency+w.Latency, min(slowest, w.Rate)
		link, err := b.link(l)
		switch {
		case err != nil:
			return fail("%w", err)
		case slices.Contains(path.Links[:i], l):
			return fail("expected each link once, found %s twice", w.Name)
		case i > 0:
			b.join(b.used[path.Links[i-1]].head, link.tail)
			link.middle = link.middle || i < len(path.Links)-1
		}
	}
	if more := path.Latency - latency; more > 1e-12+1e-9*latency {
		return fail("expected the latency of its links, found %.6g s more by the coordinates of a Vivaldi zone", more)
	}
	b.used[path.Links[0]].first.add(from)
	b.used[path.Links[len(path.Links)-1]].last.add(to)
	key := [2]uint32{from, to}
	b.g.numbers[key] = uint32(len(b.g.pairs))
	b.g.pairs, b.g.routes = append(b.g.pairs, key), append(b.g.routes, slices.Clone(path.Links))
	return nil
}

// errFat returns the error of a FATPIPE link with the given name.
func errFat(name string) error {
	return fmt.Errorf("expected a FATPIPE link at least as fast as a link before it, since packets do not wait there, "+
		"found the slower %s; make it SHARED", name)
}

// link returns a link of the platform, and adds it if it is new.
func (b *givenBuilder) link(l uint32) (*givenLink, error) {
	if link, known := b.used[l]; known {
		return link, nil
	}
	w := &b.p.Links[l]
	rate, latency := math.Round(8*w.Rate), math.Round(w.Latency*float64(dag.Second))
	if rate < 1 || rate > maxRate {
		return nil, fmt.Errorf("expected links of 1bps to 8Tbps, found %s with %.6g bytes per second", w.Name, w.Rate)
	}
	link := &givenLink{Link: Link{Rate: int64(rate), Latency: dag.Time(latency)}, tail: b.place(), head: b.place()}
	b.used[l] = link
	return link, nil
}

// place returns a new end of a link.
func (b *givenBuilder) place() uint32 {
	end := uint32(len(b.joins))
	b.joins = append(b.joins, end)
	return end
}

// root returns the first of the ends at the place of an end.
func (b *givenBuilder) root(end uint32) uint32 {
	for b.joins[end] != end {
		b.joins[end] = b.joins[b.joins[end]]
		end = b.joins[end]
	}
	return end
}

// join makes the places of two ends one.
func (b *givenBuilder) join(x, y uint32) {
	x, y = b.root(x), b.root(y)
	b.joins[max(x, y)] = min(x, y)
}

// attach selects the NIC of each host with routes: the first link of all its routes, if no other route uses that link,
// or a virtual link. It returns the virtual links by host.
func (b *givenBuilder) attach() ([]*givenLink, error) {
	first := make([]single, b.n.Hosts) // links
	for i, pair := range b.g.pairs {
		first[pair[0]].add(b.g.routes[i][0])
	}
	virtual := make([]*givenLink, b.n.Hosts)
	for host, f := range first {
		if f.count == 0 {
			continue
		}
		link := b.used[f.value]
		if f.count == 1 && link.first.count == 1 && link.last.count == 0 && !link.middle && !b.p.Links[f.value].Fat {
			link.nic = true
			continue
		}
		virtual[host] = &givenLink{Link: Link{A: uint32(host)}, head: b.place()}
	}
	for i, pair := range b.g.pairs {
		if nic := virtual[pair[0]]; nic != nil {
			link := b.used[b.g.routes[i][0]]
			nic.Rate = max(nic.Rate, link.Rate)
			b.join(nic.head, link.tail)
		}
	}
	for i, pair := range b.g.pairs {
		l := b.g.routes[i][0]
		if nic := virtual[pair[0]]; nic != nil && b.p.Links[l].Fat && b.used[l].Rate < nic.Rate {
			return nil, fmt.Errorf("%s: links of %s: %w", b.p.File, b.p.Hosts[pair[0]], errFat(b.p.Links[l].Name))
		}
	}
	return virtual, nil
}

// connect sets the nodes of all links: hosts, and a switch for each place. order has the links of the platform in
// ascending order.
func (b *givenBuilder) connect(order []uint32, virtual []*givenLink) {
	for i, l := range order {
		if b.isBack(order, i) {
			b.join(b.used[l-1].head, b.used[l].tail)
			b.join(b.used[l-1].tail, b.used[l].head)
		}
	}
	switches := make(map[uint32]uint32)
	at := func(end uint32) uint32 {
		root := b.root(end)
		if _, known := switches[root]; !known {
			switches[root] = uint32(b.n.Hosts + len(switches))
		}
		return switches[root]
	}
	for _, l := range order {
		link := b.used[l]
		if link.A = link.first.value; !link.nic {
			link.A = at(link.tail)
		}
		if link.B = link.last.value; link.nic || link.last.count != 1 || link.first.count > 0 || link.middle ||
			b.p.Links[l].Fat {
			link.B = at(link.head)
		}
	}
	for _, nic := range virtual {
		if nic != nil {
			nic.B = at(nic.head)
		}
	}
	b.n.Switches = max(1, len(switches))
}

// isBack reports whether a link is the other direction of the one before it.
func (b *givenBuilder) isBack(order []uint32, i int) bool {
	return i > 0 && order[i-1] == order[i]-1 && b.p.Links[order[i]].Back
}

// build completes the network.
func (b *givenBuilder) build() error {
	n, g := b.n, b.g
	order := slices.Sorted(maps.Keys(b.used))
	virtual, err := b.attach()
	if err != nil {
		return err
	}
	b.connect(order, virtual)
	add := func(link *givenLink, name string, fat bool) {
		link.port = uint32(2 * len(n.Links))
		n.Links = append(n.Links, link.Link)
		g.names, g.fat = append(g.names, name, ""), append(g.fat, fat)
	}
	for i, l := range order {
		link, w := b.used[l], &b.p.Links[l]
		if b.isBack(order, i) {
			if there := b.used[l-1]; there.A == link.B && there.B == link.A && there.Rate == link.Rate &&
				there.Latency == link.Latency {
				link.port = there.port + 1
				g.names[link.port] = w.Name
				g.links[l] = g.links[l-1]
				continue
			}
		}
		add(link, w.Name, w.Fat)
		g.links[l] = int(link.port / 2)
	}
	g.virtual = len(n.Links)
	g.nics = make([]uint32, n.Hosts)
	var unused *givenLink // of hosts without routes
	for host, nic := range virtual {
		if nic == nil {
			if unused == nil {
				unused = &givenLink{Link: Link{A: uint32(host), B: uint32(n.Hosts), Rate: maxRate}}
				add(unused, "unused", false)
			}
			nic = unused
		} else {
			add(nic, b.p.Hosts[host], false)
		}
		g.nics[host] = nic.port
	}
	for _, links := range g.routes {
		for i, l := range links {
			links[i] = b.used[l].port
		}
		if from := n.tail(links[0]); from < uint32(n.Hosts) {
			g.nics[from] = links[0]
		}
	}
	n.Tier, n.SwitchLatency = make([]int8, n.Switches), make([]dag.Time, n.Switches)
	n.Name = func(node uint32) string {
		if int(node) < n.Hosts {
			return b.p.Hosts[node]
		}
		return numbered("switch", int(node)-n.Hosts)
	}
	return nil
}

// givenRoutes returns the routes of a network whose routes are given: the ports of hosts, without those that are down.
func givenRoutes(n *Network, down func(link int) bool) *Routes {
	r := &Routes{edges: 1, table: make([]entry, n.Switches), paths: slices.Repeat([]uint32{1}, n.Switches),
		ports: uint32(2 * len(n.Links)), edge: make([]uint32, n.Hosts),
		hostPort: slices.Repeat([]uint32{NoPort}, n.Hosts), nics: slices.Clone(n.Given.nics)}
	for host, port := range r.nics {
		if down != nil && down(int(port/2)) {
			r.nics[host] = NoPort
		}
	}
	for _, ports := range n.Given.routes {
		r.diameter = max(r.diameter, len(ports))
	}
	return r
}
