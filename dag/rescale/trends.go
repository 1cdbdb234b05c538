package rescale

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// trend is how a time depends on the ranks: the sum of its parts, relative to the time of the recorded trace, and not
// less than a part of the basis least.
type trend []part

// part is a part of a time and how it grows.
type part struct {
	weight float64 // on the recorded ranks
	by     basis
}

// basis is a function of the number of ranks, or of those along a dimension.
type basis struct {
	power float64
	dim   int // or allRanks
	log   bool
	floor bool
}

// Bases of times.
var (
	steady  = basis{dim: allRanks}
	inverse = basis{power: -1, dim: allRanks}
	linear  = basis{power: 1, dim: allRanks}
	surface = basis{power: -0.5, dim: allRanks} // borders of parts of a plane
	log2    = basis{dim: allRanks, log: true}
	least   = basis{dim: allRanks, floor: true} // of work that does not divide further
)

// of returns the value of the basis relative to that on the ranks of s.
func (b basis) of(s *space, ranks int, grid []int) float64 {
	old := s.ranks
	if b.dim >= 0 {
		old, ranks = s.grid[b.dim], grid[b.dim]
	}
	f := math.Pow(float64(ranks)/float64(old), b.power)
	if b.log {
		f *= math.Log2(float64(ranks)) / math.Log2(float64(old))
	}
	return f
}

// of returns the factor of times on other ranks.
func (t trend) of(s *space, ranks int, grid []int) float64 {
	sum, floor := 0.0, 0.0
	for _, p := range t {
		if p.by.floor {
			floor = max(floor, p.weight)
			continue
		}
		sum += float64(p.weight * p.by.of(s, ranks, grid))
	}
	return max(sum, floor)
}

// share returns the factor of times on other ranks as a fraction.
func (t trend) share(s *space, ranks int, grid []int) share {
	if len(t) == 1 && t[0].weight == 1 && !t[0].by.log && t[0].by.power == math.Trunc(t[0].by.power) {
		return growth{}.of(int(t[0].by.power), t[0].by.dim).share(s, ranks, grid)
	}
	return fractionOf(t.of(s, ranks, grid))
}

// fractionOf returns a factor as a fraction.
func fractionOf(f float64) share {
	const one, most = 1 << 30, 1 << 31
	return share{int64(math.Round(one * max(0, min(f, most)))), one}
}

func (t trend) text() string {
	sum, floor := 0.0, ""
	for _, p := range t {
		if p.by.floor {
			floor = fmt.Sprintf(", at least %.3g %%", 100*p.weight)
			continue
		}
		sum += max(p.weight, 0)
	}
	var texts []string
	for _, p := range t {
		if p.by.floor {
			continue
		}
		switch percent := 100 * p.weight / sum; {
		case percent >= 100:
			return p.by.text() + floor // less a fixed part
		case percent > 0:
			texts = append(texts, fmt.Sprintf("%.0f %% %s", percent, p.by.text()))
		}
	}
	return strings.Join(texts, " and ")
}

func (b basis) text() string {
	n := "N"
	if b.dim >= 0 {
		n += string(axes[b.dim])
	}
	switch {
	case b.log && b.power == 1:
		return "as " + n + " log2 " + n
	case b.log:
		return "as log2 " + n
	case b.power == 0:
		return "fixed"
	case b.power == 1:
		return "as " + n
	case b.power == -1:
		return "as 1/" + n
	}
	return fmt.Sprintf("as %s^%.2g", n, b.power)
}

// timed is a time in a trace relative to that which a trend without growth gives there.
type timed struct {
	ranks int
	grid  []int
	ratio float64 // more than 0
	rough bool    // of different numbers of calcs, as the traces differ in others than their time
}

// trendsOf returns the trends that give the times of all traces, the likeliest first: the same time, shares of the
// whole, and otherwise a power of the number of ranks and sums of two parts, which may give the same as long as there
// are few traces. The time of the recorded trace is 1 and not in seen.
func (m *model) trendsOf(seen []timed) []trend {
	s := &m.old
	least, most := s.ranks, s.ranks
	for _, at := range seen {
		least, most = min(least, at.ranks), max(most, at.ranks)
	}
	noise, exponent := 0.03, 0.05
	if slices.ContainsFunc(seen, func(at timed) bool { return at.rough }) {
		noise, exponent = 0.1, 0.15
	}
	near := min(noise, exponent*math.Log(float64(most)/float64(least)))
	differs := func(t trend) (worst float64) {
		for _, at := range seen {
			worst = max(worst, math.Abs(math.Log(t.of(s, at.ranks, at.grid)/at.ratio)))
		}
		return worst
	}
	for _, b := range []basis{steady, inverse, linear} {
		if t := (trend{{1, b}}); differs(t) <= near {
			return []trend{t}
		}
	}
	var all []trend
	if len(s.grid) > 1 {
		for d := range s.grid {
			if t := (trend{{1, basis{power: -1, dim: d}}}); differs(t) <= near {
				all = append(all, t)
			}
		}
	}
	if all != nil {
		return all
	}
	all = append(all, trend{{1, basis{power: m.powerOf(seen), dim: allRanks}}})
	for _, b := range [][2]basis{{steady, inverse}, {surface, inverse}, {steady, surface}, {steady, log2},
		{steady, linear}} {
		if t := m.mixOf(b, seen); t != nil {
			all = append(all, t)
		}
	}
	if t := m.flooredOf(seen, near); t != nil {
		all = append(all, t)
	}
	best := math.Inf(1)
	for _, t := range all {
		best = min(best, differs(t))
	}
	const worse = 1.5
	all = slices.DeleteFunc(all, func(t trend) bool { return differs(t) > max(worse*best, near) })
	if len(seen) > 1 {
		slices.SortStableFunc(all, func(a, b trend) int {
			switch x, y := differs(a), differs(b); {
			case x+near/4 < y:
				return -1
			case y+near/4 < x:
				return 1
			}
			return 0
		})
	}
	return all
}

