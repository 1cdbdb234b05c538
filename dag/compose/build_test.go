package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// buildEnv opens traces by name and counts how often.
type buildEnv struct {
	traces map[string]*dag.Trace
	opened []string
	notes  []string
}

func (e *buildEnv) env() Env {
	note := func(format string, args ...any) { e.notes = append(e.notes, fmt.Sprintf(format, args...)) }
	return Env{Notes: Notes{Info: note, Warn: note}, Open: func(file, format string) (*Opened, error) {
		e.opened = append(e.opened, file+format)
		t := e.traces[file]
		if t == nil {
			return nil, errors.New(file + " is not there")
		}
		return &Opened{Trace: t, Name: "in/" + file, Inputs: []dag.Input{{Name: file}}}, nil
	}}
}

// reduced returns a trace with an allreduce on the given number of ranks.
func reduced(ranks int, nodes ...int32) *dag.Trace {
	b := dag.NewBuilder(ranks)
	b.Meta().Nodes = nodes
	for rank := range ranks {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 8})
	}
	return b.Trace()
}

// TestBuild checks the nodes, ranks and names that plans give.
func TestBuild(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("nodes", []byte("3\n1\n0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	traces := map[string]*dag.Trace{"a": dag.NewBuilder(2).Trace(), "b": dag.NewBuilder(1).Trace(), "c": reduced(2, 0, 0)}
	lower := func(s dag.Source) (dag.Source, error) {
		return collective.LowerSource(context.Background(), s, collective.Choice{})
	}
	for _, c := range []struct {
		settings, jobs string // "KEY=VALUE ..."; those of jobs with | between them
		lower          bool
		nodes          []int32 // nil: none
		ranks          int
		names          string
	}{
		{"", "file=a|file=b", false, nil, 3, "a b"},
		{"placement=nodes", "file=a|file=b", false, nil, 3, "a b"},
		{"", "file=a count=2|file=b name=x", false, nil, 5, "a a#2 x"},
		{"placement=file:nodes", "file=a|file=b", false, nil, 4, "a b"},
		{"placement=file:nodes one-rank-per-node=false", "file=a|file=b", false, []int32{3, 1, 0}, 3, "a b"},
		{"one-rank-per-node=false", "file=a|file=b placement=file:nodes", false, nil, 0, ""},
		{"one-rank-per-node=false nodes=9", "file=a nodes=7,2|file=b placement=strided:4", false, []int32{7, 2, 0}, 3, "a b"},
		{"one-rank-per-node=false", "file=a placement=rr|file=b placement=random:3|file=b", false, []int32{1, 2, 3, 0}, 4,
			"a b b#2"},
		{"cores-per-node=2 one-rank-per-node=false", "file=a|file=b|file=c", false, []int32{0, 0, 1, 1, 2}, 5, "a b c"},
		{"cores-per-node=2 placement=roundrobin one-rank-per-node=false", "file=a|file=b", false, []int32{0, 1, 0}, 3, "a b"},
		{"mode=multi-tenant", "file=c|file=a", false, []int32{0, 0, 0, 1}, 4, "c a"},
		{"mode=multi-tenant one-rank-per-node=true", "file=c|file=a", true, nil, 2, "c a"},
		{"mode=multi-tenant one-rank-per-node=true", "file=c|file=a", false, nil, 0, ""},
	} {
		var jobs [][]Setting
		for job := range strings.SplitSeq(c.jobs, "|") {
			jobs = append(jobs, settings(job))
		}
		plan, err := NewPlan(settings(c.settings), jobs)
		if err != nil {
			t.Fatal(err)
		}
		e := &buildEnv{traces: traces}
		env := e.env()
		if c.lower {
			env.Lower = lower
		}
		built, err := Build(plan, env)
		if c.ranks == 0 {
			if err == nil {
				t.Errorf("%s, %s: no error", c.settings, c.jobs)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, %s: %v", c.settings, c.jobs, err)
			continue
		}
		trace, err := dag.ReadAll(built.Source)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i, part := range built.Parts {
			names = append(names, part.Name)
			if i > 0 && part.FirstRank != built.Parts[i-1].FirstRank+built.Parts[i-1].Ranks {
				t.Errorf("%s, %s: parts %+v", c.settings, c.jobs, built.Parts)
			}
		}
		if !slices.Equal(trace.Nodes, c.nodes) || len(trace.Ranks) != c.ranks || strings.Join(trace.Jobs, " ") != c.names ||
			names != nil && !slices.Equal(names, trace.Jobs) {
			t.Errorf("%s, %s: nodes %v, %d ranks, jobs %q, parts %q", c.settings, c.jobs, trace.Nodes, len(trace.Ranks),
				trace.Jobs, names)
		}
		if len(e.opened) != len(built.Inputs) || len(e.opened) != len(plan.Files()) {
			t.Errorf("%s, %s: opened %q, inputs %v", c.settings, c.jobs, e.opened, built.Inputs)
		}
	}
}

// settings parses "KEY=VALUE ...".
func settings(text string) (list []Setting) {
	for _, part := range strings.Fields(text) {
		key, value, _ := strings.Cut(part, "=")
		list = append(list, Setting{key, value})
	}
	return list
}

// TestBuildSeed checks the seed that is noted, and that a placement's own seed comes first.
func TestBuildSeed(t *testing.T) {
	nodes := func(placement string, seed *int64) ([]int32, *int64) {
		plan, err := NewPlan([]Setting{{"placement", placement}, {"one-rank-per-node", "false"}}, [][]Setting{{{"file", "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		plan.Seed = seed
		built, err := Build(plan, (&buildEnv{traces: map[string]*dag.Trace{"a": dag.NewBuilder(50).Trace()}}).env())
		if err != nil {
			t.Fatal(err)
		}
		return built.Merged.Nodes, built.Seed
	}
	five, seven := int64(5), int64(7)
	own, seed := nodes("random:5", &seven)
	plan, planSeed := nodes("random", &five)
	if !reflect.DeepEqual(own, plan) || *seed != 5 || *planSeed != 5 {
		t.Errorf("random:5 gives %v with seed %d, random with seed 5 %v with seed %d", own, *seed, plan, *planSeed)
	}
	one, seed := nodes("random", nil)
	if reflect.DeepEqual(one, plan) || *seed != 1 {
		t.Errorf("without a seed %v, seed %d", one, *seed)
	}
	if _, seed := nodes("packed", &five); seed != nil {
		t.Errorf("packed has the seed %d", *seed)
	}
}

func TestBuildErrors(t *testing.T) {
	job := func(file string) PlanJob { return PlanJob{File: file, Count: 1} }
	traces := map[string]*dag.Trace{"a": dag.NewBuilder(2).Trace(), "c": reduced(2)}
	for _, c := range []struct {
		plan Plan
		want string
	}{
		{Plan{Jobs: []PlanJob{job("none")}}, "none is not there"},
		{Plan{Jobs: []PlanJob{job("a"), job("c")}, Placed: true, Lists: [][]int32{{1, 2}}},
			"a + c: lists of nodes for 1 jobs, expected 2"},
		{Plan{Jobs: []PlanJob{job("a")}, Placed: true, Placement: given(1)}, "a: a list of 1 nodes for all jobs, expected 2"},
		{Plan{Jobs: []PlanJob{job("a")}, Placed: true, Machine: Machine{Nodes: 1}},
			"a: placing job a: 2 nodes, but 1 of 1 are free"},
		{Plan{Jobs: []PlanJob{{File: "a", Count: 1 << 22}}}, "the jobs up to a have more than 4194304 ranks"},
		{Plan{Jobs: []PlanJob{{File: "a", Count: 1, Edits: Edits{Window: &Span{0, 1}}}}}, "a: window: no op has a measured time"},
		{Plan{Jobs: []PlanJob{{File: "a", Count: 1, Start: -1}}}, "a: job a: starts at -1ps"},
	} {
		built, err := Build(&c.plan, (&buildEnv{traces: traces}).env())
		if err == nil || built != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, expected %q", c.plan, err, c.want)
		}
	}
	env := (&buildEnv{traces: traces}).env()
	env.Lower = func(dag.Source) (dag.Source, error) { return nil, errors.New("not lowered") }
	if _, err := Build(&Plan{Jobs: []PlanJob{job("c")}}, env); err == nil || err.Error() != "not lowered" {
		t.Errorf("error %v", err)
	}
}

// TestNotes checks messages about edits, with and without functions for them.
func TestNotes(t *testing.T) {
	plan, err := NewPlan([]Setting{{"mode", "multi-tenant"}}, [][]Setting{settings("file=c only-ranks=0")})
	if err != nil {
		t.Fatal(err)
	}
	e := &buildEnv{traces: map[string]*dag.Trace{"c": reduced(3)}}
	if _, err := Build(plan, e.env()); err != nil {
		t.Fatal(err)
	}
	want := []string{"c: removed: 2 ranks, 2 ops of other ranks", "c: collectives with fewer ranks than before: 1 ops",
		"c: jobs keep separate ranks on shared nodes, because the trace has collectives or jobs with several ranks per node: " +
			"set one-rank-per-node to join them"}
	if !slices.Equal(e.notes, want) {
		t.Errorf("notes %q, expected %q", e.notes, want)
	}
	if _, err := Build(plan, Env{Open: e.env().Open}); err != nil {
		t.Error(err)
	}
}

func TestPlanSingle(t *testing.T) {
	for text, want := range map[string]bool{
		"file=a": true, "file=a repeat=1": true, "file=a count=1": true, "file=a start=0": true, "file=a start=1us": false,
		"file=a count=2": false, "file=a repeat=2": false, "file=a nodes=3": false, "file=a scale-compute=1": false,
	} {
		plan, err := NewPlan(nil, [][]Setting{settings(text)})
		if err != nil {
			t.Fatal(err)
		}
		if file, ok := plan.Single(); file != "a" || ok != want {
			t.Errorf("%s: %s, %v, expected %v", text, file, ok, want)
		}
	}
}
