package mpi

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// program returns the file of one of four ranks that exchange halos, as liballprof writes it: four requests, a Waitall
// and an Allreduce in each step.
func program(rank, steps int) []byte {
	var b bytes.Buffer
	b.WriteString("# htor's PMPI Tracer 1 Output File\n# clockdiff: 0.000000 s (relative to rank 0)\n\n")
	now := 1298365588610809
	fmt.Fprintf(&b, "MPI_Init:-:140735000539132:140735000539120:%d\n", now)
	at := func(length int) int {
		now += length
		return now
	}
	for range steps {
		for k, peer := range []int{(rank + 1) % 4, (rank + 3) % 4} {
			fmt.Fprintf(&b, "MPI_Irecv:%d:140735000539176:4500:11,8,8:%d:%d:6575616,%d,4:%d:%d\n", at(7), peer, 3000+peer,
				rank, 140735000539136+8*k, at(3))
			fmt.Fprintf(&b, "MPI_Isend:%d:140735000549176:4500:11,8,8:%d:%d:6575616,%d,4:%d:%d\n", at(2), peer, 3000+rank,
				rank, 140735000539152+8*k, at(5))
		}
		fmt.Fprintf(&b, "MPI_Waitall:%d:4:140735000539136:0:%d\n", at(300), at(20))
		fmt.Fprintf(&b, "MPI_Allreduce:%d:1:140735000539160:1:10,8,8:3:6575616,%d,4:%d\n", at(17), rank, at(40))
	}
	fmt.Fprintf(&b, "# Finalize clockdiff: 0.000000\nMPI_Finalize:%d:-\n", at(100))
	return b.Bytes()
}

// benchmark reads four ranks on one processor, so that the rate is that of a core with -cpu 1.
func benchmark(b *testing.B, o format.ReadOptions) {
	const steps = 20_000
	var texts [4][]byte
	size := 0
	for rank := range texts {
		texts[rank] = program(rank, steps)
		size += len(texts[rank])
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var t *dag.Trace
	for b.Loop() {
		var inputs []*format.Input
		for rank, text := range texts {
			inputs = append(inputs, &format.Input{Name: fmt.Sprintf("x-%d.txt", rank), Reader: io.Reader(bytes.NewReader(text))})
		}
		var err error
		o.Warn = b.Errorf
		if t, err = read(inputs, o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(t.Ops())*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkRead(b *testing.B) {
	benchmark(b, format.ReadOptions{})
}

func BenchmarkSchedgen(b *testing.B) {
	benchmark(b, format.ReadOptions{Own: &Options{Variant: "atlahs", TimeMult: 1000, Extrapolate: 1}})
}
