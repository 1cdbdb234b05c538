package compose_test

import (
	"context"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/loggops"
)

// replay lowers a trace and runs it on the strict model of LogGOPS.
func replay(t *testing.T, trace *dag.Trace) *sim.Result {
	t.Helper()
	lowered, err := collective.Lower(context.Background(), trace, collective.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := loggops.Compile(dag.FromTrace(lowered), loggops.Strict, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	params, err := loggops.Preset("default")
	if err != nil {
		t.Fatal(err)
	}
	result, err := compiled.Run(loggops.Options{Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestReplay checks on random jobs, many of them with wildcards that determine the matching, that in a merged run every
// rank finishes when it does if its job runs alone, later by the start of the job.
func TestReplay(t *testing.T) {
	complete, wildcards := 0, 0
	for seed := range uint64(300) {
		jobs := compose.RandomJobs(seed)
		merged := replay(t, compose.MustMerge(t, jobs...))
		all, neverRun, messages, at := true, int64(0), int64(0), 0
		for _, job := range jobs {
			alone := replay(t, job.Trace)
			all = all && alone.Complete
			neverRun += alone.NeverRun
			messages += alone.Messages
			for i, finish := range alone.Finish {
				want := sim.Clock{Ticks: finish.Ticks + uint64(job.Start), Unit: finish.Unit}
				if got := merged.Finish[at+i]; got != want {
					t.Fatalf("seed %d: rank %d of %s finishes at %v alone, at %v in the merged run, expected %v", seed, i, job.Name,
						finish, got, want)
				}
			}
			at += len(alone.Finish)
			for i := range job.Trace.Ranks {
				for k, kind := range job.Trace.Ranks[i].Kind {
					if kind == dag.Recv && job.Trace.Ranks[i].Peer.At(k) == dag.AnySource {
						wildcards++
					}
				}
			}
		}
		if merged.Complete != all || merged.NeverRun != neverRun || merged.Messages != messages {
			t.Fatalf("seed %d: complete %v, %d ops never ran, %d messages; alone %v, %d, %d", seed, merged.Complete,
				merged.NeverRun, merged.Messages, all, neverRun, messages)
		}
		if all {
			complete++
		}
	}
	t.Logf("%d of 300 complete, %d receives from any source", complete, wildcards)
	if complete < 30 || wildcards < 1000 {
		t.Errorf("%d runs are complete and %d receives take any source, too few to tell", complete, wildcards)
	}
}
