package htsim

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio"
	"github.com/tracedag/tracedag/formats/internal/flowio/flowtest"
)

// chain is four flows, each of which starts when the one before is over.
const chain = `Nodes 16
Connections 4
Triggers 3
0->5 id 1 start 1000000 size 65536 send_done_trigger 1
5->10 id 2 trigger 1 size 65536 send_done_trigger 2
5->15 id 3 trigger 2 size 65536 send_done_trigger 3
2->0 id 4 trigger 3 size 65536
trigger id 1 oneshot
trigger id 2 oneshot
trigger id 3 oneshot
`

func TestTriggers(t *testing.T) {
	line := func(s string) string { return fmt.Sprintf(` {"htsim":{"line":%q}}`, s) }
	lines := strings.Split(strings.ReplaceAll(chain, ">", `>`), "\n")
	escaped := func(i int) string { return strings.ReplaceAll(line(lines[i]), "->", `-\u003e`) }
	trace, warnings, err := flowtest.Read(&Format, chain, format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Flow 2 starts where flow 1 arrives, flow 3 where flow 2 is sent; flow 4 must be told.
	want := "0: send to 5, 65536 bytes, tag 0, at 1us" + escaped(3) + `
0: recv from 2, 65536 bytes, tag 3
2: send to 0, 65536 bytes, tag 3, at 0s after 1` + escaped(6) + `
2: recv from 15, 0 bytes, tag 4 {"htsim":{"trigger":3}}
5: recv from 0, 65536 bytes, tag 0
5: send to 10, 65536 bytes, tag 1, at 0s after 0` + escaped(4) + `
5: send to 15, 65536 bytes, tag 2, at 0s after 1` + escaped(5) + `
10: recv from 5, 65536 bytes, tag 1
15: recv from 5, 65536 bytes, tag 2
15: send to 2, 0 bytes, tag 4, at 0s after 0 {"htsim":{"trigger":3}}
`
	if got := flowtest.List(trace); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if !strings.Contains(warnings, "(1 in all)") {
		t.Errorf("warnings %q", warnings)
	}
}

// The waits that triggers cause, in words: flow, "<" and the flows that the ops before it in the DAG are of.
func TestShots(t *testing.T) {
	for _, test := range []struct{ flows, triggers, want, warning string }{
		{ // a barrier joins at the source of the flow that it starts
			"0->2 id 1 start 0 size 1 send_done_trigger 1\n1->2 id 2 start 0 size 1 send_done_trigger 1\n2->3 id 3 trigger 1 size 1\n",
			"trigger id 1 barrier count 2\n", "3<1,2", "",
		},
		{ // and tells the sources of others
			"0->2 id 1 start 0 size 1 send_done_trigger 1\n1->2 id 2 start 0 size 1 send_done_trigger 1\n" +
				"2->3 id 3 trigger 1 size 1\n3->2 id 4 trigger 1 size 1\n",
			"trigger id 1 barrier count 2\n", "3<1,2 4<1,2", "(1 in all)",
		},
		{ // a oneshot starts several
			"0->1 id 1 start 0 size 1 send_done_trigger 7\n0->2 id 2 trigger 7 size 1\n1->2 id 3 trigger 7 size 1\n",
			"trigger id 7 oneshot\n", "2<1 3<1", "",
		},
		{ // a multishot starts one at a time
			"0->1 id 1 start 0 size 1 send_done_trigger 1\n0->2 id 2 trigger 1 size 1 send_done_trigger 1\n0->3 id 3 trigger 1 size 1\n",
			"trigger id 1 multishot\n", "2<1 3<2", "",
		},
		{ // of which nobody knows the order where two end at a time
			"0->1 id 1 start 0 size 1 send_done_trigger 1\n0->2 id 2 start 0 size 1 send_done_trigger 1\n" +
				"0->3 id 3 trigger 1 size 1\n0->4 id 4 trigger 1 size 1\n",
			"trigger id 1 multishot\n", "3<1 4<2", "multishot",
		},
		{ // the end at the receiver
			"0->1 id 1 start 0 size 1 recv_done_trigger 1\n0->2 id 2 trigger 1 size 1\n",
			"trigger id 1 oneshot\n", "2<1", "(1 in all)",
		},
		{ // a flow that ends several things, and a trigger that starts nothing
			"0->1 id 1 start 0 size 1 send_done_trigger 1 recv_done_trigger 2\n0->2 id 2 trigger 1 size 1 recv_done_trigger 3\n" +
				"1->2 id 3 trigger 2 size 1\n",
			"trigger id 1 oneshot\ntrigger id 2 oneshot\ntrigger id 3 oneshot\n", "2<1 3<1", "",
		},
	} {
		text := fmt.Sprintf("Nodes 5\nConnections %d\nTriggers %d\n%s%s", strings.Count(test.flows, "\n"),
			strings.Count(test.triggers, "\n"), test.flows, test.triggers)
		trace, warnings, err := flowtest.Read(&Format, text, format.ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := waits(trace, strings.Count(test.flows, "\n")); got != test.want {
			t.Errorf("%s: %s, want %s", text, got, test.want)
		}
		if (test.warning == "") != (warnings == "") || !strings.Contains(warnings, test.warning) {
			t.Errorf("%s: warnings %q", text, warnings)
		}
		flowtest.RoundTrip(t, &Format, text, format.ReadOptions{})
	}
}

// waits lists for each flow those whose end it waits for, through messages that only tell and calcs that only join.
func waits(trace *dag.Trace, flows int) string {
	type place struct{ rank, op int }
	sent := map[int64]place{} // by tag
	for rank := range trace.Ranks {
		for op, kind := range trace.Ranks[rank].Kind {
			if kind == dag.Send {
				sent[trace.Ranks[rank].Tag.At(op)] = place{rank, op}
			}
		}
	}
	var list []string
	for k := range flows {
		before := map[int64]bool{}
		var visit func(p place)
		visit = func(p place) {
			r := trace.Ranks[p.rank]
			for _, off := range r.Deps.Of(p.op) {
				on := place{p.rank, p.op - int(off)}
				tag := r.Tag.At(on.op)
				switch {
				case r.Kind[on.op] == dag.Calc:
					visit(on)
				case tag < int64(flows):
					before[tag+1] = true
				default: // a notice
					visit(sent[tag])
				}
			}
		}
		visit(sent[int64(k)])
		var by []string
		for f := range int64(flows) {
			if before[f+1] {
				by = append(by, fmt.Sprint(f+1))
			}
		}
		if len(by) > 0 {
			list = append(list, fmt.Sprintf("%d<%s", k+1, strings.Join(by, ",")))
		}
	}
	return strings.Join(list, " ")
}

func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		chain,
		"Nodes 2\nConnections 1\n0->1 id 1 start 0 size 2000000\n",
		"Nodes 4\nConnections 3\n3->1 id 1 start 5000 size 10\n0->1 id 2 start 0 size 10\n1->0 id 3 start 9223372036854775807 size 10\n",
		"Nodes 4\nConnections 3\n3->1 start 5000 size 10\n0->1 id 7 start 0 size 10 prio 3 addon\n1->0 size 5 msg 3 id 9 start 4\n",
		"Nodes 16\nConnections 1\nFailures 1\n0->1 id 1 start 0 size 1\nfailure switch_type AGG switch_id 3 link_id 0\n",
		"Nodes 4\nConnections 1\n1->1 id 1 start 0.0 size 1\n",
	} {
		flowtest.RoundTrip(t, &Format, text, format.ReadOptions{})
	}
	var o format.ReadOptions
	o.Own = &flowio.Options{Cycle: dag.Microsecond}
	const text = "Nodes 4\nConnections 3\n3->1 id 1 start 5 size 10\n0->1 id 2 start 0.25 size 10\n0->1 id 3 start 0.500000 size 1\n"
	flowtest.RoundTrip(t, &Format, text, o)
	trace, _, err := flowtest.Read(&Format, text, o)
	if err != nil || trace.Ranks[3].Release[0] != 5*dag.Microsecond || trace.Ranks[0].Release[0] != dag.Microsecond/4 {
		t.Errorf("error %v, releases %v, %v", err, trace.Ranks[3].Release, trace.Ranks[0].Release)
	}
	o.Own = &flowio.Options{Cycle: 7}
	if _, _, err := flowtest.Read(&Format, text, o); err == nil {
		t.Error("a unit of 7 ps is accepted")
	}
	flowtest.RoundTripTo(t, &Format, "# made by hand\nConnections  1\n\nNodes 2\n0->1 id 1 start 0 size 1\r\n",
		"Nodes 2\nConnections 1\n0->1 id 1 start 0 size 1\n", format.ReadOptions{})
}

