package calibrate

import (
	"math"

	"github.com/tracedag/tracedag/dag"
)

// unbounded is the bound of a clock that nothing bounds.
const unbounded = dag.Time(math.MaxInt64 / 4)

// alignClocks corrects the clocks of ranks if messages end before they are sent, and returns their number before.
// A message takes at least the given time, which bounds the difference of two clocks. alignClocks selects the middle
// between the largest and the smallest correction that all messages allow, relative to the first rank of those that
// exchange messages. It assumes that messages take equal paths in both directions. far is the largest distance
// of a correction from these bounds. ok is false if no correction satisfies all messages, or if a clock has a bound on
// one side only.
func (rec *recording) alignClocks(least func(m *message) dag.Time) (wrong int, far dag.Time, ok bool) {
	bounds := map[[2]int32]dag.Time{}
	for i := range rec.messages {
		m := &rec.messages[i]
		if m.taking == noCompletion {
			continue
		}
		end := rec.completions[m.taking].end
		if end < m.sent {
			wrong++
		}
		pair, by := [2]int32{m.from, m.to}, end-m.sent-least(m)
		if w, known := bounds[pair]; !known || by < w {
			bounds[pair] = by
		}
	}
	if wrong == 0 {
		return 0, 0, true
	}
	n := len(rec.collectives)
	upper, lower := make([]dag.Time, n), make([]dag.Time, n)
	for r := range upper {
		upper[r], lower[r] = unbounded, -unbounded
	}
	for root := range upper {
		if upper[root] != unbounded || lower[root] != -unbounded {
			continue
		}
		upper[root], lower[root] = 0, 0
		if !relax(bounds, upper, lower) {
			return wrong, 0, false
		}
	}
	shift := make([]dag.Time, n)
	for r := range shift {
		if upper[r] == unbounded || lower[r] == -unbounded {
			return wrong, 0, false
		}
		shift[r] = (upper[r] + lower[r]) / 2
		far = max(far, (upper[r]-lower[r])/2)
	}
	rec.shift(shift)
	return wrong, far, true
}

// relax tightens the bounds of clocks until they satisfy those of pairs: the clock of the sender is ahead of that of
// the receiver by at most the bound. It returns false if they contradict each other.
func relax(bounds map[[2]int32]dag.Time, upper, lower []dag.Time) bool {
	for range len(upper) + 1 {
		changed := false
		for pair, by := range bounds {
			from, to := pair[0], pair[1]
			if upper[to] < unbounded && upper[to]+by < upper[from] {
				upper[from], changed = upper[to]+by, true
			}
			if lower[from] > -unbounded && lower[from]-by > lower[to] {
				lower[to], changed = lower[from]-by, true
			}
		}
		if !changed {
			return true
		}
	}
	return false
}

// shift adds a time to the clock of each rank.
func (rec *recording) shift(by []dag.Time) {
	rec.start = dag.MaxTime
	for i := range rec.messages {
		m := &rec.messages[i]
		m.sent, m.left, m.posted = m.sent+by[m.from], m.left+by[m.from], m.posted+by[m.to]
		rec.start = min(rec.start, m.sent, m.posted)
	}
	for i := range rec.completions {
		c := &rec.completions[i]
		c.start, c.end = c.start+by[c.rank], c.end+by[c.rank]
	}
	for r, spans := range rec.collectives {
		for i := range spans {
			spans[i].start, spans[i].end = spans[i].start+by[r], spans[i].end+by[r]
		}
	}
}
