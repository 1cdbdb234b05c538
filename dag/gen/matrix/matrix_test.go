package matrix

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// preset returns the parameters of a preset with that many nodes.
func preset(t testing.TB, name string, nodes, racks int) Params {
	t.Helper()
	p := Default()
	if !p.Use(name) {
		t.Fatalf("no preset %s", name)
	}
	p.Nodes, p.Racks, p.Flows, p.Load, p.AutoCorrect = nodes, racks, 5*nodes*nodes, 0.1, true
	return p
}

// TestPresets compares the properties of the flows with the parameters.
func TestPresets(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, name := range Presets() {
		p := preset(t, name, 32, 4)
		if strings.HasPrefix(name, "skewed") {
			p.Racks = 0
		}
		s, r, err := NewSource(p, 7)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		trace, err := dag.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		bytes, last := int64(0), dag.Time(0)
		for i := range trace.Ranks {
			for k := range trace.Ranks[i].Len() {
				if op := trace.Ranks[i].Op(k); op.Kind == dag.Send {
					bytes += op.Bytes
					last = max(last, op.Release)
				}
			}
		}
		// Capacity for sending is half of 12500 bytes/us at each of 32 nodes.
		load := float64(bytes) / (float64(last) / 1e6) / (12500 * 32 / 2)
		if bytes != r.SumSizes || !near(load, 0.1, 1e-8) || !near(r.Load, 0.1, 1e-12) {
			t.Errorf("%s: %d bytes, load %v, want %d, 0.1", name, bytes, load, r.SumSizes)
		}
		if *r.SizeDistance > 0.1 || *r.IntervalDistance > 0.1 || r.PackingDistance > 0.5 {
			t.Errorf("%s: distances %v, %v, %v", name, *r.SizeDistance, *r.IntervalDistance, r.PackingDistance)
		}
		if p.Racks > 0 && p.InterRack > 0 && !near(*r.InterRackShare, p.InterRack, 1e-9) {
			t.Errorf("%s: a part of %v leaves its rack, want %v", name, *r.InterRackShare, p.InterRack)
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems[0])
		}
	}
}

// TestSkewedNodes: a fifth of the nodes with 55 % of the probability have about a third of what is sent, by the
// published recipe.
func TestSkewedNodes(t *testing.T) {
	for _, n := range []int{16, 32, 64, 128} {
		p := preset(t, "university", n, 4)
		m, err := p.Recipe.Matrix(n, random(int64(n), "matrix"))
		if err != nil {
			t.Fatal(err)
		}
		checkMatrix(t, m)
		m.shareRacks(4, 0.7)
		checkMatrix(t, m)
		var rows []float64
		for i := range n {
			rows = append(rows, sum(m.Cells[i*n:][:n]))
		}
		slices.Sort(rows)
		if top := sum(rows[n-int(math.Ceil(0.2*float64(n))):]); math.Abs(top-0.3285) > 0.012 {
			t.Errorf("%d nodes: those with most send %v of all, want 0.327 to 0.330", n, top)
		}
	}
}

func checkMatrix(t *testing.T, m *Matrix) {
	t.Helper()
	for i, v := range m.Cells {
		if source, destination := i/m.N, i%m.N; v < 0 || v != m.Cells[destination*m.N+source] || source == destination && v != 0 {
			t.Fatalf("%d to %d has %v", source, destination, v)
		}
	}
	if !near(sum(m.Cells), 1, 1e-12) {
		t.Fatalf("the cells add up to %v", sum(m.Cells))
	}
}

// TestReplacement checks the share of skewed nodes that are drawn with replacement: of k draws of n nodes,
// n (1 - (1-1/n)^k) are distinct.
func TestReplacement(t *testing.T) {
	l, err := ParseRecipe("nodes:fraction=0.2,share=0.55,replacement=true")
	if err != nil {
		t.Fatal(err)
	}
	const n, draws, seeds = 100, 20, 200
	nodes := 0
	for seed := range int64(seeds) {
		chosen, drawn, err := l.choose(n, random(seed, "matrix"))
		if err != nil || drawn != draws {
			t.Fatalf("%d draws, error %v", drawn, err)
		}
		seen := map[[2]int]bool{}
		for _, c := range chosen {
			seen[c] = true
		}
		if len(seen) != len(chosen) {
			t.Fatalf("repeated nodes: %v", chosen)
		}
		nodes += len(chosen)
	}
	want := n * (1 - math.Pow(1-1.0/n, draws))
	if got := float64(nodes) / seeds; math.Abs(got-want) > 0.3 {
		t.Errorf("%v skewed nodes on average, want %v", got, want)
	}
}