func TestMalformed(t *testing.T) {
	const head = "Nodes 4\nConnections 1\nTriggers 1\n"
	for text, want := range map[string]string{
		"Nodes 0\n": `x:1: expected the number of nodes (1..1048576), found "0"`,
		"Nodes\n":   `x:1: expected the number of nodes (1..1048576), found the end of the line`,
		"Hosts 4\n": `x:1: expected Nodes, Connections, Triggers, Failures, a flow such as 0->1, trigger or failure, found "Hosts"`,
		"Nodes 1000000\nConnections 1\n0->1 start 0 size 1\n":                              "x: 1000000 nodes have only 1 flows: expected at most 65536 nodes, or a flow for every 16 nodes",
		"Nodes 4\nConnections 2\n0->1 start 0 size 1\n":                                    "x: expected 2 lines, as announced by Connections, found 1",
		head + "0->4 start 0 size 1\n":                                                     `x:4: expected nodes 0..3, found 4`,
		head + "0-> start 0 size 1\n":                                                      `x:4: expected a destination node (0..1048575), found ""`,
		head + "a->1 start 0 size 1\n":                                                     `x:4: expected a source node (0..1048575), found "a"`,
		head + "0->1 start 0 size 0\n":                                                     `x:4: expected a size in bytes (1..9223372036854775807), found "0"`,
		head + "0->1 start 0\n":                                                            `x:4: expected the size of the flow, found none`,
		head + "0->1 size 1\n":                                                             `x:4: expected a start or a trigger, found neither`,
		head + "0->1 size 1 start 0 trigger 1\n":                                           `x:4: expected a start or a trigger, found both`,
		head + "0->1 start -1 size 1\n":                                                    `x:4: expected a start, in units of 1ps, found "-1"`,
		head + "0->1 start\n":                                                              `x:4: expected a start, in units of 1ps, found the end of the line`,
		head + "0->1 id 0 start 0 size 1\n":                                                `x:4: expected a flow number (1..2147483647), found "0"`,
		head + "0->1 colour red\n":                                                         `x:4: expected id, start, trigger, size, send_done_trigger, recv_done_trigger, prio, msg or addon, found "colour"`,
		head + "trigger oneshot\n":                                                         `x:4: expected the id of the trigger, found none`,
		head + "trigger id 1\n":                                                            `x:4: expected oneshot, multishot or barrier, found none of them`,
		head + "trigger id 1 oneshot barrier\n":                                            `x:4: expected one of oneshot, multishot or barrier, found two`,
		head + "trigger id 1 barrier\n":                                                    `x:4: expected the count of the barrier, 1 or more, found none`,
		head + "trigger id 1 oneshot\ntrigger id 1 oneshot\n":                              `x:5: expected every trigger once, found 1 again`,
		head + "failure switch_type LEAF\n":                                                `x:4: expected TOR, AGG or CORE, found "LEAF"`,
		head + "failure link_id\n":                                                         `x:4: expected a value, found the end of the line`,
		head + "0->1 trigger 2 size 1\ntrigger id 1 oneshot\n":                             "x: flow 1: expected the number of a defined trigger, found 2",
		head + "0->1 trigger 1 size 1\ntrigger id 1 oneshot\n":                             "x: trigger 1: expected 1 flow that activate it, found 0",
		head + "0->1 trigger 1 size 1 send_done_trigger 1\ntrigger id 1 barrier count 2\n": "x: trigger 1: expected 2 flows that activate it, found 1",
	} {
		if _, _, err := flowtest.Read(&Format, text, format.ReadOptions{}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// Dependencies of a trace of another format become triggers if triggers can express them.
func TestWriteOthers(t *testing.T) {
	b := dag.NewBuilder(4)
	first := b.Rank(0).Send(1, 100, 1)
	b.Rank(0).Send(2, 100, 2, first)
	arrival := b.Rank(1).Recv(0, 100, 1)
	other := b.Rank(1).Recv(3, 50, 9)
	b.Rank(3).Send(1, 50, 9)
	b.Rank(1).Send(3, 0, 4, arrival, other) // needs another set than the second flow of rank 0 does
	b.Rank(2).Recv(0, 100, 2)
	b.Rank(3).Add(dag.Op{Kind: dag.Recv, Peer: 1, Tag: 4})
	b.Rank(2).Add(dag.Op{Kind: dag.Send, Peer: 3, Bytes: 1 << 30, Tag: 5, Release: 1<<24 + 1}, 0)
	b.Rank(3).Recv(2, 1<<30, 5)
	trace := b.Trace()
	want := `Nodes 4
Connections 5
Triggers 2
0->1 id 1 start 0 size 100 send_done_trigger 1
0->2 id 2 trigger 1 size 100 send_done_trigger 2
1->3 id 3 start 0 size 1
3->1 id 4 start 0 size 50
2->3 id 5 trigger 2 size 1073741824
trigger id 1 oneshot
trigger id 2 oneshot
`
	if got := flowtest.Write(t, &Format, trace); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	wantLosses := "[5 ops: tags, which become flow numbers of the file 1 op: dependencies that no trigger can express " +
		"1 op: start times of flows with a trigger 1 op: sizes of 0 bytes, written as 1 because 0 means endless]"
	if got := fmt.Sprint(losses(trace)); got != wantLosses {
		t.Errorf("losses\n%s, want\n%s", got, wantLosses)
	}
	var warning string
	if err := write(io.Discard, trace, format.WriteOptions{Warn: func(m string, args ...any) { warning = fmt.Sprintf(m, args...) }}); err != nil ||
		!strings.Contains(warning, "rounds 1 of them") {
		t.Errorf("error %v, warning %q", err, warning)
	}
	trace.Ranks[0].Bytes[0] = 1 << 31
	if err := write(io.Discard, trace, format.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "at most 2147483647 bytes") {
		t.Errorf("error %v", err)
	}
	if err := write(io.Discard, dag.NewBuilder(1).Trace(), format.WriteOptions{}); err == nil {
		t.Error("a trace without messages is written")
	}
}

// Triggers are derived from dependencies if the trace no longer matches its lines.
func TestStaleLines(t *testing.T) {
	trace, _, err := flowtest.Read(&Format, chain, format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trace.Ranks[0].Bytes[0] = 5
	got := flowtest.Write(t, &Format, trace)
	if !strings.HasPrefix(got, "Nodes 16\nConnections 5\nTriggers 4\n") || !strings.Contains(got, "0->5 id 1 start 1000000 size 5 ") {
		t.Errorf("got\n%s", got)
	}
	again, _, err := flowtest.Read(&Format, got, format.ReadOptions{})
	if err != nil || waits(again, 5) != "2<1 3<2 4<5 5<3" {
		t.Errorf("error %v, %s", err, waits(again, 5))
	}
}

// Reading and writing htsim's own connection matrices reproduces them byte for byte.
func TestVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	names, err := filepath.Glob(filepath.Join(folder, "packet", "inputs", "*.cm"))
	if err != nil || len(names) == 0 {
		t.Fatal(err, "no connection matrices")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		flowtest.RoundTrip(t, &Format, string(text), format.ReadOptions{})
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{chain,
		"Nodes 5\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 1 send_done_trigger 1\n0->2 id 2 trigger 1 size 1 send_done_trigger 1\n0->3 id 3 trigger 1 size 1\ntrigger id 1 multishot\n",
		"Nodes 4\nConnections 3\nTriggers 1\n0->2 id 1 start 0 size 1 send_done_trigger 1\n1->2 start 7.5 size 1 recv_done_trigger 1\n2->3 id 3 trigger 1 size 1\ntrigger id 1 barrier count 2\n",
		"Nodes 2\nConnections 1\nTriggers 1\n0->1 id 1 trigger 1 size 1 send_done_trigger 1\ntrigger id 1 oneshot\n",
		"Nodes 2\nConnections 1\nFailures 1\n0->1 id 5 start 3 size 1 msg addon prio 1\nfailure switch_type TOR switch_id 1 link_id 2\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { flowtest.Fuzz(t, &Format, text) })
}

func BenchmarkRead(b *testing.B)  { flowtest.BenchmarkRead(b, &Format, 200_000) }
func BenchmarkWrite(b *testing.B) { flowtest.BenchmarkWrite(b, &Format, 200_000) }
