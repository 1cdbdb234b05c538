package tracefile

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
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

// many is a format of many files, NAME.RANK.many, each with the title of the trace.
var many = format.Format{
	Name: "many", Extensions: []string{".many"},
	Detect: func(head []byte) bool { return bytes.HasPrefix(head, []byte("trace ")) },
	Files: func(name string, folder []string) ([]string, error) {
		prefix, _, _ := strings.Cut(name, ".")
		var files []string
		for rank := 0; slices.Contains(folder, manyName(cmp.Or(prefix, "x"), rank)); rank++ {
			files = append(files, manyName(cmp.Or(prefix, "x"), rank))
		}
		return files, nil
	},
	Read: func(inputs []*format.Input, _ format.ReadOptions) (*dag.Trace, error) {
		b := dag.NewBuilder(len(inputs))
		for _, in := range inputs {
			content, err := io.ReadAll(in.Reader)
			if err != nil {
				return nil, err
			}
			b.Meta().Title += strings.TrimPrefix(string(content), "trace ")
		}
		return b.Trace(), nil
	},
	WriteFiles: func(create func(string) (io.Writer, error), t *dag.Trace, _ format.WriteOptions) error {
		for rank := range t.Ranks {
			w, err := create(fmt.Sprintf(".%d.many", rank))
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "trace %s\n", t.Title)
		}
		return nil
	},
}

func manyName(prefix string, rank int) string { return fmt.Sprintf("%s.%d.many", prefix, rank) }

// titled returns a trace of a number of ranks.
func titled(title string, ranks int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	b.Meta().Title = title
	return b.Trace()
}

// A program that dies at any point of a replacement leaves the old trace, the new one or one that readers refuse, and
// the next program writes a whole trace.
func TestReplaceCrashes(t *testing.T) {
	formats := format.List{many}
	for _, ranks := range [][2]int{{3, 3}, {4, 2}, {2, 4}, {0, 3}, {3, 1}, {1, 1}} {
		refused, steps := 0, 0
		for crash := 1; ; crash++ {
			folder := t.TempDir()
			path := filepath.Join(folder, "x.many")
			write := func(title string, ranks int, set *Outputs) {
				o := WriteOptions{Outputs: set, Numbered: true}
				if _, err := Write(formats, path, titled(title, ranks), o); err != nil {
					t.Fatal(err)
				}
			}
			read := func() string {
				trace, err := Read(formats, path, Options{})
				if err != nil {
					return "error: " + err.Error()
				}
				return trace.Title
			}
			if ranks[0] > 0 {
				write("a", ranks[0], &Outputs{NoSync: true})
			}
			died, n := false, 0
			func() {
				defer func() { died = recover() != nil }()
				write("b", ranks[1], &Outputs{NoSync: true, step: func() {
					if n++; n == crash {
						panic("killed")
					}
				}})
			}()
			old, replaced := strings.Repeat("a\n", ranks[0]), strings.Repeat("b\n", ranks[1])
			switch got := read(); {
			case !died && got != replaced:
				t.Fatalf("%v: written as %q", ranks, got)
			case strings.Contains(got, "write the trace again"):
				refused++
			case got != old && got != replaced && !(ranks[0] == 0 && strings.Contains(got, "no such file")):
				t.Errorf("%v, dead at step %d: read as %q", ranks, crash, got)
			}
			write("c", ranks[1], &Outputs{NoSync: true})
			if got := read(); got != strings.Repeat("c\n", ranks[1]) {
				t.Errorf("%v, dead at step %d: afterwards read as %q", ranks, crash, got)
			}
			if steps = n; !died {
				break
			}
		}
		if ranks != [2]int{1, 1} && refused == 0 || steps < 2 {
			t.Errorf("%v: %d of %d crashes are detected", ranks, refused, steps)
		}
	}
}

