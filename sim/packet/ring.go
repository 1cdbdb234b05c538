package packet

// ring is a queue of numbers that grows as needed.
type ring struct {
	items       []uint32 // the length is a power of two
	head, count uint32
}

func (r *ring) push(x uint32) {
	if int(r.count) == len(r.items) {
		items := make([]uint32, max(8, 2*len(r.items)))
		for i := range r.count {
			items[i] = r.items[(r.head+i)&(r.count-1)]
		}
		r.items, r.head = items, 0
	}
	r.items[(r.head+r.count)&uint32(len(r.items)-1)] = x
	r.count++
}

// pop removes and returns the first number; there must be one.
func (r *ring) pop() uint32 {
	x := r.items[r.head]
	r.head = (r.head + 1) & uint32(len(r.items)-1)
	r.count--
	return x
}

func (r *ring) reset() { r.head, r.count = 0, 0 }
