package flit

import (
	"fmt"
	"testing"
)

// adaptiveRuns are runs of FOGSim with one seed, with the packets off the minimal path as a share. Short ones have 4000
// cycles of warm-up and 6000 measured ones, the others 10000 and 20000.
var adaptiveRuns = []struct {
	pattern                             string
	load                                float64
	routing                             Routing
	accepted, latency, nonminimal, hops float64
	short                               bool
}{
	{"adversarial+1", 0.10, UGAL, 0.1007, 170.1, 0.269, 3.05, false},
	{"adversarial+1", 0.10, Piggyback, 0.1007, 170.1, 0.269, 3.05, false},
	{"adversarial+1", 0.10, Progressive, 0.1007, 151.7, 0.058, 2.53, false},
	{"adversarial+1", 0.10, Opportunistic, 0.1006, 151.7, 0.073, 2.54, false},
	{"adversarial+1", 0.20, UGAL, 0.2002, 250.2, 0.389, 3.23, false},
	{"adversarial+1", 0.20, Piggyback, 0.2004, 248.1, 0.392, 3.24, false},
	{"adversarial+1", 0.20, Progressive, 0.1571, 601, 0.204, 2.81, false},
	{"adversarial+1", 0.20, Opportunistic, 0.1569, 614, 0.229, 2.84, false},
	{"adversarial+1", 0.30, Progressive, 0.226, 248, 0.447, 2.96, true},
	{"adversarial+1", 0.30, Opportunistic, 0.226, 241, 0.471, 3.01, true},
	{"adversarial+1", 0.45, Piggyback, 0.258, 929, 0.546, 3.49, true},
	{"adversarial+1", 0.45, Progressive, 0.296, 663, 0.578, 3.01, true},
	{"adversarial+1", 0.45, Opportunistic, 0.334, 305, 0.645, 3.09, true},
	{"uniform", 0.30, UGAL, 0.300, 153.9, 0.185, 2.83, false},
	{"uniform", 0.30, Piggyback, 0.300, 153.8, 0.185, 2.83, false},
	{"uniform", 0.30, Progressive, 0.300, 131.1, 0.010, 2.35, false},
	{"uniform", 0.30, Opportunistic, 0.300, 132.8, 0.075, 2.41, false},
	{"adversarial-local+1", 0.60, Minimal, 0.480, 534, 0, 1, false},
	{"adversarial-local+1", 0.60, Valiant, 0.480, 534, 0, 1, false},
	{"adversarial-local+1", 0.60, Piggyback, 0.480, 534, 0, 1, false},
	{"adversarial-local+1", 0.60, Progressive, 0.480, 534, 0, 1, false},
	{"adversarial-local+1", 0.60, Opportunistic, 0.601, 41.5, 0.326, 1.33, false},
}

// runAdaptive runs a pattern with the parameters of the reference's runs.
func runAdaptive(t *testing.T, pattern string, load float64, routing Routing, short bool, change func(p *Params)) *Report {
	t.Helper()
	net, p := small(t)
	traffic, err := parsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	traffic.Load, traffic.Warmup, traffic.Measure = load, 10_000, 20_000
	if short {
		traffic.Warmup, traffic.Measure = 4000, 6000
	}
	p.Routing, p.LocalVCs, p.GlobalVCs, p.UGALWeight = routing, 0, 0, WeightHops
	if change != nil {
		change(&p)
	}
	r, err := RunSynthetic(SyntheticOptions{Network: net, Params: p, Traffic: traffic})
	if err != nil {
		t.Fatalf("%s, %v: %v", pattern, routing, err)
	}
	return r
}

// TestAdaptiveReference compares adaptive routings with FOGSim. PAR and OLM are bistable at load 0.2: they accept less there
// than at 0.3.
func TestAdaptiveReference(t *testing.T) {
	for _, c := range adaptiveRuns {
		t.Run(fmt.Sprint(c.pattern, "@", c.load, " ", c.routing), func(t *testing.T) {
			t.Parallel()
			r := runAdaptive(t, c.pattern, c.load, c.routing, c.short, nil)
			t.Logf("accepted %.4f of %.4f, latency %.1f of %.1f, non-minimal %.3f of %.3f, hops %.2f of %.2f", r.Accepted,
				c.accepted, r.Packet.Mean, c.latency, r.Nonminimal, c.nonminimal, r.Hops, c.hops)
			load, latency := 0.02, 0.05
			if c.load == 0.2 && (c.routing == Progressive || c.routing == Opportunistic) {
				latency = 0.1
			}
			near(t, "accepted load", r.Accepted, c.accepted, load)
			near(t, "latency", r.Packet.Mean, c.latency, latency)
			near(t, "hops", r.Hops, c.hops, 0.03)
			if d := r.Nonminimal - c.nonminimal; d > 0.03 || d < -0.03 {
				t.Errorf("share of packets off the minimal path is %.3f, want %.3f within 0.03", r.Nonminimal, c.nonminimal)
			}
		})
	}
}

