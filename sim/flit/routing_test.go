package flit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/sim/topology"
)

// ring returns a ring of switches with a host each, whose shortest paths are not free of deadlock with one channel.
func ring(t *testing.T, switches int) *topology.Network {
	t.Helper()
	var b strings.Builder
	for s := range switches {
		fmt.Fprintf(&b, "h%d s%d 100 1\ns%d s%d 100 1\n", s, s, s, (s+1)%switches)
	}
	n, err := topology.ReadEdges(strings.NewReader(b.String()), "ring")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCycleFound: what makes packets wait in a circle is an error that names the circle; with a channel for each hop they do
// not.
func TestCycleFound(t *testing.T) {
	for _, c := range []struct {
		switches, vcs int
		routing       Routing
		cycle         bool
	}{
		{3, 1, Minimal, false}, // one hop: no packet waits between routers
		{5, 1, Minimal, true},
		{5, 1, Adaptive, true},
		{5, 2, Minimal, false},
		{8, 3, Minimal, true},
		{8, 4, Minimal, false},
		{8, 4, Adaptive, false},
	} {
		p := Presets()[0].Params
		p.LocalVCs, p.Routing = c.vcs, c.routing
		_, err := newNetwork(t.Context(), ring(t, c.switches), &p)
		if (err != nil) != c.cycle {
			t.Errorf("%d switches, %d VCs, %v: error %v, want a cycle: %v", c.switches, c.vcs, c.routing, err, c.cycle)
		}
		if err != nil {
			checkChain(t, err.Error()[strings.Index(err.Error(), ": ")+2:])
		}
	}
}

// checkChain checks that links follow each other in a circle.
func checkChain(t *testing.T, chain string) {
	t.Helper()
	links := strings.Split(chain, " -> ")
	if len(links) < 3 || links[0] != links[len(links)-1] {
		t.Fatalf("no circle: %s", chain)
	}
	end := ""
	for _, l := range links {
		if strings.HasPrefix(l, "...") {
			end = ""
			continue
		}
		m := regexp.MustCompile(`^(\w+)-(\w+) VC [0-9]$`).FindStringSubmatch(l)
		if m == nil || end != "" && m[1] != end {
			t.Fatalf("link %q does not follow %s: %s", l, end, chain)
		}
		end = m[2]
	}
}

// TestRefused: networks and routings that do not go together.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		topology, want string
		change         func(p *Params)
	}{
		{"torus:dims=4x4", "local-vcs: expected at least 2 for routing minimal, found 1; use --set local-vcs=2",
			func(p *Params) { p.LocalVCs = 1 }},
		{"torus:dims=4x4", "local-vcs: expected at least 3 for routing adaptive, found 2; use --set local-vcs=3",
			func(p *Params) { p.LocalVCs, p.Routing = 2, Adaptive }},
		{"dragonfly:p=1,a=2,h=1", "global-vcs: expected at least 2 for routing ugal, found 1; use --set global-vcs=2",
			func(p *Params) { p.LocalVCs, p.GlobalVCs, p.Routing = 3, 1, UGAL }},
		{"dragonfly:p=1,a=2,h=1", "routing adaptive is not for dragonflies; use ugal", func(p *Params) { p.Routing = Adaptive }},
		{"star:hosts=3", "routing valiant is for dragonflies only; use minimal or adaptive", func(p *Params) { p.Routing = Valiant }},
		{"star:hosts=3,latency=1ms", "link host0-tor0: expected a latency of at most 65535 cycles, found 1000000", nil},
		{"star:hosts=3", "local-buffer: expected 8 to 1073741824, found 7", func(p *Params) { p.LocalBuffer = 7 }},
		{"star:hosts=3", "speedup: expected 1 without output buffers (output-buffer=0), found 2", func(p *Params) { p.Speedup = 2 }},
		{"star:hosts=3", "cycle: expected 1 to 1000000000000, found 0", func(p *Params) { p.Cycle = 0 }},
	} {
		p := Presets()[0].Params
		if c.change != nil {
			c.change(&p)
		}
		if _, err := newNetwork(t.Context(), mustParse(t, c.topology), &p); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.topology, err, c.want)
		}
	}
}

