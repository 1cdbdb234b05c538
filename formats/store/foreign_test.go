package store

// Files of other programs: parquet-go reads what this package writes, and this package reads what parquet-go writes in
// every encoding, codec and page version.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	parquetformat "github.com/parquet-go/parquet-go/format"

	"github.com/tracedag/tracedag/dag"
)

// plainRow is a row as this package writes it.
type plainRow struct {
	Rank            int32   `parquet:"rank"`
	Kind            string  `parquet:"kind"`
	Subkind         string  `parquet:"subkind"`
	Bytes           int64   `parquet:"bytes"`
	RecvBytes       int64   `parquet:"recv_bytes"`
	Peer            int32   `parquet:"peer"`
	Tag             int64   `parquet:"tag"`
	Comm            int32   `parquet:"comm"`
	Duration        int64   `parquet:"duration_ps"`
	Flops           int64   `parquet:"flops"`
	Release         int64   `parquet:"release_ps"`
	Stream          int32   `parquet:"stream"`
	NIC             int32   `parquet:"nic"`
	Job             int32   `parquet:"job"`
	Host            int32   `parquet:"host"`
	Dims            int32   `parquet:"dims"`
	Priority        int32   `parquet:"priority"`
	Deps            []int32 `parquet:"deps,list"`
	StartDeps       []int32 `parquet:"start_deps,list"`
	Dependents      []int32 `parquet:"dependents,list"`
	StartDependents []int32 `parquet:"start_dependents,list"`
	Name            *string `parquet:"name,optional"`
	Attrs           *string `parquet:"attrs,optional"`
	MeasuredStart   *int64  `parquet:"measured_start_ps,optional"`
	MeasuredEnd     *int64  `parquet:"measured_end_ps,optional"`
}

// rowsOfTrace returns the rows that a trace should have.
func rowsOfTrace(t *dag.Trace) []plainRow {
	var rows []plainRow
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	measured := func(at dag.Time) *int64 {
		if at == dag.Unmeasured {
			return nil
		}
		return (*int64)(&at)
	}
	for i := range t.Ranks {
		r := t.Ranks[i]
		for k := range r.Len() {
			op := r.Op(k)
			start, end := r.Measured(k)
			rows = append(rows, plainRow{
				Rank: int32(i), Kind: op.Kind.String(), Subkind: op.Subkind.String(), Bytes: op.Bytes,
				RecvBytes: op.RecvBytes, Peer: op.Peer, Tag: op.Tag, Comm: op.Comm, Duration: int64(op.Duration),
				Flops: op.Flops, Release: int64(op.Release), Stream: op.Stream, NIC: op.NIC, Job: op.Job,
				Host: op.Host, Dims: op.Dims, Priority: op.Priority,
				Deps: r.Deps.Of(k), StartDeps: r.StartDeps.Of(k), Dependents: r.Order.Of(k),
				StartDependents: r.StartOrder.Of(k), Name: text(op.Name), Attrs: text(op.Attrs),
				MeasuredStart: measured(start), MeasuredEnd: measured(end),
			})
		}
	}
	return rows
}

// asJSON returns rows in a form to compare.
func asJSON(tb testing.TB, rows any) string {
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return strings.ReplaceAll(string(text), ": []", ": null")
}

func TestParquetGoReads(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		trace := randomTrace(rng, 6, 60)
		file := encode(t, trace)
		r := parquetgo.NewGenericReader[plainRow](bytes.NewReader(file))
		rows := make([]plainRow, r.NumRows())
		if n, err := r.Read(rows); n != len(rows) || err != nil && err != io.EOF {
			t.Fatalf("seed %d: read %d of %d rows: %v", seed, n, len(rows), err)
		}
		if got, want := asJSON(t, rows), asJSON(t, rowsOfTrace(trace)); got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
	f, err := parquetgo.OpenFile(bytes.NewReader(encode(t, family("stencil-jitter").trace(t, 600_000))), 1<<20)
	if err == nil {
		t.Errorf("a file with a wrong size was opened: %v", f)
	}
}

