package analytical

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func run(t *testing.T, trace *dag.Trace, o Options) *Result {
	t.Helper()
	p, err := Compile(dag.FromTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// oneDim returns options for a network of one dimension with an algorithm.
func oneDim(d Dim, a AlgorithmName, chunks int, delay int64, bandwidth float64) Options {
	o := Options{Network: Network{Dims: []Dim{d}},
		System: System{LocalBWAware: true, Splits: chunks, ActiveChunks: 1, Queues: 1, EndpointDelay: delay, LocalMemBW: bandwidth}}
	for c := range o.System.Implementations {
		o.System.Implementations[c] = []Algorithm{{Name: a}}
	}
	return o
}

// TestClosedForms compares all-reduces in one dimension with closed forms.
func TestClosedForms(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n := 2 << random.IntN(4)
		d := Dim{NPUs: n, Bandwidth: 1 + 400*random.Float64(), Latency: float64(random.IntN(1000))}
		k := 1 + random.IntN(5)
		e := int64(1 + random.IntN(50))
		memory := 1 + 1000*random.Float64()
		chunk := uint64(n) << random.IntN(20)
		rate := d.Bandwidth * (1 << 30) / 1e9
		x := func(hops int, size uint64) uint64 { return uint64(float64(hops)*d.Latency + float64(size)/rate) }
		red := func(size uint64) uint64 { return 3 * uint64(float64(size)/(memory*1e9)*1e9) }
		m, delay, N := chunk/uint64(n), uint64(e), uint64(n)
		q := uint64(bits.Len(uint(n)) - 1)

		var halving uint64
		d.Topology = Switch
		for j := uint64(1); j <= q; j++ {
			halving += 2 * x(2, chunk>>j)
			if j >= 2 {
				halving += red(chunk >> j)
			}
		}
		for _, c := range []struct {
			topology  Topology
			algorithm AlgorithmName
			want      uint64
		}{
			{Ring, RingAlgorithm, (2*N-1)*delay + 2*(N-1)*x(1, m) + (N-1)*red(m)},
			{FullyConnected, Direct, 3*delay + 2*x(1, m) + red(m)},
			{Switch, Direct, 3*delay + 2*x(2, m) + red(m)},
			{Switch, HalvingDoubling, (2*q+1)*delay + halving},
		} {
			d.Topology = c.topology
			o := oneDim(d, c.algorithm, k, e, memory)
			r := run(t, allreduce(n, int64(chunk)*int64(k)), o)
			if want := uint64(k) * c.want; r.Makespan.Ticks != want || !r.Complete {
				t.Errorf("%v of %d NPUs, %v, %d chunks of %d bytes: %d ns, expected %d", c.topology, n, c.algorithm, k, chunk,
					r.Makespan.Ticks, want)
			}
		}
	}
}

// TestDocumentedExamples has the examples that are computed step by step in docs/reference/backends/analytical.md.
func TestDocumentedExamples(t *testing.T) {
	ring := oneDim(Dim{Ring, 8, 50, 500}, RingAlgorithm, 4, 10, 50)
	if r := run(t, allreduce(8, 1<<20), ring); r.Makespan.Ticks != 117780 {
		t.Errorf("ring of 8: %v, expected 117780 ns", r.Makespan)
	}
	ring.Network.Aware = true
	if r := run(t, allreduce(8, 1<<20), ring); r.Makespan.Ticks != 117780 {
		t.Errorf("ring of 8, congestion-aware: %v, expected 117780 ns", r.Makespan)
	}
	if r := run(t, allreduce(8, 1<<20), oneDim(Dim{Switch, 8, 50, 500}, HalvingDoubling, 1, 10, 50)); r.Makespan.Ticks != 63835 {
		t.Errorf("switch of 8: %v, expected 63835 ns", r.Makespan)
	}
}

// TestTable3 has all rows of table III of W. Won et al., "ASTRA-sim2.0", ISPASS 2023. The paper prints 3 to 6 ns more.
func TestTable3(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, row := range []struct {
		sizes []int
		ns    uint64
	}{
		{[]int{2, 8, 8, 4}, 4392848}, {[]int{2, 8, 8, 8}, 4392848}, {[]int{2, 8, 8, 16}, 4392848},
		{[]int{2, 8, 8, 32}, 4392848}, {[]int{4, 8, 8, 4}, 2212594}, {[]int{8, 8, 8, 4}, 1753472},
		{[]int{16, 8, 8, 4}, 1879168},
	} {
		if testing.Short() && row.sizes[0]*row.sizes[3] > 16 {
			continue
		}
		o := table3(row.sizes...)
		if r := run(t, allreduce(o.Network.NPUs(), 1<<30), o); r.Makespan.Ticks != row.ns || !r.Complete {
			t.Errorf("%v: %v, expected %d ns", row.sizes, r.Makespan, row.ns)
		}
	}
}

// TestThemis has what section V-A of the paper says of an all-reduce of 1 GB on 512 NPUs, with the networks of its table I:
// one dimension gains nothing from Themis; several dimensions do not use their bandwidth without it, and with it reach
// that of a single one with as much bandwidth an NPU. (The bandwidths are those of an NPU, so that cliques are run as rings:
// Themis takes the bandwidth of a link for that of the dimension.)
func TestThemis(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	systems := map[string][]Dim{
		"W-1D-350": {{Switch, 512, 350, 0}},
		"W-1D-500": {{Switch, 512, 500, 0}},
		"W-1D-600": {{Switch, 512, 600, 0}},
		"W-2D":     {{Switch, 32, 250, 0}, {Switch, 16, 250, 0}},
		"Conv-3D":  {{Ring, 16, 200, 0}, {FullyConnected, 8, 100, 0}, {Switch, 4, 50, 0}},
		"Conv-4D":  {{Ring, 2, 250, 0}, {FullyConnected, 8, 200, 0}, {Ring, 8, 100, 0}, {Switch, 4, 50, 0}},
	}
	makespan := func(name string, inter InterDimension, intra IntraDimension) float64 {
		o := Options{Network: Network{Dims: systems[name]}}
		o.System = System{LocalBWAware: true, Splits: 64, ActiveChunks: 1, Queues: 1, EndpointDelay: 1, LocalMemBW: 1e6,
			InterDimension: inter, IntraDimension: intra}
		for _, d := range systems[name] {
			a := map[Topology]AlgorithmName{Switch: HalvingDoubling}[d.Topology]
			o.System.Implementations[AllReduce] = append(o.System.Implementations[AllReduce], Algorithm{Name: a})
		}
		r := run(t, allreduce(512, 1<<30), o)
		if !r.Complete {
			t.Fatalf("%s: %v", name, r.Stuck)
		}
		t.Logf("%s, policies %d and %d: %v", name, inter, intra, r.Makespan)
		return float64(r.Makespan.Ticks)
	}
	within := func(a, b, part float64) bool { return a < b*(1+part) && b < a*(1+part) }

	w350, w500, w600 := makespan("W-1D-350", Ascending, FIFOOrder), makespan("W-1D-500", Ascending, FIFOOrder),
		makespan("W-1D-600", Ascending, FIFOOrder)
	if themis := makespan("W-1D-500", Themis, FIFOOrder); !within(themis, w500, 0.01) {
		t.Errorf("W-1D-500: Themis changes %v to %v", w500, themis)
	}
	if conv4 := makespan("Conv-4D", Ascending, FIFOOrder); conv4 >= w350 {
		t.Errorf("Conv-4D takes %v, no less than the %v of W-1D-350", conv4, w350)
	}
	if conv4 := makespan("Conv-4D", Themis, SmallestFirst); !within(conv4, w600, 0.05) {
		t.Errorf("Conv-4D with Themis takes %v, not the %v of W-1D-600", conv4, w600)
	}
	if conv3 := makespan("Conv-3D", Themis, SmallestFirst); !within(conv3, w350, 0.03) {
		t.Errorf("Conv-3D with Themis takes %v, not the %v of W-1D-350", conv3, w350)
	}
	if w2 := makespan("W-2D", Themis, FIFOOrder); !within(w2, w500, 0.03) {
		t.Errorf("W-2D with Themis takes %v, not the %v of W-1D-500", w2, w500)
	}
	for _, name := range []string{"W-2D", "Conv-3D"} {
		if base, themis := makespan(name, Ascending, FIFOOrder), makespan(name, Themis, FIFOOrder); themis > 0.7*base {
			t.Errorf("%s: Themis takes %v, without it is %v", name, themis, base)
		}
	}
}
