// This file computes the rates of flows and when they end. Its rules are those of SimGrid's fluid model;
// docs/reference/backends/flow.md states them.

package flow

import (
	"math"
	"slices"
)

// route is the links that a flow uses. Flows may share it.
type route struct {
	links   []uint32
	weights []float64 // bytes that a byte of the flow takes on the link

	latency float64 // of the path, in picoseconds
	penalty float64 // in seconds, unless all flows have the same weight
	bound   float64 // largest share of a flow in bytes per second
	alone   float64 // share of a flow without others in bytes per second
}

// fluid shares links among flows: weighted max-min fairness with bounds.
//
// The level of a flow is the product of its share and its penalty. Filling raises the levels of all flows together; a
// link that is full stops those of its flows at its own level, and a bound that of one flow. So the level of a flow is
// the smallest of its links' levels and its bound's, and the level of a link follows from those that its flows have
// without it. A change of flows changes the levels of their links; these change those of flows, and so on, from the
// lowest level up: what has a lower level than a change does not depend on it. Only levels that change cost anything.
// If the changes of a round visit flows more often than filling, which visits each flow once per link, all levels are
// computed anew by filling.
//
// Times are in picoseconds since the start of the run. They are not summed: the end of a flow follows from the time of
// its last change, the bytes that were left then, and its rate.
type fluid struct {
	links  []link
	flows  []stream
	free   []uint32     // unused entries of flows
	unused [][][]uint32 // memory of stream.at, by length
	now    float64

	// Flows by the time of their next event: the end of their latency phase, or of the flow, or before these the
	// departure of the last byte. They are apart because few flows are in their latency phase at a time.
	starting, ending minHeap
	departed         []uint32 // flows whose last byte left in the latest step

	// levels has the level of each link: that of its flows which nothing else limits, in bytes. It is infinite for
	// links that are not full.
	levels []float64
	loads  []load
	limits []limit // by flow
	marks  []mark  // by flow
	groups []group // by link

	// links whose level has to be computed, by the lowest level of a change that it does not follow yet, or by its own
	// level if that is higher: links with lower levels, which may change it again, come first
	pending minHeap
	round   uint32    // of changes at one time
	changed []uint32  // flows whose level may have changed in this round
	hops    int       // of active flows
	work    int       // users visited in this round
	own     []uint32  // flows that a link limits
	sums    []sums    // by link, while flows move together; 0 otherwise
	touched []uint32  // links with sums
	others  []other   // levels of the users of a link
	bounds  []float64 // of the users of a link
	filling []other   // those that fill does not know to be lower than the level
	rest    filler
}

// limit is what limits an active flow.
type limit struct {
	level float64 // share times penalty; 0 before the flow is active
	by    uint32  // link; noLink: the bound
}

// mark is the level of a flow before its latest change. It is apart from the flow because a change of a link visits
// nothing else of most flows.
type mark struct {
	before float64 // level at the beginning of the round
	round  uint32  // in which its level changed last
}

// group is the flows that a link limits: what they take of other links together. It spares a change of the link's level
// to visit the links of each flow.
type group struct {
	parts []part  // of other links; those of flows that came or went are at the end
	links int     // number of parts without these
	most  float64 // not more than the smallest bound of a flow
	known bool    // parts are those of the present flows, and all have the level of the link
}

// part is the sum of the ratios of some flows on a link, or a term of it.
type part struct {
	ratio float64
	link  uint32
	flows int32 // their number
}

// sums are of the ratios, of the changes of use, and of the numbers of some flows on a link.
type sums struct {
	ratio, change float64
	flows         int32
	listed        bool // the link is in touched
}

// smallGroup is the number of flows below which a group would spare nothing.
const smallGroup = 4

// other is the level of a user of a link without that link.
type other struct {
	level float64
	ratio float64
}

// link is a directed link, or several that all flows use in equal parts.
type link struct {
	capacity float64 // bytes per second, of all ports
	fat      bool    // limits each flow, not their sum
	merged   int32   // number of ports beyond the first

	users []user // active flows
}

// load is the use of a link, unless it is full. It is apart from the link because most changes of flows need nothing
// else of most links.
type load struct {
	used  float64 // sum of the products of ratio and level of its users
	most  float64 // largest use of a link that is certainly not full; none if the link limits each flow
	stale uint32  // changes of used since it was last summed
}

// load returns the load of a link without users.
func (l *link) load() load {
	if l.fat {
		return load{most: math.Inf(-1)}
	}
	return load{most: l.capacity * (1 - slack)}
}

