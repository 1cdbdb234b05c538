package analytical

import "fmt"

// The system layer of an NPU divides a collective into chunks. Each chunk passes through phases, and waits for each
// phase in a queue of a dimension.

// collectives is the part of an engine that runs collectives.
type collectives struct {
	topologies [numCollectives][]ring // by collective and dimension: rings of the implementations
	sizes      []int32                // of the dimensions that collectives can address (Network.Inner)
	all        uint32                 // one bit per dimension that collectives can address
	perQueue   int32                  // number of phases that a queue runs concurrently
	dims       int

	streams    []stream // numbered from 1
	freeStream int32
	queues     []queue    // by NPU and dimension
	counters   []counters // by NPU and dimension
	plans      planTable

	instances []map[uint64]*instance // by communicator and first tag: collectives issued by some ranks
	issued    [][]uint64             // by communicator and position: number of tags in use; nil: none
	rotation  []int32                // by NPU, for RoundRobin
	themis    *themis
}

// ring is the NPUs of a phase, in the view of an algorithm: those of a dimension of the network, or all NPUs in a row.
type ring struct {
	algorithm Algorithm
	dim       int
	n, stride int32
}

// counters select the next queue of a dimension, and the next tree.
type counters struct {
	any, lower, upper uint16
	trees             [numCollectives]uint8
}

// queue is a queue of a dimension: the running phases in front, then the waiting phases.
type queue struct {
	first, last int32 // streams; 0: none
	waiting     int32 // first waiting stream
	running     int32
}

// stream is a chunk of a collective at an NPU.
type stream struct {
	npu      int32
	plan     plan
	phase    int32 // index in the plan
	position int32 // position of the NPU in the phase's ring
	started  bool
	tree     treeState
	merged   bool // inner node of a tree: the first of two reductions is complete

	begun    int32 // number of started steps
	sent     int32
	received int32
	idle     int32  // steps after their delays, minus those that have sent
	trigger  uint64 // start of the last step
	posted   uint64 // with a mirror: when the last receive was posted

	next, previous int32 // neighbors in the queue
	priority       int64
	tag            uint64
	context        uint32
}

// instance is a collective as issued by its first NPU.
type instance struct {
	coll   Collective
	size   uint64
	npu    int32
	op     uint32
	issued int    // number of NPUs that issued it
	number uint32 // in engine.lastIssues, plus 1, with a critical path
}

func (c *collectives) init(e *engine) error {
	s := e.system
	c.dims = len(e.o.Network.Dims)
	c.sizes = e.o.Network.addresses()
	c.all = 1<<len(c.sizes) - 1
	c.perQueue = int32((s.ActiveChunks + s.Queues - 1) / s.Queues)
	for coll, algorithms := range s.Implementations {
		if len(algorithms) > c.dims {
			return fmt.Errorf("expected one algorithm per dimension for the %[2]v, found %[1]d for %[3]d dimensions",
				len(algorithms),
				Collective(coll), c.dims)
		}
		stride := int32(1)
		for d, a := range algorithms {
			n := int32(e.o.Network.Dims[d].NPUs)
			if a.One {
				c.topologies[coll] = append(c.topologies[coll], ring{a, d, int32(len(e.npus)), 1})
				break
			}
			c.topologies[coll] = append(c.topologies[coll], ring{a, d, n, stride})
			stride *= n
		}
	}
	c.streams = make([]stream, 1, len(e.npus)+1)
	c.queues = make([]queue, len(e.npus)*c.dims*s.Queues)
	c.counters = make([]counters, len(e.npus)*c.dims)
	for i := range c.counters {
		c.counters[i].upper = uint16(s.Queues / 2)
	}
	c.plans = newPlanTable()
	c.instances = make([]map[uint64]*instance, len(e.p.groups))
	c.issued = make([][]uint64, len(e.p.groups))
	switch s.InterDimension {
	case RoundRobin:
		c.rotation = make([]int32, len(e.npus))
	case Themis, ThemisFlex:
		c.themis = newThemis(&e.o.Network, s.InterDimension == ThemisFlex)
	}
	return nil
}

