package cli_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// The formats of these tests hold the durations of the ops of one rank, one per line, below a line with the name of the
// format. "sketch" lacks release times; "store" is binary.
var testFormats = formats.List{
	lines("store", ".parquet", true), lines("lines", ".lines", false), lines("sketch", ".sketch", false),
	{
		Name:   "line", // may be any of the above, and is never written
		Detect: func(head []byte) bool { return bytes.HasPrefix(head, []byte("lines\n7")) },
		Read:   func([]*format.Input, format.ReadOptions) (*dag.Trace, error) { return nil, errors.New("not read") },
	},
}

func lines(name, ending string, binary bool) format.Format {
	f := format.Format{
		Name: name, Extensions: []string{ending}, Binary: binary,
		Detect: func(head []byte) bool { return bytes.HasPrefix(head, []byte(name+"\n")) },
		Read: func(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
			return readLines(inputs[0], o)
		},
		Write: func(w io.Writer, t *dag.Trace, _ format.WriteOptions) error { return writeLines(w, name, t) },
	}
	if name == "sketch" {
		f.Losses = func(t *dag.Trace) (losses []format.Loss) {
			released := int64(0)
			for _, release := range t.Ranks[0].Release {
				if release != 0 {
					released++
				}
			}
			if released > 0 {
				losses = append(losses, format.Loss{Kind: "release times", Count: released})
			}
			return losses
		}
	}
	return f
}

// readLines reads durations; "@N" sets the release time of the op, "panic" panics, "odd" is warned about.
func readLines(in *format.Input, o format.ReadOptions) (*dag.Trace, error) {
	var r io.Reader = in.Reader
	if in.At != nil {
		r = io.NewSectionReader(in.At, 0, in.Size)
	}
	b := dag.NewBuilder(1)
	scanner := bufio.NewScanner(r)
	for line := int64(1); scanner.Scan(); line++ {
		text := scanner.Text()
		if line == 1 {
			continue
		}
		duration, release, _ := strings.Cut(text, "@")
		d, err := strconv.ParseInt(duration, 10, 64)
		switch {
		case text == "panic":
			panic("a bug")
		case text == "odd":
			o.Warn("%s:%d: an odd line", in.Name, line)
		case text == "plain":
			return nil, errors.New("an error that names no file")
		case err != nil:
			return nil, &format.SyntaxError{File: in.Name, Line: line, Expected: "a duration", Found: strconv.Quote(text)}
		}
		at, _ := strconv.ParseInt(release, 10, 64)
		b.Rank(0).Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(d), Release: dag.Time(at)})
	}
	return b.Trace(), scanner.Err()
}

func writeLines(w io.Writer, name string, t *dag.Trace) error {
	if t.Ranks[0].Len() > 5000 {
		return errors.New("too many ops for this format")
	}
	fmt.Fprintln(w, name)
	for i := range t.Ranks[0].Len() {
		fmt.Fprint(w, int64(t.Ranks[0].Duration.At(i)))
		if release := t.Ranks[0].Release.At(i); release != 0 {
			fmt.Fprintf(w, "@%d", int64(release))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	for _, p := range t.Provenance {
		fmt.Fprintf(w, "%+v\n", p)
	}
	return nil
}

// newCopy returns a program that copies a trace and keeps it in last.
func newCopy(p *cli.Program) *cobra.Command {
	var read cli.ReadFlags
	var write cli.WriteFlags
	cmd := &cobra.Command{
		Use:   "copy [FILE]",
		Short: "copy a trace",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			names, err := p.InputNames(args)
			if err != nil {
				return err
			}
			to, err := p.Target(write)
			if err != nil {
				return err
			}
			r, err := p.ReadTrace(names[0], read, cli.ReadOptions{Digest: to.KeepsProvenance()})
			if err != nil {
				return err
			}
			if to.KeepsProvenance() {
				seed := int64(7)
				r.Trace.Provenance = append(r.Trace.Provenance, p.Provenance(cli.Made{Seed: &seed, Inputs: r.Inputs}, &write))
			}
			last = r
			return p.WriteTrace(r.Trace, to)
		},
	}
	read.Register(p, cmd)
	write.Register(p, cmd, "output file")
	return cmd
}

var last *cli.Read

func run(stdin string, args ...string) clitest.Result {
	return clitest.Session{Stdin: strings.NewReader(stdin), Formats: testFormats}.Run(newCopy, args...)
}

// in runs the test in a new folder with the given files by name.
func in(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// wantFiles checks the names of all files in the current folder.
func wantFiles(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("there are the files %q, want %q", got, want)
	}
}

func wantContent(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s contains %q, %v; want %q", name, got, err, want)
	}
}

