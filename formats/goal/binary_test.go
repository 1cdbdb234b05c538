package goal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// readBoth reads a binary as a plain file and as a stream and checks that both give the same, or the same error.
func readBoth(t *testing.T, data []byte, o format.ReadOptions) (*dag.Trace, error) {
	t.Helper()
	trace, err := Binary.Read(plainFile("f", data), o)
	streamed, streamErr := Binary.Read(stream("f", data), o)
	if (err == nil) != (streamErr == nil) {
		t.Fatalf("as a file: error %v; as a stream: %v", err, streamErr)
	}
	if err == nil && !reflect.DeepEqual(trace, streamed) {
		t.Fatal("file and stream give different traces")
	}
	return trace, err
}

// patch returns a copy of data with other bytes at an offset.
func patch(data []byte, at int, with ...byte) []byte {
	c := bytes.Clone(data)
	copy(c[at:], with)
	return c
}

// TestBinaryErrors damages the worked example of the format, whose layout the offsets follow.
func TestBinaryErrors(t *testing.T) {
	example := readFile(t, filepath.Join(vectors, "spec_example.bin"))
	const noEnd = "\xff\xff\xff\xff\xff\xff\xff\xff"
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"magic", patch(example, 0, 1), "f: offset 0: expected a GOAL binary (magic 4223), found magic 4097"},
		{"used up", patch(example, 0, 0x26, 0x09),
			"f: offset 0: expected a GOAL binary (magic 4223), found magic 2342: " +
				"a simulation with --save-mem has consumed the file; write it again"},
		{"no ranks", patch(example, 8, 0), "f: offset 8: expected at least 1 rank, found 0"},
		{"too many ranks", patch(example, 8, 255, 255, 255, 255),
			"f: offset 8: expected at most 13 ranks in 234 bytes, found 4294967295"},
		{"highest cpu", patch(example, 12, 2),
			"f: offset 12: expected highest cpu 1 and nic 1, as in the ops, found 2 and 1"},
		{"highest nic", patch(example, 13, 0),
			"f: offset 12: expected highest cpu 1 and nic 1, as in the ops, found 1 and 0"},
		{"start of rank 0", patch(example, 0x0e, 0x27), "f: offset 14: expected the start of rank 0 at 38, found 39"},
		{"end of rank 0", patch(example, 0x16, 0x26), "f: offset 22: expected the end of rank 0 in 46..226, found 38"},
		{"start of rank 1", patch(example, 0x1e, 0xb0), "f: offset 30: expected the start of rank 1 at 175, found 176"},
		{"end of rank 1", patch(example, 0x26, 0xe3),
			"f: offset 38: expected the end of rank 1 in 183..226, found 227"},
		{"end out of this world", patch(example, 0x26, []byte(noEnd)...),
			"f: offset 38: expected the end of rank 1 in 183..226, found 18446744073709551615"},
		{"a byte more", append(bytes.Clone(example), 0), "f: offset 234: expected end of file, found 1 more bytes"},
		{"nodes", patch(example, 0x2e, 4),
			"f: offset 46: expected a section of 168 bytes, and 4 for each dependency, " +
				"for the 4 nodes and 1 roots of rank 0, found 137 bytes"},
		{"nodes beyond numbering", patch(example, 0x2e, 0, 0, 0, 0x80),
			"f: offset 46: expected at most 2147483647 nodes in rank 0, found 2147483648"},
		{"fewer nodes", patch(example, 0xb7, 0), "f: offset 187: expected at most 0 roots in rank 1, found 1"},
		{"roots", patch(example, 0x32, 4), "f: offset 50: expected at most 3 roots in rank 0, found 4"},
		{"a root too many", patch(example, 0x32, 2),
			"f: offset 66: expected type 1, 2 or 3 of node 0 of rank 0, found 0"},
		{"root", patch(example, 0x36, 1), "f: offset 54: expected node 0 as the next root of rank 0, found 1"},
		{"count", patch(example, 0x61, 2),
			"f: offset 97: expected 1 dependencies of node 1 of rank 0, as many as the appendix has, found 2"},
		{"a count is 0", patch(example, 0x61, 0),
			"f: offset 58: expected node 1 as a further root of rank 0, found none"},
		{"type", patch(example, 0x3e, 4), "f: offset 62: expected type 1, 2 or 3 of node 0 of rank 0, found 4"},
		{"calc", patch(example, 0x43, []byte(noEnd)...), "f: offset 67: expected the nanoseconds of a calc in " +
			"0..9223372036854775, found 18446744073709551615"},
		{"size", patch(example, 0x6a, []byte(noEnd)...), "f: offset 106: expected a size in bytes in " +
			"0..9223372036854775807, found 18446744073709551615"},
		{"first index", patch(example, 0x55, 1), "f: offset 85: expected index 0 in node 0 of rank 0, found 1"},
		{"second index", patch(example, 0x5d, 0), "f: offset 93: expected index 1 in node 0 of rank 0, found 0"},
		{"sum of the lists", patch(example, 0xa3+4, 1),
			"f: offset 175: expected 3 dependencies in the appendix of rank 0, the sum of its nodes, found 2"},
		{"appendix", patch(example, 0xaf, 3), "f: offset 175: expected a node of rank 0 in 0..2, found 3"},
		{"another node in the appendix", patch(example, 0xaf, 2),
			"f: offset 97: expected 0 dependencies of node 1 of rank 0, as many as the appendix has, found 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if bytes.Equal(c.data, example) {
				t.Fatal("nothing is damaged")
			}
			_, err := Binary.Read(plainFile("f", c.data), options(false))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if _, err := Binary.Read(stream("f", c.data), options(false)); err == nil {
				t.Error("accepted as a stream")
			}
		})
	}
}

