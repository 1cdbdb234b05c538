package flow_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/gen/llm"
	"github.com/tracedag/tracedag/dag/gen/stencil"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestWindows compares runs with few ops in memory at a time with those of whole traces.
func TestWindows(t *testing.T) {
	const opBytes = 64 // limit per op from which a run has all ops in memory
	ended := 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		b := dag.NewBuilder(8)
		add := func(rank int, op dag.Op) {
			r := b.Rank(rank)
			if i := r.Add(op); i > 0 {
				for range 1 + random.IntN(2) {
					r.Requires(i, i-1-random.IntN(min(i, 3)))
				}
			}
		}
		for range 400 {
			from, to, bytes := random.IntN(8), random.IntN(8), random.Int64N(3)*random.Int64N(100000)
			if random.IntN(4) == 0 {
				add(from, dag.Op{Duration: dag.Time(random.IntN(3)) * dag.Microsecond})
			}
			add(from, dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: 1})
			add(to, dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Tag: 1})
		}
		trace := b.Trace()
		eager := []string{"1kB", "1GB"}[seed%2]
		listed := []string{"100000", "399", "400", "57", "0"}[seed%5]
		var window []string
		if seed%3 == 0 {
			window = append(window, "measure-from=50us")
		}
		run := func(limit int64) (string, error) {
			windowed := false
			env := &sim.Env{Explain: func(string, ...any) { windowed = true }}
			r, err := backends.Run(trace, "flow", backends.Set(append(window, "topology=fattree:k=4", "S="+eager,
				"max-flows="+listed)...), backends.Env(env), backends.Options(sim.RunOptions{Figures: true}),
				backends.Context(memory.WithLimit(context.Background(), limit)))
			if err != nil {
				return "", err
			}
			if windowed != (limit != memory.NoLimit) {
				t.Fatalf("limit %d: windows are %v", limit, windowed)
			}
			r.Wall, r.OpsPerS = 0, 0
			var text bytes.Buffer
			err = r.WriteJSON(&text)
			return text.String(), err
		}
		want, err := run(memory.NoLimit)
		if err != nil {
			t.Fatal(err)
		}
		for limit := trace.Ops()*opBytes - 1; ; limit = limit * 3 / 4 {
			got, err := run(limit)
			if tooMuch := (*memory.Error)(nil); errors.As(err, &tooMuch) {
				break
			}
			if err != nil || got != want {
				t.Fatalf("seed %d, limit %d: %v, result\n%s\nexpected\n%s", seed, limit, err, got, want)
			}
			ended++
		}
	}
	if t.Logf("%d runs in windows", ended); ended < 100 {
		t.Errorf("only %d runs in windows ended", ended)
	}
}

// TestWindowsOfPrograms compares replays of generated programs, whose flows are too many to be listed, in two limits
// of memory with those of whole traces.
func TestWindowsOfPrograms(t *testing.T) {
	steps := stencil.Default()
	steps.Iterations, steps.Allreduces = 120, 1
	training := llm.Default()
	training.TP, training.DP, training.PP, training.MicroBatches = 4, 8, 2, 4
	training.Layers, training.PeakFlops, training.MemoryBandwidth = 16, 1e15, 3e12
	batches := horovod.Default()
	batches.Workers, batches.Batches = 16, 4
	for _, c := range []struct {
		name string
		read func() (*dag.Trace, error)
	}{
		{"stencil", func() (*dag.Trace, error) { return readAll(stencil.NewSource(steps)) }},
		{"horovod", func() (*dag.Trace, error) { return readAll(horovod.NewSource(batches, 1)) }},
		{"llm", func() (*dag.Trace, error) { return readAll(llm.NewSource(training)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			if trace, err = collective.Lower(t.Context(), trace, collective.Choice{}); err != nil {
				t.Fatal(err)
			}
			run := func(limit int64) string {
				windowed := false
				env := &sim.Env{Explain: func(string, ...any) { windowed = true }}
				r, err := backends.Run(trace, "flow", backends.Set("topology=fattree:k=8", "max-flows=1000"),
					backends.Env(env), backends.Context(memory.WithLimit(context.Background(), limit)))
				if err != nil || !r.Complete || windowed != (limit != memory.NoLimit) {
					t.Fatalf("windows are %v, %v", windowed, err)
				}
				r.Wall, r.OpsPerS = 0, 0
				var text bytes.Buffer
				if err := r.WriteJSON(&text); err != nil {
					t.Fatal(err)
				}
				return text.String()
			}
			want := run(memory.NoLimit)
			for _, opBytes := range []int64{8, 99} { // with 100, all ops are in memory
				if got := run(trace.Ops() * opBytes); got != want {
					t.Errorf("%d bytes per op: result\n%s\nexpected\n%s", opBytes, got, want)
				}
			}
		})
	}
}

func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
