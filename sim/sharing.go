package sim

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Sharing is the choice whether the ranks on a node share its NICs. Ranks that do not share have NICs of their own.
type Sharing uint8

// The choices.
const (
	ShareAmongJobs Sharing = iota // if a node has ranks of several jobs, unless these use NICs of their own
	ShareAlways                   // if a node has several ranks
	ShareNever
)

// SharesNICs reports whether the ranks on each node of a trace share NICs of equal numbers.
func (e *Env) SharesNICs(s dag.Source) (bool, error) {
	choice := ShareAmongJobs
	if e != nil {
		choice = e.Sharing
	}
	h, err := s.Header()
	if err != nil || choice == ShareNever || choice == ShareAmongJobs && len(h.Jobs) < 2 {
		return false, err
	}
	ranks := make(map[int32]int, len(h.Nodes)) // by node
	several := false
	for _, node := range h.Nodes {
		ranks[node]++
		several = several || ranks[node] > 1
	}
	if choice == ShareAlways || !several {
		return several, nil
	}
	users := nicUsers{nics: map[[2]int32]int32{}, any: map[int32]int32{}, jobs: map[int32]int32{}}
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		batch, err := read.Ranks(b)
		if err != nil {
			return false, err
		}
		for i := range batch {
			if node := h.Nodes[b.First+i]; ranks[node] > 1 && users.add(node, batch[i]) {
				return true, nil
			}
		}
	}
	return users.together && !users.apart, nil
}

// nicUsers is which jobs use nodes and their NICs.
type nicUsers struct {
	nics map[[2]int32]int32 // by node and NIC: its job
	any  map[int32]int32    // by node: a job that uses its NICs
	jobs map[int32]int32    // by node: a job with ranks there

	together bool // several jobs have ranks on a node
	apart    bool // several jobs use NICs of a node
}

// add adds a rank on a node. It reports whether another job uses one of its NICs.
func (u *nicUsers) add(node int32, r *dag.Rank) bool {
	differs := func(jobs map[int32]int32, job int32) bool {
		other, used := jobs[node]
		jobs[node] = job
		return used && other != job
	}
	lastJob, lastNIC := int32(-1), int32(-1) // of the last use
	for i, kind := range r.Kind {
		job := r.Job.At(i)
		if i == 0 {
			u.together = differs(u.jobs, job) || u.together
		}
		number := r.NIC.At(i)
		if kind != dag.Send && kind != dag.Recv && kind != dag.Coll && kind != dag.IO ||
			job == lastJob && number == lastNIC {
			continue
		}
		lastJob, lastNIC = job, number
		u.apart = differs(u.any, job) || u.apart
		nic := [2]int32{node, number}
		if other, used := u.nics[nic]; used && other != job {
			return true
		}
		u.nics[nic] = job
	}
	return false
}

// SharedNICClocks is [Program.NICClocks] for ranks that share the NICs of their node: a clock per NIC of all nodes.
// NIC i of rank r has the clock first[r]+i; the last element is the number of clocks.
func (p *Program) SharedNICClocks(nodes []int32) (first []int, err error) {
	own, err := p.NICClocks()
	if err != nil {
		return nil, err
	}
	most := make(map[int32]int, len(nodes)) // by node: its number of NICs
	for r, node := range nodes {
		most[node] = max(most[node], own[r+1]-own[r])
	}
	at, next := make(map[int32]int, len(most)), 0
	first = make([]int, len(own))
	for r, node := range nodes {
		if _, known := at[node]; !known {
			at[node] = next
			next += most[node]
		}
		first[r] = at[node]
	}
	first[len(nodes)] = next
	return first, nil
}

// SharedNodes returns the number of nodes with several ranks.
func SharedNodes(nodes []int32) (n int) {
	sorted := slices.Sorted(slices.Values(nodes))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] && (i == 1 || sorted[i-2] != sorted[i]) {
			n++
		}
	}
	return n
}

// AddSharedNICs adds the number of nodes whose ranks share NICs to the result. nodes is the node of each rank, nil if
// ranks have NICs of their own.
func (r *Result) AddSharedNICs(nodes []int32) {
	if n := SharedNodes(nodes); n > 0 {
		r.Add(Section{Key: "shared_nodes", Value: n, At: Early, RowsAfter: "parameters",
			Rows: []Row{Rowf("NICs", "shared by the ranks of each node, on %d nodes", n)}})
	}
}
