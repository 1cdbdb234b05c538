// Package docs_test runs the commands of the documentation and checks its links and its prose.
//
// The pages of [pages] show commands in blocks of the language "console": a line "$ COMMAND" begins a command. It
// continues after a line that ends in \, in lines that begin with "> ", and to the end of a here-document. The lines
// below it are its output, standard error included. A line "..." matches any lines. Output that is not shown is not
// compared. Figures of wall-clock time match any others.
//
// The commands of a page run in order in one bash, in an empty folder in which "docs" and "testdata" lead to those of
// the repository. An image that a page shows from images/ is compared with the file of that name which the commands
// leave in the folder. Commands that need something that is not everywhere are in blocks of the language "sh", which
// [notRun] lists. A block "go FILE" shows that file. With -update, the test rewrites outputs, images and blocks of
// files. Other blocks of [referencePages] are free.
package docs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

var programs = []string{"tracegen", "traceconv", "tracecat", "simulate"}

// pages are the patterns of the pages whose commands run, relative to this folder.
var pages = []string{"../README.md", "tutorial.md", "howto/*.md"}

// referencePages are the patterns of the other pages whose commands run. Their other blocks show syntax, files and
// commands with inputs that only users have.
var referencePages = []string{
	"reference/generators/*.md", "reference/backends/*.md", "reference/formats/*.md", "reference/*.md",
	"examples/packet-studies.md",
}

// notRun lists, by page, the first lines of the blocks of sh, with the reason why the test does not run them.
var notRun = map[string]map[string]string{
	"../README.md": {
		"go run ./cmd/tracegen horovod | go run ./cmd/simulate    # a synthetic trace, simulated": "run by .ci/run",
		"go install github.com/tracedag/tracedag/cmd/...@latest":                                  "needs the network",
		`duckdb -c "SELECT kind, count(*), sum(bytes) FROM 'app.parquet' GROUP BY kind"`:          "needs DuckDB",
	},
	"tutorial.md": {
		"go install github.com/tracedag/tracedag/cmd/...@latest": "needs the network",
	},
	"howto/gpu-exposed-communication.md": {
		"nsys profile --trace=nvtx,cuda --sample=none -o nsys_report_%h_%p python train.py": "needs GPUs",
	},
	"howto/publish.md": {
		`duckdb -c "SELECT trace, kind, count(*) FROM read_parquet('traces/traces/**/*.parquet', hive_partitioning = true) ` +
			`GROUP BY ALL"`: "needs DuckDB",
		"hf upload --repo-type dataset OWNER/small-traces traces/ .": "needs an account",
	},
	"howto/cluster-sweep.md": {
		"bash job.sh       # prints the ids: array 4711, merge 4715": "needs Slurm; .ci/slurm runs such a script",
		"tail -n 2 results/log/1.log":                                "needs Slurm",
	},
	"howto/kubernetes.md": {
		"kubectl apply -f jobs.yaml":  "needs Kubernetes",
		"kubectl delete -f jobs.yaml": "needs Kubernetes",
	},
	"howto/connect-simulator.md": {
		"apt-get install libns3-dev": "needs ns-3; run by .ci/ns3",
	},
	"howto/use-from-go.md": {
		"go run ./docs/examples/library testdata/mpi": "run by the test of docs/examples/library",
	},
	"howto/add-format.md": {
		"cd docs/examples/extension": "a module of its own; run by .ci/run",
	},
}

// drawnElsewhere lists the images of pages that commands do not draw, with their origin.
var drawnElsewhere = map[string]string{
	"../docs/images/overview.svg": "drawn by hand",
}

// TestMain runs a program of the suite if the test is started by its name, as the commands of pages do.
func TestMain(m *testing.M) {
	all := make(map[string]func() int)
	for _, name := range programs {
		all[name] = func() int { return tracedag.Main(os.Args, tracedag.Extensions{}) }
	}
	clitest.Main(m, all)
}

func TestPages(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	bin := clitest.Link(t, programs...)
	guides := glob(t, pages...)
	for i, path := range append(guides, glob(t, referencePages...)...) {
		t.Run(strings.TrimSuffix(path, ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := page{T: t, path: path, lines: strings.Split(string(text), "\n"), reference: i >= len(guides)}
			p.parse()
			folder := t.TempDir()
			p.run(bash, bin, folder)
			p.images(folder)
			if len(p.replaced) > 0 {
				p.update()
			}
		})
	}
}

// page is a page of documentation under test. With -update, replaced has its new parts.
type page struct {
	*testing.T
	path      string
	lines     []string
	reference bool // of referencePages
	commands  []command
	replaced  []replacement
}

// replacement replaces the lines [from, to).
type replacement struct {
	from, to int
	lines    []string
}

// command is a command of a page and the lines [from, to) that show its output.
type command struct {
	line     int // number of its first line, from 0
	text     string
	from, to int
}

