package event

// StdEvent is an entry of a [StdHeap].
type StdEvent struct {
	Time    uint64
	Payload uint32
}

// StdHeap is a binary heap that orders events by time only and breaks ties exactly like std::priority_queue of
// libstdc++. Replays that reproduce a C++ simulator need this order. The zero value is an empty heap.
type StdHeap []StdEvent

// Push adds an event.
func (h *StdHeap) Push(e StdEvent) {
	*h = append(*h, e)
	h.rise(len(*h)-1, e)
}

// rise moves e up from position i while its parent is later.
func (h StdHeap) rise(i int, e StdEvent) {
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

// Pop removes and returns an event of the earliest time. The heap must not be empty. As in libstdc++, the hole first
// sinks to a leaf while the earlier child moves up (the right one on ties); then the last event rises from there.
func (h *StdHeap) Pop() StdEvent {
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
