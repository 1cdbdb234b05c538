// Package rankwise generates traces of models whose ranks can be generated independently: all in memory, or rank by
// rank on demand.
package rankwise

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// Model is a trace that can be generated rank by rank. Its functions are called concurrently.
type Model struct {
	Title string
	Ranks int
	Comms []dag.Comm // nil: the communicator of all ranks
	Kinds []dag.Kind // kinds that the ops may have
	Steps int        // number of steps that the ops may have; a single step is not marked

	// Count returns the number of ops of a rank, and an upper bound on its dependencies on ends of ops.
	Count func(rank int) (ops, deps int64)

	// Ops is the total number of ops if Count returns expected values only; 0: the sum of Count's numbers.
	Ops int64

	// Fill appends the ops of a rank.
	Fill func(rank int, b *dag.RankBuilder)

	// Make returns a rank, in place of Fill, for models that write columns faster than a builder.
	Make func(rank int) (dag.Rank, error)

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Source is the trace of a model. It is a [dag.Source].
type Source struct {
	m      Model
	counts []count
	header dag.Header
}

// count is the number of ops of a rank, and an upper bound on its dependencies.
type count struct{ ops, deps int64 }

// Limits of the ops and ranks in a batch of several ranks: a rank takes memory even without ops.
const (
	batchOps   = 1 << 18
	batchRanks = 1 << 12
)

// NewSource returns the trace of a model, after counting its ops. It returns an error if a rank exceeds dag.MaxOps or
// dag.MaxDeps.
func NewSource(m Model) (*Source, error) {
	if m.Comms == nil {
		m.Comms = []dag.Comm{dag.World(m.Ranks)}
	}
	if err := memory.Check(m.Context, "ranks", int64(unsafe.Sizeof(count{})), int64(m.Ranks)); err != nil {
		return nil, err
	}
	counts := make([]count, m.Ranks)
	const block = 16 // ranks that a goroutine takes at a time
	par.Blocks(m.Ranks, block, func() func(from, to int) {
		return func(from, to int) {
			for rank := from; rank < to && par.Interrupted(m.Context) == nil; rank++ {
				counts[rank].ops, counts[rank].deps = m.Count(rank)
			}
		}
	})
	if err := par.Interrupted(m.Context); err != nil {
		return nil, err
	}
	s := &Source{m: m, counts: counts}
	h := &s.header
	*h = dag.Header{Meta: dag.Meta{Title: m.Title}, Comms: m.Comms, Ranks: m.Ranks, Kinds: m.Kinds, Stable: true}
	if m.Steps > 1 {
		h.Steps = int32(m.Steps)
	}
	var b dag.Batch
	for rank, n := range counts {
		if n.ops > dag.MaxOps || n.deps > dag.MaxDeps {
			return nil, fmt.Errorf("rank %d has %d ops and %d dependencies, expected at most %d and %d",
				rank, n.ops, n.deps, dag.MaxOps, int64(dag.MaxDeps))
		}
		if rank > b.First && (b.Ops+n.ops > batchOps || rank-b.First == batchRanks) {
			h.Batches = append(h.Batches, b)
			b = dag.Batch{First: rank}
		}
		b.Last = rank + 1
		b.Ops += n.ops
		b.Deps += n.deps
		h.Ops += n.ops
	}
	h.Batches = append(h.Batches, b)
	if err := memory.CheckBatches(m.Context, h); err != nil {
		return nil, err
	}
	if m.Ops > 0 {
		h.Ops = m.Ops
	}
	return s, nil
}

// Header returns the header, which costs nothing.
func (s *Source) Header() (*dag.Header, error) {
	return &s.header, nil
}

// NewReader returns a reader that generates the ranks of a batch: all columns, except that a builder ([Model].Fill)
// drops names and attributes that the reader need not deliver.
func (s *Source) NewReader(columns dag.Columns) dag.Reader {
	var ranks []*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		if b.First < 0 || b.Last > s.m.Ranks || b.First > b.Last {
			return nil, fmt.Errorf("no batch of ranks %d to %d in a trace of %d ranks", b.First, b.Last-1, s.m.Ranks)
		}
		clear(ranks) // frees the previous batch
		ranks = ranks[:0]
		for rank := b.First; rank < b.Last; rank++ {
			var like *dag.Rank // neighbours mostly have equally many values
			if len(ranks) > 0 {
				like = ranks[len(ranks)-1]
			}
			r, err := s.rank(rank, columns, like)
			if err != nil {
				return nil, err
			}
			ranks = append(ranks, r.Keep())
		}
		return ranks, nil
	}
}

func (s *Source) rank(rank int, columns dag.Columns, like *dag.Rank) (dag.Rank, error) {
	if err := par.Interrupted(s.m.Context); err != nil {
		return dag.Rank{}, err
	}
	if s.m.Make != nil {
		return s.m.Make(rank)
	}
	var b dag.RankBuilder
	b.Deliver(columns)
	if like != nil && int64(like.Len()) == s.counts[rank].ops {
		b.ReserveLike(like)
	} else {
		b.Reserve(int(s.counts[rank].ops), int(s.counts[rank].deps))
	}
	s.m.Fill(rank, &b)
	r := b.Rank()
	if s.header.Steps == 0 {
		r.Step = dag.Narrow{}
	}
	if err := b.Err(); err != nil {
		return dag.Rank{}, fmt.Errorf("rank %d: %w", rank, err)
	}
	return r, nil
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}
