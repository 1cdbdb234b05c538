package simulate

import (
	"bytes"
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
)

// parsedJob is an element of the jobs in the JSON result.
type parsedJob struct {
	Name      string
	FirstRank int `json:"first_rank"`
	Ranks     int
	Start     int64 `json:"start_ps"`
	Finish    int64 `json:"finish_ps"`
	Makespan  int64 `json:"makespan_ps"`
}

func parseJobs(t *testing.T, text string) []parsedJob {
	t.Helper()
	var d struct{ Jobs []parsedJob }
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return d.Jobs
}

func number(t *testing.T, n json.Number) int64 {
	t.Helper()
	i, err := n.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// withCollectives is pairs with an allreduce of all ranks at the end.
func withCollectives(ranks int) *dag.Trace {
	b := pairs(ranks)
	for r := range ranks {
		b.Rank(r).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 5000}, 1, 2)
	}
	return b.Trace()
}

// TestJobs checks that jobs that run together finish as they do alone, later by when they start: jobs of several
// formats, with equal tags and with collectives, for each form of their names.
func TestJobs(t *testing.T) {
	store, goal := storedFile(t, withCollectives(5)), vectors+"pingpong_2.goal"
	content, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	plan := filepath.Join(t.TempDir(), "plan.json")
	text := fmt.Sprintf(`{"jobs": [{"file": %q}, {"file": %q, "name": "b", "start": "2us", "count": 2}]}`, store,
		absolute(t, goal))
	if err := os.WriteFile(plan, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	alone := map[string]document{}
	for _, name := range []string{store, goal} {
		alone[name] = parse(t, clitest.Run(newCommand, "--json", name).Stdout)
	}
	type job struct {
		name, in string
		start    int64
	}
	for _, c := range []struct {
		args string // with FILE, GOAL and - for the inputs
		jobs []job
	}{
		{"FILE --trace GOAL@5ms", []job{{"x.parquet", store, 0}, {"pingpong_2.goal", goal, 5e9}}},
		{"--trace GOAL@2us --trace FILE@1.5us --trace GOAL",
			[]job{{"pingpong_2.goal", goal, 2e6}, {"x.parquet", store, 15e5}, {"pingpong_2.goal#2", goal, 0}}},
		{"--trace -@1us --trace FILE", []job{{"stdin", store, 1e6}, {"x.parquet", store, 0}}},
		{"- --trace FILE@1ps", []job{{"stdin", store, 0}, {"x.parquet", store, 1}}},
		{"--trace FILE@7ns", []job{{"x.parquet", store, 7000}}},
		{"FILE --trace FILE --mapping rr --nodes 4 --cores-per-node 3 --share-nic=false",
			[]job{{"x.parquet", store, 0}, {"x.parquet#2", store, 0}}},
		{"FILE --trace GOAL@5ms --lower collectives", []job{{"x.parquet", store, 0}, {"pingpong_2.goal", goal, 5e9}}},
		{"--job GOAL,count=2,name=a,start=3us --trace FILE",
			[]job{{"a", goal, 3e6}, {"a#2", goal, 3e6}, {"x.parquet", store, 0}}},
		{"--plan PLAN", []job{{"x.parquet", store, 0}, {"b", goal, 2e6}, {"b#2", goal, 2e6}}},
		{"--plan PLAN --lower collectives", []job{{"x.parquet", store, 0}, {"b", goal, 2e6}, {"b#2", goal, 2e6}}},
	} {
		args := strings.NewReplacer("FILE", store, "GOAL", goal, "PLAN", plan).Replace(c.args)
		session := clitest.Session{Stdin: bytes.NewReader(content)}
		r := session.Run(newCommand, append(strings.Fields(args), "--json")...)
		if r.Status != 0 || r.Stderr != "" {
			t.Errorf("%s: status %d, %s", c.args, r.Status, r.Stderr)
			continue
		}
		var finish []int64
		var jobs []parsedJob
		ops, makespan := int64(0), int64(0)
		for _, job := range c.jobs {
			one, first := alone[job.in], len(finish)
			for _, f := range one.Finish {
				finish = append(finish, number(t, f)+job.start)
			}
			end := number(t, one.Makespan) + job.start
			jobs = append(jobs, parsedJob{job.name, first, len(one.Finish), job.start, end, end - job.start})
			ops, makespan = ops+one.Ops, max(makespan, end)
		}
		got := parse(t, r.Stdout)
		var gotFinish []int64
		for _, f := range got.Finish {
			gotFinish = append(gotFinish, number(t, f))
		}
		if !slices.Equal(gotFinish, finish) || number(t, got.Makespan) != makespan || got.Ops != ops {
			t.Errorf("%s: makespan %s of %d ops, finish %v; expected %d, %d, %v", c.args, got.Makespan, got.Ops, gotFinish,
				makespan, ops, finish)
		}
		if gotJobs := parseJobs(t, r.Stdout); !reflect.DeepEqual(gotJobs, jobs) {
			t.Errorf("%s: jobs %+v, expected %+v", c.args, gotJobs, jobs)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTenants checks that a plan's jobs on the same nodes become one rank per node once their collectives are lowered.
func TestTenants(t *testing.T) {
	store, goal := storedFile(t, withCollectives(5)), absolute(t, vectors+"pingpong_2.goal")
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := fmt.Sprintf("mode: multi-tenant\none-rank-per-node: true\njobs:\n- file: %s\n- file: %s\n", store, goal)
	if err := os.WriteFile(plan, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r := clitest.Run(newCommand, "--plan", plan, "--lower", "collectives", "--json")
	got := parse(t, r.Stdout)
	jobs := parseJobs(t, r.Stdout)
	if r.Status != 0 || len(got.Finish) != 5 || len(jobs) != 2 || jobs[1].Name != "pingpong_2.goal" {
		t.Errorf("status %d, finish %v, %+v, %s", r.Status, got.Finish, jobs, r.Stderr)
	}
	r = clitest.Run(newCommand, "--plan", plan)
	want := "the trace has collectives, which cannot be joined"
	if r.Status != 1 || !strings.Contains(r.Stderr, want) {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
	r = clitest.Run(newCommand, "--plan", plan, "--nodes", "3")
	if r.Status != 2 || !strings.Contains(r.Stderr, "--plan excludes inputs, jobs and their flags") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
}

// TestOneJob checks that one trace is no job of several, by whichever flag it is named and wherever it is placed.
func TestOneJob(t *testing.T) {
	path := storedFile(t, pairs(4).Trace())
	result := func(args ...string) string {
		r := clitest.Run(newCommand, append(args, "--json")...)
		_, result, found := strings.Cut(r.Stdout, `"backend":`) // without the description of the run
		if r.Status != 0 || !found {
			t.Fatalf("%v: status %d, %s", args, r.Status, r.Stderr)
		}
		return result
	}
	want := result(path)
	for _, args := range [][]string{
		{"--trace", path}, {"--trace", path + "@0"}, {path, "--mapping", "random:1"}, {path, "--nodes", "4"},
	} {
		if got := result(args...); got != want || strings.Contains(got, "jobs") {
			t.Errorf("%v: %s, expected %s", args, got, want)
		}
	}
}

func TestJobsTable(t *testing.T) {
	r := clitest.Run(newCommand, vectors+"pingpong_2.goal", "--trace", vectors+"spec_example.bin@1ms", "-v",
		"--mapping", "linear")
	for _, want := range []string{"pingpong_2.goal + ", "4 ranks, 16 ops",
		"job               ranks  start  finish     makespan  exposed compute\n",
		"pingpong_2.goal   0..1   0s     884.176us  884.176us no compute\n",
		"spec_example.bin  2..3   1ms    1.005642ms  5.642us  93.46%\n"} {
		if !strings.Contains(squeezed(r.Stdout), squeezed(want)) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
	if !strings.Contains(r.Stderr, "placed on nodes, which the loggops backend ignores") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// squeezed returns s with every run of spaces as one.
func squeezed(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' }), " ")
}

func TestJobsSweep(t *testing.T) {
	path := storedFile(t, pairs(3).Trace())
	r := clitest.Run(newCommand, path, "--trace", path+"@1ms", "--sweep", "L=1us,2us")
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if r.Status != 0 || len(lines) != 2 {
		t.Fatalf("status %d, %s%s", r.Status, r.Stdout, r.Stderr)
	}
	for i, line := range lines {
		jobs, atFirst := parseJobs(t, line), parseJobs(t, lines[0])
		if len(jobs) != 2 || jobs[0].Makespan != jobs[1].Makespan || jobs[0].Finish != atFirst[0].Finish+int64(i)*1e6 {
			t.Errorf("line %d: %+v", i, jobs)
		}
	}
}

func TestJobsErrors(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	trace := storedFile(t, pairs(3).Trace())
	b := pairs(3)
	b.Rank(1).Add(dag.Op{Kind: dag.Send, Peer: 4})
	astray := storedFile(t, b.Trace())
	short, long, rubbish := file("short", "0\n1\n"), file("long", "0\n1\n2\n3\n"), file("rubbish", "0\nnode\n")
	together, beyond := file("together", "7\n7\n1\n"), file("beyond", "0\n5\n1\n")
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--trace " + trace + "@5", 2, "no such file, nor a file and a start: time: expected a number with unit"},
		{"--trace " + trace + "@-5ms", 2, "nor a file and a start"},
		{"--trace @5ms", 2, "an input has an empty name"},
		{"--trace - --trace -@5ms", 2, "standard input (-) can be read only once"},
		{"--trace absent@5ms", 1, "absent: no such file"},
		{trace + " --nodes 0", 2, "--nodes: expected 1 to 2147483647, found 0"},
		{trace + " --nodes -3", 2, "--nodes: expected 1 to 2147483647, found -3"},
		{trace + " --nodes 99999999999", 2, "--nodes: expected 1 to 2147483647, found 99999999999"},
		{trace + " --cores-per-node 0", 2, "--cores-per-node: expected 1 to 2147483647, found 0"},
		{trace + " --nodes 2", 1, trace + ": placing job x.parquet: 3 ranks, but 2 of the 2 cores on 2 nodes are free"},
		{trace + " --nodes 2147483647 --cores-per-node 2147483647 --mapping random:5", 0, ""},
		{trace + " --mapping fill", 2, `--mapping: expected one of packed, roundrobin, strided:N, random, random:SEED, ` +
			`nodes, file:PATH, found "fill"`},
		{trace + " --mapping random", 0, ""},
		{trace + " --mapping random:x", 2, `--mapping: expected random:SEED, where SEED is a whole number, found "random:x"`},
		{trace + " --mapping file:", 2, `expected one of packed, roundrobin`},
		{trace + " --mapping file:" + folder + "/absent", 1, folder + "/absent: no such file"},
		{trace + " --mapping file:" + folder, 1, folder + ": reading: is a directory"},
		{trace + " --mapping rr --mapping rr", 2, "--mapping: expected 1 policy, or 1 per job (1), found 2"},
		{trace + " --mapping file:" + rubbish, 1, rubbish + `:2: expected the number of a node, 0..2147483647, found "node"`},
		{trace + " --mapping file:" + short, 1, short + ":3: expected 3 lines, one for each task of job x.parquet, found 2"},
		{trace + " --mapping file:" + long, 1, long + ":4: expected 3 lines, one for each task of job x.parquet, found 4"},
		{trace + " --mapping file:" + together, 1, trace + ": placing job x.parquet: node 7 has 2 ranks, expected at most 1"},
		{trace + " --cores-per-node 2 --mapping file:" + together, 0, ""},
		{trace + " --nodes 5 --mapping file:" + beyond, 1, beyond + `:2: expected the number of a node, 0..4, found "5"`},
		{trace + " --trace " + astray, 1, "job x.parquet#2: rank 1: op 3: send with rank 4, expected 0..2"},
		{trace + " --trace " + trace + "@106d", 2, "nor a file and a start"},
		{"--model loggopsim --trace " + trace + "@1us", 1, "the loggopsim model does not support the trace's release times"},
	} {
		r := clitest.Run(newCommand, strings.Fields(c.args)...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) || (r.Stdout == "") != (c.status != 0) {
			t.Errorf("%s: status %d, stderr %q, stdout %.100q; expected %d, %q", c.args, r.Status, r.Stderr, r.Stdout,
				c.status, c.want)
		}
	}
}

// TestManyJobs checks that many jobs are no more than the sum of them.
func TestManyJobs(t *testing.T) {
	path := storedFile(t, pairs(2).Trace())
	var args []string
	for i := range 300 {
		args = append(args, "--trace", fmt.Sprintf("%s@%dus", path, i))
	}
	r := clitest.Run(newCommand, append(args, "--json")...)
	jobs := parseJobs(t, r.Stdout)
	if r.Status != 0 || len(jobs) != 300 {
		t.Fatalf("status %d, %d jobs, %s", r.Status, len(jobs), r.Stderr)
	}
	for i, job := range jobs {
		if job.Start != int64(i)*1e6 || job.Makespan != jobs[0].Makespan || job.FirstRank != 2*i {
			t.Fatalf("job %d: %+v, the first %+v", i, job, jobs[0])
		}
	}
}

// TestSharedNICs checks that jobs on the same nodes slow each other down, whichever way they get there, and that
// --share-nic=false gives them NICs of their own.
func TestSharedNICs(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		for m := range int64(3) {
			b.Rank(rank).Send(int32(rank+1)%4, 1<<20, m)
			b.Rank(rank).Recv(int32(rank+3)%4, 1<<20, m)
		}
	}
	name := storedFile(t, b.Trace())
	plan := func(keys string) string {
		path := filepath.Join(t.TempDir(), "plan.yaml")
		text := fmt.Sprintf("mode: multi-tenant\none-rank-per-node: false\n%sjobs: [{file: %q, count: 2}]\n", keys, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return "--plan " + path
	}
	mapped := fmt.Sprintf("%s --trace %s --nodes 4 --cores-per-node 2 --mapping ", name, name)
	for _, c := range []struct {
		args     string
		slowdown float64
	}{
		{plan(""), 2}, {plan("") + " --share-nic=false", 1}, {plan("share-nic: true\n"), 2},
		{plan("share-nic: false\n"), 1}, {mapped + "rr", 2}, {mapped + "rr --share-nic=false", 1},
		{mapped + "packed", 1}, {fmt.Sprintf("%s --trace %s", name, name), 1},
		{plan("") + " --backend packet --topology star:hosts=4,rate=100Gbps,latency=500ns", 2},
		{plan("") + " --backend packet --topology star:hosts=8,rate=100Gbps,latency=500ns --placement packed", 1},
		{plan("") + " --backend packet --topology star:hosts=8,rate=100Gbps,latency=500ns --share-nic=false", 1},
		{plan("") + " --backend flit --topology star:hosts=8", 2},
		{plan("") + " --backend flit --topology star:hosts=8 --share-nic=false", 1},
	} {
		r := clitest.Run(newCommand, append(strings.Fields(c.args), "--alone", "--json", "-q")...)
		var d struct {
			Jobs []struct {
				Slowdown float64 `json:"slowdown"`
			} `json:"jobs"`
		}
		if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil || r.Status != 0 || len(d.Jobs) != 2 {
			t.Errorf("%s: status %d, %v, %s", c.args, r.Status, err, r.Stderr)
			continue
		}
		most := 0.0
		for _, job := range d.Jobs {
			most = max(most, job.Slowdown)
		}
		if most < 0.93*c.slowdown || most > 1.05*c.slowdown {
			t.Errorf("%s: slowdowns %v, expected %v", c.args, d.Jobs, c.slowdown)
		}
	}
}

// TestJobsOnSharedNodes checks the times of jobs on 8 shared nodes: two equal all-reduces take twice as long as one, as they do
// when each node has one rank, and a job that only computes and one that communicates do not slow each other down.
func TestJobsOnSharedNodes(t *testing.T) {
	reduce, compute := dag.NewBuilder(8), dag.NewBuilder(8)
	for rank := range 8 {
		reduce.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 4 << 20})
		compute.Rank(rank).Calc(50 * dag.Millisecond)
	}
	network, busy := storedFile(t, reduce.Trace()), storedFile(t, compute.Trace())
	run := func(args string) (makespan float64, slowdowns []float64) {
		r := clitest.Run(newCommand, append(strings.Fields(args), "--lower", "collectives=ring", "--json", "-q")...)
		var d struct {
			Makespan float64 `json:"makespan_ps"`
			Jobs     []struct {
				Slowdown float64 `json:"slowdown"`
			} `json:"jobs"`
		}
		if err := json.Unmarshal([]byte(r.Stdout), &d); err != nil || r.Status != 0 {
			t.Fatalf("%s: status %d, %v, %s", args, r.Status, err, r.Stderr)
		}
		for _, job := range d.Jobs {
			slowdowns = append(slowdowns, job.Slowdown)
		}
		return d.Makespan, slowdowns
	}
	plan := func(keys, jobs string) string {
		path := filepath.Join(t.TempDir(), "plan.yaml")
		text := fmt.Sprintf("mode: multi-tenant\n%sjobs: [%s]\n", keys, jobs)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return "--plan " + path
	}
	two := fmt.Sprintf("{file: %q, count: 2}", network)
	both := fmt.Sprintf("{file: %q}, {file: %q}", network, busy)
	for _, backend := range []string{
		"--backend loggops --model strict",
		"--backend packet --topology star:hosts=8,rate=100Gbps,latency=1ns",
		"--backend flit --topology star:hosts=8",
	} {
		one, _ := run(network + " " + backend)
		twice, slowdowns := run(plan("", two) + " --alone " + backend)
		if ratio := twice / (2 * one); ratio < 0.99 || ratio > 1.01 {
			t.Errorf("%s: two jobs take %v times one, expected 2", backend, 2*ratio)
		}
		for _, slowdown := range slowdowns {
			if slowdown < 1.5 {
				t.Errorf("%s: slowdowns %v, expected about 2", backend, slowdowns)
			}
		}
		if joined, _ := run(plan("one-rank-per-node: true\n", two) + " " + backend); joined != twice {
			t.Errorf("%s: %v ps with one rank per node, %v ps side by side", backend, joined, twice)
		}
		for keys, want := range map[string]float64{"auto": twice, "true": twice, "false": one} {
			flags := " --nodes-share-nic " + keys + " "
			if keys == "false" && !strings.Contains(backend, "loggops") {
				flags += strings.Replace(backend, "hosts=8", "hosts=16", 1)
			} else {
				flags += backend
			}
			if got, _ := run(plan("", two) + flags); got < 0.99*want || got > 1.01*want {
				t.Errorf("%s: %v ps, expected %v", flags, got, want)
			}
		}
		_, slowdowns = run(plan("", both) + " --alone " + backend)
		for _, slowdown := range slowdowns {
			if slowdown < 0.99 || slowdown > 1.01 {
				t.Errorf("%s: slowdowns %v of communication and computation, expected 1", backend, slowdowns)
			}
		}
	}
}
