package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/cli"
)

// parse returns the flags of a command line, of a command with further flags.
func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	var f Flags
	cmd := &cobra.Command{Use: "program"}
	cmd.Flags().StringP("output", "o", "", "")
	cmd.Flags().BoolP("quiet", "q", false, "")
	cmd.Flags().String("title", "", "")
	f.Register(cmd, "inputs")
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return &f
}

// environment returns the function that looks up the variables NAME=VALUE of a text.
func environment(text string) func(string) string {
	return func(name string) string {
		for _, field := range strings.Split(text, ",") {
			if key, value, _ := strings.Cut(field, "="); key == name {
				return value
			}
		}
		return ""
	}
}

func TestShard(t *testing.T) {
	const (
		array  = "SLURM_ARRAY_TASK_ID="
		auto   = "--shard auto --shards 16"
		syntax = "expected auto or I/N with 0 <= I < N"
	)
	for _, c := range []struct{ args, env, want string }{
		{"", "", "0/1"},
		{"", "SLURM_ARRAY_TASK_ID=3", "0/1"},
		{"--shard 3/16", "SLURM_ARRAY_TASK_ID=5", "3/16"},
		{"--shard 15/16", "", "15/16"},
		{"--shard 0/1", "", "0/1"},
		{auto, array + "3", "3/16"},
		{auto, array + "015", "15/16"},
		{auto, array + "3,SLURM_ARRAY_TASK_COUNT=2,SLURM_ARRAY_TASK_MAX=3,SLURM_ARRAY_TASK_MIN=1", "3/16"},
		{auto, array + "3,JOB_COMPLETION_INDEX=7,SLURM_PROCID=1,SLURM_NTASKS=2", "3/16"},
		{auto, "JOB_COMPLETION_INDEX=7,SLURM_PROCID=1,SLURM_NTASKS=16", "7/16"},
		{"--shard auto", "SLURM_PROCID=1,SLURM_NTASKS=2", "1/2"},
		{auto, "SLURM_PROCID=1,SLURM_NTASKS=16", "1/16"},
		{auto + " --shard-base 1", array + "16", "15/16"},
		{auto + " --shard-base 1", array + "1", "0/16"},
		{"--shard auto --shards 2005 --shard-base=-1001", array + "999", "2000/2005"},

		{"--shard auto", array + "3", "name the number of shards with --shards N"},
		{"--shard auto", array + "3,SLURM_ARRAY_TASK_COUNT=4", "name the number of shards with --shards N"},
		{auto, array + "16", "SLURM_ARRAY_TASK_ID is 16, expected 0 to 15 for 16 shards"},
		{auto + " --shard-base 1", array + "0", "SLURM_ARRAY_TASK_ID is 0, expected 1 to 16 for 16 shards"},
		{auto, "JOB_COMPLETION_INDEX=99", "JOB_COMPLETION_INDEX is 99, expected 0 to 15"},
		{auto, array + "-1", `SLURM_ARRAY_TASK_ID: expected a number from 0, found "-1"`},
		{auto, array + "+3", `found "+3"`},
		{auto, array + " 3", `found " 3"`},
		{auto, array + "1e1", `found "1e1"`},
		{auto, array + "3_1", `found "3_1"`},
		{auto, array + "٣", `found "٣"`},
		{auto, array + "99999999999999999999", `found "99999999999999999999"`},
		{auto, array + "4294967294", `found "4294967294"`},
		{auto, "", "found none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX and of SLURM_PROCID with SLURM_NTASKS"},
		{auto, "SLURM_PROCID=0", "found none of"},
		{auto, "SLURM_PROCID=0,SLURM_NTASKS=1", "SLURM_NTASKS is 1, but --shards is 16"},
		{auto, "SLURM_PROCID=0,SLURM_NTASKS=x", `SLURM_NTASKS: expected a number from 1, found "x"`},
		{"--shard auto", "SLURM_PROCID=2,SLURM_NTASKS=2", "SLURM_PROCID is 2, expected 0 to 1 for 2 shards"},
		{"--shard auto --shards 0", array + "0", "--shards: expected 1 to 2147483647, found 0"},
		{"--shard auto --shards -4", array + "0", "--shards: expected 1 to 2147483647, found -4"},
		{"--shard auto --shards 4 --shard-base -9223372036854775808", array + "0", "--shard-base: expected "},
		{"--shards 4", "", "are for --shard auto"},
		{"--shard-base 1", "", "are for --shard auto"},
		{"--shard 3/16 --shards 16", "", `are for --shard auto, found --shard "3/16"`},
		{"--shard 16/16", "", syntax},
		{"--shard 0/0", "", syntax},
		{"--shard -1/4", "", syntax},
		{"--shard 1", "", syntax},
		{"--shard 1/", "", syntax},
		{"--shard /4", "", syntax},
		{"--shard 1/4/2", "", syntax},
		{"--shard 0x1/4", "", syntax},
		{"--shard 1/99999999999999999999", "", syntax},
		{"--shard=", "", syntax},
		{"--shard AUTO", "", syntax},
	} {
		s, err := parse(t, strings.Fields(c.args)...).Shard(environment(c.env))
		switch {
		case err == nil && s.String() != c.want:
			t.Errorf("%s, %s: %v, expected %s", c.args, c.env, s, c.want)
		case err != nil && (!strings.Contains(err.Error(), c.want) || !cli.IsUsage(err)):
			t.Errorf("%s, %s: %v, expected %s", c.args, c.env, err, c.want)
		}
	}
}

// TestPartition checks that each item belongs to exactly one shard, and that shards differ by at most one item.
func TestPartition(t *testing.T) {
	for count := 1; count <= 20; count++ {
		for items := range 50 {
			all := make([]int, items)
			for index := range count {
				n := 0
				for i := range items {
					if (Shard{index, count}).Has(i) {
						all[i]++
						n++
					}
				}
				if n != items/count && n != items/count+1 {
					t.Fatalf("shard %d/%d has %d of %d items", index, count, n, items)
				}
			}
			if slices.ContainsFunc(all, func(n int) bool { return n != 1 }) {
				t.Fatalf("%d shards of %d items: items have %d shards", count, items, all)
			}
		}
	}
}

func TestGiven(t *testing.T) {
	if !parse(t, "--shard-base", "0").Given() || parse(t, "-q").Given() {
		t.Error("Given is wrong")
	}
}
