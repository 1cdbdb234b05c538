package compose

import (
	"errors"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// remove returns a rank without the given ops. An op that waited for a removed op, for its start or its end, waits
// for the dependencies of that op and until its release, so that no op runs earlier than the remaining ops allow. If
// a removed op joins several ops and remaining ops wait for it, a marker replaces it, so the number of dependencies
// never grows.
func remove(r *dag.Rank, gone []bool) (dag.Rank, error) {
	order, err := topological(r)
	if err != nil {
		return dag.Rank{}, err
	}
	m := &removal{r: r, gone: gone, replacement: make([]uint32, r.Len()), seen: make([]int32, 2*r.Len())}
	if len(r.Release) > 0 {
		m.release = make([]dag.Time, r.Len())
	}
	m.findReplacements(order)
	m.findJunctions(order)
	return m.write()
}

// removal is a rank from which ops are removed. A constraint is an event that others wait for: the end of an op,
// 2*op, or its start, 2*op+1.
type removal struct {
	r           *dag.Rank
	gone        []bool
	replacement []uint32   // by removed op: the constraint that replaces it
	release     []dag.Time // by removed op: earliest start of its dependents; nil: no release times
	awaited     []bool     // junctions for which remaining ops wait
	seen        []int32    // by constraint: one more than the last op that waited for it
}

// Values in place of a constraint.
const (
	nothing    = math.MaxUint32     // no constraint
	atJunction = math.MaxUint32 - 1 // the op becomes a junction
)

// stays reports whether the op, or a junction in its place, remains.
func (m *removal) stays(op int) bool {
	return !m.gone[op] || m.replacement[op] == atJunction
}

// constraint returns the replacement of the end of an op or, if start is 1, of its start.
func (m *removal) constraint(op int, start uint32) uint32 {
	if m.stays(op) {
		return uint32(op)<<1 | start
	}
	return m.replacement[op]
}

// constraints calls found once for each constraint of op.
func (m *removal) constraints(op int, found func(uint32)) {
	for start, edges := range []*dag.Edges{&m.r.Deps, &m.r.StartDeps} {
		for _, off := range edges.Of(op) {
			c := m.constraint(op-int(off), uint32(start))
			if c == nothing || m.seen[c] == int32(op)+1 {
				continue
			}
			m.seen[c] = int32(op) + 1
			found(c)
		}
	}
}

// findReplacements finds the constraint that replaces each removed op.
func (m *removal) findReplacements(order []int32) {
	for k := range m.gone {
		op := k
		if order != nil {
			op = int(order[k])
		}
		m.wait(op)
		if !m.gone[op] {
			continue
		}
		first, count := uint32(nothing), 0
		m.constraints(op, func(c uint32) {
			first = c
			count++
		})
		if m.replacement[op] = first; count > 1 {
			m.replacement[op] = atJunction
		}
	}
	clear(m.seen)
}

// wait computes the earliest start of the dependents of op.
func (m *removal) wait(op int) {
	if m.release == nil {
		return
	}
	until := m.r.Release.At(op)
	for _, edges := range []*dag.Edges{&m.r.Deps, &m.r.StartDeps} {
		for _, off := range edges.Of(op) {
			if p := op - int(off); m.gone[p] && m.replacement[p] != atJunction {
				until = max(until, m.release[p])
			}
		}
	}
	m.release[op] = until
}

// findJunctions finds the junctions that remaining ops need.
func (m *removal) findJunctions(order []int32) {
	m.awaited = make([]bool, m.r.Len())
	for k := m.r.Len() - 1; k >= 0; k-- {
		op := k
		if order != nil {
			op = int(order[k])
		}
		if m.gone[op] && !m.awaited[op] {
			continue
		}
		m.constraints(op, func(c uint32) { m.awaited[c>>1] = true })
	}
	clear(m.seen)
}

// write returns the remaining rank.
func (m *removal) write() (dag.Rank, error) {
	var list []int32
	at := make([]int32, m.r.Len()) // new index of each op
	for op := range m.gone {
		if m.gone[op] && !(m.replacement[op] == atJunction && m.awaited[op]) {
			continue
		}
		at[op] = int32(len(list))
		list = append(list, int32(op))
	}
	kept := make([]int32, len(list))
	for i, op := range list {
		if kept[i] = op; m.gone[op] {
			kept[i] = junction
		}
	}
	out, err := gather(m.r, kept)
	if err != nil {
		return out, err
	}
	for i, op := range list {
		m.constraints(int(op), func(c uint32) {
			edges := &out.Deps
			if c&1 > 0 {
				edges = &out.StartDeps
			}
			edges.Append(i, int32(i)-at[c>>1])
		})
		if m.release != nil {
			out.Release.Set(i, m.release[op])
		}
		if kept[i] == junction {
			out.Subkind.Set(i, dag.Marker)
			out.Stream.Set(i, m.r.Stream.At(int(op)))
			out.Job.Set(i, m.r.Job.At(int(op)))
			out.Step.Set(i, m.r.Step.At(int(op)))
		}
	}
	out.Order = reordered(out.Dependents(), &m.r.Order, at, list)
	out.StartOrder = reordered(out.StartDependents(), &m.r.StartOrder, at, list)
	return out, nil
}

var errCycle = errors.New("ops wait for each other in a cycle")

// topological returns the ops in an order in which each op follows its dependencies, nil if that is the index order.
func topological(r *dag.Rank) ([]int32, error) {
	if ascending(&r.Deps) && ascending(&r.StartDeps) {
		return nil, nil
	}
	waits := make([]uint32, r.Len())
	order := make([]int32, 0, r.Len())
	for i := range waits {
		if waits[i] = uint32(r.Deps.Count(i) + r.StartDeps.Count(i)); waits[i] == 0 {
			order = append(order, int32(i))
		}
	}
	dependents, startDependents := r.Dependents(), r.StartDependents()
	for k := 0; k < len(order); k++ {
		for _, d := range []*dag.Dependents{&dependents, &startDependents} {
			for _, op := range d.Of(int(order[k])) {
				if waits[op]--; waits[op] == 0 {
					order = append(order, op)
				}
			}
		}
	}
	if len(order) < r.Len() {
		return nil, errCycle
	}
	return order, nil
}

func ascending(e *dag.Edges) bool {
	for _, off := range e.Off {
		if off <= 0 {
			return false
		}
	}
	return true
}

// reordered returns the dependents of the remaining ops in their previous order, for the ops whose order is not
// ascending. New dependents come last.
func reordered(dependents dag.Dependents, before *dag.Edges, index, old []int32) dag.Edges {
	var order dag.Edges
	if len(before.Off) == 0 {
		return order
	}
	left := make([]int32, len(old)) // by op: remaining occurrences in the list
	var list []int32
	for n, i := range old {
		canonical := dependents.Of(n)
		for _, d := range canonical {
			left[d]++
		}
		list = list[:0]
		add := func(d int32) {
			if left[d] > 0 {
				left[d]--
				list = append(list, d-int32(n))
			}
		}
		for _, off := range before.Of(int(i)) {
			if d := index[i+off]; old[d] == i+off {
				add(d)
			}
		}
		for _, d := range canonical {
			add(d)
		}
		if slices.IsSorted(list) {
			continue
		}
		for _, off := range list {
			order.Append(n, off)
		}
	}
	return order
}
