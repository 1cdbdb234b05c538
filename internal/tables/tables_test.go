package tables

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestIdentity checks the example of the documentation.
func TestIdentity(t *testing.T) {
	settings := map[string]string{"balance": "spray", "topology": "fattree:k=4,rate=100Gbps", "transport": "ndp"}
	if got := Identity("packet", settings, 3, strings.Repeat("0", 64)); got != "b698db46d50a8216" {
		t.Errorf("got %s", got)
	}
	if Identity("ideal", nil, 0, "") != Identity("ideal", map[string]string{}, 0, "") {
		t.Error("no settings and none differ")
	}
}

// TestStudent compares quantiles with published ones, exact ones, and the expansion with the exact solution.
func TestStudent(t *testing.T) {
	for _, c := range []struct {
		freedom int
		want    float64
	}{
		{1, math.Tan(math.Pi * 0.475)}, {2, 0.95 / math.Sqrt(2*0.975*0.025)},
		{4, 2.7764451051977987}, {9, 2.262157162798205}, {10, 2.228138851986274}, {29, 2.045229642132703},
		{99, 1.984216951586421}, {1000, 1.9623390808264078},
	} {
		if got := studentT975(c.freedom); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("%d: %.16g, expected %.16g", c.freedom, got, c.want)
		}
	}
	last := math.Inf(1)
	for freedom := 1; freedom < 1100; freedom++ {
		got := studentT975(freedom)
		if got >= last || got < 1.959963984540054 {
			t.Errorf("%d: %v after %v", freedom, got, last)
		}
		last = got
	}
}