// TestDefaultVCs: without numbers of virtual channels, every routing is free of deadlock.
func TestDefaultVCs(t *testing.T) {
	for _, c := range []struct {
		topology      string
		routing       Routing
		local, global int
	}{
		{"star:hosts=4", Minimal, 1, 1},
		{"fattree:k=4", Adaptive, 1, 1},
		{"mesh:dims=4x4", Minimal, 1, 1},
		{"mesh:dims=4x4", Adaptive, 2, 1},
		{"torus:dims=2x2", Minimal, 1, 1},
		{"torus:dims=4x4", Minimal, 2, 1},
		{"torus:dims=3x4x2", Adaptive, 3, 1},
		{"dragonfly:p=1,a=2,h=1", Minimal, 2, 1},
		{"dragonfly:p=1,a=2,h=1", Valiant, 3, 2},
		{"dragonfly:p=1,a=2,h=1", UGAL, 3, 2},
		{"dragonfly:p=1,a=2,h=1", UGALGlobal, 3, 2},
		{"dragonfly:p=1,a=2,h=1", Piggyback, 3, 2},
		{"dragonfly:p=2,a=4,h=2", ValiantAny, 4, 2},
		{"dragonfly:p=1,a=3,h=1", CurrentGlobal, 4, 2},
		{"dragonfly:p=1,a=3,h=1", RandomGlobal, 4, 2},
		{"dragonfly:p=2,a=4,h=2", Progressive, 5, 2},
		{"dragonfly:p=2,a=4,h=2", Opportunistic, 3, 2},
	} {
		p := Presets()[0].Params
		p.Routing = c.routing
		if _, err := newNetwork(t.Context(), mustParse(t, c.topology), &p); err != nil {
			t.Errorf("%s, %v: %v", c.topology, c.routing, err)
		}
		if p.LocalVCs != c.local || p.GlobalVCs != c.global {
			t.Errorf("%s, %v: %d local and %d global VCs, want %d and %d", c.topology, c.routing, p.LocalVCs, p.GlobalVCs,
				c.local, c.global)
		}
	}
}

// TestPathsSpread checks that minimal routing in full fat trees gives every link between routers the same number of
// pairs of hosts.
func TestPathsSpread(t *testing.T) {
	for _, text := range []string{"fattree:k=4", "fattree:k=8", "leafspine:hosts=32,tor=8,spines=8"} {
		p := Presets()[0].Params
		n, err := newNetwork(t.Context(), mustParse(t, text), &p)
		if err != nil {
			t.Fatal(err)
		}
		load := map[uint32]int{}
		for from := range uint32(n.hosts) {
			for to := range uint32(n.hosts) {
				for at, number := n.edge[from], to; at != n.edge[to]; {
					var port uint32
					port, number = n.routing.paths.step(at, n.edge[to], number)
					load[port]++
					at = n.topology.Ports()[port].To - uint32(n.hosts)
				}
			}
		}
		links := 0
		for _, l := range n.topology.Links {
			if l.A >= uint32(n.hosts) && l.B >= uint32(n.hosts) {
				links++
			}
		}
		levels := map[int]int{}
		for _, pairs := range load {
			levels[pairs]++
		}
		if len(load) != 2*links || len(levels) > 2 {
			t.Errorf("%s: %d of %d links are used; numbers of links by pairs of hosts: %v", text, len(load), 2*links, levels)
		}
	}
}

// TestDeadlock: a ring whose packets all take one channel comes to a halt, and the chain that is named is a circle; with
// messages as with synthetic traffic, which goes on making packets.
func TestDeadlock(t *testing.T) {
	for _, synthetic := range []bool{false, true} {
		p := Presets()[0].Params
		p.LocalBuffer = 8
		n, err := newUnchecked(ring(t, 5), &p)
		if err != nil {
			t.Fatal(err)
		}
		if synthetic {
			if err := n.start(&Traffic{Load: 1, Measure: 1 << 40}); err != nil {
				t.Fatal(err)
			}
		} else {
			n.driver = record{&recorder{taken: map[uint32]uint64{}}}
			for i := range uint32(5 * 50) {
				n.post(i, i%5, (i+2)%5, 1280, 0)
			}
		}
		err = n.runUntil(1<<40, nil)
		var deadlock *DeadlockError
		if !errors.As(err, &deadlock) {
			t.Fatalf("error %v, want a deadlock", err)
		}
		if deadlock.Packets != n.live || deadlock.Cycle > 100_000 {
			t.Errorf("%d packets in cycle %d", deadlock.Packets, deadlock.Cycle)
		}
		checkChain(t, deadlock.Chain)
	}
}

