package rescale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Decision is options that other traces of the program decided, and how much they differ from the trace when it is
// rescaled to their ranks.
type Decision struct {
	Options Options
	Others  []Difference // of each other trace
}

// Difference is how much a trace differs from another one when it is rescaled to its ranks.
type Difference struct {
	Ranks int     // of the other trace
	Bytes float64 // sum of the differences of bytes of pairs of ranks and of collectives, relative to all bytes
	Calcs float64 // difference of the total time of calcs, relative
	// Longest is the difference of the time of calcs of the rank with the longest, relative.
	Longest float64
}

// most returns the largest differences.
func (d *Decision) most() (bytes, calcs float64) {
	for _, o := range d.Others {
		bytes, calcs = max(bytes, o.Bytes), max(calcs, o.Calcs)
	}
	return bytes, calcs
}

// nearest returns the difference of the trace whose number of ranks is nearest to another one.
func (d *Decision) nearest(ranks int) Difference {
	return slices.MinFunc(d.Others, func(a, b Difference) int {
		far := func(o Difference) float64 { return math.Abs(math.Log(float64(o.Ranks) / float64(ranks))) }
		return cmp.Compare(far(a), far(b))
	})
}

// better reports whether the differences are less than those of another decision, which may be nil.
func (d *Decision) better(other *Decision) bool {
	if other == nil {
		return true
	}
	bytes, calcs := d.most()
	b, c := other.most()
	return bytes < b || bytes == b && calcs < c
}

// unlike returns a refusal if the bytes of weak and strong scaling are alike on the ranks of the other traces, those on
// the new ones are not, and the calcs of neither are those of the other traces.
func (m *model) unlike(scalings map[Scaling]*Decision, others []*model) error {
	weak, strong := scalings[Weak], scalings[Strong]
	if weak == nil || strong == nil {
		return nil
	}
	const near = 0.1
	bytes, calcs := weak.most()
	b, c := strong.most()
	if b != bytes || b > maxDifference || min(c, calcs) <= near {
		return nil
	}
	var sizes [2][]int64
	for k, d := range []*Decision{weak, strong} {
		o := d.Options
		m.learn(others, &o)
		g, _, err := m.targetFor(o)
		if err != nil {
			return err
		}
		sizes[k] = g.sizes()
	}
	if slices.Equal(sizes[0], sizes[1]) {
		return nil
	}
	return refuse("the traces do not determine the scaling: bytes differ alike under weak and strong scaling, "+
		"calcs by %.3g %% and %.3g %%; expected --scaling", 100*calcs, 100*c)
}

// sizes returns the sizes of all instances.
func (g *target) sizes() (all []int64) {
	for i := range g.instances {
		inst := &g.instances[i]
		s := &g.slots[inst.slot]
		if s.call == nil {
			continue
		}
		for which, z := range [2]size{s.size, s.recv} {
			all = append(all, g.scaled(s, inst, z.value, which))
		}
	}
	return all
}

// maxDifference is the largest difference of bytes, relative, of a trace of the same program.
const maxDifference = 0.05

// Decide decides between the rules of [Rescale]: weak or strong scaling (unless fixed is set), the grid, numbers of
// rounds, and how sizes depend on the number of ranks. It rescales the trace to the ranks of other traces of the same
// program, one or more, and takes the options whose results are most like these. It returns a [*Refusal] if none are.
func Decide(ctx context.Context, t *dag.Trace, others []*dag.Trace, o Options, fixed bool) (*Decision, error) {
	m, err := analyze(ctx, t, o.OldGrid)
	if err != nil {
		return nil, err
	}
	asked := o
	models, truths := make([]*model, len(others)), make([]*volumes, len(others))
	used := map[int]bool{len(t.Ranks): true}
	for i, other := range others {
		if n := len(other.Ranks); used[n] {
			return nil, fmt.Errorf("a second trace has %d ranks, as the first or another one; expected another number",
				n)
		}
		used[len(other.Ranks)] = true
		if models[i], err = analyze(ctx, other, nil); err != nil {
			return nil, fmt.Errorf("the trace of %d ranks: %w", len(other.Ranks), err)
		}
		grid := models[i].old.grid
		if len(grid) != len(m.old.grid) && asked.OldGrid == nil {
			as, err := analyzeAs(ctx, t, len(grid))
			if err != nil {
				return nil, err
			}
			if as != nil {
				asked.OldGrid = as.old.grid
				d, err := Decide(ctx, t, others, asked, fixed)
				if r := (*Refusal)(nil); err == nil || !errors.As(err, &r) {
					return d, err
				}
			}
		}
		if len(grid) != len(m.old.grid) {
			return nil, refuse("the %d ranks form a grid of %s, the %d ranks of another trace one of %s", len(t.Ranks),
				text(m.old.grid), len(other.Ranks), text(grid))
		}
		o.seen = append(slices.Clip(o.seen), grid)
		truths[i] = volume(other)
	}
	var best *Decision
	var why error
	scalings := map[Scaling]*Decision{} // the best of each
	for _, try := range m.tries(o, fixed) {
		d, err := m.against(ctx, models, truths, try)
		var r *Refusal
		if errors.As(err, &r) {
			why = err
			continue
		} else if err != nil {
			return nil, err
		}
		d.Options = try
		if d.better(scalings[try.Scaling]) {
			scalings[try.Scaling] = d
		}
		if d.better(best) {
			best = d
		}
	}
	if best == nil {
		return nil, why
	}
	if err := m.unlike(scalings, models); err != nil && !o.Likeliest {
		return nil, err
	}
	m.learn(models, &best.Options)
	if err := m.learnTimes(ctx, models, &best.Options); err != nil {
		return nil, err
	}
	after, err := m.against(ctx, models, truths, best.Options)
	if err != nil {
		return nil, err
	}
	best.Others = after.Others
	for _, d := range best.Others {
		if d.Bytes > maxDifference && !o.Likeliest {
			return nil, refuse("no rule makes the %d ranks of another trace from the %d ranks of this one: bytes "+
				"would differ by %.3g %%, expected %.3g %% or less; use traces of the same program and input, "+
				"or --likeliest",
				d.Ranks, m.old.ranks, 100*d.Bytes, 100*maxDifference)
		}
	}
	if d := best.nearest(o.Ranks); max(d.Calcs, d.Longest) > maxError && !o.Likeliest {
		return nil, refuse("no rule gives the time of calcs of all traces: rescaled to the %d ranks of the other "+
			"trace nearest to %d ranks, the time of calcs differs from it by %.3g %% in all, and by %.3g %% on the "+
			"longest rank, expected %.3g %% or less; use traces nearer to the new number of ranks, or --likeliest",
			d.Ranks, o.Ranks, 100*d.Calcs, 100*d.Longest, 100*maxError)
	}
	best.Options.settled = !o.FixedRounds && !o.GrowingRounds
	best.Options.compare, best.Options.decided = !fixed, best
	return best, nil
}

