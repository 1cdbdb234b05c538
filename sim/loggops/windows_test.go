package loggops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
)

// opBytes is the part of the limit of memory per op from which a replay has all ops in memory.
const opBytes = 64

// replayWithin replays a trace within a limit of memory in bytes. It returns the result as JSON and the warnings.
func replayWithin(t *testing.T, trace *dag.Trace, m Model, o Options, limit int64, windowed bool) (string, error) {
	t.Helper()
	var text bytes.Buffer
	warn := func(message string, args ...any) { text.WriteString(message) }
	env := &sim.Env{Warn: warn, Context: memory.WithLimit(context.Background(), limit)}
	r, err := newReplay(dag.FromTrace(trace), m, env)
	if err != nil {
		return "", err
	}
	defer r.program.Close()
	if r.program.Windowed() != windowed {
		t.Fatalf("limit %d: windows are %v, expected %v", limit, !windowed, windowed)
	}
	r.program.WarnShortReceives(&sim.Env{Warn: warn})
	result, err := r.Run(o)
	if err != nil {
		return "", err
	}
	result.Wall, result.OpsPerS = 0, 0
	if err := result.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	return text.String(), nil
}

// sameInWindows compares replays in windows of several sizes with that of the whole trace. It returns the number of
// replays in windows to the end.
func sameInWindows(t *testing.T, seed uint64, trace *dag.Trace, m Model, o Options) (ended int) {
	t.Helper()
	want, wantErr := replayWithin(t, trace, m, o, memory.NoLimit, false)
	for limit := trace.Ops()*opBytes - 1; limit > int64(len(trace.Ranks))*80+800; limit = limit * 3 / 4 {
		got, err := replayWithin(t, trace, m, o, limit, true)
		switch tooMuch := (*memory.Error)(nil); {
		case errors.As(err, &tooMuch):
			return ended
		case (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error():
			t.Fatalf("seed %d, %s, limit %d: error %v, expected %v", seed, m, limit, err, wantErr)
		case got != want:
			t.Fatalf("seed %d, %s, limit %d: result\n%s\nexpected\n%s", seed, m, limit, got, want)
		}
		ended++
	}
	return ended
}

// TestWindows compares replays in windows with those of whole traces.
func TestWindows(t *testing.T) {
	params := []nanosecondParams{
		{2500, 1500, 1000, 6, 0, 65535}, {3700, 200, 5, 2, 1, 64}, {10, 10, 10, 0, 0, 1}, {0, 0, 0, 0, 0, 1000},
		{100, 1, 1, 3, 2, 50},
	}
	ended := make(map[Model]int)
	for seed := range sampled(120) {
		random := rand.New(rand.NewPCG(seed, 77))
		p := params[seed%uint64(len(params))]
		o := Options{Params: inNanoseconds(p.l, p.o, p.g, p.perByte, p.s)}
		o.Params.OPerByte = inNanoseconds(0, 0, 0, p.oPerByte, 0).GPerByte
		traces := []*dag.Trace{randomTrace(random, seed%10 == 0), crowded(random, randomCrowd(random)),
			simultaneous(random), chained(random), chained(random)}
		for _, trace := range traces {
			for _, m := range Models {
				ended[m] += sameInWindows(t, seed, trace, m, o)
			}
		}
	}
	for _, m := range Models {
		if t.Logf("%s: %d replays in windows", m, ended[m]); ended[m] < 300 {
			t.Errorf("%s: only %d replays in windows ended", m, ended[m])
		}
	}
}

// TestWindowsOfLikeRanks replays ranks in windows that share ops if all are in memory.
func TestWindowsOfLikeRanks(t *testing.T) {
	const ranks, steps = 80, 100
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		r := b.Rank(rank)
		for i := range steps {
			send := r.Send(int32((rank+1)%ranks), int64(i), 0)
			if i > 0 {
				r.Requires(send, send-1)
			}
			r.Requires(r.Recv(int32((rank+ranks-1)%ranks), int64(i), 0), send)
		}
	}
	trace := b.Trace()
	for _, m := range Models {
		r, err := Compile(dag.FromTrace(trace), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if folded := r.program.Folded() != nil; folded != (m != ATLAHS) {
			t.Errorf("%s: folded is %v without windows", m, folded)
		}
		if sameInWindows(t, 0, trace, m, Options{Params: inNanoseconds(100, 10, 5, 1, 65535)}) == 0 {
			t.Errorf("%s: no replay in windows ended", m)
		}
	}
}

// chained returns a schedule in which nearly every op waits for one of the ops just before it on its rank, so that few
// ops need be in memory at a time, and some wait for others anywhere before or after.
func chained(random *rand.Rand) *dag.Trace {
	ranks := 1 + random.IntN(5)
	b := dag.NewBuilder(ranks)
	sizes := []int64{0, 1, 1, 2, 64, 1000, 70000}
	streams, nics, wild := 1+random.Int32N(2), 1+random.Int32N(2), random.IntN(3) == 0
	add := func(rank int, op dag.Op) {
		op.Stream, op.NIC = random.Int32N(streams), random.Int32N(nics)
		r := b.Rank(rank)
		i := r.Add(op)
		if i == 0 || random.IntN(300) == 0 {
			return
		}
		if on := i - 1 - random.IntN(min(i, 4)); random.IntN(10) == 0 {
			r.RequiresStart(i, on)
		} else {
			r.Requires(i, on)
		}
		for range random.IntN(3) {
			r.Requires(i, i-1-random.IntN(min(i, 8)))
		}
		if random.IntN(50) == 0 {
			r.Requires(i, random.IntN(i))
		}
	}
	for range 150 + random.IntN(200) {
		from, to := random.IntN(ranks), random.IntN(ranks)
		if random.IntN(3) == 0 {
			add(from, dag.Op{Duration: dag.Time(random.IntN(4)*random.IntN(1000)) * dag.Nanosecond})
			continue
		}
		send := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: sizes[random.IntN(len(sizes))], Tag: random.Int64N(2)}
		recv := dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: send.Bytes, Tag: send.Tag}
		if random.IntN(40) == 0 {
			recv.Bytes = sizes[random.IntN(len(sizes))]
		}
		if wild && random.IntN(6) == 0 {
			recv.Peer = dag.AnySource
		}
		if wild && random.IntN(6) == 0 {
			recv.Tag = dag.AnyTag
		}
		add(from, send)
		if random.IntN(400) > 0 {
			add(to, recv)
		}
	}
	return b.Trace()
}

