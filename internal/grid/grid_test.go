package grid

import (
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// texts returns the values of an axis.
func texts(a *Axis) (all []string) {
	for _, v := range a.Values {
		all = append(all, v.Factors[0].Text)
	}
	return all
}

func TestRanges(t *testing.T) {
	var latency dag.Time
	var weight float64
	var perByte *big.Rat
	set := param.Set{param.Time(&latency, "L", ""), param.Float(&weight, "w", ""),
		param.RateIn(&perByte, "ns/B", "G", "")}
	numbers := func(name string) param.Number {
		if p := set.Find(name); p != nil {
			return p.Value.(param.Number)
		}
		return nil
	}
	for grid, want := range map[string]string{
		"L=1us..10us:4":                                "1us 4us 7us 10us",
		"L=1us..10us:3:log":                            "1us 3.162278us 10us", // 3162277.66 ps
		"L=1ps..9ps:3:log":                             "1ps 3ps 9ps",
		"L=2ps..3ps:3":                                 "2ps 3ps 3ps", // 2.5 is rounded up
		"w=1..2:3:log":                                 "1 1.4142135623730951 2",
		"w=10..0.1:3:log":                              "10 1 0.1",
		"G=0.02..0.08:3:log":                           "50GB/s 25GB/s 80ps/B",
		"topology.rate=100Gbps..400Gbps:2:log":         "100Gbps 400Gbps",
		"topology.rate=100Gbps..400Gbps:3:log":         "100Gbps 200Gbps 400Gbps",
		"topology.rate=10GB/s..20GB/s:3":               "80Gbps 120Gbps 160Gbps",
		"topology.latency=100ns..10us:3:log":           "100ns 1us 10us",
		"topology.hosts=16..64:3:log":                  "16 32 64",
		"queue=1KiB..4KiB:3:log":                       "1KiB 2KiB 4KiB",
		"load=0.2..0.8:4":                              "0.2 0.4 0.6 0.8",
		"seed=1..5":                                    "1 2 3 4 5",
		"seed=7..7":                                    "7",
		"transport=ndp,dctcp":                          "ndp dctcp",
		"topology=fattree:k=4|star:hosts=4,rate=1Gbps": "fattree:k=4 star:hosts=4,rate=1Gbps",
		"topology='star:hosts=4,rate=1Gbps',x":         "star:hosts=4,rate=1Gbps x",
		"file=../a..b:c,1.parquet":                     "../a..b:c 1.parquet",
	} {
		axes, err := ParseSweep(grid, numbers)
		if err != nil || len(axes) != 1 || strings.Join(texts(&axes[0]), " ") != want {
			t.Errorf("%s: %v, %v, expected %s", grid, axes, err, want)
		}
	}
	for grid, want := range map[string]string{
		"L":                "expected NAME=VALUES",
		"L=1us;L=2us":      "occurs twice",
		"L=1us..x:3":       "x",
		"L=1us..2us":       "expected FROM..TO:N",
		"L=1us..2us:1":     "from 2 to",
		"L=1us..2us:3:lin": "from 2 to",
		"w=0..2:3:log":     "above 0",
		"w=1..2:2000000":   "from 2 to",
		"load=1us..2:3":    "expected two numbers",
		"a='x":             "closing '",
		"seed=5..1":        "expected FROM..TO:N",
	} {
		if _, err := ParseSweep(grid, numbers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", grid, err, want)
		}
	}
}

// TestLogarithmicRanges compares values with exact bounds: x is k rounded half up if (2k-1)^n <= (2x)^n < (2k+1)^n.
func TestLogarithmicRanges(t *testing.T) {
	for _, c := range []struct{ from, to, n int64 }{{1, 1000, 7}, {3, 5, 11}, {1, 4, 3}, {2, 8, 5}, {999983, 17, 13},
		{1, 1 << 60, 40}, {100, 25, 5}, {9, 4, 3}} {
		all, err := between(big.NewRat(c.from, 1), big.NewRat(c.to, 1), int(c.n), true)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range all {
			k, err := param.Rounded(x)
			if err != nil {
				t.Fatal(err)
			}
			// (2x)^(n-1) = 2^(n-1) from^(n-1-i) to^i
			power := func(base, exponent int64) *big.Int {
				return new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil)
			}
			exact := power(2, c.n-1)
			exact.Mul(exact, power(c.from, c.n-1-int64(i))).Mul(exact, power(c.to, int64(i)))
			if power(2*k-1, c.n-1).Cmp(exact) > 0 || power(2*k+1, c.n-1).Cmp(exact) <= 0 {
				t.Errorf("%d..%d:%d: value %d is %d", c.from, c.to, c.n, i, k)
			}
		}
	}
}

// quantities survive formatting.
func TestQuantities(t *testing.T) {
	for _, text := range []string{"0", "12", "0.25", "1ps", "1.5us", "3s", "1B", "64KiB", "1500B", "100Gbps", "12500Mbps",
		"1GB/s", "40bps"} {
		q, ok := parseQuantity(text)
		if !ok {
			t.Errorf("%s is no quantity", text)
			continue
		}
		formatted, err := q.kind.format(q.value)
		if err != nil {
			t.Fatal(err)
		}
		again, ok := parseQuantity(formatted)
		if !ok || again.kind != q.kind || again.value.Cmp(q.value) != 0 {
			t.Errorf("%s becomes %s", text, formatted)
		}
	}
}

