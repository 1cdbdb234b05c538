package backends_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// parts are the parts of a rank or step in picoseconds, by their names in JSON.
type parts = map[string]int64

// breakdownOf runs a trace with a breakdown and returns the parts of each rank, and those of each step.
func breakdownOf(t *testing.T, c *configuration, trace *dag.Trace) (r *sim.Result, ranks, steps []parts) {
	t.Helper()
	marks := measure.NewSteps(trace.Meta, len(trace.Ranks))
	if marks != nil {
		marks.Observe(0, trace.Ranks)
	}
	r, err := measure.Run(c.compile(t, trace), sim.RunOptions{}, measure.Breakdown(nil, marks))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Breakdown []parts `json:"breakdown"`
		Steps     []parts `json:"breakdown_steps"`
	}
	if err := json.Unmarshal([]byte(document(t, r)), &d); err != nil {
		t.Fatal(err)
	}
	return r, d.Breakdown, d.Steps
}

// phases returns a trace in which all ranks compute, exchange messages and overlap both, without release times.
func phases(r *rand.Rand, ranks int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	b.Meta().Steps = 12
	last := make([]int, ranks)
	for rank := range ranks {
		last[rank] = b.Rank(rank).Calc(dag.Time(1+r.IntN(5000)) * dag.Nanosecond)
	}
	for round := range 6 {
		shift := 1 + r.IntN(ranks-1)
		for rank := range ranks {
			b.Rank(rank).Step(int32(2*(round+1)) * int32(1-(rank+round)/8)) // the last ranks end without
		}
		for rank := range ranks {
			bytes, tag := int64(1)<<r.IntN(18), int64(round)
			to := (rank + shift) % ranks
			send := b.Rank(rank).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: tag}, last[rank])
			recv := b.Rank(to).Add(dag.Op{Kind: dag.Recv, Peer: int32(rank), Bytes: bytes, Tag: tag, Stream: 1})
			if r.IntN(2) == 0 {
				last[rank] = b.Rank(rank).Add(dag.Op{Duration: dag.Time(r.IntN(4000)) * dag.Nanosecond, Stream: 2}, last[rank])
			} else {
				last[rank] = b.Rank(rank).Add(dag.Op{Duration: dag.Microsecond}, last[rank], send)
			}
			last[to] = b.Rank(to).Add(dag.Op{Duration: dag.Microsecond}, last[to], recv)
		}
	}
	return b.Trace()
}

// TestBreakdown checks, on every backend, that the parts of a rank's time add up to its finish, that compute is that of
// the calcs, and that nothing is idle in a trace without release times.
func TestBreakdown(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 4 {
		trace := phases(r, 5)
		forAll(t, func(t *testing.T, c *configuration) {
			result, ranks, steps := breakdownOf(t, c, trace)
			checkSteps(t, c, result, ranks, steps)
			if !result.Complete || len(ranks) != len(trace.Ranks) {
				t.Fatalf("complete: %v, %d ranks", result.Complete, len(ranks))
			}
			for rank, parts := range ranks {
				sum := int64(0)
				for name, ps := range parts {
					if name != "rank" {
						sum += ps
					}
				}
				if finish := picoseconds(result.Finish[rank]).Int64(); sum != finish {
					t.Errorf("rank %d: the parts %v add up to %d, expected the finish %d", rank, parts, sum, finish)
				}
				if parts["idle_ps"] > 0 && !c.wraps {
					t.Errorf("rank %d is idle for %d ps", rank, parts["idle_ps"])
				}
				longest := dag.Time(0)
				for i := range trace.Ranks[rank].Duration {
					longest = max(longest, trace.Ranks[rank].Duration[i])
				}
				if compute := parts["compute_ps"] + parts["overlapped_ps"]; compute < int64(longest) {
					t.Errorf("rank %d computes for %d ps, expected at least %d", rank, compute, longest)
				}
				if parts["overlapped_ps"] == 0 && c.backend != "ideal" && rank == 0 {
					t.Errorf("rank %d: no compute overlaps with communication: %v", rank, parts)
				}
			}
		})
	}
}

