// Package dialects tests that what other projects turn into Chakra traces becomes here, through the store, byte for
// byte the files that they write.
package dialects

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/astratext"
	"github.com/tracedag/tracedag/formats/chakra/pytorch"
	"github.com/tracedag/tracedag/formats/chakra/stg"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
)

// conversion is a trace in a dialect, and what its project made of it: PREFIX.RANK.et.
type conversion struct {
	format format.Format
	files  []string
	prefix string
	passes int
	host   bool // a trace of the host alone, which only --compat reads as its project does
}

// own are the conversions in testdata: of inputs made for these tests, by the programs of the projects.
func own(t *testing.T) []conversion {
	var all []conversion
	for _, prefix := range []string{"../stg/testdata/plain", "../stg/testdata/tensors"} {
		all = append(all, conversion{stg.Format, []string{prefix + ".0.json", prefix + ".1.json"}, prefix, 0, false})
	}
	for _, name := range glob(t, "../astratext/testdata/*.txt") {
		all = append(all, conversion{astratext.Format, []string{name}, strings.TrimSuffix(name, ".txt"), 2, false})
	}
	for _, name := range glob(t, "../pytorch/testdata/*.0.json") {
		all = append(all, conversion{pytorch.Format, []string{name}, strings.TrimSuffix(name, ".0.json"), 0, false})
	}
	return all
}

// foreign are the conversions of inputs of other projects.
func foreign(t *testing.T) []conversion {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Log("TRACEDAG_VECTORS is not set: the inputs of other projects are not read")
		return nil
	}
	host := filepath.Join(folder, "chakra/pytorch/host_trace_1.0.2-chakra.0.0.4")
	all := []conversion{{pytorch.Format, []string{host + ".json"}, host, 0, true}}
	for _, name := range glob(t, filepath.Join(folder, "chakra/text/*.txt")) {
		prefix := strings.TrimSuffix(name, ".txt")
		all = append(all, conversion{astratext.Format, []string{name}, prefix, 1, false})
		if _, err := os.Stat(prefix + ".3passes.0.et"); err == nil {
			all = append(all, conversion{astratext.Format, []string{name}, prefix + ".3passes", 3, false})
		}
	}
	return all
}

func glob(t *testing.T, pattern string) []string {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	return names
}

// expected returns the files of the conversion, by rank. A lone file may lack the number.
func (c *conversion) expected(t *testing.T) [][]byte {
	if content, err := os.ReadFile(c.prefix + ".et"); err == nil {
		return [][]byte{content}
	}
	var files [][]byte
	for {
		content, err := os.ReadFile(fmt.Sprintf("%s.%d.et", c.prefix, len(files)))
		if os.IsNotExist(err) && len(files) > 0 {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, content)
	}
}

func TestConversions(t *testing.T) {
	for _, c := range append(own(t), foreign(t)...) {
		t.Run(filepath.Base(c.prefix), func(t *testing.T) {
			want := c.expected(t)
			var inputs []*format.Input
			for _, name := range c.files {
				inputs = append(inputs, open(t, name))
				if head := inputs[0].Head; !c.format.Detect(head) {
					t.Errorf("%s is not detected", name)
				}
			}
			o := format.ReadOptions{Compat: c.host, Warn: t.Logf, Own: &astratext.Options{Ranks: len(want), Passes: c.passes}}
			trace, err := c.format.Read(inputs, o)
			if err != nil {
				t.Fatal(err)
			}
			got := write(t, throughStore(t, trace))
			if len(got) != len(want) {
				t.Fatalf("%d ranks, want %d", len(got), len(want))
			}
			for rank := range want {
				if !bytes.Equal(got[rank], want[rank]) {
					t.Errorf("rank %d: %d bytes differ from those expected, %d, at %d", rank, len(got[rank]), len(want[rank]),
						difference(got[rank], want[rank]))
				}
			}
			if problems := dag.Validate(trace); len(problems) > 0 && !strings.Contains(c.files[0], "testdata") {
				t.Errorf("the trace is not sound: %v", problems)
			}
		})
	}
}

func open(t *testing.T, name string) *format.Input {
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head := content[:min(len(content), format.DetectBytes)]
	return &format.Input{Name: name, Reader: bytes.NewReader(content), Head: head}
}

func throughStore(t *testing.T, trace *dag.Trace) *dag.Trace {
	var file bytes.Buffer
	if err := store.Format.Write(&file, trace, format.WriteOptions{Warn: t.Logf}); err != nil {
		t.Fatal(err)
	}
	in := &format.Input{Name: "store", Reader: &file, At: bytes.NewReader(file.Bytes()), Size: int64(file.Len())}
	stored, err := store.Format.Read([]*format.Input{in}, format.ReadOptions{Warn: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

var suffix = regexp.MustCompile(`^\.(\d+)\.et$`)

// write returns the Chakra files of a trace, by rank.
func write(t *testing.T, trace *dag.Trace) [][]byte {
	var files []*bytes.Buffer
	create := func(name string) (io.Writer, error) {
		if suffix.MatchString(name) {
			files = append(files, new(bytes.Buffer))
			return files[len(files)-1], nil
		}
		return io.Discard, nil // communicators
	}
	if err := chakra.Format.WriteFiles(create, trace, format.WriteOptions{Warn: t.Logf}); err != nil {
		t.Fatal(err)
	}
	contents := make([][]byte, len(files))
	for i := range files {
		contents[i] = files[i].Bytes()
	}
	return contents
}

// difference returns where two files begin to differ.
func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
