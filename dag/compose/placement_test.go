package compose

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// jobsOf returns jobs with the given numbers of ranks.
func jobsOf(ranks ...int) []Job {
	var jobs []Job
	for i, n := range ranks {
		jobs = append(jobs, Job{Name: string(rune('a' + i)), Trace: dag.NewBuilder(n).Trace()})
	}
	return jobs
}

var (
	packed = Placement{Policy: Packed}
	rr     = Placement{Policy: RoundRobin}
	own    = Placement{Policy: OwnNodes}
)

func given(nodes ...int32) Placement { return Placement{Policy: Given, Nodes: nodes} }
func random(seed int64) Placement    { return Placement{Policy: Random, Seed: seed} }

func strided(n int) Placement { return Placement{Policy: Strided, Stride: n} }

func TestPlaceRanks(t *testing.T) {
	for _, c := range []struct {
		name    string
		ranks   []int
		by      []Placement
		machine Machine
		want    []int32
	}{
		{"packed", []int{4}, []Placement{packed}, Machine{Slots: 1}, []int32{0, 1, 2, 3}},
		{"packed fills cores", []int{5}, []Placement{packed}, Machine{Slots: 2}, []int32{0, 0, 1, 1, 2}},
		{"packed goes on in a node", []int{3, 3}, []Placement{packed, packed}, Machine{Slots: 2},
			[]int32{0, 0, 1, 1, 2, 2}},
		{"packed fills gaps", []int{2, 4}, []Placement{given(1, 1), packed}, Machine{Slots: 2},
			[]int32{1, 1, 0, 0, 2, 2}},
		{"packed on more nodes", []int{2}, []Placement{packed}, Machine{Nodes: 9, Slots: 1}, []int32{0, 1}},
		{"packed does not leave nodes before it empty", []int{1, 1, 4}, []Placement{packed, rr, packed},
			Machine{Nodes: 3, Slots: 2}, []int32{0, 0, 1, 1, 2, 2}},
		{"rr", []int{5}, []Placement{rr}, Machine{Nodes: 3, Slots: 2}, []int32{0, 1, 2, 0, 1}},
		{"rr on as many nodes as needed", []int{5}, []Placement{rr}, Machine{Slots: 2}, []int32{0, 1, 2, 0, 1}},
		{"rr on as many as all jobs need", []int{3, 3}, []Placement{rr, rr}, Machine{Slots: 2},
			[]int32{0, 1, 2, 0, 1, 2}},
		{"each rr begins at node 0", []int{2, 3}, []Placement{rr, rr}, Machine{Nodes: 4, Slots: 2},
			[]int32{0, 1, 0, 1, 2}},
		{"rr passes over full nodes", []int{3, 5}, []Placement{given(0, 0, 2), rr}, Machine{Nodes: 4, Slots: 2},
			[]int32{0, 0, 2, 1, 2, 3, 1, 3}},
		{"a file names more nodes", []int{1, 3}, []Placement{given(4), rr}, Machine{Slots: 1}, []int32{4, 0, 1, 2}},
		{"the last node", []int{2}, []Placement{given(math.MaxInt32, 0)}, Machine{Slots: 1}, []int32{math.MaxInt32, 0}},
		{"no tasks", []int{0, 0}, []Placement{rr, given()}, Machine{Nodes: 1, Slots: 1}, []int32{}},
		{"huge machine", []int{3, 2}, []Placement{rr, packed}, Machine{Nodes: math.MaxInt32, Slots: math.MaxInt32},
			[]int32{0, 1, 2, 0, 0}},
		{"strided fills slots", []int{3, 3}, []Placement{strided(2), strided(2)}, Machine{Nodes: 3, Slots: 2},
			[]int32{0, 0, 2, 2, 1, 1}},
		{"nodes of the traces", []int{2, 3}, []Placement{own, own}, Machine{Slots: 1}, []int32{0, 1, 2, 3, 4}},
		{"shared nodes", []int{2, 3}, []Placement{rr, packed}, Machine{Slots: 1, Shared: true}, []int32{0, 1, 0, 1, 2}},
		// These two fix the placements of a seed.
		{"random", []int{6}, []Placement{random(1)}, Machine{Slots: 1}, []int32{3, 0, 4, 1, 2, 5}},
		{"random jobs", []int{3, 3}, []Placement{random(1), random(1)}, Machine{Nodes: 4, Slots: 2},
			[]int32{1, 3, 0, 1, 2, 2}},
	} {
		got, err := c.machine.Place(jobsOf(c.ranks...), c.by)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: nodes %v, error %v, expected %v", c.name, got, err, c.want)
		}
	}
}

