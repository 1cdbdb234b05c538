package ideal

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
)

// TestWindows compares replays with few ops in memory at a time with those of whole traces, with their critical paths.
func TestWindows(t *testing.T) {
	const opBytes = 64 // limit per op from which a replay has all ops in memory
	run := func(trace *dag.Trace, limit int64, windowed bool) (string, error) {
		b := new(backend)
		replay, err := b.Compile(dag.FromTrace(trace), &sim.Env{Context: memory.WithLimit(context.Background(), limit)})
		if err != nil {
			return "", err
		}
		if r := replay.(*reported); r.replay.program.Windowed() != windowed {
			t.Fatalf("limit %d: windows are %v, expected %v", limit, !windowed, windowed)
		}
		result, err := replay.Run(sim.RunOptions{Path: &sim.PathOptions{Steps: true}})
		if err != nil {
			return "", err
		}
		result.Wall, result.OpsPerS = 0, 0
		var text bytes.Buffer
		err = result.WriteJSON(&text)
		return text.String(), err
	}
	ended := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := wild{startDeps: seed%2 == 0, wildcards: seed%3 == 0, forward: seed%11 == 0, long: seed%4 > 0}
		trace := randomTrace(random, w)
		want, wantErr := run(trace, memory.NoLimit, false)
		for limit := trace.Ops()*opBytes - 1; limit > int64(len(trace.Ranks))*100+800; limit = limit * 3 / 4 {
			got, err := run(trace, limit, true)
			if tooMuch := (*memory.Error)(nil); errors.As(err, &tooMuch) {
				break
			}
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("seed %d, limit %d: error %v, expected %v", seed, limit, err, wantErr)
			}
			if got != want {
				t.Fatalf("seed %d, limit %d: result\n%s\nexpected\n%s", seed, limit, got, want)
			}
			ended++
		}
	}
	if t.Logf("%d replays in windows", ended); ended < 500 {
		t.Errorf("only %d replays in windows ended", ended)
	}
}
