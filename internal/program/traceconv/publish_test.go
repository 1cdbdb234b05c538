package traceconv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/publish"
)

const metadataOfSet = `title: Test traces
description: Traces of a test.
license: CC0-1.0
creator: Somebody
url: https://example.org/set
date: 2026-11-01
`

func TestPublish(t *testing.T) {
	in(t, map[string]string{"ds.yaml": metadataOfSet, "raw/a.goal": pingpong, "raw/sub/notes.txt": "no trace",
		"raw/ranks/x-0.txt": ping, "raw/ranks/x-1.txt": pong})
	if got := clitest.Run(New, "--meta-template", "--publish", "new/"); got.Status != 0 ||
		!strings.HasPrefix(got.Stdout, "name: new") {
		t.Fatalf("template: %+v", got)
	}
	if got := clitest.Run(New, "--publish", "set/", "raw"); got.Status != 2 || !strings.Contains(got.Stderr,
		"license:") ||
		!strings.Contains(got.Stderr, "--meta") {
		t.Fatalf("without metadata: %+v", got)
	}
	if _, err := os.Stat("set"); err == nil {
		t.Fatal("a set that was not published exists")
	}
	if got := clitest.Run(New, "--publish", "set/", "--meta", "ds.yaml", "raw", "--version", "1.2.3"); got.Status != 0 ||
		!strings.Contains(got.Stderr, " kB; 1 other file is no trace; set ") {
		t.Fatalf("publishing: %+v", got)
	}
	for name, path := range map[string]string{"a": "traces/workload=goal/trace=a/a.parquet",
		"ranks": "traces/workload=mpi/trace=ranks/ranks.parquet"} {
		input := map[string]string{"a": "raw/a.goal", "ranks": "raw/ranks"}[name]
		if got := clitest.Run(New, input, "-o", "alone.parquet"); got.Status != 0 {
			t.Fatal(got)
		}
		if content(t, filepath.Join("set", path)) != content(t, "alone.parquet") {
			t.Errorf("the store of %s differs from that of a single conversion", name)
		}
	}
	if text := content(t, "set/"+dataset.MetadataName); !strings.Contains(text, "version: 1.2.3\n") {
		t.Errorf("metadata %s", text)
	}
	verified, err := publish.Verify("set", publish.VerifyOptions{Context: t.Context(), Jobs: 1})
	if err != nil || len(verified.Findings) > 0 {
		t.Errorf("%v, %v", verified, err)
	}
	for args, want := range map[string]string{
		"--meta ds.yaml raw":                      "--meta needs --publish",
		"--publish set/ -o x.parquet raw":         "--output does not fit --publish",
		"--publish set/ --croissant 2 raw":        "--croissant: expected 1.0 or 1.1",
		"--publish set/ --name A raw/a.goal":      "expected a name",
		"--publish set/ --license CC-BY-4 raw":    "CC-BY-4.0",
		"--publish set/ --tag x raw":              "--tag: expected",
		"--publish empty/":                        "no input",
		"--publish set/ -":                        "standard input has no name",
		"--publish set/ --bump=big raw":           "--bump: expected",
		"--publish set/ --partition kind raw":     "have a column of this name",
		"--publish set/ --remove nothing":         "no such trace",
		"--publish set/ --name b raw":             "--name is for one input",
		"--publish raw/a.goal raw/a.goal":         "found a file",
		"--publish set/ --job raw/a.goal,count=2": "a plan makes one trace",
	} {
		if got := clitest.Run(New, strings.Fields(args)...); got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("traceconv %s: %+v, expected an error with %q", args, got, want)
		}
	}
}

// TestPublishStores checks which stores are copied, and that paths that older programs recorded are removed.
func TestPublishStores(t *testing.T) {
	in(t, map[string]string{"ds.yaml": metadataOfSet, "a.goal": pingpong})
	if got := clitest.Run(New, "a.goal", "-o", "a.parquet"); got.Status != 0 {
		t.Fatal(got)
	}
	trace := readStore(t, content(t, "a.parquet"))
	trace.Title = "another"
	trace.Ranks[0].Duration.Set(0, 7)
	trace.Provenance = []dag.Provenance{{Program: "traceconv", Version: "0.1",
		Command: []string{"traceconv", "-o", "/home/me/secret/out/", "/home/me/secret/a.goal", "/home/me/other.goal"},
		Inputs:  []dag.Input{{Name: "/home/me/secret/a.goal", SHA256: strings.Repeat("0", 64)}}}}
	var old bytes.Buffer
	if err := store.Write(&old, trace); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("old.parquet", old.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	got := clitest.Run(New, "--publish", "set", "--meta", "ds.yaml", "a.parquet", "old.parquet")
	if got.Status != 0 {
		t.Fatal(got)
	}
	if content(t, "set/traces/workload=goal/trace=a/a.parquet") != content(t, "a.parquet") {
		t.Error("a store of this version was not copied")
	}
	published := content(t, "set/traces/workload=goal/trace=old/old.parquet")
	for _, leak := range []string{"/home", "secret", "other.goal"} {
		if strings.Contains(published, leak) {
			t.Errorf("the published store has %q", leak)
		}
	}
	if steps := readStore(t, published).Provenance; len(steps) != 2 || steps[0].Inputs[0].Name != "a.goal" {
		t.Errorf("provenance %v", steps)
	}
}

// TestPublishKilled checks that a publisher that is killed at any moment leaves the old or the new set.
func TestPublishKilled(t *testing.T) {
	if runtime.GOOS == "windows" || testing.Short() {
		t.Skip("kills processes")
	}
	if folder := os.Getenv("TRACECONV_TEST_PUBLISH"); folder != "" {
		os.Exit(clitest.Run(New, "--publish", folder, "-q", "more").Status)
	}
	files := map[string]string{"ds.yaml": metadataOfSet, "a.goal": pingpong}
	for i := range 30 {
		name := "more/b" + strings.Repeat("x", i) + ".goal"
		files[name] = strings.Replace(pingpong, "calc 1", fmt.Sprint("calc 1", i), 1)
	}
	in(t, files)
	if got := clitest.Run(New, "--publish", "old/set", "--meta", "ds.yaml", "a.goal"); got.Status != 0 {
		t.Fatal(got)
	}
	copyTo := func(to string) string {
		folder := filepath.Join(to, "set")
		if err := os.CopyFS(folder, os.DirFS("old/set")); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	identity := func(folder string) string {
		v, err := publish.Verify(folder, publish.VerifyOptions{Context: t.Context(), Jobs: 2})
		if err != nil || len(v.Findings) > 0 {
			t.Fatalf("%s: %v, %v", folder, v, err)
		}
		return v.Identity
	}
	whole := copyTo("whole")
	start := time.Now()
	clitest.Run(New, "--publish", whole, "-q", "more")
	took := time.Since(start)
	before, after := identity("old/set"), identity(whole)
	if before == after {
		t.Fatal("the new set is the old one")
	}
	for round := range 12 {
		folder := copyTo(filepath.Join("round", strings.Repeat("r", round+1)))
		cmd := exec.Command(os.Args[0], "-test.run", "^TestPublishKilled$")
		cmd.Env = append(os.Environ(), "TRACECONV_TEST_PUBLISH="+folder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took * time.Duration(round) / 6)
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		if _, err := publish.Repair(folder); err != nil {
			t.Fatal(err)
		}
		if got := identity(folder); got != before && got != after {
			t.Errorf("round %d: the set is neither the old nor the new one", round)
		}
	}
}
