// This file models the memory bus of an NPU, which replaces the end-point delay if the system file sets
// model-shared-bus.

package analytical

// buses are the buses of all NPUs. An NPU has a bus to its memory adapter, and an inner bus on its own side of that
// bus: data sent by that side crosses the inner bus before, data received by it crosses the inner bus afterwards.
//
// Bus times follow LogGP (A. Alexandrov et al., "LogGP: Incorporating Long Messages into the Parallel Computation
// Model", SPAA 1995): a transfer of n bytes occupies its sender for o + (n-1)G and its receiver for L + o more, and a
// side may send again after g at the earliest.
type buses struct {
	SharedBus
	sides     []side     // numSides per NPU
	transfers []transfer // numbered from 1
	free      uint32     // free transfers, linked through next
}

// innerGPerByte is the inner bus's time per byte in nanoseconds, a constant in ASTRA-sim's source.
const innerGPerByte = 0.0038

// Sides of an NPU's buses. Both sides of a bus differ in the lowest bit.
const (
	npuSide = iota
	adapterSide
	innerNPUSide
	innerMemorySide
	numSides
)

// side is a side of a bus. It may send when it is free. It is busy while it sends or receives; as in ASTRA-sim, the end
// of either frees it even if the other continues.
type side struct {
	sends, receives, processing transferList
	receiving                   int32 // number of receives
	inRow                       int32 // consecutive transfers sent since the last receive
	state, previous             sideState
	busy                        bool   // it processes the first entry of processing
	last                        uint64 // end of the last send or receive
}

type sideState uint8

const (
	sideFree sideState = iota
	sideSends
	sideReceives
)

// maxInRow is the number of consecutive transfers after which a side yields to the other side, if that has any.
const maxInRow = 8

// transfer is a transfer over a bus for a step of a stream.
type transfer struct {
	size     uint64
	stream   uint32
	reduces  bool   // a reduction follows
	process  bool   // the receiving side, the NPU's, processes it
	sendBack bool   // it returns afterwards
	after    detour // inner bus: next action of the transfer that waits for this one
	waits    uint32 // the waiting transfer; 0: none
	next     uint32 // next transfer in a list
}

// detour is the reason for a transfer over the inner bus.
type detour uint8

const (
	toBeSent detour = iota
	toBeProcessed
	toEnd
)

// transferList is a list of transfers, linked through next.
type transferList struct {
	first, last uint32
}

// busUse is the bus use of a step.
type busUse uint8

const (
	toMemory busUse = iota
	toNPU
	toNPUAndBack
)

// Events of a side.
const (
	sideSent = iota
	sideReceived
	sideProcessed
)

func newBuses(b *SharedBus, npus int) *buses {
	return &buses{SharedBus: *b, sides: make([]side, npus*numSides), transfers: make([]transfer, 1)}
}

// crossForStep is cross for the given step of a phase, at the given position in the period of its steps.
func (e *engine) crossForStep(k int32, p *phase, step, place int32, reduces bool) {
	w, size := toNPU, p.message
	switch {
	case place < p.window:
		w = toMemory
	case p.cycle-place > p.window:
		w = toNPUAndBack
	}
	if p.algorithm == HalvingDoubling {
		size = p.halved(step)
	}
	e.cross(k, w, size, reduces)
}

// cross starts a transfer for a step of a stream. When it ends, the step continues, after a reduction if any. Like
// ASTRA-sim, cross truncates sizes to 32 bits.
func (e *engine) cross(k int32, w busUse, size uint64, reduces bool) {
	t := e.buses.newTransfer(transfer{size: size, stream: uint32(k), reduces: reduces, process: reduces,
		sendBack: w == toNPUAndBack})
	npu := e.streams[k].npu * numSides
	if w == toMemory {
		e.detour(npu+innerMemorySide, t, toBeSent, false)
	} else {
		e.enqueueTransfer(npu+adapterSide, t)
	}
}

func (b *buses) newTransfer(t transfer) uint32 {
	i := b.free
	if i == 0 {
		b.transfers = append(b.transfers, t)
		return uint32(len(b.transfers) - 1)
	}
	b.free = b.transfers[i].next
	b.transfers[i] = t
	return i
}

func (b *buses) push(l *transferList, t uint32) {
	b.transfers[t].next = 0
	if l.first == 0 {
		l.first = t
	} else {
		b.transfers[l.last].next = t
	}
	l.last = t
}

func (b *buses) pop(l *transferList) uint32 {
	t := l.first
	l.first = b.transfers[t].next
	return t
}

// detour makes a transfer wait for a transfer over the inner bus, sent by the given side.
func (e *engine) detour(from int32, t uint32, why detour, back bool) {
	inner := transfer{size: e.buses.transfers[t].size, waits: t, after: why, sendBack: back}
	e.enqueueTransfer(from, e.buses.newTransfer(inner))
}

