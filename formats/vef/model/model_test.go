package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/golden"
)

// parse parses a whole trace with a valid header.
func parse(file, text string, o format.ReadOptions) (*Model, error) {
	var lines []Line
	for i, line := range strings.Split(text, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "#") {
			lines = append(lines, Line{int64(i + 1), fields})
		}
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(lines[0].Fields[i], 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	h := Header{Line: lines[0].Number, Tasks: number(1), Messages: number(2), Clock: 1000}
	if len(lines[0].Fields) == 8 {
		h.Clock = dag.Time(number(7))
	}
	kind := lines[1]
	kind.Fields = kind.Fields[1:]
	return Parse(file, h, kind, lines[2:], o)
}

// read returns the options of a test that must not warn.
func read(t *testing.T) format.ReadOptions {
	return format.ReadOptions{Warn: t.Errorf, Own: &Options{Seed: 1}}
}

func mustParse(t *testing.T, file string, o format.ReadOptions) *Model {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parse(file, string(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]map[string]any
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	for name, want := range expected {
		m := mustParse(t, filepath.Join("testdata", name), read(t))
		attrs, err := m.Attrs()
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(attrs, &got); err != nil {
			t.Fatal(err)
		}
		const mean = "expected_mean_flow_bytes" // the sum of rounded numbers
		if m, ok := got[mean].(float64); ok && math.Abs(m-want[mean].(float64)) < 1e-6 {
			got[mean] = want[mean]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%v\nwant\n%v", name, got, want)
		}

		spec := string(m.Spec())
		again, err := parse(filepath.Join("testdata", name), spec, read(t))
		if err != nil {
			t.Fatalf("%s: %v in its own\n%s", name, err, spec)
		}
		if attrsAgain, err := again.Attrs(); err != nil || !bytes.Equal(attrsAgain, attrs) || string(again.Spec()) != spec {
			t.Errorf("%s: %v, got\n%s\nfrom\n%s\nwant\n%s", name, err, attrsAgain, spec, attrs)
		}
	}
	if len(expected) != 11 {
		t.Errorf("%d vectors", len(expected))
	}
}

// TestSpec: the published examples are written as their vectors have them.
func TestSpec(t *testing.T) {
	training, err := Horovod(horovod.Listing())
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Model{
		"ext-dcnw.vef": DCNW(dcnw.Default()), "ext-flows.vef": Flows(flows.Default()), "ext-horovod.vef": training,
	} {
		want, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Spec(); !bytes.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestSource: reading a model makes the trace that its generator makes.
func TestSource(t *testing.T) {
	o := read(t)
	own := &Options{Seed: 7}
	o.Own = own
	check := func(name string, want *dag.Trace, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s, err := mustParse(t, filepath.Join("testdata", name), o).Source(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got, err := dag.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s makes another trace than its generator", name)
		}
	}
	traffic := dcnw.Default()
	traffic.Sizes, _ = dcnw.Workload("W1")
	traffic.Tasks, traffic.Messages, traffic.Load, traffic.Destination.Distribution = 16, 1000, 1, openloop.UniformTask
	s, err := dcnw.NewSource(traffic, 7)
	if err != nil {
		t.Fatal(err)
	}
	want, err := dag.ReadAll(s)
	check("ext-dcnw-defaults.vef", want, err)

	many := flows.Params{Tasks: 8, Messages: 400, Clock: 1000, Ticks: 100_000, Classes: []flows.Class{
		{MinKB: 1, MaxKB: 2, Percent: 50, Destination: openloop.DestinationPolicy{Distribution: openloop.Poisson}},
		{MinKB: 8, MaxKB: 8, Percent: 25.5, Destination: openloop.DestinationPolicy{Distribution: openloop.Gauss, Sigma: 0.25}},
		{MinKB: 100, MaxKB: 200, Percent: 24.5},
	}}
	sigma := 0.25
	own.GaussSigma = &sigma
	if s, err = flows.NewSource(many, 7); err != nil {
		t.Fatal(err)
	}
	want, err = dag.ReadAll(s)
	check("ext-flows-order.vef", want, err)

	jitter := 0.0
	own.Jitter = &jitter
	training := horovod.Params{Workers: 4, Batches: 3, Layers: 2, Clock: 1000, Layer: horovod.Layer{
		Compute: 100 * dag.Microsecond, NegotiationLoop: 10 * dag.Microsecond, GathervBytes: 60, GathervTotalBytes: 30,
		GathervProbability: 1, BcastBytes: 100, AllreduceBytes: 64 << 10,
	}}
	run, err := horovod.NewSource(training, 7)
	if err != nil {
		t.Fatal(err)
	}
	want, err = dag.ReadAll(run)
	check("ext-horovod-certain.vef", want, err)
}

// TestGaussSigma: the width of destinations does not come from the file, nor does the error about it.
func TestGaussSigma(t *testing.T) {
	o := read(t)
	sigma := 0.0
	o.Own = &Options{Seed: 1, GaussSigma: &sigma}
	m, err := parse("x.vef", "VEF3 3 10 0 0 0 FALSE\nEXT DCNW\nW1 GAUSS\n", o)
	if err != nil {
		t.Fatal(err)
	}
	var syntax *format.SyntaxError
	_, err = m.Source(context.Background())
	if err == nil || errors.As(err, &syntax) || !strings.Contains(err.Error(), "gauss-sigma-frac is 0") {
		t.Errorf("error %v", err)
	}
}

func TestInvalidVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.vef")
	if err != nil || len(files) != 18 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(file, string(text), read(t))
		checkSyntax(t, file, file, err)
	}
}

// checkSyntax checks that an error is one of the records of a file.
func checkSyntax(t *testing.T, what, file string, err error) {
	t.Helper()
	var syntax *format.SyntaxError
	if !errors.As(err, &syntax) || syntax.File != file || syntax.Line < 1 || syntax.Class != "ext" {
		t.Errorf("%s: error %v", what, err)
	}
}

// TestErrors: what is wrong is told with its line. Each case is a trace, then what it gives.
func TestErrors(t *testing.T) {
	const path, file = "testdata/errors.golden", "testdata/x.vef"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	trace := ""
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "=>") {
			trace += line
			continue
		}
		m, err := parse(file, trace, read(t))
		if err == nil { // some errors only come when the trace is made
			_, err = m.Source(context.Background())
		}
		checkSyntax(t, trace, file, err)
		fmt.Fprintf(&got, "%s=> %v\n", trace, err)
		trace = ""
	}
	golden.Check(t, path, got.String())
}