// ports returns the number of ports.
func (l *link) ports() int { return int(l.merged) + 1 }

// user is an active flow of a link.
type user struct {
	flow  uint32
	hop   uint32  // index in the flow's route
	ratio float64 // weight on the link divided by penalty
}

// stream is a flow.
type stream struct {
	route   *route
	links   []uint32
	most    float64 // largest level
	inverse float64 // 1/penalty
	active  bool

	penalty float64  // seconds
	factor  float64  // rate per share
	left    float64  // bytes at changed
	changed float64  // time
	early   float64  // time from the departure of the last byte to its arrival; 0: unknown, or it has left
	share   float64  // bytes per second
	at      []uint32 // by hop: index in the users of the link
}

// noLink is the number of no link.
const noLink = math.MaxUint32

// psPerSecond converts seconds to picoseconds.
const psPerSecond = 1e12

// Tolerances, relative.
const (
	together  = 4e-16 // events at times that differ by less are one
	slack     = 1e-12 // a link with less capacity left may be full
	unchanged = 1e-14 // a level that differs by less is the same
)

// grain is the time in picoseconds within which events are one.
const grain = 1e-4

// restale is the number of changes after which the sums of a link are computed anew.
const restale = 1024

func newFluid(links []link) *fluid {
	s := &fluid{links: links, levels: make([]float64, len(links)), loads: make([]load, len(links)),
		groups: make([]group, len(links)), sums: make([]sums, len(links)), round: 1}
	for i := range links {
		s.levels[i], s.loads[i] = math.Inf(1), links[i].load()
	}
	return s
}

// add starts a flow of the given bytes, and returns its number. The time must not precede the last event.
func (s *fluid) add(at, bytes float64, d *demand) uint32 {
	var f uint32
	if n := len(s.free); n > 0 {
		f, s.free = s.free[n-1], s.free[:n-1]
	} else {
		f = uint32(len(s.flows))
		s.flows = append(s.flows, stream{})
		s.limits, s.marks = append(s.limits, limit{}), append(s.marks, mark{})
	}
	s.limits[f], s.marks[f] = limit{by: noLink}, mark{}
	x := &s.flows[f]
	*x = stream{route: d.route, penalty: d.penalty, inverse: 1 / d.penalty, most: d.route.bound * d.penalty,
		factor: d.factor, left: bytes, changed: at, early: d.early}
	phase := d.latency
	if d.early > 0 { // the last byte may leave before the first one arrives
		phase = min(phase, bytes/(d.route.alone*d.factor)*psPerSecond)
	}
	s.starting.set(f, at+phase)
	return f
}

// next returns the time of the next event, or infinity.
func (s *fluid) next() float64 {
	s.settle()
	q := s.earliest()
	if q.empty() {
		return math.Inf(1)
	}
	return q.first().key()
}

// earliest returns the queue with the next event. It is empty if there is none.
func (s *fluid) earliest() *minHeap {
	if s.ending.empty() || !s.starting.empty() && s.starting.first().before(s.ending.first()) > 0 {
		return &s.starting
	}
	return &s.ending
}

// step handles the events of the next time and appends the flows that end to ended. The caller releases their numbers.
func (s *fluid) step(ended []uint32) []uint32 {
	t := s.next()
	s.now = max(s.now, t)
	s.departed = s.departed[:0]
	until := t + max(grain, t*together)
	for {
		q := s.earliest()
		if q.empty() || q.first().key() > until {
			return ended
		}
		first := q.first()
		f := first.number
		q.remove(f)
		x := &s.flows[f]
		switch {
		case x.early > 0 && first.key() < s.arrival(x):
			q.set(f, s.arrival(x))
			if x.route != nil {
				x.early = 0
				s.departed = append(s.departed, f)
			}
		case x.active:
			s.leave(f)
			ended = append(ended, f)
		case x.left <= 0:
			ended = append(ended, f)
		case x.route != nil: // otherwise, it waits for a path
			s.enter(f)
		}
	}
}

// arrival returns the end of a flow that goes on with its share or, before its bytes arrive, that of its latency phase.
func (s *fluid) arrival(x *stream) float64 {
	if !x.active {
		return x.changed + x.early
	}
	return x.changed + x.left/(x.share*x.factor)*psPerSecond
}

// release makes the number of an ended flow available.
func (s *fluid) release(f uint32) {
	s.flows[f].route = nil
	s.free = append(s.free, f)
}

