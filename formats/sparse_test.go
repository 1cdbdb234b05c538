package formats

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/sim/backends"
)

// sparse is a number of a rank, communicator, stream, NIC, job, host or tag far from all others.
const sparse = 2_000_000_000

// sparseMemory is the limit of bytes that one use of a small trace with a sparse number may allocate.
const sparseMemory = 64 << 20

// TestSparseNumbers sets numbers of samples to sparse, and checks that no format, statistic, writer or backend allocates
// memory for the numbers in between: it refuses the number or does without.
func TestSparseNumbers(t *testing.T) {
	skipMemory(t)
	known := make(map[string]subject)
	for _, s := range subjects() {
		known[s.format] = s
	}
	for i := range All {
		s, listed := known[All[i].Name]
		if !listed {
			s = selfWritten(t, &All[i])
		}
		t.Run(s.format, func(t *testing.T) {
			c := &conformance{T: t, subject: s, format: All.Named(s.format), shown: map[string]bool{}}
			for i := range c.samples {
				c.sample(&c.samples[i])
				if c.samples[i].model {
					continue
				}
				read := 0
				for files := range c.samples[i].withSparse(c.format.Binary) {
					used := allocated()
					r := c.read(files, format.ReadOptions{})
					if n := allocated() - used; n > sparseMemory {
						c.errorf("%d MiB allocated, reading\n%s", n>>20, show(files))
					}
					if r.err == nil {
						if read++; read <= 5 {
							useSparse(t, show(files), r.trace)
						}
					}
				}
			}
		})
	}
}

// skipMemory skips a test of the memory that is allocated, which the race detector, run with -short, multiplies.
func skipMemory(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped with -short: the race detector changes what is allocated")
	}
}

// withSparse yields variants of the files in which sparse replaces one number, or all numbers with one value. For a
// binary sample with a limit, it tries one of three widths of numbers at each place; with TRACEDAG_LONG, all three.
func (s *sample) withSparse(binary bool) func(yield func([]file) bool) {
	all := s.limit == 0 || os.Getenv("TRACEDAG_LONG") != ""
	return func(yield func([]file) bool) {
		for i, f := range s.files {
			replaced := func(text string) bool {
				damaged := slices.Clone(s.files)
				damaged[i].text = text
				return yield(damaged)
			}
			if binary {
				for at := range min(len(f.text), 400) {
					for k, size := range []int{4, 5, 8} { // 5 bytes hold the number as a varint
						if !all && k != at%3 {
							continue
						}
						number := littleEndian(sparse, size)
						if size == 5 {
							number = []byte{0x80, 0xa8, 0xd6, 0xb9, 0x07}
						}
						if at+size <= len(f.text) && !replaced(f.text[:at]+string(number)+f.text[at+size:]) {
							return
						}
					}
				}
				continue
			}
			places := number.FindAllStringIndex(f.text, 300)
			values := map[string]bool{}
			for _, p := range places {
				values[f.text[p[0]:p[1]]] = true
				if !replaced(f.text[:p[0]] + fmt.Sprint(sparse) + f.text[p[1]:]) {
					return
				}
			}
			for value := range values {
				all := number.ReplaceAllStringFunc(f.text, func(text string) string {
					if text == value {
						return fmt.Sprint(sparse)
					}
					return text
				})
				if !replaced(all) {
					return
				}
			}
		}
	}
}

// useSparse computes statistics of a trace, writes it in all formats and runs it on all backends, each with little
// memory. Errors are allowed.
func useSparse(t *testing.T, what string, trace *dag.Trace) {
	t.Helper()
	within := func(by string, use func()) {
		t.Helper()
		before := allocated()
		use()
		if n := allocated() - before; n > sparseMemory {
			t.Errorf("%s allocates %d MiB for\n%s", by, n>>20, what)
		}
	}
	valid := false
	within("validation", func() { valid = len(dag.Validate(trace)) == 0 })
	within("statistics", func() { dag.Summarize(trace) })
	within("the matrix", func() { dag.Matrix(trace) })
	if !valid {
		return
	}
	for i := range All {
		f := &All[i]
		within(f.Name, func() {
			o := format.WriteOptions{Warn: discard}
			switch {
			case f.Write != nil:
				_ = f.Write(io.Discard, trace, o)
			case f.WriteFiles != nil:
				_ = f.WriteFiles(func(string) (io.Writer, error) { return new(bytes.Buffer), nil }, trace, o)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // sparse sizes and times take long
	defer cancel()
	for _, run := range backendRuns(trace) {
		within(fmt.Sprint(run), func() {
			_, _ = backends.Run(trace, run[0], backends.Set(run[1:]...), backends.Context(ctx))
		})
	}
}

// backendRuns returns runs of a trace: backends with parameters.
func backendRuns(trace *dag.Trace) [][]string {
	return [][]string{
		{"loggops"}, {"loggops", "model=loggopsim"}, {"loggops", "model=atlahs"}, {"ideal"},
		{"packet", "topology=star:hosts=64"}, {"flit", "topology=star:hosts=64,rate=128Gbps,latency=1ns"},
		{"analytical", fmt.Sprintf("network=Switch(%d)@50GB/s,500ns", max(2, len(trace.Ranks)))},
	}
}

// TestSparseBackends checks that the runs of these tests work without sparse numbers.
func TestSparseBackends(t *testing.T) {
	for _, run := range backendRuns(exchange()) {
		if _, err := backends.Run(exchange(), run[0], backends.Set(run[1:]...)); err != nil {
			t.Errorf("%v: %v", run, err)
		}
	}
}

// TestSparseFields sets each field of an op to sparse, beside an op with 0.
func TestSparseFields(t *testing.T) {
	skipMemory(t)
	for id := range dag.Fields {
		f := &dag.Fields[id]
		trace := exchange()
		switch column := f.Of(trace.Ranks[0]).(type) {
		case *dag.Column[int32]:
			column.Set(1, sparse)
		case *dag.Column[int64]:
			column.Set(1, sparse)
		case *dag.Narrow:
			column.Set(1, sparse)
		default:
			continue
		}
		useSparse(t, f.Name, trace)
	}
	for _, tag := range []int64{sparse, 1 << 40} {
		b := dag.NewBuilder(2)
		for k := range int32(2) {
			b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Tag: int64(k) * tag, Stream: k * sparse, NIC: k * 200})
			b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 8, Tag: int64(k) * tag, Stream: k * sparse, NIC: k * 200})
		}
		useSparse(t, fmt.Sprintf("tags 0 and %d", tag), b.Trace())
	}
}
