// This file lists the traffic patterns: their names, parameters, networks and targets.

package flit

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/permute"
	"github.com/tracedag/tracedag/sim/topology"
)

// Pattern is the traffic pattern, which selects the targets of synthetic packets.
type Pattern uint8

// Traffic patterns. The patterns after Reactive have one target per host; [permute.All] defines them in the same
// order.
const (
	Uniform                Pattern = iota // any other host with equal probability, including those of the same router
	Adversarial                           // any host of the dragonfly group that is Offset groups further
	Permutation                           // a random permutation of the hosts
	Hotspot                               // one of Hot with probability Share, otherwise as Uniform
	AdversarialSame                       // any host of the router at the same position, Offset groups further
	AdversarialLocal                      // any host of the router that is Offset positions further in the same group
	AdversarialConsecutive                // any host of the next Offset groups; Offset 0: H groups
	Oversubscribed                        // the first host of the router that is Offset positions and groups further
	HotRegion                             // a host of the first Part of the routers with probability Share, or Uniform
	Mix                                   // Uniform, AdversarialLocal and Adversarial with the percentages of Shares
	Bursty                                // as Uniform, in bursts of Burst packets with one target
	Burst                                 // Packets packets per host by the pattern Of
	AllToAll                              // in Packets phases, a packet to each other host
	Transient                             // the first pattern of Of, then the second one
	Reactive                              // requests by the pattern Of, and a reply to each
	transpose
)

// String returns the pattern's name.
func (p Pattern) String() string { return nameOf(patternNames(), int(p)) }

// MarshalText returns the pattern's name.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses a pattern's name.
func (p *Pattern) UnmarshalText(text []byte) error {
	return unmarshalName(p, "pattern", patternNames(), text)
}

// pattern is an entry of the table of patterns.
type pattern struct {
	name     string
	syntax   string // of its parameters
	networks string
	targets  string

	offset bool                                         // the pattern has a number after +
	parse  func(text string, t *Traffic) error          // parses the parameters after the colon; nil: none
	format func(t *Traffic) string                      // formats them
	check  func(t *Traffic, n *topology.Network) error  // checks them for a network; nil: no conditions
	target func(g *traffic, n *worker, h uint32) uint32 // draws a target; nil: of a table
}

// patternTable is the table of patterns, by number.
var patternTable = [...]pattern{
	Uniform: {name: "uniform", networks: allNetworks, targets: "any other host", target: uniformTarget},
	Adversarial: {name: "adversarial", syntax: "+I", networks: "dragonfly",
		targets: "any host of the group that is I (1) further", offset: true, check: groupsFurther,
		target: groupTarget},
	Permutation: {name: "permutation", networks: allNetworks,
		targets: "a random permutation of the hosts without fixed points"},
	Hotspot: {name: "hotspot", syntax: "[:SHARE[:HOST,...]]", networks: allNetworks,
		targets: "one of the HOSTs (0) with probability SHARE (0.1), or any other host",
		parse:   parseHotspot, format: formatHotspot, check: checkHotspot, target: hotTarget},
	AdversarialSame: {name: "adversarial-same", syntax: "+I", networks: "dragonfly",
		targets: "any host of the router at the same position, I (1) groups further", offset: true,
		check: groupsFurther, target: samePosition},
	AdversarialLocal: {name: "adversarial-local", syntax: "[+I]", networks: "dragonfly",
		targets: "any host of the router that is I (1) positions further in the same group", offset: true,
		check: positionsFurther, target: localTarget},
	AdversarialConsecutive: {name: "adversarial-consecutive", syntax: "[+K]", networks: "dragonfly",
		targets: "any host of the next K (h) groups; with palmtree, one router leads to h",
		offset:  true, check: consecutiveGroups, target: consecutiveTarget},
	Oversubscribed: {name: "oversubscribed", syntax: "[+I]", networks: "dragonfly",
		targets: "from routers at position r: host 0 of router r + I (1) of group r + I",
		offset:  true, check: groupsFurther},
	HotRegion: {name: "hotregion", syntax: "[:SHARE[:PART]]", networks: allNetworks,
		targets: "hosts of the first PART (0.125) of the routers with probability SHARE (0.25)",
		parse:   parseRegion, format: formatRegion, check: checkRegion, target: hotTarget},
	Mix: {name: "mix", syntax: "[+I]:A/B/C", networks: "dragonfly",
		targets: "A % uniform, B % adversarial-local, C % adversarial+I", offset: true, parse: parseMix,
		format: formatMix, check: checkMix, target: mixTarget},
	Bursty: {name: "bursty", syntax: "[:LENGTH]", networks: allNetworks,
		targets: "any other host; bursts of LENGTH (8) packets on average to one host", parse: parseBursty,
		format: formatBursty, check: checkBursty, target: uniformTarget},
	Burst: {name: "burst", syntax: ":N[:P1[@PERCENT,P2@...]]", networks: "as P1, P2",
		targets: "by P1 (uniform) or up to 3 patterns, until N packets per host are received",
		format:  formatBurst, target: burstTarget},
	AllToAll: {name: "all2all", syntax: "[:PHASES[:random]]", networks: allNetworks,
		targets: "all other hosts by distance or random, in each of PHASES (1); --load is 1",
		format:  formatAllToAll, target: allToAllTarget},
	Transient: {name: "transient", syntax: ":P1@LOAD,P2@LOAD:CYCLE", networks: "as P1 and P2",
		targets: "by pattern P1, from CYCLE after the warm-up by P2; in windows of --window",
		format:  formatTransient, target: partTarget},
	Reactive: {name: "reactive", syntax: ":PATTERN", networks: "as PATTERN",
		targets: "requests by PATTERN, each with a reply; --load has both; --max-requests",
		format:  formatReactive, target: partTarget},
}

