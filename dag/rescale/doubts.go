package rescale

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// doubt is something about the new trace that the recorded ones do not determine: several rules of programs give what
// they show, and differ on the new ranks.
type doubt struct {
	what    string
	choices []string // the first is that of Options.Likeliest
	remedy  string
}

func (d *doubt) text() string {
	return d.what + ": " + strings.Join(d.choices, " or ")
}

// Remedies of doubts.
const (
	giveRounds  = "--fixed-rounds or --growing-rounds"
	giveGrid    = "--new-grid"
	giveOldGrid = "--old-grid"
	giveScaling = "--scaling"
	giveGrowth  = "--growth"
)

// doubts returns what the recorded traces do not determine; nothing on the recorded ranks.
func (g *target) doubts() (all []doubt) {
	if g.old.ranks == g.new.ranks && slices.Equal(g.old.grid, g.new.grid) {
		return nil
	}
	if g.gridDoubt != nil {
		all = append(all, *g.gridDoubt)
	}
	if d := g.cubeDoubt(); d != nil {
		all = append(all, *d)
	}
	if d := g.nodeDoubt(); d != nil {
		all = append(all, *d)
	}
	all = append(all, g.roundDoubts()...)
	all = append(all, g.distanceDoubts()...)
	if d := g.timesDoubt(); d != nil {
		all = append(all, *d)
	}
	all = append(all, g.openDoubts()...)
	return append(all, g.sizeDoubts()...)
}

// refuseDoubts returns a refusal that names the doubts, or nil if there are none.
func (g *target) refuseDoubts(all []doubt) error {
	if len(all) == 0 {
		return nil
	}
	const most = 3
	var texts, remedies []string
	for i, d := range all {
		if i < most {
			texts = append(texts, d.text())
		}
		if d.remedy != "" && !slices.Contains(remedies, d.remedy) {
			remedies = append(remedies, d.remedy)
		}
	}
	if n := len(all) - most; n > 0 {
		texts = append(texts, fmt.Sprintf("%d more", n))
	}
	from := "one trace does not determine"
	if g.o.decided != nil {
		from = "the traces do not determine"
	}
	remedies = append([]string{"--second-trace with a trace of yet another number of ranks"}, remedies...)
	return refuse("%s the program on %d ranks: %s; expected %s, or --likeliest to take the first of each", from,
		g.new.ranks, strings.Join(texts, "; "), strings.Join(remedies, ", "))
}

// cubeDoubt returns the doubt whether two messages along each edge of a hypercube are those to both neighbors on a
// periodic grid of two ranks along each dimension, or nil. Other traces show that.
func (g *target) cubeDoubt() *doubt {
	if !g.twins || g.o.decided != nil ||
		!slices.ContainsFunc(g.slots, func(s slot) bool { return s.call != nil && s.call.rule == byXor }) {
		return nil
	}
	grid := strings.TrimSuffix(strings.Repeat("2x", bits.Len(uint(g.old.ranks))-1), "x")
	return &doubt{"two messages of each rank to partners by exclusive or", []string{"rounds of a hypercube",
		"both neighbors on a periodic grid of " + grid}, giveOldGrid + " " + grid}
}

// nodeDoubt returns the doubt whether nodes of ranks keep their size, or their number, or both grow, or nil. Other
// traces show that.
func (g *target) nodeDoubt() *doubt {
	if g.o.decided != nil {
		return nil
	}
	for i := range g.slots {
		s := &g.slots[i]
		if s.call == nil || s.always || s.feature.kind != residue {
			continue
		}
		size := s.feature.dim
		far := big.NewRat(int64(size)*int64(g.new.ranks), int64(g.old.ranks))
		return &doubt{fmt.Sprintf("the ranks of a node with %s", s.call.describe()),
			[]string{fmt.Sprint(size), far.RatString() + " (a part of the ranks)"}, ""}
	}
	return nil
}

