package compose

import (
	"errors"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// remove returns a rank without the ops that are to go. What waited for one of them, in whichever way, waits for what
// that waited for itself and until its release, so that nothing runs earlier than the ops that are left allow. Where
// an op that goes brings together several others before ops that stay, a marker remains in its place: so the
// dependencies become no more than they were.
func remove(r *dag.Rank, gone []bool) (dag.Rank, error) {
	order, err := topological(r)
	if err != nil {
		return dag.Rank{}, err
	}
	m := &removal{r: r, gone: gone, stand: make([]uint32, r.Len()), seen: make([]int32, 2*r.Len())}
	if len(r.Release) > 0 {
		m.release = make([]dag.Time, r.Len())
	}
	m.findStands(order)
	m.findJunctions(order)
	return m.write()
}

// removal is a rank from which ops are taken. A constraint is the end of an op, 2*op, or its start, 2*op+1, for which
// others have to wait.
type removal struct {
	r       *dag.Rank
	gone    []bool
	stand   []uint32   // of an op that goes: the constraint in its place
	release []dag.Time // until when to wait for an op that goes; nil: there are no release times
	awaited []bool     // junctions for which ops that stay wait
	seen    []int32    // by constraint: one more than the op that was the last to wait for it
}

// Instead of a constraint.
const (
	nothing    = math.MaxUint32     // there is none
	atJunction = math.MaxUint32 - 1 // the op becomes a junction
)

// stays reports whether there is something in the op's place that others can wait for.
func (m *removal) stays(op int) bool {
	return !m.gone[op] || m.stand[op] == atJunction
}

// constraint returns what to wait for instead of the start, or else the end, of an op.
func (m *removal) constraint(op int, start uint32) uint32 {
	if m.stays(op) {
		return uint32(op)<<1 | start
	}
	return m.stand[op]
}

// constraints calls found for all that op has to wait for, each once.
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

// findStands finds what is in the place of each op that goes.
func (m *removal) findStands(order []int32) {
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
		if m.stand[op] = first; count > 1 {
			m.stand[op] = atJunction
		}
	}
	clear(m.seen)
}

// wait finds until when to wait for op.
func (m *removal) wait(op int) {
	if m.release == nil {
		return
	}
	until := m.r.Release.At(op)
	for _, edges := range []*dag.Edges{&m.r.Deps, &m.r.StartDeps} {
		for _, off := range edges.Of(op) {
			if p := op - int(off); m.gone[p] && m.stand[p] != atJunction {
				until = max(until, m.release[p])
			}
		}
	}
	m.release[op] = until
}

// findJunctions finds which junctions there have to be.
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

// write returns what is left.
func (m *removal) write() (dag.Rank, error) {
	var list []int32
	at := make([]int32, m.r.Len()) // where each op is now
	for op := range m.gone {
		if m.gone[op] && !(m.stand[op] == atJunction && m.awaited[op]) {
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
		}
	}
	out.Order = reordered(out.Dependents(), &m.r.Order, at, list)
	out.StartOrder = reordered(out.StartDependents(), &m.r.StartOrder, at, list)
	return out, nil
}

var errCycle = errors.New("has ops that wait for each other")

// topological returns the ops in an order in which each comes after those for which it waits, nil if that is their own.
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

// reordered returns the dependents of ops that are left in the order in which they were before, where that is not
// ascending. Those that are new come last.
func reordered(dependents dag.Dependents, before *dag.Edges, index, old []int32) dag.Edges {
	var order dag.Edges
	if len(before.Off) == 0 {
		return order
	}
	left := make([]int32, len(old)) // of each op, how often it is to be listed yet
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
