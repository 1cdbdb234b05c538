package llm

import (
	"context"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
	"github.com/tracedag/tracedag/sim/ideal"
	"github.com/tracedag/tracedag/sim/loggops"
)

// small returns a run of a small model on the given number of ranks, with durations. All sizes are multiples of 8.
func small(tp, dp, pp int) Params {
	p := Default()
	p.Model = Model{Layers: 4, Hidden: 64, FFN: 160, Heads: 8, Vocab: 320, Seq: 32}
	p.TP, p.DP, p.PP, p.MicroBatches = tp, dp, pp, 4
	p.PeakFlops, p.MemoryBandwidth = 1e12, 1e12
	return p
}

// sparse makes the model one of experts.
func sparse(p Params, ep int) Params {
	p.Experts, p.TopK, p.EP = 8, 2, ep
	return p
}

// grid returns runs of all kinds of parallelism, small enough to be replayed.
func grid() (all []Params) {
	for _, shape := range [][3]int{
		{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}, {1, 2, 2}, {2, 1, 4}, {1, 4, 4}, {2, 2, 2}, {4, 2, 2},
	} {
		for zero := range 4 {
			for variant := range 12 {
				p := small(shape[0], shape[1], shape[2])
				p.ZeRO = zero
				p.SequenceParallel = variant&1 != 0
				p.Recompute = Recompute(variant % 3)
				p.Schedule = [...]Schedule{OneFOneB, GPipe, OneFOneB, OneFOneB}[variant/3]
				p.Biases, p.Learned, p.Tied, p.GELU = variant&2 != 0, variant&4 != 0, variant&2 != 0, variant&8 != 0
				if p.PP > 1 && variant/3 == 3 {
					p.Schedule, p.VirtualStages, p.Layers = Interleaved, 2, 8
				}
				if variant/3 >= 2 {
					p = sparse(p, min(p.DP, 2))
				}
				if variant == 4 {
					p.Order = Order{Pipeline, Tensor, Data}
				}
				p.Steps = 1 + variant/6
				p.Offload = zero == 3 && variant%4 == 0
				all = append(all, p)
			}
		}
	}
	return all
}

func mustGenerate(t testing.TB, p Params) *dag.Trace {
	t.Helper()
	tr, err := readAll(NewSource(p))
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return tr
}

// TestGrid checks that traces have nothing wrong, are the same rank by rank, run to their end, and do so too if each
// rank has one collective or message on its way at a time, whatever takes how long.
func TestGrid(t *testing.T) {
	for i, p := range grid() {
		if testing.Short() && i%7 != 0 || os.Getenv("TRACEDAG_LONG") == "" && i%3 != 0 {
			continue
		}
		what := fmt.Sprintf("run %d, %+v", i, p)
		tr := mustGenerate(t, p)
		if problems, n := dag.ValidateLimit(tr, 3); n > 0 {
			t.Fatalf("%s: %d problems: %v", what, n, problems)
		}
		checkStreamed(t, what, p, tr)
		timeline, err := ideal.Run(tr)
		if err != nil || !timeline.Result.Complete {
			t.Fatalf("%s: ideal: not complete, error %v", what, err)
		}
		for seed := range uint64(3) {
			if stuck := oneAtATime(tr, seed); stuck != "" {
				t.Fatalf("%s: seed %d: %s", what, seed, stuck)
			}
		}
	}
}

// TestConcurrent checks that the replay of TestGrid finds ranks that wait for each other, where they can.
func TestConcurrent(t *testing.T) {
	p := small(2, 2, 1)
	p.SequenceParallel, p.ConcurrentCollectives = true, true
	tr := mustGenerate(t, p)
	if problems := dag.Validate(tr); len(problems) > 0 {
		t.Fatal(problems)
	}
	timeline, err := ideal.Run(tr)
	if err != nil || !timeline.Result.Complete {
		t.Fatalf("ideal: not complete, error %v", err)
	}
	stuck := 0
	for seed := range uint64(50) {
		if oneAtATime(tr, seed) != "" {
			stuck++
		}
	}
	if stuck == 0 {
		t.Error("collectives of different groups never get in each other's way")
	}
}

func checkStreamed(t *testing.T, what string, p Params, tr *dag.Trace) {
	t.Helper()
	s, err := NewSource(p)
	if err != nil {
		t.Fatal(err)
	}
	var ranks []*dag.Rank
	ops, deps := int64(0), 0
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	read := s.NewReader(dag.All)
	for _, b := range h.Batches {
		some, err := read(b)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, some...)
		ops += b.Ops
		deps += int(b.Deps)
	}
	for i := range ranks {
		deps -= len(ranks[i].Deps.Off)
	}
	if !reflect.DeepEqual(ranks, tr.Ranks) {
		t.Errorf("%s: not the same rank by rank", what)
	}
	if ops != tr.Ops() || h.Ops != ops || deps != 0 {
		t.Errorf("%s: %d ops, %d of the source, %d of the batches, %d dependencies too many", what, tr.Ops(), h.Ops,
			ops, deps)
	}
}

// TestBackwardAfterForward checks that the backward pass begins with the results of the forward pass, also without an
// output layer, and in the last stage only.
func TestBackwardAfterForward(t *testing.T) {
	for _, pp := range []int{1, 2} {
		p := small(2, 1, pp)
		p.Vocab, p.MicroBatches = 0, 1
		tr := mustGenerate(t, p)
		for rank := range tr.Ranks {
			r := tr.Ranks[rank]
			last := -1 // collective of the forward pass
			for op := range r.Len() {
				name := r.Name.At(op)
				if r.Kind[op] == dag.Coll {
					last = op
				}
				if !strings.HasSuffix(name, "input gradients") {
					continue
				}
				if got, want := slices.Contains(r.Deps.Of(op), int32(op-last)), rank >= len(tr.Ranks)-2; got != want {
					t.Errorf("pp %d, rank %d: %q depends on the last collective before: %t, expected %t", pp, rank, name, got, want)
				}
				break
			}
		}
	}
}

