package traceconv

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/ideal"
)

// mergeVectors has configurations of the ATLAHS generator's merge_goals (NAME.json), the traces that they name and the
// result (NAME.goal).
func mergeVectors(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("testdata/merge")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestReferencePlans compares with the output of merge_goals, as the reader of GOAL has both.
func TestReferencePlans(t *testing.T) {
	folder := mergeVectors(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{"packed", "round_robin", "custom_holes", "three_jobs"} {
		got := readStore(t, ok(t, "", "--plan", filepath.Join(folder, name+".json")))
		want := readStore(t, ok(t, "", filepath.Join(folder, name+".goal")))
		if len(got.Ranks) != len(want.Ranks) {
			t.Fatalf("%s: %d ranks, expected %d", name, len(got.Ranks), len(want.Ranks))
		}
		for i := range want.Ranks {
			r := got.Change(i)
			r.Job = dag.Narrow{}
			if !reflect.DeepEqual(r, want.Ranks[i]) {
				t.Errorf("%s: rank %d is %+v, expected %+v", name, i, *r, *want.Ranks[i])
			}
		}
	}
	got := readStore(t, ok(t, "", "--plan", filepath.Join(folder, "bad_readme_spelling.json")))
	want := readStore(t, ok(t, "", "--plan", filepath.Join(folder, "round_robin.json")))
	if !reflect.DeepEqual(got.Ranks, want.Ranks) {
		t.Error("round-robin is not round_robin")
	}
}

// TestReferenceRandom checks that the ranks of the jobs are those of the reference's, in another order.
func TestReferenceRandom(t *testing.T) {
	folder := mergeVectors(t)
	got := readStore(t, ok(t, "", "--plan", filepath.Join(folder, "random_seed7.json")))
	want := readStore(t, ok(t, "", filepath.Join(folder, "random_seed7.goal")))
	shapes := func(trace *dag.Trace) (shapes []string) {
		for i := range trace.Ranks {
			r := trace.Ranks[i]
			shapes = append(shapes, fmt.Sprint(r.Kind, r.Bytes, r.Tag, r.Duration, r.Deps))
		}
		slices.Sort(shapes)
		return shapes
	}
	if !slices.Equal(shapes(got), shapes(want)) || *got.Provenance[0].Seed != 1 {
		t.Errorf("the ranks are others, provenance %+v", got.Provenance)
	}
	if !complete(t, got) {
		t.Error("it does not run to its end")
	}
}

func complete(t *testing.T, trace *dag.Trace) bool {
	t.Helper()
	timeline, err := ideal.Run(trace)
	if err != nil {
		t.Fatal(err)
	}
	return timeline.Result.Complete
}

// TestReferenceTenants checks two jobs on the same nodes: each has streams and tags of its own.
func TestReferenceTenants(t *testing.T) {
	folder := mergeVectors(t)
	got := readStore(t, ok(t, "", "--plan", filepath.Join(folder, "tenant_packed.json")))
	if problems := dag.Validate(got); len(problems) > 0 || len(got.Ranks) != 3 || !complete(t, got) {
		t.Fatalf("%d ranks, problems: %v", len(got.Ranks), problems)
	}
	streams := map[[3]int32]bool{} // rank, stream and job
	for rank := range got.Ranks {
		r := got.Ranks[rank]
		for i := 1; i < r.Len()-1; i++ { // without the calcs that join the jobs
			streams[[3]int32{int32(rank), r.Stream.At(i), r.Job.At(i)}] = true
			if r.NIC.At(i) != 0 {
				t.Errorf("rank %d op %d uses interface %d", rank, i, r.NIC.At(i))
			}
		}
	}
	for s := range streams {
		if s[2] == 0 && streams[[3]int32{s[0], s[1], 1}] {
			t.Errorf("rank %d: both jobs use stream %d", s[0], s[1])
		}
	}
	for flag, want := range map[string]map[int32]int32{
		"--share-nic": {0: 0, 1: 0}, "--share-nic=true": {0: 0, 1: 0}, "--share-nic=false": {0: 0, 1: 1}, "-q": {0: 0, 1: 0},
	} {
		apart := readStore(t, ok(t, "", "--mode", "multi-tenant", "--job", folder+"/a.goal", "--job", folder+"/b.goal", flag))
		nics := map[int32]int32{}
		for i := range apart.Ranks[1].Len() {
			if kind := apart.Ranks[1].Kind[i]; kind == dag.Send || kind == dag.Recv {
				nics[apart.Ranks[1].Job.At(i)] = apart.Ranks[1].NIC.At(i)
			}
		}
		if !reflect.DeepEqual(nics, want) {
			t.Errorf("%s: the jobs use the NICs %v", flag, nics)
		}
	}
}

func TestBadReferencePlans(t *testing.T) {
	folder := mergeVectors(t)
	for name, want := range map[string]string{
		"custom_word": `bad_custom_word.json:7: pattern: expected packed, roundrobin, strided:N, random, random:SEED, ` +
			`nodes, file:PATH or a list of a list for each job, found "custom"`,
		"duplicate": "placing job b.goal: node 1 is taken already",
		"length":    "placing job a.goal: a list of 1 nodes, expected 2",
	} {
		got := clitest.Run(New, "--plan", filepath.Join(folder, "bad_"+name+".json"))
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: exit status %d, stderr %q, expected %q", name, got.Status, got.Stderr, want)
		}
	}
}

const slow = `num_ranks 2
rank 0 {
l1: calc 1000
l2: send 8b to 1 tag 5
l2 requires l1
l3: recv 8b from 1 tag 5
l3 requires l2
}
rank 1 {
l1: recv 8b from 0 tag 5
l2: calc 500
l2 requires l1
l3: send 8b to 0 tag 5
l3 requires l2
}
`

// TestPlanOrFlags checks that plans in YAML and JSON and the equivalent flags give the same, expected trace.
func TestPlanOrFlags(t *testing.T) {
	in(t, map[string]string{
		"plans/x.goal": slow, "pingpong.goal": pingpong, "nodes.txt": "3\n1\n0\n2\n",
		"plans/p.yaml": `# two tenants
title: night
mode: multi-tenant
placement: strided:2
nodes: 5
share-nic: true
unique-nic: true
intra-bw: 1GB/s
scale-compute: 1/2
jobs:
  - {file: x.goal, name: slow, count: 2, repeat: 3, scale-compute: 3}
  - file: ../pingpong.goal
    start: 2us
    nodes: [4, 0]
`,
		"plans/p.json": `{"title": "night", "mode": "multi-tenant", "placement": "strided:2", "nodes": 5, "share-nic": true,
			"unique-nic": true, "intra-bw": "1GB/s", "scale-compute": 0.5, "jobs": [{"file": "x.goal", "name": "slow", "count": 2, "repeat": 3, "scale-compute": "3"},
			{"file": "../pingpong.goal", "start": "2us", "nodes": "4,0"}]}`,
	})
	flags := strings.Fields("--mode multi-tenant --placement strided:2 --nodes 5 --share-nic --unique-nic --intra-bw 1GB/s --scale-compute 1/2 " +
		"--job plans/x.goal,name=slow,count=2,repeat=3,scale-compute=3 --job pingpong.goal@2us,nodes=4,0 --title night")
	want := readStore(t, ok(t, "", flags...))
	for _, args := range [][]string{{"--plan", "plans/p.yaml"}, {"--plan", "plans/p.json"}} {
		got := readStore(t, ok(t, "", args...))
		if !reflect.DeepEqual(got.Ranks, want.Ranks) || !slices.Equal(got.Jobs, want.Jobs) || got.Title != want.Title {
			t.Errorf("%q differs", args)
		}
		p := got.Provenance[0]
		var inputs []string
		for _, input := range p.Inputs {
			inputs = append(inputs, input.Name)
		}
		if !slices.Equal(inputs, []string{filepath.Base(args[1]), "x.goal", "pingpong.goal"}) || p.Seed != nil ||
			p.Inputs[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(content(t, args[1])))) {
			t.Errorf("the provenance is %+v", p)
		}
	}
	ok(t, "", "plans/x.goal", "-o", "x.parquet")
	twice := readStore(t, ok(t, "", "--job", "x.parquet,repeat=2", "--job", "x.parquet", "--job", "x.parquet,count=2"))
	if len(twice.Provenance) != 2 {
		t.Errorf("the provenance of a trace that is several jobs is there several times: %+v", twice.Provenance)
	}
	if problems := dag.Validate(want); len(problems) > 0 || len(want.Ranks) != 5 || !complete(t, want) ||
		!slices.Equal(want.Jobs, []string{"slow", "slow#2", "pingpong.goal"}) {
		t.Errorf("%d ranks, jobs %q, problems %v", len(want.Ranks), want.Jobs, problems)
	}
	timeline, err := ideal.Run(want)
	if err != nil || timeline.Makespan() != 3*1500*dag.Nanosecond*3/2 {
		t.Errorf("makespan %v, error %v", timeline.Makespan(), err)
	}
	placed := readStore(t, ok(t, "", "--job", "plans/x.goal,count=2", "--placement", "file:nodes.txt",
		"--one-rank-per-node=false"))
	if !slices.Equal(placed.Nodes, []int32{3, 1, 0, 2}) || len(placed.Ranks) != 4 {
		t.Errorf("by a file the jobs are on %v", placed.Nodes)
	}
	random := readStore(t, ok(t, "", "pingpong.goal", "--placement", "random", "--seed", "3", "--nodes", "9"))
	again := readStore(t, ok(t, "", "--job", "pingpong.goal", "--placement", "random:3", "--nodes", "9"))
	if !reflect.DeepEqual(random.Ranks, again.Ranks) || *random.Provenance[0].Seed != 3 || *again.Provenance[0].Seed != 3 {
		t.Error("random:3 is not random with --seed 3")
	}
}

