package topology

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

const gbps = gigabit

func parse(t testing.TB, spec string) *Network {
	t.Helper()
	n, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func edges(t testing.TB, text string) *Network {
	t.Helper()
	n, err := ReadEdges(strings.NewReader(text), "edges")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func routes(t testing.TB, n *Network, down func(int) bool) *Routes {
	t.Helper()
	r, err := NewRoutes(context.Background(), n, down)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// walk returns the names of the switches that a path goes through, from a switch to an edge switch.
func walk(n *Network, ports []Port, r *Routes, sw, edge, path uint32) string {
	name := n.Name(n.node(int(sw)))
	for sw != edge {
		var port uint32
		port, path = r.Choose(sw, edge, path)
		if port == NoPort {
			return name + " none"
		}
		sw = ports[port].To - uint32(n.Hosts)
		name += " " + n.Name(ports[port].To)
	}
	if path != 0 {
		return fmt.Sprintf("%s and path %d", name, path)
	}
	return name
}

// checkRoutes compares the tables with the shortest paths that are found by listing them all.
func checkRoutes(t *testing.T, n *Network, down func(int) bool) {
	t.Helper()
	r := routes(t, n, down)
	ports := n.Ports()
	hosts := uint32(n.Hosts)
	const none = math.MaxInt / 4
	dist := make([][]int, n.Switches) // Floyd and Warshall's
	for i := range dist {
		dist[i] = make([]int, n.Switches)
		for j := range dist[i] {
			if i != j {
				dist[i][j] = none
			}
		}
	}
	out := make([][]uint32, n.Switches)
	weight := func(p Port) int {
		if n.Dragonfly != nil && n.Dragonfly.Group(int(p.From-hosts)) != n.Dragonfly.Group(int(p.To-hosts)) {
			return 1000
		}
		return 1
	}
	for i, p := range ports {
		if p.From >= hosts && p.To >= hosts && (down == nil || !down(p.Link)) {
			out[p.From-hosts] = append(out[p.From-hosts], uint32(i))
			dist[p.From-hosts][p.To-hosts] = weight(p)
		}
	}
	for k := range dist {
		for i := range dist {
			for j := range dist {
				dist[i][j] = min(dist[i][j], dist[i][k]+dist[k][j])
			}
		}
	}
	var list func(sw, edge uint32, taken []uint32, found *[]string)
	list = func(sw, edge uint32, taken []uint32, found *[]string) {
		if sw == edge {
			*found = append(*found, fmt.Sprint(taken))
			return
		}
		for _, port := range out[sw] {
			to := ports[port].To - hosts
			if weight(ports[port])+dist[to][edge] == dist[sw][edge] {
				list(to, edge, append(taken, port), found)
			}
		}
	}
	longest := 0
	for edge := range r.edges {
		for sw := range uint32(n.Switches) {
			var want, got []string
			if dist[sw][edge] < none {
				list(sw, edge, nil, &want)
			}
			count := r.Paths(sw, edge)
			if int(count) != len(want) {
				t.Fatalf("switches %d to %d: %d paths, want %d", sw, edge, count, len(want))
			}
			for path := range count {
				taken := []uint32{}
				at, rest := sw, path
				for at != edge {
					var port uint32
					port, rest = r.Choose(at, edge, rest)
					taken = append(taken, port)
					at = ports[port].To - hosts
				}
				got = append(got, fmt.Sprint(taken))
			}
			if sw == edge {
				want = got
			}
			if !reflect.DeepEqual(got, want) { // listed in order of ports, as Choose numbers them
				t.Fatalf("switches %d to %d: paths %v, want %v", sw, edge, got, want)
			}
			var next []uint32
			for _, port := range out[sw] {
				if sw != edge && dist[sw][edge] < none &&
					weight(ports[port])+dist[ports[port].To-hosts][edge] == dist[sw][edge] {
					next = append(next, port)
				}
			}
			if fmt.Sprint(next) != fmt.Sprint(r.Next(sw, edge)) {
				t.Fatalf("switches %d to %d: next %v, want %v", sw, edge, r.Next(sw, edge), next)
			}
			if len(next) == 0 {
				if port, _ := r.Choose(sw, edge, 0); port != NoPort {
					t.Fatalf("switches %d to %d: chose port %d, want none", sw, edge, port)
				}
			}
		}
	}
	for a := range hosts {
		for b := range hosts {
			from, to := r.Edge(a), r.Edge(b)
			if a == b || dist[from][to] >= none {
				continue
			}
			links := 2
			for path := range r.Paths(from, to) {
				at, rest, length := from, path, 2
				for at != to {
					var port uint32
					port, rest = r.Choose(at, to, rest)
					at = ports[port].To - hosts
					length++
				}
				links = max(links, length)
			}
			longest = max(longest, links)
		}
		nic, port := r.NIC(a), r.HostPort(a)
		if nic == NoPort && port == NoPort {
			continue
		}
		if ports[nic].From != a || ports[nic].To != hosts+r.Edge(a) || ports[port].To != a || ports[port].From != ports[nic].To {
			t.Fatalf("host %d: ports %v and %v at edge switch %d", a, ports[nic], ports[port], r.Edge(a))
		}
	}
	if r.Diameter() != longest {
		t.Fatalf("diameter %d, want %d", r.Diameter(), longest)
	}
}

// connected checks that all hosts reach each other.
func connected(r *Routes) bool {
	for _, a := range r.edge {
		for _, b := range r.edge {
			if r.Paths(a, b) == 0 {
				return false
			}
		}
	}
	return true
}

// randomNetwork returns a small network of some kind, which is connected.
func randomNetwork(t *testing.T, rng *rand.Rand) (*Network, string) {
	one := func(values ...int) int { return values[rng.IntN(len(values))] }
	var spec string
	switch rng.IntN(5) {
	case 0:
		tor, pods, bundle := one(1, 2, 4), one(1, 2, 3), one(1, 2)
		pod := tor * one(1, 2, 3)
		spec = fmt.Sprintf("fattree:hosts=%d,pod=%d,tor=%d,rate=200/%d/100,bundle=%d/1", pod*pods, pod, tor, one(200, 100),
			bundle)
		if tor%bundle != 0 {
			return randomNetwork(t, rng)
		}
	case 1:
		tor := one(1, 2, 3, 5)
		spec = fmt.Sprintf("leafspine:hosts=%d,tor=%d,spines=%d,bundle=%d", tor*one(1, 2, 4), tor, one(1, 2, 3), one(1, 2, 3))
	case 2:
		spec = fmt.Sprintf("dragonfly:p=%d,a=%d,h=%d", one(1, 2), one(1, 2, 3, 4), one(1, 2))
	case 3:
		spec = fmt.Sprintf("star:hosts=%d", one(1, 2, 7))
	default:
		var b strings.Builder
		switches := one(1, 2, 5, 9)
		for s := range switches {
			if s > 0 {
				fmt.Fprintf(&b, "s%d s%d 100 500\n", rng.IntN(s), s)
			}
		}
		for range rng.IntN(2 * switches) {
			if x, y := rng.IntN(switches), rng.IntN(switches); x != y {
				fmt.Fprintf(&b, "s%d s%d 40Gbps 1us\n", x, y)
			}
		}
		for h := range one(1, 2, 6) {
			if s := rng.IntN(switches); one(0, 1) == 0 {
				fmt.Fprintf(&b, "s%d h%d 10 5\n", s, h)
			} else {
				fmt.Fprintf(&b, "h%d s%d 10 5\n", h, s)
			}
		}
		return edges(t, b.String()), b.String()
	}
	return parse(t, spec), spec
}

func TestRoutesAreAllShortestPaths(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n, what := randomNetwork(t, rng)
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if !connected(routes(t, n, nil)) {
				t.Fatal("some hosts do not reach others")
			}
			checkRoutes(t, n, nil)
			failed := make([]bool, len(n.Links))
			for l := range failed {
				failed[l] = rng.IntN(5) == 0
			}
			checkRoutes(t, n, func(link int) bool { return failed[link] })
		})
		if !ok {
			t.Log(what)
		}
	}
}

