// This file orders the drafts of a plan so that each follows its dependencies, and numbers them.

package vef

// ordered is a record at its position in the file.
type ordered struct {
	draft uint32
	ref   uint32 // number of the message or collective that it depends on
}

// ordering orders records.
type ordering struct {
	*plan
	records     []ordered
	collectives []int32 // by instance: its number in the file, -1: none yet
	messages    uint32  // so far
	opens       int32   // collectives so far
	stack       []uint32
	opened      []int32 // instances whose records are incomplete
}

func newOrdering(p *plan) *ordering {
	o := &ordering{plan: p, records: make([]ordered, 0, len(p.drafts)), collectives: make([]int32, len(p.instances))}
	for i := range o.collectives {
		o.collectives[i] = -1
	}
	return o
}

// turn is the number of records of a rank that are ordered before those of the next rank: enough to make the
// change cheap, few enough to keep simultaneous records close together in the file.
const turn = 8

// run orders all records.
func (o *ordering) run() error {
	next := make([]int, len(o.t.Ranks))
	copy(next, o.firstDraft)
	for more := true; more; {
		more = false
		for rank := range next {
			last := o.firstDraft[rank+1]
			end := min(next[rank]+turn, last)
			for ; next[rank] < end; next[rank]++ {
				if o.drafts[next[rank]].number != 0 {
					continue
				}
				if err := o.record(uint32(next[rank])); err != nil {
					return err
				}
			}
			more = more || end < last
		}
	}
	return nil
}

// record orders a record after its dependencies, and the rest of each collective that this begins.
func (o *ordering) record(i uint32) error {
	if err := o.chain(i); err != nil {
		return err
	}
	for k := 0; k < len(o.opened); k++ {
		g := &o.instances[o.opened[k]]
		position := 0
		for _, r := range o.t.Comms[g.comm].Ranges {
			for i := range r.Count {
				member := o.draftNumber(r.First+i*r.Stride, o.member[g.members+int64(position)])
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

// chain orders a record after its dependencies, one after the other.
func (o *ordering) chain(i uint32) error {
	o.stack = append(o.stack[:0], i)
	for len(o.stack) > 0 {
		i := o.stack[len(o.stack)-1]
		d := &o.drafts[i]
		if d.number != 0 && d.number != entered {
			o.stack = o.stack[:len(o.stack)-1]
			continue
		}
		ref := uint32(0)
		if d.dep != depNone {
			on := &o.drafts[d.on]
			switch on.number {
			case 0:
				d.number = entered
				o.stack = append(o.stack, d.on)
				continue
			case entered:
				return inCircle(int(d.rank), int(d.op))
			}
			if ref = on.number - 1; d.dep == depCollective {
				ref = uint32(o.collectives[on.other])
			}
		}
		o.stack = o.stack[:len(o.stack)-1]
		o.place(d)
		o.records = append(o.records, ordered{i, ref})
	}
	return nil
}

// place numbers a record.
func (o *ordering) place(d *draft) {
	if d.kind == message {
		o.messages++
		d.number = o.messages
		return
	}
	d.number = 1
	if o.collectives[d.other] < 0 {
		o.collectives[d.other] = o.opens
		o.opens++
		o.opened = append(o.opened, d.other)
	}
}
