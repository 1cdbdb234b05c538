package measure

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Alone runs each job of a trace without the others, and adds to the section "jobs" of the result of all how much
// slower a job is beside the others.
type Alone struct {
	Jobs *Jobs
	// Trace returns the part of the lowered trace that belongs to a job.
	Trace   func(job int32) (*dag.Trace, error)
	Backend sim.Backend
	Context context.Context // ends the runs early; see [sim.Interrupted]. nil: never
	// Begin announces the run of a job with so many ops, and returns its options and a function to call at its end.
	Begin func(name string, ops int64) (sim.RunOptions, func())
	// Incomplete reports a job that does not complete alone, although all of them do together.
	Incomplete func(name string, r *sim.Result)
}

// Run reports whether every job completes alone if all of them do together.
func (a *Alone) Run(together *sim.Result) (complete bool, err error) {
	outcomes, complete := together.Section("jobs").Value.([]JobOutcome), true
	for job := range outcomes {
		name := outcomes[job].Name
		r, err := a.runJob(int32(job))
		if err != nil {
			return false, fmt.Errorf("job %s alone: %w", name, err)
		}
		if r.Complete {
			outcomes[job].compare(&r.Section("jobs").Value.([]JobOutcome)[job])
		} else if together.Complete {
			complete = false
			a.Incomplete(name, r)
		}
	}
	return complete, nil
}

// runJob runs a job alone. Warnings are discarded: the run of all jobs has printed them.
func (a *Alone) runJob(job int32) (*sim.Result, error) {
	trace, err := a.Trace(job)
	if err != nil {
		return nil, err
	}
	own := &Jobs{jobs: a.Jobs.jobs, ranks: make([]jobRank, len(a.Jobs.ranks))}
	if err := own.Observe(0, trace.Ranks); err != nil {
		return nil, err
	}
	replay, err := a.Backend.Compile(dag.FromTrace(trace), &sim.Env{Context: a.Context})
	if err != nil {
		return nil, err
	}
	for rank := range own.ranks { // activity counts as it did together
		own.ranks[rank].shared = a.Jobs.ranks[rank].shared
	}
	o, end := a.Begin(a.Jobs.jobs[job].name, trace.Ops())
	defer end()
	return Run(replay, o, own.Recorder())
}

// compare adds how the job fared alone.
func (o *JobOutcome) compare(alone *JobOutcome) {
	o.AloneFinish, o.AloneMakespan = &alone.Finish, &alone.Makespan
	if alone.Makespan.Ticks > 0 {
		slowdown := ratio(o.Makespan, alone.Makespan)
		o.Slowdown = &slowdown
	}
}

// ratio returns a by b, which is not 0.
func ratio(a, b sim.Clock) float64 {
	quotient, _ := exactRatio(a, b).Float64()
	return quotient
}

// besideAlone is the part of a line of the table that compares with the job alone.
func (o *JobOutcome) besideAlone() string {
	switch {
	case o.AloneMakespan == nil:
		return "incomplete\t"
	case o.Slowdown == nil:
		return fmt.Sprintf("%v\t", *o.AloneMakespan)
	}
	return fmt.Sprintf("%v\t%.4g", *o.AloneMakespan, *o.Slowdown)
}
