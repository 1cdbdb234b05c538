package analytical

// An NPU runs a phase as a series of steps. A step starts when the phase starts or a message is received. It lasts for
// the end-point delay plus the reduction time of the received data, if any. Then the NPU sends a message and posts a
// receive for the next step. The last steps only receive.

// startStream starts a phase of a stream.
func (e *engine) startStream(k int32) {
	s := &e.streams[k]
	p := e.phaseOf(s)
	s.started = true
	if p.algorithm == customAlgorithm {
		e.beginCustom(k)
		return
	}
	s.begun, s.sent, s.received, s.idle, s.tree, s.merged, s.trigger = 0, 0, 0, 0, treeBegin, false, e.queue.now
	if p.comm < 0 {
		s.position = s.npu / p.stride % p.n
	} else {
		s.position = e.p.groups[p.comm].position(s.npu)
	}
	if p.algorithm == DoubleBinaryTree {
		e.climb(k, false)
		return
	}
	for range p.window {
		e.beginStep(k)
	}
}

// beginStep starts a step.
func (e *engine) beginStep(k int32) {
	s := &e.streams[k]
	p := e.phaseOf(s)
	step := s.begun
	s.begun++
	over := stepOver
	if p.reduces(step) {
		over = delayOver
	}
	if e.buses != nil && p.comm < 0 {
		e.crossForStep(k, p, step, step%p.cycle, over == delayOver)
		return
	}
	e.after(p.delay, newEvent(over, s.npu, uint32(k)))
}

// reduces reports whether a step, counted from 0, reduces received data.
func (p *phase) reduces(step int32) bool {
	return step%p.cycle >= p.window && (p.op == ReduceScatter || p.op == AllReduce && step/p.cycle%2 == 0)
}

// reduction returns the duration of the reduction in a stream's next step.
func (e *engine) reduction(k uint32) uint64 {
	s := &e.streams[k]
	return e.phaseOf(s).reductionOf(s.begun-1, e.system)
}

// reductionOf returns the duration of the reduction in a step.
func (p *phase) reductionOf(step int32, s *System) uint64 {
	if p.algorithm != HalvingDoubling {
		return p.reduction
	}
	return s.reductionTime(p.halved(step))
}

// packet handles a received message of a stream.
func (e *engine) packet(k uint32) {
	s := &e.streams[k]
	if e.phaseOf(s).algorithm == DoubleBinaryTree {
		e.climb(int32(k), true)
		return
	}
	s.received++
	s.trigger = e.queue.now
	e.beginStep(int32(k))
}

// act performs the action of a step after its delays.
func (e *engine) act(k uint32) {
	s := &e.streams[k]
	p := e.phaseOf(s)
	if p.algorithm == DoubleBinaryTree {
		e.climb(int32(k), false)
		return
	}
	s.idle++
	if e.mirror != nil {
		e.mirror.acts(e, s, p)
	}
	if p.algorithm == Direct && p.op == AllReduce && p.sends-s.sent <= p.n-1 {
		// The second half starts after all of the first half.
		if s.received < p.n-1 {
			return
		}
		for range p.window {
			e.sendNext(k)
		}
	} else {
		e.sendNext(k)
	}
	if s.sent == p.sends && s.idle == p.window {
		e.endPhase(int32(k))
	}
}

// sendNext sends the next message of a phase if a step is ready for it, and posts a further receive.
func (e *engine) sendNext(k uint32) {
	s := &e.streams[k]
	p := e.phaseOf(s)
	if s.begun == s.sent || s.sent == p.sends || s.idle == 0 {
		return
	}
	size := p.message
	var to, from int32
	switch p.algorithm {
	case HalvingDoubling:
		size = p.halved(s.sent)
		to = p.partner(s.position, s.sent)
		from = to
	default:
		distance := int32(1)
		if p.algorithm == Direct {
			distance = s.sent%(p.n-1) + 1
		}
		if p.backward {
			distance = p.n - distance
		}
		to, from = s.position+distance, s.position-distance
		if to >= p.n {
			to -= p.n
		}
		if from < 0 {
			from += p.n
		}
	}
	s.sent++
	s.idle--
	e.sendPacket(k, e.npuAt(s, p, to), size)
	e.expectPacket(k, e.npuAt(s, p, from), size)
}

// npuAt returns the NPU at a position of the ring of a stream's phase.
func (e *engine) npuAt(s *stream, p *phase, position int32) int32 {
	if p.comm >= 0 {
		return e.p.groups[p.comm].members[position]
	}
	return s.npu + (position-s.position)*p.stride
}

// sendPacket sends a message of a stream to an NPU.
func (e *engine) sendPacket(k uint32, to int32, size uint64) {
	s := &e.streams[k]
	if e.mirror != nil {
		e.countMessages(1, 0, size)
		return
	}
	e.send(&key{tag: s.tag, context: s.context, size: size, from: s.npu, to: to}, size, noOp)
}