// collective issues a collective.
func (e *engine) collective(r int32, n *npu, o *op, i uint32) {
	group := &e.p.groups[o.comm]
	dims := int32(0)
	if n.g.dims != nil && o.comm == 0 {
		dims = n.g.dims[i]
	}
	tag, err := e.enter(r, o, i, group, dims)
	if err != nil {
		e.fail(err)
		return
	}
	if len(group.members) == 1 {
		e.finish(r, n, i)
		return
	}
	n.collective, n.tag = i, tag
	if e.themis != nil && r == 0 {
		e.themis.begin(e.queue.now)
	}
	switch e.system.Scheduling {
	case LIFO:
		n.priority++
	case FIFO:
		n.priority--
	case Explicit:
		n.priority = 0
		if n.g.priority != nil {
			n.priority = int64(n.g.priority[i])
		}
	}
	if custom := e.customOf(r, o, i); custom != nil {
		n.chunks = 1
		e.enqueue(r, n, e.customPlan(custom, o), o, tag)
		return
	}
	rings := e.topologies[o.coll]
	involved := uint32(dims)
	whole := len(group.members) == len(e.npus)
	if involved == 0 {
		involved = e.all
	}
	row := e.rowOf(r, uint32(dims))
	switch {
	case len(rings) == 0:
		e.failOp(r, i, "is an %v without an implementation in the system file", o.coll)
		return
	case !whole:
		rings = []ring{e.ringOfGroup(o)}
		involved = 1
	case e.o.Network.Inner != nil:
		rings, involved = e.halve(rings, involved)
	}
	c := chunker{e: e, npu: r, coll: o.coll, rings: rings, involved: involved, comm: -1, row: row, tag: tag}
	if !whole {
		c.comm = o.comm
	}
	chunk, size := e.cut(o.coll, o.bytes)
	if chunks := size / chunk; chunks > maxChunks/uint64(len(e.npus)) {
		e.failOp(r, i, "is an %v of %d chunks on each of %d NPUs, expected at most %d chunks in total", o.coll,
			chunks, len(e.npus), maxChunks)
		return
	}
	if e.classes != nil {
		e.enterClass(r, n, o, &c, chunk, size)
		return
	}
	e.enqueueChunks(r, n, o, i, &c, chunk, size)
}

// enqueueChunks queues the chunks of a collective of the given size.
func (e *engine) enqueueChunks(r int32, n *npu, o *op, i uint32, c *chunker, chunk, size uint64) {
	n.chunks = 1 // prevents its end before all chunks exist
	for k := uint64(0); size > 0 || k == 0; k++ {
		var plan plan
		var err error
		if plan, size, err = c.chunk(o, c.tag+k, chunk, size); err != nil {
			e.failOp(r, i, "is an %v of %d bytes: %v", o.coll, o.bytes, err)
			return
		}
		n.chunks++
		e.enqueue(r, n, plan, o, c.tag+k)
	}
	n.chunks--
}

// ringOfGroup returns the ring of a communicator that lacks some NPUs.
func (e *engine) ringOfGroup(o *op) ring {
	a := Algorithm{Name: RingAlgorithm}
	if implementations := e.system.Implementations[o.coll]; len(implementations) == 1 {
		a = implementations[0]
	}
	return ring{algorithm: a, n: int32(len(e.p.groups[o.comm].members))}
}

// enter returns the tag of the first chunk of a collective issued by an NPU; the other chunks have the following tags.
// As in ASTRA-sim, each NPU counts separately. If all ranks of the communicator take part together, enter checks that
// they issue the same collective.
func (e *engine) enter(r int32, o *op, i uint32, g *group, dims int32) (tag uint64, err error) {
	if e.issued[o.comm] == nil {
		e.issued[o.comm] = make([]uint64, len(g.members))
		e.instances[o.comm] = make(map[uint64]*instance)
	}
	issued := &e.issued[o.comm][g.position(r)]
	tag = *issued
	*issued += e.chunksOf(o)
	if dims != 0 && uint32(dims)&e.all != e.all {
		return tag, nil // NPUs outside the rings may issue other collectives
	}
	in := e.instances[o.comm][tag]
	if in == nil {
		in = &instance{coll: o.coll, size: o.bytes, npu: r, op: i}
		e.instances[o.comm][tag] = in
	}
	if in.coll != o.coll || in.size != o.bytes {
		return 0, fmt.Errorf("rank %d %s (%v of %d bytes) is a collective of communicator %d, "+
			"but rank %d has %s (%v of %d bytes) there; expected the same order on all ranks", r,
			e.label(r, i), o.coll, o.bytes, o.comm,
			in.npu, e.label(in.npu, in.op), in.coll, in.size)
	}
	if e.o.Path {
		if in.number == 0 {
			e.lastIssues = append(e.lastIssues, lastIssue{})
			in.number = uint32(len(e.lastIssues))
		}
		e.opTimes[r].causes[i].op = in.number
		e.lastIssues[in.number-1] = lastIssue{r, i, e.queue.now}
	}
	if in.issued++; in.issued == len(g.members) {
		delete(e.instances[o.comm], tag)
	}
	return tag, nil
}

// maxChunks is the largest number of chunks of a collective, over all NPUs.
const maxChunks = 1 << 28

// cut returns the chunk size and the total size of a collective in bytes.
func (e *engine) cut(coll Collective, size uint64) (chunk, all uint64) {
	splits := uint64(e.system.Splits)
	chunk = size / splits
	if npus := uint64(len(e.npus)); coll != AllGather && chunk < npus {
		chunk, size = npus, npus*splits
	}
	return max(chunk, 1), size
}

// chunksOf returns an upper bound of the chunks of a collective.
func (e *engine) chunksOf(o *op) uint64 {
	if e.themis != nil && e.themis.flexible {
		return 1 << 32 // smallest possible chunk
	}
	chunk, size := e.cut(o.coll, o.bytes)
	return max((size+chunk-1)/chunk, 1)
}