func want(t *testing.T, got clitest.Result, status int, stdout, stderr string) {
	t.Helper()
	if got.Status != status {
		t.Errorf("exit status %d, want %d", got.Status, status)
	}
	if got.Stdout != stdout {
		t.Errorf("stdout %q, want %q", got.Stdout, stdout)
	}
	if got.Stderr != stderr {
		t.Errorf("stderr %q, want %q", got.Stderr, stderr)
	}
}

func compressed(t *testing.T, content string, open func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	w := open(&b)
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gz(t *testing.T, content string) string {
	return compressed(t, content, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
}

func zst(t *testing.T, content string) string {
	return compressed(t, content, func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return z
	})
}

func TestInputs(t *testing.T) {
	const content = "lines\n1\n2\n"
	in(t, map[string]string{
		"plain":        content,
		"small.gz":     gz(t, content),
		"renamed":      zst(t, content),
		"skippable":    "\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zst(t, content),
		"two.gz":       gz(t, "lines\n1\n") + gz(t, "2\n"),
		"not-a-gz.gz":  content,
		"with spaces ": content,
	})
	for _, name := range []string{"plain", "small.gz", "renamed", "skippable", "two.gz", "with spaces "} {
		want(t, run("", "--to", "lines", name), 0, content, "")
		stored, _ := os.ReadFile(name)
		want(t, run(string(stored), "--to", "lines"), 0, content, "")
		want(t, run(string(stored), "--to", "lines", "-"), 0, content, "")
	}
	want(t, run("", "--to", "lines", "not-a-gz.gz"), 1, "", "not-a-gz.gz: reading: expected gzip data, as the "+
		"name promises, found other data; rename the file if it is intact\n")
}

func TestInputErrors(t *testing.T) {
	whole := gz(t, "lines\n"+strings.Repeat("12345\n", 5000))
	in(t, map[string]string{
		"bad.lines": "lines\n1\ntwo\n",
		"unknown":   "what is this?\n",
		"empty":     "",
		"ambiguous": "lines\n7\n",
		"cut.gz":    whole[:len(whole)-20],
		"cut.zst":   zst(t, "lines\n1\n")[:10],
		"plain":     "lines\nplain\n",
		"panics":    "lines\npanic\n",
		"odd":       "lines\n1\nodd\n",
		"escape":    "lines\n\x1b[2J\n",
	})
	if err := os.Mkdir("folder", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		stderr string
	}{
		{"bad.lines", 1, `bad.lines:3: expected a duration, found "two"`},
		{"unknown", 1, "copy: unknown: unknown format; name the format with --from, one of store, lines, sketch, line"},
		{"empty", 1, "empty: offset 0: expected a trace, found an empty input"},
		{"ambiguous", 1, "copy: ambiguous: the content fits several formats; select one with --from: lines, line"},
		{"ambiguous --from line", 1, "copy: ambiguous: not read"},
		{"missing", 1, "copy: missing: no such file or directory"},
		{"folder", 1, "copy: folder: expected a file or the folder of one trace, found another folder; name the files in it, as in folder/*"},
		{"cut.gz", 1, "cut.gz: truncated gzip data"},
		{"cut.zst", 1, "cut.zst: reading: truncated zstd data"},
		{"plain", 1, "copy: plain: an error that names no file"},
		{"panics", 1, "copy: internal error: a bug; please report it with the output of -v"},
		{"odd", 0, "copy: warning: odd:3: an odd line"},
		{"odd -q", 0, ""},
		{"escape", 1, `escape:2: expected a duration, found "\x1b[2J"`},
		{"\x1b[2J", 1, "copy: \uFFFD[2J: no such file or directory"},
		{"bad.lines unknown", 2, "copy: accepts at most 1 arg(s), received 2 (see 'copy --help')"},
		{"--from nothing plain", 2,
			`copy: --from: expected one of store, lines, sketch, line, found "nothing" (see 'copy --help')`},
		{"--to line plain", 2, `copy: --to: expected one of store, lines, sketch, found "line"; did you mean "lines"? (see 'copy --help')`},
		{"--frob", 2, "copy: unknown flag: --frob; did you mean --from? (see 'copy --help')"},
		{"-o x.lines.gz plain", 2, "copy: -o x.lines.gz: outputs are not compressed; " +
			"compress it in a pipe, as in \"... --to lines | gzip > x.lines.gz\" (see 'copy --help')"},
		{"-o folder plain", 2, "copy: expected an output file, found the directory folder (see 'copy --help')"},
		{"-o none/x plain", 1, "copy: none/x: creating: directory none: no such file or directory"},
	} {
		got := run("", strings.Fields(c.args)...)
		stdout := ""
		if c.status == 0 {
			stdout = got.Stdout
		}
		if c.stderr != "" {
			c.stderr += "\n"
		}
		t.Run(c.args, func(t *testing.T) { want(t, got, c.status, stdout, c.stderr) })
	}
	if got := run("", "-v", "panics"); !strings.Contains(got.Stderr, "readLines") {
		t.Errorf("-v does not show where it panicked: %s", got.Stderr)
	}
	if got := run("", ""); got.Status != 2 {
		t.Errorf("an empty file name: exit status %d", got.Status)
	}
}

func TestTerminals(t *testing.T) {
	for _, c := range []struct {
		terminal, args string
		status         int
		stderr         string
	}{
		{"stdin", "", 2, "copy: no input: name a file, or pipe a trace into copy (see 'copy --help')\n"},
		{"stdin", "-", 0, ""},
		{"stdout", "-", 2, "copy: not writing binary data to a terminal: name a file with -o, or pipe it to another program " +
			"(see 'copy --help')\n"},
		{"stdout", "-o - -", 2, "copy: not writing binary data to a terminal: name a file with -o, or pipe it to another program " +
			"(see 'copy --help')\n"},
		{"stdout", "--to lines", 0, ""},
		{"stderr", "--to lines", 0, ""}, // too quick for a progress bar
	} {
		got := clitest.Session{Stdin: strings.NewReader("lines\n1\n"), Formats: testFormats, Terminal: c.terminal}.
			Run(newCopy, strings.Fields(c.args)...)
		if got.Status != c.status || got.Stderr != c.stderr {
			t.Errorf("with %s a terminal, copy %s: exit status %d, stderr %q; want %d, %q",
				c.terminal, c.args, got.Status, got.Stderr, c.status, c.stderr)
		}
	}
}

func TestRandomAccess(t *testing.T) {
	const content = "lines\n1\n2\n"
	in(t, map[string]string{"plain": content, "after": "skipped\n" + content, "small.gz": gz(t, content)})
	open := func(name string, stdin io.Reader) *cli.Input {
		t.Helper()
		p := &cli.Program{Args: []string{"copy"}, Stdin: stdin, Formats: testFormats}
		input, err := p.Open(name, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(input.Close)
		return input
	}
	check := func(input *cli.Input, name string, size int64, stored string) {
		t.Helper()
		if input.Name != name || (input.At != nil) != (size > 0) || input.Size != size {
			t.Errorf("%s: opened as %q with random access: %t, size %d; want size %d",
				name, input.Name, input.At != nil, input.Size, size)
		}
		if got, err := io.ReadAll(input.Reader); err != nil || string(got) != content {
			t.Errorf("%s: contains %q, %v", name, got, err)
		}
		if input.At != nil {
			got := make([]byte, size)
			if n, err := input.At.ReadAt(got, 0); n < len(got) || string(got) != content {
				t.Errorf("%s: random access gives %q, %v", name, got[:n], err)
			}
		}
		sum := sha256.Sum256([]byte(stored))
		if got, err := input.Digest(); err != nil || got.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: the digest is %v, %v; want %x", name, got, err, sum)
		}
	}
	check(open("plain", nil), "plain", int64(len(content)), content)
	check(open("small.gz", nil), "small.gz", 0, gz(t, content))
	check(open("-", strings.NewReader(content)), "<stdin>", 0, content)
	check(open("-", strings.NewReader(gz(t, content))), "<stdin>", 0, gz(t, content))

	file, err := os.Open("after")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.ReadFull(file, make([]byte, len("skipped\n"))); err != nil {
		t.Fatal(err)
	}
	check(open("-", file), "<stdin>", int64(len(content)), content)
}

// The digest of a pipe covers data that the format does not read.
func TestDigestReadsAll(t *testing.T) {
	content := "lines\n" + strings.Repeat("1\n", 1<<20)
	p := &cli.Program{Args: []string{"copy"}, Stdin: strings.NewReader(content), Formats: testFormats}
	input, err := p.Open("-", true)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	sum := sha256.Sum256([]byte(content))
	if got, err := input.Digest(); err != nil || got != (dag.Input{Name: "-", SHA256: hex.EncodeToString(sum[:])}) {
		t.Errorf("the digest is %v, %v; want %x", got, err, sum)
	}
}

func TestProvenance(t *testing.T) {
	const content = "lines\n1\n"
	in(t, map[string]string{"x": content})
	if got := run("", "-o", "y.parquet", "x"); got.Status != 0 {
		t.Fatal(got)
	}
	sum := sha256.Sum256([]byte(content))
	seed := int64(7)
	wanted := dag.Provenance{
		Program: "copy", Version: clitest.Version, Command: []string{"copy"}, Seed: &seed,
		Inputs: []dag.Input{{Name: "x", SHA256: hex.EncodeToString(sum[:])}},
	}
	if got := last.Trace.Provenance; len(got) != 1 || !reflect.DeepEqual(got[0], wanted) {
		t.Errorf("the provenance is %+v, want %+v", got, wanted)
	}
}

func TestOutputs(t *testing.T) {
	in(t, map[string]string{"x": "lines\n1\n", "old.lines": "old", "target": "old"})
	if err := os.Symlink("target", "link.lines"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", "dangling.lines"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new.lines", "old.lines", "link.lines", "dangling.lines"} {
		want(t, run("", "x", "-o", name), 0, "", "")
		wantContent(t, name, "lines\n1\n")
	}
	want(t, run("", "x", "-o", "X.SKETCH"), 0, "", "")
	wantContent(t, "X.SKETCH", "sketch\n1\n")
	want(t, run("", "x", "--to", "sketch", "-o", "y.lines"), 0, "", "")
	wantContent(t, "y.lines", "sketch\n1\n")
	if link, err := os.Readlink("link.lines"); err != nil || link != "target" {
		t.Errorf("the link was replaced: %q, %v", link, err)
	}
	if link, err := os.Readlink("dangling.lines"); err != nil || link != "nowhere" {
		t.Errorf("the dangling link was replaced: %q, %v", link, err)
	}
	wantContent(t, "target", "lines\n1\n")
	wantContent(t, "nowhere", "lines\n1\n")
	want(t, run("", "-o", "old.lines", "old.lines"), 0, "", "") // onto itself
	wantContent(t, "old.lines", "lines\n1\n")
	want(t, run("", "x", "--to", "lines", "-o", "/dev/null"), 0, "", "")
	wantFiles(t, "x", "old.lines", "new.lines", "target", "link.lines", "dangling.lines", "nowhere", "X.SKETCH", "y.lines")

	info, err := os.Stat("new.lines")
	if err != nil {
		t.Fatal(err)
	}
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	if got, want := info.Mode().Perm(), fs.FileMode(0o666&^umask); got != want {
		t.Errorf("the output has mode %v, want %v", got, want)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	many := "lines\n" + strings.Repeat("1\n", 6000)
	in(t, map[string]string{"old.lines": "lines\n1\n", "bad": "lines\nx\n"})
	want(t, run(many, "-o", "new.lines"), 1, "", "copy: new.lines: too many ops for this format\n")
	want(t, run(many, "-o", "old.lines"), 1, "", "copy: old.lines: too many ops for this format\n")
	want(t, run(many, "--to", "lines"), 1, "", "copy: <stdout>: too many ops for this format\n")
	want(t, run("", "bad", "-o", "old.lines"), 1, "", "bad:2: expected a duration, found \"x\"\n")
	want(t, run("lines\npanic\n", "-o", "old.lines"), 1, "",
		"copy: internal error: a bug; please report it with the output of -v\n")
	wantContent(t, "old.lines", "lines\n1\n")
	wantFiles(t, "old.lines", "bad")
	if _, err := os.Stat("/dev/full"); err == nil {
		want(t, run("lines\n1\n", "--to", "lines", "-o", "/dev/full"), 1, "",
			"copy: /dev/full: writing: no space left on device\n")
	}
}

func TestLosses(t *testing.T) {
	in(t, map[string]string{"x": "lines\n1@5\n2\n3@6\n", "y": "lines\n1\n"})
	want(t, run("", "x", "-o", "x.sketch"), 0, "", "copy: x.sketch: lost: 2 ops: release times\n")
	want(t, run("", "-q", "x", "-o", "x.sketch"), 0, "", "")
	if err := os.Remove("x.sketch"); err != nil {
		t.Fatal(err)
	}
	want(t, run("", "--strict", "x", "-o", "x.sketch"), 3, "",
		"copy: x.sketch: not written in strict mode; the format loses 2 ops: release times\n")
	want(t, run("", "--strict", "-q", "x", "--to", "sketch"), 3, "",
		"copy: <stdout>: not written in strict mode; the format loses 2 ops: release times\n")
	wantFiles(t, "x", "y")
	want(t, run("", "--strict", "y", "--to", "sketch"), 0, "sketch\n1\n", "")
}

// failing is a standard output that fails after some bytes.
type failing struct {
	left int
	err  error
}

func (f *failing) Write(b []byte) (int, error) {
	if len(b) <= f.left {
		f.left -= len(b)
		return len(b), nil
	}
	return f.left, f.err
}

func TestStandardOutputFails(t *testing.T) {
	for _, args := range [][]string{{"--to", "lines"}, {"--help"}, {"--version"}, {"completion", "bash"}} {
		run := func(err error) clitest.Result {
			return clitest.Session{Stdin: strings.NewReader("lines\n1\n"), Formats: testFormats, Stdout: &failing{3, err}}.
				Run(newCopy, args...)
		}
		want(t, run(&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}), 141, "", "")
		got := run(&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC})
		if got.Status != 1 || got.Stderr != "copy: writing standard output: no space left on device\n" {
			t.Errorf("copy %q on a full disk: exit status %d, stderr %q", args, got.Status, got.Stderr)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	want(t, run("", "--version"), 0, "copy "+clitest.Version+"\n", "")
	help := run("", "--help")
	for _, text := range []string{"copy a trace\n", "Usage:\n  copy [FILE] [flags]", "--from FORMAT", "-q, --quiet",
		"--version", "Exit status:\n", "completion bash"} {
		if !strings.Contains(help.Stdout, text) {
			t.Errorf("the help lacks %q:\n%s", text, help.Stdout)
		}
	}
	if help.Status != 0 || help.Stderr != "" {
		t.Errorf("--help: exit status %d, stderr %q", help.Status, help.Stderr)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run("", "completion", shell); got.Status != 0 || !strings.Contains(got.Stdout, "copy") {
			t.Errorf("completion %s: exit status %d, %d bytes", shell, got.Status, len(got.Stdout))
		}
	}
	if got := run("", "__complete", "--to", ""); !strings.HasPrefix(got.Stdout, "store\nlines\nsketch\n") {
		t.Errorf("--to is completed with %q", got.Stdout)
	}
}

func TestVerbose(t *testing.T) {
	got := run("lines\n1\n", "-v", "--to", "lines")
	for _, text := range []string{
		"copy: <stdin>: read 1 ops of 1 ranks from lines in ", "copy: <stdout>: wrote 1 ops as lines, 8B",
	} {
		if !strings.Contains(got.Stderr, text) {
			t.Errorf("-v does not say %q: %s", text, got.Stderr)
		}
	}
}

func TestProgress(t *testing.T) {
	slow := func(p *cli.Program) *cobra.Command {
		return &cobra.Command{Use: "slow", RunE: func(*cobra.Command, []string) error {
			progress := p.Progress("working", 1000, "ops")
			defer progress.Close()
			if p.Progress("more", 1, "ops") != nil && progress != nil {
				t.Error("two progress bars at once")
			}
			progress.Add(500)
			for !strings.Contains(clitest.Stderr(p), "working") && progress != nil {
				time.Sleep(10 * time.Millisecond)
			}
			p.Warn("in between")
			return nil
		}}
	}
	got := clitest.Session{Terminal: "stderr"}.Run(slow)
	if !strings.Contains(got.Stderr, "50%") || !strings.Contains(got.Stderr, "\rslow: warning: in between\n") {
		t.Errorf("stderr: %q", got.Stderr)
	}
	want(t, clitest.Run(slow), 0, "", "slow: warning: in between\n")
	want(t, clitest.Session{Terminal: "stderr"}.Run(slow, "-q"), 0, "", "")
}

// TestMain turns the test binary into a program that blocks while it writes its output, if the environment selects it.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST_HANG") == "" {
		os.Exit(m.Run())
	}
	os.Exit(cli.Main(func(p *cli.Program) *cobra.Command {
		return &cobra.Command{Use: "hang", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			out, err := p.Create(args[0], false)
			if err != nil {
				return err
			}
			defer out.Close()
			fmt.Fprintln(out, strings.Repeat("something", 1<<16))
			fmt.Fprintln(os.Stdout, "ready")
			for busy := new(atomic.Int64); ; { // as a simulation is
				busy.Add(1)
			}
		}}
	}, testFormats))
}

