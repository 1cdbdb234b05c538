package dag

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tracedag/tracedag/dag/attr"
)

// Records returns rank and index of all io ops of the trace, in the order of the records that they stand for: by
// release time, those of the same time by rank, those of the same rank by index. Where ops of the same time have
// attributes that begin with [attr.RecordTie], these come at the places that they name, unless another has it, and the
// others where there is room.
func (t *Trace) Records() iter.Seq2[int, int] {
	return func(yield func(rank, op int) bool) {
		queue := newRecordQueue(t)
		var group, placed []recordPlace // of one time
		for len(queue) > 0 {
			now := queue[0].time
			first := queue.take()
			if len(queue) == 0 || queue[0].time != now {
				if !yield(int(first.rank), int(first.op)) {
					return
				}
				continue
			}
			group = append(group[:0], first)
			for len(queue) > 0 && queue[0].time == now {
				group = append(group, queue.take())
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

// recordPlace is where an op is in a trace.
type recordPlace struct{ rank, op int32 }

// placeTied appends the ops of one time to placed, in the order of their records. It makes use of the memory of group.
func placeTied(t *Trace, placed, group []recordPlace) []recordPlace {
	none := recordPlace{rank: -1}
	others := 0 // at the front of group
	for range group {
		placed = append(placed, none)
	}
	for _, p := range group {
		k, ok := attr.ParseRecordTie(t.Ranks[p.rank].Attrs.At(int(p.op)))
		if ok && int(k) < len(placed) && placed[k] == none {
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

// recordCursor goes through the io ops of a rank in the order of their times.
type recordCursor struct {
	rank  int32
	at    int
	time  Time // of the op that it is at
	ops   *Rank
	order []int32 // the io ops; nil: all ops, in the order of the rank
}

// op returns the op that the cursor is at.
func (c *recordCursor) op() int32 {
	if c.order == nil {
		return int32(c.at)
	}
	return c.order[c.at]
}

// load sets the time, and reports whether the cursor is at an op.
func (c *recordCursor) load() bool {
	if c.order == nil && c.at == c.ops.Len() || c.order != nil && c.at == len(c.order) {
		return false
	}
	c.time = c.ops.Release.At(int(c.op()))
	return true
}

// recordQueue is a binary heap of cursors by time, then by rank.
type recordQueue []recordCursor

// newRecordQueue returns a queue of the ranks that have io ops.
func newRecordQueue(t *Trace) recordQueue {
	var queue recordQueue
	for i := range t.Ranks {
		c := recordCursor{rank: int32(i), ops: &t.Ranks[i]}
		if !inRecordOrder(c.ops) {
			c.order = recordsByTime(c.ops)
		}
		if c.load() {
			queue = append(queue, c)
		}
	}
	for i := len(queue)/2 - 1; i >= 0; i-- {
		queue.down(i)
	}
	return queue
}

// take returns the first op, and goes on to the next of its rank.
func (q *recordQueue) take() recordPlace {
	queue := *q
	c := &queue[0]
	first := recordPlace{c.rank, c.op()}
	c.at++
	if !c.load() {
		last := len(queue) - 1
		queue[0] = queue[last]
		*q = queue[:last]
	}
	q.down(0)
	return first
}

// down moves cursor i to its place below.
func (q *recordQueue) down(i int) {
	queue := *q
	for {
		child := 2*i + 1
		if child >= len(queue) {
			return
		}
		if right := child + 1; right < len(queue) && queue[right].before(&queue[child]) {
			child = right
		}
		if !queue[child].before(&queue[i]) {
			return
		}
		queue[i], queue[child] = queue[child], queue[i]
		i = child
	}
}

func (c *recordCursor) before(d *recordCursor) bool {
	return c.time < d.time || c.time == d.time && c.rank < d.rank
}

// inRecordOrder reports whether a rank has only io ops, in the order of their times.
func inRecordOrder(r *Rank) bool {
	for _, kind := range r.Kind {
		if kind != IO {
			return false
		}
	}
	return (len(r.Release) == 0 || len(r.Release) == r.Len()) && slices.IsSorted(r.Release)
}

// recordsByTime returns the io ops of a rank in the order of their times, those of the same time by index.
func recordsByTime(r *Rank) []int32 {
	order := []int32{}
	for i, kind := range r.Kind {
		if kind == IO {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(r.Release.At(int(a)), r.Release.At(int(b)))
	})
	return order
}
