package hpcc

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio/flowtest"
)

func TestRead(t *testing.T) {
	trace, warnings, err := flowtest.Read(&Format, "2\n0 3 3 100 1500 2.000000001\n3 1 3 100 7 2.5\n", format.ReadOptions{})
	if err != nil || warnings != "" {
		t.Fatal(err, warnings)
	}
	want := `0: send to 3, 1500 bytes, tag 0, at 2.000000001s
1: recv from 3, 7 bytes, tag 1
3: recv from 0, 1500 bytes, tag 0
3: send to 1, 7 bytes, tag 1, at 2.5s {"hpcc":{"line":"3 1 3 100 7 2.5"}}
`
	if got := flowtest.List(trace); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if want := `{"hpcc":{"priority":3,"port":100,"decimals":9}}`; trace.Attrs != want {
		t.Errorf("attributes %s, want %s", trace.Attrs, want)
	}
	if l := losses(trace); len(l) > 0 {
		t.Errorf("losses %v", l)
	}
}

// A file whose flows are in the order of their times comes back byte for byte, through the store or not.
func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		"1\n0 1 3 100 1000 2.000000000\n",
		"3\n0 1 3 100 1000 0\n5 1 3 100 0 1\n1 0 3 100 9223372036854775807 9223372\n",
		"2\n0 1 3 1000 2.1\n1 0 3 2000 2.2\n", // without ports
		"4\n7 1 3 100 1000 2.000000001\n2 1 4 100 1000 2.000000001\n2 1 3 101 1000 2.000000002\n 0  1 3 100 1 3.0 \n",
		"2\n0 1 3 100 1000 0.000000000000\n0 1 3 100 1000 0.000000000001\n",
		"2\n0 1 3 100 1000 0.5\n0 1 3 100 1000 0.6234567890123456\n",
	} {
		flowtest.RoundTrip(t, &Format, text, format.ReadOptions{})
	}
}

