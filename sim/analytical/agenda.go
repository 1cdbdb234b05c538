package analytical

import simevent "github.com/tracedag/tracedag/sim/event"

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

// agenda is the queue of events, whose times are nanoseconds. Those of one time happen in the order in which they were added, also while others of
// that time happen, with one exception, which ASTRA-sim's event queue of each NPU makes: where an NPU has several events
// of its own at one time, all happen when the first of them has its turn, and so do those that are added meanwhile.
//
// That is no order by a key, so the events come from [simevent.BatchQueue], and those of now are put in order here.
type agenda struct {
	now     uint64
	later   *simevent.BatchQueue // whose keys are what happens
	today   []what               // the events of now
	next    []int32              // of an event of an NPU, the NPU's event that happens right after it; 0: none
	turn    int                  // of today: which is next
	chain   int32                // the event of an NPU after which the NPU's next one happens; 0: none, look at turn
	chained int32                // whose events chain is about
	last    []lastEvent
}

// lastEvent is the last event of an NPU at a time, 0 where the next one is to wait for its own turn.
type lastEvent struct {
	time  uint64
	event int32
}

func newAgenda(npus int) *agenda {
	a := &agenda{later: simevent.NewBatchQueue(), last: make([]lastEvent, npus)}
	a.today, a.next = append(a.today, 0), append(a.next, 0) // so that no event is number 0
	a.turn = 1
	return a
}

// add adds an event; its time is not before now.
func (a *agenda) add(time uint64, w what) {
	if time == a.now {
		a.addToday(w)
		return
	}
	a.later.Push(simevent.Event{Time: time, Key: uint64(w)})
}

func (a *agenda) addToday(w what) {
	i := int32(len(a.today))
	a.today, a.next = append(a.today, w), append(a.next, 0)
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

// take removes and returns the next event, ok is false if there is none.
func (a *agenda) take() (w what, ok bool) {
	if a.chain != 0 {
		if i := a.next[a.chain]; i != 0 {
			a.chain = i
			w = a.today[i]
			a.today[i] = 0
			return w, true
		}
		a.last[a.chained].event = 0
		a.chain = 0
	}
	for {
		for a.turn < len(a.today) {
			w = a.today[a.turn]
			if k := w.kind(); k == done {
				a.turn++
				continue
			} else if k <= lastOfNPU {
				a.chain, a.chained = int32(a.turn), w.npu()
			}
			a.turn++
			return w, true
		}
		if a.later.Len() == 0 {
			return 0, false
		}
		a.begin()
	}
}

// begin makes the events of the next time those of today. There must be some.
func (a *agenda) begin() {
	a.today, a.turn = a.today[:1], 1
	for _, e := range a.later.Take() {
		a.now = e.Time
		a.today = append(a.today, what(e.Key))
	}
	if cap(a.next) < len(a.today) {
		a.next = make([]int32, len(a.today), 2*len(a.today))
	}
	a.next = a.next[:len(a.today)]
	clear(a.next)
	for i := 1; i < len(a.today); i++ {
		if w := a.today[i]; w.kind() <= lastOfNPU {
			a.link(int32(i), w.npu())
		}
	}
}
