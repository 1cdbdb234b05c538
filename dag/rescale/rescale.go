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
	FixedRounds bool    // rounds are iterations, even if their number is that of the ranks
	Seed        int64   // of the choice of recorded ranks for calcs

	// GrowingRounds makes rounds whose number is that of the ranks depend on it, even if it may be fixed.
	GrowingRounds bool
	// Likeliest takes the likeliest of several rules that the recorded ranks follow, instead of refusing the trace.
	Likeliest bool
	// Growth is how times grow of which one trace does not show it.
	Growth Growth

	seen    [][]int            // grids of other traces of the program
	decided *Decision          // by other traces, or nil
	settled bool               // other traces show which rounds grow
	compare bool               // other traces show the scaling
	laws    map[sized][]growth // by size: those that give it in all other traces
	fits    map[sized]bool     // sizes that the scaling alone gives in all other traces
	times   *times             // of calcs by other traces, or nil
}

// Rescale returns the trace that the program of t would have on another number of ranks, and what it inferred. The new
// trace has no measured times, nodes and attributes. Its ranks share columns. Rescale does not change t.
//
// It returns a [*Refusal] if the ranks of t, or the new number, do not follow the rules that it knows; other errors are
// about invalid traces and memory. It ends early, with an error that wraps the context's cause, when ctx ends; nil
// never ends.
func Rescale(ctx context.Context, t *dag.Trace, o Options) (*dag.Trace, *Report, error) {
	s, r, err := Source(ctx, t, o)
	if err != nil {
		return nil, nil, err
	}
	out, err := dag.ReadAll(s)
	return out, r, err
}

// Source is [Rescale] for traces that need not fit in memory: it makes large ones batch by batch.
func Source(ctx context.Context, t *dag.Trace, o Options) (dag.Source, *Report, error) {
	if o.Ranks < 2 || o.Ranks > maxRanks {
		return nil, nil, fmt.Errorf("expected 2 to %d ranks to rescale to, found %d", maxRanks, o.Ranks)
	}
	m, err := analyze(ctx, t, o.OldGrid)
	if err != nil {
		return nil, nil, err
	}
	if o.times != nil {
		m.lone = o.times.lone
	}
	return m.extrapolate(ctx, o)
}

// extrapolate makes the new trace and the report.
func (m *model) extrapolate(ctx context.Context, o Options) (dag.Source, *Report, error) {
	if o.FixedRounds && o.GrowingRounds {
		return nil, nil, fmt.Errorf("rounds both fixed and growing, expected one of them")
	}
	g, source, err := m.targetFor(o)
	if err != nil {
		return nil, nil, err
	}
	doubts := g.doubts()
	if !o.Likeliest {
		if err := g.refuseDoubts(doubts); err != nil {
			return nil, nil, err
		}
	}
	if err := g.checkCounts(); err != nil {
		return nil, nil, err
	}
	classes, err := g.assignDonors(ctx)
	if err != nil {
		return nil, nil, err
	}
	out, err := g.generate(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := g.report(classes, source)
	for _, d := range doubts {
		r.Assumptions = append(r.Assumptions, d.text()+"; the first is taken")
	}
	return out, r, nil
}

// targetFor returns a target whose instances are planned, and where its grid is from.
func (m *model) targetFor(o Options) (g *target, source string, err error) {
	g = &target{model: m, o: o}
	g.new = space{ranks: o.Ranks, ring: m.old.ring, periodic: m.old.periodic}
	if g.new.grid, source, err = g.newGrid(); err != nil {
		return nil, "", err
	}
	if err := g.plan(); err != nil {
		return nil, "", err
	}
	g.setTimes()
	g.open = g.openTimes()
	return g, source, nil
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

// distortion returns how much the proportions of two grids differ.
func distortion(a, b []int) float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for d := range a {
		ratio := math.Log(float64(a[d]) / float64(b[d]))
		least, most = min(least, ratio), max(most, ratio)
	}
	return most - least
}
