package packet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// TestPauses sends from two hosts to a third over one switch, with thresholds of four and two packets.
func TestPauses(t *testing.T) {
	const wire, full = 1_000_000, 4160 * 80
	p := params(t, "roce", CompatNone)
	p.TransportParams["pfc-high"], p.TransportParams["pfc-low"] = 4, 2
	d := incast(1<<20, 1, 2)
	n := d.run(t, made(t)(topology.Star(3, 100e9, wire, 0)), p)
	d.check(t, n)
	if pauseFrames(t, n) == 0 {
		t.Fatal("nobody was paused")
	}
	for host := range uint32(3) {
		up := n.routes.NIC(host)
		if sender := host > 0; (n.ports[up].pausesReceived > 0) != sender || (n.ports[up^1].pausesSent > 0) != sender ||
			n.ports[up].pausesSent+n.ports[up^1].pausesReceived > 0 || (n.ports[up].pausedTime > 0) != sender {
			t.Errorf("host %d: port %+v, back %+v", host, n.ports[up], n.ports[up^1])
		}
	}
	// An input holds at most the bytes above the threshold, those on the wire, those sent until the pause took effect,
	// and the packet in service.
	most := uint64(2 * (4*4096 + 2*4160 + 2*wire/80))
	if got := n.ports[n.routes.HostPort(0)].peak[dataQueue]; got > most || got < most/2 {
		t.Errorf("%d bytes queued, want at most %d", got, most)
	}
	if room := n.ports[n.routes.HostPort(0)].capacity[dataQueue]; room < most {
		t.Errorf("room for %d bytes, want %d", room, most)
	}
	// Both senders are often paused while the output drains, but it is never idle, since the wire holds more than two
	// packets.
	if _, last := d.mean(); last < 512*full {
		t.Errorf("both ended after %v", last)
	}
}

// TestLosslessRoom adds up three inputs with a threshold of 15 packets, a wire of 1 us in both directions, the packet
// that exceeded the threshold and the one in service.
func TestLosslessRoom(t *testing.T) {
	n := (&traffic{}).start(t, made(t)(topology.Star(3, 100e9, dag.Microsecond, 0)), params(t, "roce", CompatNone))
	if got, want := n.ports[n.routes.HostPort(0)].capacity[dataQueue], uint64(3*(15*4096+25_000+2*4160)); got != want {
		t.Errorf("room for %d bytes, want %d", got, want)
	}
}

// TestPauseCounts checks that one pause is sent above XOFF, and one end of pause below XON.
func TestPauseCounts(t *testing.T) {
	n := (&traffic{}).start(t, made(t)(topology.Star(2, 100e9, 500, 0)), params(t, "roce", CompatNone))
	c := n.pfc
	c.xoff, c.xon = 300, 200
	i := n.routes.NIC(1)
	for _, step := range []struct {
		change int
		events int
		paused bool
	}{
		{100, 0, false}, {200, 0, false}, {1, 1, true}, {100, 1, true}, {-200, 1, true}, {-1, 1, true}, {-1, 2, false},
		{-199, 2, false}, {301, 3, true},
	} {
		if step.change > 0 {
			c.enter(n, i, uint32(step.change))
		} else {
			c.leave(n, i, uint32(-step.change))
		}
		if n.queue.Len() != step.events || c.inputs[i].paused != step.paused {
			t.Fatalf("%+v: %d events, paused %v", step, n.queue.Len(), c.inputs[i].paused)
		}
	}
	n.run(499)
	if n.ports[i].paused {
		t.Error("the pause was there before its time")
	}
	n.run(501)
	if !n.ports[i].paused || n.ports[i].pausesReceived != 2 || n.ports[i^1].pausesSent != 2 {
		t.Errorf("port %+v", n.ports[i])
	}
	if got := n.ports[i].pausedFor(2500); got != 2000 {
		t.Errorf("paused for %d ps, want 2000", got)
	}
}

// TestPauseDeadlock has five switches in a ring, each of which sends to the one after the next, so that each link waits
// for capacity on the next and thus on itself. The run must end all the same.
func TestPauseDeadlock(t *testing.T) {
	var ring strings.Builder
	for i := range 5 {
		fmt.Fprintf(&ring, "h%d s%d 100Gbps 500ns\ns%d s%d 100Gbps 500ns\n", i, i, i, (i+1)%5)
	}
	for _, transport := range []string{"roce", "dcqcn", "hpcc"} {
		for _, c := range []Compat{CompatNone, CompatHTSim} {
			p := params(t, transport, c)
			p.TransportParams["pfc-high"], p.TransportParams["pfc-low"] = 2, 1
			if transport == "dcqcn" {
				p.ECNMin, p.ECNMax = NoECN, NoECN
			}
			d := &traffic{}
			for i := range uint32(5) {
				d.flows = append(d.flows, Flow{Source: i, Target: (i + 2) % 5, Bytes: 10 << 20, Start: dag.Time(i)})
			}
			net := made(t)(topology.ReadEdges(strings.NewReader(ring.String()), "ring"))
			n := d.run(t, net, p)
			if transport == "roce" && d.done > 0 {
				t.Errorf("%s: %d flows ended", transport, d.done)
			}
			cycle := n.findDeadlock()
			if transport == "roce" && len(cycle) != 5 || len(cycle) > 0 && d.done > 0 {
				t.Errorf("%s, compat %v: %d ports in a deadlock, %d flows ended", transport, c, len(cycle), d.done)
			}
			for k, i := range cycle { // each port sends to the switch of the next
				if from := net.Ports()[cycle[(k+1)%len(cycle)]].From; net.Ports()[i].To != from || !n.ports[i].paused {
					t.Errorf("%s: port %d of the cycle leads to %d, the next starts at %d", transport, k, net.Ports()[i].To, from)
				}
			}
			if n.events > 10_000_000 {
				t.Errorf("%s: %d events", transport, n.events)
			}
			for i := range n.ports {
				if pt := &n.ports[i]; pt.pausedFor(n.now) > n.now {
					t.Errorf("port %d was paused for %d ps of %d", i, pt.pausedFor(n.now), n.now)
				}
			}
		}
	}
}

// TestLosslessNeverDrops fills lossless queues with capacities of less than what pauses require.
func TestLosslessNeverDrops(t *testing.T) {
	for _, transport := range []string{"roce", "dcqcn", "hpcc"} {
		for _, queue := range []int64{4160, 20_000, 100_000, 1 << 20} {
			for _, high := range []float64{1, 15, 100} {
				p := params(t, transport, CompatNone)
				p.Queue, p.TransportParams["pfc-high"], p.TransportParams["pfc-low"] = queue, high, high
				d := incast(256<<10, 1, 2, 3, 4, 5, 6, 7)
				n := d.run(t, parse(t, "leafspine:hosts=8,tor=2,spines=2,rate=100Gbps,latency=2us"), p)
				if d.done != len(d.flows) || n.findDeadlock() != nil {
					t.Errorf("%s: %d flows ended", transport, d.done)
				}
				for i := range n.ports {
					if pt := &n.ports[i]; pt.drops > 0 || pt.host == none && pt.peak[dataQueue] > pt.capacity[dataQueue] {
						t.Errorf("%s, queue %d, pfc-high %v: %d drops, %d of %d bytes", transport, queue, high, pt.drops,
							pt.peak[dataQueue], pt.capacity[dataQueue])
					}
				}
			}
		}
	}
}
