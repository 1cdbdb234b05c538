package rescale_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/rescale"
	"github.com/tracedag/tracedag/formats"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

var generate = rescale.Generate

func mustRescale(t testing.TB, tr *dag.Trace, o rescale.Options) (*dag.Trace, *rescale.Report) {
	t.Helper()
	out, report, err := rescale.Rescale(context.Background(), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(out); len(problems) > 0 {
		t.Fatalf("invalid trace: %v", problems[0])
	}
	return out, report
}

// communication is everything that ranks exchange: messages, and the collectives of each rank with their members.
func communication(tr *dag.Trace) any {
	var ranks [][]string
	for _, r := range tr.Ranks {
		var list []string
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				c := &tr.Comms[r.Comm.At(i)]
				list = append(list, fmt.Sprint(r.Subkind.At(i), r.Bytes.At(i), r.RecvBytes.At(i), r.Peer.At(i), c.Members()))
			}
		}
		ranks = append(ranks, list)
	}
	return []any{dag.Matrix(tr), ranks}
}

func checkEqual(t *testing.T, what string, got, want *dag.Trace) {
	t.Helper()
	a, b := dag.Matrix(got), dag.Matrix(want)
	if !slices.Equal(a, b) {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("%s: messages %+v, expected %+v (%d pairs, expected %d)", what, a[i], b[i], len(a), len(b))
			}
		}
		t.Fatalf("%s: messages between %d pairs, expected %d", what, len(a), len(b))
	}
	if !reflect.DeepEqual(communication(got), communication(want)) {
		t.Fatalf("%s: other collectives than expected", what)
	}
}