// If programs write the same trace at the same time, one wins.
func TestWritersTakeTurns(t *testing.T) {
	formats := format.List{many}
	path := filepath.Join(t.TempDir(), "x.many")
	var wait sync.WaitGroup
	for writer := range 4 {
		wait.Go(func() {
			for range 20 {
				title, ranks := string(rune('a'+writer)), 3+writer
				if _, err := Write(formats, path, titled(title, ranks), WriteOptions{Outputs: &Outputs{NoSync: true}}); err != nil {
					t.Error(err)
				}
				trace, err := Read(formats, path, Options{})
				if err != nil {
					continue // while another writer is at work
				}
				if n := len(trace.Ranks); trace.Title != strings.Repeat(trace.Title[:2], n) || n != 3+int(trace.Title[0]-'a') {
					t.Errorf("a mixture: %q", trace.Title)
				}
			}
		})
	}
	wait.Wait()
	trace, err := Read(formats, path, Options{})
	if err != nil || trace.Title != strings.Repeat(trace.Title[:2], len(trace.Ranks)) {
		t.Errorf("%v, %v", trace, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != len(trace.Ranks) {
		t.Errorf("files %v, %v", entries, err)
	}
}

// The unfinished files of dead processes are removed, those of living ones and of other machines are kept.
func TestLeftovers(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	pid, old := dead.Process.Pid, time.Now().Add(-2*leftoverAge)
	for _, name := range []string{
		fmt.Sprintf(unfinishedName, machine(), pid, 0), fmt.Sprintf(unfinishedName, machine(), pid, 17),
	} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	other := fmt.Sprintf(unfinishedName, machine()+1, pid, 0)
	kept := []string{
		fmt.Sprintf(unfinishedName, machine(), os.Getppid(), 0), other, ".tracedag-1-2.tmp", ".tracedag-x.tmp",
		fmt.Sprintf(unfinishedName, machine(), pid, 0) + ".tmp", "tracedag.tmp",
	}
	for i, name := range kept {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if err := os.Chtimes(name, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	var said []string
	set := Outputs{Info: func(message string, args ...any) { said = append(said, fmt.Sprintf(message, args...)) }}
	for _, name := range []string{"a", "b"} {
		out, err := set.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(kept, "a", "b") {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != len(kept)+2 {
		t.Errorf("files %v, %v", entries, err)
	}
	slices.Sort(said)
	if len(said) != 2 || !strings.Contains(strings.Join(said, "\n"), "interrupted program, 2 files") ||
		!strings.Contains(strings.Join(said, "\n"), other+": unfinished output") {
		t.Errorf("said %q", said)
	}
}

// A trace that is replaced while it is read is an error.
func TestReplacedWhileRead(t *testing.T) {
	formats := format.List{many}
	path := filepath.Join(t.TempDir(), "x.many")
	for range 2 {
		if _, err := Write(formats, path, titled("a", 2), WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := Open(formats, []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if _, err := Write(formats, path, titled("b", 2), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Read(); err == nil || !strings.Contains(err.Error(), "x.0.many: expected the same files") {
		t.Errorf("error %v", err)
	}
}

// A text that ends within a number is warned about, however it is read; an empty input is an error.
func TestCutTexts(t *testing.T) {
	t.Chdir(t.TempDir())
	for content, cut := range map[string]bool{
		"plain 12": true, "plain 1.": true, "plain 12\n": false, "plain}": false, "plain\x00 12": false, "": false,
	} {
		for _, name := range []string{"x.plain", "x.plain.gz", "-"} {
			stored := content
			if strings.HasSuffix(name, ".gz") {
				stored = gzipped(t, content)
			}
			if err := os.WriteFile("x.plain", []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("x.plain.gz", []byte(stored), 0o666); err != nil {
				t.Fatal(err)
			}
			var warnings []string
			_, err := Read(format.List{texts}, name, Options{From: "plain", Stdin: strings.NewReader(content),
				Warn: func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) }})
			if content == "" {
				if err == nil || !strings.Contains(err.Error(), "expected a trace, found an empty input") {
					t.Errorf("%s, empty: %v", name, err)
				}
				continue
			}
			warned := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "ends in a number") })
			if err != nil || warned != cut {
				t.Errorf("%s with %q: warnings %q, %v", name, content, warnings, err)
			}
		}
	}
}
