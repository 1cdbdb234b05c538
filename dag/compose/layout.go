package compose

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
)

// Pattern is a way to choose nodes for whole jobs.
type Pattern uint8

// The patterns. Where jobs have nodes of their own, each gives a node once, and passes over those that Layout.Given
// gives to others.
const (
	Packed   Pattern = iota // node after node, job after job
	Dealt                   // ascending nodes to each job in turn that still lacks some; not for shared nodes
	Shuffled                // any node, all equally likely
	Strided                 // every Stride-th node, and again from the first that is left, job after job
)

// Layout says on which nodes of a machine jobs run. What it places are the nodes of each job: the ranks that share one
// in the trace of the job share one of the machine.
type Layout struct {
	Pattern Pattern
	Stride  int       // of Strided, 1 or more
	Seed    int64     // of Shuffled
	Nodes   int       // of the machine, up to math.MaxInt32; 0: as many as the jobs need
	Shared  bool      // every job is placed as if it were alone, so that jobs share nodes
	Given   [][]int32 // by job: the node of the machine for each of its nodes; nil for one that the pattern places
}

// Place returns the node of each rank of the merged jobs, those of one job after those of the jobs before. No two
// nodes of a job become one. Without Layout.Nodes a machine has as many as all jobs have, of shared ones as many as
// the largest, or more where a given node is higher. Shuffled draws by the generator PCG of math/rand/v2, seeded with
// the seed and, of shared nodes, the job's index.
func (l *Layout) Place(jobs []Job) ([]int32, error) {
	if _, err := checkJobs(jobs); err != nil {
		return nil, err
	}
	if l.Given != nil && len(l.Given) != len(jobs) {
		return nil, fmt.Errorf("lists of nodes for %d jobs, expected %d", len(l.Given), len(jobs))
	}
	if l.Nodes < 0 || l.Nodes > math.MaxInt32 {
		return nil, fmt.Errorf("%d nodes, expected up to %d", l.Nodes, math.MaxInt32)
	}
	if l.Pattern > Strided || l.Pattern == Strided && l.Stride < 1 {
		return nil, fmt.Errorf("pattern %d with stride %d, which is none", l.Pattern, l.Stride)
	}
	if l.Pattern == Dealt && l.Shared {
		return nil, errors.New("nodes that jobs share cannot be dealt out to them in turn")
	}
	p := &laying{layout: l, jobs: jobs}
	if err := p.measure(); err != nil {
		return nil, err
	}
	lay := p.apart
	if l.Shared {
		lay = p.together
	}
	if err := lay(); err != nil {
		return nil, err
	}
	var nodes []int32
	for i, of := range p.node {
		for _, n := range of {
			nodes = append(nodes, p.placed[i][n])
		}
	}
	return nodes, nil
}

// NodesOf returns how many nodes the ranks of a trace are on.
func NodesOf(t *dag.Trace) int {
	_, n := nodesOf(t)
	return n
}

// nodesOf returns the node of each rank, numbered without gaps, and how many there are.
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

// laying is jobs that are being placed.
type laying struct {
	layout *Layout
	jobs   []Job
	node   [][]int32 // of each rank of each job, dense
	counts []int     // how many nodes each job has
	placed [][]int32 // where the nodes of each job are
	nodes  int64     // of the machine
}

// measure finds how many nodes there are.
func (p *laying) measure() error {
	for i := range p.jobs {
		t := p.jobs[i].Trace
		if t.Nodes != nil && len(t.Nodes) != len(t.Ranks) {
			return fmt.Errorf("job %s: nodes of %d ranks, expected %d", p.jobs[i].Name, len(t.Nodes), len(t.Ranks))
		}
		node, n := nodesOf(t)
		p.node, p.counts = append(p.node, node), append(p.counts, n)
		if p.layout.Shared {
			p.nodes = max(p.nodes, int64(n))
		} else {
			p.nodes += int64(n)
		}
		for _, given := range p.given(i) {
			p.nodes = max(p.nodes, int64(given)+1)
		}
	}
	if p.layout.Nodes > 0 {
		p.nodes = int64(p.layout.Nodes)
	}
	p.placed = make([][]int32, len(p.jobs))
	return nil
}