// TestMessages replays runs as messages that wait for their receives, and as messages that do not.
func TestMessages(t *testing.T) {
	choice, err := collective.ParseChoice("default")
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range grid() {
		if i%5 != 0 {
			continue
		}
		p.Offload = false // that backend has no memory
		lowered, err := collective.Lower(context.Background(), mustGenerate(t, p), choice)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		params, err := loggops.Preset("default")
		if err != nil {
			t.Fatal(err)
		}
		for _, params.S = range []int64{0, 1 << 40} {
			replay, err := loggops.Compile(dag.FromTrace(lowered), loggops.Strict, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := replay.Run(loggops.Options{Params: params}); err != nil || !r.Complete {
				t.Errorf("%+v: S = %d: not complete, error %v", p, params.S, err)
			}
		}
	}
}

// TestParameters compares the presets with their publications.
func TestParameters(t *testing.T) {
	for name, want := range map[string]int64{
		"llama-7b":     6_738_415_616, // Touvron et al. 2023, and the checkpoints
		"llama-13b":    13_015_864_320,
		"llama-70b":    68_976_648_192,
		"llama3-8b":    8_030_261_248, // Grattafiori et al. 2024
		"llama3-70b":   70_553_706_496,
		"llama3-405b":  405_853_388_800,
		"mixtral-8x7b": 46_702_792_704, // Jiang et al. 2024
		// Layers of 4 h^2 + 8 (3 h f + h) + 2 h, or 2 h^2 + 2 h kv h/a + ... with groups; 2 V h + h
		"moe-8x13b": 40*(4*5120*5120+8*(3*5120*13824+5120)+2*5120) + 2*32000*5120 + 5120,
		"moe-8x70b": 80*(2*8192*8192+2*8192*8192/8+8*(3*8192*28672+8192)+2*8192) + 2*32000*8192 + 8192,
	} {
		if m, err := Preset(name); err != nil || m.Parameters() != want {
			t.Errorf("%s has %d parameters, expected %d, error %v", name, m.Parameters(), want, err)
		}
	}
	// Narayanan et al. 2021, equation 2, to which the last norm is added.
	for name, billions := range map[string]float64{
		"gpt3-175b": 174.6, "transformer-1t": 1008.0, "msft-1t": 1001.56,
	} {
		m, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		l, h := int64(m.Layers), m.Hidden
		want := 12*l*h*h + 13*l*h + (m.Vocab+m.Seq)*h + 2*h
		if got := m.Parameters(); got != want || math.Abs(float64(got)/1e9-billions) > 0.05 {
			t.Errorf("%s has %d parameters, expected %d, %v billion", name, got, want, billions)
		}
	}
	// 24B+MoE-128 of DeepSpeed's tutorial has 1,046.9 billion parameters: attention, 15 dense MLPs and 15 x 128 experts.
	m, err := Preset("moe-1t")
	if err != nil {
		t.Fatal(err)
	}
	l, h := int64(m.Layers), m.Hidden
	matrices := l*4*h*h + l/2*8*h*h + l/2*128*8*h*h
	rest := l/2*128*h + (2*l+1)*h + 2*m.Vocab*h // routers, norms, embedding and output
	if got := m.Parameters(); matrices != 1_046_898_278_400 || got != matrices+rest {
		t.Errorf("moe-1t has %d parameters, expected %d in matrices of layers and %d others", got, matrices, rest)
	}
	if _, err := Preset("llama"); err == nil {
		t.Error("there is a preset llama")
	}
}

// TestRankParameters adds up the parameters that the optimizers of one data-parallel replica update.
func TestRankParameters(t *testing.T) {
	for _, p := range grid() {
		p.Steps = 1
		tr := mustGenerate(t, p)
		sum := int64(0)
		for rank := range tr.Ranks {
			flops := total(tr, rank, func(op *dag.Op) int64 {
				if op.Name != "optimizer" {
					return 0
				}
				return op.Flops
			})
			if flops%optimizerFlops != 0 {
				t.Errorf("%+v: the optimizer has %d operations", p, flops)
			}
			sum += flops / optimizerFlops
		}
		// Present on all tensor-parallel ranks: norms, router, positions and the biases of sums.
		each := (2*int64(p.Layers) + 1) * (p.Hidden + p.bias(p.Hidden))
		each += int64(p.Layers) * p.Hidden * p.Experts
		each += int64(p.Layers) * p.bias(p.Hidden+p.Hidden*max(p.Experts, 1))
		if p.Learned {
			each += p.Seq * p.Hidden
		}
		want := p.Parameters() + int64(p.TP-1)*each
		if p.Tied && p.PP > 1 {
			want += p.Vocab * p.Hidden
		}
		if p.ZeRO > 0 { // all parts are divided without a rest
			if sum != want {
				t.Errorf("%+v: %d parameters on all ranks, expected %d", p, sum, want)
			}
			continue
		}
		dense, experts := want, int64(0)
		if p.EP > 1 {
			perExpert := 3 * p.Hidden * p.FFN
			if p.GELU {
				perExpert = 2 * p.Hidden * p.FFN
			}
			experts = int64(p.Layers) * p.Experts * perExpert
			experts += int64(p.Layers) * p.Experts * p.bias(p.gates()*p.FFN+int64(p.TP)*p.Hidden)
			dense -= experts
		}
		if want = dense*int64(p.DP) + experts*int64(p.DP/p.EP); sum != want {
			t.Errorf("%+v: %d parameters on all ranks, expected %d", p, sum, want)
		}
	}
}

// total adds up a field of the ops of a rank.
func total(tr *dag.Trace, rank int, of func(op *dag.Op) int64) (sum int64) {
	r := tr.Ranks[rank]
	for i := range r.Len() {
		op := r.Op(i)
		sum += of(&op)
	}
	return sum
}

// modelFlops adds up the operations of the matrices on all ranks.
func modelFlops(tr *dag.Trace) (flops int64) {
	for rank := range tr.Ranks {
		flops += total(tr, rank, func(op *dag.Op) int64 {
			if op.Kind != dag.Calc || op.Name == "optimizer" || strings.HasPrefix(op.Name, "embedding") {
				return 0
			}
			return op.Flops
		})
	}
	return flops
}

// TestMegatronFlops compares with Narayanan et al. 2021, equation 3, which holds for full recomputation:
// F = 96 B s l h^2 (1 + s / 6h + V / 16 l h), and with what Korthikanti et al. 2022 change in it for less.
func TestMegatronFlops(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 1}, {4, 1, 1}, {1, 2, 2}, {2, 2, 4}} {
		for _, as := range []Recompute{NoRecompute, Selective, Full} {
			for _, sequence := range []bool{false, true} {
				p := small(shape[0], shape[1], shape[2])
				p.GELU, p.FFN, p.Recompute, p.SequenceParallel, p.ZeRO, p.MicroBatch = true, 0, as, sequence, 3, 3
				b, s, l, h, v := p.MicroBatch*int64(p.MicroBatches*p.DP), p.Seq, int64(p.Layers), p.Hidden, p.Vocab
				want := map[Recompute]int64{
					NoRecompute: 72*b*s*l*h*h + 12*b*s*s*l*h + 6*b*s*h*v,
					Selective:   72*b*s*l*h*h + 16*b*s*s*l*h + 6*b*s*h*v,
					Full:        96*b*s*l*h*h + 16*b*s*s*l*h + 6*b*s*h*v,
				}[as]
				if got := modelFlops(mustGenerate(t, p)); got != want {
					t.Errorf("%+v: %d operations, expected %d", p, got, want)
				}
			}
		}
	}
	// The paper's own numbers: its equation 3 for GPT-3 with 1536 sequences.
	p := Default()
	p.Model, _ = Preset("gpt3-175b")
	p.Vocab, p.Recompute, p.DP, p.MicroBatches = 51200, Full, 1, 8
	h, s := float64(p.Hidden), float64(p.Seq)
	want := 96 * 8 * s * 96 * h * h * (1 + s/(6*h) + 51200/(16*96*h))
	if got := float64(modelFlops(mustGenerate(t, p))); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%v operations, expected %v", got, want)
	}
}

