package sim

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
)

// windowed compiles a trace for windows.
func windowed(t testing.TB, trace *dag.Trace, limit int64) *Program {
	t.Helper()
	p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true, Windows: true,
		Context: memory.WithLimit(context.Background(), limit)})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Windowed() {
		t.Fatal("not in windows")
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// varied returns a trace with all fields of messages, and dependencies over all distances.
func varied(random *rand.Rand, ranks, ops int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		r := b.Rank(rank)
		for i := range random.IntN(ops) {
			op := dag.Op{Kind: dag.Kind(random.IntN(3)), Bytes: random.Int64N(1 << random.IntN(40)),
				Duration: dag.Time(random.Int64N(1 << random.IntN(50))), Peer: random.Int32N(int32(ranks)),
				Tag: random.Int64N(1<<33) - 1, Stream: random.Int32N(3), NIC: random.Int32N(3)}
			if random.IntN(3) == 0 {
				op.Release = dag.Time(random.Int64N(1 << 40))
			}
			r.Add(op)
			for range random.IntN(4) {
				if on := max(0, i-1-random.IntN(1<<random.IntN(18))); i > 0 && random.IntN(5) == 0 {
					r.RequiresStart(i, on)
				} else if i > 0 {
					r.Requires(i, on)
				}
			}
		}
	}
	return b.Trace()
}

// TestWindowsHaveAllOps compares the ops of a program in windows, and what depends on them, with those in memory.
func TestWindowsHaveAllOps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, ops := range []int{100, 1000, 50000} {
		trace := varied(random, 5, ops)
		whole, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
		if err != nil {
			t.Fatal(err)
		}
		p := windowed(t, trace, trace.Ops()*windowedFrom-1)
		p.windows.most = uint32(len(p.windows.file.at) * runtime.GOMAXPROCS(0)) // room for all in a clone
		p = p.Clone()
		release, n := p.ReleaseTimes(), uint32(0)
		err = p.EachOp(func(op *Op, index uint32) {
			i := p.windows.at(p, op.Rank, index, NoOp)
			got, want := p.Ops[i], whole.Ops[n]
			if got.first, want.first = 0, 0; want.Match >= firstPair { // a number of the compilation
				got.Match, want.Match = uint32(p.Tag(&got)), uint32(whole.Tag(&want))
			}
			if got != want || release[i] != whole.release[n] || p.Number(i) != n || p.Index(i) != int(index) {
				t.Fatalf("op %d: %+v, released at %d, index %d; expected %+v, %d, %d", n, got, release[i], p.Index(i), want,
					whole.release[n], index)
			}
			if rank, k := p.Locate(p.Order(i)); rank != op.Rank || k != index || p.OpAt(p.Order(i)) != &p.Ops[i] {
				t.Fatalf("op %d of rank %d: located as op %d of rank %d", index, op.Rank, k, rank)
			}
			for _, dependents := range [][2][]uint32{
				{p.Numbers(p.AppendDependents(nil, i)), whole.AppendDependents(nil, n)},
				{p.Numbers(p.StartDependents(i)), whole.StartDependents(n)},
			} {
				if !slices.Equal(dependents[0], dependents[1]) {
					t.Fatalf("op %d: dependents %v, expected %v", n, dependents[0], dependents[1])
				}
			}
			n++
		})
		if err != nil || p.Failed() != nil || int64(n) != trace.Ops() {
			t.Fatalf("%d of %d ops, %v, %v", n, trace.Ops(), err, p.Failed())
		}
		for rank := range whole.Ranks() {
			if roots := p.Numbers(p.Roots(rank)); !slices.Equal(roots, whole.Roots(rank)) {
				t.Errorf("roots %v, expected %v", roots, whole.Roots(rank))
			}
		}
		if p.LatestRelease() != whole.LatestRelease() || p.MostCalcTime() != whole.MostCalcTime() ||
			p.NumOps() != whole.NumOps() {
			t.Errorf("other totals: %+v, expected %+v", p, whole)
		}
	}
}

// TestWindowsLeaveNoFile checks that the temporary file has no name, and that a file that cannot be created is an error.
func TestWindowsLeaveNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	trace := varied(rand.New(rand.NewPCG(4, 4)), 3, 1000)
	p := windowed(t, trace, trace.Ops()*windowedFrom-1)
	if files, _ := os.ReadDir(dir); len(files) > 0 && !p.windows.file.file.linked {
		t.Errorf("files remain: %v", files)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if p.Roots(0); p.Failed() == nil {
		t.Error("no error after the file was closed")
	}
	t.Setenv("TMPDIR", dir+"/none")
	_, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true, Windows: true,
		Context: memory.WithLimit(context.Background(), trace.Ops()*windowedFrom-1)})
	if err == nil {
		t.Error("no error without a folder of temporary files")
	}
}
