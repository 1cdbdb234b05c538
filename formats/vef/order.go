// This file puts the records of a plan in an order in which each comes after those that it depends on, and numbers them.

package vef

import (
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
)

// place is an op.
type place struct{ rank, op int32 }

// ordered is a record in its place in the file.
type ordered struct {
	place
	on uint32 // number of the op whose record it depends on, if it has an event
}

// ordering orders records, and hands them on in batches.
type ordering struct {
	*plan
	collectives []int32 // by instance: its number in the file, -1 none yet
	messages    uint32  // so far
	groups      int32   // collectives so far
	stack       []place
	opened      []int32 // instances of which some records are yet to come

	batch       []ordered
	ready, free chan []ordered
	stopped     atomic.Bool // whether nobody wants more
}

// maxBatch is how many records are handed on together.
const maxBatch = 4096

func newOrdering(p *plan) *ordering {
	const batches = 4
	o := &ordering{
		plan: p, collectives: make([]int32, len(p.instances)),
		ready: make(chan []ordered, batches), free: make(chan []ordered, batches),
	}
	for i := range o.collectives {
		o.collectives[i] = -1
	}
	for range batches {
		o.free <- make([]ordered, 0, maxBatch)
	}
	o.batch = <-o.free
	return o
}

// turn is how many ops of a rank are looked at before those of the next: so many that it costs little to change, so few
// that the file has what happens at the same time in one place.
const turn = 32

// run hands on all records.
func (o *ordering) run() error {
	next := make([]int, len(o.t.Ranks))
	for more := true; more; {
		more = false
		for rank := range next {
			r := &o.t.Ranks[rank]
			end := min(next[rank]+turn, r.Len())
			for ; next[rank] < end; next[rank]++ {
				op := next[rank]
				if !recorded(r, op) || o.waits[o.first[rank]+op].record != 0 {
					continue
				}
				if err := o.record(place{int32(rank), int32(op)}); err != nil {
					return err
				}
			}
			more = more || end < r.Len()
		}
		if o.stopped.Load() {
			return nil
		}
	}
	o.ready <- o.batch
	return nil
}

// record hands on the record of an op behind those that it depends on, and the rest of each collective that this begins.
func (o *ordering) record(at place) error {
	if err := o.chain(at); err != nil {
		return err
	}
	for k := 0; k < len(o.opened); k++ {
		g := &o.instances[o.opened[k]]
		position := 0
		for _, r := range o.t.Comms[g.comm].Ranges {
			for i := range r.Count {
				member := place{r.First + i*r.Stride, o.member[g.members+int64(position)]}
				position++
				if err := o.chain(member); err != nil {
					return err
				}
			}
		}
	}
	o.opened = o.opened[:0]
	return nil
}

// chain hands on the record of an op behind those that it depends on, one after the other.
func (o *ordering) chain(at place) error {
	o.stack = append(o.stack[:0], at)
	for len(o.stack) > 0 {
		at := o.stack[len(o.stack)-1]
		number := o.first[at.rank] + int(at.op)
		if n := o.waits[number].record; n != 0 && n != entered {
			o.stack = o.stack[:len(o.stack)-1]
			continue
		}
		on := 0 // number of the op whose record this one depends on
		if event := o.waits[number].event; event >= 0 {
			var earlier place
			earlier, on = o.recordOf(at.rank, event)
			switch o.waits[on].record {
			case 0:
				o.waits[number].record = entered
				o.stack = append(o.stack, earlier)
				continue
			case entered:
				return errCircle
			}
		}
		o.stack = o.stack[:len(o.stack)-1]
		o.add(ordered{at, uint32(on)}, number)
	}
	return nil
}

// add hands on a record, and gives it its number.
func (o *ordering) add(rec ordered, number int) {
	if o.t.Ranks[rec.rank].Kind[rec.op] == dag.Coll {
		if k := o.instance[number]; o.collectives[k] < 0 {
			o.collectives[k] = o.groups
			o.groups++
			o.opened = append(o.opened, k)
		}
		o.waits[number].record = 1
	} else {
		o.messages++
		o.waits[number].record = o.messages
	}
	if o.batch = append(o.batch, rec); len(o.batch) == maxBatch {
		o.ready <- o.batch
		o.batch = (<-o.free)[:0]
	}
}

// recordOf returns the op whose record has an event of a rank, and its number: of a receive, the send.
func (o *ordering) recordOf(rank, event int32) (place, int) {
	r := &o.t.Ranks[rank]
	switch r.Kind[event] {
	case dag.Recv:
		from := r.Peer.At(int(event))
		var send int
		if o.sendOf != nil {
			send = int(o.sendOf[r.Tag.At(int(event))] - 1)
		} else {
			send = int(o.sender[o.first[rank]+int(event)])
			from = o.rankOf(send, from)
		}
		return place{from, int32(send - o.first[from])}, send
	case dag.Calc:
		if selfPart(r, int(event)) == selfRecvAttrs {
			event -= r.Deps.Of(int(event))[0]
		}
	}
	return place{rank, event}, o.first[rank] + int(event)
}

// rankOf returns the rank of an op by its number, guess where that is one.
func (o *ordering) rankOf(number int, guess int32) int32 {
	if guess >= 0 && o.first[guess] <= number && number < o.first[guess+1] {
		return guess
	}
	low, high := 0, len(o.t.Ranks)
	for high-low > 1 {
		if middle := (low + high) / 2; o.first[middle] <= number {
			low = middle
		} else {
			high = middle
		}
	}
	return int32(low)
}
