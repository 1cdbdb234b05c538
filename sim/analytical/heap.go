package analytical

// heap is a priority queue of op numbers, the lowest first.
type heap []uint32

func (h *heap) push(v uint32) {
	*h = append(*h, v)
	s, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent] <= v {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = v
}

// pop removes and returns the lowest; there must be one.
func (h *heap) pop() uint32 {
	s := *h
	top, v := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for child := 1; child < len(s); child = 2*i + 1 {
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if s[child] >= v {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = v
	}
	return top
}
