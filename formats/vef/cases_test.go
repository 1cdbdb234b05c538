package vef

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// TestErrors has one file for each rule that the vectors leave out. A file without a header gets one of three tasks, the
// world and the counts of its records.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ class, text, want string }{
		{"header", "VEF3 0 0 0 0 0 FALSE\n", "number of tasks"},
		{"header", "VEF3 3 -1 0 0 0 FALSE\n", "number of messages"},
		{"header", "VEF3 3 1.5 0 0 0 FALSE\n", "number of messages"},
		{"header", "VEF3 99999999999999999999 0 0 0 0 FALSE\n", "number of tasks"},
		{"header", "VEF3 2000000000 0 0 0 0 FALSE\n", "at most 65536 tasks, or as many"},
		{"header", "VEF3 3 0 0 0 0 FALSE 1000 5\n", "found 9 fields"},
		{"header", "VEF3 3 0 0 0 0 FALSE 1e3\n", "clock tick"},
		{"header", "VEF3 3 0 0 0 0 FALSE -1\n", "clock tick"},
		{"header", "# nothing but this\n", "end of the file"},
		{"header", "vef3 3 0 0 0 0 FALSE\n", "VEF, VEF2 or VEF3"},
		{"communicator", "VEF3 3 0 5 0 0 FALSE\nC0 0 1 2\n", "5 communicators"},
		{"communicator", "VEF3 3 0 1 0 0 FALSE\nC0\n", "tasks of the communicator"},
		{"communicator", "VEF3 3 0 1 0 0 FALSE\nC0 0 x\n", "a task in 0..2"},
		{"communicator", "VEF3 3 0 2 0 0 FALSE\nC0 0 1 2\nC1 2 0 2\n", "task 2 twice"},
		{"communicator", "VEF3 3 0 1 0 0 FALSE\nC0 0 1 2\nC1 0 1\n", "the 1 communicators of the header"},
		{"record", "x 0 1 8 0 0 -1\n", "number of a message"},
		{"record", "-1 0 1 8 0 0 -1\n", "number of a message"},
		{"record", "0 3 1 8 0 0 -1\n", "a source in 0..2"},
		{"record", "0 0 -1 8 0 0 -1\n", "a destination in 0..2"},
		{"record", "0 0 1 8.5 0 0 -1\n", "a size in bytes"},
		{"record", "0 0 1 99999999999999999999 0 0 -1\n", "a size in bytes"},
		{"record", "0 0 1 8 x 0 -1\n", "a kind of dependency"},
		{"record", "0 0 1 8 0 1/2 -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 0x10 -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 Inf -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 NaN -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 1e30 -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 1e999999999 -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 10000000000000000 -1\n", "a time in clock ticks"},
		{"record", "0 0 1 8 0 0 G0\n", "-1, because Dep 0"},
		{"record", "0 0 1 8 0 0 -1\n1 0 1 8 1 0 -1\n", "number of a message"},
		{"record", "0 0 1 8 0 0 -1\n1 0 1 8 1 0 G0\n", "number of a message"},
		{"record", "0 0 1 8 0 0 -1\n1 0 1 8 3 0 0\n", "G and the number"},
		{"record", "0 0 1 8 0 0 -1\n1 0 1 8 3 0 Gx\n", "G and the number"},
		{"record", "G0 0 6 0 0 0 0 0\n", "found 8 fields"},
		{"record", "Gx 0 6 0 0 0 0 0 -1\n", "G and the number"},
		{"record", "G0 x 6 0 0 0 0 0 -1\n", "a communicator"},
		{"record", "G0 0 x 0 0 0 0 0 -1\n", "a collective op"},
		{"record", "G0 0 6 3 0 0 0 0 -1\n", "a task in 0..2"},
		{"record", "G0 0 6 0 -1 0 0 0 -1\n", "a sent size"},
		{"record", "G0 0 6 0 0 x 0 0 -1\n", "a received size"},
		{"record", "G0 0 7 0 8 2 0 0 -1\n", "a mode of all-to-all"},
		{"record", "G0 0 7 0 9000000000000000000 0 0 0 -1\n", "a size of which 3"},
		{"dependency", "0 0 1 8 0 0 -1\n1 0 1 8 1 0 2\n", "the number of a message"},
		{"dependency", "0 0 1 8 1 0 0\n", "cycle of dependencies through lines 3"},
		{"dependency", "0 0 1 8 3 0 G0\n", "the number of a collective"},
		// Task 0 enters the barrier when task 1 has left it.
		{"dependency", "0 1 0 8 3 0 G0\nG0 0 6 0 0 0 2 0 0\nG0 0 6 1 0 0 0 0 -1\nG0 0 6 2 0 0 0 0 -1\n",
			"cycle of dependencies through lines 3, 4"},
		{"dependency", "G0 0 0 0 8 0 2 0 0\nG0 0 0 1 0 8 0 0 -1\nG0 0 0 2 0 8 0 0 -1\n0 1 0 8 3 0 G0\n",
			"cycle of dependencies through lines 3, 6"},
		{"dependency", "G0 0 1 0 0 8 0 0 -1\nG0 0 1 1 8 0 2 0 0\nG0 0 1 2 8 0 0 0 -1\n0 0 1 8 3 0 G0\n",
			"cycle of dependencies through lines 4, 6"},
		{"collective", "G0 0 3 0 8 24 0 0 -1\nG0 0 3 1 8 24 0 0 -1\nG0 0 3 2 8 0 0 0 -1\n", "one root of G0"},
		{"collective", "G0 0 6 0 0 0 0 0 -1\nG0 0 6 0 0 0 0 0 -1\nG0 0 6 2 0 0 0 0 -1\n", "one record of G0 for task 0"},
		{"count", "VEF3 3 0 1 1 3 FALSE\nC0 0 1 2\nG0 0 6 0 0 0 0 0 -1\nG0 0 6 1 0 0 0 0 -1\n", "3 collective records"},
		{"count", "VEF3 3 0 1 2 3 FALSE\nC0 0 1 2\nG0 0 6 0 0 0 0 0 -1\nG0 0 6 1 0 0 0 0 -1\nG0 0 6 2 0 0 0 0 -1\n",
			"2 collectives"},
		{"ext", "VEF3 3 0 0 0 0 FALSE\nEXT\n", "EXT and the name of a model"},
		{"ext", "VEF3 3 0 0 0 0 FALSE\nEXT DCNW FLOWS\n", "EXT and the name of a model"},
	} {
		text := c.text
		if !strings.Contains(strings.ToUpper(text), "VEF") && text[0] != '#' {
			text = withHeader(3, text)
		}
		_, _, err := readText("x.vef", []byte(text), format.ReadOptions{})
		var syntax *format.SyntaxError
		if !errors.As(err, &syntax) || syntax.Class != c.class || syntax.Line < 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, expected %s: ... %s", text, err, c.class, c.want)
		}
	}
}

