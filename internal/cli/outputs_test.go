package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/astratext"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// pages is a format of many files, NAME.RANK.page, each with the durations of one rank after a line "page". NAME.index
// comes with them if there are durations above 99. Communicators are the lines of another file.
var pages = format.Format{
	Name: "pages", Extensions: []string{".page"},
	Detect: func(head []byte) bool { return bytes.HasPrefix(head, []byte("page\n")) },
	Files: func(name string, folder []string) ([]string, error) {
		if name == "" {
			name = slices.MinFunc(folder, strings.Compare)
		}
		prefix, _, _ := strings.Cut(name, ".")
		var files []string
		for rank := 0; ; rank++ {
			file := fmt.Sprintf("%s.%d.page", prefix, rank)
			if slices.Contains(folder, file+".gz") {
				file += ".gz"
			}
			if !slices.Contains(folder, file) {
				break
			}
			files = append(files, file)
		}
		if len(files) > 0 && slices.Contains(folder, prefix+".index") {
			files = append(files, prefix+".index")
		}
		return files, nil
	},
	Options:    astratext.Table,
	Read:       readPages,
	Losses:     lossesOfPages,
	WriteFiles: writePages,
}

func lossesOfPages(t *dag.Trace) []format.Loss {
	if t.Ranks[0].Release != nil {
		return []format.Loss{{Kind: "release times", Count: 1}}
	}
	return nil
}

func readPages(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	b := dag.NewBuilder(0)
	own := o.Own.(*astratext.Options)
	o.Own = &own.Options
	if in := chakra.GroupsFile(&o); in != nil {
		content, err := io.ReadAll(in.Reader)
		if err != nil {
			return nil, format.InFile(in.Name, err)
		}
		for line := range strings.Lines(string(content)) {
			b.AddComm(dag.Comm{Name: strings.TrimSpace(line)})
		}
	}
	trace := b.Trace()
	for _, in := range inputs {
		if strings.HasSuffix(in.Name, ".index") {
			continue
		}
		rank, err := readLines(in, o)
		if err != nil {
			return nil, err
		}
		trace.Ranks = append(trace.Ranks, rank.Ranks[0])
	}
	trace.Comms[0] = dag.World(len(trace.Ranks))
	trace.Title = fmt.Sprintf("passes %d, ranks %d, cycle %v, of %d", own.Passes, own.Ranks, own.Cycle, o.Ranks)
	return trace, nil
}

// writePages fails on a duration of 13, in the middle of a file.
func writePages(create func(string) (io.Writer, error), t *dag.Trace, o format.WriteOptions) error {
	if err := o.Losses(lossesOfPages(t)); err != nil {
		return err
	}
	long := false
	for rank := range t.Ranks {
		w, err := create("." + strconv.Itoa(rank) + ".page")
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "page")
		for _, d := range t.Ranks[rank].Duration {
			if d == 13 {
				return errors.New("thirteen")
			}
			long = long || d > 99
			fmt.Fprintln(w, int64(d))
		}
	}
	if long {
		w, err := create(".index")
		if err != nil {
			return err
		}
		fmt.Fprintln(w, "index")
	}
	return nil
}

func runPages(args ...string) clitest.Result {
	return clitest.Session{Formats: append(slices.Clone(testFormats), pages)}.Run(newCopy, args...)
}

// bound returns a program that replicates rank 0 to a number of ranks.
func bound(ranks int) func(p *cli.Program) *cobra.Command {
	return func(p *cli.Program) *cobra.Command {
		read := cli.ReadFlags{Ranks: ranks}
		cmd := &cobra.Command{Use: "bound FILE", Short: "read", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				r, err := p.ReadTrace(args[0], read, cli.ReadOptions{Digest: true})
				last = r
				return err
			}}
		read.Register(p, cmd)
		return cmd
	}
}

func TestPrefix(t *testing.T) {
	in(t, map[string]string{
		"x.0.page": "page\n1\n2\n", "x.1.page": "page\n3\n",
		"y": "lines\n4\n", "y.0.page": "page\n9\n", "y.1.page": "page\n", "z.0.page.gz": gz(t, "page\n6\n"),
	})
	for name, ranks := range map[string]int{"x": 2, "./x": 2, "x.0.page": 2, "y": 1, "z": 1} {
		got := runPages(name, "-o", "out.parquet")
		want(t, got, 0, "", "")
		if last == nil || len(last.Trace.Ranks) != ranks {
			t.Fatalf("%s: %+v, want %d ranks", name, last, ranks)
		}
	}
	runPages("x", "-o", "out.parquet")
	var names []string
	for _, input := range last.Inputs {
		names = append(names, filepath.Base(input.Name))
	}
	if !slices.Equal(names, []string{"x.0.page", "x.1.page"}) {
		t.Errorf("the inputs are %q", names)
	}
	want(t, runPages("no", "-o", "out.parquet"), 1, "", "copy: no: no such file or directory\n")
	want(t, runPages("--from", "lines", "x", "-o", "out.parquet"), 1, "", "copy: x: no such file or directory\n")
}

