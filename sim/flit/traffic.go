// This file generates synthetic traffic: random packets, independent of the network's state.

package flit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Traffic describes synthetic traffic. In every cycle, a host generates a full packet with probability Load divided by
// the flits of a packet. If its queue, or without one its router's buffer, has no room, the packet is dropped and not
// counted. In saturation, the applied load is therefore less than Load.
type Traffic struct {
	Pattern Pattern  `json:"pattern"`
	Load    float64  `json:"load"`                    // flits per cycle and host, 0 to the flits of a packet
	Offset  int      `json:"offset,omitempty"`        // for Adversarial and others, in groups or routers
	Share   float64  `json:"share,omitempty"`         // for Hotspot and HotRegion, 0 to 1
	Part    float64  `json:"part,omitempty"`          // for HotRegion, of the routers, 0 to 1
	Shares  [3]int   `json:"shares,omitzero"`         // for Mix and Burst, in percent
	Burst   float64  `json:"burst,omitempty"`         // for Bursty, mean length in packets
	Hot     []uint32 `json:"hot,omitempty"`           // target hosts of Hotspot
	Of      []string `json:"of,omitempty"`            // patterns of Burst, Transient and Reactive, as for --synthetic
	Packets uint64   `json:"packets,omitempty"`       // for Burst, per host; for AllToAll the phases
	Random  bool     `json:"random,omitempty"`        // for AllToAll: in a random order per host
	Then    float64  `json:"then,omitempty"`          // for Transient, the load after the change
	Change  uint64   `json:"change_cycle,omitempty"`  // for Transient, after the warm-up
	Window  uint64   `json:"window_cycles,omitempty"` // for Transient, at least 1
	// MaxRequests limits the requests of a host whose replies are not received, for Reactive; 0: no limit.
	MaxRequests int   `json:"max_requests,omitempty"`
	Seed        int64 `json:"seed,omitempty"` // of packets and targets; 0: that of Params
	// Cycles before the measurement, and measured ones, at least 1. Burst and AllToAll end with their last packet and
	// measure all cycles.
	Warmup  uint64 `json:"warmup_cycles"`
	Measure uint64 `json:"measure_cycles"`
}

// SyntheticOptions are the options of [RunSynthetic].
type SyntheticOptions struct {
	Network *topology.Network
	Params  Params
	Traffic Traffic
	// Threads is the maximum number of threads, which does not change the result; 0: as many as are useful.
	Threads  int
	Progress func(cycle uint64) error // nil, or called periodically; an error ends the run
	Context  context.Context          // ends the run early; see [sim.Interrupted]. nil: no limit
	// Warn prints warnings about the network; nil: discard. Rates names the source of the topology's rates in them; ""
	// if they are defaults.
	Warn  func(message string, args ...any)
	Rates string
	// Precision is the half width of the 95 % confidence interval of the mean packet latency, relative to the mean. The
	// measurement is extended beyond Traffic.Measure until it is reached, up to 64 times. 0: no extension.
	Precision float64

	batch uint64 // measured cycles per batch; 0: no batches
}

// RunSynthetic simulates synthetic traffic and returns the measured report.
func RunSynthetic(o SyntheticOptions) (*Report, error) {
	if o.Precision > 0 {
		if t := &o.Traffic; t.fixed() || t.Pattern == Transient {
			return nil, fmt.Errorf("precision: expected 0 with %v traffic, found %v", t.Pattern, o.Precision)
		}
		return runPrecise(&o)
	}
	return runOnce(&o)
}

// runOnce simulates synthetic traffic for the cycles of o.Traffic.
func runOnce(o *SyntheticOptions) (*Report, error) {
	n, err := newSynthetic(o)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	threads := o.Threads
	if threads == 0 {
		threads = n.threadsFor()
	}
	if o.Traffic.fixed() {
		threads = 1
	}
	run := n.runUntil
	if n.divide(threads, o.Params.PacketFlits, mostPackets) {
		run = n.runDivided
	}
	if err := run(n.to, o.Progress); err != nil {
		return nil, err
	}
	cycles := o.Traffic.Measure
	if o.Traffic.fixed() {
		cycles = n.counters.end
	}
	r := n.report(cycles)
	r.Wall = time.Since(started)
	return r, nil
}

