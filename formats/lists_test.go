package formats

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/tracefile"
)

// TestList reads a trace whose file lists the files of its ranks, relative to its folder, with one digest for each
// file.
func TestList(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"x.txt": "x.d/a.txt\nx.d/b.txt\n", "x.d/a.txt": "0 init\n0 send 1 2 3\n0 finalize\n",
		"x.d/b.txt": "1 init\n1 recv 0 2 3\n1 finalize\n", "names.txt": "x.d/a.txt\nx.d/none.txt\n",
		"one.txt": "all.ti\n", "all.ti": "0 init\n0 finalize\n1 init\n1 finalize\n", "other.txt": "names.txt\nx.txt\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for list, want := range map[string][]string{"x.txt": {"x.txt", "a.txt", "b.txt"}, "one.txt": {"one.txt", "all.ti"}} {
		in, err := tracefile.Open(All, []string{filepath.Join(folder, list)}, tracefile.Options{Digest: true})
		if err != nil {
			t.Fatal(err)
		}
		trace, err := in.Read()
		if err != nil || len(trace.Ranks) != 2 || in.Format.Name != "simgrid" {
			t.Fatalf("%s: read as %s, %v", list, in.Format.Name, err)
		}
		inputs, err := in.Inputs()
		var names []string
		for _, i := range inputs {
			names = append(names, filepath.Base(i.Name))
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: inputs %q, %v", list, names, err)
		}
		in.Close()
	}
	for list, want := range map[string]string{
		"names.txt": filepath.Join(folder, "x.d/none.txt") + ": reading: no such file or directory (named in " +
			filepath.Join(folder, "names.txt") + ")",
		"other.txt": "unknown format",
	} {
		_, err := tracefile.Read(All, filepath.Join(folder, list), tracefile.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", list, err, want)
		}
	}
}
