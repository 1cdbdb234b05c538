package graph500

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/sim/loggops"
)

// withTimes sets the query times of p from a text.
func withTimes(t testing.TB, p *Params, text string) {
	t.Helper()
	if err := (*queryTimes)(p).UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestQueryTimes(t *testing.T) {
	p := Default()
	const text = "1.5ns,0-3=15ns,7=2ns,8+10-11=x2.5,60-71=x0.5,20=x0.03"
	withTimes(t, &p, strings.Replace(text, "=15ns", "=Mont-Blanc", 1))
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	if got, _ := (*queryTimes)(&p).MarshalText(); string(got) != text {
		t.Errorf("the text is %s, expected %s", got, text)
	}
	for process, want := range map[int]float64{
		0: 15000, 3: 15000, 4: 1500, 7: 2000, 8: 600, 9: 1500, 10: 600, 11: 600, 12: 1500, 20: 50_000, 59: 1500,
		60: 3000, 71: 3000,
	} {
		if got := p.paceOf(process).picoseconds(); got != want {
			t.Errorf("process %d takes %v ps per query, expected %v", process, got, want)
		}
	}
	seventh := Group{Factor: big.NewRat(7, 1)}
	if got := seventh.pace(1000).of(10); got != 1429 { // 10000/7 = 1428.6
		t.Errorf("10 queries of 1000/7 ps take %d ps, expected 1429", int64(got))
	}
}

func TestQueryTimesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "altamira, i5-5200u",
		"0=2ns":                `"0=2ns", expected first the time or machine of all other processes`,
		"2ns,":                 `"": expected RANGES=TIME`,
		"2ns,0-3":              `"0-3": expected RANGES=TIME`,
		"2ns,=x1":              `"", expected the number of a process or a range`,
		"2ns,1-0=x1":           `"1-0=x1": the range "1-0" is empty`,
		"2ns,1+=x1":            `"", expected the number of a process or a range`,
		"2ns,-1=x1":            `"-1", expected the number of a process or a range`,
		"2ns,1=x0":             `the factor is 0.000000, expected 0.01..100`,
		"2ns,1=x101":           `the factor is 101.000000, expected 0.01..100`,
		"2ns,1=x1e1":           `factor "1e1", expected a decimal number`,
		"2ns,1=x1/3":           `factor "1/3", expected a decimal number`,
		"2ns,1=x1.0000001":     `expected at most 6 decimals`,
		"2ns,1=fast":           `altamira, i5-5200u`,
		"2ns,1=2s":             `"1=2s": the time is 2s, expected 0s..1s`,
		"2ns,0-3=x2,9+2=x1":    `"9+2=x1": process 2 is also in "0-3=x2"`,
		"2ns,5+5=x2":           `process 5 is also in "5+5=x2"`,
		"2ns,3-72=x2":          `"3-72=x2": processes 3-72, expected 0..71, as there are 72`,
		"2ns,99999999999=x2":   `expected the number of a process`,
		"2ns,4" + many + "=x2": "more than 4096 ranges",
	} {
		p := Default()
		err := (*queryTimes)(&p).UnmarshalText([]byte(text))
		if err == nil {
			err = p.check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, expected %s", text, err, want)
		}
	}
}

var many = strings.Repeat("+4", maxGroups)

// TestGroupOfBase: processes with the query time of all others give the same bytes.
func TestGroupOfBase(t *testing.T) {
	write := func(times string) string {
		p := small()
		withTimes(t, &p, times)
		s, err := NewSource(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := store.WriteSource(&out, s); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := write("altamira")
	for _, times := range []string{"1500ps,0-11=x1", "1.5ns,3=1.5ns,5-7=x1.000"} {
		if write(times) != want {
			t.Errorf("%s: other bytes than without groups", times)
		}
	}
	if write("altamira,3=x0.5") == want {
		t.Error("a factor of 0.5 gives the same bytes")
	}
}

// TestCapability compares runs with processes that differ with runs without, where processes are the bottleneck and
// where the network is: the slowest process decides.
func TestCapability(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long")
	}
	run := func(times string) float64 {
		p := Default()
		p.RootDegree, p.Variation = 16, 0
		withTimes(t, &p, times)
		return float64(replay(t, mustMake(t, p, 1), loggops.Params{
			L: 100 * dag.Nanosecond, GPerByte: big.NewRat(200, 1), OPerByte: new(big.Rat), S: 1 << 30,
		}))
	}
	base, network := run("1500ns"), run("0.15ns")
	for _, c := range []struct {
		times       string
		base        float64
		least, most float64
	}{
		{"1500ns,5=x0.5", base, 1.8, 2.1},
		{"1500ns,5=3us", base, 1.8, 2.1},
		{"1500ns,5=x2", base, 0.98, 1.02},
		{"0.15ns,5=x0.5", network, 0.97, 1.03},
		{"1500ns,0-35=x2", base, 0.96, 1.04},
	} {
		if got := run(c.times) / c.base; got < c.least || got > c.most {
			t.Errorf("%s: %.4f times as long, expected %v..%v", c.times, got, c.least, c.most)
		} else {
			t.Logf("%s: %.4f times as long", c.times, got)
		}
	}
}

func TestGroupsDescribed(t *testing.T) {
	p := Default()
	withTimes(t, &p, "1.5ns,0-3=mont-blanc,60-71=x0.5")
	d, err := Describe(p, 1, 200) // 40 Gbit/s
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{32.0 / 15 / 10, 32.0 / 15 / 2} {
		if got := *d.Groups[i].InjectionProbability; math.Abs(got-want) > 1e-12 {
			t.Errorf("group %s: injection probability %v, expected %v", d.Groups[i].Processes, got, want)
		}
	}
	s, err := NewSource(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Header()
	if err != nil || !strings.HasSuffix(h.Title, ", query time 1.5ns,0-3=15ns,60-71=x0.5") {
		t.Errorf("title %q, error %v", h.Title, err)
	}
}

// FuzzQueryTimes: an accepted text has a text that gives the same query times.
func FuzzQueryTimes(f *testing.F) {
	for _, text := range []string{"altamira,0-3=mont-blanc,7=2ns,60-71=x0.5", "2ns,1+3-4=x1.25", "1s,0=x0.01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := Default()
		if (*queryTimes)(&p).UnmarshalText([]byte(text)) != nil || p.check() != nil {
			return
		}
		again := Default()
		canonical, _ := (*queryTimes)(&p).MarshalText()
		withTimes(t, &again, string(canonical))
		for process := range p.Nodes {
			if a, b := p.paceOf(process), again.paceOf(process); a != b || a.of(p.Coalescing) < 0 {
				t.Fatalf("%q: process %d takes %v, %q gives %v", text, process, a, canonical, b)
			}
		}
	})
}
