package packet

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestTCPVectors repeats reference runs of TCP and DCTCP with the paths of their flows, to the picosecond. Queues mark
// above 15 packets.
func TestTCPVectors(t *testing.T) {
	for _, id := range []string{
		"dctcp-single-64KiB", "dctcp-single-1MiB", "dctcp-single-10MiB", "dctcp-2to1-onespine", "dctcp-4to1-onespine",
		"dctcp-incast8-1MiB", "dctcp-incast32-1MiB", "dctcp-perm16-ls16_1os", "dctcp-perm16-ls16_4os", "tcp-4to1-onespine",
	} {
		t.Run(id, func(t *testing.T) {
			v := readVector(t, id)
			transport, _, _ := strings.Cut(id, "-")
			n, net := v.run(t, transport, CompatHTSim, func(p *Params) { p.ECNMin, p.ECNMax = 15*p.MSS, 15*p.MSS })
			v.compare(t, n, net)
		})
	}
}

// TestTCPWithoutQuirks repeats the reference runs without quirks. The differences are the size of the SYN, the packets
// after the end of the data, shorter timeouts and, for DCTCP, the windows after which it reduces the window.
func TestTCPWithoutQuirks(t *testing.T) {
	for _, c := range []struct {
		id      string
		percent float64
	}{{"dctcp-single-10MiB", 1}, {"dctcp-4to1-onespine", 5}, {"dctcp-incast32-1MiB", 5}, {"tcp-4to1-onespine", 2}} {
		v := readVector(t, c.id)
		transport, _, _ := strings.Cut(c.id, "-")
		n, _ := v.run(t, transport, CompatNone, func(p *Params) {
			p.HeaderSize, p.ControlSize, p.TransportParams[handshake] = 0, 40, 1
			p.TransportParams["rto-max"] = 0 // RFC 6298
		})
		n.allThere(t)
		mean, _ := n.times()
		if off := 100 * (mean/v.Summary.FCT.Mean - 1); off > c.percent || off < -c.percent {
			t.Errorf("%s: mean %v, %v %% off", c.id, mean, off)
		}
	}
}

// TestDCTCPWindow computes alpha and the window after observed windows with some marks each. The first observed window
// has two packets.
func TestDCTCPWindow(t *testing.T) {
	const mss = 1000
	for _, c := range []struct {
		name    string
		always  bool
		inLoss  bool
		marks   []int // marked ACKs of each ten; the two ACKs before have none
		average float64
		window  uint64
	}{
		{"no marks", true, false, []int{0, 0}, 0, 10_000},
		{"all marked once", false, false, []int{10}, 1. / 16, 9687},             // 10000 * 31/32
		{"half marked once", false, false, []int{5}, 1. / 32, 9843},             // 10000 * 63/64
		{"a window without marks", false, false, []int{10, 0}, 15. / 256, 9687}, // the window has 9.687 packets: ten ACKs
		{"htsim cuts then, too", true, false, []int{10, 0}, 15. / 256, 9403},    // 9687 * (1 - 15/512)
		{"in recovery", false, true, []int{10}, 1. / 16, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &dctcp{gain: 1. / 16, cutAlways: c.always, mss: mss}
			d.open(0)
			s := &tcpSource{window: 10_000, threshold: 100_000, streamSource: streamSource{recovering: c.inLoss}}
			tr := &tcp{stream: stream{mss: mss}}
			for range 2 {
				d.acked(tr, 0, s, false)
			}
			for _, marks := range c.marks {
				for i := range 10 {
					d.acked(tr, 0, s, i < marks)
				}
			}
			if got := d.sources[0].average; got != c.average {
				t.Errorf("alpha %v, want %v", got, c.average)
			}
			if s.window != c.window {
				t.Errorf("window %d, want %d", s.window, c.window)
			}
		})
	}
}

// TestDCTCPKeepsQueuesShort compares with TCP, which fills the queue and loses packets.
func TestDCTCPKeepsQueuesShort(t *testing.T) {
	peak := func(transport string) (bytes, drops uint64) {
		p := defaults(t, transport, CompatNone)
		p.Queue = 1 << 20
		list := []connection{{0, 15, 0, 16 << 20}, {4, 15, 0, 16 << 20}, {8, 15, 0, 16 << 20}}
		n := runConnections(t, fourRacks(t, 4), p, nil, list)
		for i := range n.ports {
			if n.ports[i].host == none {
				bytes = max(bytes, n.ports[i].peak[dataQueue])
			}
		}
		drops, _ = n.total()
		return bytes, drops
	}
	tcpBytes, tcpDrops := peak("tcp")
	dctcpBytes, dctcpDrops := peak("dctcp")
	if tcpDrops == 0 || tcpBytes < 1_000_000 || dctcpDrops > 0 || dctcpBytes > 350_000 {
		t.Errorf("tcp: queue of %d bytes, %d drops; dctcp: %d, %d", tcpBytes, tcpDrops, dctcpBytes, dctcpDrops)
	}
}

