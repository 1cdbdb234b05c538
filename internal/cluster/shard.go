// Package cluster divides work among the tasks of a cluster: shards and their flags, job scripts for Slurm and
// manifests for Kubernetes.
package cluster

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/internal/cli"
)

// Shard is one of several equal parts of a list of items.
type Shard struct {
	Index int // 0 to Count-1
	Count int // at least 1
}

// Has reports whether the item at place i of the list, at least 0, belongs to the shard.
func (s Shard) Has(i int) bool { return i%s.Count == s.Index }

// String returns the shard as --shard accepts it, such as 3/16.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Flags are the flags that select a shard.
type Flags struct {
	shard string
	count int
	base  int
	flags *pflag.FlagSet
}

// names are the names of the flags.
var names = []string{"shard", "shards", "shard-base"}

// Register adds the flags to the command. The shards are parts of its items, such as inputs.
func (f *Flags) Register(cmd *cobra.Command, items string) {
	f.flags = cmd.Flags()
	f.flags.StringVar(&f.shard, "shard", "", "only part `I/N` of the "+items+", from 0/N; or auto")
	f.flags.IntVar(&f.count, "shards", 0, "number of parts for --shard auto")
	f.flags.IntVar(&f.base, "shard-base", 0, "number of the first task for --shard auto")
	cli.Aside(f.flags, names...)
}

// Given reports whether the command line has one of the flags.
func (f *Flags) Given() bool {
	return slices.ContainsFunc(names, f.flags.Changed)
}

// Shard returns the shard that the flags select, 0/1 without them. With --shard auto, the environment has the number of
// the task: that of a task of a Slurm array, of a pod of a Kubernetes Indexed Job or of a process of srun. The number
// of shards never comes from the size of an array, which is smaller if only some tasks of it are submitted again.
func (f *Flags) Shard(getenv func(string) string) (Shard, error) {
	switch {
	case f.shard == "auto":
		return f.auto(getenv)
	case f.flags.Changed("shards") || f.flags.Changed("shard-base"):
		return Shard{}, cli.Usagef("--shards and --shard-base are for --shard auto, found --shard %q", f.shard)
	case !f.flags.Changed("shard"):
		return Shard{0, 1}, nil
	}
	index, count, found := strings.Cut(f.shard, "/")
	s := Shard{number(index), number(count)}
	if !found || s.Index < 0 || s.Count <= s.Index {
		return Shard{}, cli.Usagef("--shard: expected auto or I/N with 0 <= I < N, such as 0/16 and 15/16, found %q",
			f.shard)
	}
	return s, nil
}

// tasks are the variables with the number of a task, from 0 unless --shard-base gives another number. The first that is
// set decides.
var tasks = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "SLURM_PROCID"}

func (f *Flags) auto(getenv func(string) string) (Shard, error) {
	for _, name := range tasks {
		text := getenv(name)
		if text == "" || name == "SLURM_PROCID" && getenv("SLURM_NTASKS") == "" {
			continue
		}
		count, err := f.countFor(name, getenv)
		if err != nil {
			return Shard{}, err
		}
		task := number(text)
		if task < 0 {
			return Shard{}, cli.Usagef("--shard auto: %s: expected a number from 0, found %q", name, text)
		}
		if i := task - f.base; i >= 0 && i < count {
			return Shard{i, count}, nil
		}
		return Shard{}, cli.Usagef("--shard auto: %s is %d, expected %d to %d for %d shards; see --shards and "+
			"--shard-base", name, task, f.base, f.base+count-1, count)
	}
	return Shard{}, cli.Usagef("--shard auto: found none of %s and of SLURM_PROCID with SLURM_NTASKS in the "+
		"environment; run a task of an array, or give --shard I/N", strings.Join(tasks[:2], ", "))
}

// countFor returns the number of shards for the variable with the number of the task.
func (f *Flags) countFor(variable string, getenv func(string) string) (int, error) {
	given := f.flags.Changed("shards")
	if given && (f.count < 1 || f.count > math.MaxInt32) {
		return 0, cli.Usagef("--shards: expected 1 to %d, found %d", math.MaxInt32, f.count)
	}
	if f.base < -math.MaxInt32 || f.base > math.MaxInt32 {
		return 0, cli.Usagef("--shard-base: expected %d to %d, found %d", -math.MaxInt32, math.MaxInt32, f.base)
	}
	if variable != "SLURM_PROCID" {
		if !given {
			return 0, cli.Usagef("--shard auto: name the number of shards with --shards N; the environment has only " +
				"the number of the task")
		}
		return f.count, nil
	}
	text := getenv("SLURM_NTASKS")
	switch count := number(text); {
	case count < 1:
		return 0, cli.Usagef("--shard auto: SLURM_NTASKS: expected a number from 1, found %q", text)
	case given && count != f.count:
		return 0, cli.Usagef("--shard auto: SLURM_NTASKS is %d, but --shards is %d; each process does one shard",
			count, f.count)
	default:
		return count, nil
	}
}

// number parses a number of decimal digits, at most 2^31-1. It returns -1 for any other text.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}
