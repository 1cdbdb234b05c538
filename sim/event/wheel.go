package event

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/internal/cpu"
)

// Wheel is a hierarchical timing wheel: a priority queue for events that are mostly due shortly after the earliest. It
// is faster than a [Queue] for more than a few events, and its cost per event does not grow with their number.
//
// Time is divided into buckets. Each of the next few thousand buckets has its own list of events. Later events wait in
// wheels of 2048 slots each: a slot of the first wheel covers 2048 buckets, a slot of each further wheel covers one
// turn of the previous wheel. When a slot becomes due, its events move down in push order. When a bucket becomes due,
// its events are sorted; mostly they already are.
//
// Events earlier than the last popped one are valid but slower; they may wait in a separate heap. The zero value is an
// empty queue with buckets of one time unit.
type Wheel struct {
	grain    uint // log2 of the bucket length
	unsorted bool // events of a bucket keep their push order

	late    Queue   // events of the current or an earlier bucket that were not inserted into current
	current []Event // events of the current bucket in order
	cursor  int     // index in current of the next event
	ready   int     // number of events of current that may be popped without looking at late: all or none
	now     uint64  // number of the current bucket: a time shifted by grain
	span    uint64  // number of near buckets after now; 0 in an unused queue

	near       [nearSize]list // buckets after now, by bucket number modulo nearSize
	nearFilled [nearSize / 64]uint64
	nearWords  uint64 // one bit per nearGroup words of nearFilled that are not all 0

	// Events of later turns. The highest digit in which the turn differs from the last near turn selects the wheel.
	wheels  [wheels][wheelSize]list
	filled  [wheels][wheelSize / 64]uint64 // one bit per non-empty slot
	words   [wheels]uint64                 // one bit per non-zero word of filled
	waiting int                            // number of events in near buckets and wheels

	// The lists of events consist of chunks of store. A list takes the chunk that was emptied last, so that memory
	// stays small and cached.
	store []Event
	links []uint32 // by chunk: 1 + the next chunk of its list, or of the free ones
	spare uint32   // 1 + the first free chunk; 0: none

	// Scratch space of distribute.
	ends      [1 << mostDigits]uint32
	unordered []Event
}

// list is a list of events in chunks. The zero value is empty.
type list struct {
	first uint32 // the first chunk
	end   uint32 // index in store after the last event; a multiple of chunkSize: the last chunk is full; 0: empty
}

const (
	wheelBits = 11
	wheelSize = 1 << wheelBits // slots of a wheel, and buckets of a turn
	wheels    = (64 - wheelBits + wheelBits - 1) / wheelBits
	nearTurns = 4 // the current turn and the next three
	nearSize  = nearTurns * wheelSize
	nearGroup = nearSize / 64 / 64 // words of nearFilled per bit of nearWords

	// chunkSize is the number of events of a chunk. It must be a power of two.
	chunkSize = 16
	// fewChunks is the initial number of chunks.
	fewChunks = 16

	// mostMoves limits the events of current that move to insert another. Copying them is faster than a push to late.
	mostMoves = 256
	// fewMoves is the number of events of current that may move to insert one before all others.
	fewMoves = 8
	// fewEvents is the size of the largest bucket that is sorted by insertion alone.
	fewEvents = 24
	// mostSortMoves is the average number of positions that insertion may move an event.
	mostSortMoves = 16
	// mostDigits limits the bits of the times by which distribute sorts.
	mostDigits = 8
)

// NewWheel returns an empty queue whose buckets are 1<<grain time units long. grain must be less than 32. The wheel is
// fastest if most events are due at most 6144 buckets after the earliest, since they then move only once, and if few
// buckets are empty or have more than a few hundred events.
func NewWheel(grain uint) *Wheel {
	return &Wheel{grain: grain}
}

// Len returns the number of events.
func (w *Wheel) Len() int {
	return w.late.Len() + len(w.current) - w.cursor + w.waiting
}

// Empty reports whether there are no events. Mostly it is faster than Len.
func (w *Wheel) Empty() bool {
	return w.cursor >= w.ready && w.Len() == 0
}

// Rewind resets the time of an empty queue to 0. Without it, events earlier than the last popped one are slower.
func (w *Wheel) Rewind() {
	if w.Len() == 0 {
		w.turnTo(0)
		w.current, w.cursor, w.ready = w.current[:0], 0, 0
	}
}

// Push adds an event.
func (w *Wheel) Push(e Event) {
	bucket := e.Time >> (w.grain & 63)
	if bucket-w.now-1 < w.span {
		// The usual case makes no calls, so that no argument needs a place on the stack.
		events := &w.near[bucket%nearSize]
		if at := events.end; at%chunkSize != 0 {
			w.waiting++
			events.end = at + 1
			w.store[at] = e
			return
		}
	}
	w.pushElsewhere(e, bucket)
}

