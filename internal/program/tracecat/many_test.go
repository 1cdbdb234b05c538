package tracecat

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/internal/units"
)

// inFolder changes to a new folder with traces of the test: ring.parquet and, in other formats or changed, others.
func inFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	other := ring()
	other.Title = "another ring"
	other.Ranks[1] = other.Ranks[1].Clone()
	other.Ranks[1].Bytes.Set(1, 2000)
	other.Ranks[1].Release.Set(2, dag.Millisecond)
	longer := ring()
	longer.Ranks[2] = longer.Ranks[2].Clone()
	longer.Ranks[2].Kind = append(longer.Ranks[2].Kind, dag.Calc)
	titled := ring()
	titled.Title = "a ring"
	titled.Provenance = []dag.Provenance{{Program: "tracegen", Version: "v1", Command: []string{"tracegen", "it's"}}}
	for name, trace := range map[string]*dag.Trace{
		"ring.parquet": titled, "copy.parquet": ring(), "ring.goal": ring(), "ring.bin": ring(), "other.parquet": other,
		"longer.parquet": longer, "everything.parquet": everything(),
	} {
		if _, err := formats.Write(name, trace, formats.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"bad.goal": "num_ranks 1\nrank 0 {\nl0: calm 5\n}\n", "none.txt": "x y z\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDiff(t *testing.T) {
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	inFolder(t)
	for _, c := range []struct {
		a, b, file string
		status     int
	}{
		{"ring.parquet", "ring.parquet", "", 0},
		{"ring.parquet", "copy.parquet", "", 0},
		{"ring.parquet", "ring.goal", "", 0},
		{"ring.goal", "ring.bin", "", 0},
		{"everything.parquet", "everything.parquet", "", 0},
		{"ring.parquet", "other.parquet", "diff.other", 1},
		{"ring.goal", "longer.parquet", "diff.longer", 1},
		{"longer.parquet", "everything.parquet", "diff.everything", 1},
		{"ring.parquet", "bad.goal", "", 2},
		{"none.txt", "ring.goal", "", 2},
		{"ring.parquet", "nix", "", 2},
	} {
		text := clitest.Run(New, "--diff", c.a, c.b)
		object := clitest.Run(New, "--diff", "--json", c.a, c.b)
		if text.Status != c.status || object.Status != c.status || (text.Stdout != "") != (c.file != "") ||
			(text.Stderr != "") != (c.status == 2) {
			t.Errorf("%s, %s: status %d, with --json %d; stdout %q, stderr %q", c.a, c.b, text.Status, object.Status,
				text.Stdout, text.Stderr)
		}
		if c.file != "" {
			golden.Check(t, filepath.Join(folder, c.file+".golden"), text.Stdout)
			golden.Check(t, filepath.Join(folder, c.file+".json.golden"), object.Stdout)
		}
		if c.status == 2 {
			continue
		}
		var d, mirror struct {
			Equal bool             `json:"equal"`
			Facts []map[string]any `json:"facts"`
			First map[string]any   `json:"first"`
		}
		if err := json.Unmarshal([]byte(object.Stdout), &d); err != nil || d.Equal != (c.status == 0) {
			t.Errorf("%s, %s: %v, equal is %v", c.a, c.b, err, d.Equal)
		}
		back := clitest.Run(New, "--diff", "--json", c.b, c.a)
		if err := json.Unmarshal([]byte(back.Stdout), &mirror); err != nil {
			t.Error(err)
		}
		for _, object := range append(mirror.Facts, mirror.First) {
			if object != nil {
				object["a"], object["b"] = object["b"], object["a"]
			}
		}
		if !reflect.DeepEqual(d, mirror) {
			t.Errorf("%s, %s: %+v\nmirrored %+v", c.a, c.b, d, mirror)
		}
	}
}

func TestList(t *testing.T) {
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	inFolder(t)
	good := []string{"ring.parquet", "ring.goal", "everything.parquet"}
	all := append(good[:3:3], "bad.goal", "nix", "none.txt")
	for _, c := range []struct {
		file, flag string
		names      []string
		status     int
	}{
		{"list", "", all, 1}, {"list.csv", "--csv", all, 1}, {"list.jsonl", "--json", all, 1}, {"list.good", "", good, 0},
	} {
		args := c.names
		if c.flag != "" {
			args = append([]string{c.flag}, c.names...)
		}
		got := clitest.Run(New, args...)
		if got.Status != c.status || (got.Stderr != "") != (c.status == 1) {
			t.Errorf("%s: status %d, stderr %q", c.file, got.Status, got.Stderr)
		}
		text := strings.ReplaceAll(got.Stdout, strings.Join(formats.All.Names(), ", "), "FORMATS")
		golden.Check(t, filepath.Join(folder, c.file+".golden"), text)
		switch c.flag {
		case "--csv":
			if rows, err := csv.NewReader(strings.NewReader(got.Stdout)).ReadAll(); err != nil || len(rows) != 7 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		case "--json":
			for line := range strings.Lines(got.Stdout) {
				if !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %s", line)
				}
			}
		}
	}
	if got := clitest.Run(New, "--csv", "ring.goal"); strings.Count(got.Stdout, "\n") != 2 || got.Status != 0 {
		t.Errorf("one trace as CSV: status %d, stdout %q", got.Status, got.Stdout)
	}
	if got := clitest.Run(New, "--from", "gaol", "ring.goal", "ring.bin"); got.Status != 2 || got.Stdout != "" {
		t.Errorf("an unknown format: status %d, stdout %q", got.Status, got.Stdout)
	}
}

