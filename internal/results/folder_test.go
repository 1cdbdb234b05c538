package results

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const someID = "0123456789abcdef"

// opened returns the runs of a folder.
func opened(t *testing.T, f Folder) *Store {
	t.Helper()
	s, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFile checks that no damaged or shortened file of a run counts.
func TestFile(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "results"))
	if k, err := opened(t, f).Read(someID); k != nil || err != nil {
		t.Errorf("an empty folder has %v, %v", k, err)
	}
	line := `{"run":{},"complete":true}` + "\n"
	if err := f.Write(someID, []byte(line), Incomplete); err != nil {
		t.Fatal(err)
	}
	s := opened(t, f)
	if k, err := s.Read(someID); err != nil || k == nil || k.Status != Incomplete || string(k.Line) != line {
		t.Fatalf("%v, %v", k, err)
	}
	whole, err := os.ReadFile(f.path(someID))
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1
		for _, text := range [][]byte{damaged, whole[:i]} {
			if err := os.WriteFile(f.path(someID), text, 0o644); err != nil {
				t.Fatal(err)
			}
			if k, err := s.Read(someID); k != nil || err != nil {
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