var (
	fence   = regexp.MustCompile("^ *```(.*)$")
	hereDoc = regexp.MustCompile(`<<-?'?(\w+)'?`)
)

// parse finds the commands and checks the other blocks.
func (p *page) parse() {
	unused := make(map[string]bool)
	for first := range notRun[p.path] {
		unused[first] = true
	}
	for i := 0; i < len(p.lines); i++ {
		open := fence.FindStringSubmatch(p.lines[i])
		if open == nil {
			if !p.reference && strings.HasPrefix(p.lines[i], "    ") && (i == 0 || p.lines[i-1] == "") {
				p.Errorf("%s:%d: indented block; use a fenced one", p.path, i+1)
			}
			continue
		}
		begin := i + 1
		end := begin
		for end < len(p.lines) && !fence.MatchString(p.lines[end]) {
			end++
		}
		if end == len(p.lines) {
			p.Fatalf("%s:%d: block without an end", p.path, begin)
		}
		language, file, _ := strings.Cut(open[1], " ")
		i = end
		if language == "console" {
			p.console(begin, end)
			continue
		} else if p.reference {
			continue
		}
		switch language {
		case "sh":
			first := p.lines[begin]
			if notRun[p.path][first] == "" {
				p.Errorf("%s:%d: use ```console, or list the block in notRun", p.path, begin+1)
			}
			delete(unused, first)
		case "go":
			p.excerpt(begin, end, file)
		case "text", "json", "yaml", "sql", "python":
		default:
			p.Errorf("%s:%d: language %q; expected console, sh, go FILE, text, json, yaml, sql or python", p.path, begin,
				language)
		}
	}
	for first := range unused {
		p.Errorf("%s: notRun lists a block that does not exist: %s", p.path, first)
	}
}