// TestBinaryLenient checks the errors that a lenient reader turns into warnings.
func TestBinaryLenient(t *testing.T) {
	example := readFile(t, filepath.Join(vectors, "spec_example.bin"))
	want := parseBinary(t, example)
	for _, data := range [][]byte{patch(example, 12, 9), append(bytes.Clone(example), "more"...)} {
		warnings := 0
		o := format.ReadOptions{Lenient: true, Warn: func(string, ...any) { warnings++ }}
		got, err := readBoth(t, data, o)
		if err != nil || warnings != 2 || !reflect.DeepEqual(got, want) {
			t.Errorf("error %v, %d warnings", err, warnings)
		}
	}
}

func TestBinaryTruncated(t *testing.T) {
	for _, name := range []string{"spec_example", "irequires_nb", "empty_rank"} {
		data := readFile(t, filepath.Join(vectors, name+".bin"))
		for n := range data {
			if _, err := readBoth(t, data[:n], options(false)); !errors.As(err, new(*format.SyntaxError)) {
				t.Errorf("%s cut to %d bytes: error %v", name, n, err)
			}
		}
	}
}

// TestBinaryBitFlips checks that every damage of a bit is either found or part of the trace.
func TestBinaryBitFlips(t *testing.T) {
	for _, name := range []string{"spec_example", "irequires_nb", "empty_rank", "multinic"} {
		data := readFile(t, filepath.Join(vectors, name+".bin"))
		for bit := range 8 * len(data) {
			damaged := bytes.Clone(data)
			damaged[bit/8] ^= 1 << (bit % 8)
			trace, err := readBoth(t, damaged, options(false))
			if err != nil {
				continue
			}
			if !bytes.Equal(encode(t, Binary, trace), damaged) {
				t.Errorf("%s, bit %d flipped: binary -> trace -> binary is not the identity", name, bit)
			}
		}
	}
}

func TestBinaryReaders(t *testing.T) {
	data := readFile(t, filepath.Join(vectors, "sg_resnet_8.bin"))
	want := parseBinary(t, data)
	got, err := Binary.Read([]*format.Input{{Name: "f", Reader: iotest.OneByteReader(bytes.NewReader(data))}},
		options(false))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("byte by byte: error %v", err)
	}
	for _, n := range []int{0, 5, 100, len(data) - 1, len(data)} {
		failing := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(errors.New("disk on fire")))
		_, err = Binary.Read([]*format.Input{{Name: "f", Reader: failing}}, options(false))
		if err == nil || err.Error() != "f: reading: disk on fire" {
			t.Errorf("after %d bytes: got error %v", n, err)
		}
	}
	if _, err := Binary.Read(nil, options(false)); err == nil {
		t.Error("read nothing")
	}
}

