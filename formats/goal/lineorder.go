// This file finds an order of a block's dependency lines from which a reader restores the same lists.

package goal

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// lineOrder yields the dependencies of one kind of a rank in line order: each as soon as both its ops are written,
// the dependencies of an op in the op's list order, and the dependents of an op in theirs. Lists from a text or a
// binary always allow that. If others contradict each other, the order of dependents wins, because a binary has
// it.
type lineOrder struct {
	edges *dag.Edges
	lines []edge // reused by every call

	// Only used if a dependency refers to a later op or the dependents of an op are not ascending; else each
	// dependency follows its op. Numbered as in edges.Off.
	op    []int32  // the op that waits
	waits []uint8  // how many of three conditions remain: both ops, the previous dependency of each list
	next  []uint32 // next dependency in the list of dependents, or none
	on    []uint32 // the dependencies in the order of the lists of dependents
	end   []uint32 // end of each op's list of dependents in on
	todo  []uint32 // reused by every call
}

// none is the index of no dependency.
const none = 1<<32 - 1

// newLineOrder prepares the order for the dependencies of a rank of n ops. order has the orders of dependents that
// are not ascending.
func newLineOrder(edges *dag.Edges, n int, order *dag.Edges) lineOrder {
	o := lineOrder{edges: edges}
	forward := slices.ContainsFunc(edges.Off, func(off int32) bool { return off < 0 })
	if !forward && len(order.Off) == 0 {
		return o
	}
	o.listDependents(n, order)
	o.op = make([]int32, len(edges.Off))
	o.waits = make([]uint8, len(edges.Off))
	o.next = make([]uint32, len(edges.Off))
	start := uint32(0)
	for op, end := range edges.End {
		for e := start; e < end; e++ {
			o.op[e] = int32(op)
			o.waits[e] = 1
			if e > start {
				o.waits[e]++
			}
		}
		start = end
	}
	start = 0
	for _, end := range o.end {
		before := uint32(none)
		for _, e := range o.on[start:end] {
			if o.next[e] = none; before != none {
				o.next[before] = e
				o.waits[e]++
			}
			before = e
		}
		start = end
	}
	return o
}

// plain reports whether each dependency can follow its op in list order.
func (o *lineOrder) plain() bool {
	return o.waits == nil
}

// listDependents sets on and end.
func (o *lineOrder) listDependents(n int, order *dag.Edges) {
	dependents := o.edges.Dependents(n, &dag.Edges{})
	o.end = dependents.End
	o.on = make([]uint32, len(o.edges.Off))
	fill := make([]uint32, n)
	copy(fill[min(1, n):], o.end)
	start := uint32(0)
	for op, end := range o.edges.End {
		for e := start; e < end; e++ {
			on := op - int(o.edges.Off[e])
			o.on[fill[on]] = e
			fill[on]++
		}
		start = end
	}
	used := make([]uint32, n) // number of equal dependencies of an op that are placed
	for on := range order.End {
		given := order.Of(on)
		if len(given) == 0 {
			continue
		}
		ops := dependents.Of(on) // ascending, as is the list of dependencies
		list := o.on[o.end[on]-uint32(len(ops)) : o.end[on]]
		ascending := slices.Clone(list)
		for k, off := range given {
			op := int32(on) + off
			first, _ := slices.BinarySearch(ops, op)
			list[k] = ascending[first+int(used[op])]
			used[op]++
		}
		for _, op := range ops {
			used[op] = 0
		}
	}
}

// after returns the dependencies whose lines follow the line of op i. Call it for each op in order; the result is
// valid until the next call.
func (o *lineOrder) after(i int) []edge {
	o.lines = o.lines[:0]
	if o.plain() {
		for _, off := range o.edges.Of(i) {
			o.lines = append(o.lines, edge{int32(i), int32(i) - off})
		}
		return o.lines
	}
	if list := o.edges.Of(i); len(list) > 0 {
		first := o.edges.End[i] - uint32(len(list))
		for k, off := range list {
			if off >= 0 {
				o.proceed(first + uint32(k))
			}
		}
	}
	start := uint32(0)
	if i > 0 {
		start = o.end[i-1]
	}
	for _, e := range o.on[start:o.end[i]] {
		if o.edges.Off[e] < 0 {
			o.proceed(e)
		}
	}
	return o.lines
}

// proceed records that one condition of dependency e is met, and adds the dependencies that can now be written.
func (o *lineOrder) proceed(e uint32) {
	o.todo = append(o.todo[:0], e)
	for k := 0; k < len(o.todo); k++ {
		e := o.todo[k]
		if o.waits[e]--; o.waits[e] > 0 {
			continue
		}
		op := o.op[e]
		o.lines = append(o.lines, edge{op, op - o.edges.Off[e]})
		if e+1 < o.edges.End[op] {
			o.todo = append(o.todo, e+1)
		}
		if next := o.next[e]; next != none {
			o.todo = append(o.todo, next)
		}
	}
}

// rest returns the dependencies that remain after the last op because the lists contradict each other.
func (o *lineOrder) rest() []edge {
	o.lines = o.lines[:0]
	for _, e := range o.on {
		if o.waits[e] > 0 {
			o.lines = append(o.lines, edge{o.op[e], o.op[e] - o.edges.Off[e]})
		}
	}
	return o.lines
}
