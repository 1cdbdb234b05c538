// This file models the memory bus of an NPU, which takes the place of the end-point delay where the system file says
// model-shared-bus.

package analytical

// buses are the buses of all NPUs. Each has one between itself and its memory adapter, and an inner one behind its own
// side of that: what is sent on that side has come over the inner bus, and what is received there goes over it next.
//
// The times of a bus are those of LogGP (A. Alexandrov et al., "LogGP: Incorporating Long Messages into the Parallel
// Computation Model", SPAA 1995): a transfer of n bytes keeps its sender for o + (n-1)G and its receiver for L + o
// more, and a side that has just sent sends again no sooner than after g.
type buses struct {
	SharedBus
	sides     []side     // of every NPU, as many as numSides
	transfers []transfer // numbers begin with 1
	free      uint32     // of transfers, a list through next
}

// innerGPerByte is the time for a byte of the inner bus in nanoseconds, which ASTRA-sim has in its source.
const innerGPerByte = 0.0038

// The sides of an NPU's buses. Those of one bus differ in the lowest bit.
const (
	npuSide = iota
	adapterSide
	innerNPUSide
	innerMemorySide
	numSides
)

// side is a side of a bus. It begins to send when it is free. It is not while it sends or receives, but as in ASTRA-sim it
// is when the one ends, even if the other goes on.
type side struct {
	sends, receives, processing transferList
	receiving                   int32 // how many there are in receives
	inRow                       int32 // how many it has sent since it last received one
	state, previous             sideState
	busy                        bool   // it processes the first of processing
	last                        uint64 // when it last ended to send or receive
}

type sideState uint8

const (
	sideFree sideState = iota
	sideSends
	sideReceives
)

// maxInRow is how many transfers a side may have sent and still go first if the other one has some, too.
const maxInRow = 8

// transfer is a transfer over a bus for a step of a stream.
type transfer struct {
	size     uint64
	stream   uint32
	reduces  bool   // when it has ended, a reduction comes next
	process  bool   // it is to be processed where it is received, at an NPU
	sendBack bool   // and goes back afterwards
	after    detour // of the inner bus: what the transfer that waits for this one does next
	waits    uint32 // that transfer; 0: none
	next     uint32 // in a list
}

// detour is why a transfer goes over the inner bus.
type detour uint8

const (
	toBeSent detour = iota
	toBeProcessed
	toEnd
)

// transferList is a list of transfers through next.
type transferList struct {
	first, last uint32
}

// way is what a step has to do with the bus.
type way uint8

const (
	toMemory way = iota
	toNPU
	toNPUAndBack
)

// The events of a side.
const (
	sideSent = iota
	sideReceived
	sideProcessed
)

func newBuses(b *SharedBus, npus int) *buses {
	return &buses{SharedBus: *b, sides: make([]side, npus*numSides), transfers: make([]transfer, 1)}
}

// crossForStep is cross for a step that is the given one of its phase, and of the phase's cycle.
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

// cross begins a transfer for a step of a stream. The step goes on when it ends, after a reduction if there is one. Of a
// size of 2^31 bytes or more ASTRA-sim has the lower 32 bits only.
func (e *engine) cross(k int32, w way, size uint64, reduces bool) {
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

// detour has a transfer wait for one over the inner bus, sent by the given side.
func (e *engine) detour(from int32, t uint32, why detour, back bool) {
	inner := transfer{size: e.buses.transfers[t].size, waits: t, after: why, sendBack: back}
	e.enqueueTransfer(from, e.buses.newTransfer(inner))
}

// enqueueTransfer has a side send a transfer, when it can.
func (e *engine) enqueueTransfer(i int32, t uint32) {
	e.buses.push(&e.buses.sides[i].sends, t)
	e.sendTransfer(i)
}

// sendTransfer has a side send the next transfer, if it is free and has one; or the other side, if it is that one's turn.
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

// afterTransfer adds an event of a side.
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

// receiveTransfer has a side receive a transfer, wholly.
func (e *engine) receiveTransfer(i int32, s *side) {
	b := e.buses
	s.previous, s.last = s.state, e.queue.now
	if s.receiving--; s.receiving == 0 {
		s.state = sideFree
	}
	t := b.pop(&s.receives)
	if b.transfers[t].process { // on npuSide
		b.transfers[t].process = false
		e.detour(i+innerNPUSide, t, toBeProcessed, true)
		return
	}
	e.passOn(i, t)
}

// process has a side begin to process the next transfer.
func (e *engine) process(i int32, s *side) {
	if s.busy || s.processing.first == 0 {
		return
	}
	s.busy = true
	hundreds := e.buses.transfers[s.processing.first].size / 100
	e.afterTransfer(i, sideProcessed, float64(hundreds)*float64(e.buses.ReductionDelay)+50)
}

// passOn does what comes after a side has received, and maybe processed, a transfer.
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

// endTransfer ends a transfer over a bus of a side: that which waits for it goes on.
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
