package analytical

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// In a congestion-unaware network, messages do not wait for each other, and an NPU runs one collective at a time. So
// the times of a collective's messages depend only on the collective, on the distances of its NPUs and on the times at
// which they issue it. A run with classes computes these times once per class of collectives in which all of that is
// equal, and each NPU only has the last events of each collective. All results equal those of a run of all messages.

// classTable is the part of an engine that computes collectives by class.
type classTable struct {
	open   map[meetingKey]*meeting
	spare  []*meeting
	known  map[classKey]*outcome
	kept   int               // bytes of offsets in known
	shapes map[string]int32  // numbers of shapes, by their distances
	groups map[int32][]shape // by communicator, with shape.algorithm
	mirror *engine           // for outcomeOfMirror; nil: not used yet
}

// meetingKey identifies a collective.
type meetingKey struct {
	comm int32
	row  row
	tag  uint64
}

// meeting is a collective that has not been issued by all of its NPUs.
type meeting struct {
	coll  Collective
	bytes uint64
	first uint64   // its first issue
	npus  []int32  // in the order of their issues
	times []uint64 // of the issues, from first
	same  bool     // all times are 0
}

// classKey identifies a class of collectives.
type classKey struct {
	coll    Collective
	bytes   uint64
	dims    uint32 // row.dims
	shape   int32  // number of the shape of a communicator that lacks some NPUs; 0: all others
	offsets string // meeting.times by position; "": all are 0
}

// shape is the distances between the NPUs of a ring that exchange messages.
type shape struct {
	algorithm AlgorithmName
	number    int32      // from 1
	distances []distance // by step of halvingDoubling and position: from the sender
	uniform   bool       // in each step all NPUs have the same distance
}

// outcome is what happens in a collective of a class. Times are relative to its first issue.
type outcome struct {
	triggers  []uint64 // by position: when the last message is received; of length 1 if all are equal
	delay     uint64   // of the last step, which the last message starts
	reduces   bool     // a reduction follows the delay
	reduction uint64

	events              int64
	messages            int64
	bytesHigh, bytesLow uint64

	// Messages that arrive exactly when their receives are posted, and before them. If the NPU has another own event
	// at that time, the order is not certain.
	ties    map[tie]bool
	period  uint64 // the last round repeats with this period
	repeats uint64
	stride  int32 // distance of the positions, if the ring is no communicator
	n       int32
}

// tie is a time at a position.
type tie struct {
	position int32
	time     uint64
}

const (
	maxTies    = 1 << 20
	maxOffsets = 1 << 26 // bytes of offsets in the keys of known outcomes
)

// runByClass runs the program with classes of collectives. The result is nil if the program must run message by
// message.
func (p *Program) runByClass(o *Options) (*Result, error) {
	if !p.hasClasses(o) {
		return nil, nil
	}
	reported := int64(0)
	counted := *o
	if o.Progress != nil {
		counted.Progress = func(ops int64) {
			reported += ops
			o.Progress(ops)
		}
	}
	counted.Timeline = nil
	if o.Timeline != nil {
		if _, err := p.layout(); err != nil {
			return nil, err
		}
	}
	r, err := p.run(&counted, true)
	if r != nil && r.Complete {
		if o.Timeline == nil {
			return r, nil
		}
		// Only now is it certain that the run can end, so a second one reports to the timeline.
		reporting := *o
		reporting.Progress = nil
		return p.run(&reporting, true)
	}
	if o.Context != nil && o.Context.Err() != nil {
		return nil, err
	}
	if progress := o.Progress; progress != nil { // do not report these ops again
		o.Progress = func(ops int64) {
			again := min(ops, reported)
			reported -= again
			progress(ops - again)
		}
	}
	return nil, nil
}

// hasClasses reports whether a run with classes can give the results of a run of all messages, and is worthwhile.
func (p *Program) hasClasses(o *Options) bool {
	s := &o.System
	if o.allMessages || o.Network.Aware || s.Rendezvous || s.ReplayOnly || s.SharedBus != nil || s.CustomNodes != nil ||
		s.Queues != 1 || s.EndpointDelay < 1 || s.InterDimension != Ascending || s.IntraDimension != FIFOOrder ||
		o.Path || o.Tensors != nil || o.Nodes != nil {
		return false
	}
	for c, program := range s.Custom {
		if program != nil || slices.ContainsFunc(s.Implementations[c], func(a Algorithm) bool {
			return a.Name == DoubleBinaryTree
		}) {
			return false
		}
	}
	last, found := (*graph)(nil), false
	for _, g := range p.graphs {
		if g == last {
			continue
		}
		last = g
		for i := range g.waits {
			found = found || g.ops[i].kind == opCollective
		}
	}
	return found && findWildcards(p) == nil
}