// withHeader returns a file with the given records.
func withHeader(tasks int, body string) string {
	messages, records := 0, 0
	groups := map[string]bool{}
	for l := range strings.Lines(body) {
		if l[0] == 'G' {
			records++
			groups[strings.Fields(l)[0]] = true
		} else {
			messages++
		}
	}
	text := fmt.Sprintf("VEF3 %d %d 1 %d %d FALSE 1000\nC0", tasks, messages, len(groups), records)
	for i := range tasks {
		text += fmt.Sprint(" ", i)
	}
	return text + "\n" + body
}

// TestSpellings: what a file may look like without meaning anything else.
func TestSpellings(t *testing.T) {
	const body = "0 0 1 8 0 1500 -1\n1 1 2 8 2 20 0\nG0 0 6 0 0 0 1 5 0\nG0 0 6 1 0 0 1 0 1\nG0 0 6 2 0 0 2 7 1\n"
	canonical := withHeader(3, body)
	want := mustWrite(t, mustRead(t, "x", []byte(canonical)))
	for name, text := range map[string]string{
		"carriage returns": strings.ReplaceAll(canonical, "\n", "\r\n"),
		"comments":         "# one\n\n" + strings.ReplaceAll(canonical, "\n1 ", "\n# two\n  \n1 "),
		"tabs":             strings.ReplaceAll(canonical, " ", " \t "),
		"no last line end": strings.TrimSuffix(canonical, "\n"),
		"decimals":         strings.ReplaceAll(canonical, " 1500 ", " 1500.000 "),
		"exponents":        strings.ReplaceAll(canonical, " 1500 ", " 1.5e3 "),
		"leading zeros":    strings.ReplaceAll(canonical, " 1500 ", " 0001500 "),
		"old magic":        strings.Replace(canonical, "VEF3", "VEF2", 1),
		"flag as number":   strings.Replace(canonical, "FALSE", "0", 1),
		"flag in lower":    strings.Replace(canonical, "FALSE", "false", 1),
		"default clock":    strings.Replace(canonical, " 1000\n", "\n", 1),
		"other ids": strings.NewReplacer("\n0 0", "\n70 0", "2 20 0\n", "2 20 70\n", "1 5 0\n", "1 5 70\n", "G0", "G33").
			Replace(canonical),
	} {
		if got := mustWrite(t, mustRead(t, name, []byte(text))); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\nexpected\n%s", name, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // "" none
	}{
		{"VEF 2 1 1 0 0 TRUE\nC0 0 1\n0 0 1 8 0 0 -1\n", ""},
		{"VEF 2 1 1 0 0 FALSE\nC0 0 1\n0 0 1 8 0 0 -1\n", "x.vef:1: the header's flag"},
		{"VEF 2 2 1 0 0 TRUE\nC0 0 1\n0 0 1 8 0 0 -1\n1 1 0 8 2 0 0\n", "x.vef:1: the header's flag"},
		{"VEF 2 1 1 0 0 TRUE\nC0 1 0\n0 0 1 8 0 0 -1\n", "x.vef:2: communicator 0"},
		{"VEF 2 0 1 1 2 TRUE\nC0 0 1\nG0 0 2 0 8 9 0 0 -1\nG0 0 2 1 8 8 0 0 -1\n", "x.vef:3: the sizes"},
		{"VEF 2 0 1 1 2 TRUE\nC0 0 1\nG0 0 3 0 8 9 0 0 -1\nG0 0 3 1 8 0 0 0 -1\n", "x.vef:3: the sizes"},
		{"VEF 2 0 1 1 2 TRUE\nC0 0 1\nG0 0 3 0 8 9 0 0 -1\nG0 0 3 1 1 0 0 0 -1\n", ""},
		{"VEF 2 0 1 1 2 TRUE\nC0 0 1\nG0 0 7 0 8 0 0 0 -1\nG0 0 7 1 9 0 0 0 -1\n", "x.vef:3: the sizes"},
		{"VEF3 2 2 1 0 0 TRUE 1\nC0 0 1\n0 0 1 8 0 0.5 -1\n1 0 1 8 0 0.4 -1\n", "x.vef:3: this and 1 other times"},
	} {
		_, warnings, err := readText("x.vef", []byte(c.text), format.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(warnings, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: warnings %q, expected %q", c.text, got, c.want)
		}
	}
	_, warnings, err := readText("x.vef", []byte("VEF 2 5 1 0 0 TRUE\nC0 0 1\n0 0 1 8 0 0 -1\n"),
		format.ReadOptions{Lenient: true})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "x.vef:1: count: expected 5 messages") {
		t.Errorf("lenient: warnings %q, error %v", warnings, err)
	}
}

