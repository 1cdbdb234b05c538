package packet

import (
	"os"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// incastSlowdown returns the time until the last delivery of an incast to host 0, relative to the time of all bytes on
// its link.
func incastSlowdown(t testing.TB, spec string, p Params, senders uint32, bytes uint64) float64 {
	t.Helper()
	var list []connection
	for i := range senders {
		list = append(list, connection{i + 1, 0, 0, bytes})
	}
	n := runConnections(t, parse(t, spec), p, nil, list)
	last := dag.Time(0)
	for i, r := range n.records {
		if r.Delivered == 0 || r.Acknowledged == 0 {
			t.Fatalf("%s: flow %d of %d bytes is incomplete", p.Transport, i, bytes)
		}
		last = max(last, r.Delivered)
	}
	latency := uint64(0)
	first, rest := wireBytes(bytes, uint64(p.MSS), uint64(n.headerSize), false)
	wire := uint64(senders) * (first + rest) * uint64(n.ports[n.routes.HostPort(0)].psPerByte)
	for i := range senders {
		latency = max(latency, n.unloadedLatency(i+1, 0, uint32(first)))
	}
	return float64(last) / float64(wire+latency)
}

// long reports whether tests run all of their cases, which takes minutes, instead of some.
func long() bool { return os.Getenv("TRACEDAG_LONG") != "" }

// TestIncastSlowdown checks that incasts of up to 2,047 messages take less than twice the time of their bytes, with all
// transports and load balancing that suits them. The headers of a round of retransmissions, or the packets that do not
// fit into the buffer of a drop-tail switch, take longer than a round trip.
func TestIncastSlowdown(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	policies := []Balance{ByFlow, ByHost, Spray, Permute, Random, Fixed, RoundRobin, Adaptive, Flowlet}
	inOrder := []Balance{ByFlow, ByHost, Fixed}
	cases := []struct {
		spec    string
		senders uint32
		bytes   []uint64
		mss     int64
	}{
		{"star:hosts=2048,rate=100Gbps", 2047, []uint64{0, 1, 300, 1000, 5000}, 4096},
		{"star:hosts=2048,rate=10Gbps,latency=100ns", 2047, []uint64{8192}, 4096},
		{"leafspine:hosts=2048,tor=16,spines=4,rate=25Gbps", 2047, []uint64{1000, 5000}, 4096},
		{"leafspine:hosts=2048,tor=16,spines=4,rate=25Gbps", 2047, []uint64{9000}, 9000},
		{"leafspine:hosts=1024,tor=32,spines=32,rate=100Gbps", 1023, []uint64{1000}, 1460},
		{"leafspine:hosts=256,tor=16,spines=16,rate=400Gbps", 255, []uint64{1000, 65536}, 4096},
		{"fattree:k=8,rate=10Gbps", 127, []uint64{65536}, 4096},
		{"torus:dims=6x6,rate=100Gbps", 35, []uint64{65536, 1 << 20}, 4096},
		{"dragonfly:p=2,a=4,h=2,rate=100Gbps", 71, []uint64{1000, 65536}, 4096},
	}
	if long() {
		for i := range cases {
			cases[i].bytes = []uint64{1, 1000, 4096, 5000, 16384, 65536, 1 << 20}
		}
		cases = append(cases, cases[:4]...)
		for i, spec := range []string{"leafspine:hosts=2048,tor=32,spines=32,rate=100Gbps",
			"leafspine:hosts=2048,tor=8,spines=8,rate=400Gbps", "fattree:k=20,rate=100Gbps",
			"dragonfly:p=4,a=8,h=4,rate=100Gbps"} {
			c := &cases[len(cases)-4+i]
			c.spec, c.mss = spec, 4096
			c.senders = uint32(min(2047, parse(t, spec).Hosts-1))
		}
	}
	run := 0
	for _, c := range cases {
		for _, bytes := range c.bytes {
			if bytes*uint64(c.senders) > 300<<20 {
				continue
			}
			for _, m := range Transports {
				policies := policies
				if m.nic == scheduled && m.discipline == lossless { // go-back-N resends after packets out of order
					policies = inOrder
				}
				balances := policies
				if !long() { // others with each transport
					run++
					balances = []Balance{policies[run%len(policies)]}
				}
				for _, b := range balances {
					p := defaults(t, m.Name, CompatNone)
					p.Balance, p.MSS = b, c.mss
					if got := incastSlowdown(t, c.spec, p, c.senders, bytes); got >= 2 {
						t.Errorf("%s, %s, %v, %d times %d bytes: slowdown %.3f", m.Name, c.spec, b, c.senders, bytes, got)
					}
				}
			}
		}
	}
}

// TestSharedBuffer checks admission to the buffer of a switch: dynamic thresholds, room for the packet in service, and
// the accounts of the buffer at the end.
func TestSharedBuffer(t *testing.T) {
	const packet = 4160
	for _, c := range []struct {
		buffer, queue int64
		share         float64
		peaks         [2]uint64 // largest queues of ports to two hosts, in packets, with packets in service
	}{
		{100 * packet, 0, 1, [2]uint64{51, 51}},           // half of the buffer waits at a single port
		{90 * packet, 0, 8, [2]uint64{81, 81}},            // 8/9
		{100 * packet, 20 * packet, 1, [2]uint64{20, 20}}, // a lower limit of the port
		{0, 20 * packet, 0, [2]uint64{20, 20}},            // no shared buffer
		{100 * packet, 0, 1 << 20, [2]uint64{101, 101}},   // all
		{smallestBuffer, 0, 1, [2]uint64{481, 481}},       // more than half a default buffer
	} {
		for k := range 2 {
			p := defaults(t, "tcp", CompatNone)
			p.SharedBuffer, p.Queue, p.BufferShare = c.buffer, c.queue, c.share
			p.TransportParams["window"] = 30
			var list []connection
			for i := range uint32(20) {
				list = append(list, connection{i + 2, uint32(k), 0, 30 * 4096})
			}
			n := runConnections(t, parse(t, "star:hosts=22"), p, nil, list)
			n.allThere(t)
			if got := n.ports[n.routes.HostPort(uint32(k))].peak[dataQueue] / packet; got != c.peaks[k] {
				t.Errorf("buffer %d, share %v, queue %d: %d packets, want %d", c.buffer, c.share, c.queue, got, c.peaks[k])
			}
			for _, b := range n.buffers {
				if b.used != 0 {
					t.Errorf("buffer %d: %d bytes in use at the end", c.buffer, b.used)
				}
			}
		}
	}
	// Two congested ports share equally: with a multiple of 1, each has a third.
	p := defaults(t, "tcp", CompatNone)
	p.SharedBuffer, p.BufferShare, p.TransportParams["window"] = 99*packet, 1, 30
	var list []connection
	for i := range uint32(20) {
		list = append(list, connection{i + 2, i % 2, 0, 30 * 4096})
	}
	n := runConnections(t, parse(t, "star:hosts=22"), p, nil, list)
	for k := range uint32(2) {
		if got := n.ports[n.routes.HostPort(k)].peak[dataQueue] / packet; got < 33 || got > 36 {
			t.Errorf("port %d of two: %d packets, want about 34", k, got)
		}
	}
	if _, ok := func() (Params, bool) { // compatibility modes have a queue per port
		o := Options{Network: parse(t, "star:hosts=22"), Params: defaults(t, "tcp", CompatHTSim)}
		n, err := newNetwork(&o)
		return o.Params, err == nil && n.buffers == nil && o.Params.SharedBuffer == 0
	}(); !ok {
		t.Error("compatibility modes share buffers")
	}
}

// TestControlRatio serves a port on which control and data packets of several sizes wait.
func TestControlRatio(t *testing.T) {
	for _, size := range []uint32{100, 1000, 4160} {
		for _, ratio := range []uint32{1, 2, 10} {
			n := bare(1)
			pt := &port{queues: [2]fifo{newFIFO(), newFIFO()}, controlTurns: ratio, dataTurn: 4160}
			var served [2]uint32
			for served[controlQueue] < 1000 {
				if pt.queues[dataQueue].head == none {
					n.pushPacket(&pt.queues[dataQueue], n.newPacket(0, data, size))
				}
				if pt.queues[controlQueue].head == none {
					n.pushPacket(&pt.queues[controlQueue], n.newPacket(0, ack, 64))
				}
				queue := n.nextQueue(pt)
				served[queue]++
				n.popPacket(&pt.queues[queue])
			}
			perTurn := (4160 + size - 1) / size
			if want := 1000 / ratio * perTurn; served[dataQueue] < want-perTurn || served[dataQueue] > want+perTurn {
				t.Errorf("%d data packets of %d bytes with ratio %d, want %d", served[dataQueue], size, ratio, want)
			}
		}
	}
}