const example = `
vary:
  transport: [ndp, dctcp, swift]
  load: 0.2..0.8:4
  latency: {flag: topology.latency, values: "100ns..10us:3:log"}
zip:
  - {backend: [loggops, packet], params: [ai, null]}
only:    [{transport: ndp, load: 0.20}, {transport: [dctcp, swift]}]
exclude: [{transport: swift, load: 0.8}]
replicas: 2
traces:
  - {name: a, file: a.parquet}
  - {name: b, generate: "workload --load {load} --label 'two words'"}
set: {topology: "leafspine:hosts=16,tor=4", window: [1, 2], quiet-run: true}
measure: [makespan_ps, fct_ps.p99]
threads: 2
limits: {time: 1h, memory: 8GiB}
`

func TestRead(t *testing.T) {
	s, err := Read([]byte(example), "folder/websearch.yml", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	// 2 traces x (1 + 4 + 3 loads of the transports) x 3 latencies x 2 of the zip x 2 seeds
	if want := 2 * 8 * 3 * 2 * 2; len(points) != want {
		t.Errorf("%d points, expected %d", len(points), want)
	}
	first := "trace=a, transport=ndp, load=0.2, latency=100ns, backend=loggops, params=ai, seed=1"
	if got := Describe(points[0].Factors); got != first {
		t.Errorf("the first point is %s, expected %s", got, first)
	}
	if got := Last(points[0].Sets, "topology.latency"); got == nil || got.Text != "100ns" {
		t.Errorf("topology.latency is %v", got)
	}
	if s.Name != "websearch" || s.Traces[0].File != filepath.Join("folder", "a.parquet") ||
		!slices.Equal(s.Traces[1].Generate, []string{"workload", "--load", "{load}", "--label", "two words"}) ||
		s.Threads != 2 || s.Limits.Memory != 8<<30 || s.Limits.Time.Hours() != 1 || len(s.Measure) != 2 {
		t.Errorf("read %+v", s)
	}
}

func TestReadErrors(t *testing.T) {
	check := func(name string) error {
		if name == "transport" || name == "load" {
			return nil
		}
		return fmt.Errorf("no option %s", name)
	}
	for text, want := range map[string]string{
		"":                                         "f.yml:1: expected a mapping",
		"name: x\nvery: {}":                        `f.yml:2: expected a key out of name, traces`,
		"vary: {}\nname: x":                        "expected traces, or options",
		"vary:\n  transport: [ndp]\n  lod: 3":      "f.yml:3: no option lod",
		"set:\n  transport: ndp\n  transport: x":   "f.yml:3: ",
		"traces:\n- {name: a}":                     "f.yml:2: traces: expected either file or generate",
		"traces:\n- {generate: ring}":              "a name for the generated trace",
		"traces: [a.goal, b/a.goal]":               "two traces \"a\"",
		"traces: ['x*.none']":                      "a pattern that matches files",
		"traces: [a.goal]\nvary: {trace: [b]}":     "expected the name of one of the traces",
		"vary: {load: []}":                         "one value or more",
		"vary: {load: [[1]]}":                      "a text or number, found a list",
		"vary: {load: 1..x:3}":                     "expected two numbers",
		"vary:\n  load: {flag: transport}":         "the keys flag and values",
		"zip:\n- {load: [1, 2], transport: [a]}":   "f.yml:2: transport: expected 2 values",
		"vary: {load: 1}\nzip:\n- {load: [1, 2]}":  "expected one axis, found two",
		"vary: {load: 1}\nreplicas: 0":             "replicas: expected a number from 1",
		"vary: {load: 1}\nseeds: [1, 1]":           "different whole numbers",
		"vary: {load: 1}\nseeds: [1]\nreplicas: 2": "found both",
		"vary: {load: 1}\nlimits: {time: soon}":    "a duration above 0",
		"vary: {load: 1}\nlimits: {memory: 1}":     "a size of 32MiB or more",
		"vary: {load: 1}\nonly: [1]":               "expected a mapping",
	} {
		_, err := Read([]byte(text), "f.yml", nil, check)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.yml:") {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}

// FuzzRead checks that any text gives a study or an error that names the file.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{example, "vary: {load: 0.1..0.9:5:log}", "zip: [{a: [1], b: [2]}]", "traces: [x]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read([]byte(text), "f.yml", nil, nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yml") {
				t.Error(err)
			}
			return
		}
		s.Points()
	})
}

// FuzzParseSweep checks that any text gives axes with values or an error.
func FuzzParseSweep(f *testing.F) {
	for _, seed := range []string{"L=1us..10us:10;G=0.02,0.04", "seed=1..5", "a='x;y'|b", "q=1..2:3:log"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		axes, err := ParseSweep(text, nil)
		for i := range axes {
			if err == nil && len(axes[i].Values) == 0 {
				t.Errorf("an axis of %q has no values", text)
			}
		}
	})
}

// TestIdentity checks the identity of a run against a value computed by sha256sum.
