package analytical

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Program is a trace, compiled.
type Program struct {
	graphs  []*graph // by rank; those with the same DAG have the same one
	groups  []group  // by communicator
	ops     int64
	rounded int64
	untimed int64
}

// NPUs returns how many NPUs the program is for: its ranks.
func (p *Program) NPUs() int {
	return len(p.graphs)
}

// Rounded returns how many durations and release times were no whole number of nanoseconds and were rounded to the
// nearest.
func (p *Program) Rounded() int64 {
	return p.rounded
}

// Untimed returns how many calcs of the accelerator have operations but no duration: without the roofline model, each takes
// a nanosecond, as in ASTRA-sim.
func (p *Program) Untimed() int64 {
	return p.untimed
}

// graph is the DAG of a rank.
type graph struct {
	ops        []op // and one more, where the last one's dependents end
	dependents []uint32
	waits      []uint32 // of each op, for how many others it waits
	roots      []uint32 // ops that wait for nothing
	lanes      int

	// nil where no op has a value other than 0.
	tags     []int64
	flops    []int64
	dims     []int32
	priority []int32
	release  []uint64

	startFirst      []uint32 // where the start dependents of each op begin in startDependents; nil: there are none
	startDependents []uint32

	rounded int64
	untimed int64
}

// op is an op of a graph.
type op struct {
	bytes uint64
	time  uint64 // duration in nanoseconds, as replayed: 1 where the trace has 0
	peer  int32
	comm  int32
	first uint32 // where its dependents begin
	kind  opKind
	lane  uint8
	coll  Collective
	bare  bool // a calc with neither operations nor bytes, but a duration
}

// opKind is what an op is to this backend.
type opKind uint8

const (
	opCompute opKind = iota
	opMemory
	opSend
	opRecv
	opCollective
	opReplayed // a collective that takes the time that the trace says
	opMarker
)

// The lanes of an NPU are what ops need for themselves while they run. Each stream of the accelerator is one.
const (
	laneComm     = 0
	laneHost     = 1
	laneStreams  = 2 // the first of them
	maxLanes     = 64
	laneUnneeded = maxLanes // of receives
)

// group is the members of a communicator.
type group struct {
	members   []int32 // in their order
	sorted    []int32 // positions, by member; nil where the members are ascending
	ascending bool
}

// position returns where in the group an NPU is, -1 where it is no member.
func (g *group) position(npu int32) int32 {
	if g.ascending {
		i, found := slices.BinarySearch(g.members, npu)
		if !found {
			return -1
		}
		return int32(i)
	}
	i, found := slices.BinarySearchFunc(g.sorted, npu, func(position, npu int32) int { return int(g.members[position] - npu) })
	if !found {
		return -1
	}
	return g.sorted[i]
}

func newGroup(c *dag.Comm, ranks int) (group, error) {
	if err := c.Check(ranks); err != nil {
		return group{}, err
	}
	g := group{members: c.Members()}
	if g.ascending = slices.IsSorted(g.members); !g.ascending {
		g.sorted = make([]int32, len(g.members))
		for i := range g.sorted {
			g.sorted[i] = int32(i)
		}
		slices.SortFunc(g.sorted, func(a, b int32) int { return int(g.members[a] - g.members[b]) })
	}
	return g, nil
}

// Compile prepares a trace, reading and compiling batches of ranks in parallel. It fails with a [sim.NotCompiledError] on
// ops that the backend does not run: I/O, and collectives other than allreduce, allgather, reducescatter, alltoall and a
// bcast, which takes its duration; the rest is to be lowered first. The trace's references must be in range.
func Compile(s dag.Source) (*Program, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	ranks, comms, batches := h.Ranks, h.Comms, h.Batches
	p := &Program{graphs: make([]*graph, ranks), groups: make([]group, len(comms))}
	for i := range comms {
		if p.groups[i], err = newGroup(&comms[i], ranks); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
	}
	_, err = par.EachWith(len(batches), func() *compiler { return newCompiler(p, s, h) },
		func(c *compiler, i int) error { return c.batch(batches[i]) })
	if err != nil {
		return nil, err
	}
	for _, g := range p.graphs {
		p.ops += int64(len(g.waits))
		p.rounded += g.rounded
		p.untimed += g.untimed
	}
	return p, nil
}
