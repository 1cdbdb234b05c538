package event

import "math"

// BatchQueue is a [Wheel] that returns all events of the earliest time together, in push order and whatever their keys.
// It suits models that order events of equal time by a rule of their own.
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

// Push adds an event. Its time must be greater than that of the last batch, or than 0 before the first.
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
