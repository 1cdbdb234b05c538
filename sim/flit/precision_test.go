package flit

import (
	"math"
	"reflect"
	"testing"

	"github.com/tracedag/tracedag/sim/topology"
)

// switchTraffic returns traffic of 8 hosts at the switch of the first preset.
func switchTraffic(t *testing.T, traffic Traffic) SyntheticOptions {
	t.Helper()
	preset := Presets()[0]
	network, err := topology.Parse(preset.Topology)
	if err != nil {
		t.Fatal(err)
	}
	return SyntheticOptions{Network: network, Params: preset.Params, Traffic: traffic, Threads: 1}
}

// TestHalfWidth compares intervals with ones worked out by hand.
func TestHalfWidth(t *testing.T) {
	var all [numBatches]batch
	for i := range all {
		all[i] = batch{packets: 10, total: uint64(100 + 20*(i%2)), flits: 80, offered: 80}
	}
	// Means of 10 and 12 in turn: a standard deviation of sqrt(20/19), and none between pairs.
	r := &Report{batches: &all}
	r.Packet.Mean = 11
	if got, want := latencyWidth(r), t19*math.Sqrt(20.0/19/20)/11; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, expected %v", got, want)
	}
	// Ten batches of 10, then ten of 12: pairs have a standard deviation of sqrt(10/9).
	for i := range all {
		all[i].total = uint64(100 + 20*(i/10))
	}
	if got, want := latencyWidth(r), t9*math.Sqrt(10.0/9/10)/11; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, expected %v", got, want)
	}
	if deficit(r) != 0 || deficitWidth(r) != 0 {
		t.Errorf("deficit %v ±%v", deficit(r), deficitWidth(r))
	}
	all[3].flits = 0 // of 1600 offered flits, 80 are missing
	if got := deficit(r); math.Abs(got-0.05) > 1e-12 {
		t.Errorf("deficit %v", got)
	}
	// Differences of 80, and 19 times 0: a standard deviation of sqrt(320); of pairs 80 and 9 times 0.
	want := max(t19*math.Sqrt(320.0/20), t9*math.Sqrt(640.0/10)) / 80
	if got := deficitWidth(r); math.Abs(got-want) > 1e-12 {
		t.Errorf("deficit ±%v, expected %v", got, want)
	}
	all[5].packets = 0
	if got := latencyWidth(r); !math.IsInf(got, 1) {
		t.Errorf("%v without packets", got)
	}
}

// TestPrecision checks that an extended measurement equals one run of the same length, with any number of threads.
func TestPrecision(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	o := switchTraffic(t, Traffic{Pattern: Uniform, Load: 0.3, Warmup: 500, Measure: 400})
	o.Precision = 0.03
	r, err := RunSynthetic(o)
	if err != nil {
		t.Fatal(err)
	}
	i := r.Interval
	if i == nil || !i.Reached || i.Relative > 0.03 || i.HalfWidth != i.Relative*r.Packet.Mean || r.Cycles <= 400 {
		t.Fatalf("%d cycles, %+v", r.Cycles, i)
	}
	plain := o
	plain.Precision, plain.Traffic.Measure = 0, r.Cycles
	want, err := RunSynthetic(plain)
	if err != nil {
		t.Fatal(err)
	}
	got := *r
	got.Interval, got.batches, got.Wall, want.Wall = nil, nil, 0, 0
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("%+v, expected %+v", got, want)
	}

	network, err := topology.Parse("torus:dims=4x4,latency=1ns")
	if err != nil {
		t.Fatal(err)
	}
	o.Network, o.Precision, o.Traffic.Measure = network, 0.1, 100
	var reports [2]*Report
	for k := range reports {
		o.Threads = 1 + k
		if reports[k], err = RunSynthetic(o); err != nil {
			t.Fatal(err)
		}
		reports[k].Wall = 0
	}
	if !reflect.DeepEqual(reports[0], reports[1]) {
		t.Errorf("%+v with one thread, %+v with two", reports[0].Interval, reports[1].Interval)
	}
}

// TestPrecisionLimit checks that a measurement ends although it cannot be precise.
func TestPrecisionLimit(t *testing.T) {
	o := switchTraffic(t, Traffic{Pattern: Uniform, Load: 0, Measure: 100})
	o.Precision = 0.01
	if r, err := RunSynthetic(o); err != nil || r.Interval != nil || r.Packets != 0 || r.Cycles != mostLonger*100 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSaturation compares saturation with what follows from the traffic: the link to a host that all seven others send
// to has a flit per cycle, and a permutation has no contention.
func TestSaturation(t *testing.T) {
	for _, test := range []struct {
		traffic    Traffic
		load       float64
		throughput float64
	}{
		{Traffic{Pattern: Hotspot, Share: 1, Hot: []uint32{0}, Warmup: 20_000, Measure: 4000}, 1.0 / 7, 1.0 / 7},
		{Traffic{Pattern: Permutation, Warmup: 2000, Measure: 4000}, 0.95, 0.95},
	} {
		o := switchTraffic(t, test.traffic)
		o.Precision = 0.05
		s, r, err := FindSaturation(o)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Load/test.load-1) > 0.11 || math.Abs(s.Throughput/test.throughput-1) > 0.07 ||
			s.Throughput != r.Accepted || s.Runs < 3 {
			t.Errorf("%v: %+v", test.traffic.Pattern, s)
		}
		o.Traffic.Load, o.Precision = 0.001, 0
		o.Traffic.Measure = 1_000_000
		idle, err := RunSynthetic(o)
		if err != nil || math.Abs(s.ZeroLoadLatency/idle.Packet.Mean-1) > 0.05 || !s.ZeroLoadInterval.Reached {
			t.Errorf("%v: zero-load latency %v, expected %v, %v", test.traffic.Pattern, s.ZeroLoadLatency, idle.Packet.Mean, err)
		}
	}
}
