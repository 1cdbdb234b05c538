package traceconv

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// pingpong is a trace in GOAL in the form of the writer.
const pingpong = `num_ranks 2

rank 0 {
l1: calc 100
l2: send 10b to 1 tag 5
l2 requires l1
}

rank 1 {
l1: recv 10b from 0 tag 5
}
`

// in runs the test in a new folder with the given files by name.
func in(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// files returns the names of all files in the folder and below, sorted.
func files(t *testing.T, folder string) []string {
	t.Helper()
	found := []string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ok runs traceconv, which must succeed without messages, and returns its output.
func ok(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	got := clitest.Session{Stdin: strings.NewReader(stdin)}.Run(New, args...)
	if got.Status != 0 || got.Stderr != "" {
		t.Fatalf("traceconv %q: exit status %d, stderr %q", args, got.Status, got.Stderr)
	}
	return got.Stdout
}

// asStore returns the trace as a store.
func asStore(t *testing.T, trace *dag.Trace) string {
	t.Helper()
	var b strings.Builder
	if err := formats.All.Named(formats.Default).Write(&b, trace, format.WriteOptions{Warn: t.Errorf}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readStore reads a store.
func readStore(t *testing.T, content string) *dag.Trace {
	t.Helper()
	trace, err := formats.All.Named(formats.Default).Read(
		[]*format.Input{{Name: "store", Reader: strings.NewReader(content)}}, format.ReadOptions{Warn: t.Errorf})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestConvert(t *testing.T) {
	in(t, map[string]string{"x.goal": pingpong})
	canonical := ok(t, "", "--to", "goal", "x.goal")
	binary := ok(t, "", "--to", "goalbin", "x.goal")
	store := ok(t, "", "x.goal")

	for _, c := range []struct{ args, output, want string }{
		{"x.goal -o x.bin", "x.bin", binary},
		{"x.goal -o y.goal", "y.goal", canonical},
		{"x.goal -o - --to goalbin", "", binary},
		{"x.bin --to goal", "", canonical},
		{"--from goal x.goal --to goalbin -o odd.name", "odd.name", binary},
		{"odd.name -o z.goal", "z.goal", canonical},
	} {
		got := ok(t, "", strings.Fields(c.args)...)
		if c.output != "" {
			if got != "" {
				t.Errorf("traceconv %s: stdout %q", c.args, got)
			}
			got = content(t, c.output)
		}
		if got != c.want {
			t.Errorf("traceconv %s writes %q, want %q", c.args, got, c.want)
		}
	}
	for _, stdin := range []string{pingpong, binary, store} {
		if got := ok(t, stdin, "--to", "goalbin"); got != binary {
			t.Errorf("from a pipe: %q, want %q", got, binary)
		}
	}
	if got := readStore(t, store); got.Ops() != 3 || len(got.Ranks) != 2 {
		t.Errorf("the store has %d ops on %d ranks", got.Ops(), len(got.Ranks))
	}
	for _, name := range []string{"x.parquet", "none", "X.PARQUET"} {
		ok(t, "", "x.goal", "-o", name)
		readStore(t, content(t, name))
	}
}

// The conversion of the reference program's own output, by name and by content.
func TestConvertVector(t *testing.T) {
	vectors, err := filepath.Abs("../../../formats/goal/testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	want := content(t, filepath.Join(vectors, "pingpong_2.bin"))
	in(t, nil)
	ok(t, "", filepath.Join(vectors, "pingpong_2.goal"), "-o", "x.parquet")
	ok(t, "", "x.parquet", "-o", "x.bin")
	if content(t, "x.bin") != want {
		t.Error("GOAL text -> store -> GOAL binary differs from the vector")
	}
	ok(t, "", "x.bin", "-o", "x.bin") // onto itself
	ok(t, "", "x.parquet", "-o", "x.parquet")
	if content(t, "x.bin") != want || ok(t, "", "x.parquet", "--to", "goalbin") != want {
		t.Error("converting a file onto itself changed it")
	}
	if got := files(t, "."); !slices.Equal(got, []string{"x.bin", "x.parquet"}) {
		t.Errorf("files are left: %q", got)
	}
}

func TestProvenanceAndTitle(t *testing.T) {
	in(t, map[string]string{"x.goal": pingpong})
	ok(t, "", "x.goal", "--title", "Ping", "-o", "x.parquet")
	ok(t, content(t, "x.parquet"), "-o", "y.parquet")
	trace := readStore(t, content(t, "y.parquet"))
	digest := func(content string) string {
		sum := sha256.Sum256([]byte(content))
		return hex.EncodeToString(sum[:])
	}
	want := []dag.Provenance{
		{
			Program: "traceconv", Version: clitest.Version,
			Command: []string{"traceconv", "--title", "Ping", "x.goal"},
			Inputs:  []dag.Input{{Name: "x.goal", SHA256: digest(pingpong)}},
		},
		{
			Program: "traceconv", Version: clitest.Version, Command: []string{"traceconv", "-"},
			Inputs: []dag.Input{{Name: "-", SHA256: digest(content(t, "x.parquet"))}},
		},
	}
	if trace.Title != "Ping" || !reflect.DeepEqual(trace.Provenance, want) {
		t.Errorf("title %q, provenance %+v; want Ping, %+v", trace.Title, trace.Provenance, want)
	}
	if got := readStore(t, ok(t, "", "y.parquet", "--title", "")); got.Title != "" {
		t.Errorf("--title '' leaves the title %q", got.Title)
	}
}

func TestLower(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 4000})
	}
	store := asStore(t, b.Trace())
	kinds := func(args ...string) (count [dag.NumKinds]int) {
		t.Helper()
		trace := readStore(t, ok(t, store, args...))
		for i := range trace.Ranks {
			for _, k := range trace.Ranks[i].Kind {
				count[k]++
			}
		}
		return count
	}
	if got := kinds(); got[dag.Coll] != 4 {
		t.Errorf("without --lower: %v", got)
	}
	if got := kinds("--lower", "collectives=ring"); got[dag.Coll] != 0 || got[dag.Send] != 4*6 {
		t.Errorf("ring on 4 ranks: %v, want 6 sends on each", got)
	}
	byDefault := kinds("--lower", "collectives")
	if byDefault[dag.Coll] != 0 || byDefault[dag.Send] != 4*2 {
		t.Errorf("recursive doubling on 4 ranks: %v, want 2 sends on each", byDefault)
	}
	if got := kinds("--lower", "allreduce=recdoubling", "--lower", "bcast=binomial"); got != byDefault {
		t.Errorf("two --lower: %v, want %v", got, byDefault)
	}
	for _, rule := range []string{"collectives=nothing", "everything=ring", "ring"} {
		if got := clitest.Run(New, "--lower", rule); got.Status != 2 || !strings.Contains(got.Stderr, "--lower") {
			t.Errorf("--lower %s: exit status %d, stderr %q", rule, got.Status, got.Stderr)
		}
	}
	got := clitest.Session{Stdin: strings.NewReader(store)}.Run(New, "--to", "goal")
	if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "--lower") {
		t.Errorf("collectives to GOAL: exit status %d, stdout %q, stderr %q", got.Status, got.Stdout, got.Stderr)
	}
}

func compressed(t *testing.T) (gz, zst string) {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(pingpong)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), string(encoder.EncodeAll([]byte(pingpong), nil))
}

func TestBatch(t *testing.T) {
	gz, zst := compressed(t)
	in(t, map[string]string{
		"in/a.goal": pingpong, "in/b.goal.gz": gz, "in/c.GOAL.zst": zst, "in/d": pingpong, "in/e.txt": pingpong,
		"in/f.v2.goal": pingpong,
	})
	inputs, err := filepath.Glob("in/*")
	if err != nil {
		t.Fatal(err)
	}
	want := ok(t, pingpong, "--to", "goalbin")
	ok(t, "", append([]string{"-q", "--to", "goalbin", "-o", "new/folder/"}, inputs...)...)
	outputs := []string{"a.bin", "b.bin", "c.bin", "d.bin", "e.txt.bin", "f.v2.bin"}
	check := func(folder string) {
		t.Helper()
		var paths []string
		for _, name := range outputs {
			paths = append(paths, filepath.Join(folder, name))
		}
		if got := files(t, folder); !slices.Equal(got, paths) {
			t.Errorf("there is %q, want %q", got, paths)
		}
		for _, path := range paths {
			if content(t, path) != want {
				t.Errorf("%s has the wrong content", path)
			}
		}
	}
	check("new/folder")
	if err := os.WriteFile("new/folder/a.bin", []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	ok(t, "", append([]string{"-q", "-j", "1", "--to", "goalbin", "-o", "new/folder"}, inputs...)...) // exists, without a slash
	check("new/folder")

	ok(t, "", "-q", "in/a.goal", "-o", "one/")
	readStore(t, content(t, "one/a.parquet"))
}

func TestBatchInPlace(t *testing.T) {
	in(t, map[string]string{"a.goal": pingpong, "b.goal": pingpong})
	ok(t, "", "-q", "--to", "goal", "-o", ".", "a.goal", "b.goal")
	if got := files(t, "."); !slices.Equal(got, []string{"a.goal", "b.goal"}) {
		t.Errorf("files are left: %q", got)
	}
	if got, want := content(t, "b.goal"), ok(t, pingpong, "--to", "goal"); got != want {
		t.Errorf("b.goal is now %q, want %q", got, want)
	}
}

func TestBatchFailures(t *testing.T) {
	in(t, map[string]string{
		"a.goal": pingpong, "b.goal": "num_ranks 1\nrank 0 {\ndance\n}\n", "c.goal": pingpong, "old/b.parquet": "old",
	})
	got := clitest.Run(New, "-o", "old", "a.goal", "b.goal", "missing", "c.goal")
	if got.Status != 1 || got.Stdout != "" {
		t.Errorf("exit status %d, stdout %q; want 1 and nothing", got.Status, got.Stdout)
	}
	lines := strings.Split(strings.TrimSpace(got.Stderr), "\n")
	if len(lines) != 4 || lines[2] != "traceconv: 2 of 4 inputs were not converted: b.goal, missing" ||
		!strings.HasPrefix(lines[3], "traceconv: 4 traces: 2 added, 2 failed; 228 B -> ") {
		t.Errorf("stderr %q", got.Stderr)
	}
	for _, want := range []string{"b.goal:3: expected ", "traceconv: missing: no such file or directory\n"} {
		if !strings.Contains(got.Stderr, want) {
			t.Errorf("stderr lacks %q: %q", want, got.Stderr)
		}
	}
	if got := files(t, "old"); !slices.Equal(got, []string{"old/a.parquet", "old/b.parquet", "old/c.parquet"}) {
		t.Errorf("there is %q", got)
	}
	if content(t, "old/b.parquet") != "old" {
		t.Error("a failed conversion replaced the old file")
	}
	if got := clitest.Run(New, "-o", "none/", "b.goal", "missing"); got.Status != 1 {
		t.Errorf("exit status %d, want 1", got.Status)
	}
	if _, err := os.Stat("none"); err == nil {
		t.Error("an empty folder was left")
	}
}

func TestUsage(t *testing.T) {
	in(t, map[string]string{"a.goal": pingpong, "a.bin": "", "in/a.goal": pingpong, "out/keep": ""})
	before := files(t, ".")
	for args, want := range map[string]string{
		"-o out/ a.goal a.bin":            "both a.goal and a.bin have the output out/a.parquet",
		"-o out/ a.goal in/a.goal":        "both a.goal and in/a.goal have the output out/a.parquet",
		"-o out/ a.goal a.goal":           "both a.goal and a.goal have the output out/a.parquet",
		"-o new/ a.goal a.goal":           "both a.goal and a.goal have the output new/a.parquet",
		"-o x.parquet a.goal in/a.goal":   "2 inputs for one output: name a folder, as in -o out/",
		"a.goal in/a.goal":                "2 inputs for one output: name a folder, as in -o out/",
		"-o out/ -":                       "standard input has no name for an output in out/",
		"-o out/":                         "standard input has no name for an output in out/",
		"- -":                             "standard input (-) can be read only once",
		"-o out/ --to nothing a.goal":     "--to: expected one of ",
		"-o out/ -j 0 a.goal":             "--jobs: expected 1 or more, found 0",
		"--from nothing a.goal":           "--from: expected one of ",
		"-o":                              "flag needs an argument",
		"-o x.goal.zst a.goal":            `compress it in a pipe, as in "... --to goal | zstd > x.goal.zst"`,
		"-o x.foo a.goal":                 "-o x.foo: no format has the ending .foo: expected .parquet, .bin,",
		"--lower collectives=none a.goal": "--lower",
	} {
		got := clitest.Run(New, strings.Fields(args)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) ||
			strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("traceconv %s: exit status %d, stdout %q, stderr %q; want 2 and %q",
				args, got.Status, got.Stdout, got.Stderr, want)
		}
	}
	if got := files(t, "."); !slices.Equal(got, before) {
		t.Errorf("usage errors left files: %q", got)
	}
}

func TestStrict(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.Calc, Duration: 1500}) // ps, where GOAL has whole nanoseconds
	store := asStore(t, b.Trace())
	in(t, map[string]string{"x.parquet": store, "good.goal": pingpong})
	got := clitest.Run(New, "x.parquet", "-o", "x.bin")
	if got.Status != 0 || !strings.HasPrefix(got.Stderr, "traceconv: x.bin: lost: 1 op: ") {
		t.Errorf("exit status %d, stderr %q", got.Status, got.Stderr)
	}
	for _, c := range []struct {
		args   string
		status int
	}{
		{"--strict x.parquet -o y.bin", 3},
		{"--strict x.parquet --to goal", 3},
		{"--strict x.parquet good.goal -o out/ --to goalbin", 3},
		{"--strict none x.parquet good.goal -o out/ --to goalbin", 1},
		{"--strict -q x.parquet -o nothing/ --to goal", 3},
		{"--strict x.parquet -o y.parquet", 0},
		{"--strict good.goal -o y.goal", 0},
		{"--strict x.parquet good.goal -o parquets/", 0},
	} {
		got := clitest.Run(New, strings.Fields(c.args)...)
		if got.Status != c.status || got.Stdout != "" {
			t.Errorf("traceconv %s: exit status %d, stdout %q, stderr %q; want %d",
				c.args, got.Status, got.Stdout, got.Stderr, c.status)
		}
	}
	for _, name := range []string{"y.bin", "out/x.bin", "nothing"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("--strict wrote %s", name)
		}
	}
	if content(t, "out/good.bin") == "" {
		t.Error("--strict kept a good trace from being written")
	}
}

// The output is independent of the number of processors.
func TestDeterminism(t *testing.T) {
	var goal strings.Builder
	fmt.Fprintln(&goal, "num_ranks 8")
	for rank := range 8 {
		fmt.Fprintf(&goal, "rank %d {\n", rank)
		for i := range 500 {
			fmt.Fprintf(&goal, "l%d: calc %d cpu %d\n", i, i*rank, i%3)
			if i > 0 {
				fmt.Fprintf(&goal, "l%d requires l%d\n", i, i/2)
			}
		}
		fmt.Fprintln(&goal, "}")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	first := ok(t, goal.String())
	runtime.GOMAXPROCS(8)
	for range 3 {
		if ok(t, goal.String()) != first {
			t.Fatal("the output depends on GOMAXPROCS")
		}
	}
}