// useClasses makes an engine compute collectives by class.
func (e *engine) useClasses() {
	e.classes = &classTable{open: make(map[meetingKey]*meeting), known: make(map[classKey]*outcome),
		shapes: make(map[string]int32), groups: make(map[int32][]shape)}
	e.orders = make([]order, len(e.npus))
	e.issuedAt = make([]uint64, len(e.ready))
}

// enterClass issues a collective at an NPU.
func (e *engine) enterClass(r int32, n *npu, o *op, c *chunker, chunk, size uint64) {
	key := meetingKey{o.comm, c.row, c.tag}
	s := e.classes
	m := s.open[key]
	if m == nil {
		if last := len(s.spare) - 1; last >= 0 {
			m, s.spare = s.spare[last], s.spare[:last]
		} else {
			m = &meeting{}
		}
		*m = meeting{coll: o.coll, bytes: o.bytes, first: e.queue.now, npus: m.npus[:0], times: m.times[:0], same: true}
		s.open[key] = m
	}
	if m.coll != o.coll || m.bytes != o.bytes { // this run cannot end
		e.fail(errOrder)
		return
	}
	offset := e.queue.now - m.first
	m.npus, m.times, m.same = append(m.npus, r), append(m.times, offset), m.same && offset == 0
	e.orders[r].waiting = true
	members := len(e.p.groups[o.comm].members)
	if c.comm < 0 {
		members = e.members(c.row, members)
	}
	if len(m.npus) < members {
		return
	}
	delete(s.open, key)
	if out, at := e.outcomeOf(m, o, c, chunk, size); out != nil {
		e.enterOutcome(m, out, at)
	}
	s.spare = append(s.spare, m)
}

// enterOutcome schedules the last events of a collective at its NPUs. at has the NPUs by position, if triggers has.
func (e *engine) enterOutcome(m *meeting, out *outcome, at []int32) {
	own := int64(2) // events that this run has per NPU
	if out.reduces {
		own = 3
	}
	e.events += out.events - own*int64(len(m.npus))
	e.countMessages(out.messages, out.bytesHigh, out.bytesLow)
	npus := m.npus
	if len(out.triggers) > 1 {
		npus = at
	}
	for i, r := range npus {
		n, trigger := &e.npus[r], out.triggers[min(i, len(out.triggers)-1)]
		n.outcome, n.begun = out, m.first
		s := &e.orders[r]
		for _, t := range s.log {
			if out.tied(e, r, t-m.first) {
				e.fail(errOrder)
			}
		}
		s.waiting, s.log = false, s.log[:0]
		e.after(m.first+trigger-e.queue.now, newEvent(packetMet, r, 0))
	}
}

// classEvent handles an event of a run with classes. It reports false if the event is not one of a collective.
func (e *engine) classEvent(k kind, r int32, i uint32) bool {
	n := &e.npus[r]
	switch k {
	case packetMet:
		over := stepOver
		if n.outcome.reduces {
			over = delayOver
		}
		e.after(n.outcome.delay, newEvent(over, r, 0))
		return true
	case delayOver:
		e.after(n.outcome.reduction, newEvent(stepOver, r, 0))
		return true
	case stepOver:
		added := e.queue.now - n.outcome.delay
		if n.outcome.reduces {
			added = e.queue.now - n.outcome.reduction
		}
		n.outcome = nil
		e.begins(r, true, added)
		e.orders[r].current.last = true
		e.end(r, n.collective)
		return true
	case opOver:
		e.begins(r, true, e.issuedAt[n.lanes+int(n.g.ops[i].lane)])
	case recvMet:
		e.begins(r, false, e.queue.now)
	case opReleased:
		e.begins(r, true, unknown)
	}
	return false
}