// enter ends the latency phase of a flow.
func (s *fluid) enter(f uint32) {
	x := &s.flows[f]
	x.active, x.share, x.changed = true, 0, s.now
	x.links = x.route.links
	x.at = s.allocate(len(x.route.links))
	s.hops += len(x.at)
	for hop, i := range x.route.links {
		l := &s.links[i]
		x.at[hop] = uint32(len(l.users))
		l.users = append(l.users, user{f, uint32(hop), x.route.weights[hop] * x.inverse})
	}
	s.move(f, s.limit(x, noLink), noLink)
}

// leave removes an active flow.
func (s *fluid) leave(f uint32) {
	x := &s.flows[f]
	level := s.limits[f].level
	s.join(s.limits[f].by, x, -1)
	s.hops -= len(x.at)
	for hop, i := range x.route.links {
		l := &s.links[i]
		at, last := x.at[hop], len(l.users)-1
		ratio := l.users[at].ratio
		moved := l.users[last]
		l.users[at] = moved
		s.flows[moved.flow].at[moved.hop] = at
		l.users = l.users[:last]
		if last == 0 && math.IsInf(s.levels[i], 1) {
			s.loads[i].used, s.loads[i].stale = 0, 0
		} else {
			s.alter(i, -ratio*level, level)
		}
	}
	x.active = false
	s.recycle(x.at)
}

// limit returns what limits a flow without one of its links.
func (s *fluid) limit(x *stream, without uint32) limit {
	least := limit{x.most, noLink}
	for _, i := range x.route.links {
		if l := s.levels[i]; l < least.level && i != without {
			least = limit{l, i}
		}
	}
	return least
}

// record notes that the level of a flow may have changed in this round.
func (s *fluid) record(f uint32) {
	if m := &s.marks[f]; m.round != s.round {
		*m = mark{s.limits[f].level, s.round}
		s.changed = append(s.changed, f)
	}
}

// move changes the level of a flow because that of one of its links has changed.
func (s *fluid) move(f uint32, to limit, by uint32) {
	x := &s.flows[f]
	s.record(f)
	from := s.limits[f].level
	s.bind(f, to)
	change, least := (to.level-from)*x.inverse, min(from, to.level)
	weights := x.route.weights[:len(x.links)]
	for hop, i := range x.links {
		if i != by {
			s.alter(i, weights[hop]*change, least)
		}
	}
}

// allocate returns memory for the indices of a flow with the given number of hops.
func (s *fluid) allocate(hops int) []uint32 {
	if hops < len(s.unused) {
		if lists := s.unused[hops]; len(lists) > 0 {
			s.unused[hops] = lists[:len(lists)-1]
			return lists[len(lists)-1]
		}
	}
	return make([]uint32, hops)
}

// recycle makes the memory of a flow's indices available.
func (s *fluid) recycle(at []uint32) {
	for len(s.unused) <= len(at) {
		s.unused = append(s.unused, nil)
	}
	s.unused[len(at)] = append(s.unused[len(at)], at)
}

// use changes the use of a link, and returns its load.
func (s *fluid) use(i uint32, change float64) *load {
	l := &s.loads[i]
	l.used += change
	if l.stale++; l.stale >= restale {
		s.sumUse(i)
	}
	return l
}

// sumUse sums the use of a link, so that rounding errors do not accumulate.
func (s *fluid) sumUse(i uint32) {
	l := &s.loads[i]
	l.stale, l.used = 0, 0
	for _, u := range s.links[i].users {
		l.used += u.ratio * s.limits[u.flow].level
	}
}

// settle computes the levels that changes affect, and the events that follow.
func (s *fluid) settle() {
	if s.pending.empty() && len(s.changed) == 0 {
		return
	}
	for most := fillWork * (s.hops + fillHops); !s.pending.empty(); {
		if s.work > most {
			s.refill()
			break
		}
		i := s.pending.first().number
		s.pending.remove(i)
		s.update(i)
	}
	for _, f := range s.changed {
		s.apply(f)
	}
	s.changed = s.changed[:0]
	s.work = 0
	s.round++
}

// All levels are computed anew when the links of a round had fillWork times as many users as all links together and
// fillHops.
const (
	fillWork = 2
	fillHops = 1000
)

