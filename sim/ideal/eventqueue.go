package ideal

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// eventQueue stores sends and receives with known start times. It orders them by start, and at equal starts by op
// number: by rank, then by index.
//
// If ranks behave alike, very many ops start at the same time. Therefore the ops of a time form an unordered list,
// linked through Op.Link, and the queue contains only the lists. A time may have several lists.
type eventQueue struct {
	p       *sim.Program
	ops     []sim.Op
	ready   []uint64 // by op: its start
	now     uint64
	current opSet       // ops that start now, by Program.Order
	later   event.Queue // lists; the key is twice the position of the first op, plus isRoot
	lists   [1 << 8]list

	// By rank: ops without dependencies that are not queued yet, by start. Only one per rank needs to be queued.
	roots [][]uint32
}

// list is a recently used list of ops.
type list struct {
	time uint64 // 0: none
	head uint32
}

// isRoot marks, in a key of later, an op from roots, which is a list by itself.
const isRoot = 1

func newEventQueue(p *sim.Program, ready []uint64) eventQueue {
	return eventQueue{p: p, ops: p.Ops, ready: ready, current: newOpSet(p.Orders()),
		roots: make([][]uint32, p.Ranks())}
}

// add adds an op. Its start must not be before now.
func (q *eventQueue) add(i uint32) {
	t := q.ready[i]
	if t == q.now {
		q.current.add(q.p.Order(i))
		return
	}
	l := &q.lists[t*0x9e3779b97f4a7c15>>(64-8)]
	if l.time == t {
		q.ops[i].SetLink(q.ops[l.head].Link())
		q.ops[l.head].SetLink(i)
		return
	}
	*l = list{t, i}
	q.ops[i].SetLink(sim.NoOp)
	q.later.Push(event.Event{Time: t, Key: uint64(i) << 1})
}

// addRoots adds ops of a rank, in ascending order of numbers. It must be called before the first take.
func (q *eventQueue) addRoots(rank uint32, ops []uint32) {
	earlier := func(i, k uint32) int { return cmp.Compare(q.ready[i], q.ready[k]) }
	if !slices.IsSortedFunc(ops, earlier) {
		ops = slices.Clone(ops)
		slices.SortStableFunc(ops, earlier)
	}
	q.roots[rank] = ops
	q.nextRoots(rank)
}

// nextRoots moves the roots of a rank that start now to current, and queues the next one.
func (q *eventQueue) nextRoots(rank uint32) {
	roots := q.roots[rank]
	for len(roots) > 0 && q.ready[roots[0]] == q.now {
		q.current.add(q.p.Order(roots[0]))
		roots = roots[1:]
	}
	if len(roots) > 0 {
		q.later.Push(event.Event{Time: q.ready[roots[0]], Key: uint64(roots[0])<<1 | isRoot})
		roots = roots[1:]
	}
	q.roots[rank] = roots
}

// take removes and returns the next op; ok is false if the queue is empty.
func (q *eventQueue) take() (i uint32, ok bool) {
	if q.current.empty() && !q.advance() {
		return 0, false
	}
	return q.p.At(q.current.takeFirst())
}

// advance advances to the next time and reports whether there is one.
func (q *eventQueue) advance() bool {
	if q.later.Len() == 0 {
		return false
	}
	q.now = q.later.Next()
	for q.later.Next() == q.now {
		ev := q.later.Pop()
		i := uint32(ev.Key >> 1)
		if ev.Key&isRoot != 0 {
			q.current.add(q.p.Order(i))
			q.nextRoots(q.ops[i].Rank)
			continue
		}
		for i != sim.NoOp {
			q.current.add(q.p.Order(i))
			i = q.ops[i].Link()
		}
	}
	return true
}

// opSet is a set of ops that returns the lowest first. It is a tree of bitmaps: one bit per op, one bit per non-zero
// word of these, and so on up to a single word.
type opSet [][]uint64

func newOpSet(n int) opSet {
	var s opSet
	for {
		n = (n + 63) / 64
		s = append(s, make([]uint64, max(n, 1)))
		if n <= 1 {
			return s
		}
	}
}

func (s opSet) empty() bool {
	return s[len(s)-1][0] == 0
}

func (s opSet) add(i uint32) {
	for _, words := range s {
		word := &words[i/64]
		full := *word != 0
		*word |= 1 << (i % 64)
		if full {
			return
		}
		i /= 64
	}
}

// takeFirst removes and returns the lowest op. The set must not be empty.
func (s opSet) takeFirst() uint32 {
	first := uint32(0)
	for level := len(s) - 1; level >= 0; level-- {
		first = first*64 + uint32(bits.TrailingZeros64(s[level][first]))
	}
	i := first
	for _, words := range s {
		word := &words[i/64]
		if *word &= *word - 1; *word != 0 { // clear the lowest bit; other bits remain set
			break
		}
		i /= 64
	}
	return first
}
