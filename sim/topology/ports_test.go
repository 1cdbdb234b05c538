package topology

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestPortNames(t *testing.T) {
	network, err := ReadEdges(strings.NewReader("h0 s0 100 1\nh1 s1 100 1\ns0 s1 100 1\ns0 s1 100 1\n"), "edges")
	if err != nil {
		t.Fatal(err)
	}
	got := network.PortNames()
	slices.Sort(got)
	want := []string{"h0->s0", "h1->s1", "s0->h0", "s0->s1", "s0->s1#2", "s1->h1", "s1->s0", "s1->s0#2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestBundles checks the bundles of fat trees: they divide the ports, and traffic that is spread over all shortest
// paths
// between two hosts has equal parts on all ports of a bundle.
func TestBundles(t *testing.T) {
	for _, text := range []string{"fattree:k=4", "fattree:hosts=32,tiers=3,oversubscription=2,pod=8,tor=4",
		"leafspine:hosts=16,tor=4,spines=3,bundle=2", "fattree:hosts=16,k=4,bundle=1/2"} {
		n, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		routes, err := NewRoutes(t.Context(), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		bundles, ports := n.Bundles(), n.Ports()
		sizes := make([]int, len(ports))
		for _, b := range bundles {
			sizes[b]++
		}
		for from := range uint32(n.Hosts) {
			for to := range uint32(n.Hosts) {
				edge := routes.Edge(to)
				use := make(map[uint32]float64) // by port
				at := map[uint32]float64{routes.Edge(from): 1}
				for len(at) > 0 {
					next := make(map[uint32]float64)
					for sw, part := range at {
						all := routes.Next(sw, edge)
						for _, port := range all {
							use[port] += part / float64(len(all))
							next[ports[port].To-uint32(n.Hosts)] += part / float64(len(all))
						}
					}
					at = next
				}
				sums, used := make(map[uint32]float64), make(map[uint32]int)
				for port, part := range use {
					b := bundles[port]
					sums[b] += part
					used[b]++
					if math.Abs(part*float64(sizes[b])-1) > 1e-9 {
						t.Fatalf("%s: %v of the traffic from %d to %d is on port %d of a bundle of %d", text, part, from, to,
							port, sizes[b])
					}
				}
				for b, sum := range sums {
					if used[b] != sizes[b] || math.Abs(sum-1) > 1e-9 {
						t.Fatalf("%s: %v of the traffic from %d to %d is on %d ports of bundle %d", text, sum, from, to,
							used[b], b)
					}
				}
			}
		}
	}
	if n, err := Parse("torus:dims=4x4"); err != nil || n.Bundles() != nil {
		t.Errorf("a torus has bundles: %v", err)
	}
}
