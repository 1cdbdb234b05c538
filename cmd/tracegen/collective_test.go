package main

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestCollectiveFlags: every flag sets its parameter.
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
		want, err := collective.Generate(params)
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
