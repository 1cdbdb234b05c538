package rescale

import (
	"cmp"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// maxDims is the largest number of dimensions of a grid.
const maxDims = 4

// axes are the names of dimensions in reports; x varies fastest with the rank.
const axes = "xyzw"

// vector is a displacement on a grid. Rules of one number use its first element.
type vector [maxDims]int32

// rule is how a call finds its partner.
type rule uint8

const (
	alone     rule = iota // no partner: collectives without root
	onGrid                // a displacement on the grid
	onLine                // a displacement in the order of ranks
	byXor                 // exclusive or with the rank
	fixed                 // the same rank for all
	anyone                // receives from any source
	mirrored              // the ranks in reverse order
	transpose             // the bits of the rank rotated by half of their number; of an odd number without the lowest
	reverse               // the bits in reverse order
	left                  // the bits rotated by one to the left
	right                 // or to the right
	mixed                 // of messages: each has one of the other rules
	binary                // parent and children in a binary tree in the order of ranks: -2, -1, 1 or 2
	member                // root of a collective: a place in the communicator, -1 for the last
)

// space is the ranks of a trace and their grid.
type space struct {
	ranks    int
	grid     []int // ranks along each dimension, the fastest first
	periodic []bool
	ring     bool  // the line of ranks is periodic
	unknown  []int // dimensions of two ranks about whose period nothing is known
}

// coordinates returns the place of a rank on the grid.
func (s *space) coordinates(rank int) (c vector) {
	for d, n := range s.grid {
		c[d] = int32(rank % n)
		rank /= n
	}
	return c
}

// at returns the rank at a place on the grid.
func (s *space) at(c vector) int {
	rank := 0
	for d := len(s.grid) - 1; d >= 0; d-- {
		rank = rank*s.grid[d] + int(c[d])
	}
	return rank
}

// partner returns the partner of a rank, and whether it exists.
func (s *space) partner(r rule, v vector, rank int) (int, bool) {
	switch r {
	case onGrid:
		c := s.coordinates(rank)
		for d, n := range s.grid {
			c[d] += v[d]
			if s.periodic[d] {
				c[d] = int32(modulo(int(c[d]), n))
			} else if c[d] < 0 || int(c[d]) >= n {
				return 0, false
			}
		}
		return s.at(c), true
	case onLine:
		p := rank + int(v[0])
		if s.ring {
			return modulo(p, s.ranks), true
		}
		return p, p >= 0 && p < s.ranks
	case byXor:
		p := rank ^ int(v[0])
		return p, p < s.ranks
	case fixed:
		return int(v[0]), int(v[0]) != rank && int(v[0]) < s.ranks
	case anyone:
		return dag.AnySource, true
	case mirrored, transpose, reverse, left, right:
		p, ok := permuted(r, rank, s.ranks)
		return p, ok && p != rank
	case binary:
		if v[0] > 0 {
			p := 2*rank + int(v[0])
			return p, p < s.ranks
		}
		p := rank + int(v[0])
		return p / 2, p >= 0 && p%2 == 0
	}
	return 0, true
}

// permuted returns the partner of a rank in a permutation of n ranks, and whether n has that permutation.
func permuted(r rule, rank, n int) (int, bool) {
	if r == mirrored {
		return n - 1 - rank, true
	}
	b := bits.Len(uint(n)) - 1
	if n != 1<<b || b < 2 {
		return 0, false
	}
	if r == transpose && b%2 != 0 { // a grid twice as long as wide: pairs of ranks
		p, ok := permuted(r, rank/2, n/2)
		return 2*p + rank%2, ok
	}
	by := 1
	switch r {
	case reverse:
		return int(bits.Reverse64(uint64(rank)) >> (64 - b)), true
	case transpose:
		by = b / 2
	case right:
		by = b - 1
	}
	return (rank<<by | rank>>(b-by)) & (n - 1), true
}

func modulo(a, n int) int {
	return (a%n + n) % n
}

// describe returns the partner in words, such as "x+1".
func (r rule) describe(v vector) string {
	switch r {
	case onGrid:
		var parts []string
		for d, c := range v {
			if c != 0 {
				parts = append(parts, fmt.Sprintf("%c%+d", axes[d], c))
			}
		}
		if parts == nil {
			return "itself"
		}
		return strings.Join(parts, " ")
	case onLine:
		return fmt.Sprintf("rank%+d", v[0])
	case byXor:
		return fmt.Sprintf("rank xor %d", v[0])
	case fixed:
		return fmt.Sprintf("rank %d", v[0])
	case binary:
		return []string{"parent of a second child", "parent of a first child", "itself", "first child in a binary tree",
			"second child in a binary tree"}[v[0]+2]
	case member:
		if v[0] < 0 {
			return "last member"
		}
		return fmt.Sprintf("member %d", v[0])
	}
	return map[rule]string{alone: "", anyone: "any source", mirrored: "ranks in reverse order",
		transpose: "transposed bits of the rank", reverse: "bits of the rank in reverse order",
		left: "bits of the rank rotated to the left", right: "bits of the rank rotated to the right"}[r]
}

// pair is a sender and a receiver.
type pair struct{ from, to int32 }

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

// between returns the displacement from one rank to another on the grid: along a dimension that may be periodic, the
// shorter one, without the sign if both are equally long.
func (s *space) between(from, to int) (v vector) {
	a, b := s.coordinates(from), s.coordinates(to)
	for d, n := range s.grid {
		v[d] = b[d] - a[d]
		if s.periodic[d] {
			v[d] = shortest(v[d], n)
		}
	}
	return v
}

// shortest returns the displacement of least length that equals v modulo n, the positive one of two.
func shortest(v int32, n int) int32 {
	v = int32(modulo(int(v), n))
	if int(v) > n/2 {
		v -= int32(n)
	}
	return v
}

// findPeriods sets the dimensions that messages of groups cross at the border. In dimensions of two ranks, both
// directions lead to the same rank; there the number of messages decides, or else the other dimensions.
func (s *space) findPeriods(groups []*exchange) {
	s.periodic, s.unknown = make([]bool, len(s.grid)), nil
	var short []int
	crossed, stays := false, false
	for d, n := range s.grid {
		moved := false
		for _, x := range groups {
			if x.repeated {
				continue
			}
			for _, p := range x.pairs {
				a, b := s.coordinates(int(p.from)), s.coordinates(int(p.to))
				v := b[d] - a[d]
				moved = moved || v != 0
				if w := shortest(v, n); w != v && 2*int(w) != n {
					s.periodic[d] = true
				}
			}
		}
		switch {
		case n == 2 && moved:
			short = append(short, d)
		case moved && s.periodic[d]:
			crossed = true
		case moved:
			stays = true
		}
	}
	if len(short) == 0 {
		return
	}
	t := s.trafficOf(groups)
	for _, d := range short {
		period, known := t.periodic(d)
		switch {
		case known:
			s.periodic[d] = period
		case crossed || stays:
			s.periodic[d] = crossed
		case s.twins(groups, d):
			s.periodic[d] = true
		default:
			s.unknown = append(s.unknown, d)
		}
	}
}

// twins reports whether each rank sends messages of two tags to its partner along a dimension of two ranks: those to
// both neighbors.
func (s *space) twins(groups []*exchange, d int) (found bool) {
	again := againOf(groups)
	for _, x := range groups {
		if x.repeated || len(x.pairs) != s.ranks {
			continue
		}
		elsewhere := slices.ContainsFunc(x.pairs, func(p pair) bool {
			c := s.coordinates(int(p.from))
			c[d] = 1 - c[d]
			return s.at(c) != int(p.to)
		})
		if !elsewhere && !again[x.first] {
			return false
		}
		found = found || !elsewhere
	}
	return found
}

// againOf reports which groups have the messages of another one, by the first of them.
func againOf(groups []*exchange) map[int]bool {
	again := map[int]bool{}
	for _, x := range groups {
		if x.repeated {
			again[x.first] = true
		}
	}
	return again
}

// traffic is the messages between neighbors along each dimension: those to the next rank and to the previous one.
type traffic struct {
	grid     []int
	messages [maxDims][2]int64
	pairs    [maxDims][2]int64 // of ranks
	oneWay   [maxDims]bool     // each group has one direction
}

func (s *space) trafficOf(groups []*exchange) *traffic {
	t := &traffic{grid: s.grid}
	for d := range t.oneWay {
		t.oneWay[d] = true
	}
	seen := map[pair]bool{}
	for _, x := range groups {
		var ways [maxDims][2]bool
		for i, p := range x.pairs {
			a, b := s.coordinates(int(p.from)), s.coordinates(int(p.to))
			along, moved := 0, 0
			for d := range s.grid {
				if a[d] != b[d] {
					along, moved = d, moved+1
				}
			}
			way := 0
			switch {
			case moved != 1:
				continue
			case b[along] == a[along]-1:
				way = 1
			case b[along] != a[along]+1:
				continue
			}
			ways[along][way] = true
			t.messages[along][way] += int64(x.sent[i])
			if !seen[p] {
				seen[p] = true
				t.pairs[along][way]++
			}
		}
		for d, w := range ways {
			t.oneWay[d] = t.oneWay[d] && !(w[0] && w[1])
		}
	}
	return t
}

// periodic reports whether a dimension of two ranks is periodic, and whether that is known. Then a rank sends its
// neighbor as many messages as ranks along longer dimensions send to both of theirs, otherwise as many as to one.
func (t *traffic) periodic(d int) (period, known bool) {
	if t.oneWay[d] {
		return false, true
	}
	rate := func(d, way int) *big.Rat {
		return big.NewRat(t.messages[d][way], max(t.pairs[d][way], 1))
	}
	up, down := rate(d, 0), rate(d, 1)
	once, both, longer := true, up.Cmp(down) == 0, false
	for e, n := range t.grid {
		if n == 2 || t.pairs[e] == [2]int64{} {
			continue
		}
		longer = true
		once = once && up.Cmp(rate(e, 0)) == 0 && down.Cmp(rate(e, 1)) == 0
		both = both && up.Cmp(new(big.Rat).Add(rate(e, 0), rate(e, 1))) == 0
	}
	return both, longer && once != both
}

// cost returns how well a rule describes the pairs of a group: the number of different partners plus the number of
// those that some ranks have and others lack without being at a border, which it returns as irregular. ok is false if
// the rule does not apply.
func (s *space) cost(r rule, pairs []pair) (cost, irregular int, ok bool) {
	counts := map[vector]int{}
	for _, p := range pairs {
		v, ok := s.value(r, p)
		if !ok {
			return 0, 0, false
		}
		counts[v]++
	}
	for v, n := range counts {
		cost++
		if r == byXor { // two directions
			cost++
		}
		if !s.regular(r, v, n) {
			irregular++
		}
	}
	return cost + irregular, irregular, true
}

// value returns the number that a rule needs for a pair.
func (s *space) value(r rule, p pair) (v vector, ok bool) {
	switch r {
	case onGrid:
		return s.between(int(p.from), int(p.to)), true
	case onLine:
		v[0] = p.to - p.from
		if s.ring {
			v[0] = shortest(v[0], s.ranks)
		}
	case byXor:
		v[0] = p.from ^ p.to
		return v, s.ranks&(s.ranks-1) == 0
	case fixed:
		v[0] = p.to
	case mirrored, transpose, reverse, left, right:
		to, ok := permuted(r, int(p.from), s.ranks)
		return v, ok && to == int(p.to)
	case binary:
		v[0] = p.to - 2*p.from
		if v[0] == 1 || v[0] == 2 {
			return v, true
		}
		v[0] = 2*p.to - p.from
		return v, v[0] == -1 || v[0] == -2
	}
	return v, true
}

// regular reports whether n is the number of ranks that have the partner.
func (s *space) regular(r rule, v vector, n int) bool {
	d := int(max(v[0], -v[0]))
	switch r {
	case onGrid:
		all := 1
		for k, length := range s.grid {
			if !s.periodic[k] {
				length -= int(max(v[k], -v[k]))
			}
			all *= length
		}
		return n == all || n == s.coarse(v)
	case onLine:
		if d > 0 && d&(d-1) == 0 && (n == d || n == s.ranks/(2*d)) { // of a binomial tree
			return true
		}
		return n == s.ranks || !s.ring && n == s.ranks-d || d > 1 && n == (s.ranks+d-1)/d-1
	case fixed:
		return n == 1 || n >= s.ranks-1
	case byXor:
		return n == s.ranks
	}
	all := 0
	for rank := range s.ranks {
		if _, ok := s.partner(r, v, rank); ok {
			all++
		}
	}
	return n == all
}

// coarse returns the number of ranks that have the partner at a displacement along one dimension if only ranks whose
// coordinates are multiples of its length take part, as on a coarse level of a multigrid method; -1 if it is none.
func (s *space) coarse(v vector) int {
	step := v.step()
	if step < 2 {
		return -1
	}
	all := 1
	for d, n := range s.grid {
		n = (n + step - 1) / step
		if v[d] != 0 && !s.periodic[d] {
			n--
		}
		all *= n
	}
	return all
}

// step returns the length of a displacement along one dimension, 0 for others.
func (v vector) step() int {
	step := int32(0)
	for _, c := range v {
		if c != 0 && step != 0 {
			return 0
		}
		step += max(c, -c)
	}
	return int(step)
}

// grids returns all grids of n ranks in a number of dimensions of 2 or more each (one: any length), those of the most
// equal lengths first.
func grids(n, dims int) (all [][]int) {
	var add func(rest, left int, grid []int)
	add = func(rest, left int, grid []int) {
		if left == 1 {
			all = append(all, append(slices.Clone(grid), rest))
			return
		}
		for f := 2; f <= rest/2; f++ {
			if rest%f == 0 && rest/f >= 1<<(left-1) {
				add(rest/f, left-1, append(grid, f))
			}
		}
	}
	if n >= 1<<dims {
		add(n, dims, nil)
	}
	slices.SortStableFunc(all, func(a, b []int) int { return spread(a) - spread(b) })
	return all
}

// spread returns the difference between the longest and the shortest dimension.
func spread(grid []int) int {
	return slices.Max(grid) - slices.Min(grid)
}

// text returns a grid in words, such as "4x4".
func text(grid []int) string {
	var parts []string
	for _, n := range grid {
		parts = append(parts, fmt.Sprint(n))
	}
	return strings.Join(parts, "x")
}