// enqueue queues a new chunk for its first phase.
func (e *engine) enqueue(r int32, n *npu, p plan, o *op, tag uint64) {
	k := e.freeStream
	if k != 0 {
		e.freeStream = e.streams[k].next
	} else {
		e.streams = append(e.streams, stream{})
		k = int32(len(e.streams) - 1)
	}
	e.streams[k] = stream{npu: r, plan: p, priority: n.priority, tag: tag, context: contextCollective + uint32(o.comm)}
	e.wait(k)
	e.startWaiting(e.queueOf(k))
}

// phaseOf returns the phase of a stream.
func (e *engine) phaseOf(s *stream) *phase {
	return &e.plans.phases[s.plan.first+s.phase]
}

// queueOf returns the queue of a stream.
func (e *engine) queueOf(k int32) *queue {
	s := &e.streams[k]
	return &e.queues[int(s.npu)*e.dims*e.system.Queues+int(e.phaseOf(s).queue)]
}

// wait adds a stream to the queue of its phase.
func (e *engine) wait(k int32) {
	s := &e.streams[k]
	s.started = false
	q := e.queueOf(k)
	if e.mirror != nil && s.phase > 0 {
		e.mirror.enters(e, k, q)
	}
	before := e.place(q, s)
	s.next = before
	if before == 0 {
		s.previous, q.last = q.last, k
	} else {
		s.previous, e.streams[before].previous = e.streams[before].previous, k
	}
	if s.previous == 0 {
		q.first = k
	} else {
		e.streams[s.previous].next = k
	}
	if before == q.waiting {
		q.waiting = k
	}
}

// place returns the stream of a queue before which a stream waits, or 0 for the end.
func (e *engine) place(q *queue, s *stream) int32 {
	policy, p := e.system.IntraDimension, e.phaseOf(s)
	if policy == FIFOOrder {
		// Waiting streams are ordered by priority, so the position is searched from the end.
		k := int32(0)
		for last := q.last; last != 0; last = e.streams[last].previous {
			if t := &e.streams[last]; t.started || t.priority >= s.priority {
				break
			}
			k = last
		}
		return k
	}
	k := q.waiting
	behind := func(t *stream) bool { return t.priority >= s.priority }
	left := s.plan.count - s.phase - 1
	switch {
	case p.op == AllToAll || p.op == AllReduce:
	case policy == RG:
		return e.placeAlternating(q, s)
	case policy == SmallestFirst:
		if left == 1 {
			return 0
		}
		size := max(p.size, p.out)
		behind = func(t *stream) bool { return max(e.phaseOf(t).size, e.phaseOf(t).out) < size }
	case policy == LessRemainingPhaseFirst:
		behind = func(t *stream) bool { return t.plan.count-t.phase-1 < left }
	}
	for k != 0 && behind(&e.streams[k]) {
		k = e.streams[k].next
	}
	return k
}

// placeAlternating is place for RG, which alternates reduce-scatters and all-gathers.
func (e *engine) placeAlternating(q *queue, s *stream) int32 {
	const none = numCollectives
	last, before := Collective(none), Collective(none)
	k := q.first
	see := func() {
		before, last = last, e.phaseOf(&e.streams[k]).op
	}
	for k != 0 {
		see()
		t := &e.streams[k]
		alternate := last == ReduceScatter && before == AllGather || last == AllGather && before == ReduceScatter
		switch {
		case t.started:
			if k = t.next; k != 0 && !e.streams[k].started {
				see()
				k = e.streams[k].next
			}
		case t.priority > s.priority || alternate:
			k = t.next
		default:
			return k
		}
	}
	return 0
}

// leave removes a stream from its queue.
func (e *engine) leave(k int32, q *queue) {
	s := &e.streams[k]
	if s.previous == 0 {
		q.first = s.next
	} else {
		e.streams[s.previous].next = s.next
	}
	if s.next == 0 {
		q.last = s.previous
	} else {
		e.streams[s.next].previous = s.previous
	}
}

// startWaiting starts waiting phases of a queue, up to its limit.
func (e *engine) startWaiting(q *queue) {
	for q.waiting != 0 && q.running < e.perQueue {
		k := q.waiting
		q.waiting = e.streams[k].next
		q.running++
		e.startStream(k)
	}
}

// endPhase ends the phase of a stream, which enters the next phase. After the last phase of the last chunk, the
// collective ends immediately, before any other event of the NPU.
func (e *engine) endPhase(k int32) {
	s := &e.streams[k]
	r := s.npu
	last := s.phase == s.plan.count-1
	if last {
		if n := &e.npus[r]; n.chunks == 1 {
			n.chunks = 0
			if e.mirror != nil {
				e.mirror.ends(e, s)
			} else {
				e.end(r, n.collective)
			}
		} else {
			n.chunks--
		}
	}
	q := e.queueOf(k)
	e.leave(k, q)
	if last {
		q.running--
		e.startWaiting(q)
		e.streams[k].next = e.freeStream
		e.freeStream = k
		return
	}
	e.streams[k].phase++
	e.wait(k)
	q.running--
	e.startWaiting(q)
	e.startWaiting(e.queueOf(k))
}
