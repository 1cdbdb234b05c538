package rescale

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// times are the trends of the calcs of a trace.
type times struct {
	compute map[int32][]trend // of slots: those that other traces allow, the likeliest first
	alone   map[int32][]trend // of parts that one rank alone has
	inCalls map[int32]trend   // of the time of slots in calls of MPI
	lone    map[int32]loner
}

// inCalls returns the time of a calc that it contains in calls of MPI.
func inCalls(r *dag.Rank, i int) dag.Time {
	if text := r.Attrs.At(i); strings.Contains(text, "calls_ps") {
		return min(dag.Time(attr.ParseCallTime(text)), r.Duration.At(i))
	}
	return 0
}

// findCallTimes sets the time that calcs contain in calls of MPI.
func (m *model) findCallTimes() {
	m.inCalls = map[int32][]dag.Time{}
	for i := range m.slots {
		if m.slots[i].call != nil {
			continue
		}
		for rank, op := range m.opAt[i] {
			if op < 0 {
				continue
			}
			if d := inCalls(m.from.Ranks[rank], int(op)); d > 0 {
				list := m.inCalls[int32(i)]
				if list == nil {
					list = make([]dag.Time, m.old.ranks)
					m.inCalls[int32(i)] = list
				}
				list[rank] = d
			}
		}
	}
}

// spent is what a calc costs: time of computation, in picoseconds, with operations, except for the part that one rank
// alone has; that part; and time in calls of MPI.
type spent struct{ compute, alone, inCalls float64 }

func (a *spent) all() float64 { return a.compute + a.alone + a.inCalls }

func (a *spent) add(b spent, times float64) {
	a.compute += float64(b.compute * times)
	a.alone += float64(b.alone * times)
	a.inCalls += float64(b.inCalls * times)
}

// spentAt returns the cost of a slot on a recorded rank.
func (m *model) spentAt(slot int32, rank int) spent {
	op := m.opAt[slot][rank]
	if op < 0 {
		return spent{}
	}
	r := m.from.Ranks[rank]
	s := spent{compute: float64(r.CalcTime(int(op))) + float64(r.Flops.At(int(op)))}
	if list := m.inCalls[slot]; list != nil {
		s.inCalls = float64(list[rank])
		s.compute = max(0, s.compute-s.inCalls)
	}
	if at, some := m.lone[slot]; some && at.rank == rank && at.share < 1 {
		s.alone = s.compute * at.share
		s.compute -= s.alone
	}
	return s
}

// weights are how often each recorded rank stands for one of a number of ranks.
type weights struct{ each []float64 }

// ones are the weights of the recorded ranks themselves.
func (m *model) ones() weights {
	w := weights{make([]float64, m.old.ranks)}
	for i := range w.each {
		w.each[i] = 1
	}
	return w
}

// total is the cost of calcs and their number.
type total struct {
	spent
	ops float64
}

// totalOf returns the cost of slots on ranks, where each is made a number of times, nil for once.
func (m *model) totalOf(slots []int32, w *weights, times []int) (all total) {
	for _, i := range slots {
		n := 1.0
		if times != nil {
			n = float64(times[i])
		}
		for rank, k := range w.each {
			if k > 0 && m.opAt[i][rank] >= 0 {
				all.add(m.spentAt(i, rank), n*k)
				all.ops += n * k
			}
		}
	}
	return all
}

// site is where calcs are in the program: between which calls. Sites of higher levels are less exact.
type site struct {
	level         int
	shape         shape
	before, after call
}

const siteLevels = 4

var everywhere = site{level: siteLevels - 1} // of all calcs

// sites returns the slots of calcs at each site, in the order of the program.
func (m *model) sites() map[site][]int32 {
	all := map[site][]int32{}
	moving := make([]bool, len(m.order))
	for _, x := range m.loops {
		for b, p := range x.body {
			for round := 0; round < x.rounds && p.kind != still; round++ {
				moving[x.first+round*x.length+b] = true
			}
		}
	}
	around := make([][2]call, len(m.order)) // the calls before and after each place
	pass := func(side, from, to, step int) {
		c := call{}
		for place := from; place != to; place += step {
			around[place][side] = c
			if at := m.slots[m.order[place]].call; at != nil {
				if c = *at; moving[place] {
					c.at = vector{}
				}
				c.tag = 0 // tags may number iterations
			}
		}
	}
	pass(0, 0, len(m.order), 1)
	pass(1, len(m.order)-1, -1, -1)
	for place, i := range m.order {
		s := &m.slots[i]
		if s.call != nil || s.join || !slices.ContainsFunc(m.opAt[i], func(op int32) bool { return op >= 0 }) {
			continue
		}
		for level := range siteLevels {
			at := siteOf(level, s.shape(), around[place])
			all[at] = append(all[at], i)
		}
	}
	return all
}

