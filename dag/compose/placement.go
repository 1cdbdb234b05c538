package compose

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/conf"
)

// Policy selects the nodes of a job.
type Policy uint8

// The policies. A machine places units: the ranks of a job, or its whole nodes ([Machine]). All policies except Given
// and OwnNodes skip full nodes.
const (
	Packed     Policy = iota // the lowest node with a free slot
	RoundRobin               // ranks: one per node, in ascending order; whole nodes: one per job
	Strided                  // nodes 0, N, 2N ..., then 1, N+1 ..., each until it is full
	Random                   // any free slot, all equally likely
	OwnNodes                 // nodes of the job's trace, after those of previous jobs with this policy
	Given                    // the nodes of a list
)

// Placement is a policy with its parameters.
type Placement struct {
	Policy Policy
	Stride int     // Random
	Seed   int64   // Strided: 1 or more
	Seeded bool    // Seed is explicit; otherwise the plan sets it
	Nodes  []int32 // Given: node of each unit
	File   string  // Given: file of Nodes, which Load reads; "": none
}

// Machine is the nodes on which jobs are placed.
//
// With Slots, it places the ranks of jobs one by one, job after job. Without, it places whole nodes: ranks that share
// a node in the trace of a job share a node of the machine, and no node is used twice. A trace without nodes has one
// node per rank. In that case, jobs with Given nodes are placed first and the others on the remaining nodes.
type Machine struct {
	Nodes  int  // up to math.MaxInt32; 0: as many as the jobs need, or up to the highest Given node
	Slots  int  // ranks per node, up to math.MaxInt32; 0: place whole nodes
	Shared bool // place every job on an empty machine, so that jobs share nodes
}

// Place returns the node of each rank of the merged jobs, for [dag.Meta].Nodes; by has one placement per job. It
// returns an error if a node would get more ranks than slots. Random draws from the generator PCG of math/rand/v2
// with the seed of the placement. The stream is the index of the job; for whole nodes that are not shared it is 0,
// and equal placements share the stream.
func (m *Machine) Place(jobs []Job, by []Placement) ([]int32, error) {
	if _, err := checkJobs(jobs); err != nil {
		return nil, err
	}
	if err := m.check(jobs, by); err != nil {
		return nil, err
	}
	p := &placer{machine: m, jobs: jobs, by: slices.Clone(by), slots: int64(max(1, m.Slots)),
		placed: make([][]int32, len(jobs))}
	p.measure()
	if err := p.place(); err != nil {
		return nil, err
	}
	nodes := []int32{}
	for i := range jobs {
		for rank := range jobs[i].Trace.Ranks {
			nodes = append(nodes, p.placed[i][p.unit(i, rank)])
		}
	}
	return nodes, nil
}

// check checks the arguments of Place.
func (m *Machine) check(jobs []Job, by []Placement) error {
	if len(by) != len(jobs) {
		return fmt.Errorf("%d placements for %d jobs", len(by), len(jobs))
	}
	if m.Nodes < 0 || m.Nodes > math.MaxInt32 || m.Slots < 0 || m.Slots > math.MaxInt32 {
		return fmt.Errorf("%d nodes of %d slots, expected up to %d of each", m.Nodes, m.Slots, math.MaxInt32)
	}
	for i := range by {
		p := &by[i]
		switch {
		case p.Policy > Given || p.Policy == Strided && p.Stride < 1:
			return fmt.Errorf("placing job %s: unknown policy %d with stride %d", jobs[i].Name, p.Policy, p.Stride)
		case p.Policy == RoundRobin && m.Slots == 0 && m.Shared:
			return errors.New("round robin over whole nodes needs jobs that do not share nodes")
		}
		t := jobs[i].Trace
		if (m.Slots == 0 || p.Policy == OwnNodes) && t.Nodes != nil && len(t.Nodes) != len(t.Ranks) {
			return fmt.Errorf("job %s: nodes of %d ranks, expected %d", jobs[i].Name, len(t.Nodes), len(t.Ranks))
		}
	}
	return nil
}

// NodesOf returns the number of distinct nodes of a trace.
func NodesOf(t *dag.Trace) int {
	_, n := nodesOf(t)
	return n
}

// nodesOf returns the node of each rank, renumbered without gaps, and the number of nodes.
func nodesOf(t *dag.Trace) ([]int32, int) {
	if t.Nodes != nil {
		return dense(t.Nodes)
	}
	nodes := make([]int32, len(t.Ranks))
	for rank := range nodes {
		nodes[rank] = int32(rank)
	}
	return nodes, len(nodes)
}

// placer places jobs. Its memory is proportional to the number of units, because a machine may have very many nodes.
type placer struct {
	machine *Machine
	jobs    []Job
	by      []Placement
	slots   int64           // slots per node
	node    [][]int32       // by job: unit of each rank; empty if ranks are placed
	counts  []int           // units by job
	placed  [][]int32       // by job: node of each unit
	nodes   int64           // nodes of the machine
	used    map[int32]int64 // occupied slots by node
	total   int64           // occupied slots
	orders  map[order]func() int32
}

