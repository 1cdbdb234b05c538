package store

// Files that are damaged, cut or made to do harm.

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	parquetformat "github.com/parquet-go/parquet-go/format"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/parquet"
)

// rewritten appends the end of a file as another program would write it, whose metadata may be a copy of ours.
func rewritten(dst []byte, groups []parquet.RowGroup, keys []parquet.KeyValue) []byte {
	return parquet.AppendFooter(dst, &parquet.Footer{
		Schema: writtenSchema(), Groups: groups, Keys: keys, SortedBy: colRank, CreatedBy: "another program 7",
	})
}

// withKeys returns the file with other metadata in its footer.
func withKeys(tb testing.TB, file []byte, keys ...parquet.KeyValue) []byte {
	tb.Helper()
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, offset, err := f.footer()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := parquet.ReadFooter(footer)
	if err != nil {
		tb.Fatal(err)
	}
	return rewritten(bytes.Clone(file[:offset]), m.Groups, keys)
}

func smallTrace() *dag.Trace {
	return randomTrace(rand.New(rand.NewPCG(8, 8)), 4, 30)
}

func TestVersions(t *testing.T) {
	trace := smallTrace()
	trace.Steps = 1 // all columns
	file := encode(t, trace)
	keys := func(version string) []parquet.KeyValue {
		keys, err := metadata(trace.Meta, trace.Comms, len(trace.Ranks), trace.Ops())
		if err != nil {
			t.Fatal(err)
		}
		keys[0].Value = version
		return append(keys, parquet.KeyValue{Key: "tracedag.newer", Value: "ignored"},
			parquet.KeyValue{Key: "pandas", Value: "{}"})
	}
	for _, version := range []string{"1.0", "1.1", "1.99"} {
		sameTrace(t, mustDecode(t, withKeys(t, file, keys(version)...)), trace)
	}
	for version, want := range map[string]string{
		"2.0":  "expected schema version 1.x, found 2.0; update tracedag",
		"10.3": "found 10.3",
		"0.9":  `tracedag.version: expected a version such as "` + Version + `", found "0.9"`,
		"1":    `", found "1"`,
		"x.y":  `", found "x.y"`,
	} {
		_, err := decode(withKeys(t, file, keys(version)...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %s: got error %v, want %q", version, err, want)
		}
	}
}

func TestMetadataRefused(t *testing.T) {
	b := dag.NewBuilder(3)
	b.Rank(2).Calc(1)
	file := encode(t, b.Trace())
	for _, test := range []struct{ key, value, want string }{
		{keyRanks, "2", `tracedag.ranks: expected a number of 3 or more, found "2"`},
		{keyRanks, "many", `tracedag.ranks: expected a number of 3 or more, found "many"`},
		{keyRanks, "-1", `tracedag.ranks: expected a number of 3 or more, found "-1"`},
		{keyRanks, "2000000000", "expected at most 1048576 more ranks than ops, found 2000000000 ranks and 1 ops"},
		{keyOps, "2", `tracedag.ops: expected 1, the number of rows, found "2"`},
		{keyOps, "x", `tracedag.ops: expected 1, the number of rows, found "x"`},
		{keyRanks, "99999999999", `tracedag.ranks: expected a number of 3 or more, found "99999999999"`},
		{keyComms, "[", "tracedag.comms: unexpected end of JSON input"},
		{keyComms, `[{"ranges":[[0,1,4]]}]`, "tracedag.comms: communicator 0: range of 4 ranks"},
		{keyComms, `[{"ranges":[[0,0,3]]}]`, "tracedag.comms: communicator 0: rank 0 is listed twice"},
		{keyComms, `[{"ranges":[[0,1,9000000000]]}]`, "tracedag.comms: "},
		{keyNodes, `[[0,1,2]]`, "tracedag.nodes: expected nodes of 3 ranks, found 2"},
		{keyNodes, `[[0,0,2000000000]]`, "tracedag.nodes: expected nodes of 3 ranks, found more"},
		{keyNodes, `[[0,-1,3]]`, "tracedag.nodes: expected a first node, a stride and a count of nodes in 0..2147483647, found 0, -1, 3"},
		{keyNodes, `[[2147483647,2147483647,3]]`, "tracedag.nodes: expected a first node"},
		{keyNodes, `[[0,0,-1]]`, "tracedag.nodes: expected a first node"},
		{keyJobs, `{}`, "tracedag.jobs: "},
		{keyProvenance, `[1]`, "tracedag.provenance: "},
	} {
		_, err := decode(withKeys(t, file, parquet.KeyValue{Key: keyVersion, Value: Version},
			parquet.KeyValue{Key: test.key, Value: test.value}))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s = %s: got error %v, want %q", test.key, test.value, err, test.want)
		}
	}
	thousand := withKeys(t, file, parquet.KeyValue{Key: keyRanks, Value: "1000"})
	if trace := mustDecode(t, thousand); len(trace.Ranks) != 1000 {
		t.Errorf("%d ranks, want 1000", len(trace.Ranks))
	}
}

