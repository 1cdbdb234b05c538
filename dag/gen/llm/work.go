package llm

// work is the cost of a calc: floating-point operations of its matrices, and elements moved to and from memory.
type work struct {
	flops, elements int64
}

func (w work) plus(v work) work {
	return work{w.flops + v.flops, w.elements + v.elements}
}

// matmul is the product of a matrix of rows x inner and one of inner x columns.
func matmul(rows, inner, columns int64) work {
	return work{2 * rows * inner * columns, rows*inner + inner*columns + rows*columns}
}

// gradient is the product that is added to the gradient of a matrix of inner x columns.
func gradient(rows, inner, columns int64) work {
	w := matmul(rows, inner, columns)
	w.elements += inner * columns // read before it is written
	return w
}

// passes is a number of reads or writes of all elements.
func passes(n, elements int64) work {
	return work{0, n * elements}
}

// Passes of an operation over its elements. A norm reads and writes them; its backward reads them and their gradients
// and writes gradients. A sum reads two elements and writes one, as does the sum of the gradients of both branches.
const (
	normForward, normBackward = 2, 3
	residual                  = 3
)

// pieceWork is the work of the calcs of a micro-batch on one rank, by piece.
type pieceWork struct {
	forward work
	input   work // backward: gradients of the inputs
	weights work // backward: gradients of the weights
}

// costs is the work of all calcs of a micro-batch on a rank.
type costs struct {
	qkv, attention, projection, mlp, experts, router, embedding, output pieceWork
}

// costs returns the work of a micro-batch on a rank. docs/reference/generators/llm.md has the formulas.
func (p *Params) costs(s *slice) costs {
	tokens := p.MicroBatch * p.Seq
	local := p.localTokens()
	h, qkv, attention := p.Hidden, s.qkv(), s.attention()
	normed, summed := passes(normForward, local*h), passes(residual, local*h)
	unnormed := passes(normBackward+residual, local*h)

	var c costs
	c.qkv = linear(tokens, h, qkv)
	c.qkv.forward = c.qkv.forward.plus(normed)
	c.qkv.input = c.qkv.input.plus(unnormed)

	scores := 4 * p.MicroBatch * p.Seq * p.Seq * attention // two products of s x h/a x s for each head
	if p.Causal {
		scores /= 2
	}
	c.attention.forward = work{scores, tokens * (qkv + attention)}
	c.attention.input = work{2 * scores, 2 * tokens * (qkv + attention)}

	c.projection = linear(tokens, attention, h)
	c.projection.forward = c.projection.forward.plus(summed)

	c.mlp = s.mlpWork(tokens, 1)
	c.mlp.forward = c.mlp.forward.plus(normed).plus(summed)
	c.mlp.input = c.mlp.input.plus(unnormed)
	if p.Experts > 0 {
		c.experts = s.mlpWork(tokens*p.TopK, p.Experts/s.ep)
		c.experts.forward = c.experts.forward.plus(summed).plus(passes(p.TopK, local*h))
		c.experts.input = c.experts.input.plus(passes(p.TopK, local*h))
		c.router = linear(local, h, p.Experts)
		c.router.forward = c.router.forward.plus(normed)
		c.router.input = c.router.input.plus(unnormed)
	}

	if p.Vocab > 0 {
		rows := int64(2)
		if p.Learned {
			rows = 3
		}
		c.embedding.forward = work{tokens * h, rows * tokens * h}
		c.embedding.input = work{tokens * h, 3 * tokens * h}
		c.output = linear(tokens, h, s.vocabulary())
		c.output.forward = c.output.forward.plus(normed).plus(passes(2, tokens*s.vocabulary()))
		c.output.input = c.output.input.plus(passes(normBackward, local*h))
	}
	return c
}

// linear is a linear layer.
func linear(rows, inner, columns int64) pieceWork {
	return pieceWork{
		forward: matmul(rows, inner, columns),
		input:   matmul(rows, columns, inner),
		weights: gradient(rows, inner, columns),
	}
}

// mlpWork is an MLP on the given number of rows, which several experts share.
func (s *slice) mlpWork(rows, experts int64) pieceWork {
	in, out := linear(rows, s.Hidden, s.gates()*s.inner()), linear(rows, s.inner(), s.Hidden)
	w := pieceWork{
		forward: in.forward.plus(out.forward).plus(passes(s.gates()+1, rows*s.inner())),
		input:   in.input.plus(out.input).plus(passes(2*s.gates()+1, rows*s.inner())),
		weights: in.weights.plus(out.weights),
	}
	others := (experts - 1) * (s.gates() + 1) * s.Hidden * s.inner() // elements of the other experts' matrices
	w.forward.elements += others
	w.input.elements += others
	w.weights.elements += 2 * others
	return w
}
