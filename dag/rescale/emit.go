package rescale

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"iter"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// target is the new trace under construction.
type target struct {
	*model
	o         Options
	new       space
	instances []instance
	single    []int32   // instance of each place of the order outside of loops
	loopOf    []int32   // loop of each place, -1: none
	bases     []int32   // first instance of each loop
	counts    []int     // rounds of each loop
	counted   []*counts // of each slot
	donors    []int32   // recorded rank for calcs and sizes of each rank
	commBase  map[int32]int32
	comms     []dag.Comm
	gridDoubt *doubt // about the new grid

	calls     []call     // of each instance
	patterns  []*pattern // of the calls of ranks
	patternOf []int32    // of each rank
	templates templates
	varying   varying

	compute, calling map[int32]share // factors of the calcs of slots: of computation, and of time in calls of MPI
	alone            map[int32]share // of what one rank alone has of the computation, if that grows in its own way
	open             []openTime
}

// instance is a slot, or a slot of a round of a loop.
type instance struct {
	slot  int32
	loop  int32
	round int
	body  int
}

// plan lists the instances.
func (g *target) plan() error {
	g.single = make([]int32, len(g.order))
	g.loopOf = make([]int32, len(g.order))
	for i := range g.loopOf {
		g.loopOf[i] = -1
	}
	total := int64(len(g.order))
	for l, x := range g.loops {
		n := x.rounds
		if !g.keepsRounds(&x) {
			n = x.count.of(&g.new)
		}
		if n < 1 {
			return refuse("%d rounds of %d calls on %d ranks, expected 1 or more", n, x.length, g.new.ranks)
		}
		if c := x.count; c.log {
			if ranks := c.ranks(&g.new); ranks&(ranks-1) != 0 {
				return refuse("rounds with twice or half the distance each are known for powers of two of ranks only, "+
					"expected one instead of %d", ranks)
			}
		}
		g.counts = append(g.counts, n)
		total += int64(n) * int64(x.length)
		for i := x.first; i < x.first+x.length*x.rounds; i++ {
			g.loopOf[i] = int32(l)
		}
	}
	if err := memory.CheckOps(g.ctx, total); err != nil {
		return err
	}
	g.bases = make([]int32, len(g.loops))
	for place := 0; place < len(g.order); place++ {
		l := g.loopOf[place]
		if l < 0 {
			g.single[place] = int32(len(g.instances))
			g.instances = append(g.instances, instance{slot: g.order[place], loop: -1})
			continue
		}
		x := &g.loops[l]
		g.bases[l] = int32(len(g.instances))
		for round := range g.counts[l] {
			model := modelRound(round, g.counts[l], x.rounds)
			for b := range x.length {
				g.instances = append(g.instances, instance{g.order[x.first+model*x.length+b], l, round, b})
			}
		}
		place += x.length*x.rounds - 1
	}
	return nil
}

// keepsRounds reports whether the number of rounds of a loop is that of the recorded one. A root that goes round
// several times has a round for each block of the data, whose number strong scaling keeps.
func (g *target) keepsRounds(x *loop) bool {
	switch {
	case !x.counted || g.o.GrowingRounds:
		return false
	case g.o.FixedRounds:
		return true
	case x.roots:
		return x.count.times > 1 && g.o.Scaling == Strong
	}
	return x.unsure && !x.count.root
}

// modelRound returns the recorded round that a round is like: the last like the last, the others like those from the
// first on.
func modelRound(round, rounds, recorded int) int {
	switch {
	case round == rounds-1 && rounds > 1:
		return recorded - 1
	case recorded == 1:
		return 0
	}
	return min(round, max(recorded-2, 1))
}

