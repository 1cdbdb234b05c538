package rescale

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// maxTotal limits the ops of the new trace: a day of computing.
const maxTotal = 1 << 40

// generate makes the new trace: at once if it is small, or if only the whole trace shows that its calls fit together.
func (g *target) generate(ctx context.Context) (dag.Source, error) {
	g.makeComms()
	g.findVarying()
	const small, most = 1 << 22, 1 << 16 // ops, and ranks, which take memory even without ops
	n := int64(len(g.instances)) * int64(g.new.ranks)
	if (n > small || g.new.ranks > most) && !g.drawsReceives() {
		if n > maxTotal {
			return nil, refuse("%d ranks would make up to %d ops in all, expected up to %d", g.new.ranks, n,
				int64(maxTotal))
		}
		if ok, err := g.fits(ctx); err != nil {
			return nil, err
		} else if ok {
			return g.source(ctx)
		}
	}
	t, err := g.makeWhole(ctx)
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(t), nil
}

// ranks is a new trace that is made batch by batch. It is a [dag.Source].
type ranks struct {
	*target
	ctx    context.Context
	header dag.Header
}

// Limits of the ops and ranks in a batch of several ranks: a rank takes memory even without ops.
const (
	batchOps   = 1 << 18
	batchRanks = 1 << 12
)

// source returns the new trace as a source.
func (g *target) source(ctx context.Context) (dag.Source, error) {
	s := &ranks{target: g, ctx: ctx}
	h := &s.header
	*h = dag.Header{Meta: g.meta(), Comms: g.comms, Ranks: g.new.ranks, Unreleased: true, Stable: true,
		Kinds: dag.KindsOf(func(k dag.Kind) bool {
			for i := range g.slots {
				if g.slots[i].template.Kind == k {
					return true
				}
			}
			return false
		})}
	var b dag.Batch
	for rank := range g.new.ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		t, err := g.templateOf(rank)
		if err != nil {
			return nil, err
		}
		ops := int64(len(t.has))
		if rank > b.First && (b.Ops+ops > batchOps || rank-b.First == batchRanks) {
			h.Batches = append(h.Batches, b)
			b = dag.Batch{First: rank}
		}
		b.Last = rank + 1
		b.Ops += ops
		b.Deps += int64(len(t.rank.Deps.Off))
		b.StartDeps += int64(len(t.rank.StartDeps.Off))
		h.Ops += ops
	}
	h.Batches = append(h.Batches, b)
	return s, memory.CheckBatches(ctx, h)
}

func (s *ranks) Header() (*dag.Header, error) { return &s.header, nil }

func (s *ranks) NewReader(dag.Columns) dag.Reader {
	return func(b dag.Batch) ([]*dag.Rank, error) {
		if b.First < 0 || b.Last > s.new.ranks || b.First > b.Last {
			return nil, fmt.Errorf("no batch of ranks %d to %d in a trace of %d ranks", b.First, b.Last-1, s.new.ranks)
		}
		var all []*dag.Rank
		for rank := b.First; rank < b.Last; rank++ {
			if err := par.Interrupted(s.ctx); err != nil {
				return nil, err
			}
			r, err := s.rank(rank)
			if err != nil {
				return nil, err
			}
			all = append(all, r.Keep())
		}
		return all, nil
	}
}

func (s *ranks) Close() error { return nil }
