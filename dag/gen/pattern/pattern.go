// Package pattern generates traces of one communication pattern, repeated, in sends and receives.
//
// docs/reference/generators/pattern.md defines each pattern.
package pattern

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
)

// Pattern is a communication pattern.
type Pattern struct {
	Name  string // on the command line
	Title string // one line of help

	// plan appends the steps of a rank in an iteration to the schedule.
	plan func(p *Params, rank int, s *collective.Schedule) error
}

// Patterns returns all patterns, by name.
func Patterns() []Pattern {
	return slices.Clone(patterns)
}

var patterns = []Pattern{
	{"alltoall", "every rank sends a message to every other one (pairwise exchange)", alltoall},
	{"binomial", "broadcast from the root down a binomial tree", binomial},
	{"dissemination", "ceil(log2 n) rounds, the k-th with the ranks 2^k away (barrier)", dissemination},
	{"recdoubling", "allreduce by recursive doubling", recdoubling},
	{"ring", "allreduce in a ring: 2 (n - 1) rounds with the two neighbours", ring},
	{"stencil2d", "exchange with the four neighbours on a torus", stencil2D},
}

// Generate returns the trace of a pattern: each rank computes, then communicates, in each of p.Iterations iterations,
// and begins an iteration after the previous one. All messages have tag 0.
func Generate(name string, p Params) (*dag.Trace, error) {
	i := slices.IndexFunc(patterns, func(x Pattern) bool { return x.Name == name })
	if i < 0 {
		names := make([]string, len(patterns))
		for i := range patterns {
			names[i] = patterns[i].Name
		}
		return nil, fmt.Errorf("no pattern %q, expected one of %s", name, strings.Join(names, ", "))
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	t := &dag.Trace{Comms: []dag.Comm{dag.World(p.Ranks)}, Ranks: make([]dag.Rank, p.Ranks)}
	t.Title = fmt.Sprintf("%s, %d ranks, %d bytes, %d iterations", name, p.Ranks, p.Bytes, p.Iterations)
	newSchedule := func() *collective.Schedule { return new(collective.Schedule) }
	_, err := par.EachWith(p.Ranks, newSchedule, func(s *collective.Schedule, rank int) error {
		if err := par.Interrupted(p.Context); err != nil {
			return err
		}
		s.Reset()
		if err := patterns[i].plan(&p, rank, s); err != nil {
			return err
		}
		if ops := int64(len(s.Steps)+1) * int64(p.Iterations); ops > maxOps {
			return fmt.Errorf("more than %d ops on a rank", maxOps)
		}
		t.Ranks[rank] = repeat(s, p.Iterations, p.Compute)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	return t, nil
}

func alltoall(p *Params, rank int, s *collective.Schedule) error {
	return plan(p, rank, s, dag.Alltoall, p.Bytes*int64(p.Ranks), "pairwise")
}

func binomial(p *Params, rank int, s *collective.Schedule) error {
	return plan(p, rank, s, dag.Bcast, p.Bytes, "binomial")
}

func dissemination(p *Params, rank int, s *collective.Schedule) error {
	return plan(p, rank, s, dag.Barrier, p.Bytes, "dissemination")
}

func recdoubling(p *Params, rank int, s *collective.Schedule) error {
	return plan(p, rank, s, dag.Allreduce, p.Bytes, "recdoubling")
}

func ring(p *Params, rank int, s *collective.Schedule) error {
	return plan(p, rank, s, dag.Allreduce, p.Bytes, "ring")
}

func plan(p *Params, rank int, s *collective.Schedule, kind dag.Subkind, bytes int64, algorithm string) error {
	participant := collective.Participant{Kind: kind, Members: p.Ranks, Me: rank, Root: p.Root, Bytes: bytes}
	return collective.Plan(&participant, algorithm, s)
}
