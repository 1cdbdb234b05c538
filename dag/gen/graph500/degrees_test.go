package graph500

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// withDegrees returns parameters of scale 13 with a distribution.
func withDegrees(t testing.TB, text string, weighted bool) Params {
	t.Helper()
	p := Default()
	p.Scale = 13
	if err := p.Degrees.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	p.Degrees.Weighted = weighted
	if p.Degrees.Kind == MeasuredDegrees {
		p.Degrees.Counts = []DegreeCount{{1, 50}, {2, 30}, {10, 20}}
	}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDegrees compares with sums over all degrees, which a separate program computed, and 20,000 draws with the
// percentiles.
func TestDegrees(t *testing.T) {
	for _, c := range []struct {
		text     string
		weighted bool
		mean, ln float64
		median   float64
		p90, p99 float64
	}{
		{"rmat", false, 40.460465, 2.1565171, 7, 76, 727},
		{"rmat", true, 719.413736, 5.3281749, 232, 2322, 7431},
		{"power:2", false, 7.93581783, 0.56993106, 1, 6, 61},
		{"power:2", true, 20081.7125, 5.9569013, 384, 71059, 230064},
		{"power:2.5,3", false, 7.61891487, 1.60772705, 4, 12, 55},
		{"power:2.5,3", true, 813.467794, 2.89312326, 10, 239, 14772},
		{"power:1", true, 131072.5, 11.4766766, 131072, 235930, 259523},
		{"file:x", false, 3.1, 0.66846068, 1, 10, 10},
		{"file:x", true, 7, 1.61969656, 10, 10, 10},
	} {
		p := withDegrees(t, c.text, c.weighted)
		d := p.rootDegree(1, 1)
		for what, pair := range map[string][2]float64{
			"mean": {d.Mean, c.mean}, "mean logarithm": {d.Mu, c.ln}, "90 %": {d.P90, c.p90}, "99 %": {d.P99, c.p99},
			"median": {d.Median, c.median},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-5*pair[1] {
				t.Errorf("%s, weighted %v: %s is %v, expected %v", c.text, c.weighted, what, pair[0], pair[1])
			}
		}
		r := draws(1, 0, 0, "test")
		const samples = 20_000
		ln, below := 0.0, 0.0
		for range samples {
			degree := p.drawRootDegree(1, r)
			ln += math.Log(float64(degree)) / samples
			if float64(degree) <= c.p90 {
				below += 1.0 / samples
			}
		}
		if math.Abs(ln-d.Mu) > 5*d.Sigma/math.Sqrt(samples) || below < 0.89 {
			t.Errorf("%s, weighted %v: draws have the mean logarithm %.4f, expected %.4f, and %.4f up to %v",
				c.text, c.weighted, ln, d.Mu, below, c.p90)
		}
	}
}

// TestKronecker compares with a graph of scale 13 that a separate program generated: mean and deviation of the
// logarithm 2.152 and 1.6035, 20.91 % of vertices without neighbors, 7234 neighbors at most.
func TestKronecker(t *testing.T) {
	p := withDegrees(t, "rmat", false)
	k := p.kronecker(1)
	s := k.summary(false)
	isolated := 0.0
	chances, weights := k.chances(false)
	for i, chance := range chances {
		isolated += weights[i] * binomialOf{k.ends, chance}.below(0)
	}
	if math.Abs(s.lnMean-2.152) > 0.03 || math.Abs(s.lnDev-1.6035) > 0.03 || math.Abs(isolated-0.2091) > 0.01 {
		t.Errorf("logarithm %.4f +- %.4f, %.4f are isolated", s.lnMean, s.lnDev, isolated)
	}
	if most := float64(k.ends) * chances[0]; math.Abs(most-7234) > 0.03*7234 {
		t.Errorf("the largest degree is %.0f", most)
	}
	p = withDegrees(t, "rmat-noise:0", false)
	if got := p.kronecker(1).summary(false); math.Abs(got.lnMean-s.lnMean) > 1e-9 || math.Abs(got.mean-s.mean) > 1e-9 {
		t.Errorf("without noise: %+v, expected %+v", got, s)
	}
}

// TestNoise compares the grid of probabilities with those of all vertices.
func TestNoise(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		p := withDegrees(t, "rmat-noise:0.15", weighted)
		k := p.kronecker(5)
		all, mean, ln := 0.0, 0.0, 0.0
		for vertex := range 1 << p.Scale {
			chance := 1.0
			for i, b := range k.bits {
				chance *= b[vertex>>i&1]
			}
			if weighted {
				b := binomialOf{k.ends - 1, chance}
				first, _ := b.logarithms(1)
				all, mean, ln = all+chance, mean+chance*(1+b.mean()), ln+chance*first
				continue
			}
			b := binomialOf{k.ends, chance}
			first, _ := b.logarithms(0)
			all, mean, ln = all+1-b.below(0), mean+b.mean(), ln+first
		}
		got := k.summary(weighted)
		if math.Abs(got.mean-mean/all) > 2e-3*got.mean || math.Abs(got.lnMean-ln/all) > 2e-3 {
			t.Errorf("weighted %v: mean %v, logarithm %v, expected %v, %v", weighted, got.mean, got.lnMean, mean/all,
				ln/all)
		}
	}
}

