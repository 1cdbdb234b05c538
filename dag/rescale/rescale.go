package rescale

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Scaling is how the problem grows with the number of ranks.
type Scaling uint8

// Kinds of growth.
const (
	Weak   Scaling = iota // each rank keeps its share
	Strong                // the whole keeps its size
)

// String returns "weak" or "strong".
func (s Scaling) String() string {
	if s == Strong {
		return "strong"
	}
	return "weak"
}

// maxRanks limits the ranks of the new trace.
const maxRanks = 1 << 24

// Options select the new trace.
type Options struct {
	Ranks       int     // of the new trace: 2..2^24
	Scaling     Scaling // of sizes and calcs
	Grid        []int   // ranks along each dimension of the new grid, the fastest first; nil: chosen
	OldGrid     []int   // of the recorded trace; nil: found
	FixedRounds bool    // rounds of neighbors on a ring are iterations, whatever their number
	Seed        int64   // of the choice of recorded ranks for calcs

	like    []int     // grid of another trace of the program, which has the order of dimensions; nil: unknown
	decided *Decision // by another trace, or nil
	growths map[sized]growth
}

// Rescale returns the trace that the program of t would have on another number of ranks, and what it inferred. The new
// trace has no measured times, nodes and attributes. Rescale does not change t.
//
// It returns a [*Refusal] if the ranks of t, or the new number, do not follow the rules that it knows; other errors are
// about invalid traces and memory. It ends early, with an error that wraps the context's cause, when ctx ends; nil
// never ends.
func Rescale(ctx context.Context, t *dag.Trace, o Options) (*dag.Trace, *Report, error) {
	if o.Ranks < 2 || o.Ranks > maxRanks {
		return nil, nil, fmt.Errorf("%d ranks, expected 2..%d", o.Ranks, maxRanks)
	}
	m, err := analyze(ctx, t, o.OldGrid)
	if err != nil {
		return nil, nil, err
	}
	return m.extrapolate(ctx, o)
}

// extrapolate makes the new trace and the report.
func (m *model) extrapolate(ctx context.Context, o Options) (*dag.Trace, *Report, error) {
	g := &target{model: m, o: o}
	g.new = space{ranks: o.Ranks, ring: m.old.ring, periodic: m.old.periodic}
	grid, source, err := m.newGrid(o)
	if err != nil {
		return nil, nil, err
	}
	g.new.grid = grid
	if err := g.plan(); err != nil {
		return nil, nil, err
	}
	if err := g.checkCounts(); err != nil {
		return nil, nil, err
	}
	classes, err := g.assignDonors()
	if err != nil {
		return nil, nil, err
	}
	out, err := g.generate(ctx)
	if err != nil {
		return nil, nil, err
	}
	return out, g.report(classes, source), nil
}

// newGrid returns the grid of the new trace and where it is from.
func (m *model) newGrid(o Options) (grid []int, source string, err error) {
	old := m.old.grid
	product := 1
	for _, n := range o.Grid {
		if n < 1 || n > o.Ranks/product {
			product = 0
			break
		}
		product *= n
	}
	switch {
	case o.Grid != nil && product != o.Ranks:
		return nil, "", refuse("grid %s has not %d ranks", text(o.Grid), o.Ranks)
	case o.Grid != nil && len(old) == 1:
		return []int{o.Ranks}, "line", nil
	case o.Grid != nil && len(o.Grid) != len(old):
		return nil, "", refuse("grid %s has %d dimensions, but the recorded one is %s", text(o.Grid), len(o.Grid),
			text(old))
	case o.Grid != nil:
		for d, n := range o.Grid {
			if n < 2 {
				return nil, "", refuse("grid %s has 1 rank along %c, which no recorded rank resembles", text(o.Grid),
					axes[d])
			}
		}
		return o.Grid, "given", nil
	case len(old) == 1:
		return []int{o.Ranks}, "line", nil
	case o.Ranks == m.old.ranks:
		return old, "recorded", nil
	}
	choices := grids(o.Ranks, len(old))
	if len(choices) == 0 {
		return nil, "", refuse("%d ranks form no grid of %d dimensions with 2 ranks or more along each", o.Ranks,
			len(old))
	}
	if slices.Equal(descending(old), balanced(m.old.ranks, len(old))) {
		return m.inOrder(balanced(o.Ranks, len(old)), o.like), "balanced", nil
	}
	slices.SortStableFunc(choices, func(a, b []int) int {
		x, y := distortion(a, old), distortion(b, old)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return choices[0], "proportions", nil
}

// balanced returns the grid of n ranks with the shortest longest dimensions, as MPI_Dims_create.
func balanced(n, dims int) []int {
	choices := grids(n, dims)
	for i := range choices {
		choices[i] = descending(choices[i])
	}
	if len(choices) == 0 {
		return []int{n}
	}
	return slices.MinFunc(choices, slices.Compare[[]int])
}

func descending(grid []int) []int {
	sorted := slices.Clone(grid)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	return sorted
}

// inOrder assigns descending lengths to the dimensions: to those that were longer, and among equal ones to those along
// which rank 0, or the first rank with a message, communicates first. Programs list the dimensions in the order of
// MPI_Dims_create, whose first is the longest.
func (m *model) inOrder(lengths, like []int) []int {
	dims := make([]int, len(m.old.grid))
	for d := range dims {
		dims[d] = d
	}
	when := m.firstUse()
	slices.SortStableFunc(dims, func(a, b int) int {
		if m.old.grid[a] != m.old.grid[b] {
			return m.old.grid[b] - m.old.grid[a]
		}
		if like != nil && like[a] != like[b] {
			return like[b] - like[a]
		}
		return when[a] - when[b]
	})
	grid := make([]int, len(dims))
	for i, d := range dims {
		grid[d] = lengths[i]
	}
	return grid
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

// distortion returns how much the proportions of two grids differ.
func distortion(a, b []int) float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for d := range a {
		ratio := math.Log(float64(a[d]) / float64(b[d]))
		least, most = min(least, ratio), max(most, ratio)
	}
	return most - least
}
