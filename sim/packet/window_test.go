package packet

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestWindowSizes checks that windows in bytes have the same effect as numbers of packets or of bandwidth-delay
// products, and that both have bounds.
func TestWindowSizes(t *testing.T) {
	for _, c := range []struct {
		transport, number, size string
	}{
		{"ndp", "window=16", "window=64KiB"},
		{"eqds", "window=16", "window=64KiB"},
		{"tcp", "window=16", "window=65536B"},
		{"tcp", "window=16,ssthresh=4", "window=64KiB,ssthresh=16KiB"},
		{"dctcp", "window=3", "window=12KiB"},
		{"swift", "window=0.5", "window=2KiB"},
		{"swift", "window=8,window-max=8", "window=32KiB,window-max=32KiB"},
		{"rccc", "window=2", "window=233792B"}, // of 116,896 bytes
	} {
		var ends [2]dag.Time
		for i, set := range []string{c.number, c.size} {
			b := newBackend()
			if err := b.setTransport(c.transport); err != nil {
				t.Fatal(err)
			}
			if err := b.assign(set); err != nil {
				t.Fatalf("%s, %s: %v", c.transport, set, err)
			}
			if err := b.params.Check(); err != nil {
				t.Fatalf("%s, %s: %v", c.transport, set, err)
			}
			n := runConnections(t, parse(t, leafSpine), b.params, nil, []connection{{0, 3, 0, 1 << 20}, {1, 3, 0, 1 << 20}})
			n.allThere(t)
			ends[i] = max(n.records[0].Delivered, n.records[1].Delivered)
		}
		if ends[0] != ends[1] {
			t.Errorf("%s: %s ends at %v, %s at %v", c.transport, c.number, ends[0], c.size, ends[1])
		}
	}
	for transport, sets := range map[string][]string{
		"ndp": {"window=1e9", "window=300000000", "window=0", "window=-2", "window=1PiB", "window=1B", "window=0B", "window=64KB/s",
			"window=NaN"},
		"tcp":  {"window=0.9", "window=4095B", "ssthresh=8191B"},
		"nscc": {"window=1e12", "window=32TiB", "window=0B"},
	} {
		for _, set := range sets {
			b := newBackend()
			if err := b.setTransport(transport); err != nil {
				t.Fatal(err)
			}
			if b.assign(set) == nil && b.params.Check() == nil {
				t.Errorf("%s: %s is accepted", transport, set)
			}
		}
	}
}
