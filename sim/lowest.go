package sim

// Lowest is numbers, of ops or packets, of which the lowest comes out first: a binary heap. The zero value is empty.
type Lowest []uint32

// Push adds a number.
func (h *Lowest) Push(x uint32) {
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

// Pop removes and returns the lowest; there must be one.
func (h *Lowest) Pop() uint32 {
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
