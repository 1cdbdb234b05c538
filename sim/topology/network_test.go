package topology

import (
	"fmt"
	"testing"
)

func TestPorts(t *testing.T) {
	n := edges(t, "s0 h0 1 1\ns0 s1 1 1\nh1 s1 1 1")
	want := "[{2 0 0} {0 2 0} {2 3 1} {3 2 1} {1 3 2} {3 1 2}]"
	if got := fmt.Sprint(n.Ports()); got != want {
		t.Errorf("ports %s, want %s", got, want)
	}
	r := routes(t, n, nil)
	if got := fmt.Sprint(r.NIC(0), r.HostPort(0), r.NIC(1), r.HostPort(1), r.Edge(1)); got != "1 0 4 5 1" {
		t.Errorf("ports of hosts %s, want 1 0 4 5 1", got)
	}
}

func TestLinkByName(t *testing.T) {
	tree := parse(t, "leafspine:hosts=4,tor=2,spines=2,bundle=2") // links 0-3 hosts, 4-7 tor0, 8-11 tor1
	odd := edges(t, "a b-c 1 1\na-b c 1 1\nh1 a 1 1\na a-a 1 1\na-a x 1 1\nb-c a 1 1")
	for _, test := range []struct {
		n     *Network
		name  string
		links string
		err   string
	}{
		{tree, "tor0-agg1", "[6 7]", ""},
		{tree, "agg1-tor0", "[6 7]", ""},
		{tree, "agg1-tor0#2", "[7]", ""},
		{tree, "host3-tor1", "[3]", ""},
		{tree, "host3", "[3]", ""},
		{tree, "agg0", "[4 5 8 9]", ""},
		{tree, "agg0-tor0#3", "", `link "agg0-tor0#3": expected a link number from 1 to 2, found 3`},
		{tree, "agg0-tor0#x", "", `link "agg0-tor0#x": expected a link number from 1 after #, found "x"`},
		{tree, "agg0#1", "", `link "agg0#1": expected two nodes before #, found one`},
		{tree, "agg0-agg1", "", `link "agg0-agg1": expected a link between these nodes, found none`},
		{tree, "agg0-agg0", "", `link "agg0-agg0": expected a node such as tor0, or two nodes separated by a hyphen, found "agg0-agg0"`},
		{tree, "spine7", "", `link "spine7": expected a node such as tor0, or two nodes separated by a hyphen, found "spine7"`},
		{tree, "", "", `link "": expected a node such as tor0, or two nodes separated by a hyphen, found ""`},
		{odd, "a-b-c", "", `link "a-b-c": expected an unambiguous pair of node names, found 2 possible pairs`},
		{odd, "c-a-b", "[1]", ""},
		{odd, "b-c-a#2", "[5]", ""},
		{odd, "a-a-x", "[4]", ""},
		{odd, "a-a", "[3 4]", ""},
	} {
		links, err := test.n.LinkByName(test.name)
		if err != nil || test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%s: error %v, want %s", test.name, err, test.err)
			}
		} else if fmt.Sprint(links) != test.links {
			t.Errorf("%s: links %v, want %s", test.name, links, test.links)
		}
	}
}
