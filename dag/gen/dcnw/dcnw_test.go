package dcnw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// send is a message as its source has it.
type send struct {
	time                dag.Time
	source, destination int32
	bytes               int64
}

// sends returns the messages of a workload in the order of their numbers.
func sends(t testing.TB, p Params, seed int64) []send {
	t.Helper()
	s, err := NewSource(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]send, p.Messages)
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			if r.Kind[i] == dag.Send {
				all[r.Tag[i]] = send{r.Release[i], int32(rank), r.Peer[i], r.Bytes[i]}
			}
		}
	}
	return all
}

func TestGolden(t *testing.T) {
	p := Default()
	p.Messages = 40
	var got bytes.Buffer
	for k, m := range sends(t, p, 1) {
		fmt.Fprintf(&got, "%d: %d -> %d, %d bytes at %v\n", k, m.source, m.destination, m.bytes, m.time)
	}
	golden.Check(t, "testdata/messages.golden", got.String())
}

// TestGaps: times are those of a Poisson process of the rate that the load gives.
func TestGaps(t *testing.T) {
	p := Default()
	p.Messages = 1_000_000
	p.Clock = dag.Picosecond
	all := sends(t, p, 3)
	mean := 8000 * p.Sizes.Mean() / p.Load / float64(p.Tasks)
	if got := float64(all[len(all)-1].time) / float64(p.Messages); math.Abs(got/mean-1) > 0.005 {
		t.Errorf("mean gap %v ps, want %v", got, mean)
	}
	gaps := make([]float64, len(all))
	before := dag.Time(0)
	for i, m := range all {
		gaps[i] = float64(m.time-before) / mean
		before = m.time
	}
	slices.Sort(gaps)
	if d := kolmogorov(gaps, func(x float64) float64 { return -math.Expm1(-x) }); d > 0.002 {
		t.Errorf("Kolmogorov distance of the gaps %v", d)
	}
	perTask := make([]float64, p.Tasks)
	for _, m := range all {
		perTask[m.source]++
	}
	for task, n := range perTask { // 7800 with a standard deviation of 88
		if expected := float64(p.Messages) / float64(p.Tasks); math.Abs(n-expected) > 5*math.Sqrt(expected) {
			t.Errorf("task %d sends %v messages, expected about %v", task, n, expected)
		}
	}
}

// kolmogorov returns the largest distance of sorted samples from a continuous distribution.
func kolmogorov(samples []float64, cdf func(float64) float64) float64 {
	d, n := 0.0, float64(len(samples))
	for i, x := range samples {
		d = max(d, math.Abs(cdf(x)-float64(i)/n), math.Abs(cdf(x)-float64(i+1)/n))
	}
	return d
}

// TestRounding: whatever the clock, every time is that of the finest clock to the nearest tick.
func TestRounding(t *testing.T) {
	p := Default()
	p.Messages = 20_000
	p.Clock = 1
	fine := sends(t, p, 1)
	for _, clock := range []dag.Time{1000, 777} {
		p.Clock = clock
		coarse := sends(t, p, 1)
		for k, m := range coarse {
			if difference := m.time - fine[k].time; difference > clock/2+1 || -difference > clock/2+1 {
				t.Fatalf("clock %v: message %d comes at %v, not %v", clock, k, m.time, fine[k].time)
			}
		}
	}
}

// TestShared: another distribution of destinations or another load leaves sizes and sources as they are, and another load
// stretches time.
func TestShared(t *testing.T) {
	p := Default()
	p.Messages, p.Clock = 20_000, 1
	base := sends(t, p, 1)
	p.Destination.Distribution = openloop.UniformTask
	for k, m := range sends(t, p, 1) {
		if m.time != base[k].time || m.source != base[k].source || m.bytes != base[k].bytes {
			t.Fatalf("uniform: message %d is %+v, not %+v", k, m, base[k])
		}
	}
	p.Load /= 2
	for k, m := range sends(t, p, 1) {
		late := m.time/2 - base[k].time
		if late > 1 || late < -1 || m.source != base[k].source || m.bytes != base[k].bytes {
			t.Fatalf("half the load: message %d is %+v, not %+v", k, m, base[k])
		}
	}
}

// table is a curve as the test data have it.
type table struct {
	Mean   float64      `json:"mean_bytes"`
	Points [][2]float64 `json:"points"`
}

