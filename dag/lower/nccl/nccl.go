// Package nccl lowers the collectives and grouped sends and receives of NCCL to its messages, channel by channel, and
// to
// the work of GPUs on the data. docs/reference/lowering-nccl.md describes it for users.
//
// The attributes of an op describe the call (attr.NCCLCall, attrs.go): algorithm, protocol, and the elements and chunk
// size of each channel. The options select these for a call without description (choose.go), by size or by NCCL's model
// of their times (tune.go). The attributes of the trace describe the connections of communicators (attr.NCCLTopology,
// topology.go). ring.go, tree.go, nvls.go and pat.go have the algorithms, pieces.go divides a chunk into messages,
// times.go has the times of GPU work.
//
// Sources: NCCL 2.20.5; for PAT NCCL 2.23.4; for the model of times also NCCL 2.27 and 2.30; Z. Hu et al.,
// "Demystifying NCCL: An In-depth Analysis of GPU Communication Protocols and
// Algorithms", arXiv 2507.04786, 2025; S. Shen et al., "ATLAHS: An Application-centric Network Simulator Toolchain for
// AI, HPC, and Distributed Storage", 2025, for the dependencies between work and messages.
package nccl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/internal/par"
)

// Options are the options of a lowering. In the zero value, GPU work takes no time.
type Options struct {
	// Times of GPU work by protocol; nil: those of the machine, which has none for LL128. If Simple is nil, too, those
	// for
	// LL128 are estimated from the machine's for Simple.
	Simple, LL, LL128 *Table
	Machine           string // one of [Machines]; "": GPU work takes no time
	ZeroReduction     bool   // GPU work and messages inside a node take no time
	Sample            bool   // draw times from the tables; otherwise use means
	Seed              int64  // random seed for Sample

	// AssumeRing lowers calls by algorithms without model (CollNet, NVLS over several nodes) as rings. Otherwise they
	// exchange no messages, and Report.Unsupported counts them.
	AssumeRing bool

	Registered bool // the buffers of NVLS calls are registered: GPUs do not copy their data

	// For calls without description. The zero values select by size, or with Tune by predicted time. NCCL's algorithm
	// for
	// a collective that does not have Algorithm is a ring.
	Algorithm, Protocol string
	Channels            int

	// Tune predicts the times of all algorithms and protocols as NCCL does, and selects the least. Any of the following
	// implies Tune; the zero values are NCCL 2.20, Hopper with NVSwitches, one NIC per GPU, and Intel.
	Tune              bool
	Version           string // 2.20, 2.23, 2.27 or 2.30
	GPU               string // volta, ampere, hopper or blackwell
	Intra             string // nvlink (through NVSwitches), nvlink-mesh or pci
	CPU               string // intel or amd
	NICs              int    // per node
	NICRate, LinkRate int64  // of a NIC, and of a GPU's links inside the node; bytes per second
	Unpredicted       bool   // is an error with any of these

	// Retune selects anew for collectives with description, too.
	Retune bool

	estimated bool // LL128 is estimated

	// Apart keeps one rank per GPU; otherwise there is one rank per node, as in [nodes.Joined].
	Apart bool
	Nodes nodes.Options
}

// Lowered is a trace with its NCCL calls lowered, read batch by batch.
type Lowered struct {
	*nodes.Source
	Report Report
}

// Lower lowers a trace, whose references must be in range ([dag.Rank.CheckReferences]). It does not change t.
//
// Every NCCL kernel (a collective, send or receive with the calls grouped with it) becomes a calc of zero duration with
// the dependencies of the calls, the messages and the work, a second calc after all of these, and a third calc on the
// stream of the calls, which dependents of the calls wait for. Channels are streams; channel i of all calls of a
// communicator on a rank is the same stream. Sends and receives without description remain unchanged.
//
// Lower returns an error if members of a communicator have different calls, for a send or receive without partner, for
// receives from any source or with any tag, and for collectives that NCCL does not have ([Knows]).
//
// Lower ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Lower(ctx context.Context, t *dag.Trace, o Options) (*Lowered, error) {
	lowered, err := lower(ctx, t, &o)
	if err != nil {
		return nil, fmt.Errorf("lowering NCCL calls: %w", err)
	}
	return lowered, nil
}

func lower(ctx context.Context, t *dag.Trace, o *Options) (*Lowered, error) {
	l, err := newLowering(ctx, t, o)
	if err != nil {
		return nil, err
	}
	var s *nodes.Source
	if o.Apart {
		s, err = nodes.Apart(ctx, l)
	} else {
		if o.ZeroReduction {
			o.Nodes.Bandwidth = 0
		}
		s, err = nodes.Joined(ctx, l, o.Nodes)
	}
	if err != nil {
		return nil, err
	}
	if err := l.assignTags(); err != nil {
		return nil, err
	}
	lowered := &Lowered{Source: s}
	lowered.Report, err = l.report(s)
	return lowered, err
}

