package goal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// patched is an output that can be changed.
type patched struct{ bytes.Buffer }

func (p *patched) WriteAt(b []byte, at int64) (int, error) {
	return copy(p.Bytes()[at:], b), nil
}

// checkStream checks that a text read batch by batch, with batches of all sizes, or once, gives the trace, the error and
// the warnings of reading it as a whole, and the same outputs.
func checkStream(t testing.TB, text []byte, o format.ReadOptions, own *Options) {
	t.Helper()
	var warned, wantWarned []string
	o.Own = own
	o.Warn = func(message string, args ...any) { wantWarned = append(wantWarned, fmt.Sprintf(message, args...)) }
	want, wantErr := Text.Read(stream("x.goal", text), o)
	o.Warn = func(message string, args ...any) { warned = append(warned, fmt.Sprintf(message, args...)) }
	checkRead := func(err error) bool {
		t.Helper()
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(warned, wantWarned) {
			t.Fatalf("%q: error %v, expected %v; warnings %q, expected %q", text, err, wantErr, warned, wantWarned)
		}
		return err == nil
	}
	source := func(batch int64) *textSource {
		warned = nil
		return newTextSource(plainFile("x.goal", text)[0], o, own, batch)
	}
	parts := func() *textSource { // blocks of two ops or more are read in parts
		s := source(64)
		s.in.At, s.long, s.part = shortReads{s.in.At, 30}, 2, 2
		return s
	}
	for _, batch := range []int64{1, 40, 1 << 30, 0} {
		s := parts()
		if batch > 0 {
			s = source(batch)
		}
		h, err := s.Header()
		if !checkRead(err) {
			continue
		}
		got, err := dag.ReadAll(s)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: batches of %d bytes give another trace", text, batch)
		}
		checkRuns(t, s, h, want)
		if h.Ops != want.Ops() || !reflect.DeepEqual(h.Kinds, want.Kinds()) {
			t.Fatalf("%q: header of %d ops of kinds %v", text, h.Ops, h.Kinds)
		}
		if what, err := s.Disagreement(); err != nil || what != dag.Disagreement(want) {
			t.Fatalf("%q: disagreement %q, error %v, expected %q", text, what, err, dag.Disagreement(want))
		}
	}
	for _, f := range []format.Format{Text, Binary} {
		var whole bytes.Buffer
		var losses, wantLosses []format.Loss
		wantWriteErr := errors.Join(wantErr)
		if wantErr == nil {
			wantWriteErr = f.WriteSource(&whole, dag.FromTrace(want), format.WriteOptions{Losses: func(l []format.Loss) error {
				wantLosses = l
				return nil
			}})
		}
		write := format.WriteOptions{Frugal: true, Losses: func(l []format.Loss) error {
			losses = l
			return nil
		}}
		check := func(how string, out *patched, err error) {
			t.Helper()
			if fmt.Sprint(err) != fmt.Sprint(wantWriteErr) ||
				err == nil && (!bytes.Equal(out.Bytes(), whole.Bytes()) || !reflect.DeepEqual(losses, wantLosses)) {
				t.Fatalf("%q to %s, %s: %d bytes, losses %v, error %v; expected %d, %v, %v", text, f.Name, how, out.Len(),
					losses, err, whole.Len(), wantLosses, wantWriteErr)
			}
		}
		var out patched
		check("two passes", &out, f.WriteSource(&out, source(1), write))
		out.Reset()
		write.Rewrite = &out
		check("one pass after the header", &out, f.WriteSource(&out, source(40), write))
		out.Reset()
		s := source(40)
		ops, err := f.WriteOnce(&out, s, write)
		if errors.Is(err, format.ErrTwice) {
			if wantErr == nil && !anyReleased(want) {
				t.Fatalf("%q: not written once", text)
			}
			_, err := s.Header()
			checkRead(err)
			continue
		}
		check("once", &out, err)
		if err == nil && (ops != want.Ops() || !reflect.DeepEqual(warned, wantWarned)) {
			t.Fatalf("%q: %d ops, warnings %q", text, ops, warned)
		}
	}
}

func anyReleased(t *dag.Trace) bool {
	for _, r := range t.Ranks {
		if r.Release.Present() > 0 {
			return true
		}
	}
	return false
}

