package packet

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestSwiftVectors repeats reference runs with the paths of their flows, to the picosecond.
func TestSwiftVectors(t *testing.T) {
	for _, id := range []string{
		"swift-single-1MiB", "swift-single-100g-1MiB", "swift-2to1-16MiB", "swift-perm16", "swift-perm128",
		"swift-incast8-1MiB", "swift-incast32-1MiB",
	} {
		t.Run(id, func(t *testing.T) {
			v := readVector(t, id)
			n, net := v.run(t, "swift", CompatHTSim, nil)
			v.compare(t, n, net)
		})
	}
}

// TestSwiftLossy repeats a run with random drops. In the reference, 9 of 32 flows never complete, since a timeout does
// not repair a second hole. The mean over its seeds varies by 21 %, the 99th percentile by 20 %.
func TestSwiftLossy(t *testing.T) {
	v := readVector(t, "swift-incast32-lossy")
	for seed := range int64(5) {
		n, _ := v.run(t, "swift", CompatHTSim, func(p *Params) { p.Seed = seed })
		unfinished := 0
		for _, r := range n.records {
			if r.Acknowledged == 0 {
				unfinished++
			}
		}
		if unfinished < v.Incomplete-3 || unfinished > v.Incomplete+3 {
			t.Errorf("seed %d: %d flows did not end, want about %d", seed, unfinished, v.Incomplete)
		}
		mean, p99 := n.times()
		if off := mean/v.Summary.FCT.Mean - 1; off > 0.2135 || off < -0.2135 {
			t.Errorf("seed %d: mean %v, want %v", seed, mean, v.Summary.FCT.Mean)
		}
		if off := p99/v.Summary.FCT.P99 - 1; off > 0.195 || off < -0.195 {
			t.Errorf("seed %d: 99th percentile %v, want %v", seed, p99, v.Summary.FCT.P99)
		}
		drops, _ := n.total()
		if off := float64(drops)/v.Counters.Drops - 1; off > 0.05 || off < -0.05 {
			t.Errorf("seed %d: %d drops, want %v", seed, drops, v.Counters.Drops)
		}
	}
	n, _ := v.run(t, "swift", CompatNone, nil)
	n.allThere(t)
}

// TestSwiftTarget computes the target for several windows. By equation 3 of the paper with default parameters, alpha is
// 100 us / (1/sqrt(0.1) - 1/sqrt(100)) = 32.655 us and beta -3.2655 us.
func TestSwiftTarget(t *testing.T) {
	net := fourRacks(t, 4)
	for _, c := range []struct {
		compat Compat
		dst    uint32
		window uint64
		want   float64 // us
	}{
		{CompatNone, 1, 4096, 20 + 2*3.053435 + 32.6549 - 3.26549},
		{CompatNone, 15, 4096, 20 + 4*3.053435 + 32.6549 - 3.26549},
		{CompatNone, 15, 6144, 20 + 4*3.053435 + 32.6549/1.2247449 - 3.26549},
		{CompatNone, 15, 2048, 20 + 4*3.053435 + 32.6549*1.4142136 - 3.26549},
		{CompatNone, 15, 40 * 4096, 20 + 4*3.053435 + 32.6549/6.3245553 - 3.26549},
		{CompatNone, 15, 400, 20 + 4*3.053435 + 100},
		{CompatNone, 15, 200 * 4096, 20 + 4*3.053435},
		{CompatHTSim, 15, 4096, 20 + 32.6549 - 3.26549},
		{CompatHTSim, 15, 6144, 20 + 32.6549 - 3.26549}, // whole packets
		{CompatHTSim, 15, 4095, 20 + 100},
	} {
		n, err := newNetwork(&Options{Network: net, Params: defaults(t, "swift", c.compat)})
		if err != nil {
			t.Fatal(err)
		}
		tr := n.transport.(*swift)
		f := n.openFlow(0, c.dst, 0, 1, 1000)
		tr.sources[f].window = c.window
		if got := float64(tr.target(&tr.sources[f])) / 1e6; got < c.want-1e-3 || got > c.want+1e-3 {
			t.Errorf("rules %d, to %d with a window of %d: %v us, want %v", c.compat, c.dst, c.window, got, c.want)
		}
	}
}

