package llm

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/ideal"
	"testing"
)

func TestX(t *testing.T) {
	for _, m := range presets {
		x := m.model
		t.Log(m.name, x.Parameters())
	}
	p := Default()
	p.TP, p.DP, p.PP = 2, 2, 4
	p.MicroBatches = 8
	p.PeakFlops = 312e12
	p.MemoryBandwidth = 2e12
	p.Vocab = 0
	for _, s := range []Schedule{OneFOneB, GPipe, Interleaved} {
		for z := range 4 {
			p.ZeRO = z
			p.Schedule = s
			p.VirtualStages = 1
			if s == Interleaved {
				p.VirtualStages = 2
			}
			tr, err := Generate(p)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(dag.Validate(tr), tr.Ops())
			tl, err := ideal.Run(tr)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(tl.Result.Complete, tl.Makespan())
		}
	}
}
