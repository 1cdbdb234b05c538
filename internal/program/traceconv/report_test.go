package traceconv

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// reported converts and returns the entries of the report and the last line on stderr.
func reported(t *testing.T, status int, args ...string) (entries []batch.Entry, summary string) {
	t.Helper()
	got := clitest.Run(New, append([]string{"--report", "r.jsonl"}, args...)...)
	if got.Status != status {
		t.Fatalf("traceconv %q: %+v", args, got)
	}
	for line := range strings.Lines(content(t, "r.jsonl")) {
		var e batch.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	lines := strings.Split(strings.TrimSpace(got.Stderr), "\n")
	return entries, lines[len(lines)-1]
}

func TestReport(t *testing.T) {
	open := strings.ReplaceAll(ping, "MPI_Finalize:123:-\n", "")
	in(t, map[string]string{"b.goal": "dance", "a.goal": pingpong, "m/x-0.txt": open, "m/x-1.txt": pong})
	entries, summary := reported(t, 1, "-o", "out/", "b.goal", "m", "a.goal")
	if !regexp.MustCompile(`^traceconv: 3 traces: 2 added, 1 failed; \d+ B -> \d+\.\d kB$`).MatchString(summary) {
		t.Errorf("the summary is %s", summary)
	}
	if len(entries) != 3 {
		t.Fatalf("%+v", entries)
	}
	failed, many, one := entries[0], entries[1], entries[2]
	if failed.Input != "b.goal" || failed.Status != batch.Failed || !strings.HasPrefix(failed.Error, "b.goal:1: ") ||
		failed.Output != "" {
		t.Errorf("%+v", failed)
	}
	if many.Input != "m" || many.Status != batch.Added || many.Output != "out/m.parquet" || len(many.Warnings) != 1 ||
		!strings.HasPrefix(many.Warnings[0], "m/x-0.txt: the file ends without MPI_Finalize") || many.Seconds <= 0 {
		t.Errorf("%+v", many)
	}
	if one.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(pingpong))) || len(one.SHA256) != len(many.SHA256) {
		t.Errorf("%+v", one)
	}
	entries, summary = reported(t, 0, "--to", "goalbin", "-o", "out/", "a.goal")
	if entries[0].SHA256 != one.SHA256 || !strings.HasPrefix(summary, "traceconv: 1 trace: 1 added; 114 B -> ") {
		t.Errorf("%+v, %s", entries, summary)
	}
	for args, want := range map[string]string{
		"--report r.jsonl a.goal":                "--dry-run are for many inputs",
		"--skip-existing a.goal -o x.parquet":    "--dry-run are for many inputs",
		"--skip-existing --to goal a.goal -o o/": "--skip-existing needs the provenance in stores",
		"--report none/r a.goal -o o/":           "none",
	} {
		if got := clitest.Run(New, strings.Fields(args)...); got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestSkipExisting checks that an input is converted again if it, the flags or its output changed.
func TestSkipExisting(t *testing.T) {
	in(t, map[string]string{"a.goal": pingpong, "m/x-0.txt": ping, "m/x-1.txt": pong})
	run := func(want string, args ...string) {
		t.Helper()
		entries, summary := reported(t, 0, append(args, "--skip-existing", "-o", "out/", "a.goal", "m")...)
		if !strings.HasPrefix(summary, "traceconv: 2 traces: "+want+"; ") || len(entries[0].SHA256) != 64 {
			t.Errorf("%s, expected %s; %+v", summary, want, entries)
		}
	}
	run("2 added")
	before, err := os.Stat("out/a.parquet")
	if err != nil {
		t.Fatal(err)
	}
	run("2 unchanged")
	run("2 unchanged", "--jobs", "1", "--strict")
	if after, err := os.Stat("out/a.parquet"); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the output was written again, error %v", err)
	}
	run("2 replaced", "--title", "new")
	run("2 unchanged", "--title", "new")
	if err := os.WriteFile("m/x-1.txt", []byte(strings.Replace(pong, "123", "124", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	run("1 replaced, 1 unchanged", "--title", "new")
	if err := os.WriteFile("out/a.parquet", []byte("PAR1"), 0o666); err != nil {
		t.Fatal(err)
	}
	run("1 replaced, 1 unchanged", "--title", "new")
}

func TestDryRun(t *testing.T) {
	in(t, map[string]string{"a.goal": pingpong, "b.goal": pingpong, "old/b.parquet": "old"})
	before := files(t, ".")
	got := clitest.Run(New, "--dry-run", "-o", "old/", "a.goal", "b.goal", "none")
	const want = "added      a.goal -> old/a.parquet\nreplaced   b.goal -> old/b.parquet\nfailed     none\n"
	if got.Status != 1 || got.Stdout != want || !strings.HasSuffix(got.Stderr, "dry run: 3 traces: 1 added, 1 replaced, 1 failed\n") {
		t.Errorf("%+v", got)
	}
	clitest.Run(New, "--dry-run", "-o", "new/", "a.goal")
	if after := files(t, "."); !slices.Equal(after, before) {
		t.Errorf("there is %q, expected %q", after, before)
	}
	if content(t, "old/b.parquet") != "old" || len(files(t, "old")) != 1 {
		t.Error("an output changed")
	}
}

// TestReportOfSet checks the summary and the flags of batches for published sets.
func TestReportOfSet(t *testing.T) {
	open := strings.ReplaceAll(ping, "MPI_Finalize:123:-\n", "")
	in(t, map[string]string{"a.goal": pingpong, "m/x-0.txt": open, "m/x-1.txt": pong})
	set := []string{"--publish", "set/", "--title", "t", "--description", "d", "--creator", "c", "--license", "CC0-1.0",
		"--url", "https://example.org/t", "--date", "2026-01-01"}
	got := clitest.Run(New, append(set, "--dry-run", "a.goal", "m")...)
	if got.Status != 0 || strings.Count(got.Stdout, "\n") != 2 || !strings.Contains(got.Stderr, "dry run: 2 traces: 2 added") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat("set"); err == nil {
		t.Error("a dry run made the set")
	}
	entries, summary := reported(t, 0, append(set, "a.goal", "m")...)
	if !regexp.MustCompile(`^traceconv: 2 traces: 2 added; \d+ B -> \d+\.\d kB; set [0-9a-f]{64}$`).MatchString(summary) {
		t.Errorf("the summary is %s", summary)
	}
	if len(entries) != 2 || len(entries[1].Warnings) != 1 || entries[1].Seconds <= 0 ||
		!strings.HasPrefix(entries[0].Output, "traces/") {
		t.Errorf("%+v", entries)
	}
	_, again := reported(t, 0, "--publish", "set/", "--skip-existing", "a.goal", "m")
	if !strings.Contains(again, "2 traces: 2 unchanged; ") {
		t.Errorf("the summary is %s", again)
	}
}