func TestFilter(t *testing.T) {
	for args, want := range map[string]string{
		"--kind send":                     "0.1 2.1",
		"--kind send,recv --rank 0-1":     "0.1 1.0",
		"--kind allreduce":                "0.2 2.0",
		"--kind coll --kind write":        "0.2 0.3 0.4 2.0 2.3",
		"--job serve":                     "0.4",
		"--job 1":                         "0.4",
		"--job train --rank 1":            "1.0 1.1",
		"--job train,serve --rank 0":      "0.0 0.1 0.2 0.3 0.4",
		"--name forward":                  "0.0",
		"--name war":                      "0.0",
		"--name f*d":                      "0.0",
		"--name *here":                    "0.3",
		"--name ?":                        "1.1",
		"--name war*":                     "",
		"--window 1ms..":                  "0.4 1.0",
		"--window 1us..2us":               "1.0",
		"--window ..0s --rank 0":          "0.0 0.1 0.2 0.3",
		"--window ..0s --rank 1":          "1.1",
		"--window 7s..":                   "",
		"--kind recv --window 6s..":       "1.0",
		"--kind coll --head 2":            "0.2 0.3",
		"--kind mem --job train --name -": "1.1",
	} {
		for _, format := range []string{"", "--json"} {
			got := session(everything()).Run(New, append(strings.Fields(args), strings.Fields("--ops "+format)...)...)
			var ops []string
			for i, line := range strings.Split(strings.TrimSpace(got.Stdout), "\n") {
				var op struct{ Rank, Op int }
				switch {
				case line == "" || format == "" && i == 0:
					continue
				case format == "":
					fmt.Sscan(line, &op.Rank, &op.Op)
				default:
					if err := json.Unmarshal([]byte(line), &op); err != nil {
						t.Errorf("%s: %v", line, err)
					}
				}
				ops = append(ops, fmt.Sprintf("%d.%d", op.Rank, op.Op))
			}
			if list := strings.Join(ops, " "); list != want || got.Status != 0 {
				t.Errorf("%s %s: status %d, stderr %q, ops %q, want %q", args, format, got.Status, got.Stderr, list, want)
			}
		}
	}
}

// FuzzNames compares the patterns of names with a recursive definition.
func FuzzNames(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("*", "")
	f.Add("**a?", "aaab")
	f.Add("\xff*", "\xffx")
	f.Fuzz(func(t *testing.T, text, name string) {
		if len(text) > 8 || len(name) > 16 {
			return
		}
		want := strings.Contains(name, text)
		if strings.ContainsAny(text, "*?") {
			want = matchesWhole([]rune(text), []rune(name))
		}
		if got := newNamePattern(text).matches(name); got != want {
			t.Errorf("%q matches %q: %v, want %v", text, name, got, want)
		}
	})
}

func matchesWhole(text, name []rune) bool {
	switch {
	case len(text) == 0:
		return len(name) == 0
	case text[0] == '*':
		return matchesWhole(text[1:], name) || len(name) > 0 && matchesWhole(text, name[1:])
	}
	return len(name) > 0 && (text[0] == '?' || text[0] == name[0]) && matchesWhole(text[1:], name[1:])
}

