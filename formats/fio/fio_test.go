package fio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio/blocktest"
)

const version3 = `fio version 3 iolog
2 /dev/sdb add
2 b,1 add
3 /dev/sdb open
3 b,1 open
878 b,1 write 0 16384
878 /dev/sdb read 4096 512
900 b,1 trim 0 512
901 b,1 sync 0 0
902 /dev/sdb datasync 0 0
950 b,1 read 1 0
10001677 b,1 close
10001677 /dev/sdb close
`

const version2 = `fio version 2 iolog
f add
f open
f write 0 512
f wait 150 0
g read 512 512
f read 0 512
g wait 1000000 0
f write 7 7
f close
`

func TestVersion3(t *testing.T) {
	blocktest.Check(t, &Format, version3, format.ReadOptions{},
		"0: read 0 4096+512 @878us 0s {\"tie\":1}\n1: write 1 0+16384 @878us 0s\n1: read 1 1+0 @950us 0s\n",
		`{"fio":{"version":3,"units":["/dev/sdb","b,1"]}}`, "x:8: neither a read nor a write, skipped (3 lines in all)\n")
}

func TestVersion2(t *testing.T) {
	blocktest.Check(t, &Format, version2, format.ReadOptions{},
		"0: write 0 0+512 @0s 0s\n0: read 0 0+512 @150us 0s {\"tie\":1}\n0: write 0 7+7 @1.00015s 0s\n1: read 1 512+512 @150us 0s\n",
		`{"fio":{"version":2,"units":["f","g"]}}`, "")
}

func TestMalformed(t *testing.T) {
	for line, want := range map[string]string{
		"x f read 0 0":                     `expected a time in microseconds (0..9223372036854), found "x"`,
		"9223372036855 f read 0 0":         `expected a time in microseconds (0..9223372036854), found "9223372036855"`,
		"10001677":                         `expected a blank and another field, found the end of the line`,
		"10001677 f":                       `expected a blank and another field, found the end of the line`,
		"10001677 f wait 5 0":              `expected read, write or another action of version 3, which has no wait, found "wait"`,
		"10001677 f erase 0 0":             `expected an action such as read, write, add, open or close, found "erase"`,
		"10001677 f add 7":                 `expected the end of the line, found "7"`,
		"10001677 f read -1 0":             `expected an offset in bytes (0..9223372036854775807), found "-1"`,
		"10001677 f read 0 -1":             `expected a length in bytes (0..9223372036854775807), found "-1"`,
		"10001677 f read 0":                `expected a blank and another field, found the end of the line`,
		"10001677 f read 0 0 0":            `expected the end of the line, found "0"`,
		"949 f read 0 0":                   "expected a time not before the previous record's, 950us (--any-order accepts others), found 949us",
		"950 f read 9223372036854775807 1": "expected bytes at addresses below 2^63, found 1 at 9223372036854775807",
	} {
		blocktest.CheckMalformed(t, &Format, version3, line, want)
	}
	for line, want := range map[string]string{
		"f wait x 0":             `expected microseconds to wait (0..9223371036704), found "x"`,
		"f wait 9223371036705 0": `expected microseconds to wait (0..9223371036704), found "9223371036705"`,
		"5 f read 0 0":           `expected an action such as read, write, add, open or close, found "f"`,
	} {
		blocktest.CheckMalformed(t, &Format, version2, line, want)
	}
	if _, _, err := blocktest.Read(&Format, "fio version 4 iolog\n", format.ReadOptions{}); err == nil ||
		err.Error() != `x:1: expected "fio version 2 iolog" or "fio version 3 iolog", found "fio version 4 iolog"` {
		t.Error(err)
	}
}

// written returns the text of a written trace.
func written(t *testing.T, trace *dag.Trace) string {
	t.Helper()
	var text strings.Builder
	if err := write(&text, trace, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestWrite(t *testing.T) {
	trace, _, err := blocktest.Read(&Format, version3, format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := `fio version 3 iolog
0 /dev/sdb add
0 /dev/sdb open
0 b,1 add
0 b,1 open
878 b,1 write 0 16384
878 /dev/sdb read 4096 512
950 b,1 read 1 0
950 /dev/sdb close
950 b,1 close
`
	if got := written(t, trace); got != want {
		t.Errorf("written\n%s, want\n%s", got, want)
	}
	again, _, err := blocktest.Read(&Format, want, format.ReadOptions{})
	if err != nil || blocktest.List(again) != blocktest.List(trace) || again.Attrs != trace.Attrs {
		t.Errorf("error %v, read\n%s, want\n%s", err, blocktest.List(again), blocktest.List(trace))
	}

	// From elsewhere: units without names, times between microseconds, names that fio cannot read or that are taken.
	b := dag.NewBuilder(2)
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Peer: 1, Bytes: 8, Release: 1499999 * dag.Picosecond})
	b.Rank(1).Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Peer: 2, Tag: 9, Release: 1500 * dag.Nanosecond})
	b.Rank(1).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Peer: 3, Release: dag.MaxTime})
	b.Meta().Attrs = `{"fio":{"units":["","unit2","unit2","a b"]}}`
	trace = b.Trace()
	want = `fio version 3 iolog
0 unit2 add
0 unit2 open
0 unit2_ add
0 unit2_ open
0 unit3 add
0 unit3 open
1 unit2 read 0 8
2 unit2_ write 9 0
9223372036854 unit3 read 0 0
9223372036854 unit2 close
9223372036854 unit2_ close
9223372036854 unit3 close
`
	if got := written(t, trace); got != want {
		t.Errorf("written\n%s, want\n%s", got, want)
	}
	got := fmt.Sprint(losses(trace))
	if want := "[3 ops: ranks, which the units do not determine 3 ops: times rounded to whole microseconds]"; got != want {
		t.Errorf("losses %s, want %s", got, want)
	}
	b = dag.NewBuilder(1)
	b.Rank(0).Calc(1)
	var text strings.Builder
	if err := write(&text, b.Trace(), format.WriteOptions{}); err == nil || text.Len() > 0 {
		t.Errorf("error %v, written %q", err, text.String())
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"f": true, "/dev/sda": true, "a,b": true, "": false, "a b": false, "a\tb": false, "a\n": false, "\xff": false,
		strings.Repeat("x", 255): true, strings.Repeat("x", 256): false,
	} {
		if got := isName(name); got != want {
			t.Errorf("%.20q: %v", name, got)
		}
	}
	if !slices.Contains(Format.Extensions, ".iolog") {
		t.Error("no ending of file names")
	}
}

func FuzzRead(f *testing.F) {
	blocktest.Fuzz(f, &Format, version3, version2, "fio version 2 iolog\nf wait 9223372036854 0\nf read 0 9223372036854775807\n")
}
