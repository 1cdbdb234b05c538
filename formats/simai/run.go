// This file runs through the rows of a workload.

package simai

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// run is the ops of a rank.
type run struct {
	*workload
	l      *layout
	passes int
	ops    dag.RankBuilder
	groups []group // by op: that of a collective

	after  []int   // ops for which the next blocking op waits
	weight [][]int // by row: ops whose end is that of its weight collective in the previous pass
}

// Streams of collectives that do not block.
const (
	computeStream = 0
	weightStream  = 1
)

// opsOfPass returns the most ops of a pass.
func (w *workload) opsOfPass() int {
	const perRow = 2 * numPhases
	n := perRow * len(w.rows)
	if w.policy == recomputing {
		for _, at := range w.initiates {
			n += 2 * (at - w.checkpoint(at))
		}
	}
	return n
}

// run runs the given number of passes over the rows.
func (w *workload) run(l *layout, passes int) *run {
	r := &run{workload: w, l: l, passes: passes, weight: make([][]int, len(w.rows))}
	for pass := range passes {
		if passes > 1 {
			r.ops.Step(int32(pass + 1))
		}
		if w.policy == micro {
			for i := range w.rows {
				r.collective(i, weight, weightStream, nil)
			}
			continue
		}
		for i := range w.rows {
			r.forward(i)
		}
		for i := len(w.rows) - 1; i >= 0; i-- {
			r.backward(i)
		}
	}
	return r
}

// forward runs a row forward. Its weights must be synchronized.
func (r *run) forward(i int) {
	r.wait(r.weight[i])
	r.weight[i] = nil
	r.compute(i, forward)
	r.block(r.collective(i, forward, computeStream, r.after))
}

// backward runs a row backward.
func (r *run) backward(i int) {
	if r.policy == recomputing {
		if _, initiates := slices.BinarySearch(r.initiates, i); initiates {
			for row := r.checkpoint(i); row < i; row++ {
				r.forward(row)
			}
		}
	}
	r.compute(i, input)
	inputDone := r.collective(i, input, computeStream, r.after)
	if r.policy == recomputing {
		r.block(inputDone)
	}
	r.compute(i, weight)
	r.weight[i] = r.collective(i, weight, weightStream, r.after)
	if r.policy == transformer { // the collective of the input overlaps with the computation of the weights
		r.wait(inputDone)
	}
}

// block makes the next op wait for ops that waited for all before; none change nothing.
func (r *run) block(ops []int) {
	if len(ops) > 0 {
		r.after = ops
	}
}

// wait makes the next op also wait for ops.
func (r *run) wait(ops []int) {
	for _, op := range ops {
		if !slices.Contains(r.after, op) {
			r.after = append(r.after, op)
		}
	}
}

var (
	computeNames    = [numPhases]string{"_FWD", "_IG", "_WG"}
	collectiveNames = [numPhases]string{"_FWD_COMM", "_IG_COMM", "_WG_COMM"}
)

// compute adds the computation of a phase, unless it takes no time.
func (r *run) compute(i, of int) {
	p := &r.rows[i].phases[of]
	if p.time == 0 {
		return
	}
	op := r.ops.Add(dag.Op{Kind: dag.Calc, Duration: p.time, Stream: computeStream,
		Name: r.rows[i].name + computeNames[of]}, r.after...)
	r.groups = append(r.groups, noGroup)
	r.after = []int{op}
}

// collective adds the collective of a phase after the given ops, unless it sends nothing. It returns the ops whose end
// is its end, or nil without one.
func (r *run) collective(i, of int, stream int32, after []int) []int {
	p := &r.rows[i].phases[of]
	size := p.size(of)
	if p.kind == dag.NoSubkind || size == 0 {
		return nil
	}
	op := dag.Op{Kind: dag.Coll, Subkind: p.kind, Bytes: size, Stream: stream,
		Name: r.rows[i].name + collectiveNames[of]}
	n := int64(r.l.size(p.group))
	switch {
	case n == 1:
	case p.kind == dag.Allgather: // the size is that of the result
		op.Bytes = (size-1)/n + 1
		op.RecvBytes = op.Bytes * n
	case p.kind == dag.ReduceScatter && size%n == 0:
		op.RecvBytes = size / n
	}
	r.groups = append(r.groups, p.group)
	return []int{r.ops.Add(op, after...)}
}