func readTable(t *testing.T, name string) table {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata/cdf", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var x table
	if err := json.Unmarshal(file, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestCurves compares the draws from every curve, and their mean, with its table.
func TestCurves(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	// By how much the mean of a million samples may be off. Few messages of W1 to W3 have most of the bytes.
	tolerances := map[string]float64{
		"FB_KEYVALUE": 0.1, "GOOGLE_SEARCH": 0.1, "GOOGLE_ALL": 0.1, "FB_HADOOP": 0.03, "WEBSEARCH": 0.02, "FB_CACHE": 0.01,
		"FB_WEB": 0.01,
	}
	for _, name := range Workloads() {
		want := readTable(t, name)
		c, ok := Workload(name)
		if !ok || c.Name != name {
			t.Fatalf("%s: %+v", name, c)
		}
		if math.Abs(c.Mean()/want.Mean-1) > 1e-8 { // the table's mean has 9 digits
			t.Errorf("%s: mean %v, want %v", name, c.Mean(), want.Mean)
		}
		for _, p := range want.Points {
			u := math.Ldexp(p[1], 62)
			if k := uint64(u); k > 0 { // the last number that is not above the cumulative probability
				if got := c.steps.Draw((k - 1) << 2); float64(got) > p[0] {
					t.Errorf("%s: size %d at probability %v, want at most %v", name, got, p[1], p[0])
				}
			}
			if k := uint64(u); k < 1<<62 {
				if got := c.steps.Draw(k << 2); float64(got) <= p[0] {
					t.Errorf("%s: size %d above probability %v, want more than %v", name, got, p[1], p[0])
				}
			}
		}
		p := Default()
		p.Sizes, p.Messages = c, 1_000_000
		counts, mean := map[int64]int{}, 0.0
		for _, m := range sends(t, p, 1) {
			counts[m.bytes]++
			mean += float64(m.bytes) / float64(p.Messages)
		}
		if math.Abs(mean/want.Mean-1) > tolerances[name] {
			t.Errorf("%s: mean of the samples %v, want %v", name, mean, want.Mean)
		}
		seen, distance := 0, 0.0
		for _, p := range want.Points {
			seen += counts[int64(p[0])]
			delete(counts, int64(p[0]))
			distance = max(distance, math.Abs(float64(seen)/1e6-p[1]))
		}
		if len(counts) > 0 {
			t.Errorf("%s: sizes that are not in the table: %v", name, counts)
		}
		if distance > 0.002 {
			t.Errorf("%s: Kolmogorov distance %v", name, distance)
		}
	}
}

func TestNames(t *testing.T) {
	for alias, name := range map[string]string{
		"W1": "FB_KEYVALUE", "w2": "GOOGLE_SEARCH", "W3": "GOOGLE_ALL", "W4": "FB_HADOOP", "W5": "WEBSEARCH",
		"fb_cache": "FB_CACHE", "Fb_Web": "FB_WEB",
	} {
		if c, ok := Workload(alias); !ok || c.Name != name {
			t.Errorf("%s is %+v", alias, c)
		}
	}
	for _, name := range []string{"", "W6", "GOOGLE"} {
		if _, ok := Workload(name); ok {
			t.Errorf("%q is a workload", name)
		}
	}
}

func TestReadCurve(t *testing.T) {
	curve := func(sizes []int64, cumulative ...float64) Curve {
		return Curve{"f", openloop.NewSteps(sizes, cumulative)}
	}
	for text, want := range map[string]Curve{
		"1424.0\n64 0.5\n256 1.0\n":                  curve([]int64{64, 256}, 0.5, 1),
		"# comment\n\n0 0\r\n  10\t0.25 \n11 1e0":    curve([]int64{0, 10, 11}, 0, 0.25, 1),
		"1 0.25\n2 .5\n3 1.0000005\n4 1.0000007":     curve([]int64{1, 2, 3, 4}, 0.25, 0.5, 1, 1),
		"5 0.999999":                                 curve([]int64{5}, 1),
		"1125899906842623 0.5\n1125899906842624 1\n": curve([]int64{1<<50 - 1, 1 << 50}, 0.5, 1),
	} {
		got, stated, err := ReadCurve("f", strings.NewReader(text))
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if wantStated := map[bool]float64{true: 1424}[text[0] == '1' && text[1] == '4']; stated != wantStated {
			t.Errorf("%q: stated mean %v", text, stated)
		}
	}
}

func TestReadCurveErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "line 1: expected sizes with their cumulative probabilities, found none",
		"1424\n\n":                       "line 2: expected sizes with their cumulative probabilities, found none",
		"x\n1 1":                         `expected a size and a cumulative probability, or the mean size alone, found "x"`,
		"1 1\n2":                         "line 2: expected a size and a cumulative probability, found 1 fields",
		"1 1 1":                          "line 1: expected a size and a cumulative probability, found 3 fields",
		"5\n6\n1 1":                      "line 2: expected a size and a cumulative probability, found 1 fields",
		"1.5 1":                          `expected a size in bytes, a whole number up to 1125899906842624, found "1.5"`,
		"-1 1":                           `found "-1"`,
		"+1 1":                           `found "+1"`,
		"1125899906842625 1":             `found "1125899906842625"`,
		"99999999999999999999 1":         `found "99999999999999999999"`,
		"1 x":                            `line 1: expected a cumulative probability from 0 to 1, found "x"`,
		"1 NaN":                          `found "NaN"`,
		"1 inf":                          `found "inf"`,
		"1 0x1p0":                        `found "0x1p0"`,
		"1 1e999":                        `found "1e999"`,
		"1 1.1":                          `found "1.1"`,
		"1 -0.5":                         `found "-0.5"`,
		"1 0.5\n1 1":                     "line 2: expected a size above the 1 of the line before, found 1",
		"2 0.5\n1 1":                     "line 2: expected a size above the 2 of the line before, found 1",
		"1 0.5\n2 0.4\n3 1":              "line 2: expected a cumulative probability of at least the 0.5 of the",
		"1 0.5\n2 0.9\n\n":               "line 3: expected a last cumulative probability of 1, found 0.9",
		"0 1":                            "line 1: expected a size above 0 that messages have, found none",
		"0 1\n5 1":                       "line 2: expected a size above 0 that messages have, found none",
		strings.Repeat("1", 5000) + " 1": "line 1: expected a line of less than 4096 bytes, found a longer one",
		"NaN\n1 1":                       "line 1:",
	} {
		if _, _, err := ReadCurve("f", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q", text, err, want)
		}
	}
	rows := strings.NewReader(strings.Join(slices.Collect(func(yield func(string) bool) {
		for i := range 1<<20 + 1 {
			if !yield(fmt.Sprint(i, " 0.5")) {
				return
			}
		}
	}), "\n"))
	if _, _, err := ReadCurve("f", rows); err == nil || !strings.Contains(err.Error(), "expected at most 1048576 sizes") {
		t.Errorf("too many rows: %v", err)
	}
}