// pushNear adds an event to a near bucket.
func (w *Wheel) pushNear(e Event, bucket uint64) {
	w.waiting++
	slot := bucket % nearSize
	events := &w.near[slot]
	if events.end == 0 {
		w.nearFilled[slot/64] |= 1 << (slot % 64)
		w.nearWords |= 1 << (slot / 64 / nearGroup)
	}
	w.add(events, e)
}

// add appends an event to a list.
func (w *Wheel) add(l *list, e Event) {
	at := l.end
	if at%chunkSize == 0 {
		if w.spare == 0 {
			w.grow()
		}
		chunk := w.spare - 1
		w.spare = w.links[chunk]
		if at == 0 {
			l.first = chunk
		} else {
			w.links[at/chunkSize-1] = chunk + 1
		}
		at = chunk * chunkSize
	}
	w.store[at] = e
	l.end = at + 1
}

// grow doubles the number of chunks. There must be no free ones.
func (w *Wheel) grow() {
	chunks := len(w.links)
	grown := max(fewChunks, 2*chunks)
	store := cpu.InHugePages(make([]Event, grown*chunkSize))
	copy(store, w.store)
	w.store = store
	w.links = slices.Grow(w.links, grown-chunks)
	w.spare = uint32(chunks) + 1
	for chunk := chunks; chunk < grown-1; chunk++ {
		w.links = append(w.links, uint32(chunk)+2)
	}
	w.links = append(w.links, 0)
}

// release makes the chunks of a list available.
func (w *Wheel) release(l list) {
	w.links[(l.end-1)/chunkSize] = w.spare
	w.spare = l.first + 1
}

// chunk returns the events of a chunk of a list which must not be empty, and the next chunk, or false after the last.
func (w *Wheel) chunk(l list, chunk uint32) (events []Event, next uint32, more bool) {
	if from := chunk * chunkSize; l.end > from && l.end-from <= chunkSize {
		return w.store[from:l.end], 0, false
	}
	return w.store[chunk*chunkSize:][:chunkSize], w.links[chunk] - 1, true
}

// pushElsewhere adds an event for which Push has no room: to an empty or full near bucket, or to the current one, an
// earlier one or a far one.
func (w *Wheel) pushElsewhere(e Event, bucket uint64) {
	if bucket > w.now {
		if bucket-w.now-1 < w.span {
			w.pushNear(e, bucket)
			return
		}
		if w.span == 0 {
			w.turnTo(w.now)
			w.Push(e)
			return
		}
		w.waiting++
		w.putFar(e)
		return
	}
	if w.pushFirst(e) {
		return
	}
	if bucket < w.now {
		w.late.Push(e)
		w.ready = 0
		return
	}
	if w.cursor == len(w.current) {
		w.current, w.cursor = w.current[:0], 0
	}
	at := len(w.current)
	if at == 0 || w.current[at-1].before(e) { // the usual case
		w.current = append(w.current, e)
		w.count()
		return
	}
	first := max(w.cursor, at-mostMoves)
	if first > w.cursor && e.before(w.current[first-1]) {
		w.late.Push(e)
	} else {
		for first < at {
			if middle := int(uint(first+at) / 2); e.before(w.current[middle]) {
				at = middle
			} else {
				first = middle + 1
			}
		}
		w.current = append(w.current, e)
		copy(w.current[at+1:], w.current[at:])
		w.current[at] = e
	}
	w.count()
}

// pushFirst adds an event that is due before all but a few events of current, in the place of those popped. It reports
// whether it has.
func (w *Wheel) pushFirst(e Event) bool {
	if w.cursor == 0 || w.cursor == len(w.current) {
		return false
	}
	for k, last := w.cursor, min(len(w.current), w.cursor+fewMoves); k < last; k++ {
		if e.before(w.current[k]) {
			w.cursor--
			copy(w.current[w.cursor:k], w.current[w.cursor+1:k])
			w.current[k-1] = e
			return true
		}
	}
	return false
}

// count updates ready.
func (w *Wheel) count() {
	w.ready = 0
	if w.late.Len() == 0 {
		w.ready = len(w.current)
	}
}

// turnTo makes bucket the current one.
func (w *Wheel) turnTo(bucket uint64) {
	w.now = bucket
	w.span = min((bucket>>wheelBits+nearTurns)<<wheelBits-1-bucket, math.MaxUint64>>w.grain-bucket)
}

// lastNear returns the number of the last near turn.
func (w *Wheel) lastNear() uint64 {
	return w.now>>wheelBits + nearTurns - 1
}

