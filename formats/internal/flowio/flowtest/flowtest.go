// Package flowtest has the shared test checks and benchmarks of the flow-list formats.
package flowtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio"
	"github.com/tracedag/tracedag/formats/store"
)

func input(name string, text []byte) []*format.Input {
	return []*format.Input{{Name: name, Reader: bytes.NewReader(text)}}
}

// Read reads a text called x. It returns the warnings, too.
func Read(f *format.Format, text string, o format.ReadOptions) (*dag.Trace, string, error) {
	var warnings strings.Builder
	o.Warn = func(message string, args ...any) { fmt.Fprintf(&warnings, message+"\n", args...) }
	t, err := f.Read(input("x", []byte(text)), o)
	return t, warnings.String(), err
}

// Write returns the text of a trace.
func Write(t testing.TB, f *format.Format, trace *dag.Trace) string {
	t.Helper()
	var text strings.Builder
	if err := f.Write(&text, trace, format.WriteOptions{Warn: t.Logf}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// ThroughStore writes a trace to the store and reads it back.
func ThroughStore(t testing.TB, trace *dag.Trace) *dag.Trace {
	t.Helper()
	var file bytes.Buffer
	if err := store.Write(&file, trace); err != nil {
		t.Fatal(err)
	}
	again, err := store.Format.Read(input("x.parquet", file.Bytes()), format.ReadOptions{Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// RoundTrip checks that reading and writing a text reproduces it, with and without the store between, and that its
// trace is valid.
func RoundTrip(t *testing.T, f *format.Format, text string, o format.ReadOptions) {
	t.Helper()
	RoundTripTo(t, f, text, text, o)
}

// RoundTripTo checks that reading and writing a text gives the text want.
func RoundTripTo(t *testing.T, f *format.Format, text, want string, o format.ReadOptions) {
	t.Helper()
	trace, _, err := Read(f, text, o)
	if err != nil {
		t.Errorf("%.100q: %v", text, err)
		return
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Errorf("%.100q: %v", text, problems)
	}
	if l := f.Losses(trace); len(l) > 0 {
		t.Errorf("%.100q: losses %v", text, l)
	}
	for _, trace := range []*dag.Trace{trace, ThroughStore(t, trace)} {
		if got := Write(t, f, trace); got != want {
			t.Errorf("%.1000q comes back as\n%.1000q", want, got)
		}
	}
}

// List returns the ops of a trace, rank by rank.
func List(trace *dag.Trace) string {
	var b strings.Builder
	for rank := range trace.Ranks {
		r := trace.Ranks[rank]
		for i := range r.Len() {
			op := r.Op(i)
			switch op.Kind {
			case dag.Send:
				fmt.Fprintf(&b, "%d: send to %d, %d bytes, tag %d, at %v", rank, op.Peer, op.Bytes, op.Tag, op.Release)
			case dag.Recv:
				fmt.Fprintf(&b, "%d: recv from %d, %d bytes, tag %d", rank, op.Peer, op.Bytes, op.Tag)
			default:
				fmt.Fprintf(&b, "%d: %v", rank, op.Kind)
			}
			if off := r.Deps.Of(i); len(off) > 0 {
				b.WriteString(" after")
				for _, d := range off {
					fmt.Fprintf(&b, " %d", i-int(d))
				}
			}
			if op.Name != "" {
				b.WriteString(" " + op.Name)
			}
			if op.Attrs != "" {
				b.WriteString(" " + op.Attrs)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Fuzz checks that reading every text gives a valid trace or an error, without a panic, and that writing and
// reading the trace reproduces it.
func Fuzz(t *testing.T, f *format.Format, text []byte) {
	f.Detect(text[:min(len(text), format.DetectBytes)])
	trace, _, err := Read(f, string(text), format.ReadOptions{})
	if err != nil {
		if !strings.HasPrefix(err.Error(), "x:") {
			t.Errorf("error %v does not begin with the name of the file", err)
		}
		return
	}
	if len(trace.Ranks) > 1000 {
		return // they take long, and show nothing new
	}
	for _, p := range dag.Validate(trace) {
		if p.Class != dag.Cycle {
			t.Fatal(p)
		}
	}
	if trace.Ops() == 0 {
		return
	}
	var written bytes.Buffer
	if err := f.Write(&written, trace, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	again, _, err := Read(f, written.String(), format.ReadOptions{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, written.Bytes())
	}
	var second bytes.Buffer
	if err := f.Write(&second, again, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written.Bytes(), second.Bytes()) {
		t.Fatalf("written\n%s, then\n%s", written.Bytes(), second.Bytes())
	}
}

// Flows returns the trace of random flows between 1000 ranks.
func Flows(flows int) *dag.Trace {
	random := rand.New(rand.NewPCG(1, 1))
	list := make([]flowio.Flow, flows)
	now := dag.Time(0)
	for k := range list {
		now += dag.Time(random.Int64N(1000)) * dag.Nanosecond
		list[k] = flowio.Flow{Source: random.Int32N(1000), Destination: random.Int32N(1000), Bytes: 1 +
			random.Int64N(1e6), Start: now}
	}
	trace, err := flowio.Trace(context.Background(), 1000, list)
	if err != nil {
		panic(err)
	}
	return trace
}

// BenchmarkRead reads a file with the given number of flows.
func BenchmarkRead(b *testing.B, f *format.Format, flows int) {
	text := []byte(Write(b, f, Flows(flows)))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Read(input("x", text), format.ReadOptions{Warn: b.Logf}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(2*flows)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkWrite writes a file with the given number of flows.
func BenchmarkWrite(b *testing.B, f *format.Format, flows int) {
	trace := Flows(flows)
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Write(io.Discard, trace, format.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(2*flows)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