// TestBreakdownOfPingPong compares the parts of one message, which waits for its receiver's calc or is awaited, with hand
// calculations on loggops: L 2500 ns, o 1500 ns, G 6 ns/B.
func TestBreakdownOfPingPong(t *testing.T) {
	c := &configuration{backend: "loggops", params: []string{"L=2500ns", "o=1500ns", "g=1us", "G=6ns/B", "S=65535"}}
	b := dag.NewBuilder(2)
	first := b.Rank(0).Calc(10 * dag.Microsecond)
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 1001}, first)
	b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 1001})
	_, ranks, _ := breakdownOf(t, c, b.Trace())
	want := []map[string]int64{
		{"compute_ps": 10_000_000, "overhead_ps": 1_500_000},
		{"wait_ps": 11_500_000, "exposed_comm_ps": 8_500_000, "overhead_ps": 1_500_000},
	}
	for rank, parts := range ranks {
		for name, ps := range parts {
			if name != "rank" && ps != want[rank][name] {
				t.Errorf("rank %d: %s is %d, expected %d", rank, name, ps, want[rank][name])
			}
		}
	}
}

// checkSteps checks that the parts of the steps and of the remaining time add up to those of all ranks, that each step
// is as long as its parts on all ranks, and that steps are in order.
func checkSteps(t *testing.T, c *configuration, result *sim.Result, ranks, steps []parts) {
	t.Helper()
	want, got := make(parts), make(parts)
	for _, p := range ranks {
		for name, ps := range p {
			want[name] += ps
		}
	}
	before := parts{}
	for i, p := range steps {
		for name, ps := range p {
			got[name] += ps
		}
		switch step := p["step"]; {
		case step == 0 && i < len(steps)-1, step > 0 && step != int64(2*(i+1)):
			t.Errorf("step %d at place %d", step, i)
		case step > 0 && (p["begin_ps"] < before["begin_ps"] || p["end_ps"] < before["end_ps"]):
			t.Errorf("step %v ends or begins before the previous one, %v", p, before)
		case p["end_ps"] > picoseconds(result.Makespan).Int64() || p["begin_ps"] > p["end_ps"]:
			t.Errorf("step %v of a run until %v", p, result.Makespan)
		}
		before = p
	}
	for _, name := range []string{"rank", "step", "ranks", "begin_ps", "end_ps"} {
		delete(want, name)
		delete(got, name)
	}
	if len(steps) < 6 || !maps.Equal(want, got) {
		t.Errorf("%s: %d steps with the parts %v in all, expected %v", c.backend, len(steps), got, want)
	}
}

// TestStepsOfPingPong compares the steps of two messages with hand calculations, as TestBreakdownOfPingPong.
func TestStepsOfPingPong(t *testing.T) {
	c := &configuration{backend: "loggops", params: []string{"L=2500ns", "o=1500ns", "g=1us", "G=6ns/B", "S=65535"}}
	b := dag.NewBuilder(2)
	b.Meta().Steps = 9
	b.Rank(0).Step(4)
	first := b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 1001}, b.Rank(0).Calc(10*dag.Microsecond))
	b.Rank(0).Step(9)
	b.Rank(0).Calc(dag.Microsecond, first)
	b.Rank(1).Step(4)
	recv := b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 1001}) // arrives at 20 us
	b.Rank(1).Step(0)
	b.Rank(1).Calc(3*dag.Microsecond, recv)
	_, _, steps := breakdownOf(t, c, b.Trace())
	want := []parts{
		{"step": 4, "ranks": 2, "end_ps": 21_500_000, "compute_ps": 10_000_000, "overhead_ps": 3_000_000,
			"wait_ps": 11_500_000, "exposed_comm_ps": 8_500_000},
		{"step": 9, "ranks": 1, "begin_ps": 11_500_000, "end_ps": 12_500_000, "overlapped_ps": 1_000_000},
		{"ranks": 1, "begin_ps": 21_500_000, "end_ps": 24_500_000, "compute_ps": 3_000_000},
	}
	if len(steps) != len(want) {
		t.Fatalf("%d steps, expected %d: %v", len(steps), len(want), steps)
	}
	for i, p := range steps {
		for name, n := range p {
			if n != want[i][name] {
				t.Errorf("step %d: %s is %d, expected %d", p["step"], name, n, want[i][name])
			}
		}
	}
}