func TestCommGroups(t *testing.T) {
	in(t, map[string]string{"x.0.page": "page\n1\n", "groups": "a\nb\n", "empty.txt": "c\n", "l.lines": "lines\n5\n"})
	for file, comms := range map[string]string{"": "", "groups": "ab", "no-empty-file": "", "empty.txt": "c"} {
		want(t, runPages("x", "--comm-groups", file, "-o", "out.parquet"), 0, "", "")
		got := ""
		for _, c := range last.Trace.Comms[1:] {
			got += c.Name
		}
		digested := len(last.Inputs) == 2 && last.Inputs[1].Name == file
		if got != comms || digested != (comms != "") {
			t.Errorf("--comm-groups %q: communicators %q, inputs %v", file, got, last.Inputs)
		}
	}
	want(t, runPages("x", "--comm-groups", "none", "-o", "out.parquet"), 1, "", "copy: none: no such file or directory\n")
	want(t, runPages("l.lines", "--comm-groups", "none", "-o", "out.parquet"), 0, "", "copy: warning: l.lines: "+
		"--comm-groups none is not used: a lines trace defines its communicators itself\n")
	if len(last.Inputs) != 1 {
		t.Errorf("inputs %v", last.Inputs)
	}
}

func TestWorkloadFlags(t *testing.T) {
	in(t, map[string]string{"x.0.page": "page\n1\n"})
	title := func(want string, args ...string) {
		t.Helper()
		if got := runPages(append(args, "x", "-o", "out.parquet")...); got.Status != 0 || last.Trace.Title != want {
			t.Errorf("%q: %+v, title %q, want %q", args, got, last.Trace.Title, want)
		}
	}
	title("passes 0, ranks 0, cycle 0s, of 0")
	title("passes 3, ranks 8, cycle 1.5ns, of 0", "--passes", "3", "--ranks", "8", "--cycle", "1.5ns")
	for _, flag := range []string{"--ranks", "--passes"} {
		message := flag + ": expected 0..2147483647, found -1"
		if got := runPages("x", flag, "-1"); got.Status != 2 || !strings.Contains(got.Stderr, message) {
			t.Errorf("%+v", got)
		}
	}
}

// A single file is the program of all ranks, if the format supports that or the trace has one rank.
func TestReplicated(t *testing.T) {
	in(t, map[string]string{
		"x.0.page": "page\n1\n", "x.1.page": "page\n2\n", "x.index": "index\n", "zl.lines": "lines\n5\n",
	})
	session := clitest.Session{Formats: append(slices.Clone(testFormats), pages)}
	for name, duration := range map[string]dag.Time{"x": 1, "x.0.page": 1, ".": 1, "x.1.page": 2, "zl.lines": 5} {
		want(t, session.Run(bound(3), name), 0, "", "")
		inputs := 1
		if name != "zl.lines" { // the index belongs to it
			inputs = 2
		}
		if len(last.Trace.Ranks) != 3 || last.Trace.Ranks[2].Duration[0] != duration || len(last.Inputs) != inputs {
			t.Errorf("%s: %d ranks, of the inputs %v", name, len(last.Trace.Ranks), last.Inputs)
		}
	}
	two := pages
	two.Read = func([]*format.Input, format.ReadOptions) (*dag.Trace, error) { return dag.NewBuilder(2).Trace(), nil }
	session.Formats = formats.List{two}
	want(t, session.Run(bound(2), "x"), 0, "", "")
	want(t, session.Run(bound(3), "x"), 1, "",
		"bound: x.0.page: expected a trace with one rank, to copy to all ranks, found 2 ranks\n")
}

