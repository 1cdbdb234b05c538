package flow

import (
	"math"
	"testing"

	"github.com/tracedag/tracedag/sim/topology"
)

// TestEntropy checks the parts of flows that are sprayed by hashes of entropy values.
func TestEntropy(t *testing.T) {
	net, err := topology.Parse("fattree:k=4,rate=100Gbps,latency=1us")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topology.NewRoutes(t.Context(), net, nil)
	if err != nil {
		t.Fatal(err)
	}
	spread := 0.0
	for _, entropy := range []int{1, 7, 128, 1 << 16} {
		for flow := range uint32(20) {
			s, p := newSelector(net, routes, balanceSpray, 1, entropy, false), path{}
			if _, err := s.find(&p, 0, 15, flow+1, nil); err != nil {
				t.Fatal(err)
			}
			if want := 6e6; p.latency != want {
				t.Errorf("latency %v, expected %v", p.latency, want)
			}
			sum, out := 0.0, 0.0 // of all links; of those from the first switch
			for _, h := range p.hops {
				sum += h.part
				if port := s.ports[h.link]; int(port.From) == net.Hosts && int(port.To) >= net.Hosts {
					out = max(out, h.part)
				}
			}
			if math.Abs(sum-6) > 1e-9 { // six links on each path
				t.Errorf("%d values: parts have the sum %v, expected 6", entropy, sum)
			}
			switch {
			case entropy == 1 && len(p.hops) != 6:
				t.Errorf("one value: %d links, expected 6", len(p.hops))
			case entropy == 1<<16 && math.Abs(out-0.5) > 0.01:
				t.Errorf("%d values: the larger part of two is %v", entropy, out)
			case entropy == 128:
				spread += (out - 0.5) / 20
			}
		}
	}
	// The mean deviation of a binomial distribution with 128 draws of probability 1/2: sqrt(128 / (2 pi)) = 4.5 values.
	if spread < 0.02 || spread > 0.055 {
		t.Errorf("the larger of two parts exceeds half by %v in the mean, expected 0.035", spread)
	}
}
