package vef

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim/ideal"
)

const vectors = "testdata/vectors/"

// readText reads a trace from text, and collects warnings.
func readText(name string, text []byte, o format.ReadOptions) (t *dag.Trace, warnings []string, err error) {
	o.Warn = func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) }
	in := &format.Input{Name: name, Reader: bytes.NewReader(text), Head: text[:min(len(text), format.DetectBytes)]}
	t, err = read([]*format.Input{in}, o)
	return t, warnings, err
}

func mustRead(t testing.TB, name string, text []byte) *dag.Trace {
	t.Helper()
	trace, _, err := readText(name, text, format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Fatalf("%s: %v", name, problems[0])
	}
	return trace
}

func mustWrite(t testing.TB, trace *dag.Trace) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out, trace, format.WriteOptions{Warn: t.Logf}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// expectation is the expected result for a plain trace of the vectors.
type expectation struct {
	facts
	Start    map[string]dag.Time `json:"ideal_start_ps"`
	Makespan dag.Time            `json:"ideal_makespan_ps"`
}

func readExpectations(t testing.TB) map[string]expectation {
	t.Helper()
	text, err := os.ReadFile(vectors + "expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]expectation
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, e := range all {
		if e.Kind != plain {
			delete(all, name)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d plain traces", len(all))
	}
	return all
}

// starts returns when each record starts on the ideal timeline, by the names that the vectors use.
func starts(t testing.TB, trace *dag.Trace) (map[string]dag.Time, dag.Time) {
	t.Helper()
	timeline, err := ideal.Run(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !timeline.Result.Complete {
		t.Fatalf("not complete: %+v", timeline.Result.Stuck)
	}
	start := map[string]dag.Time{}
	for rank := range trace.Ranks {
		r := trace.Ranks[rank]
		for op := range r.Len() {
			switch {
			case r.Kind[op] == dag.Coll:
				start[fmt.Sprintf("G%d@%d", r.Tag.At(op), rank)] = timeline.Start(rank, op)
			case recorded(r, op):
				start[fmt.Sprint(r.Tag.At(op))] = timeline.Start(rank, op)
			}
		}
	}
	return start, timeline.Makespan()
}

func TestVectors(t *testing.T) {
	for name, want := range readExpectations(t) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(vectors + name)
			if err != nil {
				t.Fatal(err)
			}
			trace := mustRead(t, name, text)
			var attrs struct{ VEF facts }
			if err := json.Unmarshal([]byte(trace.Attrs), &attrs); err != nil {
				t.Fatal(err)
			}
			got := attrs.VEF
			got.Magic = ""
			if len(got.Summary) == 0 {
				got.Summary = []collectiveSummary{}
			}
			if !reflect.DeepEqual(got, want.facts) {
				t.Errorf("facts\n%+v, expected\n%+v", got, want.facts)
			}
			start, makespan := starts(t, trace)
			if !reflect.DeepEqual(start, want.Start) || makespan != want.Makespan {
				t.Errorf("starts %v, makespan %v, expected\n%v, %v", start, makespan, want.Start, want.Makespan)
			}
			testRoundTrip(t, name, trace)
		})
	}
}

// testRoundTrip writes a trace that was read, and reads and writes it again.
func testRoundTrip(t *testing.T, name string, trace *dag.Trace) {
	t.Helper()
	written := mustWrite(t, trace)
	again := mustRead(t, name, written)
	if lost := losses(trace); len(lost) > 0 {
		t.Errorf("losses %v", lost)
	}
	if twice := mustWrite(t, again); !bytes.Equal(twice, written) {
		t.Errorf("written\n%s, then\n%s", written, twice)
	}
	_, makespan := starts(t, trace)
	if _, m := starts(t, again); m != makespan {
		t.Errorf("the makespan was %v and is %v", makespan, m)
	}
}

func TestInvalid(t *testing.T) {
	text, err := os.ReadFile(vectors + "invalid/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var classes map[string]string
	if err := json.Unmarshal(text, &classes); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(vectors + "invalid/*.vef")
	if err != nil || len(files) != len(classes) {
		t.Fatalf("%d files and %d classes, %v", len(files), len(classes), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = readText(file, text, format.ReadOptions{})
		class := classes[filepath.Base(file)]
		var syntax *format.SyntaxError
		if !errors.As(err, &syntax) || syntax.Class != class || syntax.Line < 1 ||
			!strings.HasPrefix(err.Error(), fmt.Sprintf("%s:%d: %s: expected ", file, syntax.Line, class)) {
			t.Errorf("%s: error %v, expected class %s", file, err, class)
		}
	}
}