// putFar adds an event of a later turn to a wheel.
func (w *Wheel) putFar(e Event) {
	turn := e.Time >> w.grain >> wheelBits
	wheel := (bits.Len64(turn^w.lastNear()) - 1) / wheelBits
	slot := uint(turn>>(wheel*wheelBits)) % wheelSize
	events := &w.wheels[wheel][slot]
	if events.end == 0 {
		w.filled[wheel][slot/64] |= 1 << (slot % 64)
		w.words[wheel] |= 1 << (slot / 64)
	}
	w.add(events, e)
}

// Pop removes and returns the earliest event. The queue must not be empty.
func (w *Wheel) Pop() Event {
	if w.cursor >= w.ready {
		return w.popElsewhere()
	}
	w.cursor++
	return w.current[w.cursor-1]
}

// popElsewhere is Pop if the next event of current may not be the earliest.
func (w *Wheel) popElsewhere() Event {
	if w.late.Len() > 0 && (w.cursor == len(w.current) || w.late.Top().before(w.current[w.cursor])) {
		e := w.late.Pop()
		w.count()
		return e
	}
	if w.cursor == len(w.current) {
		w.advance(math.MaxUint64)
	}
	w.cursor++
	return w.current[w.cursor-1]
}

// PopBefore removes and returns the earliest event if it is before time, which must not be 0. Otherwise ok is false.
func (w *Wheel) PopBefore(time uint64) (e Event, ok bool) {
	if w.cursor < w.ready { // the usual case
		if e = w.current[w.cursor]; e.Time >= time {
			return Event{}, false
		}
		w.cursor++
		return e, true
	}
	if w.cursor == len(w.current) && w.late.Len() == 0 && (w.waiting == 0 || !w.advance(time-1)) || w.Next() >= time {
		return Event{}, false
	}
	return w.Pop(), true
}

// Next returns the time of the earliest event, or math.MaxUint64 if the queue is empty.
func (w *Wheel) Next() uint64 {
	if w.cursor == len(w.current) {
		if w.late.Len() > 0 || w.waiting == 0 {
			return w.late.Next()
		}
		w.advance(math.MaxUint64)
	}
	return min(w.current[w.cursor].Time, w.late.Next())
}

// NotBefore returns a lower bound of the earliest time, or math.MaxUint64 if the queue is empty. It is cheaper than
// Next and does not advance the wheel. Next does: later pushes for a time before its result are slower.
func (w *Wheel) NotBefore() uint64 {
	if w.late.Len() > 0 || w.cursor < len(w.current) || w.waiting == 0 {
		return w.Next()
	}
	if bucket, ok := w.firstNear(); ok {
		return bucket << w.grain
	}
	turn, _, _ := w.firstFar()
	return turn << wheelBits << w.grain
}

// advance opens the next non-empty bucket. If that bucket begins after last, advance returns false and leaves now at
// last or before. Buckets or wheels must contain events; current and late must be empty.
func (w *Wheel) advance(last uint64) bool {
	for {
		if bucket, ok := w.firstNear(); ok {
			if bucket<<w.grain > last {
				return false
			}
			w.open(bucket)
			return true
		}
		turn, wheel, slot := w.firstFar()
		if turn<<wheelBits<<w.grain > last {
			return false
		}
		w.turnTo((turn-nearTurns+2)<<wheelBits - 1) // makes turn the last near one
		w.empty(wheel, slot)
	}
}

// open makes a near bucket the current one.
func (w *Wheel) open(bucket uint64) {
	slot := bucket % nearSize
	events := w.near[slot]
	w.near[slot] = list{}
	w.nearFilled[slot/64] &^= 1 << (slot % 64)
	if group := slot / 64 / nearGroup; *(*[nearGroup]uint64)(w.nearFilled[group*nearGroup:]) == [nearGroup]uint64{} {
		w.nearWords &^= 1 << group
	}
	w.current = w.current[:0]
	chunk, more := events.first, true
	if from := chunk * chunkSize; events.end == from+1 && cap(w.current) > 0 { // a single event, without calls
		w.current, more = append(w.current, w.store[from]), false
	}
	for more {
		var some []Event
		some, chunk, more = w.chunk(events, chunk)
		w.current = append(w.current, some...)
	}
	w.release(events)
	w.waiting -= len(w.current)
	w.order()
	w.cursor, w.ready = 0, len(w.current)
	last := w.lastNear()
	w.turnTo(bucket)
	for turn := last + 1; turn <= w.lastNear(); turn++ {
		// The events of the turn are in the wheel of the highest digit in which it differs from the previous turn.
		wheel := (bits.Len64(turn^(turn-1)) - 1) / wheelBits
		if slot := int(turn >> (wheel * wheelBits) % wheelSize); w.wheels[wheel][slot].end != 0 {
			w.empty(wheel, slot)
		}
	}
}