// expectPacket posts a receive of a stream from an NPU.
func (e *engine) expectPacket(k uint32, from int32, size uint64) {
	s := &e.streams[k]
	if e.mirror != nil {
		e.mirror.receives(e, k, from, size)
		return
	}
	e.receive(&key{tag: s.tag, context: s.context, size: size, from: from, to: s.npu}, newEvent(packetMet, s.npu, k))
}

// partner returns the position of the NPU that exchanges messages with this one in a step of halvingDoubling.
func (p *phase) partner(position, step int32) int32 {
	steps := p.cycle // per half
	switch {
	case p.op == AllGather:
		step = steps - 1 - step
	case step >= steps:
		step = 2*steps - 1 - step
	}
	return position ^ 1<<step
}

// halved returns the message size of a step of halvingDoubling, even if the step sends nothing.
func (p *phase) halved(step int32) uint64 {
	size := p.message
	switch steps := p.cycle; {
	case p.op == AllGather:
		return size << step
	case p.op == AllReduce && step >= steps:
		return size >> (steps - 1) / 2 * 2 << (step - steps)
	}
	return size >> step
}

// treeState is the state of an NPU in a phase of doubleBinaryTree.
type treeState uint8

const (
	treeBegin    treeState = iota
	treeTwo                // waits for two children
	treeOne                // waits for one child
	treeUp                 // will send to its parent
	treeTop                // waits for its parent
	treeDown               // will send to its children
	treeFinished           // will end
)

// climb advances a phase of doubleBinaryTree at an NPU: at its start, when a message is received, and after the delays
// of a step.
func (e *engine) climb(k int32, received bool) {
	s := &e.streams[k]
	p := e.phaseOf(s)
	parent, left, right := p.relatives(s.position)
	stream := uint32(k)
	at := func(position int32) int32 { return e.npuAt(s, p, position) }
	delay := func(over kind, w busUse) {
		if e.buses != nil {
			e.cross(k, w, p.message, over == delayOver)
			return
		}
		e.after(p.delay, newEvent(over, s.npu, stream))
	}
	switch {
	case parent < 0: // the root, which has one child
		child := max(left, right)
		switch s.tree {
		case treeBegin:
			s.tree = treeOne
			e.expectPacket(stream, at(child), p.message)
		case treeOne:
			s.tree = treeDown
			delay(delayOver, toNPUAndBack)
		case treeDown:
			e.sendPacket(stream, at(child), p.message)
			e.endPhase(k)
		}
	case left < 0: // a leaf
		switch s.tree {
		case treeBegin:
			s.tree = treeUp
			delay(stepOver, toMemory)
		case treeUp:
			s.tree = treeTop
			e.sendPacket(stream, at(parent), p.message)
			e.expectPacket(stream, at(parent), p.message)
		case treeTop:
			s.tree = treeFinished
			delay(stepOver, toNPU)
		case treeFinished:
			e.endPhase(k)
		}
	case s.tree == treeBegin:
		s.tree = treeTwo
		e.expectPacket(stream, at(left), p.message)
		e.expectPacket(stream, at(right), p.message)
	case s.tree == treeTwo && received:
		s.tree = treeOne
		delay(delayOver, toNPU)
	case s.tree == treeOne && received:
		s.tree = treeUp
		delay(delayOver, toNPUAndBack)
	case !s.merged && !received:
		s.merged = true
	case s.tree == treeUp:
		s.tree = treeTop
		e.sendPacket(stream, at(parent), p.message)
		e.expectPacket(stream, at(parent), p.message)
	case s.tree == treeTop && received:
		s.tree = treeDown
		delay(delayOver, toNPUAndBack)
	case s.tree == treeDown:
		e.sendPacket(stream, at(left), p.message)
		e.sendPacket(stream, at(right), p.message)
		e.endPhase(k)
	}
}

// relatives returns the positions of the parent and the children of a position in the tree of a phase; -1 if absent.
// All NPUs except the root form a perfect tree, numbered in order; the root follows or precedes it.
func (p *phase) relatives(position int32) (parent, left, right int32) {
	n, shift := p.n, int32(0)
	if p.minTree {
		shift = 1
	}
	inner := n / 2 // of the root of the perfect tree, counted from 1
	if position == (1-shift)*(n-1) {
		if p.minTree {
			return -1, -1, inner - 1 + shift
		}
		return -1, inner - 1 + shift, -1
	}
	i := position + 1 - shift // counted from 1
	low := i & -i
	left, right = -1, -1
	if low > 1 {
		left, right = i-low/2-1+shift, i+low/2-1+shift
	}
	if i == inner {
		return (1 - shift) * (n - 1), left, right
	}
	return int32(uint32(i)&^uint32(low)|uint32(low)<<1) - 1 + shift, left, right
}
