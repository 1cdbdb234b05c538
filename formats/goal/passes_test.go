package goal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// batched is a trace that is read in batches of some ranks. The result of a reader is invalid after its next call.
type batched struct {
	dag.Source // of the trace in memory
	batches    []dag.Batch
	readers    atomic.Int64
	fails      int // a rank that cannot be read
}

var errSource = errors.New("the source broke")

func newBatched(trace *dag.Trace, size func() int) *batched {
	b := &batched{Source: dag.FromTrace(trace), fails: -1}
	var each []dag.Batch
	for i, r := range trace.Ranks {
		each = append(each, dag.Batch{First: i, Last: i + 1, Ops: int64(r.Len()), Deps: int64(len(r.Deps.Off)),
			StartDeps: int64(len(r.StartDeps.Off))})
	}
	for first := 0; first < len(each); {
		all := dag.Batch{First: first, Last: min(first+size(), len(each))}
		for _, one := range each[first:all.Last] {
			all.Ops, all.Deps, all.StartDeps = all.Ops+one.Ops, all.Deps+one.Deps, all.StartDeps+one.StartDeps
		}
		b.batches = append(b.batches, all)
		first = all.Last
	}
	return b
}

func (b *batched) Header() (*dag.Header, error) {
	h, err := b.Source.Header()
	if err != nil {
		return nil, err
	}
	header := *h
	header.Batches, header.Stable = b.batches, false
	return &header, nil
}

func (b *batched) NewReader(columns dag.Columns) dag.Reader {
	b.readers.Add(1)
	read := b.Source.NewReader(columns)
	var ranks []*dag.Rank
	return func(batch dag.Batch) ([]*dag.Rank, error) {
		for i := range ranks {
			clear(ranks[i].Kind)
			clear(ranks[i].Bytes)
			clear(ranks[i].Deps.Off)
		}
		if b.fails >= batch.First && b.fails < batch.Last {
			return nil, errSource
		}
		whole, err := read(batch)
		ranks = ranks[:0]
		for i := range whole {
			ranks = append(ranks, whole[i].Clone())
		}
		return ranks, err
	}
}

// withProcessors calls f with the number of processors set to 1, 2 and 5.
func withProcessors(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(n)
		f()
	}
}

// checkSource checks that a trace is written to the same bytes, and with the same losses, whatever its batches and the
// number of processors.
func checkSource(t *testing.T, trace *dag.Trace, rng *rand.Rand) {
	t.Helper()
	for _, f := range []format.Format{Text, Binary} {
		wantLosses := f.Losses(trace)
		var want []byte
		withProcessors(func() {
			got := encode(t, f, trace)
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: other bytes with other processors", f.Name)
			}
			for _, most := range []int{1, 1 + len(trace.Ranks)/3, len(trace.Ranks)} {
				var out bytes.Buffer
				var losses []format.Loss
				o := format.WriteOptions{Losses: func(l []format.Loss) error {
					if out.Len() > 0 {
						t.Errorf("%s: wrote before it told the losses", f.Name)
					}
					losses = l
					return nil
				}}
				err := f.WriteSource(&out, newBatched(trace, func() int { return 1 + rng.IntN(most) }), o)
				if err != nil || !bytes.Equal(out.Bytes(), want) || !reflect.DeepEqual(losses, wantLosses) {
					t.Errorf("%s in batches of up to %d ranks: error %v, %d bytes, want %d, losses %v, want %v", f.Name, most, err,
						out.Len(), len(want), losses, wantLosses)
				}
				if most > 1 && len(trace.Ranks) > 2 {
					continue
				}
				var changed patched
				o = format.WriteOptions{Frugal: true, Rewrite: &changed, Losses: func(l []format.Loss) error {
					losses = l
					return nil
				}}
				err = f.WriteSource(&changed, newBatched(trace, func() int { return 1 + rng.IntN(most) }), o)
				if err != nil || !bytes.Equal(changed.Bytes(), want) || !reflect.DeepEqual(losses, wantLosses) {
					t.Errorf("%s in one pass, batches of up to %d ranks: error %v, %d bytes, want %d, losses %v, want %v", f.Name,
						most, err, changed.Len(), len(want), losses, wantLosses)
				}
			}
		})
	}
}

