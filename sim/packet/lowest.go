package packet

// lowest is numbers of packets, of which the lowest comes out first: a binary heap.
type lowest []uint32

func (h *lowest) push(x uint32) {
	*h = append(*h, x)
	heap := *h
	i := len(heap) - 1
	for i > 0 && heap[(i-1)/2] > x {
		heap[i] = heap[(i-1)/2]
		i = (i - 1) / 2
	}
	heap[i] = x
}

// pop removes and returns the lowest; there must be one.
func (h *lowest) pop() uint32 {
	heap := *h
	top, x := heap[0], heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	*h = heap
	i := 0
	for 2*i+1 < len(heap) {
		child := 2*i + 1
		if child+1 < len(heap) && heap[child+1] < heap[child] {
			child++
		}
		if heap[child] >= x {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	if len(heap) > 0 {
		heap[i] = x
	}
	return top
}