// order identifies a sequence of nodes that jobs share.
type order struct {
	policy Policy
	stride int
	seed   int64
	stream uint64
}

// unit returns the unit of a rank of a job.
func (p *placer) unit(job, rank int) int32 {
	if p.machine.Slots > 0 {
		return int32(rank)
	}
	return p.node[job][rank]
}

// measure counts units and nodes.
func (p *placer) measure() {
	units := int64(0)
	highest, own := int64(-1), int64(0)
	for i := range p.jobs {
		n := len(p.jobs[i].Trace.Ranks)
		if p.machine.Slots == 0 {
			var node []int32
			node, n = nodesOf(p.jobs[i].Trace)
			p.node = append(p.node, node)
		}
		p.counts = append(p.counts, n)
		if p.machine.Shared {
			units = max(units, int64(n))
		} else {
			units += int64(n)
		}
		if p.by[i].Policy == OwnNodes {
			own = p.takeOwn(i, own)
		}
		if p.by[i].Policy == Given {
			for _, node := range p.by[i].Nodes {
				highest = max(highest, int64(node))
			}
		}
	}
	p.nodes = max((units+p.slots-1)/p.slots, highest+1)
	if p.machine.Nodes > 0 {
		p.nodes = int64(p.machine.Nodes)
	}
	p.clear()
}

// takeOwn places a job on the nodes of its trace, increased by first unless jobs share nodes. It returns the next
// unused node. Nodes out of range become -1.
func (p *placer) takeOwn(job int, first int64) (next int64) {
	if p.machine.Shared {
		first = 0
	}
	t := p.jobs[job].Trace
	nodes := make([]int32, p.counts[job])
	next = first
	for rank := range t.Ranks {
		node := int64(rank)
		if t.Nodes != nil {
			node = int64(t.Nodes[rank])
		}
		if node += first; node > math.MaxInt32 {
			node = -1
		}
		nodes[p.unit(job, rank)] = int32(node)
		next = max(next, node+1)
	}
	p.by[job] = Placement{Policy: Given, Nodes: nodes}
	return next
}

// clear frees all slots.
func (p *placer) clear() {
	p.used, p.total, p.orders = make(map[int32]int64), 0, make(map[order]func() int32)
}

func (p *placer) place() error {
	if p.machine.Slots == 0 && !p.machine.Shared {
		return p.placeWhole()
	}
	for job := range p.jobs {
		if p.machine.Shared {
			p.clear()
		}
		if err := p.placeJob(job, uint64(job)); err != nil {
			return err
		}
	}
	return nil
}

// placeJob places a job on free slots.
func (p *placer) placeJob(job int, stream uint64) error {
	if p.by[job].Policy == Given {
		return p.given(job)
	}
	if err := p.checkFree(job, p.total); err != nil {
		return err
	}
	switch {
	case p.by[job].Policy == RoundRobin:
		p.roundRobin(job)
	case p.by[job].Policy == Random && p.machine.Slots > 0:
		p.draw(job, rand.New(rand.NewPCG(uint64(p.by[job].Seed), stream)))
	default:
		p.fill(job, p.sequence(job, stream))
	}
	return nil
}

// placeWhole places jobs on whole nodes that they do not share.
func (p *placer) placeWhole() error {
	var rest []int // jobs without Given nodes
	for job := range p.jobs {
		if p.by[job].Policy != Given {
			rest = append(rest, job)
		} else if err := p.given(job); err != nil {
			return err
		}
	}
	total := p.total
	var turns []int // jobs placed round robin
	for _, job := range rest {
		if err := p.checkFree(job, total); err != nil {
			return err
		}
		total += int64(p.counts[job])
	}
	for _, job := range rest {
		if p.by[job].Policy == RoundRobin {
			turns = append(turns, job)
			continue
		}
		p.fill(job, p.sequence(job, 0))
	}
	for len(turns) > 0 {
		lacking := turns[:0]
		for _, job := range turns {
			if len(p.placed[job]) < p.counts[job] {
				p.put(job, p.sequence(job, 0)())
				lacking = append(lacking, job)
			}
		}
		turns = lacking
	}
	return nil
}

// checkFree returns an error if a job does not fit beside the given number of occupied slots.
func (p *placer) checkFree(job int, total int64) error {
	n, name, free := int64(p.counts[job]), p.jobs[job].Name, p.nodes*p.slots-total
	switch {
	case n <= free:
		return nil
	case p.machine.Slots > 0:
		return fmt.Errorf("placing job %s: %d ranks, but %d of the %d cores on %d nodes are free", name, n, free,
			p.nodes*p.slots, p.nodes)
	case p.machine.Shared:
		return fmt.Errorf("placing job %s: %d nodes, but there are %d", name, n, p.nodes)
	}
	return fmt.Errorf("placing job %s: %d nodes, but %d of %d are free", name, n, free, p.nodes)
}

