package compose

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// layout is a placement of all jobs, and lists of nodes for some of them.
type layout struct {
	by      Placement
	machine Machine
	given   [][]int32 // by job; nil: by
}

var shared = Machine{Shared: true}

func (l *layout) place(jobs []Job) ([]int32, error) {
	by := slices.Repeat([]Placement{l.by}, len(jobs))
	for i, nodes := range l.given {
		if nodes != nil {
			by[i] = given(nodes...)
		}
	}
	return l.machine.Place(jobs, by)
}

// on returns a job whose ranks are on the given nodes.
func on(name string, nodes ...int32) Job {
	b := dag.NewBuilder(len(nodes))
	b.Meta().Nodes = nodes
	return Job{Name: name, Trace: b.Trace()}
}

func TestPlaceNodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		jobs   []Job
		layout layout
		want   []int32
	}{
		{"packed", jobsOf(2, 3), layout{}, []int32{0, 1, 2, 3, 4}},
		{"packed on more nodes", jobsOf(2, 3), layout{machine: Machine{Nodes: 9}}, []int32{0, 1, 2, 3, 4}},
		{"packed around lists", jobsOf(2, 2, 1), layout{given: [][]int32{nil, {3, 1}, nil}}, []int32{0, 2, 3, 1, 4}},
		{"round robin", jobsOf(2, 3, 1), layout{by: rr}, []int32{0, 3, 1, 4, 5, 2}},
		{"round robin around lists", jobsOf(2, 1, 2), layout{by: rr, given: [][]int32{nil, {1}, nil}},
			[]int32{0, 3, 1, 2, 4}},
		{"strided", jobsOf(2, 3), layout{by: strided(2)}, []int32{0, 2, 4, 1, 3}},
		{"strided, more nodes", jobsOf(2, 2), layout{by: strided(3), machine: Machine{Nodes: 8}}, []int32{0, 3, 6, 1}},
		{"stride of the machine", jobsOf(3), layout{by: strided(9)}, []int32{0, 1, 2}},
		{"lists with gaps", jobsOf(2, 3), layout{given: [][]int32{{0, 5}, {2, 1, 6}}}, []int32{0, 5, 2, 1, 6}},
		{"the last node", jobsOf(1), layout{given: [][]int32{{math.MaxInt32}}}, []int32{math.MaxInt32}},
		{"ranks of a node", []Job{on("a", 7, 4, 7), on("b", 0, 1)}, layout{by: rr}, []int32{2, 0, 2, 1, 3}},
		{"no ranks", jobsOf(0, 1, 0), layout{by: rr}, []int32{0}},
		{"shared packed", jobsOf(2, 3), layout{machine: shared}, []int32{0, 1, 0, 1, 2}},
		{"shared strided", jobsOf(2, 3), layout{by: strided(2), machine: shared}, []int32{0, 2, 0, 2, 1}},
		{"nodes of the traces", []Job{on("a", 7, 4, 7), on("b", 0, 1)}, layout{by: own}, []int32{7, 4, 7, 8, 9}},
		{"nodes of the traces, shared", []Job{on("a", 1, 0, 1), on("b", 0, 1)}, layout{by: own, machine: shared},
			[]int32{1, 0, 1, 0, 1}},
		{"shared lists", jobsOf(2, 2), layout{machine: shared, given: [][]int32{{1, 3}, {3, 0}}}, []int32{1, 3, 3, 0}},
		// These fix the placements of a seed.
		{"random", jobsOf(3, 3), layout{by: random(1)}, []int32{3, 0, 2, 4, 5, 1}},
		{"shared random", jobsOf(3, 3), layout{by: random(1), machine: Machine{Shared: true, Nodes: 9}},
			[]int32{5, 6, 8, 8, 3, 6}},
	} {
		got, err := c.layout.place(c.jobs)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: nodes %v, error %v, expected %v", c.name, got, err, c.want)
		}
	}
}