// roundDoubts names the loops whose number of rounds may be fixed, or depend on the number of ranks.
func (g *target) roundDoubts() (all []doubt) {
	if (g.o.FixedRounds || g.o.GrowingRounds) && !g.o.settled {
		return nil
	}
	var seen []string
	for l := range g.loops {
		x := &g.loops[l]
		n := x.count.of(&g.new)
		if !x.unsure || n == x.rounds || g.o.settled && slices.ContainsFunc(g.o.seen, func(grid []int) bool {
			return x.count.of(&space{ranks: product(grid), grid: grid}) != x.rounds
		}) {
			continue
		}
		choices := []string{fmt.Sprintf("%d (fixed)", x.rounds), fmt.Sprintf("%d (%s)", n, x.count.text())}
		if g.counts[l] != x.rounds {
			slices.Reverse(choices)
		}
		d := doubt{fmt.Sprintf("the number of rounds of %s", g.callsOf(x)), choices, giveRounds}
		if text := d.text(); !slices.Contains(seen, text) {
			seen, all = append(seen, text), append(all, d)
		}
	}
	return all
}

// callsOf returns the calls of a round of a loop in words.
func (g *target) callsOf(x *loop) string {
	var parts []string
	for b := range x.length {
		if s := &g.slots[g.order[x.first+b]]; s.call != nil {
			parts = append(parts, s.call.short())
		}
	}
	return strings.Join(parts, ", ")
}

// distanceDoubts names distances in the order of ranks that may be fixed, or a part of the number of ranks. Distances
// from 1 on without a gap are those of the nearest ranks.
func (g *target) distanceDoubts() (all []doubt) {
	used := map[rule]map[int]bool{onLine: {}, byXor: {}}
	for place, i := range g.order {
		c := g.slots[i].call
		if c == nil || c.kind != dag.Send || used[c.rule] == nil || g.loopOf[place] >= 0 {
			continue
		}
		if now, _ := g.callAt(&g.instances[g.single[place]]); now.at == c.at {
			used[c.rule][c.distance()] = true
		}
	}
	for _, r := range []rule{onLine, byXor} {
		for d := 2; d < g.old.ranks; d++ {
			if used[r][d] && !used[r][d-1] {
				far := big.NewRat(int64(d)*int64(g.new.ranks), int64(g.old.ranks))
				all = append(all, doubt{fmt.Sprintf("the distance to %s", r.describe(vector{int32(d)})),
					[]string{fmt.Sprint(d), far.RatString() + " (a part of the ranks)"}, ""})
				break
			}
		}
	}
	return all
}

