package rescale

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// newGrid returns the grid of the new trace and where it is from. It sets gridDoubt if the recorded grids allow others.
func (g *target) newGrid() (grid []int, source string, err error) {
	o, old := &g.o, g.old.grid
	if o.Grid != nil {
		return g.givenGrid()
	}
	g.gridDoubt = g.transposeDoubt()
	if len(old) == 1 {
		return []int{o.Ranks}, "line", nil
	}
	if o.Ranks == g.old.ranks {
		return old, "recorded", nil
	}
	choices := grids(o.Ranks, len(old))
	if len(choices) == 0 {
		return nil, "", refuse("%d ranks form no grid of %d dimensions with 2 ranks or more along each", o.Ranks,
			len(old))
	}
	recorded := append([][]int{old}, o.seen...)
	made := func(by func(n, dims int) []int) bool {
		return !slices.ContainsFunc(recorded, func(r []int) bool {
			return !slices.Equal(descending(r), by(product(r), len(r)))
		})
	}
	square := made(balanced)
	var list [][]int
	if square {
		list, source = g.orders(balanced(o.Ranks, len(old)), recorded), "balanced"
	}
	if made(unbalanced) {
		list = append(list, g.orders(unbalanced(o.Ranks, len(old)), recorded)...)
		square, source = true, "balanced"
	}
	if !square {
		list, source = proportional(choices, recorded), "proportions"
	}
	if !square || g.nodes() {
		list = append(list, stretched(recorded, o.Ranks)...)
	}
	var texts []string
	for _, n := range list {
		if t := text(n); !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	switch {
	case len(list) == 0:
		return nil, "", refuse("%d ranks form no grid that follows from the recorded ones, %s; expected --new-grid",
			o.Ranks, textsOf(recorded))
	case len(texts) > 1 && g.gridDoubt == nil:
		g.gridDoubt = &doubt{fmt.Sprintf("the grid (recorded: %s, x first)", textsOf(recorded)), texts, giveGrid}
	}
	return list[0], source, nil
}

// givenGrid checks the grid of the options.
func (g *target) givenGrid() (grid []int, source string, err error) {
	o, old := &g.o, g.old.grid
	all := 1
	for _, n := range o.Grid {
		if n < 1 || n > o.Ranks/all {
			all = 0
			break
		}
		all *= n
	}
	switch {
	case all != o.Ranks:
		return nil, "", refuse("expected a new grid of %d ranks, found %s", o.Ranks, text(o.Grid))
	case len(old) == 1:
		return []int{o.Ranks}, "line", nil
	case len(o.Grid) != len(old):
		return nil, "", refuse("grid %s has %d dimensions, but the recorded one is %s", text(o.Grid), len(o.Grid),
			text(old))
	}
	for d, n := range o.Grid {
		if n < 2 {
			return nil, "", refuse("grid %s has 1 rank along %c, which no recorded rank resembles", text(o.Grid),
				axes[d])
		}
	}
	return o.Grid, "given", nil
}

func product(grid []int) int {
	n := 1
	for _, d := range grid {
		n *= d
	}
	return n
}

// textsOf returns grids in words.
func textsOf(grids [][]int) string {
	all := ""
	for i, n := range grids {
		if i > 0 {
			all += ", "
		}
		all += text(n)
	}
	return all
}

// unbalanced returns the grid of n ranks of MPI_Dims_create in SimGrid's SMPI 3.32, which takes the square of a prime
// for a prime if it is the odd part of the number.
func unbalanced(n, dims int) []int {
	var factors []int
	take := func(f int) {
		for n > f && n%f == 0 {
			factors, n = append(factors, f), n/f
		}
	}
	take(2)
	odd := n
	for f := 3; f*f < odd; f += 2 {
		take(f)
	}
	grid := slices.Repeat([]int{1}, dims)
	for _, f := range slices.Backward(append(factors, n)) {
		grid[slices.Index(grid, slices.Min(grid))] *= f
	}
	return descending(grid)
}

// orders returns the grids of the lengths whose dimensions are in the order of the recorded ones: those that were
// longer stay longer. If the recorded ones do not show the order, the first is that of the first use.
func (g *target) orders(lengths []int, recorded [][]int) (all [][]int) {
	var add func(left, grid []int)
	add = func(left, grid []int) {
		if len(left) == 0 && inOrder(grid, recorded) {
			all = append(all, slices.Clone(grid))
		}
		for i, n := range left {
			if slices.Index(left, n) == i {
				add(slices.Delete(slices.Clone(left), i, i+1), append(slices.Clip(grid), n))
			}
		}
	}
	add(lengths, nil)
	up, down := g.cartesian(), false
	for _, r := range recorded {
		up = up || slices.IsSorted(r) && r[0] < r[len(r)-1]
		down = down || slices.IsSorted(reversed(r)) && r[0] > r[len(r)-1]
	}
	for _, n := range all {
		if up != down && (up && slices.IsSorted(n) || down && slices.IsSorted(reversed(n))) {
			return [][]int{n}
		}
	}
	when := g.firstUse()
	slices.SortStableFunc(all, func(a, b []int) int {
		for d := range when { // the longest first
			first := slices.Index(when, slices.Sorted(slices.Values(when))[d])
			if a[first] != b[first] {
				return b[first] - a[first]
			}
		}
		return 0
	})
	return all
}

// inOrder reports whether dimensions that are longer in a recorded grid are not shorter in the new one.
func inOrder(grid []int, recorded [][]int) bool {
	for _, r := range recorded {
		for a := range r {
			for b := range r {
				if r[a] > r[b] && grid[a] < grid[b] {
					return false
				}
			}
		}
	}
	return true
}

func reversed(grid []int) []int {
	r := slices.Clone(grid)
	slices.Reverse(r)
	return r
}

// cartesian reports whether the program has a communicator of all ranks of its own: that of a Cartesian grid, whose
// first dimension varies slowest, and which MPI_Dims_create makes the longest.
func (m *model) cartesian() bool {
	return slices.ContainsFunc(m.slots, func(s slot) bool {
		return s.call != nil && s.call.comm > 0 && s.call.comm < 1<<8
	})
}

// nodes reports whether only communicators show the grid, and not all dimensions have the same part in it: a reduction
// among the ranks of nodes and then their leaders, or then of the parts of each rank of a node, where the nodes may
// keep their size.
func (m *model) nodes() bool {
	along := int32(0)
	some := false
	scattered := map[int64]int32{} // parts, and along which dimensions
	for i := range m.slots {
		s := &m.slots[i]
		if s.call == nil {
			continue
		}
		if s.call.rule == onGrid {
			return false
		}
		if mask := s.call.comm >> 8; mask != 0 && mask < 1<<maxDims {
			along |= mask
			some = some || !s.always
			if s.call.sub == dag.ReduceScatter && s.recv.value > few {
				scattered[s.recv.value] |= mask
			}
		}
	}
	for i := range m.slots {
		s := &m.slots[i]
		if s.call == nil {
			continue
		}
		mask := s.call.comm >> 8
		reduces := s.call.sub == dag.Allreduce || s.call.sub == dag.Reduce
		some = some || reduces && mask != 0 && scattered[s.size.value]&^mask != 0
	}
	return some || int(along) != 1<<len(m.old.grid)-1
}

// proportional returns the grids in the proportions of the recorded ones, the most similar only if they have the same.
func proportional(choices, recorded [][]int) [][]int {
	for _, r := range recorded[1:] {
		if distortion(r, recorded[0]) != 0 {
			return nil
		}
	}
	slices.SortStableFunc(choices, func(a, b []int) int {
		x, y := distortion(a, recorded[0]), distortion(b, recorded[0])
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	const most = 4
	if len(recorded) > 1 && distortion(choices[0], recorded[0]) == 0 {
		return choices[:1]
	}
	return choices[:min(most, len(choices))]
}

// stretched returns the grids that differ from the recorded ones along one dimension only.
func stretched(recorded [][]int, ranks int) (all [][]int) {
	for d := range recorded[0] {
		same := true
		for _, r := range recorded {
			for e := range r {
				same = same && (d == e || r[e] == recorded[0][e])
			}
		}
		if others := product(recorded[0]) / recorded[0][d]; same && ranks%others == 0 && ranks/others > 1 {
			n := slices.Clone(recorded[0])
			n[d] = ranks / others
			all = append(all, n)
		}
	}
	return all
}

// transposeDoubt returns a doubt if the ranks of a transpose were a square and become twice as long as wide, or nil.
func (g *target) transposeDoubt() *doubt {
	odd := func(n int) bool { return bits.Len(uint(n))%2 == 0 }
	if !slices.ContainsFunc(g.slots, func(s slot) bool { return s.call != nil && s.call.rule == transpose }) ||
		!odd(g.o.Ranks) || odd(g.old.ranks) || g.o.decided != nil && slices.ContainsFunc(g.o.decided.Others,
		func(d Difference) bool { return odd(d.Ranks) }) {
		return nil
	}
	return &doubt{fmt.Sprintf("the transpose on %d ranks", g.o.Ranks),
		[]string{"that of pairs of ranks", "another one"}, ""}
}

// firstUse returns when each dimension is first used, as a place in the order. Dimensions that no message uses are
// last.
func (m *model) firstUse() []int {
	when := make([]int, len(m.old.grid))
	for d := range when {
		when[d] = len(m.order) + len(when) - d // MPI's Cartesian grids: the last dimension varies fastest
	}
	for place := len(m.order) - 1; place >= 0; place-- {
		c := m.slots[m.order[place]].call
		if c == nil || c.rule != onGrid {
			continue
		}
		if c.comm > 0 && c.comm < 1<<8 { // a Cartesian communicator, whose first dimension varies slowest
			break
		}
		moved := 0
		for d := range when {
			if c.at[d] != 0 {
				moved++
			}
		}
		for d := range when {
			if c.at[d] != 0 && moved == 1 {
				when[d] = place
			}
		}
	}
	return when
}