func TestRecipes(t *testing.T) {
	cell := func(m *Matrix, i, j int) float64 { return m.Cells[i*m.N+j] }
	for text, check := range map[string]func(m *Matrix) bool{
		"uniform": func(m *Matrix) bool { return near(cell(m, 3, 5), 1.0/90, 1e-12) },
		"multinomial": func(m *Matrix) bool {
			balls := cell(m, 1, 2) * 1000 // of 500 on 45 pairs, each of which has two cells
			return math.Abs(balls-math.Round(balls)) < 1e-9 && slices.Max(m.Cells) < 0.03
		},
		// Each pair of a skewed node gets p/18 of it.
		"nodes:list=3/7,p=0.2/0.1": func(m *Matrix) bool {
			return near(cell(m, 3, 5), 0.2/18, 1e-9) && near(cell(m, 7, 0), 0.1/18, 1e-9) && near(cell(m, 3, 7), 0.3/18, 1e-9)
		},
		"nodes:list=3,share=1": func(m *Matrix) bool { return near(cell(m, 3, 5), 1.0/18, 1e-9) && cell(m, 1, 2) == 0 },
		"pairs:list=0-1/9-4,p=0.4/0.2": func(m *Matrix) bool {
			return near(cell(m, 0, 1), 0.2, 1e-9) && near(cell(m, 4, 9), 0.1, 1e-9) && cell(m, 2, 3) < 0.01
		},
		"pairs:count=45,share=0.5":      func(m *Matrix) bool { return near(cell(m, 8, 9), 1.0/90, 1e-9) },
		"nodes:fraction=0.11,share=0.9": func(m *Matrix) bool { return count(slices.Clone(m.Cells)).Probabilities[0] >= 0.1 },
		"nodes":                         func(*Matrix) bool { return true },
		"pairs":                         func(*Matrix) bool { return true },
	} {
		l, err := ParseRecipe(text)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range int64(20) {
			m, err := l.Matrix(10, random(seed, "matrix"))
			if err != nil {
				t.Fatal(err)
			}
			checkMatrix(t, m)
			if !check(m) {
				t.Errorf("%s: %v", text, m.Cells)
			}
		}
	}
	for text, want := range map[string]string{
		"":                              "expected one of uniform, multinomial, nodes, pairs",
		"uniform:count=3":               `uniform has no parameter "count"`,
		"nodes:count=0":                 "1 or more",
		"nodes:replacement=2":           "expected true or false",
		"nodes:list=1,replacement=true": "replacement needs drawn nodes",
		"pairs:replacement=true":        `pairs has no parameter "replacement"`,
		"nodes:fraction=2":              "above 0 and at most 1",
		"nodes:list=1/1":                "distinct nodes",
		"pairs:list=1-2/2-1":            "distinct pairs",
		"nodes:list=1-2":                "nodes such as 3/7",
		"pairs:list=4-4":                "pairs such as 0-1/4-9",
		"nodes:list=1,p=0.1/0.2":        "1 values of p",
		"nodes:list=1/2,p=0.6/0.6":      "at most 1",
		"nodes:list=1/2,p=0.6/-1":       "above 0",
		"nodes:count=1,fraction=1":      "one of list, count and fraction",
		"nodes:list=1,p=1,share=1":      "one of p and share",
		"nodes:x":                       "NAME=VALUE",
		"nodes:share=x":                 "a number",
	} {
		if _, err := ParseRecipe(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"nodes:list=10": "expected 0..9", "nodes:count=11": "expected 1..10", "pairs:list=2-10": "expected 0..9",
	} {
		l, err := ParseRecipe(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Matrix(10, random(1, "matrix")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestRacks moves bytes between racks where some pairs have not enough, against the recipe step by step.
func TestRacks(t *testing.T) {
	random := random(1, "racks")
	below := 0
	for range 300 {
		n := 4 + random.IntN(10)
		racks := 2 + random.IntN(n-3)
		l := &Recipe{Kind: []string{"uniform", "multinomial", "nodes", "pairs"}[random.IntN(4)]}
		m, err := l.Matrix(n, random)
		if err != nil {
			t.Fatal(err)
		}
		m.eachPair(func(p *float64, i, j int) { // so that no two are as large
			*p *= 1 + 1e-3*random.Float64()
			m.Cells[j*n+i] = *p
		})
		m.normalise()
		inter := 0.001 + 0.998*random.Float64()
		want := slices.Clone(m.Cells)
		slowRacks(want, n, racks, inter)
		got := m.shareRacks(racks, inter)
		checkMatrix(t, m)
		below += got
		share, negative := 0.0, 0
		for i, v := range m.Cells {
			if Rack(i/n, n, racks) != Rack(i%n, n, racks) {
				share += v
			}
			if want[i] < 0 {
				negative++
			} else if got == 0 && math.Abs(v-want[i]) > 1e-12 {
				t.Fatalf("cell %d is %v, want %v", i, v, want[i])
			}
		}
		if math.Abs(share-inter) > 1e-9 {
			t.Errorf("a part of %v leaves its rack, want %v", share, inter)
		}
		if got != negative {
			t.Errorf("%d cells below 0, want %d", got, negative)
		}
	}
	if below == 0 {
		t.Error("no cell was below 0")
	}
}

// slowRacks is the published recipe, which looks at all pairs for the largest one.
func slowRacks(cells []float64, n, racks int, inter float64) {
	var pairs [2][]int // in one rack, and in two
	total := [2]float64{}
	for i := range n {
		for j := i + 1; j < n; j++ {
			class := 0
			if Rack(i, n, racks) != Rack(j, n, racks) {
				class = 1
			}
			pairs[class] = append(pairs[class], i*n+j)
			total[class] += cells[i*n+j]
		}
	}
	more := inter/2 - total[1]
	all := 0.0
	for class, step := range []float64{-more / float64(len(pairs[0])), more / float64(len(pairs[1]))} {
		for _, pair := range pairs[class] {
			if cells[pair]+step < 0 {
				largest := slices.MaxFunc(pairs[class], func(a, b int) int {
					if cells[a] > cells[b] {
						return 1
					}
					return -1
				})
				cells[largest] = max(0, cells[largest]+step)
				continue
			}
			cells[pair] += step
		}
	}
	for _, class := range pairs {
		for _, pair := range class {
			all += cells[pair]
		}
	}
	for _, class := range pairs {
		for _, pair := range class {
			cells[pair] += (0.5 - all) / float64(n*(n-1)/2)
			cells[pair%n*n+pair/n] = cells[pair]
		}
	}
}

// TestCorrect compares the correction with the published sweeps, cell by cell.
func TestCorrect(t *testing.T) {
	random := random(1, "correct")
	for range 300 {
		n := 3 + random.IntN(10)
		l := &Recipe{Kind: []string{"multinomial", "nodes", "pairs"}[random.IntN(3)]}
		m, err := l.Matrix(n, random)
		if err != nil {
			t.Fatal(err)
		}
		const capacity = 1000.0
		rate := capacity * float64(n) / 2 * (0.3 + 0.65*random.Float64())
		want := slices.Clone(m.Cells)
		slowCorrect(want, n, rate, capacity)
		over, load := m.overloaded(rate, capacity)
		if changed := !slices.Equal(want, m.Cells); changed != (over >= 0) || changed && load <= capacity {
			t.Fatalf("node %d has %v of %v, but the matrix changes: %v", over, load, capacity, changed)
		}
		m.correct(rate, capacity)
		for i, v := range m.Cells {
			if math.Abs(v-want[i]) > 1e-9 {
				t.Fatalf("cell %d of %d nodes is %v, want %v", i, n, v, want[i])
			}
		}
		if over, _ := m.overloaded(rate, capacity); over >= 0 {
			t.Errorf("node %d still has too much", over)
		}
	}
}

func slowCorrect(cells []float64, n int, rate, capacity float64) {
	full := make([]bool, n)
	for again := true; again; {
		again = false
		for i := range n {
			load := math.Round(sum(cells[i*n:][:n])*rate*1e6) / 1e6
			if load <= capacity {
				continue
			}
			again, full[i] = true, true
			free := 0
			for j := range n {
				if !full[j] {
					free++
				}
				if j != i {
					cells[i*n+j] = capacity / rate / float64(n-1)
					cells[j*n+i] = cells[i*n+j]
				}
			}
			more := (load - capacity) / float64(free) / rate / float64(n-1)
			for a := range n {
				for b := range n {
					if a != b && !full[a] && !full[b] {
						cells[a*n+b] += more
						cells[b*n+a] += more
					}
				}
			}
		}
	}
}

func TestLaws(t *testing.T) {
	inf := math.Inf(1)
	gamma := func(x float64) float64 { return math.Gamma(x) }
	for text, want := range map[string]struct{ mean, deviation, least, most float64 }{
		"exponential:beta=40":                                       {40, 40, 0, inf},
		"lognormal:mu=2,sigma=0.5":                                  {math.Exp(2.125), math.Exp(2.125) * math.Sqrt(math.Exp(0.25)-1), 0, inf},
		"weibull:alpha=2,lambda=10":                                 {10 * gamma(1.5), 10 * math.Sqrt(gamma(2)-gamma(1.5)*gamma(1.5)), 0, inf},
		"pareto:alpha=5,mode=8":                                     {10, 10 / math.Sqrt(15), 8, inf},
		"normal:loc=50,scale=4":                                     {50, 4, -inf, inf},
		"skewnorm:a=3,loc=5,scale=2":                                {5 + 2*3/math.Sqrt(10)*math.Sqrt(2/math.Pi), 2 * math.Sqrt(1-2*0.9/math.Pi), -inf, inf},
		"uniform:min=3,max=9":                                       {6, 2, 3, 9},
		"uniform:min=1,max=100,round=25":                            {38.5, math.Sqrt(1250 * 15 / 24), 1, 76},
		"normal:loc=0,scale=1,min=0":                                {math.Sqrt(2 / math.Pi), math.Sqrt(1 - 2/math.Pi), 0, inf},
		"multimodal:mode=10/0/1,mode=30/0/1/5000":                   {50.0 / 3, math.Sqrt(800.0/9 + 1), -inf, inf},
		"multimodal:mode=5/0/0.001/100000,background=3,min=1,max=9": {5, math.Sqrt(60.0 / 12 * 4 / 3 * 0.75), 1, 9},
	} {
		l, err := ParseDistribution(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.PMF(random(3, "law"))
		if err != nil {
			t.Fatal(err)
		}
		mean, square := 0.0, 0.0
		for i, v := range p.Values {
			if i > 0 && v <= p.Values[i-1] {
				t.Fatalf("%s: value %v after %v", text, v, p.Values[i-1])
			}
			mean += v * p.Probabilities[i]
			square += v * v * p.Probabilities[i]
		}
		deviation := math.Sqrt(square - mean*mean)
		if math.Abs(mean-want.mean) > 0.015*want.deviation+1e-9 || !near(deviation, want.deviation, 0.02) ||
			!near(sum(p.Probabilities), 1, 1e-9) || p.Values[0] < want.least || p.Values[len(p.Values)-1] > want.most {
			t.Errorf("%s: mean %v, deviation %v, %v..%v, want %+v", text, mean, deviation, p.Values[0],
				p.Values[len(p.Values)-1], want)
		}
	}
	for text, want := range map[string]string{
		"":                                          "expected one of exponential:beta lognormal:mu,sigma",
		"gamma:alpha=1":                             `found "gamma"`,
		"weibull:alpha=1":                           "weibull needs lambda=NUMBER",
		"weibull:alpha=0,lambda=1":                  "alpha is 0, expected above 0",
		"weibull:alpha=1,lambda=nan":                "expected a number",
		"weibull:alpha=1,lambda=1e999":              "expected a number",
		"weibull:beta=1":                            `weibull has no parameter "beta"`,
		"weibull":                                   "weibull needs alpha",
		"uniform:min=1":                             "needs min=NUMBER and max=NUMBER",
		"uniform:min=2,max=1":                       "min at most max",
		"uniform:min=0,max=1e9":                     "at most 4194304",
		"normal:loc=0,scale=1,round=-1":             "round is -1",
		"multimodal":                                "needs mode",
		"multimodal:mode=1/2":                       "mode=LOCATION/SKEW/SCALE/DRAWS",
		"multimodal:mode=1/2/3/0.5":                 "mode=LOCATION/SKEW/SCALE/DRAWS",
		"multimodal:mode=1/2/0":                     "the scale of a mode is 0",
		"multimodal:mode=1/2/3,background=1":        "a background needs min=NUMBER",
		"multimodal:mode=1/2/3,mode=1/1/1/16777216": "at most 16777216",
		"normal:loc=0,scale=1,mode=1/2/3":           `no parameter "mode"`,
	} {
		if _, err := ParseDistribution(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	l := mustParse(ParseDistribution("multimodal:mode=0/0/1/100,min=50,max=51"))
	if _, err := l.PMF(random(1, "law")); err == nil || !strings.Contains(err.Error(), "fewer than one in 1000 drawn values") {
		t.Errorf("error %v", err)
	}
}

func TestRounding(t *testing.T) {
	for _, c := range []struct{ round, least, value, want float64 }{
		{25, 1, 1, 1}, {25, 1, 12.4, 1}, {25, 1, 12.5, 1}, {25, 1, 12.6, 25}, {25, 1, 37.5, 50}, {25, 1, 62.5, 50},
		{1, 0, 0.5, 0}, {1, 0, 1.5, 2}, {0.1, 0, 0.26, 0.3}, {0.001, 0, 0.1264, 0.13}, {0, 0, 1.2345, 1.2345},
		{25, -100, -30, -25},
	} {
		l := Distribution{Min: c.least, Round: c.round}
		if got := l.rounded(c.value); !near(got, c.want, 1e-15) {
			t.Errorf("%v in steps of %v is %v, want %v", c.value, c.round, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	p := &PMF{Values: []float64{1, 2, 3}, Probabilities: []float64{0.5, 0.25, 0.25}}
	if d := p.Distance([]float64{2, 1, 3, 1}); d != 0 {
		t.Errorf("distance %v of the same frequencies", d)
	}
	if d := p.Distance([]float64{7, 7, 8}); !near(d, math.Sqrt(math.Ln2), 1e-12) {
		t.Errorf("distance %v of other values, want sqrt(ln 2)", d)
	}
	// p = (1/2, 1/4, 1/4), q = (1, 0, 0), m = (3/4, 1/8, 1/8).
	want := math.Sqrt((math.Log(2.0/3)/2 + math.Log(2)/2 + math.Log(4.0/3)) / 2)
	if d := p.Distance([]float64{1}); !near(d, want, 1e-12) {
		t.Errorf("distance %v, want %v", d, want)
	}
	// As given, p adds up to 1/2: the mean is (1/4, 1/2), which becomes (1/3, 2/3), between (1, 0) and (0, 1).
	want = math.Sqrt((math.Log(3) + math.Log(1.5)) / 2)
	if d := packingDistance([]float64{0.5, 0}, []int64{0, 9}, 9); !near(d, want, 1e-12) {
		t.Errorf("distance %v, want %v", d, want)
	}
}

// TestGrowth: the numbers of flows that the published runs of this distribution came to, 320 and 1280 flows being asked for.
func TestGrowth(t *testing.T) {
	l := mustParse(ParseDistribution("weibull:alpha=4.7,lambda=4100,round=1"))
	for seed := range int64(6) {
		p, err := l.PMF(random(seed, "law"))
		if err != nil {
			t.Fatal(err)
		}
		for least, want := range map[int][]int{320: {2344}, 1280: {2264, 2490}} {
			values, distance := newSampler(p).sampleUntil(0.5, least, MaxFlows, random(seed, "size"))
			if !slices.Contains(want, len(values)) || distance > 0.5 {
				t.Errorf("%d values with distance %v, want one of %v", len(values), distance, want)
			}
			if d := p.Distance(values); !near(d, distance, 1e-9) {
				t.Errorf("distance %v, want %v", distance, d)
			}
		}
	}
	p := &PMF{Values: []float64{1, 2, 3}, Probabilities: []float64{0.125, 0.125, 0.75}}
	if values, _ := newSampler(p).sampleUntil(1e-9, 3, 11, random(1, "size")); len(values) != 11 {
		t.Errorf("%d values, want the most that there may be", len(values))
	}
}

// TestCounts: sizes and times are as many, whichever is given.
func TestCounts(t *testing.T) {
	p := Default()
	p.Nodes, p.Flows, p.MaxFlows, p.Threshold = 3, 4, 1000, 0.001
	p.IgnorePorts = true
	p.Sizes = Values{PMF: &PMF{[]float64{5, 10}, []float64{0.5, 0.5}}}
	p.Interarrivals = Values{PMF: &PMF{[]float64{1, 2, 3}, []float64{0.25, 0.25, 0.5}}}
	_, r, err := NewSource(p, 1)
	if err != nil || r.Flows <= 4 || r.Flows > 1000 {
		t.Fatalf("%d flows, %v", r.Flows, err)
	}
	p.Interarrivals.Given = []float64{1, 1, 2, 3, 4}
	if _, r, err = NewSource(p, 1); err != nil || r.Flows != 5 || r.RawDuration != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
	p.Sizes.Given = []float64{5, 10, 10, 10}
	_, _, err = NewSource(p, 1)
	if err == nil || err.Error() != "interarrivals is 5 values, expected one for each of the 4 sizes" {
		t.Errorf("error %v", err)
	}
	p.Sizes, p.Interarrivals.Given = Values{Given: []float64{7, 8}}, nil
	if _, r, err = NewSource(p, 1); err != nil || r.Flows != 2 || r.SizeDistance != nil || r.IntervalDistance == nil {
		t.Errorf("%+v, %v", r, err)
	}
	p.Sizes = Values{Given: []float64{7}} // at once
	if _, r, err = NewSource(p, 1); err != nil || r.RawDuration != 1e6 || !near(r.Load, 0.5, 1e-12) {
		t.Errorf("%+v, %v", r, err)
	}
	p.Load, p.Sizes, p.Interarrivals = 0, Values{Given: []float64{10, 20, 30}}, Values{Given: []float64{1, 2, 99}}
	if _, r, err = NewSource(p, 1); err != nil || r.InterarrivalFactor != 1 || r.Duration != 3 || r.LoadRate != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}

// small is a workload of a few flows.
func small() Params {
	p := Default()
	p.Nodes, p.Flows, p.Threshold = 9, 600, 1
	return p
}

func mustSource(t testing.TB, p Params, seed int64) (*openloop.Source, *Report) {
	t.Helper()
	s, r, err := NewSource(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func mustTrace(t testing.TB, s *openloop.Source) *dag.Trace {
	t.Helper()
	trace, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestMinDuration(t *testing.T) {
	p := small()
	p.IgnorePorts = true
	p.Sizes = Values{Given: []float64{1000, 2000, 3000}}
	p.Interarrivals = Values{Given: []float64{2, 4, 1}}
	once, r := mustSource(t, p, 1) // 6000 bytes at 28125 bytes/us take 213 ns
	duration := dag.Time(213333)
	if !near(r.Duration, 6000/(12500*4.5*0.5), 1e-12) {
		t.Fatalf("duration %v", r.Duration)
	}
	p.MinDuration = 3 * duration
	s, r := mustSource(t, p, 1)
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	if r.Copies != 4 || r.Flows != 3 || h.Ops != 24 {
		t.Fatalf("%+v", r)
	}
	type flow struct {
		time      dag.Time
		from, to  int32
		size, tag int64
	}
	flows := func(trace *dag.Trace) []flow {
		var all []flow
		for i := range trace.Ranks {
			for k := range trace.Ranks[i].Len() {
				if op := trace.Ranks[i].Op(k); op.Kind == dag.Send {
					all = append(all, flow{op.Release, int32(i), op.Peer, op.Bytes, op.Tag})
				}
			}
		}
		slices.SortFunc(all, func(a, b flow) int { return int(a.tag - b.tag) })
		return all
	}
	first, all := flows(mustTrace(t, once)), flows(mustTrace(t, s))
	if first[0].time != 0 || first[1].time != 71111 || first[2].time != duration {
		t.Errorf("flows %v", first)
	}
	for k, f := range all {
		want := first[k%3]
		want.time += dag.Time(k/3) * duration
		want.tag = int64(k)
		if f != want {
			t.Errorf("flow %d is %+v, want %+v", k, f, want)
		}
	}
	p.MaxFlows = p.Flows
	p.MinDuration = 1000 * duration
	if _, r := mustSource(t, p, 1); r.Copies != 128 {
		t.Errorf("%d copies of 3 flows, want as many as 600 allow", r.Copies)
	}
}

// TestBatches: the division into batches changes nothing, nor does a second reader.
func TestBatches(t *testing.T) {
	p := small()
	p.MinDuration = dag.Millisecond
	s, r := mustSource(t, p, 1)
	if r.Copies < 2 {
		t.Fatalf("%d copies", r.Copies)
	}
	want := mustTrace(t, s)
	if problems := dag.Validate(want); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	w, err := generate(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = newSource(w, 1); err != nil {
		t.Fatal(err)
	}
	h, err := s.Header()
	if err != nil || len(h.Batches) != p.Nodes { // a batch per rank
		t.Fatalf("%d batches, %v", len(h.Batches), err)
	}
	first, second := s.NewReader(dag.All), s.NewReader(dag.All)
	for i, b := range h.Batches {
		for _, read := range []dag.Reader{first, second} {
			ranks, err := read(b)
			if err != nil || !reflect.DeepEqual(ranks, want.Ranks[i:i+1]) {
				t.Fatalf("rank %d differs, %v", i, err)
			}
		}
	}
	for rank := range want.Ranks {
		last := int64(-1)
		for i := range want.Ranks[rank].Len() {
			op := want.Ranks[rank].Op(i)
			if op.Tag <= last || op.Kind == dag.Recv && op.Release != 0 {
				t.Fatalf("rank %d, op %d is %+v after tag %d", rank, i, op, last)
			}
			last = op.Tag
		}
	}
}

func TestSeeds(t *testing.T) {
	p := preset(t, "social_media_cloud", 12, 3)
	one, _ := mustSource(t, p, 1)
	again, _ := mustSource(t, p, 1)
	other, _ := mustSource(t, p, 2)
	if !reflect.DeepEqual(mustTrace(t, one), mustTrace(t, again)) {
		t.Error("the same seed gives other flows")
	}
	if reflect.DeepEqual(mustTrace(t, one), mustTrace(t, other)) {
		t.Error("another seed gives the same flows")
	}
}

func TestRefused(t *testing.T) {
	nan := math.NaN()
	for want, vary := range map[string]func(*Params){
		"nodes is 1, expected 2..16384":                                                       func(p *Params) { p.Nodes = 1 },
		"nodes is 16385, expected 2..16384":                                                   func(p *Params) { p.Nodes = MaxNodes + 1 },
		"flows is 0, expected 1..1073741824":                                                  func(p *Params) { p.Flows = 0 },
		"max-flows is 5, expected 600..1073741824":                                            func(p *Params) { p.MaxFlows = 5 },
		"min-duration is -1ps, expected 0s..":                                                 func(p *Params) { p.MinDuration = -1 },
		"capacity is NaN, expected above 0 and at most 1e9":                                   func(p *Params) { p.Capacity = nan },
		"capacity is 0, expected above 0":                                                     func(p *Params) { p.Capacity = 0 },
		"load is 0.96, expected 0..0.95":                                                      func(p *Params) { p.Load = 0.96 },
		"load is NaN, expected 0..0.95":                                                       func(p *Params) { p.Load = nan },
		"threshold is 0, expected above 0 and at most 1":                                      func(p *Params) { p.Threshold = 0 },
		"inter-rack is 1.5, expected 0..1":                                                    func(p *Params) { p.InterRack = 1.5 },
		"racks is 1, expected 0 or 2..8, fewer than nodes":                                    func(p *Params) { p.Racks = 1 },
		"racks is 9, expected 0 or 2..8":                                                      func(p *Params) { p.Racks = 9 },
		"sizes is 0.5, expected a whole number of bytes, 1..":                                 func(p *Params) { p.Sizes.Given = []float64{0.5} },
		"sizes is none, expected a whole number":                                              func(p *Params) { p.Sizes = Values{} },
		"size-pmf is 0, expected a whole number":                                              func(p *Params) { p.Sizes.PMF = &PMF{[]float64{0}, []float64{1}} },
		"size-pmf is none":                                                                    func(p *Params) { p.Sizes.PMF = &PMF{} },
		"interarrivals is -1, expected 0..1e+13 us":                                           func(p *Params) { p.Interarrivals.Given = []float64{-1} },
		"interarrivals is NaN, expected":                                                      func(p *Params) { p.Interarrivals.Given = []float64{nan} },
		"size-dist is a distribution that gives -":                                            func(p *Params) { p.Sizes.Distribution = mustParse(ParseDistribution("normal:loc=0,scale=9,round=1")) },
		"e-05, expected a whole number of bytes, 1..1125899906842624: set min, max and round": func(p *Params) { p.Sizes.Distribution = mustParse(ParseDistribution("exponential:beta=9")) },
		"size-dist is weibull, expected a distribution with":                                  func(p *Params) { p.Sizes.Distribution = &Distribution{Family: "weibull"} },
		"matrix is none, expected a recipe":                                                   func(p *Params) { p.Recipe = nil },
		"matrix is nodes, expected a matrix that can be made":                                 func(p *Params) { p.Recipe = &Recipe{Kind: "nodes", Count: 10} },
		"node-matrix is of 2 nodes, expected 9":                                               func(p *Params) { p.Matrix = &Matrix{N: 2, Cells: []float64{0, 0.5, 0.5, 0}} },
		"node-matrix is 2 in total, expected 1":                                               func(p *Params) { p.Nodes, p.Matrix = 2, &Matrix{N: 2, Cells: []float64{0, 1, 1, 0}} },
		"node-matrix is 1 from node 0 to itself, expected 0":                                  func(p *Params) { p.Nodes, p.Matrix = 2, &Matrix{N: 2, Cells: []float64{1, 0, 0, 0}} },
		"sizes is more than 9007199254740992 bytes":                                           func(p *Params) { p.Sizes.Given = slices.Repeat([]float64{MaxBytes}, 9) },
		"load is 0.5, expected a load at which the flows take less": func(p *Params) {
			p.Sizes.Given, p.Capacity = slices.Repeat([]float64{MaxBytes}, 4), 1e-3
		},
		"min-duration is 1us, expected 0": func(p *Params) {
			p.IgnorePorts, p.MinDuration, p.Sizes = true, dag.Microsecond, Values{Given: []float64{1}}
		},
	} {
		p := small()
		vary(&p)
		_, _, err := NewSource(p, 1)
		var param *openloop.ParamError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &param) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p := small()
	p.Load, p.Recipe = 0.9, mustParse(ParseRecipe("nodes:list=3,share=0.9"))
	_, _, err := NewSource(p, 1)
	var overload *OverloadError
	if !errors.As(err, &overload) || overload.Node != 3 || overload.Capacity != p.Capacity {
		t.Errorf("error %v", err)
	}
	if got, want := fmt.Sprint(err), "the node matrix has node 3 send or receive "; !strings.HasPrefix(got, want) {
		t.Errorf("error %q, want %q", got, want)
	}
	p.AutoCorrect = true
	if _, r := mustSource(t, p, 1); !r.MatrixCorrected || r.MaxSourceUse > 1 {
		t.Errorf("%+v", r)
	}
	p.AutoCorrect, p.Recipe = false, mustParse(ParseRecipe("nodes:list=3,share=0.8"))
	p.IgnorePorts, p.Load = true, 0.55
	if _, r := mustSource(t, p, 1); r.MaxSourceUse < 1.5 {
		t.Errorf("%+v", r)
	}
}
