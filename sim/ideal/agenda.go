package ideal

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// agenda holds the sends and receives of which it is known when they start. They come out in the order of their starts,
// and at the same time by number: by rank, then by index.
//
// Where ranks do the same, very many start at the same time, so those of a time stand in one list, linked through
// Op.Link and in any order, and only the lists are in a queue. It does no harm that a time may have several lists.
type agenda struct {
	ops   []sim.Op
	now   uint64
	today opSet       // the ops that start now
	later event.Queue // the lists, by their first op; its number times two, plus isRoot
	lists [1 << 8]list

	// Of each rank, the ops that waited for nothing and are not in a list yet, by start. Of each rank, one at a time is
	// enough.
	roots [][]uint32
}

// list is a list of ops that was begun lately.
type list struct {
	time uint64 // 0: there is none
	head uint32
}

// isRoot marks, in later, an op that comes from roots: a list of its own.
const isRoot = 1

func newAgenda(p *sim.Program) agenda {
	return agenda{ops: p.Ops, today: newOpSet(p.NumOps()), roots: make([][]uint32, p.Ranks())}
}

// add puts an op on the agenda. It does not start before now.
func (a *agenda) add(i uint32) {
	t := a.ops[i].Ready
	if t == a.now {
		a.today.add(i)
		return
	}
	l := &a.lists[t*0x9e3779b97f4a7c15>>(64-8)]
	if l.time == t {
		a.ops[i].Link = a.ops[l.head].Link
		a.ops[l.head].Link = i
		return
	}
	*l = list{t, i}
	a.ops[i].Link = sim.NoOp
	a.later.Push(event.Event{Time: t, Key: uint64(i) << 1})
}

// addRoots puts ops of a rank on the agenda, ascending, before the first is taken.
func (a *agenda) addRoots(rank uint32, ops []uint32) {
	earlier := func(i, k uint32) int { return cmp.Compare(a.ops[i].Ready, a.ops[k].Ready) }
	if !slices.IsSortedFunc(ops, earlier) {
		ops = slices.Clone(ops)
		slices.SortStableFunc(ops, earlier)
	}
	a.roots[rank] = ops
	a.nextRoots(rank)
}

// nextRoots takes over those roots of a rank that start now, and one more.
func (a *agenda) nextRoots(rank uint32) {
	roots := a.roots[rank]
	for len(roots) > 0 && a.ops[roots[0]].Ready == a.now {
		a.today.add(roots[0])
		roots = roots[1:]
	}
	if len(roots) > 0 {
		a.later.Push(event.Event{Time: a.ops[roots[0]].Ready, Key: uint64(roots[0])<<1 | isRoot})
		roots = roots[1:]
	}
	a.roots[rank] = roots
}

// take removes and returns the next op; ok is false if there is none.
func (a *agenda) take() (i uint32, ok bool) {
	if a.today.empty() && !a.turn() {
		return 0, false
	}
	return a.today.takeFirst(), true
}

// turn moves on to the next time, and reports whether there is one.
func (a *agenda) turn() bool {
	if a.later.Len() == 0 {
		return false
	}
	a.now = a.later.Next()
	for a.later.Next() == a.now {
		ev := a.later.Pop()
		i := uint32(ev.Key >> 1)
		if ev.Key&isRoot != 0 {
			a.today.add(i)
			a.nextRoots(a.ops[i].Rank)
			continue
		}
		for i != sim.NoOp {
			a.today.add(i)
			i = a.ops[i].Link
		}
	}
	return true
}

// opSet is a set of ops that gives out the lowest first: a bit for each op, above these a bit for each word of them
// that is not 0, and so on up to a single word.
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
		if *word &= *word - 1; *word != 0 { // the lowest bit is its own
			break
		}
		i /= 64
	}
	return first
}