func TestPlaceNodesErrors(t *testing.T) {
	wrong := on("b", 0, 1)
	wrong.Trace.Nodes = []int32{0}
	for _, c := range []struct {
		jobs   []Job
		layout layout
		want   string
	}{
		{jobsOf(2, 3), layout{machine: Machine{Nodes: 4}}, "placing job b: 3 nodes, but 2 of 4 are free"},
		{jobsOf(2, 3), layout{machine: Machine{Nodes: 4}, given: [][]int32{nil, {0, 1, 3}}},
			"placing job a: 2 nodes, but 1 of 4 are free"},
		{jobsOf(2), layout{machine: Machine{Nodes: 4}, given: [][]int32{{0, 4}}}, "placing job a: node 4, expected 0..3"},
		{jobsOf(2), layout{given: [][]int32{{0, -1}}}, "placing job a: node -1, expected 0..1"},
		{jobsOf(2, 3), layout{given: [][]int32{{0, 1}, {1, 2, 3}}}, "placing job b: node 1 is taken already"},
		{jobsOf(2), layout{machine: shared, given: [][]int32{{1, 1}}}, "placing job a: node 1 is taken already"},
		{jobsOf(2), layout{given: [][]int32{{1}}}, "placing job a: a list of 1 nodes, expected 2"},
		{jobsOf(2, 3), layout{machine: Machine{Nodes: 2, Shared: true}}, "placing job b: 3 nodes, but there are 2"},
		{jobsOf(2, 3), layout{by: rr, machine: shared}, "round robin over whole nodes needs jobs that do not share nodes"},
		{jobsOf(2), layout{by: strided(0)}, "placing job a: unknown policy 2 with stride 0"},
		{jobsOf(2), layout{by: Placement{Policy: 9}}, "placing job a: unknown policy 9 with stride 0"},
		{jobsOf(2), layout{machine: Machine{Nodes: -1}}, "-1 nodes of 0 slots, expected up to 2147483647 of each"},
		{[]Job{wrong}, layout{}, "job b: nodes of 1 ranks, expected 2"},
		{nil, layout{}, "no jobs"},
	} {
		if got, err := c.layout.place(c.jobs); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("nodes %v, error %v, expected %q", got, err, c.want)
		}
	}
}

// TestPlaceNodesIsPermutation checks that every policy gives each node of a full machine once, and that a random one
// makes every node as likely as any other.
func TestPlaceNodesIsPermutation(t *testing.T) {
	for _, l := range []Placement{packed, rr, random(5), strided(7)} {
		nodes, err := (&layout{by: l}).place(jobsOf(30, 1, 0, 49, 20))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(nodes)
		for i, node := range nodes {
			if int(node) != i || len(nodes) != 100 {
				t.Fatalf("policy %d gives %v", l.Policy, nodes)
			}
		}
	}
	var first [6]int
	const seeds = 12_000
	for seed := range int64(seeds) {
		nodes, err := (&layout{by: Placement{Policy: Random, Seed: seed}}).place(jobsOf(2, 4))
		if err != nil {
			t.Fatal(err)
		}
		first[nodes[3]]++
	}
	for node, hits := range first {
		if want := seeds / 6.0; math.Abs(float64(hits)-want) > 5*math.Sqrt(want) {
			t.Errorf("node %d was drawn %d times, expected about %.0f", node, hits, want)
		}
	}
}

// TestOnNodes checks on random jobs that each rank does the same on its node, and finishes when it does alone, and that
// the ranks between do nothing.
func TestOnNodes(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		var jobs []Job
		for i := range 1 + random.IntN(4) {
			trace := chain(random)
			if seed%2 > 0 { // of messages at the same time the one of the lower rank may come first: their times may differ
				trace = randomJob(random, true)
			}
			jobs = append(jobs, Job{strconv.Itoa(i), trace, dag.Time(random.IntN(3)) * dag.Microsecond})
		}
		nodes, err := (&layout{by: Placement{Policy: Random, Seed: int64(seed)}, machine: Machine{Nodes: 40}}).place(jobs)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := OnNodes(context.Background(), jobs, nodes)
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(merged); len(problems) > 0 {
			t.Fatalf("seed %d: problems: %v", seed, problems)
		}
		if merged.Nodes != nil || len(merged.Ranks) != int(slices.Max(nodes))+1 || len(merged.Jobs) != len(jobs) {
			t.Errorf("seed %d: nodes %v, %d ranks, jobs %q", seed, merged.Nodes, len(merged.Ranks), merged.Jobs)
		}
		all := run(t, merged)
		at, ops := 0, int64(0)
		for j, job := range jobs {
			alone := run(t, job.Trace)
			for i := range job.Trace.Ranks {
				rank := int(nodes[at])
				for k := range alone.Ops(i) {
					if got, want := all.End(rank, k), alone.End(i, k); seed%2 == 0 && got != want+job.Start {
						t.Fatalf("seed %d: job %d rank %d op %d ends at %v, alone at %v", seed, j, i, k, got, want)
					}
				}
				at++
			}
			ops += job.Trace.Ops()
		}
		if merged.Ops() != ops {
			t.Errorf("seed %d: %d ops, expected %d", seed, merged.Ops(), ops)
		}
	}
}

