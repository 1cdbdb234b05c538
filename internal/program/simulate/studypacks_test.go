package simulate

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/results"
)

// TestStudyPacks checks that packs, stolen runs and times give the tables of files, byte for byte.
func TestStudyPacks(t *testing.T) {
	file := studied(t, smallStudy)
	whole, parts := filepath.Join(filepath.Dir(file), "whole"), filepath.Join(filepath.Dir(file), "parts")
	study2(t, 0, "--study", file, "-o", whole)
	want := mergedTables(t, file, whole)

	study2(t, 0, "--study", file, "-o", parts, "--shard", "2/3", "--threads", "1") // eight files
	study2(t, 0, "--study", file, "-o", parts, "--shard", "2/3", "--pack")         // that go to a pack
	study2(t, 0, "--study", file, "-o", parts, "--shard", "0/3", "--pack", "--timing")
	if r := study2(t, 0, "--study", file, "-o", parts, "--status"); !strings.HasPrefix(r.Stdout,
		"24 runs: 16 done, 0 failed, 8 to do") {
		t.Errorf("status is %s", r.Stdout)
	}
	if files, _ := filepath.Glob(filepath.Join(parts, "runs", "*", "*")); len(files) > 0 {
		t.Errorf("left %v", files)
	}
	study2(t, 0, "--study", file, "-o", parts, "--shard", "1/3")
	if !bytes.Equal(mergedTables(t, file, parts), want) {
		t.Error("packs give other tables")
	}
	packs, _ := filepath.Glob(filepath.Join(parts, "packs", "*"))
	if len(packs) != 2 {
		t.Fatalf("expected two packs, found %v", packs)
	}
	if err := os.Truncate(packs[0], 100); err != nil {
		t.Fatal(err)
	}
	if r := study2(t, 0, "--study", file, "-o", parts, "--pack"); strings.Count(r.Stderr, "run ") != 8 {
		t.Errorf("expected the eight runs of the cut pack, found\n%s", r.Stderr)
	}
	study2(t, 0, "--study", file, "-o", parts, "--merge", "--timing")
	if !bytes.Equal(mergedTables(t, file, parts), want) {
		t.Error("packs that were damaged give other tables")
	}
	times, err := os.ReadFile(filepath.Join(parts, "timing.csv"))
	if err != nil || bytes.Count(times, []byte("\n")) != 9 ||
		!bytes.HasPrefix(times, []byte("study,point,run,seed,wall_s\nsmall,")) {
		t.Errorf("times: %s, %v", times, err)
	}
}

// TestStudySteals checks that a shard runs what others have not begun.
func TestStudySteals(t *testing.T) {
	for _, pack := range []string{"--pack=false", "--pack"} {
		file := studied(t, smallStudy)
		folder := filepath.Join(filepath.Dir(file), "results")
		study2(t, 0, "--study", file, "-o", folder, "--shard", "1/4", pack)
		ids := strings.Fields(study2(t, 0, "--study", file, "-o", folder, "--dry-run").Stdout)
		claims := results.Folder(folder).NewClaims()
		var begun string // a run of shard 2
		for _, id := range ids {
			if len(id) != 16 || strings.Trim(id, "0123456789abcdef") != "" {
				continue
			}
			if s := shardOf(ids, id, 4); s == 2 {
				begun = id
			}
		}
		if mine, err := claims.Take(begun); !mine || err != nil {
			t.Fatal(mine, err)
		}
		r := study2(t, 0, "--study", file, "-o", folder, "--shard", "0/4", "--steal", pack)
		if n := strings.Count(r.Stderr, "run "); n != 17 || strings.Contains(r.Stderr, begun) {
			t.Errorf("expected 17 runs without %s, found %d\n%s", begun, n, r.Stderr)
		}
		claims.Close()
		if r = study2(t, 0, "--study", file, "-o", folder, "--shard", "2/4", "--steal", pack); strings.Count(r.Stderr,
			"run ") != 1 || !strings.Contains(r.Stderr, begun) {
			t.Errorf("expected run %s, found\n%s", begun, r.Stderr)
		}
		if left, _ := filepath.Glob(filepath.Join(folder, "runs", "*", "*.claim")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

// shardOf returns the shard of a run among the words of a list of runs.
func shardOf(words []string, id string, shards int) int {
	place := 0
	for _, other := range words {
		if len(other) == 16 && strings.Trim(other, "0123456789abcdef") == "" && other < id {
			place++
		}
	}
	return place % shards
}

// processArgs is the variable with the arguments of the program that TestStudyProcess runs.
const processArgs = "TRACEDAG_TEST_STUDY"

// TestStudyProcess is the program in a process of its own, for TestStudyKilled.
func TestStudyProcess(t *testing.T) {
	args, set := os.LookupEnv(processArgs)
	if !set {
		t.Skip("runs in a process that TestStudyKilled starts")
	}
	os.Exit(clitest.Run(newCommand, strings.Split(args, "\n")...).Status)
}

// TestStudyKilled checks that killing two processes at any moment, over and over, loses and doubles no run.
func TestStudyKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	file := studied(t, "traces: [pair.goal]\nset: {backend: loggops}\nvary: {L: 1us..100us:600}\n")
	folder, whole := filepath.Join(filepath.Dir(file), "parts"), filepath.Join(filepath.Dir(file), "whole")
	study2(t, 0, "--study", file, "-o", whole, "--pack", "-q")
	var ids []string
	for _, word := range strings.Fields(study2(t, 0, "--study", file, "--dry-run").Stdout) {
		if len(word) == 16 {
			ids = append(ids, word)
		}
	}
	if len(ids) != 600 {
		t.Fatalf("%d runs", len(ids))
	}
	there := 0
	for round := range 200 {
		var processes []*exec.Cmd
		for _, shard := range []string{"0/2", "1/2"} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestStudyProcess$")
			cmd.Env = append(os.Environ(), processArgs+"="+strings.Join([]string{"--study", file, "-o", folder,
				"--shard", shard, "--pack", "--steal", "--timing", "-q", "--threads", "1"}, "\n"))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			processes = append(processes, cmd)
		}
		for _, cmd := range processes {
			if round < 15 {
				time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
				cmd.Process.Kill()
			}
		}
		done := true
		for _, cmd := range processes {
			done = cmd.Wait() == nil && done
		}
		if _, err := os.Stat(filepath.Join(folder, "study.yml")); err != nil {
			continue // killed before it began
		}
		store, err := results.Folder(folder).Open()
		if err != nil {
			t.Fatal(err)
		}
		now := 0
		for _, id := range ids {
			_, _, is, err := store.Status(id)
			if err != nil {
				t.Fatal(err)
			}
			if is {
				now++
			}
		}
		if now < there {
			t.Fatalf("round %d: %d runs are there, %d were before", round, now, there)
		}
		if there = now; done {
			break
		}
		dropClaims(t, folder)
	}
	if !bytes.Equal(mergedTables(t, file, folder), mergedTables(t, file, whole)) {
		t.Error("a study that was killed gives other tables")
	}
}

// dropClaims removes the claims of killed processes, which would else end after two minutes.
func dropClaims(t *testing.T, folder string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "runs", "*", "*.claim"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		os.Remove(name)
	}
}

