package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/formats/format"
)

// delivered is a trace as a source that delivers it in batches of some ranks, and spoils each when it delivers the
// next.
type delivered struct {
	trace   *dag.Trace
	batches []dag.Batch
	reads   atomic.Int64
	fails   int // a rank that cannot be read
}

var errDelivery = errors.New("the source broke")

func newDelivered(t *dag.Trace, size func() int) *delivered {
	d := &delivered{trace: t, fails: -1}
	for first := 0; first < len(t.Ranks); {
		last := min(first+size(), len(t.Ranks))
		d.batches = append(d.batches, dag.Batch{First: first, Last: last})
		first = last
	}
	return d
}

func (d *delivered) Header() (*dag.Header, error) {
	return &dag.Header{
		Meta: d.trace.Meta, Comms: d.trace.Comms, Ranks: len(d.trace.Ranks), Ops: d.trace.Ops(), Kinds: d.trace.Kinds(),
		Batches: d.batches,
	}, nil
}

func (d *delivered) Close() error { return nil }

func (d *delivered) NewReader(dag.Columns) dag.Reader {
	var ranks []*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		d.reads.Add(1)
		for i := range ranks {
			spoil(ranks[i])
		}
		ranks = ranks[:0]
		if d.fails >= b.First && d.fails < b.Last {
			return nil, errDelivery
		}
		for i := range d.trace.Ranks[b.First:b.Last] {
			ranks = append(ranks, d.trace.Ranks[b.First+i].Clone())
		}
		return ranks, nil
	}
}

func encodeSource(tb testing.TB, s dag.Source) []byte {
	tb.Helper()
	var file bytes.Buffer
	if err := Format.WriteSource(&file, s, format.WriteOptions{}); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// Writing batch by batch gives the bytes of writing at once, on any number of cores.
func TestWriteSource(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	traces := []*dag.Trace{{}, smallTrace(), family("stencil-jitter").trace(t, 600_000)}
	for range 20 {
		traces = append(traces, randomTrace(rng, rng.IntN(30), rng.IntN(300)))
	}
	long := dag.NewBuilder(3)
	for range maxGroupRows + 5 {
		long.Rank(1).Calc(7)
	}
	traces = append(traces, long.Trace())
	for i, trace := range traces {
		want := encode(t, trace)
		for _, cores := range []int{1, 3} {
			previous := runtime.GOMAXPROCS(cores)
			got := encodeSource(t, newDelivered(trace, func() int { return 1 + rng.IntN(5) }))
			runtime.GOMAXPROCS(previous)
			if !bytes.Equal(got, want) {
				t.Errorf("trace %d, %d cores: other bytes", i, cores)
			}
		}
	}
}

// A generated trace, too.
func TestWriteGenerated(t *testing.T) {
	p := horovod.Default()
	p.Workers, p.Layer.GathervProbability = 100, 0.01
	s, err := horovod.NewSource(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if trace.Ops() < 2*minGroupRows {
		t.Fatalf("%d ops tell little", trace.Ops())
	}
	if !bytes.Equal(encodeSource(t, s), encode(t, trace)) {
		t.Error("other bytes")
	}
}

// marking remembers how many batches were read at each write.
type marking struct {
	source *delivered
	reads  []int64
}

func (m *marking) Write(b []byte) (int, error) {
	m.reads = append(m.reads, m.source.reads.Load())
	return len(b), nil
}

// Only a few batches are read ahead of writing.
func TestWriteSourceReadsAhead(t *testing.T) {
	const groups, groupRanks = 30, 2
	trace := &dag.Trace{Ranks: dag.NewRanks(groups * groupRanks)}
	for i := range trace.Ranks {
		trace.Change(i).Kind = make([]dag.Kind, maxGroupRows/groupRanks)
	}
	s := newDelivered(trace, func() int { return 1 })
	m := &marking{source: s}
	if err := WriteSource(m, s); err != nil {
		t.Fatal(err)
	}
	if len(m.reads) != 1+groups*numColumns+1 {
		t.Fatalf("%d writes, expected one for each column of each row group, the head and the foot", len(m.reads))
	}
	cores := runtime.GOMAXPROCS(0)
	for i, reads := range m.reads[1 : 1+groups*numColumns] {
		written := i / numColumns
		encoded := cores + 3 // row groups that are being encoded, or wait to be written or encoded
		waiting := cores + 1 // batches that are being read, or wait to be divided
		if limit := groupRanks*(written+encoded) + waiting; int(reads) > limit {
			t.Fatalf("%d batches were read with %d row groups written, expected %d at most", reads, written, limit)
		}
	}
}

func TestWriteSourceErrors(t *testing.T) {
	trace := family("stencil").trace(t, 600_000)
	one := func() int { return 1 }
	var file bytes.Buffer

	s := newDelivered(trace, one)
	s.fails = 700
	if err := WriteSource(&file, s); !errors.Is(err, errDelivery) {
		t.Errorf("error %v, expected that of the source", err)
	}
	if _, err := decode(file.Bytes()); err == nil {
		t.Error("a file that was not finished is read")
	}

	s = newDelivered(trace, one)
	s.batches = s.batches[:900]
	if err := WriteSource(&file, s); err == nil || !strings.Contains(err.Error(), "found 565056 on 900") {
		t.Errorf("error %v where the source has fewer ranks than it told", err)
	}

	for _, room := range []int{0, 3, 50, len(encode(t, trace)) / 2} {
		if err := WriteSource(&limitedWriter{room}, newDelivered(trace, one)); !errors.Is(err, errBroken) {
			t.Errorf("room for %d bytes: error %v, expected that of the writer", room, err)
		}
	}

	s = newDelivered(trace, one)
	trace.Ranks[3].Bytes[2] = -1
	if err := WriteSource(&file, s); err == nil || !strings.Contains(err.Error(), "rank 3: op 2: bytes: expected 0 or more, found -1") {
		t.Errorf("error %v for a negative size", err)
	}

	file.Reset()
	f, err := openBytes(encode(t, smallTrace()))
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteSource(&file, f); err != nil || !bytes.Equal(file.Bytes(), encode(t, smallTrace())) {
		t.Errorf("error %v and %d bytes, or other bytes, for a store read batch by batch", err, file.Len())
	}
}

// listing returns the published example of Horovod on 8 workers.
func listing(tb testing.TB) *horovod.Source {
	tb.Helper()
	p := horovod.Listing()
	p.Workers = 8
	s, err := horovod.NewSource(p, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// collectives returns how many there are beside computations and waits, of which there are as many as iterations.
func collectives(tb testing.TB, s *horovod.Source) float64 {
	return float64(opsOf(tb, s)) * 4 / 5
}

func opsOf(tb testing.TB, s dag.Source) int64 {
	tb.Helper()
	h, err := s.Header()
	if err != nil {
		tb.Fatal(err)
	}
	return h.Ops
}

// The waits are what takes space: their times have 5 bits of chance, and the collectives are 4 to a wait.
func TestListingSize(t *testing.T) {
	s := listing(t)
	if size := float64(len(encodeSource(t, s))) / collectives(t, s); size >= 0.2 {
		t.Errorf("%.4f bytes a collective, expected less than 0.2", size)
	}
}

func BenchmarkWriteListing(b *testing.B) {
	s := listing(b)
	size := countingWriter(0)
	b.ReportAllocs()
	for b.Loop() {
		size = 0
		if err := WriteSource(&size, s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(opsOf(b, s))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
	b.ReportMetric(float64(size)/collectives(b, s), "file-B/coll")
}
