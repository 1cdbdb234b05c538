package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// studied writes a study file and its trace to a folder, and returns the file.
func studied(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "study.yml")
	for name, content := range map[string]string{
		file: text,
		filepath.Join(folder, "pair.goal"): "num_ranks 2\nrank 0 {\na: calc 1000\nb: send 50000b to 1 tag 1\nb requires a\n}\n" +
			"rank 1 {\nc: recv 50000b from 0 tag 1\n}\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

const smallStudy = `name: small
traces:
  - {name: pair, file: pair.goal}
  - {name: flows, generate: "workload --sizes websearch --load {load} --ranks 16 --flows 20"}
set: {topology: "leafspine:hosts=16,tor=4,spines=2,rate=100Gbps", backend: packet}
vary:
  transport: [ndp, dctcp]
  topology.rate: 100Gbps..400Gbps:2:log
  queue: [100kB]
  load: [0.3, 0.6]
seeds: [3, 1]
`

// run2 runs the program and fails the test if the exit status differs.
func study2(t *testing.T, status int, args ...string) clitest.Result {
	t.Helper()
	r := clitest.Run(newCommand, args...)
	if r.Status != status {
		t.Fatalf("simulate %s: status %d, expected %d\n%s", strings.Join(args, " "), r.Status, status, r.Stderr)
	}
	return r
}

func mergedTables(t *testing.T, file, folder string) (all []byte) {
	t.Helper()
	study2(t, 0, "--study", file, "-o", folder, "--merge")
	for _, name := range []string{"points.parquet", "results.parquet", "summary.csv"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return all
}

// TestStudyShards checks that shards, damaged files and repeated calls give the tables of one call, byte for byte.
func TestStudyShards(t *testing.T) {
	file := studied(t, smallStudy)
	whole := filepath.Join(filepath.Dir(file), "whole")
	// 2 transports x 2 rates x 2 seeds: once of the file, which has no load, twice of the generator
	if r := study2(t, 0, "--study", file, "-o", whole, "--dry-run"); strings.Count(r.Stdout, "\n") != 24 {
		t.Fatalf("expected 24 runs, found\n%s", r.Stdout)
	}
	study2(t, 1, "--study", file, "-o", whole, "--merge")
	study2(t, 0, "--study", file, "-o", whole, "--threads", "2")
	want := mergedTables(t, file, whole)
	if r := study2(t, 0, "--study", file, "-o", whole); strings.Contains(r.Stderr, "run ") {
		t.Errorf("runs that are done run again:\n%s", r.Stderr)
	}

	parts := filepath.Join(filepath.Dir(file), "parts")
	for _, shard := range []string{"2/3", "0/3"} {
		study2(t, 0, "--study", file, "-o", parts, "--shard", shard)
	}
	if r := study2(t, 1, "--study", file, "-o", parts, "--merge"); !strings.Contains(r.Stderr, "8 runs are missing") {
		t.Errorf("merging two shards: %s", r.Stderr)
	}
	if files, _ := filepath.Glob(filepath.Join(parts, "*.parquet")); len(files) > 0 {
		t.Errorf("a merge that fails leaves %v", files)
	}
	study2(t, 0, "--study", file, "-o", parts, "--shard", "1/3")
	files, err := filepath.Glob(filepath.Join(parts, "runs", "*", "*.json"))
	if err != nil || len(files) != 24 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if err := os.Truncate(files[5], 100); err != nil {
		t.Fatal(err)
	}
	if r := study2(t, 0, "--study", file, "-o", parts, "--status"); !strings.HasPrefix(r.Stdout,
		"24 runs: 23 done, 0 failed, 1 to do") {
		t.Errorf("status is %s", r.Stdout)
	}
	if r := study2(t, 0, "--study", file, "-o", parts); strings.Count(r.Stderr, "run ") != 1 {
		t.Errorf("expected one run, found\n%s", r.Stderr)
	}
	if !bytes.Equal(mergedTables(t, file, parts), want) {
		t.Error("shards give other tables")
	}
}

// TestStudyGrows checks that a study with more values runs the new runs only and gives the tables of a fresh study.
func TestStudyGrows(t *testing.T) {
	file := studied(t, strings.Replace(smallStudy, "[ndp, dctcp]", "[dctcp]", 1))
	grown, fresh := filepath.Join(filepath.Dir(file), "grown"), filepath.Join(filepath.Dir(file), "fresh")
	study2(t, 0, "--study", file, "-o", grown)
	if err := os.WriteFile(file, []byte(smallStudy), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := study2(t, 0, "--study", file, "-o", grown); strings.Count(r.Stderr, "transport=ndp") != 12 ||
		strings.Contains(r.Stderr, "transport=dctcp") {
		t.Errorf("expected the runs of ndp, found\n%s", r.Stderr)
	}
	study2(t, 0, "--study", file, "-o", fresh)
	if !bytes.Equal(mergedTables(t, file, grown), mergedTables(t, file, fresh)) {
		t.Error("a grown study gives other tables than a fresh one")
	}
	if err := os.WriteFile(file, []byte(strings.Replace(smallStudy, "spines=2", "spines=4", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := study2(t, 1, "--study", file, "-o", grown); !strings.Contains(r.Stderr, "topology was leafspine") {
		t.Errorf("another study in the folder: %s", r.Stderr)
	}
}

// TestStudyFailures checks runs that fail, run into a limit or are incomplete.
func TestStudyFailures(t *testing.T) {
	file := studied(t, "traces: [pair.goal]\nset: {backend: packet}\n"+
		"vary: {topology: ['star:hosts=1', 'star:hosts=2']}\n")
	folder := filepath.Join(filepath.Dir(file), "results")
	r := study2(t, 1, "--study", file, "-o", folder)
	if !strings.Contains(r.Stderr, "hosts") || !strings.Contains(r.Stderr, "1 failed") {
		t.Errorf("stderr is %s", r.Stderr)
	}
	if r := study2(t, 1, "--study", file, "-o", folder); strings.Contains(r.Stderr, "run ") {
		t.Errorf("a failed run runs again without --retry-failed: %s", r.Stderr)
	}
	if r := study2(t, 1, "--study", file, "-o", folder, "--retry-failed"); strings.Count(r.Stderr, "run ") != 1 {
		t.Errorf("--retry-failed runs %s", r.Stderr)
	}
	points := filepath.Join(folder, "points.csv")
	study2(t, 0, "--study", file, "-o", folder, "--merge", "--points", points)
	text, err := os.ReadFile(points)
	if err != nil || strings.Count(string(text), ",failed,") != 1 || strings.Count(string(text), ",done,") != 1 {
		t.Errorf("points are %s, %v", text, err)
	}

	file = studied(t, "traces: [pair.goal]\nvary: {L: [1us]}\nlimits: {time: 1ns}\n")
	folder = filepath.Join(filepath.Dir(file), "results")
	if r := study2(t, 1, "--study", file, "-o", folder); !strings.Contains(r.Stderr, "the limit of the study") {
		t.Errorf("a run beyond the limit: %s", r.Stderr)
	}
	file = studied(t, "traces: [ranks.goal]\nvary: {L: [1us]}\nlimits: {memory: 32MiB}\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "ranks.goal"), []byte("num_ranks 4000000\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(filepath.Dir(file), "results")
	if r := study2(t, 1, "--study", file, "-o", folder); !strings.Contains(r.Stderr, "than the limit of 32MiB") {
		t.Errorf("a run beyond the limit of memory: %s", r.Stderr)
	}
}

// TestStudyKeepsFlows checks that the messages of runs are in files of their own, and that missing files are made again.
func TestStudyKeepsFlows(t *testing.T) {
	text := "traces: [pair.goal]\nset: {backend: packet, topology: 'star:hosts=4'}\nvary: {transport: [ndp, dctcp]}\n"
	file := studied(t, text)
	folder := filepath.Join(filepath.Dir(file), "results")
	study2(t, 0, "--study", file, "-o", folder)
	if err := os.WriteFile(file, []byte(text+"keep: [flows]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := study2(t, 0, "--study", file, "-o", folder); strings.Count(r.Stderr, "run ") != 2 {
		t.Errorf("expected two runs for their messages, found\n%s", r.Stderr)
	}
	if r := study2(t, 0, "--study", file, "-o", folder); strings.Contains(r.Stderr, "run ") {
		t.Errorf("runs with their messages run again:\n%s", r.Stderr)
	}
	files, err := filepath.Glob(filepath.Join(folder, "flows", "*.parquet"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	text2, err := os.ReadFile(files[0])
	if err != nil || !bytes.HasPrefix(text2, []byte("PAR1")) || !bytes.Contains(text2, []byte("fct_ps_at_sender")) {
		t.Errorf("%q, %v", text2, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if r := study2(t, 0, "--study", file, "-o", folder); strings.Count(r.Stderr, "run ") != 1 {
		t.Errorf("expected one run, found\n%s", r.Stderr)
	}
	mergedTables(t, file, folder)
}

// TestStudyUsage checks that errors in studies and their flags come before the first run.
func TestStudyUsage(t *testing.T) {
	for _, c := range []struct {
		text   string
		args   []string
		status int
		want   string
	}{
		{"traces: [pair.goal]\nvary: {transport: [ndp]}", nil, 2,
			"point 1 (transport=ndp): --transport is for the packet backend, not for loggops"},
		{"traces: [pair.goal]\nvary: {trnsport: [ndp]}", nil, 1, "did you mean \"transport\"?"},
		{"traces: [pair.goal]\nset: {json: true}", nil, 1, "option that changes results"},
		{"traces: [none.goal]\nset: {L: 1us}", nil, 1, "no such file"},
		{"traces: [pair.goal]\nvary: {L: [1us, soon]}", nil, 1, "L: "},
		{"traces: [pair.goal]\nvary: {L: [1us, 1us]}", nil, 1, "are the same run"},
		{"set: {L: 1us}", nil, 2, "a trace is missing"},
		{"traces:\n- {name: a, generate: rnig}", nil, 1, "rnig"},
		{smallStudy, []string{"x.goal"}, 2, "needs no trace"},
		{smallStudy, []string{"--status", "--merge"}, 2, "exclude each other"},
		{smallStudy, []string{"--plot", "x.svg"}, 2, "need --merge"},
		{smallStudy, []string{"--merge", "--compare-to", "transport=swift"}, 2, "one of its values"},
		{smallStudy, []string{"--compare-to", "transport=ndp"}, 2, "need --merge"},
		{smallStudy, []string{"--shard", "3/3"}, 2, "3/3"},
		{smallStudy, []string{"--sweep", "L=1us"}, 2, "--sweep"},
		{smallStudy, []string{"--L", "1us"}, 2, "--L"},
	} {
		file := studied(t, c.text)
		args := append([]string{"--study", file, "-o", filepath.Join(filepath.Dir(file), "results")}, c.args...)
		r := clitest.Run(newCommand, args...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%q %q: status %d, %s, expected %d, %s", c.text, c.args, r.Status, r.Stderr, c.status, c.want)
		}
	}
}

// TestSweepAnyOption compares points of sweeps with runs of the same flags.
func TestSweepAnyOption(t *testing.T) {
	trace := filepath.Join(filepath.Dir(studied(t, "")), "pair.goal")
	packet := []string{"--backend", "packet", "--topology", "leafspine:hosts=16,tor=4,spines=2,rate=100Gbps"}
	for _, c := range []struct {
		base  []string
		sweep string
		flags [][]string
	}{
		{packet, "transport=ndp,dctcp", [][]string{{"--transport", "ndp"}, {"--transport", "dctcp"}}},
		{packet, "topology.rate=100Gbps..400Gbps:2:log", [][]string{{}, {"--topology",
			"leafspine:hosts=16,tor=4,spines=2,rate=400Gbps"}}},
		{packet, "topology=star:hosts=4|fattree:k=4,rate=10Gbps", [][]string{{"--topology", "star:hosts=4"},
			{"--topology", "fattree:k=4,rate=10Gbps"}}},
		{packet, "placement=packed,random:3", [][]string{{"--placement", "packed"}, {"--placement", "random:3"}}},
		{packet, "mss=1KiB,2KiB;seed=1..2", [][]string{{"--mss", "1KiB"}, {"--mss", "1KiB", "--seed", "2"},
			{"--mss", "2KiB"}, {"--mss", "2KiB", "--seed", "2"}}},
		{nil, "backend=loggops,ideal", [][]string{{}, {"--backend", "ideal"}}},
		{nil, "params=hpc,ai;L=1us", [][]string{{"--params", "hpc", "--L", "1us"}, {"--params", "ai", "--L", "1us"}}},
	} {
		r := study2(t, 0, append(append([]string{"--sweep", c.sweep}, c.base...), trace)...)
		lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		if len(lines) != len(c.flags) {
			t.Errorf("%s: %d points, expected %d", c.sweep, len(lines), len(c.flags))
			continue
		}
		for i, flags := range c.flags {
			alone := study2(t, 0, append(append(append([]string{"--json"}, c.base...), flags...), trace)...)
			got, want := numbersOf(t, lines[i]), numbersOf(t, alone.Stdout)
			if got != want {
				t.Errorf("%s: point %d has %s, the flags %v give %s", c.sweep, i+1, got, flags, want)
			}
		}
	}
}

// numbersOf returns the identity and the times of a result.
func numbersOf(t *testing.T, line string) string {
	t.Helper()
	var r struct {
		Run      struct{ ID string }
		Makespan json.Number   `json:"makespan_ps"`
		Finish   []json.Number `json:"finish_ps"`
		Events   int64
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r)
}
