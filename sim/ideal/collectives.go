package ideal

import "github.com/tracedag/tracedag/sim"

// partial is the state of a started instance of a collective. Some fields depend on its data pattern.
type partial struct {
	time uint64 // latest start so far among the ranks that determine the end
	last uint32 // op of that start; sim.NoOp if there is none
	head uint32 // waiting ops, linked through Op.Link; for scans: offset of the instance in run.scans
	left uint32 // ranks that have not started; for scans: ranks that have ended
}

// beginCollectives allocates the state of the program's collectives.
func (r *run) beginCollectives() {
	r.partial = make([]partial, len(r.p.Instances))
	scanning := uint32(0) // number of ranks in all scans
	for k := range r.partial {
		in := &r.p.Instances[k]
		r.partial[k] = partial{last: sim.NoOp, head: sim.NoOp, left: uint32(in.Size)}
		if sim.DataPatternOf(in.Kind) == sim.FromLower {
			r.partial[k].head, r.partial[k].left = scanning, 0
			scanning += uint32(in.Size) // every rank has an op, so this is less than the number of ops
		}
	}
	r.scans = make([]uint32, scanning)
	for k := range r.scans {
		r.scans[k] = sim.NoOp
	}
}

// enter starts op i of a collective, and ends all of its ops that can end now.
func (r *run) enter(i uint32, op *sim.Op) {
	part := &r.partial[op.Match]
	switch sim.DataPatternOf(op.Collective()) {
	case sim.FromRoot:
		r.enterFromRoot(i, op, part)
	case sim.ToRoot:
		r.enterToRoot(i, op, part)
	case sim.FromLower:
		r.enterFromLower(i, op, part)
	default:
		part.record(i, r.ready[i])
		part.wait(i, op)
		if part.left--; part.left == 0 {
			r.leave(part)
		}
	}
}

func (r *run) enterFromRoot(i uint32, op *sim.Op, part *partial) {
	switch {
	case op.Peer == r.p.Instances[op.Match].Root:
		part.record(i, r.ready[i])
		part.wait(i, op)
		r.leave(part)
	case part.last != sim.NoOp:
		r.complete(i, part)
	default:
		part.wait(i, op)
	}
}

func (r *run) enterToRoot(i uint32, op *sim.Op, part *partial) {
	part.record(i, r.ready[i])
	if op.Peer == r.p.Instances[op.Match].Root {
		part.wait(i, op)
	} else {
		r.complete(i, &partial{last: i, time: r.ready[i]})
	}
	if part.left--; part.left == 0 {
		r.leave(part)
	}
}

func (r *run) enterFromLower(i uint32, op *sim.Op, part *partial) {
	size := uint32(r.p.Instances[op.Match].Size)
	members := r.scans[part.head : part.head+size]
	members[op.Peer] = i
	for part.left < size && members[part.left] != sim.NoOp {
		k := members[part.left]
		part.record(k, r.ready[k])
		part.left++
		r.complete(k, part)
	}
}

// record records the start t of op i if it is the latest so far; at equal times, the op with the lowest number counts.
func (p *partial) record(i uint32, t uint64) {
	if p.last == sim.NoOp || t > p.time || t == p.time && i < p.last {
		p.time, p.last = t, i
	}
}

// wait adds op i to the waiting ops.
func (p *partial) wait(i uint32, op *sim.Op) {
	op.SetLink(p.head)
	p.head = i
}

// leave ends all waiting ops.
func (r *run) leave(part *partial) {
	for i := part.head; i != sim.NoOp; {
		next := r.ops[i].Link()
		r.complete(i, part)
		i = next
	}
	part.head = sim.NoOp
}

// complete ends op i, which waited for the last op of part.
func (r *run) complete(i uint32, part *partial) {
	op := &r.ops[i]
	op.SetLink(part.last)
	op.Flags |= ended
	r.end(i, op, max(r.ready[i], part.time))
}
