package traceconv

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// mpiTrace returns the folder of a trace of the MPI format's tests.
func mpiTrace(t *testing.T, name string) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("../../../formats/mpi/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// sameFiles checks that the files of two folders are the same.
func sameFiles(t *testing.T, got, want string) {
	t.Helper()
	names := files(t, want)
	if len(files(t, got)) != len(names) {
		t.Errorf("%s has %q, expected as %s %q", got, files(t, got), want, names)
	}
	for _, name := range names {
		other := filepath.Join(got, filepath.Base(name))
		if content(t, other) != content(t, name) {
			t.Errorf("%s differs from %s", other, name)
		}
	}
}

// A trace with communicators goes through Chakra's files, the store and JSON and comes back the same.
func TestChakraRoundTrip(t *testing.T) {
	source := mpiTrace(t, "own-subcomm")
	in(t, map[string]string{"a/.keep": "", "b/.keep": "", "c/.keep": "", "j/.keep": ""})
	ok(t, "", "-q", source, "-o", "a/x.et")
	want := []string{"a/x.0.et", "a/x.1.et", "a/x.2.et", "a/x.3.et", "a/x.comm_groups.json"}
	if got := slices.DeleteFunc(files(t, "a"), func(name string) bool { return name == "a/.keep" }); !slices.Equal(got, want) {
		t.Fatalf("there is %q, expected %q", got, want)
	}
	trace := readStore(t, ok(t, "", "a/x"))
	if len(trace.Ranks) != 4 || len(trace.Comms) != 4 || trace.Comms[1].Size() != 2 {
		t.Errorf("%d ranks, communicators %v", len(trace.Ranks), trace.Comms)
	}
	for _, problem := range dag.Validate(trace) {
		t.Error(problem)
	}
	inputs := trace.Provenance[0].Inputs
	if len(inputs) != 5 || inputs[0].Name != "a/x.0.et" || inputs[4].Name != "a/x.comm_groups.json" {
		t.Errorf("inputs %v", inputs)
	}
	ok(t, "", "a", "-o", "x.parquet")
	if got := ok(t, "", "-q", "a/x.et", "--to", "goal", "--lower", "collectives"); got !=
		ok(t, "", "-q", "a/x", "--to", "goal", "--lower", "collectives") {
		t.Error("a/x.et is another trace than a/x")
	}
	ok(t, "", "--strict", "x.parquet", "-o", "b/x", "--to", "chakra")
	sameFiles(t, "b", "a")
	ok(t, "", "--strict", "a/x.0.et", "-o", "j/x.json", "--to", "chakrajson")
	ok(t, "", "--strict", "j/x", "-o", "c/x.et")
	sameFiles(t, "c", "a")
	lowered := ok(t, "", "-q", "--lower", "collectives", "--to", "goal", "x.parquet")
	if got := ok(t, "", "-q", "--lower", "collectives", "--to", "goal", "j/x"); got != lowered {
		t.Error("the schedule differs")
	}
}

// Folders and files of traces are converted many at a time.
func TestChakraBatch(t *testing.T) {
	source := mpiTrace(t, "own-subcomm")
	in(t, map[string]string{"p.goal": pingpong, "one/.keep": "", "all/.keep": ""})
	ok(t, "", "-q", source, "-o", "one/s.et")
	ok(t, "", "-q", source, "-o", "all/s.et")
	ok(t, "", "-q", "p.goal", "-o", "all/p.et")
	ok(t, "", "-q", "-o", "out/", "one", "all/p.0.et", "all/p.1.et", "all/s")
	if got := files(t, "out"); !slices.Equal(got, []string{"out/one.parquet", "out/p.parquet", "out/s.parquet"}) {
		t.Errorf("there is %q", got)
	}
	ok(t, "", "-q", "-o", "et/", "--to", "chakra", "p.goal", "one/")
	want := []string{"et/one.0.et", "et/one.1.et", "et/one.2.et", "et/one.3.et", "et/one.comm_groups.json", "et/p.0.et",
		"et/p.1.et"}
	if got := files(t, "et"); !slices.Equal(got, want) {
		t.Errorf("there is %q, expected %q", got, want)
	}
	got := clitest.Run(New, "all", "-o", "x.parquet")
	if got.Status != 1 || !strings.Contains(got.Stderr, "expected one trace in the folder, found 2 with the prefixes p, s") {
		t.Errorf("%+v", got)
	}
	// A trace of fewer ranks and no communicators replaces one.
	got = clitest.Run(New, "p.goal", "-o", "one/s.et")
	if got.Status != 0 || !strings.Contains(got.Stderr, "one/s: removed the surplus files of the previous trace: "+
		"one/s.2.et to one/s.comm_groups.json, 3 files") {
		t.Errorf("%+v", got)
	}
	if n := len(readStore(t, ok(t, "", "one/s")).Ranks); n != 2 {
		t.Errorf("%d ranks", n)
	}
}

// Horovod's trace keeps the collectives that Chakra has, and sends the others as messages.
func TestChakraNeeded(t *testing.T) {
	folder := t.TempDir()
	trace := filepath.Join(folder, "x.parquet")
	s, err := horovod.NewSource(horovod.Default(), 5)
	if err != nil {
		t.Fatal(err)
	}
	before, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := store.Write(&file, before); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(trace, file.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	r := clitest.Run(New, trace, "-o", filepath.Join(folder, "x.et"))
	if r.Status != 1 || !strings.Contains(r.Stderr, " ops); --lower needed sends them as messages") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
	r = clitest.Run(New, "--lower", "needed", trace, "-o", filepath.Join(folder, "x.et"))
	if r.Status != 0 || !strings.Contains(r.Stderr, "--lower needed: ") {
		t.Fatalf("status %d, %s", r.Status, r.Stderr)
	}
	after := readStore(t, clitest.Run(New, "--to", "store", filepath.Join(folder, "x.0.et")).Stdout)
	for kind := dag.Subkind(1); int(kind) < dag.NumSubkinds; kind++ {
		want := collectives(before, kind)
		if kind != dag.Bcast && kind != dag.Allreduce {
			want = 0
		}
		if got := collectives(after, kind); got != want {
			t.Errorf("%d %vs, expected %d", got, kind, want)
		}
	}
}

// collectives returns the number of collective ops of a kind.
func collectives(t *dag.Trace, kind dag.Subkind) (n int) {
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op := range r.Kind {
			if r.Kind[op] == dag.Coll && r.Subkind.At(op) == kind {
				n++
			}
		}
	}
	return n
}
