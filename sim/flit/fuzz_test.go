package flit

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tracedag/tracedag/sim/topology"
)

// FuzzParams checks that a network with any parameters is refused, or delivers all packets: after the end of traffic
// all packets in the network arrive, and all credits return.
func FuzzParams(f *testing.F) {
	topologies := []string{"star:hosts=5,latency=1ns", "mesh:dims=3x3,latency=2ns", "torus:dims=4x3,p=2,latency=1ns",
		"fattree:k=4,latency=3ns", "dragonfly:p=1,a=2,h=1,latency=1ns,globallatency=9ns",
		"dragonfly:p=2,a=2,h=2,arrangement=palmtree,latency=2ns"}
	for _, preset := range Presets() {
		for routing := range Routing(len(routings)) {
			p := preset.Params
			p.Routing, p.LocalVCs, p.GlobalVCs, p.PacketFlits, p.Pipeline = routing, 4, 2, 8, 2
			text, err := json.Marshal(p)
			if err != nil {
				f.Fatal(err)
			}
			for i := range topologies {
				f.Add(text, i, 0.5+float64(i)/4)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, which int, load float64) {
		var p Params
		if json.Unmarshal(text, &p) != nil || p.PacketFlits > 300 || p.Pipeline > 1000 || p.InjectionDelay > 1000 {
			return
		}
		net, err := topology.Parse(topologies[uint(which)%uint(len(topologies))])
		if err != nil {
			t.Fatal(err)
		}
		n, err := newSynthetic(&SyntheticOptions{Network: net, Params: p, Traffic: Traffic{Load: load, Measure: 500}})
		if err != nil {
			return
		}
		if err := n.runUntil(500, nil); err != nil {
			t.Fatal(err)
		}
		for h := range n.nics {
			n.nics[h].generates = never
		}
		if err := n.runUntil(never, nil); err != nil {
			var deadlock *DeadlockError
			t.Fatal(errors.As(err, &deadlock), err)
		}
		for q := range n.ports {
			pt := &n.ports[q]
			if pt.room != int32(p.OutputBuffer) || n.next[q] != never || n.sendAt[q] != never {
				t.Errorf("port %d has room for %d flits, inputs at %d, output at %d", q, pt.room, n.next[q], n.sendAt[q])
			}
			for v := range uint32(n.count[pt.kind]) {
				if got := n.channels[pt.peer*n.vcs+v].available(1<<40, 1); got != n.capacity[pt.kind] {
					t.Errorf("port %d VC %d: %d credits, want %d", q, v, got, n.capacity[pt.kind])
				}
			}
		}
	})
}
