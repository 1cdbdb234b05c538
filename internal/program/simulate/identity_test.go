package simulate

import (
	"crypto/sha256"
	"fmt"
	"os"
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

// TestIdentityOfFiles checks that the identity of a run depends on the content of the files that its options name.
func TestIdentityOfFiles(t *testing.T) {
	trace := filepath.Join(filepath.Dir(studied(t, "")), "pair.goal")
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args string) string {
		t.Helper()
		return study2(t, 0, append(strings.Fields("-q --json "+args), trace)...).Stdout
	}
	id := regexp.MustCompile(`"id":"[0-9a-f]*"`)
	for args, contents := range map[string][2]string{
		"--backend packet --topology links.txt":                     {"h0 s 100Gbps 1us\nh1 s 100Gbps 1us\n", "h0 s 100Gbps 2us\nh1 s 100Gbps 2us\n"},
		"--backend flow --topology star:hosts=2 --placement h":      {"0\n1\n", "1\n0\n"},
		"--backend flow --topology star:hosts=2 --placement file:h": {"0\n1\n", "1\n0\n"},
		"--noise-trace noise.txt":                                   {"1000 100\n", "1000 200\n"},
	} {
		name := strings.TrimPrefix(args[strings.LastIndexByte(args, ' ')+1:], "file:")
		write(name, contents[0])
		first := run(args)
		if sum := fmt.Sprintf("%s@sha256:%x", name, sha256.Sum256([]byte(contents[0]))); !strings.Contains(first, sum) {
			t.Errorf("%s: expected %s in settings, found\n%s", args, sum, first)
		}
		if again := run(args); again != first {
			t.Errorf("%s: two runs differ", args)
		}
		write(name, contents[1])
		if other := id.FindString(run(args)); other == "" || other == id.FindString(first) {
			t.Errorf("%s: identity %s for two contents", args, other)
		}
	}
}

// TestStudyOfChangedFile checks that runs of a study whose options or generators name files run again when a file has
// changed, and that the tables have the last results alone.
func TestStudyOfChangedFile(t *testing.T) {
	file := studied(t, `name: changed
traces:
  - {name: pair, file: pair.goal}
  - {name: flows, generate: "workload --sizes sizes.txt --load 0.3 --ranks 2 --flows 5"}
set: {topology: links.txt, backend: flow}
seeds: [1]
`)
	t.Chdir(filepath.Dir(file))
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	done := func(want int) {
		t.Helper()
		r := study2(t, 0, "--study", file, "-o", "results")
		if n := strings.Count(r.Stderr, "run "); n != want {
			t.Errorf("%d runs, expected %d\n%s", n, want, r.Stderr)
		}
	}
	write("links.txt", "h0 s 100Gbps 1us\nh1 s 100Gbps 1us\n")
	write("sizes.txt", "1000 0\n2000 1\n")
	done(2)
	done(0)
	write("links.txt", "h0 s 100Gbps 2us\nh1 s 100Gbps 2us\n")
	done(2)
	write("sizes.txt", "3000 0\n4000 1\n")
	done(1)
	study2(t, 0, "--study", file, "-o", "results", "--merge")
	text, err := os.ReadFile("results/summary.csv")
	for _, row := range []string{"pair,makespan_ps,ps,1,9000000,", "flows,bytes,B,1,20000,"} {
		if !strings.Contains(string(text), "\n"+row) {
			t.Errorf("expected the row %q, found %v\n%s", row, err, text)
		}
	}
}