func TestOnNodesErrors(t *testing.T) {
	for _, c := range []struct {
		nodes []int32
		want  string
	}{
		{[]int32{0}, "nodes of 1 ranks, expected 2"},
		{[]int32{3, 3}, "several ranks are on node 3, expected one"},
		{[]int32{3, -1}, "2 ranks, one of them on node -1, expected nodes of 0..65663"},
		{[]int32{3, 65664}, "2 ranks, one of them on node 65664, expected nodes of 0..65663"},
	} {
		if got, err := OnNodes(context.Background(), jobsOf(2), c.nodes); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
	one, err := OnNodes(context.Background(), jobsOf(2), []int32{1, 4})
	if err != nil || len(one.Ranks) != 5 || !reflect.DeepEqual(one.Jobs, []string{"a"}) || one.Comms[1].Size() != 2 {
		t.Errorf("a single job becomes %+v, error %v", one, err)
	}
}

func TestSeparateNICs(t *testing.T) {
	job := func(ranks ...[]int32) Job { // of the interfaces of each op
		b := dag.NewBuilder(len(ranks))
		for rank, nics := range ranks {
			for _, nic := range nics {
				b.Rank(rank).Add(dag.Op{NIC: nic})
			}
		}
		return Job{Name: "j", Trace: b.Trace()}
	}
	jobs := []Job{job([]int32{0, 2}, nil), job([]int32{0, 300}, []int32{0}, []int32{1, 0, 1}), job([]int32{0, 1})}
	merged := mustMerge(t, jobs...)
	merged.Nodes = []int32{0, 1, 1, 0, 0, 1}
	separate, err := SeparateNICs(context.Background(), merged, jobs)
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range [][]int32{{0, 2}, nil, {0, 300}, {3}, {4, 3, 4}, {301, 302}} {
		r := separate.Ranks[rank]
		for i := range r.Len() {
			if got := r.NIC.At(i); got != want[i] {
				t.Errorf("rank %d op %d uses NIC %d, expected %d", rank, i, got, want[i])
			}
		}
	}
	merged.Ranks[2].NIC.Set(1, math.MaxInt32-1)
	want := "rank 5: op 0: NIC 2147483647 after those of other jobs, expected below 2147483647"
	if _, err := SeparateNICs(context.Background(), merged, jobs); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}

// TestMergeAttrs checks that the attributes of the traces are listed in the order of the jobs.
func TestMergeAttrs(t *testing.T) {
	with := func(attrs string, jobs ...string) Job {
		b := dag.NewBuilder(1)
		*b.Meta() = dag.Meta{Attrs: attrs, Jobs: jobs, Provenance: []dag.Provenance{{Program: attrs}}}
		return Job{Name: "j", Trace: b.Trace()}
	}
	inner := mustMerge(t, with(`{"a":1}`), with(""), with(`{"c": 3}`))
	night := Job{Name: "night", Trace: inner}
	for _, c := range []struct {
		jobs        []Job
		names, want string
	}{
		{[]Job{night, with(`{"d":4}`)}, "night/j night/j#2 night/j#3 j", `{"jobs":[{"a":1},null,{"c":3},{"d":4}]}`},
		{[]Job{with(""), night}, "j night/j night/j#2 night/j#3", `{"jobs":[null,{"a":1},null,{"c":3}]}`},
		{[]Job{with(""), with("")}, "j j#2", ""},
		{[]Job{with(""), with("", "x", "y"), with(`{"z":0}`)}, "j j/x j/y j#2", `{"jobs":[null,null,null,{"z":0}]}`},
		{[]Job{with(`{"both":0}`, "x", "y"), with("")}, "j/x j/y j", `{"jobs":[{"both":0},{"both":0},null]}`},
		{[]Job{with(`{"jobs":[1]}`, "x", "y"), with("")}, "j/x j/y j", `{"jobs":[{"jobs":[1]},{"jobs":[1]},null]}`},
		{[]Job{with(`{"jobs":[1]}`), with("")}, "j j#2", `{"jobs":[{"jobs":[1]},null]}`},
	} {
		merged := mustMerge(t, c.jobs...)
		if names := strings.Join(merged.Jobs, " "); names != c.names || merged.Attrs != c.want {
			t.Errorf("jobs %s, attributes %s, expected %s, %s", names, merged.Attrs, c.names, c.want)
		}
	}
	twice := with("{}")
	if got := mustMerge(t, twice, with(""), twice).Provenance; len(got) != 2 {
		t.Errorf("the provenance of a trace that is two jobs is there several times: %v", got)
	}
}
