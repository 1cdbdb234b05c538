// This file generates traffic that ends after a fixed number of packets, and traffic that changes during a run.

package flit

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Limits of traffic of fixed work and of windows.
const (
	maxPackets = 1 << 40 // of a burst per host
	maxPhases  = 1 << 20
	maxWindows = 1 << 20
)

// oddPhase is a flag of packets that belong to a phase with an odd number.
const oddPhase = 1 << 7

// quota is the progress of hosts that have a fixed number of packets to send.
type quota struct {
	packets uint64      // per host; for AllToAll, per host and phase
	phases  uint64      // 1 for Burst
	random  bool        // AllToAll in random order
	sent    []uint64    // by host: packets of its current phase
	phase   []uint64    // by host: current phase, from 0
	arrived [][2]uint64 // by host: for AllToAll, received packets of the even and the odd phase under way
	seed    int64
}

// startQuota returns the state before the first packet, nil for traffic without an end.
func startQuota(n *worker, t *Traffic) *quota {
	w := &quota{packets: t.Packets, phases: 1, random: t.Random, seed: t.seed(n.p)}
	switch t.Pattern {
	case Burst:
	case AllToAll:
		w.packets, w.phases = uint64(n.hosts-1), t.Packets
		w.arrived = make([][2]uint64, n.hosts)
	default:
		return nil
	}
	w.sent, w.phase = make([]uint64, n.hosts), make([]uint64, n.hosts)
	return w
}

// fixed reports whether the traffic has an end.
func (t *Traffic) fixed() bool { return t.Pattern == Burst || t.Pattern == AllToAll }

// over reports whether a host has sent all packets of its current phase. The packets that it receives may begin the
// next one.
func (w *quota) over(h uint32) bool { return w.sent[h] == w.packets }

// allToAllTarget returns the next target of a host: the others in the order of their distance, or in a random order.
func allToAllTarget(g *traffic, n *worker, from uint32) uint32 {
	distance := g.quota.sent[from]
	if g.quota.random {
		distance = shuffled(distance, uint64(n.hosts-1), sim.Mix(uint64(g.quota.seed)^sim.Mix(uint64(from)+1)))
	}
	return uint32((uint64(from) + 1 + distance) % uint64(n.hosts))
}

// shuffled returns the number at place i of a random order of 0 to n-1, by a Feistel network of four rounds on numbers
// of an even number of bits, which is repeated until the result is below n.
func shuffled(i, n, key uint64) uint64 {
	half := (bits.Len64(n-1) + 1) / 2
	mask := uint64(1)<<half - 1
	for {
		left, right := i>>half, i&mask
		for round := range uint64(4) {
			left, right = right, left^sim.Mix(key+round<<32+right)&mask
		}
		if i = left<<half | right; i < n {
			return i
		}
	}
}

// sendQuota sends the due packet of a host if there is room, otherwise later. It returns the cycle of the next attempt.
func (n *worker) sendQuota(h uint32, t uint64) uint64 {
	g := n.traffic
	w := g.quota
	if id := n.create(h, g.target(n, h), t); id != none {
		if w.phase[h]%2 == 1 {
			n.packets[id].flags |= oddPhase
		}
		w.sent[h]++
		if w.over(h) {
			n.nics[h].generates = never
			n.nextPhase(h, t)
			return n.nics[h].generates
		}
	}
	return g.after(h, t+1)
}

// arrive counts a packet at its target, which may begin its next phase.
func (n *worker) arrive(pk *packet, t uint64) {
	w := n.traffic.quota
	w.arrived[pk.to][pk.flags/oddPhase]++
	n.nextPhase(pk.to, t)
}

// nextPhase begins the next phase of a host after cycle t, if all packets of the current one are sent and received.
func (n *worker) nextPhase(h uint32, t uint64) {
	w := n.traffic.quota
	if w.arrived == nil || !w.over(h) || w.arrived[h][w.phase[h]%2] < w.packets || w.phase[h]+1 >= w.phases {
		return
	}
	w.arrived[h][w.phase[h]%2] = 0
	w.phase[h]++
	w.sent[h] = 0
	n.nics[h].generates = n.traffic.after(h, t+1)
	n.wakeGenerator(h, n.now)
}

// change is a change of the pattern and of the load during a run.
type change struct {
	at      uint64  // cycle
	logFail float64 // from then on, as in traffic
}

// after returns the first cycle from a given one in which a host generates a packet.
func (g *traffic) after(h uint32, from uint64) uint64 {
	logFail := g.logFail
	if g.change != nil && from >= g.change.at {
		logFail = g.change.logFail
	}
	next := wait(&g.random[h], from, logFail)
	if g.change != nil && from < g.change.at && next >= g.change.at { // the load is another one from there on
		next = wait(&g.random[h], g.change.at, g.change.logFail)
	}
	return next
}

// wait returns the cycle of the first success in trials from a cycle on.
func wait(r *sim.Random, from uint64, logFail float64) uint64 {
	if logFail == 0 {
		return never
	}
	return from + gap(r, logFail) - 1
}

