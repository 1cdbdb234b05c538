package analytical

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// opCause is the reason for the issue of an op and, of a receive or collective, for its end.
type opCause struct {
	lead opLead
	rank int32  // receive: the sender
	op   uint32 // receive: the send; collective: number of its instance in engine.lastIssues, plus 1; 0: unknown
}

// opLead is the event that an op of the same NPU waited for last: the number of an op plus 1, and in the lowest two
// bits what happened to it. 0 is no event: time 0 or the release time.
type opLead uint64

// Events of an opLead.
const (
	ledByEnd opLead = iota
	ledByStart
	ledByLane // the end of the op freed the lane
)

func leadBy(i uint32, event opLead) opLead { return opLead(i+1)<<2 | event }
func (l opLead) op() uint32                { return uint32(l>>2) - 1 }
func (l opLead) event() opLead             { return l & 3 }

// lastIssue is the issue of a collective by its last NPU.
type lastIssue struct {
	rank int32
	op   uint32
	time uint64
}

// becomesReady records the time at which an op has no unmet dependencies and is released.
func (t *opTimes) becomesReady(i uint32, now uint64, released bool) {
	t.issued[i] = now
	if released && t.causes != nil {
		t.causes[i].lead = 0
	}
}

// issues records that an op is issued now. If it was ready before, it waited for its lane.
func (t *opTimes) issues(i uint32, lane uint8, now uint64) {
	if t.causes != nil {
		if t.issued[i] < now && int(lane) < len(t.lanes) && t.lanes[lane] != 0 {
			t.causes[i].lead = leadBy(t.lanes[lane]-1, ledByLane)
		}
	}
	t.issued[i] = now
}

// ends records that an op ends.
func (t *opTimes) ends(i uint32, lane uint8) {
	if t.causes == nil {
		return
	}
	t.last = i + 1
	if int(lane) < len(t.lanes) {
		t.lanes[lane] = i + 1
	}
}

// path returns the critical path of a run that recorded causes.
func (e *engine) path() *sim.Path {
	p := &sim.Path{Unit: dag.Nanosecond}
	rank := int32(-1)
	for r := range e.npus {
		n := &e.npus[r]
		if e.opTimes[r].last != 0 && (rank < 0 || n.stats.last > e.npus[rank].stats.last) {
			rank = int32(r)
		}
	}
	if rank < 0 {
		return p
	}
	now := e.npus[rank].stats.last
	step := func(r int32, i uint32, part sim.PathPart, start uint64, lead sim.Lead) {
		start = min(start, now)
		p.Steps = append(p.Steps, sim.PathStep{Rank: uint32(r), Op: i, Kind: e.npus[r].g.ops[i].dagKind(), Part: part,
			Lead:  lead,
			Start: start, End: now})
		now = start
	}
	for r, i, start := rank, e.opTimes[rank].last-1, false; ; {
		t, o := &e.opTimes[r], &e.npus[r].g.ops[i]
		c, issued := &t.causes[i], t.issued[i]
		if !start {
			switch {
			case o.kind == opRecv && !e.system.ReplayOnly && now > issued && c.op != 0:
				r, i = c.rank, c.op-1
				step(r, i, sim.PathNetwork, e.opTimes[r].issued[i], sim.ByMessage)
				start = true
				continue
			case o.kind == opCollective && c.op != 0 && e.lastIssues[c.op-1].time > issued:
				last := e.lastIssues[c.op-1]
				step(r, i, sim.PathNetwork, last.time, sim.ByCollective)
				r, i, start = last.rank, last.op, true
				continue
			}
			step(r, i, partOf(o.kind), issued, c.lead.reason(issued == 0))
		}
		if c.lead == 0 {
			if now > 0 {
				step(r, i, sim.PathWait, 0, sim.AtZero)
			}
			break
		}
		i, start = c.lead.op(), c.lead.event() == ledByStart
	}
	slices.Reverse(p.Steps)
	return p
}

// reason returns the reason of a step that a lead begins.
func (l opLead) reason(zero bool) sim.Lead {
	switch {
	case l == 0 && zero:
		return sim.AtZero
	case l == 0:
		return sim.ByRelease
	}
	return [...]sim.Lead{sim.ByDep, sim.ByStartDep, sim.ByStream}[l.event()]
}

// partOf returns the part of a path that an op of a kind is, from its issue to its end.
func partOf(kind opKind) sim.PathPart {
	switch kind {
	case opCompute, opMarker:
		return sim.PathCompute
	case opMemory:
		return sim.PathMemory
	}
	return sim.PathNetwork
}
