// This file compares the measured times of the members of communicators.

package mpi

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// meeting is the times of the members of a communicator in one of its collectives.
type meeting struct {
	entered dag.Time // latest start of a member that others wait for
	left    dag.Time // earliest end of a member that waits for others
}

// mostOverlapping returns the candidate whose collectives overlap most with those of an instance, the oldest one of
// several. sole is true if it is the only one in which no member leaves a collective before another one enters it.
func (v *resolver) mostOverlapping(rank, inst int32, candidates []*alike, possible func(*created) bool) (most *created,
	sole bool) {
	var least dag.Time
	fit := 0
	for _, a := range candidates {
		for m := range a.all(possible) {
			apart := v.apart(rank, inst, m.group)
			if apart <= 0 {
				fit++
			}
			if most == nil || apart < least || apart == least && m.order < most.order {
				most, least = m, apart
			}
		}
	}
	return most, fit == 1 && least < 0
}

// apart returns the longest time from the end of a member's collective to the start of another member's, if an instance
// is that of a member of the group. It is negative if all overlap, and 0 if nothing is known.
func (v *resolver) apart(rank, inst int32, g *group) dag.Time {
	const most = 1000 // collectives
	if v.clocks == nil {
		v.clocks, _ = shifts(v.ranks, true, nil)
	}
	for _, u := range g.users[g.counted:] {
		for k, own := range v.meetings(u, most) {
			if k == len(g.met) {
				g.met = append(g.met, own)
				continue
			}
			g.met[k].entered = max(g.met[k].entered, own.entered)
			g.met[k].left = min(g.met[k].left, own.left)
		}
	}
	g.counted = len(g.users)
	apart, known := dag.Time(0), false
	compare := func(entered, left dag.Time) {
		if entered == dag.Unmeasured || left == dag.MaxTime {
			return
		}
		if d := entered - left; !known || d > apart {
			apart, known = d, true
		}
	}
	for k, own := range v.meetings(witness{rank, inst}, min(most, len(g.met))) {
		compare(own.entered, g.met[k].left)
		compare(g.met[k].entered, own.left)
	}
	return apart
}

// meetings returns the times of a member in the first collectives on an instance.
func (v *resolver) meetings(of witness, most int) []meeting {
	r := v.ranks[of.rank]
	if r.meetings == nil {
		r.meetings = make([][]meeting, len(r.instances))
		d := &r.dag
		for i, kind := range d.Kind {
			if kind != dag.Coll {
				continue
			}
			at := d.Comm.At(i)
			m := meeting{entered: dag.Unmeasured, left: dag.MaxTime}
			start, end := d.Measured(i)
			leaves, enters := d.Subkind.At(i).Waits(d.Peer.At(i) == r.instances[at].rank)
			if enters && start != dag.Unmeasured {
				m.entered = start + v.clocks[of.rank]
			}
			atOnce := i+1 < len(d.Kind) && slices.Contains(d.StartDeps.Of(i+1), 1) // a non-blocking call
			if leaves && end != dag.Unmeasured && !atOnce {
				m.left = end + v.clocks[of.rank]
			}
			r.meetings[at] = append(r.meetings[at], m)
		}
	}
	all := r.meetings[of.inst]
	return all[:min(most, len(all))]
}
