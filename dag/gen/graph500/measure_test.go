package graph500

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// measured returns a measurement of a graph, or of all its roots if m is nil.
func measured(t testing.TB, scale int, m *Measurement) *Measured {
	t.Helper()
	p := Default()
	p.Scale = scale
	if m == nil {
		m = &Measurement{Degrees: Span{1, math.MaxInt32}, Level: 2}
	}
	r, err := Measure(p, *m, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSearches compares searches of 64 roots at a time with a queue of vertices, from all roots.
func TestSearches(t *testing.T) {
	for _, dedup := range []bool{false, true} {
		p := Default()
		p.Scale, p.EdgeFactor = 9, 2
		g, err := p.newGraph(3)
		if err != nil {
			t.Fatal(err)
		}
		if dedup {
			g.removeDuplicates()
		}
		roots := slices.Concat(Roots{}.choose(g, 1)...)
		explored, err := p.search(g, roots, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, root := range roots {
			if want := simpleSearch(g, root); !slices.Equal(explored[i], want) {
				t.Fatalf("dedup %v, root %d explores %v, expected %v", dedup, root, explored[i], want)
			}
		}
		edges := map[[2]int]int{}
		for v := range g.vertices() {
			for _, w := range g.neighbors(v) {
				edges[[2]int{v, int(w)}]++
			}
		}
		for e, n := range edges {
			if e[0] == e[1] || edges[[2]int{e[1], e[0]}] != n || dedup && n > 1 {
				t.Fatalf("dedup %v: edge %v occurs %d times, %d in reverse", dedup, e, n, edges[[2]int{e[1], e[0]}])
			}
		}
	}
}

func simpleSearch(g *graph, root uint32) (levels []int64) {
	distance := map[uint32]int{root: 0}
	for queue := []uint32{root}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for len(levels) <= distance[v] {
			levels = append(levels, 0)
		}
		levels[distance[v]] += g.degree(int(v))
		for _, w := range g.neighbors(int(v)) {
			if _, found := distance[w]; !found {
				distance[w] = distance[v] + 1
				queue = append(queue, w)
			}
		}
	}
	return levels
}

// TestMeasuredAlike: results do not depend on the number of processors.
func TestMeasuredAlike(t *testing.T) {
	m := DefaultMeasurement()
	m.Roots.Number = 20
	want := measured(t, 12, &m)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 3} {
		runtime.GOMAXPROCS(n)
		if got := measured(t, 12, &m); !reflect.DeepEqual(got, want) {
			t.Errorf("another result with GOMAXPROCS %d", n)
		}
	}
}

// TestMeasuredDegrees compares a graph with the expected degrees of its vertices.
func TestMeasuredDegrees(t *testing.T) {
	r := measured(t, 15, &Measurement{Roots: Roots{Number: 1}, Degrees: Span{1, 1}})
	p := Default()
	p.Scale = 15
	k := p.kronecker(1)
	chances, weights := k.chances(false)
	for degree, n := range r.DegreeHistogram[:25] {
		want := 0.0
		for i, chance := range chances {
			want += weights[i] * math.Exp(logBinomialAt(float64(k.ends), chance, float64(degree))) * float64(r.Vertices)
		}
		if n[0] != int64(degree) || math.Abs(float64(n[1])-want) > 5*math.Sqrt(want)+0.01*want {
			t.Errorf("%d vertices of degree %d, expected %.0f of %d", n[1], n[0], want, degree)
		}
	}
	if want := float64(k.ends) * chances[0]; math.Abs(float64(r.MaxDegree)-want) > 0.02*want {
		t.Errorf("the largest degree is %d, expected %.0f", r.MaxDegree, want)
	}
	if want := float64(k.ends) / 2 * math.Pow(edgeA+edgeD,
		15); math.Abs(float64(r.SelfLoops)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d self-loops, expected %.0f", r.SelfLoops, want)
	}
	if r.Ends != p.totalEdges()-2*r.SelfLoops {
		t.Errorf("%d ends", r.Ends)
	}
}

// TestMeasuredLevels compares with searches of another graph by a separate program: means within 5 standard errors and
// 3 %.
func TestMeasuredLevels(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder")
	}
	if testing.Short() {
		t.Skip("computes long")
	}
	data, err := os.ReadFile(filepath.Join(folder, "graph500", "bfs_measured.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Graphs []struct {
			S, Fe   int
			Buckets []struct {
				Dr, Roots float64
				Mean, Sd  []float64
			}
		}
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	const scale = 16
	r := measured(t, scale, &Measurement{Roots: Roots{Number: 20_000}, Degrees: Span{1, math.MaxInt32}})
	compared := 0
	for _, g := range vectors.Graphs {
		for _, b := range g.Buckets {
			i := slices.IndexFunc(r.Levels, func(d MeasuredDegree) bool { return float64(d.From) == b.Dr })
			if g.S != scale || g.Fe != 16 || i < 0 || b.Roots < 50 || r.Levels[i].Roots < 50 {
				continue
			}
			d := r.Levels[i]
			for level := 1; level <= 4; level++ {
				compared++
				want := b.Mean[level]
				tolerance := 5*b.Sd[level]*math.Sqrt(1/b.Roots+1/float64(d.Roots)) + 0.03*want
				if math.Abs(d.Mean[level]-want) > tolerance {
					t.Errorf("degree %v, level %d: mean %.5g, expected %.5g +- %.2g", b.Dr, level, d.Mean[level], want,
						tolerance)
				}
				if sd := d.Deviation[level]; level < 4 && (sd < 0.7*b.Sd[level] || sd > 1.4*b.Sd[level]) {
					t.Errorf("degree %v, level %d: deviation %.5g, expected about %.5g", b.Dr, level, sd, b.Sd[level])
				}
			}
		}
	}
	if compared < 24 {
		t.Errorf("only %d means were compared", compared)
	}
}

// TestMeasuredTotals: a search explores each end of its component once, and bins have all roots of their degrees.
func TestMeasuredTotals(t *testing.T) {
	r := measured(t, 12, nil)
	if r.Roots != r.Vertices-r.Isolated {
		t.Errorf("%d roots of %d vertices, %d isolated", r.Roots, r.Vertices, r.Isolated)
	}
	searches := int64(0)
	for _, n := range r.Bins.Counts {
		searches += n
	}
	if searches != r.Roots || r.Bins.Width != 131072/64 {
		t.Errorf("bins have %d searches of %d and the width %v", searches, r.Roots, r.Bins.Width)
	}
	for _, d := range r.Levels {
		sum := 0.0
		for _, mean := range d.Mean {
			sum += mean
		}
		if d.From > 2 && math.Abs(sum-float64(r.Ends)) > 0.01*float64(r.Ends) {
			t.Errorf("degree %d: searches explore %.0f ends of %d", d.From, sum, r.Ends)
		}
		if d.From != d.To || d.Mean[0] != float64(d.From) || d.Deviation[0] != 0 || d.ModelMean[0] != d.Mean[0] {
			t.Errorf("degree %d: %+v", d.From, d)
		}
	}
	w := Default()
	w.Scale = 12
	for _, d := range r.Levels[:3] {
		if want := w.equations(d.From).mean(1); d.ModelMean[1] != want {
			t.Errorf("degree %d: the model gives %v, expected %v", d.From, d.ModelMean[1], want)
		}
	}
}

func TestRangeOf(t *testing.T) {
	for degree, want := range map[int64][3]int64{
		1: {1, 1, 1}, 8: {8, 8, 8}, 9: {9, 9, 15}, 15: {9, 9, 15}, 16: {10, 16, 31}, 1 << 20: {26, 1 << 20, 1<<21 - 1},
	} {
		index, from, to := rangeOf(degree)
		if got := [3]int64{int64(index), from, to}; got != want {
			t.Errorf("degree %d: %v, expected %v", degree, got, want)
		}
	}
}

func TestRoots(t *testing.T) {
	for _, text := range []string{"all", "17", "per-degree:3"} {
		var r Roots
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, _ := r.MarshalText(); string(got) != text {
			t.Errorf("%s is %s", text, got)
		}
	}
	for _, text := range []string{"", "0", "-1", "per-degree", "per-degree:0", "some"} {
		if err := new(Roots).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "expected all") {
			t.Errorf("%q: error %v", text, err)
		}
	}
	m := DefaultMeasurement()
	m.Roots.Number = 10
	for _, d := range measured(t, 12, &m).Levels {
		if d.Roots > 10 || d.MeanDegree < float64(d.From) || d.MeanDegree > float64(d.To) {
			t.Errorf("degrees %d to %d have %d roots with the mean %v", d.From, d.To, d.Roots, d.MeanDegree)
		}
	}
}

func TestMeasureRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params, m *Measurement){
		"scale is 25, expected 1..24 for a graph": func(p *Params, _ *Measurement) { p.Scale = 25 },
		"give 34359738368 ends of edges, expected at": func(p *Params, _ *Measurement) {
			p.Scale, p.EdgeFactor = 24,
				1024
		},
		"level is 16, expected 0..15":         func(_ *Params, m *Measurement) { m.Level = 16 },
		"degrees are 3-2, expected the lower": func(_ *Params, m *Measurement) { m.Degrees = Span{3, 2} },
		"scale is 0, expected 1..44":          func(p *Params, _ *Measurement) { p.Scale = 0 },
	} {
		p, m := small(), DefaultMeasurement()
		change(&p, &m)
		if _, err := Measure(p, m, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
	p := small()
	cause := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	p.Context = ctx
	if _, err := Measure(p, DefaultMeasurement(), 1); !errors.Is(err, cause) {
		t.Errorf("error %v, expected %v", err, cause)
	}
}

// BenchmarkSearches makes 64 searches of a graph of scale 16.
func BenchmarkSearches(b *testing.B) {
	p := Default()
	p.Scale = 16
	g, err := p.newGraph(1)
	if err != nil {
		b.Fatal(err)
	}
	roots := slices.Concat(Roots{Number: width}.choose(g, 1)...)
	state := newBFS(g)
	for b.Loop() {
		state.run(roots)
	}
	b.ReportMetric(float64(b.N)*width*float64(len(g.ends))/b.Elapsed().Seconds(), "ends/s")
}
