package analytical

import simevent "github.com/tracedag/tracedag/sim/event"

// event packs a kind, an NPU and a number whose meaning depends on the kind.
type event uint64

type kind uint8

// Kinds of events. Those of an NPU come first; see eventQueue.
const (
	done       kind = iota // none: the event was handled earlier
	stepOver               // stream: the delay before its next step has ended
	delayOver              // stream: the end-point delay has ended, a reduction follows
	opOver                 // op: it has ended
	opReleased             // op: its release time is reached
	serverOver             // memory server: it has served the NPU
	graphOver              // op of a custom collective: it has ended
	busEvent               // side of the NPU's buses, with its event

	arrived     // message: it is at its destination
	hopped      // message: it is at the next device of its route
	linkFree    // link: it is free
	recvMet     // receive op: its message has arrived
	packetMet   // stream: an awaited message has arrived
	graphMet    // receive of a custom collective: its message has arrived
	readyToSend // message of the rendezvous protocol: its receiver is ready
	nicFree     // message: the NICs of its node are free
)

// lastOfNPU is the last kind of an NPU's own events.
const lastOfNPU = busEvent

func newEvent(k kind, npu int32, number uint32) event {
	return event(k)<<60 | event(npu)<<32 | event(number)
}

func (ev event) kind() kind     { return kind(ev >> 60) }
func (ev event) npu() int32     { return int32(ev >> 32 & (maxNPUs - 1)) }
func (ev event) number() uint32 { return uint32(ev) }

// maxNPUs limits the NPUs of a network, exclusively: an event has 28 bits for the NPU.
const maxNPUs = 1 << 28

// eventQueue orders events like ASTRA-sim. Times are in nanoseconds. Events of equal time are handled in the order in
// which they were added, including events added meanwhile, with one exception due to ASTRA-sim's event queue per NPU:
// if an NPU has several events of its own at one time, they are all handled in place of the first, including those
// added meanwhile.
//
// No key can express this order, so a [simevent.BatchQueue] contains later events, and this type orders the current
// ones.
type eventQueue struct {
	now     uint64
	later   *simevent.BatchQueue // its keys are events
	current []event              // events of the current time
	// by index in current of an NPU's event: the NPU's event to handle right after it; 0: none
	next   []int32
	cursor int // index in current of the next event
	// the NPU's event that was handled last, if its successors come next; 0: continue at cursor
	chain   int32
	chained int32 // NPU of chain
	last    []lastEvent
}

// lastEvent is the last event of an NPU at a time; 0 if the NPU's next event waits for its own turn.
type lastEvent struct {
	time  uint64
	event int32
}

func newEventQueue(npus int) *eventQueue {
	q := &eventQueue{later: simevent.NewBatchQueue(), last: make([]lastEvent, npus)}
	q.current, q.next = append(q.current, 0), append(q.next, 0) // index 0 means none
	q.cursor = 1
	return q
}

// add adds an event. Its time must not be before the current time.
func (q *eventQueue) add(time uint64, ev event) {
	if time == q.now {
		q.addNow(ev)
		return
	}
	q.later.Push(simevent.Event{Time: time, Key: uint64(ev)})
}

// addNow adds an event at the current time.
func (q *eventQueue) addNow(ev event) {
	i := int32(len(q.current))
	q.current, q.next = append(q.current, ev), append(q.next, 0)
	if ev.kind() <= lastOfNPU {
		q.link(i, ev.npu())
	}
}

// link makes event i the NPU's last one of the current time.
func (q *eventQueue) link(i int32, npu int32) {
	last := &q.last[npu]
	if last.time == q.now && last.event != 0 {
		q.next[last.event] = i
	}
	*last = lastEvent{q.now, i}
}

// take removes and returns the next event; ok is false if the queue is empty.
func (q *eventQueue) take() (ev event, ok bool) {
	if q.chain != 0 {
		if i := q.next[q.chain]; i != 0 {
			q.chain = i
			ev = q.current[i]
			q.current[i] = 0
			return ev, true
		}
		q.last[q.chained].event = 0
		q.chain = 0
	}
	for {
		for q.cursor < len(q.current) {
			ev = q.current[q.cursor]
			if k := ev.kind(); k == done {
				q.cursor++
				continue
			} else if k <= lastOfNPU {
				q.chain, q.chained = int32(q.cursor), ev.npu()
			}
			q.cursor++
			return ev, true
		}
		if q.later.Len() == 0 {
			return 0, false
		}
		q.advance()
	}
}

// advance advances to the next time. There must be later events.
func (q *eventQueue) advance() {
	q.current, q.cursor = q.current[:1], 1
	for _, e := range q.later.Take() {
		q.now = e.Time
		q.current = append(q.current, event(e.Key))
	}
	if cap(q.next) < len(q.current) {
		q.next = make([]int32, len(q.current), 2*len(q.current))
	}
	q.next = q.next[:len(q.current)]
	clear(q.next)
	for i := 1; i < len(q.current); i++ {
		if ev := q.current[i]; ev.kind() <= lastOfNPU {
			q.link(int32(i), ev.npu())
		}
	}
}
