package sim

import "math"

// Moments is a [Wheel] that gives out all events of a time together, in the order in which they were pushed, whatever their
// keys. It is for models whose rule for events of equal time is not that of a queue.
type Moments struct {
	wheel Wheel
}

// NewMoments returns an empty queue.
func NewMoments() *Moments {
	return &Moments{Wheel{unsorted: true}}
}

// Len returns the number of events.
func (m *Moments) Len() int {
	return m.wheel.Len()
}

// Push adds an event, which must be after those that were taken last, or after 0.
func (m *Moments) Push(e Event) {
	m.wheel.Push(e)
}

// Take removes the events of the earliest time and returns them. They are good until the next call. There must be some.
func (m *Moments) Take() []Event {
	m.wheel.advance(math.MaxUint64)
	m.wheel.done = len(m.wheel.today)
	return m.wheel.today
}