// FuzzFilterFlags: no text makes a flag of the filter panic.
func FuzzFilterFlags(f *testing.F) {
	for _, text := range []string{"1ms..5ms", "..", "send,allreduce", "0-7", "1ps..9223372036854775807ps"} {
		f.Add(text)
	}
	r := everything().Ranks[0]
	f.Fuzz(func(t *testing.T, text string) {
		var w units.Window
		if w.Set(text) == nil {
			var again units.Window
			if err := again.Set(w.String()); err != nil || again != w {
				t.Errorf("%q: %v, read as %v: %v", text, w.String(), again.String(), err)
			}
			inWindow(&w, r, 0)
		}
		var kinds kindSet
		if kinds.Set(text) == nil && !kinds.set {
			t.Errorf("%q selects nothing", text)
		}
	})
}

// TestTerminal: alignment, colours and the pager depend on the terminal, the environment and the flags.
func TestTerminal(t *testing.T) {
	plain := session(ring()).Run(New, "--ops").Stdout
	for _, c := range []struct {
		name, args, terminal, pager, term, noColor string
		aligned, colored, paged                    bool
	}{
		{name: "file"},
		{name: "pager of a file", pager: "sed s/^/P/"},
		{name: "colours in a file", args: "--color always", colored: true},
		{name: "terminal", terminal: "stdout", aligned: true, colored: true},
		{name: "pager", terminal: "stdout", pager: "sed s/^/P/", aligned: true, colored: true, paged: true},
		{name: "no pager", terminal: "stdout", pager: "sed s/^/P/", args: "--no-pager", aligned: true, colored: true},
		{name: "missing pager", terminal: "stdout", pager: "/no/such/pager", aligned: true, colored: true},
		{name: "pager that reads nothing", terminal: "stdout", pager: "echo P; exit 3", aligned: true, colored: true},
		{name: "NO_COLOR", terminal: "stdout", noColor: "1", aligned: true},
		{name: "NO_COLOR and always", terminal: "stdout", noColor: "1", args: "--color always", aligned: true, colored: true},
		{name: "never", terminal: "stdout", args: "--color never", aligned: true},
		{name: "dumb", terminal: "stdout", term: "dumb", pager: "sed s/^/P/", aligned: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PAGER", c.pager)
			t.Setenv("TERM", c.term)
			t.Setenv("NO_COLOR", c.noColor)
			s := session(ring())
			s.Terminal = c.terminal
			got := s.Run(New, append([]string{"--ops"}, strings.Fields(c.args)...)...)
			if got.Status != 0 || got.Stderr != "" {
				t.Fatalf("status %d, stderr %q", got.Status, got.Stderr)
			}
			if strings.HasPrefix(c.pager, "echo") {
				if got.Stdout != "P\n" {
					t.Errorf("stdout %q", got.Stdout)
				}
				return
			}
			text := got.Stdout
			if paged := strings.HasPrefix(text, "P"); paged != c.paged {
				t.Errorf("paged is %v", paged)
			}
			text = strings.TrimPrefix(strings.ReplaceAll(text, "\nP", "\n"), "P")
			if colored := strings.Contains(text, "\x1b[34msend\x1b[0m"); colored != c.colored {
				t.Errorf("colored is %v: %q", colored, text)
			}
			for _, code := range []string{"0", "1", "2", "32", "34", "36"} {
				text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
			}
			if aligned := !strings.Contains(text, "\t"); aligned != c.aligned {
				t.Errorf("aligned is %v: %q", aligned, text)
			}
			if fields := strings.Fields(text); !reflect.DeepEqual(fields, strings.Fields(plain)) {
				t.Errorf("content %q", fields)
			}
		})
	}
}

// TestAligned: all rows of an aligned list have their columns at the same places, also after a wide value.
func TestAligned(t *testing.T) {
	var b bytes.Buffer
	p := &painter{out: &b, aligned: true}
	for _, lines := range []string{"rank\top\tx\n", "0\t1\tzwölf\n10\t2\t-\n", "123456\t3\t" + strings.Repeat("y", 50) + "\n"} {
		if _, err := p.Write([]byte(lines)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "rank  op  x\n0     1   zwölf\n10    2   -\n123456  3   " + "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
