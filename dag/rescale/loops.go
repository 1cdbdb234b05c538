package rescale

import (
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// loop is a run of rounds whose number, and whose partners, depend on the number of ranks: an algorithm of a
// collective.
type loop struct {
	first, length int // in model.order: the first slot, and the number of slots of a round
	rounds        int
	count         count
	body          []progress // of each slot of a round
	roots         bool       // of collectives with a root that goes from member to member
	counted       bool       // only the number of rounds shows that they depend on the number of ranks
	unsure        bool       // the number may as well be fixed
}

// count is the number of rounds as a function of the number of ranks, or of those along some dimensions of the grid.
type count struct {
	mask   int32 // bits of the dimensions, of which the longest counts; 0: all ranks
	log    bool  // binary logarithm, of the shortest dimension
	times  int   // factor; 0: half
	per    int   // divisor, if more than 1
	offset int
	fixed  bool // the offset, whatever the number of ranks
	root   bool // the logarithm of the square root, rounded up: rounds in rows of a square grid
}

func (c count) of(s *space) int {
	n := c.ranks(s)
	switch {
	case c.fixed:
		return c.offset
	case c.root:
		return bits.Len(uint(n)) / 2
	case c.log:
		return bits.Len(uint(n)) - 1 + c.offset
	case c.times == 0:
		return n/2 + c.offset
	case c.per > 1:
		return c.times*n/c.per + c.offset
	}
	return c.times*n + c.offset
}

// ranks returns the number of ranks that the count depends on.
func (c count) ranks(s *space) int {
	if c.mask == 0 {
		return s.ranks
	}
	least, most := s.ranks, 0
	for d, n := range s.grid {
		if c.mask&(1<<d) != 0 {
			least, most = min(least, n), max(most, n)
		}
	}
	if c.log {
		return least
	}
	return most
}

// progress is how the partner of a slot, its tag and its sizes change from round to round.
type progress struct {
	kind  progressKind
	dim   int     // of call.at
	start int32   // of call.at[dim] in the first round
	step  int32   // of a sum
	tags  int64   // added to the tag
	shift int     // of the tag instead: 1 doubles it, -1 halves it
	half  int     // the size: 1 doubles, -1 halves
	size  [2]size // of the first round
}

type progressKind uint8

const (
	still progressKind = iota
	sum
	double
	halve
)

// shape is what the slots of successive rounds have in common.
type shape struct {
	kind        dag.Kind
	sub         dag.Subkind
	rule        rule
	comm        int32
	stream, nic int32
	join        bool
	used        int // in another loop: like no other
}

func (s *slot) shape() shape {
	if c := s.call; c != nil {
		return shape{kind: c.kind, sub: c.sub, rule: c.rule, comm: c.comm, stream: c.stream, nic: c.nic}
	}
	return shape{kind: dag.Calc, sub: s.template.Subkind, stream: s.template.Stream, nic: s.template.NIC, join: s.join}
}

const maxBody = 64

// findLoops finds the loops. Rounds with moving partners have the same calls; the calcs between them, of which tracers
// omit short ones, may differ. Rounds with the same partners are the same in all, as only calcs separate iterations.
func (m *model) findLoops() {
	f := &loopFinder{model: m}
	for _, i := range m.order {
		s := &m.slots[i]
		if s.call == nil {
			continue
		}
		f.slots = append(f.slots, i)
		f.transposes = f.transposes || s.call.rule == transpose
		f.parted = f.parted || isMessage(s.call.kind) && s.call.rule == onLine && s.call.distance() == 1 && !s.always
	}
	f.find()
	f.addCalcs()
	f.slots, f.still, f.inLoop = m.order, true, make([]bool, len(m.order))
	for _, x := range m.loops {
		for i := x.first; i < x.first+x.length*x.rounds; i++ {
			f.inLoop[i] = true
		}
	}
	f.find()
	slices.SortFunc(m.loops, func(a, b loop) int { return a.first - b.first })
}

// loopFinder finds loops in a list of slots: those with moving partners in that of calls, then the others in all.
type loopFinder struct {
	*model
	slots []int32
	still bool // partners stay

	transposes bool   // the program has a transpose
	parted     bool   // some ranks lack messages with a neighbor
	inLoop     []bool // of each slot, or nil
}

// at returns slot b of a round. Until addCalcs, first and length of a loop count calls.
func (f *loopFinder) at(x *loop, round, b int) *slot {
	return &f.model.slots[f.slots[x.first+round*x.length+b]]
}

func (f *loopFinder) find() {
	n := len(f.slots)
	shapes := make([]shape, n)
	for i, s := range f.slots {
		shapes[i] = f.model.slots[s].shape()
		if f.inLoop != nil && f.inLoop[i] {
			shapes[i].used = i + 1
		}
	}
	// ahead[l][i] would be the number of equal shapes i.. and i+l..; a few lengths of bodies suffice.
	ahead := make([][]int32, maxBody+1)
	for l := 1; l <= maxBody && 2*l <= n; l++ {
		ahead[l] = make([]int32, n+1)
		for i := n - l - 1; i >= 0; i-- {
			if shapes[i] == shapes[i+l] {
				ahead[l][i] = ahead[l][i+1] + 1
			}
		}
	}
	// A part of a run of rounds is no loop if the run is none, whatever its number of rounds.
	var from [maxBody + 1]int
	for i := 0; i < n; {
		found := loop{}
		for l := 1; l <= maxBody && 2*l <= n-i; l++ {
			if int(ahead[l][i]) < l || i < from[l] {
				continue
			}
			x, ok := f.loopAt(i, l, int(ahead[l][i])/l+1)
			if ok {
				found = x
				break
			}
			rounds := x.rounds
			for b := range x.body {
				if x.body[b].kind != still {
					rounds = x.rounds - 1 // the last one may be the first of a loop
					break
				}
			}
			from[l] = i + l*rounds
		}
		if found.rounds == 0 {
			i++
			continue
		}
		f.loops = append(f.loops, found)
		i += found.length * found.rounds
	}
}

// addCalcs inserts the calcs that follow the calls of loops. Each round gets the calcs of all rounds, of which no rank
// has those that the round lacks.
func (f *loopFinder) addCalcs() {
	if len(f.loops) == 0 {
		return
	}
	calcs := make([][]int32, len(f.slots)+1) // before each call, and at the end
	i := 0
	for _, s := range f.order {
		if f.model.slots[s].call != nil {
			i++
			continue
		}
		calcs[i] = append(calcs[i], s)
	}
	var order []int32
	next := 0 // call
	add := func(to int) {
		for ; next < to; next++ {
			order = append(append(order, f.slots[next]), calcs[next+1]...)
		}
	}
	order = append(order, calcs[0]...)
	for l := range f.loops {
		x := &f.loops[l]
		add(x.first)
		var body []progress
		for b := range x.length {
			gaps := make([][]int32, x.rounds)
			for round := range gaps {
				gaps[round] = calcs[x.first+round*x.length+b+1]
			}
			n := f.equalize(gaps)
			for round := range gaps {
				calcs[x.first+round*x.length+b+1] = gaps[round]
			}
			body = append(append(body, x.body[b]), make([]progress, n)...)
		}
		first := len(order)
		add(x.first + x.length*x.rounds)
		x.first, x.length, x.body = first, len(body), body
	}
	add(len(f.slots))
	f.order = order
}

// equalize inserts calcs that no rank has, so that all lists have the same shapes. It returns their length.
func (f *loopFinder) equalize(lists [][]int32) int {
	var all []shape
	at := make([][]int, len(lists)) // places in all
	for n, list := range lists {
		next := 0
		for _, s := range list {
			shape := f.model.slots[s].shape()
			if i := slices.Index(all[next:], shape); i >= 0 {
				next += i
			} else {
				all = slices.Insert(all, next, shape)
				for _, places := range at[:n] {
					for i := range places {
						if places[i] >= next {
							places[i]++
						}
					}
				}
			}
			at[n] = append(at[n], next)
			next++
		}
	}
	for n, list := range lists {
		if len(list) == len(all) {
			continue
		}
		full := make([]int32, len(all))
		for i := range full {
			full[i] = -1
		}
		for i, place := range at[n] {
			full[place] = list[i]
		}
		for i, s := range full {
			if s < 0 {
				full[i] = int32(len(f.model.slots))
				f.model.slots = append(f.model.slots, slot{always: true})
				f.opAt = append(f.opAt, f.noOps())
			}
		}
		lists[n] = full
	}
	return len(all)
}

// loopAt returns the loop of bodies of l calls from call i on.
func (f *loopFinder) loopAt(i, l, most int) (x loop, ok bool) {
	x = loop{first: i, length: l}
	messages := false
	for b := range l {
		c := f.at(&x, 0, b).call
		if c != nil && !isMessage(c.kind) && (f.still || !c.oneLine()) {
			return x, false
		}
		messages = messages || c != nil
	}
	if !messages {
		return x, false
	}
	for x.rounds = 1; x.rounds < most && f.extends(&x); x.rounds++ {
	}
	if x.rounds < 2 || x.body == nil {
		return x, false
	}
	moving := progressKind(still)
	mask, roots := int32(0), 0
	for b := range x.body {
		p := &x.body[b]
		s := f.at(&x, 0, b)
		p.size = [2]size{s.size, s.recv}
		if p.kind != still {
			moving = p.kind
			switch s.call.rule {
			case onGrid:
				mask |= 1 << p.dim
			case member:
				mask |= s.call.comm >> 8
				roots++
			}
		}
	}
	if f.still != (moving == still) {
		return x, false
	}
	if moving == sum && x.rounds == 2 && f.doubles(&x) {
		moving = double
	}
	for b := range x.body {
		if x.rounds == 2 {
			x.body[b].shift = 0
		}
	}
	if roots > 0 {
		return f.rootsAt(x, mask)
	}
	found := false
	x.count, found = f.countOf(x.rounds, moving, mask, &x)
	return x, found
}

// inRows reports whether rounds are exchanges by exclusive or with 1, 2, ... in the rows of a grid that is square, or
// twice as long as wide.
func (f *loopFinder) inRows(x *loop) bool {
	p := f.old.ranks
	for b := range x.body {
		c := f.at(x, 0, b).call
		if c != nil && (c.rule != byXor || x.body[b].kind != double || c.at[0] != 1) {
			return false
		}
	}
	return x.rounds == rowRounds(p)
}

// rowRounds returns the number of rounds by exclusive or in the rows of a grid of n ranks that is square, or twice as
// long as wide; 0 for fewer than 16 ranks, or no power of two.
func rowRounds(n int) int {
	if n&(n-1) != 0 || n < 16 {
		return 0
	}
	return bits.Len(uint(n)) / 2
}

// doubles reports whether the distances of two rounds are 1 and 2, the second of which only multiples of 2 have, and
// makes the partners double.
func (f *loopFinder) doubles(x *loop) bool {
	for b := range x.body {
		p, next := &x.body[b], f.at(x, 1, b)
		if p.kind == sum && (p.step != p.start || max(p.step, -p.step) != 1 ||
			!next.multiple() && (next.call.rule != byXor || x.rounds != rowRounds(f.old.ranks))) {
			return false
		}
	}
	for b := range x.body {
		if p := &x.body[b]; p.kind == sum {
			p.kind = double
		}
	}
	return true
}

// oneLine reports whether the members of the communicator of a collective with a root are all ranks or those along one
// dimension, so that their number is that of rounds in which each is the root.
func (c *call) oneLine() bool {
	mask := c.comm >> 8
	return c.rule == member && mask < 1<<maxDims && mask&(mask-1) == 0
}

// rootsAt completes a loop of collectives whose root goes from member to member.
func (f *loopFinder) rootsAt(x loop, mask int32) (loop, bool) {
	for b := range x.body {
		c := f.at(&x, 0, b).call
		if _, size := f.old.memberOf(c.comm, 0); c.kind != dag.Coll || x.body[b].kind != still && x.rounds < size {
			return x, false // messages, or too few rounds to see all members
		}
	}
	x.roots, x.counted, x.unsure, x.count = true, true, true, count{mask: mask}
	n := x.count.ranks(&f.old)
	x.count.times = x.rounds / n
	if x.rounds%n != 0 {
		x.count = count{mask: mask, fixed: true, offset: x.rounds}
	}
	return x, true
}

// extends reports whether the next round continues the progress of the loop.
func (f *loopFinder) extends(x *loop) bool {
	body := make([]progress, x.length)
	for b := range x.length {
		s, next := f.at(x, x.rounds-1, b), f.at(x, x.rounds, b)
		first := f.at(x, 0, b).call
		p := &body[b]
		if s.call == nil {
			continue
		}
		if !s.presentAs(next) && !(x.rounds == 1 && s.always && next.multiple()) {
			return false
		}
		p.start = first.at[0]
		if s.call.kind == dag.Coll {
			_, size := f.old.memberOf(s.call.comm, 0)
			p.start = int32(first.root(size))
			if p.step = int32(modulo(next.call.root(size)-s.call.root(size), size)); p.step != 0 {
				p.kind = sum
			}
			if x.rounds > 1 && p.step != x.body[b].step {
				return false
			}
			continue
		}
		period := 0
		if s.call.rule == onLine && f.old.ring {
			period = f.old.ranks
		}
		for d := range s.call.at {
			v, w := s.call.at[d], next.call.at[d]
			if v == w {
				continue
			}
			if p.kind != still {
				return false // along two dimensions
			}
			if s.call.rule == onGrid && f.old.periodic[d] {
				period = f.old.grid[d]
			}
			same := func(a, b int32) bool {
				return a == b || period > 0 && modulo(int(a-b), period) == 0
			}
			p.dim, p.start = d, first.at[d]
			before := progress{kind: still}
			if x.body != nil {
				before = x.body[b]
			}
			step := w - v
			if period > 0 {
				step = shortest(step, period)
			}
			// The first two rounds of 1, 2, ... may be a sum or a doubling: the third decides.
			switch {
			case x.rounds > 2 && before.kind == sum && same(before.step, step):
				p.kind, p.step = sum, before.step
			case x.rounds > 2 && before.kind == double && same(w, 2*v):
				p.kind = double
			case x.rounds > 2 && before.kind == halve && v == 2*w:
				p.kind = halve
			case x.rounds > 2:
				return false
			case x.rounds == 2 && same(w-v, v-p.start):
				p.kind, p.step = sum, step
			case x.rounds == 2 && same(w, 2*v) && same(v, 2*p.start):
				p.kind = double
			case x.rounds == 2 && v == 2*w && p.start == 2*v:
				p.kind = halve
			case x.rounds == 2:
				return false
			default:
				p.kind, p.step = sum, step
			}
		}
		if x.body != nil && p.kind == still && x.body[b].kind != still {
			return false
		}
		if !p.tag(s.call.tag, next.call.tag, x, b) {
			return false
		}
		half, ok := ratio(s, next)
		if !ok || x.rounds > 1 && half != x.body[b].half {
			return false
		}
		p.half = half
	}
	x.body = body
	return true
}

// tag sets how the tag changes, and reports whether that continues the rounds before. Tags may be the distance.
func (p *progress) tag(from, to int64, x *loop, b int) bool {
	p.tags = to - from
	if from != 0 && to == 2*from {
		p.shift = 1
	} else if to != 0 && from == 2*to {
		p.shift = -1
	}
	switch {
	case x.rounds == 1:
		return true
	case x.body[b].tags == p.tags && (x.rounds == 2 || x.body[b].shift == 0):
		p.shift = 0
		return true
	}
	return p.shift != 0 && p.shift == x.body[b].shift
}

// presentAs reports whether the same property of the ranks decides which of them have two slots.
func (s *slot) presentAs(t *slot) bool {
	return s.always == t.always && s.feature.kind == t.feature.kind && s.feature.dim == t.feature.dim &&
		agree(s.table, t.table)
}

// multiple reports whether the ranks that are multiples of a distance have the slot: for the distance 1, all have it.
func (s *slot) multiple() bool {
	return s.feature.kind == inTree && s.table[0] && s.table[1] || s.feature.kind == multiples && s.table[0]
}

// agree reports whether two tables have the same values where both have one. A rank lacks a round in which it would be
// its own partner.
func agree(a, b map[int32]bool) bool {
	for k, v := range a {
		if w, known := b[k]; known && v != w {
			return false
		}
	}
	return true
}

// ratio returns how the sizes of two slots compare: 0 equal, 1 doubled, -1 halved.
func ratio(s, next *slot) (int, bool) {
	a, b := s.size, next.size
	switch {
	case a.kind != b.kind || s.recv.kind != next.recv.kind:
		return 0, false
	case a.kind != constant:
		return 0, true
	case a.value == b.value:
		return 0, true
	case b.value == 2*a.value:
		return 1, true
	case a.value == 2*b.value:
		return -1, true
	}
	return 0, false
}

// countOf returns the number of rounds as a function of the ranks. Rounds with moving partners are an algorithm if
// their number fits; those with the neighbors on a ring are if it fits exactly, as in ring algorithms.
func (f *loopFinder) countOf(rounds int, moving progressKind, mask int32, x *loop) (c count, ok bool) {
	c = count{mask: mask, times: 1}
	n := c.ranks(&f.old)
	switch moving {
	case sum:
		for _, c.offset = range []int{-1, 0, -2} {
			if rounds == n+c.offset && rounds > 2 {
				return c, true
			}
		}
		c.times = 0
		for _, c.offset = range []int{0, -1} {
			if rounds == n/2+c.offset && rounds > 3 {
				return c, true
			}
		}
	case double, halve:
		c.log = true
		if c.root = f.inRows(x); c.root {
			x.unsure, x.counted = !f.transposes, !f.transposes
			return c, true
		}
		return c, c.ranks(&f.old) == 1<<rounds
	case still:
		return f.stillCount(rounds, x)
	}
	return c, false
}

// way is how the messages of a round go along a line of ranks.
type way uint8

const (
	noWay    way = iota
	oneWay       // each rank sends to one side and receives from the other
	bothWays     // each rank sends to both sides
	pairwise     // pairs of ranks exchange messages, and each rank does with both sides in turns
)

// stillCount returns the number of rounds with the same neighbors as a function of the ranks. In one direction, n - 1
// rounds bring the data of each rank of a ring to all others, and 2 (n - 1) rounds do that twice. Programs rarely have
// that number of iterations by chance. n rounds also bring the data back to its rank, and n/2 rounds suffice for all
// pairs of ranks: programs may have n or n/2 iterations, too. An odd-even sort exchanges n or n/2 times with the rank
// on each side.
func (f *loopFinder) stillCount(rounds int, x *loop) (count, bool) {
	if f.repeats(x) {
		return count{}, false
	}
	w, mask, onRing := f.wayOf(x)
	c := count{mask: mask, times: 1}
	n := c.ranks(&f.old)
	x.counted = true
	const least = 8 // ranks: smaller numbers of rounds are common
	switch {
	case w == oneWay && mask == 0 && onRing && rounds == n-1:
		c.offset = -1
		return c, true
	case w == oneWay && mask == 0 && onRing && rounds == 2*(n-1):
		c.times, c.offset = 2, -2
		return c, true
	}
	x.unsure = true
	const most = 4 // times: larger multiples are numbers of iterations
	halves := 0
	if (2*rounds+2)%n == 0 {
		halves = 1
	} else if 2*rounds%n != 0 {
		halves = 2
	}
	switch {
	case w == noWay || n < 4 || n < least && w != pairwise && mask == 0:
	case w == oneWay && rounds%n == 0 && rounds <= most*n: // several times
		c.times = rounds / n
		return c, true
	case w == oneWay && rounds == n-1 && onRing:
		c.offset = -1
		return c, true
	case w == oneWay && rounds == 2*(n-1) && onRing:
		c.times, c.offset = 2, -2
		return c, true
	case w == pairwise && (halves == 0 || halves == 1 && rounds > 2) && rounds <= most*n:
		c.times, c.per, c.offset = (2*rounds+2)/n, 2, -halves // the first or last exchange is of some ranks
		return c, true
	case onRing && 2*rounds == n && n >= least:
		c.times = 0
		return c, true
	case w == bothWays && onRing && 2*rounds == n-1 && n >= least:
		c.times = 0
		return c, true
	}
	return c, false
}

// repeats reports whether a round is several equal ones.
func (f *loopFinder) repeats(x *loop) bool {
	for part := 1; 2*part <= x.length; part++ {
		same := x.length%part == 0
		for b := part; b < x.length && same; b++ {
			s, before := f.at(x, 0, b), f.at(x, 0, b-part)
			same = s.shape() == before.shape() && (s.call == nil || s.call.at == before.call.at)
		}
		if same {
			return true
		}
	}
	return false
}

// direct is a direction along a dimension.
type direct struct {
	dim  int
	sign int32
}

// wayOf returns how the messages of a round go: along the line of ranks (mask 0), or along one dimension or more, as
// bits; and whether these are periodic.
func (f *loopFinder) wayOf(x *loop) (w way, mask int32, onRing bool) {
	sends, line, parted := map[direct]bool{}, false, false
	onRing = true
	for b := range x.body {
		s := f.at(x, 0, b)
		if s.call == nil {
			continue
		}
		c := s.call
		if c.at.step() != 1 || c.rule != onLine && c.rule != onGrid {
			return noWay, 0, false
		}
		d := slices.IndexFunc(c.at[:], func(v int32) bool { return v != 0 })
		if c.rule == onLine {
			line, onRing = true, onRing && f.old.ring
		} else {
			mask |= 1 << d
			onRing = onRing && f.old.periodic[d]
		}
		parted = parted || !s.always
		if c.kind == dag.Send {
			sends[direct{d, c.at[d]}] = true
		}
	}
	ways := oneWay
	for s := range sends {
		if sends[direct{s.dim, -s.sign}] {
			ways = bothWays
		}
	}
	dims := bits.OnesCount32(uint32(mask))
	switch {
	case len(sends) == 0 || line && mask != 0 || dims > 1 && (ways != oneWay || !onRing):
		return noWay, 0, false
	case ways == bothWays && dims == 0 && (parted || f.inTurns(x)):
		return pairwise, mask, onRing
	case parted, dims > 0 && !onRing, dims > 0 && ways == bothWays:
		return noWay, 0, false
	}
	return ways, mask, onRing
}

// inTurns reports whether each rank sends to one side and receives from it, and then does with the other side, with
// calcs between, or some ranks do at the start or end: pairs of ranks exchange messages, and then other pairs.
func (f *loopFinder) inTurns(x *loop) bool {
	changes, before := 0, int32(0)
	both := map[int32]dag.Kind{}
	for b := range x.body {
		s := f.at(x, 0, b)
		if s.call == nil {
			continue
		}
		at := s.call.at[0]
		if at != before && before != 0 {
			changes++
		}
		before = at
		if k, known := both[at]; known && k != s.call.kind {
			both[at] = dag.Calc // both kinds
		} else if !known {
			both[at] = s.call.kind
		}
	}
	return changes == 1 && both[1] == dag.Calc && both[-1] == dag.Calc && (f.between(x) || f.parted)
}

// between reports whether a calc follows the messages with the first side in a round.
func (f *loopFinder) between(x *loop) bool {
	before, calc := int32(0), false
	for b := range x.body {
		s := f.at(x, 0, b)
		switch {
		case s.call == nil:
			calc = calc || before != 0 && !s.join
		case before != 0 && s.call.at[0] != before:
			return calc
		default:
			before, calc = s.call.at[0], false
		}
	}
	return false
}