// TestStudyTwice checks that a merge refuses two results of a run that differ, and names their files.
func TestStudyTwice(t *testing.T) {
	file := studied(t, "traces: [pair.goal]\nset: {backend: loggops}\nvary: {L: [1us, 2us]}\n")
	folder := filepath.Join(filepath.Dir(file), "results")
	study2(t, 0, "--study", file, "-o", folder)
	files, err := filepath.Glob(filepath.Join(folder, "runs", "*", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	study2(t, 0, "--study", file, "-o", folder, "--pack")
	id := strings.TrimSuffix(filepath.Base(files[0]), ".json")
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for change, status := range map[string]int{`"version":"test"`: 0, `"makespan_ps":`: 1} {
		other := bytes.Replace(line, []byte(change), []byte(strings.Replace(change, `t"`, `u"`, 1)), 1)
		if status == 1 {
			other = bytes.Replace(line, []byte(change), []byte(change+"1"), 1)
		}
		if bytes.Equal(other, line) {
			t.Fatalf("%s is not in %s", change, line)
		}
		if err := results.Folder(folder).Write(id, append(other, '\n'), results.Done); err != nil {
			t.Fatal(err)
		}
		r := study2(t, status, "--study", file, "-o", folder, "--merge")
		if status == 1 && (!strings.Contains(r.Stderr, "different results") || !strings.Contains(r.Stderr, files[0]) ||
			!strings.Contains(r.Stderr, ".jsonl.zst")) {
			t.Errorf("merging two results of a run: %s", r.Stderr)
		}
	}
}

// TestStudySeedsOfOneTrace checks that seeds of a backend without random choices are runs of their own, as by hand.
func TestStudySeedsOfOneTrace(t *testing.T) {
	file := studied(t, "traces: [pair.goal]\nset: {backend: ideal}\nseeds: [3, 1, 7]\n")
	folder := filepath.Join(filepath.Dir(file), "results")
	study2(t, 0, "--study", file, "-o", folder, "--pack")
	study2(t, 0, "--study", file, "-o", folder, "--merge", "--points", filepath.Join(folder, "points.csv"))
	points, err := os.ReadFile(filepath.Join(folder, "points.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range []string{"3", "1", "7"} {
		by := study2(t, 0, "--backend", "ideal", "--seed", seed, "--json", filepath.Join(filepath.Dir(file), "pair.goal"))
		_, id, _ := strings.Cut(by.Stdout, `"id":"`)
		if id = id[:16]; bytes.Count(points, []byte(id+",")) != 1 {
			t.Errorf("seed %s: run %s is not in\n%s", seed, id, points)
		}
	}
}
