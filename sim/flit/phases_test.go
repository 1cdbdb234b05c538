package flit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// runPattern runs a pattern in the small dragonfly.
func runPattern(t *testing.T, pattern string, change func(o *SyntheticOptions)) *Report {
	t.Helper()
	net, p := small(t)
	traffic, err := parsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if traffic.fixed() {
		traffic.Load = 1
	} else {
		traffic.Warmup, traffic.Measure = 1000, 8000
	}
	o := SyntheticOptions{Network: net, Params: p, Traffic: traffic}
	if change != nil {
		change(&o)
	}
	r, err := RunSynthetic(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Wall = 0
	return r
}

// TestBurst compares bursts with FOGSim: means over three seeds, which differ by 11 % in cycles. All packets arrive.
func TestBurst(t *testing.T) {
	const seeds = 3
	cycles, latency := 0.0, 0.0
	for seed := range int64(seeds) {
		r := runPattern(t, "burst:100", func(o *SyntheticOptions) { o.Traffic.Seed = seed + 1 })
		if r.Packets != 7200 || r.Dropped != 0 {
			t.Errorf("seed %d: %d packets, %d dropped", seed, r.Packets, r.Dropped)
		}
		cycles += float64(r.Cycles) / seeds
		latency += r.Packet.Mean / seeds
	}
	near(t, "cycles", cycles, (1360+1227+1290)/3.0, 0.05)
	near(t, "latency", latency, (236.2+231.0+230.5)/3, 0.05)

	if r := runPattern(t, "burst:50:adversarial+1", nil); r.Cycles < 8*8*50 || r.Cycles > 8*8*50+600 {
		t.Errorf("8 hosts send 50 packets over one link in %d cycles", r.Cycles)
	}
	if r := runPattern(t, "burst:50:permutation", func(o *SyntheticOptions) { o.Traffic.Load = 8 }); r.Packets != 3600 {
		t.Errorf("%d packets in a permutation", r.Packets)
	}
}

// TestBurstMix checks the shares of three patterns, and that a host draws again if it is its own target.
func TestBurstMix(t *testing.T) {
	const packets = 40_000
	got := drawn(t, "dragonfly:p=2,a=4,h=2", "burst:1:adversarial-local@50,adversarial+1@30,adversarial+2@20", 0, packets)
	local, next, second := 0, 0, 0
	for h, count := range got {
		switch {
		case h == 2 || h == 3:
			local += count
		case h >= 8 && h < 16:
			next += count
		case h >= 16 && h < 24:
			second += count
		default:
			t.Errorf("%d packets to host %d", count, h)
		}
	}
	near(t, "share of the next router", float64(local)/packets, 0.5, 0.03)
	near(t, "share of the next group", float64(next)/packets, 0.3, 0.03)
	near(t, "share of the second group", float64(second)/packets, 0.2, 0.03)
	got = drawn(t, "torus:dims=4x4", "burst:1:transpose@90,bitcomplement@10", 0, 100)
	if got[15] != 100 {
		t.Errorf("host 0, a fixed point of transpose, sends %v", got)
	}
	r := runPattern(t, "burst:20:uniform@50,adversarial-local@30,adversarial+1@20", nil)
	if r.Packets != 20*72 {
		t.Errorf("%d packets, want %d", r.Packets, 20*72)
	}
}

// TestAllToAll: in both orders, a host sends to all others once, and phases do not overlap at a host.
func TestAllToAll(t *testing.T) {
	for _, pattern := range []string{"all2all", "all2all:3", "all2all:3:random"} {
		net, p := small(t)
		traffic, err := parsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		traffic.Load = 8
		n, err := newSynthetic(&SyntheticOptions{Network: net, Params: p, Traffic: traffic})
		if err != nil {
			t.Fatal(err)
		}
		q, orders := n.traffic.quota, map[string]bool{}
		for h := range uint32(n.hosts) {
			seen := map[uint32]bool{}
			order := ""
			for i := range n.hosts - 1 {
				q.sent[h] = uint64(i)
				to := n.traffic.target(n, h)
				seen[to] = true
				order += fmt.Sprint((to-h+72)%72, " ")
			}
			q.sent[h] = 0
			orders[order] = true
			if len(seen) != n.hosts-1 || seen[h] {
				t.Errorf("%s: host %d sends to %d hosts, itself: %v", pattern, h, len(seen), seen[h])
			}
		}
		if random := len(orders) > 1; random != traffic.Random {
			t.Errorf("%s: %d orders", pattern, len(orders))
		}
		if err := n.runUntil(never, nil); err != nil {
			t.Fatal(err)
		}
		if want := traffic.Packets * 72 * 71; n.counters.packets != want {
			t.Errorf("%s: %d packets, want %d", pattern, n.counters.packets, want)
		}
		for h := range q.phase {
			if q.phase[h]+1 != traffic.Packets || q.arrived[h][q.phase[h]%2] != 71 || q.arrived[h][(q.phase[h]+1)%2] != 0 {
				t.Errorf("%s: host %d ends in phase %d with %v packets", pattern, h, q.phase[h], q.arrived[h])
			}
		}
	}
}

// TestShuffled: the random order has each number once.
func TestShuffled(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 71, 256, 1000} {
		seen := map[uint64]bool{}
		for i := range n {
			v := shuffled(i, n, 7)
			if v >= n || seen[v] {
				t.Fatalf("%d of %d: %d", i, n, v)
			}
			seen[v] = true
		}
	}
}