// TestSixND compares with 6 N D and the attention: 6 operations for each parameter of a matrix and token, of experts
// for those that a token goes to, and 12 l h s for the scores.
func TestSixND(t *testing.T) {
	for _, name := range Presets() {
		p := Default()
		var err error
		if p.Model, err = Preset(name); err != nil {
			t.Fatal(err)
		}
		p.DP = 1
		got := modelFlops(mustGenerate(t, p))
		l, h, tokens := int64(p.Layers), p.Hidden, p.Seq
		active := p.Parameters()
		if p.Experts > 0 {
			active -= l / int64(max(p.MoEEvery, 1)) * (p.Experts - p.TopK) * (p.gates() + 1) * h * p.FFN
		}
		vectors := (2*l + 1) * (h + p.bias(h))
		vectors += l * p.bias(p.Hidden+2*h*p.kvHeads()/p.Heads+h+p.gates()*p.ffn()+h)
		tables := int64(0)
		if !p.Tied {
			tables = p.Vocab * h
		}
		if p.Learned {
			tables += p.Seq * h
		}
		if want := (6*(active-vectors-tables) + 12*l*h*p.Seq) * tokens; got != want {
			t.Errorf("%s: %d operations, expected %d", name, got, want)
		}
		if ratio := float64(got-12*l*h*p.Seq*tokens) / float64(6*active*tokens); ratio < 0.93 || ratio > 1 {
			t.Errorf("%s: %v of 6 N D", name, ratio)
		}
		p.Causal = true
		if causal := modelFlops(mustGenerate(t, p)); got-causal != 6*l*h*p.Seq*tokens {
			t.Errorf("%s: the mask hides %d operations", name, got-causal)
		}
	}
}

// contributed adds up the bytes that a rank contributes to collectives on communicators of some size.
func contributed(tr *dag.Trace, rank int, kind dag.Subkind, members int, names string) int64 {
	return total(tr, rank, func(op *dag.Op) int64 {
		if op.Kind != dag.Coll || op.Subkind != kind || tr.Comms[op.Comm].Size() != members ||
			!strings.HasSuffix(op.Name, names) {
			return 0
		}
		return op.Bytes
	})
}

// TestTensorBytes: without sequence parallelism two allreduces in each layer forward and two backward; with it as many
// allgathers and reducescatters, and two more allgathers backward of what the ranks do not keep.
func TestTensorBytes(t *testing.T) {
	for _, as := range []Recompute{NoRecompute, Selective, Full} {
		p := small(4, 1, 1)
		p.Vocab, p.MicroBatch, p.Recompute = 0, 3, as
		b, s, h := p.MicroBatch*int64(p.MicroBatches), p.Seq, p.Hidden
		tensors := b * s * h * p.DtypeBytes * int64(p.Layers)
		forwards, again := int64(1), int64(2)
		if as == Full {
			forwards, again = 2, 0
		}
		tr := mustGenerate(t, p)
		for rank := range tr.Ranks {
			want := tensors * (2*forwards + 2)
			if got := contributed(tr, rank, dag.Allreduce, 4, "tensor parallel"); got != want {
				t.Errorf("recompute %v: %d bytes in allreduces, expected %d", as, got, want)
			}
		}
		p.SequenceParallel = true
		tr = mustGenerate(t, p)
		for rank := range tr.Ranks {
			want := tensors * (2*forwards + 2)
			if got := contributed(tr, rank, dag.ReduceScatter, 4, ""); got != want {
				t.Errorf("recompute %v: %d bytes in reducescatters, expected %d", as, got, want)
			}
			want = tensors / 4 * (2*forwards + 2 + again)
			if got := contributed(tr, rank, dag.Allgather, 4, ""); got != want {
				t.Errorf("recompute %v: %d bytes in allgathers, expected %d", as, got, want)
			}
		}
	}
}

// TestDataBytes checks the bytes that ranks contribute to collectives of data parallelism for their parameters.
func TestDataBytes(t *testing.T) {
	const dp = 4
	for zero, want := range []struct{ allreduce, reducescatter, allgather int64 }{ // times the parameters
		{1, 0, 0},
		{0, 1, 1},
		{0, 4, 1}, // gradients are divided as soon as they are there, in each of the 4 micro-batches
		{0, 4, 8},
	} {
		for _, pp := range []int{1, 2} {
			p := small(2, dp, pp)
			p.ZeRO = zero
			tr := mustGenerate(t, p)
			for rank := range tr.Ranks {
				bytes := total(tr, rank, func(op *dag.Op) int64 {
					if op.Name != "optimizer" {
						return 0
					}
					return op.Flops / optimizerFlops * p.DtypeBytes
				})
				if zero > 0 {
					bytes *= dp
				}
				for kind, want := range map[dag.Subkind]int64{
					dag.Allreduce: want.allreduce * bytes, dag.ReduceScatter: want.reducescatter * bytes,
					dag.Allgather: want.allgather * bytes / dp,
				} {
					if got := contributed(tr, rank, kind, dp, ""); got != want {
						t.Errorf("zero %d, pp %d: rank %d has %d bytes in %v, expected %d", zero, pp, rank, got, kind, want)
					}
				}
			}
		}
	}
}