// powerOf returns the power of the number of ranks that is most like the times: a simple one if it is as good.
func (m *model) powerOf(seen []timed) float64 {
	xx, xy := 0.0, 0.0
	for _, at := range seen {
		x := math.Log(float64(at.ranks) / float64(m.old.ranks))
		xx += float64(x * x)
		xy += float64(x * math.Log(at.ratio))
	}
	const near, most = 0.02, 4
	power := max(-most, min(xy/xx, most))
	for _, simple := range []float64{-2, -1.5, -1, -2.0 / 3, -0.5, -1.0 / 3, 0.5, 1, 1.5, 2} {
		if math.Abs(power-simple) <= near {
			return simple
		}
	}
	return power
}

// mixOf returns the sum of two parts that is most like the times, nil if one of the parts would be negative.
func (m *model) mixOf(b [2]basis, seen []timed) trend {
	// Least squares of the relative differences: the normal equations of two unknowns.
	var xx, xy, yy, x1, y1 float64
	add := func(x, y float64) {
		xx, xy, yy = xx+float64(x*x), xy+float64(x*y), yy+float64(y*y)
		x1, y1 = x1+x, y1+y
	}
	add(1, 1)
	for _, at := range seen {
		add(b[0].of(&m.old, at.ranks, at.grid)/at.ratio, b[1].of(&m.old, at.ranks, at.grid)/at.ratio)
	}
	d := float64(xx*yy) - float64(xy*xy)
	if math.Abs(d) < 1e-9*xx*yy {
		return nil
	}
	v, w := (float64(x1*yy)-float64(y1*xy))/d, (float64(y1*xx)-float64(x1*xy))/d
	if !(v > 0 && w > 0) {
		return nil
	}
	return trend{{v, b[0]}, {w, b[1]}}
}

// flooredOf returns shares of the whole down to a least time, if two traces or more show the shares and another one of
// more ranks the least time, or nil.
func (m *model) flooredOf(seen []timed, near float64) trend {
	all := m.withOwn(seen)
	first, last := all[0], all[len(all)-1]
	shares := trend{{first.ratio / inverse.of(&m.old, first.ranks, first.grid), inverse}}
	if !slices.ContainsFunc(all[1:], func(at timed) bool {
		f := shares.of(&m.old, at.ranks, at.grid)
		return f > last.ratio && math.Abs(math.Log(f/at.ratio)) <= near
	}) {
		return nil
	}
	return append(shares, part{last.ratio, least})
}

// withOwn returns the times of all traces in the order of their ranks.
func (m *model) withOwn(seen []timed) []timed {
	all := append([]timed{{ranks: m.old.ranks, grid: m.old.grid, ratio: 1}}, seen...)
	slices.SortFunc(all, func(a, b timed) int { return a.ranks - b.ranks })
	return all
}

// trendOfCalls returns the trend of the time in calls that make communicators, which exchange data of all ranks: if it
// grows, in proportion to the number of ranks, or by the same time for each rank as between the two traces of most
// ranks.
func (m *model) trendOfCalls(seen []timed) trend {
	all := m.withOwn(seen)
	const near = 1.1
	same := true
	for _, at := range seen {
		same = same && at.ratio < near && at.ratio > 1/near
	}
	if same {
		return trend{{1, steady}}
	}
	last, before := all[len(all)-1], all[len(all)-2]
	slopeTo := func(a, b timed) float64 { return (b.ratio - a.ratio) / float64(b.ranks-a.ranks) } // for each rank
	slope := slopeTo(before, last)
	fixed := last.ratio - float64(slope*float64(last.ranks))
	grows := func(slope float64) part { return part{float64(slope * float64(m.old.ranks)), linear} }
	switch {
	case slope <= 0:
		return trend{{last.ratio, steady}}
	case fixed <= 0 && (len(all) == 2 || math.Abs(slopeTo(all[len(all)-3], before)/slope-1) > near-1):
		return trend{grows(last.ratio / float64(last.ranks))}
	}
	return trend{{fixed, steady}, grows(slope)}
}
