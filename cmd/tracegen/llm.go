// This file binds the generator dag/gen/llm to its flags.

package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag/gen/llm"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

func newLLM(p *cli.Program) *cobra.Command {
	var g generation
	var preset string
	var globalBatch int64
	params := llm.Default()
	cmd := &cobra.Command{
		Use:   "llm",
		Short: "training steps of a transformer under data, tensor, pipeline and expert parallelism",
		Long: `Llm makes a trace of training steps of a transformer: for each rank the calcs of each layer, with
their operations and memory traffic, the collectives of data, tensor, expert and ZeRO parallelism,
and the messages between pipeline stages. Collectives stay collectives unless --lower is given.

Calcs have no durations, for how long they take is the machine's to say, unless --peak-flops and
--mem-bw describe it. Without --preset the model is llama-7b; other flags change a preset.`,
		Example: `  tracegen llm --preset llama-70b --tp 8 --pp 4 --dp 16 --global-batch 1024 -o llama.parquet
  tracegen llm --preset mixtral-8x7b --tp 2 --dp 32 --ep 8 --zero 1 -o mixtral.parquet
  tracegen llm --dp 64 --zero 3 --recompute full --peak-flops 312TFLOPS --mem-bw 2TB/s | simulate --backend ideal`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := setPreset(&params.Model, preset, cmd.Flags()); err != nil {
				return err
			}
			if cmd.Flags().Changed("global-batch") {
				if err := params.SetGlobalBatch(globalBatch); err != nil {
					return cli.Usagef("%v", err)
				}
			}
			return g.runSource(nil, func() (format.Source, error) {
				s, err := llm.NewSource(params)
				if err == nil && params.SharesHeads() {
					p.Warn("%d heads on %d tensor-parallel ranks: what ranks that share a head tell each other is left out",
						params.Heads, params.TP)
				}
				return s, err
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&preset, "preset", preset, "published model: "+strings.Join(llm.Presets(), ", "))
	modelFlags(flags, &params.Model)

	flags.Int64Var(&params.MicroBatch, "micro-batch", params.MicroBatch, "sequences of a micro-batch")
	flags.IntVar(&params.MicroBatches, "micro-batches", params.MicroBatches,
		"micro-batches of each data-parallel replica in a step")
	flags.Int64Var(&globalBatch, "global-batch", globalBatch, "sequences of a step, in place of --micro-batches")
	flags.IntVar(&params.Steps, "steps", params.Steps, "number of steps")
	flags.Int64Var(&params.DtypeBytes, "dtype-bytes", params.DtypeBytes, "bytes of a weight, activation or gradient")
	flags.BoolVar(&params.Causal, "causal", params.Causal,
		"the attention skips the scores that the mask hides, half of them")

	flags.IntVar(&params.TP, "tp", params.TP, "tensor-parallel ranks")
	flags.BoolVar(&params.SequenceParallel, "sequence-parallel", params.SequenceParallel,
		"tensor-parallel ranks divide the tokens between the matrices")
	flags.IntVar(&params.DP, "dp", params.DP, "data-parallel ranks")
	flags.IntVar(&params.EP, "ep", params.EP, "expert-parallel ranks, among the data-parallel ones")
	flags.IntVar(&params.PP, "pp", params.PP, "pipeline stages")
	flags.Var((*rankOrder)(&params.Order), "order", "dimensions of ranks, the one in which neighbours differ first")
	flags.IntVar(&params.ZeRO, "zero", params.ZeRO,
		"what data-parallel ranks divide: 1 states of the optimizer, 2 also gradients, 3 also parameters (FSDP)")
	flags.BoolVar(&params.Offload, "offload", params.Offload,
		"parameters, gradients and states of the optimizer are in remote memory, with --zero 3")
	choiceVar(cmd, &params.Schedule, "schedule", []llm.Schedule{llm.OneFOneB, llm.GPipe, llm.Interleaved},
		"order of passes on a stage")
	flags.IntVar(&params.VirtualStages, "virtual-stages", params.VirtualStages,
		"parts of the model on each stage, for the interleaved schedule")
	choiceVar(cmd, &params.Recompute, "recompute", []llm.Recompute{llm.NoRecompute, llm.Selective, llm.Full},
		"activations that are computed again: none, those of the attention's core, all")
	flags.BoolVar(&params.ConcurrentCollectives, "concurrent-collectives", params.ConcurrentCollectives,
		"collectives of different groups do not wait for each other")

	flags.Var((*cli.FlopRate)(&params.PeakFlops), "peak-flops",
		"operations that an accelerator does in a second, such as 312TFLOPS, for durations of calcs")
	flags.Var((*cli.Bandwidth)(&params.MemoryBandwidth), "mem-bw",
		"bandwidth of an accelerator's memory, such as 2TB/s, likewise")
	g.register(p, cmd)
	cmd.MarkFlagsMutuallyExclusive("micro-batches", "global-batch")
	cli.CompleteWith(cmd, "preset", llm.Presets())
	return cmd
}

// modelFlags defines the flags of what presets set.
func modelFlags(flags *pflag.FlagSet, m *llm.Model) {
	flags.IntVar(&m.Layers, "layers", m.Layers, "layers")
	flags.Int64Var(&m.Hidden, "hidden", m.Hidden, "elements of a token between layers")
	flags.Int64Var(&m.FFN, "ffn", m.FFN, "elements inside the MLP; 0: four times --hidden")
	flags.Int64Var(&m.Heads, "heads", m.Heads, "heads of the attention")
	flags.Int64Var(&m.KVHeads, "kv-heads", m.KVHeads, "heads of keys and values; 0: as many as --heads")
	flags.Int64Var(&m.Vocab, "vocab", m.Vocab, "tokens there are; 0: neither embedding nor output layer")
	flags.Int64Var(&m.Seq, "seq", m.Seq, "tokens of a sequence")
	flags.BoolVar(&m.GELU, "gelu", m.GELU, "the MLP is two matrices with GELU between them, not three with SwiGLU")
	flags.BoolVar(&m.Biases, "biases", m.Biases, "linear layers have biases, norms are LayerNorms")
	flags.BoolVar(&m.Learned, "learned-positions", m.Learned, "positions are a learned table")
	flags.BoolVar(&m.Tied, "tied", m.Tied, "the output layer uses the table of the embedding")
	flags.Int64Var(&m.Experts, "experts", m.Experts, "experts of each layer; 0: it is dense")
	flags.Int64Var(&m.TopK, "top-k", m.TopK, "experts that a token goes to")
}

// setPreset makes the model that of the preset, if there is one, but for what flags set.
func setPreset(m *llm.Model, preset string, flags *pflag.FlagSet) error {
	if preset == "" {
		return nil
	}
	given := *m
	var err error
	if *m, err = llm.Preset(preset); err != nil {
		return cli.Usagef("--preset: %v", err)
	}
	copies := pflag.NewFlagSet("", pflag.ContinueOnError)
	modelFlags(copies, &given)
	values := map[string]string{}
	copies.VisitAll(func(f *pflag.Flag) { values[f.Name] = f.Value.String() })
	flags.Visit(func(f *pflag.Flag) {
		if value, ok := values[f.Name]; ok {
			err = errors.Join(err, f.Value.Set(value))
		}
	})
	return err
}

// rankOrder is a flag whose value is an order of dimensions.
type rankOrder llm.Order

func (o *rankOrder) String() string { return llm.Order(*o).String() }
func (o *rankOrder) Type() string   { return "dims" }

func (o *rankOrder) Set(s string) (err error) {
	order, err := llm.ParseOrder(s)
	if err == nil {
		*o = rankOrder(order)
	}
	return err
}
