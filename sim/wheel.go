package sim

import (
	"math"
	"math/bits"
	"slices"
)

// Wheel is a priority queue of events for times that are whole, not too finely divided numbers, such as nanoseconds, and
// that mostly lie a little after the earliest event: wheels of 2048 buckets each, where a bucket of the first holds the
// events of one time, and a bucket of each further wheel what falls into one turn of the wheel before. An event moves down
// a wheel when its bucket comes up, so it is touched a few times, whatever the length of the queue.
//
// Events that should have come out before the one that came out last are legal; they wait in a heap of their own. The zero
// value is an empty queue.
type Wheel struct {
	early   Queue                          // events before now, and events of now before the last of today
	now     uint64                         // the time of today's events
	today   []Event                        // the events of now, by key
	done    int                            // how many of today came out
	wheels  [wheels][wheelSize][]Event     // nil: empty
	filled  [wheels][wheelSize / 64]uint64 // a bit for each bucket that is not empty
	words   [wheels]uint64                 // a bit for each word of filled that is not 0
	waiting int                            // events in buckets

	// The memory of empty buckets, to be used for the next bucket that is filled, whichever that is. So it is as little as
	// can be, and in the cache.
	spare [][]Event
}

const (
	wheelBits = 11
	wheelSize = 1 << wheelBits
	wheels    = (63 + wheelBits) / wheelBits
)

// Len returns the number of events.
func (w *Wheel) Len() int {
	return w.early.Len() + len(w.today) - w.done + w.waiting
}

// Rewind makes an empty queue ready for events of any time; without, those before the last that came out cost more.
func (w *Wheel) Rewind() {
	if w.Len() == 0 {
		w.now, w.today, w.done = 0, w.today[:0], 0
	}
}

// Push adds an event.
func (w *Wheel) Push(e Event) {
	switch {
	case e.Time > w.now:
		w.put(e)
		w.waiting++
	case e.Time < w.now:
		w.early.Push(e)
	case w.done == len(w.today) || w.today[len(w.today)-1].Key < e.Key:
		if w.done == len(w.today) {
			w.today, w.done = w.today[:0], 0
		}
		w.today = append(w.today, e)
	default:
		w.early.Push(e)
	}
}

// put puts an event that is not before now into the wheel of the highest digit in which its time differs from now.
func (w *Wheel) put(e Event) {
	wheel := (bits.Len64(e.Time^w.now|1) - 1) / wheelBits
	bucket := uint(e.Time>>(wheel*wheelBits)) % wheelSize
	events := &w.wheels[wheel][bucket]
	if *events == nil {
		w.filled[wheel][bucket/64] |= 1 << (bucket % 64)
		w.words[wheel] |= 1 << (bucket / 64)
		if last := len(w.spare) - 1; last >= 0 {
			*events, w.spare = w.spare[last], w.spare[:last]
		} else {
			*events = make([]Event, 0, 16)
		}
	}
	*events = append(*events, e)
}

// Pop removes and returns the earliest event. The queue must not be empty.
func (w *Wheel) Pop() Event {
	if w.early.Len() > 0 && (w.done == len(w.today) || w.early.Top().Before(w.today[w.done])) {
		return w.early.Pop()
	}
	if w.done == len(w.today) {
		w.advance(math.MaxUint64)
	}
	e := w.today[w.done]
	w.done++
	return e
}

// PopBefore is Pop where the earliest event is before a given time, which is not 0; where it is not, or there is none, ok
// is false.
func (w *Wheel) PopBefore(time uint64) (e Event, ok bool) {
	if w.done < len(w.today) && w.now < time && w.early.Len() == 0 { // as nearly always
		w.done++
		return w.today[w.done-1], true
	}
	if w.done == len(w.today) && w.early.Len() == 0 && (w.waiting == 0 || !w.advance(time-1)) || w.Next() >= time {
		return Event{}, false
	}
	return w.Pop(), true
}

// Next returns the time of the earliest event, math.MaxUint64 if there is none.
func (w *Wheel) Next() uint64 {
	switch {
	case w.early.Len() > 0:
		return w.early.Next()
	case w.done < len(w.today):
		return w.now
	case w.waiting == 0:
		return math.MaxUint64
	}
	w.advance(math.MaxUint64)
	return w.now
}

// NotBefore returns a time that no event is before, math.MaxUint64 if there is none. It does less than Next, and leaves
// the queue as it is: what is pushed after Next and before the time that it returned, costs more.
func (w *Wheel) NotBefore() uint64 {
	if w.early.Len() > 0 || w.done < len(w.today) || w.waiting == 0 {
		return w.Next()
	}
	for wheel := 0; ; wheel++ {
		if bucket := w.firstFilled(wheel, w.digit(wheel)+1); bucket >= 0 {
			return w.start(wheel, bucket)
		}
	}
}

// digit returns the digit of now that a wheel stands for.
func (w *Wheel) digit(wheel int) int {
	return int(w.now >> (wheel * wheelBits) % wheelSize)
}

// start returns the first time of a bucket.
func (w *Wheel) start(wheel, bucket int) uint64 {
	shift := wheel * wheelBits
	return (w.now>>shift&^(wheelSize-1) | uint64(bucket)) << shift
}

// advance moves now to the next time that has events, unless that is after last: then it returns false, and now is at last
// or before. There must be events in buckets.
func (w *Wheel) advance(last uint64) bool {
	wheel, from := 0, w.digit(0)+1
	for {
		bucket := w.firstFilled(wheel, from)
		if bucket < 0 {
			wheel++
			from = w.digit(wheel) + 1
			continue
		}
		start := w.start(wheel, bucket)
		if start > last {
			return false
		}
		w.now = start
		events := w.wheels[wheel][bucket]
		if w.filled[wheel][bucket/64] &^= 1 << (bucket % 64); w.filled[wheel][bucket/64] == 0 {
			w.words[wheel] &^= 1 << (bucket / 64)
		}
		w.wheels[wheel][bucket] = nil
		if wheel == 0 {
			if w.today != nil {
				w.spare = append(w.spare, w.today[:0])
			}
			w.today, w.done = events, 0
			w.waiting -= len(events)
			if !slices.IsSortedFunc(events, byKey) {
				slices.SortFunc(events, byKey)
			}
			return true
		}
		for _, e := range events {
			w.put(e)
		}
		w.spare = append(w.spare, events[:0])
		wheel, from = 0, 0
	}
}

func byKey(a, b Event) int {
	if a.Key < b.Key {
		return -1
	}
	return 1
}

// firstFilled returns the first bucket of a wheel from a given one on that is not empty, -1 if there is none.
func (w *Wheel) firstFilled(wheel, from int) int {
	if from == wheelSize {
		return -1
	}
	words := &w.filled[wheel]
	k := from / 64
	if word := words[k] & (math.MaxUint64 << (from % 64)); word != 0 {
		return k*64 + bits.TrailingZeros64(word)
	}
	later := w.words[wheel] & (math.MaxUint64 << k << 1)
	if later == 0 {
		return -1
	}
	k = bits.TrailingZeros64(later)
	return k*64 + bits.TrailingZeros64(words[k])
}