// TestOriginStream: the calcs that count the time since the start of the trace stand aside.
func TestOriginStream(t *testing.T) {
	trace := mustRead(t, "x", []byte(withHeader(2, "0 0 1 8 0 100 -1\n1 0 1 8 0 250 -1\n2 1 0 8 0 70 -1\n3 1 0 8 1 5 2\n")))
	for rank := range trace.Ranks {
		r := trace.Ranks[rank]
		for op, kind := range r.Kind {
			stream := int32(0)
			if kind == dag.Calc && r.Deps.Count(op) == 0 || r.Duration.At(op) == 150*dag.Nanosecond {
				stream = originStream
			}
			if r.Stream.At(op) != stream {
				t.Errorf("rank %d op %d (%s) is on stream %d, expected %d", rank, op, kind, r.Stream.At(op), stream)
			}
		}
	}
}

// TestCommunicators: a file keeps its communicators, whether or not the first is the world.
func TestCommunicators(t *testing.T) {
	for _, text := range []string{
		"VEF3 3 1 0 0 0 TRUE 1000\n0 0 1 8 0 0 -1\n",
		"VEF3 3 0 1 1 2 TRUE 1000\nC0 1 2\nG0 0 6 1 0 0 0 0 -1\nG0 0 6 2 0 0 0 5 -1\n",
		"VEF3 3 0 2 1 2 TRUE 1000\nC0 2 1 0\nC1 2 0\nG0 1 0 0 0 8 0 5 -1\nG0 1 0 2 8 0 0 0 -1\n",
	} {
		if got := mustWrite(t, mustRead(t, "x", []byte(text))); string(got) != text {
			t.Errorf("wrote\n%s\nexpected\n%s", got, text)
		}
	}
}

