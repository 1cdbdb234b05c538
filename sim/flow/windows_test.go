package flow_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
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
		run := func(limit int64) (string, error) {
			windowed := false
			env := &sim.Env{Explain: func(string, ...any) { windowed = true }}
			r, err := backends.Run(trace, "flow", backends.Set("topology=fattree:k=4", "S="+eager), backends.Env(env),
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
