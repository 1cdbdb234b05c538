package event

import "math"

// BatchQueue is a [Wheel] that returns all events of the earliest time together, in push order, ignoring their keys. It
// suits models with their own order of events of equal time.
type BatchQueue struct {
	wheel Wheel
}

// NewBatchQueue returns an empty queue.
func NewBatchQueue() *BatchQueue {
	return &BatchQueue{Wheel{unsorted: true}}
}

// Len returns the number of events.
func (m *BatchQueue) Len() int {
	return m.wheel.Len()
}

// Push adds an event. Its time must be greater than the time of the last batch, or greater than 0 before the first.
func (m *BatchQueue) Push(e Event) {
	m.wheel.Push(e)
}

// Take removes and returns the events of the earliest time. The slice is valid until the next call. The queue must not
// be empty.
func (m *BatchQueue) Take() []Event {
	m.wheel.advance(math.MaxUint64)
	m.wheel.cursor = len(m.wheel.current)
	return m.wheel.current
}
