package sim

import "math"

// Event is an entry of a [Queue] or a [Wheel]: when, and in the low half of Key what.
//
// Both queues have one rule for ties: events come out by Time, those of equal Time by Key, whatever the order in which they
// were pushed. So the high half of Key is the rule of a backend, such as the number of a message, or a number that it counts
// up for the order of pushing. Events equal in both are alike, and all come out.
type Event struct {
	Time uint64
	Key  uint64
}

// What returns the low half of the key.
func (e Event) What() uint32 {
	return uint32(e.Key)
}

// Before reports whether e comes out of a queue before f.
func (e Event) Before(f Event) bool {
	return e.Time < f.Time || e.Time == f.Time && e.Key < f.Key
}

// Queue is a priority queue of events by value, the earliest first: a heap with four children a node, whose sixteen-byte
// entries put the children of a node into one cache line. The zero value is an empty queue.
type Queue struct {
	heap []Event
}

// Len returns the number of events.
func (q *Queue) Len() int {
	return len(q.heap)
}

// Top returns the earliest event. The queue must not be empty.
func (q *Queue) Top() Event {
	return q.heap[0]
}

// Next returns the time of the earliest event, math.MaxUint64 if there is none.
func (q *Queue) Next() uint64 {
	if len(q.heap) == 0 {
		return math.MaxUint64
	}
	return q.heap[0].Time
}

// Push adds an event.
func (q *Queue) Push(e Event) {
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.Before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// Pop removes and returns the earliest event. The queue must not be empty.
func (q *Queue) Pop() Event {
	h := q.heap
	top, last := h[0], h[len(h)-1]
	q.heap = h[:len(h)-1]
	if len(q.heap) > 0 {
		q.sink(last)
	}
	return top
}

// sink puts e in place of the top and moves it down to where it belongs.
func (q *Queue) sink(e Event) {
	h, i := q.heap, 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		if first+4 <= len(h) {
			four := h[first : first+4 : first+4]
			k := 0
			if four[1].Before(four[0]) {
				k = 1
			}
			k2 := 2
			if four[3].Before(four[2]) {
				k2 = 3
			}
			if four[k2].Before(four[k]) {
				k = k2
			}
			least = first + k
		} else {
			for child := first + 1; child < len(h); child++ {
				if h[child].Before(h[least]) {
					least = child
				}
			}
		}
		if !h[least].Before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}
