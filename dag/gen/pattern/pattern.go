// Package pattern generates traces of one communication pattern, repeated, in sends and receives.
//
// docs/reference/generators/pattern.md defines each pattern.
package pattern

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
	"github.com/tracedag/tracedag/dag/lower/collective"
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

var patterns = append([]Pattern{
	{"alltoall", "every rank sends a message to every other one (pairwise exchange)", alltoall},
	{"binomial", "broadcast from the root down a binomial tree", binomial},
	{"dissemination", "ceil(log2 n) rounds, the k-th with the ranks 2^k away (barrier)", dissemination},
	{"recdoubling", "allreduce by recursive doubling", recdoubling},
	{"ring", "allreduce in a ring: 2 (n - 1) rounds with the two neighbours", ring},
	{"stencil2d", "exchange with the four neighbours on a torus", stencil2D},
}, permutations()...)

// Generate returns the trace of a pattern in memory. See [NewSource].
func Generate(name string, p Params) (*dag.Trace, error) {
	s, err := NewSource(name, p)
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}

// NewSource returns the trace of a pattern: each rank computes, then communicates, in each of p.Iterations iterations,
// and begins an iteration after the previous one. All messages have tag 0. Ranks are generated when they are read.
func NewSource(name string, p Params) (*rankwise.Source, error) {
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
	m := &model{Params: p, pattern: &patterns[i]}
	m.schedules.New = func() any { return new(collective.Schedule) }
	s, err := rankwise.NewSource(rankwise.Model{
		Title:   fmt.Sprintf("%s, %d ranks, %d bytes, %d iterations", name, p.Ranks, p.Bytes, p.Iterations),
		Ranks:   p.Ranks,
		Context: p.Context,
		Kinds:   m.kinds(),
		Steps:   p.Iterations,
		Count:   m.count,
		Make:    m.rank,
	})
	if err = cmp.Or(m.failure.err, err); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", name, err)
	}
	return s, nil
}

// model generates the ranks of a pattern.
type model struct {
	Params
	pattern   *Pattern
	schedules sync.Pool // of *collective.Schedule
	last      atomic.Pointer[dag.Rank]

	failure struct { // of the first rank that count refuses
		sync.Mutex
		rank int
		err  error
	}
}

// kinds returns the kinds of op of the trace.
func (m *model) kinds() []dag.Kind {
	if m.Ranks == 1 {
		return []dag.Kind{dag.Calc}
	}
	return []dag.Kind{dag.Calc, dag.Send, dag.Recv}
}

// planned passes the schedule of an iteration of a rank to use.
func (m *model) planned(rank int, use func(s *collective.Schedule)) error {
	s := m.schedules.Get().(*collective.Schedule)
	defer m.schedules.Put(s)
	s.Reset()
	if err := m.pattern.plan(&m.Params, rank, s); err != nil {
		return err
	}
	use(s)
	return nil
}

// count returns the numbers of ops and of dependencies of a rank.
func (m *model) count(rank int) (ops, deps int64) {
	iterations := int64(m.Iterations)
	err := m.planned(rank, func(s *collective.Schedule) {
		inner, exits := dependencies(s)
		ops = int64(len(s.Steps)+1) * iterations
		deps = int64(inner)*iterations + int64(len(exits))*(iterations-1)
	})
	if err == nil && ops > maxOps {
		err = fmt.Errorf("more than %d ops on a rank", maxOps)
	}
	if err != nil {
		m.failure.Lock()
		defer m.failure.Unlock()
		if m.failure.err == nil || rank < m.failure.rank {
			m.failure.rank, m.failure.err = rank, err
		}
		return 0, 0
	}
	return ops, deps
}

// rank generates a rank. It shares the columns that equal those of the last rank.
func (m *model) rank(rank int) (r dag.Rank, err error) {
	err = m.planned(rank, func(s *collective.Schedule) { r = repeat(s, m.Iterations, m.Compute, m.last.Load()) })
	if err == nil {
		shared := r
		shared.Peer = nil // differs
		m.last.Store(&shared)
	}
	return r, err
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