// init completes the patterns that consist of others, for which they use the table.
func init() {
	patternTable[Burst].parse, patternTable[Burst].check = parseBurst, checkBurst
	patternTable[Transient].parse, patternTable[Transient].check = parseTransient, checkTransient
	patternTable[Reactive].parse, patternTable[Reactive].check = parseReactive, checkReactive
	patternTable[AllToAll].parse, patternTable[AllToAll].check = parseAllToAll, checkAllToAll
}

// patternNames returns the names of all patterns by number.
func patternNames() (names []string) {
	for i := range patternTable {
		names = append(names, patternTable[i].name)
	}
	for _, p := range permute.All() {
		names = append(names, p.Name)
	}
	return names
}

// entry returns the entry of a pattern in the table; an empty one for patterns of package permute.
func (p Pattern) entry() *pattern {
	if int(p) < len(patternTable) {
		return &patternTable[p]
	}
	return &pattern{check: checkPermutation}
}

// permutation returns the permutation of a pattern after Reactive.
func (p Pattern) permutation() *permute.Permutation {
	return &permute.All()[p-transpose]
}

// printPatterns prints the patterns with their parameters and networks.
func printPatterns(w io.Writer) {
	for i := range patternTable {
		p := &patternTable[i]
		printPattern(w, p.name+p.syntax, p.networks, p.targets)
	}
	for _, p := range permute.All() {
		networks := allNetworks
		switch {
		case p.Even:
			networks = "4^n hosts"
		case p.Bits:
			networks = "2^n hosts"
		}
		printPattern(w, p.Name, networks, p.Title)
	}
}

// allNetworks is the text for patterns without conditions on the network.
const allNetworks = "all networks"

// printPattern prints a pattern in two lines of at most 80 columns.
func printPattern(w io.Writer, pattern, networks, targets string) {
	fmt.Fprintf(w, "%-30s %s\n    %s\n", pattern, networks, targets)
}

