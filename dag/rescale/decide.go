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
		best.Options.powers = m.powers(other, best.Options)
		if out, _, err := m.extrapolate(ctx, best.Options); err == nil {
			best.Bytes = compare(volume(out), truth).Bytes
		} else {
			best.Options.powers = nil
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

// powers returns the calls whose size in another trace is not the one that the scaling gives, but the recorded one
// times a power of the ratio of ranks: the exponent of each, -2..1.
func (m *model) powers(other *model, o Options) map[sized]int {
	g := &target{model: m, o: o, new: space{ranks: o.Ranks, ring: m.old.ring, periodic: m.old.periodic, grid: o.Grid}}
	mine, theirs := m.single(), other.single()
	found, contradicted := map[sized]int{}, map[sized]bool{}
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
		pair := &other.slots[b[n]]
		for which, sizes := range [2][2]size{{s.size, pair.size}, {s.recv, pair.recv}} {
			v, want := sizes[0].value, sizes[1].value
			if sizes[0].kind != constant || sizes[1].kind != constant {
				continue
			}
			key := sized{*s.call, which, v}
			power, known := 0, g.scaled(s, &instance{loop: -1}, v, which) == want
			if known {
				continue
			}
			for _, power = range []int{-1, 0, 1, -2} {
				f := powerOf(power, m.old.ranks, o.Ranks)
				if known = scaleBytes(v, f.numerator, f.denominator) == want; known {
					break
				}
			}
			before, twice := found[key]
			if !known || twice && before != power {
				contradicted[key] = true
			}
			found[key] = power
		}
	}
	for key := range contradicted {
		delete(found, key)
	}
	return found
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

// powerOf returns the ratio of new to old ranks to a power.
func powerOf(power, old, ranks int) share {
	f := share{1, 1}
	for range max(power, -power) {
		if power > 0 {
			f.times(ranks, old)
		} else {
			f.times(old, ranks)
		}
	}
	return f
}