func TestRoutesWithoutSomeLinks(t *testing.T) {
	n := parse(t, "leafspine:hosts=4,tor=2,spines=2,bundle=2")
	isDown := func(names ...string) func(int) bool {
		down := map[int]bool{}
		for _, name := range names {
			links, err := n.LinkByName(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range links {
				down[l] = true
			}
		}
		return func(link int) bool { return down[link] }
	}
	ports := n.Ports()
	for _, test := range []struct {
		down  []string
		paths []string // from tor0 to tor1
	}{
		{nil, []string{"tor0 agg0 tor1", "tor0 agg0 tor1", "tor0 agg0 tor1", "tor0 agg0 tor1",
			"tor0 agg1 tor1", "tor0 agg1 tor1", "tor0 agg1 tor1", "tor0 agg1 tor1"}},
		{[]string{"agg0"}, []string{"tor0 agg1 tor1", "tor0 agg1 tor1", "tor0 agg1 tor1", "tor0 agg1 tor1"}},
		{[]string{"agg0-tor1#2", "tor0-agg1#1"}, []string{"tor0 agg0 tor1", "tor0 agg0 tor1",
			"tor0 agg1 tor1", "tor0 agg1 tor1"}},
		{[]string{"tor0-agg0", "agg1-tor1"}, nil},
	} {
		r := routes(t, n, isDown(test.down...))
		var paths []string
		for path := range r.Paths(0, 1) {
			paths = append(paths, walk(n, ports, r, 0, 1, path))
		}
		if !reflect.DeepEqual(paths, test.paths) {
			t.Errorf("%v down: paths %q, want %q", test.down, paths, test.paths)
		}
		if r.NIC(0) != 0 || r.HostPort(3) != 7 || r.Edge(3) != 1 {
			t.Errorf("%v down: NIC %d, port to host %d, edge %d", test.down, r.NIC(0), r.HostPort(3), r.Edge(3))
		}
	}
	r := routes(t, n, isDown("host2"))
	if r.NIC(2) != NoPort || r.HostPort(2) != NoPort || r.NIC(3) != 6 || r.Edge(2) != 1 {
		t.Errorf("host2 down: NIC %d, port to host %d", r.NIC(2), r.HostPort(2))
	}
}

// The numbers of paths in fat trees of three tiers that htsim has: aggregation switch path div h of the pod, core
// (that) + (aggregation switches a pod) * (path mod h).
func TestChooseInFatTrees(t *testing.T) {
	for _, spec := range []string{"fattree:k=4", "fattree:k=8", "fattree:hosts=128,tor=8,pod=32,oversubscription=4",
		"fattree:hosts=128,tor=8,pod=32,oversubscription=8"} {
		n := parse(t, spec)
		p := n.FatTree
		r, ports := routes(t, n, nil), n.Ports()
		tors, aggs := p.torsPerPod(), p.aggsPerPod()
		h := p.Tiers[1].Up
		from, to := uint32(1), uint32(p.tors()-1)
		if count := r.Paths(from, to); int(count) != aggs*h {
			t.Errorf("%s: %d paths between pods, want %d", spec, count, aggs*h)
		}
		for path := range aggs * h {
			agg, core := path/h, path/h+aggs*(path%h)
			want := fmt.Sprintf("tor1 agg%d core%d agg%d tor%d", agg, core, (p.pods()-1)*aggs+agg, to)
			if got := walk(n, ports, r, from, to, uint32(path)); got != want {
				t.Errorf("%s: path %d: %s, want %s", spec, path, got, want)
			}
		}
		if tors > 1 {
			for path := range aggs {
				want := fmt.Sprintf("tor1 agg%d tor0", path)
				if got := walk(n, ports, r, 1, 0, uint32(path)); got != want {
					t.Errorf("%s: path %d in a pod: %s, want %s", spec, path, got, want)
				}
			}
		}
	}
}

func TestPathCountsSaturate(t *testing.T) {
	var b strings.Builder
	b.WriteString("h0 s0 100 1\nh1 s40 100 1\n")
	for s := range 40 {
		for range 3 {
			fmt.Fprintf(&b, "s%d s%d 100 1\n", s, s+1)
		}
	}
	n := edges(t, b.String())
	r, ports := routes(t, n, nil), n.Ports()
	from, to := r.Edge(0), r.Edge(1)
	if count := r.Paths(from, to); count != math.MaxUint32 {
		t.Fatalf("%d paths, want 2^32-1", count)
	}
	for _, path := range []uint32{0, 1, math.MaxUint32 / 2, math.MaxUint32 - 1} {
		at, rest := from, path
		for range 40 {
			var port uint32
			port, rest = r.Choose(at, to, rest)
			at = ports[port].To - uint32(n.Hosts)
		}
		if at != to {
			t.Errorf("path %d ends at switch %d, want %d", path, at, to)
		}
	}
	if r.Diameter() != 42 {
		t.Errorf("diameter %d, want 42", r.Diameter())
	}
}

// line returns a row of switches with a host at either end; the switches with hosts are numbers 0 and 1.
func line(switches int) *Network {
	n := &Network{Hosts: 2, Switches: switches, Tier: make([]int8, switches), SwitchLatency: make([]dag.Time, switches),
		Name: func(node uint32) string { return fmt.Sprint(node) }}
	n.Links = append(n.Links, Link{0, n.node(0), gbps, 0}, Link{1, n.node(1), gbps, 0})
	last := n.node(0)
	for s := 2; s < switches; s++ {
		n.Links = append(n.Links, Link{last, n.node(s), gbps, 0})
		last = n.node(s)
	}
	n.Links = append(n.Links, Link{last, n.node(1), gbps, 0})
	return n
}

func TestRoutesTooLarge(t *testing.T) {
	if r := routes(t, line(65000), nil); r.Diameter() != 65001 {
		t.Errorf("diameter %d, want 65001", r.Diameter())
	}
	manyEdges := line(17000)
	manyEdges.Links[1].B, manyEdges.Links[len(manyEdges.Links)-1].B = manyEdges.node(16999), manyEdges.node(1)
	for _, test := range []struct {
		n    *Network
		want string
	}{
		{line(65600), "routes: expected paths of at most 65534 links, found a longer one"},
		{manyEdges, "routes: expected at most 268435456 pairs of a switch and an edge switch, found 289000000"},
	} {
		if _, err := NewRoutes(context.Background(), test.n, nil); err == nil || err.Error() != test.want {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
}

func TestRoutesAreTheSameOnAnyNumberOfProcessors(t *testing.T) {
	down := func(link int) bool { return link%7 == 3 }
	for _, spec := range []string{"fattree:k=12", "dragonfly:p=1,a=6,h=4", "leafspine:hosts=200,tor=2,spines=5,bundle=2"} {
		n := parse(t, spec)
		var all []*Routes
		for _, processors := range []int{1, 2, 7} {
			before := runtime.GOMAXPROCS(processors)
			all = append(all, routes(t, n, down))
			runtime.GOMAXPROCS(before)
		}
		if !reflect.DeepEqual(all[0], all[1]) || !reflect.DeepEqual(all[0], all[2]) {
			t.Errorf("%s: tables differ", spec)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		change func(n *Network)
		want   string
	}{
		{func(n *Network) {}, ""},
		{func(n *Network) { n.Hosts = 0 }, "expected 1 to 4194304 hosts, found 0"},
		{func(n *Network) { n.Switches = -1 }, "expected 1 to 4194304 switches, found -1"},
		{func(n *Network) { n.Tier = nil }, "expected a tier and a latency for each of 1 switches, found 0 and 1"},
		{func(n *Network) { n.Name = nil }, "expected node names (Name), found none"},
		{func(n *Network) { n.SwitchLatency[0] = -1 }, "tor0: expected a latency of 0 to 1000s, found -1ps"},
		{func(n *Network) { n.Links[1].B = 9 }, "link 1: expected nodes below 4, found 1 and 9"},
		{func(n *Network) { n.Links[1].B = 0 }, "link host1-host0: expected at least one switch, found two hosts"},
		{func(n *Network) { n.Links[1].A = 3 }, "link tor0-tor0: expected two nodes, found one"},
		{func(n *Network) { n.Links[1].A = 0 }, "link host0-tor0: expected one link per host, found a second link of host0"},
		{func(n *Network) { n.Links = n.Links[:2] }, "host2: expected a link to a switch, found none"},
		{func(n *Network) { n.Links[0].Rate = 0 }, "link host0-tor0: expected a rate of 1bps to 8Tbps, found 0bps"},
		{func(n *Network) { n.Links[0].Rate = 8e12 + 1 },
			"link host0-tor0: expected a rate of 1bps to 8Tbps, found 8000000000001bps"},
		{func(n *Network) { n.Links[0].Latency = -5 }, "link host0-tor0: expected a latency of 0 to 1000s, found -5ps"},
	} {
		n := parse(t, "star:hosts=3")
		test.change(n)
		got := ""
		if _, err := NewRoutes(context.Background(), n, nil); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("error %q, want %q", got, test.want)
		}
	}
}

// The fat tree of 8192 hosts has 1280 switches and 512 ToRs.
func BenchmarkNewRoutes(b *testing.B) {
	for _, spec := range []string{"fattree:k=32", "dragonfly:p=8,a=16,h=8"} {
		b.Run(spec, func(b *testing.B) {
			n := parse(b, spec)
			b.ReportAllocs()
			for b.Loop() {
				routes(b, n, nil)
			}
		})
	}
}

// benchmarkPairs are random pairs of a ToR and another.
func benchmarkPairs(r *Routes) (pairs [4096][2]uint32) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range pairs {
		pairs[i] = [2]uint32{rng.Uint32N(r.edges), rng.Uint32N(r.edges)}
	}
	return pairs
}

func BenchmarkNext(b *testing.B) {
	r := routes(b, parse(b, "fattree:k=32"), nil)
	pairs := benchmarkPairs(r)
	sum, i := 0, 0
	for b.Loop() {
		p := &pairs[i&4095]
		sum += len(r.Next(p[0], p[1]))
		i++
	}
	if sum == 0 {
		b.Fatal("no candidates")
	}
}

func BenchmarkChoose(b *testing.B) {
	r := routes(b, parse(b, "fattree:k=32"), nil)
	pairs := benchmarkPairs(r)
	sum, i := uint32(0), 0
	for b.Loop() {
		p := &pairs[i&4095]
		port, rest := r.Choose(p[0], p[1], uint32(i)&15)
		sum |= port + rest
		i++
	}
	if sum == 0 {
		b.Fatal("no ports")
	}
}
