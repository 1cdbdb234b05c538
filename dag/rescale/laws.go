package rescale

import (
	"fmt"
	"math/bits"
	"slices"
)

// growth is how a size depends on the ranks: it is a constant plus a part in proportion to a power of the number of
// ranks, or of the ranks along a dimension.
type growth struct {
	power    int   // -2..1
	dim      int   // or one of the numbers below
	less     int   // taken from the number of ranks: 0 or 1
	constant int64 // bytes that do not grow
}

// Numbers of ranks that a size may depend on besides those along a dimension.
const (
	allRanks = -1
	longer   = -2 // side of the rectangle of all ranks that is a square, or twice as long as wide
	shorter  = -3
)

// Laws of sizes.
var (
	equal  = growth{}.of(0, allRanks)
	parts  = growth{}.of(-1, allRanks)
	blocks = growth{}.of(-2, allRanks)
	whole  = growth{}.of(1, allRanks)
	wide   = growth{}.of(-1, longer)
	narrow = growth{}.of(-1, shorter)
)

func (l growth) of(power, dim int) growth { return growth{power: power, dim: dim} }

// share returns the factor of sizes on other ranks.
func (l growth) share(s *space, ranks int, grid []int) share {
	old := s.ranks
	switch l.dim {
	case allRanks:
	case longer, shorter:
		old, ranks = sideOf(old, l.dim), sideOf(ranks, l.dim)
	default:
		old, ranks = s.grid[l.dim], grid[l.dim]
	}
	old, ranks = old-l.less, ranks-l.less
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

// sideOf returns a side of the rectangle of n ranks, rounded to powers of two.
func sideOf(n, side int) int {
	b := bits.Len(uint(n)) - 1
	if side == longer {
		b++
	}
	return 1 << (b / 2)
}

// apply returns a size on other ranks.
func (l growth) apply(bytes int64, f share) int64 {
	return l.constant + scaleBytes(bytes-l.constant, f.numerator, f.denominator)
}

func (l growth) text() string {
	n := "N"
	switch {
	case l.power == 0:
		return "fixed"
	case l.dim == longer:
		n = "the longer side of a square or double square"
	case l.dim == shorter:
		n = "the shorter side of a square or double square"
	case l.dim >= 0:
		n += string(axes[l.dim])
	}
	if l.less > 0 {
		n = fmt.Sprintf("(%s - %d)", n, l.less)
	}
	switch l.power {
	case -1:
		n = "1/" + n
	case -2:
		n = "1/" + n + "^2"
	}
	if l.constant > 0 {
		return fmt.Sprintf("%d B and the rest as %s", l.constant, n)
	}
	return "as " + n
}

// allLaws returns the laws that may give a size of other traces, the likeliest first. Sizes of calls on the grid or a
// part of it may depend on a dimension.
func (m *model) allLaws(key *sized, seen []observed) (all []growth) {
	c := &key.call
	if len(m.old.grid) > 1 && (c.rule == onGrid || c.comm>>8 != 0) {
		for d := range m.old.grid {
			all = append(all, growth{}.of(-1, d))
		}
	}
	all = append(all, parts, equal, whole, blocks, growth{power: 1, dim: allRanks, less: 1})
	all = append(all, m.sides()...)
	const dims = 2 // borders of more dimensions are products
	if len(m.old.grid) > dims {
		return all
	}
	for _, l := range all {
		if l.power != -1 || c.rule == onGrid && l.dim < 0 {
			continue
		}
		for _, at := range seen {
			with := l
			with.constant = l.constantOf(key.bytes, at.bytes, l.share(&m.old, at.ranks, at.grid))
			if with.constant > 0 && !slices.Contains(all, with) {
				all = append(all, with)
			}
		}
	}
	return all
}

// constantOf returns the constant part of a size of bytes that becomes want if the rest grows by a factor, 0 if none of
// a small part of it does.
func (l growth) constantOf(bytes, want int64, f share) int64 {
	const large, most = 1 << 40, 1 << 20
	const least = 8 // the constant is at most this part
	d := f.denominator - f.numerator
	if d == 0 || max(bytes, want) > large || max(f.numerator, f.denominator) > most {
		return 0
	}
	rest := want*f.denominator - bytes*f.numerator // constant times d
	if n := rest / d; rest%d == 0 && n > 0 && n <= min(bytes, want)/least {
		return n
	}
	return 0
}
