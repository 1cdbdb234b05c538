package store

// Files that are damaged, cut or made to do harm.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// withKeys returns the file with other metadata in its footer.
func withKeys(tb testing.TB, file []byte, keys ...keyValue) []byte {
	tb.Helper()
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, offset, err := f.footer()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := readFooter(footer)
	if err != nil {
		tb.Fatal(err)
	}
	out := appendFooter(bytes.Clone(file[:offset]), m.groups, keys)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-int(offset)))
	return append(out, magic...)
}

func smallTrace() *dag.Trace {
	return randomTrace(rand.New(rand.NewPCG(8, 8)), 4, 30)
}

func TestVersions(t *testing.T) {
	trace := smallTrace()
	file := encode(t, trace)
	keys := func(version string) []keyValue {
		keys, err := metadata(trace.Meta, trace.Comms, len(trace.Ranks), trace.Ops())
		if err != nil {
			t.Fatal(err)
		}
		keys[0].value = version
		return append(keys, keyValue{"tracedag.newer", "ignored"}, keyValue{"pandas", "{}"})
	}
	for _, version := range []string{"1.0", "1.1", "1.99"} {
		sameTrace(t, mustDecode(t, withKeys(t, file, keys(version)...)), trace)
	}
	for version, want := range map[string]string{
		"2.0":  "the file has schema version 2.0 and this program reads 1.x: a newer tracedag is needed",
		"10.3": "schema version 10.3",
		"0.9":  `tracedag.version is "0.9", expected a version such as "1.1"`,
		"1":    `tracedag.version is "1", expected`,
		"x.y":  `tracedag.version is "x.y", expected`,
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
		{keyRanks, "2", `tracedag.ranks is "2", expected a number not below 3`},
		{keyRanks, "many", `tracedag.ranks is "many"`},
		{keyRanks, "-1", `tracedag.ranks is "-1"`},
		{keyRanks, "2000000000", "2000000000 ranks with 1 ops, expected at most 1048576 ranks more than ops"},
		{keyOps, "2", `tracedag.ops is "2", but there are 1 rows`},
		{keyOps, "x", `tracedag.ops is "x", but there are 1 rows`},
		{keyRanks, "99999999999", `tracedag.ranks is "99999999999"`},
		{keyComms, "[", "tracedag.comms: unexpected end of JSON input"},
		{keyComms, `[{"ranges":[[0,1,4]]}]`, "tracedag.comms: communicator 0: range of 4 ranks"},
		{keyComms, `[{"ranges":[[0,0,3]]}]`, "tracedag.comms: communicator 0: rank 0 twice"},
		{keyComms, `[{"ranges":[[0,1,9000000000]]}]`, "tracedag.comms: "},
		{keyNodes, `[[0,1,2]]`, "tracedag.nodes: nodes of 2 ranks in a trace of 3"},
		{keyNodes, `[[0,0,2000000000]]`, "tracedag.nodes: more than the 3 ranks"},
		{keyNodes, `[[0,-1,3]]`, "tracedag.nodes: run [0 -1 3]"},
		{keyNodes, `[[2147483647,2147483647,3]]`, "tracedag.nodes: run"},
		{keyNodes, `[[0,0,-1]]`, "tracedag.nodes: run"},
		{keyJobs, `{}`, "tracedag.jobs: "},
		{keyProvenance, `[1]`, "tracedag.provenance: "},
	} {
		_, err := decode(withKeys(t, file, keyValue{keyVersion, Version}, keyValue{test.key, test.value}))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s = %s: got error %v, want %q", test.key, test.value, err, test.want)
		}
	}
	if trace := mustDecode(t, withKeys(t, file, keyValue{keyRanks, "1000"})); len(trace.Ranks) != 1000 {
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

// Pages have checksums: a flipped bit in one is an error. Elsewhere it is an error or harmless, but no crash.
func TestBitFlips(t *testing.T) {
	trace := smallTrace()
	file := encode(t, trace)
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	inPage := make([]bool, len(file)) // the body of a page
	for g := range f.groups {
		for _, c := range f.groups[g].chunks {
			for at := c.start(); at < c.start()+c.compressedSize; {
				h, n, err := readPageHeader(file[at:])
				if err != nil {
					t.Fatal(err)
				}
				at += int64(n)
				for range h.compressed {
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

// withoutChecksums returns a file whose pages have none, so that damage reaches the decoders.
func withoutChecksums(tb testing.TB, file []byte) []byte {
	tb.Helper()
	f := &File{at: bytes.NewReader(file), size: int64(len(file))}
	footer, _, err := f.footer()
	if err != nil {
		tb.Fatal(err)
	}
	m, err := readFooter(footer)
	if err != nil {
		tb.Fatal(err)
	}
	d := newDecoder()
	out := []byte(magic)
	for g := range m.groups {
		for c := range m.groups[g].chunks {
			meta := &m.groups[g].chunks[c]
			chunk := file[meta.start() : meta.start()+meta.compressedSize]
			moved := *meta
			moved.codec, moved.encodings = codecNone, []encoding{encPlain, encRLE, encRLEDictionary}
			moved.dictionaryOffset, moved.firstPage = 0, 0
			start := int64(len(out))
			for len(chunk) > 0 {
				h, n, err := readPageHeader(chunk)
				if err != nil {
					tb.Fatal(err)
				}
				body, err := d.decompress(chunk[n:n+int(h.compressed)], int(h.size), meta.codec)
				if err != nil {
					tb.Fatal(err)
				}
				chunk = chunk[n+int(h.compressed):]
				w := thriftWriter{buf: out}
				w.int32(1, int32(h.typ))
				w.int32(2, int32(len(body)))
				w.int32(3, int32(len(body)))
				if h.typ == pageDictionary {
					moved.dictionaryOffset = int64(len(out))
					w.begin(7)
					w.int32(1, h.values)
					w.int32(2, int32(encPlain))
				} else {
					if moved.firstPage == 0 {
						moved.firstPage = int64(len(out))
					}
					w.begin(5)
					w.int32(1, h.values)
					w.int32(2, int32(h.encoding))
					w.int32(3, int32(encRLE))
					w.int32(4, int32(encRLE))
				}
				w.end()
				w.end()
				out = append(w.buf, body...)
			}
			moved.compressedSize = int64(len(out)) - start
			moved.size = moved.compressedSize
			*meta = moved
		}
	}
	offset := len(out)
	out = appendFooter(out, m.groups, m.keys)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-offset))
	return append(out, magic...)
}

// Without checksums and compression every byte of every page reaches a decoder.
func TestBitFlipsInDecoders(t *testing.T) {
	trace := smallTrace()
	file := withoutChecksums(t, encode(t, trace))
	sameTrace(t, mustDecode(t, file), trace)
	rng := rand.New(rand.NewPCG(5, 5))
	flipped := bytes.Clone(file)
	for i := range file {
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
	for name, change := range map[string]func(m *fileMeta){
		"rows":   func(m *fileMeta) { m.groups[0].rows = 1 << 30 },
		"minus":  func(m *fileMeta) { m.groups[0].rows = -1 },
		"values": func(m *fileMeta) { m.groups[0].chunks[colDeps].values = 1 << 40 },
		"size":   func(m *fileMeta) { m.groups[0].chunks[colTag].compressedSize = 1 << 40 },
		"offset": func(m *fileMeta) {
			m.groups[0].chunks[colDeps].dictionaryOffset, m.groups[0].chunks[colDeps].firstPage = 1<<40, 1<<40
		},
		"before":  func(m *fileMeta) { m.groups[0].chunks[colTag].firstPage = -1 },
		"columns": func(m *fileMeta) { m.groups[0].chunks = m.groups[0].chunks[:3] },
		"codec":   func(m *fileMeta) { m.groups[0].chunks[colTag].codec = 99 },
		"type":    func(m *fileMeta) { m.groups[0].chunks[colTag].typ = typeInt32 },
		"ranks":   func(m *fileMeta) { m.groups[0].chunks[colRank].max = []byte{0, 0, 0, 0} },
		"order":   func(m *fileMeta) { m.groups = append(m.groups, m.groups[0]) },
	} {
		m, err := readFooter(footer)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		out := appendFooter(bytes.Clone(file[:offset]), m.groups, m.keys)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-int(offset)))
		if _, err := decode(append(out, magic...)); err == nil {
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
		again := mustDecode(t, encode(t, trace))
		sameRanks(t, again.Ranks, trace.Ranks)
	})
}

// checkReader fails the test if a reader of batches crashes, or reads other ranks than ReadRanks or none where that
// reads some.
func checkReader(t *testing.T, file []byte) {
	f, err := openBytes(file)
	if err != nil {
		return
	}
	read := f.Reader()
	for _, b := range f.Batches() {
		got, readerErr := read(b)
		if readerErr != nil && strings.Contains(readerErr.Error(), "internal error") {
			t.Fatal(readerErr)
		}
		want, err := f.ReadRanks(b.First, b.Last)
		switch {
		case err == nil && readerErr == nil:
			sameRanks(t, got, replayed(want))
		case err == nil:
			t.Fatal(readerErr)
		}
	}
}
