package collective

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
)

// instances are all collective instances of a trace. Instance k of a communicator consists of the k-th collective op of
// each member, in index order.
type instances struct {
	ctx      context.Context // ends the passes over source early; nil: never
	source   dag.Source
	header   *dag.Header           // of the source
	lowered  [dag.NumSubkinds]bool // collectives to lower
	uneven   [dag.NumSubkinds]bool // those of which only uneven ones are lowered
	comms    []*comm               // by communicator; nil for communicators without collectives
	count    int64                 // instances of all communicators
	elements [dag.NumSubkinds]bool // collectives whose messages depend on the size of an element
	direct   bool                  // Choice.isDirect
	sized    atomic.Bool           // the trace has collectives to lower that may state sizes in their attributes
	firstTag int64                 // tag of the first instance of the trace; later instances have lower tags
}

// comm is the instances of one communicator.
type comm struct {
	*group
	nodes     *nodeMap // nil: not needed, or each member has a node of its own
	first     int64    // number of instance 0 among the instances of all communicators
	instances []instance
	tables    []int64 // Participant.starts of the instances that have it
}

// instance is one collective as the member at position 0 states it.
type instance struct {
	// as Participant.Bytes; with a table, the largest number of bytes that one member contributes or receives
	bytes int64
	table int64 // index of its table in comm.tables; -1: none
	// A member states its bytes by partner. Counts of both ends of a pair cancel out in balance.
	counted uint32 // 1: so
	later   uint32 // 1: lowered by an algorithm in direct, because the collective is non-blocking at a member
	element uint32 // bytes of one element; 0: unknown
	balance uint64
	root    int32 // position
	op      int32 // op index at the member at position 0
	kind    dag.Subkind
	uneven  bool // members have different blocks
	even    bool // remains in the trace although others of its kind are lowered
}

// cursor counts the collectives of a rank by communicator during a pass over its ops.
type cursor struct {
	next     []int32 // by communicator
	position []int32 // position of the rank, by communicator; set at its first collective
	touched  []int32
	started  []bool // by op: a collective on whose start others depend
}

func newCursor(comms int) *cursor {
	return &cursor{next: make([]int32, comms), position: make([]int32, comms)}
}

// reset prepares the cursor for another rank.
func (c *cursor) reset() {
	for _, i := range c.touched {
		c.next[i] = 0
	}
	c.touched = c.touched[:0]
}

// findStarted sets started for a rank.
func (c *cursor) findStarted(r *dag.Rank) {
	c.started = slices.Grow(c.started[:0], r.Len())[:r.Len()]
	clear(c.started)
	for i := range min(r.Len(), len(r.StartDeps.End)) {
		for _, off := range r.StartDeps.Of(i) {
			on := int32(i) - off
			c.started[on] = r.Kind[on] == dag.Coll
		}
	}
}

// take returns the number of earlier calls for the communicator.
func (c *cursor) take(comm int32) int32 {
	k := c.next[comm]
	if k == 0 {
		c.touched = append(c.touched, comm)
	}
	c.next[comm]++
	return k
}

// collectInstances collects the instances of a trace. It returns an error if the members of an instance disagree; for
// instances that are not lowered, it checks number and kind only. It returns nil for a trace without collectives.
func collectInstances(ctx context.Context, s dag.Source, choice *Choice,
	selected Selection) (*instances, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	in := &instances{ctx: ctx, source: s, header: h, comms: make([]*comm, len(h.Comms)),
		direct: choice.isDirect()}
	for _, kind := range allCollectives {
		in.lowered[kind], in.uneven[kind] = selected.of(kind)
		in.elements[kind] = choice.needsElements(kind)
	}
	found, err := in.countOps()
	if err != nil || !found {
		return nil, err
	}
	if choice.UsesNodes() {
		if err := in.findNodes(selected.Nodes); err != nil {
			return nil, err
		}
	}
	if err := in.eachFirst(in.columns(dag.Replay), in.describe); err != nil {
		return nil, err
	}
	in.makeTables()
	if err := in.eachCollective(in.check); err != nil {
		return nil, err
	}
	if err := in.sumTables(); err != nil {
		return nil, err
	}
	in.keepEven()
	return in, nil
}

// census counts the collectives of a rank by communicator, and has the lowest tag of its messages.
type census struct {
	collectives []collectives
	lowest      int64
}

