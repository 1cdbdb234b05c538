package timeline

import (
	"maps"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// numbering numbers the collectives that the backend runs itself, like those that are lowered: by communicator, and
// within each in order. It takes 12 bytes per collective and rank.
type numbering struct {
	number func(comm int32, k int64) int64
	ranks  []numbered
}

// numbered are the collectives of a rank.
type numbered struct {
	ops     []uint32 // ascending
	numbers []int64
}

// newNumbering returns the numbering of a trace. If no collective was lowered, it counts those of each communicator, of
// which all members have equal numbers.
func newNumbering(o *Options) *numbering {
	t := o.Trace
	n := &numbering{ranks: make([]numbered, len(t.Ranks))}
	if o.Kept != nil {
		n.number = func(comm int32, k int64) int64 {
			number, _ := o.Kept(comm, k)
			return number
		}
		return n
	}
	first := map[int32]int64{}
	counts, own := map[int32]int64{}, map[int32]int64{}
	for _, r := range t.Ranks {
		clear(own)
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				own[r.Comm.At(i)]++
			}
		}
		for comm, count := range own {
			counts[comm] = max(counts[comm], count)
		}
	}
	next := int64(0)
	for _, comm := range slices.Sorted(maps.Keys(counts)) {
		first[comm] = next
		next += counts[comm]
	}
	n.number = func(comm int32, k int64) int64 { return first[comm] + k }
	return n
}

// of returns the number of collective op i of a rank.
func (n *numbering) of(r *dag.Rank, rank uint32, i int) int64 {
	known := &n.ranks[rank]
	if known.ops == nil {
		next := map[int32]int64{}
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				comm := r.Comm.At(i)
				known.ops = append(known.ops, uint32(i))
				known.numbers = append(known.numbers, n.number(comm, next[comm]))
				next[comm]++
			}
		}
	}
	at, _ := slices.BinarySearch(known.ops, uint32(i))
	return known.numbers[at]
}
