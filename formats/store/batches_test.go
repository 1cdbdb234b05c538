package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/parquet"
)

// encodeGroups returns the trace as a file of row groups of the given number of rows: exactly, whatever ranks they
// belong to, or at most, and none with a part of a rank that would fit in one.
func encodeGroups(tb testing.TB, t *dag.Trace, rows int, exactly bool) []byte {
	tb.Helper()
	keys, err := metadata(t.Meta, t.Comms, len(t.Ranks), t.Ops())
	if err != nil {
		tb.Fatal(err)
	}
	var groups [][]segment
	room := 0
	for i := range t.Ranks {
		r := t.Ranks[i]
		for first := 0; first < r.Len(); {
			if n := r.Len() - first; room == 0 || !exactly && n > room && room < rows {
				groups, room = append(groups, nil), rows
			}
			last := min(first+room, r.Len())
			groups[len(groups)-1] = append(groups[len(groups)-1], segment{int32(i), packedRank{Rank: r}, first, last})
			room -= last - first
			first = last
		}
	}
	var file bytes.Buffer
	err = writeGroups(&file, keys, func(yield func([]segment, error) bool) {
		for _, g := range groups {
			if !yield(g, nil) {
				return
			}
		}
	}, false)
	if err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// replayed returns ranks without the fields that a Reader skips.
func replayed(ranks []*dag.Rank) []*dag.Rank {
	out := dag.NewRanks(len(ranks))
	for i, rank := range ranks {
		r := *rank
		r.Job, r.Step, r.Name, r.Attrs = dag.Narrow{}, dag.Narrow{}, dag.Text{}, dag.Text{}
		r.MeasuredStart, r.MeasuredEnd = nil, nil
		out[i] = r.Keep()
	}
	return out
}

// sameBatches reads a file batch by batch, in row groups and in parts of them, some in any order and then all in order
// with one reader, and fails the test if the ranks are not those wanted.
func sameBatches(tb testing.TB, f *File, want []*dag.Rank, rng *rand.Rand) {
	tb.Helper()
	for _, s := range []dag.Source{f, f.gradually(0), f.gradually(40)} {
		h, err := s.Header()
		if err != nil {
			tb.Fatal(err)
		}
		sameSource(tb, f, s, h.Batches, want, rng)
	}
}

func sameSource(tb testing.TB, f *File, s dag.Source, batches []dag.Batch, want []*dag.Rank, rng *rand.Rand) {
	tb.Helper()
	read, readAll := s.NewReader(dag.Replay), s.NewReader(dag.All)
	next, ops := 0, int64(0)
	for _, b := range batches {
		if b.First != next || b.Last <= b.First {
			tb.Fatalf("batches %+v", batches)
		}
		next = b.Last
		ops += b.Ops
	}
	if next != len(want) || ops != f.numOps() {
		tb.Fatalf("%d ranks and %d ops in the batches, want %d and %d", next, ops, len(want), f.numOps())
	}
	inOrder := make([]int, len(batches))
	for i := range inOrder {
		inOrder[i] = i
	}
	some := rng.Perm(len(batches))[:min(len(batches), 30)] // a part of a row group takes as long as all of it
	for _, order := range [][]int{some, inOrder} {
		for _, i := range order {
			b := batches[i]
			got, err := read(b)
			if err != nil {
				tb.Fatalf("batch %+v: %v", b, err)
			}
			sameRanks(tb, got, replayed(want[b.First:b.Last]))
			ops, deps, startDeps := int64(0), int64(0), int64(0)
			for k := range got {
				r := got[k]
				ops += int64(r.Len())
				deps += int64(len(r.Deps.Off))
				startDeps += int64(len(r.StartDeps.Off))
				spoil(r)
			}
			if ops != b.Ops || deps > b.Deps || startDeps > b.StartDeps {
				tb.Fatalf("batch %+v has %d ops, %d dependencies and %d on starts", b, ops, deps, startDeps)
			}
			if got, err = readAll(b); err != nil {
				tb.Fatalf("batch %+v, all columns: %v", b, err)
			}
			sameRanks(tb, got, want[b.First:b.Last])
			for k := range got {
				spoil(got[k])
			}
		}
	}
}

// spoil overwrites all that a rank has, in the memory that the reader uses again.
func spoil(r *dag.Rank) {
	parquet.Fill(r.Kind, 0xff)
	parquet.Fill(r.Subkind, 0xff)
	parquet.Fill(r.Bytes, -1)
	parquet.Fill(r.RecvBytes, -1)
	parquet.Fill(r.Peer, -77)
	parquet.Fill(r.Tag, -77)
	parquet.Fill(r.Duration, -1)
	parquet.Fill(r.Flops, -1)
	parquet.Fill(r.Release, -1)
	parquet.Fill(r.MeasuredStart, -1)
	parquet.Fill(r.MeasuredEnd, -1)
	for _, c := range []*dag.Narrow{&r.Comm, &r.Stream, &r.NIC, &r.Job, &r.Host, &r.Dims, &r.Priority} {
		for i := range c.Len() {
			c.Set(i, 0xee)
		}
	}
	for _, e := range []*dag.Edges{&r.Deps, &r.StartDeps, &r.Order, &r.StartOrder} {
		parquet.Fill(e.End, 0xffffffff)
		parquet.Fill(e.Off, -77)
	}
}

func TestReaderRandom(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 11))
		trace := randomTrace(rng, 1+rng.IntN(12), rng.IntN(200))
		for _, rows := range []int{1 + rng.IntN(20), 1 + rng.IntN(300), 1 << 20} {
			f, err := openBytes(encodeGroups(t, trace, rows, rng.IntN(2) == 0))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := f.ReadAll()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			sameTrace(t, got, trace)
			first := rng.IntN(len(trace.Ranks))
			last := first + rng.IntN(len(trace.Ranks)-first+1)
			some, err := f.ReadRanks(first, last)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			sameRanks(t, some, trace.Ranks[first:last])
			sameBatches(t, f, trace.Ranks, rng)
		}
	}
}