// TestPlanSideBySide checks that a plan without nodes keeps the ranks.
func TestPlanSideBySide(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Meta().Nodes = []int32{0, 0}
	b.Meta().Attrs = `{"x":1}`
	for rank := range 2 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 8})
	}
	in(t, map[string]string{"high.parquet": asStore(t, b.Trace()), "pingpong.goal": pingpong})
	got := readStore(t, ok(t, "", "--job", "high.parquet", "--job", "pingpong.goal", "--job", "high.parquet"))
	if !slices.Equal(got.Nodes, []int32{0, 0, 1, 2, 3, 3}) || got.Attrs != `{"jobs":[{"x":1},null,{"x":1}]}` ||
		got.Ranks[5].Comm.At(0) != 3 {
		t.Errorf("nodes %v, attributes %s, communicators %v", got.Nodes, got.Attrs, got.Comms)
	}
	placed := readStore(t, ok(t, "", "high.parquet", "--job", "high.parquet", "--placement", "round-robin",
		"--nodes", "4"))
	if !slices.Equal(placed.Nodes, []int32{0, 0, 1, 1}) {
		t.Errorf("nodes %v", placed.Nodes)
	}
	joined := readStore(t, ok(t, "", "high.parquet", "--job", "high.parquet", "--one-rank-per-node",
		"--lower", "collectives"))
	if len(joined.Ranks) != 2 || !complete(t, joined) || joined.Ranks[1].Job.At(1) != 1 {
		t.Errorf("%d ranks", len(joined.Ranks))
	}
	high := clitest.Run(New, "high.parquet", "--one-rank-per-node")
	if high.Status != 1 || !strings.Contains(high.Stderr, "the trace has collectives") {
		t.Errorf("exit status %d, %s", high.Status, high.Stderr)
	}
}

