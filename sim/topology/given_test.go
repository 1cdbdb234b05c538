package topology

import (
	"iter"
	"testing"

	"github.com/tracedag/tracedag/sim/platform"
)

// FuzzFromPlatform builds networks of the routes of platforms. Their routes consist of ports that exist, whose ends are
// at one switch, and begin and end at the hosts or behind virtual links.
func FuzzFromPlatform(f *testing.F) {
	cluster := func(text string) string {
		return `<platform version="4.1"><cluster id="c" prefix="n" suffix="" speed="1Gf" bw="1GBps" lat="1us" ` + text +
			`/></platform>`
	}
	f.Add(cluster(`radical="0-3"`))
	f.Add(cluster(`radical="0-3" bb_bw="2GBps" bb_sharing_policy="FATPIPE" limiter_link="1GBps"`))
	f.Add(cluster(`radical="0-3" topology="FAT_TREE" topo_parameters="2;2,2;1,2;1,2" loopback_bw="1GBps"`))
	f.Add(cluster(`radical="0-8" topology="TORUS" topo_parameters="3,3" sharing_policy="SHARED"`))
	f.Add(cluster(`radical="0-15" topology="DRAGONFLY" topo_parameters="2,1;2,1;2,1;2"`))
	f.Add(`<platform version="4.1"><zone id="z" routing="Full"><host id="a"/><host id="b"/><link id="l" bandwidth="1GBps"/>` +
		`<link id="m" bandwidth="2GBps" latency="1us" sharing_policy="FATPIPE"/><route src="a" dst="b"><link_ctn id="l"/>` +
		`<link_ctn id="m"/></route></zone></platform>`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := platform.Read([]byte(text), "p.xml")
		if err != nil || len(p.Hosts) > 64 {
			return
		}
		between := func(first, last int) iter.Seq2[uint32, uint32] {
			return func(yield func(from, to uint32) bool) {
				for from := min(first, len(p.Hosts)); from < min(last, len(p.Hosts)); from++ {
					for to := range p.Hosts {
						if !yield(uint32(from), uint32(to)) {
							return
						}
					}
				}
			}
		}
		n, err := FromPlatform(p, between(0, 4), between(4, 6))
		if err != nil {
			return
		}
		routes, err := NewRoutes(t.Context(), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, ports := n.Given, n.Ports()
		for _, pair := range g.Pairs() {
			at := pair[0]
			if nic := routes.NIC(pair[0]); g.Virtual(int(nic / 2)) {
				at = ports[nic].To
				if ports[nic].From != pair[0] {
					t.Fatalf("the NIC of host %d is at node %d", pair[0], ports[nic].From)
				}
			}
			number, ok := g.Number(pair[0], pair[1])
			if _, back := g.Number(pair[1], pair[0]); !ok || !back {
				t.Fatalf("hosts %v: expected routes in both directions", pair)
			}
			list := g.Route(number)
			for _, port := range list {
				if !g.Exists(int(port)) || ports[port].From != at {
					t.Fatalf("route %v: port %d from node %d, expected one from %d", list, port, ports[port].From, at)
				}
				at = ports[port].To
			}
			if int(at) < n.Hosts && at != pair[1] {
				t.Fatalf("route %v ends at host %d, expected %d", list, at, pair[1])
			}
		}
		for i := range n.Links {
			if w := &n.Links[i]; w.Rate < 1 || w.Rate > maxRate || w.Latency < 0 ||
				max(int(w.A), int(w.B)) >= n.Hosts+n.Switches {
				t.Fatalf("link %d: %+v", i, *w)
			}
		}
	})
}