// Statistics let SQL engines skip row groups, so they must be right.
func TestStatistics(t *testing.T) {
	file := encode(t, family("stencil-jitter").trace(t, 900_000))
	f, err := parquetgo.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.RowGroups()) < 3 {
		t.Fatalf("%d row groups tell nothing", len(f.RowGroups()))
	}
	for g, group := range f.RowGroups() {
		for c, chunk := range group.ColumnChunks() {
			column := columns[c]
			if column.shape != int32s && column.shape != int64s && column.shape != label {
				continue
			}
			low, high, ok := chunk.(*parquetgo.FileColumnChunk).Bounds()
			if !ok {
				t.Errorf("row group %d has no statistics of %s", g, column.name)
				continue
			}
			least, most := chunkBounds(t, chunk)
			if !parquetgo.Equal(low, least) || !parquetgo.Equal(high, most) {
				t.Errorf("row group %d, %s: statistics say %v to %v, values are %v to %v", g, column.name, low, high,
					least, most)
			}
		}
	}
}

func chunkBounds(t *testing.T, chunk parquetgo.ColumnChunk) (least, most parquetgo.Value) {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return least, most
		}
		if err != nil {
			t.Fatal(err)
		}
		values := make([]parquetgo.Value, page.NumValues())
		if n, err := page.Values().ReadValues(values); n != len(values) {
			t.Fatal(err)
		}
		for _, v := range values {
			if least.IsNull() || chunk.Type().Compare(v, least) < 0 {
				least = v.Clone()
			}
			if most.IsNull() || chunk.Type().Compare(v, most) > 0 {
				most = v.Clone()
			}
		}
	}
}

// The same columns in other encodings, other widths and other places, all of them nullable.
type foreignRow struct {
	Extra         string   `parquet:"extra"`
	Attrs         string   `parquet:"attrs,optional,delta"`
	Name          *string  `parquet:"name,optional,plain"`
	Deps          []*int64 `parquet:"deps,optional,list"`
	StartDeps     []int32  `parquet:"start_deps"` // repeated, the legacy form of a list
	Bytes         int64    `parquet:"bytes,optional,delta"`
	Tag           int64    `parquet:"tag,delta"`
	Peer          int64    `parquet:"peer,plain"`
	Duration      *int64   `parquet:"duration_ps,optional,dict"`
	Stream        uint32   `parquet:"stream"`
	NIC           uint64   `parquet:"nic,dict"`
	Priority      *int64   `parquet:"priority,optional"`
	Dims          uint64   `parquet:"dims,delta"`
	Host          int8     `parquet:"host"`
	MeasuredStart int64    `parquet:"measured_start_ps,split"`
	MeasuredEnd   *int64   `parquet:"measured_end_ps,optional"`
	Release       *int32   `parquet:"release_ps,optional"`
	Flops         int64    `parquet:"flops,split"`
	Subkind       string   `parquet:"subkind,optional,delta"`
	Kind          *string  `parquet:"kind,optional,dict"`
	Other         []struct {
		X int32   `parquet:"x"`
		Y []int64 `parquet:"y,list"`
	} `parquet:"other,list"`
	Rank int64 `parquet:"rank,delta"`
}