func TestSignals(t *testing.T) {
	in(t, map[string]string{"old": "old"})
	for sent, status := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		if signal.Ignored(sent) { // below nohup: programs ignore the signal, too
			continue
		}
		for _, output := range []string{"new", "old"} {
			cmd := exec.Command(os.Args[0], output)
			cmd.Env = append(os.Environ(), "CLI_TEST_HANG=1")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if files, _ := filepath.Glob(".*.tmp"); len(files) != 1 {
				t.Errorf("before the signal there are the temporary files %q, want one", files)
			}
			if err := cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != status || stderr.Len() > 0 {
				t.Errorf("%v: exit status %d, stderr %q; want %d and nothing", sent, got, stderr.String(), status)
			}
			wantFiles(t, "old")
			wantContent(t, "old", "old")
		}
	}
}

// --compat takes a simulator from any position of the arguments before "--".
func TestCompatTakesSimulator(t *testing.T) {
	for line, want := range map[string]string{
		"--compat htsim x":          "htsim false [x]",
		"x --compat htsim":          "htsim false [x]",
		"--compat=htsim x":          "htsim false [x]",
		"--compat x":                " true [x]",
		"--compat=false x":          " false [x]",
		"htsim":                     " false [htsim]",
		"--compat -- htsim":         " true [htsim]",
		"--compat --compat htsim x": "htsim true [x]",
	} {
		var got string
		result := clitest.Run(func(p *cli.Program) *cobra.Command {
			read := cli.ReadFlags{Simulators: []string{"htsim", "booksim"}}
			cmd := &cobra.Command{Use: "try FILE", Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
				got = fmt.Sprint(read.Simulator, " ", read.Compat, " ", args)
				return nil
			}}
			read.Register(p, cmd)
			return cmd
		}, strings.Fields(line)...)
		if result.Status != 0 || got != want {
			t.Errorf("%s: %q, want %q; %+v", line, got, want, result)
		}
	}
}