// parsePattern parses a pattern such as adversarial+1 or hotspot:0.2:0,8.
func parsePattern(text string) (t Traffic, err error) {
	name, rest, hasRest := strings.Cut(text, ":")
	name, offset, hasOffset := strings.Cut(name, "+")
	if err := t.Pattern.UnmarshalText([]byte(name)); err != nil {
		return t, fmt.Errorf("%w; --list-patterns lists their parameters", err)
	}
	e := t.Pattern.entry()
	switch {
	case hasOffset && !e.offset:
		return t, fmt.Errorf("expected no offset (+I) with %s, found %q", name, text)
	case hasRest && e.parse == nil:
		return t, fmt.Errorf("expected no parameters after a colon with %s, found %q", name, text)
	case hasOffset:
		if t.Offset, err = strconv.Atoi(offset); err != nil || t.Offset < 1 {
			return t, fmt.Errorf("%s+I: expected a whole number from 1, found %q", name, offset)
		}
	case e.offset && t.Pattern != AdversarialConsecutive:
		t.Offset = 1
	}
	if e.parse != nil {
		err = e.parse(rest, &t)
	}
	return t, err
}

// patternName formats a pattern in the syntax of parsePattern.
func patternName(t *Traffic) string {
	text, e := t.Pattern.String(), t.Pattern.entry()
	if e.offset && t.Offset > 0 {
		text += fmt.Sprintf("+%d", t.Offset)
	}
	if e.format != nil {
		text += ":" + e.format(t)
	}
	return text
}

// parseShare parses a share from 0 to 1; "" is the default.
func parseShare(pattern, text string, normal float64) (float64, error) {
	if text == "" {
		return normal, nil
	}
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("%s: expected a share of 0 to 1, found %q", pattern, text)
	}
	return share, nil
}

// defaultHotShare is the default share of packets to hot hosts.
const defaultHotShare = 0.1

// parseHotspot parses SHARE or SHARE:HOST,...
func parseHotspot(text string, t *Traffic) (err error) {
	share, hosts, some := strings.Cut(text, ":")
	if t.Share, err = parseShare("hotspot", share, defaultHotShare); err != nil {
		return err
	}
	t.Hot = []uint32{0}
	if !some {
		return nil
	}
	t.Hot = nil
	for host := range strings.SplitSeq(hosts, ",") {
		n, err := strconv.ParseUint(host, 10, 31)
		if err != nil {
			return fmt.Errorf("hotspot: expected a host number, found %q", host)
		}
		t.Hot = append(t.Hot, uint32(n))
	}
	return nil
}

func formatHotspot(t *Traffic) string {
	text := fmt.Sprintf("%v:", t.Share)
	for i, host := range t.Hot {
		if i > 0 {
			text += ","
		}
		text += strconv.FormatUint(uint64(host), 10)
	}
	return text
}

func checkHotspot(t *Traffic, n *topology.Network) error {
	if len(t.Hot) == 0 {
		return errors.New("pattern hotspot: expected hot hosts, found none")
	}
	return nil
}

// parseRegion parses SHARE or SHARE:PART.
func parseRegion(text string, t *Traffic) (err error) {
	share, part, _ := strings.Cut(text, ":")
	if t.Share, err = parseShare("hotregion", share, 0.25); err != nil {
		return err
	}
	t.Part, err = parseShare("hotregion", part, 0.125)
	return err
}

func formatRegion(t *Traffic) string { return fmt.Sprintf("%v:%v", t.Share, t.Part) }

func checkRegion(t *Traffic, n *topology.Network) error {
	if !(t.Part >= 0 && t.Part <= 1) {
		return fmt.Errorf("hotregion: expected a part of 0 to 1 of the routers, found %v", t.Part)
	}
	return nil
}

// parseMix parses A/B/C.
func parseMix(text string, t *Traffic) error {
	parts := strings.Split(text, "/")
	if len(parts) != len(t.Shares) {
		return fmt.Errorf("mix: expected three percentages as in mix:50/25/25, found %q", text)
	}
	for i, part := range parts {
		percent, err := strconv.ParseUint(part, 10, 7)
		if err != nil {
			return fmt.Errorf("mix: expected whole percentages as in mix:50/25/25, found %q", part)
		}
		t.Shares[i] = int(percent)
	}
	return t.checkShares()
}

// checkShares checks the percentages of several patterns.
func (t *Traffic) checkShares() error {
	sum := 0
	for _, percent := range t.Shares {
		if percent < 0 || percent > 100 {
			return fmt.Errorf("%v: expected percentages of 0 to 100, found %d", t.Pattern, percent)
		}
		sum += percent
	}
	if sum != 100 {
		return fmt.Errorf("%v: expected percentages with the sum 100, found %d", t.Pattern, sum)
	}
	return nil
}

