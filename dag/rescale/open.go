package rescale

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Growth is how times whose growth one trace does not show depend on the number of ranks N: those of calls that make
// communicators, and of calcs that only the first or last rank has.
type Growth uint8

// Kinds of growth.
const (
	Unknown      Growth = iota // refused if it matters
	Fixed                      // does not depend on N
	Logarithmic                // as log2 N
	Linear                     // as N
	Linearithmic               // as N log2 N
	Quadratic                  // as N^2
)

// String returns the name of the growth.
func (g Growth) String() string {
	return [...]string{"unknown", "fixed", "log", "linear", "nlogn", "square"}[g]
}

// basis returns the function of the number of ranks; [Unknown] is fixed.
func (g Growth) basis() basis {
	return [...]basis{steady, steady, log2, linear, {power: 1, dim: allRanks, log: true}, {power: 2, dim: allRanks}}[g]
}

// loner is the part of the computation of a calc that only one rank has: all of it, or what exceeds that of the others.
type loner struct {
	rank  int
	share float64
}

// findLone finds the calcs, or parts of them, that only the first or last rank has, such as those of a root that
// computes with what it gathered.
func (m *model) findLone() {
	m.lone = map[int32]loner{}
	sums, excess := map[int]float64{}, map[int]float64{}
	var parts []int32 // that exceed those of the others
	for i := range m.slots {
		if s := &m.slots[i]; s.call != nil || s.join {
			continue
		}
		slot := int32(i)
		for _, rank := range []int{0, m.old.ranks - 1} {
			own := m.spentAt(slot, rank).compute
			sums[rank] += own
			const far = 1.5 // times the longest of the others
			share, longest := m.loneShare(slot, rank)
			if _, known := m.lone[slot]; known || own <= far*longest || share == 0 {
				continue
			}
			if m.lone[slot] = (loner{rank, share}); share < 1 {
				parts = append(parts, slot)
				excess[rank] += own * share
			}
		}
	}
	const least = 0.05 // of the calcs of a rank: noise of short calcs
	for _, i := range parts {
		if rank := m.lone[i].rank; excess[rank] < least*sums[rank] {
			delete(m.lone, i)
		}
	}
}

// loneShare returns the part of the computation of a slot by which a rank exceeds the mean of the others, and the
// longest of the others: 1 if it alone has the slot, 0 if less than half of the others have it.
func (m *model) loneShare(slot int32, rank int) (share, longest float64) {
	own := m.spentAt(slot, rank)
	if onlyRank(m.opAt[slot]) == rank && own.compute > 0 {
		return 1, 0
	}
	sum, n := 0.0, 0
	for other, op := range m.opAt[slot] {
		if op >= 0 && other != rank {
			cost := m.spentAt(slot, other).compute
			longest, sum, n = max(longest, cost), sum+cost, n+1
		}
	}
	if all := own.compute + own.alone; 2*n >= m.old.ranks && all > 0 {
		share = max(0, 1-sum/float64(n)/all)
	}
	return share, longest
}

// shareLone makes the parts of calcs that one rank alone has in a trace parts of those at the same sites of the others.
func shareLone(models []*model) {
	var found [2]map[site]bool // of the first and the last rank
	for i := range found {
		found[i] = map[site]bool{}
	}
	sites := make([]map[site][]int32, len(models))
	for k, m := range models {
		sites[k] = m.sites()
		for at, slots := range sites[k] {
			for _, i := range slots {
				if l, some := m.lone[i]; some && l.share < 1 && at.level == 0 {
					found[min(l.rank, 1)][at] = true
				}
			}
		}
	}
	for k, m := range models {
		for n, rank := range []int{0, m.old.ranks - 1} {
			for at := range found[n] {
				for _, i := range sites[k][at] {
					share, _ := m.loneShare(i, rank)
					if _, known := m.lone[i]; !known && share > 0 && share < 1 {
						m.lone[i] = loner{rank, share}
					}
				}
			}
		}
	}
}

// loneAt returns the computation of a slot that a rank alone has.
func (m *model) loneAt(slot int32, rank int) float64 {
	s := m.spentAt(slot, rank)
	if at, some := m.lone[slot]; some && at.rank == rank && at.share == 1 {
		return s.compute
	}
	return s.alone
}

// costAt returns the cost of a slot of a recorded rank on the new ranks.
func (g *target) costAt(slot int32, rank int) spent {
	s := g.spentAt(slot, rank)
	return spent{s.compute * g.compute[slot].float(), s.alone * g.aloneOf(slot).float(),
		s.inCalls * g.calling[slot].float()}
}

// aloneOf returns the factor of what one rank alone has of the computation of a slot.
func (g *target) aloneOf(slot int32) share {
	if f, own := g.alone[slot]; own {
		return f
	}
	return g.compute[slot]
}

// costOf returns the cost of a slot that is made a number of times, on the new ranks.
func (g *target) costOf(slot int32, w *weights, times int) (all spent) {
	for rank, k := range w.each {
		if k > 0 {
			all.add(g.costAt(slot, rank), float64(times)*k)
		}
	}
	return all
}