// TestScatterOfOddSum: a scatter whose root sends something else than all parts is lowered by the parts.
func TestScatterOfOddSum(t *testing.T) {
	for sum, want := range map[int]dag.Subkind{16: dag.Scatter, 17: dag.Scatterv} {
		trace := mustRead(t, "x", []byte(withHeader(2, fmt.Sprintf("G0 0 4 0 %d 8 0 0 -1\nG0 0 4 1 0 8 0 0 -1\n", sum))))
		if got := trace.Ranks[1].Subkind.At(0); got != want {
			t.Errorf("a root that sends %d bytes: %s, expected %s", sum, got, want)
		}
	}
}

// writeDAG returns the records of a trace, without the header and communicators.
func writeDAG(t *testing.T, trace *dag.Trace) string {
	t.Helper()
	var body []string
	for l := range strings.Lines(string(mustWrite(t, trace))) {
		if l[0] != 'V' && l[0] != 'C' {
			body = append(body, l)
		}
	}
	return strings.Join(body, "")
}

// TestDependencies has the last three fields of records of all sorts.
func TestDependencies(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *dag.Builder)
		want  string
		lost  string // a part of the first loss; "" none
	}{
		"compute and send": {func(b *dag.Builder) {
			b.Rank(0).Send(1, 8, 0, b.Rank(0).Calc(5000))
			b.Rank(1).Recv(0, 8, 0)
		}, "0 0 1 8 0 5 -1\n", ""},
		"release": {func(b *dag.Builder) {
			b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Release: 7000})
			b.Rank(1).Recv(0, 8, 0)
		}, "0 0 1 8 0 7 -1\n", ""},
		"redundant dependency": {func(b *dag.Builder) {
			r := b.Rank(0)
			first := r.Send(1, 8, 0)
			second := r.Send(1, 8, 1, r.Calc(2000, first))
			r.Send(1, 8, 2, first, second)
			for tag := range int64(3) {
				b.Rank(1).Recv(0, 8, tag)
			}
		}, "0 0 1 8 0 0 -1\n1 0 1 8 1 2 0\n2 0 1 8 1 0 1\n", ""},
		"start of a send": {func(b *dag.Builder) {
			r := b.Rank(0)
			first := r.Send(1, 8, 0)
			r.RequiresStart(r.Send(1, 8, 1), first)
			b.Rank(1).Recv(0, 8, 0)
			b.Rank(1).Recv(0, 8, 1)
		}, "0 0 1 8 0 0 -1\n1 0 1 8 1 0 0\n", ""},
		"start of a calc": {func(b *dag.Builder) {
			r := b.Rank(0)
			first := r.Send(1, 8, 0)
			calc := r.Calc(9000, r.Calc(1000, first))
			r.RequiresStart(r.Send(1, 8, 1), calc)
			b.Rank(1).Recv(0, 8, 0)
			b.Rank(1).Recv(0, 8, 1)
		}, "0 0 1 8 0 0 -1\n1 0 1 8 1 1 0\n", "computation after"},
		// All happens at time 0; that a message waits for another must be kept all the same.
		"late receive at time 0": {func(b *dag.Builder) {
			b.Rank(0).Send(1, 8, 0)
			b.Rank(0).Send(1, 8, 1)
			r := b.Rank(1)
			r.Send(0, 8, 0, r.Recv(0, 8, 1, r.Recv(0, 8, 0)))
			b.Rank(0).Recv(1, 8, 0)
		}, "0 0 1 8 0 0 -1\n1 0 1 8 0 0 -1\n2 1 0 8 2 0 1\n", "dependencies on several events"},
		// The message is there long before its receive, which waits for a computation after another message.
		"late receive": {func(b *dag.Builder) {
			b.Rank(0).Send(1, 8, 0)
			b.Rank(0).Send(1, 8, 1)
			r := b.Rank(1)
			r.Send(0, 8, 0, r.Recv(0, 8, 1, r.Calc(4000, r.Recv(0, 8, 0))))
			b.Rank(0).Recv(1, 8, 0)
		}, "0 0 1 8 0 0 -1\n1 0 1 8 0 0 -1\n2 1 0 8 2 4 0\n", "dependencies on several events"},
		"two messages": {func(b *dag.Builder) {
			b.Rank(0).Send(1, 8, 0, b.Rank(0).Calc(3000))
			b.Rank(0).Send(1, 8, 1)
			r := b.Rank(1)
			r.Send(0, 8, 0, r.Recv(0, 8, 0), r.Calc(1000, r.Recv(0, 8, 1)))
			b.Rank(0).Recv(1, 8, 0)
		}, "0 0 1 8 0 3 -1\n1 0 1 8 0 0 -1\n2 1 0 8 2 0 0\n", "dependencies on several events"},
	} {
		b := dag.NewBuilder(2)
		c.build(b)
		trace := b.Trace()
		if got := writeDAG(t, trace); got != c.want {
			t.Errorf("%s: wrote\n%sexpected\n%s", name, got, c.want)
		}
		lost := losses(trace)
		if c.lost == "" && len(lost) > 0 && lost[0].Kind != "tags" || c.lost != "" && (len(lost) == 0 ||
			!strings.Contains(lost[0].Kind, c.lost)) {
			t.Errorf("%s: losses %v, expected %q", name, lost, c.lost)
		}
	}
}

