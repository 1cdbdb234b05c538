package schedgen

import "testing"

func BenchmarkGenerate(b *testing.B) {
	for _, bench := range []struct {
		pattern string
		ranks   int
		bytes   int64
	}{
		{"dissemination", 16384, 8},
		{"linear_alltoall", 1024, 8},
		{"linear_alltoallv", 1024, 8},
		{"allreduce_ring", 1024, 8},
		{"pipelinedringdep", 256, 4096},
		{"nwaydissemination", 16384, 8},
		{"resnet", 4096, 8},
	} {
		b.Run(bench.pattern, func(b *testing.B) {
			p := Default()
			p.Ranks, p.Bytes, p.NWay = bench.ranks, bench.bytes, 3
			ops := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				tr, err := readAll(NewSource(bench.pattern, p, 1))
				if err != nil {
					b.Fatal(err)
				}
				ops += tr.Ops()
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
