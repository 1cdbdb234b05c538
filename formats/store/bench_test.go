package store

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// benchmarkOps returns the size of the traces that speed and size are measured on.
func benchmarkOps() int {
	if testing.Short() {
		return 400_000
	}
	return 4_000_000
}

// benchmarkSchedules are measured by default; the other families are too alike to pay for the time.
var benchmarkSchedules = []string{"stencil", "stencil-jitter", "ring-allreduce", "pipeline-jitter", "horovod"}

func family(name string) schedule {
	for _, s := range schedules {
		if s.name == name {
			return s
		}
	}
	panic("no schedule " + name)
}

func BenchmarkWrite(b *testing.B) {
	for _, name := range benchmarkSchedules {
		b.Run(name, func(b *testing.B) {
			t := family(name).trace(b, benchmarkOps())
			ops, size := t.Ops(), countingWriter(0)
			b.ReportAllocs()
			for b.Loop() {
				size = 0
				if err := Write(&size, t); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(ops)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
			b.ReportMetric(float64(size)/float64(ops), "file-B/op")
			b.ReportMetric(100*float64(size)/float64(goalBinarySize(t)), "%goal")
		})
	}
}

type countingWriter int64

func (w *countingWriter) Write(b []byte) (int, error) {
	*w += countingWriter(len(b))
	return len(b), nil
}

func BenchmarkRead(b *testing.B) {
	for _, name := range benchmarkSchedules {
		b.Run(name, func(b *testing.B) {
			t := family(name).trace(b, benchmarkOps())
			var file bytes.Buffer
			if err := Write(&file, t); err != nil {
				b.Fatal(err)
			}
			ops := t.Ops()
			t = nil
			b.ReportAllocs()
			for b.Loop() {
				f, err := Open(bytes.NewReader(file.Bytes()), int64(file.Len()), "trace")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := f.ReadAll(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(ops)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}

// BenchmarkReadBatches goes through files batch by batch, on one core.
func BenchmarkReadBatches(b *testing.B) {
	for _, name := range benchmarkSchedules {
		b.Run(name, func(b *testing.B) {
			t := family(name).trace(b, benchmarkOps())
			f, err := openBytes(encode(b, t))
			if err != nil {
				b.Fatal(err)
			}
			t = nil
			batches, read := f.batches(), f.NewReader(dag.Replay)
			b.ReportAllocs()
			for b.Loop() {
				for _, batch := range batches {
					if _, err := read(batch); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(f.numOps())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}

// BenchmarkReadRank reads single ranks of a thousand.
func BenchmarkReadRank(b *testing.B) {
	t := family("stencil").trace(b, benchmarkOps())
	var file bytes.Buffer
	if err := Write(&file, t); err != nil {
		b.Fatal(err)
	}
	f, err := Open(bytes.NewReader(file.Bytes()), int64(file.Len()), "trace")
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		rank := i * 7 % f.descr.ranks
		if _, err := f.ReadRanks(rank, rank+1); err != nil {
			b.Fatal(err)
		}
	}
}

var _ io.Writer = (*countingWriter)(nil)

// TestAgainstZstd compares the sizes of all families with what zstd -19 makes of their GOAL binaries, at most half of
// which they may be where an application would have them. It takes ten minutes and the zstd program.
func TestAgainstZstd(t *testing.T) {
	if os.Getenv("TRACEDAG_ZSTD") == "" {
		t.Skip("TRACEDAG_ZSTD is not set")
	}
	for _, s := range schedules {
		t.Run(s.name, func(t *testing.T) {
			trace := s.trace(t, benchmarkOps())
			binary := goalBinary(trace)
			size := len(encode(t, trace))
			ops := trace.Ops()
			trace = nil
			var compressed countingWriter
			zstd := exec.Command("zstd", "-19", "-q", "-c")
			zstd.Stdin, zstd.Stdout = bytes.NewReader(binary), &compressed
			if err := zstd.Run(); err != nil {
				t.Fatal(err)
			}
			share := func(n int) float64 { return 100 * float64(n) / float64(len(binary)) }
			t.Logf("%d ops, GOAL binary %d bytes, zstd -19 %.3f %%, store %.3f %%, %.2f of zstd", ops, len(binary),
				share(int(compressed)), share(size), float64(size)/float64(compressed))
			if !s.hard && 2*size > int(compressed) {
				t.Error("more than half of zstd -19")
			}
		})
	}
}
