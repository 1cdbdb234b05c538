package horovod

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "horovod",
	Title: "data-parallel training with Horovod",
	Group: generator.Training,
	Page: `Horovod generates data-parallel training: in each layer of each batch, all workers compute, negotiate
through the first of them (the master) until all are ready, and reduce their tensors. Collectives stay
collectives unless --lower is given.

Times and sizes are the means of normal distributions, drawn for each worker and use. The defaults
give a small trace; --listing gives the published example, 67 million ops.`,
	Example: `  tracegen horovod | simulate
  tracegen horovod --listing -o listing8.parquet
  tracegen horovod --listing --emit-spec -o listing8.vef
  tracegen horovod --model alexnet --lower collectives=ring -o alexnet.parquet
  tracegen horovod --ranks 64 --allreduce-bytes 100MiB --seed 7 -o horovod.parquet
  tracegen horovod --layers 2 --layer 1:compute=30ms,allreduce-bytes=1MiB | tracecat
  tracegen horovod --jitter 0 --lower collectives=ring -o horovod.bin`,
	Exclusive: [][]string{{"listing", "model"}},
	New:       func() generator.Config { return &Config{model: Default(), Seed: generator.NewSeed()} },
	Small:     param.Texts{"ranks": {"4"}, "batches": {"1"}},
	Large:     param.Texts{"ranks": {"4"}, "batches": {"8"}},
}

// Config is a configuration of the generator.
type Config struct {
	model Params
	generator.Seed
	listing bool
	network string   // of --model
	unknown error    // there is no such network
	layers  []string // texts of --layer
}

// Params describes the parameters.
func (c *Config) Params() param.Set {
	p := &c.model
	network := param.String(&c.network, "model",
		"network whose tensors are reduced, in fused allreduces: alexnet (98 workers, 5 batches; a stand-in for the "+
			"trace of the paper); other flags take precedence").Placeholder("name").Check(c.useNetwork)
	network.Choices = networkNames()
	set := param.Set{
		param.Bool(&c.listing, "listing",
			"use the published example: 128 workers, 10 batches, 5 layers, a gatherv probability of "+
				"0.01, larger tensors in layer 3; other flags take precedence").Check(c.useListing),
		network,
		generator.RanksOf(&p.Workers, "worker"),
		param.Int(&p.Batches, "batches", "number of batches"),
		param.Int(&p.Layers, "layers", "layers per batch; each has its own allreduce"),
	}
	set = append(set, p.Layer.params()...)
	return append(set,
		param.Strings(&c.layers, "layer", "parameters of one layer, such as 2:compute=30ms,bcast-bytes=500; "+
			"repeatable, once per layer").Placeholder("layer"),
		param.Float(&p.Jitter, "jitter", "standard deviation of random times and sizes, relative to their mean"),
		param.Time(&p.Clock, "clock", "resolution of times"),
		param.Time(&p.TimeStep, "time-step",
			"unit that random times are rounded to").
			Default("at most a fifth of their standard deviation"),
		c.SeedParam(),
	)
}

// useListing sets the parameters whose values in the published example differ from the defaults.
func (c *Config) useListing() error {
	if c.listing {
		p, l := &c.model, Listing()
		p.Workers, p.Batches, p.Layers = l.Workers, l.Batches, l.Layers
		p.Layer.GathervProbability = l.Layer.GathervProbability
	}
	return nil
}

// useNetwork sets the parameters to those of a network. Resolve returns the error for an unknown one.
func (c *Config) useNetwork() error {
	if c.network == "" {
		return nil
	}
	p, err := Network(c.network)
	if c.unknown = err; err == nil {
		c.model.Network, c.model.Workers, c.model.Batches, c.model.Layers = p.Network, p.Workers, p.Batches, p.Layers
	}
	return nil
}

// params describes the parameters of a layer.
func (l *Layer) params() param.Set {
	return param.Set{
		param.Time(&l.Compute, "compute", "mean computation per worker and layer, before the negotiation"),
		param.Time(&l.NegotiationLoop, "negotiation-loop", "mean wait between two negotiation iterations"),
		param.Size(&l.GathervBytes, "gatherv-bytes", "mean size of an announcement"),
		param.Size(&l.GathervTotalBytes, "gatherv-total-bytes", "announced bytes at which a worker is ready"),
		param.Float(&l.GathervProbability, "gatherv-probability",
			"probability per iteration that a worker that is not ready announces"),
		param.Size(&l.BcastBytes, "bcast-bytes", "size of the master's answer in the last iteration"),
		param.Size(&l.AllreduceBytes, "allreduce-bytes", "size of the layer's tensors"),
	}
}

// Resolve parses the layers that differ, and returns the parameters.
func (c *Config) Resolve() (Params, error) {
	if c.unknown != nil {
		return Params{}, fmt.Errorf("--model: %w", c.unknown)
	}
	p := c.model
	if c.network != "" { // its layers differ in the sizes of allreduces only
		network, _ := Network(c.network)
		p.Overrides = map[int]Layer{}
		for i, differs := range network.Overrides {
			if i < p.Layers {
				l := p.Layer
				l.AllreduceBytes = differs.AllreduceBytes
				p.Overrides[i] = l
			}
		}
	}
	if c.listing { // its layers differ in message sizes only
		p.Overrides = map[int]Layer{}
		for i, differs := range Listing().Overrides {
			if i < p.Layers {
				l := p.Layer
				l.BcastBytes, l.AllreduceBytes = differs.BcastBytes, differs.AllreduceBytes
				p.Overrides[i] = l
			}
		}
	}
	var err error
	p.Overrides, err = parseOverrides(&p, c.layers)
	return p, err
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p, err := c.Resolve()
	if err != nil {
		return nil, err
	}
	p.Context = env.OrEmpty().Context
	return generator.From(NewSource(p, c.Seed.Value))
}

// parseOverrides parses texts such as "2:compute=30ms,bcast-bytes=500", a layer's number and its differences from p. It
// returns the layers that differ.
func parseOverrides(p *Params, texts []string) (map[int]Layer, error) {
	overrides := maps.Clone(p.Overrides)
	if overrides == nil {
		overrides = map[int]Layer{}
	}
	given := map[int]bool{}
	for _, text := range texts {
		number, settings, found := strings.Cut(text, ":")
		id, err := strconv.Atoi(number)
		if err != nil || !found {
			return nil, fmt.Errorf("--layer: expected LAYER:FLAG=VALUE,..., found %q", text)
		}
		if given[id] {
			return nil, fmt.Errorf("--layer: layer %d is listed twice", id)
		}
		given[id] = true
		l, differs := p.Overrides[id]
		if !differs {
			l = p.Layer
		}
		set := l.params()
		for setting := range strings.SplitSeq(settings, ",") {
			name, value, found := strings.Cut(setting, "=")
			if !found || set.Find(name) == nil {
				return nil, fmt.Errorf("--layer: expected a parameter of a layer such as compute=30ms, found %q in %q",
					setting, text)
			}
			if err := generator.Assign(set, name, value); err != nil {
				return nil, fmt.Errorf("--layer: %s: %w", text, err)
			}
		}
		overrides[id] = l
	}
	return overrides, nil
}