// put places the next unit of a job on a node.
func (p *placer) put(job int, node int32) {
	p.used[node]++
	p.total++
	p.placed[job] = append(p.placed[job], node)
}

func (p *placer) full(node int32) bool {
	return p.used[node] >= p.slots
}

// fill places the units of a job on the nodes of next.
func (p *placer) fill(job int, next func() int32) {
	p.placed[job] = make([]int32, 0, p.counts[job])
	for range p.counts[job] {
		p.put(job, next())
	}
}

// roundRobin places ranks on nodes round robin, from node 0.
func (p *placer) roundRobin(job int) {
	node := int64(-1)
	p.fill(job, func() int32 {
		node = (node + 1) % p.nodes
		for p.full(int32(node)) {
			node = (node + 1) % p.nodes
		}
		return int32(node)
	})
}

// draw draws slots until one is free. The occupied slots of a node are its first ones.
func (p *placer) draw(job int, draws *rand.Rand) {
	p.fill(job, func() int32 {
		for {
			slot := draws.Int64N(p.nodes * p.slots)
			if node := int32(slot / p.slots); slot%p.slots >= p.used[node] {
				return node
			}
		}
	})
}

// given places a job on the listed nodes.
func (p *placer) given(job int) error {
	nodes, name := p.by[job].Nodes, p.jobs[job].Name
	if err := p.checkGiven(job); err != nil {
		return err
	}
	for unit, node := range nodes {
		outside := node < 0 || int64(node) >= p.nodes
		switch {
		case outside && p.machine.Slots > 0:
			return fmt.Errorf("placing job %s: rank %d is on node %d, expected 0..%d", name, unit, node, p.nodes-1)
		case outside:
			return fmt.Errorf("placing job %s: node %d, expected 0..%d", name, node, p.nodes-1)
		case p.machine.Slots == 0 && p.full(node):
			return fmt.Errorf("placing job %s: node %d is taken already", name, node)
		}
		p.put(job, node)
	}
	for _, node := range nodes {
		if p.used[node] > p.slots {
			return fmt.Errorf("placing job %s: node %d has %d ranks, expected at most %d", name, node,
				p.used[node], p.slots)
		}
	}
	return nil
}

// checkGiven checks the length of a list.
func (p *placer) checkGiven(job int) error {
	found, want, name := len(p.by[job].Nodes), p.counts[job], p.jobs[job].Name
	switch {
	case found == want:
		return nil
	case p.by[job].File != "":
		unit := "task"
		if p.machine.Slots == 0 {
			unit = "node"
		}
		return &conf.Error{File: p.by[job].File, Line: int64(min(found, want)) + 1,
			Expected: fmt.Sprintf("%d lines, one for each %s of job %s", want, unit, name), Found: fmt.Sprint(found)}
	case p.machine.Slots > 0:
		return fmt.Errorf("placing job %s: nodes of %d ranks, expected %d", name, found, want)
	}
	return fmt.Errorf("placing job %s: a list of %d nodes, expected %d", name, found, want)
}

// sequence returns a function that returns the next node that is not full, in the order of the job's policy. Jobs
// with equal policies share it.
func (p *placer) sequence(job int, stream uint64) func() int32 {
	by := &p.by[job]
	o := order{policy: by.Policy, stride: 1}
	switch by.Policy {
	case Strided:
		o.stride = by.Stride
	case Random:
		o.seed, o.stream = by.Seed, stream
	}
	next := p.orders[o]
	if next == nil {
		all := p.strides(int64(o.stride))
		if by.Policy == Random {
			all = p.shuffle(rand.New(rand.NewPCG(uint64(o.seed), stream)))
		}
		node := int32(-1)
		next = func() int32 {
			for node < 0 || p.full(node) {
				node = all()
			}
			return node
		}
		p.orders[o] = next
	}
	return next
}

// strides returns every stride-th node from 0, then from 1, and so on.
func (p *placer) strides(stride int64) func() int32 {
	first, node := int64(0), -stride
	return func() int32 {
		if node += stride; node >= p.nodes {
			first++
			node = first
		}
		return int32(node)
	}
}

// shuffle returns nodes in random order, by the algorithm of Fisher and Yates (R. Durstenfeld, "Algorithm 235: random
// permutation", CACM 7(7), 1964).
func (p *placer) shuffle(draws *rand.Rand) func() int32 {
	moved := make(map[int64]int64) // nodes that are not at their own index
	at := func(place int64) int64 {
		if node, ok := moved[place]; ok {
			return node
		}
		return place
	}
	left := p.nodes
	return func() int32 {
		place := draws.Int64N(left)
		node := at(place)
		left--
		moved[place] = at(left)
		delete(moved, left)
		return int32(node)
	}
}