func makespan(t *testing.T, tr *dag.Trace) uint64 {
	t.Helper()
	lowered, err := collective.Lower(context.Background(), tr, collective.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	replay, err := backends.Named("loggops").New().Compile(dag.FromTrace(lowered), nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := replay.Run(sim.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Makespan.Ticks
}

// programs are runs of generators. RANKS is the number of ranks, GRID their grid.
var programs = []struct {
	text   string
	grids  map[int]string
	order  bool // a second trace must tell the order of the dimensions
	near   bool // no rank has the neighbors of all directions, so their order is not known
	strong bool
	first  bool // the first number of GRID is that of the dimension that varies fastest
}{
	{text: "pattern name=ring ranks=RANKS"},
	{text: "pattern name=alltoall ranks=RANKS iterations=3"},
	{text: "pattern name=recdoubling ranks=RANKS"},
	{text: "pattern name=dissemination ranks=RANKS"},
	{text: "pattern name=binomial ranks=RANKS"},
	{text: "pattern name=stencil2d ranks=RANKS", order: true},
	{text: "pattern name=bitcomplement ranks=RANKS"},
	{text: "pattern name=bitreverse ranks=RANKS"},
	{text: "pattern name=shuffle ranks=RANKS"},
	{text: "pattern name=bitrotation ranks=RANKS"},
	{text: "pattern name=tornado ranks=RANKS"},
	{text: "nbody ranks=RANKS steps=3"},
	{text: "stencil periodic=true grid=GRID", grids: planes},
	{text: "stencil diagonal=true allreduces=2 grid=GRID", grids: planes},
	{text: "stencil periodic=true grid=GRID", grids: boxes},
	{text: "stencil diagonal=true grid=GRID", grids: boxes, near: true},
	{text: "sweep3d cells=8x8x20 grid=GRID", grids: planes, first: true},
	{text: "fft size=4096x4096 grid=1xRANKS", strong: true},
	{text: "fft size=256x256x256 grid=GRID", grids: map[int]string{16: "4x4", 32: "8x4", 64: "8x8"}, strong: true},
}

var (
	planes = map[int]string{16: "4x4", 32: "8x4", 64: "8x8"}
	boxes  = map[int]string{16: "4x2x2", 32: "4x4x2", 64: "4x4x4"}
)

func TestGenerators(t *testing.T) {
	for _, p := range programs {
		make := func(ranks int) *dag.Trace {
			return generate(t, strings.NewReplacer("RANKS", strconv.Itoa(ranks), "GRID", p.grids[ranks]).Replace(p.text))
		}
		from := make(16)
		for _, ranks := range []int{16, 32, 64} {
			what := fmt.Sprintf("%s, from 16 to %d ranks", p.text, ranks)
			o := rescale.Options{Ranks: ranks}
			if p.grids[16] == "4x4" && ranks == 32 {
				o.Grid = []int{4, 8} // of equal dimensions, any may be the longer one
				if p.first {
					o.Grid = []int{8, 4}
				}
			}
			if p.strong {
				o.Scaling = rescale.Strong
			}
			if p.order {
				d, err := rescale.Decide(context.Background(), from, []*dag.Trace{make(32)}, o, false)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				o = d.Options
			}
			got, _ := mustRescale(t, from, o)
			want := make(ranks)
			checkEqual(t, what, got, want)
			if a, b := makespan(t, got), makespan(t, want); a != b && !(p.near && max(a, b)-min(a, b) < b/1000) {
				t.Errorf("%s: makespan %d, expected %d", what, a, b)
			}
		}
	}
}

// recorded returns a trace that SimGrid recorded, with durations of calcs.
func recorded(t *testing.T, name string, ranks int) *dag.Trace {
	t.Helper()
	tr, err := formats.Read(filepath.Join("testdata", name+"-"+strconv.Itoa(ranks)+".txt.gz"), formats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tr.Ranks {
		for i := range r.Kind {
			if f := r.Flops.At(i); f > 0 {
				r.Duration.Set(i, dag.AtRate(f, 1e9))
			}
		}
	}
	return tr
}

// checkNear checks that a rescaled trace has the messages and collectives of a recorded one, and nearly its makespan.
func checkNear(t *testing.T, what string, got, want *dag.Trace) {
	t.Helper()
	checkEqual(t, what, got, want)
	a, b := makespan(t, got), makespan(t, want)
	if ratio := float64(a) / float64(b); ratio < 0.97 || ratio > 1.03 {
		t.Errorf("%s: makespan %d, recorded %d", what, a, b)
	}
}

// TestRecorded compares with programs that SimGrid recorded on 16 and 64 ranks: a Jacobi iteration in two dimensions
// whose whole problem keeps its size, a wavefront, and conjugate gradients in three dimensions. Their computation
// varies by 3 %.
func TestRecorded(t *testing.T) {
	for _, p := range []struct {
		name    string
		scaling rescale.Scaling
	}{{"jacobi", rescale.Strong}, {"wave", rescale.Weak}, {"cg", rescale.Weak}} {
		from, want := recorded(t, p.name, 16), recorded(t, p.name, 64)
		got, _ := mustRescale(t, from, rescale.Options{Ranks: 64, Scaling: p.scaling})
		checkNear(t, p.name, got, want)
		d, err := rescale.Decide(context.Background(), from, []*dag.Trace{want}, rescale.Options{Ranks: 32}, false)
		if err != nil {
			t.Fatal(err)
		}
		if d.Options.Scaling != p.scaling || d.Others[0].Bytes != 0 ||
			d.Others[0].Calcs > 0.01 {
			t.Errorf("%s: decided %v scaling with differences of bytes %v and calcs %v", p.name, d.Options.Scaling,
				d.Others[0].Bytes, d.Others[0].Calcs)
		}
	}
}

// TestSecondTrace rescales a ring whose allreduces shrink with the number of ranks. Only a second trace shows it.
func TestSecondTrace(t *testing.T) {
	from, second, want := recorded(t, "ring", 16), recorded(t, "ring", 32), recorded(t, "ring", 64)
	d, err := rescale.Decide(context.Background(), from, []*dag.Trace{second}, rescale.Options{Ranks: 64}, false)
	if err != nil {
		t.Fatal(err)
	}
	got, report := mustRescale(t, from, d.Options)
	checkNear(t, "ring", got, want)
	if report.Second == nil || report.Second.Ranks != 32 || report.Scaling != "strong" {
		t.Errorf("report %+v", report)
	}
}

// TestRandomGrids rescales stencils between random grids.
func TestRandomGrids(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for range rounds {
		dims := 2 + random.IntN(2)
		grid := func(least int) (text string, n []int) {
			for range dims {
				n = append(n, least+random.IntN(4))
			}
			for i, d := range n {
				if text += strconv.Itoa(d); i < dims-1 {
					text += "x"
				}
			}
			slices.Reverse(n) // the last dimension of a stencil varies fastest
			return text, n
		}
		small, old := grid(3)
		large, n := grid(3)
		text := fmt.Sprintf("stencil iterations=2 allreduces=%d periodic=%v diagonal=%v grid=", random.IntN(2),
			random.IntN(2) == 0, random.IntN(2) == 0)
		from, want := generate(t, text+small), generate(t, text+large)
		got, _ := mustRescale(t, from, rescale.Options{Ranks: len(want.Ranks), Grid: n, OldGrid: old})
		checkEqual(t, text+small+" to "+large, got, want)
	}
}

// ops returns a trace of n ranks with the ops that add adds.
func ops(n int, add func(rank int, b *dag.RankBuilder)) *dag.Trace {
	b := dag.NewBuilder(n)
	for rank := range n {
		add(rank, b.Rank(rank))
	}
	return b.Trace()
}

func TestRefuses(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var sends [16][]int32
	for i := range 160 {
		sends[i%16] = append(sends[i%16], int32(random.IntN(16)))
	}
	irregular := ops(16, func(rank int, b *dag.RankBuilder) {
		for _, to := range sends[rank] {
			b.Send(to, 8, 0)
		}
		for from, list := range sends {
			for _, to := range list {
				if int(to) == rank {
					b.Recv(int32(from), 8, 0)
				}
			}
		}
	})
	halves := ops(16, func(rank int, b *dag.RankBuilder) {
		b.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: 1 + int32(rank&1)})
	})
	halves.Comms = append(halves.Comms, dag.NewComm("", []int32{0, 2, 4, 6, 8, 10, 14, 12}),
		dag.NewComm("", []int32{1, 3, 5, 7, 9, 11, 13, 15}))
	unordered := ops(16, func(_ int, b *dag.RankBuilder) { // nothing but collectives, of which no two ranks agree
		for range 200 {
			b.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier + dag.Subkind(random.IntN(15))})
		}
	})
	for _, c := range []struct {
		name string
		tr   *dag.Trace
		o    rescale.Options
		want string
	}{
		{"collectives", unordered, rescale.Options{Ranks: 32}, "in different orders"},
		{"irregular", irregular, rescale.Options{Ranks: 32}, "no rule explains"},
		{"few ranks", generate(t, "pattern name=ring ranks=3"), rescale.Options{Ranks: 8}, "expected 4 or more"},
		{"communicator", halves, rescale.Options{Ranks: 32}, "communicator 1 of ranks 0, 2"},
		{"prime", generate(t, "stencil grid=4x4"), rescale.Options{Ranks: 31}, "no grid of 2 dimensions"},
		{"grid", generate(t, "stencil grid=4x4"), rescale.Options{Ranks: 32, Grid: []int{4, 4}}, "expected a new grid of 32 ranks, found 4x4"},
		{"dimensions", generate(t, "stencil grid=4x4"), rescale.Options{Ranks: 32, Grid: []int{4, 4, 2}},
			"has 3 dimensions"},
		{"recorded grid", generate(t, "stencil grid=4x4"), rescale.Options{Ranks: 32, OldGrid: []int{3, 8}},
			"recorded grid 3x8: expected"},
		{"recorded dimension of 1", generate(t, "stencil grid=4x4"), rescale.Options{Ranks: 32, OldGrid: []int{16, 1}},
			"recorded grid 16x1: expected"},
		{"power of two", generate(t, "pattern name=recdoubling ranks=16"), rescale.Options{Ranks: 24}, "powers of two"},
		{"release", ops(4, func(_ int, b *dag.RankBuilder) { b.Add(dag.Op{Release: 1}) }), rescale.Options{Ranks: 8},
			"release time"},
		{"storage", ops(4, func(_ int, b *dag.RankBuilder) { b.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read}) }),
			rescale.Options{Ranks: 8}, "found io"},
	} {
		_, _, err := rescale.Rescale(context.Background(), c.tr, c.o)
		var refusal *rescale.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected a refusal with %q", c.name, err, c.want)
		}
	}
}

