package sim

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Wheel is a priority queue of events that mostly lie a little after the earliest: faster than a [Queue] where there are
// more than a few, and as fast however many there are.
//
// Time is cut into buckets. Those of the next few thousand each have their events; what is further away stands in wheels
// of 2048 places each, where a place of the first holds what falls into 2048 buckets, and a place of each further wheel what
// falls into one turn of the wheel before. Events move down a wheel when their place comes up, in the order in which they
// were pushed, and are sorted, mostly by a look, when their bucket comes up.
//
// Events that should have come out before the one that came out last are legal; those that belong far from it may wait in
// a heap of their own. The zero value is an empty queue with buckets of one time each.
type Wheel struct {
	grain    uint // log2 of the length of a bucket
	unsorted bool // events stay in the order in which they came into their bucket

	early Queue   // events that belong into today or before it, and did not find their place in it soon
	today []Event // the events of the bucket now, in order
	done  int     // how many of today came out
	ready int     // how many of today may come out without a look at early: all or none
	now   uint64  // the number of the bucket at hand, a time shifted by grain
	span  uint64  // how many buckets after now are near; 0 in an empty queue that was not used yet

	near       [nearSize][]Event // the buckets after now, by their numbers modulo nearSize; nil: empty
	nearFilled [nearSize / 64]uint64
	nearWords  uint64 // a bit for each nearGroup words of nearFilled that are not all 0

	// The events of later turns, by the highest digit in which the number of their turn differs from the last that is near.
	wheels  [wheels][wheelSize][]Event     // nil: empty
	filled  [wheels][wheelSize / 64]uint64 // a bit for each place that is not empty
	words   [wheels]uint64                 // a bit for each word of filled that is not 0
	waiting int                            // events in buckets and wheels

	// The memory of empty buckets and places, to be used for the next that is filled, whichever that is. So it is as little
	// as can be, and in the cache.
	spareNear, spareFar [][]Event

	ends [1 << mostDigits]uint32 // see distribute
}

const (
	wheelBits = 11
	wheelSize = 1 << wheelBits // places of a wheel, and buckets of a turn
	wheels    = (64 - wheelBits + wheelBits - 1) / wheelBits
	nearTurns = 4 // the turn at hand, and the next three
	nearSize  = nearTurns * wheelSize
	nearGroup = nearSize / 64 / 64 // words of nearFilled for each bit of nearWords

	// mostMoves is how many events of today may have to move for one that comes in.
	mostMoves = 16
	// fewEvents are sorted faster by insertion.
	fewEvents = 24
	// mostDigits bounds by how many bits of their times the events of a bucket are distributed.
	mostDigits = 8
)

// NewWheel returns an empty queue with buckets of 1<<grain times each, grain being less than 32. It is fastest where most
// events lie no more than 6144 buckets after the earliest, for which they are touched once, and where few buckets are empty or
// hold more than hundreds.
func NewWheel(grain uint) *Wheel {
	return &Wheel{grain: grain}
}

// Len returns the number of events.
func (w *Wheel) Len() int {
	return w.early.Len() + len(w.today) - w.done + w.waiting
}

// Rewind makes an empty queue ready for events of any time; without, those before the last that came out cost more.
func (w *Wheel) Rewind() {
	if w.Len() == 0 {
		w.turnTo(0)
		w.today, w.done, w.ready = w.today[:0], 0, 0
	}
}

// Push adds an event.
func (w *Wheel) Push(e Event) {
	bucket := e.Time >> (w.grain & 63)
	if bucket-w.now-1 >= w.span {
		w.pushElsewhere(e, bucket)
		return
	}
	w.waiting++
	slot := bucket % nearSize
	events := &w.near[slot]
	if *events == nil {
		w.nearFilled[slot/64] |= 1 << (slot % 64)
		w.nearWords |= 1 << (slot / 64 / nearGroup)
		*events = reuse(&w.spareNear)
	}
	*events = append(*events, e)
}

// reuse returns memory for some events.
func reuse(spare *[][]Event) []Event {
	s := *spare
	last := len(s) - 1
	if last < 0 {
		return make([]Event, 0, 4)
	}
	*spare = s[:last]
	return s[last]
}