// given returns the list of a job, nil if it has none.
func (p *laying) given(job int) []int32 {
	if p.layout.Given == nil {
		return nil
	}
	return p.layout.Given[job]
}

// take puts a job on the nodes that it is given, which must be none of those taken.
func (p *laying) take(job int, taken map[int32]bool) error {
	given := p.given(job)
	if len(given) != p.counts[job] {
		return fmt.Errorf("placing job %s: a list of %d nodes, expected %d", p.jobs[job].Name, len(given), p.counts[job])
	}
	for _, node := range given {
		if node < 0 || int64(node) >= p.nodes {
			return fmt.Errorf("placing job %s: node %d, expected 0..%d", p.jobs[job].Name, node, p.nodes-1)
		}
		if taken[node] {
			return fmt.Errorf("placing job %s: node %d is taken already", p.jobs[job].Name, node)
		}
		taken[node] = true
	}
	p.placed[job] = given
	return nil
}

// apart places jobs that have nodes of their own.
func (p *laying) apart() error {
	taken := make(map[int32]bool)
	var rest []int // jobs that the pattern places
	for job := range p.jobs {
		if p.given(job) == nil {
			rest = append(rest, job)
		} else if err := p.take(job, taken); err != nil {
			return err
		}
	}
	free := p.nodes - int64(len(taken))
	for _, job := range rest {
		if free -= int64(p.counts[job]); free < 0 {
			return fmt.Errorf("placing job %s: %d nodes, but %d of %d are free", p.jobs[job].Name, p.counts[job],
				free+int64(p.counts[job]), p.nodes)
		}
	}
	next := p.sequence(taken, 0)
	if p.layout.Pattern != Dealt {
		for _, job := range rest {
			p.fill(job, next)
		}
		return nil
	}
	for len(rest) > 0 {
		lacking := rest[:0]
		for _, job := range rest {
			if len(p.placed[job]) < p.counts[job] {
				p.placed[job] = append(p.placed[job], next())
				lacking = append(lacking, job)
			}
		}
		rest = lacking
	}
	return nil
}

// together places each job as if it were alone.
func (p *laying) together() error {
	for job := range p.jobs {
		if p.given(job) != nil {
			if err := p.take(job, make(map[int32]bool)); err != nil {
				return err
			}
			continue
		}
		if int64(p.counts[job]) > p.nodes {
			return fmt.Errorf("placing job %s: %d nodes, but there are %d", p.jobs[job].Name, p.counts[job], p.nodes)
		}
		p.fill(job, p.sequence(nil, uint64(job)))
	}
	return nil
}

func (p *laying) fill(job int, next func() int32) {
	p.placed[job] = make([]int32, p.counts[job])
	for i := range p.placed[job] {
		p.placed[job][i] = next()
	}
}

// sequence returns a function that returns the nodes that are not taken in the order in which they are to be given out.
// The memory that it needs is in proportion to the calls, for nodes may be very many.
func (p *laying) sequence(taken map[int32]bool, stream uint64) func() int32 {
	all := p.strides(1)
	switch p.layout.Pattern {
	case Shuffled:
		all = p.shuffle(rand.New(rand.NewPCG(uint64(p.layout.Seed), stream)))
	case Strided:
		all = p.strides(int64(p.layout.Stride))
	}
	return func() int32 {
		node := all()
		for taken[node] {
			node = all()
		}
		return node
	}
}

// strides returns every stride-th node from 0 on, then from 1 on and so forth.
func (p *laying) strides(stride int64) func() int32 {
	first, node := int64(0), -stride
	return func() int32 {
		if node += stride; node >= p.nodes {
			first++
			node = first
		}
		return int32(node)
	}
}

// shuffle returns nodes in random order, by the algorithm of Fisher and Yates, R. Durstenfeld, "Algorithm 235: random
// permutation", CACM 7(7), 1964.
func (p *laying) shuffle(draws *rand.Rand) func() int32 {
	moved := make(map[int64]int64) // what stands in a place, where that is not its own number
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
