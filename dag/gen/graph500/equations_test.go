package graph500

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// The tables in testdata were computed from the equations by a program of its own, to 12 digits or 10.

// load reads a table.
func load(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rows returns the rows of a table with columns.
func rows(t *testing.T, name string) []map[string]float64 {
	t.Helper()
	var table struct {
		Columns []string
		Rows    [][]float64
	}
	load(t, name, &table)
	var list []map[string]float64
	for _, values := range table.Rows {
		row := map[string]float64{}
		for i, v := range values {
			row[table.Columns[i]] = v
		}
		list = append(list, row)
	}
	if len(list) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return list
}

// near compares with a relative tolerance of 1e-9.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) {
		t.Errorf("%s is %.12g, expected %.12g", what, got, want)
	}
}

func TestLevels(t *testing.T) {
	for _, r := range rows(t, "levels.json") {
		p := Default()
		p.Scale, p.EdgeFactor = int(r["s"]), int(r["fe"])
		level := int(r["l"])
		w := p.equations(int64(r["dr"]))
		near(t, "mean by the reference's eq. 7", w.mean(level), r["mean_fogsim"])
		near(t, "f1", w.f1(level), r["f1"])
		near(t, "f2", w.f2(level), r["f2"])
		near(t, "sigma", w.sigma(level), r["sigma"])
		w.hIntDiv, w.eq7 = true, PrintedEq7
		near(t, "mean by the printed eq. 7", w.mean(level), r["mean_printed"])
		near(t, "f2 with an integer division", w.f2(level), r["f2_intdiv"])
		near(t, "sigma with an integer division", w.sigma(level), r["sigma_intdiv"])
		if t.Failed() {
			t.Fatalf("at %v", r)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, r := range rows(t, "messages.json") {
		q := queries(r["E"], r["n"])
		near(t, "q", q, r["q"])
		to := destinations(q, r["n"])
		near(t, "n'", to, r["nprime"])
		near(t, "m", messages(q, to, int64(r["cs"])), r["m"])
		if got := wholeDestinations(int64(q), int(r["n"])); float64(got) != r["nprime_int"] {
			t.Errorf("n' in integers is %d, expected %v", got, r["nprime_int"])
		}
		if got := messagesOf(int64(q), int(r["n"]), int64(r["cs"])); float64(got) != r["m_int"] {
			t.Errorf("m in integers is %d, expected %v", got, r["m_int"])
		}
		if t.Failed() {
			t.Fatalf("at %v", r)
		}
	}
}

// profile is the mean number of edges explored in each level.
type profile struct {
	S, Fe      int
	Dr         int64
	Variant    string
	Levels     []float64
	TotalEdges float64 `json:"total_edges"`
	Remaining  float64
}

func profiles(t *testing.T) []profile {
	var table struct{ Profiles []profile }
	load(t, "profiles.json", &table)
	return table.Profiles
}

// params returns a search of the graph of a profile.
func (f *profile) params() Params {
	p := Default()
	p.Scale, p.EdgeFactor, p.RootDegree = f.S, f.Fe, f.Dr
	if f.Variant == "printed" {
		p.Eq7 = PrintedEq7
	}
	return p
}

func TestProfiles(t *testing.T) {
	for _, f := range profiles(t) {
		d, err := Describe(f.params(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "total", float64(d.TotalEdges), f.TotalEdges)
		left := f.TotalEdges
		for l, level := range d.Levels {
			want := 0.0
			if l < len(f.Levels) {
				want = f.Levels[l]
			}
			// The table has ten digits.
			if math.Abs(level.MeanTruncated-want) > 1e-9*want {
				t.Errorf("%+v: level %d has %.12g", f, l, level.MeanTruncated)
			}
			left -= level.MeanTruncated
		}
		if math.Abs(left-f.Remaining) > 1e-9*f.TotalEdges {
			t.Errorf("%+v: %v is left", f, left)
		}
	}
}

func TestRootDegree(t *testing.T) {
	var table struct {
		Rows []struct {
			S                       int
			Mu, Sigma, Median, Mean float64
			Quantiles               map[string]float64
		}
	}
	load(t, "root_degree.json", &table)
	if len(table.Rows) == 0 {
		t.Fatal("no rows")
	}
	for _, r := range table.Rows {
		p := Default()
		p.Scale = r.S
		root := p.rootDegree(1, 1)
		near(t, "mu", root.Mu, r.Mu)
		near(t, "sigma", root.Sigma, r.Sigma)
		near(t, "median", root.Median, r.Median)
		near(t, "mean", root.Mean, r.Mean)

		const n = 100_000
		random := draws(7, r.S, 0, "test")
		below := map[int64]int{} // how many draws are equal
		for range n {
			below[p.drawRootDegree(1, random)]++
		}
		sum, worst := 0, 0.0
		for k := int64(1); k < 1000; k++ {
			sum += below[k]
			want := 0.5 * math.Erfc(-(math.Log(float64(k))-r.Mu)/r.Sigma/math.Sqrt2)
			worst = max(worst, math.Abs(float64(sum)/n-want))
		}
		if worst > 0.005 { // the 1 % quantile of Kolmogorov's distance is 0.0052
			t.Errorf("scale %d: the distribution is off by %v", r.S, worst)
		}
		for text, quantile := range r.Quantiles {
			var part float64
			if err := json.Unmarshal([]byte(text), &part); err != nil {
				t.Fatal(err)
			}
			if part > 0.95 {
				continue // a sample of this size does not tell it to 2 %
			}
			k, sum := int64(0), 0
			for sum < int(part*n) {
				k++
				sum += below[k]
			}
			if got := float64(k); got < quantile*0.98 || got > quantile*1.02+1 { // a sample is rounded up
				t.Errorf("scale %d: quantile %s is %v, expected that of %v", r.S, text, got, quantile)
			}
		}
	}
}

func TestInjectionProbability(t *testing.T) {
	var table struct {
		Rows []struct {
			LinkGbps    float64 `json:"link_gbps"`
			PacketBytes int64   `json:"packet_bytes"`
			Cs          int64   `json:"cs"`
			TqNs        float64 `json:"tq_ns"`
			PInj        float64 `json:"p_inj"`
		}
	}
	load(t, "injection_probability.json", &table)
	if len(table.Rows) == 0 {
		t.Fatal("no rows")
	}
	for _, r := range table.Rows {
		p := Default()
		p.Coalescing, p.MessageBytes, p.QueryTime = r.Cs, r.PacketBytes, dag.Time(r.TqNs*1000)
		d, err := Describe(p, 1, 8000/r.LinkGbps)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "p_inj", *d.InjectionProbability, r.PInj)
	}
	p := Default()
	if d, err := Describe(p, 1, 0); err != nil || d.InjectionProbability != nil {
		t.Errorf("a probability without a link, error %v", err)
	}
}

// TestAlwaysFinite: no parameters in range give NaN or an infinity.
func TestAlwaysFinite(t *testing.T) {
	for _, scale := range []int{1, 2, 5, 9, 10, 16, 25, 30, 40, maxScale} {
		for _, factor := range []int{1, 2, 16, 64, 100, 300, maxEdgeFactor} {
			p := Default()
			p.Scale, p.EdgeFactor, p.MaxLevels = scale, factor, maxLevels
			for _, degree := range []int64{1, 2, 1000, 1e9, p.totalEdges()} {
				p.RootDegree = min(degree, p.totalEdges())
				for _, p.HIntDiv = range []bool{false, true} {
					for _, p.Eq7 = range []Equation7{ReferenceEq7, PrintedEq7} {
						d, err := Describe(p, 1, 0)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := json.Marshal(d); err != nil {
							t.Fatalf("%+v: %v", p, err)
						}
						for _, l := range d.Levels {
							if !(l.Mean >= 0 && l.Sigma >= 0 && l.MeanTruncated >= 0 && l.MessagesPerProcess >= 0) {
								t.Fatalf("%+v: %+v", p, l)
							}
						}
					}
				}
			}
		}
	}
}
