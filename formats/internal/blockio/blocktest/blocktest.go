// Package blocktest has the shared test checks of the block-storage formats.
package blocktest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// Read reads a text called "x". It returns the warnings, too.
func Read(f *format.Format, text string, o format.ReadOptions) (t *dag.Trace, warnings string, err error) {
	var said strings.Builder
	o.Warn = func(message string, args ...any) { fmt.Fprintf(&said, message+"\n", args...) }
	t, err = f.Read([]*format.Input{{Name: "x", Reader: strings.NewReader(text)}}, o)
	return t, said.String(), err
}

// List returns the ops of a trace, one per line: "RANK: SUBKIND UNIT ADDRESS+BYTES @RELEASE DURATION ATTRS".
func List(t *dag.Trace) string {
	var b strings.Builder
	for rank := range t.Ranks {
		for i := range t.Ranks[rank].Len() {
			op := t.Ranks[rank].Op(i)
			fmt.Fprintf(&b, "%d: %v %d %d+%d @%v %v %s\n", rank, op.Subkind, op.Peer, op.Tag, op.Bytes, op.Release,
				op.Duration, op.Attrs)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// Check checks that a text is detected, and that its trace is valid and has the given ops, attributes and
// warnings.
func Check(t *testing.T, f *format.Format, text string, o format.ReadOptions, ops, attrs, warnings string) {
	t.Helper()
	trace, said, err := Read(f, text, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := List(trace); got != ops {
		t.Errorf("got\n%s, want\n%s", got, ops)
	}
	if trace.Attrs != attrs {
		t.Errorf("attributes %s, want %s", trace.Attrs, attrs)
	}
	if said != warnings {
		t.Errorf("warnings\n%s, want\n%s", said, warnings)
	}
	if !f.Detect([]byte(text[:min(len(text), format.DetectBytes)])) {
		t.Errorf("not detected:\n%s", text)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
}

// CheckMalformed checks that a line after a good text is an error, and is skipped in lenient mode.
func CheckMalformed(t *testing.T, f *format.Format, good, line, want string) {
	t.Helper()
	number := strings.Count(good, "\n") + 1
	text := good + line + "\n"
	want = fmt.Sprintf("x:%d: %s", number, want)
	if _, _, err := Read(f, text, format.ReadOptions{}); err == nil || err.Error() != want {
		t.Errorf("%q: error %v, want %s", line, err, want)
	}
	trace, warnings, err := Read(f, text, format.ReadOptions{Lenient: true})
	if err != nil {
		t.Errorf("%q: error %v, though lenient", line, err)
		return
	}
	alone, _, err := Read(f, good, format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if List(trace) != List(alone) || !strings.HasPrefix(warnings, want+" (1 line skipped in all)\n") {
		t.Errorf("%q: read leniently\n%s\nwarnings %q", line, List(trace), warnings)
	}
}

// Fuzz checks that every accepted text becomes a valid trace, and that lenient mode loses no records of valid
// texts.
func Fuzz(f *testing.F, reader *format.Format, texts ...string) {
	for _, text := range texts {
		f.Add([]byte(text), false, int64(0))
		f.Add([]byte(text), true, int64(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, anyOrder bool, most int64) {
		reader.Detect(text[:min(len(text), format.DetectBytes)])
		o := format.ReadOptions{Own: &blockio.Options{AnyOrder: anyOrder, MaxRecords: most}}
		trace, _, err := Read(reader, string(text), o)
		o.Lenient = true
		lenient, warnings, lenientErr := Read(reader, string(text), o)
		if err == nil && (lenientErr != nil || List(lenient) != List(trace)) {
			t.Fatalf("read leniently: %v\n%s, else\n%s", lenientErr, List(lenient), List(trace))
		}
		if lenientErr != nil {
			return
		}
		if err != nil && warnings == "" {
			t.Fatalf("error %v, and no warning", err)
		}
		if most > 0 && lenient.Ops() > most {
			t.Fatalf("%d records of at most %d", lenient.Ops(), most)
		}
		if problems := dag.Validate(lenient); len(problems) > 0 {
			t.Fatal(problems[0])
		}
		checkWritten(t, reader, lenient)
	})
}

// checkWritten checks that reading and writing a written trace reproduces the text.
func checkWritten(t *testing.T, f *format.Format, trace *dag.Trace) {
	if f.Write == nil {
		return
	}
	var written, rewritten bytes.Buffer
	if err := f.Write(&written, trace, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	again, _, err := Read(f, written.String(), format.ReadOptions{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, written.String())
	}
	if err := f.Write(&rewritten, again, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if again.Ops() != trace.Ops() || rewritten.String() != written.String() {
		t.Fatalf("%d ops, written\n%s, then\n%s", trace.Ops(), written.String(), rewritten.String())
	}
}
