package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/internal/parquet"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// randomTrace returns a valid trace that uses every field, some ranks more of them than others.
func randomTrace(rng *rand.Rand, ranks, ops int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	m := b.Meta()
	m.Title, m.Attrs = "a title\nin \"two\" lines", `{"x":[1,2]}`
	seed := int64(-5)
	m.Provenance = []dag.Provenance{
		{Program: "tracegen", Version: "1.2", Command: []string{"tracegen", "-o", "x y"}, Seed: &seed},
		{Program: "traceconv", Version: "dev", Inputs: []dag.Input{{Name: "in.bin", SHA256: strings.Repeat("ab", 32)}}},
	}
	m.Jobs = []string{"first", "", "third"}
	for i := range ranks {
		m.Nodes = append(m.Nodes, int32(i/3)+rng.Int32N(2))
	}
	evens := make([]int32, 0, ranks)
	for i := 0; i < ranks; i += 2 {
		evens = append(evens, int32(ranks-1-i))
	}
	comms := int32(1)
	if ranks > 0 {
		comms = b.AddComm(dag.NewComm("evens", evens)) + 1
	}
	wide := func(bits int) int64 { return rng.Int64N(1 << rng.IntN(bits)) }
	for i := range ranks {
		r := b.Rank(i)
		if rng.IntN(2) == 0 {
			r.KeepOrder()
		}
		if rng.IntN(5) == 0 {
			continue // a rank without ops
		}
		sparse := 1 + rng.IntN(6)
		for n := range rng.IntN(2*ops + 1) {
			subkind := dag.Subkind(rng.IntN(dag.NumSubkinds))
			op := dag.Op{Kind: dag.Kind(rng.IntN(3))}
			for k := range dag.Kind(dag.NumKinds) {
				if subkind.Of(k) && subkind != dag.NoSubkind {
					op.Kind, op.Subkind = k, subkind
				}
			}
			field := func() bool { return rng.IntN(sparse) == 0 }
			if field() {
				op.Bytes, op.Peer = wide(63), rng.Int32N(int32(ranks)+1)-1
			}
			if field() {
				op.Tag = wide(40) * (rng.Int64N(3) - 1)
			}
			if field() {
				op.Duration, op.Release = dag.Time(wide(63)), dag.Time(wide(20))
			}
			if field() {
				op.RecvBytes, op.Flops, op.Comm = wide(33), wide(60), rng.Int32N(comms)
			}
			if field() {
				op.Stream, op.NIC, op.Job = int32(wide(12)), int32(wide(31)), rng.Int32N(3)
			}
			if field() {
				op.Host, op.Dims, op.Priority = rng.Int32N(2), int32(wide(31)), int32(wide(31))*(rng.Int32N(3)-1)
			}
			if field() {
				op.Name = fmt.Sprintf("op %d", rng.IntN(9))
			}
			if field() {
				op.Attrs = fmt.Sprintf(`{"n":%d}`, rng.IntN(1<<rng.IntN(30)))
			}
			if field() {
				op.Timed, op.MeasuredStart, op.MeasuredEnd = true, dag.Time(wide(40)), dag.Time(wide(40))-9
				if field() {
					op.MeasuredEnd = dag.Unmeasured
				}
			}
			r.Add(op)
			for ; n > 0 && rng.IntN(3) > 0; n = rng.IntN(n + 1) {
				r.Requires(r.Len()-1, rng.IntN(r.Len()))
			}
			if rng.IntN(4) == 0 {
				r.RequiresStart(r.Len()-1, rng.IntN(r.Len()))
			}
		}
		for range rng.IntN(9) {
			if n := r.Len(); n > 0 {
				r.Requires(rng.IntN(n), rng.IntN(n))
				r.RequiresStart(rng.IntN(n), rng.IntN(n))
			}
		}
	}
	return b.Trace()
}

// sameTrace fails the test if the traces differ.
func sameTrace(tb testing.TB, got, want *dag.Trace) {
	tb.Helper()
	if !reflect.DeepEqual(got.Meta, want.Meta) {
		tb.Fatalf("metadata: got %+v, want %+v", got.Meta, want.Meta)
	}
	if !slices.EqualFunc(got.Comms, want.Comms, func(c, d dag.Comm) bool { return c.Equal(&d) }) {
		tb.Fatalf("communicators: got %v, want %v", got.Comms, want.Comms)
	}
	sameRanks(tb, got.Ranks, want.Ranks)
}