// TestAdaptiveOrder: the order of the routings under adversarial traffic beyond saturation, and their cost under uniform
// traffic; local traffic exceeds one link of two hosts with local detours only.
func TestAdaptiveOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	accepted := func(pattern string, load float64, routing Routing, policy Policy) *Report {
		return runAdaptive(t, pattern, load, routing, true, func(p *Params) { p.MisroutePolicy = policy })
	}
	before := 0.0
	for _, routing := range []Routing{Minimal, Piggyback, Progressive, Opportunistic} {
		r := accepted("adversarial+1", 0.45, routing, DefaultPolicy)
		if r.Accepted <= before {
			t.Errorf("%v accepts %.4f, no more than the one before, %.4f", routing, r.Accepted, before)
		}
		before = r.Accepted
	}
	minimal := accepted("uniform", 0.3, Minimal, DefaultPolicy).Packet.Mean
	for routing, most := range map[Routing]float64{Progressive: 1.03, Opportunistic: 1.03, UGAL: 1.25, Piggyback: 1.25} {
		if got := accepted("uniform", 0.3, routing, DefaultPolicy).Packet.Mean / minimal; got > most || most > 1.1 && got < 1.15 {
			t.Errorf("%v: %.3f of the latency of minimal paths", routing, got)
		}
	}
	for _, c := range []struct {
		routing Routing
		policy  Policy
		exceeds bool
	}{
		{Valiant, DefaultPolicy, false}, {CurrentGlobal, DefaultPolicy, false}, {RandomGlobal, DefaultPolicy, false},
		{UGAL, DefaultPolicy, false}, {Piggyback, DefaultPolicy, false}, {Progressive, DefaultPolicy, false},
		{Progressive, Current, false}, {Progressive, MixedLocal, true}, {Progressive, CurrentLocal, true},
		{Opportunistic, DefaultPolicy, true}, {Opportunistic, CurrentLocal, true}, {Opportunistic, Mixed, false},
		{ValiantAny, DefaultPolicy, true},
	} {
		if got := accepted("adversarial-local", 0.6, c.routing, c.policy).Accepted; got > 0.5 != c.exceeds {
			t.Errorf("%v, policy %v: accepts %.3f of local traffic", c.routing, c.policy, got)
		}
	}
}

// TestOpenPaths explores all hops that packets may take in transit, and checks that the minimal path is open from each
// router on channels behind that of the last hop, so that waiting for it is free of cycles.
func TestOpenPaths(t *testing.T) {
	for _, shape := range []string{"dragonfly:p=1,a=3,h=1", "dragonfly:p=1,a=3,h=2,arrangement=palmtree", "dragonfly:p=1,a=1,h=2"} {
		for _, routing := range []Routing{Progressive, Opportunistic} {
			for policy := DefaultPolicy; policy <= CurrentLocal; policy++ {
				p := Presets()[0].Params
				p.Routing, p.MisroutePolicy = routing, policy
				n, err := newNetwork(t.Context(), mustParse(t, shape), &p)
				if err != nil {
					t.Fatal(err)
				}
				explored := 0
				for from := range n.edge {
					for to := range n.edge {
						seen := map[packet]bool{}
						explore(t, n, packet{to: uint32(to), via: none, vc: 0}, n.edge[from], none, 0, seen)
						explored += len(seen)
					}
				}
				if explored < n.hosts*(n.hosts-1) {
					t.Errorf("%s, %v: %d states", shape, routing, explored)
				}
			}
		}
	}
}