func TestWriteFiles(t *testing.T) {
	in(t, map[string]string{
		"l.lines": "lines\n5\n", "r.0.page": "page\n1\n", "r.1.page": "page\n2\n", "r.2.page": "page\n300\n",
	})
	if err := os.Mkdir("d", 0o777); err != nil {
		t.Fatal(err)
	}
	sources := []string{"l.lines", "r.0.page", "r.1.page", "r.2.page"}
	files := func(more ...string) []string { return append(slices.Clone(sources), more...) }
	for _, output := range []string{"d/x.page", "d/x.PAGE", "d/x.0.page", "d/x"} {
		want(t, runPages("r", "--to", "pages", "-o", output), 0, "", "")
		wantFiles(t, files("d/x.0.page", "d/x.1.page", "d/x.2.page", "d/x.index")...)
		wantContent(t, "d/x.2.page", "page\n300\n")
		wantContent(t, "d/x.index", "index\n")
	}
	if err := os.Chmod("d/x.0.page", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("d/x.7.page", nil, 0o666); err != nil { // of no trace, there is no rank 3
		t.Fatal(err)
	}
	want(t, runPages("l.lines", "--to", "pages", "-o", "d/x"), 0, "",
		"copy: d/x: removed the surplus files of the previous trace: d/x.1.page to d/x.index, 3 files\n")
	wantFiles(t, files("d/x.0.page", "d/x.7.page")...)
	wantContent(t, "d/x.0.page", "page\n5\n")
	if info, err := os.Stat("d/x.0.page"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
	os.Remove("d/x.7.page")
	// The file of a trace with one rank has the name that the user gives.
	want(t, runPages("l.lines", "-o", "d/y.page"), 0, "", "")
	wantFiles(t, files("d/x.0.page", "d/y.page")...)
	os.Remove("d/y.page")
	want(t, runPages("l.lines", "--to", "pages"), 0, "page\n5\n", "")
	got := runPages("r", "-v", "-o", "r.page")
	if got.Status != 0 || !strings.Contains(got.Stderr, "r.page: wrote 3 ops as 4 files in pages, 29B, in ") {
		t.Errorf("onto itself: %+v", got)
	}
	wantFiles(t, files("r.index", "d/x.0.page")...)
}

func TestWriteFilesRefused(t *testing.T) {
	in(t, map[string]string{"l.lines": "lines\n5@7\n", "r.0.page": "page\n1\n", "r.1.page": "page\n1\n"})
	if err := os.Mkdir("d", 0o777); err != nil {
		t.Fatal(err)
	}
	const many = "copy: pages has several files per trace: name them with -o, as in -o FOLDER/NAME.page"
	const help = " (see 'copy --help')\n"
	for _, c := range []struct {
		args   string
		status int
		stderr string
	}{
		{"r --to pages", 2, many + help},
		{"r --to pages -o -", 2, many + help},
		{"l.lines --to pages -o d", 2, "copy: -o: d is a directory, expected a name for the files, as in -o d/NAME" + help},
		{"l.lines -o no/x.page", 1, "copy: no/x.page: creating: directory no: no such file or directory\n"},
		{"l.lines -o x.page --strict", 3, "copy: x.page: not written in strict mode; the format loses 1 op: release times\n"},
		{"l.lines -o x.page", 0, "copy: x.page: lost: 1 op: release times\n"},
	} {
		want(t, runPages(strings.Fields(c.args)...), c.status, "", c.stderr)
		if c.status != 0 {
			wantFiles(t, "l.lines", "r.0.page", "r.1.page")
		}
	}
}

// After an error, existing files are unchanged.
func TestWriteFilesFails(t *testing.T) {
	before := map[string]string{
		"x.0.page": "page\n1\n", "x.1.page": "page\n2\n", "x.2.page": "page\n3\n",
		"bad.0.page": "page\n7\n", "bad.1.page": "page\n13\n", "good.0.page": "page\n7\n", "good.1.page": "page\n700\n",
	}
	unchanged := func() {
		t.Helper()
		var names []string
		for name, content := range before {
			names = append(names, name)
			wantContent(t, name, content)
		}
		wantFiles(t, names...)
	}
	in(t, before)
	want(t, runPages("bad", "-o", "x.page"), 1, "", "copy: x.page: thirteen\n")
	unchanged()
	// A directory has the name of the last file.
	if err := os.Mkdir("x.index", 0o777); err != nil {
		t.Fatal(err)
	}
	want(t, runPages("good", "-o", "x.page"), 2, "",
		"copy: expected an output file, found the directory x.index (see 'copy --help')\n")
	unchanged()
	os.Remove("x.index")
	if os.Getuid() == 0 {
		t.Skip("nothing is forbidden to root")
	}
	if err := os.Chmod(".", 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(".", 0o755)
	got := runPages("good", "-o", "x.page")
	if got.Status != 1 || !strings.Contains(got.Stderr, "x.0.page: creating: "+syscall.EACCES.Error()) {
		t.Errorf("%+v", got)
	}
	unchanged()
}

func TestDistinctTraces(t *testing.T) {
	in(t, map[string]string{"x.0.page": "", "x.1.page": "", "y.1.page": "", "z.page": "", "l.lines": ""})
	p := &cli.Program{Formats: append(slices.Clone(testFormats), pages)}
	for _, c := range []struct{ from, names, want string }{
		{"", "x.0.page x.1.page y.1.page l.lines z.page", "x.0.page y.1.page l.lines z.page"},
		{"", "./x.1.page x.0.page", "x.0.page"},
		{"", "x.1.page", "x.1.page"},
		{"lines", "x.0.page x.1.page", "x.0.page x.1.page"},
		{"pages", "x.0.page x.1.page l.lines", "x.0.page l.lines"},
		{"", "none.0.page -", "none.0.page -"},
	} {
		if got := strings.Join(p.DistinctTraces(strings.Fields(c.names), c.from), " "); got != c.want {
			t.Errorf("--from %q %s: %s, want %s", c.from, c.names, got, c.want)
		}
	}
	if abs, err := filepath.Abs("x.0.page"); err != nil || len(p.DistinctTraces([]string{abs, "x.1.page"}, "")) != 2 {
		t.Error("an absolute name is not compared with a relative one")
	}
}