func TestReadDegrees(t *testing.T) {
	got, err := ReadDegrees(strings.NewReader("degree,vertices\n# a comment\n10 20\n\n0 7\n1,50\n 2\t30\r\n3 0\n"))
	if want := []DegreeCount{{1, 50}, {2, 30}, {10, 20}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, error %v, expected %v", got, err, want)
	}
	for _, text := range []string{"1\n", "1 2 3\n", "1 x\n", "1 -2\n", "-1 2\n", "1 99999999999999\n"} {
		_, err := ReadDegrees(strings.NewReader("# x\n" + text))
		var line *openloop.LineError
		if !errors.As(err, &line) || line.Line != 2 {
			t.Errorf("%q: error %v, expected one about line 2", text, err)
		}
	}
}

func TestDegreesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"zipf":            `"zipf", expected lognormal, power:ALPHA[,MIN], rmat, rmat-noise:B or file:FILE`,
		"rmat:1":          `"rmat:1", expected lognormal`,
		"power":           `"power", expected lognormal`,
		"power:x":         `exponent "x", expected a number from 1 to 20`,
		"power:NaN":       "the exponent of degrees is NaN, expected 1..20",
		"power:0.5":       "the exponent of degrees is 0.5, expected 1..20",
		"power:2,0":       "the least degree is 0, expected 1..33554432",
		"power:2,x":       `least degree "x", expected a whole number`,
		"rmat-noise:0.2":  "the noise of degrees is 0.2, expected 0..0.19",
		"rmat-noise:-0.1": "the noise of degrees is -0.1, expected 0..0.19",
		"file:":           "no file, expected",
		"file:none":       "none: no vertices, expected lines",
	} {
		p := Default()
		err := p.Degrees.UnmarshalText([]byte(text))
		if err == nil {
			err = p.check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, expected %s", text, err, want)
		}
	}
	p := Default()
	for want, counts := range map[string][]DegreeCount{
		"f: degree 33554433, expected 1..33554432":            {{1 << 25, 1}, {1<<25 + 1, 1}},
		"f: degree 2 is there twice or not in order":          {{2, 1}, {2, 1}},
		"f: 17592186044416 vertices of degree 2, expected 1.": {{1, 1}, {2, 1 << 44}},
	} {
		p.Degrees = Degrees{Kind: MeasuredDegrees, File: "f", Counts: counts}
		if err := p.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}

// FuzzReadDegrees: accepted degrees are drawn.
func FuzzReadDegrees(f *testing.F) {
	f.Add("degree,vertices\n1 2\n3,4\n", int64(1), true)
	f.Fuzz(func(t *testing.T, text string, seed int64, weighted bool) {
		counts, err := ReadDegrees(strings.NewReader(text))
		if err != nil {
			return
		}
		p := Default()
		p.Degrees = Degrees{Kind: MeasuredDegrees, Counts: counts, Weighted: weighted}
		if p.check() != nil {
			return
		}
		degree := p.drawRootDegree(seed, draws(seed, 0, 0, "test"))
		if !slices.ContainsFunc(counts, func(c DegreeCount) bool { return c.Degree == degree }) {
			t.Fatalf("degree %d is not in %v", degree, counts)
		}
	})
}
