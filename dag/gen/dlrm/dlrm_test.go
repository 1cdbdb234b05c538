package dlrm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/analytical"
	"github.com/tracedag/tracedag/sim/ideal"
)

func mustGenerate(t *testing.T, p Params) *dag.Trace {
	t.Helper()
	s, err := NewSource(p)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(tr); len(problems) > 0 {
		t.Fatal(problems)
	}
	return tr
}

func preset(t *testing.T, name string) Params {
	t.Helper()
	p, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// collectives returns the kinds and sizes of the collectives of a rank, in order.
func collectives(r *dag.Rank) (list []string) {
	for i := range r.Len() {
		if op := r.Op(i); op.Kind == dag.Coll {
			list = append(list, fmt.Sprintf("%v %d", op.Subkind, op.Bytes))
		}
	}
	return list
}

// TestPresets compares collectives with the published inputs.
func TestPresets(t *testing.T) {
	paper := preset(t, "paper")
	if got := paper.MLPParameters(); got != 57411584 || len(paper.Bottom) != 8 || len(paper.Top) != 12 {
		t.Errorf("paper: %d parameters, expected 57411584", got)
	}
	for _, ranks := range []int{1024, 512, 64} {
		paper.Ranks = ranks
		tr := mustGenerate(t, paper)
		want := []string{"alltoall 4194304", "alltoall 4194304", "allreduce 114823168"}
		if got := collectives(tr.Ranks[ranks-1]); !slices.Equal(got, want) {
			t.Errorf("paper on %d ranks: %v, expected %v", ranks, got, want)
		}
	}
	small := mustGenerate(t, preset(t, "dlrm-small"))
	want := []string{"alltoall 98304", "allreduce 1024", "allreduce 524288", "allreduce 524288", "allreduce 1064960",
		"alltoall 98304", "allreduce 16384", "allreduce 524288", "allreduce 524288", "allreduce 13312"}
	if got := collectives(small.Ranks[0]); !slices.Equal(got, want) {
		t.Errorf("dlrm-small: %v, expected %v", got, want)
	}
	atlahs := mustGenerate(t, preset(t, "atlahs"))
	if got := collectives(atlahs.Ranks[0])[0]; got != "alltoall 1048576" || len(atlahs.Ranks) != 4 {
		t.Errorf("atlahs: %s on %d ranks", got, len(atlahs.Ranks))
	}
	if _, err := Preset("large"); err == nil {
		t.Error("there is a preset large")
	}
}

// TestOps looks at every op of a small run.
func TestOps(t *testing.T) {
	p := Params{Ranks: 2, MiniBatch: 6, Tables: 4, Rows: 10, Dim: 5, Pooling: 2, Bottom: []int64{3, 5}, Top: []int64{7, 1},
		Steps: 2, DtypeBytes: 2}
	tr := mustGenerate(t, p)
	inputs := int64(5 + 4*5/2)
	want := []struct {
		name         string
		flops, bytes int64
		deps         []int
	}{
		{"lookup", 120, 2 * (120 + 60), nil},
		{"embeddings", 0, 120, []int{0}},
		{"bottom 0 forward", 2 * 3 * 15, 2 * (9 + 15 + 15), []int{0}},
		{"interaction forward", 2 * 3 * 25 * 5, 2 * (75 + 3*inputs), []int{1, 2}},
		{"top 0 forward", 2 * 3 * inputs * 7, 2 * (3*inputs + inputs*7 + 21), []int{3}},
		{"top 1 forward", 2 * 3 * 7, 2 * (21 + 7 + 3), []int{4}},
		{"top 1 gradients", 4 * 3 * 7, 4 * (21 + 7 + 3), []int{5}},
		{"top 1 gradients", 0, 14, []int{6, 1}},
		{"top 0 gradients", 4 * 3 * inputs * 7, 4 * (3*inputs + inputs*7 + 21), []int{6}},
		{"top 0 gradients", 0, 2 * inputs * 7, []int{8, 7}},
		{"interaction gradients", 4 * 3 * 25 * 5, 4 * (75 + 3*inputs), []int{8}},
		{"embedding gradients", 0, 120, []int{10, 9}},
		{"bottom 0 gradients", 4 * 3 * 15, 4 * (9 + 15 + 15), []int{10}},
		{"bottom 0 gradients", 0, 30, []int{12, 11}},
		{"update of tables", 120, 2 * (60 + 240), []int{11, 12}},
		{"lookup", 120, 2 * (120 + 60), []int{13, 14}},
	}
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		if r.Len() != 2*(len(want)-1) {
			t.Fatalf("rank %d has %d ops, expected %d", rank, r.Len(), 2*(len(want)-1))
		}
		for i, w := range want {
			op := r.Op(i)
			var deps []int
			for _, off := range r.Deps.Of(i) {
				deps = append(deps, i-int(off))
			}
			slices.Sort(deps)
			slices.Sort(w.deps)
			if op.Name != w.name || op.Flops != w.flops || op.Bytes != w.bytes || !slices.Equal(deps, w.deps) {
				t.Errorf("rank %d, op %d is %+v after %v, expected %+v", rank, i, op, deps, w)
			}
		}
	}
	p.PeakFlops, p.MemoryBandwidth = 1e9, 1e9
	if d := mustGenerate(t, p).Ranks[0].Duration.At(0); d != 360*dag.Nanosecond {
		t.Errorf("lookup takes %v, expected 360ns", d)
	}
	p.Ranks = 1
	timeline, err := ideal.Run(mustGenerate(t, p))
	if err != nil || !timeline.Result.Complete {
		t.Errorf("one rank: not complete, error %v", err)
	}
}