func siteOf(level int, s shape, around [2]call) site {
	at := site{level: level}
	switch level {
	case 0:
		at.shape, at.before, at.after = s, around[0], around[1]
	case 1:
		at.shape = s
		at.before = call{kind: around[0].kind, sub: around[0].sub, rule: around[0].rule}
		at.after = call{kind: around[1].kind, sub: around[1].sub, rule: around[1].rule}
	case 2:
		at.shape = s
	}
	return at
}

// donorWeights returns how often each recorded rank gives its calcs to a rank of a target.
func (g *target) donorWeights() weights {
	w := weights{make([]float64, g.old.ranks)}
	for _, from := range g.donors {
		w.each[from]++
	}
	return w
}

// learnTimes compares the calcs with those at the same site of other traces, and sets the trends that give them.
func (m *model) learnTimes(ctx context.Context, others []*model, o *Options) error {
	shareLone(append([]*model{m}, others...))
	l := timeLearner{model: m, found: &times{compute: map[int32][]trend{}, alone: map[int32][]trend{},
		inCalls: map[int32]trend{}, lone: m.lone}}
	for _, other := range others {
		try := *o
		try.Ranks, try.Grid = other.old.ranks, other.old.grid
		g, _, err := m.targetFor(try)
		if err != nil {
			return err
		}
		if _, err := g.assignDonors(ctx); err != nil {
			return err
		}
		l.others = append(l.others, comparison{model: other, sites: other.sites(), ones: other.ones(),
			weights: g.donorWeights(), times: g.times(), done: map[int32]bool{}})
	}
	mine := m.sites()
	if seen := l.seen(mine[everywhere], everywhere, -1); seen != nil {
		l.overall = m.trendsOf(seen)
	}
	for level := range siteLevels {
		for at, slots := range mine { // sites of a level share no slots
			if at.level == level {
				l.learn(slots, at)
			}
		}
	}
	for at, slots := range mine {
		if at.level > 0 {
			continue
		}
		if seen := l.seenOf(slots, at, func(s spent) float64 { return s.alone }); seen != nil {
			for _, i := range slots {
				if m.lone[i].share > 0 && m.lone[i].share < 1 {
					l.found.alone[i] = m.trendsOf(seen)
				}
			}
		}
		slots = slices.DeleteFunc(slices.Clone(slots), func(i int32) bool { return m.inCalls[i] == nil })
		if len(slots) == 0 {
			continue
		}
		inCalls := func(s spent) float64 { return s.inCalls }
		seen := l.seenOf(slots, at, inCalls)
		if seen == nil {
			seen = l.seenOf(mine[everywhere], everywhere, inCalls)
		}
		if seen != nil {
			for _, i := range slots {
				l.found.inCalls[i] = m.trendOfCalls(seen)
			}
		}
	}
	o.times = l.found
	return nil
}

// comparison is another trace, and how the recorded ranks make up as many as it has.
type comparison struct {
	*model
	sites   map[site][]int32
	done    map[int32]bool // slots whose counterparts have trends
	ones    weights
	weights weights // of the recorded ranks
	times   []int   // of slots of the recorded trace
}

// timeLearner finds the trends of calcs.
type timeLearner struct {
	*model
	others  []comparison
	found   *times
	overall []trend // of all calcs together, or nil
}

// learn sets the trends of the slots at a site that have none, if the other traces have as many calcs there: one for
// all, or that of each if the traces show that they differ.
func (l *timeLearner) learn(slots []int32, at site) {
	slots = slices.DeleteFunc(slices.Clone(slots), func(i int32) bool { return l.found.compute[i] != nil })
	seen := l.seen(slots, at, -1)
	switch {
	case len(slots) == 0 || seen == nil && at != everywhere:
		return
	case seen == nil:
		l.set(slots, l.overall)
		return
	}
	l.set(slots, l.trendsNear(seen))
	if at.level == 0 && len(slots) > 1 {
		l.learnEach(slots, at, seen)
	}
	for k := range l.others {
		for _, i := range l.others[k].sites[at] {
			l.others[k].done[i] = true
		}
	}
}