type collectives struct{ comm, ops int32 }

// countOps finds the communicators with collectives, checks that their members have equal numbers of them, and chooses
// the tags. It reports whether the trace has collectives.
func (in *instances) countOps() (found bool, err error) {
	ranks := make([]census, in.header.Ranks)
	newScratch := func() *cursor { return newCursor(len(in.comms)) }
	err = forEachRank(in.ctx, in.source, newScratch, func(rank int, r *dag.Rank, c *cursor) (err error) {
		ranks[rank], err = in.census(rank, r, c)
		return err
	})
	if err != nil {
		return false, err
	}
	comms := in.header.Comms
	members := make([]int, len(in.comms)) // number of members with collectives
	for rank := range ranks {
		for _, n := range ranks[rank].collectives {
			found = true
			c := in.comms[n.comm]
			if c == nil {
				g, err := newGroup(&comms[n.comm], len(ranks))
				if err != nil {
					return false, fmt.Errorf("communicator %d: %w", n.comm, err)
				}
				c = &comm{group: g, instances: make([]instance, n.ops)}
				in.comms[n.comm] = c
			}
			if _, member := c.position(int32(rank)); !member {
				return false, fmt.Errorf("rank %d: collective of communicator %d, which does not contain the rank",
					rank, n.comm)
			}
			if int(n.ops) != len(c.instances) {
				return false, fmt.Errorf("rank %d has %d collectives of communicator %d, expected %d as other "+
					"members have", rank, n.ops, n.comm, len(c.instances))
			}
			members[n.comm]++
		}
	}
	for i, c := range in.comms {
		if c == nil {
			continue
		}
		if members[i] < c.size {
			return false, c.missingMember(int32(i), ranks)
		}
		c.first = in.count
		in.count += int64(len(c.instances))
	}
	return found, in.chooseTags(ranks)
}

// census counts the collectives of a rank.
func (in *instances) census(rank int, r *dag.Rank, c *cursor) (n census, err error) {
	c.reset()
	for i, kind := range r.Kind {
		switch kind {
		case dag.Coll:
			comm := r.Comm.At(i)
			if comm < 0 || int(comm) >= len(in.comms) {
				return n, fmt.Errorf("rank %d, op %d: communicator %d, expected one of the trace's %d",
					rank, i, comm, len(in.comms))
			}
			c.take(comm)
			if kind := r.Subkind.At(i); kind.Of(dag.Coll) && in.lowered[kind] &&
				(kind == dag.Alltoallv || in.elements[kind]) {
				in.sized.Store(true)
			}
		case dag.Send, dag.Recv:
			n.lowest = min(n.lowest, r.Tag.At(i))
		}
	}
	for _, comm := range c.touched {
		n.collectives = append(n.collectives, collectives{comm, c.next[comm]})
	}
	return n, nil
}

// chooseTags sets firstTag so that the tags of the instances are below all tags of the trace. Some collectives of the
// trace may have been lowered before.
func (in *instances) chooseTags(ranks []census) error {
	in.firstTag = dag.CollectiveTag
	for rank := range ranks {
		lowest := ranks[rank].lowest
		if least := math.MinInt64 + lanes*in.count; lowest < least {
			return fmt.Errorf("rank %d: tag %d, expected %d or more, because tags below are needed for %d collectives",
				rank,
				lowest, least, in.count)
		}
		in.firstTag = min(in.firstTag, lowest-1)
	}
	return nil
}

// missingMember returns the error for a communicator with collectives at some of its members only.
func (c *comm) missingMember(id int32, ranks []census) error {
	for p := range c.size {
		rank := c.rank(p)
		has := func(n collectives) bool { return n.comm == id }
		if !slices.ContainsFunc(ranks[rank].collectives, has) {
			return fmt.Errorf("rank %d has no collective of communicator %d, expected %d as other members have",
				rank, id, len(c.instances))
		}
	}
	panic("unreachable: a member without collectives was counted")
}

// findNodes sets the node maps of the communicators; nodes is the node of each rank, nil for those of the trace.
func (in *instances) findNodes(nodes []int32) error {
	ranks := in.header.Ranks
	if nodes == nil {
		nodes = in.header.Nodes
	}
	if nodes == nil {
		return nil
	}
	if len(nodes) != ranks {
		return fmt.Errorf("the trace names the nodes of %d ranks, expected %d", len(nodes), ranks)
	}
	for _, c := range in.comms {
		if c == nil {
			continue
		}
		of := make([]int32, c.size)
		for p := range of {
			of[p] = nodes[c.rank(p)]
		}
		c.nodes = newNodeMap(of)
	}
	return nil
}