// Help about an owner, or about one of its formats, lists its options.
func TestHelpOfOwners(t *testing.T) {
	command := func(p *cli.Program) *cobra.Command {
		var read cli.ReadFlags
		cmd := &cobra.Command{Use: "try FILE", Short: "try", Args: cobra.ArbitraryArgs, RunE: func(*cobra.Command, []string) error { return nil }}
		read.Register(p, cmd)
		return cmd
	}
	all := clitest.Run(command, "--help").Stdout
	if strings.Contains(all, "--lba-unit") || !strings.Contains(all, "storage |") ||
		!strings.Contains(all, "--lenient") || !strings.Contains(all, "--seed") {
		t.Errorf("--help prints\n%s", all)
	}
	for _, name := range []string{"storage", "msr"} {
		if got := clitest.Run(command, "--help", name).Stdout; !strings.Contains(got, "--lba-unit NAME") ||
			strings.Contains(got, "--lenient") {
			t.Errorf("--help %s prints\n%s", name, got)
		}
	}
	got := clitest.Run(command, "--help", "none")
	if got.Status != 2 || !strings.Contains(got.Stderr, `no topic "none", expected one of formats, `) {
		t.Errorf("--help none: exit status %d, stderr %q", got.Status, got.Stderr)
	}
}

// TestFor checks that warnings about one of many inputs begin with its name.
func TestFor(t *testing.T) {
	var stderr bytes.Buffer
	var warned []string
	p := &cli.Program{Args: []string{"copy"}, Stderr: &stderr, Formats: formats.All}
	q := p.For("a/x", func(message string) { warned = append(warned, message) })
	q.Warn("schedgen: %d losses", 3)
	q.Warn("a/x: odd")
	q.Warn("a/x-0.txt:7: odd")
	q.Info("out/x: lost: names")
	p.For("a", nil).Warn("a file is odd")
	want := []string{"a/x: schedgen: 3 losses", "a/x: odd", "a/x-0.txt:7: odd", "out/x: lost: names"}
	if !slices.Equal(warned, want) || stderr.String() != "copy: warning: "+want[0]+"\ncopy: warning: "+want[1]+
		"\ncopy: warning: "+want[2]+"\ncopy: "+want[3]+"\ncopy: warning: a: a file is odd\n" {
		t.Errorf("warnings %q, stderr %q", warned, stderr.String())
	}
	p.Quiet = true
	p.For("b", nil).Warn("nothing")
	if strings.Contains(stderr.String(), "nothing") {
		t.Error("-q prints warnings")
	}
}