// update computes the level of a link.
func (s *fluid) update(i uint32) {
	l := &s.links[i]
	if math.IsInf(s.levels[i], 1) && s.loads[i].used <= s.loads[i].most {
		return
	}
	s.work += len(l.users)
	if !l.fat && s.shift(i, l) {
		return
	}
	s.others = s.others[:0]
	sum := 0.0
	for _, u := range l.users {
		x := s.limits[u.flow]
		if x.by == i {
			x = s.limit(&s.flows[u.flow], i)
		}
		sum += u.ratio * x.level
		s.others = append(s.others, other{x.level, u.ratio})
	}
	old, level := s.levels[i], math.Inf(1)
	switch {
	case l.fat:
		level = s.fatLevel(l)
	case sum > l.capacity:
		s.filling = append(s.filling[:0], s.others...)
		level = fill(l.capacity, s.filling)
	}
	if math.IsInf(level, 1) {
		s.loads[i].used, s.loads[i].stale = sum, 0
	}
	if same(level, old) {
		return
	}
	s.levels[i] = level
	s.regroup(i)
	for k := range l.users {
		f := l.users[k].flow
		x := &s.limits[f]
		to := limit{level, i}
		if s.others[k].level < level {
			if x.by != i {
				continue
			}
			to = s.limit(&s.flows[f], i)
		}
		if !same(to.level, x.level) {
			s.move(f, to, i)
		} else {
			s.bind(f, limit{x.level, to.by})
		}
	}
}

// bind sets what limits a flow. The groups of links change with it.
func (s *fluid) bind(f uint32, to limit) {
	x, from := &s.flows[f], s.limits[f].by
	s.limits[f] = to
	if from == to.by || to.by != noLink && to.level != s.levels[to.by] {
		s.regroup(to.by)
	}
	if from != to.by {
		s.join(to.by, x, 1)
		s.join(from, x, -1)
	}
}

// join adds a flow to the group of a link, or removes it if times is -1.
func (s *fluid) join(i uint32, x *stream, times int32) {
	if i == noLink || !s.groups[i].known {
		return
	}
	g := &s.groups[i]
	if len(g.parts)+len(x.links) > 2*g.links {
		g.known = false
		return
	}
	g.most = min(g.most, x.most)
	for hop, link := range x.links {
		if link != i {
			g.parts = append(g.parts, part{float64(times) * x.route.weights[hop] * x.inverse, link, times})
		}
	}
}

// regroup notes that the flows of the group of a link, if it is one, may not have its level.
func (s *fluid) regroup(i uint32) {
	if i != noLink {
		s.groups[i].known = false
	}
}

// fatLevel returns the level of a link that limits each flow, among others with the levels s.others: that of the user
// with the highest ratio which nothing else limits to less. A bound that is at most sameBound above the lower one of
// another user limits, too: SimGrid does not distinguish them.
func (s *fluid) fatLevel(l *link) float64 {
	level := math.Inf(1)
	for _, u := range s.others {
		if own := l.capacity / u.ratio; u.level >= own {
			level = min(level, own)
		}
	}
	bounds := s.bounds[:0]
	for k, u := range s.others {
		if u.level < l.capacity/u.ratio && u.level == s.flows[l.users[k].flow].most {
			bounds = append(bounds, u.level)
		}
	}
	s.bounds = bounds
	highest := -1.0
	for _, b := range bounds {
		if b < level {
			highest = max(highest, b)
		}
	}
	if highest+sameBound <= level { // no user has its bound there
		return level
	}
	slices.Sort(bounds)
	level = math.Inf(1)
	for k, u := range s.others {
		own := l.capacity / u.ratio
		if u.level < own || own >= level {
			continue
		}
		if n, _ := slices.BinarySearch(bounds, own); n > 0 &&
			u.level == s.flows[l.users[k].flow].most && u.level < bounds[n-1]+sameBound {
			continue
		}
		level = own
	}
	return level
}

// same reports whether two levels are equal but for rounding.
func same(a, b float64) bool { return a == b || math.Abs(a-b) <= unchanged*min(a, b) }

// shift updates the level of a full link if it limits the same flows as before: those with its level, which share what
// the others leave. Otherwise, it returns false.
func (s *fluid) shift(i uint32, l *link) bool {
	old, rest, ratio, highest := s.levels[i], l.capacity, 0.0, 0.0
	own := s.own[:0]
	for _, u := range l.users {
		if x := s.limits[u.flow]; x.by == i {
			ratio += u.ratio
			own = append(own, u.flow)
		} else {
			rest -= u.ratio * x.level
			if x.level > highest {
				highest = x.level
			}
		}
	}
	s.own = own
	if ratio == 0 || rest <= 0 {
		return false
	}
	level := rest / ratio
	if same(level, old) {
		return highest <= old*(1+unchanged)
	}
	if highest > level {
		return false
	}
	if level > old && !s.allowAll(own, level, i) { // another link or a bound limits flows now
		return false
	}
	s.levels[i] = level
	s.moveAll(own, old, i)
	return true
}

