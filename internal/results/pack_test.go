package results

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// idOf returns the identity of run i of a test.
func idOf(i int) string { return fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15) }

// lineOf returns the line of run i, long enough that a pack has several frames.
func lineOf(i int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	return fmt.Appendf(nil, `{"run":{"id":%q},"makespan_ps":%d,"text":"%x"}`+"\n", idOf(i), i, r.Perm(400))
}

// check returns the runs that a store has, and fails for a wrong one.
func check(t *testing.T, s *Store, runs int) (there []int) {
	t.Helper()
	for i := range runs {
		k, err := s.Read(idOf(i))
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		_, _, known, err := s.Status(idOf(i))
		if err != nil || known != (k != nil) {
			t.Fatalf("run %d: %v, %t, but read %v", i, err, known, k)
		}
		if k == nil {
			continue
		}
		if !bytes.Equal(k.Line, lineOf(i)) || k.Status != Done {
			t.Fatalf("run %d: %s %d", i, k.Line, k.Status)
		}
		there = append(there, i)
	}
	return there
}

func all(string) bool { return true }

// packed writes runs to packs.
func packed(t *testing.T, f Folder, shard string, from, to int) {
	t.Helper()
	p := opened(t, f).NewPacker(shard, false, all, nil)
	for i := from; i < to; i++ {
		if err := p.Add(idOf(i), lineOf(i), Done); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestPacks checks that packs are filled with the runs of small packs and of files, which then go.
func TestPacks(t *testing.T) {
	f := Folder(t.TempDir())
	for i := range 30 {
		if err := f.Write(idOf(i), lineOf(i), Done); err != nil {
			t.Fatal(err)
		}
	}
	packed(t, f, "0-of-2", 30, 700)
	packed(t, f, "0-of-2", 700, 2100)
	packed(t, f, "1-of-2", 2100, 2200)
	if got := check(t, opened(t, f), 2300); len(got) != 2200 {
		t.Errorf("found %d runs", len(got))
	}
	if names := files(t, f.packs()+"/*"); len(names) != 4 {
		t.Errorf("packs %v, expected 1000, 1000, 100 and 100 runs", names)
	}
	if names := files(t, string(f)+"/runs/*/*"); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	packed(t, f, "0-of-2", 0, 0) // nothing changes
	if got := check(t, opened(t, f), 2300); len(got) != 2200 {
		t.Errorf("found %d runs", len(got))
	}
	if left := files(t, f.packs()+"/.*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestPackGone checks that a store finds runs whose packs were gathered after it was opened.
func TestPackGone(t *testing.T) {
	f := Folder(t.TempDir())
	for _, name := range []string{"runs/.clock.1-1", "packs/.pack.1-1", "timing/.x.csv.1-1"} { // of killed processes
		if err := replace(filepath.Join(string(f), name), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		packed(t, f, "0-of-1", i*50, i*50+50)
		if i == 4 {
			if err := f.Write(idOf(501), lineOf(501), Done); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := opened(t, f)
	if err := f.Write(idOf(500), lineOf(500), Done); err != nil {
		t.Fatal(err)
	}
	packed(t, f, "0-of-1", 510, 511)
	if got := check(t, s, 501); len(got) < 500 {
		t.Errorf("found %d runs", len(got))
	}
	if k, err := s.Read(idOf(501)); err != nil || k == nil {
		t.Errorf("the run of a packed file: %v, %v", k, err)
	}
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if got := check(t, s, 520); len(got) != 503 {
		t.Errorf("found %d runs", len(got))
	}
}

// TestDamagedPack checks that a changed or cut pack loses runs of a frame, or those after the cut, and no others, and
// that damage never shows.
func TestDamagedPack(t *testing.T) {
	const runs, perFrame = 12, 3
	f := Folder(t.TempDir())
	w, err := f.newPack()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	line := func(i int) []byte { return fmt.Appendf(nil, `{"makespan_ps":%d}`+"\n", i) }
	for i := range runs {
		if err := w.add(appendRecord(nil, line(i), idOf(i), Done)); err != nil {
			t.Fatal(err)
		}
		if i%perFrame == perFrame-1 {
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	name, err := w.commit("0-of-1", true)
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(f.packs(), name)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	found := func(text []byte) (runs int) {
		t.Helper()
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
		s := opened(t, f)
		for i := range 12 {
			k, err := s.Read(idOf(i))
			if err != nil || k != nil && (!bytes.Equal(k.Line, line(i)) || k.Status != Done) {
				t.Fatalf("run %d: %v, %v", i, k, err)
			}
			if k != nil {
				runs++
			}
		}
		return runs
	}
	for at := range whole {
		damaged := slices.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		if got := found(damaged); got < runs-perFrame {
			t.Errorf("byte %d changed: %d runs are there", at, got)
		}
		if got := found(whole[:at]); got < at*runs/len(whole)-perFrame {
			t.Errorf("cut at byte %d: %d runs are there", at, got)
		}
	}
}

// FuzzFrames checks that no file makes the reader fail, and that it finds whole records only.
func FuzzFrames(f *testing.F) {
	folder := Folder(f.TempDir())
	w, err := folder.newPack()
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		if err := w.add(appendRecord(nil, lineOf(i)[:40:40], idOf(i), Status(i))); err != nil {
			f.Fatal(err)
		}
		if err := w.flush(); err != nil {
			f.Fatal(err)
		}
	}
	name, err := w.commit("0-of-1", false)
	if err != nil {
		f.Fatal(err)
	}
	w.close()
	whole, err := os.ReadFile(filepath.Join(folder.packs(), name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(append(whole[5:40:40], whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames(data, func(at, size int, text []byte) {
			if at < 0 || size <= 0 || at+size > len(data) {
				t.Fatalf("frame %d %d of %d", at, size, len(data))
			}
			records(text, func(r found) {
				again := appendRecord(nil, text[r.begin:r.end], r.id, r.status)
				if !bytes.HasPrefix(text[r.begin:], again) {
					t.Fatalf("record %q is not %q", text[r.begin:], again)
				}
			})
		})
	})
}

// TestPrecedence checks which of several results of a run counts.
func TestPrecedence(t *testing.T) {
	f := Folder(t.TempDir())
	add := func(shard string, line string, status Status) {
		t.Helper()
		p := opened(t, f).NewPacker(shard, false, func(string) bool { return false }, nil)
		if err := p.Add(someID, []byte(line+"\n"), status); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		k, err := opened(t, f).Read(someID)
		if err != nil || k == nil {
			t.Fatal(k, err)
		}
		return strings.TrimSpace(string(k.Line))
	}
	add("0-of-3", `{"error":"first"}`, Failed)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(files(t, f.packs()+"/*")[0], old, old); err != nil {
		t.Fatal(err)
	}
	add("1-of-3", `{"error":"second"}`, Limited)
	if got := read(); got != `{"error":"second"}` {
		t.Errorf("of two errors the earlier counts: %s", got)
	}
	if err := f.Write(someID, []byte("{}\n"), Done); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != `{}` {
		t.Errorf("an error counts instead of a result: %s", got)
	}
	add("2-of-3", `{"x":1}`, Done)
	s := opened(t, f)
	kept, names, err := s.Twice(someID)
	if err != nil || len(kept) != 2 || len(names) != 2 || string(kept[0].Line) == string(kept[1].Line) {
		t.Errorf("two results: %v, %v, %v", kept, names, err)
	}
}

// TestClaims checks that a claim holds until it is released or two minutes old.
func TestClaims(t *testing.T) {
	f := Folder(t.TempDir())
	a, b := f.NewClaims(), f.NewClaims()
	defer b.Close()
	take := func(c *Claims, want bool) {
		t.Helper()
		if got, err := c.Take(someID); got != want || err != nil {
			t.Errorf("%t, %v", got, err)
		}
	}
	take(a, true)
	take(b, false)
	a.Release(someID)
	take(b, true)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.claim(someID), old, old); err != nil {
		t.Fatal(err)
	}
	b.renew()
	take(a, false)
	if err := os.Chtimes(f.claim(someID), old, old); err != nil {
		t.Fatal(err)
	}
	take(a, true)
	a.Close()
	if left := files(t, string(f)+"/runs/*/*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestTiming checks that the latest time of a run counts.
func TestTiming(t *testing.T) {
	f := Folder(t.TempDir())
	for i := range 3 {
		w := f.NewTiming("0-of-1")
		if err := w.Add(someID, time.Duration(i)*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range files(t, string(f)+"/timing/*") {
			if i < 2 {
				old := time.Now().Add(time.Duration(i-3) * time.Hour)
				if err := os.Chtimes(name, old, old); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if all, err := f.Timings(); err != nil || len(all) != 1 || all[someID] != "0.002000" {
		t.Errorf("%v, %v", all, err)
	}
}
