package llm

// pass is the forward or backward pass of a micro-batch through one part of the model.
type pass struct {
	backward   bool
	microBatch int
	chunk      int // index of the part among the stage's parts
}

// passes returns the passes of a stage in a step, in order.
//
// GPipe is Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism" (NeurIPS 2019,
// figure 2c); the others are Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM" (SC 2021, section 2.2 and figure 4).
func (p *Params) passes(stage int) []pass {
	total := p.MicroBatches * p.VirtualStages
	list := make([]pass, 0, 2*total)
	if p.Schedule == GPipe {
		for i := range total {
			list = append(list, pass{microBatch: i})
		}
		for i := total - 1; i >= 0; i-- {
			list = append(list, pass{backward: true, microBatch: i})
		}
		return list
	}
	warmup := p.PP - stage - 1
	if p.Schedule == Interleaved {
		warmup = 2*warmup + (p.VirtualStages-1)*p.PP
	}
	warmup = min(warmup, total)
	for i := range total + warmup {
		if i < total {
			list = append(list, p.numbered(i, false))
		}
		if i >= warmup {
			list = append(list, p.numbered(i-warmup, true))
		}
	}
	return list
}

// numbered returns the i-th forward or backward pass of a stage: PP micro-batches pass through one of its parts, then
// through the next part; the next PP micro-batches follow.
func (p *Params) numbered(i int, backward bool) pass {
	group := p.PP * p.VirtualStages
	if p.VirtualStages == 1 {
		return pass{backward: backward, microBatch: i}
	}
	chunk := i % group / p.PP
	if backward {
		chunk = p.VirtualStages - 1 - chunk
	}
	return pass{backward: backward, microBatch: i/group*p.PP + i%p.PP, chunk: chunk}
}

// layers returns the layers of a part of the model, first to last-1. The parts differ by at most one.
func (p *Params) layers(virtualStage int) (first, last int) {
	n := p.virtualStages()
	return virtualStage * p.Layers / n, (virtualStage + 1) * p.Layers / n
}
