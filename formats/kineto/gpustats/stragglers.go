// This file finds the ranks for which others wait.

package gpustats

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/kineto"
)

// Straggler is a rank that starts collectives last, so that the other ranks wait for it.
type Straggler struct {
	Rank        int32    `json:"rank"`
	Collectives int      `json:"collectives"` // that it starts last
	Caused      dag.Time `json:"caused"`      // sum over other members and collectives: time from their start to its
	Worst       Delayed  `json:"worst"`
}

// Delayed is the collective with the longest waiting time for a straggler.
type Delayed struct {
	Kind     string   `json:"kind"`
	Group    string   `json:"group,omitempty"`
	Instance int32    `json:"instance"` // number on its group, from 0
	Start    dag.Time `json:"start"`    // of the straggler, on the clock of the job
	Caused   dag.Time `json:"caused"`
}

// stragglers returns the stragglers, those with the longest waiting time first. Only collectives in which all members
// wait for each other count.
func stragglers(profiles []*kineto.Profile) []Straggler {
	type key struct{ comm, instance int32 }
	type instance struct {
		call  *kineto.Call
		start []dag.Time
		rank  []int32
	}
	var order []key
	all := make(map[key]*instance)
	for _, p := range profiles {
		for i := range p.Ops {
			for k := range p.Ops[i].Calls {
				c := &p.Ops[i].Calls[k]
				if c.Comm < 0 {
					continue
				}
				id := key{c.Comm, c.Instance}
				x := all[id]
				if x == nil {
					x = &instance{call: c}
					all[id] = x
					order = append(order, id)
				}
				x.start, x.rank = append(x.start, p.Ops[i].Start), append(x.rank, p.Rank)
			}
		}
	}
	list := make([]Straggler, len(profiles))
	index := make(map[int32]int)
	for i, p := range profiles {
		list[i].Rank, index[p.Rank] = p.Rank, i
	}
	for _, id := range order {
		x := all[id]
		last := slices.Max(x.start)
		caused := dag.Time(0)
		for _, at := range x.start {
			caused += last - at
		}
		if caused == 0 {
			continue
		}
		s := &list[index[x.rank[slices.Index(x.start, last)]]]
		s.Collectives++
		s.Caused += caused
		if caused > s.Worst.Caused {
			s.Worst = Delayed{x.call.Kind, x.call.Group, id.instance, last, caused}
		}
	}
	list = slices.DeleteFunc(list, func(s Straggler) bool { return s.Collectives == 0 })
	slices.SortStableFunc(list, func(a, b Straggler) int { return cmp.Compare(b.Caused, a.Caused) })
	return list
}
