package dag

import (
	"fmt"
)

// The limits of a rank, given by the widths of op indices and of positions in [Edges].
const (
	MaxOps  = 1<<31 - 1 // ops of one rank
	MaxDeps = 1<<32 - 1 // dependencies of one kind of one rank
)

// Edges stores a list of offsets for every op of a rank, in compressed sparse row form: four bytes per op up to the
// last op with a list, and four bytes per offset.
type Edges struct {
	End []uint32 // End[i] is the end of the list of op i in Off; the list starts at the end of the previous one
	Off []int32
}

// Equal reports whether two columns have the same lists. It takes constant time for columns in the same memory.
func (e *Edges) Equal(f *Edges) bool {
	return equal(e.End, f.End) && equal(e.Off, f.Off)
}

// Of returns the offsets of op i. The slice aliases the column.
func (e *Edges) Of(i int) []int32 {
	if i >= len(e.End) {
		return nil
	}
	start := uint32(0)
	if i > 0 {
		start = e.End[i-1]
	}
	return e.Off[start:e.End[i]]
}

// Count returns the number of offsets of op i.
func (e *Edges) Count(i int) int {
	return len(e.Of(i))
}

// Append appends the offset off to the list of op i, which must not precede the last op with a list. The column must
// have fewer than [MaxDeps] offsets.
func (e *Edges) Append(i int, off int32) {
	for len(e.End) <= i {
		e.End = append(e.End, uint32(len(e.Off)))
	}
	e.Off = append(e.Off, off)
	e.End[i] = uint32(len(e.Off))
}

// checkShape returns an error if the lists are not those of a rank of n ops, and the first wrong op, -1 if the error
// concerns no single op.
func (e *Edges) checkShape(n int) (int, error) {
	if len(e.End) > n {
		return -1, fmt.Errorf("%d lists for %d ops", len(e.End), n)
	}
	start, descents := uint32(0), int64(0)
	ends := e.End
	for ; len(ends) >= 4; ends = ends[4:] {
		a, b, c, d := int64(ends[0]), int64(ends[1]), int64(ends[2]), int64(ends[3])
		descents |= (a - int64(start)) | (b - a) | (c - b) | (d - c)
		start = ends[3]
	}
	for _, end := range ends {
		descents |= int64(end) - int64(start)
		start = end
	}
	if descents >= 0 && uint64(start) == uint64(len(e.Off)) {
		return -1, nil
	}
	start = 0
	for i, end := range e.End {
		if end < start || uint64(end) > uint64(len(e.Off)) {
			return i, fmt.Errorf("the list of op %d ends at offset %d, expected %d..%d", i, end, start, len(e.Off))
		}
		start = end
	}
	return -1, fmt.Errorf("the lists contain %d of %d offsets", start, len(e.Off))
}

// wellFormed returns the lists before the first list that a rank of n ops cannot have; for a valid trace, all lists.
func (e *Edges) wellFormed(n int) Edges {
	ends := e.End[:min(n, len(e.End))]
	start := uint32(0)
	for i, end := range ends {
		if end < start || uint64(end) > uint64(len(e.Off)) {
			ends = ends[:i]
			break
		}
		start = end
	}
	return Edges{End: ends, Off: e.Off}
}

// Dependents lists, for every op of a rank, the ops that wait for it: the inverse of [Edges], as op indices.
type Dependents struct {
	End []uint32 // End[i] is the end of the list of op i in Op
	Op  []int32
}

// Of returns the indices of the ops that wait for op i. The slice aliases the list.
func (d *Dependents) Of(i int) []int32 {
	start := uint32(0)
	if i > 0 {
		start = d.End[i-1]
	}
	return d.Op[start:d.End[i]]
}

// Dependents returns the inverse of e for a rank of n ops. The dependents of an op are in ascending order unless
// order lists them, as offsets (dependent - op). All references must be in range and order consistent with e (see
// [Rank.CheckReferences]).
func (e *Edges) Dependents(n int, order *Edges) Dependents {
	var d Dependents
	d.set(e, n, order)
	return d
}

// set sets d to the result of [Edges.Dependents]. It reuses the memory of d if that is large enough.
func (d *Dependents) set(e *Edges, n int, order *Edges) {
	d.End, d.Op = zeroed(d.End, n), zeroed(d.Op, len(e.Off))
	start := uint32(0)
	for i := range e.End {
		for _, off := range e.Off[start:e.End[i]] {
			d.End[i-int(off)]++
		}
		start = e.End[i]
	}
	sum := uint32(0)
	for i, count := range d.End { // turns counts into starts; filling turns the starts into ends
		d.End[i] = sum
		sum += count
	}
	start = 0
	for i := range e.End {
		for _, off := range e.Off[start:e.End[i]] {
			p := i - int(off)
			d.Op[d.End[p]] = int32(i)
			d.End[p]++
		}
		start = e.End[i]
	}
	start = 0
	for i := range order.End {
		at := uint32(0)
		if i > 0 {
			at = d.End[i-1]
		}
		for k, off := range order.Off[start:order.End[i]] {
			d.Op[at+uint32(k)] = int32(i) + off
		}
		start = order.End[i]
	}
}