// TestEqualRanks checks that a trace rescaled to its own number of ranks keeps every calc and dependency.
func TestEqualRanks(t *testing.T) {
	for _, name := range []string{"wave", "jacobi", "cg", "ring"} {
		tr := recorded(t, name, 16)
		got, report := mustRescale(t, tr, rescale.Options{Ranks: 16})
		for rank, r := range tr.Ranks {
			if g := got.Ranks[rank]; !slices.Equal(g.Kind, r.Kind) || !slices.Equal(g.Flops, r.Flops) ||
				!slices.Equal(g.Deps.Off, r.Deps.Off) || !slices.Equal(g.StartDeps.Off, r.StartDeps.Off) {
				t.Errorf("%s: rank %d: other ops than recorded", name, rank)
			}
		}
		if len(report.Assumptions) > 0 {
			t.Errorf("%s: report %+v", name, report)
		}
	}
}

// TestSeed checks that the choice of calcs depends on the seed alone.
func TestSeed(t *testing.T) {
	tr := recorded(t, "cg", 16)
	flops := func(seed int64) (all []int64) {
		got, _ := mustRescale(t, tr, rescale.Options{Ranks: 64, Seed: seed})
		for _, r := range got.Ranks {
			all = append(all, r.Flops...)
		}
		return all
	}
	if !slices.Equal(flops(1), flops(1)) {
		t.Error("the same seed gives different calcs")
	}
	if slices.Equal(flops(1), flops(2)) {
		t.Error("different seeds give the same calcs")
	}
}

