package tracefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If one of many files cannot be given its name, all files stay unchanged.
func TestReplaceUndoes(t *testing.T) {
	t.Chdir(t.TempDir())
	before := map[string]string{"a": "old a", "c": "old c", ".a.tmp": "new a", ".b.tmp": "new b", "stale": "old"}
	for name, content := range before {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	done := []*Output{
		{name: "a", file: new(os.File), temp: ".a.tmp", final: "a"},
		{name: "b", file: new(os.File), temp: ".b.tmp", final: "b"},
		{name: "c", file: new(os.File), temp: ".c.tmp", final: "c"}, // which is not there
	}
	set := Outputs{paths: map[string]bool{".a.tmp": true, ".b.tmp": true, ".c.tmp": true}}
	err := set.replace(done, []string{"stale"})
	if err == nil || err.Error() != "c: writing: no such file or directory" {
		t.Errorf("error %v", err)
	}
	check := func(want map[string]string) {
		t.Helper()
		names, err := filepath.Glob("*")
		if err != nil || len(names) != len(want) {
			t.Errorf("there is %s, %v; want %v", strings.Join(names, " "), err, want)
		}
		for name, content := range want {
			if got, err := os.ReadFile(name); err != nil || string(got) != content {
				t.Errorf("%s: %q, %v; want %q", name, got, err, content)
			}
		}
	}
	check(before)
	if len(set.paths) != 3 {
		t.Errorf("a signal would remove %v", set.paths)
	}
	delete(set.paths, ".c.tmp")
	if err := set.replace(done[:2], []string{"stale", "gone"}); err != nil {
		t.Error(err)
	}
	check(map[string]string{"a": "new a", "b": "new b", "c": "old c"})
	if len(set.paths) != 0 || done[0].temp != "" {
		t.Errorf("a signal would remove %v", set.paths)
	}
}