// TestFirstErrorWins checks that of several damaged ranks the first is reported, however the ranks are read.
func TestFirstErrorWins(t *testing.T) {
	data := encode(t, Binary, stencil(64, 20))
	trace := parseBinary(t, data)
	at := headerSize + jumpSize*64
	for i := range trace.Ranks {
		if size := int(sectionSize(trace.Ranks[i])); i >= 3 {
			data[at+size-1] = 0xff // the last node of the appendix
			at += size
		} else {
			at += size
		}
	}
	for range 20 {
		_, err := Binary.Read(plainFile("f", data), options(false))
		if err == nil || !strings.Contains(err.Error(), "rank 3 ") {
			t.Fatalf("got error %v, want one of rank 3", err)
		}
	}
}

// TestVersion2 checks that the longer records of version 2 are recognized.
func TestVersion2(t *testing.T) {
	v2 := func(nodes int) []byte {
		section := sectionHead + indexSize*nodes + recordSizeV2*nodes
		b := binary.LittleEndian.AppendUint64(nil, magic)
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = append(b, 0, 0)
		b = binary.LittleEndian.AppendUint64(b, 22)
		b = binary.LittleEndian.AppendUint64(b, uint64(22+section))
		b = binary.LittleEndian.AppendUint32(b, uint32(nodes))
		b = binary.LittleEndian.AppendUint32(b, uint32(nodes))
		for i := range nodes {
			b = binary.LittleEndian.AppendUint32(b, uint32(i))
		}
		for range nodes {
			b = append(b, 0, 0, 0, 0, typeCalc)
			b = append(b, make([]byte, recordSizeV2-5)...)
		}
		return b
	}
	for nodes := 1; nodes < 20; nodes++ {
		_, err := readBoth(t, v2(nodes), options(false))
		if err == nil || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("%d nodes: got error %v", nodes, err)
		}
	}
}

