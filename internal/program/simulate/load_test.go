package simulate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// storedFile writes a trace to a file.
func storedFile(t *testing.T, trace *dag.Trace) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.parquet")
	var file bytes.Buffer
	if err := store.Write(&file, trace); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pairs returns a trace in which every rank sends to the next, after a calc that is the longer the higher the rank.
func pairs(ranks int) *dag.Builder {
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		c := b.Rank(r).Calc(dag.Time(r+1) * dag.Microsecond)
		b.Rank(r).Send(int32((r+1)%ranks), 100, 3, c)
		b.Rank(r).Recv(int32((r+ranks-1)%ranks), 100, 3)
	}
	return b
}

// TestInputPaths checks that the result of a trace is independent of the input path: read batch by batch from a file or
// a pipe, or as a whole, as for a timeline.
func TestInputPaths(t *testing.T) {
	trace := pairs(9).Trace()
	path := storedFile(t, trace)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"strict", "loggopsim", "atlahs"} {
		want := parse(t, clitest.Run(newCommand, "--model", model, "--json", path).Stdout)
		if want.Ops != 27 || !*want.Complete || want.Makespan == "0" {
			t.Fatalf("%s: %+v", model, want)
		}
		timeline := filepath.Join(t.TempDir(), "t.json")
		for name, r := range map[string]clitest.Result{
			"pipe":     clitest.Session{Stdin: bytes.NewReader(file)}.Run(newCommand, "--model", model, "--json"),
			"timeline": clitest.Run(newCommand, "--model", model, "--json", "--timeline", timeline, path),
			"verbose":  clitest.Run(newCommand, "--model", model, "--json", "-v", "--threads", "2", path),
		} {
			if got := parse(t, r.Stdout); r.Status != 0 || got.Makespan != want.Makespan || !slices.Equal(got.Finish, want.Finish) {
				t.Errorf("%s, %s: status %d, makespan %s, expected %s", model, name, r.Status, got.Makespan, want.Makespan)
			}
			phases := strings.Count(r.Stderr, "ns/op")
			if name == "verbose" && (phases != 7 || !strings.Contains(r.Stderr, "read 27 ops of 9 ranks from store")) {
				t.Errorf("%d phases in %s", phases, r.Stderr)
			}
		}
	}
}

// TestStoredCollectives checks that a store with collectives, wherever they come, is lowered.
func TestStoredCollectives(t *testing.T) {
	b := pairs(4)
	b.AddComm(dag.World(4))
	for r := range 4 {
		b.Rank(r).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	}
	path := storedFile(t, b.Trace())
	r := clitest.Run(newCommand, "--json", path)
	if d := parse(t, r.Stdout); r.Status != 0 || !*d.Complete || d.Ops <= 16 {
		t.Errorf("status %d, %s%s", r.Status, r.Stdout, r.Stderr)
	}
}

// TestUnrunnable checks the error about ops that no replay runs, and that it is the only output.
func TestUnrunnable(t *testing.T) {
	for _, c := range []struct {
		op   dag.Op
		want string
	}{
		{dag.Op{Kind: dag.Mem, Subkind: dag.Load}, "rank 1 op 3 is of kind mem, which this backend does not run"},
		{dag.Op{Flops: 5}, "rank 1 op 3 gives flops but no duration"},
		{dag.Op{Kind: dag.Send, Peer: 7}, "rank 1 op 3 sends to rank 7, expected 0..2"},
	} {
		b := pairs(3)
		b.Rank(1).Add(c.op)
		path := storedFile(t, b.Trace())
		r := clitest.Run(newCommand, path)
		if r.Status != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, path+": "+c.want) {
			t.Errorf("status %d, stdout %q, stderr %q, expected %q", r.Status, r.Stdout, r.Stderr, c.want)
		}
	}
}

// TestDamagedStores checks that a store that was cut short, or changed, is refused with its name: every byte counts, by
// checksums and otherwise.
func TestDamagedStores(t *testing.T) {
	path := storedFile(t, pairs(5).Trace())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := clitest.Run(newCommand, "--json", path)
	if want.Status != 0 {
		t.Fatal(want.Stderr)
	}
	try := func(what string, damaged []byte) {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		r := clitest.Run(newCommand, "--json", path)
		if strings.Contains(r.Stderr, "internal error") {
			t.Fatalf("%s: %s", what, r.Stderr)
		}
		if r.Status != 0 {
			if r.Stdout != "" || !strings.Contains(r.Stderr, path) {
				t.Errorf("%s: stdout %q, stderr %q", what, r.Stdout, r.Stderr)
			}
			return
		}
		if got, want := parse(t, r.Stdout), parse(t, want.Stdout); got.Makespan != want.Makespan || got.Ops != want.Ops {
			t.Errorf("%s: makespan %s of %d ops, expected an error or %s of %d", what, got.Makespan, got.Ops, want.Makespan,
				want.Ops)
		}
	}
	step := 5
	switch {
	case testing.Short():
		step = 20
	case os.Getenv("TRACEDAG_LONG") != "":
		step = 1
	}
	for n := 0; n < len(whole); n += 7 * step {
		try(fmt.Sprintf("%d bytes", n), whole[:n])
	}
	for i := 0; i < len(whole); i += 3 * step {
		for _, bit := range []byte{1, 2, 16} {
			damaged := bytes.Clone(whole)
			damaged[i] ^= bit
			try(fmt.Sprintf("byte %d ^ %d", i, bit), damaged)
		}
	}
}