const layer = "COMPUTE_MS 1 NEGOTIATION_LOOP_MS 1 GATV_BYTES 60 GATV_TOTAL_BYTES 60 GATV_PROB 0.5 BCAST_BYTES 10 " +
	"ARED_KBYTES 1"

// TestSpelling reads alternative spellings.
func TestSpelling(t *testing.T) {
	certain := strings.Replace(strings.Replace(layer, "0.5", "1", 1), "COMPUTE_MS 1", "COMPUTE_MS 0.000000002", 1)
	for text, want := range map[string]string{
		"EXT dcnw\nw3 normal load 5e-1":    "EXT DCNW\nGOOGLE_ALL GAUSS LOAD 0.5\n",
		"EXT DCNW\nWebSearch LOAD .5 Unif": "EXT DCNW\nWEBSEARCH UNIFORM LOAD 0.5\n",
		"EXT DCNW\nFB_WEB":                 "EXT DCNW\nFB_WEB UNIFORM LOAD 1\n",
		"EXT Flows\npoisson time 100 classes 1\n0 perc 1e2 max 9 gaussian min 1": "" +
			"EXT FLOWS\nCLASSES 1 TIME 100 POISSON\n0 MIN 1 MAX 9 PERC 100 GAUSS\n",
		"EXT FLOWS\nCLASSES 2 TIME 5\n1 MIN 1 MAX 1 PERC 0 UNIFORM\n0 MIN 1 MAX 1 PERC 99.995": "" +
			"EXT FLOWS\nCLASSES 2 TIME 5 UNIFORM\n0 MIN 1 MAX 1 PERC 99.995\n1 MIN 1 MAX 1 PERC 0\n",
		"EXT horovod\nlayers 3 batches 2\ndefault " + strings.ToLower(layer) + "\n1\n0 gatv_prob 1 compute_ms 2e-9": "" +
			"EXT HOROVOD\nBATCHES 2 LAYERS 3\nDEFAULT " + layer + "\n0 " + certain + "\n1 " + layer + "\n",
	} {
		const header = "VEF3 4 10 0 0 0 FALSE 500\n"
		m, err := parse("x.vef", header+text, read(t))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := string(m.Spec()); got != header+want {
			t.Errorf("%s: got\n%s\nwant\n%s", text, got, header+want)
		}
	}
}

