package traceconv

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// ping and pong are the files of two ranks of an MPI program.
const (
	ping = "MPI_Init:-:1:2:100\nMPI_Send:110:9:4:1,4,4:1:5:0,0,2:120\nMPI_Barrier:121:0,0,2:122\nMPI_Finalize:123:-\n"
	pong = "MPI_Init:-:1:2:100\nMPI_Recv:110:9:4:1,4,4:0:5:0,1,2:0:120\nMPI_Barrier:121:0,1,2:122\nMPI_Finalize:123:-\n"
)

// A trace of many files is named by its folder, by the file of rank 0, or by all files.
func TestManyFiles(t *testing.T) {
	in(t, map[string]string{"trace/x-0.txt": ping, "trace/x-1.txt": pong, "trace/README": "not a rank's"})
	want := readStore(t, ok(t, "", "trace"))
	if len(want.Ranks) != 2 || want.Ops() != 10 {
		t.Fatalf("%d ops on %d ranks, want 10 on 2", want.Ops(), len(want.Ranks))
	}
	var inputs []string
	for _, input := range want.Provenance[0].Inputs {
		inputs = append(inputs, input.Name)
	}
	if !slices.Equal(inputs, []string{"trace/x-0.txt", "trace/x-1.txt"}) {
		t.Errorf("the provenance lists %q", inputs)
	}
	lowered := ok(t, "", "trace/", "--lower", "collectives", "--to", "goalbin", "-q")
	for _, args := range [][]string{
		{"trace/x-0.txt"}, {"trace/x-1.txt", "trace/x-0.txt"}, {"--from", "mpi", "trace"}, {"./trace/x-0.txt"},
	} {
		if got := ok(t, "", append(args, "--lower", "collectives", "--to", "goalbin", "-q")...); got != lowered {
			t.Errorf("traceconv %q differs from the folder's", args)
		}
	}
	gz, zst := compressed(t)
	in(t, map[string]string{
		"a/x-00.txt": ping, "a/x-01.txt": pong, "b/y-0.txt": ping, "b/y-1.txt": pong, "c.goal.gz": gz, "d/x.goal.zst": zst,
	})
	ok(t, "", "-q", "-o", "out/", "a", "b/", "c.goal.gz")
	if got := files(t, "out"); !slices.Equal(got, []string{"out/a.parquet", "out/b.parquet", "out/c.parquet"}) {
		t.Errorf("there is %q", got)
	}
	ok(t, "", "-q", "-o", "files/", "a/x-00.txt", "a/x-01.txt", "b/y-1.txt", "b/y-0.txt")
	if got := files(t, "files"); !slices.Equal(got, []string{"files/x-00.txt.parquet", "files/y-0.txt.parquet"}) {
		t.Errorf("of all files there is %q", got)
	}
	for args, message := range map[string]string{
		"a/x-01.txt":               "a/x-01.txt: files: the file of rank 0 is missing",
		"a/x-00.txt b/y-0.txt":     "b/y-0.txt: files: expected one file of rank 0, found also a/x-00.txt",
		"a/x-00.txt a/none-1.txt":  "a/none-1.txt: no such file or directory; to name an output, use -o",
		"a/x-00.txt x.parquet":     "x.parquet: no such file or directory; to name an output, use -o",
		"d":                        "d: expected a file or the folder of one trace, found another folder; name the files in it, as in d/*",
		"--from goal a":            "a: expected a file or the folder of one trace, found another folder; name the files in it, as in a/*",
		"--from goal b/y-0.txt":    "b/y-0.txt:1: expected ",
		"none":                     "none: no such file or directory",
		"a/x-00.txt --from parque": "--from: expected one of",
	} {
		got := clitest.Run(New, strings.Fields(args)...)
		if got.Status == 0 || got.Stdout != "" || !strings.Contains(got.Stderr, message) {
			t.Errorf("traceconv %s: exit status %d, stdout %q, stderr %q; want %q", args, got.Status, got.Stdout, got.Stderr,
				message)
		}
	}
}

