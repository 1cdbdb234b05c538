package event

// MinHeap is a binary min-heap of numbers, such as op or packet numbers. The zero value is an empty heap.
type MinHeap []uint32

// Push adds x.
func (h *MinHeap) Push(x uint32) {
	*h = append(*h, x)
	s, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent] <= x {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = x
}

// Pop removes and returns the lowest number. The heap must not be empty.
func (h *MinHeap) Pop() uint32 {
	s := *h
	top, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for child := 1; child < len(s); child = 2*i + 1 {
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if s[child] >= x {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = x
	}
	return top
}
