package tracecat

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// storeOf returns the store of a trace.
func storeOf(t *testing.T, trace *dag.Trace) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := store.Write(&file, trace); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// writeFile writes a file into the folder of the test.
func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestDigest(t *testing.T) {
	t.Chdir(t.TempDir())
	trace := everything()
	want, err := store.ContentSHA256(dag.FromTrace(trace))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "a.parquet", storeOf(t, trace))
	trace.Title = "another"
	writeFile(t, "b.parquet", storeOf(t, trace))
	writeFile(t, "x.goal", []byte("num_ranks 1\nrank 0 {\nl1: calc 100\n}\n"))
	got := clitest.Run(New, "--digest", "a.parquet", "b.parquet")
	if got.Status != 0 || got.Stdout != want+"  a.parquet\n"+want+"  b.parquet\n" {
		t.Errorf("%+v, expected twice %s", got, want)
	}
	got = clitest.Run(New, "--digest", "none.goal", "x.goal")
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.Calc, Duration: 100 * dag.Nanosecond})
	want, err = store.ContentSHA256(dag.FromTrace(b.Trace()))
	if err != nil || got.Status != 1 || got.Stdout != want+"  x.goal\n" ||
		!strings.Contains(got.Stderr, "none.goal: no such file") {
		t.Errorf("%+v, expected %s", got, want)
	}
}

// pair returns a trace with a message, and receives of no message.
func pair(stuck int) *dag.Trace {
	b := dag.NewBuilder(2)
	b.Meta().Title, b.Meta().Attrs, b.Meta().Nodes, b.Meta().Steps = "a pair", `{"a":[1]}`, []int32{3, 4}, 2
	b.Meta().Provenance = []dag.Provenance{{Program: "test", Version: "1", Inputs: []dag.Input{{Name: "x", SHA256: "00"}}}}
	comm := b.AddComm(dag.NewComm("back", []int32{1, 0}))
	for rank := range int32(2) {
		first := b.Rank(int(rank)).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: comm, Name: "wait"})
		b.Rank(int(rank)).Add(dag.Op{Kind: dag.Kind(1 + rank), Peer: 1 - rank, Bytes: 1 << 20, Tag: 7, Step: 2, Attrs: "{}",
			Timed: true, MeasuredStart: 5, MeasuredEnd: 7}, first)
	}
	for range stuck {
		b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 1})
	}
	return b.Trace()
}

func TestVerify(t *testing.T) {
	t.Chdir(t.TempDir())
	sound := storeOf(t, pair(0))
	writeFile(t, "sound.parquet", sound)
	writeFile(t, "stuck.parquet", storeOf(t, pair(2)))
	damaged := bytes.Clone(sound)
	damaged[20]++
	writeFile(t, "damaged.parquet", damaged)
	writeFile(t, "short.parquet", sound[:len(sound)-1])
	if got := clitest.Run(New, "--verify", "sound.parquet"); got.Status != 0 || got.Stdout+got.Stderr != "" {
		t.Errorf("%+v", got)
	}
	got := clitest.Run(New, "--verify", "stuck.parquet", "damaged.parquet", "sound.parquet", "short.parquet", "none")
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	wanted := []string{"stuck.parquet: ", "stuck.parquet: ", "damaged.parquet: ", "short.parquet: ", "none: no such file or directory"}
	if got.Status != 1 || len(lines) != len(wanted) {
		t.Fatalf("%+v", got)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, wanted[i]) {
			t.Errorf("line %d is %s, expected %s", i, line, wanted[i])
		}
	}
	if got := clitest.Run(New, "--verify", "--head", "1", "stuck.parquet"); strings.Count(got.Stdout, "\n") != 2 ||
		!strings.Contains(got.Stdout, "1 more errors") {
		t.Errorf("%+v", got)
	}
	if got := clitest.Run(New, "--verify", "."); got.Status != 1 || !strings.Contains(got.Stderr, "expected a published set") {
		t.Errorf("%+v", got)
	}
}

// TestVerifyFlips flips a bit of each byte of small stores: --verify finds each, unless the trace is the same.
func TestVerifyFlips(t *testing.T) {
	t.Chdir(t.TempDir())
	traces := map[string]*dag.Trace{"pair": pair(0), "none": new(dag.Trace)}
	unseen, flips := 0, 0
	for name, trace := range traces {
		file := storeOf(t, trace)
		path := filepath.Join(t.TempDir(), name+".parquet")
		sound := readStore(t, file)
		step := 3 // coprime to 8, so that all bits have a share
		switch {
		case testing.Short():
			step = 8
		case os.Getenv("TRACEDAG_LONG") != "":
			step = 1
		}
		for i := 0; i < len(file); i += step {
			flips++
			changed := bytes.Clone(file)
			changed[i] ^= 1 << (i * 5 % 8)
			writeFile(t, path, changed)
			got := clitest.Run(New, "--verify", path)
			if got.Status == 1 && strings.HasPrefix(got.Stdout, path+": ") {
				continue
			}
			unseen++
			if got.Status != 0 || !reflect.DeepEqual(readStore(t, changed), sound) {
				t.Errorf("%s: a flipped bit of byte %d is not found: %+v", name, i, got)
			}
		}
	}
	t.Logf("%d of %d flipped bits are not found and change nothing", unseen, flips)
}

func readStore(t *testing.T, file []byte) *dag.Trace {
	t.Helper()
	f, err := store.Open(bytes.NewReader(file), int64(len(file)), "x")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := f.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return trace
}
