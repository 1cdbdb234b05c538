// This file binds the generator dag/gen/masterworker to its flags.

package main

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/masterworker"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newMasterWorker(p *cli.Program) *cobra.Command {
	var g generation
	seed := int64(1)
	params := masterworker.Default()
	cmd := &cobra.Command{
		Use:   "masterworker",
		Short: "a master that hands out tasks to workers and collects results",
		Long: `Masterworker makes a trace of a master (rank 0) that hands out tasks in turn, one for each result that
it has received, and of workers that do them.`,
		Example: `  tracegen masterworker | simulate
  tracegen masterworker --workers 255 --tasks 100000 --compute 200us --any-source=false -o tasks.parquet`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return g.runSource(&seed, func() (format.Source, error) { return masterworker.NewSource(params, seed) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&params.Workers, "workers", params.Workers, "number of workers")
	flags.Int64Var(&params.Tasks, "tasks", params.Tasks, "number of tasks of all workers together")
	cli.SizeVar(flags, &params.TaskBytes, "task-bytes", params.TaskBytes, "size of a message with a task")
	cli.SizeVar(flags, &params.ResultBytes, "result-bytes", params.ResultBytes, "size of a message with a result")
	cli.TimeVar(flags, &params.Compute, "compute", params.Compute, dag.Nanosecond, "mean computation of a task")
	flags.Float64Var(&params.Spread, "spread", params.Spread, "by what part of that a task may take more or less time")
	cli.TimeVar(flags, &params.Handle, "handle", params.Handle, dag.Nanosecond, "computation of the master for a result")
	flags.BoolVar(&params.AnySource, "any-source", params.AnySource,
		"the master takes results from whoever has one, not from one worker after the other")
	flags.Int64Var(&seed, "seed", seed, "seed of the tasks' computations")
	g.register(p, cmd)
	return cmd
}
