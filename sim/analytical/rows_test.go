package analytical

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// perNPU returns options for a network of switches with the bandwidth of an NPU in each dimension, as in the case
// studies of the ASTRA-sim 2.0 paper.
func perNPU(sizes []int, bandwidths []float64, chunks int, inter InterDimension, intra IntraDimension) Options {
	o := table3(sizes...)
	o.System.Splits, o.System.InterDimension, o.System.IntraDimension = chunks, inter, intra
	for d := range o.Network.Dims {
		o.Network.Dims[d].Bandwidth = bandwidths[d]
	}
	return o
}

// sized is a collective of some bytes on network dimensions.
type sized struct {
	bytes int64
	dims  int32
}

// sequences returns a trace in which each rank runs allreduces in sequence.
func sequences(ranks int, of func(rank int) []sized) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		last := -1
		for _, c := range of(rank) {
			op := dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: c.bytes, Dims: c.dims, Stream: 2}
			if last < 0 {
				last = b.Rank(rank).Add(op)
			} else {
				last = b.Rank(rank).Add(op, last)
			}
		}
	}
	return b.Trace()
}

// same gives all ranks the same allreduces.
func same(list ...sized) func(int) []sized { return func(int) []sized { return list } }

// TestInvolvedDimensions compares allreduces of the case study of GPT-3 and Transformer-1T on the systems of table I.
// The bytes are those of tensor parallelism (805,306,368) and of the gradients of two layers. The times are within
// 0.1 % (ascending) of the time that the busiest dimension needs, 2 S (n - 1) / n / bandwidth.
func TestInvolvedDimensions(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	conv3, conv4 := []int{16, 8, 4}, []int{2, 8, 8, 4}
	bw3, bw4 := []float64{200, 100, 50}, []float64{250, 200, 100, 50}
	for _, c := range []struct {
		name   string
		sizes  []int
		bw     []float64
		chunks int
		inter  InterDimension
		intra  IntraDimension
		op     sized
		ns     uint64
	}{
		{"tensor, Conv-3D", conv3, bw3, 64, Ascending, FIFOOrder, sized{805306368, 0b1}, 7034560},
		{"tensor, Conv-3D, Themis", conv3, bw3, 64, Themis, FIFOOrder, sized{805306368, 0b1}, 7034624},
		{"data, Conv-3D", conv3, bw3, 64, Ascending, FIFOOrder, sized{226492416, 0b110}, 3692608},
		{"data, Conv-3D, Themis", conv3, bw3, 64, Themis, FIFOOrder, sized{226492416, 0b110}, 2740822},
		{"tensor, Conv-4D, 64", conv4, bw4, 64, Themis, FIFOOrder, sized{805306368, 0b111}, 3222628},
		{"tensor, Conv-4D, smallest", conv4, bw4, 64, Themis, SmallestFirst, sized{805306368, 0b111}, 2807782},
		{"tensor, Conv-4D, 256", conv4, bw4, 256, Themis, FIFOOrder, sized{805306368, 0b111}, 2737241},
	} {
		o := perNPU(c.sizes, c.bw, c.chunks, c.inter, c.intra)
		r := run(t, sequences(o.Network.NPUs(), same(c.op)), o)
		if r.Makespan.Ticks != c.ns || !r.Complete {
			t.Errorf("%s: %v, expected %d ns", c.name, r.Makespan, c.ns)
		}
	}
}

// TestHalves runs allreduces on halves of a dimension: on both, they are those of the dimension; on one, those of a
// switch of its size; and two on one NPU do not overlap.
func TestHalves(t *testing.T) {
	halves := perNPU([]int{32}, []float64{350}, 8, Ascending, FIFOOrder)
	halves.Network.Inner = []int{8}
	whole, inner, outer := halves, perNPU([]int{8}, []float64{350}, 8, Ascending, FIFOOrder),
		perNPU([]int{4}, []float64{350}, 8, Ascending, FIFOOrder)
	whole.Network.Inner = nil
	const bytes = 1 << 20
	time := func(o Options, list ...sized) uint64 {
		t.Helper()
		r := run(t, sequences(o.Network.NPUs(), same(list...)), o)
		if !r.Complete {
			t.Fatalf("%v: %v", o.Network, r.Stuck)
		}
		return r.Makespan.Ticks
	}
	for _, aware := range []bool{false, true} {
		for _, o := range []*Options{&halves, &whole, &inner, &outer} {
			o.Network.Aware = aware
		}
		for _, policy := range []InterDimension{Ascending, Themis, ThemisFlex, RoundRobin} {
			for _, o := range []*Options{&halves, &whole, &inner, &outer} {
				o.System.InterDimension = policy
			}
			all := time(whole, sized{bytes, 0})
			if a, b := time(halves, sized{bytes, 0}), time(halves, sized{bytes, 3}); a != all || b != all {
				t.Errorf("policy %d: on both halves: %d and %d ns, expected %d", policy, a, b, all)
			}
			i, o := time(inner, sized{bytes, 0}), time(outer, sized{bytes, 0})
			if got := time(halves, sized{bytes, 1}); got != i {
				t.Errorf("policy %d: on the inner half: %d ns, expected %d", policy, got, i)
			}
			if got := time(halves, sized{bytes, 2}); got != o {
				t.Errorf("policy %d: on the outer half: %d ns, expected %d", policy, got, o)
			}
			if got := time(halves, sized{bytes, 1}, sized{bytes, 2}); got != i+o {
				t.Errorf("policy %d: on both in sequence: %d ns, expected %d", policy, got, i+o)
			}
		}
	}
}