// pushElsewhere adds an event whose bucket is not near.
func (w *Wheel) pushElsewhere(e Event, bucket uint64) {
	if bucket > w.now {
		if w.span == 0 {
			w.turnTo(w.now)
			w.Push(e)
			return
		}
		w.waiting++
		w.putFar(e)
		return
	}
	if bucket < w.now {
		w.early.Push(e)
		w.ready = 0
		return
	}
	if w.done == len(w.today) {
		w.today, w.done = w.today[:0], 0
	}
	at := len(w.today)
	if at == 0 || w.today[at-1].Before(e) { // as nearly always
		w.today = append(w.today, e)
		w.count()
		return
	}
	for at > w.done && at+mostMoves > len(w.today) && e.Before(w.today[at-1]) {
		at--
	}
	if at > w.done && e.Before(w.today[at-1]) {
		w.early.Push(e)
	} else {
		w.today = append(w.today, e)
		copy(w.today[at+1:], w.today[at:])
		w.today[at] = e
	}
	w.count()
}

// count says how many of today are ready.
func (w *Wheel) count() {
	w.ready = 0
	if w.early.Len() == 0 {
		w.ready = len(w.today)
	}
}

// turnTo makes a bucket the one at hand.
func (w *Wheel) turnTo(bucket uint64) {
	w.now = bucket
	w.span = min((bucket>>wheelBits+nearTurns)<<wheelBits-1-bucket, math.MaxUint64>>w.grain-bucket)
}

// lastNear returns the number of the last turn that is near.
func (w *Wheel) lastNear() uint64 {
	return w.now>>wheelBits + nearTurns - 1
}

// putFar puts an event of a turn that is not near into a wheel.
func (w *Wheel) putFar(e Event) {
	turn := e.Time >> w.grain >> wheelBits
	wheel := (bits.Len64(turn^w.lastNear()) - 1) / wheelBits
	place := uint(turn>>(wheel*wheelBits)) % wheelSize
	events := &w.wheels[wheel][place]
	if *events == nil {
		w.filled[wheel][place/64] |= 1 << (place % 64)
		w.words[wheel] |= 1 << (place / 64)
		*events = reuse(&w.spareFar)
	}
	*events = append(*events, e)
}

// Pop removes and returns the earliest event. The queue must not be empty.
func (w *Wheel) Pop() Event {
	if w.done >= w.ready {
		return w.popElsewhere()
	}
	w.done++
	return w.today[w.done-1]
}

// popElsewhere is Pop where the earliest event may not be the next of today.
func (w *Wheel) popElsewhere() Event {
	if w.early.Len() > 0 && (w.done == len(w.today) || w.early.Top().Before(w.today[w.done])) {
		e := w.early.Pop()
		w.count()
		return e
	}
	if w.done == len(w.today) {
		w.advance(math.MaxUint64)
	}
	w.done++
	return w.today[w.done-1]
}

// PopBefore is Pop where the earliest event is before a given time, which is not 0; where it is not, or there is none, ok
// is false.
func (w *Wheel) PopBefore(time uint64) (e Event, ok bool) {
	if w.done < w.ready { // as nearly always
		if e = w.today[w.done]; e.Time >= time {
			return Event{}, false
		}
		w.done++
		return e, true
	}
	if w.done == len(w.today) && w.early.Len() == 0 && (w.waiting == 0 || !w.advance(time-1)) || w.Next() >= time {
		return Event{}, false
	}
	return w.Pop(), true
}

// Next returns the time of the earliest event, math.MaxUint64 if there is none.
func (w *Wheel) Next() uint64 {
	if w.done == len(w.today) {
		if w.early.Len() > 0 || w.waiting == 0 {
			return w.early.Next()
		}
		w.advance(math.MaxUint64)
	}
	return min(w.today[w.done].Time, w.early.Next())
}

// NotBefore returns a time that no event is before, math.MaxUint64 if there is none. It does less than Next, and leaves
// the queue as it is: what is pushed after Next and before the time that it returned, costs more.
func (w *Wheel) NotBefore() uint64 {
	if w.early.Len() > 0 || w.done < len(w.today) || w.waiting == 0 {
		return w.Next()
	}
	if bucket, ok := w.firstNear(); ok {
		return bucket << w.grain
	}
	turn, _, _ := w.firstFar()
	return turn << wheelBits << w.grain
}

