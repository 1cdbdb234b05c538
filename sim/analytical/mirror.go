package analytical

import "math/bits"

// mirror is the part of an engine that runs one NPU only, on behalf of all NPUs of a collective. If all NPUs issue it
// at the same time and have the same distances, they do the same at the same time: when this NPU posts a receive, the
// sender sends the message.
type mirror struct {
	uncertain bool // an order of simultaneous events that matters is not certain

	ended     uint64 // when the collective ended
	trigger   uint64 // when the last event of the last stream was triggered
	reduces   bool
	reduction uint64

	entries []entry // by queue: the last stream that entered it
	last    entry   // that of the stream whose step was the last one
	final   uint64  // time of the last step, plus 1
	added   uint64  // earliest addition of an event of that time
}

// entry is the entry of a stream into a queue.
type entry struct {
	time    uint64 // plus 1; 0: none
	stream  int32
	added   uint64 // when the step's last event was added
	message bool   // a message added that event
	sent    uint64 // when that message was sent; unknown: several may have been
}

// outcomeOfMirror returns the outcome of a collective that its NPUs, among them r, issue at the same time. It is nil if
// the run has failed.
func (e *engine) outcomeOfMirror(o *op, c *chunker, chunk, size uint64, r int32) *outcome {
	m := e.classes.mirror
	if m == nil {
		m = &engine{p: e.p, o: e.o, system: e.system, queue: newEventQueue(len(e.npus)), matcher: newMatcher(),
			links: e.links, npus: make([]npu, len(e.npus)), mirror: &mirror{}}
		if err := m.init(m); err != nil {
			e.fail(err)
			return nil
		}
		m.mirror.entries = make([]entry, m.dims)
		e.classes.mirror = m
	}
	begun, events, high, low, messages := m.queue.now, m.events, m.bytesHigh, m.bytesLow, m.messages
	n := &m.npus[r]
	own := *c
	own.e, own.npu, own.order, own.phases = m, r, nil, nil
	m.enqueueChunks(r, n, o, 0, &own, chunk, size)
	m.progress.Func = func(int64) {
		if e.progress.Report(); e.err != nil {
			m.fail(e.err)
		}
	}
	m.loop()
	x := m.mirror
	if m.err != nil || x.uncertain || n.chunks > 0 || x.final != x.ended+1 {
		e.fail(errOrder)
		return nil
	}
	out := &outcome{triggers: []uint64{x.trigger - begun}, delay: uint64(e.system.EndpointDelay), reduces: x.reduces,
		reduction: x.reduction, n: 1, stride: 1}
	if c.comm >= 0 {
		out.delay = groupDelay
	}
	added := x.trigger
	if out.reduces && out.reduction > 0 {
		added += out.delay
	}
	if x.added != added { // the last event of the collective is not added with those of its time
		e.fail(errOrder)
		return nil
	}
	npus := uint64(len(e.p.groups[o.comm].members))
	if c.comm < 0 {
		npus = uint64(e.members(c.row, int(npus)))
	}
	out.events, out.messages = (m.events-events)*int64(npus), (m.messages-messages)*int64(npus)
	lo, borrow := bits.Sub64(m.bytesLow, low, 0)
	hi, lo2 := bits.Mul64(lo, npus)
	out.bytesHigh, out.bytesLow = hi+(m.bytesHigh-high-borrow)*npus, lo2
	return out
}

// isSymmetric reports whether all NPUs of a collective have the same distances to the other NPUs of a phase. In a phase
// of algorithm direct, the distances to all others must also be equal, as its steps end in the order of the distances.
func (e *engine) isSymmetric(p *phase) bool {
	if p.comm >= 0 {
		dims := e.links.dims
		return len(dims) == 1 && dims[0].topology != Ring
	}
	for i := range e.links.dims {
		d := &e.links.dims[i]
		// a ring of the whole dimension, or of a part of it
		if p.stride%d.stride == 0 && int64(p.stride)*int64(p.n) <= int64(d.stride)*int64(d.n) {
			return d.topology != Ring || p.n == d.n && p.algorithm != Direct
		}
	}
	return false
}

// receives schedules the arrival of the message that an NPU sends to this one now.
func (x *mirror) receives(e *engine, k uint32, from int32, size uint64) {
	s := &e.streams[k]
	delay, ok := e.links.delay(from, s.npu, size)
	x.uncertain = x.uncertain || !ok || delay == 0
	s.posted = e.queue.now
	e.after(delay, newEvent(packetMet, s.npu, k))
}

// acts records that a step of a stream is over.
func (x *mirror) acts(e *engine, s *stream, p *phase) {
	x.last = entry{time: e.queue.now + 1, added: s.trigger, message: true, sent: s.posted}
	if step := s.begun - 1; p.reduces(step) && p.reductionOf(step, e.system) > 0 {
		x.last.added, x.last.message = s.trigger+p.delay, false
	}
	if p.algorithm == Direct {
		x.last.sent = unknown
	}
	if x.final != x.last.time {
		x.final, x.added = x.last.time, x.last.added
	}
	x.added = min(x.added, x.last.added)
}

// enters records that a stream enters a queue after its last step. If another stream entered it at the same time, their
// order must be certain, unless both start at once.
func (x *mirror) enters(e *engine, k int32, q *queue) {
	last, before := x.last, &x.entries[e.phaseOf(&e.streams[k]).queue]
	last.stream = k
	if before.time == last.time && before.added >= last.added {
		certain := before.added == last.added && before.message && last.message && before.sent != unknown &&
			before.sent < last.sent && last.sent != unknown
		atOnce := e.streams[before.stream].started && q.waiting == 0 && q.running < e.perQueue
		x.uncertain = x.uncertain || !certain && !atOnce
	}
	*before = last
}

// ends records that the collective ends after the last step of a stream.
func (x *mirror) ends(e *engine, s *stream) {
	p, step := e.phaseOf(s), s.begun-1
	x.ended, x.trigger = e.queue.now, s.trigger
	x.reduces, x.reduction = p.reduces(step), p.reductionOf(step, e.system)
}