// TestEdits checks edits of one trace, and of each of several traces.
func TestEdits(t *testing.T) {
	in(t, map[string]string{"x.goal": slow, "y.goal": pingpong})
	makespan := func(text string) dag.Time {
		timeline, err := ideal.Run(readStore(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return timeline.Makespan() / dag.Nanosecond
	}
	for _, c := range []struct {
		args string
		want dag.Time
	}{
		{"", 1500}, {"--repeat 4", 6000}, {"--scale-compute 0.5", 750}, {"--scale-compute 1/3 --repeat 3", 1500},
		{"--scale-compute 0", 0}, {"--job x.goal@7us", 8500},
		{"--job x.goal@7us --start-calc", 8500}, {"x.goal --job x.goal@1us,repeat=2 --start-calc --mode multi-tenant", 4000},
		{"--job x.goal,repeat=2,scale-compute=3 --scale-compute 2", 18000},
	} {
		args := strings.Fields(c.args)
		if !strings.Contains(c.args, "--job") {
			args = append(args, "x.goal")
		}
		if got := makespan(ok(t, "", args...)); got != c.want {
			t.Errorf("%s: makespan %dns, expected %dns", c.args, got, c.want)
		}
	}
	offset := clitest.Run(New, "--to", "goal", "--job", "x.goal@7us", "--start-calc", "-q").Stdout
	timeline, err := ideal.Run(readStore(t, ok(t, offset, "--from", "goal")))
	if err != nil || timeline.Makespan() != 8500*dag.Nanosecond {
		t.Errorf("in GOAL the makespan is %v, error %v", timeline.Makespan(), err)
	}
	kept := clitest.Run(New, "--only-ranks", "1", "x.goal")
	if kept.Status != 0 || makespan(kept.Stdout) != 500 || kept.Stderr !=
		"traceconv: x.goal: removed: 1 rank, 3 ops of other ranks, 2 sends and receives whose partner was removed\n" {
		t.Errorf("exit status %d, %s", kept.Status, kept.Stderr)
	}
	ok(t, "", "-q", "-o", "out/", "--repeat", "2", "x.goal", "y.goal")
	for _, name := range []string{"x", "y"} {
		if got := readStore(t, content(t, "out/"+name+".parquet")); got.Ranks[0].Len()%2 > 0 || got.Title != "" {
			t.Errorf("%s has %d ops on rank 0", name, got.Ranks[0].Len())
		}
	}
	if got := ok(t, "", "--repeat", "1", "x.goal", "--to", "goal"); got != ok(t, "", "x.goal", "--to", "goal") {
		t.Error("once is not the same")
	}
	released := dag.NewBuilder(1)
	for i := range dag.Time(10) {
		released.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Release: i * dag.Microsecond})
	}
	if err := os.WriteFile("r.parquet", []byte(asStore(t, released.Trace())), 0o666); err != nil {
		t.Fatal(err)
	}
	window := clitest.Run(New, "--window", "2us..5us", "r.parquet")
	if got := readStore(t, window.Stdout); got.Ops() != 3 || got.Ranks[0].Release.At(2) != 2*dag.Microsecond ||
		window.Stderr != "traceconv: r.parquet: removed: 7 ops outside the window\n" {
		t.Errorf("%+v, %s", got.Ranks[0], window.Stderr)
	}
}

