package llm

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/param"
)

// Generator is the entry of the registry.
var Generator = generator.Generator{
	Name:  "llm",
	Title: "training steps of a transformer under data, tensor, pipeline and expert parallelism",
	Group: generator.Training,
	Page: `Llm generates training steps of a transformer: for each rank the calcs of each layer, with their
operations and memory traffic, the collectives of data, tensor, expert and ZeRO parallelism, and the
messages between pipeline stages. Collectives stay collectives unless --lower is given.

Calcs have no durations, because these depend on the machine, unless --peak-flops and --mem-bw describe
it. Without --preset the model is llama-7b; other flags change a preset.`,
	Example: `  tracegen llm --preset llama-70b --tp 8 --pp 4 --dp 16 --global-batch 1024 -o llama.parquet
  tracegen llm --preset mixtral-8x7b --tp 2 --dp 32 --ep 8 --zero 1 -o mixtral.parquet
  tracegen llm --dp 64 --zero 3 --recompute full --peak-flops 312TFLOPS --mem-bw 2TB/s | simulate --backend ideal`,
	Exclusive: [][]string{{"micro-batches", "global-batch"}},
	New:       func() generator.Config { return &Config{model: Default()} },
	Small:     param.Texts{"dp": {"2"}, "layers": {"8"}},
	Large:     param.Texts{"dp": {"2"}, "layers": {"8"}, "steps": {"10"}},
}

// Config is a configuration of the generator.
type Config struct {
	model       Params
	preset      string
	unknown     error  // the preset does not exist
	ordered     bool   // the order of ranks is given
	globalBatch *int64 // nil: not given
}

// Params describes the parameters. The preset stands first: others change it.
func (c *Config) Params() param.Set {
	p := &c.model
	preset := param.String(&c.preset, "preset", "published model; other flags change it").
		Placeholder("name").Default("llama-7b").Check(c.usePreset)
	preset.Choices = Presets()
	set := append(param.Set{preset}, p.Model.params()...)
	var sequences int64
	return append(set,
		param.Int(&p.MicroBatch, "micro-batch", "sequences per micro-batch"),
		param.Int(&p.MicroBatches, "micro-batches", "micro-batches per data-parallel replica and step"),
		param.Int(&sequences, "global-batch", "sequences per step, instead of --micro-batches").Check(func() error {
			c.globalBatch = &sequences
			return nil
		}),
		param.Int(&p.Steps, "steps", "training steps"),
		param.Int(&p.DtypeBytes, "dtype-bytes", "bytes per weight, activation or gradient"),
		param.Bool(&p.Causal, "causal", "skip the masked half of the attention scores"),
		param.Int(&p.TP, "tp", "tensor-parallel ranks per group"),
		param.Bool(&p.SequenceParallel, "sequence-parallel",
			"divide tokens between matrix operations among tensor-parallel ranks"),
		param.Int(&p.DP, "dp", "data-parallel replicas"),
		param.Int(&p.EP, "ep", "expert-parallel ranks; divides --dp and --experts"),
		param.Int(&p.PP, "pp", "pipeline stages"),
		param.Enum(&p.Order, "order",
			"order of rank dimensions; consecutive ranks differ in the first").Placeholder("dims").Check(func() error {
			c.ordered = true
			return nil
		}),
		param.Dims(&p.NetworkDims, "network-dims",
			"sizes of the network's dimensions, such as 16x8x4, the first varying fastest; with --dims"),
		param.Enum(&p.Dims, "dims", "network dimensions of each parallelism, such as tp=0,dp=1+2, or auto: "+
			"collectives involve them instead of communicators").Placeholder("dims"),
		param.Bool(&p.DimsSplit, "dims-split",
			"let --dims auto cut dimensions in two, for networks such as 'Switch(16*32)'"),
		param.Int(&p.ZeRO, "zero",
			"ZeRO stage; divide among replicas: 1 optimizer states, 2 also gradients, "+
				"3 also parameters (FSDP)"),
		param.Bool(&p.Offload, "offload",
			"keep parameters, gradients and optimizer states in remote memory, with --zero 3"),
		param.OneOf(&p.Pool, "pool",
			"parameters in a memory pool of all ranks, with their gradients and optimizer states",
			PoolNone, PoolExperts, PoolAll),
		param.OneOf(&p.PoolGather, "pool-gather",
			"where pooled parameters are gathered and gradients reduced: network (collectives), switch (the memory's "+
				"switches)", GatherInNetwork, GatherInSwitch),
		param.OneOf(&p.Schedule, "schedule", "pipeline schedule", OneFOneB, GPipe, Interleaved),
		param.Int(&p.VirtualStages, "virtual-stages", "model parts per stage, for --schedule interleaved"),
		param.OneOf(&p.Recompute, "recompute",
			"recomputed activations: none, selective (the core of the attention), full (every layer)",
			NoRecompute, Selective, Full),
		param.Bool(&p.ConcurrentCollectives, "concurrent-collectives",
			"let collectives of different communicators overlap"),
		param.FLOPS(&p.PeakFlops, "peak-flops",
			"peak rate per accelerator, such as 312TFLOPS; gives calcs a duration, with --mem-bw"),
		param.Bandwidth(&p.MemoryBandwidth, "mem-bw",
			"memory bandwidth per accelerator, such as 2TB/s; gives calcs a duration, with --peak-flops"),
	)
}

