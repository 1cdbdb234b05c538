// This file binds the generator dag/gen/storage to its flags.

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/storage"
	"github.com/tracedag/tracedag/internal/cli"
)

func newStorage(p *cli.Program) *cobra.Command {
	var g generation
	var profile, like string
	var seed int64
	params := storage.Default()
	cmd := &cobra.Command{
		Use:   "storage",
		Short: "accesses to storage with the statistics of another trace",
		Long: `Storage makes a trace of reads and writes that a storage system is asked for: sizes, the share of
reads, the times between requests, the popularity of units and the locality of addresses are drawn
from what another trace has, or one of the built-in profiles. With --lower they become the messages
of a storage system.`,
		Example: `  tracegen storage --profile financial --records 5000 | traceconv --lower directdrive | simulate
  tracegen storage --profile websearch --records 1000000 --seed 7 -o websearch.parquet
  tracegen storage --like Financial1.spc --records 5000 --to spc -o small.spc`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if params.Profile = storage.Builtin(profile); params.Profile == nil {
				return cli.Usagef("--profile: expected %s, found %q", strings.Join(storage.Names(), " or "), profile)
			}
			if like != "" {
				read, err := p.ReadTrace(like, cli.ReadFlags{}, cli.ReadOptions{Digest: true})
				if err != nil {
					return err
				}
				if params.Profile, err = storage.Like(read.Trace); err != nil {
					return cli.InFile(read.Name, err)
				}
				g.inputs = read.Inputs
			}
			return g.run(&seed, func() (*dag.Trace, error) { return storage.Generate(params, seed) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&profile, "profile", params.Profile.Name, "built-in `profile`: "+strings.Join(storage.Names(), " or "))
	cli.CompleteWith(cmd, "profile", storage.Names())
	flags.StringVar(&like, "like", "", "trace in `FILE` whose statistics to use instead")
	flags.Int64Var(&params.Records, "records", params.Records, "number of requests")
	flags.Int64Var(&seed, "seed", 1, "seed of every random choice")
	g.register(p, cmd)
	cmd.MarkFlagsMutuallyExclusive("profile", "like")
	return cmd
}
