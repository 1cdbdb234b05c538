package topology

import (
	"fmt"
	"strings"
	"testing"
)

const squareEdges = `# a square of switches with three hosts
s0 s1 200Gbps 500ns
s1 s2 200Gb/s 0.5us   # a comment
s2 s3 25GB/s 500
s3 s0 200 500ns
s3 h10 100 1us
h2 s1 100 1us
gpu s1 2.5 0
host gpu
switch s1 300ns
switch lonely
`

func TestReadEdges(t *testing.T) {
	n := edges(t, squareEdges)
	var names []string
	for node := range uint32(n.Hosts + n.Switches) {
		names = append(names, n.Name(node))
	}
	// Hosts, switches with hosts, other switches, each as the file first names them.
	if got := strings.Join(names, " "); n.Hosts != 3 || got != "h10 h2 gpu s1 s3 s0 s2 lonely" {
		t.Errorf("%d hosts, nodes %s", n.Hosts, got)
	}
	for s, latency := range n.SwitchLatency {
		if want := map[string]string{"s1": "300ns"}[n.Name(n.node(s))]; latency.String() != want && latency != 0 {
			t.Errorf("%s: latency %v", n.Name(n.node(s)), latency)
		}
	}
	var links []string
	for _, l := range n.Links {
		links = append(links, fmt.Sprint(n.Name(l.A), " ", n.Name(l.B), " ", float64(l.Rate)/gbps, " ", l.Latency))
	}
	want := "s0 s1 200 500ns,s1 s2 200 500ns,s2 s3 200 500ns,s3 s0 200 500ns,s3 h10 100 1us,h2 s1 100 1us,gpu s1 2.5 0s"
	if got := strings.Join(links, ","); got != want {
		t.Errorf("links %s, want %s", got, want)
	}
	r, ports := routes(t, n, nil), n.Ports()
	var paths []string
	for path := range r.Paths(r.Edge(0), r.Edge(1)) {
		paths = append(paths, walk(n, ports, r, r.Edge(0), r.Edge(1), path))
	}
	if got := strings.Join(paths, ","); got != "s3 s2 s1,s3 s0 s1" {
		t.Errorf("paths from h10 to h2: %s", got)
	}
	if r.edges != 2 {
		t.Errorf("tables for %d edge switches, want 2", r.edges)
	}
}

func TestNamesOfHosts(t *testing.T) {
	for name, want := range map[string]bool{"h0": true, "h12": true, "host": true, "host0": true, "hostess": true,
		"h": false, "h1a": false, "hub1": false, "H1": false, "s1": false, "ah1": false} {
		if got := (&fileNode{name: name}).isHost(); got != want {
			t.Errorf("%s is a host: %v, want %v", name, got, want)
		}
	}
	n := edges(t, "h1 s1 1 1\nswitch h1\nhost s1")
	if n.Hosts != 1 || n.Name(0) != "s1" || n.Name(1) != "h1" {
		t.Errorf("%d hosts, the first is %s", n.Hosts, n.Name(0))
	}
}

func TestReadEdgesErrors(t *testing.T) {
	const forms = "NODE NODE SPEED LATENCY, host NODE or switch NODE [LATENCY]"
	for _, test := range []struct {
		text, want string
	}{
		{"h0 s0 1 1", ""},
		{"", "e: expected 1 to 4194304 hosts, found 0"},
		{"s0 s1 1 1", "e: expected 1 to 4194304 hosts, found 0"},
		{"h0 s0 1", `e:1: expected ` + forms + `, found "h0 s0 1"`},
		{"\nh0 s0 1 1 1", `e:2: expected ` + forms + `, found "h0 s0 1 1 1"`},
		{"host a b", `e:1: expected ` + forms + `, found "host a b"`},
		{"host", `e:1: expected ` + forms + `, found "host"`},
		{"switch a x", `e:1: expected a time such as 500ns, or a number of nanoseconds, up to 1000s, found "x"`},
		{"h0 s0 x 1", `e:1: expected a rate such as 200Gbps, or a number of Gb/s, up to 8Tbps, found "x"`},
		{"h0 s0 0 1", `e:1: expected a rate such as 200Gbps, or a number of Gb/s, up to 8Tbps, found "0"`},
		{"h0 s0 1 1h", `e:1: expected a time such as 500ns, or a number of nanoseconds, up to 1000s, found "1h"`},
		{"s0 s0 1 1", `e:1: expected two nodes, found "s0 twice"`},
		{"h0 s0 1 1\nh0 s1 1 1", `e:2: expected one link per host, found a second link of "h0"`},
		{"h0 h1 1 1", `e:1: expected at least one switch, found the hosts "h0" and "h1"`},
		{"s0 s1 1 1\nhost a", `e:2: expected one link per host, found no link of "a"`},
		{"host a\nswitch a", `e:2: expected one host or switch line for "a", found "a second"`},
	} {
		got := ""
		if _, err := ReadEdges(strings.NewReader(test.text), "e"); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q: error %s, want %s", test.text, got, test.want)
		}
	}
}

func FuzzReadEdges(f *testing.F) {
	f.Add(squareEdges)
	f.Add("h0 s0 1 1\nhost a\na s0 8Tbps 1000s\n")
	f.Add("switch x 3ns\nx x 1 1")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ReadEdges(strings.NewReader(text), "e")
		if err != nil || n.Switches > 1000 {
			return
		}
		r := routes(t, n, nil)
		ports := n.Ports()
		for a := range min(n.Hosts, 10) {
			for b := range n.Hosts {
				from, to := r.Edge(uint32(a)), r.Edge(uint32(b))
				if r.Paths(from, to) == 0 {
					continue
				}
				if path := walk(n, ports, r, from, to, r.Paths(from, to)-1); !strings.HasSuffix(path, n.Name(n.node(int(to)))) {
					t.Errorf("hosts %d to %d: %s", a, b, path)
				}
			}
		}
	})
}
