package dag

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tracedag/tracedag/dag/attr"
)

// Records returns rank and index of all io ops of the trace, in the order of the I/O records: by release time, then
// by rank, then by index. Among ops of the same time, an op whose attributes begin with [attr.RecordTie] takes the
// place that it names, unless that place is taken; the other ops fill the remaining places.
func (t *Trace) Records() iter.Seq2[int, int] {
	return func(yield func(rank, op int) bool) {
		queue := newRecordQueue(t)
		var group, placed []recordPlace // ops of one time
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

// recordPlace is the rank and index of an op.
type recordPlace struct{ rank, op int32 }

// placeTied appends the ops of one time to placed, in the order of their records. It overwrites group.
func placeTied(t *Trace, placed, group []recordPlace) []recordPlace {
	none := recordPlace{rank: -1}
	others := 0 // number of ops without a tie, at the front of group
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

// recordCursor iterates over the io ops of a rank in the order of their times.
type recordCursor struct {
	rank  int32
	at    int
	time  Time // of the current op
	ops   *Rank
	order []int32 // the io ops by time; nil: all ops, in index order
}

// op returns the current op.
func (c *recordCursor) op() int32 {
	if c.order == nil {
		return int32(c.at)
	}
	return c.order[c.at]
}

// load sets the time. It returns false if the cursor is at the end.
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
		c := recordCursor{rank: int32(i), ops: t.Ranks[i]}
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

// take returns the first op and advances the cursor of its rank.
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

// down restores the heap order below cursor i.
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

// recordsByTime returns the io ops of a rank by time, then by index.
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