// moveAll changes the level of all flows that a link limits to its own, which was old before. Each other link that the
// flows share is changed once.
func (s *fluid) moveAll(flows []uint32, old float64, by uint32) {
	level, g := s.levels[by], &s.groups[by]
	least := min(old, level)
	if g.known {
		for _, f := range flows {
			s.record(f)
			s.limits[f].level = level
		}
		s.merge(g)
		for _, p := range g.parts {
			s.alter(p.link, p.ratio*(level-old), least)
		}
		return
	}
	most, touched := math.Inf(1), s.touched[:0]
	for _, f := range flows {
		x, from := &s.flows[f], s.limits[f].level
		s.record(f)
		s.limits[f].level = level
		most = min(most, x.most)
		weights := x.route.weights[:len(x.links)]
		for hop, i := range x.links {
			p := &s.sums[i]
			if !p.listed {
				p.listed = true
				touched = append(touched, i)
			}
			ratio := weights[hop] * x.inverse
			p.ratio += ratio
			p.flows++
			p.change += ratio * (level - from)
		}
	}
	s.touched = touched
	g.most, g.known, g.parts = most, len(flows) >= smallGroup, g.parts[:0]
	for _, i := range touched {
		p := s.sums[i]
		s.sums[i] = sums{}
		if i == by {
			continue
		}
		if g.known {
			g.parts = append(g.parts, part{p.ratio, i, p.flows})
		}
		s.alter(i, p.change, least)
	}
	g.links = len(g.parts)
}

// merge adds the parts of flows that came or went to those of the same links. A change of a link must be complete,
// because its use may be summed anew then.
func (s *fluid) merge(g *group) {
	if len(g.parts) == g.links {
		return
	}
	touched := s.touched[:0]
	for _, p := range g.parts {
		q := &s.sums[p.link]
		if !q.listed {
			q.listed = true
			touched = append(touched, p.link)
		}
		q.ratio += p.ratio
		q.flows += p.flows
	}
	s.touched, g.parts = touched, g.parts[:0]
	for _, i := range touched {
		if q := s.sums[i]; q.flows > 0 {
			g.parts = append(g.parts, part{q.ratio, i, q.flows})
		}
		s.sums[i] = sums{}
	}
	g.links = len(g.parts)
}

// alter changes the use of a link by flows with at least a given level. A full link follows later.
func (s *fluid) alter(i uint32, change, least float64) {
	if level := s.levels[i]; !math.IsInf(level, 1) { // its use is not needed until it is no longer full
		s.pending.lower(i, max(least, level))
	} else if l := s.use(i, change); l.used > l.most {
		s.pending.lower(i, least)
	}
}

// allowAll reports whether nothing but a link limits those of its flows that it limits now to less than a level.
func (s *fluid) allowAll(flows []uint32, level float64, by uint32) bool {
	g := &s.groups[by]
	if !g.known {
		for _, f := range flows {
			if !s.allows(&s.flows[f], level, by) {
				return false
			}
		}
		return true
	}
	if g.most < level {
		return false
	}
	s.merge(g)
	for _, p := range g.parts {
		if s.levels[p.link] < level {
			return false
		}
	}
	return true
}

// allows reports whether nothing but one of its links limits a flow to less than a level.
func (s *fluid) allows(x *stream, level float64, without uint32) bool {
	if x.most < level {
		return false
	}
	for _, i := range x.links {
		if s.levels[i] < level && i != without {
			return false
		}
	}
	return true
}

// fill returns the level at which users with the given limits fill a capacity that is smaller than their sum. It uses
// the memory of limits.
func fill(capacity float64, limits []other) float64 {
	for {
		open := 0.0
		for _, u := range limits {
			open += u.ratio
		}
		level := capacity / open
		kept := limits[:0]
		for _, u := range limits {
			if u.level < level {
				capacity -= u.ratio * u.level
			} else {
				kept = append(kept, u)
			}
		}
		if len(kept) == len(limits) || len(kept) == 0 {
			return level
		}
		limits = kept
	}
}

// apply gives a flow the share of its level from now on.
func (s *fluid) apply(f uint32) {
	x := &s.flows[f]
	level := s.limits[f].level
	if !x.active || level == s.marks[f].before {
		return
	}
	x.left = max(0, x.left-x.share*x.factor*(s.now-x.changed)/psPerSecond)
	x.changed, x.share = s.now, level/x.penalty
	s.ending.set(f, max(s.arrival(x)-x.early, x.changed))
}