func TestClock(t *testing.T) {
	for delay, want := range map[dag.Time]string{5000: " 1000\n", 1500: " 500\n", 999: " 1\n", 0: " 1000\n"} {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, 8, 0, b.Rank(0).Calc(delay))
		b.Rank(1).Recv(0, 8, 0)
		trace := b.Trace()
		text := mustWrite(t, trace)
		if head, _, _ := strings.Cut(string(text), "\n"); !strings.HasSuffix(head+"\n", want) {
			t.Errorf("delay %v: header %q, expected clock %q", delay, head, want)
		}
		var out bytes.Buffer
		err := write(&out, trace, format.WriteOptions{Own: &WriteOptions{Version: 1}})
		if old := want == " 1000\n"; old != (err == nil) || old && !strings.HasPrefix(out.String(), "VEF 2 1 1 0 0 TRUE\n") {
			t.Errorf("delay %v, version 1: error %v, wrote %q", delay, err, out.String())
		}
	}
}

// TestOldVersion: version 1 has another clock than the trace was read with, where that does no harm.
func TestOldVersion(t *testing.T) {
	for clock, want := range map[int]string{2000: " 6 -1\n", 500: " 1 -1\n", 3: ""} {
		text := strings.Replace(withHeader(2, "0 0 1 8 0 3 -1\n"), " 1000\n", fmt.Sprintf(" %d\n", clock), 1)
		if clock == 500 {
			text = strings.Replace(text, " 3 -1", " 2 -1", 1)
		}
		var out bytes.Buffer
		err := write(&out, mustRead(t, "x", []byte(text)), format.WriteOptions{Own: &WriteOptions{Version: 1}})
		if want == "" && err == nil || want != "" && (err != nil || !strings.HasSuffix(out.String(), want)) {
			t.Errorf("clock %d: error %v, wrote %q", clock, err, out.String())
		}
	}
}