// TestExpertBytes: two alltoalls of tokens in each layer forward and two backward.
func TestExpertBytes(t *testing.T) {
	for _, sequence := range []bool{false, true} {
		p := sparse(small(2, 8, 1), 4)
		p.SequenceParallel = sequence
		want := 4 * int64(p.Layers) * int64(p.MicroBatches) * p.Seq * p.TopK * p.Hidden * p.DtypeBytes
		inside := want
		if sequence {
			want /= 2
		}
		tr := mustGenerate(t, p)
		for rank := range tr.Ranks {
			if got := contributed(tr, rank, dag.Alltoall, 4, "expert parallel"); got != want {
				t.Errorf("%d bytes in alltoalls, expected %d", got, want)
			}
			// The experts' gradients go to the one rank of the 8 that has the same experts, and the same part of them.
			experts := int64(p.Layers) * p.Experts / 4 * 3 * p.Hidden * p.FFN / 2 * p.DtypeBytes
			if got := contributed(tr, rank, dag.Allreduce, 2, "gradients"); got != experts {
				t.Errorf("%d bytes of gradients of experts, expected %d", got, experts)
			}
			if sequence { // tokens are gathered before the experts, and their results added up behind them
				all := contributed(tr, rank, dag.ReduceScatter, 2, "tensor parallel")
				attention := 2 * int64(p.Layers) * int64(p.MicroBatches) * p.Seq * p.Hidden * p.DtypeBytes
				ends := 2 * int64(p.MicroBatches) * p.Seq * p.Hidden * p.DtypeBytes
				outputs := contributed(tr, rank, dag.ReduceScatter, 2, "output tensor parallel")
				embeddings := contributed(tr, rank, dag.ReduceScatter, 2, "embedding tensor parallel")
				if outputs+embeddings != ends || all-attention-ends != inside/2 {
					t.Errorf("%d bytes in reducescatters, %d of them at the ends; expected %d and %d", all, outputs+embeddings,
						attention+ends+inside/2, ends)
				}
			}
		}
	}
}

// TestPipelineBytes: a micro-batch goes over each boundary of stages once forward and once backward.
func TestPipelineBytes(t *testing.T) {
	for _, sequence := range []bool{false, true} {
		for _, schedule := range []Schedule{OneFOneB, GPipe, Interleaved} {
			p := small(2, 2, 4)
			p.SequenceParallel, p.Schedule, p.Layers = sequence, schedule, 8
			if schedule == Interleaved {
				p.VirtualStages = 2
			}
			each := p.Seq * p.Hidden * p.DtypeBytes
			if sequence {
				each /= 2
			}
			tr := mustGenerate(t, p)
			sent := int64(0)
			for rank := range tr.Ranks {
				sent += total(tr, rank, func(op *dag.Op) int64 {
					if op.Kind != dag.Send {
						return 0
					}
					if op.Bytes != each {
						t.Errorf("a message has %d bytes, expected %d", op.Bytes, each)
					}
					return op.Bytes
				})
			}
			boundaries := int64(p.PP*p.VirtualStages - 1)
			if want := 2 * boundaries * int64(p.MicroBatches*p.TP*p.DP) * each; sent != want {
				t.Errorf("%v: %d bytes sent, expected %d", schedule, sent, want)
			}
		}
	}
}

// TestPool checks what a rank loads and stores with a pool, and the ranks that each access gathers.
func TestPool(t *testing.T) {
	for _, ep := range []int{1, 2} {
		for _, pool := range []Pool{PoolExperts, PoolAll} {
			for _, gather := range []PoolGather{GatherInNetwork, GatherInSwitch} {
				for _, zero := range []int{0, 3} {
					p := sparse(small(1, 4, 1), ep)
					p.ZeRO, p.Pool, p.PoolGather, p.MicroBatches = zero, pool, gather, 1
					tr := mustGenerate(t, p)
					whole := slice{&p.Model, 1, int64(ep)}
					var fetched, stepped int64
					counts := make(map[int64]int64)
					count := func(weights, ranks int64) {
						own := (weights + ranks - 1) / ranks
						if ranks == 1 || gather == GatherInNetwork {
							ranks = 1
						}
						fetched += 2 * own * p.DtypeBytes
						stepped += own * (p.DtypeBytes + 12)
						counts[ranks] += 3 * own * p.DtypeBytes
						counts[1] += 2 * own * (p.DtypeBytes + 12)
					}
					for i := range p.Layers {
						w := whole.layerWeights(i)
						switch {
						case pool == PoolAll && ep == 1:
							count(w.dense+w.experts, 4)
						case pool == PoolAll:
							count(w.dense, 4)
							count(w.experts, 2)
						default:
							count(w.experts, 4/int64(ep))
						}
					}
					if pool == PoolAll && p.Vocab > 0 {
						count(whole.embeddingWeights(), 4)
						count(whole.outputWeights(true), 4)
					}
					loads := total(tr, 1, func(op *dag.Op) int64 {
						if op.Kind != dag.Mem || op.Subkind != dag.Load {
							return 0
						}
						return op.Bytes
					})
					stores := total(tr, 1, func(op *dag.Op) int64 {
						if op.Kind != dag.Mem || op.Subkind != dag.Store {
							return 0
						}
						return op.Bytes
					})
					if loads != fetched+stepped || stores != fetched/2+stepped {
						t.Errorf("ep %d, pool %v, gather %v, zero %d: %d bytes loaded and %d stored, expected %d and %d", ep,
							pool, gather, zero, loads, stores, fetched+stepped, fetched/2+stepped)
					}
					for ranks, want := range counts {
						got := total(tr, 1, func(op *dag.Op) int64 {
							if access, ok := attr.ParseMemAccess(op.Attrs); !ok || access.Gather != ranks {
								return 0
							}
							return op.Bytes
						})
						if got != want {
							t.Errorf("ep %d, pool %v, gather %v, zero %d: %d bytes gather %d parts, expected %d", ep, pool,
								gather, zero, got, ranks, want)
						}
					}
				}
			}
		}
	}
}