// printed runs documents through a table.
func printed(t *testing.T, table string, axes []string, replicas int, documents ...string) string {
	t.Helper()
	var b strings.Builder
	all := New(axes, replicas)
	all.Write(table, false, &b)
	for _, document := range documents {
		if err := all.Add(strings.NewReader(document)); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
	}
	if err := all.Commit(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMetrics checks paths, scopes and units.
func TestMetrics(t *testing.T) {
	got := printed(t, "results", nil, 1, `{"run":{"id":"r","point":"p","seed":7,"factors":{},"units":{"npu":"ns","npu.load":"FLOP/B"}},
		"params":{"x":1},"makespan_ps":36893488147419103232,"finish_ps":[9007199254740993,null,3],"complete":true,
		"fct_ps":{"count":3,"mean":2.5},"slowdown":{"p99.9":1e-7},"goodput_gbps":4,"rate_bits_s":5,
		"jobs":[{"name":"a","makespan_ps":1,"nested":{"z":1,"bytes":2}},{"name":"b,c","makespan_ps":2}],
		"ports":{"columns":["port","bytes","drops"],"shown":"1 of 2","rows":[["x->y",1,null]]},
		"fct_by_size":{"columns":["bytes","count","mean_ps"],"rows":[[65536,1,2]]},
		"flows":{"columns":["src","dst","bytes"],"rows":[[0,1,2]]},"path":[{"op":1,"rank":2,"at_ps":3}],
		"compare":{"ranks":[{"rank":4,"error":0.5}]},"stalls":[{"cause":"credits","cycles":3}],"steps":[{"at_ps":1},{"at_ps":2}],
		"npu":{"idle":[5],"load":[6]},"leftover":{"receive":{"1":[[2,3]]}},"wall_s":1,"cycle":["a"],"on":true,"share":0.5}`)
	want := `study,point,run,seed,factors,metric,scope,value,value_int,unit
compare.ranks.error,rank=4,0.5,,1
fct_by_size.count,size=64KiB,1,1,1
fct_by_size.mean_ps,size=64KiB,2,2,ps
fct_ps.count,,3,3,1
fct_ps.mean,,2.5,,ps
finish_ps,rank=0,9007199254740992,9007199254740993,ps
finish_ps,rank=2,3,3,ps
goodput_gbps,,4,4,Gb/s
jobs.makespan_ps,job=a,1,1,ps
jobs.makespan_ps,"job=b,c",2,2,ps
jobs.nested.bytes,job=a,2,2,B
jobs.nested.z,job=a,1,1,1
makespan_ps,,36893488147419103000,,ps
npu.idle,rank=0,5,5,ns
npu.load,rank=0,6,6,FLOP/B
ports.bytes,port=x->y,1,1,B
rate_bits_s,,5,5,b/s
share,,0.5,,1
slowdown.p99.9,,1e-07,,1
stalls.cycles,cause=credits,3,3,1
steps.at_ps,step=0,1,1,ps
steps.at_ps,step=1,2,2,ps
`
	if got := strings.ReplaceAll(got, ",p,r,7,{},", ""); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

// TestSummary checks statistics over replicas in any order of runs, failures, and points without results.
func TestSummary(t *testing.T) {
	run := func(point string, seed int, rest string) string {
		return fmt.Sprintf(`{"run":{"id":"%s%d","point":"%s","seed":%d,"factors":{"L":"%sus"}},"backend":"x",%s}`, point, seed, point,
			seed, point, rest)
	}
	const failed = `"error":"no"`
	got := printed(t, "summary", []string{"L"}, 4,
		run("1", 1, `"makespan_ps":1`), run("2", 1, failed), run("1", 2, `"makespan_ps":4`), run("2", 2, failed),
		run("1", 3, `"makespan_ps":2,"share":0.5`), run("2", 3, failed), run("1", 4, failed), run("2", 4, failed),
		run("3", 1, `"makespan_ps":5`))
	t3 := studentT975(2)
	mean, deviation := 7.0/3, math.Sqrt((16.0/9+25.0/9+1.0/9)/2)
	half := t3 * deviation / math.Sqrt(3)
	want := "L,metric,unit,n,mean,sd,ci95_low,ci95_high,min,p50,max,failed\n"
	lines := strings.Split(got, "\n")
	if len(lines) != 6 || lines[0]+"\n" != want || lines[2] != "1us,share,1,1,0.5,,,,0.5,0.5,0.5,1" ||
		lines[3] != "2us,makespan_ps,ps,0,,,,,,,,4" || lines[4] != "3us,makespan_ps,ps,1,5,,,,5,5,5,0" {
		t.Fatalf("got\n%s", got)
	}
	var m, d, low, high, least, middle, most float64
	if _, err := fmt.Sscanf(strings.ReplaceAll(lines[1], ",", " "), "1us makespan_ps ps 3 %g %g %g %g %g %g %g 1", &m, &d, &low, &high,
		&least, &middle, &most); err != nil {
		t.Fatalf("%v in %s", err, lines[1])
	}
	for i, v := range [][2]float64{{m, mean}, {d, deviation}, {low, mean - half}, {high, mean + half}, {least, 1}, {middle, 2}, {most, 4}} {
		if math.Abs(v[0]-v[1]) > 1e-12 {
			t.Errorf("%d: %v, expected %v", i, v[0], v[1])
		}
	}
}

// TestInvalid checks that damaged documents are errors.
func TestInvalid(t *testing.T) {
	for _, document := range []string{"", "[]", "{", `{"makespan_ps":1}`, `{"run":1}`, `{"run":{"id":"x"},"a":[1,}`,
		`{"run":{"id":"x"},"a":{"columns":1}}`, `{"run":{"id":"x"},"a":{"columns":["a"],"rows":1}}`,
		`{"run":{"id":"x"},"a":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1001)} {
		all := New(nil, 1)
		all.Write("results", false, &strings.Builder{})
		if err := all.Add(strings.NewReader(document)); err == nil {
			t.Errorf("%.60s: no error", document)
		}
	}
	if got := printed(t, "points", nil, 1); got == "" || strings.Count(got, "\n") != 1 {
		t.Errorf("no header without runs: %q", got)
	}
}

// TestShortestFloats checks that printed numbers read back exactly.
func TestShortestFloats(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		v := math.Float64frombits(random.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		var back float64
		if _, err := fmt.Sscan(formatFloat(v), &back); err != nil || back != v {
			t.Errorf("%v: %s, %v", v, formatFloat(v), err)
		}
	}
}

// FuzzAdd checks that no document makes the tables panic.
func FuzzAdd(f *testing.F) {
	f.Add(`{"run":{"id":"r","factors":{}},"params":{},"a":[1,{"name":"x","b":2}],"t":{"columns":["a"],"rows":[[1]]}}`)
	f.Add(`{"run":{"id":"r"},"error":"x","fct_by_size":{"columns":["bytes"],"rows":[[1.5],[null]]}}`)
	f.Fuzz(func(_ *testing.T, document string) {
		all := New([]string{"L"}, 2)
		for _, table := range Names {
			for _, parquet := range []bool{false, true} {
				all.Write(table, parquet, &strings.Builder{})
			}
		}
		if all.Add(strings.NewReader(document)) == nil {
			all.Commit()
		}
	})
}