// analyzeAs finds the structure of a trace on a grid of a number of dimensions, such as that of another trace. It
// returns nil if there is none, and takes the most balanced grid that gives one.
func analyzeAs(ctx context.Context, t *dag.Trace, dims int) (*model, error) {
	all := grids(len(t.Ranks), dims)
	const most = 8
	for _, grid := range all[:min(most, len(all))] {
		m, err := analyze(ctx, t, grid)
		var r *Refusal
		switch {
		case err == nil:
			return m, nil
		case !errors.As(err, &r):
			return nil, err
		}
	}
	return nil, nil
}

// tries returns the options to compare.
func (m *model) tries(o Options, fixed bool) (all []Options) {
	unsure := slices.ContainsFunc(m.loops, func(x loop) bool { return x.counted })
	for _, scaling := range []Scaling{Weak, Strong} {
		if fixed && scaling != o.Scaling {
			continue
		}
		o.Scaling = scaling
		all = append(all, o)
		if unsure && !o.FixedRounds && !o.GrowingRounds {
			keeps, grows := o, o
			keeps.FixedRounds, grows.GrowingRounds = true, true
			all = append(all, keeps, grows)
		}
	}
	return all
}

// against rescales to the ranks of other traces and compares.
func (m *model) against(ctx context.Context, models []*model, truths []*volumes, o Options) (*Decision, error) {
	d := &Decision{}
	for i, other := range models {
		try := o
		try.Ranks, try.Grid, try.Likeliest = other.old.ranks, other.old.grid, true
		made, _, err := m.extrapolate(ctx, try)
		if err != nil {
			return nil, err
		}
		out, err := dag.ReadAll(made)
		if err != nil {
			return nil, err
		}
		differs := compare(volume(out), truths[i])
		differs.Ranks = try.Ranks
		d.Others = append(d.Others, differs)
	}
	return d, nil
}

// volumes are the bytes of each pair of ranks and each kind of collective, and the time of calcs.
type volumes struct {
	pairs       map[pair]float64
	collectives [dag.NumSubkinds]float64
	calcs       float64
	longest     float64 // calcs of a rank
}

func volume(t *dag.Trace) *volumes {
	v := &volumes{pairs: map[pair]float64{}}
	for _, p := range dag.Matrix(t) {
		v.pairs[pair{p.Src, p.Dst}] = p.Bytes.Float()
	}
	for _, r := range t.Ranks {
		calcs := 0.0
		for i, kind := range r.Kind {
			switch kind {
			case dag.Coll:
				v.collectives[r.Subkind.At(i)] += float64(r.Bytes.At(i)) + float64(r.RecvBytes.At(i))
			case dag.Calc:
				calcs += float64(r.CalcTime(i)) + float64(r.Flops.At(i))
			}
		}
		v.calcs += calcs
		v.longest = max(v.longest, calcs)
	}
	return v
}

