package llm

import "github.com/tracedag/tracedag/dag"

// unit appends the ops of a unit and returns the one with its result.
func (w *writer) unit(u *unit, data int) int {
	switch {
	case u.kind == embedding && u.backward:
		return w.calc(w.name(u, whole, bothGradients), w.costs.embedding.input, w.gather(u, data))
	case u.kind == embedding:
		return w.reduce(u, w.calc(w.name(u, whole, forward), w.costs.embedding.forward, data))
	case u.kind == output && u.backward:
		return w.outputBackward(u)
	case u.kind == output:
		return w.outputForward(u, data)
	case u.backward:
		if w.p.Recompute == Full {
			w.mlpForward(u, w.attentionForward(u, data, recompute), recompute)
		}
		return w.attentionBackward(u, w.mlpBackward(u, data))
	}
	return w.mlpForward(u, w.attentionForward(u, data, forward), forward)
}

// gather collects the parts of a tensor-parallel group on every rank.
func (w *writer) gather(u *unit, data int) int {
	if !w.p.SequenceParallel {
		return data
	}
	return w.collective(w.name(u, tensorParallel, forward), dag.Allgather, tensorGroup, w.activations(1), data)
}

// reduce adds the partial products of the ranks of a tensor-parallel group.
func (w *writer) reduce(u *unit, data int) int {
	kind := dag.Allreduce
	if w.p.SequenceParallel {
		kind = dag.ReduceScatter
	}
	return w.collective(w.name(u, tensorParallel, forward), kind, tensorGroup, w.tensor(1), data)
}

// inputs gathers the inputs of a matrix again for the gradient of its weights: with sequence parallelism ranks keep
// only their own part, except for recomputed inputs.
func (w *writer) inputs(u *unit, data int) int {
	if !w.p.SequenceParallel || w.p.Recompute == Full && u.kind == layer {
		return -1
	}
	return w.gather(u, data)
}

func (w *writer) attentionForward(u *unit, data int, as phase) int {
	c := &w.costs
	w.calc(w.name(u, qkv, as), c.qkv.forward, w.gather(u, data))
	w.calc(w.name(u, attention, as), c.attention.forward, -1)
	return w.reduce(u, w.calc(w.name(u, projection, as), c.projection.forward, -1))
}

func (w *writer) attentionBackward(u *unit, data int) int {
	c := &w.costs
	data = w.gather(u, data)
	inputs := w.inputs(u, data)
	w.calc(w.name(u, projection, inputGradients), c.projection.input, data)
	if w.p.Recompute == Selective {
		w.calc(w.name(u, attention, recompute), c.attention.forward, -1)
	}
	w.calc(w.name(u, attention, inputGradients), c.attention.input, -1)
	data = w.reduce(u, w.calc(w.name(u, qkv, inputGradients), c.qkv.input, -1))
	w.calc(w.name(u, weightsOfAttention, weightGradients), c.qkv.weights.plus(c.projection.weights), inputs)
	return data
}

func (w *writer) mlpForward(u *unit, data int, as phase) int {
	c := &w.costs
	if !w.p.sparse(u.layer) {
		return w.reduce(u, w.calc(w.name(u, mlp, as), c.mlp.forward, w.gather(u, data)))
	}
	data = w.calc(w.name(u, router, as), c.router.forward, data)
	if w.p.EP > 1 {
		w.calc(w.name(u, mlp, as), c.experts.forward, w.dispatch(u, data))
		return w.combine(u, w.calcs)
	}
	return w.reduce(u, w.calc(w.name(u, mlp, as), c.experts.forward, w.gather(u, data)))
}

func (w *writer) mlpBackward(u *unit, data int) int {
	c := &w.costs
	sparse, work, inputs := w.p.sparse(u.layer), &c.mlp, -1
	if sparse {
		work = &c.experts
	}
	if sparse && w.p.EP > 1 {
		w.calc(w.name(u, mlp, inputGradients), work.input, w.dispatch(u, data))
		data = w.combine(u, w.calcs)
	} else {
		data = w.gather(u, data)
		inputs = w.inputs(u, data)
		data = w.reduce(u, w.calc(w.name(u, mlp, inputGradients), work.input, data))
	}
	w.calc(w.name(u, mlp, weightGradients), work.weights, inputs)
	if sparse {
		data = w.calc(w.name(u, router, bothGradients), c.router.input.plus(c.router.weights), data)
	}
	return data
}

// dispatch sends tokens, or their gradients, to the ranks of their experts.
func (w *writer) dispatch(u *unit, data int) int {
	data = w.exchange(u, data)
	if w.p.SequenceParallel {
		data = w.collective(w.name(u, tensorParallel, forward), dag.Allgather, tensorGroup,
			w.activations(w.p.TopK), data)
	}
	return data
}

// combine sends the results of the experts, or gradients, back to the ranks of the tokens.
func (w *writer) combine(u *unit, data int) int {
	if w.p.SequenceParallel {
		data = w.collective(w.name(u, tensorParallel, forward), dag.ReduceScatter, tensorGroup,
			w.tensor(w.p.TopK), data)
		return w.exchange(u, data)
	}
	return w.reduce(u, w.exchange(u, data))
}

func (w *writer) exchange(u *unit, data int) int {
	return w.collective(w.name(u, expertParallel, forward), dag.Alltoall, expertGroup, w.activations(w.p.TopK), data)
}

// The loss reduces, over all parts of the vocabulary, three numbers of four bytes per token: the largest score, the sum
// of the exponentials, and the score of the right token.
const (
	lossReductions = 3
	lossBytes      = 4
)

func (w *writer) outputForward(u *unit, data int) int {
	p := w.p
	data = w.calc(w.name(u, whole, forward), w.costs.output.forward, w.gather(u, data))
	for range lossReductions {
		data = w.collective("loss", dag.Allreduce, tensorGroup, p.MicroBatch*p.Seq*lossBytes, data)
	}
	w.pending = append(w.pending, data)
	return data
}

func (w *writer) outputBackward(u *unit) int {
	inputs := w.inputs(u, -1)
	data := w.reduce(u, w.calc(w.name(u, whole, inputGradients), w.costs.output.input, -1))
	w.calc(w.name(u, whole, weightGradients), w.costs.output.weights, inputs)
	return data
}