func formatMix(t *Traffic) string {
	return fmt.Sprintf("%d/%d/%d", t.Shares[0], t.Shares[1], t.Shares[2])
}

func checkMix(t *Traffic, n *topology.Network) error {
	if err := t.checkShares(); err != nil {
		return err
	}
	if err := groupsFurther(t, n); err != nil {
		return err
	}
	return positionsFurther(&Traffic{Pattern: Mix, Offset: 1}, n)
}

// parseBursty parses LENGTH.
func parseBursty(text string, t *Traffic) (err error) {
	t.Burst = 8
	if text == "" {
		return nil
	}
	if t.Burst, err = strconv.ParseFloat(text, 64); err != nil || !(t.Burst >= 1 && t.Burst <= maxBurst) {
		return fmt.Errorf("bursty: expected a mean length of 1 to %d packets, found %q", maxBurst, text)
	}
	return nil
}

// maxBurst is the longest mean burst in packets.
const maxBurst = 1 << 20

func formatBursty(t *Traffic) string { return strconv.FormatFloat(t.Burst, 'g', -1, 64) }

func checkBursty(t *Traffic, _ *topology.Network) error {
	if !(t.Burst >= 1 && t.Burst <= maxBurst) {
		return fmt.Errorf("bursty: expected a mean length of 1 to %d packets, found %v", maxBurst, t.Burst)
	}
	return nil
}

// groupsFurther checks an offset in groups.
func groupsFurther(t *Traffic, n *topology.Network) error {
	return offsetIn(t, n, func(d *topology.DragonflyInfo) int { return d.Groups - 1 }, 1)
}

// positionsFurther checks an offset in routers of a group.
func positionsFurther(t *Traffic, n *topology.Network) error {
	return offsetIn(t, n, func(d *topology.DragonflyInfo) int { return d.A - 1 }, 1)
}

// consecutiveGroups checks a number of groups, or 0.
func consecutiveGroups(t *Traffic, n *topology.Network) error {
	return offsetIn(t, n, func(d *topology.DragonflyInfo) int { return d.Groups - 1 }, 0)
}

// offsetIn checks an offset in a dragonfly.
func offsetIn(t *Traffic, n *topology.Network, most func(d *topology.DragonflyInfo) int, least int) error {
	if n.Dragonfly == nil {
		return fmt.Errorf("%v traffic needs a dragonfly, such as --topology dragonfly:h=2", t.Pattern)
	}
	last := most(n.Dragonfly)
	if last < 1 {
		return fmt.Errorf("%v traffic needs a dragonfly with several routers per group", t.Pattern)
	}
	if t.Offset < least || t.Offset > last {
		return fmt.Errorf("%v+I: expected I from 1 to %d, found %d", t.Pattern, last, t.Offset)
	}
	return nil
}

// shapeOf returns the arrangement of the hosts of a network.
func shapeOf(n *topology.Network) *permute.Shape {
	s := &permute.Shape{Hosts: n.Hosts}
	switch {
	case n.Dragonfly != nil:
		s.Groups = n.Dragonfly.Groups
	case n.Mesh != nil:
		s.Dims, s.Each = n.Mesh.Dims, n.Mesh.P
	}
	return s
}

func checkPermutation(t *Traffic, n *topology.Network) error {
	if err := t.Pattern.permutation().Check(shapeOf(n)); err != nil {
		return fmt.Errorf("%v: number of hosts: %w", t.Pattern, err)
	}
	return nil
}

// table returns the targets of a pattern with one target per host, nil for other patterns. A host that is its own
// target generates no packets.
func (t *Traffic) table(n *worker) []uint32 {
	to := make([]uint32, n.hosts)
	switch {
	case t.Pattern == Permutation:
		return permutation(n.hosts, t.seed(n.p))
	case t.Pattern == Oversubscribed:
		d := n.topology.Dragonfly
		for h := range to {
			position := h / d.P % d.A
			to[h] = uint32(((position+t.Offset)%d.Groups*d.A + (position+t.Offset)%d.A) * d.P)
		}
		return to
	case t.Pattern < transpose:
		return nil
	}
	p, s := t.Pattern.permutation(), shapeOf(n.topology)
	for h := range to {
		to[h] = p.To(s, uint32(h))
	}
	return to
}