// sizeDoubts names the sizes that several laws give.
func (g *target) sizeDoubts() (all []doubt) {
	seen := map[string]bool{}
	add := func(d *doubt) {
		if text := d.text(); !seen[text] {
			seen[text], all = true, append(all, *d)
		}
	}
	if d := g.borderDoubt(); d != nil {
		add(d)
	}
	type checked struct {
		sized
		loop, body int
		always     bool
	}
	done := map[checked]bool{}
	for i := range g.instances {
		inst := &g.instances[i]
		s := &g.slots[inst.slot]
		if s.call == nil || s.call.kind == dag.Recv { // of the size of its message
			continue
		}
		sizes := [2]size{s.size, s.recv}
		if inst.loop >= 0 && g.loops[inst.loop].body[inst.body].half != 0 {
			sizes = g.loops[inst.loop].body[inst.body].size // others double or halve
		}
		for which, z := range sizes {
			if z.kind == drawn {
				continue
			}
			values := []int64{z.value}
			for _, v := range z.table {
				if !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
			slices.Sort(values)
			for _, v := range values {
				now := checked{sized{*s.call, which, v}, int(inst.loop), inst.body, s.always}
				if v <= 0 || done[now] {
					continue
				}
				done[now] = true
				if d := g.sizeDoubt(s, inst, v, which); d != nil {
					add(d)
				}
			}
		}
	}
	return all
}

// sizeDoubt returns the doubt about a size of a call, or nil.
func (g *target) sizeDoubt(s *slot, inst *instance, v int64, which int) *doubt {
	at := g.scaled(s, inst, v, which)
	what := fmt.Sprintf("the size of %s, %d B on %d ranks", s.call.name(), v, g.old.ranks)
	if d := g.dividedDoubt(s, inst, what, v); d != nil {
		return d
	}
	choices := []string{fmt.Sprintf("%d B", at)}
	values := []int64{at}
	laws, compared := g.o.laws[g.sizedOf(inst, v, which)]
	if !compared || g.o.fits[g.sizedOf(inst, v, which)] {
		if laws = g.lawsOf(s, inst, v, which, laws, compared); len(laws) == 0 {
			return nil
		}
	} else if len(laws) == 0 {
		return &doubt{what, []string{"no rule gives its value in all traces"}, ""}
	}
	for _, l := range laws {
		f := l.share(&g.old, g.new.ranks, g.new.grid)
		if n := l.apply(v, f); !slices.Contains(values, n) {
			values = append(values, n)
			choices = append(choices, fmt.Sprintf("%d B (%s)", n, l.text()))
		}
	}
	if len(values) == 1 {
		return nil
	}
	d := &doubt{what: what, choices: choices}
	if g.o.compare && s.call.comm>>8 != 0 {
		d.remedy = giveScaling
	}
	return d
}

// dividedDoubt returns a doubt about the size of a message that was v bytes, a whole number of elements, and becomes a
// part that is not, or nil: programs round it in ways of their own.
func (g *target) dividedDoubt(s *slot, inst *instance, what string, v int64) *doubt {
	if s.call.kind != dag.Send || v <= few {
		return nil
	}
	constant, f := g.shareOf(s, inst, v, 0)
	element := int64(8) // bytes
	for (v-constant)%element != 0 {
		element /= 2
	}
	high, low := bits.Mul64(uint64((v-constant)/element), uint64(f.numerator))
	if high >= uint64(f.denominator) {
		return nil
	}
	whole, rest := bits.Div64(high, low, uint64(f.denominator))
	if rest == 0 {
		return nil
	}
	at := constant + int64(whole)*element
	choices := []string{fmt.Sprintf("%d B", at), fmt.Sprintf("%d B", at+element)}
	if g.scaled(s, inst, v, 0) > at {
		slices.Reverse(choices)
	}
	return &doubt{what: what + ", which the new number of ranks does not divide", choices: choices}
}

// lawsOf returns the laws besides that of scaled that the structure of the program allows for a size; those that other
// traces confirm if they were compared.
func (g *target) lawsOf(s *slot, inst *instance, v int64, which int, confirmed []growth, compared bool) (all []growth) {
	for _, l := range g.structural(s, inst, v, which) {
		if !compared || slices.Contains(confirmed, l) {
			all = append(all, l)
		}
	}
	return all
}

// structural returns the laws of a size that programs of this structure have, none if there is one only, which is that
// of scaled: weak scaling keeps messages, and under strong scaling the surface of a part of a grid shrinks with the
// grid, and a rank's share of all data with the number of ranks.
func (g *target) structural(s *slot, inst *instance, v int64, which int) []growth {
	c := s.call
	strong := g.o.Scaling == Strong
	var x *loop
	if inst.loop >= 0 && !g.loops[inst.loop].unsure {
		x = &g.loops[inst.loop]
	}
	if c.kind == dag.Coll {
		return g.structuralOfCollective(s, v, which)
	}
	if x != nil && x.body[inst.body].half != 0 {
		doubles := x.body[inst.body].half > 0
		switch {
		case !strong && (doubles && !g.facts.halves || s.feature.kind == multiples || c.rule == onGrid):
			return nil // each rank keeps its block, or the finest level of its part of a grid
		case doubles:
			return []growth{equal, parts}
		}
		return []growth{equal, whole}
	}
	if !strong || v <= few {
		return nil
	}
	switch {
	case x != nil && x.body[inst.body].kind == sum:
		return []growth{equal, parts, blocks}
	case x != nil && x.counted:
		return nil // blocks that visit all ranks
	case x != nil && c.rule == onGrid:
		return append([]growth{equal}, g.alongDims()...)
	case g.inSquare(c, inst):
		return []growth{wide, narrow}
	case c.rule == onGrid:
		for d, n := range c.at {
			if d < len(g.old.grid) && n != 0 && g.old.periodic[d] && !g.twoWay(c) {
				return []growth{parts} // blocks that move on
			}
		}
		return nil
	case c.rule == onLine && c.distance() == 1:
		both := g.twoWay(c)
		if both && s.always || !both && g.old.ring {
			return nil // surfaces of slabs, blocks on a ring
		}
	}
	return append([]growth{equal, parts}, g.sides()...)
}

// structuralOfCollective is structural for collectives.
func (g *target) structuralOfCollective(s *slot, v int64, which int) (all []growth) {
	c := s.call
	_, before := g.old.memberOf(c.comm, 0)
	block := v
	switch c.sub {
	case dag.Alltoall, dag.Alltoallv:
		if block = v / int64(before); block > countBytes && block <= smallBlock && c.sub == dag.Alltoall {
			return []growth{whole, equal, parts}
		}
		return nil
	case dag.Gather, dag.Gatherv, dag.Allgather, dag.Allgatherv:
		if which == 1 {
			return nil // as what is sent
		}
	case dag.Scatter, dag.Scatterv:
		if which == 0 {
			return nil
		}
	}
	const least = 8 // members: smaller numbers are common
	if c.comm>>8 == 0 && before >= least {
		n := int64(before)
		for _, unit := range []int64{4, 8} {
			switch block {
			case unit * n:
				all = append(all, equal, whole)
			case unit * (n - 1):
				all = append(all, equal, growth{power: 1, dim: allRanks, less: 1})
			}
		}
	}
	if g.o.compare && c.comm>>8 != 0 && block > few { // other traces may have a dimension of the same length
		all = append(all, g.alongDims()...)
	}
	if g.o.Scaling != Strong || block <= few {
		return all
	}
	if c.comm>>8 != 0 && g.evenly() {
		switch c.sub {
		case dag.Bcast, dag.Reduce, dag.Allreduce, dag.Scan, dag.Exscan:
			return all // a segment of a vector
		}
	}
	if c.comm>>8 != 0 {
		all = append(all, g.alongDims()...)
	}
	return append(all, equal, parts)
}

// Sizes of a block of an alltoall in bytes.
const (
	countBytes = 8  // of a number
	smallBlock = 16 // of a few: larger ones are data
)

// alongDims returns the laws of sizes that shrink along one dimension.
func (g *target) alongDims() (all []growth) {
	if len(g.old.grid) == 1 {
		return nil
	}
	for d := range g.old.grid {
		all = append(all, growth{}.of(-1, d))
	}
	return all
}

// evenly reports whether all dimensions grow by the same factor.
func (g *target) evenly() bool {
	for d, n := range g.new.grid {
		if n*g.old.grid[0] != g.new.grid[0]*g.old.grid[d] {
			return false
		}
	}
	return true
}

// facts are properties of the whole program.
type facts struct {
	sent      map[sentTo]bool
	transpose bool // of messages
	halves    bool // sizes halve in rounds of a loop
	rows      map[int64]bool
	across    map[int64]bool // sizes of transposes, as rows is of sums along rows
}

// sentTo is a partner that messages have.
type sentTo struct {
	rule rule
	at   vector
}

// findFacts sets the facts.
func (m *model) findFacts() {
	f := facts{sent: map[sentTo]bool{}, rows: map[int64]bool{}, across: map[int64]bool{}}
	for i := range m.slots {
		s := &m.slots[i]
		if s.call == nil {
			continue
		}
		if s.call.kind == dag.Send {
			f.sent[sentTo{s.call.rule, s.call.at}] = true
		}
		if s.call.rule == transpose {
			f.transpose, f.across[s.size.value] = true, true
		}
	}
	for l := range m.loops {
		x := &m.loops[l]
		if x.count.root {
			f.rows[m.slots[m.order[x.first]].size.value] = true
		}
		f.halves = f.halves || slices.ContainsFunc(x.body, func(p progress) bool { return p.half < 0 })
	}
	m.facts = f
}

// sides returns the laws of sizes in rows and columns of a square of ranks that is no grid, if the program has one.
func (m *model) sides() []growth {
	if m.facts.transpose {
		return []growth{wide, narrow}
	}
	return nil
}

// inSquare reports whether a message is a segment of a vector in a square of ranks: sums along rows, and the transpose
// of the same size.
func (m *model) inSquare(c *call, inst *instance) bool {
	if c.rule != transpose && (inst.loop < 0 || !m.loops[inst.loop].count.root) {
		return false
	}
	v := m.slots[inst.slot].size.value
	return m.facts.rows[v] && m.facts.across[v]
}

// twoWay reports whether ranks send in the opposite direction, too.
func (m *model) twoWay(c *call) bool {
	back := c.at
	for d := range back {
		back[d] = -back[d]
	}
	return m.facts.sent[sentTo{c.rule, back}]
}

// borderDoubt returns a doubt about borders with a constant part, such as corners: the borders of the whole along two
// dimensions differ by little. It is also about borders that the new grid does not divide.
func (g *target) borderDoubt() *doubt {
	if g.o.Scaling != Strong {
		return nil
	}
	type border struct {
		c     *call
		bytes int64
		whole float64
		known bool // other traces have another grid, on which the border is another one
	}
	var all []border
	done := map[sized]bool{}
	for i := range g.instances {
		inst := &g.instances[i]
		s := &g.slots[inst.slot]
		c := s.call
		if c == nil || c.kind != dag.Send || c.rule != onGrid || inst.loop >= 0 || s.size.kind != constant ||
			s.size.value <= few {
			continue
		}
		same := sized{*c, 0, s.size.value}
		if same.call.tag = 0; done[same] { // tags may number iterations
			continue
		}
		done[same] = true
		f, moved := share{1, 1}, 0
		laws := g.o.laws[g.sizedOf(inst, s.size.value, 0)]
		b := border{c, s.size.value, float64(s.size.value), len(laws) > 0 && !slices.Contains(laws, equal)}
		for d, n := range g.old.grid {
			if c.at[d] != 0 {
				moved++
				continue
			}
			f.times(n, g.new.grid[d])
			b.whole *= float64(n)
		}
		if moved != 1 {
			continue
		}
		if all = append(all, b); b.known {
			continue
		}
		element := int64(8) // bytes
		if b.bytes%element != 0 {
			element = 4
		}
		if v := new(big.Int).Mul(big.NewInt(b.bytes/element), big.NewInt(f.numerator)); b.bytes%element == 0 &&
			v.Mod(v, big.NewInt(f.denominator)).Sign() != 0 {
			return &doubt{fmt.Sprintf("the size of %s, %d B on grid %s", c.short(), b.bytes, text(g.old.grid)),
				[]string{fmt.Sprintf("%d B", g.scaled(s, inst, b.bytes, 0)),
					"less on some ranks and more on others, as the grid " + text(g.new.grid) +
						" does not divide it"}, ""}
		}
		if n := withBorder(b.bytes); n > 0 && len(g.old.grid) == 2 && f.numerator != f.denominator {
			return &doubt{fmt.Sprintf("the size of %s, %d B on grid %s", c.short(), b.bytes, text(g.old.grid)),
				[]string{fmt.Sprintf("%d B", g.scaled(s, inst, b.bytes, 0)),
					fmt.Sprintf("%d B (%d B for corners, the rest shrinks)", n+scaleBytes(b.bytes-n, f.numerator,
						f.denominator), n)}, ""}
		}
	}
	const near = 1.3
	for _, a := range all {
		for _, b := range all {
			if a.whole < b.whole && b.whole < near*a.whole && !(a.known && b.known) {
				return &doubt{fmt.Sprintf("the sizes of %s and %s, %d B and %d B on grid %s", a.c.short(), b.c.short(),
					a.bytes, b.bytes, text(g.old.grid)), []string{"shares of unlike borders",
					"shares of a border with a constant part, such as its corners"}, ""}
			}
		}
	}
	return nil
}

// withBorder returns the bytes of corners that are likely in the size of a border, or 0: a few elements, without which
// their number is far rounder.
func withBorder(bytes int64) int64 {
	element := int64(8)
	if bytes%element != 0 {
		element = 4
	}
	n := bytes / element
	const rounder, least, few = 8, 16, 4
	for _, corners := range []int64{2, 4, 8} {
		rest := n - corners
		if rest < least || few*corners > n || bytes%element != 0 {
			continue
		}
		factor := rest & -rest // power of two
		if factor >= rounder*(n&-n) && (n%10 != 0 || rest == factor) {
			return corners * element
		}
	}
	return 0
}