// advance makes the next bucket that has events today, unless it begins after last: then it returns false, and now is at
// last or before. There must be events in buckets or wheels, and none in today and early.
func (w *Wheel) advance(last uint64) bool {
	for {
		if bucket, ok := w.firstNear(); ok {
			if bucket<<w.grain > last {
				return false
			}
			w.open(bucket)
			return true
		}
		turn, wheel, place := w.firstFar()
		if turn<<wheelBits<<w.grain > last {
			return false
		}
		w.turnTo((turn-nearTurns+2)<<wheelBits - 1) // which makes turn the last that is near
		w.empty(wheel, place)
	}
}

// open makes a bucket today.
func (w *Wheel) open(bucket uint64) {
	slot := bucket % nearSize
	events := w.near[slot]
	w.near[slot] = nil
	w.nearFilled[slot/64] &^= 1 << (slot % 64)
	if group := slot / 64 / nearGroup; *(*[nearGroup]uint64)(w.nearFilled[group*nearGroup:]) == [nearGroup]uint64{} {
		w.nearWords &^= 1 << group
	}
	if w.today != nil {
		w.spareNear = append(w.spareNear, w.today[:0])
	}
	w.waiting -= len(events)
	w.today, w.done, w.ready = w.inOrder(events), 0, len(events)
	last := w.lastNear()
	w.turnTo(bucket)
	for turn := last + 1; turn <= w.lastNear(); turn++ {
		// Its events were kept by the highest digit in which it differs from the one before.
		wheel := (bits.Len64(turn^(turn-1)) - 1) / wheelBits
		if place := int(turn >> (wheel * wheelBits) % wheelSize); w.wheels[wheel][place] != nil {
			w.empty(wheel, place)
		}
	}
}

// empty moves the events of a place down.
func (w *Wheel) empty(wheel, place int) {
	events := w.wheels[wheel][place]
	w.wheels[wheel][place] = nil
	if w.filled[wheel][place/64] &^= 1 << (place % 64); w.filled[wheel][place/64] == 0 {
		w.words[wheel] &^= 1 << (place / 64)
	}
	w.waiting -= len(events)
	for _, e := range events {
		w.Push(e)
	}
	w.spareFar = append(w.spareFar, events[:0])
}

// firstNear returns the number of the next near bucket that is not empty.
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

// firstFar returns the first place of the wheels that is not empty, and its first turn. There must be events in wheels.
func (w *Wheel) firstFar() (turn uint64, wheel, place int) {
	for ; ; wheel++ {
		shift := wheel * wheelBits
		digit := int(w.lastNear() >> shift % wheelSize)
		if place = w.firstFilled(wheel, digit+1); place >= 0 {
			return (w.lastNear()>>shift&^(wheelSize-1) | uint64(place)) << shift, wheel, place
		}
	}
}

// firstFilled returns the first place of a wheel from a given one on that is not empty, -1 if there is none.
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

// inOrder sorts the events of a bucket, which mostly are in the order of their keys. It may return them in other memory.
func (w *Wheel) inOrder(events []Event) []Event {
	if w.unsorted {
		return events
	}
	if len(events) > fewEvents {
		if w.grain == 0 { // all at one time
			if !slices.IsSortedFunc(events, byKey) {
				slices.SortFunc(events, byKey)
			}
			return events
		}
		events = w.distribute(events)
	}
	for i := 1; i < len(events); i++ {
		e, at := events[i], i
		for ; at > 0 && e.Before(events[at-1]); at-- {
			events[at] = events[at-1]
		}
		events[at] = e
	}
	return events
}

func byKey(a, b Event) int {
	return cmp.Compare(a.Key, b.Key)
}

// distribute orders events by the highest bits of their times within a bucket, and otherwise leaves them in their order.
func (w *Wheel) distribute(events []Event) []Event {
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
	out := slices.Grow(reuse(&w.spareNear), len(events))[:len(events)]
	for i := range events {
		k := &ends[events[i].Time>>shift&mask]
		out[*k] = events[i]
		*k++
	}
	w.spareNear = append(w.spareNear, events[:0])
	return out
}
