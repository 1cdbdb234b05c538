package nsys

import (
	"testing"
)

// BenchmarkRead reads an export of two processes with 20,000 AllReduces each.
func BenchmarkRead(b *testing.B) {
	path := twoProcesses(func(p *testProcess, rank int) {
		p.init(0xabc, 0x1, rank, 2)
		for i := range int64(20000) {
			p.allReduce(0xabc, 0x10, 4096, int64(rank), 7, 100*i, 100*i+90)
		}
	}).write(b, b.TempDir())
	b.ReportAllocs()
	ops := int64(0)
	for b.Loop() {
		ops += mustRead(b, path).Ops()
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}