func TestPlaceRanksErrors(t *testing.T) {
	for _, c := range []struct {
		ranks   []int
		by      []Placement
		machine Machine
		want    string
	}{
		{[]int{2, 3}, []Placement{packed, packed}, Machine{Nodes: 2, Slots: 2},
			"placing job b: 3 ranks, but 2 of the 4 cores on 2 nodes are free"},
		{[]int{3}, []Placement{random(1)}, Machine{Nodes: 2, Slots: 1}, "placing job a: 3 ranks, but 2 of the 2 cores"},
		{[]int{2, 4}, []Placement{packed, given(2, 3, 1, 1)}, Machine{Slots: 2}, ""},
		{[]int{2, 4}, []Placement{rr, given(2, 1, 1, 1)}, Machine{Slots: 3},
			"placing job b: node 1 has 4 ranks, expected at most 3"},
		{[]int{2}, []Placement{given(0, 3)}, Machine{Nodes: 3, Slots: 1},
			"placing job a: rank 1 is on node 3, expected 0..2"},
		{[]int{2}, []Placement{given(0, -1)}, Machine{Slots: 1}, "placing job a: rank 1 is on node -1, expected 0..1"},
		{[]int{2}, []Placement{given(0)}, Machine{Slots: 1}, "placing job a: nodes of 1 ranks, expected 2"},
		{[]int{2}, []Placement{{Policy: 9}}, Machine{Slots: 1}, "placing job a: unknown policy 9 with stride 0"},
		{[]int{2}, nil, Machine{Slots: 1}, "0 placements for 1 jobs"},
		{[]int{2}, []Placement{rr}, Machine{Nodes: -1}, "-1 nodes of 0 slots, expected up to 2147483647 of each"},
		{[]int{2}, []Placement{rr}, Machine{Slots: math.MaxInt32 + 1}, "0 nodes of 2147483648 slots"},
	} {
		_, err := c.machine.Place(jobsOf(c.ranks...), c.by)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: error %v, expected %q", c.by, err, c.want)
		}
	}
}

// TestRandomIsFair checks that every core is as likely as any other, on nodes that are partly full as well.
func TestRandomIsFair(t *testing.T) {
	const runs, free = 20_000, 6
	var hits [4]int
	for seed := range int64(runs) {
		m := Machine{Nodes: 4, Slots: 3}
		nodes, err := m.Place(jobsOf(6, 2), []Placement{given(0, 0, 0, 1, 3, 3), random(seed)})
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

// TestFullMachine checks that every policy places as many tasks as there are cores.
func TestFullMachine(t *testing.T) {
	m := Machine{Nodes: 100, Slots: 8}
	for _, p := range []Placement{packed, rr, random(3), strided(7)} {
		nodes, err := m.Place(jobsOf(300, 1, 499), []Placement{p, p, p})
		if err != nil {
			t.Fatal(err)
		}
		count := make([]int, 100)
		for _, node := range nodes {
			count[node]++
		}
		if slices.Min(count) != 8 || slices.Max(count) != 8 {
			t.Errorf("policy %d: tasks of the nodes %v, expected 8 each", p.Policy, count)
		}
	}
}
