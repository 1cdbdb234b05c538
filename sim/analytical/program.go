package analytical

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim"
)

// Program is a compiled trace. It may run several times, concurrently.
type Program struct {
	graphs []*graph // by rank; ranks with the same DAG share one
	// overlapped gives memory accesses a lane of their own, so that communication overlaps with them.
	overlapped bool
	groups     []group // by communicator
	ops        int64
	rounded    int64
	untimed    int64
}

// NPUs returns the number of NPUs of the program, its ranks.
func (p *Program) NPUs() int {
	return len(p.graphs)
}

// Rounded returns the number of durations and release times that were rounded to the nearest nanosecond.
func (p *Program) Rounded() int64 {
	return p.rounded
}

// Untimed returns the number of accelerator calcs with flops but no duration. Without the roofline model, each takes a
// nanosecond, as in ASTRA-sim.
func (p *Program) Untimed() int64 {
	return p.untimed
}

// warnShortReceives warns about receives that are shorter than their messages.
func (p *Program) warnShortReceives(e *sim.Env) {
	wild := make([]bool, len(p.graphs))
	for rank, g := range p.graphs {
		for i := range g.waits {
			op := &g.ops[i]
			wild[rank] = wild[rank] || op.kind == opRecv && (op.peer == dag.AnySource || g.tag(uint32(i)) == dag.AnyTag)
		}
	}
	sim.WarnShortReceives(e, len(p.graphs), func(add func(m sim.MessageEnd)) {
		for rank, g := range p.graphs {
			for i := range uint32(len(g.waits)) {
				op := &g.ops[i]
				m := sim.MessageEnd{Send: op.kind == opSend, From: uint32(rank), To: uint32(op.peer), Size: op.bytes,
					Op: i, Tag: g.tag(i), Comm: op.comm}
				switch op.kind {
				case opSend:
				case opRecv:
					m.From, m.To = m.To, m.From
				default:
					continue
				}
				if !wild[m.To] {
					add(m)
				}
			}
		}
	})
}

// graph is the DAG of a rank.
type graph struct {
	ops        []op // with a sentinel that ends the dependents of the last op
	dependents []uint32
	waits      []uint32 // by op: number of its dependencies
	roots      []uint32 // ops without dependencies
	lanes      int
	streams    []int32 // by lane from laneStreams on: stream of the rank

	// Nil if all values are 0.
	tags     []int64
	flops    []int64
	dims     []int32
	priority []int32
	release  []uint64

	startFirst      []uint32 // by op: start of its list in startDependents; nil: no start dependents
	startDependents []uint32

	rounded int64
	untimed int64
}

// op is an op of a graph.
type op struct {
	bytes uint64
	time  uint64 // duration in nanoseconds; 1 if the trace has 0
	peer  int32  // of a memory access: number of ranks whose parts it gathers, 0 if unknown
	comm  int32
	first uint32 // start of its dependents
	kind  opKind
	lane  uint8
	coll  Collective
	bare  bool // a calc with a duration but neither flops nor bytes
	local bool // a memory access that is not remote
}

// opKind is the backend's kind of an op.
type opKind uint8

const (
	opCompute opKind = iota
	opMemory
	opSend
	opRecv
	opCollective
	opReplayed // a collective that takes the trace's duration
	opMarker
)

// model returns the kind of the trace's op.
func (k opKind) model() dag.Kind {
	return [...]dag.Kind{opCompute: dag.Calc, opMemory: dag.Mem, opSend: dag.Send, opRecv: dag.Recv,
		opCollective: dag.Coll, opReplayed: dag.Coll, opMarker: dag.Calc}[k]
}

// Lanes of an NPU are resources that ops occupy exclusively. Each accelerator stream is a lane.
const (
	laneComm     = 0
	laneHost     = 1
	laneStreams  = 2 // first stream
	maxLanes     = 64
	laneUnneeded = maxLanes // for receives
)

// group is the ranks of a communicator.
type group struct {
	members   []int32 // in communicator order
	sorted    []int32 // positions sorted by rank; nil if the ranks are ascending
	ascending bool
}

// position returns the position of an NPU in the group, or -1 if it is not in the group.
func (g *group) position(npu int32) int32 {
	if g.ascending {
		i, found := slices.BinarySearch(g.members, npu)
		if !found {
			return -1
		}
		return int32(i)
	}
	i, found := slices.BinarySearchFunc(g.sorted, npu, func(position, npu int32) int {
		return int(g.members[position] - npu)
	})
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

// Compile compiles a trace, reading batches of ranks in parallel. It returns a [*sim.NotCompiledError] for ops that the
// backend does not run: I/O, and collectives other than allreduce, allgather, reducescatter, alltoall and a bcast,
// which takes the trace's duration. These must be lowered first. References within the trace must be in range.
func Compile(s dag.Source) (*Program, error) {
	return compile(context.Background(), s, false)
}

// compile is Compile; overlapped is Program.overlapped.
func compile(ctx context.Context, s dag.Source, overlapped bool) (*Program, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	ranks, comms, batches := h.Ranks, h.Comms, h.Batches
	p := &Program{graphs: make([]*graph, ranks), groups: make([]group, len(comms)), overlapped: overlapped}
	for i := range comms {
		if p.groups[i], err = newGroup(&comms[i], ranks); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
	}
	_, err = par.EachWith(len(batches), func() *compiler { return newCompiler(ctx, p, s, h) },
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