// empty moves the events of a slot down.
func (w *Wheel) empty(wheel, slot int) {
	events := w.wheels[wheel][slot]
	w.wheels[wheel][slot] = list{}
	if w.filled[wheel][slot/64] &^= 1 << (slot % 64); w.filled[wheel][slot/64] == 0 {
		w.words[wheel] &^= 1 << (slot / 64)
	}
	for chunk, more := events.first, true; more; {
		var some []Event
		some, chunk, more = w.chunk(events, chunk)
		w.waiting -= len(some)
		for _, e := range some {
			w.Push(e)
		}
	}
	w.release(events)
}

// firstNear returns the number of the first non-empty near bucket; ok is false if all are empty.
func (w *Wheel) firstNear() (bucket uint64, ok bool) {
	from := w.now + 1
	slot := from % nearSize
	first := slot / 64
	if word := w.nearFilled[first] >> (slot % 64); word != 0 {
		return from + uint64(bits.TrailingZeros64(word)), true
	}
	for k := first + 1; k%nearGroup != 0; k++ {
		if word := w.nearFilled[k]; word != 0 {
			return from + k*64 + uint64(bits.TrailingZeros64(word)) - slot, true
		}
	}
	next := first/nearGroup + 1
	groups := bits.RotateLeft64(w.nearWords, -int(next))
	if groups == 0 {
		return 0, false
	}
	k := (next + uint64(bits.TrailingZeros64(groups))) % 64 * nearGroup
	for w.nearFilled[k] == 0 {
		k++
	}
	return from + (k*64+uint64(bits.TrailingZeros64(w.nearFilled[k]))-slot)%nearSize, true
}

// firstFar returns the first non-empty slot of the wheels and its first turn. The wheels must contain events.
func (w *Wheel) firstFar() (turn uint64, wheel, slot int) {
	for ; ; wheel++ {
		shift := wheel * wheelBits
		digit := int(w.lastNear() >> shift % wheelSize)
		if slot = w.firstFilled(wheel, digit+1); slot >= 0 {
			return (w.lastNear()>>shift&^(wheelSize-1) | uint64(slot)) << shift, wheel, slot
		}
	}
}

// firstFilled returns the first non-empty slot of a wheel at or after from, or -1.
func (w *Wheel) firstFilled(wheel, from int) int {
	if from == wheelSize {
		return -1
	}
	words := &w.filled[wheel]
	k := from / 64
	if word := words[k] & (math.MaxUint64 << (from % 64)); word != 0 {
		return k*64 + bits.TrailingZeros64(word)
	}
	k = bits.TrailingZeros64(w.words[wheel] & (math.MaxUint64 << (k + 1)))
	if k == 64 {
		return -1
	}
	return k*64 + bits.TrailingZeros64(words[k])
}

// order sorts the events of the current bucket, which are mostly in key order.
func (w *Wheel) order() {
	if w.unsorted {
		return
	}
	events := w.current
	sorted := 1
	for sorted < len(events) && !events[sorted].before(events[sorted-1]) {
		sorted++
	}
	if sorted >= len(events) {
		return
	}
	if len(events) > fewEvents && w.grain > 0 { // with grain 0 all events have the same time
		w.distribute()
		events, sorted = w.current, 1
	}
	moves := mostSortMoves * len(events)
	for i := sorted; i < len(events); i++ {
		e, at := events[i], i
		for ; at > 0 && e.before(events[at-1]); at-- {
			events[at] = events[at-1]
		}
		events[at] = e
		if moves -= i - at; moves < 0 {
			slices.SortFunc(events, compare)
			break
		}
	}
}

func compare(a, b Event) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Key, b.Key))
}

// distribute sorts the events of the current bucket by the highest bits of their times within it with a stable counting
// sort.
func (w *Wheel) distribute() {
	events := w.current
	digits := min(uint(bits.Len(uint(len(events)))), w.grain, mostDigits)
	shift := w.grain - digits
	ends := w.ends[:1<<digits]
	clear(ends)
	mask := uint64(len(ends) - 1)
	for i := range events {
		ends[events[i].Time>>shift&mask]++
	}
	sum := uint32(0)
	for i := range ends {
		sum, ends[i] = sum+ends[i], sum
	}
	out := slices.Grow(w.unordered[:0], len(events))[:len(events)]
	for i := range events {
		k := &ends[events[i].Time>>shift&mask]
		out[*k] = events[i]
		*k++
	}
	w.current, w.unordered = out, events
}

// Peek returns, for prefetching, the payload of the event that pops after k others, if the wheel knows it without any
// work. Events pushed before then may pop first.
func (w *Wheel) Peek(k int) (payload uint32, ok bool) {
	if i := w.cursor + k; i < w.ready {
		return w.current[i].Payload(), true
	}
	return 0, false
}
