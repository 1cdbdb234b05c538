// Package rankwise makes traces of models that know what one rank does without making the others: all in memory, or
// rank by rank whenever a rank is wanted.
package rankwise

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Model is a trace that can be made rank by rank. Its functions are called by several goroutines at the same time.
type Model struct {
	Title string
	Ranks int
	Comms []dag.Comm // nil: only that of all ranks
	Kinds []dag.Kind // that the ops may have

	// Count returns how many ops a rank has, and how many dependencies on ends of ops at most.
	Count func(rank int) (ops, deps int64)

	// Fill makes a rank.
	Fill func(rank int, b *dag.RankBuilder)
}

// Source is the trace of a model. It is a format.Source.
type Source struct {
	m       Model
	counts  []count
	ops     int64
	batches []dag.Batch
}

// count is how many ops a rank has, and how many dependencies at most.
type count struct{ ops, deps int64 }

// How many ops a batch of more than one rank has at most, and how many ranks: a rank takes memory even if its ops do not.
const (
	batchOps   = 1 << 18
	batchRanks = 1 << 12
)

// NewSource returns the trace of a model, after counting its ops. It fails if a rank has more than it can hold.
func NewSource(m Model) (*Source, error) {
	if m.Comms == nil {
		m.Comms = []dag.Comm{dag.World(m.Ranks)}
	}
	counts := make([]count, m.Ranks)
	const block = 16 // ranks that a goroutine takes at a time
	par.Blocks(m.Ranks, block, func() func(from, to int) {
		return func(from, to int) {
			for rank := from; rank < to; rank++ {
				counts[rank].ops, counts[rank].deps = m.Count(rank)
			}
		}
	})
	s := &Source{m: m, counts: counts}
	var b dag.Batch
	for rank, n := range counts {
		if n.ops > dag.MaxOps || n.deps > dag.MaxDeps {
			return nil, fmt.Errorf("rank %d has %d ops and %d dependencies, expected at most %d and %d",
				rank, n.ops, n.deps, dag.MaxOps, int64(dag.MaxDeps))
		}
		if rank > b.First && (b.Ops+n.ops > batchOps || rank-b.First == batchRanks) {
			s.batches = append(s.batches, b)
			b = dag.Batch{First: rank}
		}
		b.Last = rank + 1
		b.Ops += n.ops
		b.Deps += n.deps
		s.ops += n.ops
	}
	s.batches = append(s.batches, b)
	return s, nil
}

// Meta returns the title.
func (s *Source) Meta() dag.Meta {
	return dag.Meta{Title: s.m.Title}
}

// Comms returns the communicators.
func (s *Source) Comms() []dag.Comm {
	return s.m.Comms
}

// NumRanks returns the number of ranks.
func (s *Source) NumRanks() int {
	return s.m.Ranks
}

// NumOps returns how many ops the trace has.
func (s *Source) NumOps() int64 {
	return s.ops
}

// Kinds returns the kinds of op that the trace may have.
func (s *Source) Kinds() ([]dag.Kind, error) {
	return s.m.Kinds, nil
}

// Batches divides the ranks into runs that take little memory: one rank, or some short ones.
func (s *Source) Batches() []dag.Batch {
	return s.batches
}

// Reader returns a function that makes the ranks of a batch.
func (s *Source) Reader() func(dag.Batch) ([]dag.Rank, error) {
	var ranks []dag.Rank
	return func(b dag.Batch) ([]dag.Rank, error) {
		if b.First < 0 || b.Last > s.m.Ranks || b.First > b.Last {
			return nil, fmt.Errorf("ranks %d to %d of %d", b.First, b.Last-1, s.m.Ranks)
		}
		ranks = ranks[:0]
		for rank := b.First; rank < b.Last; rank++ {
			r, err := s.rank(rank)
			if err != nil {
				return nil, err
			}
			ranks = append(ranks, r)
		}
		return ranks, nil
	}
}

func (s *Source) rank(rank int) (dag.Rank, error) {
	var b dag.RankBuilder
	b.Reserve(int(s.counts[rank].ops), int(s.counts[rank].deps))
	s.m.Fill(rank, &b)
	r := b.Rank()
	if err := b.Err(); err != nil {
		return dag.Rank{}, fmt.Errorf("rank %d: %w", rank, err)
	}
	return r, nil
}

// Complete reports that readers leave nothing out.
func (s *Source) Complete() bool {
	return true
}

// Trace makes the whole trace.
func (s *Source) Trace() (*dag.Trace, error) {
	t := &dag.Trace{Meta: s.Meta(), Comms: s.Comms(), Ranks: make([]dag.Rank, s.m.Ranks)}
	err := par.Each(s.m.Ranks, func(rank int) (err error) {
		t.Ranks[rank], err = s.rank(rank)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}
