package matrix

// maxHeap is a heap of items with the largest key first and four children per node. Keys are stored apart from the
// items, so that the children's keys span at most two cache lines.
type maxHeap struct {
	keys  []int64
	items []int32
}

func newMaxHeap(capacity int) maxHeap {
	return maxHeap{make([]int64, 0, capacity), make([]int32, 0, capacity)}
}

func (h *maxHeap) len() int {
	return len(h.keys)
}

// top returns the largest key. The heap must not be empty.
func (h *maxHeap) top() int64 {
	return h.keys[0]
}

func (h *maxHeap) push(key int64, item int32) {
	h.keys, h.items = append(h.keys, key), append(h.items, item)
	keys, items := h.keys, h.items
	at := len(keys) - 1
	for at > 0 {
		parent := (at - 1) / 4
		if keys[parent] >= key {
			break
		}
		keys[at], items[at] = keys[parent], items[parent]
		at = parent
	}
	keys[at], items[at] = key, item
}

// pop removes the top and returns its item.
func (h *maxHeap) pop() int32 {
	item := h.items[0]
	last := len(h.keys) - 1
	key, moved := h.keys[last], h.items[last]
	h.keys, h.items = h.keys[:last], h.items[:last]
	if last > 0 {
		h.sink(0, key, moved)
	}
	return item
}

// sink puts an item at a node or below, and overwrites the node's item.
func (h *maxHeap) sink(at int, key int64, item int32) {
	keys, items := h.keys, h.items
	for {
		first := 4*at + 1
		if first >= len(keys) {
			break
		}
		best, largest := first, keys[first]
		for child := first + 1; child < min(first+4, len(keys)); child++ {
			if keys[child] > largest {
				best, largest = child, keys[child]
			}
		}
		if largest <= key {
			break
		}
		keys[at], items[at] = largest, items[best]
		at = best
	}
	keys[at], items[at] = key, item
}

// order makes a heap of keys and items in any order.
func (h *maxHeap) order() {
	for at := (len(h.keys) - 2) / 4; at >= 0 && len(h.keys) > 1; at-- {
		h.sink(at, h.keys[at], h.items[at])
	}
}
