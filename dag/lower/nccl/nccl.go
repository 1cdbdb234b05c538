// Package nccl lowers the collectives and grouped sends and receives of NCCL to the messages that NCCL 2.20 exchanges for
// them, channel by channel, and to the work that GPUs do on the data in between. docs/lowering-nccl.md describes it for users.
//
// What a trace of NCCL says of a call is in the member "nccl" of the op's attributes (attrs.go): algorithm, protocol and
// how much of the data each channel carries in chunks of which size. For a call of which nothing is said the options choose
// (choose.go). The connections of a communicator are in the trace's attributes (topology.go). ring.go and tree.go have the
// algorithms, pieces.go how a chunk is cut into messages, times.go how long GPUs take.
//
// Sources: NCCL 2.20.5; Z. Hu et al., "Demystifying NCCL: An In-depth Analysis of GPU Communication Protocols and
// Algorithms", arXiv 2507.04786, 2025; S. Shen et al., "ATLAHS: An Application-centric Network Simulator Toolchain for AI,
// HPC, and Distributed Storage", 2025, for how work and messages depend on each other.
package nccl

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower/nodes"
)

// Options says how to lower. The zero value needs no tables: no work takes any time.
type Options struct {
	Simple, LL, LL128 *Table // of the work on data by protocol; nil: it takes no time
	ZeroReduction     bool   // work and messages inside a node take no time
	Sample            bool   // draw times from the tables instead of taking their means
	Seed              int64  // of what is drawn

	// AssumeRing has calls by algorithms that are not modelled (NVLS, CollNet) carried out by the ring algorithm. Otherwise
	// they exchange no messages, and Report.Unsupported counts them.
	AssumeRing bool

	// For calls of which the trace does not say how they are carried out; the zero values leave it to their size.
	Algorithm, Protocol string
	Channels            int

	// Apart leaves every rank a rank of its own; otherwise there is one for each node, joined as by [nodes.Joined].
	Apart bool
	Nodes nodes.Options
}

// Lowered is a trace with its NCCL calls lowered, to be read batch by batch.
type Lowered struct {
	*nodes.Source
	Report Report
}

// Lower lowers a trace, whose references must be in range ([dag.Rank.CheckReferences]); t is not changed.
//
// Every kernel of NCCL, that is a collective, send or receive with those grouped with it, becomes a calc that takes no time
// and waits for what the calls wait for, the messages and the work, another calc after all of these, and a third on the
// stream of the calls, for which those wait that wait for the calls. Channels are streams of their own; channel i of all
// calls of a communicator on a rank is the same. Sends and receives of which the trace says nothing stay as they are.
//
// It fails where members of a communicator do not have the same calls, where a send or a receive has no partner, for
// receives from any source or with any tag, and for collectives that [Knows] does not know.
func Lower(t *dag.Trace, o Options) (*Lowered, error) {
	lowered, err := lower(t, &o)
	if err != nil {
		return nil, fmt.Errorf("lowering NCCL calls: %w", err)
	}
	return lowered, nil
}

