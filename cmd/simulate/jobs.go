package main

import (
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
)

// withJobs is a runner whose results say how each of several jobs fared.
type withJobs struct {
	runner
	jobs []cli.Job
}

func (r *withJobs) run(settings []setting, how replay) (*result, error) {
	done, err := r.runner.run(settings, how)
	if err != nil {
		return nil, err
	}
	outcomes := make([]jobOutcome, len(r.jobs))
	for i, job := range r.jobs {
		outcomes[i] = newJobOutcome(job, done.Finish)
	}
	done.Jobs = outcomes
	return done, nil
}

// jobOutcome is how a job fared.
type jobOutcome struct {
	Name      string    `json:"name"`
	FirstRank int       `json:"first_rank"`
	Ranks     int       `json:"ranks"`
	Start     dag.Time  `json:"start_ps"`
	Finish    sim.Clock `json:"finish_ps"`   // the latest of its ranks'
	Makespan  sim.Clock `json:"makespan_ps"` // from its start on
}

func newJobOutcome(job cli.Job, finish []sim.Clock) jobOutcome {
	o := jobOutcome{Name: job.Name, FirstRank: job.FirstRank, Ranks: job.Ranks, Start: job.Start}
	if finish = finish[job.FirstRank : job.FirstRank+job.Ranks]; len(finish) > 0 {
		_, last := extremes(finish)
		o.Finish = finish[last]
	}
	o.Makespan = o.Finish
	if job.Start > 0 { // so the clock has not wrapped around: backends where it may have no release times
		o.Makespan = sim.Clock{Unit: dag.Picosecond}
		if end := dag.Time(o.Finish.Ticks) * o.Finish.Unit; end > job.Start { // it is not where the job has no ops
			o.Makespan.Ticks = uint64(end - job.Start)
		}
	}
	return o
}

// printJobs prints how the jobs fared, where there are some.
func printJobs(w io.Writer, r *result) {
	outcomes, _ := r.Jobs.([]jobOutcome)
	if len(outcomes) == 0 {
		return
	}
	fmt.Fprintln(w, "\njob\tranks\tstart\tfinish\tmakespan")
	for _, o := range outcomes {
		ranks := "none"
		if o.Ranks > 0 {
			ranks = fmt.Sprintf("%d..%d", o.FirstRank, o.FirstRank+o.Ranks-1)
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%v\n", o.Name, ranks, o.Start, o.Finish, o.Makespan)
	}
}