// callAt returns the call of an instance, and how it changes from round to round, nil outside of loops.
func (g *target) callAt(i *instance) (c call, p *progress) {
	c = *g.slots[i.slot].call
	if i.loop < 0 {
		if c.rule == fixed && int(c.at[0]) == g.old.ranks-1 {
			c.at[0] = int32(g.new.ranks - 1)
		}
		if d := int(c.at[0]); (c.rule == onLine || c.rule == byXor) && 2*max(d, -d) == g.old.ranks {
			c.at[0] = int32(g.new.ranks / 2 * (d / max(d, -d)))
		}
		if half := int32((g.old.ranks+1)/2 - 1); c.rule == onLine && half > 2 && max(c.at[0], -c.at[0]) == half {
			c.at[0] = c.at[0] / half * int32((g.new.ranks+1)/2-1) // nearly half way around
		}
		return c, nil
	}
	x := &g.loops[i.loop]
	p = &x.body[i.body]
	first := g.slots[g.order[x.first+i.body]].call
	switch p.shift {
	case 1:
		c.tag = first.tag << min(i.round, 30)
	case -1:
		c.tag = first.tag >> min(i.round, 62)
	default:
		c.tag = first.tag + int64(i.round)*p.tags
	}
	d := p.dim
	switch {
	case c.kind == dag.Coll && p.kind == sum:
		_, size := g.new.memberOf(c.comm, 0)
		c.at[0] = int32(modulo(int(p.start)+i.round*int(p.step), size))
		return c, p
	case c.kind == dag.Coll:
		return c, p
	}
	switch p.kind {
	case sum:
		c.at[d] = p.start + int32(i.round)*p.step
	case double:
		c.at[d] = p.start << min(i.round, 30)
	case halve:
		n, old := x.count.ranks(&g.new), x.count.ranks(&g.old)
		c.at[d] = int32(int64(p.start)*int64(n)/int64(old)) >> min(i.round, 30)
	}
	return c, p
}

// edgesOf returns the instances that an instance depends on.
func (g *target) edgesOf(i int32) (on []edge) {
	inst := &g.instances[i]
	s := &g.slots[inst.slot]
	for _, e := range s.edges {
		place := int(g.slots[e.on].place)
		l := g.loopOf[place]
		if l < 0 {
			on = append(on, edge{g.single[place], e.start})
			continue
		}
		x := &g.loops[l]
		round, body := (place-x.first)/x.length, (place-x.first)%x.length
		if l == inst.loop {
			own := (int(s.place) - x.first) / x.length
			if to := inst.round - own + round; to >= 0 && to < g.counts[l] {
				on = append(on, edge{g.bases[l] + int32(to*x.length+body), e.start})
			}
			continue
		}
		if g.needsAll(s, e.start, x, body) {
			if round == 0 {
				for to := range g.counts[l] {
					on = append(on, edge{g.bases[l] + int32(to*x.length+body), e.start})
				}
			}
			continue
		}
		if 2*round >= x.rounds {
			round += g.counts[l] - x.rounds
		}
		if round >= 0 && round < g.counts[l] {
			on = append(on, edge{g.bases[l] + int32(round*x.length+body), e.start})
		}
	}
	return on
}

// needsAll reports whether a slot depends on a slot of the body of a loop in all rounds.
func (g *target) needsAll(s *slot, start bool, x *loop, body int) bool {
	n := 0
	for _, e := range s.edges {
		place := int(g.slots[e.on].place)
		if e.start == start && place >= x.first && place < x.first+x.length*x.rounds &&
			(place-x.first)%x.length == body {
			n++
		}
	}
	return n == x.rounds && n > 1
}

// place returns the class of a rank: inside or at which borders of the grid.
func (s *space) place(rank int) int32 {
	value := int32(0)
	c := s.coordinates(rank)
	for d, n := range s.grid {
		value *= 3
		switch {
		case s.periodic[d]:
		case c[d] == 0:
			value++
		case int(c[d]) == n-1:
			value += 2
		}
	}
	return value
}

// character is what ranks have in common of which one can stand for the other: the place on the grid, -1 for any, and
// the calls that they make, one of role, "" for any.
type character struct {
	place int32
	calls string
}

// role is which calls a rank makes, with the number of rounds of loops: that it has, that it lacks, or neither; as
// digests.
type role [3]string

// characters returns the characters of a rank, the most exact first.
func (r *role) characters(place int32) (all []character) {
	for _, calls := range append(r[:], "") {
		all = append(all, character{place, calls}, character{-1, calls})
	}
	return all
}

