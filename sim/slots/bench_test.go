package slots

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// loaded returns flows between 64 hosts at 0.9 of their capacity, and the network of TrafPy's campaign.
func loaded(n int, load float64) (*dag.Trace, []string) {
	r := rand.New(rand.NewPCG(1, 2))
	flows := randomFlows(r, 64, n, 1, 1)
	bytes := int64(0)
	for i := range flows {
		f := &flows[i]
		if f.to = f.from&^15 | f.to&15; f.to == f.from { // most racks of 16 hosts keep their bytes
			f.to ^= 1
		}
		f.bytes = int64(min(math.Exp(7+2.5*r.NormFloat64()), 2e7)) + 1 // as in a university
		bytes += f.bytes
	}
	during := float64(bytes) / (64 * 625e6 * load) * float64(dag.Second)
	for i := range flows {
		flows[i].at = dag.Time(float64(i) / float64(n) * during)
	}
	return traceOf(64, flows), []string{"topology=leafspine:hosts=64,tor=16,spines=2,rate=5Gbps/16Gbps"}
}

// TestTrends checks, on random flows, trends of the campaign of TrafPy: without load, each scheduler needs 1.5 slots;
// at
// high load, srpt and fs are faster than ff and random.
func TestTrends(t *testing.T) {
	mean := func(load float64, scheduler string) float64 {
		trace, set := loaded(20_000, load)
		d := runOn(t, trace, append(set, "scheduler="+scheduler)...)
		return *d.KPIs["mean_fct_ps"] / float64(dag.Millisecond)
	}
	for _, scheduler := range schedulers {
		if m := mean(0.02, scheduler); m < 1.45 || m > 1.6 {
			t.Errorf("%s, load 0.02: mean completion time %v slots, expected about 1.5", scheduler, m)
		}
	}
	srpt, fs, ff, random := mean(0.9, "srpt"), mean(0.9, "fs"), mean(0.9, "ff"), mean(0.9, "random")
	if max(srpt, fs) > min(ff, random) {
		t.Errorf("load 0.9: means of srpt %v, fs %v, ff %v, random %v slots", srpt, fs, ff, random)
	}
}

func BenchmarkSlots(b *testing.B) {
	trace, set := loaded(50_000, 0.9)
	for _, scheduler := range schedulers {
		b.Run(scheduler, func(b *testing.B) {
			replay := compiled(b, trace, append(set, "scheduler="+scheduler)...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := replay.Clone().Run(sim.RunOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
