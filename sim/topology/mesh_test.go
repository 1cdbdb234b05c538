package topology

import (
	"fmt"
	"testing"
)

func TestMesh(t *testing.T) {
	for _, test := range []struct {
		dims     []int
		wrap     bool
		p        int
		links    int // between routers
		diameter int // with the links of hosts
	}{
		{[]int{4, 3}, false, 1, 3*3 + 4*2, 3 + 2 + 2},
		{[]int{4, 3}, true, 2, 12 + 12, 2 + 1 + 2},
		{[]int{2, 2, 2}, true, 1, 12, 3 + 2},
		{[]int{5}, true, 3, 5, 2 + 2},
		{[]int{1, 3}, false, 1, 2, 2 + 2},
	} {
		t.Run(fmt.Sprint(test.dims, test.wrap), func(t *testing.T) {
			n, err := Mesh(MeshParams{Dims: test.dims, Wrap: test.wrap, P: test.p, Rate: gbps, Latency: 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(n.Links) - n.Hosts; got != test.links || n.Hosts != n.Switches*test.p {
				t.Errorf("%d links, want %d; %d hosts of %d routers", got, test.links, n.Hosts, n.Switches)
			}
			if got := routes(t, n, nil).Diameter(); got != test.diameter {
				t.Errorf("diameter %d, want %d", got, test.diameter)
			}
		})
	}
	for want, p := range map[string]MeshParams{
		"mesh: expected 1 to 8 dimensions, found 0":                              {P: 1},
		"torus: expected dimensions of 1 to 4096 routers, found 0":               {Dims: []int{2, 0}, Wrap: true, P: 1},
		"mesh: expected at most 4194304 routers, found more":                     {Dims: []int{4096, 4096, 4096, 4096, 4096, 4096}, P: 1},
		"mesh: expected 1 to 4096 hosts per router, found 0":                     {Dims: []int{2}},
		"mesh: link host0-router0: expected a rate of 1bps to 8Tbps, found 0bps": {Dims: []int{2}, P: 1},
	} {
		if _, err := Mesh(p); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestPalmTree(t *testing.T) {
	n, err := Parse("dragonfly:p=2,a=4,h=2,arrangement=palmtree")
	if err != nil {
		t.Fatal(err)
	}
	d := n.Dragonfly
	// Group 0: router 0 port 0 leads to group 8, router 3, port 1; router 3 port 1 to group 1, router 0, port 0.
	for _, c := range [][6]int{{0, 8, 0, 0, 3, 1}, {0, 1, 3, 1, 0, 0}, {0, 7, 0, 1, 3, 0}, {5, 4, 0, 0, 3, 1}} {
		from, to := c[0], c[1]
		got := [4]int{d.Gateway(from, to) - from*d.A, d.GlobalPort(from, to), d.Gateway(to, from) - to*d.A, d.GlobalPort(to, from)}
		if got != [4]int(c[2:]) {
			t.Errorf("groups %d and %d: routers and ports %v, want %v", from, to, got, c[2:])
		}
	}
	used := map[int]int{}
	for _, link := range n.Links[n.Hosts:] {
		if x, y := int(link.A)-n.Hosts, int(link.B)-n.Hosts; d.Group(x) != d.Group(y) {
			used[x]++
			used[y]++
		}
	}
	for router := range n.Switches {
		if used[router] != d.H {
			t.Errorf("router %d has %d global links", router, used[router])
		}
	}
	if _, err := Parse("dragonfly:p=2,a=4,h=2,arrangement=oak"); err == nil {
		t.Error("an arrangement that does not exist is no error")
	}
}
