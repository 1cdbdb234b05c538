package spc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/store"
)

// readText reads a text. It returns the warnings, too.
func readText(text string, o format.ReadOptions) (*dag.Trace, string, error) {
	var warnings strings.Builder
	o.Warn = func(message string, args ...any) { fmt.Fprintf(&warnings, message+"\n", args...) }
	t, err := read(one("x.spc", []byte(text)), o)
	return t, warnings.String(), err
}

// writeText writes a trace.
func writeText(t testing.TB, trace *dag.Trace) string {
	t.Helper()
	var text strings.Builder
	if err := write(&text, trace, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// throughStore returns a trace written to the store and read again.
func throughStore(t testing.TB, trace *dag.Trace) *dag.Trace {
	t.Helper()
	var file bytes.Buffer
	if err := store.Write(&file, trace); err != nil {
		t.Fatal(err)
	}
	again, err := store.Format.Read(one("x.parquet", file.Bytes()), options(t))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// list returns the records of a trace, rank by rank.
func list(trace *dag.Trace) string {
	var b strings.Builder
	for rank := range trace.Ranks {
		for i := range trace.Ranks[rank].Len() {
			op := trace.Ranks[rank].Op(i)
			fmt.Fprintf(&b, "%d: %v %v unit %d, %d bytes at %d, %v%s\n", rank, op.Kind, op.Subkind, op.Peer, op.Bytes, op.Tag,
				op.Release, op.Attrs)
		}
	}
	return b.String()
}

func TestRead(t *testing.T) {
	const text = "3,20,8192,W,0.551706\n0,7,512,r,1.5\n# a comment\n\n3, 21,\t0,w,1.5,x, y\r\n"
	trace, warnings, err := readText(text, format.ReadOptions{})
	if err != nil || warnings != "" {
		t.Fatal(err, warnings)
	}
	want := `0: io read unit 0, 512 bytes at 3584, 1.5s{"spc":{"line":"0,7,512,r,1.5"}}
1: io write unit 3, 8192 bytes at 10240, 551.706ms
1: io write unit 3, 0 bytes at 10752, 1.5s{"spc":{"line":"3, 21,\t0,w,1.5,x, y"}}
`
	if got := list(trace); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if want := `{"spc":{"block":512,"decimals":6,"opcodes":"RW"}}`; trace.Attrs != want {
		t.Errorf("attributes %s, want %s", trace.Attrs, want)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestOptions(t *testing.T) {
	const text = "0,3,4096,r,0.0\n0,5,4096,r,0.1\n0,8,4096,r,0.2\n"
	for _, test := range []struct {
		o    blockio.Options
		want string // addresses
	}{
		{blockio.Options{}, "1536 2560 4096"},
		{blockio.Options{BlockSize: 4096}, "12288 20480 32768"},
		{blockio.Options{ByteAddress: true}, "3 5 8"},
		{blockio.Options{ByteAddress: true, BlockSize: 4096}, "3 5 8"},
		{blockio.Options{MaxRecords: 2}, "1536 2560"},
	} {
		trace, _, err := readText(text, format.ReadOptions{Own: &test.o})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Trim(fmt.Sprint(trace.Ranks[0].Tag), "[]"); got != test.want {
			t.Errorf("%+v: addresses %s, want %s", test.o, got, test.want)
		}
		lines := strings.SplitAfter(text, "\n")
		if got, want := writeText(t, throughStore(t, trace)), strings.Join(lines[:trace.Ops()], ""); got != want {
			t.Errorf("%+v: written\n%s, want\n%s", test.o, got, want)
		}
	}
	if _, _, err := readText(text, format.ReadOptions{Own: &blockio.Options{BlockSize: -1}}); err == nil {
		t.Error("blocks of -1 bytes are accepted")
	}
	trace, warnings, err := readText("0,1,1,r,2.0\n1,2,2,w,1.0\n", format.ReadOptions{Own: &blockio.Options{AnyOrder: true}})
	if err != nil || !strings.Contains(warnings, "record 2 is before") {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
	if got, want := writeText(t, trace), "1,2,2,w,1.0\n0,1,1,r,2.0\n"; got != want {
		t.Errorf("written\n%s, want\n%s", got, want)
	}
}

// Every malformed line is an error with position and reason, and can be skipped.
func TestMalformed(t *testing.T) {
	const good = "0,1,512,R,1.000000\n"
	for line, want := range map[string]string{
		"x,1,512,R,1.0":                   `expected a unit number (0..2147483647), found "x"`,
		"-1,1,512,R,1.0":                  `expected a unit number (0..2147483647), found "-1"`,
		"2147483648,1,512,R,1.0":          `expected a unit number (0..2147483647), found "2147483648"`,
		",1,512,R,1.0":                    `expected a unit number (0..2147483647), found ","`,
		" 0,1,512,R,1.0":                  `expected a unit number (0..2147483647), found " 0"`,
		"0":                               `expected "," and another field, found the end of the line`,
		"0 ,1,512,R,1.0":                  `expected "," and another field, found " "`,
		"0;1;512;R;1.0":                   `expected "," and another field, found ";1;512;R;1.0"`,
		"0,-1,512,R,1.0":                  `expected an address in blocks (0..18014398509481983), found "-1"`,
		"0,0x1,512,R,1.0":                 `expected "," and another field, found "x1"`,
		"0,1.5,512,R,1.0":                 `expected "," and another field, found ".5"`,
		"0,18014398509481984,0,R,1.0":     `expected an address in blocks (0..18014398509481983), found "18014398509481984"`,
		"0,18014398509481983,512,R,1.0":   `expected bytes at addresses below 2^63, found 512 at 9223372036854775296`,
		"0,1,,R,1.0":                      `expected a size in bytes (0..9223372036854775807), found ","`,
		"0,1,-512,R,1.0":                  `expected a size in bytes (0..9223372036854775807), found "-512"`,
		"0,1,9223372036854775808,R,1.0":   `expected a size in bytes (0..9223372036854775807), found "9223372036854775808"`,
		"0,1,512":                         `expected "," and another field, found the end of the line`,
		"0,1,512,X,1.0":                   `expected R or W, found "X"`,
		"0,1,512,RW,1.0":                  `expected R or W, found "RW"`,
		"0,1,512,,1.0":                    `expected R or W, found ","`,
		"0,1,512,R":                       `expected "," and another field, found the end of the line`,
		"0,1,512,R,":                      `expected a time in seconds, found the end of the line`,
		"0,1,512,R,-1.0":                  `expected a time in seconds, found "-1.0"`,
		"0,1,512,R,.5":                    `expected a time in seconds, found ".5"`,
		"0,1,512,R,1":                     `expected "." and decimals of a time in seconds, found the end of the line`,
		"0,1,512,R,1.":                    `expected digits behind the decimal point, found the end of the line`,
		"0,1,512,R,1e3":                   `expected "." and decimals of a time in seconds, found "e3"`,
		"0,1,512,R,1.0e3":                 `expected "," and optional fields, or the end of the line, found "e3"`,
		"0,1,512,R,1.0 ":                  `expected "," and optional fields, or the end of the line, found " "`,
		"0,1,512,R,9223372.036854775808":  `expected a time in seconds of at most 106 days, found "9223372.036854775808"`,
		"0,1,512,R,0.999999":              `expected a time not before the previous record's, 1s (--any-order accepts others), found 999.999ms`,
		"0,1,512,R,nan":                   `expected a time in seconds, found "nan"`,
		strings.Repeat("9", 100) + ",1,1": `expected a unit number (0..2147483647), found "` + strings.Repeat("9", 40) + `"...`,
	} {
		text := good + "# comment\n" + line + "\n" + good + line + "\n"
		_, _, err := readText(text, format.ReadOptions{})
		if err == nil || err.Error() != "x.spc:3: "+want {
			t.Errorf("%q: error %v, want %s", line, err, want)
		}
		trace, warnings, err := readText(text, format.ReadOptions{Lenient: true})
		if err != nil {
			t.Errorf("%q: error %v, though lenient", line, err)
			continue
		}
		if trace.Ops() != 2 || warnings != "x.spc:3: "+want+" (2 lines skipped in all)\n" {
			t.Errorf("%q: %d records, warnings %q", line, trace.Ops(), warnings)
		}
	}
	for _, empty := range []string{"", "\n# nothing\n"} {
		if _, _, err := readText(empty, format.ReadOptions{}); err == nil {
			t.Errorf("%q is a trace", empty)
		}
	}
}

// Every text of records alone comes back byte for byte, in the file's style or not.
func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		"0,303567,3584,w,0.000000\n1,55590,3072,w,0.000000\n0,303574,3584,w,0.026214\n",
		"5,1,1,R,0.5\n3,2,2,W,0.5\n4,3,3,R,0.5\n5,4,4,R,0.5\n0,1,1,R,0.6\n", // ties in another order
		"0,20941264,8192,W,0.551706,42\n0,20939840,8192,W,0.554041\n7, 1, 0, r, 0000.55404100, a,,b \n",
		"0,1,2,r,0.1234567890123456\n00,01,02,R,0.5\n0,1,2,r,0.500000000000\n0,1,2,r,9223372.000000\n",
		"2147483647,0,9223372036854775807,r,0.0\n",
		"0,1,2,r,0.0,x\ry\n",
		"0,1,2,r,0.0,\"quoted\" <&> \u00e4 \x01\n",
	} {
		trace, _, err := readText(text, format.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := writeText(t, throughStore(t, trace)); got != text {
			t.Errorf("written\n%s, want\n%s", got, text)
		}
	}
	trace, _, err := readText("0,1,2,r,0.5,x\r\r\n0,1,2,r,0.5", format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := writeText(t, trace), "0,1,2,r,0.5\n0,1,2,r,0.5\n"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
	const noText = "0,1,2,r,0.5,\xff\n"
	trace, warnings, err := readText(noText, format.ReadOptions{})
	if err != nil || !strings.Contains(warnings, "1 line with optional fields in invalid UTF-8") {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
	if got, want := writeText(t, trace), "0,1,2,r,0.5\n"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
}

// canonical returns random records in one style.
func canonical(random *rand.Rand) string {
	opcodes := [...]string{"rw", "RW"}[random.IntN(2)]
	decimals := 1 + random.IntN(maxDecimals)
	now := dag.Time(0)
	var b []byte
	for range 1 + random.IntN(100) {
		if random.IntN(2) == 0 {
			now += dag.Time(random.Int64N(1e4)) * units[decimals]
		}
		b = fmt.Appendf(b, "%d,%d,%d,%c,", random.IntN(5)*random.IntN(400), random.Int64N(1<<40), random.Int64N(1<<20),
			opcodes[random.IntN(2)])
		b = append(appendSeconds(b, now, decimals), '\n')
	}
	return string(b)
}

func TestCanonicalNeedsNoAttributes(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 7))
	for range 200 {
		text := canonical(random)
		trace, warnings, err := readText(text, format.ReadOptions{})
		if err != nil || warnings != "" {
			t.Fatal(err, warnings, text)
		}
		if got := writeText(t, trace); got != text {
			t.Fatalf("written\n%s, want\n%s", got, text)
		}
		for i := range trace.Ranks {
			for op := range trace.Ranks[i].Attrs.Len() {
				if attrs := trace.Ranks[i].Attrs.At(op); strings.Contains(attrs, "spc") {
					t.Fatalf("attributes %s in\n%s", attrs, text)
				}
			}
		}
		if l := losses(trace); len(l) > 0 {
			t.Fatalf("%v lost of\n%s", l, text)
		}
	}
}

// A trace that comes from elsewhere, or was changed, is written as it is.
func TestWrite(t *testing.T) {
	op := dag.Op{Kind: dag.IO, Subkind: dag.Read, Peer: 2, Tag: 1000, Bytes: 7, Release: 1500 * dag.Microsecond}
	for _, test := range []struct {
		change func(*dag.Op, *dag.Meta)
		want   string
	}{
		{func(*dag.Op, *dag.Meta) {}, "2,1,7,R,0.001500"},
		{func(op *dag.Op, _ *dag.Meta) { op.Subkind, op.Release = dag.Write, 0 }, "2,1,7,W,0.000000"},
		{func(op *dag.Op, _ *dag.Meta) { op.Release = 100 * dag.Nanosecond }, "2,1,7,R,0.0000001"},
		{func(op *dag.Op, _ *dag.Meta) { op.Release = 12*dag.Second + 1 }, "2,1,7,R,12.000000000001"},
		{func(op *dag.Op, _ *dag.Meta) { op.Release = dag.MaxTime }, "2,1,7,R,9223372.036854775807"},
		{func(_ *dag.Op, m *dag.Meta) { m.Attrs = `{"spc":{"block":100,"decimals":4,"opcodes":"rw"}}` }, "2,10,7,r,0.0015"},
		{func(_ *dag.Op, m *dag.Meta) { m.Attrs = `{"spc":{"block":-1,"decimals":99,"opcodes":"x"}}` }, "2,1,7,R,0.001500"},
		{func(_ *dag.Op, m *dag.Meta) { m.Attrs = `{"spc":7}` }, "2,1,7,R,0.001500"},
		{func(op *dag.Op, _ *dag.Meta) {
			op.Tag, op.Attrs = 512, `{"tie":0,"spc":{"line":"2, 1,0007,r,0.00150,x"}}`
		}, "2, 1,0007,r,0.00150,x"},
	} {
		trace := &dag.Trace{Comms: []dag.Comm{dag.World(1)}}
		changed := op
		test.change(&changed, &trace.Meta)
		var r dag.RankBuilder
		r.Add(changed)
		rank := r.Rank()
		trace.Ranks = []*dag.Rank{&rank}
		if got := writeText(t, trace); got != test.want+"\n" {
			t.Errorf("written %q, want %q", got, test.want)
		}
	}
	for _, attrs := range []string{
		`{"spc":{"line":"2,1,8,R,0.001500"}}`, `{"spc":{"line":"2,1,7,R,0.001500\n3,1,7,R,0.0015"}}`, `{"spc":{"line":5}}`, `{"spc":`,
	} {
		trace := &dag.Trace{Comms: []dag.Comm{dag.World(1)}, Ranks: dag.NewRanks(1)}
		var r dag.RankBuilder
		stale := op
		stale.Attrs = attrs
		r.Add(stale)
		rank := r.Rank()
		trace.Ranks[0] = rank.Keep()
		if got, want := writeText(t, trace), "2,1,7,R,0.001500\n"; got != want {
			t.Errorf("%s: written %q, want %q", attrs, got, want)
		}
	}
	var text strings.Builder
	var r dag.RankBuilder
	r.Calc(1)
	rank := r.Rank()
	trace := &dag.Trace{Comms: []dag.Comm{dag.World(1)}, Ranks: []*dag.Rank{&rank}}
	if err := write(&text, trace, format.WriteOptions{}); err == nil || text.Len() > 0 {
		t.Errorf("error %v, written %q", err, text.String())
	}
}

func TestLosses(t *testing.T) {
	var r dag.RankBuilder
	r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Tag: 1000})
	r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Tag: 1024, Attrs: `{"spc":{"line":"x"}}`})
	rank := r.Rank()
	trace := &dag.Trace{Comms: []dag.Comm{dag.World(1)}, Ranks: []*dag.Rank{&rank}}
	if got, want := fmt.Sprint(losses(trace)), "[1 op: addresses rounded down to blocks of 512 bytes]"; got != want {
		t.Errorf("losses %s, want %s", got, want)
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]bool{
		"0,303567,3584,w,0.000000\n":    true,
		"# x\n\n0, 1, 2, R, 0.5, 7\r\n": true,
		"0,1,2,R,0.5":                   true,
		"0,1,2,R,5":                     false, // a block tracer's
		"0,1,2,RA,5":                    false,
		"128166372003061629,hm,0,Read,383496192,32768,413": false,
		"8,0 1 1 0.0 3013 Q R 0 + 8 [dd]":                  false,
		"0.5 0 1 2 1":                                      false,
		"":                                                 false,
	} {
		if got := Format.Detect([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// Reading and writing traces of other projects reproduces them byte for byte.
func TestForeign(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set: the traces of other projects are not read")
	}
	for name, want := range map[string]struct {
		records, reads, bytes int64
		units                 int
	}{
		"financial1_5000.spc":     {5000, 1278, 22239744, 21},
		"financial1_first949.spc": {949, 0, 0, 0},
		"websearch_5000.spc":      {5000, 4998, 79972352, 6},
	} {
		text, err := os.ReadFile(filepath.Join(folder, "spc", name))
		if err != nil {
			t.Fatal(err)
		}
		if !Format.Detect(text[:format.DetectBytes]) {
			t.Errorf("%s is not detected", name)
		}
		trace, warnings, err := readText(string(text), format.ReadOptions{})
		if err != nil || warnings != "" {
			t.Fatal(err, warnings)
		}
		if got := writeText(t, throughStore(t, trace)); got != string(text) {
			t.Errorf("%s does not come back", name)
		}
		var records, reads, size int64
		for i := range trace.Ranks {
			for op := range trace.Ranks[i].Len() {
				records++
				size += trace.Ranks[i].Bytes.At(op)
				if trace.Ranks[i].Subkind.At(op) == dag.Read {
					reads++
				}
			}
		}
		if records != want.records || want.units > 0 && (reads != want.reads || size != want.bytes || len(trace.Ranks) != want.units) {
			t.Errorf("%s: %d records, %d reads, %d bytes, %d units, want %+v", name, records, reads, size, len(trace.Ranks), want)
		}
	}
}

// FuzzRead checks that whatever is read comes back as the same records, and that nothing is lost by reading leniently.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"0,303567,3584,w,0.000000\n1,55590,3072,w,0.000000\n0,303574,3584,w,0.026214\n",
		"5,1,1,R,0.5\n3,2,2,W,0.5\n4,3,3,R,0.5\n",
		"0, 1,\t2,r,00.1234567890123456,x, y\r\n\n# comment\n0,1,2,R,9223372.036854775807",
		"0,18014398509481983,512,R,1.0\nx\n0,1,2,R,0.5\n0,1,2,R,0.4\n300,1,1,w,0.5,\xff\"\\\n",
	} {
		f.Add(text, int64(0), false, false)
		f.Add(text, int64(4096), true, true)
	}
	f.Fuzz(func(t *testing.T, text string, block int64, byteAddress, anyOrder bool) {
		o := format.ReadOptions{Own: &blockio.Options{BlockSize: block, ByteAddress: byteAddress, AnyOrder: anyOrder}}
		trace, _, err := readText(text, o)
		o.Lenient = true
		lenient, warnings, lenientErr := readText(text, o)
		if err == nil && (lenientErr != nil || list(lenient) != list(trace)) {
			t.Fatalf("read leniently: %v\n%s, else\n%s", lenientErr, list(lenient), list(trace))
		}
		if lenientErr != nil {
			return
		}
		if err != nil && warnings == "" {
			t.Fatalf("error %v, and no warning", err)
		}
		if problems := dag.Validate(lenient); len(problems) > 0 {
			t.Fatal(problems[0])
		}
		written := writeText(t, lenient)
		again, _, err := readText(written, format.ReadOptions{Own: &blockio.Options{BlockSize: styleOf(lenient).Block}})
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if rewritten := writeText(t, again); rewritten != written {
			t.Fatalf("written\n%q, then\n%q", written, rewritten)
		}
		if again.Ops() != lenient.Ops() {
			t.Fatalf("%d records, then %d", lenient.Ops(), again.Ops())
		}
		for i := range again.Ranks {
			a, b := again.Ranks[i], lenient.Ranks[i]
			for op := range a.Len() {
				x, y := a.Op(op), b.Op(op)
				if x.Attrs, y.Attrs = "", ""; x != y {
					t.Fatalf("%+v, then %+v", y, x)
				}
			}
		}
	})
}