// assignDonors chooses the recorded rank whose calcs and unexplained sizes each rank has: one at the same place of the
// grid and with the same calls, or else with the same calls or at the same place, each about equally often, in an order
// drawn by the seed. On as many ranks as recorded each has its own.
func (g *target) assignDonors(ctx context.Context) ([]Class, error) {
	if err := g.findPatterns(ctx); err != nil {
		return nil, err
	}
	places := map[int32][]int32{}
	for rank := range g.old.ranks {
		place := g.old.place(rank)
		places[place] = append(places[place], int32(rank))
	}
	counts := map[int32]int{}
	g.donors = make([]int32, g.new.ranks)
	for rank := range g.donors {
		g.donors[rank] = int32(rank)
		counts[g.new.place(rank)]++
	}
	classes := classesOf(&g.new, places, counts)
	if slices.Equal(g.old.grid, g.new.grid) {
		return classes, nil
	}
	members := map[character][]int32{}
	first, last := g.hasLone()
	placeOf := func(s *space, rank int) int32 { // those of a lone rank are like no other
		place := 3 * s.place(rank)
		switch {
		case first && rank == 0:
			place++
		case last && rank == s.ranks-1:
			place += 2
		}
		return place
	}
	roles, differ := g.recordedRoles(), false
	for rank, r := range roles {
		place := placeOf(&g.old, rank)
		differ = differ || r != roles[places[g.old.place(rank)][0]]
		for _, c := range r.characters(place) {
			if n := len(members[c]); n == 0 || members[c][n-1] != int32(rank) {
				members[c] = append(members[c], int32(rank))
			}
		}
	}
	type kind struct{ place, pattern int32 }
	chosen := map[kind]character{}
	queues := map[character][]int32{}
	random := rand.New(rand.NewPCG(uint64(g.o.Seed), 0x7265736361_6c65))
	for rank := range g.donors {
		place := placeOf(&g.new, rank)
		of := kind{place, 0}
		if differ {
			of.pattern = g.patternOf[rank]
		}
		c, known := chosen[of]
		if !known {
			var r role
			if differ {
				r = g.roleOf(g.patterns[of.pattern])
			}
			list := r.characters(place)
			c = list[slices.IndexFunc(list, func(c character) bool { return members[c] != nil })]
			chosen[of] = c
		}
		if len(queues[c]) == 0 {
			q := slices.Clone(members[c])
			random.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
			queues[c] = q
		}
		g.donors[rank], queues[c] = queues[c][0], queues[c][1:]
	}
	return classes, nil
}

// hasLone reports whether the first or the last rank alone has calcs, such as a root that computes with what it
// gathered.
func (m *model) hasLone() (first, last bool) {
	for _, at := range m.lone {
		first, last = first || at.rank == 0, last || at.rank > 0
	}
	return first, last
}

// onlyRank returns the only rank that has a slot, -1 if several have it or none.
func onlyRank(ops []int32) int {
	only := -1
	for rank, op := range ops {
		switch {
		case op < 0:
		case only >= 0:
			return -1
		default:
			only = rank
		}
	}
	return only
}

// recordedRoles returns the role of each recorded rank.
func (g *target) recordedRoles() []role {
	all := make([]role, g.old.ranks)
	for rank := range all {
		all[rank] = g.roleBy(func(i int32) (has, of int) {
			place := g.slots[i].place
			l := g.loopOf[place]
			if l < 0 {
				return min(1, int(g.opAt[i][rank])+1), 1
			}
			x := &g.loops[l]
			for round := range x.rounds {
				if g.opAt[g.order[x.first+round*x.length+(int(place)-x.first)%x.length]][rank] >= 0 {
					has++
				}
			}
			return has, x.rounds
		})
	}
	return all
}

// roleOf returns the role of ranks of the new trace.
func (g *target) roleOf(p *pattern) role {
	return g.roleBy(func(slot int32) (has, of int) {
		for i := range g.instancesOf(slot) {
			if of++; p.has(i) {
				has++
			}
		}
		return has, of
	})
}

