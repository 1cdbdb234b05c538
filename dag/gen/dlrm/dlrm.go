// Package dlrm generates training steps of a deep learning recommendation model: embedding tables divided among the
// ranks, which exchange their rows in alltoalls, and replicas of two MLPs, whose gradients allreduces sum.
//
// docs/reference/generators/dlrm.md has the formulas and their sources.
package dlrm

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Streams, numbered as in traces of Chakra's format.
const (
	computeStream = 0
	networkStream = 2
)

// NewSource returns the trace of a run. Its ranks are alike.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("dlrm: %w", err)
	}
	counts := writer{p: &p}
	counts.write()
	s, err := rankwise.NewSource(rankwise.Model{
		Title: fmt.Sprintf("DLRM of %.4g million parameters in MLPs, %d tables of %d x %d, %d samples on %d ranks",
			float64(p.MLPParameters())/1e6, p.Tables, p.Rows, p.Dim, p.batch(), p.Ranks),
		Ranks:   p.Ranks,
		Kinds:   []dag.Kind{dag.Calc, dag.Coll},
		Steps:   p.Steps,
		Context: p.Context,
		Count:   func(int) (ops, deps int64) { return int64(counts.ops), int64(counts.deps) },
		Fill: func(_ int, b *dag.RankBuilder) {
			w := writer{p: &p, b: b}
			w.write()
		},
	})
	if err != nil {
		return nil, fmt.Errorf("dlrm: %w", err)
	}
	return s, nil
}

// writer generates a rank. Its calcs run in sequence, as do its collectives. Ops are indices; -1 is none.
type writer struct {
	p         *Params
	b         *dag.RankBuilder // nil: only count
	ops, deps int
	calcs     int   // the last calc
	colls     int   // the last collective
	pending   []int // dependencies of the next calc
}

func (w *writer) write() {
	w.calcs, w.colls = -1, -1
	for step := range w.p.Steps {
		if w.b != nil {
			w.b.Step(int32(step + 1))
		}
		w.step()
	}
}

// layers are the names and the sizes of an MLP's layers.
func layers(name string, in int64, out []int64) (list []layer) {
	for i, n := range out {
		list = append(list, layer{fmt.Sprintf("%s %d", name, i), in, n})
		in = n
	}
	return list
}

// layer is a matrix of in x out.
type layer struct {
	name    string
	in, out int64
}

// step appends a step: the alltoalls run beside the bottom MLP.
func (w *writer) step() {
	p := w.p
	bottom, top := layers("bottom", p.Bottom[0], p.Bottom[1:]), layers("top", p.topInputs(), p.Top)
	lookups := p.batch() * (p.Tables / int64(p.Ranks)) * p.Pooling * p.Dim // elements of rows read
	rows := p.exchanged() / p.DtypeBytes                                   // of results
	local := p.batch() / int64(p.Ranks)

	w.calc("lookup", work{lookups, lookups + rows})
	exchange := w.collective("embeddings", dag.Alltoall, p.exchanged())
	for _, l := range bottom {
		w.calc(l.name+" forward", l.forward(local))
	}
	w.pending = append(w.pending, exchange)
	w.calc("interaction forward", p.interaction(local))
	for _, l := range top {
		w.calc(l.name+" forward", l.forward(local))
	}
	w.backward(top, local)
	w.calc("interaction gradients", p.interaction(local).times(2))
	exchange = w.collective("embedding gradients", dag.Alltoall, p.exchanged())
	w.backward(bottom, local)
	if p.Bucket == All {
		w.collective("gradients", dag.Allreduce, p.MLPParameters()*p.DtypeBytes)
	}
	w.pending = append(w.pending, exchange)
	w.calc("update of tables", work{lookups, rows + 2*lookups})
	w.pending = append(w.pending, w.colls)
}

// backward appends the backward pass of an MLP.
func (w *writer) backward(list []layer, local int64) {
	for i := len(list) - 1; i >= 0; i-- {
		l := list[i]
		w.calc(l.name+" gradients", l.gradients(local))
		if w.p.Bucket == PerLayer {
			w.collective(l.name+" gradients", dag.Allreduce, l.in*l.out*w.p.DtypeBytes)
		}
	}
}

// work is the cost of a calc: floating-point operations, and elements moved to and from memory.
type work struct {
	flops, elements int64
}

func (w work) times(n int64) work { return work{n * w.flops, n * w.elements} }

// forward is the product of rows x in and in x out.
func (l *layer) forward(rows int64) work {
	return work{2 * rows * l.in * l.out, rows*l.in + l.in*l.out + rows*l.out}
}

// gradients are those of the inputs and of the matrix.
func (l *layer) gradients(rows int64) work { return l.forward(rows).times(2) }

// interaction is the combination of a row of each table and the result of the bottom MLP, for the given samples.
func (p *Params) interaction(samples int64) work {
	in := samples * (p.Tables + 1) * p.Dim
	if p.Interaction == Cat {
		return work{0, 2 * in}
	}
	return work{2 * samples * (p.Tables + 1) * (p.Tables + 1) * p.Dim, in + samples*p.topInputs()}
}

// calc appends a calc that depends on the previous one and on the pending ops.
func (w *writer) calc(name string, k work) {
	op := dag.Op{Kind: dag.Calc, Flops: k.flops, Bytes: k.elements * w.p.DtypeBytes, Stream: computeStream, Name: name}
	if w.p.PeakFlops > 0 {
		op.Duration = max(dag.AtRate(op.Flops, w.p.PeakFlops), dag.AtRate(op.Bytes, w.p.MemoryBandwidth))
	}
	w.calcs = w.add(op, append(w.pending, w.calcs))
	w.pending = w.pending[:0]
}

// collective appends a collective of the last calc's results, after the previous collective. Among one rank it appends
// nothing.
func (w *writer) collective(name string, kind dag.Subkind, bytes int64) int {
	if w.p.Ranks == 1 {
		return -1
	}
	w.colls = w.add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, Stream: networkStream, Name: name},
		[]int{w.calcs, w.colls})
	return w.colls
}

func (w *writer) add(op dag.Op, after []int) int {
	var deps []int
	for _, i := range after {
		if i >= 0 {
			deps = append(deps, i)
		}
	}
	w.ops++
	w.deps += len(deps)
	if w.b != nil {
		w.b.Add(op, deps...)
	}
	return w.ops - 1
}