// TestStreamText compares the texts of the vectors, of random traces and of clocks, read in all ways.
func TestStreamText(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(vectors, "*.goal"))
	if err != nil || len(names) == 0 {
		t.Fatal("no texts", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 20_000 {
			checkStream(t, text, options(false), new(Options))
		}
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		trace := randomTrace(rng)
		var text bytes.Buffer
		if Text.Write(&text, trace, format.WriteOptions{}) == nil {
			checkStream(t, text.Bytes(), options(false), new(Options))
		}
	}
	clocked := "num_ranks 2\nrank 0 {\n// clock\nl1: calc 5 cpu 1\nl2: send 8b to 1\nl2 requires l1\n}\n" +
		"rank 1 {\nl1: recv 8b from 0\nl2: calc 7 cpu 1\nl2 requires l1\n}\n"
	for _, own := range []*Options{{}, {Clock: ClockNone}, {Clock: ClockStream, Stream: 1}, {Clock: ClockStream, Stream: 3}} {
		checkStream(t, []byte(clocked), options(false), own)
	}
}

// TestStreamTextChoice checks which texts are streamed.
func TestStreamTextChoice(t *testing.T) {
	large := append([]byte("num_ranks 1\nrank 0 {\ncalc 1\n}\n//"), bytes.Repeat([]byte("x"), smallText)...)
	for _, c := range []struct {
		name string
		in   []*format.Input
		own  *Options
		want bool
	}{
		{"large file", plainFile("x", large), new(Options), true},
		{"pipe", stream("x", large), new(Options), false},
		{"small file", plainFile("x", large[:smallText]), new(Options), false},
		{"clock that depends on all ranks", plainFile("x", large), &Options{Clock: ClockAuto}, false},
	} {
		o := options(false)
		o.Own = c.own
		s, err := streamText(c.in[0], o)
		if err != nil || (s != nil) != c.want {
			t.Errorf("%s: source %v, error %v", c.name, s != nil, err)
		}
	}
}

// TestStreamTextChanges checks that a file that changes between the passes is an error.
func TestStreamTextChanges(t *testing.T) {
	text := []byte("num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 1 {\ncalc 2\n}\n")
	for _, with := range []string{"calc 1\n}\nrank 1 {\n//a 2\n}", "calc 1\n}\nrank 1 {\ncalc 2\n//}", "calc 1\n}\nrank 2 {\n"} {
		content := bytes.Clone(text)
		s := newTextSource(plainFile("x.goal", content)[0], options(false), new(Options), 1)
		if _, err := s.Header(); err != nil {
			t.Fatal(err)
		}
		copy(content[bytes.Index(content, []byte("calc 1")):], with)
		if _, err := dag.ReadAll(s); with != string(text) && err == nil {
			t.Errorf("%q: no error", with)
		}
	}
}

// TestOnceWarnings checks that a text which is read again, because its clock marks release times, warns once.
func TestOnceWarnings(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		b.Rank(rank).Add(dag.Op{Duration: dag.Microsecond, Release: 5 * dag.Microsecond})
	}
	text := string(encode(t, Text, b.Trace()))
	for _, text := range []string{text + "calc 1\n", strings.TrimSuffix(text, "}\n")} {
		if !anyReleased(parseText(t, text, false)) {
			t.Fatalf("%q: no release times", text)
		}
		checkStream(t, []byte(text), options(false), new(Options))
	}
}

// TestOnceLongRanks checks ranks whose memory is reused once they are written.
func TestOnceLongRanks(t *testing.T) {
	text := []byte("num_ranks 4\n")
	for rank := range 4 {
		text = fmt.Appendf(text, "rank %d {\nl1: calc 1\n", rank)
		for i := range longRank / (1 + rank%2) {
			text = fmt.Appendf(text, "l%d: calc %d\nl%d requires l%d\n", i+2, rank+i, i+2, i+1)
		}
		text = append(text, "}\n"...)
	}
	checkStream(t, text, options(false), new(Options))
}

// TestOnceErrors checks that errors of the output end reading.
func TestOnceErrors(t *testing.T) {
	text := "num_ranks 3000\n"
	for rank := range 3000 {
		text += fmt.Sprintf("rank %d {\n%s}\n", rank, strings.Repeat("calc 1\n", 5))
	}
	for _, room := range []int{0, 10, 50_000, 200_000} {
		s := newTextSource(plainFile("x.goal", []byte(text))[0], options(false), new(Options), batchText)
		o := format.WriteOptions{Rewrite: new(patched)}
		if _, err := Binary.WriteOnce(&failingWriter{room}, s, o); err == nil || err.Error() != "disk full" {
			t.Errorf("room for %d bytes: error %v", room, err)
		}
	}
}