// computeOf returns the factor of the computation of a slot on a rank that has the calcs of a recorded one.
func (g *target) computeOf(slot int32, from int32) share {
	f := g.compute[slot]
	if at, some := g.lone[slot]; some && at.rank == int(from) && at.share < 1 {
		if own := g.aloneOf(slot); own != f {
			return fractionOf(float64(own.float()*at.share) + float64(f.float()*(1-at.share)))
		}
	}
	return f
}

// openTime is time of which one recorded trace does not show how it grows.
type openTime struct {
	what   string
	kept   string  // how it grows in the new trace
	growth Growth  // the fastest one that is likely
	change float64 // of the length of the new trace if it grows so, relative
}

func (o *openTime) text() string {
	by, change := "longer", 100*o.change
	if change < 0 {
		by, change = "shorter", -change
	}
	return fmt.Sprintf("at most %s, which makes the trace %.0f %% %s", o.growth.basis().text(), change, by)
}

// openTimes returns the times of which one recorded trace does not show how they grow: those in calls that make
// communicators, at most as N log2 N, as algorithms that exchange and sort values of all ranks; and the calcs that one
// rank alone has, at most as N, outside of rounds whose number grows.
func (g *target) openTimes() (all []openTime) {
	if g.o.times != nil || g.o.Growth != Unknown || g.old.ranks == g.new.ranks {
		return nil
	}
	times := g.times()
	calls := openTime{what: "the growth of the time in calls of MPI such as those that make communicators (" +
		g.firstCalls() + ")", kept: Fixed.basis().text(), growth: Linearithmic}
	var alone [2]openTime // of the first and the last rank
	longest := 0.0
	for rank := range g.old.ranks {
		sum, own := spent{}, openTime{growth: Linear}
		for i := range g.slots {
			slot := int32(i)
			if s := &g.slots[i]; s.call != nil || s.join {
				continue
			}
			sum.add(g.costAt(slot, rank), float64(times[i]))
			if l := g.loopOf[g.slots[i].place]; l < 0 || g.keepsRounds(&g.loops[l]) {
				grows := g.growth(Linear) - g.aloneOf(slot).float()
				own.change += float64(float64(times[i]) * g.loneAt(slot, rank) * grows)
			}
		}
		longest = max(longest, sum.all())
		calls.change = max(calls.change, sum.inCalls)
		if own.change != 0 {
			own.what = fmt.Sprintf("the growth of calcs that only rank %d has", rank)
			own.kept = g.usualTrend().text()
			alone[min(rank, 1)] = own
		}
	}
	length := longest + g.outside()
	calls.change *= g.growth(Linearithmic) - 1
	const least = 0.01
	for _, o := range []openTime{calls, alone[0], alone[1]} {
		if o.change /= length; math.Abs(o.change) >= least {
			all = append(all, o)
		}
	}
	return all
}

// shrinking returns the share of the calcs of the longest rank whose time becomes less than on the recorded ranks of
// any trace, the factor by which it does, and the change of the length of the new trace, relative, if it did not. The
// traces do not show whether it has parts that stop shrinking.
func (g *target) shrinking() (share, factor, change float64) {
	w := weights{make([]float64, g.old.ranks)}
	w.each[g.longest()] = 1
	all, sum := g.trends(&w)
	now, before := 0.0, 0.0
	for _, c := range all {
		t := g.usualTrend()
		switch {
		case c.calls && c.trends == nil:
			continue
		case c.trends != nil:
			t = g.likeliest(c.trends)
		}
		least, f := 1.0, g.factor(t)
		for _, grid := range g.o.seen {
			least = min(least, t.of(&g.old, product(grid), grid))
		}
		if f < least {
			now, before = now+c.cost, before+float64(c.cost*least/f)
		}
	}
	if now == 0 {
		return 0, 1, 0
	}
	return now / sum, now / before, (before - now) / (sum + g.outside())
}

// growth returns the factor of times with a growth.
func (g *target) growth(by Growth) float64 { return g.factor(trend{{1, by.basis()}}) }

// outside returns the measured time of the recorded trace that is not in the longest calcs of a rank, 0 if it has no
// measured times.
func (g *target) outside() float64 {
	span, longest := dag.Time(0), dag.Time(0)
	for _, r := range g.from.Ranks {
		first, last, calcs := dag.Unmeasured, dag.Unmeasured, dag.Time(0)
		for i, kind := range r.Kind {
			start, end := r.Measured(i)
			if start != dag.Unmeasured && (first == dag.Unmeasured || start < first) {
				first = start
			}
			if end != dag.Unmeasured && (last == dag.Unmeasured || end > last) {
				last = end
			}
			if kind == dag.Calc {
				calcs += r.CalcTime(i)
			}
		}
		longest = max(longest, calcs)
		if first != dag.Unmeasured && last != dag.Unmeasured {
			span = max(span, last-first)
		}
	}
	return max(0, float64(span)-float64(longest))
}

// openDoubts returns doubts about times of which one trace does not show how they grow, if the length of the new trace
// differs by more than the error that it may have. [Options.Likeliest] leaves it at warnings.
func (g *target) openDoubts() (all []doubt) {
	sum := 0.0
	for _, o := range g.open {
		sum += o.change
	}
	if g.o.Likeliest || math.Abs(sum) <= maxError*(1+sum) {
		return nil
	}
	for _, o := range g.open {
		all = append(all, doubt{o.what, []string{o.kept, o.text()}, giveGrowth})
	}
	return all
}