// TestIterations checks that iterations with both neighbors on a ring stay iterations, whatever their number.
func TestIterations(t *testing.T) {
	for iterations := 13; iterations <= 33; iterations++ {
		text := fmt.Sprintf("stencil periodic=true iterations=%d grid=", iterations)
		got, _ := mustRescale(t, generate(t, text+"16"), rescale.Options{Ranks: 24})
		checkEqual(t, text, got, generate(t, text+"24"))
	}
}

// FuzzRescale checks that a trace of any ops is refused, or rescaled to a valid trace, that at its own number of ranks
// it keeps its messages, and that the rescaled trace can decide as a second one. Traces are short, so that there are
// many of them.
func FuzzRescale(f *testing.F) {
	f.Add([]byte{4, 8, 1, 1, 9, 2, 255, 9, 3, 0, 0})
	f.Add([]byte{8, 16, 3, 0, 1, 4, 0, 1, 1, 4, 7, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 80
		if len(data) < 2 || len(data) > most {
			return
		}
		n, to := 4+int(data[0]%13), 2+int(data[1]%24)
		calls := data[2:]
		same := len(calls) > 0 && calls[0]&1 == 0
		tr := ops(n, func(rank int, b *dag.RankBuilder) {
			for i := 0; i+2 < len(calls); i += 3 {
				peer := int32((int(calls[i+1]) + rank) % n)
				if !same && i%2 == 0 {
					peer = int32(int(calls[i+1]) % n)
				}
				if calls[i]&8 != 0 && int(calls[i+1])%n == rank {
					continue
				}
				op := dag.Op{Kind: dag.Kind(calls[i] % 4), Peer: peer, Bytes: int64(calls[i+2]), Tag: int64(calls[i] >> 6)}
				if op.Kind == dag.Coll {
					op.Subkind = dag.Barrier + dag.Subkind(calls[i+2]%15)
					op.Peer = int32(int(calls[i+1]) % n)
				}
				if op.Kind == dag.Calc {
					op.Duration = dag.Time(calls[i+2])
				}
				if k := b.Add(op); k > 0 && calls[i]&16 != 0 {
					b.Requires(k, k-1)
				}
			}
		})
		valid := len(dag.Validate(tr)) == 0
		out, _, err := rescale.Rescale(context.Background(), tr, rescale.Options{Ranks: to})
		if err == nil && len(dag.Validate(out)) > 0 {
			t.Fatalf("invalid: %v", dag.Validate(out)[0])
		}
		if err == nil && to != n {
			d, err := rescale.Decide(context.Background(), tr, []*dag.Trace{out}, rescale.Options{Ranks: 2 * to}, false)
			if err == nil {
				third, _, err := rescale.Rescale(context.Background(), tr, d.Options)
				if err == nil && len(dag.Validate(third)) > 0 {
					t.Fatalf("invalid with a second trace: %v", dag.Validate(third)[0])
				}
			}
		}
		out, _, err = rescale.Rescale(context.Background(), tr, rescale.Options{Ranks: n})
		if err == nil && valid && !slices.Equal(dag.Matrix(out), dag.Matrix(tr)) {
			t.Fatal("other messages on the same number of ranks")
		}
	})
}
