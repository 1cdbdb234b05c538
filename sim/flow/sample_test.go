package flow

import (
	"io"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// TestTooManySamples ends a run whose period is far below its length.
func TestTooManySamples(t *testing.T) {
	net, err := topology.Parse("star:hosts=2")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topology.NewRoutes(t.Context(), net, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newSelector(net, routes, balanceSpray, 1, 0, false)
	c := &coupling{paths: p, fluid: newFluid(p.links), running: 1}
	s := newSampler(io.Discard, 1000, c)
	for range measure.MostSamples - 2 {
		if err := s.count.Take(0); err != nil {
			t.Fatal(err)
		}
	}
	if s.until(c, 2000); c.err != nil {
		t.Fatal(c.err)
	}
	s.until(c, 1_000_000_000)
	if c.err == nil || !strings.Contains(c.err.Error(), "--sample 1ns: expected at most 10000000 samples") {
		t.Errorf("error %v", c.err)
	}
	if n := s.count.Taken(); n != measure.MostSamples+1 {
		t.Errorf("%d samples were taken", n)
	}
}
