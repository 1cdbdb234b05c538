package backends_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/measure"
)

// TestSweepsInWindows checks that every point of a sweep in windows that has room when it runs alone ends, also if it
// lacks room beside others, and has the result of a run with all ops in memory.
func TestSweepsInWindows(t *testing.T) {
	const opBytes, points = 64, 6 // limit per op from which a run has all ops in memory
	threads := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(threads)
	for _, backend := range []string{"loggops", "ideal", "flow"} {
		crowded := 0 // sweeps whose points lack room in a quarter of the memory
		for seed := range uint64(4) {
			trace := roomTrace(seed)
			compile := func(limit int64) (sim.Replay, error) {
				options := []backends.Option{backends.Context(memory.WithLimit(context.Background(), limit))}
				if backend == "flow" {
					options = append(options, backends.Set("topology=fattree:k=4"))
				}
				return backends.Compile(trace, backend, options...)
			}
			run := func(replay sim.Replay) error {
				_, err := replay.Run(sim.RunOptions{})
				return err
			}
			sweep := func(replay sim.Replay) (texts []string, failed error) {
				s := measure.Sweep{Replay: replay, Points: make([][]param.Setting, points),
					Options: sim.RunOptions{Threads: 4}}
				err := s.Run(func(_ int, r *sim.Result, err error) error {
					if err != nil {
						failed = err
						return nil
					}
					r.Wall, r.OpsPerS = 0, 0
					var text bytes.Buffer
					err = r.WriteJSON(&text)
					texts = append(texts, text.String())
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return texts, failed
			}
			whole, err := compile(memory.NoLimit)
			if err != nil {
				t.Fatal(err)
			}
			want, err := sweep(whole)
			if err != nil || len(want) != points {
				t.Fatalf("%s: %d results, %v", backend, len(want), err)
			}
			for limit := trace.Ops()*opBytes - 1; ; limit = limit * 3 / 4 {
				replay, err := compile(limit)
				none := (*memory.Error)(nil)
				if errors.As(err, &none) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				beside := run(replay.Clone())
				got, err := sweep(replay)
				alone := run(replay)
				if errors.As(alone, &none) {
					if !errors.As(err, &none) || len(got) > 0 {
						t.Errorf("%s, seed %d, limit %d: %d results, error %v, expected %v", backend, seed, limit, len(got),
							err, alone)
					}
					break
				}
				if beside != nil {
					crowded++
				}
				if alone != nil || err != nil || len(got) != points {
					t.Fatalf("%s, seed %d, limit %d: %d results, %v, %v", backend, seed, limit, len(got), err, alone)
				}
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("%s, seed %d, limit %d: result\n%s\nexpected\n%s", backend, seed, limit, got[i], want[i])
					}
				}
			}
		}
		if crowded == 0 {
			t.Errorf("%s: no sweep lacks room", backend)
		}
	}
}

// roomTrace returns a trace of 8 ranks whose ops wait for one of the three before them.
func roomTrace(seed uint64) *dag.Trace {
	random := rand.New(rand.NewPCG(seed, 3))
	b := dag.NewBuilder(8)
	add := func(rank int, op dag.Op) {
		r := b.Rank(rank)
		if i := r.Add(op); i > 0 {
			r.Requires(i, i-1-random.IntN(min(i, 3)))
		}
	}
	for range 600 {
		from, to, bytes := random.IntN(8), random.IntN(8), random.Int64N(100000)
		add(from, dag.Op{Duration: dag.Time(random.IntN(3)) * dag.Microsecond})
		add(from, dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: 1})
		add(to, dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Tag: 1})
	}
	return b.Trace()
}
