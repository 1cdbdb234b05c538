package sim

import (
	"math"
	"math/bits"
	"slices"
)

// Wheel is a priority queue of events for times that are whole, not too finely divided numbers, such as nanoseconds, and
// that mostly lie a little after the earliest event: wheels of 256 buckets each, where a bucket of the first holds the
// events of one time, and a bucket of each further wheel what falls into one turn of the wheel before. An event moves down
// a wheel when its bucket comes up, so it is touched a few times, whatever the length of the queue.
//
// Events that should have come out before the one that came out last are legal; they wait in a heap of their own. The zero
// value is an empty queue.
type Wheel struct {
	early   Queue   // events before now, and events of now before the last of today
	now     uint64  // the time of today's events
	today   []Event // the events of now, by key
	done    int     // how many of today came out
	wheels  [wheels][wheelSize][]Event
	filled  [wheels][wheelSize / 64]uint64 // a bit for each bucket that is not empty
	waiting int                            // events in buckets
}

const (
	wheelBits = 8
	wheelSize = 1 << wheelBits
	wheels    = 64 / wheelBits
)

// Len returns the number of events.
func (w *Wheel) Len() int {
	return w.early.Len() + len(w.today) - w.done + w.waiting
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

// put puts an event that is later than now into the wheel of the highest digit in which its time differs from now.
func (w *Wheel) put(e Event) {
	wheel := (bits.Len64(e.Time^w.now) - 1) / wheelBits
	bucket := uint8(e.Time >> (wheel * wheelBits))
	w.wheels[wheel][bucket] = append(w.wheels[wheel][bucket], e)
	w.filled[wheel][bucket/64] |= 1 << (bucket % 64)
}

// Pop removes and returns the earliest event. The queue must not be empty.
func (w *Wheel) Pop() Event {
	if w.early.Len() > 0 && (w.done == len(w.today) || w.early.Top().Before(w.today[w.done])) {
		return w.early.Pop()
	}
	if w.done == len(w.today) {
		w.advance()
	}
	e := w.today[w.done]
	w.done++
	return e
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
	w.advance()
	return w.now
}

// advance moves now to the next time that has events.
func (w *Wheel) advance() {
	for wheel := 0; ; wheel++ {
		shift := wheel * wheelBits
		bucket := w.firstFilled(wheel, int(uint8(w.now>>shift)))
		if bucket < 0 {
			continue
		}
		events := w.wheels[wheel][bucket]
		w.filled[wheel][bucket/64] &^= 1 << (bucket % 64)
		if wheel == 0 {
			w.now = w.now&^(wheelSize-1) | uint64(bucket)
			w.wheels[0][bucket] = w.today[:0] // swap the memory of the two
			w.today, w.done = events, 0
			w.waiting -= len(events)
			if !slices.IsSortedFunc(events, byKey) {
				slices.SortFunc(events, byKey)
			}
			return
		}
		// The earliest of the bucket is the new now; the others go down.
		earliest := events[0].Time
		for _, e := range events[1:] {
			earliest = min(earliest, e.Time)
		}
		w.now = earliest
		w.today, w.done = w.today[:0], 0
		for _, e := range events {
			if e.Time == earliest {
				w.today = append(w.today, e)
			} else {
				w.put(e)
			}
		}
		w.wheels[wheel][bucket] = events[:0]
		w.waiting -= len(w.today)
		if !slices.IsSortedFunc(w.today, byKey) {
			slices.SortFunc(w.today, byKey)
		}
		return
	}
}

func byKey(a, b Event) int {
	if a.Key < b.Key {
		return -1
	}
	return 1
}

// firstFilled returns the first bucket of a wheel after a given one that is not empty, -1 if there is none.
func (w *Wheel) firstFilled(wheel, after int) int {
	words := &w.filled[wheel]
	word := words[after/64] & (math.MaxUint64 << (after % 64)) &^ (1 << (after % 64))
	for k := after / 64; ; {
		if word != 0 {
			return k*64 + bits.TrailingZeros64(word)
		}
		if k++; k == len(words) {
			return -1
		}
		word = words[k]
	}
}
