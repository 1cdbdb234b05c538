package compose

import (
	"errors"

	"github.com/tracedag/tracedag/dag"
)

// junction stands in the list of ops to gather for one that is none of the rank's: a calc, until more is said of it.
const junction = -1

// gather returns a rank of the ops of r in the list, all of their columns but the dependencies.
func gather(r *dag.Rank, ops []int32) (dag.Rank, error) {
	out := dag.Rank{
		Kind: gatherAll(r.Kind, ops), Subkind: gatherColumn(r.Subkind, ops),
		Bytes: gatherColumn(r.Bytes, ops), RecvBytes: gatherColumn(r.RecvBytes, ops), Peer: gatherColumn(r.Peer, ops),
		Tag: gatherColumn(r.Tag, ops), Comm: gatherNarrow(&r.Comm, ops), Duration: gatherColumn(r.Duration, ops),
		Flops: gatherColumn(r.Flops, ops), Release: gatherColumn(r.Release, ops), Stream: gatherNarrow(&r.Stream, ops),
		NIC: gatherNarrow(&r.NIC, ops), Job: gatherNarrow(&r.Job, ops), Host: gatherNarrow(&r.Host, ops),
		Dims: gatherNarrow(&r.Dims, ops), Priority: gatherNarrow(&r.Priority, ops),
		MeasuredStart: gatherMeasured(r.MeasuredStart, ops), MeasuredEnd: gatherMeasured(r.MeasuredEnd, ops),
	}
	if !gatherText(&out.Name, &r.Name, ops) || !gatherText(&out.Attrs, &r.Attrs, ops) {
		return dag.Rank{}, errors.New("has more than 4 GiB of names or attributes")
	}
	return out, nil
}

func gatherAll[T any](values []T, ops []int32) []T {
	out := make([]T, len(ops))
	for i, op := range ops {
		if uint(op) < uint(len(values)) {
			out[i] = values[op]
		}
	}
	return out
}

func gatherColumn[T ~int8 | ~uint8 | ~int32 | ~int64](c dag.Column[T], ops []int32) dag.Column[T] {
	if len(c) == 0 {
		return nil
	}
	return gatherAll(c, ops)
}

func gatherNarrow(c *dag.Narrow, ops []int32) (out dag.Narrow) {
	if c.Len() == 0 {
		return out
	}
	var values [1024]int32
	for first := 0; first < len(ops); first += len(values) {
		part := ops[first:min(first+len(values), len(ops))]
		for i, op := range part {
			if values[i] = 0; op >= 0 {
				values[i] = c.At(int(op))
			}
		}
		out.SetRange(first, values[:len(part)])
	}
	return out
}

func gatherText(out, from *dag.Text, ops []int32) bool {
	if from.Len() == 0 {
		return true
	}
	for i, op := range ops {
		if op >= 0 && !out.AppendFrom(i, from, int(op)) {
			return false
		}
	}
	return true
}

func gatherMeasured(times []dag.Time, ops []int32) []dag.Time {
	if len(times) == 0 {
		return nil
	}
	out := make([]dag.Time, len(ops))
	for i, op := range ops {
		if out[i] = dag.Unmeasured; uint(op) < uint(len(times)) {
			out[i] = times[op]
		}
	}
	return out
}