func TestReaderSchedules(t *testing.T) {
	long := os.Getenv("TRACEDAG_LONG") != ""
	for i, s := range schedules {
		if strings.HasPrefix(s.name, "all-to-all") && !long {
			s.ranks /= 4 // the number of ops is at least its square; ranks of ring-allreduce are longer than 999 ops, too
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			trace := s.trace(t, 20_000)
			for k, exactly := range []bool{false, true} {
				for n, rows := range []int{999, 6000} {
					if (i+k+n)%2 > 0 && !long {
						continue
					}
					f, err := openBytes(encodeGroups(t, trace, rows, exactly))
					if err != nil {
						t.Fatal(err)
					}
					sameBatches(t, f, trace.Ranks, rand.New(rand.NewPCG(1, 1)))
				}
			}
		})
	}
}

// Features that one batch has and others lack: columns, wide values, lists, ranks, ops.
func TestReaderDifferentBatches(t *testing.T) {
	b := dag.NewBuilder(9)
	add := func(rank, ops int, op func(r *dag.RankBuilder, i int)) {
		for i := range ops {
			op(b.Rank(rank), i)
		}
	}
	add(1, 40, func(r *dag.RankBuilder, i int) {
		r.Add(dag.Op{Kind: dag.Send, Bytes: 5, Tag: 9, Peer: 2, Stream: int32(i), Duration: 7, Release: 1, Name: "x"})
	})
	add(2, 25, func(r *dag.RankBuilder, i int) { r.Add(dag.Op{}) })
	add(4, 30, func(r *dag.RankBuilder, i int) {
		r.Add(dag.Op{Kind: dag.Recv, Stream: int32(300 * i), NIC: 1 << 30, Peer: dag.AnySource})
		if i > 5 {
			r.Requires(i, 0)
			r.Requires(i, 5)
		}
	})
	add(5, 3, func(r *dag.RankBuilder, i int) { r.Add(dag.Op{Kind: dag.Calc, Stream: 1, Flops: 2}) })
	b.Rank(7).KeepOrder()
	add(7, 90, func(r *dag.RankBuilder, i int) {
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, RecvBytes: int64(i)})
	})
	for i := range 60 {
		b.Rank(7).Requires(80-i, 81)
		b.Rank(7).RequiresStart(i/2, 40)
	}
	trace := b.Trace()
	for _, exactly := range []bool{false, true} {
		for _, rows := range []int{1, 7, 40, 65, 100, 1000} {
			f, err := openBytes(encodeGroups(t, trace, rows, exactly))
			if err != nil {
				t.Fatal(err)
			}
			sameTrace(t, mustTrace(t, f), trace)
			sameBatches(t, f, trace.Ranks, rand.New(rand.NewPCG(1, uint64(rows))))
		}
	}
}

