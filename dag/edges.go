package dag

import (
	"fmt"
)

// The limits of a rank, of the width of op indices and of positions in [Edges].
const (
	MaxOps  = 1<<31 - 1 // ops of one rank
	MaxDeps = 1<<32 - 1 // dependencies of one kind of one rank
)

// Edges holds a list of offsets for every op of a rank, in compressed sparse row form: four bytes an op up to the last
// op with a list, and four bytes an offset.
type Edges struct {
	End []uint32 // End[i] is where the list of op i ends in Off; it starts where the one before ends
	Off []int32
}

// Equal reports whether two columns have the same lists. It takes constant time for columns in the same memory.
func (e *Edges) Equal(f *Edges) bool {
	return equal(e.End, f.End) && equal(e.Off, f.Off)
}

// Of returns the offsets of op i; the slice is part of the column.
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

// Count returns how many offsets op i has.
func (e *Edges) Count(i int) int {
	return len(e.Of(i))
}

// Append adds the offset off to the list of op i, which must not lie before the last op with a list. There must be
// fewer than [MaxDeps] offsets.
func (e *Edges) Append(i int, off int32) {
	for len(e.End) <= i {
		e.End = append(e.End, uint32(len(e.Off)))
	}
	e.Off = append(e.Off, off)
	e.End[i] = uint32(len(e.Off))
}

// checkShape returns an error if the lists are not those of a rank of n ops, and the first op that it concerns, -1 if
// it concerns none.
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
	return -1, fmt.Errorf("the lists hold %d offsets of %d", start, len(e.Off))
}

// wellFormed returns the lists up to the first that a rank of n ops cannot have: all of them in any sane trace.
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

// Dependents lists, for every op of a rank, the ops that wait for it: [Edges] turned round, as op indices.
type Dependents struct {
	End []uint32 // End[i] is where the list of op i ends in Op
	Op  []int32
}

// Of returns the indices of the ops that wait for op i; the slice is part of the list.
func (d *Dependents) Of(i int) []int32 {
	start := uint32(0)
	if i > 0 {
		start = d.End[i-1]
	}
	return d.Op[start:d.End[i]]
}

// Dependents turns e round for a rank of n ops: ascending for every op, except those whose order is given, as offsets
// (dependent - op), in order. All references must be in range and the given orders consistent with e (see
// [Rank.CheckReferences]).
func (e *Edges) Dependents(n int, order *Edges) Dependents {
	var d Dependents
	d.set(e, n, order)
	return d
}

// set sets d to what [Edges.Dependents] returns, in the memory that it has where that is enough.
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
	for i, count := range d.End { // from counts to starts; filling turns the starts into ends
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
