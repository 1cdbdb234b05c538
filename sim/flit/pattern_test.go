package flit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
)

// drawn returns the targets of a host's first packets.
func drawn(t *testing.T, topology, pattern string, from uint32, packets int) map[uint32]int {
	t.Helper()
	traffic, err := parsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	traffic.Load, traffic.Measure = 0.5, 1
	n, err := newSynthetic(&SyntheticOptions{Network: mustParse(t, topology), Params: Presets()[0].Params, Traffic: traffic})
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	got := map[uint32]int{}
	for range packets {
		got[n.traffic.target(n, from)]++
	}
	return got
}

// TestTargets checks which hosts each pattern sends to, and how often, in a dragonfly of 9 groups of 4 routers with 2
// hosts each. Host 19 is at position 1 of group 2.
func TestTargets(t *testing.T) {
	const from, packets = 19, 40_000
	hosts := func(first, count uint32) (all []uint32) {
		for h := range count {
			all = append(all, first+h)
		}
		return all
	}
	for pattern, want := range map[string][]uint32{
		"uniform":                   slices.DeleteFunc(hosts(0, 72), func(h uint32) bool { return h == from }),
		"adversarial+3":             hosts(40, 8),
		"adversarial+7":             hosts(0, 8),
		"adversarial-same+3":        hosts(42, 2),
		"adversarial-same+8":        hosts(10, 2),
		"adversarial-local":         hosts(20, 2),
		"adversarial-local+3":       hosts(16, 2),
		"adversarial-consecutive":   hosts(24, 16),
		"adversarial-consecutive+1": hosts(24, 8),
		"oversubscribed":            {20},                                       // router 2 of group 2
		"oversubscribed+4":          {(5*4 + 1) * 2},                            // router 1 of group 5
		"oversubscribed+8":          {(0*4 + 1) * 2},                            // router 1 of group 0
		"hotspot:1:3,5":             {3, 5},                                     // one of two
		"hotregion:1:0.125":         hosts(0, 10),                               // 4.5 routers, rounded
		"mix:0/100/0":               hosts(20, 2),                               // as adversarial-local
		"mix+2:0/0/100":             hosts(32, 8),                               // as adversarial+2
		"tornado":                   {19 + 4*8},                                 // half of 9 groups, rounded down
		"neighbor":                  {19 + 8},                                   // the next group
		"bursty":                    slices.Concat(hosts(0, 19), hosts(20, 52)), // as uniform
	} {
		got := drawn(t, "dragonfly:p=2,a=4,h=2,arrangement=palmtree", pattern, from, packets)
		for _, h := range want {
			share := float64(got[h]) * float64(len(want)) / packets
			if share < 0.8 || share > 1.2 {
				t.Errorf("%s: host %d receives %.2f of an equal share", pattern, h, share)
			}
			delete(got, h)
		}
		if len(got) > 0 {
			t.Errorf("%s: unexpected targets %v", pattern, got)
		}
	}
	got := drawn(t, "dragonfly:p=2,a=4,h=2", "mix:50/30/20", 0, packets)
	near(t, "share of the next router", float64(got[2]+got[3])/packets, 0.3+0.5*2/71, 0.03)
	near(t, "share of another group", float64(got[16])/packets, 0.5/71, 0.2)
	near(t, "share of the next group", float64(got[8])/packets, 0.5/71+0.2/8, 0.1)
	if got := drawn(t, "mesh:dims=4x4", "tornado", 0, 1); got[5] != 1 {
		t.Errorf("tornado on a mesh: %v", got)
	}
}

// TestConsecutive checks that the groups of adversarial-consecutive are those behind the last router of a group.
func TestConsecutive(t *testing.T) {
	d := mustParse(t, "dragonfly:p=2,a=4,h=2,arrangement=palmtree").Dragonfly
	for group := range d.Groups {
		for k := 1; k <= d.H; k++ {
			if at := d.Gateway(group, (group+k)%d.Groups); at != group*d.A+d.A-1 {
				t.Errorf("group %d leaves router %d to group %d", group, at, group+k)
			}
		}
	}
}

