package flow

import (
	"math"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// BenchmarkRandomFlows runs 10,000 flows of 1 kB to 10 MB, log-uniform, that start within 1 ms at random pairs of 1,024
// hosts.
func BenchmarkRandomFlows(b *testing.B) {
	net, err := topology.Parse("leafspine:hosts=1024,tor=32,spines=16,rate=100Gbps,latency=500ns")
	if err != nil {
		b.Fatal(err)
	}
	routes, err := topology.NewRoutes(b.Context(), net, nil)
	if err != nil {
		b.Fatal(err)
	}
	random := sim.NewRandom(1, 0, 0)
	type flow struct {
		start    float64
		bytes    uint64
		from, to uint32
	}
	flows := make([]flow, 10_000)
	for i := range flows {
		f := &flows[i]
		f.from, f.to = random.Below(1024), random.Below(1023)
		if f.to >= f.from {
			f.to++
		}
		f.start = float64(random.Next()%1e6) * 1e3
		f.bytes = uint64(math.Pow(10, 3+4*float64(random.Next()>>11)/(1<<53)))
	}
	slices.SortStableFunc(flows, func(x, y flow) int {
		if x.start < y.start {
			return -1
		}
		return 1
	})
	for _, name := range []string{"cm02", "lv08", "fair"} {
		var m model
		for i := range models {
			if models[i].name == name {
				m = models[i].model
			}
		}
		m.acks = simGridACKs
		balance := balanceFixed
		if name == "fair" {
			balance = balanceSpray
		}
		b.Run(name+" "+balance, func(b *testing.B) {
			for b.Loop() {
				s := newSelector(net, routes, balance, 1, 0, false)
				solver := newFluid(s.links)
				var ended []uint32
				var there, back path
				for i, active := 0, 0; i < len(flows) || active > 0; {
					if i == len(flows) || solver.next() <= flows[i].start {
						ended = solver.step(ended[:0])
						for _, f := range ended {
							solver.release(f)
							active--
						}
						continue
					}
					f, r := &flows[i], &route{}
					s.find(&there, f.from, f.to, 0, nil)
					s.find(&back, f.to, f.from, 0, nil)
					m.fill(r, solver.links, &there, &back)
					d := m.flow(f.bytes, r)
					solver.add(f.start, float64(f.bytes), &d)
					active++
					i++
				}
				b.ReportMetric(solver.now/1e9, "simulated-ms")
			}
		})
	}
}