// randomTrace returns a trace with everything that GOAL can hold, and some that it cannot.
func randomTrace(rng *rand.Rand) *dag.Trace {
	trace := &dag.Trace{}
	for range 1 + rng.IntN(40) {
		n := 1 + rng.IntN(30)
		if rng.IntN(10) == 0 {
			n = partLines/3 + rng.IntN(100)
		}
		read, err := Text.Read(stream("random", []byte(randomText(rng, n))), options(false))
		if err != nil {
			panic(err)
		}
		r := read.Ranks[0]
		for i := range r.Kind {
			if rng.IntN(2) == 0 {
				r.Kind[i] = dag.Kind(rng.IntN(3))
			}
			r.Bytes.Set(i, rng.Int64()>>rng.IntN(64))
			r.Duration.Set(i, dag.Time(rng.Int64()>>rng.IntN(64)))
			r.Peer.Set(i, int32(rng.Uint32())>>rng.IntN(32))
			r.Tag.Set(i, int64(int32(rng.Uint32()))>>rng.IntN(32))
			if n%2 == 0 {
				r.Stream.Set(i, rng.Int32N(256))
				r.NIC.Set(i, rng.Int32N(256))
				r.Job.Set(i, rng.Int32N(2))
			}
			if n%5 == 0 && rng.IntN(2) == 0 {
				r.Name.Append(i, []string{"send", "x", "l3", "op" + strconv.Itoa(i)}[rng.IntN(4)])
			}
		}
		trace.Ranks = append(trace.Ranks, r)
	}
	if rng.IntN(2) == 0 {
		trace.Nodes = make([]int32, len(trace.Ranks))
	}
	return trace
}

func TestWriteSource(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, name := range vectorNames(t) {
		if name != "field_limits" { // which cannot be read
			checkSource(t, parseText(t, string(readFile(t, filepath.Join(vectors, name+".goal"))), false), rng)
		}
	}
	for range 8 {
		checkSource(t, randomTrace(rng), rng)
	}
	checkSource(t, stencil(5, 6_000), rng)
}

// largestWrite is how many bytes were written at a time at most.
type largestWrite int

func (w *largestWrite) Write(b []byte) (int, error) {
	*w = max(*w, largestWrite(len(b)))
	return len(b), nil
}

// TestLargeRank checks a rank that is formatted in pieces, some of which have too many dependencies for that.
func TestLargeRank(t *testing.T) {
	const n = 10*pieceOps + 1
	b := dag.NewBuilder(2)
	r := b.Rank(1)
	var want strings.Builder
	want.WriteString("num_ranks 2\n\nrank 0 {\n}\n\nrank 1 {\n")
	for i := range n {
		var on []int
		switch {
		case i == 9*pieceOps+3 || i == n-1:
			for k := range i {
				on = append(on, k)
			}
		case i > 0:
			on = append(on, i-1, i/2)
		}
		r.Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(i) * 12345 * dag.Nanosecond}, on...)
		fmt.Fprintf(&want, "l%d: calc %d\n", i+1, i*12345)
		for _, k := range on {
			fmt.Fprintf(&want, "l%d requires l%d\n", i+1, k+1)
		}
		if i%100 == 99 {
			r.RequiresStart(i, i-99)
			fmt.Fprintf(&want, "l%d irequires l%d\n", i+1, i-98)
		}
	}
	want.WriteString("}\n")
	trace := b.Trace()
	withProcessors(func() {
		if got := encode(t, Text, trace); string(got) != want.String() {
			t.Errorf("%d bytes, want %d, or others", len(got), want.Len())
		}
		var largest largestWrite
		if err := Text.Write(&largest, trace, format.WriteOptions{}); err != nil || largest > 2*chunk {
			t.Errorf("wrote %d bytes at a time, error %v", largest, err)
		}
		if err := Text.Write(&failingWriter{want.Len() - 1}, trace, format.WriteOptions{}); err == nil {
			t.Error("no error where the disk is full")
		}
		if err := Text.Write(&failingWriter{chunk}, trace, format.WriteOptions{}); err == nil {
			t.Error("no error where the disk is full at once")
		}
	})
}

