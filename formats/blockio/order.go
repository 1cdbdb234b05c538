package blockio

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// tieMember begins the attribute of a record that is not where rank and index put it among those of its time.
const tieMember = `"tie":`

// tie returns the place of a record among those of its time, where its attributes tell.
func tie(attrs string) (place int, ok bool) {
	rest, ok := strings.CutPrefix(attrs, "{"+tieMember)
	if !ok {
		return 0, false
	}
	end := strings.IndexAny(rest, ",}")
	if end < 0 {
		return 0, false
	}
	place, err := strconv.Atoi(rest[:end])
	return place, err == nil && place >= 0
}

// place is where an op is in a trace.
type place struct{ rank, op int32 }

// InOrder returns rank and index of all io ops of a trace, in the order of their records.
func InOrder(t *dag.Trace) iter.Seq2[int, int] {
	return func(yield func(rank, op int) bool) {
		queue := cursors(t)
		var group, placed []place // of one time
		for len(queue) > 0 {
			now := queue[0].time
			group = group[:0]
			for len(queue) > 0 && queue[0].time == now {
				head := queue[0]
				group = append(group, place{head.rank, head.op()})
				if head.next() {
					heap.Fix(&queue, 0)
				} else {
					heap.Pop(&queue)
				}
			}
			placed = placeTied(t, placed[:0], group)
			for _, p := range placed {
				if !yield(int(p.rank), int(p.op)) {
					return
				}
			}
		}
	}
}

// placeTied appends the ops of one time to placed, in the order of their records: those that know their place in it,
// unless another has it, and the others where there is room.
func placeTied(t *dag.Trace, placed, group []place) []place {
	if len(group) == 1 {
		return append(placed, group[0])
	}
	none := place{rank: -1}
	others := 0 // at the front of group
	for range group {
		placed = append(placed, none)
	}
	for _, p := range group {
		k, ok := tie(t.Ranks[p.rank].Attrs.At(int(p.op)))
		if ok && k < len(placed) && placed[k] == none {
			placed[k] = p
		} else {
			group[others] = p
			others++
		}
	}
	next := 0
	for i := range placed {
		if placed[i] == none {
			placed[i] = group[next]
			next++
		}
	}
	return placed
}

// cursor goes through the io ops of a rank in the order of their times.
type cursor struct {
	rank  int32
	ops   *dag.Rank
	order []int32 // the io ops; nil: all ops, in the order of the rank
	at    int
	time  dag.Time // of the op that it is at
}

// op returns the op that the cursor is at.
func (c *cursor) op() int32 {
	if c.order == nil {
		return int32(c.at)
	}
	return c.order[c.at]
}

// next goes to the next op, and reports whether there is one.
func (c *cursor) next() bool {
	c.at++
	return c.load()
}

// load sets the time, and reports whether the cursor is at an op.
func (c *cursor) load() bool {
	if c.order == nil && c.at == c.ops.Len() || c.order != nil && c.at == len(c.order) {
		return false
	}
	c.time = c.ops.Release.At(int(c.op()))
	return true
}

// cursors returns a queue of the ranks that have io ops.
func cursors(t *dag.Trace) cursorQueue {
	var queue cursorQueue
	for i := range t.Ranks {
		c := &cursor{rank: int32(i), ops: &t.Ranks[i]}
		if !isPlain(c.ops) {
			c.order = byTime(c.ops)
		}
		if c.load() {
			queue = append(queue, c)
		}
	}
	heap.Init(&queue)
	return queue
}

// isPlain reports whether a rank has only io ops, in the order of their times.
func isPlain(r *dag.Rank) bool {
	for _, kind := range r.Kind {
		if kind != dag.IO {
			return false
		}
	}
	return len(r.Release) == r.Len() && slices.IsSorted(r.Release)
}

// byTime returns the io ops of a rank in the order of their times, those of the same time by index.
func byTime(r *dag.Rank) []int32 {
	order := []int32{}
	for i, kind := range r.Kind {
		if kind == dag.IO {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(r.Release.At(int(a)), r.Release.At(int(b))) })
	return order
}

// cursorQueue is a heap of cursors by time, then by rank.
type cursorQueue []*cursor

func (q cursorQueue) Len() int { return len(q) }
func (q cursorQueue) Less(i, j int) bool {
	return q[i].time < q[j].time || q[i].time == q[j].time && q[i].rank < q[j].rank
}
func (q cursorQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *cursorQueue) Push(x any)   { *q = append(*q, x.(*cursor)) }
func (q *cursorQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