// explore follows a packet at a router along all hops. rank is the place of its channel in the sequence, plus 1.
func explore(t *testing.T, n *worker, pk packet, at, before uint32, rank uint8, seen map[packet]bool) {
	key := pk
	key.out, key.head = at, uint64(rank)
	key.hops = min(key.hops, 1)
	if seen[key] || at == n.edge[pk.to] {
		return
	}
	seen[key] = true
	if pk.hops > 9 {
		t.Fatalf("a packet takes %d hops", pk.hops)
	}
	r := &n.routing
	to := n.edge[pk.to]
	minimal := r.towards(n, at, to, none)
	for place, stage := at, max(pk.stage, rank); place != to; { // the rest of the minimal path
		out := r.towards(n, place, to, none)
		if stage, _ = r.sequence.hop(stage, n.ports[out].kind); stage == noStage {
			t.Fatalf("%v: no channel for the minimal path of %+v at router %d", n.p.Routing, pk, at)
		}
		place = n.ports[out].beyond
	}
	outs := []uint32{minimal}
	if kind, _ := r.option(&pk, at, to, n.ports[minimal].kind); kind != hostPort {
		if stage, _ := r.detourHop(&pk, at, to, kind); stage != noStage {
			for q := n.base[at]; q < n.base[at+1]; q++ {
				if n.ports[q].kind == kind && q != minimal {
					outs = append(outs, q)
				}
			}
		}
	}
	for _, out := range outs {
		next, kind := pk, n.ports[out].kind
		_, vc := r.sequence.hop(pk.stage, kind)
		if out != minimal {
			_, vc = r.detourHop(&pk, at, to, kind)
		}
		r.moved(n, &next, at, out)
		next.hops++
		place := uint8(0)
		for i := range r.sequence.kinds {
			if r.sequence.kinds[i] == kind && r.sequence.vcs[i] == vc {
				place = uint8(i) + 1
			}
		}
		if n.p.Routing == Progressive && place <= rank {
			t.Fatalf("a packet goes from place %d of the sequence to %d", rank, place)
		}
		explore(t, n, next, n.ports[out].beyond, out, place, seen)
	}
}

// TestHistory: the congestion of the past, as other routers know it.
func TestHistory(t *testing.T) {
	var h history
	want := map[uint64]bool{}
	now := false
	for c := range uint64(400) {
		if c%3 == 1 || c%7 == 2 {
			now = !now
			h.set(now, c, c-min(c, 20))
		}
		want[c] = now
		for age := range min(c, 20) {
			if got := h.at(c - age); got != want[c-age] {
				t.Fatalf("cycle %d: congested in %d is %v", c, c-age, got)
			}
		}
	}
	if cap(h.changes) > 64 {
		t.Errorf("%d changes are kept", cap(h.changes))
	}
}

// TestIntermediate: the groups of the routings through a random router.
func TestIntermediate(t *testing.T) {
	for _, c := range []struct {
		routing Routing
		to      uint32
		want    int // routers
	}{
		{ValiantAny, 40, 32}, {RandomGlobal, 40, 32}, {CurrentGlobal, 40, 8}, {ValiantAny, 20, 4}, {RandomGlobal, 20, 0},
	} {
		net, p := small(t)
		p.Routing, p.LocalVCs, p.GlobalVCs = c.routing, 0, 0
		n, err := newNetwork(t.Context(), net, &p)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint32]int{}
		for range 4000 {
			if via := n.routing.intermediate(n, 19, c.to); via != none {
				seen[via]++
			}
		}
		if len(seen) != c.want {
			t.Errorf("%v to %d: %d intermediate routers, want %d", c.routing, c.to, len(seen), c.want)
		}
		for via, count := range seen {
			near(t, fmt.Sprint("packets through ", via), float64(count), 4000/float64(c.want), 0.5)
			first, last := n.globalPorts(9)
			beyond := false
			for q := first; q < last; q++ {
				beyond = beyond || net.Dragonfly.Group(int(n.ports[q].beyond)) == net.Dragonfly.Group(int(via))
			}
			if c.routing == CurrentGlobal && !beyond {
				t.Errorf("router 9 has no link to the group of %d", via)
			}
		}
	}
}

// TestAllocations: in steady state no routing allocates memory.
func TestAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, routing := range []Routing{Minimal, UGAL, ValiantAny, Piggyback, Progressive, Opportunistic} {
		net, p := small(t)
		p.Routing, p.LocalVCs, p.GlobalVCs = routing, 0, 0
		n, err := newSynthetic(&SyntheticOptions{Network: net, Params: p, Traffic: Traffic{Pattern: Adversarial, Offset: 1, Load: 0.4,
			Measure: 1 << 30}})
		if err != nil {
			t.Fatal(err)
		}
		to := uint64(20_000)
		run := func() {
			if err := n.runUntil(to, nil); err != nil {
				t.Fatal(err)
			}
			to += 1000
		}
		run()
		if got := testing.AllocsPerRun(5, run); got > 5 {
			t.Errorf("%v: %v allocations in 1000 cycles", routing, got)
		}
	}
}
