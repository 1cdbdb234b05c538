package compose

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// jobsOf returns jobs of so many ranks.
func jobsOf(ranks ...int) []Job {
	var jobs []Job
	for i, n := range ranks {
		jobs = append(jobs, Job{Name: string(rune('a' + i)), Trace: dag.NewBuilder(n).Trace()})
	}
	return jobs
}

var (
	linear = Mapping{Law: Linear}
	rr     = Mapping{Law: RoundRobin}
)

func given(nodes ...int32) Mapping { return Mapping{Law: Given, Nodes: nodes} }
func random(seed int64) Mapping    { return Mapping{Law: Random, Seed: seed} }

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		name     string
		ranks    []int
		mappings []Mapping
		machine  Machine
		want     []int32
	}{
		{"linear", []int{4}, []Mapping{linear}, Machine{}, []int32{0, 1, 2, 3}},
		{"linear fills cores", []int{5}, []Mapping{linear}, Machine{Cores: 2}, []int32{0, 0, 1, 1, 2}},
		{"linear goes on in a node", []int{3, 3}, []Mapping{linear, linear}, Machine{Cores: 2}, []int32{0, 0, 1, 1, 2, 2}},
		{"linear fills gaps", []int{2, 4}, []Mapping{given(1, 1), linear}, Machine{Cores: 2}, []int32{1, 1, 0, 0, 2, 2}},
		{"linear on more nodes", []int{2}, []Mapping{linear}, Machine{Nodes: 9, Cores: 1}, []int32{0, 1}},
		{"linear does not leave nodes before it empty", []int{1, 1, 4}, []Mapping{linear, rr, linear},
			Machine{Nodes: 3, Cores: 2}, []int32{0, 0, 1, 1, 2, 2}},
		{"rr", []int{5}, []Mapping{rr}, Machine{Nodes: 3, Cores: 2}, []int32{0, 1, 2, 0, 1}},
		{"rr on as many nodes as needed", []int{5}, []Mapping{rr}, Machine{Cores: 2}, []int32{0, 1, 2, 0, 1}},
		{"rr on as many as all jobs need", []int{3, 3}, []Mapping{rr, rr}, Machine{Cores: 2}, []int32{0, 1, 2, 0, 1, 2}},
		{"each rr begins at node 0", []int{2, 3}, []Mapping{rr, rr}, Machine{Nodes: 4, Cores: 2}, []int32{0, 1, 0, 1, 2}},
		{"rr passes over full nodes", []int{3, 5}, []Mapping{given(0, 0, 2), rr}, Machine{Nodes: 4, Cores: 2},
			[]int32{0, 0, 2, 1, 2, 3, 1, 3}},
		{"a file names more nodes", []int{1, 3}, []Mapping{given(4), rr}, Machine{}, []int32{4, 0, 1, 2}},
		{"the last node", []int{2}, []Mapping{given(math.MaxInt32, 0)}, Machine{}, []int32{math.MaxInt32, 0}},
		{"no tasks", []int{0, 0}, []Mapping{rr, given()}, Machine{Nodes: 1}, []int32{}},
		{"huge machine", []int{3, 2}, []Mapping{rr, linear}, Machine{math.MaxInt32, math.MaxInt32}, []int32{0, 1, 2, 0, 0}},
		// These two fix what a seed stands for.
		{"random", []int{6}, []Mapping{random(1)}, Machine{}, []int32{3, 0, 4, 1, 2, 5}},
		{"random jobs", []int{3, 3}, []Mapping{random(1), random(1)}, Machine{Nodes: 4, Cores: 2}, []int32{1, 3, 0, 1, 2, 2}},
	} {
		got, err := Place(jobsOf(c.ranks...), c.mappings, c.machine)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: nodes %v, error %v, expected %v", c.name, got, err, c.want)
		}
	}
}

func TestPlaceErrors(t *testing.T) {
	for _, c := range []struct {
		ranks    []int
		mappings []Mapping
		machine  Machine
		want     string
	}{
		{[]int{2, 3}, []Mapping{linear, linear}, Machine{Nodes: 2, Cores: 2},
			"placing job b: 3 tasks, but 2 of the 4 cores on 2 nodes are free"},
		{[]int{3}, []Mapping{random(1)}, Machine{Nodes: 2}, "placing job a: 3 tasks, but 2 of the 2 cores"},
		{[]int{2, 4}, []Mapping{linear, given(2, 3, 1, 1)}, Machine{Cores: 2}, ""},
		{[]int{2, 4}, []Mapping{rr, given(2, 1, 1, 1)}, Machine{Cores: 3},
			"placing job b: node 1 has 4 tasks, expected at most 3"},
		{[]int{2}, []Mapping{given(0, 3)}, Machine{Nodes: 3}, "placing job a: task 1 is on node 3, expected 0..2"},
		{[]int{2}, []Mapping{given(0, -1)}, Machine{}, "placing job a: task 1 is on node -1, expected 0..1"},
		{[]int{2}, []Mapping{given(0)}, Machine{}, "placing job a: nodes of 1 tasks, expected 2"},
		{[]int{2}, []Mapping{{Law: 9}}, Machine{}, "placing job a: mapping by law 9, which is none"},
		{[]int{2}, nil, Machine{}, "0 mappings for 1 jobs"},
		{[]int{2}, []Mapping{rr}, Machine{Nodes: -1}, "-1 nodes of 0 cores, expected up to 2147483647 of each"},
		{[]int{2}, []Mapping{rr}, Machine{Cores: math.MaxInt32 + 1}, "0 nodes of 2147483648 cores"},
	} {
		_, err := Place(jobsOf(c.ranks...), c.mappings, c.machine)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: error %v, expected %q", c.mappings, err, c.want)
		}
	}
}

// TestRandomIsFair checks that every core is as likely as any other, on nodes that are partly full as well.
func TestRandomIsFair(t *testing.T) {
	const runs, free = 20_000, 6
	var hits [4]int
	for seed := range int64(runs) {
		nodes, err := Place(jobsOf(6, 2), []Mapping{given(0, 0, 0, 1, 3, 3), random(seed)}, Machine{Nodes: 4, Cores: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes[6:] {
			hits[node]++
		}
	}
	for node, cores := range []int{0, 2, 3, 1} {
		want := float64(2*runs*cores) / free
		if diff := math.Abs(float64(hits[node]) - want); diff > 5*math.Sqrt(want) {
			t.Errorf("node %d got %d tasks of %d, expected about %.0f", node, hits[node], 2*runs, want)
		}
	}
}

// TestFullMachine checks that every law places as many tasks as there are cores.
func TestFullMachine(t *testing.T) {
	for _, m := range []Mapping{linear, rr, random(3)} {
		nodes, err := Place(jobsOf(300, 1, 499), []Mapping{m, m, m}, Machine{Nodes: 100, Cores: 8})
		if err != nil {
			t.Fatal(err)
		}
		count := make([]int, 100)
		for _, node := range nodes {
			count[node]++
		}
		if slices.Min(count) != 8 || slices.Max(count) != 8 {
			t.Errorf("law %d: tasks of the nodes %v, expected 8 each", m.Law, count)
		}
	}
}
