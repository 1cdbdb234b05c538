package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/ideal"
)

// idealBackend runs the ideal backend.
type idealBackend struct {
	common *options
	replay *ideal.Replay
}

func registerIdeal(_ *cli.Program, cmd *cobra.Command, o *options) runner {
	flags := cmd.Flags()
	flags.BoolVar(&o.criticalPath, "critical-path", false, "print the critical path op by op (ideal)")
	flags.BoolVar(&o.ops, "ops", false, "print when each op starts and ends, separated by tabs or with --json (ideal)")
	return &idealBackend{common: o}
}

func (b *idealBackend) check() error {
	switch o := b.common; {
	case o.timeline != "":
		return cli.Usagef("--timeline: the ideal backend writes none; --ops prints when each op runs")
	case o.sweep != "":
		return cli.Usagef("--sweep: the ideal backend has no parameters")
	case o.collective != "":
		return cli.Usagef("--collective: the ideal backend runs collectives as such, without an algorithm")
	case o.ops && (o.alone || o.compare) && !o.json:
		return cli.Usagef("--ops prints when each op runs and nothing else: --alone and --compare need --json then")
	case o.ops && o.criticalPath && !o.json:
		return cli.Usagef("--ops and --critical-path print different tables; --json prints both")
	}
	return nil
}

func (b *idealBackend) parameters() []parameter {
	return nil
}

func (b *idealBackend) lowers(*dag.Trace) func(dag.Subkind) bool {
	return nil
}

func (b *idealBackend) timeline(io.Writer, string, *dag.Trace) (sim.Timeline, error) {
	return nil, errors.New("the ideal backend writes no timeline")
}

func (b *idealBackend) compile(t dag.Source, _ func(string, ...any)) (err error) {
	b.replay, err = ideal.Compile(t)
	return err
}

func (b *idealBackend) params([]setting) (model string, params any) {
	return "", struct{}{}
}

func (b *idealBackend) run(_ []setting, r replay) (*result, error) {
	done, err := b.replay.Run(ideal.Options{Progress: r.progress})
	return &result{Result: done}, err
}

func (b *idealBackend) opTimes() *ideal.Timeline {
	return b.replay.Timeline()
}
