package tracegen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestCollectiveFlags checks that every flag sets its parameter.
func TestCollectiveFlags(t *testing.T) {
	for args, params := range map[string]collective.Params{
		"": collective.Default(),
		"--type ALL_TO_ALL --size 1MiB --ranks 24 --group 4 --stride 3 --repeat 2 --compute 10us --dims 0,2 " +
			"--priority -7": {
			Type: dag.Alltoall, Size: 1 << 20, Ranks: 24, Group: 4, Stride: 3, Repeat: 2, Compute: 10 * dag.Microsecond,
			Dims: 0b101, Priority: -7,
		},
		"--type bcast --ranks 4 --root 3": {Type: dag.Bcast, Size: 1 << 30, Ranks: 4, Stride: 1, Root: 3, Repeat: 1},
	} {
		want, err := readAll(collective.NewSource(params))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := generate(t, append([]string{"collective"}, strings.Fields(args)...)...)
		same(t, got, want)
	}
}

func TestCollectiveUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--type gatherv":      "expected one of allreduce, allgather",
		"--dims 0,,1":         "expected numbers of dimensions",
		"--dims 31":           "expected numbers of dimensions",
		"--ranks 9 --group 2": "expected a multiple of group x stride",
		"--compute 5":         "with unit",
	} {
		got := clitest.Run(newCommand, append([]string{"collective"}, strings.Fields(args)...)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracegen collective %s: exit status %d, stderr %q, expected %q", args, got.Status, got.Stderr, want)
		}
	}
}

// TestCollectiveChakra checks that a benchmark in Chakra's format has the nodes of ASTRA-sim's micro-benchmarks, except
// their names and numbers.
func TestCollectiveChakra(t *testing.T) {
	for kind, number := range map[string]string{
		"allreduce": "\x00", "allgather": "\x02", "alltoall": "\x06", "reducescatter": "\x07",
	} {
		prefix := filepath.Join(t.TempDir(), "micro")
		got := clitest.Run(newCommand, "collective", "--type", kind, "--size", "1MiB", "--ranks", "2", "--to", "chakra",
			"--strict", "-o", prefix)
		if got.Status != 0 || got.Stderr != "" {
			t.Fatalf("%s: exit status %d, stderr %q", kind, got.Status, got.Stderr)
		}
		want := "\x07\x0a\x050.0.4" + "\x32\x18\x07" + // the version; a node of type COMM_COLL
			"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00" +
			"\x52\x0d\x0a\x09comm_type\x48" + number +
			"\x52\x0f\x0a\x09comm_size\x48\x80\x80\x40"
		for _, rank := range []string{"0", "1"} {
			file, err := os.ReadFile(prefix + "." + rank + ".et")
			if err != nil || string(file) != want {
				t.Errorf("%s: rank %s is %q, expected %q, error %v", kind, rank, file, want, err)
			}
		}
	}
}