// TestHugeClaims checks that a short stream that claims to be a large file is refused before memory is taken for it.
func TestHugeClaims(t *testing.T) {
	b := binary.LittleEndian.AppendUint64(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = append(b, 0, 0)
	const nodes = dag.MaxOps
	b = binary.LittleEndian.AppendUint64(b, 22)
	b = binary.LittleEndian.AppendUint64(b, 22+sectionHead+recordSize*nodes)
	b = binary.LittleEndian.AppendUint32(b, nodes)
	b = binary.LittleEndian.AppendUint32(b, 0)
	if _, err := readBoth(t, b, options(false)); !errors.As(err, new(*format.SyntaxError)) {
		t.Errorf("got error %v", err)
	}
	if _, err := readBoth(t, patch(b[:14], 8, 255, 255, 255, 255), options(false)); err == nil {
		t.Error("accepted a header alone")
	}
}

// refused returns a trace of two ranks whose second has this op as its op 1.
func refused(op dag.Op) *dag.Trace {
	b := dag.NewBuilder(2)
	b.Rank(1).Calc(1)
	b.Rank(1).Add(op)
	return b.Trace()
}

func TestWriteRefuses(t *testing.T) {
	many := dag.NewBuilder(1)
	for _, op := range []dag.Op{
		{Kind: dag.Coll, Subkind: dag.Allreduce}, {Kind: dag.Mem, Subkind: dag.Load}, {Kind: dag.IO, Subkind: dag.Read},
	} {
		many.Rank(0).Add(op)
	}
	const in = "GOAL cannot represent rank 1: op 1: expected "
	const foreign = "GOAL has no collectives, memory or storage accesses; found 3; " +
		"--lower needed sends them as messages"
	alone := many.Trace()
	both := refused(dag.Op{Stream: -1})
	both.Ranks = append(both.Ranks, alone.Ranks...)
	for _, c := range []struct {
		trace *dag.Trace
		want  string // NNN: the highest stream and NIC of the form
	}{
		{dag.NewBuilder(0).Trace(), "expected at least 1 rank, found none"},
		{alone, foreign},
		{both, foreign},
		{refused(dag.Op{Stream: -1}), in + "a stream in 0..NNN, found -1"},
		{refused(dag.Op{Kind: dag.Send, NIC: -2}), in + "a NIC in 0..NNN, found -2"},
		{refused(dag.Op{Duration: -1}), in + "a duration of 0 or more, found -1ps"},
		{refused(dag.Op{Kind: dag.Send, Bytes: -1}), in + "a size of 0 or more, found -1"},
		{refused(dag.Op{Kind: dag.Recv, Tag: 1<<32 - 1}),
			in + "a tag in -2147483648..4294967294, found 4294967295"},
		{refused(dag.Op{Kind: dag.Recv, Tag: -1<<31 - 1}),
			in + "a tag in -2147483648..4294967294, found -2147483649"},
	} {
		checkRefused(t, Text, c.trace, strings.Replace(c.want, "NNN", "2147483647", 1))
		checkRefused(t, Binary, c.trace, strings.Replace(c.want, "NNN", "255", 1))
	}
	checkRefused(t, Binary, refused(dag.Op{Stream: 256}), in+"a stream in 0..255, found 256")
	checkRefused(t, Binary, refused(dag.Op{Kind: dag.Send, NIC: 1000}), in+"a NIC in 0..255, found 1000")
}

func checkRefused(t *testing.T, f format.Format, trace *dag.Trace, want string) {
	t.Helper()
	var out bytes.Buffer
	if err := f.Write(&out, trace, format.WriteOptions{}); err == nil || err.Error() != want {
		t.Errorf("%s: got error %v, want %s", f.Name, err, want)
	}
	if out.Len() > 0 {
		t.Errorf("%s: wrote before it failed", f.Name)
	}
}

func TestLosses(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	r.Add(dag.Op{
		Duration: 1500, Bytes: 7, Flops: 1, Release: 1, Job: 1, Comm: 1, NIC: 1, Name: "a name", Attrs: "{}",
		Timed: true, MeasuredEnd: 1, Host: 1,
	})
	r.Add(dag.Op{Kind: dag.Send, Bytes: 8, RecvBytes: 9, Duration: 1, Tag: -2, Name: "b", Dims: 2, Priority: -1})
	r.Calc(0, 1, 0)
	trace := b.Trace()
	trace.Nodes = []int32{1, 0}
	common := []format.Loss{
		{Kind: "release times rounded to whole nanoseconds", Count: 1},
		{Kind: "durations rounded to whole nanoseconds", Count: 1},
		{Kind: "durations of sends and receives", Count: 1},
		{Kind: "sizes of calcs", Count: 1},
		{Kind: "received sizes", Count: 1},
		{Kind: "tags below -1, written plus 4294967296 (receives with any tag match them)", Count: 1},
		{Kind: "flops", Count: 1},
		{Kind: "communicators", Count: 1},
		{Kind: "jobs", Count: 1},
		{Kind: "measured times", Count: 1},
		{Kind: "attributes", Count: 1},
		{Kind: "execution on the host", Count: 1},
		{Kind: "network dimensions of collectives", Count: 1},
		{Kind: "priorities", Count: 1},
		{Kind: "the nodes that their ranks run on", Count: 3},
	}
	wantText := append(common[:len(common):len(common)],
		format.Loss{Kind: "peers, tags and NICs of calcs", Count: 1},
		format.Loss{Kind: "names that are not unique labels", Count: 1})
	wantBinary := append(common[:len(common):len(common)],
		format.Loss{Kind: "names", Count: 2})
	if got := Text.Losses(trace); !reflect.DeepEqual(got, wantText) {
		t.Errorf("text: got %v", got)
	}
	if got := Binary.Losses(trace); !reflect.DeepEqual(got, wantBinary) {
		t.Errorf("binary: got %v", got)
	}
	if got := Binary.Losses(stencil(4, 4)); len(got) > 0 {
		t.Errorf("a plain schedule loses %v", got)
	}
}

func TestNanoseconds(t *testing.T) {
	for d, want := range map[dag.Time]uint64{
		0: 0, 499: 0, 500: 1, 1499: 1, 1500: 2, 2_000_000: 2000,
		math.MaxInt64: 9223372036854775, math.MaxInt64 - 807: 9223372036854775, math.MaxInt64 - 1000: 9223372036854775,
	} {
		if got := nanoseconds(d); got != want {
			t.Errorf("%d ps: got %d ns, want %d", int64(d), got, want)
		}
	}
}

// TestPeersOfBinaries checks that peers and tags beyond the model's ranges, and those of calcs, keep their bits.
func TestPeersOfBinaries(t *testing.T) {
	example := readFile(t, filepath.Join(vectors, "spec_example.bin"))
	for _, data := range [][]byte{
		patch(example, 0x66, 0xff, 0xff, 0xff, 0xff), // a send to 4294967295
		patch(example, 0x66, 0xfe, 0xff, 0xff, 0xff),
		patch(example, 0xc8, 0, 0, 0, 0x80), // a receive from 2147483648
		patch(example, 0x72, 0xfe, 0xff, 0xff, 0xff),
		patch(example, 0x72, 0xff, 0xff, 0xff, 0xff),
		patch(example, 0x3f, 1, 2, 3, 4),    // the peer of a calc
		patch(example, 0x4b, 1, 2, 3, 4, 1), // its tag and cpu
		patch(example, 0x50, 1),             // its nic
	} {
		trace, err := readBoth(t, data, options(false))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, Binary, trace), data) {
			t.Error("binary -> trace -> binary is not the identity")
		}
		if len(Text.Losses(trace)) == 0 {
			checkTextRoundTrip(t, trace)
		}
	}
}