// compare compares the volumes of a rescaled and a recorded trace.
func compare(a, b *volumes) (d Difference) {
	differ, all := 0.0, 0.0
	add := func(x, y float64) { differ, all = differ+math.Abs(x-y), all+y }
	keys := map[pair]bool{}
	for p := range a.pairs {
		keys[p] = true
	}
	for p := range b.pairs {
		keys[p] = true
	}
	for _, p := range slices.SortedFunc(maps.Keys(keys), comparePairs) { // sums depend on the order
		add(a.pairs[p], b.pairs[p])
	}
	for i := range a.collectives {
		add(a.collectives[i], b.collectives[i])
	}
	if all > 0 {
		d.Bytes = differ / all
	}
	if b.calcs > 0 {
		d.Calcs = math.Abs(a.calcs-b.calcs) / b.calcs
		d.Longest = math.Abs(a.longest-b.longest) / b.longest
	}
	return d
}

// sized is a call of a size; which is 0 for Bytes and 1 for RecvBytes.
type sized struct {
	call  call
	which int
	bytes int64
}

// observed is a size in another trace.
type observed struct {
	ranks int
	grid  []int
	bytes int64
}

// learn compares the sizes of calls with those in other traces, and sets the laws that give them.
func (m *model) learn(others []*model, o *Options) {
	o.laws, o.fits = map[sized][]growth{}, map[sized]bool{}
	seen := map[sized][]observed{}
	for _, other := range others {
		at := observed{ranks: other.old.ranks, grid: other.old.grid}
		g := &target{model: m, o: *o, new: space{ranks: at.ranks, ring: m.old.ring, periodic: m.old.periodic,
			grid: at.grid}}
		g.o.laws, g.o.fits = nil, nil
		m.compareSizes(other, func(inst *instance, pair *slot, slots []int32) {
			s := &m.slots[inst.slot]
			for which, sizes := range [2][2]size{{s.size, pair.size}, {s.recv, pair.recv}} {
				for v, want := range sizes[0].against(&sizes[1]) {
					at.bytes = want
					usual := g.scaled(s, inst, v, which) == want
					for _, slot := range slots {
						key := sized{*m.slots[slot].call, which, v}
						o.fits[key] = usual && (len(seen[key]) == 0 || o.fits[key])
						seen[key] = append(seen[key], at)
					}
				}
			}
		})
	}
	for key, list := range seen {
		o.laws[key] = slices.DeleteFunc(m.allLaws(&key, list), func(l growth) bool {
			return slices.ContainsFunc(list, func(at observed) bool {
				return l.apply(key.bytes, l.share(&m.old, at.ranks, at.grid)) != at.bytes
			})
		})
	}
}

// compareSizes finds the calls that correspond to those of another trace; slots are all those of the same call, in
// rounds of a loop.
func (m *model) compareSizes(other *model, found func(inst *instance, pair *slot, slots []int32)) {
	mine, theirs := m.single(), other.single()
	seen := map[call]int{}
	for _, i := range m.order {
		s := &m.slots[i]
		if s.call == nil {
			continue
		}
		a, b, n := mine[*s.call], theirs[*s.call], seen[*s.call]
		if len(a) != len(b) || n == len(a) || a[n] != i {
			continue
		}
		seen[*s.call]++
		found(&instance{slot: i, loop: -1}, &other.slots[b[n]], []int32{i})
	}
	if len(m.loops) != len(other.loops) {
		return
	}
	for l := range m.loops {
		x, y := &m.loops[l], &other.loops[l]
		a, b := m.bodyCalls(x), other.bodyCalls(y)
		for n := range min(len(a), len(b)) {
			s, pair := m.slots[m.order[x.first+a[n]]], other.slots[other.order[y.first+b[n]]]
			if s.shape() != pair.shape() || x.body[a[n]].half != y.body[b[n]].half {
				continue
			}
			var slots []int32
			for round := range x.rounds {
				slots = append(slots, m.order[x.first+round*x.length+a[n]])
			}
			if x.body[a[n]].half != 0 {
				slots = slots[:1]
			}
			found(&instance{slot: slots[0], loop: int32(l), body: a[n]}, &pair, slots)
		}
	}
}

// bodyCalls returns the places of the calls in the rounds of a loop.
func (m *model) bodyCalls(x *loop) (all []int) {
	for b := range x.length {
		if m.slots[m.order[x.first+b]].call != nil {
			all = append(all, b)
		}
	}
	return all
}

// single returns the slots of each call outside of loops, in order.
func (m *model) single() map[call][]int32 {
	inLoop := make([]bool, len(m.order))
	for _, x := range m.loops {
		for i := x.first; i < x.first+x.length*x.rounds; i++ {
			inLoop[i] = true
		}
	}
	all := map[call][]int32{}
	for place, i := range m.order {
		if s := &m.slots[i]; s.call != nil && !inLoop[place] {
			all[*s.call] = append(all[*s.call], i)
		}
	}
	return all
}

// against returns the values of a size and those of another one, of the same ranks or places, except where both are 0.
func (z *size) against(other *size) map[int64]int64 {
	all := map[int64]int64{}
	switch {
	case z.kind == constant && other.kind == constant:
		all[z.value] = other.value
	case z.kind == byPlace && other.kind == byPlace && z.feature.kind == other.feature.kind:
		for k, v := range z.table {
			want, known := other.table[k]
			if before, twice := all[v]; !known || twice && before != want {
				return nil
			}
			all[v] = want
		}
	}
	delete(all, 0)
	return all
}