func (l *timeLearner) set(slots []int32, trends []trend) {
	for _, i := range slots {
		l.found.compute[i] = trends
	}
}

// learnEach sets the trend of each of the slots at a site if their times differ from those that are seen of all.
func (l *timeLearner) learnEach(slots []int32, at site, seen []timed) {
	for k := range l.others {
		if len(l.others[k].sites[at]) != len(slots) {
			return
		}
	}
	own := make([][]timed, len(slots))
	ones := l.model.ones()
	differ, sum := 0.0, 0.0
	for n, i := range slots {
		if own[n] = l.seen([]int32{i}, at, n); own[n] == nil {
			return
		}
		cost := l.totalOf([]int32{i}, &ones, nil).compute
		for k := range seen {
			differ += float64(cost * math.Abs(own[n][k].ratio/seen[k].ratio-1))
			sum += cost
		}
	}
	const noise = 0.1
	if differ <= noise*sum {
		return
	}
	for n, i := range slots {
		l.set([]int32{i}, l.trendsNear(own[n]))
	}
}

// trendsNear returns the trends that give the times at a site: those of all calcs together if they are near and none is
// certain.
func (l *timeLearner) trendsNear(seen []timed) []trend {
	all := l.trendsOf(seen)
	const near = 0.02
	if len(all) == 1 || l.overall == nil || slices.ContainsFunc(seen, func(at timed) bool {
		return math.Abs(l.overall[0].of(&l.old, at.ranks, at.grid)/at.ratio-1) > near
	}) {
		return all
	}
	return l.overall
}

// seen returns the times of the other traces at a site relative to those of slots, or of the n-th calc there if n is
// not negative. It returns nil if a trace has another number of calcs there than the slots make on its ranks, such as
// for calcs that tracers omit.
func (l *timeLearner) seen(slots []int32, at site, n int) (seen []timed) {
	const near = 0.01
	for k := range l.others {
		other := &l.others[k]
		theirs := other.sites[at]
		if n >= 0 {
			theirs = theirs[n : n+1]
		}
		theirs = slices.DeleteFunc(slices.Clone(theirs), func(i int32) bool { return other.done[i] })
		a, b := l.totalOf(slots, &other.weights, other.times), other.totalOf(theirs, &other.ones, nil)
		if a.compute <= 0 || b.compute <= 0 || at != everywhere && math.Abs(a.ops-b.ops) > near*b.ops {
			return nil
		}
		seen = append(seen, timed{ranks: other.old.ranks, grid: other.old.grid, ratio: b.compute / a.compute,
			rough: math.Abs(a.ops-b.ops) > near*b.ops})
	}
	return seen
}

// seenOf returns a part of the times of the other traces at a site relative to those of slots, nil if a trace has none.
func (l *timeLearner) seenOf(slots []int32, at site, part func(spent) float64) (seen []timed) {
	for k := range l.others {
		other := &l.others[k]
		a := part(l.totalOf(slots, &other.weights, other.times).spent)
		b := part(other.totalOf(other.sites[at], &other.ones, nil).spent)
		if a <= 0 || b <= 0 {
			return nil
		}
		seen = append(seen, timed{ranks: other.old.ranks, grid: other.old.grid, ratio: b / a})
	}
	return seen
}

// setTimes sets the factors of calcs.
func (g *target) setTimes() {
	usual := g.usualTrend().share(&g.old, g.new.ranks, g.new.grid)
	g.compute, g.calling, g.alone = map[int32]share{}, map[int32]share{}, map[int32]share{}
	for i := range g.slots {
		if g.slots[i].call != nil {
			continue
		}
		f, slot := usual, int32(i)
		calls := share{1, 1}
		if t := g.o.times; t != nil && g.old.ranks != g.new.ranks {
			if all := t.compute[slot]; all != nil {
				f = g.likeliest(all).share(&g.old, g.new.ranks, g.new.grid)
			}
			if c := t.inCalls[slot]; c != nil {
				calls = c.share(&g.old, g.new.ranks, g.new.grid)
			}
			if a := t.alone[slot]; a != nil {
				g.alone[slot] = g.likeliest(a).share(&g.old, g.new.ranks, g.new.grid)
			}
		} else if t == nil && g.o.Growth != Unknown {
			calls = fractionOf(g.growth(g.o.Growth))
			switch g.lone[slot].share {
			case 0:
			case 1:
				f = calls
			default:
				g.alone[slot] = calls
			}
		}
		g.compute[slot], g.calling[slot] = f, calls
	}
}

