package spc

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
)

// financial returns the given number of records like those of an OLTP application: 24 units, often several at the
// same time.
func financial(records int) []byte {
	random := rand.New(rand.NewPCG(1, 1))
	var b bytes.Buffer
	now := int64(0) // microseconds
	for range records {
		if random.IntN(8) < 5 {
			now += random.Int64N(20000)
		}
		fmt.Fprintf(&b, "%d,%d,%d,%c,%d.%06d\n", random.IntN(24), random.IntN(1<<24), 512*(1+random.IntN(32)),
			"rwww"[random.IntN(4)], now/1e6, now%1e6)
	}
	return b.Bytes()
}

const benchmarkRecords = 1_000_000

func BenchmarkRead(b *testing.B) {
	text := financial(benchmarkRecords)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(one("x.spc", text), options(b)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(benchmarkRecords)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkToStore runs a conversion on one core.
func BenchmarkToStore(b *testing.B) {
	text := financial(benchmarkRecords)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		trace, err := read(one("x.spc", text), options(b))
		if err != nil {
			b.Fatal(err)
		}
		if err := store.Write(io.Discard, trace); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(benchmarkRecords)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkWrite(b *testing.B) {
	text := financial(benchmarkRecords)
	trace, err := read(one("x.spc", text), options(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := write(io.Discard, trace, format.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(benchmarkRecords)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func one(name string, text []byte) []*format.Input {
	return []*format.Input{{Name: name, Reader: bytes.NewReader(text)}}
}

func options(t testing.TB) format.ReadOptions {
	return format.ReadOptions{Warn: func(message string, args ...any) { t.Logf(message, args...) }}
}