// TestSizeFile: the file is searched beside the trace, and its stated mean is compared with its sizes.
func TestSizeFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sizes"), []byte("120\n50 0.5\n150 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	o := format.ReadOptions{Warn: func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}}
	text := func(name string) string { return "VEF3 4 10 0 0 0 FALSE\nEXT CDCNW\n" + name }
	for file, name := range map[string]string{
		filepath.Join(dir, "x.vef"): "sizes", "elsewhere/x.vef": filepath.Join(dir, "sizes"),
	} {
		if _, err := parse(file, text(name), o); err != nil {
			t.Error(err)
		}
	}
	t.Chdir(dir)
	for _, file := range []string{"<stdin>", "x.vef", filepath.Join(dir, "folder", "..", "x.vef")} {
		if _, err := parse(file, text("sizes"), o); err != nil {
			t.Error(err)
		}
	}
	const warning = "sizes: states a mean of 120 bytes, but the mean of its sizes is 100"
	other := func(w string) bool { return !strings.HasSuffix(w, warning) }
	if len(warnings) != 5 || slices.ContainsFunc(warnings, other) {
		t.Errorf("warnings %q", warnings)
	}
	m, err := CDCNW(dcnw.Default(), "#sizes")
	if err != nil || !strings.Contains(string(m.Spec()), "\n./#sizes GAUSS LOAD") {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"", "a b", "a\n", " a"} {
		if _, err := CDCNW(dcnw.Default(), name); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
}

// TestManyLayers: the attributes of a model do not grow without bounds.
func TestManyLayers(t *testing.T) {
	m, err := parse("x.vef", "VEF3 4 0 0 0 0 FALSE\nEXT HOROVOD\nBATCHES 2147483647 LAYERS 2147483647\nDEFAULT "+
		strings.Replace(layer, "KBYTES 1", "KBYTES 9007199254740991", 1)+"\n7 ARED_KBYTES 1", read(t))
	if err != nil {
		t.Fatal(err)
	}
	attrs, err := m.Attrs()
	// 2147483647 * (2147483646 * 9007199254740991 + 1) * 1024
	if want := `"allreduce_bytes_total":42535295805696181343303842733970420736`; err != nil ||
		!strings.Contains(string(attrs), want) || len(attrs) > 1000 {
		t.Errorf("%.1000s, %v", attrs, err)
	}
}

func TestSpecErrors(t *testing.T) {
	p := horovod.Default()
	odd := p.Layer
	odd.AllreduceBytes = 1500
	p.Overrides = map[int]horovod.Layer{1: odd}
	if _, err := Horovod(p); err == nil || !strings.Contains(err.Error(), "found 1500 bytes") {
		t.Errorf("error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.vef", "testdata/invalid/*.vef"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			_, records, _ := bytes.Cut(text, []byte("\nEXT "))
			f.Add(int64(4), int64(10), int64(1000), string(records))
		}
	}
	f.Fuzz(func(t *testing.T, tasks, messages, clock int64, records string) {
		h := Header{
			Line: 1, Tasks: 1 + tasks&(math.MaxInt32>>1), Messages: messages & math.MaxInt64,
			Clock: dag.Time(1 + clock&(math.MaxInt64>>1)),
		}
		o := format.ReadOptions{Warn: func(string, ...any) {}}
		var lines []Line
		for i, text := range strings.Split(records, "\n") {
			if fields := strings.Fields(text); len(fields) > 0 {
				lines = append(lines, Line{int64(i + 2), fields})
			}
		}
		if len(lines) == 0 {
			return
		}
		m, err := Parse("testdata/x.vef", h, lines[0], lines[1:], o)
		if err != nil {
			checkSyntax(t, records, "testdata/x.vef", err)
			return
		}
		attrs, err := m.Attrs()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse("testdata/x.vef", string(m.Spec()), o)
		if err != nil {
			t.Fatalf("%v in\n%s", err, m.Spec())
		}
		if attrsAgain, err := again.Attrs(); err != nil || !bytes.Equal(attrs, attrsAgain) {
			t.Errorf("%v, got\n%s\nwant\n%s", err, attrsAgain, attrs)
		}
		if h.Messages < 1000 && h.Tasks < 100 && m.kind != kindHorovod {
			if s, err := m.Source(context.Background()); err == nil {
				if _, err := dag.ReadAll(s); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
