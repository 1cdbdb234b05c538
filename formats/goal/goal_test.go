package goal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/memory"
)

const vectors = "testdata/vectors"

// options are read options under which a warning is no error; compat sets the mode of the reference program. The limit
// of memory makes results independent of the machine.
func options(compat bool) format.ReadOptions {
	return format.ReadOptions{Context: memory.WithLimit(context.Background(), 1<<30), Compat: compat,
		Warn: func(string, ...any) {}}
}

var tooMuchAt = regexp.MustCompile(`^[^ ]+: (line|offset) \d+: .* need at least .* of memory`)

// checkPlaced checks that an error names its file and the place in it.
func checkPlaced(t *testing.T, err error) {
	t.Helper()
	if !errors.As(err, new(*format.SyntaxError)) && !tooMuchAt.MatchString(err.Error()) {
		t.Fatalf("error %v does not say where", err)
	}
}

func stream(name string, data []byte) []*format.Input {
	return []*format.Input{{Name: name, Reader: bytes.NewReader(data)}}
}

func plainFile(name string, data []byte) []*format.Input {
	r := bytes.NewReader(data)
	return []*format.Input{{Name: name, Reader: r, At: r, Size: int64(len(data))}}
}

func parseText(t testing.TB, text string, compat bool) *dag.Trace {
	t.Helper()
	trace, err := Text.Read(stream("test.goal", []byte(text)), options(compat))
	if err != nil {
		t.Fatalf("reading text: %v", err)
	}
	return trace
}

func parseBinary(t testing.TB, data []byte) *dag.Trace {
	t.Helper()
	trace, err := Binary.Read(plainFile("test.bin", data), options(false))
	if err != nil {
		t.Fatalf("reading binary: %v", err)
	}
	return trace
}

func encode(t testing.TB, f format.Format, trace *dag.Trace) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f.Write(&out, trace, format.WriteOptions{}); err != nil {
		t.Fatalf("writing %s: %v", f.Name, err)
	}
	return out.Bytes()
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// vectorNames returns the names of all schedules that stand as text and as binary in testdata.
func vectorNames(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(vectors, "*.goal"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(filepath.Base(p), ".goal")
	}
	return names
}

// withoutNames returns a copy of the trace without the names of ops.
func withoutNames(t *dag.Trace) *dag.Trace {
	c := *t
	c.Ranks = dag.CopyRanks(t.Ranks)
	for i := range c.Ranks {
		c.Ranks[i].Name = dag.Text{}
	}
	return &c
}

// asBinaryKeepsIt returns a copy of the trace without what a binary does not keep: names, and the order in which an op
// lists its own dependencies.
func asBinaryKeepsIt(t *dag.Trace) *dag.Trace {
	c := withoutNames(t)
	for i := range c.Ranks {
		r := c.Ranks[i]
		for _, e := range []*dag.Edges{&r.Deps, &r.StartDeps} {
			e.Off = slices.Clone(e.Off)
			for op := range e.End {
				slices.SortFunc(e.Of(op), func(a, b int32) int { return cmp.Compare(b, a) })
			}
		}
	}
	return c
}

func loses(l []format.Loss, what string) bool {
	for _, loss := range l {
		if strings.Contains(loss.Kind, what) {
			return true
		}
	}
	return false
}

// checkTextRoundTrip checks that writing and reading text gives the trace back, all names that Losses does not name
// included, and that the text is canonical: writing again gives the same.
func checkTextRoundTrip(t testing.TB, trace *dag.Trace) {
	t.Helper()
	text := encode(t, Text, trace)
	again := parseText(t, string(text), true)
	got, want := again, trace
	if loses(Text.Losses(trace), "names") {
		got, want = withoutNames(again), withoutNames(trace)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("text round trip changed the trace; text:\n%.2000s", text)
	}
	if !bytes.Equal(encode(t, Text, again), text) {
		t.Errorf("text of the trace read back differs from\n%.2000s", text)
	}
	if !bytes.Equal(encode(t, Binary, again), encode(t, Binary, trace)) {
		t.Errorf("text round trip changed the binary; text:\n%.2000s", text)
	}
}

