package compose

import (
	"errors"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

func TestReadPlan(t *testing.T) {
	yes, no, seven := true, false, int64(7)
	half := big.NewRat(1, 2)
	job := func(file string) PlanJob { return PlanJob{File: file, Count: 1} }
	for _, c := range []struct {
		text string
		want Plan
	}{
		{"jobs:\n- file: a\n", Plan{Jobs: []PlanJob{job("plans/a")}}},
		{"# with all keys\ntitle: t\nmode: multi-tenant\nplacement: random\nnodes: 12\nseed: 7\none-rank-per-node: false\n" +
			"share-nic: false\nshare-streams: true\nunique-nic: true\nintra-bw: 25GB/s\nscale-compute: 0.5\njobs:\n" +
			"- file: /b/c\n  name: x\n  from: goal\n  start: 1.5us\n  count: 3\n  nodes: [0-2, 7, \"5,6\"]\n  window: 1us..\n" +
			"  only-ranks: 0-7,12\n  repeat: 9\n  scale-compute: 1/2\n- file: '-'\n  window: ..2s\n",
			Plan{Title: "t", Placed: true, PerNode: &no, Seed: &seven, OwnNICs: true, UniqueNIC: true, SharedStreams: true,
				Bandwidth: 25e9, Scale: half,
				Placement: Placement{Policy: Random}, Machine: Machine{Nodes: 12, Shared: true},
				Jobs: []PlanJob{
					{File: "/b/c", Name: "x", From: "goal", Start: 1500 * dag.Nanosecond, Count: 3,
						Nodes: Ranges{{First: 0, Last: 2}, {First: 7, Last: 7}, {First: 5, Last: 5}, {First: 6, Last: 6}},
						Edits: Edits{Window: &Span{dag.Microsecond, dag.MaxTime},
							Only: Ranges{{First: 0, Last: 7}, {First: 12, Last: 12}}, Repeat: 9,
							Scale: half}},
					{File: "-", Count: 1, Edits: Edits{Window: &Span{0, 2 * dag.Second}}},
				}}},
		{"start-calc: true\njobs: [{file: a}]\n", Plan{Jobs: []PlanJob{job("plans/a")}, StartCalc: true}},
		{"placement: strided:3\njobs: [{file: a}]\n", Plan{Jobs: []PlanJob{job("plans/a")}, Placed: true,
			Placement: Placement{Policy: Strided, Stride: 3}}},
		{"placement: file:n\njobs: [{file: a}]\n", Plan{Jobs: []PlanJob{job("plans/a")}, Placed: true,
			Placement: Placement{Policy: Given, File: "plans/n"}}},
		{"placement: random:7\njobs: [{file: a}]\n", Plan{Jobs: []PlanJob{job("plans/a")}, Placed: true,
			Placement: Placement{Policy: Random, Seed: 7, Seeded: true}}},
		{"{\"mode\": \"multi-job\", \"goal_files\": [\"a\", \"../b\"],\n\"pattern\": [[0, 5], [\"2-3\"]], " +
			"\"share-nic\": false}",
			Plan{Jobs: []PlanJob{job("plans/a"), job("b")}, Placed: true, PerNode: &yes, OwnNICs: true,
				Lists: [][]int32{{0, 5}, {2, 3}}}},
		{"mode: multi-job\ngoal_files: [a]\npattern: round_robin\n", Plan{Jobs: []PlanJob{job("plans/a")}, Placed: true,
			PerNode: &yes, Placement: Placement{Policy: RoundRobin}}},
	} {
		if c.want.Bandwidth == 0 {
			c.want.Bandwidth = defaultBandwidth
		}
		got, err := ReadPlan([]byte(c.text), "plans/p")
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, error %v, expected %+v", c.text, got, err, c.want)
		}
	}
}

