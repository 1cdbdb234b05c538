package packet

import (
	"fmt"
	"testing"
)

// jain returns Jain's index of the throughput of long flows through one link: to one host, or from different hosts to
// different ones over a single spine.
func jain(t testing.TB, p Params, flows uint32, bytes uint64, incast bool) float64 {
	t.Helper()
	net := parse(t, fmt.Sprintf("leafspine:hosts=%d,tor=%d,spines=1,rate=100Gbps,latency=500ns", 2*flows, flows))
	var list []connection
	for i := range flows {
		c := connection{i, flows + i, 0, bytes}
		if incast {
			c.dst = flows
		}
		list = append(list, c)
	}
	n := runConnections(t, net, p, nil, list)
	n.allThere(t)
	sum, squares := 0.0, 0.0
	for i := range n.records {
		x := float64(bytes) / float64(n.records[i].Acknowledged-n.records[i].Start)
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(flows) * squares)
}

// TestFairness checks that 2, 8 and 32 long flows share a link. DCQCN and HPCC take longer than these flows to reach
// equal rates, as their increases are small; with HPCC's additive increase for the number of flows, they share it.
func TestFairness(t *testing.T) {
	for _, m := range Transports {
		least := map[string]float64{"dcqcn": 0.95, "hpcc": 0.94}[m.Name]
		if least == 0 {
			least = 0.98
		}
		for _, flows := range []uint32{2, 8, 32} {
			for _, incast := range []bool{true, false} {
				bytes := uint64(5 << 20)
				if flows == 32 {
					bytes = 2 << 20
					if !long() {
						continue
					}
				}
				got := jain(t, defaults(t, m.Name, CompatNone), flows, bytes, incast)
				if got < least {
					t.Errorf("%s: Jain's index of %d flows is %.3f, to one host: %v, want %v", m.Name, flows, got, incast, least)
				}
			}
		}
	}
	p := defaults(t, "hpcc", CompatNone)
	p.TransportParams["flows"] = 8
	if got := jain(t, p, 8, 5<<20, false); got < 0.98 {
		t.Errorf("hpcc with flows=8: Jain's index is %.3f", got)
	}
	// The fair coin of the paper favors the flows whose packets arrive last before the next place is free.
	for _, name := range []string{"ndp", "eqds"} {
		if got := jain(t, defaults(t, name, CompatHTSim), 8, 5<<20, false); got > 0.9 {
			t.Errorf("%s with --compat htsim: Jain's index is %.3f, want less than 0.9", name, got)
		}
	}
}
