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
		f.at, f.part = off, 0
		for i, bytes := range f.cut.bytes {
			f.treePiece(up != none, i, bytes, f.cut.data[i])
		}
	}
	if up != none {
		f.countLane(c, lanes+2*me, &f.next)
	}
	for i, child := range children {
		f.countLane(c, lanes+2*child+1, &f.near[i])
	}
}

// treePiece writes message i of a chunk up and down.
func (f *feed) treePiece(hasParent bool, i int, bytes, data int64) {
	ready := f.in // op after which the reduced data is available
	if len(f.near) > 0 {
		first := f.Base()
		for child := range f.near {
			f.provePiece(f.recvOn(&f.near[child], bytes), holds, i)
		}
		w := reduces
		if !hasParent {
			w = reducesAndCopies
		}
		ready = f.computes(w, data)
		for child := range f.near {
			f.Require(first + int32(child))
		}
		f.provePiece(ready, reducesInto, i)
	}
	if hasParent {
		sent := f.sendOn(&f.next, bytes, ready)
		f.provePiece(sent, sendsOn, i)
		f.terminals = append(f.terminals, sent)
		ready = f.recvOn(&f.next, bytes)
		if len(f.near) == 0 {
			f.provePiece(ready, keeps, i)
			f.terminals = append(f.terminals, ready)
		} else {
			f.provePiece(ready, holds, i)
			ready = f.work(copies, data, ready)
			f.provePiece(ready, copiesInto, i)
		}
	}
	for child := range f.near {
		sent := f.sendOn(&f.near[child], bytes, ready)
		f.provePiece(sent, sendsOn, i)
		f.terminals = append(f.terminals, sent)
	}
}