// TestPlanLimits checks texts that a parser could take too long or too much stack for.
func TestPlanLimits(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("a", 4097):                                "expected lines of at most 4096 bytes",
		strings.Repeat("a\n", conf.MaxYAMLSize):                  "expected at most 131072 bytes of YAML, found 262144",
		strings.Repeat("[\n", 1001):                              "expected at most 1000 opening brackets",
		strings.Repeat("- ", 17) + "a":                           "plans/p:1: expected at most 16 levels, found more",
		`{"a":` + strings.Repeat(`{"a":`, 1<<19):                 "plans/p:1: expected at most 16 levels, found more",
		"{\"jobs\":[\n" + strings.Repeat("{},\n", 9) + "{\"file": "plans/p:11: expected JSON, found the end of the file",
	} {
		if _, err := ReadPlan([]byte(text), "plans/p"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, expected %q", text, err, want)
		}
	}
	long := `{"goal_files":["a"],"mode":"multi-job","pattern":[[` + strings.Repeat("1,", 1<<17) + "2]]}"
	if p, err := ReadPlan([]byte(long), "plans/p"); err != nil || len(p.Lists[0]) != 1<<17+1 {
		t.Errorf("a long list of JSON: error %v", err)
	}
}

func TestParseJob(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"x", "x@5ms", "a@b", "x,name=y"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"x":                              "file=x",
		"x@7ms":                          "start=7ms file=x",
		"x@0":                            "file=x",
		"x@5ms":                          "file=x@5ms",
		"x@5ms@0":                        "file=x@5ms",
		"a@b@1.5us":                      "start=1.5us file=a@b",
		"a@b":                            "file=a@b",
		"-@2s":                           "start=2s file=-",
		"absent":                         "file=absent",
		"x@9223372.036854775ms":          "start=9223.372036854775s file=x",
		"a@5ms,name=x,nodes=0-2,7,5":     "name=x nodes=0-2,7,5 start=5ms file=a",
		"a,b,c=1,d":                      "c=1,d file=a,b",
		"a,name=x=y":                     "name=x=y file=a",
		"a,name=":                        "name= file=a",
		"x,name=y":                       "file=x,name=y",
		"x@5ms,name=y":                   "name=y file=x@5ms",
		"-@1us,only-ranks=3,window=..2s": "only-ranks=3 window=..2s start=1us file=-",
	} {
		settings, err := ParseJob(text)
		var got []string
		for _, s := range settings {
			got = append(got, s.Key+"="+s.Value)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, error %v, expected %s", text, got, err, want)
		}
	}
	for _, text := range []string{"x@5", "x@", "x@-1ms", "x@1ps@", "x@0.5ps", "x@107000000s"} {
		got, err := ParseJob(text)
		if err == nil || !strings.HasPrefix(err.Error(), text+": no such file, nor a file and a start: time") {
			t.Errorf("%s: %+v, error %v", text, got, err)
		}
	}
}

// FuzzPlan checks that reading any text gives a plan within its limits, or an error that names the file.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		"jobs:\n- file: a.goal\n  start: 5ms\n  nodes: [0-3, 7]\n", "placement: [[0, 1], [2]]\njobs: [{file: a}, {file: b}]",
		`{"mode":"multi-job","goal_files":["a.goal","b.goal"],"pattern":"round_robin"}`, "a: &x 1\nb: *x",
		"? [a]\n: b", "{", "- -",
		"title: |\n  x\nscale-compute: 1/3\nseed: -1\nintra-bw: 1B/s\njobs: []", "<<: {a: 1}", "a: !!str 1\n--- b\n",
		"jobs:\n- file: a\n  window: 1us..2us\n  only-ranks: 1-2\n  repeat: 3\n  count: 2\n",
		`{"jobs":[{"file":"a","file":"b"}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPlan([]byte(text), "plans/p")
		var setting *param.Error
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), "plans/p:") || errors.As(err, &setting) {
				t.Errorf("%v, error %v", p, err)
			}
			return
		}
		if len(p.Jobs) == 0 || p.Machine.Nodes < 0 || p.Bandwidth < 0 {
			t.Errorf("%+v", p)
		}
		for _, j := range p.Jobs {
			if j.File == "" || j.Count < 1 || j.Count > maxCopies || j.Start < 0 || j.Edits.Repeat < 0 {
				t.Errorf("%+v", j)
			}
		}
	})
}