// TestOffload: all that a rank has to load and to store, of the parameters that it is in charge of.
func TestOffload(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 1}, {1, 4, 1}, {2, 2, 2}} {
		p := small(shape[0], shape[1], shape[2])
		p.ZeRO, p.Offload, p.Steps = 3, true, 3
		if shape[1] > 1 {
			p = sparse(p, 2)
		}
		tr := mustGenerate(t, p)
		for rank := range tr.Ranks {
			of := func(kind dag.Subkind) int64 {
				return total(tr, rank, func(op *dag.Op) int64 {
					if op.Kind != dag.Mem || op.Subkind != kind {
						return 0
					}
					return op.Bytes
				})
			}
			own := total(tr, rank, func(op *dag.Op) int64 {
				if op.Kind != dag.Calc || op.Name != "optimizer" {
					return 0
				}
				return op.Flops / optimizerFlops
			})
			m, dtype := int64(p.MicroBatches), p.DtypeBytes
			if got, want := of(dag.Load), own*(2*m*dtype+12+dtype); got != want {
				t.Errorf("%+v: rank %d loads %d bytes, expected %d", p, rank, got, want)
			}
			if got, want := of(dag.Store), own*(m*dtype+12+dtype); got != want {
				t.Errorf("%+v: rank %d stores %d bytes, expected %d", p, rank, got, want)
			}
		}
	}
}

// TestBubble: without a network a step takes, besides the optimizer, what a stage computes and the bubble, (p-1)/m of
// that, or (p-1)/(v m) of it.
func TestBubble(t *testing.T) {
	for _, stages := range []int{1, 2, 3, 4, 8} {
		for _, microBatches := range []int{1, 2, 4, 8, 24} {
			for _, schedule := range []Schedule{OneFOneB, GPipe, Interleaved} {
				for _, virtual := range []int{1, 2, 3} {
					p := small(2, 2, stages)
					p.Vocab, p.Layers, p.MicroBatches = 0, 2*stages*virtual, microBatches
					p.Schedule, p.VirtualStages = schedule, virtual
					p.ZeRO, p.Recompute = microBatches%4, Recompute(stages%3)
					if (schedule == Interleaved) != (virtual > 1) || virtual > 1 && (stages == 1 || microBatches%stages != 0) {
						continue
					}
					tr := mustGenerate(t, p)
					busy := dag.Time(total(tr, 0, func(op *dag.Op) int64 { return int64(op.Duration) }))
					optimizer := dag.Time(total(tr, 0, func(op *dag.Op) int64 {
						if op.Name != "optimizer" {
							return 0
						}
						return int64(op.Duration)
					}))
					n := dag.Time(microBatches * virtual)
					pass := (busy - optimizer) / n
					want := pass*(n+dag.Time(stages)-1) + optimizer
					timeline, err := ideal.Run(tr)
					if err != nil || timeline.Makespan() != want || pass*n+optimizer != busy {
						t.Errorf("%v, %d stages, %d virtual, %d micro-batches: makespan %v, expected %v, error %v", schedule,
							stages, virtual, microBatches, timeline.Makespan(), want, err)
					}
				}
			}
		}
	}
}

// TestPasses compares schedules with figure 4 of Narayanan et al. 2021: 4 stages, 8 micro-batches.
func TestPasses(t *testing.T) {
	order := func(p Params, stage int) string {
		var list []string
		for _, x := range p.passes(stage) {
			name := fmt.Sprint(x.microBatch + 1)
			if x.chunk > 0 {
				name += "'"
			}
			if x.backward {
				name = "-" + name
			}
			list = append(list, name)
		}
		return strings.Join(list, " ")
	}
	p := small(1, 1, 4)
	p.MicroBatches = 8
	for stage, want := range []string{
		"1 2 3 4 -1 5 -2 6 -3 7 -4 8 -5 -6 -7 -8",
		"1 2 3 -1 4 -2 5 -3 6 -4 7 -5 8 -6 -7 -8",
		"1 2 -1 3 -2 4 -3 5 -4 6 -5 7 -6 8 -7 -8",
		"1 -1 2 -2 3 -3 4 -4 5 -5 6 -6 7 -7 8 -8",
	} {
		if got := order(p, stage); got != want {
			t.Errorf("1f1b, stage %d: %s, expected %s", stage, got, want)
		}
	}
	p.Schedule, p.VirtualStages = Interleaved, 2
	for stage, want := range map[int]string{
		0: "1 2 3 4 1' 2' 3' 4' 5 6 7 -1' 8 -2' 5' -3' 6' -4' 7' -1 8' -2 -3 -4 -5' -6' -7' -8' -5 -6 -7 -8",
		3: "1 2 3 4 1' -1' 2' -2' 3' -3' 4' -4' 5 -1 6 -2 7 -3 8 -4 5' -5' 6' -6' 7' -7' 8' -8' -5 -6 -7 -8",
	} {
		if got := order(p, stage); got != want {
			t.Errorf("interleaved, stage %d: %s, expected %s", stage, got, want)
		}
	}
	p.Schedule, p.VirtualStages, p.MicroBatches = GPipe, 1, 4
	if got, want := order(p, 2), "1 2 3 4 -4 -3 -2 -1"; got != want {
		t.Errorf("gpipe: %s, expected %s", got, want)
	}
}

