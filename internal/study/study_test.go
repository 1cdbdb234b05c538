package study

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/tables"
)

func TestIdentity(t *testing.T) {
	settings := map[string]string{"transport": "ndp", "topology": "fattree:k=4,rate=100Gbps", "balance": "spray"}
	if got := tables.Identity("packet", settings, 3, strings.Repeat("0", 64)); got != "b698db46d50a8216" {
		t.Errorf("got %s", got)
	}
}

func TestFolder(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "results"))
	a := &provenance.Run{Study: "s", ID: "0123456789abcdef", Index: 7, Replica: 2, Factors: map[string]string{"a": "<&>"},
		Units: map[string]string{}, Warnings: []string{"careful"}}
	var line, placed strings.Builder
	unplaced := bare(*a)
	if err := a.WriteLine(&placed, map[string]any{"complete": true, "makespan_ps": 1}); err != nil {
		t.Fatal(err)
	}
	if err := unplaced.WriteLine(&line, map[string]any{"complete": true, "makespan_ps": 1}); err != nil {
		t.Fatal(err)
	}
	if k, err := f.Read(a.ID); k != nil || err != nil {
		t.Errorf("an empty folder has %v, %v", k, err)
	}
	if err := f.Write(a.ID, []byte(line.String()), Done); err != nil {
		t.Fatal(err)
	}
	k, err := f.Read(a.ID)
	if err != nil || k == nil || k.Status != Done {
		t.Fatalf("%v, %v", k, err)
	}
	if got, _, err := place(k.Line, a); err != nil || string(got) != placed.String() {
		t.Errorf("got %s, %v, expected %s", got, err, placed.String())
	}
	whole, err := os.ReadFile(f.path(a.ID))
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole { // no damaged or shortened file counts
		damaged := slices.Clone(whole)
		damaged[i] ^= 1
		for _, text := range [][]byte{damaged, whole[:i]} {
			if err := os.WriteFile(f.path(a.ID), text, 0o644); err != nil {
				t.Fatal(err)
			}
			if k, err := f.Read(a.ID); k != nil || err != nil {
				t.Fatalf("the file with byte %d changed is %v, %v", i, k, err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(string(f), "runs", "*", ".*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestReplaceBeside checks that files of a killed process with the same number do not stop a run.
func TestReplaceBeside(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "x.json")
	next := temporary.Load()
	for i := range int64(3) {
		beside := filepath.Join(folder, fmt.Sprintf(".x.json.%d-%d", os.Getpid(), next+i+1))
		if err := os.WriteFile(beside, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := replace(name, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestLock(t *testing.T) {
	f := Folder(t.TempDir())
	unlock, err := f.Lock("0-of-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock("0-of-1"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second lock: %v", err)
	}
	other, err := f.Lock("1-of-2")
	if err != nil {
		t.Fatal(err)
	}
	other()
	unlock()
	if unlock, err = f.Lock("0-of-1"); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestKeep checks which changes of a study its folder accepts.
func TestKeep(t *testing.T) {
	const before = "traces: [a.goal]\nset: {queue: 1}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n"
	for text, want := range map[string]string{
		before: "",
		"traces: [a.goal, b.goal]\nset: {queue: 1}\nvary: {transport: [swift, ndp, dctcp], load: [1, 2]}\nreplicas: 3\n": "",
		"traces: [a.goal]\nset: {queue: 2}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n":                              "queue was 1, is 2",
		"traces: [a.goal]\nset: {queue: 1, x: 2}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n":                        "x was absent",
		"traces: [a.goal]\nset: {queue: 1}\nvary: {transport: [ndp]}\nreplicas: 2\n":                                     "lacks the value transport=dctcp",
		"traces: [a.goal]\nset: {queue: 1}\nvary: {transport: [ndp, dctcp]}\nreplicas: 1\n":                              "lacks the value seed=2",
		"traces: [b.goal]\nset: {queue: 1}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n":                              "traces: a is not the same",
	} {
		f := Folder(filepath.Join(t.TempDir(), "results"))
		var err error
		for _, text := range []string{before, text} {
			var s *grid.Study
			if s, err = grid.Read([]byte(text), "study.yml", nil, nil); err != nil {
				t.Fatal(err)
			}
			err = f.Keep([]byte(text), s)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}