// enqueueTransfer queues a transfer at a side.
func (e *engine) enqueueTransfer(i int32, t uint32) {
	e.buses.push(&e.buses.sides[i].sends, t)
	e.sendTransfer(i)
}

// sendTransfer starts the next transfer of a side if the side is free and has one, or that of the other side if it is
// its turn.
func (e *engine) sendTransfer(i int32) {
	b := e.buses
	s, other := &b.sides[i], &b.sides[i^1]
	if s.state != sideFree || s.sends.first == 0 {
		return
	}
	if s.inRow > maxInRow && other.sends.first != 0 && other.inRow <= maxInRow {
		e.sendTransfer(i ^ 1)
		return
	}
	wait := b.O
	if s.previous == sideSends {
		wait = max(wait, b.G-int64(e.queue.now-s.last))
	}
	perByte := b.GPerByte
	if i%numSides >= innerNPUSide {
		perByte = innerGPerByte
	}
	t := b.pop(&s.sends)
	serialization := float64(perByte * float64(int64(b.transfers[t].size)-1))
	b.push(&other.receives, t)
	other.receiving++
	other.state, other.inRow = sideReceives, 0
	e.afterTransfer(i^1, sideReceived, float64(wait)+serialization+float64(b.L)+float64(b.O))
	s.state = sideSends
	e.afterTransfer(i, sideSent, float64(wait)+serialization)
}

// afterTransfer schedules an event of a side.
func (e *engine) afterTransfer(i int32, event uint32, delay float64) {
	t, ok := truncate(max(delay, 0))
	if !ok {
		t = noTime
	}
	e.after(t, newEvent(busEvent, i/numSides, event*numSides+uint32(i%numSides)))
}

// busEvent handles an event of a side.
func (e *engine) busEvent(npu int32, number uint32) {
	i := npu*numSides + int32(number%numSides)
	s := &e.buses.sides[i]
	switch number / numSides {
	case sideSent:
		s.previous, s.state, s.last = s.state, sideFree, e.queue.now
		s.inRow++
	case sideReceived:
		e.receiveTransfer(i, s)
	case sideProcessed:
		s.busy = false
		e.passOn(i, e.buses.pop(&s.processing))
		e.process(i, s)
	}
	e.sendTransfer(i)
}

// receiveTransfer completes the reception of a transfer.
func (e *engine) receiveTransfer(i int32, s *side) {
	b := e.buses
	s.previous, s.last = s.state, e.queue.now
	if s.receiving--; s.receiving == 0 {
		s.state = sideFree
	}
	t := b.pop(&s.receives)
	if b.transfers[t].process { // at npuSide
		b.transfers[t].process = false
		e.detour(i+innerNPUSide, t, toBeProcessed, true)
		return
	}
	e.passOn(i, t)
}

// process starts processing the next transfer.
func (e *engine) process(i int32, s *side) {
	if s.busy || s.processing.first == 0 {
		return
	}
	s.busy = true
	hundreds := e.buses.transfers[s.processing.first].size / 100
	e.afterTransfer(i, sideProcessed, float64(hundreds)*float64(e.buses.ReductionDelay)+50)
}

// passOn starts the action that follows the reception and processing of a transfer.
func (e *engine) passOn(i int32, t uint32) {
	b := e.buses
	back := b.transfers[t].sendBack
	b.transfers[t].sendBack = false
	switch npu := i%numSides == npuSide; {
	case npu && back:
		e.detour(i+innerNPUSide, t, toBeSent, true)
	case npu:
		e.detour(i+innerNPUSide, t, toEnd, false)
	case back:
		b.push(&b.sides[i].sends, t)
	default:
		e.endTransfer(i, t)
	}
}

// endTransfer ends a transfer over a bus of a side, and continues the transfer or step that waits for it.
func (e *engine) endTransfer(i int32, t uint32) {
	b := e.buses
	ended := b.transfers[t]
	b.transfers[t].next = b.free
	b.free = t
	if ended.waits == 0 {
		if ended.reduces {
			e.after(e.reduction(ended.stream), newEvent(stepOver, i/numSides, ended.stream))
		} else {
			e.act(ended.stream)
		}
		return
	}
	i -= i % numSides // npuSide
	s := &b.sides[i]
	switch ended.after {
	case toBeSent:
		b.push(&s.sends, ended.waits)
	case toBeProcessed:
		b.push(&s.processing, ended.waits)
		e.process(i, s)
	case toEnd:
		e.endTransfer(i, ended.waits)
	}
	e.sendTransfer(i)
}
