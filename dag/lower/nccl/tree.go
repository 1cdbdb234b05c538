package nccl

// tree writes one channel of an allreduce by the tree algorithm at the member at position me: a reduction up to the
// root followed by a broadcast down.
func (f *feed) tree(c *comm, ch *channel, lanes, me int32) {
	t := c.topology.tree(ch.ring)
	up, children := t.parent[me], t.children[me]
	lane := func(rank, direction int32) int64 {
		if f.Counting() {
			return 0
		}
		return int64(c.tags[lanes+2*rank+direction])
	}
	if up != none {
		f.next = link{peer: c.members[up], send: lane(me, 0), recv: lane(me, 1)}
	}
	f.near = f.near[:0]
	for _, child := range children {
		f.near = append(f.near, link{peer: c.members[child], send: lane(child, 1), recv: lane(child, 0)})
	}
	for off := int64(0); off < ch.work && f.Err() == nil; off += ch.chunk {
		f.cut.of(min(ch.chunk, ch.work-off))
		for i, bytes := range f.cut.bytes {
			f.treePiece(up != none, bytes, f.cut.data[i])
		}
	}
	if up != none {
		f.countLane(c, lanes+2*me, &f.next)
	}
	for i, child := range children {
		f.countLane(c, lanes+2*child+1, &f.near[i])
	}
}

// treePiece writes one message up and down.
func (f *feed) treePiece(hasParent bool, bytes, data int64) {
	ready := f.in // op after which the reduced data is available
	if len(f.near) > 0 {
		first := f.Base()
		for i := range f.near {
			f.recvOn(&f.near[i], bytes)
		}
		w := reduces
		if !hasParent {
			w = reducesAndCopies
		}
		ready = f.computes(w, data)
		for i := range f.near {
			f.Require(first + int32(i))
		}
	}
	if hasParent {
		f.terminals = append(f.terminals, f.sendOn(&f.next, bytes, ready))
		ready = f.recvOn(&f.next, bytes)
		if len(f.near) == 0 {
			f.terminals = append(f.terminals, ready)
		} else {
			ready = f.work(copies, data, ready)
		}
	}
	for i := range f.near {
		f.terminals = append(f.terminals, f.sendOn(&f.near[i], bytes, ready))
	}
}
