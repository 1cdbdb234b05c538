package traceconv

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// shardInputs has inputs of several formats, one of them of several files, in an order that is not that of their names.
var shardInputs = []string{"z.goal", "in/y.goal", "many", "b/x-1.txt", "b/x-0.txt", "a.goal", "in/c", "m.goal"}

func batchFiles(t *testing.T) {
	t.Helper()
	in(t, map[string]string{
		"z.goal": pingpong, "in/y.goal": pingpong, "many/x-0.txt": ping, "many/x-1.txt": pong, "b/x-0.txt": ping,
		"b/x-1.txt": pong, "a.goal": pingpong, "in/c": pingpong, "m.goal": pingpong,
	})
}

// contents returns the files of a folder by name.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range files(t, folder) {
		all[filepath.Base(name)] = content(t, name)
	}
	return all
}

// TestShards checks that the outputs of all shards are those of one run, byte for byte, and that each has one shard.
func TestShards(t *testing.T) {
	for _, to := range [][]string{{"-q"}, {"-q", "--to", "chakra", "--lower", "needed"}} {
		batchFiles(t)
		line := append(append(to, "-o", "out/"), shardInputs...)
		ok(t, "", line...)
		whole := contents(t, "out")
		for count := 1; count <= 9; count++ {
			all := map[string]string{}
			for index := range count {
				if err := os.RemoveAll("out"); err != nil {
					t.Fatal(err)
				}
				t.Setenv("SLURM_ARRAY_TASK_ID", fmt.Sprint(index+5))
				shard := []string{"--shard", fmt.Sprintf("%d/%d", index, count)}
				if count%2 == 0 {
					shard = []string{"--shard=auto", "--shards", fmt.Sprint(count), "--shard-base=5"}
				}
				ok(t, "", append(shard, line...)...)
				for name, text := range contents(t, "out") {
					if _, twice := all[name]; twice {
						t.Errorf("%d shards: %s has two", count, name)
					}
					all[name] = text
				}
			}
			if !maps.Equal(all, whole) {
				t.Errorf("%d shards wrote %q, expected %q with the same content", count,
					slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(whole)))
			}
		}
	}
}

// TestShardOrder checks that the shard of an input does not depend on the order of the arguments.
func TestShardOrder(t *testing.T) {
	batchFiles(t)
	ok(t, "", append([]string{"-q", "-o", "out/", "--shard", "1/3"}, shardInputs...)...)
	want := files(t, "out")
	if len(want) != 2 && len(want) != 3 {
		t.Fatalf("shard 1/3 of 7 inputs wrote %q", want)
	}
	reversed := slices.Clone(shardInputs)
	slices.Reverse(reversed)
	if err := os.RemoveAll("out"); err != nil {
		t.Fatal(err)
	}
	ok(t, "", append([]string{"-q", "-o", "out/", "--shard", "1/3"}, reversed...)...)
	if got := files(t, "out"); !slices.Equal(got, want) {
		t.Errorf("%q, in another order %q", want, got)
	}
}

func TestShardUsage(t *testing.T) {
	in(t, map[string]string{"a.goal": pingpong, "b.goal": pingpong, "bad.goal": "dance"})
	before := files(t, ".")
	for args, want := range map[string]string{
		"--shard 0/2 a.goal":                         "--shard is for many inputs: name a folder, as in -o out/",
		"--shard 0/2 a.goal -o x.parquet":            "--shard is for many inputs",
		"--shards 2 a.goal -o x.parquet":             "--shard is for many inputs",
		"--shard 0/2 --job a.goal -o x.parquet":      "--shard is for many inputs",
		"--shard 0/2 --job a.goal -o out/":           "a plan makes one trace",
		"--shard 2/2 a.goal b.goal -o out/":          "--shard: expected auto or I/N with 0 <= I < N",
		"--shard auto a.goal -o out/":                "found none of SLURM_ARRAY_TASK_ID",
		"--shards 2 a.goal b.goal -o out/":           "are for --shard auto",
		"--shard 1/2 a.goal b.goal ./b.goal -o out/": "both b.goal and ./b.goal have the output out/b.parquet",
	} {
		got := clitest.Run(New, strings.Fields(args)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("traceconv %s: exit status %d, stderr %q, expected %q", args, got.Status, got.Stderr, want)
		}
	}
	if got := files(t, "."); !slices.Equal(got, before) {
		t.Errorf("usage errors left files: %q", got)
	}
	// A shard without inputs succeeds; one with a failure reports it and keeps the folder, which others may use.
	ok(t, "", "-q", "--shard", "2/3", "a.goal", "b.goal", "-o", "empty/")
	got := clitest.Run(New, "--shard", "1/2", "a.goal", "bad.goal", "-o", "failed/")
	if got.Status != 1 || !strings.Contains(got.Stderr, "bad.goal:1: ") {
		t.Errorf("%+v", got)
	}
	for _, folder := range []string{"empty", "failed"} {
		if len(files(t, folder)) > 0 {
			t.Errorf("%s has files", folder)
		}
	}
}
