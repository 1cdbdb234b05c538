// Package llm generates traces of training steps of transformers under data, tensor, pipeline and expert parallelism:
// for each rank calcs with operations and memory traffic, collectives, and messages between pipeline stages, derived
// from the dimensions of the model.
//
// docs/reference/generators/llm.md has the formulas and their sources.
package llm

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
	"github.com/tracedag/tracedag/internal/par"
)

// NewSource returns the trace of a run.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	net, err := p.network()
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	pl := newPlan(&p, net)
	counts := make([]writer, p.PP) // of the ranks of each stage
	for stage := range counts {
		counts[stage] = writer{plan: pl, at: place{Pipeline: stage}}
		if err := par.Interrupted(p.Context); err != nil {
			return nil, fmt.Errorf("llm: %w", err)
		}
		counts[stage].write()
	}
	kinds := []dag.Kind{dag.Calc}
	if p.PP > 1 {
		kinds = append(kinds, dag.Send, dag.Recv)
	}
	kinds = append(kinds, dag.Coll)
	if p.Offload {
		kinds = append(kinds, dag.Mem)
	}
	s, err := rankwise.NewSource(rankwise.Model{
		Title:   p.title(net),
		Ranks:   p.Ranks(),
		Context: p.Context,
		Comms:   pl.layout.comms,
		Kinds:   kinds,
		Steps:   p.Steps,
		Count: func(rank int) (ops, deps int64) {
			c := &counts[pl.layout.place(rank)[Pipeline]]
			return int64(c.ops), int64(c.deps)
		},
		Fill: func(rank int, b *dag.RankBuilder) {
			w := writer{plan: pl, at: pl.layout.place(rank), b: b}
			w.write()
		},
	})
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	return s, nil
}

func (p *Params) title(net *network) string {
	title := fmt.Sprintf("transformer of %.4g billion parameters, tp %d, dp %d", float64(p.Parameters())/1e9, p.TP,
		p.DP)
	if p.EP > 1 {
		title += fmt.Sprintf(", ep %d", p.EP)
	}
	if net != nil {
		title += fmt.Sprintf(" on network dimensions %v", net)
	}
	return title + fmt.Sprintf(", pp %d, %d micro-batches of %d x %d tokens, %d steps", p.PP, p.MicroBatches,
		p.MicroBatch, p.Seq, p.Steps)
}
