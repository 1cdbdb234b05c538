// Package ideal is the backend without a network: messages take no time, and processors and NICs are never busy. Only
// the trace's own dependencies remain, so the makespan is the length of the critical path, a lower bound for all other
// backends.
//
// docs/reference/backends/ideal.md defines the rules.
package ideal

import (
	"context"
	"errors"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Options are the options of a run.
type Options struct {
	Context  context.Context // ends the run early; see [sim.Interrupted]. nil: no limit
	Progress func(ops int64) // nil, or called periodically with the number of additional ops run
}

// Replay is a compiled trace. It can run once.
type Replay struct {
	program  *sim.Program
	timeline *Timeline
	used     bool
}

// Compile compiles a trace, including collectives; see [sim.Compile].
func Compile(t dag.Source) (*Replay, error) {
	return newReplay(context.Background(), t, false, nil)
}

// newReplay compiles a trace. With windows, its ops need not all fit into memory; then explain says so, and the
// timeline of the replay has the critical path only.
func newReplay(ctx context.Context, t dag.Source, windows bool, explain func(string, ...any)) (*Replay, error) {
	p, err := sim.Compile(t, sim.CompileOptions{HighLevel: true, Context: ctx, Windows: windows, Explain: explain})
	if err != nil {
		return nil, err
	}
	return &Replay{program: p}, nil
}

// Clone returns another replay of the same trace. Call it before Run.
func (r *Replay) Clone() *Replay {
	return &Replay{program: r.program.Clone()}
}

// Run replays the trace. It returns a [*sim.TooLongError] if a time exceeds [dag.MaxTime], and an error if the replay
// has already run or the context ends.
func (r *Replay) Run(o Options) (*sim.Result, error) {
	if r.used {
		return nil, errors.New("a replay can be run only once")
	}
	r.used = true
	started := time.Now()
	run := newRun(r.program, &o)
	out, err := run.run()
	if err != nil {
		return nil, err
	}
	result := out.Result(r.program)
	result.Finished(started)
	result.Backend = Backend.Name
	r.timeline = &Timeline{Result: result, program: r.program, ready: run.ready, cause: run.cause, lastEnd: run.last,
		history: run.history}
	return result, nil
}

// Timeline returns the times of all ops after a successful Run, and nil before.
func (r *Replay) Timeline() *Timeline {
	return r.timeline
}

// Run compiles and replays a trace.
func Run(t *dag.Trace) (*Timeline, error) {
	r, err := Compile(dag.FromTrace(t))
	if err != nil {
		return nil, err
	}
	if _, err := r.Run(Options{}); err != nil {
		return nil, err
	}
	return r.timeline, nil
}
