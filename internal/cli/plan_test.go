package cli

import (
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
)

// readPlan reads a plan in the folder called plans.
func readPlan(text string) (*plan, error) {
	tree, err := parsePlan([]byte(text), "plans/p")
	if err != nil {
		return nil, err
	}
	return decodePlan(&tree, &planDecoder{file: "plans/p"})
}

func TestReadPlan(t *testing.T) {
	yes, no, seven := true, false, int64(7)
	half := big.NewRat(1, 2)
	job := func(file string) planJob { return planJob{file: file, count: 1} }
	for _, c := range []struct {
		text string
		want plan
	}{
		{"jobs:\n- file: a\n", plan{jobs: []planJob{job("plans/a")}}},
		{"# with all keys\ntitle: t\nmode: multi-tenant\nplacement: random\nnodes: 12\nseed: 7\none-rank-per-node: false\n" +
			"share-nic: true\nshare-streams: true\nunique-nic: true\nintra-bw: 25GB/s\nscale-compute: 0.5\njobs:\n" +
			"- file: /b/c\n  name: x\n  from: goal\n  start: 1.5us\n  count: 3\n  nodes: [0-2, 7, \"5,6\"]\n  window: 1us..\n" +
			"  only-ranks: 0-7,12\n  repeat: 9\n  scale-compute: 1/2\n- file: '-'\n  window: ..2s\n",
			plan{title: "t", placed: true, perNode: &no, seed: &seven, shareNIC: true, uniqueNIC: true, streams: true,
				bandwidth: 25e9, scale: half,
				layout: compose.Layout{Pattern: compose.Shuffled, Nodes: 12, Shared: true},
				jobs: []planJob{
					{file: "/b/c", name: "x", from: "goal", start: 1500 * dag.Nanosecond, count: 3,
						nodes: units.Numbers{{First: 0, Last: 2}, {First: 7, Last: 7}, {First: 5, Last: 5}, {First: 6, Last: 6}},
						edits: edits{window: &timeWindow{dag.Microsecond, dag.MaxTime},
							only: units.Numbers{{First: 0, Last: 7}, {First: 12, Last: 12}}, repeat: 9,
							scale: half}},
					{file: "-", count: 1, edits: edits{window: &timeWindow{0, 2 * dag.Second}}},
				}}},
		{"start-calc: true\njobs: [{file: a}]\n", plan{jobs: []planJob{job("plans/a")}, startCalc: true}},
		{"placement: strided:3\njobs: [{file: a}]\n", plan{jobs: []planJob{job("plans/a")}, placed: true,
			layout: compose.Layout{Pattern: compose.Strided, Stride: 3}}},
		{"placement: file:n\njobs: [{file: a}]\n", plan{jobs: []planJob{job("plans/a")}, placed: true, nodesPath: "plans/n"}},
		{"placement: random:7\njobs: [{file: a}]\n", plan{jobs: []planJob{job("plans/a")}, placed: true, seed: &seven,
			layout: compose.Layout{Pattern: compose.Shuffled}}},
		{"{\"mode\": \"multi-job\", \"goal_files\": [\"a\", \"../b\"],\n\"pattern\": [[0, 5], [\"2-3\"]], " +
			"\"share-nic\": false}",
			plan{jobs: []planJob{job("plans/a"), job("b")}, placed: true, perNode: &yes, lists: [][]int32{{0, 5}, {2, 3}}}},
		{"mode: multi-job\ngoal_files: [a]\npattern: round_robin\n", plan{jobs: []planJob{job("plans/a")}, placed: true,
			perNode: &yes, layout: compose.Layout{Pattern: compose.Dealt}}},
	} {
		if c.want.bandwidth == 0 {
			c.want.bandwidth = defaultBandwidth
		}
		got, err := readPlan(c.text)
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
		`{"a":` + strings.Repeat(`{"a":`, 1<<20):                 "plans/p:1: expected at most 16 levels, found more",
		"{\"jobs\":[\n" + strings.Repeat("{},\n", 9) + "{\"file": "plans/p:11: expected JSON, found the end of the file",
	} {
		if _, err := readPlan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, expected %q", text, err, want)
		}
	}
	long := `{"goal_files":["a"],"mode":"multi-job","pattern":[[` + strings.Repeat("1,", 1<<17) + "2]]}"
	if p, err := readPlan(long); err != nil || len(p.lists[0]) != 1<<17+1 {
		t.Errorf("a long list of JSON: error %v", err)
	}
}

func TestSplitJob(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string][]string{
		"a":                              {"a"},
		"a@5ms,name=x,nodes=0-2,7,5":     {"a@5ms", "name=x", "nodes=0-2,7,5"},
		"a,b,c=1,d":                      {"a,b", "c=1,d"},
		"a,name=x=y":                     {"a", "name=x=y"},
		"a,name=":                        {"a", "name="},
		"-@1us,only-ranks=3,window=..2s": {"-@1us", "only-ranks=3", "window=..2s"},
	} {
		file, members := splitJob(text)
		got := []string{file}
		for _, m := range members {
			got = append(got, m.Key+"="+m.Value.Text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, expected %q", text, got, want)
		}
	}
}

// FuzzPlan checks that what is read of any text is a plan within its limits, or an error that names the file.
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
		p, err := readPlan(text)
		var usage *usageError
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), "plans/p:") || errors.As(err, &usage) {
				t.Errorf("%v, error %v", p, err)
			}
			return
		}
		if len(p.jobs) == 0 || p.layout.Nodes < 0 || p.bandwidth < 0 {
			t.Errorf("%+v", p)
		}
		for _, j := range p.jobs {
			if j.file == "" || j.count < 1 || j.count > maxCopies || j.start < 0 || j.edits.repeat < 0 {
				t.Errorf("%+v", j)
			}
		}
	})
}