// roleBy returns a role by the number of rounds of each call that a rank has, 1 outside of loops.
func (g *target) roleBy(rounds func(slot int32) (has, of int)) role {
	var sums [3]hash.Hash // of texts as long as the program
	for i := range sums {
		sums[i] = fnv.New128a()
	}
	var text []byte
	for place, i := range g.order {
		if l := g.loopOf[place]; g.slots[i].call == nil || l >= 0 && place >= g.loops[l].first+g.loops[l].length {
			continue
		}
		has, of := rounds(i)
		for i, n := range []int{has, of - has, min(has, 1)} {
			text = numbers(text[:0], []int32{int32(n)})
			sums[i].Write(text)
		}
	}
	r := role{}
	for i := range sums {
		r[i] = string(sums[i].Sum([]byte{byte('0' + i)}))
	}
	return r
}

// makeComms makes the communicators of the new trace.
func (g *target) makeComms() {
	g.comms = []dag.Comm{dag.World(g.new.ranks)}
	g.commBase = map[int32]int32{}
	var used []int32
	for _, s := range g.slots {
		if s.call != nil && !slices.Contains(used, s.call.comm) {
			used = append(used, s.call.comm)
		}
	}
	slices.Sort(used)
	for _, kind := range used {
		if kind == 0 {
			continue
		}
		g.commBase[kind] = int32(len(g.comms))
		var members [][]int32
		for rank := range g.new.ranks {
			n := g.groupOf(kind, rank)
			for len(members) <= n {
				members = append(members, nil)
			}
			members[n] = append(members[n], int32(rank))
		}
		for _, m := range members {
			g.comms = append(g.comms, dag.NewComm("", m))
		}
	}
}

// groupOf returns the number of the communicator of a kind that contains the rank.
func (g *target) groupOf(kind int32, rank int) int {
	mask := kind >> 8
	if mask == 0 {
		return 0
	}
	c := g.new.coordinates(rank)
	n, size := 0, 1
	for d, length := range g.new.grid {
		if mask&(1<<d) == 0 {
			n += int(c[d]) * size
			size *= length
		}
	}
	return n
}

// commOf returns the communicator of a kind that contains the rank.
func (g *target) commOf(kind int32, rank int) int32 {
	if kind == 0 {
		return 0
	}
	return g.commBase[kind] + int32(g.groupOf(kind, rank))
}

// instancesOf returns the instance of a slot, or the instances of its place in the rounds of a loop.
func (g *target) instancesOf(slot int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		place := int(g.slots[slot].place)
		l := g.loopOf[place]
		if l < 0 {
			yield(g.single[place])
			return
		}
		x := &g.loops[l]
		for round := range g.counts[l] {
			if !yield(g.bases[l] + int32(round*x.length+(place-x.first)%x.length)) {
				return
			}
		}
	}
}

// waiting finds the dependencies of the ops of a rank.
type waiting struct {
	*target
	index []int32 // op of each instance, -1: none
	stamp []int32 // the last instance that met each one, as an end and as a start
	edges [][]edge
}

// of returns the dependencies of an instance on ops. Instances that the rank lacks are replaced by their dependencies,
// except for those that follow from others.
func (w *waiting) of(i int32) []edge {
	var direct, replaced []edge
	var add func(from int32, lacks bool)
	add = func(from int32, lacks bool) {
		for _, e := range w.edgesOf(from) {
			met := int(e.on)
			if e.start {
				met += len(w.index)
			}
			if w.stamp[met] == i+1 {
				continue
			}
			w.stamp[met] = i + 1
			op := edge{w.index[e.on], e.start}
			switch {
			case op.on < 0:
				add(e.on, true)
			case lacks:
				replaced = append(replaced, op)
			default:
				direct = append(direct, op)
			}
		}
	}
	add(i, false)
	slices.SortStableFunc(replaced, func(a, b edge) int { return int(b.on - a.on) }) // the later ones imply others
	for _, e := range replaced {
		if !slices.ContainsFunc(direct, func(d edge) bool { return w.implies(d, e) }) {
			direct = append(direct, e)
		}
	}
	if w.slots[w.instances[i].slot].ascending {
		slices.SortStableFunc(direct, func(a, b edge) int { return int(a.on - b.on) })
	}
	w.edges = append(w.edges, direct)
	return direct
}

