package packet

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

func parseNetwork(t *testing.T, text string) *topology.Network {
	t.Helper()
	network, err := topology.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

// TestIdealTimes compares ideal times with values worked out by hand: 40 ps per byte and 500 ns per link.
func TestIdealTimes(t *testing.T) {
	leafSpine := parseNetwork(t, "leafspine:hosts=16,tor=4,spines=4,rate=200Gbps,latency=500ns")
	for _, test := range []struct {
		from, to uint32
		bytes    uint64
		whole    bool
		want     dag.Time
	}{
		{0, 15, 4096, false, 4 * (4160*40 + 500_000)},
		{0, 1, 4096, false, 2 * (4160*40 + 500_000)},
		{0, 15, 1, false, 4 * (65*40 + 500_000)},
		{0, 15, 1, true, 4 * (4160*40 + 500_000)},
		{0, 15, 4097, false, 4*(4160*40+500_000) + 65*40},
		{0, 15, 3 * 4096, false, 4*(4160*40+500_000) + 2*4160*40},
	} {
		o := &Options{Network: leafSpine, Params: Params{Transport: "ndp", MSS: 4096, HeaderSize: 64, PadLastPacket: test.whole}}
		got := idealTimes([]Flow{{Source: test.from, Target: test.to, Bytes: test.bytes}}, intactRoutes(leafSpine), o)
		if got[0] != test.want {
			t.Errorf("%+v: got %v", test, got[0])
		}
	}
	// Two tiers of different rates, and switches with latency: packets wait for each other at the slow link.
	mixed := parseNetwork(t, "leafspine:hosts=4,tor=2,spines=1,rate=400Gbps/100Gbps,latency=1us,switchlatency=300ns")
	o := &Options{Network: mixed, Params: Params{Transport: "ndp", MSS: 1000, HeaderSize: 64}}
	got := idealTimes([]Flow{{Source: 0, Target: 3, Bytes: 2000}}, intactRoutes(mixed), o)
	if want := dag.Time(2*1064*20 + 2*1064*80 + 4*1_000_000 + 3*300_000 + 1064*80); got[0] != want {
		t.Errorf("got %v, expected %v", got[0], want)
	}
}

func TestSummarise(t *testing.T) {
	r := &Report{
		Flows: []Flow{
			{Bytes: 1000, Start: 10, Delivered: 110, Acknowledged: 210, Retransmits: 2, Nacks: 1},
			{Bytes: 3000, Start: 20, Delivered: 120, Acknowledged: 320},
			{Bytes: 1000, Start: 30, Delivered: 130},
			{Bytes: 500, Start: 40},
		},
		Ideal: []dag.Time{50, 100, 100, 100},
	}
	r.summarize(&Options{})
	if r.Incomplete != 2 || r.FCT.Count != 2 || r.FCT.Mean != 250 || r.Delivered.Count != 3 || r.Slowdown.Max != 2 ||
		r.Last != 320 || r.Bytes != 4000 || r.Counters.Retransmitted != 2 || r.Counters.Nacks != 1 {
		t.Errorf("got %+v", r)
	}
	if want := (5.0 + 10) * (5 + 10) / (2 * (25 + 100)); math.Abs(r.Jain-want) > 1e-12 {
		t.Errorf("Jain %v, expected %v", r.Jain, want)
	}
	if len(r.Sizes) != 3 || r.Sizes[1].Bytes != 1000 || r.Sizes[1].FCT.Count != 1 || r.Sizes[1].Slowdown.Count != 2 {
		t.Errorf("sizes %+v", r.Sizes)
	}
}

func TestSizeClasses(t *testing.T) {
	var flows []Flow
	for bytes := uint64(1); bytes <= 100; bytes++ {
		flows = append(flows, Flow{Bytes: bytes})
	}
	classOf, classes := (&Report{Flows: flows}).sizeClasses(&Options{})
	if want := []uint64{1, 2, 4, 8, 16, 32, 64, 128}; !slices.Equal(classes, want) || classOf(33) != 6 || classOf(32) != 5 {
		t.Errorf("got %v, 33 is of %d", classes, classOf(33))
	}
}

func TestTiers(t *testing.T) {
	for _, test := range []struct{ network, want string }{
		{"leafspine:hosts=16,tor=4,spines=4", "host up 16, tor up 16, agg down 16, tor down 16"},
		{"fattree:k=4", "host up 16, tor up 16, agg up 16, core down 16, agg down 16, tor down 16"},
		{"star:hosts=3", "host up 3, switch down 3"},
		{"dragonfly:p=2,a=4,h=2", "host up 72, router local 108, router global 72, router down 72"},
	} {
		network := parseNetwork(t, test.network)
		o := &Options{Network: network}
		var err error
		if o.Params, err = NewParams("ndp", CompatNone); err != nil {
			t.Fatal(err)
		}
		n, err := newNetwork(o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tier := range newReport(nil, n, o).Tiers {
			got = append(got, tier.Name+" "+strconv.Itoa(tier.Ports))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: %s", test.network, strings.Join(got, ", "))
		}
	}
}
