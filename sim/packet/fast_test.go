package packet

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestFastLinks checks that links above 1 Tb/s transmit at their rate, although a byte takes no whole picoseconds.
func TestFastLinks(t *testing.T) {
	for _, c := range []struct {
		rate int64
		want byteTime
	}{
		{300e9, byteTime{26, 0}}, {1e12, byteTime{8, 0}}, {1600e9, byteTime{5, 0}}, {2880e9, byteTime{2, 199}},
		{7200e9, byteTime{1, 28}}, {8e12, byteTime{1, 0}},
	} {
		q := quirksOf(CompatNone)
		if got := q.byteTimeOf(c.rate); got != c.want {
			t.Errorf("%d bit/s: %+v, want %+v", c.rate, got, c.want)
		}
		if q = quirksOf(CompatHTSim); q.byteTimeOf(c.rate).part != 0 {
			t.Errorf("%d bit/s: htsim has whole picoseconds", c.rate)
		}
	}
	const bytes = 64 << 20
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, bytes, 0)
	b.Rank(1).Recv(0, bytes, 0)
	_, report := try{network: "spectrumx:gpus=16,psws=2", set: func(o *Options) {
		o.Placement = Placement{Hosts: []uint32{0, 2}} // GPUs 0 and 1
	}}.run(t, b.Trace())
	f := &report.Flows[0]
	least := dag.Time(bytes * 8 * 1000 / 2880) // payload at the rate of NVLink
	if took := f.Delivered - f.Start; took < least || took > least*104/100 {
		t.Errorf("%v, expected %v with headers", took, least)
	}
	if ideal := report.Ideal[0]; ideal > f.Delivered-f.Start || ideal < least {
		t.Errorf("ideal %v, found %v", ideal, f.Delivered-f.Start)
	}
}
