package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		spec            string
		hosts, switches int
		links           int
		first, last     string // rate in Gb/s and latency
	}{
		{"fattree:k=8", 128, 80, 384, "100 1us", "100 1us"},
		{"fattree:hosts=128", 128, 80, 384, "100 1us", "100 1us"},
		{"fattree:k=8,tiers=2", 32, 12, 64, "100 1us", "100 1us"},
		{"fattree:hosts=128,tiers=3,rate=200Gbps,latency=500ns,switchlatency=0ns,oversubscription=4", 128, 44, 192,
			"200 500ns", "200 500ns"},
		{"fattree:hosts=128,tiers=2,tor=16,oversubscription=8", 128, 10, 144, "100 1us", "100 1us"},
		{"fattree:hosts=128,tor=8,pod=32,oversubscription=4", 128, 32, 192, "100 1us", "100 1us"},
		{"fattree:k=8,rate=100Gbps/200Gbps", 128, 32 + 16 + 8, 128 + 64 + 64, "100 1us", "200 1us"},
		{"fattree:k=8,rate=100Gb/s/25GB/s/400,latency=1us/2/3ns", 128, 32 + 16 + 4, 128 + 64 + 32, "100 1us", "400 3ns"},
		{"fattree:k=8,bundle=2", 128, 32 + 16 + 8, 384, "100 1us", "100 1us"},
		{"leafspine:hosts=128,tor=16,spines=16,bundle=1", 128, 24, 256, "100 1us", "100 1us"},
		{"leafspine:hosts=12,tor=4,spines=3,bundle=2,rate=1/2", 12, 6, 12 + 18, "1 1us", "2 1us"},
		{"leafspine:hosts=12,tor=4", 12, 7, 24, "100 1us", "100 1us"},
		{"leafspine:hosts=12,tor=4,oversubscription=2", 12, 5, 18, "100 1us", "100 1us"},
		{"leafspine:hosts=12,tor=4,spines=2,oversubscription=2", 12, 5, 18, "100 1us", "100 1us"},
		{"dragonfly:p=4,a=8,h=4", 33 * 32, 264, 33*32 + 33*28 + 33*16, "100 1us", "100 1us"},
		{"dragonfly:p=1,a=2,h=1,rate=200,latency=1ns", 6, 6, 6 + 3 + 3, "200 1ns", "200 1ns"},
		{"dragonfly:p=1,a=2,h=1,globalrate=50,globallatency=5us", 6, 6, 6 + 3 + 3, "100 1us", "50 5us"},
		{"star:hosts=16", 16, 1, 16, "100 1us", "100 1us"},
		{"star:hosts=1,rate=1bps,latency=0,switchlatency=7ps", 1, 1, 1, "1e-09 0s", "1e-09 0s"},
	} {
		n, err := Parse(test.spec)
		if err != nil {
			t.Error(err)
			continue
		}
		link := func(l Link) string { return fmt.Sprint(float64(l.Rate)/gbps, " ", l.Latency) }
		first, last := link(n.Links[0]), link(n.Links[len(n.Links)-1])
		if n.Hosts != test.hosts || n.Switches != test.switches || len(n.Links) != test.links || first != test.first ||
			last != test.last {
			t.Errorf("%s: %d hosts, %d switches, %d links, %s to %s", test.spec, n.Hosts, n.Switches, len(n.Links), first, last)
		}
	}
	n := parse(t, "fattree:k=4,switchlatency=1/2/3")
	if fmt.Sprint(n.SwitchLatency[0], n.SwitchLatency[8], n.SwitchLatency[16]) != "1ns 2ns 3ns" {
		t.Errorf("latencies of switches %v", n.SwitchLatency)
	}
	if n := parse(t, "star:hosts=3,switchlatency=7ps"); n.SwitchLatency[0] != 7 || n.Name(3) != "tor0" || n.Name(2) != "host2" {
		t.Errorf("latencies %v, names %s and %s", n.SwitchLatency, n.Name(3), n.Name(2))
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct {
		spec, want string
	}{
		{"", `topology: expected fattree, leafspine, dragonfly, mesh, torus, spectrumx, alibabahpn, dcn+, star, each followed by a colon, found ""`},
		{"ring:k=3", `topology: expected fattree, leafspine, dragonfly, mesh, torus, spectrumx, alibabahpn, dcn+, star, each followed by a colon, found "ring:k=3"`},
		{"star:", `topology "star:": expected one of hosts, rate, latency, switchlatency, found ""`},
		{"star", `topology "star": expected one of hosts, rate, latency, switchlatency, found ""`},
		{"star:hosts", `topology "star:hosts": expected a value of hosts, found none`},
		{"star:rate=3", `topology "star:rate=3": expected hosts=, found none`},
		{"star:hosts=3,hosts=4", `topology "star:hosts=3,hosts=4": expected one value of hosts, found another`},
		{"star:hosts=0", `topology "star:hosts=0": hosts: expected a whole number from 1 to 4194304, found "0"`},
		{"star:hosts=2,rate=9Tbps",
			`topology "star:hosts=2,rate=9Tbps": rate: expected a rate such as 200Gbps, or a number of Gb/s, up to 8Tbps, found "9Tbps"`},
		{"star:hosts=2,rate=1/2", `topology "star:hosts=2,rate=1/2": rate: expected at most 1 values, found 2`},
		{"star:hosts=2,latency=1.0001ps", `topology "star:hosts=2,latency=1.0001ps": latency: expected a time such as 500ns, ` +
			`or a number of nanoseconds, up to 1000s, found "1.0001ps"`},
		{"fattree:k=8,tiers=4", `topology "fattree:k=8,tiers=4": expected 2 or 3 tiers, found 4`},
		{"fattree:k=8,tiers=x", `topology "fattree:k=8,tiers=x": tiers: expected a whole number from 1 to 4194304, found "x"`},
		{"fattree:k=8,oversubscription=1/1/2",
			`topology "fattree:k=8,oversubscription=1/1/2": oversubscription: expected at most 2 values, found "1/1/2"`},
		{"fattree:k=8,bundle=0", `topology "fattree:k=8,bundle=0": bundle: expected a whole number from 1 to 4194304, found "0"`},
		{"fattree:rate=100", `topology "fattree:rate=100": fat tree: expected hosts or k, found neither`},
		{"leafspine:hosts=8", `topology "leafspine:hosts=8": expected tor=, found none`},
		{"leafspine:hosts=8,tor=3", `topology "leafspine:hosts=8,tor=3": fat tree: ` +
			`expected a multiple of the ToR's 3 hosts per pod, found 8 hosts`},
		{"leafspine:hosts=8,tor=4,spines=4000000,bundle=4000000",
			`topology "leafspine:hosts=8,tor=4,spines=4000000,bundle=4000000": expected at most 1048576 ports up, found 4000000 spines`},
		{"dragonfly:p=1,a=2,h=9999",
			`topology "dragonfly:p=1,a=2,h=9999": dragonfly: expected p, a and h from 1 to 4096, found 1, 2 and 9999`},
		{"dragonfly:p=1,a=2", `topology "dragonfly:p=1,a=2": expected h=, found none`},
	} {
		if _, err := Parse(test.spec); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v\nwant %s", test.spec, err, test.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]int64{"200Gbps": 200e9, "200": 200e9, "0.1": 1e8, "25GB/s": 200e9, "1bps": 1, "8Tbps": 8e12,
		"2.500kb/s": 2500, "000000000000000001": 1e9, "1.5bps": -1, "": -1, "Gbps": -1, "-1": -1, "1e3": 1e12,
		"1.2.3": -1, "1.": 1e9, ".5": 5e8, "0": -1, "8.1Tbps": -1, "99999999999999999": -1, "9999999999999999999": -1, "1 Gbps": 1e9,
		"1gbps": -1, "40ps/B": 200e9, "400Gbit/s": 400e9, "1KiB/s": 8192, "infps/B": -1, "0ps/B": -1} {
		rate, err := parseRate(text)
		if (err != nil) != (want < 0) || err == nil && rate != want {
			t.Errorf("rate %s: %d (%v), want %d", text, rate, err, want)
		}
	}
	for text, want := range map[string]dag.Time{"500ns": 500_000, "500": 500_000, "0": 0, "1.5us": 1_500_000, "1\u00b5s": 1e6,
		"0.001": 1, "1000s": 1e15, "1ms": 1e9, "1001s": -1, "0.0001": -1, "1m": -1, "-1ns": -1, "ns": -1} {
		time, err := parseTime(text)
		if (err != nil) != (want < 0) || err == nil && time != want {
			t.Errorf("time %s: %d (%v), want %d", text, time, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	topo, list := write("a:b", "\n# Nodes 4\n"+bundledTopo), write("nodes.txt", squareEdges)
	bad := write("bad", "TIERS x")
	for _, test := range []struct {
		text  string
		hosts int
		err   string
	}{
		{topo, 8, ""}, {list, 3, ""}, {"star:hosts=5", 5, ""},
		{bad, 0, bad + `:1: expected TIERS with a whole number from 1 to 3, found "x"`},
		{"star:hosts=x", 0, `topology "star:hosts=x": hosts: expected a whole number from 1 to 4194304, found "x"`},
		{filepath.Join(folder, "none"), 0, "open " + filepath.Join(folder, "none") + ": no such file or directory"},
	} {
		n, err := Load(test.text)
		switch {
		case err != nil && err.Error() != test.err:
			t.Errorf("%s: error %v, want %s", test.text, err, test.err)
		case err == nil && (n.Hosts != test.hosts || test.err != ""):
			t.Errorf("%s: %d hosts, want %d %s", test.text, n.Hosts, test.hosts, test.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"fattree:k=8,rate=100Gb/s/25GB/s/400,latency=1us/2/3ns", "leafspine:hosts=12,tor=4,spines=3,bundle=2",
		"dragonfly:p=1,a=2,h=1,globalrate=50,globallatency=5us,switchlatency=3,arrangement=palmtree", "star:hosts=16,rate=1",
		"mesh:dims=3x4,p=2", "torus:dims=2x3x4,rate=1",
		"fattree:hosts=32,tor=4,pod=16,tiers=3,oversubscription=2/2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		n, err := Parse(spec)
		if err != nil || len(n.Links) > 2000 {
			return
		}
		if !connected(routes(t, n, nil)) {
			t.Error("some hosts do not reach others")
		}
	})
}

// TestLoadUnknown checks that a misspelled kind of network names all kinds.
func TestLoadUnknown(t *testing.T) {
	_, err := Load("fattre:k=8")
	want := `topology: expected fattree, leafspine, dragonfly, mesh, torus, spectrumx, alibabahpn, dcn+, star, each followed by a colon, or a file, ` +
		`found "fattre:k=8"; did you mean "fattree"?`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
}