func TestBadPlans(t *testing.T) {
	in(t, map[string]string{"x.goal": slow, "y.goal": pingpong, "n.txt": "0\n1\nx\n", "short.txt": "0\n1\n",
		"x,2.goal": slow, "no.yaml": "jobs: []\n", "doc.yaml": "jobs: [{file: x.goal}]\n---\na: 1\n"})
	plan := func(text string) string { return "plan\n" + text }
	for _, c := range []struct {
		args   string // flags, or a plan
		status int
		want   string
	}{
		{"--plan none.yaml", 1, "none.yaml: no such file"},
		{"--plan no.yaml", 1, "no.yaml:1: jobs: expected a list of jobs, found a list"},
		{"--plan doc.yaml", 1, "doc.yaml:3: expected one document, found a second"},
		{"--plan no.yaml x.goal", 2, "--plan excludes inputs, jobs and their flags"},
		{"--plan no.yaml --repeat 2", 2, "--plan excludes inputs, jobs and their flags"},
		{"--job x.goal --plan no.yaml", 2, "--plan excludes inputs, jobs and their flags"},
		{"--job none.goal", 1, "none.goal: no such file"},
		{"--job x.goal@soon", 2, "--job x.goal@soon: no such file, nor a file and a start"},
		{"--job x.goal,colour=red", 2,
			`--job: key: expected one of file, name, from, start, count, nodes, placement, window, only-ranks`},
		{"--job x.goal,repeat=0", 2, `--job: repeat: expected a whole number from 1 to 2147483647, found "0"`},
		{"--job x.goal,repeat=2,repeat=3", 2, `--job: repeat: expected the key once, found it again`},
		{"--job x.goal@1us,start=2us", 2, `--job: start: expected the key once, found it again`},
		{"--job x.goal --job y.goal --repeat 2", 2, "--repeat: name the job that it applies to, as in --job FILE,repeat=2"},
		{"x.goal y.goal --job x.goal", 2, "2 inputs in addition to --job"},
		{"--job x.goal -o out/", 2, "a plan makes one trace"},
		{"--job - --job -", 2, "standard input (-) can be read only once"},
		{"--scale-compute -1 x.goal", 2, `--scale-compute: expected a factor such as 0.5, 2 or 1/3, found "-1"`},
		{"--scale-compute 1/0 x.goal", 2, `--scale-compute: expected a factor such as 0.5, 2 or 1/3, found "1/0"`},
		{"--scale-compute 1e99 x.goal", 2, `--scale-compute: expected a less extreme factor`},
		{"--scale-compute 9e18 x.goal", 1, "x.goal: scale-compute: rank 0: op 0: duration 1us times 9000000000000000000/1 exceeds"},
		{"--window 5..6 x.goal", 2, `--window: expected FROM..TO such as 1ms..2.5ms, 1ms.. or ..2ms, found "5..6"`},
		{"--window 5us..5us x.goal", 2, `--window: expected FROM..TO`},
		{"--window 5us..6us x.goal", 1, `x.goal: window: no op has a measured time or a release time`},
		{"--only-ranks 1-0 x.goal", 2, `--only-ranks: expected numbers such as 3 or 0-7,12, found "1-0"`},
		{"--only-ranks 0-2 x.goal", 1, "x.goal: only-ranks: no rank 2 in a trace of 2 ranks"},
		{"--job x.goal@1us --start-calc --share-streams", 2, "--start-calc: expected streams that are not shared"},
		{"--only-ranks 0-1,1 x.goal", 1, "x.goal: only-ranks: 3 ranks to keep, but the trace has 2"},
		{"--placement custom x.goal", 2,
			`--placement: expected packed, roundrobin, strided:N, random, random:SEED, nodes, file:PATH`},
		{"--placement file:n.txt x.goal", 1, `n.txt:3: expected the number of a node`},
		{"--placement file:short.txt x.goal --job y.goal", 1,
			`short.txt:3: expected 4 lines, one for each node of the jobs, found 2`},
		{"--nodes 1 x.goal", 1, "x.goal: placing job x.goal: 2 nodes, but 1 of 1 are free"},
		{"--nodes 0 x.goal", 2, "--nodes: expected a whole number from 1 to 2147483647"},
		{"--mode shared x.goal", 2, `--mode: expected multi-job or multi-tenant, found "shared"`},
		{"--mode multi-tenant --placement round-robin x.goal", 1,
			"round robin over whole nodes needs jobs that do not share nodes"},
		{"--job x.goal,nodes=0-2", 1, "job x.goal: a list of 3 nodes for 2 ranks"},
		{"--job x.goal,nodes=0,9999999", 1, "x.goal: 2 ranks, one of them on node 9999999, expected nodes of 0..65663"},
		{"--job x.goal,count=1048576 --job y.goal,count=1048576 --job x.goal", 1,
			"the jobs up to x.goal have more than 4194304 ranks"},
		{plan(""), 1, "p:1: expected a mapping, found nothing"},
		{plan("- a\n"), 1, "p:1: plan: expected a mapping, found a list"},
		{plan("jobs:\n  - x.goal\n"), 1, `p:2: jobs: expected a mapping, found "x.goal"`},
		{plan("jobs:\n  - name: a\n"), 1, `p:2: jobs: file: expected the name of a trace, found none`},
		{plan("\n\nnode: 5\njobs: [{file: x.goal}]\n"), 1,
			`p:3: key: expected one of title, mode, placement, nodes, seed,`},
		{plan("title: x\ntitle: y\njobs: [{file: x.goal}]\n"), 1, `p:2:`},
		{plan("nodes: many\njobs: [{file: x.goal}]\n"), 1,
			`p:1: nodes: expected a whole number from 1 to 2147483647, found "many"`},
		{plan("nodes: \"5\"\njobs: [{file: x.goal}]\n"), 1,
			`p:1: nodes: expected a whole number from 1 to 2147483647, found "5"`},
		{plan("nodes: [5]\njobs: [{file: x.goal}]\n"), 1,
			`p:1: nodes: expected a whole number from 1 to 2147483647, found a list`},
		{plan("seed: 0.5\njobs: [{file: x.goal}]\n"), 1, `p:1: seed: expected a whole number, found "0.5"`},
		{plan("seed: 5\nplacement: random:3\njobs: [{file: x.goal}]\n"), 1,
			`p:1: seed: expected one seed, found one of the placement, too`},
		{plan("share-nic: 1\njobs: [{file: x.goal}]\n"), 1, `p:1: share-nic: expected true or false, found 1`},
		{plan("title: ~\njobs: [{file: x.goal}]\n"), 1, `p:1: title: expected a text, found nothing`},
		{plan("jobs:\n- file: x.goal\n  start: 5\n"), 1, `p:3: jobs: start: time: expected a number with unit`},
		{plan("jobs:\n- file: x.goal\n  window: [1, 2]\n"), 1,
			`p:3: jobs: window: expected a number or a text, found a list`},
		{plan("jobs:\n- file: x.goal\n  only-ranks: []\n"), 1,
			`p:3: jobs: only-ranks: expected at least one number, found a list`},
		{plan("jobs:\n- file: &a x.goal\n- file: *a\n"), 1,
			`p:2: expected a plain value, a list or a mapping, found anchor`},
		{plan("jobs:\n- file: none.goal\n"), 1, `none.goal: no such file`},
		{plan("placement: [[0, 1], 5]\njobs: [{file: x.goal}]\n"), 1, `p:1: placement: expected a list of nodes, found 5`},
		{plan("placement: [[0, 1]]\njobs:\n- file: x.goal\n  nodes: 1\n"), 1,
			`placement: expected lists there or at the jobs, found both`},
		{plan("placement: [[0-4294967295]]\njobs: [{file: x.goal}]\n"), 1,
			`expected numbers such as 3 or 0-7,12, found "0-4294967295"`},
		{plan("placement: [[0-2147483647]]\njobs: [{file: x.goal}]\n"), 1,
			`placement: expected at most 4194304 nodes, found 2147483648`},
		{plan("placement: [[0-2999999], [0-2999999]]\njobs: [{file: x.goal}]\n"), 1,
			`p:1: placement: expected at most 4194304 nodes, found 6000000`},
		{plan("a: [1\n"), 1, `p:1: `},
		{plan("{\"jobs\": [\n{\"file\": \"x.goal\",}]}"), 1, `p:2: expected JSON, found`},
		{plan("{\"jobs\": [\n{\"file\": \"x.goal\"}]} 5"), 1, `p:2: expected the end of the file, found more`},
		{plan("{\"jobs\": [\n{\"file\""), 1, `p:2: expected JSON, found the end of the file`},
		{plan("{\"jobs\": [\n\n{\"file\": 5}]}"), 1, `p:3: jobs: file: expected a text, found 5`},
		{plan("{\"a\":" + strings.Repeat("[", 20)), 1, `p:1: expected at most 16 levels, found more`},
		{plan("goal_files: [x.goal]\nmode: multi-job\n"), 1,
			`p:1: pattern: expected the key beside goal_files, found none`},
		{plan("goal_files: x.goal\nmode: multi-job\npattern: packed\n"), 1,
			`p:1: goal_files: expected a list of files, found "x.goal"`},
		{plan("goal_files: [x.goal]\nmode: multi\npattern: packed\n"), 1,
			`p:2: mode: expected multi-job or multi-tenant, found "multi"`},
	} {
		args := strings.Fields(c.args)
		if text, isPlan := strings.CutPrefix(c.args, "plan\n"); isPlan {
			if err := os.WriteFile("p", []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			args = []string{"--plan", "p"}
		}
		got := clitest.Run(New, args...)
		if got.Status != c.status || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%.200s: exit status %d, stderr %q, expected %d, %q", c.args, got.Status, got.Stderr, c.status, c.want)
		}
	}
	got := readStore(t, ok(t, "", "--job", "x,2.goal", "--job", "x,2.goal,name=z"))
	if len(got.Ranks) != 4 ||
		!slices.Equal(got.Jobs, []string{"x,2.goal", "z"}) {
		t.Errorf("of names with commas: %d ranks, jobs %q", len(got.Ranks), got.Jobs)
	}
}