// params describes the parameters that presets set.
func (m *Model) params() param.Set {
	return param.Set{
		param.Int(&m.Layers, "layers", "number of layers"),
		param.Int(&m.Hidden, "hidden", "elements per token between layers; a multiple of --heads"),
		param.Int(&m.FFN, "ffn", "elements per token inside the MLP; 0: 4 times --hidden"),
		param.Int(&m.Heads, "heads", "attention heads"),
		param.Int(&m.KVHeads, "kv-heads", "key and value heads (grouped-query attention); 0: as many as --heads"),
		param.Int(&m.Vocab, "vocab", "vocabulary size; 0: no embedding and no output layer"),
		param.Int(&m.Seq, "seq", "tokens per sequence"),
		param.Bool(&m.GELU, "gelu", "use an MLP of two matrices with GELU instead of three with SwiGLU"),
		param.Bool(&m.Biases, "biases", "add biases to linear layers, and use LayerNorm instead of RMSNorm"),
		param.Bool(&m.Learned, "learned-positions", "use a learned position table of --seq rows"),
		param.Bool(&m.Tied, "tied", "use the embedding table as the output layer"),
		param.Int(&m.Experts, "experts", "experts per layer; 0: dense layers"),
		param.Int(&m.MoEEvery, "moe-every", "distance of layers with experts, such as 2: every second layer; "+
			"the others are dense").Default("1"),
		param.Int(&m.TopK, "top-k", "experts per token"),
	}
}

// usePreset sets the model to the preset. Source returns the error for an unknown one.
func (c *Config) usePreset() error {
	if c.preset == "" {
		return nil
	}
	m, err := Preset(c.preset)
	if c.unknown = err; err == nil {
		c.model.Model = m
	}
	return nil
}

// Source returns the trace.
func (c *Config) Source(env *generator.Env) (dag.Source, error) {
	p := c.model
	if c.unknown != nil {
		return nil, fmt.Errorf("--preset: %w", c.unknown)
	}
	if c.globalBatch != nil {
		if err := p.SetGlobalBatch(*c.globalBatch); err != nil {
			return nil, err
		}
	}
	if p.Dims.given() && !p.Dims.Auto && !c.ordered {
		p.Order = p.Dims.Order()
	}
	p.Context = env.OrEmpty().Context
	s, err := NewSource(p)
	if err == nil && p.SharesHeads() {
		env.Warnf("%d heads on %d tensor-parallel ranks: the trace lacks the messages between ranks that share a head",
			p.Heads, p.TP)
	}
	return generator.From(s, err)
}
