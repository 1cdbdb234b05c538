// Tracegen makes synthetic traces.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef"
	"github.com/tracedag/tracedag/formats/vef/ext"
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
	cmd.AddCommand(newHorovod(p), newDCNW(p), newCDCNW(p), newFlows(p), newPattern(p), newSchedgen(p),
		newStencil(p), newSweep3D(p), newFFT(p), newMasterWorker(p), newNBody(p), newCollective(p), newLLM(p), newStorage(p),
		newMatrix(p), newGraph500(p), newWorkload(p))
	return cmd
}

// generation is what all generators have in common: where the trace goes, and what is done to it on the way.
type generation struct {
	p      *cli.Program
	write  cli.WriteFlags
	lower  cli.LowerFlags
	inputs []dag.Input // what the generator read
}

func (g *generation) register(p *cli.Program, cmd *cobra.Command) {
	g.p = p
	g.write.Register(p, cmd, "output `file` (default: standard output)")
	g.lower.Register(p, cmd)
}

// run writes the trace that generate makes. The seed is nil where nothing is random.
func (g *generation) run(seed *int64, generate func() (*dag.Trace, error)) error {
	to, err := g.p.Target(g.write)
	if err != nil {
		return err
	}
	pass, err := g.lower.Pass()
	if err != nil {
		return err
	}
	t, err := generate()
	if err != nil {
		return cli.Usagef("%v", err) // parameters out of range
	}
	g.describe(&t.Meta, seed, to)
	if !g.lower.Asked() {
		return g.p.WriteTrace(t, to)
	}
	s, err := pass(dag.NewInMemory(t))
	if err != nil {
		return err
	}
	return g.p.WriteSource(s, to)
}

// runSource is run for a trace that is made while it is written, batch by batch, unless something needs the whole.
func (g *generation) runSource(seed *int64, generate func() (format.Source, error)) error {
	to, err := g.p.Target(g.write)
	if err != nil {
		return err
	}
	pass, err := g.lower.Pass()
	if err != nil {
		return err
	}
	s, err := generate()
	if err != nil {
		return cli.Usagef("%v", err)
	}
	defer s.Close()
	if s, err = pass(s); err != nil {
		return err
	}
	meta := s.Meta()
	g.describe(&meta, seed, to)
	return g.p.WriteSource(cli.WithMeta(s, meta), to)
}

// describe enters the provenance.
func (g *generation) describe(meta *dag.Meta, seed *int64, to *cli.Target) {
	if to.KeepsProvenance() {
		meta.Provenance = append(meta.Provenance, g.p.Provenance(seed, g.inputs...))
	}
}

// model is a generation of what an extended VEF trace can describe.
type model struct {
	generation
	cmd      *cobra.Command
	emitSpec bool
}

func (m *model) register(p *cli.Program, cmd *cobra.Command) {
	m.cmd = cmd
	cmd.Flags().BoolVar(&m.emitSpec, "emit-spec", false,
		"write the extended VEF trace (EXT) that describes the model, not what the model makes")
	m.generation.register(p, cmd)
}

// run writes the trace that generate makes, or the extended VEF trace that describe returns, where that is asked for.
// In that one there is no place for what the seed and the flags besides set.
func (m *model) run(seed *int64, generate func() (format.Source, error), describe func() (*ext.Model, error),
	besides ...string) error {
	if !m.emitSpec {
		return m.runSource(seed, generate)
	}
	if m.lower.Asked() || m.write.To != "" && m.write.To != vef.Format.Name {
		return cli.Usagef("--emit-spec writes an extended VEF trace: --to and --lower are for those who read it")
	}
	spec, err := describe()
	if err != nil {
		return cli.Usagef("%v", err)
	}
	out, err := m.p.Create(m.write.Output, false)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(spec.Spec()); err != nil {
		return out.Failed(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	for _, flag := range append(besides, "seed") {
		if m.cmd.Flags().Changed(flag) {
			m.p.Warn("the file has no place for --%s: give it again to what reads the file", flag)
		}
	}
	return nil
}
