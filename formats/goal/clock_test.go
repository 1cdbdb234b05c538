package goal

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// through writes and reads a trace.
func through(t *testing.T, f *format.Format, trace *dag.Trace, read *Options, write *WriteOptions) *dag.Trace {
	t.Helper()
	var file bytes.Buffer
	if err := f.Write(&file, trace, format.WriteOptions{Own: write}); err != nil {
		t.Fatal(err)
	}
	in := &format.Input{Name: "x", Reader: &file}
	back, err := f.Read([]*format.Input{in}, format.ReadOptions{Own: read, Warn: t.Errorf})
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// makespan returns the makespan of a trace.
func makespan(t *testing.T, trace *dag.Trace, backend string) sim.Clock {
	t.Helper()
	r, err := backends.Run(trace, backend)
	if err != nil {
		t.Fatal(err)
	}
	return r.Makespan
}

// wholeNanoseconds rounds all times as GOAL does.
func wholeNanoseconds(t *dag.Trace) {
	for i := range t.Ranks {
		r := t.Ranks[i]
		for _, column := range [...]dag.Column[dag.Time]{r.Release, r.Duration} {
			for op := range column {
				column[op] = dag.Time(nanoseconds(column[op])) * dag.Nanosecond
			}
		}
	}
}

// checkClock checks what a clock must keep of a trace.
func checkClock(t *testing.T, trace *dag.Trace, choice ClockChoice) {
	t.Helper()
	wholeNanoseconds(trace)
	released := int64(0)
	for i := range trace.Ranks {
		released += trace.Ranks[i].Release.Present()
	}
	ideal, strict := makespan(t, trace, "ideal"), makespan(t, trace, "loggops")
	for _, f := range [...]*format.Format{&Text, &Binary} {
		plain := through(t, f, trace, &Options{Clock: ClockNone}, &WriteOptions{})
		if got := makespan(t, plain, "ideal"); got != ideal {
			t.Errorf("%s: ideal makespan %v, expected %v", f.Name, got, ideal)
		}
		if got := makespan(t, plain, "loggops"); got != strict {
			t.Errorf("%s: makespan %v, expected %v", f.Name, got, strict)
		}
		if added := plain.Ops() - trace.Ops(); added > released || released == 0 && added != 0 {
			t.Errorf("%s: %d calcs for %d ops with release times", f.Name, added, released)
		}
		read := &Options{}
		if f == &Binary {
			read.Clock, read.Stream = choice, clockOf(plain, trace)
		}
		checkSameReleases(t, f.Name, through(t, f, trace, read, &WriteOptions{}), trace)
		without := through(t, f, trace, &Options{}, &WriteOptions{NoClock: true})
		if without.Ops() != trace.Ops() {
			t.Errorf("%s without a clock: %d ops, expected %d", f.Name, without.Ops(), trace.Ops())
		}
	}
}

// clockOf returns the stream of the clocks of a trace whose original is given; without clocks, one that no op uses.
func clockOf(clocked, original *dag.Trace) int32 {
	for rank := range original.Ranks {
		if clocked.Ranks[rank].Len() > original.Ranks[rank].Len() {
			return clocked.Ranks[rank].Stream.At(0)
		}
	}
	return highestClock
}

func checkSameReleases(t *testing.T, name string, got, want *dag.Trace) {
	t.Helper()
	if got.Ops() != want.Ops() {
		t.Errorf("%s: %d ops, expected %d", name, got.Ops(), want.Ops())
		return
	}
	for rank := range want.Ranks {
		g, w := got.Ranks[rank], want.Ranks[rank]
		for op := range w.Len() {
			if g.Release.At(op) != w.Release.At(op) || g.Kind[op] != w.Kind[op] || g.Peer.At(op) != w.Peer.At(op) ||
				g.Deps.Count(op) != w.Deps.Count(op) {
				t.Errorf("%s: rank %d, op %d: %+v after %v, expected %+v after %v", name, rank, op, g.Op(op),
					g.Deps.Of(op), w.Op(op), w.Deps.Of(op))
				return
			}
		}
	}
}

// TestClockOfGenerators checks the clocks of the traces of all open-loop generators.
func TestClockOfGenerators(t *testing.T) {
	for _, name := range []string{"dcnw", "cdcnw", "flows", "matrix", "workload"} {
		t.Run(name, func(t *testing.T) {
			g := gen.Named(name)
			c := g.New()
			if err := c.Params().Apply(g.Small); err != nil {
				t.Fatal(err)
			}
			open := func(name string, read func(name string, r io.Reader) error) error {
				content, err := os.ReadFile(filepath.Join("../../dag/gen", name))
				if err != nil {
					return err
				}
				return read(name, bytes.NewReader(content))
			}
			s, err := c.Source(&generator.Env{Open: open})
			if err != nil {
				t.Fatal(err)
			}
			trace, err := dag.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			checkClock(t, trace, ClockAuto)
		})
	}
}

// TestClockOfRandomTraces checks the clocks of traces with release times on some ranks, streams and ops only.
func TestClockOfRandomTraces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	times := []dag.Time{0, 0, 1, 499, 500, 1500, 1501, dag.Microsecond, dag.Microsecond + 1, 3 * dag.Microsecond,
		1 << 53, 1<<53 + 1}
	for range 200 {
		ranks := 1 + random.IntN(4)
		b := dag.NewBuilder(ranks)
		for rank := range ranks {
			r, few := b.Rank(rank), 1+random.IntN(len(times))
			for op := range random.IntN(12) {
				o := dag.Op{Kind: dag.Calc, Duration: dag.Time(random.IntN(4000)), Stream: int32(random.IntN(4))}
				if rank > 0 || random.IntN(2) == 0 {
					o.Release = times[random.IntN(few)]
				}
				i := r.Add(o)
				if op > 0 && random.IntN(2) == 0 {
					r.Requires(i, random.IntN(op))
				}
			}
		}
		for range random.IntN(6) {
			from, to := random.IntN(ranks), random.IntN(ranks)
			b.Rank(from).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 8, Release: times[random.IntN(len(times))]})
			b.Rank(to).Add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 8})
		}
		checkClock(t, b.Trace(), ClockStream)
		if t.Failed() {
			return
		}
	}
}