// TestTCPWindow computes the growth of the window.
func TestTCPWindow(t *testing.T) {
	for _, c := range []struct {
		name                      string
		window, threshold, unsent uint64
		htsim                     bool
		want                      uint64
	}{
		{"slow start", 10_000, 100_000, 1000, false, 11_000},
		{"its end", 99_500, 100_000, 1000, false, 100_000},
		{"avoidance", 10_000, 5000, 1000, false, 10_100},
		{"the flow uses less", 10_000, 100_000, 5000, false, 11_000},
		{"nothing of it is free", 10_000, 100_000, 0, false, 10_000},
		{"a byte at least", 2_000_000, 5000, 1000, false, 2_000_001},
		{"htsim rounds down", 2_000_000, 5000, 1000, true, 2_000_000},
	} {
		s := &tcpSource{window: c.window, threshold: c.threshold}
		s.acked, s.sent = 50_000, 50_000+c.window-c.unsent
		(&tcp{stream: stream{mss: 1000, quirks: quirks{dropSmallIncrease: c.htsim}}}).grow(s)
		if s.window != c.want {
			t.Errorf("%s: window %d, want %d", c.name, s.window, c.want)
		}
	}
}

// TestRetransmissionTimer computes the timeout (RFC 6298, section 2).
func TestRetransmissionTimer(t *testing.T) {
	rules := &rtoRules{initial: 500, min: 100}
	var r rtoTimer
	r.reset(rules, &pathInfo{})
	for _, c := range []struct{ delay, rtt, timeout uint64 }{
		{0, 0, 100}, // no sample
		{800, 800, 800 + 4*400},
		{800, 800, 800 + 4*300},
		{1600, 900, 900 + 4*(225+200)},
		{0, 900, 900 + 4*425},
	} {
		if r.sample(c.delay, rules); r.rtt != c.rtt || r.timeout != c.timeout {
			t.Errorf("after %d: round trip %d, timeout %d, want %d, %d", c.delay, r.rtt, r.timeout, c.rtt, c.timeout)
		}
	}
}

// TestAutomaticHandshake checks that the handshake is on for lists of flows only, unless it is given, and that the ideal
// time includes it.
func TestAutomaticHandshake(t *testing.T) {
	flow := func(change func(b *dag.Builder)) *dag.Trace {
		b := dag.NewBuilder(4)
		change(b)
		return b.Trace()
	}
	one := func(b *dag.Builder) {
		b.Rank(0).Send(3, 1000, 0)
		b.Rank(3).Recv(0, 1000, 0)
	}
	of := func(attrs string) *dag.Trace {
		trace := flow(one)
		trace.Attrs = attrs
		return trace
	}
	const connect = 2 * 4 * (64*40 + 500_000)
	const data = 4 * (1064*40 + 500_000)
	for _, c := range []struct {
		name  string
		trace *dag.Trace
		flows bool
	}{
		{"message", flow(one), false},
		{"connection matrix", of(`{"htsim":{"unit":6}}`), true},
		{"HPCC", of(`{"hpcc":{}}`), true},
		{"TrafPy", of(`{"trafpy":{}}`), true},
		{"merged flows", of(`{"jobs":[{"hpcc":{}},{"trafpy":{}}]}`), true},
		{"merge with another trace", of(`{"jobs":[{"hpcc":{}},null]}`), false},
		{"start time", flow(func(b *dag.Builder) {
			b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 3, Bytes: 1000, Release: 1})
			b.Rank(3).Recv(0, 1000, 0)
		}), true},
		{"numbers", flow(func(b *dag.Builder) {
			one(b)
			b.Rank(1).Send(0, 1000, 1)
			b.Rank(0).Recv(1, 1000, 1)
		}), true},
		{"dependency", flow(func(b *dag.Builder) {
			one(b)
			b.Rank(3).Send(0, 1000, 1, 0)
			b.Rank(0).Recv(3, 1000, 1)
		}), false},
		{"calc", flow(func(b *dag.Builder) {
			one(b)
			b.Rank(0).Calc(1)
		}), false},
	} {
		for _, given := range []float64{-1, 0, 1} {
			on := given > 0 || given < 0 && c.flows
			for _, name := range []string{"tcp", "dctcp"} {
				_, report := try{network: leafSpine, transport: name, set: func(o *Options) {
					o.Params.TransportParams[handshake] = given
				}}.run(t, c.trace)
				want := dag.Time(data)
				if on {
					want += connect
				}
				f := report.Flows[0]
				if got := f.Delivered - f.Start; f.Target == 3 && (got != want || report.Ideal[0] != want) {
					t.Errorf("%s, %s, handshake=%v: %v, ideal %v, want %v", name, c.name, given, got, report.Ideal[0], want)
				}
			}
		}
	}
}
