package measure

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Alone runs each job of a trace without the others, and adds to the section "jobs" of the shared run each job's
// slowdown relative to its isolated run.
type Alone struct {
	Jobs *Jobs
	// Trace returns the part of the lowered trace that belongs to a job.
	Trace   func(job int32) (*dag.Trace, error)
	Backend sim.Backend
	Sharing sim.Sharing     // of NICs, as in the shared run
	Context context.Context // ends the runs early; see [sim.Interrupted]. nil: no limit
	// Begin announces the isolated run of a job with the given number of ops. It returns the run's options and a
	// function to call at its end.
	Begin func(name string, ops int64) (sim.RunOptions, func())
	// Incomplete reports a job that is incomplete in its isolated run, although the shared run is complete.
	Incomplete func(name string, r *sim.Result)
}

// Run runs the jobs. It reports whether every job completes in its isolated run, if the shared run is complete.
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

// runJob runs a job without the others. It discards warnings: the shared run has already printed them.
func (a *Alone) runJob(job int32) (*sim.Result, error) {
	trace, err := a.Trace(job)
	if err != nil {
		return nil, err
	}
	own := &Jobs{jobs: a.Jobs.jobs, ranks: make([]jobRank, len(a.Jobs.ranks))}
	if err := own.Observe(0, trace.Ranks); err != nil {
		return nil, err
	}
	replay, err := a.Backend.Compile(dag.FromTrace(trace), &sim.Env{Context: a.Context, Sharing: a.Sharing})
	if err != nil {
		return nil, err
	}
	for rank := range own.ranks { // activity counts as in the shared run
		own.ranks[rank].shared = a.Jobs.ranks[rank].shared
	}
	o, end := a.Begin(a.Jobs.jobs[job].name, trace.Ops())
	defer end()
	return Run(replay, o, own.Recorder())
}

// compare adds the isolated run's figures of the job.
func (o *JobOutcome) compare(alone *JobOutcome) {
	o.AloneFinish, o.AloneMakespan = &alone.Finish, &alone.Makespan
	if alone.Makespan.Ticks > 0 {
		slowdown := ratio(o.Makespan, alone.Makespan)
		o.Slowdown = &slowdown
	}
}

// ratio returns a/b; b must not be 0.
func ratio(a, b sim.Clock) float64 {
	quotient, _ := exactRatio(a, b).Float64()
	return quotient
}

// aloneCells returns the table cells that compare the job with its isolated run.
func (o *JobOutcome) aloneCells() string {
	switch {
	case o.AloneMakespan == nil:
		return "incomplete\t"
	case o.Slowdown == nil:
		return fmt.Sprintf("%v\t", *o.AloneMakespan)
	}
	return fmt.Sprintf("%v\t%.4g", *o.AloneMakespan, *o.Slowdown)
}