func sameRanks(tb testing.TB, got, want []*dag.Rank) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%d ranks, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if g.Len() != w.Len() {
			tb.Fatalf("rank %d: %d ops, want %d", i, g.Len(), w.Len())
		}
		for op := range w.Len() {
			if a, b := g.Op(op), w.Op(op); a != b {
				tb.Fatalf("rank %d, op %d: got %+v, want %+v", i, op, a, b)
			}
		}
		for _, e := range [][2]*dag.Edges{
			{&g.Deps, &w.Deps}, {&g.StartDeps, &w.StartDeps}, {&g.Order, &w.Order}, {&g.StartOrder, &w.StartOrder},
		} {
			if len(e[0].Off) != len(e[1].Off) {
				tb.Fatalf("rank %d: %d edges, want %d", i, len(e[0].Off), len(e[1].Off))
			}
			for op := range w.Len() {
				if a, b := e[0].Of(op), e[1].Of(op); !slices.Equal(a, b) {
					tb.Fatalf("rank %d, op %d: edges %v, want %v", i, op, a, b)
				}
			}
		}
	}
}

// encode returns the trace as a file.
func encode(tb testing.TB, t *dag.Trace) []byte {
	tb.Helper()
	var file bytes.Buffer
	if err := Write(&file, t); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

func openBytes(file []byte) (*File, error) {
	return Open(bytes.NewReader(file), int64(len(file)), "trace.parquet")
}

func decode(file []byte) (*dag.Trace, error) {
	f, err := openBytes(file)
	if err != nil {
		return nil, err
	}
	return f.ReadAll()
}

func mustDecode(tb testing.TB, file []byte) *dag.Trace {
	tb.Helper()
	t, err := decode(file)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func TestRoundTripRandom(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		trace := randomTrace(rng, 1+rng.IntN(12), rng.IntN(60))
		file := encode(t, trace)
		f, err := openBytes(file)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := f.ReadAll()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sameTrace(t, got, trace)
		if f.numOps() != trace.Ops() {
			t.Fatalf("seed %d: %d ops, want %d", seed, f.numOps(), trace.Ops())
		}
		first := rng.IntN(len(trace.Ranks) + 1)
		last := first + rng.IntN(len(trace.Ranks)-first+1)
		some, err := f.ReadRanks(first, last)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sameRanks(t, some, trace.Ranks[first:last])
	}
}

func TestRoundTripLimits(t *testing.T) {
	extreme := dag.NewBuilder(3)
	extreme.Rank(1).Add(dag.Op{
		Kind: dag.IO, Subkind: dag.Write, Bytes: math.MaxInt64, RecvBytes: math.MaxInt64, Peer: dag.AnySource,
		Tag: math.MinInt64, Duration: math.MaxInt64, Flops: math.MaxInt64, Release: math.MaxInt64,
		Stream: math.MaxInt32, NIC: math.MaxInt32, Host: math.MaxInt32, Dims: math.MaxInt32, Priority: math.MinInt32,
		Name: "\x00\xff", Attrs: strings.Repeat("long ", 1<<20),
		Timed: true, MeasuredStart: math.MaxInt64, MeasuredEnd: math.MinInt64 + 1,
	})
	extreme.Rank(1).Add(dag.Op{Subkind: dag.Marker, Priority: math.MaxInt32, Peer: math.MaxInt32, Tag: math.MaxInt64}, 0)

	unique := dag.NewBuilder(2) // every value its own: no dictionary, pages of strings in the plural
	for i := range 70000 {
		unique.Rank(i / 69000).Add(dag.Op{
			Bytes: int64(i) * 977, Tag: int64(i) << 20, Duration: dag.Time(i*i) % 99991, Peer: int32(i),
			Attrs: strings.Repeat(fmt.Sprintf("unique %d ", i), 10),
		})
	}
	manyDeps := dag.NewBuilder(1)
	for i := range 300 {
		manyDeps.Rank(0).Calc(dag.Time(i))
		for on := range i {
			manyDeps.Rank(0).Requires(i, on)
		}
	}
	manyRanks := dag.NewBuilder(70000)
	for i := range 70000 {
		manyRanks.Rank(i).Send(int32(i^1), 8, 0)
	}
	forward := dag.NewBuilder(1)
	forward.Rank(0).Calc(1)
	forward.Rank(0).Calc(1)
	forward.Rank(0).Requires(0, 1)
	for name, trace := range map[string]*dag.Trace{
		"no ranks": dag.NewBuilder(0).Trace(), "no ops": dag.NewBuilder(5).Trace(), "extreme": extreme.Trace(),
		"unique": unique.Trace(), "many dependencies": manyDeps.Trace(), "forward": forward.Trace(),
		"many ranks": manyRanks.Trace(),
	} {
		t.Run(name, func(t *testing.T) {
			sameTrace(t, mustDecode(t, encode(t, trace)), trace)
		})
	}
}

// A rank of more ops than a row group may have is split; its neighbours are not.
func TestRoundTripLongRank(t *testing.T) {
	b := dag.NewBuilder(4)
	for r, n := range []int{1000, 2*maxGroupRows + 77, 0, 500} {
		for i := range n {
			op := dag.Op{Kind: dag.Send, Peer: int32(i & 3), Tag: int64(i), Stream: int32(i / 1000)}
			if i%1000 == 7 {
				op.Name = "named"
			}
			if i > 0 {
				b.Rank(r).Add(op, i-1)
			} else {
				b.Rank(r).Add(op)
			}
		}
	}
	trace := b.Trace()
	f, err := openBytes(encode(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.groups) < 4 {
		t.Fatalf("%d row groups, expected the ranks apart and one of them in two at least", len(f.groups))
	}
	got, err := f.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sameTrace(t, got, trace)
	long := int64(2*maxGroupRows + 77)
	want := []dag.Batch{
		{First: 0, Last: 1, Ops: 1000, Deps: 1000, StartDeps: 1000},
		{First: 1, Last: 2, Ops: long, Deps: long, StartDeps: long},
		{First: 2, Last: 4, Ops: 500, Deps: 500, StartDeps: 500},
	}
	if !slices.Equal(f.batches(), want) {
		t.Errorf("batches %v, want %v", f.batches(), want)
	}
	for _, b := range f.batches() {
		ranks, err := f.ReadRanks(b.First, b.Last)
		if err != nil {
			t.Fatal(err)
		}
		sameRanks(t, ranks, trace.Ranks[b.First:b.Last])
	}
}

// The most compressible trace stays far below the limits on the counts of a file of its size.
func TestRoundTripConstant(t *testing.T) {
	b := dag.NewBuilder(1)
	for range 4 * maxGroupRows {
		b.Rank(0).Calc(0)
	}
	trace := b.Trace()
	file := encode(t, trace)
	if perByte := int(trace.Ops()) / len(file); perByte > maxRowsPerByte/2 {
		t.Errorf("%d rows a byte", perByte)
	}
	if got := mustDecode(t, file); got.Ops() != trace.Ops() || got.Ranks[0].Kind[12345] != dag.Calc {
		t.Errorf("%d ops, want %d", got.Ops(), trace.Ops())
	}
}

func TestSchedules(t *testing.T) {
	for _, s := range schedules {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			trace := s.trace(t, 50_000)
			sameTrace(t, mustDecode(t, encode(t, trace)), trace)
		})
	}
}

