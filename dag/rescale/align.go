package rescale

import (
	"errors"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// errApart reports sequences that have too little in common.
var errApart = errors.New("the ranks make too different calls")

// skeleton is the calls of all ranks in one order. Each slot is a call; the ranks lack some of them.
type skeleton struct {
	q     *sequences
	calls []int32   // call of each slot
	order []int32   // slots
	slots [][]int32 // of each rank: the slot of each of its calls
	left  int       // steps of common that may still be taken
}

// alignAll aligns the calls of all ranks. exists reports whether a rank has the partner of a call.
func alignAll(q *sequences, exists func(call int32, rank int) bool) (*skeleton, error) {
	k := &skeleton{q: q, slots: make([][]int32, len(q.ids)), left: leastSteps}
	for _, ids := range q.ids {
		k.left += stepsPerCall * len(ids)
	}
	cuts := q.cuts()
	from := make([]int, len(q.ids))
	for segment := range len(cuts[0]) {
		parts := make([][]int32, len(q.ids))
		for rank, ids := range q.ids {
			to := cuts[rank][segment]
			parts[rank] = ids[from[rank]:to]
			from[rank] = to
		}
		if k.byOccurrence(parts) {
			continue
		}
		if err := k.segment(parts, exists); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// cuts returns, for each rank, where its sequence can be cut: after collectives of all ranks if all ranks have the same
// ones. The last cut is the end.
func (q *sequences) cuts() [][]int {
	world := func(ids []int32) (at []int, list []int32) {
		for i, id := range ids {
			if c := &q.calls[id]; c.kind == dag.Coll && c.comm == 0 {
				at, list = append(at, i+1), append(list, id)
			}
		}
		return append(at, len(ids)), list
	}
	all := make([][]int, len(q.ids))
	var same []int32
	for rank, ids := range q.ids {
		at, list := world(ids)
		if rank == 0 {
			same = list
		} else if !slices.Equal(list, same) {
			for r := range q.ids {
				all[r] = []int{len(q.ids[r])}
			}
			return all
		}
		all[rank] = at
	}
	return all
}

// segment aligns a part of the sequences of all ranks and appends it to the skeleton.
func (k *skeleton) segment(parts [][]int32, exists func(call int32, rank int) bool) error {
	ranks := make([]int, len(parts))
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return len(parts[b]) - len(parts[a]) })
	longest := len(parts[ranks[0]])
	known := map[string][]int32{} // slots by sequence
	var order []int32
	var key []byte
	for _, rank := range ranks {
		part := parts[rank]
		key = numbers(key[:0], part)
		mapped, ok := known[string(key)]
		if !ok {
			mapped = k.existing(order, part, rank, exists)
			if mapped == nil {
				var err error
				if order, mapped, err = k.merge(order, part); err != nil {
					return err
				}
				if len(order) > 4*longest+16 {
					return errApart
				}
			}
			known[string(key)] = mapped
		}
		k.slots[rank] = append(k.slots[rank], mapped...)
	}
	k.order = append(k.order, order...)
	return nil
}

// existing returns the slots of a sequence if it is that of the slots whose partner exists; otherwise nil.
func (k *skeleton) existing(order, part []int32, rank int, exists func(call int32, rank int) bool) []int32 {
	mapped := make([]int32, 0, len(part))
	for _, slot := range order {
		c := k.calls[slot]
		if !exists(c, rank) {
			continue
		}
		if len(mapped) == len(part) || part[len(mapped)] != c {
			return nil
		}
		mapped = append(mapped, slot)
	}
	if len(mapped) < len(part) {
		return nil
	}
	return mapped
}

// merge inserts into the order the calls of a sequence that it lacks, and returns the slots of the sequence.
func (k *skeleton) merge(order, part []int32) (merged, mapped []int32, err error) {
	have := make([]int32, len(order))
	for i, slot := range order {
		have[i] = k.calls[slot]
	}
	matches, err := common(have, part, &k.left)
	if err != nil {
		return nil, nil, err
	}
	mapped = make([]int32, len(part))
	at, next := 0, 0
	until := func(i, j int) {
		merged = append(merged, order[at:i]...)
		for n := next; n < j; n++ {
			slot := int32(len(k.calls))
			k.calls, mapped[n] = append(k.calls, part[n]), slot
			merged = append(merged, slot)
		}
		at, next = i, j
	}
	for _, match := range matches {
		until(match[0], match[1])
		merged, mapped[match[1]] = append(merged, order[match[0]]), order[match[0]]
		at, next = match[0]+1, match[1]+1
	}
	until(len(order), len(part))
	return merged, mapped, nil
}

const (
	maxEdits     = 4000    // most differences of two sequences, which limits memory
	leastSteps   = 1 << 25 // of all comparisons of an alignment, which limits time
	stepsPerCall = 64      // more of them for each call
)

// common returns the indices of a longest common subsequence (Myers: An O(ND) Difference Algorithm and Its Variations,
// Algorithmica 1, 1986). It takes its steps from left.
func common(a, b []int32, left *int) ([][2]int, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	most := min(len(a)+len(b), maxEdits)
	reach := make([]int32, 2*most+3) // the furthest index of a on each diagonal
	offset := most + 1
	var history [][]int32
	for d := 0; d <= most && *left > 0; d++ {
		*left -= d + 1
		history = append(history, slices.Clone(reach[offset-d-1:offset+d+2]))
		for k := -d; k <= d; k += 2 {
			x := reach[offset+k-1] + 1
			if k == -d || k != d && reach[offset+k-1] < reach[offset+k+1] {
				x = reach[offset+k+1]
			}
			y := int(x) - k
			for int(x) < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			if reach[offset+k] = x; int(x) >= len(a) && y >= len(b) {
				return backtrack(history, len(a), len(b)), nil
			}
		}
	}
	return nil, errApart
}

// backtrack returns the matches of the path that history ends with.
func backtrack(history [][]int32, x, y int) [][2]int {
	var matches [][2]int
	for d := len(history) - 1; d >= 0; d-- {
		at := func(k int) int { return int(history[d][k+d+1]) }
		k := x - y
		previous := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			previous = k + 1
		}
		px := at(previous)
		py := px - previous
		if d == 0 {
			px, py = 0, 0
		}
		for x > px && y > py {
			x, y = x-1, y-1
			matches = append(matches, [2]int{x, y})
		}
		x, y = px, py
	}
	slices.Reverse(matches)
	return matches
}