func TestTruncated(t *testing.T) {
	file := encode(t, smallTrace())
	for n := range len(file) {
		if _, err := decode(file[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were read as a file", n, len(file))
		}
		cut := append(bytes.Clone(file[:n]), file[min(n+7, len(file)):]...)
		if _, err := decode(cut); err == nil && n+7 < len(file)-8 {
			t.Logf("7 bytes cut out at %d do no harm", n)
		}
	}
	var where *format.SyntaxError
	if _, err := decode(file[:len(file)-1]); !errors.As(err, &where) || where.Offset != int64(len(file)-5) {
		t.Errorf("got error %v, want one with the offset of the end", err)
	}
}

// withoutDigest returns the file with the footer of another program.
func withoutDigest(tb testing.TB, file []byte) []byte {
	tb.Helper()
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, offset, err := f.footer()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := parquet.ReadFooter(footer)
	if err != nil {
		tb.Fatal(err)
	}
	keys := slices.DeleteFunc(m.Keys, func(k parquet.KeyValue) bool { return k.Key == keyDigest })
	return rewritten(bytes.Clone(file[:offset]), m.Groups, keys)
}

// Pages have checksums: without a digest, too, a flipped bit in one is an error. Elsewhere it is an error or harmless,
// but no crash.
func TestBitFlips(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	trace := smallTrace()
	file := withoutDigest(t, encode(t, trace))
	sameTrace(t, mustDecode(t, file), trace)
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	inPage := make([]bool, len(file)) // the body of a page
	for g := range f.groups {
		for _, c := range f.groups[g].chunks {
			for at := c.Start(); at < c.Start()+c.CompressedSize; {
				h, n := pageHeader(t, file[at:])
				at += int64(n)
				for range h.CompressedPageSize {
					inPage[at] = true
					at++
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	flipped := bytes.Clone(file)
	for i := range file {
		bit := byte(1) << rng.IntN(8)
		flipped[i] ^= bit
		if _, err := decode(flipped); err == nil && inPage[i] {
			t.Fatalf("a flipped bit at offset %d, in a page, went unnoticed", i)
		}
		flipped[i] ^= bit
	}
}

// pageHeader returns the header at the start of b and its length.
func pageHeader(tb testing.TB, b []byte) (h parquetformat.PageHeader, n int) {
	tb.Helper()
	r := bytes.NewReader(b)
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&h); err != nil {
		tb.Fatal(err)
	}
	return h, len(b) - r.Len()
}

// withoutChecksums returns a file whose pages have none, so that damage reaches the decoders.
func withoutChecksums(tb testing.TB, file []byte) []byte {
	tb.Helper()
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, _, err := f.footer()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := parquet.ReadFooter(footer)
	if err != nil {
		tb.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	out := []byte(parquet.Magic)
	for g := range m.Groups {
		for c := range m.Groups[g].Chunks {
			meta := &m.Groups[g].Chunks[c]
			chunk := file[meta.Start() : meta.Start()+meta.CompressedSize]
			moved := *meta
			moved.Codec, moved.DictionaryOffset, moved.FirstPage = parquet.Uncompressed, 0, 0
			start := int64(len(out))
			for len(chunk) > 0 {
				h, n := pageHeader(tb, chunk)
				body, err := z.DecodeAll(chunk[n:n+int(h.CompressedPageSize)], nil)
				if err != nil {
					tb.Fatal(err)
				}
				chunk = chunk[n+int(h.CompressedPageSize):]
				h.CompressedPageSize, h.CRC = h.UncompressedPageSize, 0
				header, err := thrift.Marshal(new(thrift.CompactProtocol), h)
				if err != nil {
					tb.Fatal(err)
				}
				if h.Type == parquetformat.DictionaryPage {
					moved.DictionaryOffset = int64(len(out))
				} else if moved.FirstPage == 0 {
					moved.FirstPage = int64(len(out))
				}
				out = append(append(out, header...), body...)
			}
			moved.CompressedSize = int64(len(out)) - start
			moved.Size = moved.CompressedSize
			*meta = moved
		}
	}
	return rewritten(out, m.Groups, m.Keys)
}

// Without checksums and compression every byte of every page reaches a decoder.
func TestBitFlipsInDecoders(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	trace := smallTrace()
	file := withoutChecksums(t, encode(t, trace))
	sameTrace(t, mustDecode(t, file), trace)
	rng := rand.New(rand.NewPCG(5, 5))
	flipped := bytes.Clone(file)
	step := 4
	if os.Getenv("TRACEDAG_LONG") != "" {
		step = 1
	}
	for i := rng.IntN(step); i < len(file); i += step {
		before := flipped[i]
		flipped[i] ^= byte(1 + rng.IntN(255))
		checkReader(t, flipped)
		if _, err := decode(flipped); err != nil && strings.Contains(err.Error(), "internal error") {
			t.Fatalf("byte %d: %v", i, err)
		}
		flipped[i] = before
	}
}

// A small file must not make a reader allocate what it claims to hold.
func TestClaims(t *testing.T) {
	file := encode(t, smallTrace())
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, offset, err := f.footer()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m *parquet.Footer){
		"rows":   func(m *parquet.Footer) { m.Groups[0].Rows = 1 << 30 },
		"minus":  func(m *parquet.Footer) { m.Groups[0].Rows = -1 },
		"values": func(m *parquet.Footer) { m.Groups[0].Chunks[colDeps].Values = 1 << 40 },
		"size":   func(m *parquet.Footer) { m.Groups[0].Chunks[fieldColumn+int(dag.FieldTag)].CompressedSize = 1 << 40 },
		"offset": func(m *parquet.Footer) {
			m.Groups[0].Chunks[colDeps].DictionaryOffset, m.Groups[0].Chunks[colDeps].FirstPage = 1<<40, 1<<40
		},
		"before":  func(m *parquet.Footer) { m.Groups[0].Chunks[fieldColumn+int(dag.FieldTag)].FirstPage = -1 },
		"columns": func(m *parquet.Footer) { m.Groups[0].Chunks = m.Groups[0].Chunks[:3] },
		"codec":   func(m *parquet.Footer) { m.Groups[0].Chunks[fieldColumn+int(dag.FieldTag)].Codec = 99 },
		"type":    func(m *parquet.Footer) { m.Groups[0].Chunks[fieldColumn+int(dag.FieldTag)].Type = parquet.Int32 },
		"ranks":   func(m *parquet.Footer) { m.Groups[0].Chunks[colRank].Max = []byte{0, 0, 0, 0} },
		"order":   func(m *parquet.Footer) { m.Groups = append(m.Groups, m.Groups[0]) },
	} {
		m, err := parquet.ReadFooter(footer)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		if _, err := decode(rewritten(bytes.Clone(file[:offset]), m.Groups, m.Keys)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzRead looks for files that make the reader crash, and checks that what it accepts can be written and read again.
// Run it with -fuzzminimizetime=10x: files are large for the fuzzer, which else spends its time on making them smaller.
func FuzzRead(f *testing.F) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the fuzzer wants the same path every time
	periodic := dag.NewBuilder(2)
	for i := range 600 {
		periodic.Rank(i / 300).Add(dag.Op{Kind: dag.Kind(i % 3), Tag: int64(i), Bytes: 64})
	}
	for _, trace := range []*dag.Trace{
		randomTrace(rand.New(rand.NewPCG(8, 8)), 2, 4), dag.NewBuilder(0).Trace(), dag.NewBuilder(2).Trace(),
		periodic.Trace(),
	} {
		file := encode(f, trace)
		f.Add(file)
		f.Add(withoutChecksums(f, file))
	}
	_, rows := foreignTrace(rand.New(rand.NewPCG(1, 4)))
	f.Add(writeForeign(f, rows[:5]))
	f.Add(encodeGroups(f, randomTrace(rand.New(rand.NewPCG(8, 9)), 4, 8), 5, true))
	f.Fuzz(func(t *testing.T, file []byte) {
		checkReader(t, file)
		trace, err := decode(file)
		if err != nil {
			if strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
			return
		}
		if crc32.ChecksumIEEE(file)%4 == 0 { // writing takes longer than all the rest
			again := mustDecode(t, encode(t, trace))
			sameRanks(t, again.Ranks, trace.Ranks)
		}
	})
}

// checkReader fails the test if a reader of batches crashes, or reads other ranks than ReadRanks or none where that
// reads some.
func checkReader(t *testing.T, file []byte) {
	f, err := openBytes(file)
	if err != nil {
		return
	}
	read, readAll := f.NewReader(dag.Replay), f.NewReader(dag.All)
	for _, b := range f.batches() {
		got, readerErr := read(b)
		all, allErr := readAll(b)
		for _, err := range []error{readerErr, allErr} {
			if err != nil && strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
		}
		want, err := f.ReadRanks(b.First, b.Last)
		if (err == nil) != (allErr == nil) {
			t.Fatalf("all columns: error %v, expected %v", allErr, err)
		}
		switch {
		case err == nil && readerErr == nil:
			sameRanks(t, got, replayed(want))
			sameRanks(t, all, want)
		case err == nil:
			t.Fatal(readerErr)
		}
	}
	checkGradual(t, f)
}

// checkGradual fails the test if a reader of parts crashes, reads other ranks than ReadRanks, or none where that reads
// those of all parts.
func checkGradual(t *testing.T, f *File) {
	s := f.gradually(3)
	h, headerErr := s.Header()
	want, err := f.ReadRanks(0, f.descr.ranks)
	if headerErr != nil {
		if err == nil || strings.Contains(headerErr.Error(), "internal error") {
			t.Fatalf("header: error %v, expected %v", headerErr, err)
		}
		return
	}
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		switch got, readErr := read(b); {
		case readErr == nil && err == nil:
			sameRanks(t, got, want[b.First:b.Last])
		case readErr != nil && (err == nil || strings.Contains(readErr.Error(), "internal error")):
			t.Fatalf("batch %+v: error %v, expected %v", b, readErr, err)
		}
	}
}