func lower(t *dag.Trace, o *Options) (*Lowered, error) {
	l, err := newLowering(t, o)
	if err != nil {
		return nil, err
	}
	var s *nodes.Source
	if o.Apart {
		s, err = nodes.Apart(l)
	} else {
		if o.ZeroReduction {
			o.Nodes.Bandwidth = 0
		}
		s, err = nodes.Joined(l, o.Nodes)
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

// lowering is a trace in the course of being lowered. It is a nodes.Ranks.
type lowering struct {
	trace *dag.Trace
	o     *Options
	comms []*comm // by communicator; nil where no op is a collective of it
	ranks []plan
	lanes []*lane // of sends and receives
	next  map[pair]int64
}

// plan is what is known of a rank.
type plan struct {
	calls          []*call // of each op; nil for what is not of NCCL
	number         []int32 // of each op: a collective's instance, the first tag of a send or receive
	event          []int32 // of each op: the first of those that run in its kernel
	start, end     []int32 // of each op: what starts first and what ends last of what it becomes
	forward        bool    // some op waits for a later one
	lowest, stream int32   // its lowest stream, and the first that it does not use
	figures        figures
}

// comm is a communicator.
type comm struct {
	id        int32
	members   []int32
	position  map[int32]int32
	topology  *topology
	instances []instance
	counts    []int32 // of each member: how many calls it has
	tags      []int32 // of the instances' lanes: the number of messages, then the first tag
	chosen    map[choiceKey]*call
}

// instance is a call of all members of a communicator.
type instance struct {
	call  *call // as the first member has it
	kind  dag.Subkind
	root  int32 // position
	lanes int32 // where its lanes begin in comm.tags
	first int32 // rank of the member that was met first
}

// pair is two ranks, or nodes, of which one sends to the other.
type pair struct{ from, to int32 }

func newLowering(t *dag.Trace, o *Options) (*lowering, error) {
	l := &lowering{trace: t, o: o, comms: make([]*comm, len(t.Comms)), ranks: make([]plan, len(t.Ranks))}
	if t.Nodes != nil && len(t.Nodes) != len(t.Ranks) {
		return nil, fmt.Errorf("the trace names the nodes of %d ranks, expected %d", len(t.Nodes), len(t.Ranks))
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	topologies, err := attr.ParseNCCLTopologies(t.Attrs)
	if err != nil {
		return nil, fmt.Errorf("the attributes of the trace: %w", err)
	}
	parsed := make(map[string]*call)
	found := make(map[laneKey]*lane)
	for rank := range t.Ranks {
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
	return l, l.matchLanes(found)
}

// planRank finds the calls of a rank.
func (l *lowering) planRank(rank int, parsed map[string]*call, topologies []attr.NCCLTopologies,
	found map[laneKey]*lane) error {
	r, p := &l.trace.Ranks[rank], &l.ranks[rank]
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

// setEvents finds the ops that run in one kernel.
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

// addCollective notes a collective and returns the number of its instance.
func (l *lowering) addCollective(rank int32, r *dag.Rank, i int, given *call, topologies []attr.NCCLTopologies) (int32, error) {
	kind := r.Subkind.At(i)
	if !Knows(kind) {
		return 0, fmt.Errorf("NCCL has no %v: lower it before, as with --lower collectives", kind)
	}
	c, err := l.comm(r.Comm.At(i), r.Job.At(i), topologies)
	if err != nil {
		return 0, err
	}
	position, member := c.position[rank]
	if !member {
		return 0, fmt.Errorf("a collective of communicator %d, of which the rank is no member", c.id)
	}
	inst := instance{call: given, kind: kind, first: rank}
	if kind.Rooted() {
		root, member := c.position[r.Peer.At(i)]
		if !member {
			return 0, fmt.Errorf("the root of a %v of communicator %d is rank %d, which is no member", kind, c.id, r.Peer.At(i))
		}
		inst.root = root
	}
	if given.chosen {
		inst.call = c.choose(l.o, kind, r.Bytes.At(i), r.RecvBytes.At(i))
	}
	k := c.counts[position]
	c.counts[position]++
	if int(k) < len(c.instances) {
		first := &c.instances[k]
		if first.kind != kind || first.root != inst.root || !first.call.agrees(inst.call) {
			return 0, fmt.Errorf("collective %d of communicator %d is not the same as that of rank %d", k, c.id, first.first)
		}
		return k, nil
	}
	lanes := int64(len(inst.call.channels)) * int64(len(c.members))
	if inst.call.algorithm == tree && kind == dag.Allreduce {
		lanes *= 2
	}
	if int64(len(c.tags))+lanes > math.MaxInt32 {
		return 0, fmt.Errorf("communicator %d has too many collectives", c.id)
	}
	inst.lanes = int32(len(c.tags))
	c.tags = append(c.tags, make([]int32, lanes)...)
	c.instances = append(c.instances, inst)
	return k, nil
}

// comm returns a communicator; of the first call it has the job.
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
	l.comms[id] = c
	return c, nil
}

// complete returns an error unless all members have all calls.
func (c *comm) complete() error {
	for i, n := range c.counts {
		if int(n) != len(c.instances) {
			return fmt.Errorf("rank %d has %d collectives of communicator %d, expected %d as other members have", c.members[i], n, c.id,
				len(c.instances))
		}
	}
	return nil
}

// Meta returns the metadata of the trace.
func (l *lowering) Meta() dag.Meta { return l.trace.Meta }

// NumRanks returns how many ranks the trace has.
func (l *lowering) NumRanks() int { return len(l.ranks) }

// Kinds returns the kinds of op that the trace has, but for collectives.
func (l *lowering) Kinds() []dag.Kind {
	return slices.DeleteFunc(l.trace.Kinds(), func(k dag.Kind) bool { return k == dag.Coll })
}

// pairOf returns what two ranks share the tags of their messages with.
func (l *lowering) pairOf(from, to int32) pair {
	if l.o.Apart || l.trace.Nodes == nil {
		return pair{from, to}
	}
	return pair{l.trace.Nodes[from], l.trace.Nodes[to]}
}

var errTags = errors.New("more than 2^31 messages from one node to another")

// take returns the first of so many tags that messages from one rank to another get.
func (l *lowering) take(from, to int32, count int32) (int32, error) {
	p := l.pairOf(from, to)
	first := l.next[p]
	if first+int64(count) > math.MaxInt32 {
		return 0, errTags
	}
	l.next[p] = first + int64(count)
	return int32(first), nil
}

// assignTags gives every message a tag of its own among those from its node to its partner's, after all were counted.
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

// eachLane calls do with the lanes of an instance, from position to position.
func (inst *instance) eachLane(c *comm, do func(lane, from, to int32)) {
	lane := inst.lanes
	for i := range inst.call.channels {
		ch := inst.call.channels[i].ring
		if inst.call.algorithm == tree && inst.kind == dag.Allreduce {
			t := c.topology.tree(ch)
			for rank, parent := range t.parent {
				if parent != none {
					do(lane, int32(rank), parent)
					do(lane+1, parent, int32(rank))
				}
				lane += 2
			}
			continue
		}
		o := c.topology.ring(ch)
		for rank := range c.members {
			do(lane, int32(rank), o.next(int32(rank)))
			lane++
		}
	}
}