// member is the part of one rank in an instance.
type member struct {
	comm     *comm
	id       int32 // communicator
	k        int32 // instance
	position int
	rank     int
	op       int
	r        *dag.Rank
	later    bool // other ops depend on its start; set only if the choice needs it
}

// eachCollective calls visit for every collective op, in order within a rank and in parallel over ranks.
func (in *instances) eachCollective(visit func(m *member) error) error {
	return in.collectives(in.columns(dag.Replay), nil, visit)
}

// eachFirst is eachCollective for the ops of the members at position 0, which describe their instances, with the given
// columns. It skips batches without such members.
func (in *instances) eachFirst(columns dag.Columns, visit func(m *member) error) error {
	first := make([]bool, in.header.Ranks)
	for _, c := range in.comms {
		if c != nil {
			first[c.rank(0)] = true
		}
	}
	return in.collectives(columns, first, func(m *member) error {
		if m.position != 0 {
			return nil
		}
		return visit(m)
	})
}

// collectives calls visit for every collective op of the ranks for which needed is true; nil: of all.
func (in *instances) collectives(columns dag.Columns, needed []bool, visit func(m *member) error) error {
	newScratch := func() *cursor { return newCursor(len(in.comms)) }
	return forEachRankWith(in.ctx, in.source, columns, needed, newScratch, func(rank int, r *dag.Rank,
		c *cursor) error {
		c.reset()
		if in.direct {
			c.findStarted(r)
		}
		m := member{rank: rank, r: r}
		for i, kind := range m.r.Kind {
			if kind != dag.Coll {
				continue
			}
			in.locate(&m, i, c)
			if err := visit(&m); err != nil {
				return err
			}
		}
		return nil
	})
}

// columns returns the columns to read of the source: the given ones and those with sizes of collectives.
func (in *instances) columns(c dag.Columns) dag.Columns {
	if in.sized.Load() {
		return dag.All
	}
	return c
}

// locate sets m to collective op i of its rank. The cursor must have seen the rank's earlier collectives.
func (in *instances) locate(m *member, i int, c *cursor) {
	m.op, m.id = i, m.r.Comm.At(i)
	m.comm, m.later = in.comms[m.id], in.direct && c.started[i]
	m.k = c.take(m.id)
	if m.k == 0 {
		p, _ := m.comm.position(int32(m.rank))
		c.position[m.id] = int32(p)
	}
	m.position = int(c.position[m.id])
}

// instance returns the collective.
func (m *member) instance() *instance {
	return &m.comm.instances[m.k]
}

// table returns Participant.starts of an instance, nil if it has none.
func (c *comm) table(inst *instance) []int64 {
	if inst.table < 0 {
		return nil
	}
	return c.tables[inst.table : inst.table+int64(c.size)+1]
}

// largest returns the largest number of bytes that one member of an instance contributes or receives.
func (c *comm) largest(inst *instance) int64 {
	switch inst.kind {
	case dag.Gather, dag.Allgather:
		return int64(c.size) * inst.bytes
	}
	return inst.bytes
}

// traits returns the properties of an instance that select its algorithm.
func (c *comm) traits(inst *instance) traits {
	return traits{
		size: c.largest(inst), members: c.size, element: int64(inst.element), uneven: inst.uneven,
		later: inst.later != 0, layout: c.nodes.distribution(),
	}
}

// participant returns the member's part in its instance.
func (m *member) participant() Participant {
	inst := &m.comm.instances[m.k]
	c := Participant{
		Kind: inst.kind, Members: m.comm.size, Me: m.position, Root: int(inst.root),
		Bytes: inst.bytes, starts: m.comm.table(inst), nodes: m.comm.nodes, element: int64(inst.element),
	}
	switch {
	case inst.kind == dag.Barrier:
		c.Bytes = barrierBytes
	case inst.counted != 0:
		c.sends, c.recvs = m.counts()
	}
	return c
}

// barrierBytes is the message size of a barrier. LogGP's (bytes - 1) G is undefined for 0 bytes.
const barrierBytes = 1
