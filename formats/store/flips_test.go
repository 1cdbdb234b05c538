package store

// Damage and the digest: no flipped bit of a file goes unnoticed unless it changes nothing.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/parquet"
)

// flippedStore is a store whose bits are flipped.
type flippedStore struct {
	name  string
	short bool // all bits are flipped in every run of the tests
	file  func(tb testing.TB) []byte
}

// flippedStores use every encoding, page form and key of the metadata that the package writes.
var flippedStores = []flippedStore{
	{"no ranks", true, func(tb testing.TB) []byte { return encode(tb, dag.NewBuilder(0).Trace()) }},
	{"ranks without ops", true, func(tb testing.TB) []byte { return encode(tb, dag.NewBuilder(3).Trace()) }},
	{"metadata", true, func(tb testing.TB) []byte {
		return encode(tb, randomTrace(rand.New(rand.NewPCG(1, 20)), 5, 0))
	}},
	{"every column", true, func(tb testing.TB) []byte {
		return encode(tb, randomTrace(rand.New(rand.NewPCG(8, 8)), 4, 12))
	}},
	{"row groups within ranks", false, func(tb testing.TB) []byte {
		return encodeGroups(tb, randomTrace(rand.New(rand.NewPCG(8, 9)), 4, 8), 5, true)
	}},
	{"row groups of ranks", false, func(tb testing.TB) []byte {
		return encodeGroups(tb, randomTrace(rand.New(rand.NewPCG(2, 20)), 9, 40), 60, false)
	}},
	{"many values", false, func(tb testing.TB) []byte {
		b := dag.NewBuilder(2)
		for i := range int64(600) {
			b.Rank(int(i / 300)).Add(dag.Op{Kind: dag.Kind(i % 3), Tag: i, Bytes: i * i * i % 1009, Job: int32(i % 3)})
		}
		b.Meta().Jobs = []string{"a", "b", "c"}
		return encode(tb, b.Trace())
	}},
	{"strings", false, func(tb testing.TB) []byte {
		b := dag.NewBuilder(1)
		for i := range 200 {
			b.Rank(0).Add(dag.Op{Name: fmt.Sprint("op ", i), Attrs: fmt.Sprintf(`{"id":%d}`, i%5)})
		}
		return encode(tb, b.Trace())
	}},
	{"batch by batch", false, func(tb testing.TB) []byte {
		return encodeSource(tb, dag.FromTrace(randomTrace(rand.New(rand.NewPCG(3, 20)), 16, 30)))
	}},
}

