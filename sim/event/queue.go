// Package event contains the event queues of the simulation backends.
//
//   - [Queue], a 4-ary heap, is best for few events.
//   - [Wheel], a hierarchical timing wheel, is best for many events at close times.
//   - [BatchQueue] returns all events of the earliest time at once, in push order.
//   - [StdHeap] breaks ties like std::priority_queue of libstdc++.
//   - [MinHeap] stores plain numbers.
//
// Times are unsigned; the caller chooses their unit. All queues store events by value. None is safe for concurrent use.
package event

import "math"

// Event is an entry of a [Queue], [Wheel] or [BatchQueue].
//
// Queue and Wheel order events by Time, and events of equal Time by Key, regardless of push order. The high half of Key
// therefore encodes a backend's tie rule, for example a message number or a running count. Events with equal Time and
// Key are interchangeable; duplicates are kept.
type Event struct {
	Time uint64
	Key  uint64 // tie rule in the high 32 bits, payload in the low 32 bits
}

// Payload returns the low half of the key.
func (e Event) Payload() uint32 {
	return uint32(e.Key)
}

// before reports whether e precedes f.
func (e Event) before(f Event) bool {
	return e.Time < f.Time || e.Time == f.Time && e.Key < f.Key
}

// Queue is a priority queue that pops the earliest event first. It is a heap with four children per node: the 16-byte
// entries of four siblings fill one cache line. The zero value is an empty queue.
type Queue struct {
	heap []Event
}

// UseBuffer makes an empty queue store its events in buffer until the buffer is full.
func (q *Queue) UseBuffer(buffer []Event) {
	q.heap = buffer[:0]
}

// Len returns the number of events.
func (q *Queue) Len() int {
	return len(q.heap)
}

// Top returns the earliest event. The queue must not be empty.
func (q *Queue) Top() Event {
	return q.heap[0]
}

// Next returns the time of the earliest event, or math.MaxUint64 if the queue is empty.
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
		if !e.before(h[parent]) {
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

// sink replaces the top by e and restores the heap order.
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
			if four[1].before(four[0]) {
				k = 1
			}
			k2 := 2
			if four[3].before(four[2]) {
				k2 = 3
			}
			if four[k2].before(four[k]) {
				k = k2
			}
			least = first + k
		} else {
			for child := first + 1; child < len(h); child++ {
				if h[child].before(h[least]) {
					least = child
				}
			}
		}
		if !h[least].before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}
