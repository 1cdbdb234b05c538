package pattern

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// repeat returns the rank that computes for the given time and then executes the schedule, in each iteration. The first
// steps of the schedule depend on the computation, the computation on the last steps of the previous iteration.
//
// The rank shares those columns of another rank of the same pattern that have the same values. other may be nil.
func repeat(s *collective.Schedule, iterations int, compute dag.Time, other *dag.Rank) dag.Rank {
	period := len(s.Steps) + 1
	inner, exits := dependencies(s)
	r := firstIteration(s, inner)
	n := period * iterations
	if other == nil || other.Len() != n {
		other = &dag.Rank{}
	}
	r.Bytes = repeated(r.Bytes, n, other.Bytes)
	r.Peer = repeated(r.Peer, n, nil)
	r.Duration = other.Duration
	if compute > 0 && len(r.Duration) == 0 {
		r.Duration = make([]dag.Time, n-period+1)
		for first := 0; first < n; first += period {
			r.Duration[first] = compute
		}
	}
	r.Deps = repeatedDeps(r.Deps, exits, iterations, &other.Deps)
	r.Kind = repeated(r.Kind, n, other.Kind)
	if r.Step = other.Step; iterations > 1 && r.Step.Len() == 0 {
		steps := make([]int32, n)
		for i := range steps {
			steps[i] = int32(i/period) + 1
		}
		r.Step.SetRange(0, steps)
	}
	return r
}

// repeated returns the values repeated up to length n. It returns other if that is the same column of n values.
func repeated[T comparable](values []T, n int, other []T) []T {
	if len(other) == n && slices.Equal(values, other[:len(values)]) {
		return other
	}
	if len(values) == n {
		return values
	}
	out := make([]T, n)
	for filled := copy(out, values); filled < n; {
		filled += copy(out[filled:], out[:filled])
	}
	return out
}

// repeatedDeps returns the dependencies of all iterations: those of the first one, and exits of the first op of each
// further one. It returns other if that has the same dependencies of as many ops.
func repeatedDeps(first dag.Edges, exits []int32, iterations int, other *dag.Edges) dag.Edges {
	period, inner := len(first.End), len(first.Off)
	if len(other.End) == period*iterations && slices.Equal(first.End, other.End[:period]) &&
		slices.Equal(first.Off, other.Off[:inner]) &&
		(iterations == 1 || slices.Equal(exits, other.Off[inner:][:other.End[period]-other.End[period-1]])) {
		return *other
	}
	if iterations == 1 {
		return first
	}
	all := dag.Edges{
		End: make([]uint32, 0, period*iterations),
		Off: make([]int32, 0, inner*iterations+len(exits)*(iterations-1)),
	}
	for i := range iterations {
		if i > 0 {
			all.Off = append(all.Off, exits...)
		}
		begin := uint32(len(all.Off))
		for _, end := range first.End {
			all.End = append(all.End, begin+end)
		}
		all.Off = append(all.Off, first.Off...)
	}
	return all
}

// dependencies returns the number of dependencies of an iteration's steps, and the dependencies of the next
// computation, as offsets.
func dependencies(s *collective.Schedule) (inner int, exits []int32) {
	for i := range s.Steps {
		inner += max(1, len(s.After(i)))
		if !s.Steps[i].Awaited {
			exits = append(exits, int32(len(s.Steps)-i))
		}
	}
	if len(s.Steps) == 0 {
		exits = []int32{1} // the previous computation
	}
	return inner, exits
}

// firstIteration returns the first iteration without durations: op 0 is the computation, op i + 1 step i. inner is the
// number of its dependencies.
func firstIteration(s *collective.Schedule, inner int) dag.Rank {
	period := len(s.Steps) + 1
	r := dag.Rank{
		Kind:  make([]dag.Kind, period),
		Bytes: make([]int64, period),
		Peer:  make([]int32, period),
		Deps:  dag.Edges{End: make([]uint32, period), Off: make([]int32, 0, inner)},
	}
	for i := range s.Steps {
		step, op := &s.Steps[i], int32(i+1)
		r.Kind[op], r.Bytes[op], r.Peer[op] = step.Kind, step.Bytes, step.Peer
		after := s.After(i)
		for _, a := range after {
			r.Deps.Off = append(r.Deps.Off, op-(a+1))
		}
		if len(after) == 0 {
			r.Deps.Off = append(r.Deps.Off, op)
		}
		r.Deps.End[op] = uint32(len(r.Deps.Off))
	}
	return r
}
