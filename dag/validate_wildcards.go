package dag

import (
	"cmp"
	"slices"
)

// matchWildcards finds a maximum matching of sends to one rank with its receives that have wildcards, and appends the
// unmatched sends and receives to unmatched.
func matchWildcards(sends, receives, unmatched []message) []message {
	slices.SortFunc(sends, compareMessages)
	slices.SortFunc(receives, compareMessages)
	for len(sends) > 0 && len(receives) > 0 {
		comm := min(sends[0].comm, receives[0].comm)
		var s, r []message
		s, sends = cutComm(sends, comm)
		r, receives = cutComm(receives, comm)
		w := newWildcards(s, r)
		w.giveUncontested()
		w.giveContested()
		unmatched = w.appendRest(unmatched)
	}
	return append(append(unmatched, sends...), receives...)
}

// cutComm splits off the leading messages of communicator comm.
func cutComm(messages []message, comm int32) (cut, rest []message) {
	n := 0
	for n < len(messages) && messages[n].comm == comm {
		n++
	}
	return messages[:n], messages[n:]
}

// wildcards is a matching of the sends to one rank on one communicator with its receives that have wildcards.
//
// Receives of any tag from source s and receives of any source with tag t compete for the sends from s with tag t.
// Sends that only one of the two can take are matched first, which does not reduce the matching. The rest is a
// maximum-flow problem from sends to receives. Receives of any source and any tag take the remaining sends: they
// match every send (except those of lowered collectives), so any choice is equally good.
type wildcards struct {
	flows  []flow
	takers []taker
	anyAny []message // receives of any source and any tag

	// The search for a maximum flow proceeds from taker to taker.
	contested []int // by taker: its flows that two takers can take
	first     []int // flows of taker k are contested[first[k]:first[k+1]]
	level     []int // by taker: number of takers before it on a shortest path; -1: unreachable
	next      []int // by taker: the first of its contested flows that was not exhausted
}

// flow is the sends of one source and tag.
type flow struct {
	sends []message
	takes [2]int // its takers: any source with this tag, any tag from this source; -1: none
	given [2]int // number of sends given to each
}

func (f *flow) left() int {
	return len(f.sends) - f.given[0] - f.given[1]
}

// taker is the receives with the same wildcard and the same value of the other field.
type taker struct {
	receives []message
	given    int // number of receives that are matched
}

func (t *taker) room() int {
	return len(t.receives) - t.given
}

// newWildcards returns an empty matching. Sends and receives must be sorted by peer, tag and op.
func newWildcards(sends, receives []message) *wildcards {
	w := &wildcards{}
	for len(receives) > 0 {
		var alike []message
		if alike, receives = cutFlow(receives); alike[0].peer == AnySource && alike[0].tag == AnyTag {
			w.anyAny = alike
		} else {
			w.takers = append(w.takers, taker{receives: alike})
		}
	}
	for len(sends) > 0 {
		var f flow
		f.sends, sends = cutFlow(sends)
		f.takes = [2]int{w.find(AnySource, f.sends[0].tag), -1}
		if f.sends[0].tag >= AnyTag {
			f.takes[1] = w.find(f.sends[0].peer, AnyTag)
		}
		w.flows = append(w.flows, f)
	}
	return w
}

// cutFlow splits off the leading messages of one source and tag.
func cutFlow(messages []message) (cut, rest []message) {
	n := 1
	for n < len(messages) && messages[n].sameFlow(&messages[0]) {
		n++
	}
	return messages[:n], messages[n:]
}

// find returns the taker of the given source and tag, one of which is a wildcard, or -1.
func (w *wildcards) find(peer int32, tag int64) int {
	k, ok := slices.BinarySearchFunc(w.takers, message{peer: peer, tag: tag}, func(t taker, m message) int {
		return cmp.Or(cmp.Compare(t.receives[0].peer, m.peer), cmp.Compare(t.receives[0].tag, m.tag))
	})
	if !ok {
		return -1
	}
	return k
}

func (w *wildcards) give(f *flow, side, amount int) {
	f.given[side] += amount
	w.takers[f.takes[side]].given += amount
}

func (w *wildcards) giveUncontested() {
	for i := range w.flows {
		f := &w.flows[i]
		for side, k := range f.takes {
			if k >= 0 && f.takes[1-side] < 0 {
				w.give(f, side, min(len(f.sends), w.takers[k].room()))
			}
		}
	}
}

