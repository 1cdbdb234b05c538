package backends_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// ring returns a job in which each of 8 ranks sends messages to the next one, each after the previous has arrived.
func ring(messages int) *dag.Trace {
	b := dag.NewBuilder(8)
	for rank := range 8 {
		last := -1
		for m := range messages {
			send, recv := b.Rank(rank).Send(int32(rank+1)%8, 1<<20, int64(m)), 0
			recv = b.Rank(rank).Recv(int32(rank+7)%8, 1<<20, int64(m))
			if last >= 0 {
				b.Rank(rank).Requires(send, last)
			}
			last = recv
		}
	}
	return b.Trace()
}

// compute returns a job in which 8 ranks compute.
func compute() *dag.Trace {
	b := dag.NewBuilder(8)
	for rank := range 8 {
		b.Rank(rank).Calc(dag.Millisecond)
	}
	return b.Trace()
}

// together returns the trace of jobs, each on nodes from the given first one.
func together(t *testing.T, first []int32, jobs ...*dag.Trace) *dag.Trace {
	t.Helper()
	all := make([]compose.Job, len(jobs))
	var at []int32
	for i, job := range jobs {
		all[i] = compose.Job{Name: fmt.Sprint(i), Trace: job}
		for rank := range job.Ranks {
			at = append(at, first[i]+int32(rank))
		}
	}
	merged, err := compose.Merge(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	merged.Nodes = at
	return merged
}

// TestJobsOnSharedNodes checks that jobs on the same nodes share their NICs: two jobs that use them all the time take
// twice as long, and a job that only computes has no effect. On nodes of their own, jobs do not contend there.
func TestJobsOnSharedNodes(t *testing.T) {
	for _, c := range []struct {
		backend string
		params  []string
		shares  bool
	}{
		{"loggops", []string{"G=100Gbps"}, true},
		{"packet", []string{"topology=leafspine:hosts=16,tor=8,rate=100Gbps,latency=500ns"}, true},
		{"packet", []string{"topology=leafspine:hosts=16,tor=8,rate=100Gbps,latency=500ns", "transport=dctcp"}, true},
		{"flow", []string{"topology=leafspine:hosts=16,tor=8,rate=100Gbps,latency=500ns"}, true},
		{"flit", []string{"topology=star:hosts=16"}, true},
		{"analytical", nil, true},
		{"analytical", []string{"rendezvous=true"}, true},
		{"ideal", nil, false},
	} {
		makespan := func(trace *dag.Trace, sharing ...string) float64 {
			params := append(c.params, sharing...)
			if c.backend == "analytical" {
				params = append(params, fmt.Sprintf("network=Switch(%d)@10GB/s,500ns", len(trace.Ranks)))
			}
			r, err := backends.Run(trace, c.backend, backends.Set(params...))
			if err != nil || !r.Complete {
				t.Fatal(c.backend, err)
			}
			if _, ok := shared(r); ok && !c.shares {
				t.Errorf("%s: the result has shared nodes", c.backend)
			}
			return float64(r.Makespan.Ticks) * float64(r.Makespan.Unit)
		}
		alone := makespan(ring(3))
		same, apart := []int32{0, 0}, []int32{0, 8}
		for _, k := range []struct {
			what        string
			trace       *dag.Trace
			least, most float64 // times the makespan alone
		}{
			{"two rings on the same nodes", together(t, same, ring(3), ring(3)), 1.8, 2.1},
			{"two rings on nodes of their own", together(t, apart, ring(3), ring(3)), 0.99, 1.01},
			{"a ring and computation", together(t, same, compute(), ring(3)), 0.99, 1.01},
		} {
			ratio := makespan(k.trace) / max(alone, 1)
			if k.what == "a ring and computation" {
				ratio = makespan(k.trace) / max(alone, float64(dag.Millisecond))
			}
			switch {
			case c.shares && (ratio < k.least || ratio > k.most):
				t.Errorf("%s: %s: %.3f times the time alone, expected %v to %v", c.backend, k.what, ratio, k.least, k.most)
			case !c.shares && ratio > 1.01:
				t.Errorf("%s: %s: %.3f times the time alone", c.backend, k.what, ratio)
			}
		}
	}
}

func shared(r *sim.Result) (n int, ok bool) {
	s := r.Section("shared_nodes")
	if s == nil {
		return 0, false
	}
	return s.Value.(int), true
}

// TestSharesNICs checks which ranks share NICs.
func TestSharesNICs(t *testing.T) {
	merged := together(t, []int32{0, 0}, ring(1), ring(1))
	single := ring(1)
	single.Nodes = []int32{0, 0, 1, 1, 2, 2, 3, 3}
	separate, err := compose.SeparateNICs(context.Background(), merged,
		[]compose.Job{{Trace: ring(1)}, {Trace: ring(1)}})
	if err != nil {
		t.Fatal(err)
	}
	three, err := compose.SeparateNICs(context.Background(), together(t, []int32{0, 0, 0}, ring(1), compute(), ring(1)),
		[]compose.Job{{Trace: ring(1)}, {Trace: compute()}, {Trace: ring(1)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what    string
		trace   *dag.Trace
		sharing sim.Sharing
		want    bool
	}{
		{"jobs on the same nodes", merged, sim.ShareAmongJobs, true},
		{"jobs on the same nodes", merged, sim.ShareNever, false},
		{"jobs with separate NICs", separate, sim.ShareAmongJobs, false},
		{"jobs with separate NICs", separate, sim.ShareAlways, true},
		{"jobs on their own nodes", together(t, []int32{0, 8}, ring(1), ring(1)), sim.ShareAmongJobs, false},
		{"jobs on their own nodes", together(t, []int32{0, 8}, ring(1), ring(1)), sim.ShareAlways, false},
		{"a job without messages", together(t, []int32{0, 0}, ring(1), compute()), sim.ShareAmongJobs, true},
		{"a job without messages", together(t, []int32{0, 0}, ring(1), compute()), sim.ShareNever, false},
		{"jobs with separate NICs, and one without messages", three, sim.ShareAmongJobs, false},
		{"one job with two ranks per node", single, sim.ShareAmongJobs, false},
		{"one job with two ranks per node", single, sim.ShareAlways, true},
		{"no nodes", ring(1), sim.ShareAlways, false},
	} {
		if got, err := (&sim.Env{Sharing: c.sharing}).SharesNICs(dag.FromTrace(c.trace)); err != nil || got != c.want {
			t.Errorf("%s, choice %d: %v, error %v", c.what, c.sharing, got, err)
		}
	}
}
