// This file fills the columns of the ranks once the position of each op is known.

package vef

import (
	"github.com/tracedag/tracedag/dag"
)

// allot allocates the ranks with columns of their lengths, each column of all ranks in one piece of memory.
func (b *builder) allot() {
	total, totalDeps := 0, 0
	for rank, n := range b.ops {
		total += int(n)
		totalDeps += int(b.deps[rank])
	}
	calcs := false
	for i := range b.records {
		if b.records[i].time > 0 {
			calcs = true
			break
		}
	}
	comms := len(b.instances) > 0 && (b.shift > 0 || len(b.comms) > 1)
	kinds, sizes := make([]dag.Kind, total), make([]int64, total)
	tags, peers := make([]int64, total), make([]int32, total)
	ends, offsets := make([]uint32, total), make([]int32, totalDeps)
	var durations []dag.Time
	var subkinds []dag.Subkind
	var received []int64
	if calcs {
		durations = make([]dag.Time, total)
	}
	if len(b.instances) > 0 {
		subkinds, received = make([]dag.Subkind, total), make([]int64, total)
	}
	b.ranks = dag.NewRanks(int(b.header.tasks))
	at, dep := 0, 0
	for rank := range b.ranks {
		if b.ops[rank] == 0 {
			continue
		}
		r := new(dag.Rank)
		b.ranks[rank] = r
		end, depEnd := at+int(b.ops[rank]), dep+int(b.deps[rank])
		r.Kind, r.Bytes = kinds[at:end:end], sizes[at:end:end]
		r.Tag, r.Peer = tags[at:end:end], peers[at:end:end]
		r.Deps = dag.Edges{End: ends[at:end:end], Off: offsets[dep:depEnd:depEnd]}
		if calcs {
			r.Duration = durations[at:end:end]
		}
		if len(b.instances) > 0 {
			r.Subkind, r.RecvBytes = subkinds[at:end:end], received[at:end:end]
		}
		if comms {
			b.allotNumbers(&r.Comm, end-at, len(b.comms)+int(b.shift))
		}
		at, dep = end, depEnd
	}
}

// allotNumbers allocates a column for n numbers below the limit.
func (b *builder) allotNumbers(column *dag.Narrow, n, limit int) {
	if limit <= 256 {
		*column = dag.NewNarrow(make([]uint8, n), nil)
	} else {
		*column = dag.NewNarrow(nil, make([]int32, n))
	}
}

// cursor is the position of the next op of a rank and of its next dependency.
type cursor struct{ op, dep int32 }

// fill writes the ops.
func (b *builder) fill() error {
	next := make([]cursor, len(b.ranks))
	sent := int64(0)
	for place := range b.records {
		i := b.at(place)
		rec := &b.records[i]
		r, at := b.ranks[rec.task], &next[rec.task]
		on := b.waits(i)
		if rec.time > 0 {
			r.Duration[at.op] = rec.time
			if rec.dep == depNone {
				r.Stream.Set(int(at.op), originStream)
			}
			at.finish(r, on)
			on = b.base[i]
		}
		if rec.kind == participation {
			b.fillParticipation(r, int(at.op), rec)
			at.finish(r, on)
			continue
		}
		id := sent
		if b.ids != nil {
			id = b.ids[sent]
		}
		sent++
		if rec.a == rec.task {
			if !fillSelf(r, at, rec.size, id, on) {
				return b.failAt(b.lineOf(i), inRecord, "fewer messages of a task to itself", "too many")
			}
			continue
		}
		r.Kind[at.op], r.Peer[at.op] = dag.Send, rec.a
		r.Bytes[at.op], r.Tag[at.op] = rec.size, id
		at.finish(r, on)
		r, at = b.ranks[rec.a], &next[rec.a]
		r.Kind[at.op], r.Peer[at.op] = dag.Recv, rec.task
		r.Bytes[at.op], r.Tag[at.op] = rec.size, id
		at.finish(r, -1)
	}
	return nil
}

// finish completes an op that waits for op on (-1: none).
func (at *cursor) finish(r *dag.Rank, on int32) {
	if on >= 0 {
		r.Deps.Off[at.dep] = at.op - on
		at.dep++
	}
	r.Deps.End[at.op] = uint32(at.dep)
	at.op++
}

// fillSelf writes the calcs that represent a message of a task to itself. It reports whether there was room.
func fillSelf(r *dag.Rank, at *cursor, size, id int64, on int32) bool {
	for _, attrs := range []string{selfSendAttrs, selfRecvAttrs} {
		r.Bytes[at.op], r.Tag[at.op] = size, id
		if !r.Attrs.Append(int(at.op), attrs) {
			return false
		}
		at.finish(r, on)
		on = at.op - 1
	}
	return true
}

// fillParticipation writes the coll op of a record.
func (b *builder) fillParticipation(r *dag.Rank, op int, rec *record) {
	g := &b.instances[rec.a]
	r.Kind[op], r.Tag[op] = dag.Coll, g.id
	r.Bytes[op], r.RecvBytes[op] = rec.size, rec.recv
	r.Peer[op] = max(g.root, 0)
	if comm := g.comm + b.shift; comm > 0 {
		r.Comm.Set(op, comm)
	}
	switch g.op {
	case opBroadcast:
		r.Subkind[op] = dag.Bcast
	case opReduce:
		r.Subkind[op] = dag.Reduce
	case opAllreduce:
		r.Subkind[op] = dag.Allreduce
	case opGather:
		r.Subkind[op] = dag.Gather
		if g.mixed {
			r.Subkind[op] = dag.Gatherv
		}
	case opScatter:
		r.Subkind[op] = dag.Scatter
		if g.mixed || b.records[g.rootRecord].size != g.sum {
			r.Subkind[op] = dag.Scatterv
		}
	case opAllgather:
		r.Subkind[op] = dag.Allgather
		if g.mixed {
			r.Subkind[op] = dag.Allgatherv
		}
	case opBarrier:
		r.Subkind[op] = dag.Barrier
	case opAlltoall:
		r.Subkind[op] = dag.Alltoall
		if g.mixed {
			r.Subkind[op] = dag.Alltoallv
		}
		if rec.recv == 0 { // size to each
			r.Bytes[op] *= int64(len(b.comms[g.comm].tasks))
		}
		r.RecvBytes[op] = 0
	}
}
