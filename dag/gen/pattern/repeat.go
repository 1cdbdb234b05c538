package pattern

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// repeat returns the rank that computes for the given time and then executes the schedule, in each iteration. The first
// steps of the schedule depend on the computation, the computation on the last steps of the previous iteration.
func repeat(s *collective.Schedule, iterations int, compute dag.Time) dag.Rank {
	period := len(s.Steps) + 1
	inner, exits := dependencies(s)
	n := period * iterations
	r := dag.Rank{
		Kind:  make([]dag.Kind, n),
		Bytes: make([]int64, n),
		Peer:  make([]int32, n),
		Deps: dag.Edges{
			End: make([]uint32, n),
			Off: make([]int32, 0, (inner+len(exits))*iterations-len(exits)),
		},
	}
	if compute > 0 {
		r.Duration = make([]dag.Time, n-period+1)
	}
	writeIteration(&r, s)
	for first := 0; first < n; first += period {
		if compute > 0 {
			r.Duration[first] = compute
		}
		if first == 0 {
			continue
		}
		copy(r.Kind[first:], r.Kind[:period])
		copy(r.Bytes[first:], r.Bytes[:period])
		copy(r.Peer[first:], r.Peer[:period])
		r.Deps.Off = append(r.Deps.Off, exits...)
		begin := uint32(len(r.Deps.Off))
		for i, end := range r.Deps.End[:period] {
			r.Deps.End[first+i] = begin + end
		}
		r.Deps.Off = append(r.Deps.Off, r.Deps.Off[:inner]...)
	}
	return r
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

// writeIteration fills in the first iteration: op 0 is the computation, op i + 1 step i.
func writeIteration(r *dag.Rank, s *collective.Schedule) {
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
}