// Curve simulates traffic at several loads in parallel, one per processor, and returns the reports in order. It does
// not call Progress.
func Curve(o SyntheticOptions, loads []float64) ([]*Report, error) {
	reports := make([]*Report, len(loads))
	o.Progress = nil
	err := par.Each(len(loads), func(i int) (err error) {
		point := o
		point.Traffic.Load, point.Threads = loads[i], 1
		if reports[i], err = RunSynthetic(point); err != nil {
			return fmt.Errorf("load %v: %w", loads[i], err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return reports, nil
}

// newSynthetic returns a network with traffic.
func newSynthetic(o *SyntheticOptions) (*worker, error) {
	o.Params.setClasses(&o.Traffic)
	n, err := newNetwork(o.Context, o.Network, &o.Params)
	if err != nil {
		return nil, err
	}
	n.ctx, n.batch = o.Context, o.batch
	if err := n.start(&o.Traffic); err != nil {
		return nil, err
	}
	warn := (&sim.Env{Warn: o.Warn}).WarnOnce()
	n.warnBuffers(warn)
	n.warnRates(o.Rates, warn)
	return n, nil
}

// start makes the hosts of a network generate traffic from its first cycle on.
func (n *worker) start(t *Traffic) error {
	if err := t.check(n.topology, n.p); err != nil {
		return err
	}
	n.from, n.to = t.Warmup, t.Warmup+t.Measure
	if t.fixed() {
		n.from, n.to = 0, never
	}
	n.traffic = newTraffic(n, t)
	for h := range n.nics {
		n.nics[h].generates = never
		n.traffic.random[h] = sim.NewRandom(t.seed(n.p), forTraffic, uint64(h))
		if (t.Load > 0 || t.Then > 0) && !n.traffic.idle(uint32(h)) {
			n.nics[h].generates = n.traffic.first(uint32(h))
			n.wakeGenerator(uint32(h), 0)
		}
	}
	return nil
}

// newTraffic returns the state of traffic in a network.
func newTraffic(n *worker, t *Traffic) *traffic {
	g := newTargets(n, t, make([]sim.Random, n.hosts))
	g.logFail, g.quota = logFailOf(t.Load, n.p), startQuota(n, t)
	if t.Pattern == Transient {
		g.change = &change{n.from + t.Change, logFailOf(t.Then, n.p)}
	}
	if g.reactive = startReplies(n, t); g.reactive != nil {
		n.reactive, g.logFail = true, logFailOf(t.Load/2, n.p) // the other half are replies
	}
	if t.Pattern == Bursty {
		g.startBursts(n)
	}
	return g
}

// newTargets returns the part of the state that selects targets.
func newTargets(n *worker, t *Traffic, random []sim.Random) *traffic {
	g := &traffic{Traffic: t, draw: t.Pattern.entry().target, targets: t.table(n), hot: t.Hot, random: random}
	if t.Pattern == HotRegion {
		g.hot = region(n, t.Part)
	}
	parts, _ := t.parts() // which check has accepted
	for i := range parts {
		parts[i].Seed = t.seed(n.p)
		g.of = append(g.of, newTargets(n, &parts[i], random))
	}
	return g
}

// check returns an error if the network does not support the traffic.
func (t *Traffic) check(n *topology.Network, p *Params) error {
	switch {
	case int(t.Pattern) >= len(patternNames()):
		return fmt.Errorf("unknown pattern %d", t.Pattern)
	case !(t.Share >= 0 && t.Share <= 1):
		return fmt.Errorf("share: expected 0 to 1, found %v", t.Share)
	case !t.fixed() && t.Measure < 1 || t.Measure > 1<<40 || t.Warmup > 1<<40:
		return fmt.Errorf("expected 1 to 2^40 measured cycles and at most 2^40 warm-up cycles, found %d and %d",
			t.Measure, t.Warmup)
	case n.Hosts < 2:
		return errors.New("synthetic traffic needs a network with at least 2 hosts")
	}
	if err := t.checkLoads(p.PacketFlits); err != nil {
		return err
	}
	return t.checkPattern(n)
}

// checkPattern returns an error if the network does not support the pattern.
func (t *Traffic) checkPattern(n *topology.Network) error {
	if e := t.Pattern.entry(); e.check != nil {
		if err := e.check(t, n); err != nil {
			return err
		}
	}
	if len(t.Hot) > 0 && slices.Max(t.Hot) >= uint32(n.Hosts) {
		return fmt.Errorf("expected hosts 0 to %d, found %d", n.Hosts-1, slices.Max(t.Hot))
	}
	return nil
}

// permutation returns a random cyclic permutation (Sattolo 1986), in which no host is its own target.
func permutation(hosts int, seed int64) []uint32 {
	to := make([]uint32, hosts)
	for i := range to {
		to[i] = uint32(i)
	}
	g := sim.NewRandom(seed, forPattern, 0)
	for i := uint32(hosts - 1); i > 0; i-- {
		k := g.Below(i)
		to[i], to[k] = to[k], to[i]
	}
	return to
}

// traffic is the state of synthetic traffic in a network.
type traffic struct {
	*Traffic
	logFail float64      // log of the probability that a host generates no packet in a cycle
	random  []sim.Random // by host
	draw    func(g *traffic, n *worker, h uint32) uint32
	targets []uint32   // by host, for patterns with one target per host
	hot     []uint32   // for Hotspot and HotRegion
	bursts  *bursts    // for Bursty
	quota   *quota     // nil: no end
	change  *change    // nil: none
	of      []*traffic // patterns of Traffic.Of

	reactive *reactive // nil: no replies
}

// first returns the cycle of the first packet of a host.
func (g *traffic) first(h uint32) uint64 {
	if g.bursts != nil {
		return g.bursts.off(&g.random[h])
	}
	return g.after(h, 0)
}

// idle reports whether a host generates no packets because it is its own target.
func (g *traffic) idle(h uint32) bool {
	return g.silent(h)
}

// idleShare returns the share of hosts that generate no packets because they are their own targets.
func (g *traffic) idleShare() float64 {
	idle := 0
	for h := range g.random {
		if g.idle(uint32(h)) {
			idle++
		}
	}
	return float64(idle) / float64(len(g.random))
}

// wakeGenerator wakes a NIC when it generates its next packet, or at the end of the event queue if that is earlier.
func (n *worker) wakeGenerator(h uint32, t uint64) {
	n.wakeNIC(h, min(n.nics[h].generates, t+n.mask))
}

// generate makes the due packet of a host.
func (n *worker) generate(h uint32, t uint64) {
	c, g := &n.nics[h], n.traffic
	if g.bursts != nil {
		c.generates = n.continueBurst(h, t)
		return
	}
	if g.quota != nil {
		c.generates = n.sendQuota(h, t)
		return
	}
	if g.reactive != nil {
		n.sendRequest(h, t)
		c.generates = g.after(h, t+1)
		return
	}
	if room := n.roomFor(h, c, t); room < int64(n.p.PacketFlits) || n.create(h, g.target(n, h), t) == none {
		n.drop(t)
	}
	c.generates = g.after(h, t+1)
}

// create makes a packet if the source queue or, without one, the buffer of its virtual channel has room. It returns its
// number, or none.
func (n *worker) create(h, to uint32, t uint64) uint32 {
	if !n.hasRoom(h, to, t) {
		return none
	}
	id := n.makePacket(h, to, none, uint32(n.p.PacketFlits), t)
	if n.p.SourceQueue > 0 {
		n.queue(&n.nics[h], id)
	} else {
		n.put(h, id, n.injectionChannel(h, to), t)
	}
	return id
}

// hasRoom reports whether a host has room for a packet to another one.
func (n *worker) hasRoom(h, to uint32, t uint64) bool {
	if n.p.SourceQueue > 0 {
		return n.roomFor(h, &n.nics[h], t) >= int64(n.p.PacketFlits)
	}
	return n.injectionChannel(h, to).available(t, uint64(n.p.Speedup)) >= int32(n.p.PacketFlits)
}

// drop counts a packet without room.
func (n *worker) drop(t uint64) {
	if !n.measures(t) {
		return
	}
	n.counters.dropped++
	if n.batch > 0 {
		flits := uint64(n.p.PacketFlits)
		if n.reactive {
			flits *= 2 // there is no reply either
		}
		n.counters.batches[(t-n.from)/n.batch].offered += flits
	}
}

// roomFor returns the free flits of the source queue or, without one, of the router's buffer.
func (n *worker) roomFor(h uint32, c *nic, t uint64) int64 {
	if n.p.SourceQueue > 0 {
		return int64(n.p.SourceQueue) - int64(c.queued) - c.leaving(t)
	}
	room := int64(0)
	first := (uint32(len(n.ports)) + h) * n.vcs
	for _, ch := range n.channels[first:][:n.lanes[hostPort]] {
		room += int64(ch.available(t, uint64(n.p.Speedup)))
	}
	return room
}

// leaving returns the flits of the source queue that have not left with their packet yet.
func (c *nic) leaving(t uint64) int64 {
	if c.sendsReply {
		return 0
	}
	return int64(c.linkFree - min(t, c.linkFree))
}

// target draws the target of a packet.
func (g *traffic) target(n *worker, from uint32) uint32 {
	if g.targets != nil {
		return g.targets[from]
	}
	return g.draw(g, n, from)
}

// runUntil runs a network without ranks up to, but not including, a cycle.
func (n *worker) runUntil(end uint64, progress func(cycle uint64) error) error {
	const often = 1 << 12 // cycles between progress reports
	seen, since := n.events, n.over
	for k := 1; ; k++ {
		t := n.nextCycle()
		if t >= end {
			if t == never && n.live > 0 {
				return n.deadlock()
			}
			return nil
		}
		n.runRouters(t)
		n.runNICs()
		if k%checkCycles == 0 {
			if err := sim.Interrupted(n.ctx); err != nil {
				return err
			}
		}
		if k%often > 0 {
			continue
		}
		if n.events != seen || n.live == 0 {
			seen, since = n.events, n.over
		} else if n.over-since > n.mask { // more than any packet needs
			return n.deadlock()
		}
		if progress != nil {
			if err := progress(t); err != nil {
				return err
			}
		}
	}
}

// runDivided is runUntil with several workers.
func (n *worker) runDivided(end uint64, progress func(cycle uint64) error) error {
	span := max(1<<10, n.mask+1) // more than any packet needs
	for t := uint64(0); t < end; {
		t = min(end, t+span)
		before := n.events
		n.runWorkers(t)
		n.merge()
		if n.interrupted != nil {
			return n.interrupted
		}
		if n.events == before && n.live > 0 {
			return n.deadlock()
		}
		if progress != nil {
			if err := progress(t); err != nil {
				return err
			}
		}
	}
	return nil
}