// implies reports whether an op that waits for d waits for e, too.
func (w *waiting) implies(d, e edge) bool {
	const most = 64 // steps
	for range most {
		next := int32(-1)
		if int(d.on) >= len(w.edges) {
			return false
		}
		for _, f := range w.edges[d.on] {
			if f.on == e.on && (e.start || !f.start) {
				return true
			}
			if f.on < d.on {
				next = max(next, f.on)
			}
		}
		if next <= e.on {
			return false
		}
		d.on = next
	}
	return false
}

// op returns the op of an instance on a rank.
func (g *target) op(of int32, rank int) (dag.Op, error) {
	i := &g.instances[of]
	s := &g.slots[i.slot]
	op := s.template
	op.Timed, op.MeasuredStart, op.MeasuredEnd = false, 0, 0
	if s.call == nil {
		op.Duration, op.Flops = g.timeOf(i.slot, g.donors[rank])
		return op, nil
	}
	c := &g.calls[of]
	var p *progress
	if i.loop >= 0 {
		p = &g.loops[i.loop].body[i.body]
	}
	op.Duration = 0
	op.Comm = g.commOf(c.comm, rank)
	op.Peer = g.peer(of, rank)
	if isMessage(c.kind) {
		op.Tag = c.tag
		switch {
		case op.Tag < 0 && s.template.Tag < 0 || op.Peer < 0:
		case c.kind == dag.Send:
			op.Tag += g.tags.of(int32(rank), op.Peer)
		default:
			op.Tag += g.tags.of(op.Peer, int32(rank))
		}
	}
	own := [2]size{s.size, s.recv}
	if p != nil && p.half != 0 {
		own = p.size
	}
	for k, to := range []*int64{&op.Bytes, &op.RecvBytes} {
		z := own[k]
		if z.feature.kind == isRoot {
			z.feature.call = c
		}
		v, err := g.value(&z, i.slot, rank, k)
		if err != nil {
			return op, err
		}
		*to = g.scaled(s, i, v, k)
		if p != nil && p.half > 0 {
			*to <<= min(i.round, 30)
		} else if p != nil && p.half < 0 {
			*to >>= min(i.round, 62)
		}
	}
	if c.sub == dag.Alltoallv {
		g.setCounts(&op, i.slot, rank)
	}
	return op, nil
}

// memberAt returns the rank at place n of the communicator of a kind that contains a rank.
func (g *target) memberAt(kind int32, rank, n int) int32 {
	mask := kind >> 8
	if mask == 0 {
		return int32(n)
	}
	c := g.new.coordinates(rank)
	for d, length := range g.new.grid {
		if mask&(1<<d) != 0 {
			c[d] = int32(n % length)
			n /= length
		}
	}
	return int32(g.new.at(c))
}

// value returns the recorded size for a rank.
func (g *target) value(z *size, slot int32, rank, which int) (int64, error) {
	switch z.kind {
	case byPlace:
		v, known := z.table[z.feature.of(&g.new, rank)]
		if !known {
			return 0, refuse("the size of %s depends on the %s, and no recorded rank has that of rank %d on the new "+
				"grid",
				g.slots[slot].call.describe(), z.feature.describe(), rank)
		}
		return v, nil
	case drawn:
		from := int(g.donors[rank])
		at := g.opAt[slot][from]
		for n := 0; at < 0; n++ {
			from = n
			at = g.opAt[slot][n]
		}
		if which == 0 {
			return g.from.Ranks[from].Bytes.At(int(at)), nil
		}
		return g.from.Ranks[from].RecvBytes.At(int(at)), nil
	}
	return z.value, nil
}

// share is a factor of sizes.
type share struct{ numerator, denominator int64 }

func (f share) float() float64 { return float64(f.numerator) / float64(f.denominator) }

func (f *share) times(a, b int) {
	r := big.NewRat(f.numerator, f.denominator)
	r.Mul(r, big.NewRat(int64(a), int64(b)))
	f.numerator, f.denominator = r.Num().Int64(), r.Denom().Int64()
}

// scaled returns the size on the new number of ranks; which is 0 for Bytes, 1 for RecvBytes.
func (g *target) scaled(s *slot, i *instance, v int64, which int) int64 {
	constant, f := g.shareOf(s, i, v, which)
	return constant + scaleBytes(v-constant, f.numerator, f.denominator)
}