func FuzzReadCurve(f *testing.F) {
	f.Add("1424.0\n64 0.5\n256 1.0\n")
	f.Add("# comment\n\n0 0\n10 0.25 \n11 1e0")
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := ReadCurve("f", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, uniform := range []uint64{0, 1, 1 << 32, 1 << 63, math.MaxUint64} {
			if size := c.steps.Draw(uniform); size < 0 || size > openloop.MaxBytes {
				t.Errorf("size %d", size)
			}
		}
		p := Default()
		p.Sizes, p.Messages = c, 100
		if s, err := NewSource(p, 1); err == nil {
			if _, err := dag.ReadAll(s); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	for _, load := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		p := Default()
		p.Load = load
		if _, err := NewSource(p, 1); err == nil || !strings.Contains(err.Error(), "load is") {
			t.Errorf("load %v: %v", load, err)
		}
	}
	p := Default()
	p.Load = math.SmallestNonzeroFloat64
	if _, err := NewSource(p, 1); err == nil || !strings.Contains(err.Error(), "messages is 2000000, expected so few") {
		t.Errorf("hardly any load: %v", err)
	}
}

// BenchmarkGenerate makes the ranks of the published example.
func BenchmarkGenerate(b *testing.B) {
	ops := int64(0)
	for b.Loop() {
		s, err := NewSource(Default(), 1)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := dag.ReadAll(s); err != nil {
			b.Fatal(err)
		}
		h, err := s.Header()
		if err != nil {
			b.Fatal(err)
		}
		ops += h.Ops
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}