// Knows reports whether a collective is one of NCCL's.
func Knows(s dag.Subkind) bool {
	switch s {
	case dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Bcast, dag.Reduce:
		return true
	}
	return false
}

// lowering is the state of lowering one trace. It implements nodes.Ranks.
type lowering struct {
	trace *dag.Trace
	o     *Options
	comms []*comm // by communicator; nil for communicators without collectives
	ranks []plan
	lanes []*lane // sends and receives
	next  map[pair]int64

	perNode []int32 // number of ranks on the node of each rank

	// proof, if not nil, receives the effects of ops; tests set it.
	proof func(rank, op int32, d does, c cell)
}

// plan is the state of one rank.
type plan struct {
	calls          []*call // call of each op; nil for ops that are not of NCCL
	number         []int32 // of each op: the instance of a collective, the first tag of a send or receive
	event          []int32 // of each op: the first op in the same kernel
	start, end     []int32 // of each op: its first and last op in the lowered trace
	forward        bool    // some op waits for a later one
	lowest, stream int32   // lowest stream, and lowest unused stream above all used ones
	figures        figures
}

// comm is a communicator.
type comm struct {
	id        int32
	members   []int32
	position  map[int32]int32
	topology  *topology
	perNode   int // maximum number of ranks of the trace on a node of the members
	instances []instance
	counts    []int32 // calls of each member
	tags      []int32 // of each lane of the instances: the number of messages, then the first tag
	chosen    map[choiceKey]*call
}

// instance is one collective of all members of a communicator.
type instance struct {
	call      *call // of the first member
	kind      dag.Subkind
	algorithm algorithm // by which it is lowered
	omitted   bool      // its algorithm has no model
	root      int32     // position
	lanes     int32     // index of its first lane in comm.tags
	first     int32     // rank of the first member
}

// pair is a sending and a receiving rank or node.
type pair struct{ from, to int32 }

