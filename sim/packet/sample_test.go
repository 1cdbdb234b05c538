package packet

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/sim/measure"
)

func TestHistogram(t *testing.T) {
	var h histogram
	for v := uint64(1); v <= 100; v++ {
		h.count(v * 1000)
	}
	h.count(0) // 0 is not counted
	if got := h.mean(200); got != 25250 {
		t.Errorf("mean %v", got)
	}
	for _, test := range []struct {
		values uint64
		p      float64
		want   float64
	}{{100, 0.99, 99_000}, {100, 0.5, 50_000}, {200, 0.75, 50_000}, {200, 0.51, 2000}, {200, 0.5, 0}, {100_000, 0.99, 0}} {
		got := h.quantile(test.values, test.p)
		if got > test.want || got < test.want*63/64-1 {
			t.Errorf("quantile %v of %d values: %v, expected %v or little less", test.p, test.values, got, test.want)
		}
	}
	var sum histogram
	sum.count(63)
	sum.add(&h)
	if sum.sum != h.sum+63 || sum.quantile(101, 0.005) != 63 {
		t.Errorf("sum %d, least %v", sum.sum, sum.quantile(101, 0.005))
	}
}

// TestHistogramBuckets checks that each value is in a bucket whose limit is at most 1/64 below it.
func TestHistogramBuckets(t *testing.T) {
	for v := uint64(1); v < 1<<40; v += 1 + v/3 {
		var h histogram
		h.count(v)
		if got := h.quantile(1, 0.99); got > float64(v) || got < float64(v)*64/65 {
			t.Errorf("%d is in the bucket of %v", v, got)
		}
	}
}

// TestTooManySamples ends a run whose period is far below its length.
func TestTooManySamples(t *testing.T) {
	p, err := NewParams("ndp", CompatNone)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNetwork(&Options{Network: parse(t, leafSpine), Params: p, Sample: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for range measure.MostSamples - 1 {
		if err := n.sampler.count.Take(0); err != nil {
			t.Fatal(err)
		}
	}
	if n.sample(); n.err != nil || n.stop {
		t.Fatal(n.err)
	}
	if n.sample(); n.err == nil || !n.stop || !strings.Contains(n.err.Error(), "--sample 1ns: expected at most") {
		t.Errorf("error %v", n.err)
	}
}