// TestSwiftWindow computes algorithm 1: a target of 100 us, an ACK of a packet of 1000 bytes.
func TestSwiftWindow(t *testing.T) {
	const us = 1_000_000
	for _, c := range []struct {
		name                 string
		window, delay, since uint64
		want                 uint64
		smoothed             bool // with the quirk smoothedDecrease
	}{
		{"below the target", 10_000, 50 * us, 0, 10_100, false},
		{"less than a packet", 500, 50 * us, 0, 1500, false},
		{"above", 10_000, 125 * us, 125 * us, 8400, false}, // 1 - 0.8 * 25/125
		{"above within a round trip", 10_000, 125 * us, 124 * us, 10_000, false},
		{"far above", 10_000, 1000 * us, 1000 * us, 5000, false},
		{"at it", 10_000, 100 * us, 100 * us, 10_000, false},
		{"htsim, above", 10_000, 125 * us, 80 * us, 8400, true},
		{"htsim, above within a smoothed round trip", 10_000, 125 * us, 79 * us, 10_000, true},
	} {
		tr := &swift{stream: stream{n: &network{now: 5000 * us}, mss: 1000}, increase: 1, decrease: 0.8, maxDecrease: 0.5}
		tr.quirks.smoothedDecrease = c.smoothed
		s := &swiftSource{window: c.window, target: 100 * us, lastDecrease: 5000*us - c.since}
		s.timer.rtt = 80 * us
		if tr.adjust(s, c.delay, 1000); s.window != c.want {
			t.Errorf("%s: window %d, want %d", c.name, s.window, c.want)
		}
	}
}

// TestSwiftPace runs so many flows to one host that each has less than a packet in flight. They share its link, and the
// queue holds about as much as the target allows.
func TestSwiftPace(t *testing.T) {
	var list []connection
	for i := range uint32(300) {
		list = append(list, connection{i % 15, 15, 0, 64 << 10})
	}
	p := defaults(t, "swift", CompatNone)
	p.Queue = 8 << 20
	p.TransportParams["window"] = 1
	p.TransportParams["scaling"] = 0
	net := fourRacks(t, 4)
	n, err := newNetwork(&Options{Network: net, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	n.driver = quiet{}
	for i, c := range list {
		n.at(c.start, flowStart, n.openFlow(c.src, c.dst, uint32(i), uint32(i+1), c.bytes))
	}
	port := &n.ports[n.routes.HostPort(15)]
	n.run(400 * 1_000_000)
	port.peak[dataQueue] = port.bytes[dataQueue]
	paced := 0
	for _, s := range n.transport.(*swift).sources {
		if s.paced {
			paced++
		}
	}
	if paced < 150 {
		t.Errorf("%d flows are paced, want most of 300", paced)
	}
	n.run(1 << 62)
	n.allThere(t)
	// At 200 Gb/s the target minus the unloaded round trip of 4.7 us is a queue of about 700 kB.
	if peak := port.peak[dataQueue]; peak > 1_400_000 {
		t.Errorf("queue of %d bytes", peak)
	}
	last := dag.Time(0)
	for _, r := range n.records {
		last = max(last, r.Delivered)
	}
	if took, least := float64(last), 300.*(64<<10)*40; took > 1.15*least {
		t.Errorf("took %v, want %v to 15 %% more", took, least)
	}
}

// TestSwiftPaceEnds widens the window to two packets while a paced one is due. Both are sent at once, and no third one
// later.
func TestSwiftPaceEnds(t *testing.T) {
	n, err := newNetwork(&Options{Network: fourRacks(t, 4), Params: defaults(t, "swift", CompatNone)})
	if err != nil {
		t.Fatal(err)
	}
	f := n.openFlow(0, 15, 0, 1, 1<<20)
	tr := n.transport.(*swift)
	s := &tr.sources[f]
	s.window, s.interval = 2048, 1000
	tr.sendWindow(f, s)
	if s.sent != 0 || !s.paced {
		t.Fatalf("%d bytes sent, paced: %v", s.sent, s.paced)
	}
	s.window = 8192
	tr.sendWindow(f, s)
	n.run(2000)
	if s.sent != 8192 || s.paced {
		t.Errorf("%d bytes sent, want 8192; paced: %v", s.sent, s.paced)
	}
}