// TestPaths: on all networks all packets arrive, with buffers that hold hardly anything, and as many hops as it takes.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		topology string
		routing  Routing
		vcs      [2]int
		hops     float64 // mean over pairs of hosts; 0: more than minimal
	}{
		{"star:hosts=9,latency=1ns", Minimal, [2]int{1, 1}, 0},
		{"mesh:dims=4x4,latency=3ns", Minimal, [2]int{1, 1}, 8. / 3},
		{"mesh:dims=4x4,latency=3ns", Minimal, [2]int{3, 1}, 8. / 3},
		{"mesh:dims=4x4,latency=3ns", Adaptive, [2]int{2, 1}, 8. / 3},
		{"torus:dims=4x5,latency=3ns", Minimal, [2]int{2, 1}, (1 + 1.2) * 20 / 19},
		{"torus:dims=4x5,latency=3ns", Adaptive, [2]int{3, 1}, (1 + 1.2) * 20 / 19},
		{"torus:dims=4x3x2,p=2,latency=1ns", Adaptive, [2]int{4, 1}, (1 + 2./3 + 0.5) * 48 / 47},
		{"fattree:k=4,latency=1ns", Minimal, [2]int{1, 1}, (2*2 + 12*4) / 15.},
		{"fattree:k=4,latency=1ns", Minimal, [2]int{2, 1}, (2*2 + 12*4) / 15.},
		{"fattree:k=4,latency=1ns", Adaptive, [2]int{1, 1}, (2*2 + 12*4) / 15.},
		{"dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=1ns", Minimal, [2]int{2, 1}, 2.338},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", Minimal, [2]int{2, 1}, 2.338},
		{"dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=1ns", Valiant, [2]int{3, 2}, 3.8},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", UGAL, [2]int{3, 2}, 3.45}, // full buffers make packets detour
		{"dragonfly:p=2,a=4,h=2,latency=1ns", ValiantAny, [2]int{4, 2}, 4.4},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", CurrentGlobal, [2]int{4, 2}, 3.6},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", RandomGlobal, [2]int{4, 2}, 4.3},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", Piggyback, [2]int{3, 2}, 3.45},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", Progressive, [2]int{5, 2}, 2.75},
		{"dragonfly:p=2,a=4,h=2,latency=1ns", Opportunistic, [2]int{3, 2}, 3.05},
	} {
		for _, buffered := range []bool{false, true} {
			name := fmt.Sprintf("%s %v %v %v", c.topology, c.routing, c.vcs, buffered)
			n := vefSwitch(t, c.topology, func(p *Params) {
				p.Routing, p.LocalVCs, p.GlobalVCs = c.routing, c.vcs[0], c.vcs[1]
				p.InjectionBuffer, p.LocalBuffer, p.GlobalBuffer = 8, 8, 16
				if buffered {
					p.OutputBuffer, p.Speedup, p.Iterations, p.WholeCredits = 16, 2, 2, true
					p.InputArbiter, p.OutputArbiter = LeastRecentlyServed, LeastRecentlyServed
				}
			})
			var posts []post
			for from := range uint32(n.hosts) {
				for to := range uint32(n.hosts) {
					if from != to {
						posts = append(posts, post{from, to, uint64(16 + (from*7+to*3)%300), 0})
					}
				}
			}
			r := play(t, n, posts, nil)
			if len(r.received) != len(posts) {
				t.Errorf("%s: %d of %d messages received", name, len(r.received), len(posts))
			}
			report := n.report(1)
			if got := report.Hops; got < c.hops*0.92 || got > c.hops*1.08 {
				t.Errorf("%s: %.3f hops, want %.3f", name, got, c.hops)
			}
		}
	}
}