func newLowering(ctx context.Context, t *dag.Trace, o *Options) (*lowering, error) {
	l := &lowering{trace: t, o: o, comms: make([]*comm, len(t.Comms)), ranks: make([]plan, len(t.Ranks))}
	if t.Nodes != nil && len(t.Nodes) != len(t.Ranks) {
		return nil, fmt.Errorf("the trace names the nodes of %d ranks, expected %d", len(t.Nodes), len(t.Ranks))
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := o.useMachine(); err != nil {
		return nil, err
	}
	topologies, err := attr.ParseNCCLTopologies(t.Attrs)
	if err != nil {
		return nil, fmt.Errorf("the attributes of the trace: %w", err)
	}
	l.perNode = ranksPerNode(t)
	parsed := make(map[string]*call)
	found := make(map[laneKey]*lane)
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		if err := l.planRank(rank, parsed, topologies, found); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	for _, c := range l.comms {
		if c == nil {
			continue
		}
		if err := c.complete(); err != nil {
			return nil, err
		}
	}
	return l, l.matchLanes(ctx)
}

// ranksPerNode returns the number of ranks on the node of each rank.
func ranksPerNode(t *dag.Trace) []int32 {
	counts, of := make(map[int32]int32), make([]int32, len(t.Ranks))
	for i := range of {
		of[i] = 1
	}
	for _, node := range t.Nodes {
		counts[node]++
	}
	for rank, node := range t.Nodes {
		of[rank] = counts[node]
	}
	return of
}

// planRank collects the calls of a rank.
func (l *lowering) planRank(rank int, parsed map[string]*call, topologies []attr.NCCLTopologies,
	found map[laneKey]*lane) error {
	r, p := l.trace.Ranks[rank], &l.ranks[rank]
	n := r.Len()
	*p = plan{calls: make([]*call, n), number: make([]int32, n), event: make([]int32, n),
		start: make([]int32, n), end: make([]int32, n), lowest: math.MaxInt32}
	for i, kind := range r.Kind {
		stream := r.Stream.At(i)
		p.lowest, p.stream = min(p.lowest, stream), max(p.stream, stream+1)
		if kind != dag.Coll && kind != dag.Send && kind != dag.Recv {
			continue
		}
		attrs := r.Attrs.At(i)
		c := parsed[attrs]
		if c == nil {
			var err error
			if c, err = parseCall(attrs, kind); err != nil {
				return fmt.Errorf("op %d: %w", i, err)
			}
			parsed[attrs] = c
		}
		p.calls[i] = c
		var err error
		if kind == dag.Coll {
			p.number[i], err = l.addCollective(int32(rank), r, i, c, topologies)
		} else {
			err = l.addMessage(int32(rank), r, i, c, found)
		}
		if err != nil {
			return fmt.Errorf("op %d: %w", i, err)
		}
	}
	p.lowest = min(p.lowest, p.stream)
	p.setEvents(r)
	return nil
}

// setEvents groups the ops by kernel.
func (p *plan) setEvents(r *dag.Rank) {
	for i, c := range p.calls {
		p.event[i] = int32(i)
		if i > 0 && c != nil && c.grouped && p.calls[i-1] != nil {
			p.event[i] = p.event[i-1]
		}
	}
	negative := func(off int32) bool { return off < 0 }
	p.forward = slices.ContainsFunc(r.Deps.Off, negative) || slices.ContainsFunc(r.StartDeps.Off, negative)
}

// addCollective adds a collective and returns the number of its instance.
func (l *lowering) addCollective(rank int32, r *dag.Rank, i int, given *call,
	topologies []attr.NCCLTopologies) (int32, error) {
	kind := r.Subkind.At(i)
	if !Knows(kind) {
		return 0, fmt.Errorf("NCCL has no %v: add --lower collectives", kind)
	}
	c, err := l.comm(r.Comm.At(i), r.Job.At(i), topologies)
	if err != nil {
		return 0, err
	}
	position, member := c.position[rank]
	if !member {
		return 0, fmt.Errorf("collective of communicator %d, which does not contain the rank", c.id)
	}
	inst := instance{call: given, kind: kind, first: rank}
	if kind.Rooted() && r.Peer.At(i) != dag.UnknownRoot { // else position 0
		root, member := c.position[r.Peer.At(i)]
		if !member {
			return 0, fmt.Errorf("%v with root %d, which is not a member of communicator %d", kind, r.Peer.At(i), c.id)
		}
		inst.root = root
	}
	if given.chosen || l.o.Retune {
		inst.call = c.choose(l.o, kind, r.Bytes.At(i), r.RecvBytes.At(i))
	}
	k := c.counts[position]
	c.counts[position]++
	if int(k) < len(c.instances) {
		first := &c.instances[k]
		if first.kind != kind || first.root != inst.root || !first.call.agrees(inst.call) {
			return 0, fmt.Errorf("collective %d of communicator %d differs from that of rank %d", k, c.id,
				first.first)
		}
		return k, nil
	}
	inst.settle(c.topology, l.o.AssumeRing)
	lanes := int64(len(inst.call.channels)) * inst.lanesPerChannel(int64(len(c.members)))
	if int64(len(c.tags))+lanes > math.MaxInt32 {
		return 0, fmt.Errorf("communicator %d has too many collectives", c.id)
	}
	inst.lanes = int32(len(c.tags))
	c.tags = append(c.tags, make([]int32, lanes)...)
	c.instances = append(c.instances, inst)
	return k, nil
}

// comm returns a communicator. The job of its first call determines its topology.
func (l *lowering) comm(id, job int32, topologies []attr.NCCLTopologies) (*comm, error) {
	if id < 0 || int(id) >= len(l.comms) {
		return nil, fmt.Errorf("communicator %d, expected one of the trace's %d", id, len(l.comms))
	}
	if c := l.comms[id]; c != nil {
		return c, nil
	}
	given := &l.trace.Comms[id]
	if err := given.Check(len(l.trace.Ranks)); err != nil {
		return nil, fmt.Errorf("communicator %d: %w", id, err)
	}
	c := &comm{id: id, members: given.Members(), chosen: make(map[choiceKey]*call)}
	c.position = make(map[int32]int32, len(c.members))
	for i, rank := range c.members {
		c.position[rank] = int32(i)
	}
	c.counts = make([]int32, len(c.members))
	var known attr.NCCLTopology
	if int(job) < len(topologies) && job >= 0 {
		known = topologies[job][given.Name]
	}
	var err error
	if c.topology, err = newTopology(known, c.members, nodesOf(c.members, l.trace.Nodes)); err != nil {
		return nil, fmt.Errorf("communicator %d (%s): %w", id, given.Name, err)
	}
	for _, rank := range c.members {
		c.perNode = max(c.perNode, int(l.perNode[rank]))
	}
	l.comms[id] = c
	return c, nil
}

// settle determines the algorithm by which the collective is lowered.
func (inst *instance) settle(t *topology, assumeRing bool) {
	a := inst.call.algorithm
	models := a <= ring || a == pat || a == nvls && t.nodes() == 1 || a == nvlsTree && t.even()
	switch {
	case models && a.has(inst.kind):
		inst.algorithm = a
	case a == tree || a == pat:
		inst.algorithm = ring
	default:
		inst.algorithm, inst.omitted = ring, !assumeRing
	}
	if inst.algorithm == nvlsTree {
		t.connectHeads()
	}
}

// lanesPerChannel returns the number of lanes of n members.
func (inst *instance) lanesPerChannel(n int64) int64 {
	switch inst.algorithm {
	case tree, nvls:
		return 2 * n
	case nvlsTree:
		return 4 * n
	case pat:
		return n * int64(bits.Len64(uint64(n-1)))
	}
	return n
}

// complete returns an error unless all members have equal numbers of calls.
func (c *comm) complete() error {
	for i, n := range c.counts {
		if int(n) != len(c.instances) {
			return fmt.Errorf("rank %d has %d collectives of communicator %d, expected %d as other members have",
				c.members[i], n, c.id, len(c.instances))
		}
	}
	return nil
}

// Meta returns the metadata of the trace.
func (l *lowering) Meta() dag.Meta { return l.trace.Meta }

// NumRanks returns how many ranks the trace has.
func (l *lowering) NumRanks() int { return len(l.ranks) }

// Kinds returns the kinds of the ops of the trace except collectives.
func (l *lowering) Kinds() []dag.Kind {
	return slices.DeleteFunc(l.trace.Kinds(), func(k dag.Kind) bool { return k == dag.Coll })
}

// pairOf returns the ranks or nodes among whose messages tags must be unique.
func (l *lowering) pairOf(from, to int32) pair {
	if l.o.Apart || l.trace.Nodes == nil {
		return pair{from, to}
	}
	return pair{l.trace.Nodes[from], l.trace.Nodes[to]}
}

var errTags = errors.New("more than 2^31 messages from one node to another")

// take reserves count tags for messages from one rank to another and returns the first.
func (l *lowering) take(from, to int32, count int32) (int32, error) {
	p := l.pairOf(from, to)
	first := l.next[p]
	if first+int64(count) > math.MaxInt32 {
		return 0, errTags
	}
	l.next[p] = first + int64(count)
	return int32(first), nil
}

// assignTags assigns the tags after the messages were counted. Tags are unique among the messages from one node to
// another.
func (l *lowering) assignTags() (err error) {
	l.next = make(map[pair]int64)
	for _, c := range l.comms {
		if c == nil {
			continue
		}
		for k := range c.instances {
			inst := &c.instances[k]
			inst.eachLane(c, func(lane, from, to int32) {
				if err == nil {
					c.tags[lane], err = l.take(c.members[from], c.members[to], c.tags[lane])
				}
			})
		}
	}
	for _, lane := range l.lanes {
		for _, m := range lane.sends {
			first, takeErr := l.take(lane.from, lane.to, m.count)
			if takeErr != nil {
				return takeErr
			}
			l.ranks[lane.from].number[m.op] = first
		}
		for i, m := range lane.recvs {
			l.ranks[lane.to].number[m.op] = l.ranks[lane.from].number[lane.sends[i].op]
		}
	}
	return err
}

// eachLane calls do for each lane of an instance. from and to are positions.
func (inst *instance) eachLane(c *comm, do func(lane, from, to int32)) {
	n, lane := int32(len(c.members)), inst.lanes
	for i := range inst.call.channels {
		ch := inst.call.channels[i].ring
		switch t := c.topology; inst.algorithm {
		case tree:
			for rank, parent := range t.tree(ch).parent {
				if parent != none {
					do(lane+2*int32(rank), int32(rank), parent)
					do(lane+2*int32(rank)+1, parent, int32(rank))
				}
			}
		case nvls, nvlsTree:
			for rank := range n {
				if first := t.groups[t.node[rank]][0]; rank != first {
					do(lane+signalLane*n+rank, rank, first)
					do(lane+answerLane*n+rank, first, rank)
				}
				if inst.algorithm == nvls {
					continue
				}
				if parent := t.headTree(ch).parent[rank]; parent != none {
					do(lane+upLane*n+rank, rank, parent)
					do(lane+downLane*n+rank, parent, rank)
				}
			}
		case pat:
			levels := int32(bits.Len32(uint32(n - 1)))
			for rank := range n {
				for level := range levels {
					to := rank - 1<<level
					if inst.kind == dag.Allgather {
						to = rank + 1<<level
					}
					do(lane+rank*levels+level, rank, (to+n)%n)
				}
			}
		default:
			for rank := range n {
				do(lane+rank, rank, t.ring(ch).next(rank))
			}
		}
		lane += int32(inst.lanesPerChannel(int64(n)))
	}
}