// TestLayout lists the communicators of 16 ranks in two orders.
func TestLayout(t *testing.T) {
	p := sparse(small(2, 4, 2), 2)
	p.Tied = true
	for order, want := range map[Order]string{
		DefaultOrder: "1:0 1;2:2 3;3:4 5;4:6 7;5:8 9;6:10 11;7:12 13;8:14 15;" + // tensor
			"9:0 2 4 6;10:1 3 5 7;11:8 10 12 14;12:9 11 13 15;" + // data
			"13:0 2;14:4 6;15:1 3;16:5 7;17:8 10;18:12 14;19:9 11;20:13 15;" + // experts
			"21:0 4;22:2 6;23:1 5;24:3 7;25:8 12;26:10 14;27:9 13;28:11 15;" + // the same experts
			"29:0 8;30:1 9;31:2 10;32:3 11;33:4 12;34:5 13;35:6 14;36:7 15;", // the table
		{Pipeline, Data, Tensor}: "1:0 8;2:2 10;3:4 12;4:6 14;5:1 9;6:3 11;7:5 13;8:7 15;" +
			"9:0 2 4 6;10:8 10 12 14;11:1 3 5 7;12:9 11 13 15;" +
			"13:0 2;14:4 6;15:8 10;16:12 14;17:1 3;18:5 7;19:9 11;20:13 15;" +
			"21:0 4;22:2 6;23:8 12;24:10 14;25:1 5;26:3 7;27:9 13;28:11 15;" +
			"29:0 1;30:8 9;31:2 3;32:10 11;33:4 5;34:12 13;35:6 7;36:14 15;",
	} {
		p.Order = order
		got := ""
		for i, c := range mustGenerate(t, p).Comms[1:] {
			if c.Name != fmt.Sprint(i+1) {
				t.Errorf("communicator %d has the name %q", i+1, c.Name)
			}
			got += c.Name + ":" + strings.Trim(fmt.Sprint(c.Members()), "[]") + ";"
		}
		if got != want {
			t.Errorf("order %v: %s, expected %s", order, got, want)
		}
		if again, err := ParseOrder(order.String()); again != order || err != nil {
			t.Errorf("order %v is read as %v, error %v", order, again, err)
		}
	}
	// A group of all ranks is communicator 0.
	tr := mustGenerate(t, small(1, 8, 1))
	if len(tr.Comms) != 1 || contributed(tr, 0, dag.Allreduce, 8, "gradients") == 0 {
		t.Errorf("communicators %v", tr.Comms)
	}
	for _, text := range []string{"", "tp", "tp,dp", "tp,dp,dp", "tp,dp,xx", "tp,dp,pp,ep"} {
		if _, err := ParseOrder(text); err == nil {
			t.Errorf("order %q is accepted", text)
		}
	}
}

// TestWork compares each calc of a stage with the formulas of the documentation.
func TestWork(t *testing.T) {
	const b, s, h, f, g, vocab, tp, dtype = 3, 32, 64, 160, 16, 320, 2, 4
	const tokens, local = b * s, b * s / tp
	const c, h1, f1, v1 = (h + 2*g) / tp, h / tp, f / tp, vocab / tp
	type numbers struct{ flops, elements int64 }
	dense := map[string]numbers{
		"embedding forward":   {tokens * h, 3 * tokens * h},
		"embedding gradients": {tokens * h, 3 * tokens * h},
		"layer 0 qkv forward": {2 * tokens * h * c, tokens*h + h*c + tokens*c + 2*local*h},
		"layer 0 qkv input gradients": {
			2 * tokens * h * c, tokens*h + h*c + tokens*c + 3*local*h + 3*local*h,
		},
		"layer 0 attention forward":          {4 * b * s * s * h1, tokens * (c + h1)},
		"layer 0 attention recompute":        {4 * b * s * s * h1, tokens * (c + h1)},
		"layer 0 attention input gradients":  {8 * b * s * s * h1, 2 * tokens * (c + h1)},
		"layer 0 projection forward":         {2 * tokens * h1 * h, tokens*h1 + h1*h + tokens*h + 3*local*h},
		"layer 0 projection input gradients": {2 * tokens * h1 * h, tokens*h1 + h1*h + tokens*h},
		"layer 0 attention weight gradients": {
			2*tokens*h*c + 2*tokens*h1*h, tokens*h + 2*h*c + tokens*c + tokens*h1 + 2*h1*h + tokens*h,
		},
		"output forward":          {2 * tokens * h * v1, tokens*h + h*v1 + tokens*v1 + 2*local*h + 2*tokens*v1},
		"output input gradients":  {2 * tokens * h * v1, tokens*h + h*v1 + tokens*v1 + 3*local*h},
		"output weight gradients": {2 * tokens * h * v1, tokens*h + 2*h*v1 + tokens*v1},
		"layer 0 mlp forward": {
			6 * tokens * h * f1,
			tokens*h + 2*h*f1 + 2*tokens*f1 + tokens*f1 + f1*h + tokens*h + 3*tokens*f1 + 2*local*h + 3*local*h,
		},
		"layer 0 mlp input gradients": {
			6 * tokens * h * f1, tokens*h + 2*h*f1 + 2*tokens*f1 + tokens*f1 + f1*h + tokens*h + 5*tokens*f1 + 6*local*h,
		},
		"layer 0 mlp weight gradients": {
			6 * tokens * h * f1, tokens*h + 4*h*f1 + 2*tokens*f1 + tokens*f1 + 2*f1*h + tokens*h,
		},
	}
	const experts, topK, ep = 8, 3, 4
	const rows, mine = topK * tokens, experts / ep
	moe := map[string]numbers{
		"layer 0 router forward": {2 * local * h * experts, local*h + h*experts + local*experts + 2*local*h},
		"layer 0 router gradients": {
			4 * local * h * experts, 2*local*h + 3*h*experts + 2*local*experts + 6*local*h,
		},
		"layer 0 mlp forward": {
			6 * rows * h * f1,
			2*rows*h + mine*3*h*f1 + 3*rows*f1 + 3*rows*f1 + 3*local*h + topK*local*h,
		},
		"layer 0 mlp input gradients": {
			6 * rows * h * f1, 2*rows*h + mine*3*h*f1 + 3*rows*f1 + 5*rows*f1 + topK*local*h,
		},
		"layer 0 mlp weight gradients": {6 * rows * h * f1, 2*rows*h + 2*mine*3*h*f1 + 3*rows*f1},
	}
	p := small(tp, 4, 1)
	p.Model = Model{Layers: 1, Hidden: h, FFN: f, Heads: 8, KVHeads: 2, Vocab: vocab, Seq: s, Learned: true}
	p.MicroBatch, p.DtypeBytes, p.SequenceParallel, p.Recompute = b, dtype, true, Selective
	for _, want := range []map[string]numbers{dense, moe} {
		seen := map[string]bool{}
		r := mustGenerate(t, p).Ranks[0]
		for i := range r.Len() {
			op := r.Op(i)
			if n, ok := want[op.Name]; ok && op.Kind == dag.Calc {
				seen[op.Name] = true
				if op.Flops != n.flops || op.Bytes != n.elements*dtype {
					t.Errorf("%s: %d operations and %d bytes, expected %d and %d", op.Name, op.Flops, op.Bytes, n.flops,
						n.elements*dtype)
				}
			}
		}
		if len(seen) != len(want) {
			t.Errorf("found %v of the calcs", seen)
		}
		p.Experts, p.TopK, p.EP = experts, topK, ep
	}
}