// seed returns the seed of packets and targets.
func (t *Traffic) seed(p *Params) int64 {
	if t.Seed != 0 {
		return t.Seed
	}
	return p.Seed
}

// parts returns the patterns of Of.
func (t *Traffic) parts() (parts []Traffic, err error) {
	for _, text := range t.Of {
		part, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		if part.Pattern == Bursty || part.fixed() || part.Pattern == Transient || part.Pattern == Reactive {
			return nil, fmt.Errorf("%v: expected a pattern without an end, bursts, changes or replies, found %s",
				t.Pattern, text)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// checkParts checks the patterns of Of.
func checkParts(t *Traffic, n *topology.Network, count int) error {
	parts, err := t.parts()
	if err != nil {
		return err
	}
	if len(parts) != count {
		return fmt.Errorf("%v: expected %d patterns, found %d", t.Pattern, count, len(parts))
	}
	for i := range parts {
		if err := parts[i].checkPattern(n); err != nil {
			return err
		}
	}
	return nil
}

// parseBurst parses N, N:PATTERN or N:P1@PERCENT,P2@PERCENT,... Patterns may contain commas and colons.
func parseBurst(text string, t *Traffic) (err error) {
	number, rest, some := strings.Cut(text, ":")
	if t.Packets, err = strconv.ParseUint(number, 10, 64); err != nil || t.Packets < 1 || t.Packets > maxPackets {
		return fmt.Errorf("burst: expected 1 to %d packets per host as in burst:100, found %q", int64(maxPackets),
			number)
	}
	if !some {
		rest = Uniform.String()
	}
	if !strings.Contains(rest, "@") {
		return t.parseParts(rest)
	}
	var patterns []string
	for more := true; more; {
		var pattern, percent string
		pattern, rest, _ = strings.Cut(rest, "@")
		percent, rest, more = strings.Cut(rest, ",")
		share, err := strconv.ParseUint(percent, 10, 7)
		if err != nil || len(patterns) == len(t.Shares) {
			return fmt.Errorf("burst: expected one to %d patterns with whole percentages as in "+
				"burst:100:uniform@60,adversarial+1@40, found %q", len(t.Shares), text)
		}
		t.Shares[len(patterns)] = int(share)
		patterns = append(patterns, pattern)
	}
	return errors.Join(t.checkShares(), t.parseParts(patterns...))
}

// parseParts sets Of to patterns.
func (t *Traffic) parseParts(patterns ...string) error {
	t.Of = patterns
	parts, err := t.parts()
	for i := range parts {
		t.Of[i] = patternName(&parts[i])
	}
	return err
}

func formatBurst(t *Traffic) string {
	if !t.mixes() {
		return fmt.Sprintf("%d:%s", t.Packets, t.Of[0])
	}
	parts := make([]string, len(t.Of))
	for i, pattern := range t.Of {
		parts[i] = fmt.Sprintf("%s@%d", pattern, t.Shares[i])
	}
	return fmt.Sprintf("%d:%s", t.Packets, strings.Join(parts, ","))
}

// mixes reports whether a burst consists of several patterns by Shares.
func (t *Traffic) mixes() bool { return t.Shares != [3]int{} }

// burstTarget draws one of the patterns of a burst, then its target. A pattern in which the host is its own target is
// drawn again.
func burstTarget(g *traffic, n *worker, from uint32) uint32 {
	if !g.mixes() {
		return g.of[0].target(n, from)
	}
	for {
		percent := int(g.random[from].Below(100))
		for i, part := range g.of {
			if percent -= g.Shares[i]; percent < 0 {
				if !part.silent(from) {
					return part.target(n, from)
				}
				break
			}
		}
	}
}

func checkBurst(t *Traffic, n *topology.Network) error {
	if t.Packets < 1 || t.Packets > maxPackets {
		return fmt.Errorf("burst: expected 1 to %d packets per host, found %d", int64(maxPackets), t.Packets)
	}
	if !t.mixes() {
		return checkParts(t, n, 1)
	}
	if len(t.Of) < 1 || len(t.Of) > len(t.Shares) {
		return fmt.Errorf("burst: expected one to %d patterns, found %d", len(t.Shares), len(t.Of))
	}
	for _, share := range t.Shares[len(t.Of):] {
		if share != 0 {
			return fmt.Errorf("burst: expected percentages for %d patterns, found %v", len(t.Of), t.Shares)
		}
	}
	if err := t.checkShares(); err != nil {
		return err
	}
	return checkParts(t, n, len(t.Of))
}

// parseAllToAll parses PHASES or PHASES:random.
func parseAllToAll(text string, t *Traffic) (err error) {
	number, order, some := strings.Cut(text, ":")
	t.Packets = 1
	if text != "" {
		if t.Packets, err = strconv.ParseUint(number, 10, 64); err != nil || t.Packets < 1 || t.Packets > maxPhases {
			return fmt.Errorf("all2all: expected 1 to %d phases as in all2all:2, found %q", maxPhases, number)
		}
	}
	if t.Random = some; some && order != "random" {
		return fmt.Errorf("all2all: expected random or nothing behind the phases, found %q", order)
	}
	return nil
}

func formatAllToAll(t *Traffic) string {
	if t.Random {
		return fmt.Sprintf("%d:random", t.Packets)
	}
	return fmt.Sprint(t.Packets)
}

func checkAllToAll(t *Traffic, _ *topology.Network) error {
	if t.Packets < 1 || t.Packets > maxPhases {
		return fmt.Errorf("all2all: expected 1 to %d phases, found %d", maxPhases, t.Packets)
	}
	return nil
}

// parseTransient parses P1@LOAD,P2@LOAD:CYCLE. Patterns may contain commas and colons.
func parseTransient(text string, t *Traffic) error {
	const form = "transient: expected P1@LOAD,P2@LOAD:CYCLE as in transient:uniform@0.2,adversarial+1@0.3:5000"
	first, rest, ok := strings.Cut(text, "@")
	load, rest, two := strings.Cut(rest, ",")
	last := strings.LastIndexByte(rest, ':')
	if !ok || !two || last < 0 {
		return fmt.Errorf("%s, found %q", form, text)
	}
	second, next, ok := strings.Cut(rest[:last], "@")
	var err [3]error
	t.Load, err[0] = strconv.ParseFloat(load, 64)
	t.Then, err[1] = strconv.ParseFloat(next, 64)
	t.Change, err[2] = strconv.ParseUint(rest[last+1:], 10, 64)
	if !ok || errors.Join(err[:]...) != nil {
		return fmt.Errorf("%s, found %q", form, text)
	}
	return t.parseParts(first, second)
}

func formatTransient(t *Traffic) string {
	return fmt.Sprintf("%s@%v,%s@%v:%d", t.Of[0], t.Load, t.Of[1], t.Then, t.Change)
}

func checkTransient(t *Traffic, n *topology.Network) error {
	switch {
	case t.Window < 1 || t.Measure/t.Window > maxWindows:
		return fmt.Errorf("transient: expected windows of 1 or more cycles, and at most %d of them, found %d cycles "+
			"of %d", maxWindows, t.Window, t.Measure)
	case t.Change > mostCycles:
		return fmt.Errorf("transient: expected a change in cycle 0 to %d, found %d", int64(mostCycles), t.Change)
	}
	return checkParts(t, n, 2)
}

// checkLoads returns an error if a load exceeds a packet per cycle.
func (t *Traffic) checkLoads(flits int) error {
	for _, load := range [...]float64{t.Load, t.Then} {
		if !(load >= 0 && load <= float64(flits)) {
			return fmt.Errorf("load: expected 0 to %d flits per cycle and host, found %v", flits, load)
		}
	}
	if t.fixed() && t.Load == 0 {
		return fmt.Errorf("load: expected more than 0 with %v, found 0", t.Pattern)
	}
	return nil
}

// partTarget draws a target by the current pattern of several.
func partTarget(g *traffic, n *worker, from uint32) uint32 {
	part := g.of[0]
	if g.change != nil && n.now >= g.change.at {
		part = g.of[1]
	}
	return part.target(n, from)
}

// silent reports whether a host is its own target, in all patterns.
func (g *traffic) silent(h uint32) bool {
	for i, part := range g.of {
		if !part.silent(h) && !(g.mixes() && g.Shares[i] == 0) {
			return false
		}
	}
	return len(g.of) > 0 || g.targets != nil && g.targets[h] == h
}

// logFailOf returns the log of the probability that a host generates no packet in a cycle.
func logFailOf(load float64, p *Params) float64 { return math.Log1p(-load / float64(p.PacketFlits)) }

// Window is a part of the measured cycles.
type Window struct {
	Cycle    uint64  `json:"cycle"` // the first one, after the warm-up
	Packets  uint64  `json:"packets"`
	Accepted float64 `json:"accepted_load"`
	Latency  float64 `json:"packet_latency"` // mean
}

// window returns the counts of the window of a measured cycle.
func (n *worker) window(t uint64) *batch {
	i := (t - n.from) / n.traffic.Window
	for uint64(len(n.counters.windows)) <= i {
		n.counters.windows = append(n.counters.windows, batch{})
	}
	return &n.counters.windows[i]
}

// windows returns the windows of the measured cycles; the last one may be shorter.
func (n *worker) windows(cycles uint64) (all []Window) {
	if n.traffic == nil || n.traffic.Window == 0 {
		return nil
	}
	each := n.traffic.Window
	for at := uint64(0); at < cycles; at += each {
		w := Window{Cycle: at}
		if i := at / each; i < uint64(len(n.counters.windows)) {
			b := &n.counters.windows[i]
			w.Packets, w.Latency = b.packets, ratio(b.total, b.packets)
			w.Accepted = ratio(b.flits, min(each, cycles-at)*uint64(n.hosts))
		}
		all = append(all, w)
	}
	return all
}