// usualTrend returns the trend of calcs of which no other trace shows one: that of the data of a rank.
func (g *target) usualTrend() trend {
	if g.o.Scaling == Strong {
		return trend{{1, inverse}}
	}
	return trend{{1, steady}}
}

// likeliest returns the likeliest trend of some. Two traces fit several ones alike; then it is the one from which the
// others differ least on the new ranks.
func (g *target) likeliest(all []trend) trend {
	best, least := all[0], math.Inf(1)
	if len(g.o.seen) > 1 {
		return best
	}
	for _, t := range all {
		most := 0.0
		for _, other := range all {
			most = max(most, math.Abs(math.Log(g.factor(other)/g.factor(t))))
		}
		if most < least {
			best, least = t, most
		}
	}
	return best
}

// timeOf returns the duration and operations of a calc of a rank that has those of a recorded one.
func (g *target) timeOf(slot int32, from int32) (d dag.Time, flops int64) {
	at := g.opAt[slot][from]
	if at < 0 {
		return 0, 0
	}
	r, f := g.from.Ranks[from], g.computeOf(slot, from)
	d, flops = r.Duration.At(int(at)), r.Flops.At(int(at))
	calls := dag.Time(0)
	if list := g.inCalls[slot]; list != nil {
		calls = list[from]
	}
	scaled := scaleBytes(int64(d-calls), f.numerator, f.denominator)
	if calls > 0 {
		c := g.calling[slot]
		scaled += min(scaleBytes(int64(calls), c.numerator, c.denominator), math.MaxInt64-scaled)
	}
	return dag.Time(scaled), scaleBytes(flops, f.numerator, f.denominator)
}

// trended is calcs with the same trends.
type trended struct {
	trends []trend
	calls  bool
	cost   float64 // on the new ranks
	count  int
}

// trends returns the trends of the calcs, in the order of the program, and the cost of all calcs, on the new ranks; w
// is how often they have the calcs of each recorded rank.
func (g *target) trends(w *weights) (all []*trended, sum float64) {
	known := map[string]*trended{}
	add := func(trends []trend, calls bool, cost float64, times int) {
		key := fmt.Sprint(calls)
		for _, t := range trends {
			key += "|" + t.text()
		}
		if known[key] == nil {
			known[key] = &trended{trends: trends, calls: calls}
			all = append(all, known[key])
		}
		known[key].cost += cost
		known[key].count += times
	}
	times := g.times()
	for _, slot := range g.order {
		n := times[slot]
		if s := &g.slots[slot]; s.call != nil || s.join || n == 0 {
			continue
		}
		cost := g.costOf(slot, w, n)
		sum += cost.all()
		compute, alone, calls := g.o.times.of(slot)
		if given := []trend{{{1, g.o.Growth.basis()}}}; g.o.times == nil && g.o.Growth != Unknown {
			if alone, calls = given, given; g.lone[slot].share == 1 {
				compute = given
			}
		}
		if cost.compute > 0 {
			add(compute, false, cost.compute, n)
		}
		if cost.alone > 0 {
			add(alone, false, cost.alone, n)
		}
		if cost.inCalls > 0 {
			add(calls, true, cost.inCalls, n)
		}
	}
	return all, sum
}

// times returns how often the instances have each slot.
func (g *target) times() []int {
	times := make([]int, len(g.slots))
	for i := range g.instances {
		times[g.instances[i].slot]++
	}
	return times
}

// of returns the trends of the computation of a slot, of the part that one rank alone has, and of its calls of MPI; nil
// if nothing is known.
func (t *times) of(slot int32) (compute, alone, calls []trend) {
	if t == nil {
		return nil, nil, nil
	}
	if compute, alone = t.compute[slot], t.alone[slot]; alone == nil {
		alone = compute
	}
	if c := t.inCalls[slot]; c != nil {
		calls = []trend{c}
	}
	return compute, alone, calls
}