// TestUnlikeRows runs different numbers of different allreduces in the two rows of dimensions 0 and 1, as the stages of
// a pipeline do. Each row takes as long as alone. (RoundRobin, as in ASTRA-sim, begins a chunk one dimension further also
// if the collective does not involve that dimension.)
func TestUnlikeRows(t *testing.T) {
	lists := [2][]sized{{{1 << 20, 0b011}, {1 << 22, 0b001}, {1 << 21, 0b011}}, {{1 << 23, 0b010}, {3 << 20, 0b011}}}
	for _, policy := range []InterDimension{Ascending, Themis, ThemisFlex} {
		o := perNPU([]int{4, 8, 2}, []float64{200, 100, 50}, 16, policy, FIFOOrder)
		alone := perNPU([]int{4, 8}, []float64{200, 100}, 16, policy, FIFOOrder)
		both := run(t, sequences(64, func(rank int) []sized { return lists[rank/32] }), o)
		if !both.Complete {
			t.Fatalf("policy %d: %v", policy, both.Stuck)
		}
		for stage, list := range lists {
			want := run(t, sequences(32, same(list...)), alone).Makespan.Ticks
			for rank := stage * 32; rank < stage*32+32; rank++ {
				if got := both.Finish[rank].Ticks; got != want {
					t.Fatalf("policy %d: rank %d ends at %d ns, expected %d", policy, rank, got, want)
				}
			}
		}
	}
}

// TestHalvesNotation parses and formats halves of dimensions.
func TestHalvesNotation(t *testing.T) {
	n, err := ParseNetwork("SW(16*32)_Ring(4)@350,50GB/s,1ns")
	if err != nil || n.NPUs() != 2048 || n.inner(0) != 16 || n.inner(1) != 0 || n.Dims[0].NPUs != 512 {
		t.Fatalf("%+v, %v", n, err)
	}
	if got, want := n.String(), "Switch(16*32)_Ring(4)@350,50GiB/s,1ns"; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	for _, text := range []string{
		"Ring(4*4)@1GB/s,1ns", "SW(1*4)@1GB/s,1ns", "SW(4*1)@1GB/s,1ns", "SW(4*)@1GB/s,1ns", "SW(*4)@1GB/s,1ns",
		"SW(2*2*2)@1GB/s,1ns", "SW(2147483647*4294967296)@1GB/s,1ns", "SW(65536*65536)@1GB/s,1ns",
	} {
		if n, err := ParseNetwork(text); err == nil {
			t.Errorf("%s: %v, expected an error", text, n)
		}
	}
}

// TestSystems compares the allreduce of 1 GB of the paper on the networks of its table I with the times of ASTRA-sim.
func TestSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, c := range []struct {
		name string
		ms   float64
	}{
		{"w-1d-350", 5.709}, {"w-1d-500", 3.998}, {"w-1d-600", 3.332}, {"w-2d", 7.755}, {"conv-3d", 9.379},
		{"conv-4d", 4.440},
	} {
		b := newBackend()
		b.networkFile = c.name
		if err := b.Check(nil); err != nil {
			t.Fatal(err)
		}
		sizes, bandwidths := []int{}, []float64{}
		for _, d := range b.network.Dims {
			sizes, bandwidths = append(sizes, d.NPUs), append(bandwidths, d.Bandwidth)
		}
		o := perNPU(sizes, bandwidths, 64, Ascending, FIFOOrder)
		o.Network = b.network
		r := run(t, allreduce(512, 1<<30), o)
		if ms := float64(r.Makespan.Ticks) / 1e6; ms < c.ms-0.0005 || ms > c.ms+0.0005 {
			t.Errorf("%s: %v, expected %v ms", c.name, r.Makespan, c.ms)
		}
	}
	b := newBackend()
	b.networkFile = "conv-5d"
	if err := b.Check(nil); err == nil {
		t.Error("conv-5d is a network")
	}
}
