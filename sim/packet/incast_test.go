package packet

import (
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
	first, rest := wireBytes(bytes, uint64(p.MSS), uint64(n.headerSize), false)
	wire := uint64(senders) * (first + rest) * uint64(n.ports[n.routes.HostPort(0)].psPerByte)
	return float64(last) / float64(wire+n.unloadedLatency(1, 0, uint32(first)))
}

// TestIncastSlowdown checks that incasts of up to 2,047 messages take less than twice the time of their bytes, with all
// transports on switches that trim or pause. The headers of a round of retransmissions take longer than a round trip.
func TestIncastSlowdown(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, m := range Transports {
		if m.discipline != trimming && m.discipline != lossless {
			continue // drops, and waits for timeouts
		}
		for _, c := range []struct {
			spec    string
			senders uint32
			bytes   uint64
		}{
			{"star:hosts=2048,rate=100Gbps", 2047, 0},
			{"star:hosts=2048,rate=100Gbps", 2047, 1},
			{"star:hosts=2048,rate=100Gbps", 2047, 300},
			{"star:hosts=2048,rate=100Gbps", 2047, 1000},
			{"star:hosts=2048,rate=100Gbps", 2047, 5000},
			{"star:hosts=2048,rate=10Gbps,latency=100ns", 2047, 8192},
			{"leafspine:hosts=256,tor=16,spines=16,rate=400Gbps", 255, 1000},
			{"leafspine:hosts=256,tor=16,spines=16,rate=400Gbps", 255, 65536},
		} {
			if got := incastSlowdown(t, c.spec, defaults(t, m.Name, CompatNone), c.senders, c.bytes); got >= 2 {
				t.Errorf("%s, %s, %d times %d bytes: slowdown %.3f", m.Name, c.spec, c.senders, c.bytes, got)
			}
		}
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
