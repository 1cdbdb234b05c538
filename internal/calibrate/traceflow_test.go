package calibrate

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/fit"
)

// recorder is a timeline that records the times of blocking calls in the ops of a trace.
type recorder struct {
	trace  *dag.Trace
	layout *sim.Layout
}

func (r *recorder) Begin(l *sim.Layout)   { r.layout = l }
func (r *recorder) Transfer(sim.Transfer) {}
func (r *recorder) End() error            { return nil }

func (r *recorder) Span(s sim.Span) {
	rank, i := r.trace.Ranks[s.Rank], r.layout.Index(s.Rank, s.Op)
	start, end := dag.Time(s.Start)*r.layout.Unit, dag.Time(s.End)*r.layout.Unit
	if before, until := rank.Measured(i); before != dag.Unmeasured {
		start, end = min(start, before), max(end, until)
	}
	rank.MeasuredStart[i], rank.MeasuredEnd[i] = start, end
}

// program returns a program of blocking messages between neighbors and to rank 0, some of which wait for their senders
// and some of which come late, with work between.
func program(ranks int, sizes []int64) *dag.Trace {
	s := newScene(ranks)
	work := func(rank int, t dag.Time) { s.add(rank, dag.Op{Kind: dag.Calc, Duration: t}) }
	for i, bytes := range sizes {
		for round := range 6 {
			for r := 0; r+1 < ranks; r += 2 {
				from, to := r, r+1
				if round&1 == 1 {
					from, to = to, from
				}
				if round < 4 { // the receiver, or the sender, comes late
					work([]int{from, to}[round/2], 5*dag.Millisecond+dag.Time(i+r)*dag.Microsecond)
				}
				s.send(from, to, bytes)
				s.receive(to, from, bytes)
			}
		}
		s.incast(ranks-1, bytes) // shares the link of rank 0
		for r := range ranks {
			work(r, 20*dag.Millisecond)
		}
	}
	return s.builder.Trace()
}

// record runs a trace on the flow backend, and returns it with the times of its calls.
func record(t *testing.T, trace *dag.Trace, settings ...string) *dag.Trace {
	t.Helper()
	for _, r := range trace.Ranks {
		r.MeasuredStart, r.MeasuredEnd = make([]dag.Time, r.Len()), make([]dag.Time, r.Len())
		for i := range r.Len() {
			r.MeasuredStart[i], r.MeasuredEnd[i] = dag.Unmeasured, dag.Unmeasured
		}
	}
	if _, err := backends.Run(trace, "flow", backends.Set(settings...),
		backends.Options(sim.RunOptions{Timeline: &recorder{trace: trace}})); err != nil {
		t.Fatal(err)
	}
	return trace
}

// TestFlowFromTrace estimates the parameters of a machine from the recording of a program, whose messages share links.
func TestFlowFromTrace(t *testing.T) {
	const network = "star:hosts=8,rate=10Gbps,latency=2us"
	sizes := []int64{64, 200, 700, 1500, 4000, 9000, 20000, 50000, 100000, 200000, 400000}
	trace := record(t, program(8, sizes), "topology="+network, "flow-model=smpi", "lat-factors=0:1.5;10000:2.5",
		"bw-factors=0:0.5;10000:0.8", "os=0:1e-6:1e-10", "or=0:5e-7:2e-10", "async-small=10000", "detached=30000",
		"envelope=16")
	o := Options{Backend: "flow", Topology: network, Seed: 1, Threads: 1}
	table, err := FromTrace(context.Background(), trace, o)
	if err != nil {
		t.Fatal(err)
	}
	table.Name = "x"
	f, err := Estimate(context.Background(), []*fit.Table{table}, o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]int64{"detached": {20001, 50000}, "async_small": {9001, 20000}} {
		if p := f.Parameters[name]; int64(p.Low) != want[0] || int64(p.High) != want[1] {
			t.Errorf("%s is %+v, expected %v", name, p, want)
		}
	}
	for _, bytes := range sizes {
		var at fit.FileSegment
		for _, s := range f.Segments {
			if bytes >= s.From {
				at = s
			}
		}
		want := map[string]float64{"latency_factor": 1.5, "bandwidth_factor": 0.5, "os": 1e-6, "os_per_byte": 1e-10,
			"or": 5e-7, "or_per_byte": 2e-10}
		if bytes > 9000 {
			want["latency_factor"], want["bandwidth_factor"] = 2.5, 0.8
		}
		for name, v := range want {
			if got := at.Parameters[name].Value; math.Abs(got/v-1) > 0.01 && bytes < 30000 {
				t.Errorf("%d bytes: %s is %g, expected %g", bytes, name, got, v)
			}
		}
	}
	if text := strings.Join(f.Remarks, "\n"); !strings.Contains(text, "times of a trace instead of ping-pongs") {
		t.Errorf("remarks %q", f.Remarks)
	}
}