// console adds the commands of the block [begin, end).
func (p *page) console(begin, end int) {
	for i := begin; i < end; {
		text, found := strings.CutPrefix(p.lines[i], "$ ")
		if !found {
			p.Fatalf("%s:%d: expected \"$ COMMAND\", found %q", p.path, i+1, p.lines[i])
		}
		c := command{line: i}
		i++
		for ; strings.HasSuffix(text, `\`) && i < end; i++ {
			text += "\n" + p.lines[i]
		}
		for ; i < end && strings.HasPrefix(p.lines[i], "> "); i++ {
			text += "\n" + strings.TrimPrefix(p.lines[i], "> ")
		}
		if doc := hereDoc.FindStringSubmatch(text); doc != nil {
			for closed := false; !closed && i < end; i++ {
				text += "\n" + p.lines[i]
				closed = p.lines[i] == doc[1]
			}
		}
		c.text, c.from = text, i
		for i < end && !strings.HasPrefix(p.lines[i], "$ ") {
			i++
		}
		c.to = i
		p.commands = append(p.commands, c)
	}
}

// excerpt compares the block [begin, end) with the file that it shows.
func (p *page) excerpt(begin, end int, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		p.Errorf("%s:%d: ```go FILE: %v", p.path, begin, err)
		return
	}
	want := strings.TrimSuffix(string(text), "\n")
	switch got := strings.Join(p.lines[begin:end], "\n"); {
	case got == want:
	case golden.Update():
		p.replaced = append(p.replaced, replacement{begin, end, strings.Split(want, "\n")})
	default:
		p.Errorf("%s:%d: the block is not the same as %s", p.path, begin, file)
	}
}

// mark begins the output of a command; no program prints it.
const mark = "\x1e"

// run runs the commands and compares their outputs.
func (p *page) run(bash, bin, folder string) {
	if len(p.commands) == 0 {
		return
	}
	docs, err := os.Getwd()
	if err != nil {
		p.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(filepath.Dir(docs), "testdata"), filepath.Join(folder, "testdata")); err != nil {
		p.Fatal(err)
	}
	if err := os.Symlink(docs, filepath.Join(folder, "docs")); err != nil {
		p.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -e -o pipefail\nexec 2>&1 </dev/null\n")
	for _, c := range p.commands {
		fmt.Fprintf(&script, "printf '\\036'\n%s\n", c.text)
	}
	shell := exec.Command(bash, "-c", script.String())
	shell.Dir = folder
	shell.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC")
	all, err := shell.CombinedOutput()
	outputs := strings.Split(string(all), mark)[1:]
	if err != nil {
		n := len(outputs) - 1
		p.Fatalf("%s:%d: %s: %v, %s", p.path, p.commands[n].line+1, p.commands[n].text, err, outputs[n])
	}
	for i, c := range p.commands {
		shown := p.lines[c.from:c.to]
		got := strings.Split(strings.TrimRight(outputs[i], "\n"), "\n")
		switch {
		case len(shown) == 0 || matches(shown, got):
		case golden.Update():
			p.replaced = append(p.replaced, replacement{c.from, c.to, abridge(shown, got)})
		default:
			p.Errorf("%s:%d: %s: expected\n%s\ngot\n%s", p.path, c.line+1, c.text, strings.Join(shown, "\n"),
				outputs[i])
		}
	}
}

// update writes the page with its replaced parts.
func (p *page) update() {
	slices.SortFunc(p.replaced, func(a, b replacement) int { return a.from - b.from })
	var all []string
	done := 0
	for _, r := range p.replaced {
		all = append(append(all, p.lines[done:r.from]...), r.lines...)
		done = r.to
	}
	golden.Write(p, p.path, []byte(strings.Join(append(all, p.lines[done:]...), "\n")))
}

// wallClock matches figures that differ from run to run.
var wallClock = regexp.MustCompile(`in \d[\d.hmnµ]*s, \d\S* ops/s`)

// masked returns a line without figures of wall-clock time.
func masked(line string) string {
	return wallClock.ReplaceAllString(strings.TrimRight(line, " "), "in TIME, RATE ops/s")
}

// matches reports whether an output is the shown one, in which "..." matches any lines.
func matches(shown, got []string) bool {
	for i, line := range shown {
		if line == "..." {
			for skip := 0; skip <= len(got)-i; skip++ {
				if matches(shown[i+1:], got[i+skip:]) {
					return true
				}
			}
			return false
		}
		if i >= len(got) || masked(line) != masked(got[i]) {
			return false
		}
	}
	return len(shown) == len(got)
}

var number = regexp.MustCompile(`[\d.,]+`)

// abridge returns an output abridged as the shown one is: of a shown part between two "...", the lines in the places of
// those whose text without numbers is the same. It returns the whole output if there are none.
func abridge(shown, got []string) []string {
	words := func(line string) string {
		return strings.Join(strings.Fields(number.ReplaceAllString(line, "")), " ")
	}
	if !slices.Contains(shown, "...") {
		return got
	}
	var result []string
	next := 0
	for _, line := range shown {
		if line == "..." {
			result = append(result, line)
			continue
		}
		at := slices.IndexFunc(got[next:], func(l string) bool { return words(l) == words(line) })
		if at < 0 {
			return got
		}
		next += at + 1
		result = append(result, got[next-1])
	}
	if !matches(result, got) {
		return got
	}
	return result
}

var image = regexp.MustCompile(`!\[[^\]]*\]\(([^)]*)\)`)

// images compares the images that the page shows with those that its commands drew.
func (p *page) images(folder string) {
	for _, m := range image.FindAllStringSubmatch(strings.Join(p.lines, "\n"), -1) {
		path := filepath.ToSlash(filepath.Join(filepath.Dir(p.path), m[1]))
		if drawnElsewhere[path] != "" {
			continue
		}
		drawn, err := os.ReadFile(filepath.Join(folder, filepath.Base(path)))
		if err != nil {
			p.Errorf("%s: no command draws %s: %v", p.path, m[1], err)
			continue
		}
		if golden.Update() {
			golden.Write(p, path, drawn)
		}
		if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, drawn) {
			p.Errorf("%s: %s is not the image that the commands draw; -update replaces it (%v)", p.path, path, err)
		}
	}
}

// glob returns the files that patterns match. A pattern without a file is an error.
func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Errorf("no page is called %s (%v)", pattern, err)
		}
		all = append(all, paths...)
	}
	return all
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, got string
		want       bool
	}{
		{"a/b", "a/b", true},
		{"a/b", "a/c", false},
		{"a", "a/b", false},
		{"a/b", "a", false},
		{"...", "a/b", true},
		{"a/...", "a", true},
		{"a/.../d", "a/b/c/d", true},
		{"a/.../c/...", "a/b/c/d", true},
		{"a/.../d", "a/b/c", false},
		{"a/...", "b/a", false},
		{"ran 7 in 1.5ms, 1e+06 ops/s", "ran 7 in 2s, 3 ops/s", true},
		{"ran 7 in 1.5µs, 1e+06 ops/s", "ran 7 in 1h2m3.5s, 3 ops/s", true},
		{"ran 7 in 1.5ms, 1e+06 ops/s", "ran 8 in 1.5ms, 1e+06 ops/s", false},
	} {
		split := func(s string) []string { return strings.Split(strings.ReplaceAll(s, "ops/s", "ops|s"), "/") }
		join := func(lines []string) []string {
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], "ops|s", "ops/s")
			}
			return lines
		}
		if got := matches(join(split(c.shown)), join(split(c.got))); got != c.want {
			t.Errorf("%q, %q: %t", c.shown, c.got, got)
		}
	}
}

func TestAbridge(t *testing.T) {
	shown := []string{"time 3", "...", "rate 4 x", "..."}
	got := []string{"time 5", "size 7", "rate 6 x", "end"}
	if r := strings.Join(abridge(shown, got), "|"); r != "time 5|...|rate 6 x|..." {
		t.Error(r)
	}
	if r := abridge([]string{"other 3", "..."}, got); !slices.Equal(r, got) {
		t.Error(r)
	}
}
