package topology

import (
	"strings"
	"testing"
)

// TestUnusedFabric checks which messages leave the links between switches unused.
func TestUnusedFabric(t *testing.T) {
	const all = "fattree:k=4" // two hosts at each of 8 switches
	for _, c := range []struct {
		spec     string
		messages [][2]uint32
		want     string // begin of the description
	}{
		{all, nil, ""},
		{all, [][2]uint32{{0, 1}, {0, 2}}, ""},
		{all, [][2]uint32{{0, 1}, {3, 3}, {15, 0}}, ""},
		{all, [][2]uint32{{2, 3}, {3, 2}},
			"no packet crosses a link between switches: the ends of all 2 messages are at tor1, with 2 of 16 hosts at 8 switches"},
		{all, [][2]uint32{{0, 1}, {3, 3}},
			"no packet crosses a link between switches: the ends of all 2 messages are at one switch each, with 3 of 16 hosts"},
		{all, [][2]uint32{{3, 3}, {3, 3}, {4, 4}},
			"no packet enters the network: the ends of all 3 messages are on one host each, with 2 of 16 hosts in use"},
		{"star:hosts=4", [][2]uint32{{0, 1}}, ""},
		{"star:hosts=4", [][2]uint32{{1, 1}}, "no packet enters the network: both ends of the only message are on one host, with 1 of 4 hosts in use"},
		{"torus:dims=4x4", [][2]uint32{{0, 1}}, ""},
	} {
		got := parse(t, c.spec).UnusedFabric(func(yield func(from, to uint32) bool) {
			for _, m := range c.messages {
				if !yield(m[0], m[1]) {
					return
				}
			}
		})
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %v: %q, want %q", c.spec, c.messages, got, c.want)
		}
	}
}
