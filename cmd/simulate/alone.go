// This file runs each job of a trace alone, to compare with how it fared beside the others.

package main

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
)

// runAlone runs each job alone, and adds to the result how it fared. It reports whether all came to their ends as they
// did together.
func runAlone(p *cli.Program, o *options, l *loaded, run runner, together *result) (complete bool, err error) {
	outcomes, complete := together.Jobs.([]jobOutcome), true
	for job := range outcomes {
		name := fmt.Sprintf("%s: job %s alone", l.name, outcomes[job].Name)
		alone, err := runJob(p, o, l, run, int32(job))
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if alone.Complete {
			outcomes[job].compare(&alone.Jobs.([]jobOutcome)[job])
		} else if together.Complete {
			complete = false
			explainIncomplete(p, name, alone)
		}
	}
	return complete, nil
}

// runJob runs a job alone.
func runJob(p *cli.Program, o *options, l *loaded, run runner, job int32) (*result, error) {
	trace, err := compose.Only(l.trace, job)
	if err != nil {
		return nil, err
	}
	table := &jobTable{jobs: l.jobs.jobs, ranks: make([]jobRank, len(l.jobs.ranks))}
	source := &timedSource{Source: dag.FromTrace(trace), observe: table.observe}
	if err := run.compile(source, nil); err != nil { // without warnings: those of all jobs together include them
		return nil, err
	}
	for rank := range table.ranks { // what counts is what did together
		table.ranks[rank].shared = l.jobs.ranks[rank].shared
	}
	progress := p.Progress("simulating "+l.jobs.jobs[job].name, trace.Ops(), "ops")
	defer progress.Close()
	how := replay{threads: o.threads, progress: progress.Add, part: true}
	return (&withJobs{run, table}).run(nil, how)
}

// compare adds how the job fared alone.
func (o *jobOutcome) compare(alone *jobOutcome) {
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
func (o *jobOutcome) besideAlone() string {
	switch {
	case o.AloneMakespan == nil:
		return "incomplete\t"
	case o.Slowdown == nil:
		return fmt.Sprintf("%v\t", *o.AloneMakespan)
	}
	return fmt.Sprintf("%v\t%.4g", *o.AloneMakespan, *o.Slowdown)
}
