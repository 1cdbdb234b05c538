package analytical

// sharing lets the ranks on a node share its NICs: a message waits until those of the other ranks of its node have left
// in the dimension, in the order in which they were ready. Those of one rank never wait for each other by this.
type sharing struct {
	mates [][]int32 // by rank: the other ranks of its node
	dims  int
	until []uint64 // by rank and dimension: when its last message has left
}

// newSharing returns the sharing of ranks on nodes, or nil if no node has several.
func newSharing(nodes []int32, dims int) *sharing {
	ranks := make(map[int32][]int32)
	several := false
	for r, node := range nodes {
		ranks[node] = append(ranks[node], int32(r))
		several = several || len(ranks[node]) > 1
	}
	if !several {
		return nil
	}
	s := &sharing{mates: make([][]int32, len(nodes)), dims: dims, until: make([]uint64, len(nodes)*dims)}
	for r, node := range nodes {
		for _, mate := range ranks[node] {
			if mate != int32(r) {
				s.mates[r] = append(s.mates[r], mate)
			}
		}
	}
	return s
}

// reserve returns when a message leaves that is ready now and occupies the NICs of its node for the given time, in
// nanoseconds.
func (s *sharing) reserve(from int32, dim int, now, occupies uint64) (start uint64) {
	start = now
	for _, mate := range s.mates[from] {
		start = max(start, s.until[int(mate)*s.dims+dim])
	}
	until := &s.until[int(from)*s.dims+dim]
	*until = max(*until, start+occupies)
	return start
}

// together reports whether two ranks are on one node, whose messages to each other need no NIC.
func (s *sharing) together(a, b int32) bool {
	for _, mate := range s.mates[a] {
		if mate == b {
			return true
		}
	}
	return false
}

// share makes a message wait for the NICs of its node. It reports whether the message waits.
func (e *engine) share(i uint32) bool {
	m := &e.matcher.messages[i]
	if m.from == m.to || len(e.sharing.mates[m.from]) == 0 || e.sharing.together(m.from, m.to) {
		return false
	}
	occupies, ok := e.links.delay(m.from, m.to, m.size)
	dim, _, _ := e.links.differing(m.from, m.to)
	if e.links.linked { // the message leaves its first link before it arrives
		occupies, ok = truncate(float64(m.size) / e.links.dims[dim].rate)
	}
	if !ok {
		return false // out of range, as the message itself
	}
	now := e.queue.now
	start := e.sharing.reserve(m.from, dim, now, occupies)
	if start > now {
		e.after(start-now, newEvent(nicFree, m.from, i))
	}
	return start > now
}