// foreignTrace returns a trace of the fields that foreignRow has, and its rows. Only one in two rows has NULLs for
// zeros.
func foreignTrace(rng *rand.Rand) (*dag.Trace, []foreignRow) {
	b := dag.NewBuilder(7)
	var rows []foreignRow
	for rank := range 7 {
		if rank == 2 {
			continue
		}
		r := b.Rank(rank)
		for range 200 {
			op := dag.Op{
				Kind: dag.Kind(rng.IntN(3)), Bytes: rng.Int64N(3) * rng.Int64N(1<<40), Tag: rng.Int64N(99) - 50,
				Peer: rng.Int32N(8) - 1, Duration: dag.Time(rng.Int64N(4)), Stream: rng.Int32N(300),
				NIC: rng.Int32N(2) * rng.Int32(), Release: dag.Time(rng.Int32N(2) * 1e6), Flops: rng.Int64N(1 << 50),
				Timed: true, MeasuredStart: dag.Time(rng.Int64()), MeasuredEnd: dag.Unmeasured,
				Host: rng.Int32N(2), Dims: rng.Int32N(1 << 10), Priority: rng.Int32N(3) - 1,
			}
			if rng.IntN(3) == 0 {
				op.Kind, op.Subkind = dag.Coll, dag.Barrier+dag.Subkind(rng.IntN(10))
			}
			if rng.IntN(2) == 0 {
				op.Name, op.Attrs, op.MeasuredEnd = "näme", fmt.Sprint("prefix", rng.Int()), 3
			}
			i := r.Add(op)
			row := foreignRow{
				Extra: "x", Tag: op.Tag, Peer: int64(op.Peer), Stream: uint32(op.Stream), NIC: uint64(op.NIC),
				MeasuredStart: int64(op.MeasuredStart), Flops: op.Flops, Rank: int64(rank), Bytes: op.Bytes,
				Duration: (*int64)(&op.Duration), Kind: new(string), Subkind: op.Subkind.String(),
				Host: int8(op.Host), Dims: uint64(op.Dims),
			}
			if op.Priority != 0 {
				row.Priority = new(int64)
				*row.Priority = int64(op.Priority)
			}
			*row.Kind = op.Kind.String()
			if op.Release > 0 {
				row.Release = new(int32)
				*row.Release = int32(op.Release)
			}
			if op.Name != "" {
				row.Name, row.Attrs, row.MeasuredEnd = &op.Name, op.Attrs, (*int64)(&op.MeasuredEnd)
			}
			if rng.IntN(2) == 0 {
				row.Other = make([]struct {
					X int32   `parquet:"x"`
					Y []int64 `parquet:"y,list"`
				}, 2)
				if op.Duration == 0 {
					row.Duration = nil
				}
			}
			for n := rng.IntN(4); n > 0 && i > 0; n-- {
				on := rng.IntN(i)
				r.Requires(i, on)
				offset := int64(i - on)
				row.Deps = append(row.Deps, &offset)
			}
			if i%3 == 1 {
				r.RequiresStart(i, i-1)
				row.StartDeps = []int32{1}
			}
			rows = append(rows, row)
		}
	}
	return b.Trace(), rows
}

func writeForeign[T any](tb testing.TB, rows []T, options ...parquetgo.WriterOption) []byte {
	tb.Helper()
	var file bytes.Buffer
	w := parquetgo.NewGenericWriter[T](&file, options...)
	if _, err := w.Write(rows); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

func TestForeignEncodings(t *testing.T) {
	codecs := map[string]compress.Codec{
		"none": &parquetgo.Uncompressed, "snappy": &parquetgo.Snappy, "gzip": &parquetgo.Gzip, "zstd": &parquetgo.Zstd,
		"brotli": &parquetgo.Brotli, "lz4": &parquetgo.Lz4Raw,
	}
	want, rows := foreignTrace(rand.New(rand.NewPCG(1, 4)))
	for name, codec := range codecs {
		for version := 1; version <= 2; version++ {
			for _, group := range []int64{1 << 20, 130} {
				t.Run(fmt.Sprintf("%s/v%d/%d", name, version, group), func(t *testing.T) {
					file := writeForeign(t, rows, parquetgo.Compression(codec), parquetgo.DataPageVersion(version),
						parquetgo.MaxRowsPerRowGroup(group), parquetgo.PageBufferSize(500))
					wantEncodings(t, file, parquetgo.Plain.Encoding(), parquetgo.RLEDictionary.Encoding(),
						parquetgo.DeltaBinaryPacked.Encoding(), parquetgo.DeltaLengthByteArray.Encoding(),
						parquetgo.ByteStreamSplit.Encoding())
					f, err := openBytes(file)
					if err != nil {
						t.Fatal(err)
					}
					got, err := f.ReadAll()
					if err != nil {
						t.Fatal(err)
					}
					sameTrace(t, got, want)
					for rank := range 7 {
						some, err := f.ReadRanks(rank, min(rank+2, 7))
						if err != nil {
							t.Fatal(err)
						}
						sameRanks(t, some, want.Ranks[rank:min(rank+2, 7)])
					}
				})
			}
		}
	}
}

// wantEncodings fails the test if the file does without one of the encodings that the test is about.
func wantEncodings(t *testing.T, file []byte, encodings ...parquetformat.Encoding) {
	t.Helper()
	f, err := parquetgo.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	used := map[parquetformat.Encoding]bool{}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			for _, e := range c.MetaData.Encoding {
				used[e] = true
			}
		}
	}
	for _, e := range encodings {
		if !used[e] {
			t.Errorf("the file has nothing in encoding %v", e)
		}
	}
}

