// Tracegen makes synthetic traces.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
)

func main() {
	os.Exit(cli.Main(newCommand))
}

func newCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tracegen",
		Short: "make a synthetic trace",
		Long: `Tracegen makes the trace of a workload model and writes it to standard output or a file,
as a store (Parquet) unless --to or the name of the file says otherwise.

The same flags and seed give the same bytes. The command line and the seed are recorded in
the store.`,
		Example: `  tracegen horovod | simulate
  tracegen horovod --workers 64 --seed 7 -o horovod.parquet
  tracegen pattern ring --ranks 16 --bytes 1MiB -o ring.goal`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Usagef("expected the name of a generator, such as horovod")
		},
	}
	cmd.AddCommand(newHorovod(p), newPattern(p))
	return cmd
}

// generation is what all generators have in common: where the trace goes, and what is done to it on the way.
type generation struct {
	p     *cli.Program
	write cli.WriteFlags
	lower cli.LowerFlags
}

func (g *generation) register(p *cli.Program, cmd *cobra.Command) {
	g.p = p
	g.write.Register(p, cmd, "output `file` (default: standard output)")
	g.lower.Register(cmd)
}

// run writes the trace that generate makes. The seed is nil where nothing is random.
func (g *generation) run(seed *int64, generate func() (*dag.Trace, error)) error {
	to, err := g.p.Target(g.write)
	if err != nil {
		return err
	}
	lower, err := g.lower.Pass()
	if err != nil {
		return err
	}
	t, err := generate()
	if err != nil {
		return cli.Usagef("%v", err) // parameters out of range
	}
	if t, err = lower(t); err != nil {
		return err
	}
	if to.KeepsProvenance() {
		t.Provenance = append(t.Provenance, g.p.Provenance(seed))
	}
	return g.p.WriteTrace(t, to)
}
