// This file binds the generator dag/gen/horovod to its flags.

package main

import (
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/ext"
	"github.com/tracedag/tracedag/internal/cli"
)

func newHorovod(p *cli.Program) *cobra.Command {
	var m model
	var seed int64
	var overrides []string
	var listing bool
	params := horovod.Default()
	cmd := &cobra.Command{
		Use:   "horovod",
		Short: "data-parallel training with Horovod",
		Long: `Horovod makes the trace of data-parallel training: in each layer of each batch, all workers
compute, negotiate through the first of them (the master) until all are ready, and reduce
their tensors. Collectives stay collectives unless --lower is given.

Times and sizes are the means of normal distributions, drawn for each worker and use. The
defaults make a small trace; --listing makes the published example, 67 million ops.`,
		Example: `  tracegen horovod | simulate
  tracegen horovod --listing -o listing8.parquet
  tracegen horovod --listing --emit-spec -o listing8.vef
  tracegen horovod --workers 64 --allreduce-bytes 100MiB --seed 7 -o horovod.parquet
  tracegen horovod --layers 2 --layer 1:compute=30ms,allreduce-bytes=1MiB | tracecat
  tracegen horovod --jitter 0 --lower collectives=ring -o horovod.bin`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if listing {
				setListing(&params, cmd.Flags())
			}
			if params.Overrides, err = parseOverrides(&params, overrides); err != nil {
				return err
			}
			return m.run(&seed,
				func() (format.Source, error) { return horovod.NewSource(params, seed) },
				func() (*ext.Model, error) {
					if err := params.Check(); err != nil {
						return nil, err
					}
					return ext.Horovod(params)
				},
				"jitter", "time-step")
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&listing, "listing", false, "the published example, but for what other flags set: 128 workers, "+
		"10 batches, 5 layers, of which layer 3 has larger tensors, and a gatherv probability of 0.01")
	flags.IntVar(&params.Workers, "workers", params.Workers, "number of workers, one a rank")
	flags.IntVar(&params.Batches, "batches", params.Batches, "number of batches")
	flags.IntVar(&params.Layers, "layers", params.Layers, "number of layers, each reduced on its own")
	layerFlags(flags, &params.Layer)
	flags.StringArrayVar(&overrides, "layer", nil,
		"what differs in one `layer`, such as 2:compute=30ms,bcast-bytes=500; may be repeated, once for each layer")
	flags.Float64Var(&params.Jitter, "jitter", params.Jitter,
		"standard deviation of times and sizes as a part of the mean")
	cli.TimeVar(flags, &params.Clock, "clock", params.Clock, 0, "resolution of times")
	cli.TimeVar(flags, &params.TimeStep, "time-step", 0, 0,
		"what drawn times are multiples of (default: a fifth of their standard deviation at most)")
	flags.Int64Var(&seed, "seed", 1, "seed of every random choice")
	m.register(p, cmd)
	return cmd
}

// setListing sets what no flag has set as the published example has it. Its layers that differ do so in what they send.
func setListing(p *horovod.Params, flags *pflag.FlagSet) {
	listing := horovod.Listing()
	if !flags.Changed("workers") {
		p.Workers = listing.Workers
	}
	if !flags.Changed("batches") {
		p.Batches = listing.Batches
	}
	if !flags.Changed("layers") {
		p.Layers = listing.Layers
	}
	if !flags.Changed("gatherv-probability") {
		p.Layer.GathervProbability = listing.Layer.GathervProbability
	}
	p.Overrides = map[int]horovod.Layer{}
	for i, differs := range listing.Overrides {
		if i < p.Layers {
			l := p.Layer
			l.BcastBytes, l.AllreduceBytes = differs.BcastBytes, differs.AllreduceBytes
			p.Overrides[i] = l
		}
	}
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

// parseOverrides parses texts such as "2:compute=30ms,bcast-bytes=500", a layer's number and what differs from what the
// parameters have for it, and returns the layers that differ.
func parseOverrides(p *horovod.Params, texts []string) (map[int]horovod.Layer, error) {
	overrides := maps.Clone(p.Overrides)
	if overrides == nil {
		overrides = map[int]horovod.Layer{}
	}
	given := map[int]bool{}
	for _, text := range texts {
		number, settings, found := strings.Cut(text, ":")
		id, err := strconv.Atoi(number)
		if err != nil || !found {
			return nil, cli.Usagef("--layer: expected LAYER:FLAG=VALUE,..., found %q", text)
		}
		if given[id] {
			return nil, cli.Usagef("--layer: layer %d is there twice", id)
		}
		given[id] = true
		l, differs := p.Overrides[id]
		if !differs {
			l = p.Layer
		}
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
