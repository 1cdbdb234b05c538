package analytical

import (
	"context"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestBreakdown checks the five parts of an NPU with ops of all kinds, with and without a place of its own for memory.
func TestBreakdown(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r := b.Rank(rank)
		mem := func(bytes int64, attrs string, deps ...int) int {
			return r.Add(dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: bytes, Attrs: attrs}, deps...)
		}
		// The first access takes 150 ns, 50 beyond the calc, the gather twice 30 ns, and the collective 20 ns.
		calc := r.Add(dag.Op{Kind: dag.Calc, Duration: 100 * dag.Nanosecond})
		mem(150, `{"gather":1}`)
		gather := mem(30, `{"gather":2}`, calc)
		coll := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 2 << 30, Stream: 2}, calc)
		local := mem(7, `{"gather":1,"local":true}`, gather, coll)
		r.Add(dag.Op{Kind: dag.Calc, Duration: 5 * dag.Nanosecond, Release: 500 * dag.Nanosecond}, local)
	}
	trace := b.Trace()
	o := Options{
		Network: Network{Dims: []Dim{{Topology: FullyConnected, NPUs: 2, Bandwidth: 1e8}}},
		System:  DefaultSystem(&Network{Dims: []Dim{{Topology: FullyConnected, NPUs: 2, Bandwidth: 1e8}}}),
		Memory: *readMemory(t, 2, `{"memory-type": "MULTILEVEL_SWITCH_POOL", "levels": 1, "radix": [2], "bw": [1, 1e9],
			"chunk-size": 1, "in-switch": 1}`),
	}
	o.System.EndpointDelay = 0
	for _, overlap := range []bool{false, true} {
		p, err := compile(context.Background(), dag.FromTrace(trace), overlap)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		d := &r.NPUs.Breakdown
		for npu, cycles := range r.NPUs.Cycles {
			remote, comm, gathers := uint64(50), uint64(80), uint64(60)
			if overlap { // the collective overlaps with the first access
				remote, comm = 30, 80
			}
			if d.Compute[npu] != 105 || d.ExposedRemote[npu] != remote || d.ExposedComm[npu] != comm ||
				d.ExposedGathers[npu] != gathers || d.ExposedLocal[npu] != 7 || cycles != 505 ||
				d.Compute[npu]+d.ExposedComm[npu]+d.ExposedRemote[npu]+d.ExposedLocal[npu]+d.Idle[npu] != cycles {
				t.Errorf("overlap %v: NPU %d, %d ns: %+v", overlap, npu, cycles, d)
			}
		}
		if (d.Mean != Mean{d.Compute[0], d.ExposedComm[0], d.ExposedRemote[0], d.ExposedLocal[0], d.Idle[0]}) {
			t.Errorf("mean %+v", d.Mean)
		}
	}
	o.Memory = Memory{Kind: Local, Bandwidth: 1}
	p, err := Compile(dag.FromTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(o); err == nil || !strings.Contains(err.Error(), "gathers the parts of 2 ranks") {
		t.Errorf("a gather in local memory: error %v", err)
	}
}

// TestMemoryBoundCalcs checks the time of calcs limited by memory: two on different streams overlap.
func TestMemoryBoundCalcs(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r := b.Rank(rank)
		r.Add(dag.Op{Kind: dag.Calc, Flops: 1, Bytes: 1000})
		first := r.Add(dag.Op{Kind: dag.Calc, Flops: 1, Bytes: 3000, Stream: 1})
		r.Add(dag.Op{Kind: dag.Calc, Flops: 1 << 20, Bytes: 1}, first)
	}
	o := oneDim(Dim{Topology: FullyConnected, NPUs: 2, Bandwidth: 1}, Direct, 1, 0, 1)
	o.System.Roofline, o.System.PeakPerf = true, 1
	r := run(t, b.Trace(), o)
	if d := r.NPUs.Breakdown; d.ComputeMemoryBound[0] != 3000 || d.Compute[0] != 3000+1048 {
		t.Errorf("%+v", d)
	}
}