func TestMalformed(t *testing.T) {
	const good = "0 1 3 100 1000 1.5\n"
	for line, want := range map[string]string{
		"0 1":                                  `expected source, destination, priority group, port (or none), size and start, found "0"`,
		"0 1 3 100 1000 1.5 7":                 `expected source, destination, priority group, port (or none), size and start, found "0"`,
		"-1 1 3 100 1000 1.5":                  `expected a source node (0..1048575), found "-1"`,
		"0 1048576 3 100 1000 1.5":             `expected a destination node (0..1048575), found "1048576"`,
		"0 1 x 100 1000 1.5":                   `expected a priority group (0..2147483647), found "x"`,
		"0 1 3 y 1000 1.5":                     `expected a port (0..2147483647), found "y"`,
		"0 1 3 100 1.5 1.5":                    `expected a blank and another field, found ".5"`,
		"0 1 3 100 9223372036854775808 1":      `expected a size in bytes (0..9223372036854775807), found "9223372036854775808"`,
		"0 1 3 100 1000 -1":                    `expected a start in seconds, found "-1"`,
		"0 1 3 100 1000 9223373":               `expected a start in seconds of at most 106 days, found "9223373"`,
		"0 1 3 100 1000 1e3":                   `expected the end of the line, found "e3"`,
		"0 1 3 100 1000 nan":                   `expected a start in seconds, found "nan"`,
		strings.Repeat("9", 50) + " 1 3 1 1 1": `expected a source node (0..1048575), found "` + strings.Repeat("9", 40) + `"...`,
	} {
		_, _, err := flowtest.Read(&Format, "3\n"+good+line+"\n"+good, format.ReadOptions{})
		if err == nil || err.Error() != "x:3: "+want {
			t.Errorf("%q: error %v, want %s", line, err, want)
		}
		trace, warnings, err := flowtest.Read(&Format, "3\n"+good+line+"\n"+good, format.ReadOptions{Lenient: true})
		if err != nil || trace.Ops() != 4 || !strings.Contains(warnings, want) {
			t.Errorf("%q: lenient: error %v, warnings %q", line, err, warnings)
		}
	}
	for text, want := range map[string]string{
		"":                              "x:1: expected the number of flows, found the end of the file",
		"x\n":                           `x:1: expected the number of flows (0..9223372036854775807), found "x"`,
		"1 2\n":                         `x:1: expected the number of flows and no other field, found "2"`,
		"2\n" + good:                    "x:2: expected 2 flows, as in the first line, found 1",
		"1\n0 1048575 3 100 1000 1.5\n": "x: 1048576 nodes have only 1 flows: expected at most 65536 nodes, or a flow for every 16 nodes",
	} {
		if _, _, err := flowtest.Read(&Format, text, format.ReadOptions{}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	trace, warnings, err := flowtest.Read(&Format, "1\n"+good+good, format.ReadOptions{})
	if err != nil || trace.Ops() != 2 || !strings.Contains(warnings, "skipped") {
		t.Errorf("a flow too many: error %v, warnings %q", err, warnings)
	}
}

// A trace of another format is written in the style of HPCC's generator, in time order, and its losses are
// reported.
func TestWriteOthers(t *testing.T) {
	b := dag.NewBuilder(4)
	b.Rank(2).Add(dag.Op{Kind: dag.Send, Peer: 0, Bytes: 9, Tag: 5, Release: 2 * dag.Nanosecond})
	b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Tag: 7, Release: dag.Picosecond}, b.Rank(0).Calc(3))
	b.Rank(0).Recv(2, 9, 5)
	b.Rank(1).Recv(0, 8, 7)
	trace := b.Trace()
	var text bytes.Buffer
	if err := write(&text, trace, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := "2\n0 1 3 100 8 0.000000000001\n2 0 3 100 9 0.000000002\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
	want := "[1 op: that they are no messages, and are skipped 1 op: dependencies 1 op: durations " +
		"2 ops: tags, which become flow numbers of the file " +
		"1 op: ranks without messages, whose number changes when the file is read again]"
	if got := fmt.Sprint(losses(trace)); got != want {
		t.Errorf("losses %s, want %s", got, want)
	}
	if err := write(io.Discard, dag.NewBuilder(1).Trace(), format.WriteOptions{}); err == nil {
		t.Error("a trace without messages is written")
	}
}

// A kept line that no longer matches its flow is not written.
func TestStaleLine(t *testing.T) {
	trace, _, err := flowtest.Read(&Format, "1\n0 1 3 100 10 1.5 \n", format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trace.Ranks[0].Bytes[0] = 11
	var text bytes.Buffer
	if err := write(&text, trace, format.WriteOptions{}); err != nil || text.String() != "1\n0 1 3 100 11 1.5\n" {
		t.Errorf("%v, %q", err, text.String())
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]bool{
		"1\n0 1 3 100 1000 1.5\n": true, "12\r\n0 1 3 1000 1.5\r\n": true, "12": false, "1\n": false, "x\n0 1 3 100 1000 1.5\n": false,
		"1\n0 1 3 100\n": false, "": false, "1\n" + strings.Repeat("1", 5000): false,
	} {
		if got := detect([]byte(head)); got != want {
			t.Errorf("%.20q: %v, want %v", head, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"1\n0 1 3 100 1000 2.000000000\n", "2\n0 1 3 1000 2.1\n 1  0 3 2000 2.2\n", "0\n", "3\n0 1 3 100 1 1.5\n",
		"1\n255 0 0 0 0 0.0000000000001\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { flowtest.Fuzz(t, &Format, text) })
}

func BenchmarkRead(b *testing.B)  { flowtest.BenchmarkRead(b, &Format, 200_000) }
func BenchmarkWrite(b *testing.B) { flowtest.BenchmarkWrite(b, &Format, 200_000) }