// region returns the hosts of the first part of the routers with hosts, at least of one router.
func region(n *worker, part float64) (hosts []uint32) {
	routers := slices.Clone(n.edge)
	slices.Sort(routers)
	routers = slices.Compact(routers)
	last := routers[max(1, int(math.Round(part*float64(len(routers)))))-1]
	for h, r := range n.edge {
		if r <= last {
			hosts = append(hosts, uint32(h))
		}
	}
	return hosts
}

// uniformTarget draws any other host.
func uniformTarget(g *traffic, n *worker, from uint32) uint32 {
	to := g.random[from].Below(uint32(n.hosts - 1))
	if to >= from {
		to++
	}
	return to
}

// groupTarget draws a host of the group that is g.Offset further.
func groupTarget(g *traffic, n *worker, from uint32) uint32 {
	return hostOfGroup(g, n, from, g.Offset)
}

// hostOfGroup draws a host of the group that is offset further.
func hostOfGroup(g *traffic, n *worker, from uint32, offset int) uint32 {
	d := n.topology.Dragonfly
	each := uint32(d.A * d.P)
	group := (int(from/each) + offset) % d.Groups
	return uint32(group)*each + g.random[from].Below(each)
}

// consecutiveTarget draws a host of the next g.Offset groups.
func consecutiveTarget(g *traffic, n *worker, from uint32) uint32 {
	groups := g.Offset
	if groups == 0 {
		groups = n.topology.Dragonfly.H
	}
	return hostOfGroup(g, n, from, 1+int(g.random[from].Below(uint32(groups))))
}

// asFOGSim gives adversarial-consecutive one group fewer than a router has global links, as FOGSim's ADVc has, but at
// least one. A given number of groups stays.
func (t *Traffic) asFOGSim(links int) {
	groups := max(1, links-1)
	if t.Pattern == AdversarialConsecutive && t.Offset == 0 {
		t.Offset = groups
	}
	for i, text := range t.Of {
		if text == AdversarialConsecutive.String() {
			t.Of[i] = fmt.Sprintf("%s+%d", text, groups)
		}
	}
}

// samePosition draws a host of the router at the same position of another group.
func samePosition(g *traffic, n *worker, from uint32) uint32 {
	d := n.topology.Dragonfly
	router := (int(from)/d.P + g.Offset*d.A) % (d.Groups * d.A)
	return uint32(router*d.P) + g.random[from].Below(uint32(d.P))
}

// localTarget draws a host of the router that is g.Offset positions further.
func localTarget(g *traffic, n *worker, from uint32) uint32 {
	return hostOfPosition(g, n, from, g.Offset)
}

// hostOfPosition draws a host of the router that is offset positions further in the group.
func hostOfPosition(g *traffic, n *worker, from uint32, offset int) uint32 {
	d := n.topology.Dragonfly
	router := int(from) / d.P
	router += (router%d.A+offset)%d.A - router%d.A
	return uint32(router*d.P) + g.random[from].Below(uint32(d.P))
}

// hotTarget draws a hot host with a probability, otherwise or if the host is its own target any other host.
func hotTarget(g *traffic, n *worker, from uint32) uint32 {
	r := &g.random[from]
	if hot := g.hot[r.Below(uint32(len(g.hot)))]; uniform(r) <= g.Share && hot != from {
		return hot
	}
	return uniformTarget(g, n, from)
}

// mixTarget draws a pattern, then its target.
func mixTarget(g *traffic, n *worker, from uint32) uint32 {
	switch percent := int(g.random[from].Below(100)); {
	case percent < g.Shares[0]:
		return uniformTarget(g, n, from)
	case percent < g.Shares[0]+g.Shares[1]:
		return hostOfPosition(g, n, from, 1)
	}
	return hostOfGroup(g, n, from, g.Offset)
}