// TestTransient: windows show the loads and latencies before and after a change, whatever the number of threads.
func TestTransient(t *testing.T) {
	run := func(threads int) *Report {
		return runPattern(t, "transient:uniform@0.2,adversarial+1@0.1:4000", func(o *SyntheticOptions) {
			o.Threads, o.Traffic.Window, o.Traffic.Measure = threads, 2000, 7000
		})
	}
	r := run(1)
	if len(r.Windows) != 4 || r.Windows[3].Cycle != 6000 {
		t.Fatalf("windows %+v", r.Windows)
	}
	near(t, "accepted load before", r.Windows[1].Accepted, 0.2, 0.05)
	near(t, "latency before", r.Windows[1].Latency, 127.3, 0.03)
	near(t, "accepted load after", r.Windows[3].Accepted, 0.1, 0.15)
	near(t, "latency after", r.Windows[3].Latency, 151.3, 0.1)
	packets := uint64(0)
	for _, w := range r.Windows {
		packets += w.Packets
	}
	if packets != r.Packets {
		t.Errorf("%d packets in windows, %d in all", packets, r.Packets)
	}
	if got := run(3); !reflect.DeepEqual(got.Windows, r.Windows) {
		t.Error("the number of threads changes windows")
	}
	off := runPattern(t, "transient:uniform@0,uniform@0.2:4000", func(o *SyntheticOptions) { o.Traffic.Window = 1000 })
	if off.Windows[3].Packets != 0 || off.Windows[5].Packets == 0 {
		t.Errorf("no load, then 0.2: %+v", off.Windows)
	}
	if same := runPattern(t, "uniform", func(o *SyntheticOptions) { o.Traffic.Load = 0.2 }); same.Packets == 0 ||
		!reflect.DeepEqual(same.Packet, runPattern(t, "transient:uniform@0.2,uniform@0.9:1000000", func(o *SyntheticOptions) {
			o.Traffic.Window = 1000
		}).Packet) {
		t.Error("a change after the end has an effect")
	}
}

// TestTrafficSeed: packets and targets depend on the seed of traffic only, if there is one.
func TestTrafficSeed(t *testing.T) {
	run := func(seed, traffic int64) *Report {
		return runPattern(t, "permutation", func(o *SyntheticOptions) {
			o.Traffic.Load, o.Params.Seed, o.Traffic.Seed = 0.2, seed, traffic
		})
	}
	if !reflect.DeepEqual(run(1, 5), run(2, 5)) || !reflect.DeepEqual(run(5, 0), run(1, 5)) {
		t.Error("the traffic of a seed differs")
	}
	if reflect.DeepEqual(run(1, 5), run(1, 6)) {
		t.Error("two seeds have the same traffic")
	}
}

// TestPhaseErrors: messages for patterns of fixed work and changing ones.
func TestPhaseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"burst":                                      `burst: expected 1 to 1099511627776 packets per host as in burst:100, found ""`,
		"burst:0":                                    `found "0"`,
		"burst:3:bursty":                             "burst: expected a pattern without an end, bursts, changes or replies, found bursty",
		"burst:3:sideways":                           `unknown pattern "sideways"`,
		"all2all:0":                                  "all2all: expected 1 to 1048576 phases",
		"all2all:2:backwards":                        `all2all: expected random or nothing behind the phases, found "backwards"`,
		"transient:uniform@0.1":                      "transient: expected P1@LOAD,P2@LOAD:CYCLE",
		"transient:uniform@x,uniform@1:5":            "transient: expected P1@LOAD,P2@LOAD:CYCLE",
		"transient:uniform@0.1,uniform@0.1:-5":       "transient: expected P1@LOAD,P2@LOAD:CYCLE",
		"transient:uniform@0.1,all2all@0.1:5":        "transient: expected a pattern without an end",
		"transient:uniform@0.1,hotspot:2:1,2@0.1:50": "hotspot: expected a share of 0 to 1",
	} {
		if _, err := parsePattern(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	star := mustParse(t, "star:hosts=8")
	for text, want := range map[string]string{
		"burst:3:adversarial+1":                   "adversarial traffic needs a dragonfly",
		"burst:3:hotspot:1:9":                     "expected hosts 0 to 7, found 9",
		"transient:uniform@0.1,transpose@0.1:10":  "transpose: number of hosts: expected a power of four, found 8",
		"transient:uniform@0.1,uniform@9:10":      "load: expected 0 to 8 flits per cycle and host, found 9",
		"transient:hotspot:1:1,2@0.1,uniform@1:5": "",
	} {
		traffic, err := parsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		traffic.Measure, traffic.Window = 100, 10
		if traffic.fixed() {
			traffic.Load = 1
		}
		_, err = newSynthetic(&SyntheticOptions{Network: star, Params: Presets()[0].Params, Traffic: traffic})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
		if name := patternName(&traffic); name != text {
			t.Errorf("%s has the name %s", text, name)
		}
	}
}