func mustTrace(tb testing.TB, f *File) *dag.Trace {
	tb.Helper()
	t, err := f.ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func TestReaderForeign(t *testing.T) {
	want, rows := foreignTrace(rand.New(rand.NewPCG(1, 4)))
	for version := 1; version <= 2; version++ {
		for _, group := range []int64{1 << 20, 130, 200} {
			f, err := openBytes(writeForeign(t, rows, parquetgo.DataPageVersion(version),
				parquetgo.MaxRowsPerRowGroup(group), parquetgo.PageBufferSize(500)))
			if err != nil {
				t.Fatal(err)
			}
			sameBatches(t, f, want.Ranks, rand.New(rand.NewPCG(1, 1)))
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	f, err := openBytes(encodeGroups(t, family("stencil").trace(t, 9000), 1000, false))
	if err != nil {
		t.Fatal(err)
	}
	batches, read := f.batches(), f.NewReader(dag.Replay)
	one := batches[1]
	ops, deps := one, one
	ops.Ops++
	deps.Deps = 1 << 60
	for _, b := range []dag.Batch{
		{}, ops, deps, {First: -1, Last: 3}, {First: 1 << 40, Last: 1 << 41}, {First: one.First, Last: one.Last + 1},
		{First: batches[0].First, Last: one.Last, Ops: batches[0].Ops + one.Ops},
	} {
		if _, err := read(b); err == nil || !strings.Contains(err.Error(), "expected a batch of the header") {
			t.Errorf("%+v: got error %v", b, err)
		}
	}
	if _, err := read(one); err != nil {
		t.Error(err)
	}
}

// Errors in a batch are those of ReadRanks, and the reader reads other batches after them.
func TestReaderErrors(t *testing.T) {
	type row struct {
		Kind   string  `parquet:"kind"`
		Rank   int32   `parquet:"rank"`
		Bytes  int64   `parquet:"bytes"`
		Comm   int32   `parquet:"comm,plain"`
		Stream int64   `parquet:"stream,delta"`
		Deps   []int32 `parquet:"deps,list"`
	}
	rows := []row{
		{Kind: "calc", Rank: 0}, {Kind: "calc", Rank: 1, Bytes: -4}, {Kind: "calc", Rank: 2, Comm: 1},
		{Kind: "calc", Rank: 3, Stream: 1 << 31}, {Kind: "calc", Rank: 4, Deps: []int32{1}},
		{Kind: "jump", Rank: 5}, {Kind: "calc", Rank: 6, Stream: -1}, {Kind: "calc", Rank: 7, Stream: 256},
	}
	f, err := openBytes(writeForeign(t, rows, parquetgo.MaxRowsPerRowGroup(1)))
	if err != nil {
		t.Fatal(err)
	}
	read := f.NewReader(dag.Replay)
	for i, b := range f.batches() {
		want := []string{
			"", "rank 1: op 0: bytes: expected 0 or more, found -4", "rank 2: op 0: comm: expected 0..0, found 1",
			"value 2147483648, expected 32 bits",
			"rank 4: deps: op 0 depends on op -1", `kind: expected one of calc, send, recv, coll, mem, io, found "jump"`, "rank 6: op 0: stream: expected 0..2147483647, found -1", "",
		}[i]
		_, err := f.ReadRanks(b.First, b.Last)
		ranks, readerErr := read(b)
		if said := fmt.Sprint(err); said != fmt.Sprint(readerErr) || !strings.Contains(said, want) ||
			(err == nil) != (want == "") {
			t.Errorf("rank %d: ReadRanks says %v, the reader %v, want %q", i, err, readerErr, want)
		}
		if want == "" && (len(ranks) != 1 || ranks[0].Len() != 1 || int64(ranks[0].Stream.At(0)) != rows[i].Stream) {
			t.Errorf("rank %d is %+v", i, ranks)
		}
	}
}

// Readers do not share memory.
func TestReadersAtOnce(t *testing.T) {
	trace := family("stencil-jitter").trace(t, 100_000)
	f, err := openBytes(encodeGroups(t, trace, 3000, false))
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for seed := range uint64(4) {
		running.Go(func() {
			sameBatches(t, f, trace.Ranks, rand.New(rand.NewPCG(seed, 1)))
		})
	}
	running.Wait()
}

// TestGradual checks that only a source with large row groups is divided.
func TestGradual(t *testing.T) {
	for _, ops := range []int{1000, wholeOps/2 + 1} {
		b := dag.NewBuilder(3)
		for rank := range 2 {
			for i := range ops {
				if b.Rank(rank).Calc(dag.Time(rank + i%7)); i > 0 {
					b.Rank(rank).Requires(i, i-1)
				}
			}
		}
		trace := b.Trace()
		f, err := openBytes(encode(t, trace))
		if err != nil {
			t.Fatal(err)
		}
		s := dag.Gradual(f)
		if divided := s != dag.Source(f); divided != (2*ops > wholeOps) {
			t.Fatalf("two ranks of %d ops: divided %v", ops, divided)
		}
		h, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		sameSource(t, f, s, h.Batches, trace.Ranks, rand.New(rand.NewPCG(1, 1)))
	}
	if s := dag.FromTrace(dag.NewBuilder(1).Trace()); dag.Gradual(s) != s {
		t.Error("a trace in memory is divided")
	}
}
