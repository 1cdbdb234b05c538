package nccl

import (
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

// patTrees is the binomial trees of PAT, one per part of the data; n is the number of members. The part of member p is
// at the root p; the member p + s, modulo n, has the distance s from the root. Its parent has the distance s - 2^i,
// where
// i is the lowest set bit of s. The edges from distances with the lowest bit i form level i.
//
// Distance 2^i * (2k+1) is number k of level i. A message has the parts of at most factor consecutive numbers, a group.
type patTrees struct {
	n, factor int64
	levels    int
}

func newPATTrees(n, factor int64) patTrees {
	return patTrees{n, factor, bits.Len64(uint64(n - 1))}
}

// count returns how many distances level i has.
func (t patTrees) count(i int) int64 { return (t.n-1-1<<i)>>(i+1) + 1 }

// groups calls do for each group of level i.
func (t patTrees) groups(i int, do func(first, count int64)) {
	for first, left := int64(0), t.count(i); left > 0; first, left = first+t.factor, left-t.factor {
		do(first, min(t.factor, left))
	}
}

// distance returns the distance of number k of level i.
func (patTrees) distance(i int, k int64) int64 { return (2*k + 1) << i }

// group returns the level and the group of a distance other than 0.
func (t patTrees) group(s int64) (level int, group int64) {
	level = bits.TrailingZeros64(uint64(s))
	return level, s >> (level + 1) / t.factor
}

// aggregation returns how many parts of the given bytes a message has at most: a power of two, so that they fill a step
// of the buffer, and then all its steps, and at most half of the n parts.
func aggregation(bytes, step, n int64) int64 {
	a := int64(1)
	for step/(max(bytes, 1)*a) >= 2 && a < n/2 {
		a *= 2
	}
	for slots := steps; slots > 1 && a < n/2; slots /= 2 {
		a *= 2
	}
	return a
}

// patWaits finds the messages that a send waits for.
type patWaits struct {
	first [64]int32 // work on the first message of each level
	last  [64]int64 // group of each level that the last send waits for
}

// begin starts the dependencies of a send.
func (w *patWaits) begin() {
	for i := range w.last {
		w.last[i] = none
	}
}

// pat writes one channel of an allgather or reduce-scatter by PAT, parallel aggregated trees, at the member at position
// me. A reduce-scatter reduces each part up its tree, short distances first. An allgather sends it down, long distances
// first.
func (f *feed) pat(c *comm, inst *instance, ch *channel, lanes, me int32, inPlace bool) {
	n := int64(len(c.members))
	t := newPATTrees(n, aggregation(ch.work*f.typeSize, inst.call.slot, n))
	lane := func(rank int64, level int) int32 { return lanes + int32(rank)*int32(t.levels) + int32(level) }
	f.near, f.far = f.near[:0], f.far[:0]
	for i := range t.levels { // near: to the parent and from children in a reduce-scatter; reversed in an allgather
		up, down := (int64(me)-1<<i+n)%n, (int64(me)+1<<i)%n
		if inst.kind == dag.Allgather {
			up, down = down, up
		}
		f.near = append(f.near, link{peer: c.members[up]})
		f.far = append(f.far, link{peer: c.members[down]})
		if !f.Counting() {
			f.near[i].send = int64(c.tags[lane(int64(me), i)])
			f.far[i].recv = int64(c.tags[lane(down, i)])
		}
	}
	for off := int64(0); off < ch.work && f.Err() == nil; off += ch.chunk {
		f.at = off
		elements := min(ch.chunk, ch.work-off)
		if inst.kind == dag.Allgather {
			f.patAllgather(t, int64(me), elements, inPlace)
		} else {
			f.patReduceScatter(t, int64(me), elements)
		}
	}
	for i := range t.levels {
		f.countLane(c, lane(int64(me), i), &f.near[i])
		f.countLink(&f.far[i])
	}
}

// patReduceScatter writes the reduce-scatter of parts of the given elements.
func (f *feed) patReduceScatter(t patTrees, me, elements int64) {
	w, bytes := &f.waits, elements*f.typeSize
	for i := range t.levels {
		t.groups(i, func(first, count int64) {
			sent := f.sendParts(&f.near[i], count*bytes)
			w.begin()
			waits := false
			for k := first; k < first+count; k++ {
				for j := range i {
					if s := t.distance(i, k) + 1<<j; s < t.n && f.requireGroup(t, s) {
						waits = true
					}
				}
			}
			if !waits {
				f.Require(f.in)
			}
			f.provePAT(sent, sendsOn, t, me, i, 0, first, count, elements)
			f.terminals = append(f.terminals, sent)
		})
		w.first[i] = f.Base() + 1
		t.groups(i, func(first, count int64) {
			received := f.recvOn(&f.far[i], count*bytes)
			does := reduces
			if i == t.levels-1 { // the part of the member, complete
				does = reducesAndCopies
			}
			work := f.Calc(f.stream, duration(f.timeOf(does, bytes, count)))
			f.Require(received)
			f.provePAT(received, holds, t, me, i, 1<<i, first, count, elements)
			f.provePAT(work, reducesInto, t, me, i, 1<<i, first, count, elements)
		})
	}
	for i := range t.levels { // the messages with the part of the member
		f.terminals = append(f.terminals, w.first[i])
	}
}

// patAllgather writes the allgather of parts of the given elements.
func (f *feed) patAllgather(t patTrees, me, elements int64, inPlace bool) {
	w, bytes := &f.waits, elements*f.typeSize
	own := f.in
	if !inPlace {
		own = f.work(copies, bytes, f.in)
		f.terminals = append(f.terminals, own)
	}
	for i := t.levels - 1; i >= 0; i-- {
		t.groups(i, func(first, count int64) {
			sent := f.sendParts(&f.near[i], count*bytes)
			w.begin()
			for k := first; k < first+count; k++ {
				if s := k << (i + 1); s == 0 {
					f.Require(own)
				} else {
					f.requireGroup(t, s)
				}
			}
			f.provePAT(sent, sendsOn, t, me, i, 1<<i, first, count, elements)
			f.terminals = append(f.terminals, sent)
		})
		w.first[i] = f.Base() + 1
		t.groups(i, func(first, count int64) {
			received := f.recvOn(&f.far[i], count*bytes)
			last := received
			if i > 0 {
				last = f.Calc(f.stream, duration(f.timeOf(copies, bytes, count)))
				f.Require(received)
				f.provePAT(received, holds, t, me, i, 0, first, count, elements)
				f.provePAT(last, copiesInto, t, me, i, 0, first, count, elements)
			} else {
				f.provePAT(received, keeps, t, me, i, 0, first, count, elements)
			}
			f.terminals = append(f.terminals, last)
		})
	}
}

// requireGroup makes the last op wait for the work on the message with the part at distance s, unless it already does.
// It
// reports whether it added the dependency.
func (f *feed) requireGroup(t patTrees, s int64) bool {
	level, group := t.group(s)
	if f.waits.last[level] == group {
		return false
	}
	f.waits.last[level] = group
	f.Require(f.waits.first[level] + 2*int32(group))
	return true
}

// provePAT records what an op does with count parts from number first of level i on. less is the difference of the
// distances of the level and the member.
func (f *feed) provePAT(op int32, d does, t patTrees, me int64, i int, less, first, count, elements int64) {
	if f.proof == nil {
		return
	}
	for k := first; k < first+count; k++ {
		root := (me - t.distance(i, k) + less + t.n) % t.n
		f.prove(op, d, cell{f.channel, root, f.at, elements})
	}
}