func TestWriteSourceErrors(t *testing.T) {
	one := func() int { return 1 }
	errLoss := errors.New("too much is lost")
	lossy := stencil(8, 3000)
	lossy.Nodes = make([]int32, 8)
	for _, f := range []format.Format{Text, Binary} {
		withProcessors(func() {
			check := func(what string, s dag.Source, want string) {
				t.Helper()
				var out bytes.Buffer
				o := format.WriteOptions{Losses: func([]format.Loss) error { return errLoss }}
				if err := f.WriteSource(&out, s, o); err == nil || err.Error() != want || out.Len() > 0 {
					t.Errorf("%s, %s: error %v, want %s; wrote %d bytes", f.Name, what, err, want, out.Len())
				}
			}
			check("losses", newBatched(lossy, one), errLoss.Error())
			s := newBatched(lossy, one)
			s.fails = 5
			check("broken", s, errSource.Error())
			s = newBatched(lossy, one)
			s.batches = s.batches[:7]
			check("a batch missing", s, "expected batches of 8 ranks, found 7")
			s.batches = s.batches[1:]
			check("the first batch missing", s, "expected contiguous batches, found ranks 1 to 1 after rank -1")
			bad := stencil(8, 3000)
			bad.Ranks[3].Tag[2] = -1 << 40
			bad.Ranks[6].Tag[1] = -1 << 40
			check("not for GOAL", newBatched(bad, one), "GOAL cannot represent rank 3: op 2: expected a tag in "+
				"-2147483648..4294967294, found -1099511627776")
		})
	}
}

// TestBatchesInMemory checks that large batches are read one at a time, for the clocks and for the file.
func TestBatchesInMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	for _, c := range []struct{ ops, deps, start, readers int64 }{
		{10, 0, 0, 64}, {partLines, 0, 0, 64}, {maxLines / 4, 0, 0, 4}, {1000, maxLines / 8, maxLines / 8, 3},
		{maxLines/2 + 1, 0, 0, 1}, {0, maxLines/2 + 1, 0, 1}, {0, 0, maxLines/2 + 1, 1}, {math.MaxInt32, 1, 1, 1},
	} {
		h := &dag.Header{Ranks: 300_000}
		for i := range h.Ranks {
			h.Batches = append(h.Batches, dag.Batch{First: i, Last: i + 1, Ops: 1})
		}
		b := &h.Batches[100_000]
		b.Ops, b.Deps, b.StartDeps = c.ops, c.deps, c.start
		parts, readers, err := divide(h)
		if err != nil || int64(readers) != min(c.readers, int64(len(parts))) {
			t.Errorf("%+v: %d readers of %d parts, error %v", c, readers, len(parts), err)
		}
	}
	s := newBatched(stencil(2, maxLines/26), func() int { return 1 })
	if err := Text.WriteSource(io.Discard, s, format.WriteOptions{}); err != nil || s.readers.Load() != 2 {
		t.Errorf("%d readers, error %v", s.readers.Load(), err)
	}
}

func TestInOrder(t *testing.T) {
	errWork, errTake := errors.New("work"), errors.New("take")
	for _, c := range []struct {
		n, workers, fails, refused int
		want                       error
	}{
		{0, 1, -1, -1, nil}, {1, 3, -1, -1, nil}, {1000, 1, -1, -1, nil}, {1000, 7, -1, -1, nil}, {1000, 7, 500, -1, errWork},
		{1000, 7, -1, 300, errTake}, {1000, 1, 0, -1, errWork}, {1000, 3, 20, 20, errWork}, {1000, 3, 21, 20, errTake},
	} {
		taken := 0
		work := func(i int, result *int) error {
			if i%3 == 0 {
				runtime.Gosched()
			}
			*result = i
			if i >= c.fails && c.fails >= 0 {
				return errWork
			}
			return nil
		}
		err := inOrder(c.n, slices.Repeat([]func(int, *int) error{work}, c.workers), func(result *int) error {
			if *result != taken {
				t.Fatalf("%+v: got %d, want %d", c, *result, taken)
			}
			if taken == c.refused {
				return errTake
			}
			taken++
			return nil
		})
		want := c.n
		for _, end := range []int{c.fails, c.refused} {
			if end >= 0 {
				want = min(want, end)
			}
		}
		if err != c.want || taken != want {
			t.Errorf("%+v: took %d, error %v", c, taken, err)
		}
	}
}

func TestAppendDecimal(t *testing.T) {
	check := func(v uint64) {
		t.Helper()
		if got, want := appendDecimal([]byte("x"), v), "x"+strconv.FormatUint(v, 10); string(got) != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	for power := uint64(1); ; power *= 10 {
		for off := range uint64(1000) {
			check(power + off)
			check(power - off)
		}
		if power == 1e19 {
			break
		}
	}
	for v := range uint64(10_000) { // both halves of the eight digits
		check(v)
		check(v * 10_000)
		check(v*10_000 + 9_999 - v)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 100_000 {
		check(rng.Uint64() >> rng.IntN(64))
	}
	check(math.MaxUint64)
}