func TestVectors(t *testing.T) {
	for _, name := range vectorNames(t) {
		t.Run(name, func(t *testing.T) {
			text := readFile(t, filepath.Join(vectors, name+".goal"))
			want := readFile(t, filepath.Join(vectors, name+".bin"))
			if name == "field_limits" {
				for _, compat := range []bool{false, true} {
					_, err := Text.Read(stream("x", text), options(compat))
					if err == nil || !strings.Contains(err.Error(), "0..9223372036854775") {
						t.Errorf("compat %v: got error %v, want the range of a calc", compat, err)
					}
				}
				_, err := Binary.Read(plainFile("x", want), options(false))
				if err == nil || !strings.Contains(err.Error(), "0..9223372036854775") {
					t.Errorf("binary: got error %v, want the range of a calc", err)
				}
				return
			}
			trace := parseText(t, string(text), false)
			if !Text.Detect(text[:min(len(text), format.DetectBytes)]) || Binary.Detect(text) {
				t.Error("the text is not detected as such")
			}
			if !Binary.Detect(want) || Text.Detect(want) {
				t.Error("the binary is not detected as such")
			}
			if !bytes.Equal(encode(t, Binary, trace), want) {
				t.Error("the binary of the text differs from the reference's")
			}
			checkTextRoundTrip(t, trace)

			fromFile := parseBinary(t, want)
			fromStream, err := Binary.Read(stream("x", want), options(false))
			if err != nil || !reflect.DeepEqual(fromFile, fromStream) {
				t.Errorf("reading the binary as a stream gives another trace (error %v)", err)
			}
			if !bytes.Equal(encode(t, Binary, fromFile), want) {
				t.Error("binary -> trace -> binary is not the identity")
			}
			checkTextRoundTrip(t, fromFile)
			if !reflect.DeepEqual(fromFile, asBinaryKeepsIt(trace)) {
				t.Error("text and binary give different traces")
			}
			for i := range fromFile.Ranks {
				if err := fromFile.Ranks[i].CheckReferences(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// referenceCase is a small text and the result of txt2bin.
type referenceCase struct {
	Name    string `json:"name"`
	Text    string `json:"text"`
	Outcome string `json:"outcome"`
	BinHex  string `json:"bin_hex"`
}

var indentation = regexp.MustCompile(`(?m)^[ \t]+`)

// TestReferenceCases checks that texts are accepted and refused as txt2bin does it, except for four classes.
func TestReferenceCases(t *testing.T) {
	// The reference writes a corrupt file for ranks that are not all there, in order, each once.
	corrupt := map[string]bool{"rank_skipped": true, "rank_twice": true, "stray_close": true}
	// The reference cuts numbers to the width of their field in silence; so do we in compat mode only.
	cut := map[string]string{"calc_overflow": "0..9223372036854775", "tag_overflow": "0..4294967295"}
	// So it does with cpus and nics, which we accept otherwise, but which no binary can have.
	wide := map[string]bool{"cpu_256": true}
	// The reference drops the byte after blanks in front of a statement; indentation is accepted here.
	indented := func(text string) bool { return indentation.MatchString(text) }

	var file struct {
		Cases []referenceCase `json:"cases"`
	}
	if err := json.Unmarshal(readFile(t, filepath.Join(vectors, "txt2bin_cases.json")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 103 {
		t.Fatalf("%d cases, want 103", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			bin, err := hex.DecodeString(c.BinHex)
			if err != nil {
				t.Fatal(err)
			}
			accepted := strings.HasPrefix(c.Outcome, "accepted") && !corrupt[c.Name]
			if !accepted && indented(c.Text) {
				accepted = true
				bin = encode(t, Binary, parseText(t, indentation.ReplaceAllString(c.Text, ""), false))
			}
			for _, compat := range []bool{false, true} {
				warnings := 0
				o := options(compat)
				checkStream(t, []byte(c.Text), o, new(Options))
				o.Warn = func(string, ...any) { warnings++ }
				trace, err := Text.Read(stream("case.goal", []byte(c.Text)), o)
				if limits := cut[c.Name]; limits != "" && !compat {
					if err == nil || !strings.Contains(err.Error(), limits) {
						t.Errorf("got error %v, want one with the range %s", err, limits)
					}
					continue
				}
				if (err == nil) != accepted {
					t.Errorf("compat %v: got error %v, want acceptance %v", compat, err, accepted)
					continue
				}
				if err != nil {
					if !errors.As(err, new(*format.SyntaxError)) || !strings.HasPrefix(err.Error(), "case.goal:") {
						t.Errorf("error %q does not say where", err)
					}
					continue
				}
				if warned := strings.Contains(c.Outcome, "warning") || c.Name == "text_after_last_rank"; warned != (warnings == 1) {
					t.Errorf("%d warnings", warnings)
				}
				if wide[c.Name] && !compat {
					if err := Binary.Write(io.Discard, trace, format.WriteOptions{}); err == nil {
						t.Error("a binary can have it")
					}
					continue
				}
				if got := encode(t, Binary, trace); !bytes.Equal(got, bin) {
					t.Errorf("compat %v: got binary\n%x, want\n%x", compat, got, bin)
				}
			}
		})
	}
}
