package rescale

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// calcKey is what calcs of different ranks must have in common to be the same calc of the program.
type calcKey struct {
	sub               dag.Subkind
	stream, nic, host int32
	join              bool
	waits             int32 // slot of the only message that a join waits for; -1: none or several
}

// gapCalc is a calc in a gap between calls.
type gapCalc struct {
	key  calcKey
	slot int32
}

// insertCalcs adds slots for calcs between the calls of the skeleton, and sets the order. Calcs never align calls:
// tracers omit short ones, on some ranks and not on others.
func (m *model) insertCalcs(k *skeleton) {
	gaps := make([][]gapCalc, len(k.order)+1) // before each call, and at the end
	place := make([]int, len(k.calls))
	for i, s := range k.order {
		place[s] = i
	}
	common := m.commonGaps(k, place)
	ranks := make([]int, len(m.from.Ranks))
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return len(k.slots[b]) - len(k.slots[a]) })
	for _, rank := range ranks {
		r := m.from.Ranks[rank]
		slotOf := make([]int32, r.Len())
		for i := range slotOf {
			slotOf[i] = -1
		}
		for i, s := range k.slots[rank] {
			slotOf[k.q.ops[rank][i]] = s
		}
		gap, at, next := 0, 0, 0 // place for the next calc: gap and number in it
		for i, kind := range r.Kind {
			if kind != dag.Calc {
				gap, at, next = place[slotOf[i]]+1, 0, next+1
				continue
			}
			last := len(k.order)
			if next < len(k.slots[rank]) {
				last = place[k.slots[rank][next]]
			}
			key := keyOf(r, i, slotOf)
			g, n := findCalc(gaps, &key, gap, at, last)
			if g < 0 {
				if g, n = common.best(gap, last), 0; g == gap {
					n = at
				}
				slot := int32(len(m.slots))
				m.slots = append(m.slots, newCalc(&key))
				m.opAt = append(m.opAt, m.noOps())
				gaps[g] = slices.Insert(gaps[g], n, gapCalc{key, slot})
			}
			slotOf[i] = gaps[g][n].slot
			m.opAt[slotOf[i]][rank] = int32(i)
			gap, at = g, n+1
		}
	}
	for i, calcs := range gaps {
		for _, c := range calcs {
			m.order = append(m.order, c.slot)
		}
		if i < len(k.order) {
			m.order = append(m.order, k.order[i])
		}
	}
}

// gapCounts are the numbers of ranks that may have calcs in each gap.
type gapCounts []int

// commonGaps counts, for each gap, the ranks with calcs between calls on its two sides.
func (m *model) commonGaps(k *skeleton, place []int) gapCounts {
	counts := make(gapCounts, len(k.order)+2) // differences first
	for rank, r := range m.from.Ranks {
		from, next, some := 0, 0, false
		end := func(to int) {
			if some {
				counts[from]++
				counts[to+1]--
			}
			some = false
		}
		for _, kind := range r.Kind {
			if kind == dag.Calc {
				some = true
				continue
			}
			at := place[k.slots[rank][next]]
			end(at)
			from, next = at+1, next+1
		}
		end(len(k.order))
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	return counts
}

// best returns the gap of a range that most ranks have in common, the last of several.
func (c gapCounts) best(from, to int) int {
	best := to
	for i := to; i >= from; i-- {
		if c[i] > c[best] {
			best = i
		}
	}
	return best
}

func newCalc(key *calcKey) slot {
	return slot{join: key.join, always: true}
}

// keyOf returns the key of a calc of a rank.
func keyOf(r *dag.Rank, i int, slotOf []int32) calcKey {
	key := calcKey{sub: r.Subkind.At(i), stream: r.Stream.At(i), nic: r.NIC.At(i), host: r.Host.At(i),
		join: r.CalcTime(i) == 0 && r.Flops.At(i) == 0, waits: -1}
	if !key.join {
		return key
	}
	messages := 0
	for _, off := range r.Deps.Of(i) {
		if on := i - int(off); on < i && isMessage(r.Kind[on]) {
			key.waits = slotOf[on]
			messages++
		}
	}
	if messages > 1 {
		key.waits = -1
	}
	return key
}

// findCalc returns the first calc with a key from number at in a gap to the gap last, or -1.
func findCalc(gaps [][]gapCalc, key *calcKey, gap, at, last int) (g, n int) {
	several := *key
	several.waits = -1
	for _, wanted := range []calcKey{*key, several} {
		n := at
		for g := gap; g <= last; g++ {
			for ; n < len(gaps[g]); n++ {
				if gaps[g][n].key == wanted {
					return g, n
				}
			}
			n = 0
		}
	}
	return -1, 0
}

// findEdges sets the dependencies of the slots: those of all ranks, except where a rank waits for the dependencies of
// a slot because it lacks the slot.
func (m *model) findEdges() {
	ranks := make([]int, len(m.from.Ranks))
	has := make([]int, len(ranks))
	for i := range ranks {
		ranks[i] = i
		has[i] = m.from.Ranks[i].Len()
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return has[b] - has[a] })
	for s := range m.slots {
		m.slots[s].ascending = true
	}
	b := bypass{model: m, seen: make([]int32, len(m.slots))}
	for _, rank := range ranks {
		r := m.from.Ranks[rank]
		slotOf := make([]int32, r.Len())
		for s := range m.slots {
			if op := m.opAt[s][rank]; op >= 0 {
				slotOf[op] = int32(s)
			}
		}
		b.rank = rank
		for i, s := range slotOf {
			slot := &m.slots[s]
			slot.ascending = slot.ascending && descends(r.Deps.Of(i)) && descends(r.StartDeps.Of(i))
			for _, off := range r.Deps.Of(i) {
				b.addEdge(s, edge{slotOf[i-int(off)], false})
			}
			for _, off := range r.StartDeps.Of(i) {
				b.addEdge(s, edge{slotOf[i-int(off)], true})
			}
		}
	}
}

// bypass finds dependencies that follow from those of slots that a rank lacks.
type bypass struct {
	*model
	rank  int
	seen  []int32 // the last search that met each slot
	count int32
}

func (b *bypass) addEdge(of int32, e edge) {
	s := &b.slots[of]
	if slices.Contains(s.edges, e) {
		return
	}
	b.count++
	for _, f := range s.edges {
		if b.opAt[f.on][b.rank] < 0 && b.leads(f.on, e.on) {
			return
		}
	}
	s.edges = append(s.edges, e)
}

// leads reports whether a slot that the rank lacks depends on another one, directly or by other slots that it lacks.
func (b *bypass) leads(from, to int32) bool {
	stack := []int32{from}
	for len(stack) > 0 {
		from := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if b.seen[from] == b.count {
			continue
		}
		b.seen[from] = b.count
		for _, f := range b.slots[from].edges {
			if f.on == to {
				return true
			}
			if b.opAt[f.on][b.rank] < 0 {
				stack = append(stack, f.on)
			}
		}
	}
	return false
}

// descends reports whether offsets descend, and so the ops ascend.
func descends(offsets []int32) bool {
	return slices.IsSortedFunc(offsets, func(a, b int32) int { return int(b - a) })
}
