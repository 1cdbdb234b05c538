package compose

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Law is a way to choose nodes for the tasks of a job.
type Law uint8

// The laws. All but Given pass over nodes whose cores are all taken, by tasks of this job or of those before it.
const (
	Linear     Law = iota // each task on the lowest node with a free core
	RoundRobin            // one task on each node in ascending order, and again from node 0 on
	Random                // each task on a free core of any node, all equally likely
	Given                 // as Mapping.Nodes says
)

// Mapping says on which nodes to place the tasks of a job.
type Mapping struct {
	Law   Law
	Seed  int64   // of Random
	Nodes []int32 // of Given: the node of each task
}

// Machine is what the tasks are placed on.
type Machine struct {
	Nodes int // up to math.MaxInt32; 0: as many as the tasks of all jobs need, and any Given mapping names
	Cores int // of a node, up to math.MaxInt32: how many tasks it takes; 0: one
}

// Place returns the node of each rank of the merged jobs, for Trace.Nodes. It places one job after the other, each with
// the mapping of the same index, and fails where a node would get more tasks than it has cores. Random draws by the
// generator PCG of math/rand/v2, seeded with the mapping's seed and the job's index.
func Place(jobs []Job, mappings []Mapping, m Machine) ([]int32, error) {
	ranks, err := checkJobs(jobs)
	if err != nil {
		return nil, err
	}
	if len(mappings) != len(jobs) {
		return nil, fmt.Errorf("%d mappings for %d jobs", len(mappings), len(jobs))
	}
	if m.Nodes < 0 || m.Nodes > math.MaxInt32 || m.Cores < 0 || m.Cores > math.MaxInt32 {
		return nil, fmt.Errorf("%d nodes of %d cores, expected up to %d of each", m.Nodes, m.Cores, math.MaxInt32)
	}
	p := placement{nodes: int64(m.Nodes), cores: int64(max(1, m.Cores)), used: make(map[int32]int64)}
	if m.Nodes == 0 {
		p.nodes = nodesFor(int64(ranks), p.cores, mappings)
	}
	p.node = make([]int32, 0, ranks)
	for i := range jobs {
		if err := p.place(len(jobs[i].Trace.Ranks), &mappings[i], uint64(i)); err != nil {
			return nil, fmt.Errorf("placing job %s: %w", jobs[i].Name, err)
		}
	}
	return p.node, nil
}

// nodesFor returns how many nodes the tasks need.
func nodesFor(tasks, cores int64, mappings []Mapping) int64 {
	nodes := (tasks + cores - 1) / cores
	for i := range mappings {
		if mappings[i].Law != Given {
			continue
		}
		for _, node := range mappings[i].Nodes {
			nodes = max(nodes, int64(node)+1)
		}
	}
	return nodes
}

// placement is tasks on nodes. Its memory is in proportion to the tasks, for nodes may be very many.
type placement struct {
	nodes, cores int64
	node         []int32         // of each task so far
	used         map[int32]int64 // how many tasks a node has
	lowest       int32           // no node before it has a free core
}

func (p *placement) place(tasks int, m *Mapping, job uint64) error {
	if m.Law == Given {
		return p.given(tasks, m.Nodes)
	}
	if free := p.nodes*p.cores - int64(len(p.node)); int64(tasks) > free {
		return fmt.Errorf("%d tasks, but %d of the %d cores on %d nodes are free", tasks, free, p.nodes*p.cores, p.nodes)
	}
	switch m.Law {
	case Linear:
		p.linear(tasks)
	case RoundRobin:
		p.roundRobin(tasks)
	case Random:
		p.random(tasks, rand.New(rand.NewPCG(uint64(m.Seed), job)))
	default:
		return fmt.Errorf("mapping by law %d, which is none", m.Law)
	}
	return nil
}

func (p *placement) put(node int32) {
	p.used[node]++
	p.node = append(p.node, node)
}

func (p *placement) full(node int32) bool {
	return p.used[node] >= p.cores
}

func (p *placement) linear(tasks int) {
	for range tasks {
		for p.full(p.lowest) {
			p.lowest++
		}
		p.put(p.lowest)
	}
}

func (p *placement) roundRobin(tasks int) {
	next := int64(0)
	for range tasks {
		for p.full(int32(next)) {
			next = (next + 1) % p.nodes
		}
		p.put(int32(next))
		next = (next + 1) % p.nodes
	}
}

// random draws from all cores until it meets one that is free, counting as taken the first ones of each node.
func (p *placement) random(tasks int, draws *rand.Rand) {
	for range tasks {
		for {
			core := draws.Int64N(p.nodes * p.cores)
			if node := int32(core / p.cores); core%p.cores >= p.used[node] {
				p.put(node)
				break
			}
		}
	}
}

func (p *placement) given(tasks int, nodes []int32) error {
	if len(nodes) != tasks {
		return fmt.Errorf("nodes of %d tasks, expected %d", len(nodes), tasks)
	}
	for task, node := range nodes {
		if node < 0 || int64(node) >= p.nodes {
			return fmt.Errorf("task %d is on node %d, expected 0..%d", task, node, p.nodes-1)
		}
		p.put(node)
	}
	for _, node := range nodes {
		if p.used[node] > p.cores {
			return fmt.Errorf("node %d has %d tasks, expected at most %d", node, p.used[node], p.cores)
		}
	}
	return nil
}