// TestFOGSim checks the groups of adversarial-consecutive with --compat fogsim, also as a part of another pattern.
func TestFOGSim(t *testing.T) {
	for _, c := range []struct {
		text  string
		links int
		want  string
	}{
		{"adversarial-consecutive", 2, "adversarial-consecutive+1"},
		{"adversarial-consecutive", 4, "adversarial-consecutive+3"},
		{"adversarial-consecutive", 1, "adversarial-consecutive+1"},
		{"adversarial-consecutive+2", 4, "adversarial-consecutive+2"},
		{"burst:5:adversarial-consecutive@60,uniform@40", 3, "burst:5:adversarial-consecutive+2@60,uniform@40"},
		{"adversarial+1", 4, "adversarial+1"},
	} {
		got, err := parsePattern(c.text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := parsePattern(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got.asFOGSim(c.links); !reflect.DeepEqual(got, want) {
			t.Errorf("%s with %d links: %+v, want %s", c.text, c.links, got, c.want)
		}
	}
}

// TestFixedPoints: hosts that are their own targets send nothing, and are reported.
func TestFixedPoints(t *testing.T) {
	for pattern, idle := range map[string]float64{"transpose": 4. / 16, "bitreverse": 4. / 16, "shuffle": 2. / 16,
		"bitcomplement": 0, "tornado": 0} {
		traffic, err := parsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		traffic.Load, traffic.Measure = 0.2, 20_000
		r, err := RunSynthetic(SyntheticOptions{Network: mustParse(t, "torus:dims=4x4,latency=1ns"), Params: Presets()[0].Params,
			Traffic: traffic})
		if err != nil {
			t.Fatal(err)
		}
		if r.IdleHosts != idle {
			t.Errorf("%s: %v of the hosts are idle, want %v", pattern, r.IdleHosts, idle)
		}
		near(t, pattern+": accepted load", r.Accepted, 0.2*(1-idle), 0.03)
	}
}

// TestPatternErrors: messages for patterns and networks that do not go together.
func TestPatternErrors(t *testing.T) {
	for text, want := range map[string]string{
		"transpose":           "transpose: number of hosts: expected a power of four, found 72; the next one is 256",
		"shuffle":             "shuffle: number of hosts: expected a power of two, found 72; the next one is 128",
		"adversarial-local+4": "adversarial-local+I: expected I from 1 to 3, found 4",
		"oversubscribed+9":    "oversubscribed+I: expected I from 1 to 8, found 9",
		"adversarial-same+0":  "adversarial-same+I: expected a whole number from 1, found \"0\"",
		"mix:50/50":           "mix: expected three percentages as in mix:50/25/25, found \"50/50\"",
		"mix:50/50/50":        "mix: expected percentages with the sum 100, found 150",
		"burst:5:uniform@50":  "burst: expected percentages with the sum 100, found 50",
		"burst:5:uniform@50,": "burst: expected one to 3 patterns with whole percentages as in " +
			"burst:100:uniform@60,adversarial+1@40, found \"5:uniform@50,\"",
		"burst:5:uniform@50,bursty@50": "burst: expected a pattern without an end, bursts, changes or replies, found " +
			"bursty",
		"reactive":         "reactive: expected a pattern as in reactive:uniform, found none",
		"reactive:burst:3": "reactive: expected a pattern without an end, bursts, changes or replies, found burst:3",
		"reactive:uniform": "injection-vcs: expected at least 2, for requests and for replies, found 1; use --set " +
			"injection-vcs=2",
		"bursty:0.5":               "bursty: expected a mean length of 1 to 1048576 packets, found \"0.5\"",
		"hotregion:2":              "hotregion: expected a share of 0 to 1, found \"2\"",
		"uniform+2":                "expected no offset (+I) with uniform, found \"uniform+2\"",
		"transpose:3":              "expected no parameters after a colon with transpose, found \"transpose:3\"",
		"adversarial-consecutive+": "adversarial-consecutive+I: expected a whole number from 1, found \"\"",
	} {
		traffic, err := parsePattern(text)
		if err == nil {
			traffic.Measure = 1
			_, err = RunSynthetic(SyntheticOptions{Network: mustParse(t, "dragonfly:p=2,a=4,h=2"), Params: Presets()[0].Params,
				Traffic: traffic})
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if _, err := parsePattern("nothing"); err == nil || !strings.HasSuffix(err.Error(), "; --list-patterns lists their parameters") {
		t.Errorf("error %v", err)
	}
}

// TestPatternNames: patterns are parsed as they are printed.
func TestPatternNames(t *testing.T) {
	for _, name := range patternNames() {
		text := name
		if some, ok := map[string]string{"mix": "mix:50/25/25", "burst": "burst:5:hotspot:0.5:1,2@30,mix+2:50/25/25@70",
			"reactive":  "reactive:hotspot:0.5:1,2",
			"transient": "transient:hotspot:0.5:1,2@0.25,bitreverse@1:700"}[name]; ok {
			text = some
		}
		a, err := parsePattern(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if b, err := parsePattern(patternName(&a)); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, and as %s %+v, error %v", text, a, patternName(&a), b, err)
		}
	}
}

// TestBursts checks the load and the mean length of bursts far below saturation, and a run of the reference.
func TestBursts(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, length := range []float64{1, 4, 8} {
		for _, load := range []float64{0.1, 0.4} {
			traffic := Traffic{Pattern: Bursty, Burst: length, Load: load, Measure: 200_000}
			p := Presets()[0].Params
			p.SourceQueue = 0
			p.InjectionBuffer, p.LocalBuffer = 1<<20, 1<<20
			n, err := newSynthetic(&SyntheticOptions{Network: mustParse(t, "star:hosts=16,latency=1ns"), Params: p, Traffic: traffic})
			if err != nil {
				t.Fatal(err)
			}
			if err := n.runUntil(n.to, nil); err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("applied load of bursts of %v at %v", length, load), n.report(200_000).Applied, load, 0.05)
		}
	}
	const runs = 3
	accepted, latency := 0.0, 0.0
	for seed := range int64(runs) {
		net, p := small(t)
		p.Seed = seed
		r, err := RunSynthetic(SyntheticOptions{Network: net, Params: p, Traffic: Traffic{Pattern: Bursty, Burst: 8, Load: 0.2,
			Warmup: 10_000, Measure: 20_000}})
		if err != nil {
			t.Fatal(err)
		}
		accepted += r.Accepted / runs
		latency += r.Packet.Mean / runs
	}
	near(t, "accepted load", accepted, 0.1998, 0.02)
	near(t, "latency", latency, 233.6, 0.05)
	t.Logf("accepted %.4f, latency %.1f", accepted, latency)
}

// TestLocalReference compares traffic to the next router, whose link carries that of two hosts, with the reference.
func TestLocalReference(t *testing.T) {
	for _, routing := range []Routing{Minimal, Valiant} {
		net, p := small(t)
		p.Routing, p.LocalVCs, p.GlobalVCs = routing, 4, 2
		r, err := RunSynthetic(SyntheticOptions{Network: net, Params: p, Traffic: Traffic{Pattern: AdversarialLocal, Offset: 1,
			Load: 0.6, Warmup: 10_000, Measure: 20_000}})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "accepted load", r.Accepted, 0.480, 0.01)
		near(t, "latency", r.Packet.Mean, 534, 0.03)
		near(t, "hops", r.Hops, 1, 0)
	}
}

func TestPatternsPage(t *testing.T) {
	var list strings.Builder
	printPatterns(&list)
	golden.Section(t, "../../docs/reference/backends/flit.md", "<!-- simulate --list-patterns -->\n", "<!-- end -->",
		"\n```text\n"+list.String()+"```\n\n")
}
