// This file measures unions of intervals.

package gpustats

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

type interval struct{ start, end dag.Time }

// union is a union of intervals, which are added by start. Those that touch join. As in HTA, an interval may end a
// microsecond before it starts; the next one then joins unless it starts after the latest end so far.
type union struct {
	all    []interval
	latest dag.Time
}

func (u *union) add(start, end dag.Time) {
	n := len(u.all)
	if n == 0 {
		u.latest = end
	}
	if n > 0 && start <= u.latest {
		u.all[n-1].end = max(u.all[n-1].end, end)
	} else {
		u.all = append(u.all, interval{start, end})
	}
	u.latest = max(u.latest, end)
}

func (u *union) length() (t dag.Time) {
	for _, i := range u.all {
		t += i.end - i.start
	}
	return t
}

// common returns the length of the intersection.
func (u *union) common(other *union) (t dag.Time) {
	for i, j := 0, 0; i < len(u.all) && j < len(other.all); {
		a, b := u.all[i], other.all[j]
		if start, end := max(a.start, b.start), min(a.end, b.end); start < end {
			t += end - start
		}
		if a.end < b.end {
			i++
		} else {
			j++
		}
	}
	return t
}

// types is the time in which exactly some kinds of ops run, by the set of kinds as bits.
type types [1 << kinds]dag.Time

// typesOf returns the types of unions. An interval that ends before it starts subtracts its kind for that time, as in
// HTA.
func typesOf(of *[kinds]union) (t types) {
	type edge struct {
		at   dag.Time
		step int
	}
	var edges []edge
	for k := range of {
		for _, i := range of[k].all {
			edges = append(edges, edge{i.start, 1 << k}, edge{i.end, -(1 << k)})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	run := 0
	for i := 0; i+1 < len(edges); i++ {
		if run += edges[i].step; run > 0 && run < len(t) {
			t[run] += edges[i+1].at - edges[i].at
		}
	}
	return t
}

// list returns the types with time.
func (t *types) list() []Type {
	list := []Type{}
	for set, time := range t {
		if time == 0 {
			continue
		}
		var names []string
		for k, name := range kindNames {
			if set>>k&1 == 1 {
				names = append(names, name)
			}
		}
		list = append(list, Type{strings.Join(names, " overlapping "), time})
	}
	return list
}
