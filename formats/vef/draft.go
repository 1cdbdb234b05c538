// This file collects the data of each record for ordering and writing. Both access the ops of all ranks in random
// order, so a separate column would cost a cache miss each.

package vef

import (
	"math"
	"sort"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// draft is a record without a position in the file.
type draft struct {
	delay    dag.Time
	size     int64  // of a message
	on       uint32 // the draft that it depends on, unless dep is depNone
	number   uint32 // of a message, plus 1; of another record 1. 0: no position yet; or entered
	rank, op int32
	other    int32 // message: destination; part in a collective: instance
	dep      uint8
	kind     uint8
}

// entered is the number of a draft that waits for the placement of others.
const entered = math.MaxUint32

// makeDrafts creates the drafts of all records, rank by rank in op order, once the dependencies are known.
func (p *plan) makeDrafts() {
	ranks := len(p.t.Ranks)
	p.firstDraft = make([]int, ranks+1)
	p.draftOf = make([]uint32, p.first[ranks])
	eachRank := func(do func(rank int, r *dag.Rank)) {
		par.For(ranks, func(rank int) { do(rank, p.t.Ranks[rank]) })
	}
	eachRank(func(rank int, r *dag.Rank) {
		n, draftOf := uint32(0), p.draftOf[p.first[rank]:]
		for op := range r.Kind {
			if recorded(r, op) {
				draftOf[op] = n
				n++
			}
		}
		p.firstDraft[rank+1] = int(n)
	})
	for rank := range ranks {
		p.firstDraft[rank+1] += p.firstDraft[rank]
	}
	p.drafts = make([]draft, p.firstDraft[ranks])
	eachRank(func(rank int, r *dag.Rank) {
		next := p.firstDraft[rank]
		for op := range r.Kind {
			if recorded(r, op) {
				p.drafts[next] = p.draft(r, int32(rank), int32(op))
				next++
			}
		}
	})
	p.waits, p.sendOf, p.sender = nil, nil, nil
}

func (p *plan) draft(r *dag.Rank, rank, op int32) draft {
	number := p.first[rank] + int(op)
	d := draft{delay: p.waits[number].delay, rank: rank, op: op, other: rank}
	switch r.Kind[op] {
	case dag.Coll:
		d.kind, d.other = participation, p.instance[number]
	case dag.Send:
		d.other = r.Peer.At(int(op))
		fallthrough
	default:
		d.size = r.Bytes.At(int(op))
	}
	event := p.waits[number].event
	if event < 0 {
		return d
	}
	switch r.Kind[event] {
	case dag.Send:
		d.dep = depSend
	case dag.Recv:
		d.dep = depRecv
		rank, event = p.senderOf(r, rank, event)
	case dag.Coll:
		d.dep = depCollective
	default: // part of a message to itself
		d.dep = depSend
		if selfPart(r, int(event)) == selfRecvAttrs {
			d.dep = depRecv
			event -= r.Deps.Of(int(event))[0]
		}
	}
	d.on = p.draftNumber(rank, event)
	return d
}

// draftNumber returns the draft of an op.
func (p *plan) draftNumber(rank, op int32) uint32 {
	return uint32(p.firstDraft[rank]) + p.draftOf[p.first[rank]+int(op)]
}

// senderOf returns the send of a receive.
func (p *plan) senderOf(r *dag.Rank, rank, recv int32) (from, send int32) {
	if p.sendOf != nil {
		from = r.Peer.At(int(recv))
		return from, int32(int(p.sendOf[r.Tag.At(int(recv))]-1) - p.first[from])
	}
	number := int(p.sender[p.first[rank]+int(recv)])
	from = int32(sort.SearchInts(p.first, number+1) - 1)
	return from, int32(number - p.first[from])
}
