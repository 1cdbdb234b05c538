package packet

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// TestHPCCWindow computes algorithm 1 for a link of 100 Gb/s and a round trip of 10 us, so a window of 125,000 bytes.
func TestHPCCWindow(t *testing.T) {
	p := params(t, "hpcc", CompatNone)
	p.TransportParams["rtt"], p.TransportParams["w-ai"] = 10e6, 100
	d := flowsOf(Flow{Target: 1, Bytes: 1 << 30})
	n := d.start(t, made(t)(topology.Star(2, 100e9, 1000, 0)), p)
	r := n.transport.(*roce)
	h, s := r.hpcc, &r.hpcc.sources[0]
	i := n.routes.HostPort(1)
	if s.window != 125_000 || !h.windowOpen(0, 124_999) || h.windowOpen(0, 125_000) {
		t.Fatalf("window %d", s.window)
	}
	path := telemetryRecord{port: i}
	for k, step := range []struct {
		time, sent, queued uint64 // picoseconds and bytes since the previous ACK; bytes
		acked, next        uint64 // packets
		use                float64
		window, reference  uint64
		stage              uint32
	}{
		{1000, 0, 9, 1, 30, 1, 125_000, 125_000, 0}, // no previous telemetry
		// Half a round trip at line rate without a queue: U is half of its old value plus half of 1.
		{5e6, 62_500, 0, 2, 31, 1, 118_850, 125_000, 0},
		{5e6, 62_500, 12_500, 3, 32, 1, 118_850, 125_000, 0},
		// The queue is a tenth of the window: half of 1 and half of 1.1. The round is over.
		{5e6, 62_500, 15_000, 31, 60, 1.05, 113_195, 113_195, 0},
		// More than a round trip at half the rate.
		{20e6, 125_000, 0, 40, 70, 0.5, 113_295, 113_195, 0},
		{10e6, 62_500, 0, 61, 90, 0.5, 113_295, 113_295, 1},
		{10e6, 62_500, 0, 91, 120, 0.5, 113_395, 113_395, 2},
		{10e6, 62_500, 0, 121, 150, 0.5, 113_495, 113_495, 3},
		{10e6, 62_500, 0, 151, 180, 0.5, 113_595, 113_595, 4},
		{10e6, 62_500, 0, 181, 210, 0.5, 113_695, 113_695, 5},
		// After five additive stages the window jumps to its target: 180,000, more than the line holds.
		{5e6, 43_750, 0, 182, 210, 0.6, 125_000, 113_695, 5},
		{10e6, 112_500, 0, 211, 240, 0.9, 113_695*95/90 + 100, 113_695*95/90 + 100, 0},
	} {
		path.time += step.time
		path.sent += step.sent
		path.queued = step.queued
		n.telemetry.clear(0)
		n.telemetry.counts[0] = 1
		n.telemetry.path(0)[0] = path
		rate := h.acknowledged(n, 0, 0, &roceSource{next: step.next}, step.acked)
		if s.window != step.window || s.reference != step.reference || math.Abs(s.utilization-step.use) > 1e-9 || s.stage != step.stage {
			t.Fatalf("ack %d: %+v, want %+v", k, *s, step)
		}
		if math.Abs(rate-float64(step.window)*8e5) > 1 {
			t.Errorf("ack %d: rate %v", k, rate)
		}
	}
	// A different path has no previous telemetry.
	before := *s
	path.port ^= 2
	n.telemetry.path(0)[0] = path
	if h.acknowledged(n, 0, 0, &roceSource{next: 300}, 212); s.window != before.window || s.path[0].port != path.port {
		t.Errorf("%+v", *s)
	}
}

// TestHPCCTelemetry sends three packets of two sizes through a port of a switch.
func TestHPCCTelemetry(t *testing.T) {
	for _, c := range []struct {
		compat Compat
		want   []telemetryRecord
	}{
		// At the start of service: the queue behind the packet.
		{CompatNone, []telemetryRecord{{0, 0, 0, 0}, {80_000, 1000, 2000, 0}, {240_000, 3000, 0, 0}}},
		// At the end of service: the queue including the packet.
		{CompatHTSim, []telemetryRecord{{80_000, 0, 5000, 0}, {240_000, 1000, 4000, 0}, {400_000, 3000, 2000, 0}}},
	} {
		d := flowsOf(Flow{Target: 1, Bytes: 1 << 20})
		n := d.start(t, made(t)(topology.Star(2, 100e9, dag.Microsecond, 0)), params(t, "hpcc", c.compat))
		out := n.routes.HostPort(1)
		for _, size := range []uint32{1000, 2000, 2000} {
			p := n.newPacket(0, data, size)
			n.packets[p].port = n.routes.NIC(0)
			n.telemetry.clear(p)
			n.pfc.enter(n, n.routes.NIC(0), size)
			n.enqueue(out, p)
		}
		for n.ports[out].serving != none {
			n.now = n.ports[out].busyUntil
			n.endService(out)
		}
		for p, want := range c.want {
			want.port = out
			if got := n.telemetry.path(uint32(p)); len(got) != 1 || got[0] != want {
				t.Errorf("%d, packet %d: %+v, want %+v", c.compat, p, got, want)
			}
		}
	}
}

// TestHPCCLongPath uses a path of 20 switches, which exceeds the initial room for telemetry.
func TestHPCCLongPath(t *testing.T) {
	var line strings.Builder
	fmt.Fprintf(&line, "h0 s0 100Gbps 500ns\n")
	for i := range 19 {
		fmt.Fprintf(&line, "s%d s%d 100Gbps 500ns\n", i, i+1)
	}
	fmt.Fprintf(&line, "h1 s19 100Gbps 500ns\n")
	d := flowsOf(Flow{Target: 1, Bytes: 4 << 20}, Flow{Source: 1, Bytes: 4 << 20})
	n := d.run(t, made(t)(topology.ReadEdges(strings.NewReader(line.String()), "line")), params(t, "hpcc", CompatNone))
	d.check(t, n)
	if n.telemetry.stride != 32 {
		t.Errorf("room for %d ports", n.telemetry.stride)
	}
	// ACKs wait behind data at every switch, so a window takes longer than its round trip.
	ideal := 1024*4160*80 + 42*500e3
	if _, most := d.mean(); most < ideal || most > 1.3*ideal {
		t.Errorf("it took %v ps, want a little more than %v", most, ideal)
	}
}
