package packet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHistory compares the lengths of queues in intervals with the samples themselves.
func TestHistory(t *testing.T) {
	for _, last := range []uint64{0, 5, historyPoints - 1, historyPoints, 3 * historyPoints, 1_000_003, 1 << 40} {
		random := rand.New(rand.NewPCG(last, 1))
		const ports = 5
		h := newHistory(ports)
		samples := make([]map[uint64]uint64, ports)
		for port := range samples {
			samples[port] = make(map[uint64]uint64)
		}
		for i := range uint64(1000) {
			at := last / 999 * i
			if i == 999 {
				at = last
			}
			for port := range ports {
				if bytes := random.Uint64N(5000); port > 0 {
					h.add(at, port, bytes)
					samples[port][at] = max(samples[port][at], bytes)
				}
			}
		}
		if h.place[0] != 0 || len(h.ports) != ports-1 {
			t.Errorf("%d samples: %d ports", last, len(h.ports))
		}
		for i, port := range h.ports {
			want := make([]uint64, last/h.width+1)
			for at, bytes := range samples[port] {
				want[at/h.width] = max(want[at/h.width], bytes)
			}
			if got := h.series[i]; len(got) > historyPoints || !slices.Equal(got, want[:len(got)]) ||
				slices.Max(append(want[len(got):], 0)) > 0 {
				t.Errorf("%d samples, port %d: %d intervals of %d samples differ", last, port, len(got), h.width)
			}
		}
	}
}

// TestHistoryPorts checks that a history follows the first ports with data.
func TestHistoryPorts(t *testing.T) {
	h := newHistory(historyPorts + 10)
	for round := range uint64(2) {
		for port := range historyPorts + 10 {
			h.add(round, port, uint64(port))
		}
	}
	if len(h.ports) != historyPorts || h.ports[0] != 1 || h.others != 9 {
		t.Errorf("%d ports from %d on, %d others", len(h.ports), h.ports[0], h.others)
	}
}
