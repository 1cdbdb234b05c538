// This file binds the generator dag/gen/horovod to its flags.

package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/internal/cli"
)

func newHorovod(p *cli.Program) *cobra.Command {
	var g generation
	var seed int64
	var overrides []string
	params := horovod.Default()
	cmd := &cobra.Command{
		Use:   "horovod",
		Short: "data-parallel training with Horovod",
		Long: `Horovod makes the trace of data-parallel training: in each layer of each batch, all workers
compute, negotiate through the first of them (the master) until all are ready, and reduce
their tensors. Collectives stay collectives unless --lower is given.

Times and sizes are the means of normal distributions, drawn for each worker and use.`,
		Example: `  tracegen horovod | simulate
  tracegen horovod --workers 64 --allreduce-bytes 100MiB --seed 7 -o horovod.parquet
  tracegen horovod --layers 2 --layer 1:compute=30ms,allreduce-bytes=1MiB | tracecat
  tracegen horovod --jitter 0 --lower collectives=ring -o horovod.bin`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) (err error) {
			if params.Overrides, err = parseOverrides(params.Layer, overrides); err != nil {
				return err
			}
			return g.run(&seed, func() (*dag.Trace, error) { return horovod.Generate(params, seed) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&params.Workers, "workers", params.Workers, "number of workers, one a rank")
	flags.IntVar(&params.Batches, "batches", params.Batches, "number of batches")
	flags.IntVar(&params.Layers, "layers", params.Layers, "number of layers, each reduced on its own")
	layerFlags(flags, &params.Layer)
	flags.StringArrayVar(&overrides, "layer", nil,
		"what differs in one `layer`, such as 2:compute=30ms,bcast-bytes=500; may be repeated, once for each layer")
	flags.Float64Var(&params.Jitter, "jitter", params.Jitter,
		"standard deviation of times and sizes as a part of the mean")
	flags.Int64Var(&seed, "seed", 1, "seed of every random choice")
	g.register(p, cmd)
	return cmd
}

// layerFlags defines the flags for the parameters of a layer.
func layerFlags(flags *pflag.FlagSet, l *horovod.Layer) {
	cli.TimeVar(flags, &l.Compute, "compute", l.Compute, 0, "mean computation before the negotiation")
	cli.TimeVar(flags, &l.NegotiationLoop, "negotiation-loop", l.NegotiationLoop, 0,
		"mean wait between two iterations of the negotiation")
	cli.SizeVar(flags, &l.GathervBytes, "gatherv-bytes", l.GathervBytes, "mean size of a worker's announcement")
	cli.SizeVar(flags, &l.GathervTotalBytes, "gatherv-total-bytes", l.GathervTotalBytes,
		"what a worker must have announced to be ready")
	flags.Float64Var(&l.GathervProbability, "gatherv-probability", l.GathervProbability,
		"that a worker which is not ready announces in an iteration")
	cli.SizeVar(flags, &l.BcastBytes, "bcast-bytes", l.BcastBytes, "answer of the master when all workers are ready")
	cli.SizeVar(flags, &l.AllreduceBytes, "allreduce-bytes", l.AllreduceBytes, "size of the tensors that are reduced")
}

// parseOverrides parses texts such as "2:compute=30ms,bcast-bytes=500": a layer's number and what differs from base.
func parseOverrides(base horovod.Layer, texts []string) (map[int]horovod.Layer, error) {
	overrides := map[int]horovod.Layer{}
	for _, text := range texts {
		number, settings, found := strings.Cut(text, ":")
		id, err := strconv.Atoi(number)
		if err != nil || !found {
			return nil, cli.Usagef("--layer: expected LAYER:FLAG=VALUE,..., found %q", text)
		}
		if _, twice := overrides[id]; twice {
			return nil, cli.Usagef("--layer: layer %d is there twice", id)
		}
		l := base
		flags := pflag.NewFlagSet("layer", pflag.ContinueOnError)
		layerFlags(flags, &l)
		for setting := range strings.SplitSeq(settings, ",") {
			name, value, found := strings.Cut(setting, "=")
			if !found || flags.Lookup(name) == nil {
				return nil, cli.Usagef("--layer: expected a parameter of a layer such as compute=30ms, found %q in %q",
					setting, text)
			}
			if err := flags.Set(name, value); err != nil {
				return nil, cli.Usagef("--layer: %s: %v", text, err)
			}
		}
		overrides[id] = l
	}
	return overrides, nil
}
