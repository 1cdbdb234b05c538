package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/parquet"

	parquetgo "github.com/parquet-go/parquet-go"
)

// No flipped bit of a page header changes a trace without an error, even without a digest. TRACEDAG_FLIPS=all takes a
// larger trace, too.
func TestFlippedHeadersWithoutDigest(t *testing.T) {
	traces := []*dag.Trace{randomTrace(rand.New(rand.NewPCG(8, 8)), 4, 8)}
	if os.Getenv("TRACEDAG_FLIPS") == "all" {
		traces = append(traces, randomTrace(rand.New(rand.NewPCG(2, 20)), 9, 40))
	}
	for _, trace := range traces {
		file := withoutDigest(t, encode(t, trace))
		want, err := decoded(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := openBytes(file)
		if err != nil {
			t.Fatal(err)
		}
		var headers []int64 // bytes of headers
		for g := range f.groups {
			for _, c := range f.groups[g].chunks {
				for at := c.Start(); at < c.Start()+c.CompressedSize; {
					h, n := pageHeader(t, file[at:])
					for range n {
						headers = append(headers, at)
						at++
					}
					at += int64(h.CompressedPageSize)
				}
			}
		}
		err = par.Each(len(headers), func(i int) error {
			flipped := bytes.Clone(file)
			for bit := range 8 {
				flipped[headers[i]] ^= 1 << bit
				if got, err := decoded(flipped); err == nil && !bytes.Equal(got, want) {
					return fmt.Errorf("byte %d, bit %d: another trace without an error", headers[i], bit)
				}
				flipped[headers[i]] ^= 1 << bit
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Without a digest, a footer that disagrees with itself or with the pages is an error.
func TestInconsistentFooter(t *testing.T) {
	b := dag.NewBuilder(3)
	for i := range int64(60) {
		op := dag.Op{Kind: dag.Calc, Tag: 10 + i%4, Stream: int32(300 + i%3), Bytes: 5 + i}
		if i%2 == 0 {
			op.Name, op.Timed, op.MeasuredStart, op.MeasuredEnd = "x", true, 7, dag.Unmeasured
		}
		b.Rank(int(i / 20)).Add(op)
	}
	file := encode(t, b.Trace())
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, offset, err := f.footer()
	if err != nil {
		t.Fatal(err)
	}
	of := func(m *parquet.Footer, field dag.FieldID) *parquet.Chunk {
		return &m.Groups[0].Chunks[fieldColumn+int(field)]
	}
	for name, c := range map[string]struct {
		change func(m *parquet.Footer)
		want   string
	}{
		"nothing": {func(*parquet.Footer) {}, ""},
		"minimum": {func(m *parquet.Footer) { of(m, dag.FieldTag).Min[0]++ },
			"column tag: expected a valid page, found value 10, expected 11..13, as in the statistics"},
		"maximum":          {func(m *parquet.Footer) { of(m, dag.FieldStream).Max[0]-- }, "value 302, expected 300..301, as in the statistics"},
		"maximum, bytes":   {func(m *parquet.Footer) { of(m, dag.FieldBytes).Max[0]-- }, "value 64, expected 5..63, as in the statistics"},
		"NULLs":            {func(m *parquet.Footer) { of(m, dag.FieldName).Nulls++ }, "column name: expected 31 NULLs, as in the statistics, found 30"},
		"NULLs of times":   {func(m *parquet.Footer) { of(m, dag.FieldMeasuredStart).Nulls-- }, "column measured_start_ps: expected 29 NULLs"},
		"NULLs of nothing": {func(m *parquet.Footer) { of(m, dag.FieldMeasuredEnd).Nulls-- }, "column measured_end_ps: expected 59 NULLs"},
		"ranks": {func(m *parquet.Footer) { m.Groups[0].Chunks[colRank].Max[0]++ },
			"column rank of row group 0: expected ranks 0 to 3, as in the statistics, found 0 to 2"},
		"another column's pages": {func(m *parquet.Footer) {
			m.Groups[0].Chunks[fieldColumn+int(dag.FieldStream)] = m.Groups[0].Chunks[fieldColumn+int(dag.FieldNIC)]
		}, "after column stream of row group 0, which ends at "},
		"a longer chunk": {func(m *parquet.Footer) { of(m, dag.FieldStep).CompressedSize++ }, "bytes of pages before the footer at"},
	} {
		m, err := parquet.ReadFooter(bytes.Clone(footer))
		if err != nil {
			t.Fatal(err)
		}
		c.change(m)
		_, err = decoded(parquet.AppendFooter(bytes.Clone(file[:offset]), &parquet.Footer{
			Schema: writtenSchema(), Groups: m.Groups, Keys: []parquet.KeyValue{{Key: keyRanks, Value: "9"}},
			CreatedBy: "another program",
		}))
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "trace.parquet: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// An unknown kind or subkind names rank and op, wherever in the file its row is; one that no row has is no error.
func TestUnknownLabels(t *testing.T) {
	type row struct {
		Kind    *string `parquet:"kind,optional,dict"`
		Subkind string  `parquet:"subkind"`
		Rank    int32   `parquet:"rank"`
	}
	labels := strings.Join([]string{"barrier", "bcast", "reduce"}, ", ")
	for _, size := range []int64{1000, 7} { // rows of a row group
		for at := range 60 {
			for _, c := range []struct {
				change func(r *row)
				want   string
			}{
				{func(r *row) { s := "jump"; r.Kind = &s }, `kind: expected one of calc, send, recv, coll, mem, io, found "jump"`},
				{func(r *row) { r.Kind = nil }, "kind: expected one of calc, send, recv, coll, mem, io, found NULL"},
				{func(r *row) { r.Subkind = "hop" }, "subkind: expected one of " + labels},
			} {
				rows := make([]row, 60)
				for i := range rows {
					calc := dag.Kind(i % 3).String()
					rows[i] = row{Kind: &calc, Rank: int32(i / 20)}
				}
				c.change(&rows[at])
				file := writeForeign(t, rows, parquetgo.MaxRowsPerRowGroup(size))
				want := fmt.Sprintf("trace.parquet: rank %d: op %d: %s", at/20, at%20, c.want)
				f, err := openBytes(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.ReadAll(); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Fatalf("error %v, want %q", err, want)
				}
				if _, err := dag.ReadAll(f); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Fatalf("batch by batch: error %v, want %q", err, want)
				}
				for rank := range 3 {
					_, err := f.ReadRanks(rank, rank+1)
					if rank == at/20 && (err == nil || !strings.HasPrefix(err.Error(), want)) {
						t.Fatalf("rank %d alone: error %v, want %q", rank, err, want)
					}
					if rank != at/20 && err != nil {
						t.Fatalf("rank %d alone: error %v about another rank", rank, err)
					}
				}
			}
		}
	}
	e := &labelError{rank: 3, op: 4, column: "kind", found: `"jump"`, known: "calc", newer: "1.99"}
	const want = `rank 3: op 4: kind: expected one of calc, found "jump"; the file has schema version 1.99, newer than 1.3: update tracedag`
	if e.Error() != want {
		t.Errorf("got %q, want %q", e.Error(), want)
	}
}