// giveContested finds a maximum flow by the algorithm of E. A. Dinic, "Algorithm for solution of a problem of maximum
// flow in a network with power estimation", Soviet Math. Dokl. 11 (1970). Its nodes are takers: taker k can pass
// sends of a flow on to taker l if both can take the flow.
func (w *wildcards) giveContested() {
	w.first = make([]int, len(w.takers)+2)
	w.eachContested(func(_, k int) { w.first[k+2]++ })
	for k := 1; k < len(w.first); k++ {
		w.first[k] += w.first[k-1]
	}
	w.contested = make([]int, w.first[len(w.takers)+1])
	if len(w.contested) == 0 {
		return
	}
	w.eachContested(func(i, k int) { // moves first[k+1] from the start of taker k's flows to their end
		w.contested[w.first[k+1]] = i
		w.first[k+1]++
	})
	w.level, w.next = make([]int, len(w.takers)), make([]int, len(w.takers))
	for w.findLevels() {
		copy(w.next, w.first)
		for i := range w.flows {
			f := &w.flows[i]
			for side, k := range f.takes {
				for k >= 0 && f.takes[1-side] >= 0 && f.left() > 0 && w.makeRoom(k, f.left()) {
					w.give(f, side, min(f.left(), w.takers[k].room()))
				}
			}
		}
	}
}

// eachContested calls visit for each flow that two takers can take, with each of the two.
func (w *wildcards) eachContested(visit func(flow, taker int)) {
	for i := range w.flows {
		if f := &w.flows[i]; f.takes[0] >= 0 && f.takes[1] >= 0 {
			visit(i, f.takes[0])
			visit(i, f.takes[1])
		}
	}
}

// findLevels sets the distance of each taker from an unmatched send, and reports whether it reaches a taker with free
// receives.
func (w *wildcards) findLevels() bool {
	for k := range w.level {
		w.level[k] = -1
	}
	var queue []int
	found := false
	reach := func(k, level int) {
		if w.level[k] < 0 {
			w.level[k] = level
			queue = append(queue, k)
			found = found || w.takers[k].room() > 0
		}
	}
	w.eachContested(func(i, k int) {
		if w.flows[i].left() > 0 {
			reach(k, 0)
		}
	})
	for ; len(queue) > 0; queue = queue[1:] {
		k := queue[0]
		for _, i := range w.contested[w.first[k]:w.first[k+1]] {
			if f := &w.flows[i]; f.given[f.side(k)] > 0 {
				reach(f.takes[1-f.side(k)], w.level[k]+1)
			}
		}
	}
	return found
}

// side returns the index of taker k among the flow's two takers.
func (f *flow) side(k int) int {
	if f.takes[0] == k {
		return 0
	}
	return 1
}

// makeRoom frees up to amount receives of taker k by passing sends on along one shortest path, and reports whether
// any are free.
func (w *wildcards) makeRoom(k, amount int) bool {
	// takers of the path; each but the first gets sends of w.contested[w.next[the previous one]]
	path := []int{k}
	for len(path) > 0 {
		k := path[len(path)-1]
		if room := w.takers[k].room(); room > 0 {
			w.passOn(path, min(amount, room))
			return true
		}
		if w.next[k] == w.first[k+1] {
			path = path[:len(path)-1]
			if len(path) > 0 {
				w.next[path[len(path)-1]]++
			}
			continue
		}
		f := &w.flows[w.contested[w.next[k]]]
		to := f.takes[1-f.side(k)]
		if f.given[f.side(k)] > 0 && w.level[to] == w.level[k]+1 {
			path = append(path, to)
		} else {
			w.next[k]++
		}
	}
	return false
}

// passOn moves sends from each taker of the path to the next: amount, or the largest number that all of them can
// move.
func (w *wildcards) passOn(path []int, amount int) {
	for _, k := range path[:len(path)-1] {
		f := &w.flows[w.contested[w.next[k]]]
		amount = min(amount, f.given[f.side(k)])
	}
	for _, k := range path[:len(path)-1] {
		f := &w.flows[w.contested[w.next[k]]]
		side := f.side(k)
		w.give(f, side, -amount)
		w.give(f, 1-side, amount)
	}
}

// appendRest matches the remaining sends with the receives of any source and any tag, and appends the unmatched ones.
func (w *wildcards) appendRest(unmatched []message) []message {
	for i := range w.flows {
		f := &w.flows[i]
		rest := f.sends[len(f.sends)-f.left():]
		if f.sends[0].tag >= AnyTag {
			taken := min(len(rest), len(w.anyAny))
			rest, w.anyAny = rest[taken:], w.anyAny[taken:]
		}
		unmatched = append(unmatched, rest...)
	}
	for i := range w.takers {
		t := &w.takers[i]
		unmatched = append(unmatched, t.receives[t.given:]...)
	}
	return append(unmatched, w.anyAny...)
}