type nanosecondParams struct{ l, o, g, perByte, oPerByte, s int64 }

// TestWindowsErrors checks that a trace whose structure forbids windows is refused with the name of an op, and one with
// dependencies over any distance is not.
func TestWindowsErrors(t *testing.T) {
	const ops, limit = 2000, 1 << 16
	for _, c := range []struct {
		name string
		deps func(r *dag.RankBuilder, i int)
		want string
	}{
		{"chain", func(r *dag.RankBuilder, i int) { r.Requires(i, i-1) }, ""},
		{"chain and a root at the far end", func(r *dag.RankBuilder, i int) {
			if i != ops-1 {
				r.Requires(i, i-1)
			}
		}, ""},
		{"the last op waits for the first", func(r *dag.RankBuilder, i int) {
			r.Requires(i, i-1)
			if i == ops-1 {
				r.Requires(i, 0)
			}
		}, ""},
		{"all wait for the first", func(r *dag.RankBuilder, i int) { r.Requires(i, 0) }, "the ops that can start at " +
			"the same time, such as rank 0 op 512, which waits for op 0 but not for those between, need more memory " +
			"than the limit of 64KiB; set a higher limit with --max-memory"},
		{"none waits", func(*dag.RankBuilder, int) {}, "the ops that can start at the same time, such as rank 0 op " +
			"512, which depends on no other, need more memory than the limit of 64KiB; set a higher limit with " +
			"--max-memory"},
	} {
		b := dag.NewBuilder(1)
		for i := range ops {
			b.Rank(0).Calc(dag.Microsecond)
			if i > 0 {
				c.deps(b.Rank(0), i)
			}
		}
		trace := b.Trace()
		for _, m := range Models {
			o := Options{Params: presets[0].params}
			want, err := replayWithin(t, trace, m, o, memory.NoLimit, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := replayWithin(t, trace, m, o, limit, true)
			switch {
			case c.want != "":
				if tooMuch := (*memory.Error)(nil); !errors.As(err, &tooMuch) || err.Error() != c.want {
					t.Errorf("%s, %s: error %v, expected %s", c.name, m, err, c.want)
				}
			case err != nil || got != want:
				t.Errorf("%s, %s: %v, result\n%s\nexpected\n%s", c.name, m, err, got, want)
			}
		}
	}
}

// TestWindowedTimeline checks that a timeline in windows is an error.
func TestWindowedTimeline(t *testing.T) {
	trace := chained(rand.New(rand.NewPCG(1, 1)))
	for _, m := range Models {
		for _, o := range []Options{{Timeline: new(spans)}, {Path: true}} {
			if o.Params = presets[0].params; o.Path && m != Strict {
				continue
			}
			_, err := replayWithin(t, trace, m, o, trace.Ops()*opBytes-1, true)
			if !errors.Is(err, sim.ErrWindowedTimeline) {
				t.Errorf("%s: error %v, expected %v", m, err, sim.ErrWindowedTimeline)
			}
		}
	}
}

// spans is a timeline that ignores all.
type spans struct{}

func (*spans) Begin(*sim.Layout)     {}
func (*spans) Span(sim.Span)         {}
func (*spans) Transfer(sim.Transfer) {}
func (*spans) End() error            { return nil }

// TestWindowedClones checks that clones replay at the same time, and leave the original as it is.
func TestWindowedClones(t *testing.T) {
	b := dag.NewBuilder(2)
	then := func(rank int, op dag.Op) {
		if i := b.Rank(rank).Add(op); i > 0 {
			b.Rank(rank).Requires(i, i-1)
		}
	}
	for i := range 3000 {
		then(i%2, dag.Op{Kind: dag.Send, Peer: int32(1 - i%2), Bytes: int64(i)})
		then(1-i%2, dag.Op{Kind: dag.Recv, Peer: int32(i % 2), Bytes: int64(i)})
	}
	trace := b.Trace()
	env := &sim.Env{Context: memory.WithLimit(context.Background(), trace.Ops()*opBytes-1)}
	for _, m := range Models {
		r, err := newReplay(dag.FromTrace(trace), m, env)
		if err != nil {
			t.Fatal(err)
		}
		defer r.program.Close()
		r.program.Recycle() // has no effect
		o := Options{Params: presets[0].params}
		want, err := r.Clone().Run(o)
		if err != nil {
			t.Fatal(err)
		}
		var group errgroup.Group
		for range 4 {
			clone := r.Clone()
			group.Go(func() error {
				got, err := clone.Run(o)
				if err == nil && (got.Makespan != want.Makespan || !slices.Equal(got.Finish, want.Finish)) {
					err = fmt.Errorf("%s: makespan %v, expected %v", m, got.Makespan, want.Makespan)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
}