// failingWriter fails after some bytes.
type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	trace := stencil(4, 2000)
	for _, f := range []format.Format{Text, Binary} {
		size := len(encode(t, f, trace))
		for _, left := range []int{0, chunk + 100, size - 1} {
			err := f.Write(&failingWriter{left}, trace, format.WriteOptions{})
			if err == nil || err.Error() != "disk full" {
				t.Errorf("%s, failing after %d bytes: got error %v", f.Name, left, err)
			}
		}
	}
}

// TestLargeBlocks takes blocks through every buffer of readers and writers more than once.
func TestLargeBlocks(t *testing.T) {
	trace := stencil(3, 30_000)
	for _, f := range []format.Format{Text, Binary} {
		data := encode(t, f, trace)
		for _, inputs := range [][]*format.Input{stream("f", data), plainFile("f", data)} {
			got, err := f.Read(inputs, options(false))
			if err != nil || !reflect.DeepEqual(got, trace) {
				t.Errorf("%s: error %v", f.Name, err)
			}
		}
	}
}

func ExampleText() {
	const schedule = `num_ranks 2

rank 0 {
calculate: calc 100
l2: send 8b to 1 tag 5
l2 requires calculate
}

rank 1 {
recv 8b from 0 tag 5
}
`
	trace, err := Text.Read([]*format.Input{{Name: "ping.goal", Reader: strings.NewReader(schedule)}},
		format.ReadOptions{Warn: func(message string, args ...any) { fmt.Printf(message+"\n", args...) }})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(trace.Ops(), trace.Ranks[0].Name.At(0), trace.Ranks[0].Duration.At(0))
	// Output: 3 calculate 100ns
}

func FuzzBinary(f *testing.F) {
	for _, name := range []string{"spec_example", "irequires_nb", "empty_rank", "multinic", "wildcards", "dead_ops"} {
		f.Add(readFile(f, filepath.Join(vectors, name+".bin")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := readBoth(t, data, options(false))
		if err != nil {
			checkPlaced(t, err)
			return
		}
		for i := range trace.Ranks {
			if err := trace.Ranks[i].CheckReferences(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(encode(t, Binary, trace), data) {
			t.Fatal("binary -> trace -> binary is not the identity")
		}
		if len(Text.Losses(trace)) == 0 {
			checkTextRoundTrip(t, trace)
		}
	})
}