func TestWriteErrors(t *testing.T) {
	deadlock := dag.NewBuilder(2)
	for i := range 2 {
		r := deadlock.Rank(i)
		r.Send(int32(1-i), 8, 0, r.Recv(int32(1-i), 8, 0))
	}
	alone := dag.NewBuilder(1)
	alone.Rank(0).Send(0, 8, 0)
	circle := dag.NewBuilder(1)
	circle.Rank(0).Calc(5)
	circle.Rank(0).Requires(0, 0)
	missing := dag.NewBuilder(2)
	missing.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	negative := dag.NewBuilder(1)
	negative.Rank(0).Calc(-5)
	lonely := dag.NewBuilder(2) // there is a receive, but not one send
	for i := range 2 {
		r := lonely.Rank(i)
		barrier := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
		if i == 0 {
			r.Requires(barrier, r.Recv(1, 8, 0))
		}
	}
	pair := func(a, b dag.Op) *dag.Trace {
		x := dag.NewBuilder(2)
		a.Kind, b.Kind = dag.Coll, dag.Coll
		x.Rank(0).Add(a)
		x.Rank(1).Add(b)
		return x.Trace()
	}
	more := pair(dag.Op{Subkind: dag.Barrier}, dag.Op{Subkind: dag.Barrier})
	more.Comms = append(more.Comms, dag.NewComm("", []int32{1}))
	more.Ranks[0].Comm.Set(0, 1)
	more.Ranks[1].Comm.Set(0, 1)
	twice := dag.NewBuilder(2)
	for range 2 {
		twice.Rank(0).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	}
	for want, trace := range map[string]*dag.Trace{
		"at least 1 rank": dag.NewBuilder(0).Trace(),
		"cyclic dependency: the op waits for itself":             circle.Trace(),
		"a message from rank 1, tag 0":                           lonely.Trace(),
		"has more collectives on this rank":                      twice.Trace(),
		"expected a collective of a communicator with this rank": more,
		"have a barrier with root 0":                             pair(dag.Op{Subkind: dag.Barrier}, dag.Op{Subkind: dag.Alltoall}),
		"op 0 (bcast, root 1)":                                   pair(dag.Op{Subkind: dag.Bcast}, dag.Op{Subkind: dag.Bcast, Peer: 1}),
		"root 7 is no member":                                    pair(dag.Op{Subkind: dag.Reduce, Peer: 7}, dag.Op{Subkind: dag.Reduce, Peer: 7}),
		"a receive on rank 0, tag 0":                             alone.Trace(),
		"stuck: rank 0, op 0 (recv) waits":                       deadlock.Trace(),
		"expected equally many collective ops":                   missing.Trace(),
		"expected a duration of 0 or more":                       negative.Trace(),
	} {
		var out bytes.Buffer
		err := write(&out, trace, format.WriteOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
		losses(trace) // must do no harm
	}
}

// TestForeignAttributes: attributes that do not mean what VEF means by them are lost, not believed.
func TestForeignAttributes(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	r.Add(dag.Op{Attrs: selfRecvAttrs})
	r.Add(dag.Op{Attrs: selfRecvAttrs}, 0)
	r.Add(dag.Op{Attrs: selfRecvAttrs}, 1, 0)
	trace := b.Trace()
	lost := losses(trace)
	if text := writeDAG(t, trace); text != "" || len(lost) != 1 || lost[0] != (format.Loss{Kind: "attributes", Count: 3}) {
		t.Errorf("wrote %q, losses %v", text, lost)
	}
}

// failingWriter fails after some bytes.
type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestWriteFails(t *testing.T) {
	text, _ := program(16, 2000)
	trace := mustRead(t, "x", text)
	for _, left := range []int{0, 1 << 17, len(text) - 100} {
		if err := write(&failingWriter{left}, trace, format.WriteOptions{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("room for %d bytes: error %v", left, err)
		}
	}
}