// maxError is the relative error that the length of a new trace may have.
const maxError = 0.15

// timesDoubt returns a doubt about the time of calcs if trends that fit all traces make that of all ranks, or that of
// the longest one, differ by more than the error that a rescaled trace may have, or nil.
func (g *target) timesDoubt() *doubt {
	if g.o.times == nil || g.old.ranks == g.new.ranks {
		return nil
	}
	longest := weights{make([]float64, g.old.ranks)}
	longest.each[g.longest()] = 1
	for _, w := range []weights{g.ones(), longest} {
		if d := g.timesDoubtOf(&w); d != nil {
			return d
		}
	}
	return nil
}

// longest returns the recorded rank with the longest calcs on the new ranks.
func (g *target) longest() (rank int) {
	sums, times := make([]float64, g.old.ranks), g.times()
	for i := range g.slots {
		if s := &g.slots[i]; s.call != nil || s.join {
			continue
		}
		for rank := range sums {
			cost := g.costAt(int32(i), rank)
			sums[rank] += float64(times[i]) * cost.all()
		}

	}
	for i, sum := range sums {
		if sum > sums[rank] {
			rank = i
		}
	}
	return rank
}

func (g *target) timesDoubtOf(w *weights) *doubt {
	all, sum := g.trends(w)
	var worst *trended
	longer, shorter, largest := 0.0, 0.0, 0.0
	for _, c := range all {
		if c.trends == nil {
			continue
		}
		up, down, now := 0.0, 0.0, g.factor(g.likeliest(c.trends))
		for _, t := range c.trends {
			d := c.cost * (g.factor(t)/now - 1)
			up, down = max(up, d), max(down, -d)
		}
		longer, shorter = longer+up, shorter+down
		if d := max(up, down); d > largest {
			worst, largest = c, d
		}
	}
	if max(longer, shorter) <= maxError*sum {
		return nil
	}
	d := &doubt{what: fmt.Sprintf("the time of calcs, of %.0f %% of it", 100*worst.cost/sum)}
	likeliest := g.likeliest(worst.trends)
	for _, t := range append([]trend{likeliest}, worst.trends...) {
		if text := fmt.Sprintf("times %.3g (%s)", g.factor(t), t.text()); !slices.Contains(d.choices, text) {
			d.choices = append(d.choices, text)
		}
	}
	return d
}

// factor returns the factor of times with a trend.
func (g *target) factor(t trend) float64 { return t.of(&g.old, g.new.ranks, g.new.grid) }

// reportTimes reports the trends of the calcs, or the time in calls of MPI of which one trace does not show how it
// grows.
func (g *target) reportTimes(r *Report) {
	if g.old.ranks == g.new.ranks {
		return
	}
	w := g.donorWeights()
	all, sum := g.trends(&w)
	slices.SortStableFunc(all, func(a, b *trended) int { return cmp.Compare(b.cost, a.cost) })
	for _, c := range all {
		e := Times{Trend: "as sizes do", Calls: c.calls, Share: c.cost / sum, Count: c.count}
		if c.calls {
			e.Trend = "fixed"
		}
		if c.trends != nil {
			e.Trend = g.likeliest(c.trends).text()
		}
		r.Times = append(r.Times, e)
	}
	if share, factor, change := g.shrinking(); change > maxError {
		r.Assumptions = append(r.Assumptions, fmt.Sprintf("%.0f %% of the time of calcs of the longest rank keeps "+
			"shrinking, to %.2g of the least in a trace; for each percent of it that does not, the trace is %.2g %% "+
			"longer", 100*share, factor, change))
	}
	for _, o := range g.open {
		r.Open = append(r.Open, Open{o.what, o.kept, o.growth.basis().text(), o.change})
		r.Warnings = append(r.Warnings, fmt.Sprintf("one trace does not show %s: taken as %s; %s; --second-trace "+
			"shows it, --growth sets it", o.what, strings.TrimPrefix(o.kept, "as "), o.text()))
	}
}

// firstCalls returns the place of the calc with the longest time in calls of MPI.
func (g *target) firstCalls() string {
	most, text := dag.Time(0), ""
	for _, slot := range g.order {
		for rank, d := range g.inCalls[slot] {
			if d > most {
				most, text = d, fmt.Sprintf("rank %d: op %d: %v", rank, g.opAt[slot][rank], d)
			}
		}
	}
	return text
}