// shareOf returns the part of a size that is the same on the new number of ranks, and the factor of the rest.
func (g *target) shareOf(s *slot, i *instance, v int64, which int) (constant int64, f share) {
	f = share{1, 1}
	if v == 0 {
		return 0, f
	}
	c := s.call
	p, n := g.old.ranks, g.new.ranks
	if key := g.sizedOf(i, v, which); len(g.o.laws[key]) > 0 && !g.o.fits[key] {
		l := g.o.laws[key][0]
		return l.constant, l.share(&g.old, n, g.new.grid)
	}
	strong := g.o.Scaling == Strong
	if c.kind != dag.Coll {
		switch {
		case strong && v > few && g.inSquare(c, i):
			f = wide.share(&g.old, n, g.new.grid)
		case i.loop >= 0 && !g.loops[i.loop].unsure:
			x := &g.loops[i.loop]
			switch {
			case x.counted && x.count.times == 2 && !g.o.FixedRounds: // the blocks of an allreduce in a ring
				f.times(p, n)
			case strong && c.rule == fixed:
				f.shareOf(v, p, n)
			case strong && x.body[i.body].kind == sum: // the blocks of an alltoall
				f.times(p, n)
				f.times(p, n)
			case strong && x.counted:
				f.times(p, n)
			}
		case strong && c.rule == onGrid:
			for d := range g.old.grid {
				if c.at[d] == 0 {
					f.times(g.old.grid[d], g.new.grid[d])
				}
			}
		case strong && c.rule == onLine && g.old.ring && g.oneWay():
			f.times(p, n)
		case strong && c.rule.moves():
			f.shareOf(v, p, n)
		}
		return 0, f
	}
	_, before := g.old.memberOf(c.comm, 0)
	_, after := g.new.memberOf(c.comm, 0)
	const small = 16 // bytes of a block that counts others
	block := v
	switch c.sub {
	case dag.Alltoall, dag.Alltoallv:
		if v <= int64(small*before) {
			f.times(after, before)
		} else if strong {
			f.times(p, n)
		}
	case dag.Gather, dag.Gatherv, dag.Allgather, dag.Allgatherv:
		if which == 1 {
			block = v / int64(before)
			f.times(after, before)
		}
		if strong && block > 8*small {
			f.times(p, n)
		}
	case dag.Scatter, dag.Scatterv:
		if which == 0 {
			block = v / int64(before)
			f.times(after, before)
		}
		if strong && block > 8*small {
			f.times(p, n)
		}
	case dag.ReduceScatter:
		if which == 1 {
			f.times(before, after)
		}
		g.shrink(&f, c.comm, v)
	case dag.Bcast, dag.Reduce, dag.Allreduce, dag.Scan, dag.Exscan:
		g.shrink(&f, c.comm, v)
	}
	return 0, f
}

// sizedOf returns the call of a size, of the first round of a loop if the size changes from round to round.
func (g *target) sizedOf(i *instance, v int64, which int) sized {
	slot := i.slot
	if i.loop >= 0 {
		if x := &g.loops[i.loop]; x.body[i.body].half != 0 {
			slot = g.order[x.first+i.body]
		}
	}
	return sized{*g.slots[slot].call, which, v}
}

// few is the size in bytes of a number or a few, whose size does not depend on that of the problem.
const few = 128

// shareOf makes bytes the share of a rank in the data.
func (f *share) shareOf(bytes int64, before, after int) {
	if bytes > few {
		f.times(before, after)
	}
}

// moves reports whether the messages of a rule move the data of a rank.
func (r rule) moves() bool {
	return r == fixed || r == mirrored || r == transpose || r == reverse || r == left || r == right
}

// shrink makes a share of the vector of a collective of a row, column or plane that of its part of the data, which
// shrinks with the other dimensions under strong scaling.
func (g *target) shrink(f *share, comm int32, bytes int64) {
	mask := comm >> 8
	if g.o.Scaling != Strong || mask == 0 || bytes <= few {
		return
	}
	for d := range g.old.grid {
		if mask&(1<<d) == 0 {
			f.times(g.old.grid[d], g.new.grid[d])
		}
	}
}