// The families of schedules that applications have make at most 1.5 % of their GOAL binary.
func TestSize(t *testing.T) {
	for _, s := range schedules {
		if s.hard {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			trace := s.trace(t, 1_000_000)
			if share := float64(len(encode(t, trace))) / float64(goalBinarySize(trace)); share > 0.015 {
				t.Errorf("%.2f %% of the GOAL binary, expected 1.5 %% at most", 100*share)
			}
		})
	}
}

func TestGoalBinarySize(t *testing.T) {
	for _, s := range schedules {
		trace := s.trace(t, 20_000)
		if got, want := goalBinarySize(trace), int64(len(goalBinary(trace))); got != want {
			t.Errorf("%s: %d bytes, want %d", s.name, got, want)
		}
	}
}

func TestDeterministic(t *testing.T) {
	trace := family("stencil-jitter").trace(t, 600_000)
	var want []byte
	for _, cores := range []int{1, 2, 4, 1} {
		previous := runtime.GOMAXPROCS(cores)
		got := encode(t, trace)
		back, err := decode(got)
		runtime.GOMAXPROCS(previous)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
			sameTrace(t, back, trace)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d cores make other bytes", cores)
		}
	}
}

func TestFormat(t *testing.T) {
	trace := randomTrace(rand.New(rand.NewPCG(2, 2)), 5, 50)
	var file bytes.Buffer
	if err := Format.Write(&file, trace, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !Format.Detect(file.Bytes()[:format.DetectBytes]) || Format.Detect([]byte("PAR")) || Format.Detect(nil) {
		t.Error("detection by content is wrong")
	}
	pipe := &format.Input{Name: "<stdin>", Reader: io.MultiReader(bytes.NewReader(file.Bytes()))}
	plain := &format.Input{
		Name: "x.parquet", Reader: strings.NewReader(""), At: bytes.NewReader(file.Bytes()), Size: int64(file.Len()),
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, in := range []*format.Input{pipe, plain} {
		got, err := Format.Read([]*format.Input{in}, format.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sameTrace(t, got, trace)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
	broken := &format.Input{Name: "<stdin>", Reader: io.MultiReader(strings.NewReader(parquet.Magic), errReader{})}
	if _, err := Format.Read([]*format.Input{broken}, format.ReadOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("got error %v from a pipe that breaks", err)
	}
}

var errBroken = errors.New("the pipe broke")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }

// Write stops at the first error of the writer, and does not hang.
func TestWriteError(t *testing.T) {
	trace := family("stencil").trace(t, 600_000)
	for _, room := range []int{0, 4, 1000, 20_000} {
		if err := Write(&limitedWriter{room}, trace); !errors.Is(err, errBroken) {
			t.Errorf("room for %d bytes: got error %v", room, err)
		}
	}
}

type limitedWriter struct{ room int }

func (w *limitedWriter) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

func TestWriteRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(t *dag.Trace)
		want  string
	}{
		{"kind", func(t *dag.Trace) { t.Ranks[1].Kind[0] = 99 }, "rank 1: op 0: unknown kind 99"},
		{"subkind", func(t *dag.Trace) { t.Ranks[0].Subkind.Set(1, 99) }, "rank 0: op 1: unknown subkind 99"},
		{"bytes", func(t *dag.Trace) { t.Ranks[0].Bytes.Set(1, -5) }, "rank 0: op 1: bytes: expected 0 or more, found -5"},
		{"duration", func(t *dag.Trace) { t.Ranks[0].Duration.Set(0, -1) }, "duration_ps: expected 0 or more, found -1"},
		{"comm", func(t *dag.Trace) { t.Ranks[0].Comm.Set(0, 1) }, "comm: expected 0..0, found 1"},
		{"job", func(t *dag.Trace) { t.Ranks[0].Job.Set(0, 1) }, "job: expected 0..0, found 1"},
		{"stream", func(t *dag.Trace) { t.Ranks[0].Stream.Set(0, -1) }, "stream: expected 0..2147483647, found -1"},
		{"host", func(t *dag.Trace) { t.Ranks[1].Host.Set(1, -1) }, "rank 1: op 1: host: expected 0..2147483647, found -1"},
		{"dims", func(t *dag.Trace) { t.Ranks[0].Dims.Set(1, -2) }, "dims: expected 0..2147483647, found -2"},
		{"deps", func(t *dag.Trace) { t.Ranks[0].Deps.Off[0] = 7 }, "rank 0: deps: op 1 depends on op -6"},
		{"nodes", func(t *dag.Trace) { t.Nodes = []int32{1} }, "expected a node for each of 2 ranks, found 1 nodes"},
		{"node", func(t *dag.Trace) { t.Nodes = []int32{1, -1} }, "rank 1: expected a node of 0 or more, found -1"},
		{"communicator", func(t *dag.Trace) { t.Comms[0].Ranges[0].Count = 3 }, "communicator 0: range of 3 ranks"},
		{"ranks", func(t *dag.Trace) { t.Ranks = append(t.Ranks, dag.NewRanks(1<<20+3)...) },
			"expected at most 1048576 more ranks than ops, found 1048581 ranks and 4 ops"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := dag.NewBuilder(2)
			for r := range 2 {
				b.Rank(r).Calc(1)
				b.Rank(r).Calc(1, 0)
			}
			trace := b.Trace()
			test.spoil(trace)
			var file bytes.Buffer
			err := Write(&file, trace)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if file.Len() > 0 {
				t.Errorf("%d bytes were written", file.Len())
			}
		})
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	at    io.ReaderAt
	spans [][2]int64
}

func (r *countingReader) ReadAt(b []byte, offset int64) (int, error) {
	r.spans = append(r.spans, [2]int64{offset, offset + int64(len(b))})
	return r.at.ReadAt(b, offset)
}

// Reading one rank of a thousand reads the footer and its row group, nothing else.
func TestReadOneRank(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the counter is not for many
	trace := family("stencil-jitter").trace(t, 1_500_000)
	file := encode(t, trace)
	counter := &countingReader{at: bytes.NewReader(file)}
	f, err := Open(counter, int64(len(file)), "trace.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.groups) < 5 {
		t.Fatalf("%d row groups tell nothing", len(f.groups))
	}
	first := f.groups[0].chunks[0].Start()
	end := f.groups[len(f.groups)-1].chunks[numColumns-1]
	dataEnd := end.Start() + end.CompressedSize
	for _, s := range counter.spans {
		if s[0] >= first && s[0] < dataEnd {
			t.Errorf("opening reads bytes %d to %d, where ops are", s[0], s[1])
		}
	}
	for _, rank := range []int{0, 1, 499, 998, 999} {
		counter.spans = nil
		got, err := f.ReadRanks(rank, rank+1)
		if err != nil {
			t.Fatal(err)
		}
		sameRanks(t, got, trace.Ranks[rank:rank+1])
		for i := range f.groups {
			g := &f.groups[i]
			from, last := g.chunks[0].Start(), g.chunks[numColumns-1]
			to := last.Start() + last.CompressedSize
			for _, s := range counter.spans {
				if overlap := s[0] < to && s[1] > from; overlap && (rank < int(g.first) || rank > int(g.last)) {
					t.Errorf("rank %d: bytes %d to %d belong to row group %d", rank, s[0], s[1], i)
				}
			}
		}
	}
}

func TestReadRanksRange(t *testing.T) {
	f, err := openBytes(encode(t, dag.NewBuilder(3).Trace()))
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range [][2]int{{-1, 1}, {2, 1}, {0, 4}} {
		if _, err := f.ReadRanks(span[0], span[1]); err == nil {
			t.Errorf("ranks %d to %d of 3 were read", span[0], span[1])
		}
	}
	if want := []dag.Batch{{First: 0, Last: 3}}; !slices.Equal(f.batches(), want) {
		t.Errorf("batches %v, want %v", f.batches(), want)
	}
}

// Batches cover every rank once, and no two share a row group.
func TestBatches(t *testing.T) {
	trace := family("stencil").trace(t, 1_000_000)
	f, err := openBytes(encode(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, b := range f.batches() {
		if b.First != next || b.Last <= b.First {
			t.Fatalf("batches %v", f.batches())
		}
		next = b.Last
		ranks, err := f.ReadRanks(b.First, b.Last)
		if err != nil {
			t.Fatal(err)
		}
		sameRanks(t, ranks, trace.Ranks[b.First:b.Last])
	}
	if next != len(trace.Ranks) || len(f.batches()) != len(f.groups) {
		t.Errorf("batches %v of %d row groups", f.batches(), len(f.groups))
	}
}

func TestSchemaGolden(t *testing.T) {
	file := encode(t, randomTrace(rand.New(rand.NewPCG(1, 1)), 6, 9))
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, _, err := f.footer()
	if err != nil {
		t.Fatal(err)
	}
	m, err := parquet.ReadFooter(footer)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	repetitions := []string{"required", "optional", "repeated"}
	for _, e := range m.Schema[1:] {
		typ := "group"
		if e.Children == 0 {
			typ = e.Type.String()
		}
		fmt.Fprintf(&text, "%s %s %s", repetitions[e.Repetition], typ, e.Name)
		switch e.Converted {
		case parquet.ConvertedUTF8:
			text.WriteString(" (UTF8)")
		case parquet.ConvertedList:
			text.WriteString(" (LIST)")
		}
		text.WriteByte('\n')
	}
	for _, k := range m.Keys {
		if k.Key == keyDigest { // depends on the version of the compressor
			k.Value = digestAlgorithm + regexp.MustCompile("[0-9a-f]").ReplaceAllString(k.Value[len(digestAlgorithm):], "x")
		}
		fmt.Fprintf(&text, "%s = %s\n", k.Key, k.Value)
	}
	golden.Check(t, filepath.Join("testdata", "schema.txt"), text.String())
}