// TestRoofline: a calc takes as long as its operations or its bytes.
func TestRoofline(t *testing.T) {
	for _, c := range []struct {
		amount, rate int64
		want         dag.Time
	}{{0, 7, 0}, {1, 1e12, 1}, {1, 3e12, 1}, {4, 3e12, 2}, {1 << 50, 1 << 50, dag.Second}, {7, 3, 2333333333334}} {
		if got := dag.AtRate(c.amount, c.rate); got != c.want {
			t.Errorf("%d at %d/s takes %v, expected %v", c.amount, c.rate, got, c.want)
		}
	}
	p := small(1, 1, 1)
	p.PeakFlops, p.MemoryBandwidth = 7e9, 3e9
	tr := mustGenerate(t, p)
	byOps, byBytes := 0, 0
	r := tr.Ranks[0]
	for i := range r.Len() {
		op := r.Op(i)
		flops, bytes := float64(op.Flops)/7e9*1e12, float64(op.Bytes)/3e9*1e12
		if flops > bytes {
			byOps++
		} else {
			byBytes++
		}
		if d := float64(op.Duration) - max(flops, bytes); d < -1e-3 || d > 1.001 {
			t.Errorf("%s takes %v, expected %v ps", op.Name, op.Duration, max(flops, bytes))
		}
		if op.Flops == 0 || op.Bytes == 0 {
			t.Errorf("%s has %d operations and %d bytes", op.Name, op.Flops, op.Bytes)
		}
	}
	if byOps == 0 || byBytes == 0 {
		t.Errorf("%d calcs take as long as their operations, %d as their bytes", byOps, byBytes)
	}
	p.PeakFlops, p.MemoryBandwidth = 0, 0
	for i, d := range mustGenerate(t, p).Ranks[0].Duration {
		if d != 0 {
			t.Errorf("op %d takes %v on a machine that is not known", i, d)
		}
	}
}

func TestGlobalBatch(t *testing.T) {
	p := small(1, 8, 1)
	p.MicroBatch = 2
	if err := p.SetGlobalBatch(96); err != nil || p.MicroBatches != 6 {
		t.Errorf("%d micro-batches, error %v", p.MicroBatches, err)
	}
	for _, sequences := range []int64{-16, 0, 8, 24, math.MaxInt64} {
		if err := p.SetGlobalBatch(sequences); err == nil {
			t.Errorf("a global batch of %d is accepted", sequences)
		}
	}
}

