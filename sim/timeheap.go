// This file is a queue for replays that must order events of equal time as a program in C++ does.

package sim

// TimeEvent is an entry of a [TimeHeap].
type TimeEvent struct {
	Time uint64
	What uint32
}

// TimeHeap is a binary heap that orders events by time alone, and treats those of equal time as the heap of libstdc++
// (std::priority_queue) does: simulators whose results are to be reproduced leave the order of such events to it.
type TimeHeap []TimeEvent

// Push adds an event.
func (h *TimeHeap) Push(e TimeEvent) {
	*h = append(*h, e)
	h.rise(len(*h)-1, e)
}

// rise moves e up from place i while the parent is later.
func (h TimeHeap) rise(i int, e TimeEvent) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].Time <= e.Time {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// Pop removes and returns an event of the earliest time; there must be one. The hole that it leaves sinks all the way
// down, the earlier child moving up, the right one where they are equal, and then the last event rises from there.
func (h *TimeHeap) Pop() TimeEvent {
	heap := *h
	top, last := heap[0], heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	*h = heap
	if len(heap) == 0 {
		return top
	}
	hole, child := 0, 2
	for ; child < len(heap); child = 2*hole + 2 {
		if heap[child].Time > heap[child-1].Time {
			child--
		}
		heap[hole] = heap[child]
		hole = child
	}
	if child == len(heap) {
		heap[hole] = heap[child-1]
		hole = child - 1
	}
	heap.rise(hole, last)
	return top
}
