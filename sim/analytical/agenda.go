package analytical

import "math/bits"

// event is something that happens at a time, in nanoseconds.
type event struct {
	time uint64
	what what
}

// what says what happens: a kind, an NPU, and a number whose meaning is the kind's.
type what uint64

type kind uint8

// The kinds of event. Those of an NPU come first, see agenda.
const (
	done       kind = iota // nothing: it happened before its turn
	stepOver               // a stream: the delay before it acts is over
	delayOver              // a stream: the end-point delay is over, and a reduction comes next
	opOver                 // an op has ended
	opReleased             // an op's release time has come
	serverOver             // a memory server has served the NPU
	graphOver              // an op of a custom collective has ended
	busEvent               // a side of the NPU's buses, and what happens there

	arrived     // a message: it is at its destination
	hopped      // a message: it is at the next device of its route
	linkFree    // a link
	recvMet     // an op, a receive: its message is there
	packetMet   // a stream: a message for which it waits is there
	graphMet    // a receive of a custom collective: its message is there
	readyToSend // a message of the rendezvous protocol: its receiver is ready
)

// lastOfNPU is the last kind that is an NPU's own.
const lastOfNPU = busEvent

func newWhat(k kind, npu int32, number uint32) what {
	return what(k)<<60 | what(npu)<<32 | what(number)
}

func (w what) kind() kind     { return kind(w >> 60) }
func (w what) npu() int32     { return int32(w >> 32 & (maxNPUs - 1)) }
func (w what) number() uint32 { return uint32(w) }

// maxNPUs is more than any network may have.
const maxNPUs = 1 << 28

// agenda is the queue of events. Those of one time happen in the order in which they were added, also while others of
// that time happen, with one exception, which ASTRA-sim's event queue of each NPU makes: where an NPU has several events
// of its own at one time, all happen when the first of them has its turn, and so do those that are added meanwhile.
//
// Like [sim.Wheel] it is wheels of buckets, where a bucket of the first holds the events of one time, and one of each
// further wheel what falls into one turn of the wheel before. As a bucket is emptied before anything is added for its
// times to the wheel below, the order of adding survives.
type agenda struct {
	now     uint64
	today   []event // the events of now
	next    []int32 // of an event of an NPU, the NPU's event that happens right after it; 0: none
	turn    int     // of today: which is next
	chain   int32   // the event of an NPU after which the NPU's next one happens; 0: none, look at turn
	chained int32   // whose events chain is about
	last    []lastEvent

	wheels [wheels][wheelSize][]event
	filled [wheels][wheelSize / 64]uint64
	words  [wheels]uint64
	count  int // of events in buckets
	spare  [][]event
}

// lastEvent is the last event of an NPU at a time, 0 where the next one is to wait for its own turn.
type lastEvent struct {
	time  uint64
	event int32
}

const (
	wheelBits = 11
	wheelSize = 1 << wheelBits
	wheels    = (63 + wheelBits) / wheelBits
)

func newAgenda(npus int) *agenda {
	a := &agenda{last: make([]lastEvent, npus)}
	a.today, a.next = append(a.today, event{}), append(a.next, 0) // so that no event is number 0
	a.turn = 1
	return a
}

// add adds an event; its time is not before now.
func (a *agenda) add(time uint64, w what) {
	if time == a.now {
		a.addToday(w)
		return
	}
	a.put(event{time, w})
	a.count++
}

func (a *agenda) addToday(w what) {
	i := int32(len(a.today))
	a.today, a.next = append(a.today, event{a.now, w}), append(a.next, 0)
	if w.kind() <= lastOfNPU {
		a.link(i, w.npu())
	}
}

// link makes event i of an NPU the last of today.
func (a *agenda) link(i int32, npu int32) {
	last := &a.last[npu]
	if last.time == a.now && last.event != 0 {
		a.next[last.event] = i
	}
	*last = lastEvent{a.now, i}
}

// put puts an event that is after now into the wheel of the highest digit in which its time differs from now.
func (a *agenda) put(e event) {
	wheel := (bits.Len64(e.time^a.now|1) - 1) / wheelBits
	bucket := uint(e.time>>(wheel*wheelBits)) % wheelSize
	events := &a.wheels[wheel][bucket]
	if *events == nil {
		a.filled[wheel][bucket/64] |= 1 << (bucket % 64)
		a.words[wheel] |= 1 << (bucket / 64)
		if last := len(a.spare) - 1; last >= 0 {
			*events, a.spare = a.spare[last], a.spare[:last]
		} else {
			*events = make([]event, 0, 16)
		}
	}
	*events = append(*events, e)
}

// take removes and returns the next event, ok is false if there is none.
func (a *agenda) take() (w what, ok bool) {
	if a.chain != 0 {
		if i := a.next[a.chain]; i != 0 {
			a.chain = i
			w = a.today[i].what
			a.today[i].what = 0
			return w, true
		}
		a.last[a.chained].event = 0
		a.chain = 0
	}
	for {
		for a.turn < len(a.today) {
			w = a.today[a.turn].what
			if k := w.kind(); k == done {
				a.turn++
				continue
			} else if k <= lastOfNPU {
				a.chain, a.chained = int32(a.turn), w.npu()
			}
			a.turn++
			return w, true
		}
		if a.count == 0 {
			return 0, false
		}
		a.advance()
	}
}

// advance moves now to the next time that has events. There must be events in buckets.
func (a *agenda) advance() {
	wheel, from := 0, int(a.now%wheelSize)+1
	for {
		bucket := a.firstFilled(wheel, from)
		if bucket < 0 {
			wheel++
			from = int(a.now>>(wheel*wheelBits)%wheelSize) + 1
			continue
		}
		shift := wheel * wheelBits
		a.now = (a.now>>shift&^(wheelSize-1) | uint64(bucket)) << shift
		events := a.wheels[wheel][bucket]
		if a.filled[wheel][bucket/64] &^= 1 << (bucket % 64); a.filled[wheel][bucket/64] == 0 {
			a.words[wheel] &^= 1 << (bucket / 64)
		}
		a.wheels[wheel][bucket] = nil
		if wheel == 0 {
			a.begin(events)
			a.spare = append(a.spare, events[:0])
			return
		}
		for _, e := range events {
			a.put(e)
		}
		a.spare = append(a.spare, events[:0])
		wheel, from = 0, 0
	}
}

// begin makes the given events those of today.
func (a *agenda) begin(events []event) {
	a.count -= len(events)
	a.today = append(a.today[:1], events...)
	a.turn = 1
	if cap(a.next) < len(a.today) {
		a.next = make([]int32, len(a.today), 2*len(a.today))
	}
	a.next = a.next[:len(a.today)]
	clear(a.next)
	for i := 1; i < len(a.today); i++ {
		if w := a.today[i].what; w.kind() <= lastOfNPU {
			a.link(int32(i), w.npu())
		}
	}
}

// firstFilled returns the first bucket of a wheel from a given one on that is not empty, -1 if there is none.
func (a *agenda) firstFilled(wheel, from int) int {
	if from == wheelSize {
		return -1
	}
	words := &a.filled[wheel]
	k := from / 64
	if word := words[k] & (^uint64(0) << (from % 64)); word != 0 {
		return k*64 + bits.TrailingZeros64(word)
	}
	later := a.words[wheel] & (^uint64(0) << k << 1)
	if later == 0 {
		return -1
	}
	k = bits.TrailingZeros64(later)
	return k*64 + bits.TrailingZeros64(words[k])
}