// TestGolden lists all ops of a small run.
func TestGolden(t *testing.T) {
	p := sparse(small(2, 2, 2), 2)
	p.Layers, p.Experts, p.Tied, p.ZeRO, p.Recompute, p.MicroBatches = 2, 2, true, 1, Selective, 2
	tr := mustGenerate(t, p)
	var b strings.Builder
	fmt.Fprintln(&b, tr.Title)
	for i := range tr.Comms {
		fmt.Fprintf(&b, "comm %d: ranks %v\n", i, tr.Comms[i].Members())
	}
	for _, rank := range []int{0, 7} {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			op := r.Op(i)
			fmt.Fprintf(&b, "%d.%d %v", rank, i, op.Kind)
			switch op.Kind {
			case dag.Calc:
				fmt.Fprintf(&b, " %d operations, %d bytes, %v", op.Flops, op.Bytes, op.Duration)
			case dag.Coll:
				fmt.Fprintf(&b, " %v comm %d, %d bytes", op.Subkind, op.Comm, op.Bytes)
			default:
				fmt.Fprintf(&b, " rank %d, %d bytes, tag %d", op.Peer, op.Bytes, op.Tag)
			}
			fmt.Fprintf(&b, ": %s", op.Name)
			for _, off := range r.Deps.Of(i) {
				fmt.Fprintf(&b, " after %d", i-int(off))
			}
			b.WriteString("\n")
		}
	}
	golden.Check(t, "testdata/small.txt", b.String())
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		"layers is 0, expected 1..4096":                       func(p *Params) { p.Layers = 0 },
		"hidden is 0":                                         func(p *Params) { p.Hidden = 0 },
		"ffn is -1":                                           func(p *Params) { p.FFN = -1 },
		"heads is 65, expected 1..64":                         func(p *Params) { p.Heads = 65 },
		"kv-heads is 9, expected 0..8":                        func(p *Params) { p.KVHeads = 9 },
		"vocab is -1":                                         func(p *Params) { p.Vocab = -1 },
		"seq is 0":                                            func(p *Params) { p.Seq = 0 },
		"experts is -1":                                       func(p *Params) { p.Experts = -1 },
		"top-k is 0, expected 1..4":                           func(p *Params) { p.Experts = 4 },
		"top-k is 1, expected 0..0":                           func(p *Params) { p.TopK = 1 },
		"micro-batch is 0":                                    func(p *Params) { p.MicroBatch = 0 },
		"micro-batches is 0":                                  func(p *Params) { p.MicroBatches = 0 },
		"steps is 0":                                          func(p *Params) { p.Steps = 0 },
		"dtype-bytes is 9, expected 1..8":                     func(p *Params) { p.DtypeBytes = 9 },
		"tp is 0":                                             func(p *Params) { p.TP = 0 },
		"dp is -1":                                            func(p *Params) { p.DP = -1 },
		"ep is 0":                                             func(p *Params) { p.EP = 0 },
		"pp is 0":                                             func(p *Params) { p.PP = 0 },
		"tp x dp x pp is 64 x 262144 x 2":                     func(p *Params) { p.TP, p.DP, p.PP = 64, 1<<18, 2 },
		"tp x dp x pp is 1048576 x 1048576 x 1":               func(p *Params) { p.TP, p.DP = 1<<20, 1<<20 },
		"order is tp,tp,pp":                                   func(p *Params) { p.Order = Order{Tensor, Tensor, Pipeline} },
		"order is [0 9 1]":                                    func(p *Params) { p.Order = Order{Tensor, 9, Data} },
		"zero is 4, expected 0..3":                            func(p *Params) { p.ZeRO = 4 },
		"no schedule 3":                                       func(p *Params) { p.Schedule = 3 },
		"no recompute 3":                                      func(p *Params) { p.Recompute = 3 },
		"virtual-stages is 0":                                 func(p *Params) { p.VirtualStages = 0 },
		"hidden is 64, expected a multiple of heads":          func(p *Params) { p.Heads = 6 },
		"heads is 8, expected a multiple of kv-heads":         func(p *Params) { p.KVHeads = 3 },
		"hidden is 64 and ffn 160, expected multiples":        func(p *Params) { p.TP = 64 },
		"kv-heads is 2, expected a multiple of tp, 4":         func(p *Params) { p.TP, p.KVHeads = 4, 2 },
		"seq is 30, expected a multiple of tp, 4":             func(p *Params) { p.TP, p.Seq, p.SequenceParallel = 4, 30, true },
		"dp is 2, expected a multiple of ep, 4":               func(p *Params) { p.Experts, p.TopK, p.EP = 4, 1, 4 },
		"ep is 2, expected 1 for a model without experts":     func(p *Params) { p.EP = 2 },
		"experts is 3, expected a multiple of ep, 2":          func(p *Params) { p.Experts, p.TopK, p.EP = 3, 1, 2 },
		"found 1 and 2":                                       func(p *Params) { p.Schedule, p.VirtualStages = Interleaved, 2 },
		"found 2 and 1":                                       func(p *Params) { p.Schedule, p.PP = Interleaved, 2 },
		"virtual-stages is 2, expected 1 unless the schedule": func(p *Params) { p.VirtualStages = 2 },
		"micro-batches is 3, expected a multiple of pp": func(p *Params) {
			p.Schedule, p.VirtualStages, p.PP, p.MicroBatches = Interleaved, 2, 2, 3
		},
		"pp x virtual-stages is 5":                 func(p *Params) { p.PP = 5 },
		"zero is 2, expected 3 to offload":         func(p *Params) { p.ZeRO, p.Offload = 2, true },
		"peak-flops is 1000000000000 and mem-bw 0": func(p *Params) { p.MemoryBandwidth = 0 },
		"expected at most 67108864":                func(p *Params) { p.MicroBatches = 1 << 20 },
		"operations, expected at most":             func(p *Params) { p.Seq = 1 << 28 },
		"bytes, expected at most": func(p *Params) {
			p.Layers, p.Hidden, p.FFN, p.Experts, p.TopK, p.DtypeBytes = 1<<10, 1<<16, 1<<20, 1<<10, 1, 8
		},
		"a calc takes up to": func(p *Params) { p.PeakFlops = 1 },
	} {
		p := small(1, 2, 1)
		change(&p)
		if _, err := NewSource(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}

// TestDeterministic: the trace does not depend on the number of goroutines.
func TestDeterministic(t *testing.T) {
	p := sparse(small(2, 4, 4), 2)
	p.ZeRO = 3
	first := mustGenerate(t, p)
	for range 3 {
		if again := mustGenerate(t, p); !reflect.DeepEqual(again, first) {
			t.Fatal("the same parameters give another trace")
		}
	}
	if !slices.Equal(first.Ranks[0].Flops, first.Ranks[1].Flops) {
		t.Error("ranks of a tensor-parallel group differ")
	}
}

func BenchmarkSource(b *testing.B) {
	p := Default()
	var err error
	if p.Model, err = Preset("llama-70b"); err != nil {
		b.Fatal(err)
	}
	p.TP, p.PP, p.DP, p.MicroBatches = 8, 4, 16, 64
	ops := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewSource(p)
		if err != nil {
			b.Fatal(err)
		}
		h, err := s.Header()
		if err != nil {
			b.Fatal(err)
		}
		read := s.NewReader(dag.All)
		for _, batch := range h.Batches {
			if _, err := read(batch); err != nil {
				b.Fatal(err)
			}
		}
		ops += h.Ops
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}

// TestMoEEvery compares layers with and without experts: those with experts have a router and two alltoalls per pass,
// and a rank has the parameters of both kinds.
func TestMoEEvery(t *testing.T) {
	for _, every := range []int{1, 2, 3, 4} {
		p := sparse(small(1, 4, 1), 2)
		p.Layers, p.MoEEvery, p.MicroBatches, p.Vocab = 4, every, 1, 0
		tr := mustGenerate(t, p)
		if problems := dag.Validate(tr); len(problems) > 0 {
			t.Fatal(problems)
		}
		seen := map[string]int{}
		r := tr.Ranks[0]
		for i := range r.Len() {
			if op := r.Op(i); op.Kind == dag.Coll && op.Subkind == dag.Alltoall {
				seen[strings.TrimSuffix(op.Name, " expert parallel")]++
			}
		}
		for i := range p.Layers {
			want := 0
			if (i+1)%every == 0 {
				want = 4
			}
			if got := seen[fmt.Sprintf("layer %d", i)]; got != want {
				t.Errorf("every %d: layer %d has %d alltoalls, expected %d", every, i, got, want)
			}
		}
		dense, all := p, p
		dense.Experts, dense.TopK, dense.EP, dense.MoEEvery = 0, 0, 1, 0
		all.MoEEvery = 1
		n := int64(p.Layers / every)
		if got, want := p.Parameters(), dense.Parameters()+(all.Parameters()-dense.Parameters())/4*n; got != want {
			t.Errorf("every %d: %d parameters, expected %d", every, got, want)
		}
	}
	p := small(1, 2, 1)
	p.MoEEvery = 5
	if _, err := NewSource(p); err == nil || !strings.Contains(err.Error(), "moe-every is 5, expected 0..4") {
		t.Errorf("error %v", err)
	}
}