// decoded returns the trace of a file in a form to compare, after reading it at once and batch by batch.
func decoded(file []byte) ([]byte, error) {
	f, err := openBytes(file)
	if err != nil {
		return nil, err
	}
	trace, err := f.ReadAll()
	if err != nil {
		return nil, err
	}
	all, err := dag.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read at once, but not batch by batch: %w", err)
	}
	var out bytes.Buffer
	for _, t := range []*dag.Trace{trace, all} {
		if err := Write(&out, t); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// Every flipped bit is an error or leaves the same trace. TRACEDAG_LONG takes all bits of these stores, TRACEDAG_FLIPS=all
// all bits of all stores; both report how many were errors.
func TestFlippedBits(t *testing.T) {
	all := os.Getenv("TRACEDAG_FLIPS") == "all"
	for _, s := range flippedStores {
		if !s.short && !all {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			file := s.file(t)
			want, err := decoded(file)
			if err != nil {
				t.Fatal(err)
			}
			var refused, same atomic.Int64
			step := 3
			switch {
			case testing.Short():
				step = 16
			case all || os.Getenv("TRACEDAG_LONG") != "":
				step = 1
			}
			err = par.Each(len(file)/step, func(i int) error {
				i *= step
				flipped := bytes.Clone(file)
				for bit := range 8 {
					flipped[i] ^= 1 << bit
					switch got, err := decoded(flipped); {
					case err == nil && !bytes.Equal(got, want):
						return fmt.Errorf("byte %d of %d, bit %d: another trace without an error", i, len(file), bit)
					case err == nil:
						same.Add(1)
					case strings.Contains(err.Error(), "internal error") || !strings.HasPrefix(err.Error(), "trace.parquet: "):
						return fmt.Errorf("byte %d, bit %d: %w", i, bit, err)
					default:
						refused.Add(1)
					}
					flipped[i] ^= 1 << bit
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes: %d flips refused, %d without effect", len(file), refused.Load(), same.Load())
			if harmless := int64(8 * len(creator+Version)); same.Load() > harmless {
				t.Errorf("%d flips have no effect, expected at most those of the creator's name, %d", same.Load(), harmless)
			}
		})
	}
}

// A digest that does not match names file, column and row group, and the remedy, whichever part is read.
func TestDigestRefused(t *testing.T) {
	trace := randomTrace(rand.New(rand.NewPCG(2, 20)), 9, 40)
	file := encodeGroups(t, trace, 60, false)
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.groups) < 3 || f.Unverified() != "" {
		t.Fatalf("%d row groups, %q", len(f.groups), f.Unverified())
	}
	column := fieldColumn + int(dag.FieldName) // unused by backends
	at := f.groups[1].chunks[column].Start()
	broken := bytes.Clone(file)
	broken[at+4] ^= 1
	f, err = openBytes(broken)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("trace.parquet: offset %d: column name: expected pages of row group 1 with checksum ", at)
	if _, err := f.ReadAll(); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), damaged) {
		t.Errorf("all: error %v, want %q", err, want)
	}
	replay, every := f.NewReader(dag.Replay), f.NewReader(dag.All)
	for i, b := range f.batches() {
		hit := b.First <= int(f.groups[1].last) && b.Last > int(f.groups[1].first)
		if _, err := f.ReadRanks(b.First, b.Last); (err != nil) != hit {
			t.Errorf("batch %d: error %v, the damage is in row group 1", i, err)
		}
		if _, err := every(b); (err != nil) != hit {
			t.Errorf("batch %d: error %v, the damage is in row group 1", i, err)
		}
		if _, err := replay(b); err != nil {
			t.Errorf("batch %d: error %v about a column that is not read", i, err)
		}
	}

	_, offset, err := f.footer()
	if err != nil {
		t.Fatal(err)
	}
	broken = bytes.Replace(file, []byte("a title"), []byte("a tilte"), 1)
	want = fmt.Sprintf("trace.parquet: offset %d: expected a footer with checksum ", offset)
	if _, err := openBytes(broken); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), damaged) {
		t.Errorf("metadata: error %v, want %q", err, want)
	}
	for name, change := range map[string]func([]byte) []byte{
		"the key":            func(b []byte) []byte { return bytes.Replace(b, []byte(keyDigest), []byte("tracedag.digist"), 1) },
		"the algorithm":      func(b []byte) []byte { return bytes.Replace(b, []byte("crc32c "), []byte("crc32d "), 1) },
		"two files in one":   func(b []byte) []byte { return append(bytes.Clone(b), b...) },
		"a file without ops": func(b []byte) []byte { return append(bytes.Clone(b), encode(t, dag.NewBuilder(0).Trace())...) },
		"bytes between":      func(b []byte) []byte { return append(append(bytes.Clone(b[:offset]), 0), b[offset:]...) },
	} {
		if _, err := openBytes(change(file)); err == nil || !strings.HasSuffix(err.Error(), damaged) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Files of a newer minor version, which may have more columns and another digest, are read; so are files without a
// digest, of older versions and of other programs.
func TestDigestAbsent(t *testing.T) {
	trace := smallTrace()
	trace.Steps = 1 // all columns
	file := encode(t, trace)
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	footer, offset, err := f.footer()
	if err != nil {
		t.Fatal(err)
	}
	m, err := parquet.ReadFooter(footer)
	if err != nil {
		t.Fatal(err)
	}
	keys := func(version string, digest ...parquet.KeyValue) []parquet.KeyValue {
		keys, err := metadata(trace.Meta, trace.Comms, len(trace.Ranks), trace.Ops())
		if err != nil {
			t.Fatal(err)
		}
		keys[0].Value = version
		return append(keys, digest...)
	}
	own := m.Keys[len(m.Keys)-1]
	for _, c := range []struct {
		name, creator string
		keys          []parquet.KeyValue
		want          string // in the reason why it is unverified, or in the error
		refused       bool
	}{
		{"DuckDB", "DuckDB", keys(Version), `another program wrote it, "DuckDB"`, false},
		{"no creator", "", keys("1.1"), "another program wrote it)", false},
		{"pyarrow copies the metadata", "parquet-cpp-arrow version 21.0.0", m.Keys, "parquet-cpp-arrow", false},
		{"the creator is lost", "", m.Keys, "a footer with checksum", true},
		{"creator and digest are lost", "", append(keys(Version), parquet.KeyValue{Key: "x", Value: keyDigest}), "found neither",
			true},
		{"an older version", creator + "1.1", keys("1.1"), "schema 1.1 has none", false},
		{"the digest is lost", creator + Version, keys(Version), "the key tracedag.digest, found none", true},
		{"a newer digest", creator + "1.99", keys("1.99", parquet.KeyValue{Key: keyDigest, Value: "blake3 x"}),
			`cannot check "blake3"`, false},
		{"an unknown digest", creator + Version, keys(Version, parquet.KeyValue{Key: keyDigest, Value: "blake3 x"}),
			`found "blake3 x"`, true},
		{"a digest of something else", creator + Version, keys(Version, own), "a footer with checksum", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := parquet.AppendFooter(bytes.Clone(file[:offset]), &parquet.Footer{
				Schema: writtenSchema(), Groups: m.Groups, Keys: c.keys, SortedBy: colRank, CreatedBy: c.creator,
			})
			f, err := openBytes(file)
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), damaged) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if reason := f.Unverified(); !strings.Contains(reason, c.want) {
				t.Errorf("unverified because %q, want %q", reason, c.want)
			}
			got, err := f.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			sameRanks(t, got.Ranks, trace.Ranks)
		})
	}
	newer := appendFooter(bytes.Clone(file[:offset]), offset, m.Groups, keys("1.99"), own.Value[len("crc32c 00000000"):])
	f, err = openBytes(newer)
	if err != nil || f.Unverified() != "" {
		t.Fatalf("a newer version: error %v, %v", err, f.Unverified())
	}
	sameTrace(t, mustDecode(t, newer), trace)

	old, err := os.ReadFile(filepath.Join("testdata", "version-1.0.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = openBytes(old); err != nil || !strings.Contains(f.Unverified(), "schema 1.0 has none") {
		t.Errorf("version 1.0: error %v, %v", err, f.Unverified())
	}
}

