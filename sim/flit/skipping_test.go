package flit

import (
	"fmt"
	"reflect"
	"testing"
)

// TestSkipping checks that skipping idle routers, ports and NICs gives the same result as visiting each of them in
// every cycle.
func TestSkipping(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	reference := func(p *Params) {
		p.InputArbiter, p.OutputArbiter, p.TransitFirst = LeastRecentlyServed, LeastRecentlyServed, true
		p.OutputBuffer, p.Speedup, p.Iterations, p.WholeCredits, p.SourceQueue, p.Pipeline = 32, 2, 2, true, 0, 3
		p.InjectionVCs, p.LocalVCs, p.GlobalVCs = 3, 3, 2
	}
	for _, c := range []struct {
		topology string
		routing  Routing
		vcs      int
		change   func(p *Params)
	}{
		{"star:hosts=8,latency=1ns", Minimal, 1, nil},
		{"star:hosts=8,latency=4ns", Minimal, 3, func(p *Params) { p.InjectionVCs = 3 }},
		{"star:hosts=8,latency=1ns", Minimal, 3, reference},
		{"mesh:dims=4x4,latency=2ns", Minimal, 2, nil},
		{"mesh:dims=4x4,latency=2ns", Adaptive, 4, nil},
		{"torus:dims=5x4,latency=3ns", Adaptive, 4, reference},
		{"torus:dims=5x4,latency=3ns", Minimal, 4, func(p *Params) { p.OutputBuffer, p.Speedup = 16, 2 }},
		{"fattree:k=4,latency=5ns", Adaptive, 2, nil},
		{"fattree:k=4,latency=5ns", Minimal, 2, func(p *Params) { p.SourceQueue = 0 }},
		{"fattree:k=4,latency=5ns", Adaptive, 3, reference},
		{"dragonfly:p=2,a=4,h=2,latency=10ns,globallatency=100ns", Minimal, 3, reference},
		{"dragonfly:p=2,a=4,h=2,latency=10ns,globallatency=100ns", UGAL, 3, reference},
		{"dragonfly:p=2,a=4,h=2,latency=10ns,globallatency=100ns", UGALGlobal, 3, reference},
		{"dragonfly:p=2,a=4,h=2,latency=10ns,globallatency=100ns", Piggyback, 3, reference},
		{"dragonfly:p=2,a=4,h=2,latency=10ns,globallatency=100ns", Opportunistic, 3, reference},
		{"dragonfly:p=2,a=4,h=2,latency=10ns,globallatency=100ns", Progressive, 5, func(p *Params) {
			reference(p)
			p.LocalVCs = 5
		}},
		{"dragonfly:p=2,a=2,h=2,latency=10ns,globallatency=30ns", Opportunistic, 3, func(p *Params) { p.GlobalVCs = 2 }},
		{"dragonfly:p=2,a=2,h=2,latency=10ns,globallatency=30ns", Piggyback, 3, func(p *Params) { p.GlobalVCs = 2 }},
		{"dragonfly:p=2,a=2,h=2,latency=10ns,globallatency=30ns", UGAL, 3, func(p *Params) { p.GlobalVCs = 2 }},
		{"dragonfly:p=2,a=2,h=2,latency=10ns,globallatency=30ns", Valiant, 3, func(p *Params) { p.GlobalVCs = 2 }},
	} {
		for _, load := range []float64{0.3, 0.9} {
			t.Run(fmt.Sprint(c.topology, c.routing, load), func(t *testing.T) {
				var reports [2]*Report
				for dense := range reports {
					p := Presets()[0].Params
					p.Routing, p.LocalVCs = c.routing, c.vcs
					p.InjectionBuffer, p.LocalBuffer, p.GlobalBuffer = 32, 16, 32
					if c.change != nil {
						c.change(&p)
					}
					n, err := newSynthetic(&SyntheticOptions{Network: mustParse(t, c.topology), Params: p,
						Traffic: Traffic{Load: load, Measure: 3000}})
					if err != nil {
						t.Fatal(err)
					}
					if dense == 0 {
						err = n.runUntil(n.to, nil)
					}
					for cycle := uint64(0); dense == 1 && cycle < n.to; cycle++ {
						for q := range n.ports {
							pt := &n.ports[q]
							n.schedule(uint32(q), pt, cycle)
							n.next[q] = max(min(n.next[q], cycle), pt.busy)
							n.wakeRouter(pt.router, cycle)
						}
						for h := range n.nics {
							n.wakeNIC(uint32(h), cycle)
						}
						n.runRouters(cycle)
						n.runNICs()
					}
					if err != nil {
						t.Fatal(err)
					}
					reports[dense] = n.report(3000)
					reports[dense].Stalls = nil // are accounted for at other times
				}
				if !reflect.DeepEqual(reports[0], reports[1]) {
					t.Errorf("another result\n%+v\n%+v", reports[0].Packet, reports[1].Packet)
				}
			})
		}
	}
}