// oneWay reports whether messages along the line go in one direction only, and so are more than a border.
func (g *target) oneWay() bool {
	up, down := false, false
	for _, s := range g.slots {
		if s.call != nil && s.call.kind == dag.Send && s.call.rule == onLine {
			up, down = up || s.call.at[0] > 0, down || s.call.at[0] < 0
		}
	}
	return up != down
}

// makeWhole makes all ranks of the new trace, and checks it.
func (g *target) makeWhole(ctx context.Context) (*dag.Trace, error) {
	if err := memory.CheckOps(g.ctx, int64(len(g.instances)), int64(g.new.ranks)); err != nil {
		return nil, err
	}
	out := &dag.Trace{Meta: g.meta(), Comms: g.comms, Ranks: make([]*dag.Rank, g.new.ranks)}
	err := par.Each(g.new.ranks, func(rank int) error {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		r, err := g.rank(rank)
		out.Ranks[rank] = r.Keep()
		return err
	})
	if err != nil {
		return nil, err
	}
	g.sizeReceives(out)
	const most = 1
	if problems, n := dag.ValidateLimit(out, most); n > 0 {
		return nil, refuse("the calls on %d ranks would not fit together: %s (%d problems)", g.new.ranks,
			problems[0], n)
	}
	return out, nil
}

// meta returns the metadata of the new trace.
func (g *target) meta() dag.Meta {
	meta := g.from.Meta
	meta.Nodes, meta.Attrs = nil, ""
	if meta.Title != "" {
		meta.Title += fmt.Sprintf(", rescaled to %d ranks", g.new.ranks)
	}
	return meta
}

// drawsReceives reports whether receives have unexplained sizes, which are those of their messages.
func (g *target) drawsReceives() bool {
	return slices.ContainsFunc(g.slots, func(s slot) bool {
		return s.call != nil && s.call.kind == dag.Recv && s.size.kind == drawn
	})
}

// sizeReceives gives receives of unexplained size that of their message.
func (g *target) sizeReceives(out *dag.Trace) {
	if !g.drawsReceives() {
		return
	}
	type channel struct {
		from, to, comm int32
		tag            int64
	}
	sent := map[channel][]int64{}
	last := -1
	own := func(r *dag.Rank, rank int) { // ranks share columns
		if rank != last {
			r.Bytes, last = slices.Clone(r.Bytes), rank
		}
	}
	for rank, r := range out.Ranks {
		for i, kind := range r.Kind {
			if kind == dag.Send {
				ch := channel{int32(rank), r.Peer.At(i), r.Comm.At(i), r.Tag.At(i)}
				sent[ch] = append(sent[ch], r.Bytes.At(i))
			}
		}
	}
	for rank, r := range out.Ranks {
		for i, kind := range r.Kind {
			if kind != dag.Recv {
				continue
			}
			ch := channel{r.Peer.At(i), int32(rank), r.Comm.At(i), r.Tag.At(i)}
			if len(sent[ch]) > 0 {
				own(r, rank)
				r.Bytes.Set(i, max(sent[ch][0], r.Bytes.At(i)))
				sent[ch] = sent[ch][1:]
			}
		}
	}
}

// keepText removes from the template what holds for the recorded rank only.
func (m *model) keepText(i int) {
	s := &m.slots[i]
	s.template.Attrs = keptAttrs(s.template.Attrs)
	for rank, op := range m.opAt[i] {
		if op >= 0 && keptAttrs(m.from.Ranks[rank].Attrs.At(int(op))) != s.template.Attrs {
			s.template.Attrs = ""
			break
		}
	}
	s.template.Job = 0
	for rank, op := range m.opAt[i] {
		if op >= 0 && m.from.Ranks[rank].Name.At(int(op)) != s.template.Name {
			s.template.Name = ""
			return
		}
	}
}

// keptAttrs returns those attributes of an op that hold for any number of ranks: the mode of a send, and the size of
// the elements of a collective.
func keptAttrs(attrs string) string {
	const mode = `{"mpi":{"mode":`
	if strings.HasPrefix(attrs, mode) {
		return attrs
	}
	if element, has := attr.ParseElement(attrs); has {
		return attr.WithElement("", element)
	}
	return ""
}