// A file that is cut, read from a pipe or not, is an error that begins with the file's name.
func TestTruncatedNamesFile(t *testing.T) {
	file := encode(t, smallTrace())
	for n := range len(file) {
		for _, piped := range []bool{false, true} {
			in := &format.Input{Name: "cut.parquet", Reader: io.MultiReader(bytes.NewReader(file[:n]))}
			if !piped {
				in.At, in.Size = bytes.NewReader(file[:n]), int64(n)
			} else if n%64 != 0 {
				continue
			}
			source, err := open(in, format.ReadOptions{})
			if err == nil {
				source.Close()
			}
			var syntax *format.SyntaxError
			if err == nil || !strings.HasPrefix(err.Error(), "cut.parquet: ") || !errors.As(err, &syntax) {
				t.Fatalf("the first %d of %d bytes: error %v", n, len(file), err)
			}
		}
	}
	length := bytes.Clone(file)
	binary.LittleEndian.PutUint32(length[len(length)-8:], 1<<31)
	if _, err := openBytes(length); err == nil || !strings.HasPrefix(err.Error(), "trace.parquet: ") {
		t.Errorf("error %v", err)
	}
}

// TestDigestOfOps: the digest of ops does not depend on provenance, differs for other ops, and Verify finds damage.
func TestDigestOfOps(t *testing.T) {
	trace := randomTrace(rand.New(rand.NewPCG(2, 20)), 9, 40)
	open := func(file []byte) *File {
		f, err := openBytes(file)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	file := encodeGroups(t, trace, 60, false)
	first := open(file)
	moved := *trace
	moved.Provenance = append(moved.Provenance, dag.Provenance{Program: "another"})
	if second := open(encodeGroups(t, &moved, 60, false)); first.Digest() == "" || second.Digest() != first.Digest() {
		t.Error("the digests of stores with the same ops differ")
	}
	other := *trace
	other.Ranks = dag.CopyRanks(trace.Ranks)
	other.Ranks[3] = other.Ranks[3].Clone()
	other.Ranks[3].Tag.Set(0, other.Ranks[3].Tag.At(0)+1)
	if open(encodeGroups(t, &other, 60, false)).Digest() == first.Digest() {
		t.Error("the digests of stores with other ops are equal")
	}
	if err := first.Verify(); err != nil {
		t.Error(err)
	}
	broken := bytes.Clone(file)
	broken[first.groups[1].chunks[fieldColumn+int(dag.FieldTag)].Start()+4] ^= 1
	damagedFile := open(broken)
	if err := damagedFile.Verify(); err == nil || !strings.HasSuffix(err.Error(), damaged) {
		t.Errorf("a damaged file: error %v", err)
	}
	if d, err := dag.Compare(first, damagedFile); err == nil {
		t.Errorf("a damaged file: %+v", d)
	}
}