func TestForeignDeltaByteArray(t *testing.T) {
	type row struct {
		Kind string `parquet:"kind"`
		Name string `parquet:"name,optional"`
		Rank int32  `parquet:"rank"`
	}
	schema := parquetgo.NewSchema("rows", parquetgo.Group{
		"kind": parquetgo.Encoded(parquetgo.String(), &parquetgo.DeltaByteArray),
		"name": parquetgo.Optional(parquetgo.Encoded(parquetgo.String(), &parquetgo.DeltaByteArray)),
		"rank": parquetgo.Leaf(parquetgo.Int32Type),
	})
	var rows []row
	b := dag.NewBuilder(1)
	for i := range 1000 {
		op := dag.Op{Kind: dag.Kind(i % 3), Name: fmt.Sprint("prefix", i*i)}
		if i%5 == 0 {
			op.Name = ""
		}
		b.Rank(0).Add(op)
		rows = append(rows, row{Kind: op.Kind.String(), Name: op.Name})
	}
	file := writeForeign(t, rows, schema)
	wantEncodings(t, file, parquetgo.DeltaByteArray.Encoding())
	sameTrace(t, mustDecode(t, file), b.Trace())
}

func TestForeignMinimal(t *testing.T) {
	type row struct {
		Kind string `parquet:"kind"`
		Rank int32  `parquet:"rank"`
	}
	trace := mustDecode(t, writeForeign(t, []row{{"calc", 1}, {"send", 1}, {"recv", 4}}))
	if len(trace.Ranks) != 5 || trace.Ops() != 3 || trace.Ranks[1].Kind[1] != dag.Send ||
		len(trace.Comms) != 1 || trace.Comms[0].Size() != 5 {
		t.Errorf("got %+v", trace)
	}
	if trace := mustDecode(t, writeForeign[row](t, nil)); len(trace.Ranks) != 0 {
		t.Errorf("got %d ranks of no rows", len(trace.Ranks))
	}
}

// A file that names its number of ops is one of ours, and must be whole.
func TestColumnMissing(t *testing.T) {
	type row struct {
		Kind string `parquet:"kind"`
		Rank int32  `parquet:"rank"`
	}
	file := writeForeign(t, []row{{"calc", 0}}, parquetgo.KeyValueMetadata(keyVersion, Version),
		parquetgo.KeyValueMetadata(keyOps, "1"))
	if _, err := decode(file); err == nil || !strings.Contains(err.Error(), "expected a column subkind") {
		t.Errorf("got error %v", err)
	}
}

