package nccl

import "github.com/tracedag/tracedag/dag"

// ring writes one channel of a collective by the ring algorithm at the member at position me.
func (f *feed) ring(c *comm, inst *instance, ch *channel, lanes, me int32, inPlace bool) {
	o := c.topology.ring(ch.ring)
	next, prev := o.next(me), o.prev(me)
	f.next = link{peer: c.members[next]}
	f.prv = link{peer: c.members[prev]}
	if !f.Counting() {
		f.next.send, f.prv.recv = int64(c.tags[lanes+me]), int64(c.tags[lanes+prev])
	}
	n := int64(len(c.members))
	if inst.kind == dag.Allreduce {
		f.ringAllreduce(ch, n, int64(o.position[me]))
	} else {
		for off := int64(0); off < ch.work && f.Err() == nil; off += ch.chunk {
			f.cut.of(min(ch.chunk, ch.work-off))
			f.at, f.part = off, 0
			switch inst.kind {
			case dag.Allgather:
				f.part = int64(o.position[me])
				f.step(false, ownCopy(inPlace), true)
				for range n - 2 {
					f.part--
					f.step(true, copies, true)
				}
				f.part--
				f.step(true, noWork, false)
			case dag.ReduceScatter:
				f.part = int64(o.position[me]) - 1
				f.step(false, noWork, true)
				for range n - 2 {
					f.part--
					f.step(true, reduces, true)
				}
				f.part--
				f.step(true, reducesAndCopies, false)
			case dag.Bcast:
				switch inst.root {
				case me:
					f.step(false, ownCopy(inPlace), true)
				case next:
					f.step(true, noWork, false)
				default:
					f.step(true, copies, true)
				}
			case dag.Reduce:
				switch inst.root {
				case me:
					f.step(true, reducesAndCopies, false)
				case prev:
					f.step(false, noWork, true)
				default:
					f.step(true, reduces, true)
				}
			}
		}
	}
	f.countLane(c, lanes+me, &f.next)
	f.countLink(&f.prv)
}

// ownCopy returns the work of a member that sends its own data: a copy to the output unless the call is in place.
func ownCopy(inPlace bool) work {
	if inPlace {
		return noWork
	}
	return copies
}

// ringAllreduce writes a reduce-scatter followed by an allgather around the ring. p is the position in the ring.
func (f *feed) ringAllreduce(ch *channel, n, p int64) {
	loop := n * ch.chunk
	for off := int64(0); off < ch.work && f.Err() == nil; off += loop {
		rest, size := ch.work-off, ch.chunk
		if rest < loop {
			size = ch.last
		}
		chunk := func(i int64) {
			f.at, f.part = off+i%n*size, 0
			f.cut.of(min(size, rest-i%n*size))
		}
		chunk(p + n - 1)
		f.step(false, noWork, true)
		for j := int64(2); j < n; j++ {
			chunk(p + n - j)
			f.step(true, reduces, true)
		}
		chunk(p)
		f.step(true, reducesAndCopies, true)
		for j := int64(1); j < n-1; j++ {
			chunk(p + n - j)
			f.step(true, copies, true)
		}
		chunk(p + 1)
		f.step(true, noWork, false)
	}
}

// step receives the messages of a chunk from the previous member, works on them and sends them to the next member.
func (f *feed) step(recv bool, w work, send bool) {
	for i, bytes := range f.cut.bytes {
		last := f.in
		if recv {
			last = f.recvOn(&f.prv, bytes)
			f.provePiece(last, receives(w), i)
		}
		if w != noWork {
			last = f.work(w, f.cut.data[i], last)
			if recv {
				f.provePiece(last, w.does(), i)
			}
		}
		if send {
			last = f.sendOn(&f.next, bytes, last)
			f.provePiece(last, sendsOn, i)
		}
		f.terminals = append(f.terminals, last)
	}
}