// TestPlanFromPipe reads a plan, and then a trace, from standard input.
func TestPlanFromPipe(t *testing.T) {
	in(t, map[string]string{"x.goal": slow})
	plan, err := json.Marshal(map[string]any{"jobs": []map[string]any{{"file": "x.goal", "count": 3}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := readStore(t, ok(t, string(plan), "--plan", "-")); len(got.Jobs) != 3 {
		t.Errorf("jobs %q", got.Jobs)
	}
	got := readStore(t, ok(t, slow, "--job", "-@1us", "--job", "x.goal"))
	if !slices.Equal(got.Jobs, []string{"stdin", "x.goal"}) {
		t.Errorf("jobs %q", got.Jobs)
	}
	both := clitest.Session{Stdin: strings.NewReader(`{"jobs":[{"file":"-"}]}`)}.Run(New, "--plan", "-")
	if both.Status != 2 || !strings.Contains(both.Stderr, "standard input (-) can be read only once") {
		t.Errorf("exit status %d, %s", both.Status, both.Stderr)
	}
}

// TestTenantsInGOAL checks that jobs with collectives on shared nodes share NICs in GOAL, which has no nodes.
func TestTenantsInGOAL(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20})
	}
	in(t, map[string]string{"c.parquet": asStore(t, b.Trace())})
	for flags, ranks := range map[string]int{"": 4, "--one-rank-per-node": 4, "--one-rank-per-node=false": 8} {
		args := append([]string{"--mode", "multi-tenant", "--job", "c.parquet,count=2", "--lower", "collectives", "--to",
			"goal"}, strings.Fields(flags)...)
		r := clitest.Run(New, args...)
		got := readStore(t, ok(t, r.Stdout, "--from", "goal"))
		if len(got.Ranks) != ranks || r.Status != 0 {
			t.Errorf("%s: %d ranks, expected %d, %s", flags, len(got.Ranks), ranks, r.Stderr)
		}
		if joined := strings.Contains(r.Stderr, "the ranks of each node are joined"); joined != (flags == "") {
			t.Errorf("%s: %s", flags, r.Stderr)
		}
	}
}
