package simulate

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIdentityOfOutputs checks that a run has the same identity whatever is printed, drawn or written about it.
func TestIdentityOfOutputs(t *testing.T) {
	trace := filepath.Join(filepath.Dir(studied(t, "")), "pair.goal")
	t.Chdir(t.TempDir())
	id := func(args string) string {
		t.Helper()
		r := study2(t, 0, append(strings.Fields("-q --json "+args), trace)...)
		return regexp.MustCompile(`"id":"[0-9a-f]*"|$`).FindString(r.Stdout)
	}
	want := id("")
	for _, args := range []string{
		"--critical-path", "--breakdown", "--timing", "--profile p", "--no-sync", "--threads 2", "--points p.csv",
		"--report r.html", "--timeline t.json --timeline-ranks 0", "--timeline t.json --timeline-window 0s..1us",
		"--plot x.svg --plot-data d.csv --plot-title a --plot-dark", "--max-memory 1GiB",
	} {
		if got := id(args); got != want || want == "" {
			t.Errorf("%s: %s, expected %s", args, got, want)
		}
	}
	if id("--L 3us") == want {
		t.Error("--L does not change the identity")
	}
}
