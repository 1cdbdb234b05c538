package tracegen

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/llm"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestLLMFlags checks that every flag sets its parameter, and overrides a preset in any order.
func TestLLMFlags(t *testing.T) {
	model := llm.Model{
		Layers: 4, Hidden: 64, FFN: 96, Heads: 8, KVHeads: 4, Vocab: 100, Seq: 32, GELU: true, Biases: true, Learned: true,
		Tied: true, Experts: 4, TopK: 2,
	}
	const modelFlags = "--layers 4 --hidden 64 --ffn 96 --heads 8 --kv-heads 4 --vocab 100 --seq 32 --gelu --biases " +
		"--learned-positions --tied --experts 4 --top-k 2 "
	short := llm.Default()
	short.Model, _ = llm.Preset("mixtral-8x7b")
	short.Layers, short.Vocab, short.DP = 1, 0, 2
	plain := llm.Default()
	plain.DP = 1
	gpt := plain
	gpt.Model, _ = llm.Preset("gpt3-175b")
	gpt.Layers, gpt.Tied, gpt.Learned = 2, false, false
	for args, params := range map[string]llm.Params{
		"--dp 1": plain,
		"--dp 1 --layers 2 --tied=false --preset gpt3-175b --learned-positions=false": gpt,
		"--dp 2 --layers 1 --preset mixtral-8x7b --vocab 0":                           short,
		modelFlags + "--micro-batch 2 --micro-batches 6 --steps 2 --dtype-bytes 4 --causal --tp 2 --sequence-parallel " +
			"--dp 4 --ep 2 --pp 2 --order pp,dp,tp --zero 3 --offload --schedule interleaved --virtual-stages 2 " +
			"--recompute full --peak-flops 312TFLOPS --mem-bw 2039GB/s": {
			Model: model, MicroBatch: 2, MicroBatches: 6, Steps: 2, DtypeBytes: 4, Causal: true,
			TP: 2, SequenceParallel: true, DP: 4, EP: 2, PP: 2, Order: llm.Order{llm.Pipeline, llm.Data, llm.Tensor},
			ZeRO: 3, Offload: true, Schedule: llm.Interleaved, VirtualStages: 2, Recompute: llm.Full,
			PeakFlops: 312e12, MemoryBandwidth: 2039e9,
		},
		modelFlags + "--dp 2 --micro-batch 2 --global-batch 12 --tp 2 --concurrent-collectives --schedule GPipe --pp 2 " +
			"--peak-flops 1.5e12 --mem-bw 1ps/B --recompute selective": {
			Model: model, MicroBatch: 2, MicroBatches: 3, Steps: 1, DtypeBytes: 2, TP: 2, DP: 2, EP: 1, PP: 2,
			Order: llm.DefaultOrder, Schedule: llm.GPipe, VirtualStages: 1, Recompute: llm.Selective,
			ConcurrentCollectives: true, PeakFlops: 15e11, MemoryBandwidth: 1e12,
		},
	} {
		want, err := readAll(llm.NewSource(params))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := generate(t, append([]string{"llm"}, strings.Fields(args)...)...)
		same(t, got, want)
		for rank := range want.Ranks {
			for i := range want.Ranks[rank].Len() {
				g, w := got.Ranks[rank].Deps.Of(i), want.Ranks[rank].Deps.Of(i)
				if len(g) != len(w) {
					t.Fatalf("%s: rank %d, op %d depends on %v before, want %v", args, rank, i, g, w)
				}
			}
		}
	}
}

func TestLLMUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--preset bert":                         `--preset: no model "bert", expected one of llama-7b, `,
		"--global-batch 12":                     "global batch is 12, expected a multiple of micro-batch x dp, 8",
		"--global-batch 8 --micro-batches 2":    "--global-batch and --micro-batches exclude each other",
		"--schedule 2f2b":                       "expected one of 1f1b, gpipe, interleaved",
		"--recompute all":                       "expected one of none, selective, full",
		"--order tp,pp":                         "expected tp, dp and pp in some order",
		"--peak-flops 0 --mem-bw 1TB/s":         "expected 1 to 10^18 operations in a second",
		"--peak-flops fast":                     "expected 1 to 10^18 operations in a second",
		"--peak-flops NaN":                      "expected 1 to 10^18 operations in a second",
		"--peak-flops 1TFLOPS":                  "expected both or neither",
		"--mem-bw 5 --peak-flops 1TFLOPS":       "expected a rate",
		"--mem-bw 0ps/B --peak-flops 1TFLOPS":   "expected a rate of a memory",
		"--mem-bw 1000s/B --peak-flops 1TFLOPS": "expected 1 to 2^63-1 bytes in a second",
		"--tp 3":                                "expected multiples of tp, 3",
		"--zero 4":                              "zero is 4, expected 0..3",
	} {
		got := clitest.Run(newCommand, append([]string{"llm"}, strings.Fields(args)...)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracegen llm %s: exit status %d, stderr %q, expected %q", args, got.Status, got.Stderr, want)
		}
	}
	got := clitest.Run(newCommand, strings.Fields("llm --preset transformer-1t --layers 1 --tp 128 --dp 1")...)
	if got.Status != 0 || !strings.Contains(got.Stderr, "warning: 160 heads on 128 tensor-parallel ranks") {
		t.Errorf("exit status %d, stderr %q", got.Status, got.Stderr)
	}
}
