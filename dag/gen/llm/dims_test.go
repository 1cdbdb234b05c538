package llm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim/analytical"
)

// onNetwork assigns the dimensions of a network, in the order that they imply unless the run has another.
func onNetwork(t *testing.T, p Params, dims string, sizes ...int) Params {
	t.Helper()
	if err := p.Dims.UnmarshalText([]byte(dims)); err != nil {
		t.Fatal(err)
	}
	if p.NetworkDims = sizes; p.Order == DefaultOrder && !p.Dims.Auto {
		p.Order = p.Dims.Order()
	}
	return p
}

// TestDims compares the trace with dimensions with the one of communicators: the same ops, with the dimensions whose
// coordinates the members of the communicator differ in.
func TestDims(t *testing.T) {
	for _, c := range []struct {
		tp, dp, pp, ep int
		dims           string
		split          bool
		sizes, cut     []int // cut: as the collectives address them
	}{
		{4, 8, 1, 1, "auto", false, []int{4, 2, 4}, nil},
		{4, 8, 1, 1, "tp=0,dp=1+2", false, []int{4, 2, 4}, nil},
		{4, 8, 1, 1, "dp=0+1,tp=2", false, []int{2, 4, 4}, nil},
		{8, 4, 1, 1, "tp=0+1,dp=2", false, []int{4, 2, 4}, nil},
		{1, 8, 1, 1, "auto", false, []int{2, 4}, nil},
		{2, 8, 1, 2, "auto", false, []int{2, 2, 4}, nil},
		{2, 8, 1, 4, "tp=0,dp=1+2,ep=1", false, []int{2, 4, 2}, nil},
		{2, 2, 4, 1, "tp=0,dp=1,pp=2", false, []int{2, 2, 4}, nil},
		{2, 2, 4, 1, "pp=0,tp=1,dp=2", false, []int{4, 2, 2}, nil},
		{4, 8, 1, 1, "auto", true, []int{32}, []int{4, 8}},
		{4, 8, 1, 1, "auto", true, []int{8, 4}, []int{4, 2, 4}},
		{4, 8, 1, 4, "auto", true, []int{2, 16}, nil},
	} {
		what := fmt.Sprintf("%+v", c)
		p := small(c.tp, c.dp, c.pp)
		p.Tied = c.pp > 1
		if c.ep > 1 {
			p = sparse(p, c.ep)
		}
		p = onNetwork(t, p, c.dims, c.sizes...)
		p.DimsSplit = c.split
		sizes := c.sizes
		if c.cut != nil {
			sizes = c.cut
		}
		if c.split && c.ep > 1 { // 2, 16 would have to be cut in three
			if _, err := NewSource(p); err == nil || !strings.Contains(err.Error(), "more than two") {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		tr := mustGenerate(t, p)
		plain := p
		plain.NetworkDims, plain.Dims, plain.DimsSplit = nil, Dims{}, false
		want := mustGenerate(t, plain)
		for rank := range tr.Ranks {
			compareDims(t, what, sizes, rank, tr, want)
		}
	}
}

// compareDims compares a rank with that of a trace of communicators.
func compareDims(t *testing.T, what string, sizes []int, rank int, tr, want *dag.Trace) {
	t.Helper()
	a, b := tr.Ranks[rank], want.Ranks[rank]
	if a.Len() != b.Len() || !a.Deps.Equal(&b.Deps) {
		t.Fatalf("%s: rank %d has %d ops, expected %d with equal dependencies", what, rank, a.Len(), b.Len())
	}
	for i := range a.Len() {
		got, op := a.Op(i), b.Op(i)
		if op.Kind == dag.Coll && op.Name != "table gradients" {
			op.Comm, op.Dims = 0, differing(sizes, want.Comms[op.Comm].Members())
		} else if op.Kind == dag.Coll {
			op.Comm = got.Comm
			if tr.Comms[got.Comm].Size() != 2 {
				t.Errorf("%s: the table is on communicator %d", what, got.Comm)
			}
		}
		if got != op {
			t.Fatalf("%s: rank %d, op %d is %+v, expected %+v", what, rank, i, got, op)
		}
	}
}

// differing returns the dimensions in which ranks differ, one bit each.
func differing(sizes []int, ranks []int32) (dims int32) {
	for _, rank := range ranks {
		for d, a, b := 0, int(rank), int(ranks[0]); d < len(sizes); d++ {
			if a%sizes[d] != b%sizes[d] {
				dims |= 1 << d
			}
			a, b = a/sizes[d], b/sizes[d]
		}
	}
	return dims
}

// TestDimsOnNetwork runs steps under several policies, stages of a pipeline too, and compares the bytes of a step of
// GPT-3 with those of the case study of the ASTRA-sim 2.0 paper.
func TestDimsOnNetwork(t *testing.T) {
	for _, c := range []struct {
		tp, dp, pp int
		sizes      []int
	}{{4, 8, 1, []int{4, 2, 4}}, {2, 2, 4, []int{2, 2, 4}}, {4, 4, 2, []int{4, 4, 2}}} {
		for _, zero := range []int{0, 3} {
			p := onNetwork(t, small(c.tp, c.dp, c.pp), "auto", c.sizes...)
			p.ZeRO = zero
			for _, inter := range []analytical.InterDimension{analytical.Ascending, analytical.Themis, analytical.ThemisFlex} {
				runOn(t, mustGenerate(t, p), c.sizes, inter)
			}
		}
	}
	gpt, err := Preset("gpt3-175b")
	if err != nil {
		t.Fatal(err)
	}
	p := Default()
	p.Model, p.TP, p.DP, p.MicroBatch = gpt, 16, 32, 16
	p.Layers, p.Vocab = 2, 0
	tr := mustGenerate(t, onNetwork(t, p, "tp=0,dp=1+2", 16, 8, 4))
	r, tensor, data := tr.Ranks[0], 0, int64(0)
	for i := range r.Len() {
		switch op := r.Op(i); {
		case op.Kind == dag.Coll && op.Dims == 0b001:
			if tensor++; op.Bytes != 805306368 {
				t.Errorf("an allreduce of tensor parallelism has %d bytes, expected 805306368", op.Bytes)
			}
		case op.Kind == dag.Coll && op.Dims == 0b110:
			data += op.Bytes
		}
	}
	// Biases and norms add 0.07 % to the matrices of two layers, 452,984,832 bytes.
	if tensor != 8 || data != 453301248 {
		t.Errorf("%d allreduces of tensor parallelism, expected 8; %d bytes of gradients, expected 453301248", tensor, data)
	}
}

// runOn runs a trace on switches of the given sizes.
func runOn(t *testing.T, tr *dag.Trace, sizes []int, inter analytical.InterDimension) {
	t.Helper()
	program, err := analytical.Compile(dag.FromTrace(tr))
	if err != nil {
		t.Fatal(err)
	}
	o := analytical.Options{FreeMarkers: true, System: analytical.System{LocalBWAware: true, Splits: 4, ActiveChunks: 1,
		Queues: 1, EndpointDelay: 1, InterDimension: inter}}
	for i, n := range sizes {
		o.Network.Dims = append(o.Network.Dims, analytical.Dim{
			Topology: analytical.Switch, NPUs: n, Bandwidth: 200 / float64(i+1), Latency: 1,
		})
		for c := range o.System.Implementations {
			o.System.Implementations[c] = append(o.System.Implementations[c], analytical.Algorithm{Name: analytical.Direct})
		}
	}
	if r, err := program.Run(o); err != nil || !r.Complete {
		t.Fatalf("%v, policy %d: %v, error %v", sizes, inter, r, err)
	}
}

// TestDimsRefused checks the errors of dimensions.
func TestDimsRefused(t *testing.T) {
	for _, c := range []struct {
		dims, want string
		order      Order
		sizes      []int
	}{
		{"auto", "tp is 4, which does not end at a dimension of the network 8x4 from dimension 0 on, expected 1 or 8, 32; " +
			"dims-split cuts a dimension in two", DefaultOrder, []int{8, 4}},
		{"auto", "dp is 8, which does not end at a dimension of the network 16x2 from dimension 0 on, expected 1 or " +
			"16, 32", Order{Pipeline, Data, Tensor}, []int{16, 2}},
		{"auto", "network-dims is 4x4, expected a product of tp x dp x pp, 32", DefaultOrder, []int{4, 4}},
		{"auto", "dims needs network-dims", DefaultOrder, nil},
		{"", "network-dims needs dims", DefaultOrder, []int{4, 8}},
		{"auto", "expected sizes of 2 to", DefaultOrder, []int{4, 8, 1}},
		{"tp=0,dp=1", "dims assigns 2 dimensions to tp, dp and pp, expected each of 0..2 once", DefaultOrder,
			[]int{4, 2, 4}},
		{"tp=0,dp=0+1", "dims assigns 3 dimensions", DefaultOrder, []int{4, 8}},
		{"tp=1,dp=0", "expected ascending ones", Order{Tensor, Pipeline, Data}, []int{8, 4}},
		{"tp=0+2,dp=1", "expected ascending ones", DefaultOrder, []int{2, 8, 2}},
		{"tp=0,dp=1", "dims gives tp the dimensions 0 of 8 ranks, expected 4, its degree", DefaultOrder, []int{8, 4}},
		{"tp=0,dp=1,ep=1", "dims gives ep the dimensions 1, expected the first of those of dp", DefaultOrder, []int{4, 8}},
	} {
		p := small(4, 8, 1)
		p.Order, p.NetworkDims = c.order, c.sizes
		if c.dims != "" {
			if err := p.Dims.UnmarshalText([]byte(c.dims)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := NewSource(p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %s", c.dims, err, c.want)
		}
	}
	for _, text := range []string{"", "tp", "tp=", "tp=a", "tp=31", "tp=0,tp=1", "xp=1", "auto,tp=1", "tp=0+", "tp=-1"} {
		if err := new(Dims).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestDimsOrder checks that flags of dimensions imply an order of ranks, unless one is given.
func TestDimsOrder(t *testing.T) {
	texts := param.Texts{
		"tp": {"4"}, "dp": {"8"}, "layers": {"1"}, "network-dims": {"2x4x4"}, "dims": {"tp=2,dp=0+1"},
	}
	apply := func() *Config {
		c := Generator.New().(*Config)
		if err := c.Params().Apply(texts); err != nil {
			t.Fatal(err)
		}
		return c
	}
	s, err := apply().Source(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(dimsOf(tr.Ranks[0]), 0b100) {
		t.Errorf("dimensions %b", dimsOf(tr.Ranks[0]))
	}
	texts["order"] = []string{"tp,dp,pp"}
	if _, err := apply().Source(nil); err == nil {
		t.Error("no error for an order that disagrees")
	}
}

func dimsOf(r *dag.Rank) (list []int32) {
	for i := range r.Len() {
		list = append(list, r.Op(i).Dims)
	}
	return list
}