func TestForeignRefused(t *testing.T) {
	type row struct {
		Kind  *string  `parquet:"kind,optional"`
		Rank  *int64   `parquet:"rank,optional"`
		Peer  int64    `parquet:"peer"`
		Comm  int32    `parquet:"comm"`
		Job   int32    `parquet:"job"`
		Host  int32    `parquet:"host"`
		Dims  int64    `parquet:"dims"`
		Bytes int64    `parquet:"bytes"`
		Deps  []*int32 `parquet:"deps,list"`
	}
	calc, zero, one := "calc", int64(0), int64(1)
	rows := func(change func(r []row)) []byte {
		r := []row{{Kind: &calc, Rank: &zero}, {Kind: &calc, Rank: &one}, {Kind: &calc, Rank: &one}}
		change(r)
		return writeForeign(t, r)
	}
	unknown, negative, huge, offset := "jump", int64(-1), int64(1)<<31, int32(1)
	for _, test := range []struct {
		name string
		file []byte
		want string
	}{
		{"unsorted", rows(func(r []row) { r[2].Rank = &zero }), "rows must be sorted by rank"},
		{"rank NULL", rows(func(r []row) { r[0].Rank = nil }), "found NULL"},
		{"rank negative", rows(func(r []row) { r[0].Rank = &negative }), "rank -1"},
		{"rank too large", rows(func(r []row) { r[2].Rank = &huge }), "value 2147483648, expected 32 bits"},
		{"kind NULL", rows(func(r []row) { r[1].Kind = nil }), "trace.parquet: rank 1: op 0: kind: expected one of calc, send, recv, coll, mem, io, found NULL"},
		{"kind unknown", rows(func(r []row) { r[1].Kind = &unknown }), `rank 1: op 0: kind: expected one of calc, send, recv, coll, mem, io, found "jump"`},
		{"peer too large", rows(func(r []row) { r[1].Peer = 1 << 40 }), "column peer: "},
		{"comm", rows(func(r []row) { r[2].Comm = 1 }), "rank 1: op 1: comm: expected 0..0, found 1"},
		{"job", rows(func(r []row) { r[2].Job = 1 }), "rank 1: op 1: job: expected 0..0, found 1"},
		{"host", rows(func(r []row) { r[2].Host = -1 }), "rank 1: op 1: host: expected 0..2147483647, found -1"},
		{"dims", rows(func(r []row) { r[0].Dims = -4 }), "rank 0: op 0: dims: expected 0..2147483647, found -4"},
		{"dims too large", rows(func(r []row) { r[0].Dims = 1 << 31 }), "value 2147483648, expected 32 bits"},
		{"bytes", rows(func(r []row) { r[0].Bytes = -1 }), "rank 0: op 0: bytes: expected 0 or more, found -1"},
		{"deps", rows(func(r []row) { r[0].Deps = []*int32{&offset} }), "rank 0: deps: op 0 depends on op -1"},
		{"deps NULL", rows(func(r []row) { r[2].Deps = []*int32{&offset, nil} }), "NULL in a list"},
		{"no rank", writeForeign(t, []struct {
			Kind string `parquet:"kind"`
		}{{"calc"}}), "expected a column rank"},
		{"no kind", writeForeign(t, []struct {
			Rank int32 `parquet:"rank"`
		}{{0}}), "expected a column kind"},
		{"a double", writeForeign(t, []struct {
			Rank  int32   `parquet:"rank"`
			Kind  string  `parquet:"kind"`
			Bytes float64 `parquet:"bytes"`
		}{{0, "calc", 1}}), "column bytes: expected integers, found DOUBLE"},
		{"a string", writeForeign(t, []struct {
			Rank string `parquet:"rank"`
			Kind string `parquet:"kind"`
		}{{"0", "calc"}}), "column rank: expected integers, found BYTE_ARRAY"},
		{"a list", writeForeign(t, []struct {
			Rank int32    `parquet:"rank"`
			Kind []string `parquet:"kind,list"`
		}{{0, []string{"calc"}}}), "column kind: expected plain values"},
		{"no list", writeForeign(t, []struct {
			Rank int32  `parquet:"rank"`
			Kind string `parquet:"kind"`
			Deps int32  `parquet:"deps"`
		}{{0, "calc", 1}}), "column deps: expected a list"},
		{"a structure", writeForeign(t, []struct {
			Rank int32  `parquet:"rank"`
			Kind string `parquet:"kind"`
			Tag  struct {
				A int64 `parquet:"a"`
				B int64 `parquet:"b"`
			} `parquet:"tag"`
		}{{Kind: "calc"}}), "column tag: it is a structure"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := decode(test.file)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "trace.parquet") {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
