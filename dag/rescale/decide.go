package rescale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Decision is options that another trace of the program decided, and how much the trace differs from the other one when
// it is rescaled to its ranks.
type Decision struct {
	Options Options
	Second  int     // ranks of the other trace
	Bytes   float64 // sum of the differences of bytes of pairs of ranks and of collectives, relative to all bytes
	Calcs   float64 // difference of the total time of calcs, relative
}

// Decide decides between the assumptions of [Rescale]: weak or strong scaling (unless fixed is set), the order of the
// dimensions of the grid, and what rounds on a ring are. It rescales the trace to the ranks of another trace of the
// same program and takes the options whose result is most like the other trace.
func Decide(ctx context.Context, t, second *dag.Trace, o Options, fixed bool) (*Decision, error) {
	if len(second.Ranks) == len(t.Ranks) {
		return nil, fmt.Errorf("the second trace has %d ranks, as the first; expected another number",
			len(second.Ranks))
	}
	m, err := analyze(ctx, t, o.OldGrid)
	if err != nil {
		return nil, err
	}
	other, err := analyze(ctx, second, nil)
	if err != nil {
		return nil, fmt.Errorf("the second trace: %w", err)
	}
	grid := other.old.grid
	if len(grid) != len(m.old.grid) {
		return nil, refuse("the ranks form a grid of %s, those of the second trace one of %s", text(m.old.grid),
			text(grid))
	}
	truth := volume(second)
	var best *Decision
	var why error
	for _, scaling := range []Scaling{Weak, Strong} {
		if fixed && scaling != o.Scaling {
			continue
		}
		for _, rounds := range []bool{false, true} {
			try := o
			try.Ranks, try.Scaling, try.FixedRounds, try.Grid = len(second.Ranks), scaling, rounds || o.FixedRounds,
				grid
			out, _, err := m.extrapolate(ctx, try)
			var r *Refusal
			if errors.As(err, &r) {
				why = err
				continue
			} else if err != nil {
				return nil, err
			}
			d := compare(volume(out), truth)
			d.Options, d.Second = try, len(second.Ranks)
			if best == nil || d.Bytes < best.Bytes || d.Bytes == best.Bytes && d.Calcs < best.Calcs {
				best = d
			}
		}
	}
	if best == nil {
		return nil, why
	}
	if best.Bytes > 0 {
		best.Options.growths = m.growths(other, best.Options)
		if out, _, err := m.extrapolate(ctx, best.Options); err == nil {
			best.Bytes = compare(volume(out), truth).Bytes
		} else {
			best.Options.growths = nil
		}
	}
	best.Options.Ranks, best.Options.Grid = o.Ranks, o.Grid
	best.Options.like, best.Options.decided = grid, best
	return best, nil
}

// volumes are the bytes of each pair of ranks and each kind of collective, and the time of calcs.
type volumes struct {
	pairs       map[pair]float64
	collectives [dag.NumSubkinds]float64
	calcs       float64
}

func volume(t *dag.Trace) *volumes {
	v := &volumes{pairs: map[pair]float64{}}
	for _, p := range dag.Matrix(t) {
		v.pairs[pair{p.Src, p.Dst}] = p.Bytes.Float()
	}
	for _, r := range t.Ranks {
		for i, kind := range r.Kind {
			switch kind {
			case dag.Coll:
				v.collectives[r.Subkind.At(i)] += float64(r.Bytes.At(i)) + float64(r.RecvBytes.At(i))
			case dag.Calc:
				v.calcs += float64(r.CalcTime(i)) + float64(r.Flops.At(i))
			}
		}
	}
	return v
}

// compare compares the volumes of a rescaled and a recorded trace.
func compare(a, b *volumes) *Decision {
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
	d := &Decision{}
	if all > 0 {
		d.Bytes = differ / all
	}
	if b.calcs > 0 {
		d.Calcs = math.Abs(a.calcs-b.calcs) / b.calcs
	}
	return d
}

// sized is a call of a size; which is 0 for Bytes and 1 for RecvBytes.
type sized struct {
	call  call
	which int
	bytes int64
}

// growth is the dependence of a size on the ranks: it is proportional to a power of their number, or of those along a
// dimension.
type growth struct {
	power int // -2..1
	dim   int // -1: all ranks
}

// growths compares the sizes of calls with those in another trace. It returns the growth of the sizes that the scaling
// does not give.
func (m *model) growths(other *model, o Options) map[sized]growth {
	g := &target{model: m, o: o, new: space{ranks: o.Ranks, ring: m.old.ring, periodic: m.old.periodic, grid: o.Grid}}
	mine, theirs := m.single(), other.single()
	found, contradicted := map[sized]growth{}, map[sized]bool{}
	// learn compares a slot with that of the other trace; slots are all those of the same call, in rounds of a loop.
	learn := func(inst *instance, pair *slot, slots []int32) {
		s := &m.slots[inst.slot]
		for which, sizes := range [2][2]size{{s.size, pair.size}, {s.recv, pair.recv}} {
			for v, want := range sizes[0].against(&sizes[1]) {
				if g.scaled(s, inst, v, which) == want {
					continue
				}
				now, known := m.growthOf(s.call, o, v, want)
				for _, slot := range slots {
					key := sized{*m.slots[slot].call, which, v}
					before, twice := found[key]
					if !known || twice && before != now {
						contradicted[key] = true
					}
					found[key] = now
				}
			}
		}
	}
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
		learn(&instance{slot: i, loop: -1}, &other.slots[b[n]], []int32{i})
	}
	if len(m.loops) == len(other.loops) {
		for l := range m.loops {
			x, y := &m.loops[l], &other.loops[l]
			a, b := m.bodyCalls(x), other.bodyCalls(y)
			for n := range min(len(a), len(b)) {
				s, pair := m.slots[m.order[x.first+a[n]]], other.slots[other.order[y.first+b[n]]]
				if x.body[a[n]].half != 0 || s.shape() != pair.shape() {
					continue
				}
				var slots []int32
				for round := range x.rounds {
					slots = append(slots, m.order[x.first+round*x.length+a[n]])
				}
				learn(&instance{slot: slots[0], loop: int32(l), body: a[n]}, &pair, slots)
			}
		}
	}
	for key := range contradicted {
		delete(found, key)
	}
	return found
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

// growthOf returns a growth from a size to the one in another trace. Sizes of calls on the grid or a part of it may
// depend on a dimension.
func (m *model) growthOf(c *call, o Options, bytes, want int64) (growth, bool) {
	var all []growth
	if len(m.old.grid) > 1 && (c.rule == onGrid || c.comm>>8 != 0) {
		for d := range m.old.grid {
			all = append(all, growth{-1, d})
		}
	}
	for _, power := range []int{-1, 0, 1, -2} {
		all = append(all, growth{power, -1})
	}
	for _, l := range all {
		f := l.share(&m.old, o.Ranks, o.Grid)
		if scaleBytes(bytes, f.numerator, f.denominator) == want {
			return l, true
		}
	}
	return growth{}, false
}

// share returns the factor of sizes on other ranks.
func (l growth) share(s *space, ranks int, grid []int) share {
	old := s.ranks
	if l.dim >= 0 {
		old, ranks = s.grid[l.dim], grid[l.dim]
	}
	f := share{1, 1}
	for range max(l.power, -l.power) {
		if l.power > 0 {
			f.times(ranks, old)
		} else {
			f.times(old, ranks)
		}
	}
	return f
}
