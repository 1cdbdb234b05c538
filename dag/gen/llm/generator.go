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
	globalBatch *int64 // nil: not given
}

// Params describes the parameters. The preset stands first: others change it.
func (c *Config) Params() param.Set {
	p := &c.model
	preset := param.String(&c.preset, "preset", "published model").Placeholder("name").Check(c.usePreset)
	preset.Choices = Presets()
	set := append(param.Set{preset}, p.Model.params()...)
	var sequences int64
	return append(set,
		param.Int(&p.MicroBatch, "micro-batch", "sequences of a micro-batch"),
		param.Int(&p.MicroBatches, "micro-batches", "micro-batches per data-parallel replica and step"),
		param.Int(&sequences, "global-batch", "sequences per step, in place of --micro-batches").Check(func() error {
			c.globalBatch = &sequences
			return nil
		}),
		param.Int(&p.Steps, "steps", "number of steps"),
		param.Int(&p.DtypeBytes, "dtype-bytes", "bytes of a weight, activation or gradient"),
		param.Bool(&p.Causal, "causal", "skip the attention scores that the mask hides, half of them"),
		param.Int(&p.TP, "tp", "tensor-parallel ranks"),
		param.Bool(&p.SequenceParallel, "sequence-parallel",
			"divide the tokens between the matrices among tensor-parallel ranks"),
		param.Int(&p.DP, "dp", "data-parallel ranks"),
		param.Int(&p.EP, "ep", "expert-parallel ranks, among the data-parallel ones"),
		param.Int(&p.PP, "pp", "pipeline stages"),
		param.Enum(&p.Order, "order", "dimensions of ranks; neighbours differ in the first one").Placeholder("dims"),
		param.Int(&p.ZeRO, "zero",
			"data divided among data-parallel ranks: 1 states of the optimizer, 2 also gradients, "+
				"3 also parameters (FSDP)"),
		param.Bool(&p.Offload, "offload",
			"keep parameters, gradients and states of the optimizer in remote memory, with --zero 3"),
		param.OneOf(&p.Schedule, "schedule", "order of passes on a stage", OneFOneB, GPipe, Interleaved),
		param.Int(&p.VirtualStages, "virtual-stages", "parts of the model per stage, for the interleaved schedule"),
		param.OneOf(&p.Recompute, "recompute",
			"recomputed activations: none, selective (the attention's core) or full", NoRecompute, Selective, Full),
		param.Bool(&p.ConcurrentCollectives, "concurrent-collectives", "let collectives of different groups overlap"),
		param.FLOPS(&p.PeakFlops, "peak-flops",
			"floating-point operations per second of an accelerator, such as 312TFLOPS, for durations of calcs"),
		param.Bandwidth(&p.MemoryBandwidth, "mem-bw",
			"bandwidth of an accelerator's memory, such as 2TB/s, for durations of calcs"),
	)
}

// params describes the parameters that presets set.
func (m *Model) params() param.Set {
	return param.Set{
		param.Int(&m.Layers, "layers", "number of layers"),
		param.Int(&m.Hidden, "hidden", "elements of a token between layers"),
		param.Int(&m.FFN, "ffn", "elements inside the MLP; 0: four times --hidden"),
		param.Int(&m.Heads, "heads", "heads of the attention"),
		param.Int(&m.KVHeads, "kv-heads", "heads of keys and values; 0: as many as --heads"),
		param.Int(&m.Vocab, "vocab", "size of the vocabulary; 0: neither embedding nor output layer"),
		param.Int(&m.Seq, "seq", "tokens of a sequence"),
		param.Bool(&m.GELU, "gelu", "build the MLP of two matrices with GELU between them, not of three with SwiGLU"),
		param.Bool(&m.Biases, "biases", "linear layers have biases, norms are LayerNorms"),
		param.Bool(&m.Learned, "learned-positions", "positions are a learned table"),
		param.Bool(&m.Tied, "tied", "the output layer uses the table of the embedding"),
		param.Int(&m.Experts, "experts", "experts of each layer; 0: dense layers"),
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
	s, err := NewSource(p)
	if err == nil && p.SharesHeads() {
		env.Warnf("%d heads on %d tensor-parallel ranks: the messages between ranks that share a head are left out",
			p.Heads, p.TP)
	}
	return generator.From(s, err)
}