// system is a network of table I of the ASTRA-sim 2.0 paper, with the bandwidth of an NPU in each dimension.
type system struct {
	network string
	inter   analytical.InterDimension
	intra   analytical.IntraDimension
}

// makespan returns the time of a trace on a system in nanoseconds, with 64 chunks.
func makespan(t *testing.T, tr *dag.Trace, s system) float64 {
	t.Helper()
	n, err := analytical.ParseNetwork(s.network)
	if err != nil {
		t.Fatal(err)
	}
	program, err := analytical.Compile(dag.FromTrace(tr))
	if err != nil {
		t.Fatal(err)
	}
	o := analytical.Options{Network: n, FreeMarkers: true, System: analytical.System{
		LocalBWAware: true, Splits: 64, ActiveChunks: 1, Queues: 1, EndpointDelay: 1, LocalMemBW: 500000,
		InterDimension: s.inter, IntraDimension: s.intra,
	}}
	for range n.Dims {
		o.System.Implementations[analytical.AllReduce] = append(o.System.Implementations[analytical.AllReduce],
			analytical.Algorithm{Name: analytical.HalvingDoubling})
		o.System.Implementations[analytical.AllToAll] = append(o.System.Implementations[analytical.AllToAll],
			analytical.Algorithm{Name: analytical.Direct})
	}
	r, err := program.Run(o)
	if err != nil || !r.Complete {
		t.Fatalf("%s: not complete, error %v", s.network, err)
	}
	t.Logf("%+v: %v", s, r.Makespan)
	return float64(r.Makespan.Ticks)
}

// TestSystems runs the preset of the ASTRA-sim 2.0 paper on its systems. The allreduce reaches the wafer of equal
// bandwidth on conventional systems, but only with Themis. The alltoalls, which Themis does not change, make the step
// 8 % (three dimensions) and 22 % (four) longer than on the wafer.
func TestSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	p := preset(t, "paper")
	p.Ranks = 512
	step := mustGenerate(t, p)
	b := dag.NewBuilder(p.Ranks)
	for rank := range p.Ranks {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 114823168, Stream: networkStream})
	}
	alone := b.Trace()
	const conv3, conv4 = "SW(16)_SW(8)_SW(4)@200,100,50GB/s,1ns", "SW(2)_SW(8)_SW(8)_SW(4)@250,200,100,50GB/s,1ns"
	w350, w600 := system{network: "SW(512)@350GB/s,1ns"}, system{network: "SW(512)@600GB/s,1ns"}
	for _, c := range []struct {
		conventional, wafer system
		alone               float64 // nanoseconds of the allreduce on the conventional system
		step                float64 // largest ratio of steps; 0: not run
	}{
		{system{conv3, analytical.Themis, analytical.FIFOOrder}, w350, 621104, 1.08},
		{system{conv4, analytical.Themis, analytical.FIFOOrder}, w600, 398877, 0},
	} {
		if got, wafer := makespan(t, alone, c.conventional), makespan(t, alone, c.wafer); got != c.alone || got > 1.12*wafer {
			t.Errorf("allreduce on %+v takes %v ns, expected %v, at most 1.12 times %v", c.conventional, got, c.alone, wafer)
		}
		if c.step == 0 {
			continue
		}
		if got, want := makespan(t, step, c.conventional), makespan(t, step, c.wafer); got > c.step*want {
			t.Errorf("step on %+v takes %v ns, expected at most %v times %v", c.conventional, got, c.step, want)
		}
	}
	base, themis := system{network: conv3}, system{conv3, analytical.Themis, analytical.FIFOOrder}
	if base, themis := makespan(t, step, base), makespan(t, step, themis); base < 1.4*themis {
		t.Errorf("a step on three dimensions takes %v ns, with Themis %v", base, themis)
	}
}

// TestRefused checks errors.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		"ranks is 0":                           func(p *Params) { p.Ranks = 0 },
		"tables is 8, expected a multiple":     func(p *Params) { p.Ranks = 16 },
		"mini-batch is 2049, expected a multi": func(p *Params) { p.MiniBatch = 2049 },
		"mini-batch and local-batch are 0":     func(p *Params) { p.MiniBatch = 0 },
		"bottom ends with 64, expected dim":    func(p *Params) { p.Dim = 32 },
		"top has 0 widths":                     func(p *Params) { p.Top = nil },
		"bottom has 1 widths":                  func(p *Params) { p.Bottom = []int64{64} },
		"top has a width of 0":                 func(p *Params) { p.Top = []int64{0} },
		"no interaction 2":                     func(p *Params) { p.Interaction = 2 },
		"no bucket 2":                          func(p *Params) { p.Bucket = 2 },
		"expected both or neither":             func(p *Params) { p.PeakFlops = 1 },
		"ops per rank":                         func(p *Params) { p.Steps = maxOps },
		"a calc has up to":                     func(p *Params) { p.MiniBatch, p.Tables, p.Dim = 1<<40, 1<<20, 64 },
	} {
		p := preset(t, "atlahs")
		change(&p)
		if _, err := NewSource(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
	for _, text := range []string{"", "1-", "a", "0-1", "1--2", "99999999999"} {
		if err := new(widths).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
