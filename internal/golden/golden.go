// Package golden compares test outputs with golden files. The flag -update of a test that imports it rewrites them.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Update reports whether the flag -update is set, for tests whose output is not text.
func Update() bool {
	return *update
}

// Check compares got with a golden file. With -update it writes the file first.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		Write(t, path, []byte(got))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		line, gotLine, wantLine := difference(got, string(want))
		t.Errorf("%s:%d: got %q, want %q; -update rewrites the file; got\n%s", path, line, gotLine, wantLine, got)
	}
}

// Section compares got with the part of a text file, such as a documentation page, between two markers. With -update
// it replaces the part first.
func Section(t testing.TB, path, begin, end, got string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	part, after, foundEnd := strings.Cut(rest, end)
	switch {
	case !found || !foundEnd:
		t.Fatalf("%s: expected %q and then %q", path, begin, end)
	case *update:
		Write(t, path, []byte(before+begin+got+end+after))
	case part != got:
		line, gotLine, wantLine := difference(got, part)
		line += strings.Count(before+begin, "\n")
		t.Errorf("%s:%d: got %q, want %q; -update rewrites the part", path, line, gotLine, wantLine)
	}
}

// Write writes a golden file. It creates its folder.
func Write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// difference returns the first differing lines and their line number, from 1.
func difference(got, want string) (line int, gotLine, wantLine string) {
	for line = 1; ; line++ {
		var moreGot, moreWant bool
		gotLine, got, moreGot = strings.Cut(got, "\n")
		wantLine, want, moreWant = strings.Cut(want, "\n")
		if gotLine != wantLine || !moreGot || !moreWant {
			return line, gotLine, wantLine
		}
	}
}
