package topology

import (
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestDragonfly(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 1}, {2, 4, 2}, {1, 3, 2}, {3, 2, 5}, {4, 8, 4}} {
		p, a, h := shape[0], shape[1], shape[2]
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			n, err := Dragonfly(DragonflyParams{P: p, A: a, H: h, Rate: 100 * gbps, Latency: 1, GlobalRate: 50 * gbps,
				GlobalLatency: 2, SwitchLatency: 3})
			if err != nil {
				t.Fatal(err)
			}
			d := n.Dragonfly
			groups := a*h + 1
			if d.Groups != groups || n.Switches != groups*a || n.Hosts != groups*a*p {
				t.Fatalf("%d groups, %d routers, %d hosts", d.Groups, n.Switches, n.Hosts)
			}
			local, global := map[[2]int]int{}, map[[2]int]int{}
			globals := make([]int, n.Switches)
			for l, link := range n.Links {
				if l < n.Hosts {
					if link != (Link{uint32(l), n.node(l / p), 100 * gbps, 1}) {
						t.Errorf("host %d: link %v", l, link)
					}
					continue
				}
				x, y := int(link.A)-n.Hosts, int(link.B)-n.Hosts
				if d.Group(x) == d.Group(y) {
					local[[2]int{x, y}]++
					if link.Rate != 100*gbps || link.Latency != 1 || x >= y {
						t.Errorf("routers %d and %d: link %v", x, y, link)
					}
					continue
				}
				s, g := d.Group(x), d.Group(y)
				global[[2]int{s, g}]++
				globals[x]++
				globals[y]++
				// Among the other groups of s, g > s is at position g-1; among those of g, s is at position s.
				if link.Rate != 50*gbps || link.Latency != 2 || s >= g || x%a != (g-1)/h || y%a != s/h {
					t.Errorf("groups %d and %d: link %v of routers %d and %d", s, g, link, x%a, y%a)
				}
				if d.Gateway(s, g) != x || d.Gateway(g, s) != y {
					t.Errorf("groups %d and %d: gateways %d and %d, want %d and %d", s, g, d.Gateway(s, g), d.Gateway(g, s), x, y)
				}
			}
			if len(local) != groups*a*(a-1)/2 || len(global) != groups*(groups-1)/2 ||
				len(n.Links) != n.Hosts+len(local)+len(global) {
				t.Errorf("%d links in groups, %d between them, %d in all", len(local), len(global), len(n.Links))
			}
			for router, count := range globals {
				if count != h || n.SwitchLatency[router] != 3 {
					t.Errorf("router %d: %d global links, latency %v", router, count, n.SwitchLatency[router])
				}
			}
			// One minimal path, over the one link between the groups.
			r, ports := routes(t, n, nil), n.Ports()
			for x := range uint32(n.Switches) {
				for y := range uint32(n.Switches) {
					if r.Paths(x, y) != 1 {
						t.Fatalf("routers %d to %d: %d paths, want 1", x, y, r.Paths(x, y))
					}
					links := 0
					for at := x; at != y; links++ {
						before := at
						at = ports[r.Next(at, y)[0]].To - uint32(n.Hosts)
						if from, to := d.Group(int(before)), d.Group(int(at)); from != to && to != d.Group(int(y)) {
							t.Fatalf("routers %d to %d: through group %d", x, y, to)
						}
					}
					if links > 3 {
						t.Fatalf("routers %d to %d: %d links", x, y, links)
					}
				}
			}
		})
	}
	for _, test := range []struct {
		p    DragonflyParams
		want string
	}{
		{DragonflyParams{P: 1, A: 0, H: 1}, "dragonfly: expected p, a and h from 1 to 4096, found 1, 0 and 1"},
		{DragonflyParams{P: 4096, A: 4096, H: 4096},
			"dragonfly: expected at most 4194304 hosts and 4194304 links, found 281474993487872 and 562915627235328"},
		{DragonflyParams{P: 1, A: 1, H: 1, Rate: 1, GlobalRate: 1, Latency: -dag.Nanosecond},
			"dragonfly: link host0-router0: expected a latency of 0 to 1000s, found -1ns"},
	} {
		if _, err := Dragonfly(test.p); err == nil || err.Error() != test.want {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
}
