package store

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// sectionTrace returns a trace of ranks of the given lengths. Its ops have measured times that rise through the trace,
// and dependencies on the previous op and on one far before it.
func sectionTrace(lengths ...int) *dag.Trace {
	b := dag.NewBuilder(len(lengths))
	at := dag.Time(0)
	for rank, n := range lengths {
		for i := range n {
			at += dag.Nanosecond + dag.Time(i%7)
			op := dag.Op{Kind: dag.Calc, Duration: at, Timed: i%3 > 0, MeasuredStart: at, MeasuredEnd: at + 1}
			if i%1000 == 999 {
				op.Name = "thousandth"
			}
			b.Rank(rank).Add(op)
			if i > 0 {
				b.Rank(rank).Requires(i, i-1)
			}
			if i > minGroupRows {
				b.Rank(rank).RequiresStart(i, i-minGroupRows)
			}
		}
	}
	return b.Trace()
}

// encodeSmall returns the file of a trace in the smallest row groups.
func encodeSmall(t *testing.T, trace *dag.Trace) []byte {
	keys, err := metadata(trace.Meta, trace.Comms, len(trace.Ranks), trace.Ops())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := writeGroups(&file, keys, divide(0, len(trace.Ranks), inMemory(trace.Ranks)), false); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestSections checks that the sections of a file add up to its trace, also of ranks that begin and end within
// sections, and that bounds hold.
func TestSections(t *testing.T) {
	trace := sectionTrace(1000, 5*minGroupRows/2, 10, 0, minGroupRows, minGroupRows+1, 7)
	f, err := openBytes(encodeSmall(t, trace))
	if err != nil {
		t.Fatal(err)
	}
	next := make([]int, len(trace.Ranks)) // number of the next op of each rank
	read := f.NewSectionReader()
	sections := f.Sections()
	if len(sections) < 6 {
		t.Fatalf("%d sections, expected more", len(sections))
	}
	for i, section := range sections {
		runs, err := read.Open(i, 0, len(trace.Ranks))
		if err != nil {
			t.Fatal(err)
		}
		for id := range dag.NumFields {
			if err := read.Read(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := read.Check(); err != nil {
			t.Fatal(err)
		}
		ops := 0
		for _, run := range runs {
			ops += run.Ops.Len()
			if run.First != next[run.Rank] || run.Rank < section.First || run.Rank >= section.Last {
				t.Fatalf("section %d: rank %d from op %d on, expected op %d", i, run.Rank, run.First, next[run.Rank])
			}
			next[run.Rank] += run.Ops.Len()
			whole := trace.Ranks[run.Rank]
			start, end := f.Bounds(i, dag.FieldMeasuredStart), f.Bounds(i, dag.FieldMeasuredEnd)
			for k := range run.Ops.Len() {
				got, want := run.Ops.Op(k), whole.Op(run.First+k)
				if got != want {
					t.Fatalf("rank %d: op %d: %+v, expected %+v", run.Rank, run.First+k, got, want)
				}
				if !slices.Equal(run.Ops.Deps.Of(k), whole.Deps.Of(run.First+k)) ||
					!slices.Equal(run.Ops.StartDeps.Of(k), whole.StartDeps.Of(run.First+k)) {
					t.Fatalf("rank %d: dependencies of op %d differ", run.Rank, run.First+k)
				}
				if got.Timed && (got.MeasuredStart < start.Min || got.MeasuredEnd > end.Max) {
					t.Fatalf("section %d: op %+v beyond %v and %v", i, got, start, end)
				}
			}
		}
		if ops != section.Ops {
			t.Errorf("section %d: %d ops, expected %d", i, ops, section.Ops)
		}
		for id, f := range map[dag.FieldID]dag.Bounds{
			dag.FieldRelease: f.Bounds(i, dag.FieldRelease), dag.FieldAttrs: f.Bounds(i, dag.FieldAttrs),
		} {
			if !f.Known || !f.None {
				t.Errorf("section %d: %s: %+v, expected no values", i, dag.Fields[id].Name, f)
			}
		}
	}
	for rank, n := range next {
		if n != trace.Ranks[rank].Len() {
			t.Errorf("rank %d: %d ops, expected %d", rank, n, trace.Ranks[rank].Len())
		}
	}
}

// TestSectionBytes checks that reading a rank by sections reads the footer and the row groups of that rank only, and
// that a column costs its chunk only.
func TestSectionBytes(t *testing.T) {
	lengths := make([]int, 6)
	for i := range lengths {
		lengths[i] = minGroupRows
	}
	file := encodeSmall(t, sectionTrace(lengths...))
	at := &countingReader{at: bytes.NewReader(file)}
	f, err := Open(at, int64(len(file)), "test.parquet")
	if err != nil {
		t.Fatal(err)
	}
	opened := at.bytes()
	if footer := int64(len(file)) - f.pagesEnd + 4; opened > footer+8 {
		t.Errorf("opening read %d bytes, expected no more than the footer of %d", opened, footer)
	}
	f.Outline()
	f.Sections()
	for id := range dag.NumFields {
		f.Bounds(0, id)
	}
	if at.bytes() != opened {
		t.Errorf("outline, sections and bounds read %d bytes", at.bytes()-opened)
	}
	read := f.NewSectionReader()
	if _, err := read.Open(3, 3, 4); err != nil {
		t.Fatal(err)
	}
	g := &f.groups[3]
	want := g.chunks[colRank].CompressedSize + g.chunks[colKind].CompressedSize
	if got := at.bytes() - opened; got != want {
		t.Errorf("opening a section read %d bytes, expected the %d of ranks and kinds", got, want)
	}
	before := at.bytes()
	for range 2 {
		if err := read.Read(dag.FieldMeasuredStart); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := at.bytes()-before, g.chunks[fieldColumn+int(dag.FieldMeasuredStart)].CompressedSize; got != want {
		t.Errorf("reading a column read %d bytes, expected %d", got, want)
	}
}

// bytes returns the number of bytes read.
func (r *countingReader) bytes() int64 {
	n := int64(0)
	for _, span := range r.spans {
		n += span[1] - span[0]
	}
	return n
}