// TestOddFolders checks folders with other files beside those of the ranks, and a trace with one file.
func TestOddFolders(t *testing.T) {
	one := strings.ReplaceAll(ping, "MPI_Send:110:9:4:1,4,4:1:5:0,0,2:120\n", "")
	in(t, map[string]string{
		"one/x-0.txt": strings.ReplaceAll(one, ",2:", ",1:"), "hidden/x-0.txt": ping, "hidden/x-1.txt": pong, "hidden/.y-7.txt": "",
		"bad/x-0.txt": ping, "bad/x-1.txt": "\x1f\x8b\bjunk",
	})
	if got := readStore(t, ok(t, "", "one")); len(got.Ranks) != 1 {
		t.Errorf("one file: %d ranks", len(got.Ranks))
	}
	if got := readStore(t, ok(t, "", "hidden")); len(got.Ranks) != 2 {
		t.Errorf("with a hidden file: %d ranks", len(got.Ranks))
	}
	if err := os.Symlink("nowhere", "hidden/x-2.txt"); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"bad":    "bad/x-1.txt: reading: truncated gzip data\n",
		"hidden": "traceconv: hidden/x-2.txt: reading: no such file or directory\n",
	} {
		if got := clitest.Run(New, folder); got.Status != 1 || got.Stderr != want {
			t.Errorf("%s: status %d, stderr %q, want %q", folder, got.Status, got.Stderr, want)
		}
	}
}

func TestManyRanks(t *testing.T) {
	in(t, nil)
	const ranks = 3000
	if err := os.Mkdir("trace", 0o777); err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		text := fmt.Sprintf("MPI_Barrier:1:0,%d,%d:2\nMPI_Finalize:2:-\n", rank, ranks)
		if err := os.WriteFile(fmt.Sprintf("trace/x-%04d.txt", rank), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	trace := readStore(t, ok(t, "", "trace"))
	if len(trace.Ranks) != ranks || len(trace.Comms) != 1 || trace.Ops() != ranks {
		t.Errorf("%d ranks, %d communicators, %d ops", len(trace.Ranks), len(trace.Comms), trace.Ops())
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems[0])
	}
}

// Schedules are those of Schedgen, and can be made piece by piece.
func TestSchedgen(t *testing.T) {
	vectors, err := filepath.Abs("../../../formats/mpi/testdata")
	if err != nil {
		t.Fatal(err)
	}
	in(t, nil)
	for _, c := range []struct{ args, want string }{
		{"--schedgen upstream own-coll", "own-coll.schedgen.bin"},
		{"--schedgen atlahs own-persist/pmpi-trace-rank-0.txt", "own-persist.schedgen-atlahs.bin"},
		{"--schedgen upstream own-timeback", "own-timeback.schedgen.bin"},
	} {
		args := strings.Fields(c.args)
		args[len(args)-1] = filepath.Join(vectors, args[len(args)-1])
		if got := ok(t, "", append(args, "-q", "--to", "goalbin")...); got != content(t, filepath.Join(vectors, c.want)) {
			t.Errorf("traceconv %s differs from %s", c.args, c.want)
		}
	}
	trace := filepath.Join(vectors, "own-coll")
	whole := readStore(t, ok(t, "", "-q", "--schedgen", "upstream", trace))
	ops := int64(0)
	for range 4 { // two collectives of the nine at a time, the last time one and the end
		piece := readStore(t, ok(t, "", "-q", "--schedgen", "upstream", "--traces-nops", "2", "--traces-start", "places",
			trace))
		ops += piece.Ops()
	}
	rest := readStore(t, ok(t, "", "-q", "--schedgen", "upstream", "--traces-start", "places", trace))
	if ops+rest.Ops() != whole.Ops() {
		t.Errorf("the pieces have %d ops and the rest %d, the whole %d", ops, rest.Ops(), whole.Ops())
	}
	for args, want := range map[string]string{
		"--traces-extr 2 x":                       "--traces-extr needs --schedgen",
		"--schedgen best x":                       "--schedgen: expected upstream or atlahs, found \"best\"",
		"--schedgen upstream --traces-extr 0 x":   "--traces-extr: expected 1..1048576, found 0",
		"--schedgen upstream --cpu 256 x":         "--cpu: expected 0..255, found 256",
		"--schedgen upstream x.goal":              "--schedgen: expected an MPI trace, found x.goal in format goal",
		"--schedgen atlahs --traces-nops -1 a-0":  "--traces-nops: expected 0..",
		"--schedgen atlahs --from goal x.goal":    "--schedgen: expected an MPI trace",
		"--schedgen atlahs --traces-nbcify x a-0": "invalid argument",
	} {
		if err := os.WriteFile("x.goal", []byte(pingpong), 0o666); err != nil {
			t.Fatal(err)
		}
		got := clitest.Run(New, strings.Fields(args)...)
		if got.Status != 2 || !strings.Contains(got.Stderr, want) {
			t.Errorf("traceconv %s: exit status %d, stderr %q; want 2 and %q", args, got.Status, got.Stderr, want)
		}
	}
}