// outcomeOf returns the outcome of a collective that all of its NPUs have issued, and the NPUs by position if their
// outcomes differ.
func (e *engine) outcomeOf(m *meeting, o *op, c *chunker, chunk, size uint64) (out *outcome, at []int32) {
	key := classKey{coll: o.coll, bytes: o.bytes, dims: c.row.dims}
	var form *shape
	if c.comm >= 0 {
		form = e.shapeOfGroup(o.comm, c.rings[0].algorithm.Name)
		key.shape, at = form.number, e.p.groups[o.comm].members
	}
	var offsets []uint64
	if !m.same {
		if c.comm < 0 {
			at = slices.Sorted(slices.Values(m.npus))
		}
		offsets = e.offsets(m, at)
		text := make([]byte, 0, 8*len(offsets))
		for _, t := range offsets {
			text = binary.LittleEndian.AppendUint64(text, t)
		}
		key.offsets = string(text)
	}
	if out = e.classes.known[key]; out != nil {
		return out, at
	}
	plan, _, err := c.chunk(o, c.tag, chunk, size)
	if err != nil {
		e.fail(errOrder)
		return nil, nil
	}
	chunks := max((size+chunk-1)/chunk, 1)
	p := e.plans.phases[plan.first]
	if c.comm < 0 && (plan.count == 1 || offsets == nil) {
		at = slices.Sorted(slices.Values(m.npus))
	}
	switch {
	case plan.count == 1 && (p.algorithm == RingAlgorithm || p.algorithm == HalvingDoubling):
		if form == nil {
			form = &shape{algorithm: p.algorithm}
			e.measure(form, at)
		}
		out = e.outcomeOfSteps(&p, form, offsets, chunks)
	case offsets == nil && !slices.ContainsFunc(e.plans.phases[plan.first:plan.first+plan.count],
		func(p phase) bool { return !e.isSymmetric(&p) }):
		out = e.outcomeOfMirror(o, c, chunk, size, at[0])
	default:
		e.fail(errOrder)
	}
	if out == nil {
		return nil, nil
	}
	if e.classes.kept+len(key.offsets) <= maxOffsets {
		e.classes.kept += len(key.offsets)
		e.classes.known[key] = out
	}
	return out, at
}

// offsets returns the times of a meeting by position of its NPUs, which at lists.
func (e *engine) offsets(m *meeting, at []int32) []uint64 {
	position := make(map[int32]int, len(at))
	for i, r := range at {
		position[r] = i
	}
	offsets := make([]uint64, len(at))
	for i, r := range m.npus {
		offsets[position[r]] = m.times[i]
	}
	return offsets
}

// shapeOfGroup returns the shape of a communicator that lacks some NPUs.
func (e *engine) shapeOfGroup(comm int32, algorithm AlgorithmName) *shape {
	known := e.classes.groups[comm]
	for i := range known {
		if known[i].algorithm == algorithm {
			return &known[i]
		}
	}
	form := shape{algorithm: algorithm}
	at := e.p.groups[comm].members
	e.measure(&form, at)
	text := []byte{byte(algorithm)}
	for _, d := range form.distances {
		text = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(text, uint32(d.dim)), uint32(d.hops))
	}
	if form.number = e.classes.shapes[string(text)]; form.number == 0 {
		form.number = int32(len(e.classes.shapes) + 1)
		e.classes.shapes[string(text)] = form.number
	}
	e.classes.groups[comm] = append(known, form)
	return &e.classes.groups[comm][len(known)]
}

// measure determines the distances of a shape between the NPUs at the positions of a ring. Those of the other
// algorithms than ring and halvingDoubling depend on the number of NPUs only, see isSymmetric.
func (e *engine) measure(form *shape, at []int32) {
	n := int32(len(at))
	steps := int32(1)
	switch form.algorithm {
	case RingAlgorithm:
	case HalvingDoubling:
		steps = int32(bits.Len32(uint32(n)) - 1)
	default:
		form.distances = []distance{{int32(-1), n}}
		return
	}
	form.uniform = true
	for step := range steps {
		for i := range n {
			from := (i + n - 1) % n
			if form.algorithm == HalvingDoubling {
				from = min(i^1<<step, n-1) // the algorithm is an error if n is no power of two
			}
			d := e.links.distance(at[from], at[i])
			form.distances = append(form.distances, d)
			form.uniform = form.uniform && d == form.distances[step*n]
		}
	}
}

// tied reports whether the order of the events of a collective at an NPU at a time may depend on another own event of
// the NPU.
func (out *outcome) tied(e *engine, r int32, time uint64) bool {
	if out.ties == nil {
		return false
	}
	var position int32
	if out.stride > 0 {
		position = r / out.stride % out.n
	} else {
		n := &e.npus[r]
		position = e.p.groups[n.g.ops[n.collective].comm].position(r)
	}
	for k := uint64(0); k <= out.repeats && k*out.period <= time; k++ {
		if out.ties[tie{position, time - k*out.period}] {
			return true
		}
	}
	return false
}
