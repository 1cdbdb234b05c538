// This file merges computation that nothing interrupts.

package kineto

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// mergeCalcs makes each run of calcs of a stream one calc: of ops each of which depends on the one before it only, and
// of which only the last one has other dependents. The times of all other ops stay.
func mergeCalcs(t *dag.Trace) error {
	b := dag.NewBuilder(len(t.Ranks))
	err := par.Each(len(t.Ranks), func(i int) error {
		mergeRank(b.Rank(i), t.Ranks[i])
		return b.Rank(i).Err()
	})
	if err != nil {
		return err
	}
	t.Ranks = b.Trace().Ranks
	return b.Err()
}

// mergeRank adds the ops of a rank to a builder, with runs of calcs merged.
func mergeRank(b *dag.RankBuilder, r *dag.Rank) {
	n := r.Len()
	dependents, inside := make([]int32, n), make([]bool, n) // inside: may follow the first op of a run
	for i := range n {
		for _, off := range r.Deps.Of(i) {
			dependents[i-int(off)]++
		}
		inside[i] = len(r.StartDeps.Of(i)) == 0
	}
	for i := range n {
		for _, off := range r.StartDeps.Of(i) {
			inside[i-int(off)] = false
		}
	}
	last := make([]int32, n) // of the run of an op; its first op: where it ends
	first := make([]int32, n)
	for i := range n {
		first[i], last[i] = int32(i), int32(i)
		deps := r.Deps.Of(i)
		if len(deps) != 1 || r.Kind[i] != dag.Calc || !inside[i] {
			continue
		}
		on := i - int(deps[0])
		if r.Kind[on] == dag.Calc && dependents[on] == 1 && r.Stream.At(on) == r.Stream.At(i) &&
			r.Step.At(on) == r.Step.At(i) && r.Duration.At(on) < dag.MaxTime/2-r.Duration.At(i) {
			first[i] = first[on]
			last[first[i]] = int32(i)
		}
	}
	at := make([]int, n) // in the builder
	var deps []int
	runs := make(map[int32]*run)
	for i := range n {
		if first[i] == int32(i) && last[i] > int32(i) {
			runs[int32(i)] = &run{op: r.Op(i)}
		} else if f := first[i]; f != int32(i) {
			runs[f].add(r.Op(i))
		}
	}
	for i := range n {
		if first[i] != int32(i) {
			at[i] = at[first[i]]
			continue
		}
		deps = deps[:0]
		for _, off := range r.Deps.Of(i) {
			deps = append(deps, at[i-int(off)])
		}
		op := r.Op(i)
		if x := runs[int32(i)]; x != nil {
			op = x.merged()
		}
		at[i] = b.Add(op, deps...)
		for _, off := range r.StartDeps.Of(i) {
			b.RequiresStart(at[i], at[i-int(off)])
		}
	}
}

// run is calcs that become one.
type run struct {
	op      dag.Op
	kernels int // beside the first op
}

func (x *run) add(op dag.Op) {
	x.op.Duration += op.Duration
	if x.op.Timed && op.Timed {
		x.op.MeasuredEnd = op.MeasuredEnd
	} else {
		x.op.Timed, x.op.MeasuredStart, x.op.MeasuredEnd = false, 0, 0
	}
	x.op.Attrs = ""
	if op.Host == 0 {
		if x.op.Host == 1 || x.op.Name == gapName {
			x.op.Name, x.op.Host = op.Name, 0
		} else if op.Name != gapName {
			x.kernels++
		}
	}
}

// merged returns the calc of the run, with the name of its first kernel.
func (x *run) merged() dag.Op {
	if x.kernels > 0 {
		x.op.Name = fmt.Sprintf("%s and %d more", x.op.Name, x.kernels)
	}
	return x.op
}
