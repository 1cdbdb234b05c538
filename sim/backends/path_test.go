package backends_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// pathOf runs a trace and returns the result with its critical path.
func pathOf(t *testing.T, backend string, trace *dag.Trace, threads int, set ...string) *sim.Result {
	t.Helper()
	r, err := backends.Run(trace, backend, backends.Set(set...),
		backends.Options(sim.RunOptions{Threads: threads, Path: &sim.PathOptions{Steps: true}}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkPath checks that the steps of a path lead from 0 to the makespan without gaps.
func checkPath(t *testing.T, r *sim.Result) {
	t.Helper()
	p := r.Path
	if p == nil {
		t.Fatal("no critical path")
	}
	at := uint64(0)
	for k, s := range p.Steps {
		if s.Start != at || s.End < s.Start || int(s.Rank) >= len(r.Finish) {
			t.Fatalf("step %d of %d is %+v, after a step that ends at %d", k, len(p.Steps), s, at)
		}
		at = s.End
	}
	if end := (sim.Clock{Ticks: at, Unit: p.Unit}); picoseconds(end).Cmp(picoseconds(r.Makespan)) != 0 {
		t.Fatalf("the path ends at %v, expected the makespan %v", end, r.Makespan)
	}
	var d struct {
		Path struct {
			Length int64            `json:"length_ps"`
			Steps  []map[string]any `json:"path"`
		} `json:"critical_path"`
	}
	if err := json.Unmarshal([]byte(document(t, r)), &d); err != nil || d.Path.Length != picoseconds(r.Makespan).Int64() {
		t.Fatalf("the JSON has a path of %d ps, %v", d.Path.Length, err)
	}
}

// TestPath checks the critical paths of all backends.
func TestPath(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for round := range 6 {
		trace := phases(r, 5)
		if round%2 == 1 { // an op that waits for its release
			trace.Change(2).Release.Set(0, dag.Time(1+r.IntN(100))*dag.Microsecond)
		}
		forAll(t, func(t *testing.T, c *configuration) {
			if c.wraps || c.atlahs {
				if round == 0 && pathOf(t, c.backend, trace, 1, c.set(5)...).Path != nil {
					t.Error("a path of a model of a reference simulator")
				}
				return
			}
			checkPath(t, pathOf(t, c.backend, trace, 1, c.set(5)...))
		})
	}
}

// TestPathCounts checks on loggops that the counts of the critical path are the derivatives of the makespan: wherever a
// parameter that grows and shrinks a little changes the makespan by the same amount.
func TestPathCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	names := []string{"L", "o", "g", "G", "O"}
	compared := make(map[string]int)
	for round := range 40 {
		trace := phases(r, 3+r.IntN(5))
		values := map[string]int64{"L": 1000 + r.Int64N(4_000_000), "o": 1000 + r.Int64N(2_000_000), "g": 1000 + r.Int64N(900_000),
			"G": 5 + r.Int64N(300), "O": 2 + r.Int64N(20)}
		run := func(change string, by int64) *sim.Result {
			set := []string{fmt.Sprintf("S=%d", []int{0, 4096, 1 << 20}[round%3])}
			for _, name := range names {
				value, unit := values[name], "ps"
				if name == change {
					value += by
				}
				if name == "G" || name == "O" {
					unit = "ps/B"
				}
				set = append(set, fmt.Sprintf("%s=%d%s", name, value, unit))
			}
			result := pathOf(t, "loggops", trace, 1, set...)
			checkPath(t, result)
			return result
		}
		at := run("", 0)
		counts := at.Path.Counts
		for k, count := range []int64{counts.L, counts.Overhead, counts.Gap, counts.GBytes, counts.OBytes} {
			more := int64(run(names[k], 1).Makespan.Ticks - at.Makespan.Ticks)
			less := int64(at.Makespan.Ticks - run(names[k], -1).Makespan.Ticks)
			if more != less {
				continue // the path changes
			}
			if compared[names[k]]++; more != count {
				t.Errorf("round %d: 1 ps of %s changes the makespan by %d ps, expected %d", round, names[k], more, count)
			}
		}
	}
	for _, name := range names {
		if compared[name] < 10 {
			t.Errorf("%s was compared %d times only", name, compared[name])
		}
	}
}

// TestPathsDoNotDependOnThreads compares the documents of runs with different numbers of threads.
func TestPathsDoNotDependOnThreads(t *testing.T) {
	trace := exchanges(16, 20)
	for _, size := range []string{"S=0", "S=1MiB"} {
		want := ""
		for _, threads := range []int{1, 2, 5} {
			got := document(t, pathOf(t, "loggops", trace, threads, size))
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s, %d threads: another path", size, threads)
			}
		}
	}
}

// networkParts returns the time of each part of a path.
func networkParts(p *sim.Path) map[sim.PathPart]uint64 {
	parts := make(map[sim.PathPart]uint64)
	for _, s := range p.Steps {
		parts[s.Part] += s.End - s.Start
	}
	return parts
}

// TestPathQueueing checks the parts of messages on packet and flit: one message alone takes its latency and its bytes
// and never queues; of several at the same time to one receiver some do.
func TestPathQueueing(t *testing.T) {
	send := func(senders int, bytes int64) *dag.Trace {
		b := dag.NewBuilder(8)
		for k := 1; k <= senders; k++ {
			b.Rank(k).Send(0, bytes, 0, b.Rank(k).Calc(dag.Time(1234*k)*dag.Nanosecond/dag.Time(k)))
			b.Rank(0).Recv(int32(k), bytes, 0)
		}
		return b.Trace()
	}
	for _, c := range []struct {
		backend string
		set     []string
	}{
		{"packet", []string{"topology=leafspine:hosts=8,tor=2,spines=2"}},
		{"packet", []string{"topology=leafspine:hosts=8,tor=2,spines=2", "S=4096"}},
		{"packet", []string{"topology=leafspine:hosts=8,tor=2,spines=2", "transport=ndp"}},
		{"flow", []string{"topology=leafspine:hosts=8,tor=2,spines=2"}},
		{"flow", []string{"topology=leafspine:hosts=8,tor=2,spines=2", "S=4096", "flow-model=lv08"}},
		{"flit", []string{"topology=fattree:k=4"}},
		{"flit", []string{"topology=mesh:dims=4x2", "pipeline=3"}},
	} {
		for _, bytes := range []int64{0, 1, 1500, 60_000} {
			for _, senders := range []int{1, 6} {
				r := pathOf(t, c.backend, send(senders, bytes), 1, c.set...)
				checkPath(t, r)
				parts := networkParts(r.Path)
				name := fmt.Sprintf("%s %v, %d messages of %d bytes: %v", c.backend, c.set, senders, bytes, parts)
				switch queueing := parts[sim.PathQueueing]; {
				case parts[sim.PathNetwork] > 0 || parts[sim.PathLatency] == 0 && bytes > 0:
					t.Errorf("%s: in the network without a part, or no latency", name)
				case senders == 1 && queueing > 0:
					t.Errorf("%s: one message alone queues", name)
				case senders > 1 && bytes >= 1500 && queueing == 0:
					t.Errorf("%s: no message queues", name)
				case bytes > 0 && parts[sim.PathBytes] == 0:
					t.Errorf("%s: no time for the bytes", name)
				}
			}
		}
	}
}
