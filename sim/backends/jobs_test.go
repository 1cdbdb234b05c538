package backends_test

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/matrix"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestJobGraphs runs generated jobs, whose trace has their order in messages: each backend sends all of them, and none
// is faster than a network without costs.
func TestJobGraphs(t *testing.T) {
	p := matrix.JobParams{Params: matrix.Default(), Jobs: 6, Connectivity: 1.5, DataShare: 0.8, RunDeviation: 0.2}
	if !p.Use("prototyping") {
		t.Fatal("no preset prototyping")
	}
	p.Nodes = 8
	jobs, _, err := matrix.NewJobs(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	edges, bytes := 0, int64(0)
	for i := range jobs {
		edges += len(jobs[i].Edges)
		for n := range jobs[i].Edges { // op times, which sizes of 10 bytes leave at 0
			e := &jobs[i].Edges[n]
			e.Bytes *= 1000
			bytes += e.Bytes
			if e.Tail > 0 {
				e.Run = dag.Time(e.Tail) * dag.Microsecond
			}
		}
	}
	trace, err := jobgraph.Trace(t.Context(), p.Nodes, jobs, jobgraph.Messages)
	if err != nil {
		t.Fatal(err)
	}
	ideal, err := backends.Run(trace, "ideal")
	if err != nil {
		t.Fatal(err)
	}
	if int(ideal.Messages) <= edges {
		t.Fatalf("%d messages of %d edges, expected control messages too", ideal.Messages, edges)
	}
	const network = "topology=leafspine:hosts=8,tor=4,spines=2,rate=100Gbps"
	for backend, params := range map[string][]string{
		"packet": {network}, "slots": {network, "slot=1us"}, "loggops": nil,
	} {
		r, err := backends.Run(trace, backend, backends.Set(params...))
		if err != nil {
			t.Fatalf("%s: %v", backend, err)
		}
		if !r.Complete || r.Messages != ideal.Messages || r.Bytes != bytes {
			t.Errorf("%s: complete %v, %d messages of %d bytes, expected %d of %d", backend, r.Complete, r.Messages,
				r.Bytes, ideal.Messages, bytes)
		}
		if r.Makespan.Ticks*uint64(r.Makespan.Unit) <= ideal.Makespan.Ticks*uint64(ideal.Makespan.Unit) {
			t.Errorf("%s: makespan %v, expected more than %v without costs", backend, r.Makespan, ideal.Makespan)
		}
	}
}
