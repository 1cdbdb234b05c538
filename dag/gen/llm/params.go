package llm

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Params describe a training run.
type Params struct {
	Model

	MicroBatch   int64 // b: sequences of a micro-batch, 1 or more
	MicroBatches int   // m: micro-batches of each data-parallel replica in a step, 1 or more
	Steps        int   // 1 or more
	DtypeBytes   int64 // of an element of weights, activations and gradients: 1..8
	Causal       bool  // the attention skips the half of the scores that the mask hides

	TP               int  // tensor parallelism; divides Hidden, FFN and, of grouped-query attention, KVHeads
	SequenceParallel bool // TP ranks divide the activations between the matrices by tokens; TP divides Seq
	DP               int  // data parallelism
	EP               int  // expert parallelism among neighbouring DP ranks; divides DP and Experts
	PP               int  // pipeline stages, at most the number of layers
	Order            Order
	ZeRO             int  // 1 divides states of the optimizer among the DP ranks, 2 also gradients, 3 also parameters
	Offload          bool // parameters, gradients and states of the optimizer are in remote memory; needs ZeRO 3
	Pool             Pool // tensors in a pool of remote memory that all ranks share; not with Offload
	PoolGather       PoolGather
	Schedule         Schedule
	VirtualStages    int // v: parts of the model on each stage; 2 or more for Interleaved, otherwise 1
	Recompute        Recompute

	// NetworkDims are the sizes of the network's dimensions, dimension 0 varying fastest in rank numbers; nil: unknown.
	// With them, a collective of a kind of parallelism is one of all ranks that involves the dimensions of Dims
	// (dag.Op.Dims), instead of one of a communicator. Order must agree with Dims.
	NetworkDims []int
	Dims        Dims
	DimsSplit   bool // Dims.Auto may cut dimensions in two

	// ConcurrentCollectives lets collectives of different groups overlap.
	ConcurrentCollectives bool

	// The speed of an accelerator, for the durations of calcs; both 0: no durations.
	PeakFlops       int64 // floating-point operations per second
	MemoryBandwidth int64 // bytes per second

	Context context.Context // ends NewSource and reading early, with an error that wraps its cause; nil: never
}

// Pool selects the parameters that live in a memory pool, with their gradients and optimizer states. Each rank is in
// charge of an equal part of them, as with ZeRO 3.
type Pool uint8

// The selections.
const (
	PoolNone Pool = iota
	PoolExperts
	PoolAll
)

// String returns the name on the command line.
func (p Pool) String() string {
	return [...]string{"none", "experts", "all"}[p]
}

// PoolGather is the place where the parts of pooled parameters are gathered, and those of their gradients reduced.
type PoolGather uint8

// The places.
const (
	GatherInNetwork PoolGather = iota // collectives of the ranks
	GatherInSwitch                    // the memory's switches, see attr.MemAccess
)

// String returns the name on the command line.
func (p PoolGather) String() string {
	return [...]string{"network", "switch"}[p]
}

// Schedule is the order of the forward and backward passes of micro-batches on a pipeline stage.
type Schedule uint8

// The schedules.
const (
	OneFOneB    Schedule = iota // PipeDream-flush: forward and backward alternate
	GPipe                       // all forward, then all backward
	Interleaved                 // OneFOneB with several parts of the model on each stage
)

// String returns the schedule's name on the command line.
func (s Schedule) String() string {
	return [...]string{"1f1b", "gpipe", "interleaved"}[s]
}

// Recompute selects the activations that the backward pass computes again.
type Recompute uint8

// The selections.
const (
	NoRecompute Recompute = iota
	Selective             // the core of the attention
	Full                  // every layer
)

// String returns the name on the command line.
func (r Recompute) String() string {
	return [...]string{"none", "selective", "full"}[r]
}

// Default returns a step of llama-7b on 8 data-parallel ranks.
func Default() Params {
	m, err := Preset("llama-7b")
	if err != nil {
		panic(err)
	}
	return Params{
		Model: m, MicroBatch: 1, MicroBatches: 1, Steps: 1, DtypeBytes: 2,
		TP: 1, DP: 8, EP: 1, PP: 1, Order: DefaultOrder, VirtualStages: 1,
	}
}

// Limits that keep sizes and counts in range.
const (
	maxRanks = 1 << 20
	maxOps   = 1 << 26 // of a rank, about
	maxTag   = 5e8     // ASTRA-sim reserves higher ones
)

// Ranks returns the number of ranks.
func (p *Params) Ranks() int {
	return p.TP * p.DP * p.PP
}

// virtualStages returns the number of parts of the model.
func (p *Params) virtualStages() int {
	return p.PP * p.VirtualStages
}

// localTokens returns the tokens of a micro-batch that a rank has between the matrices.
func (p *Params) localTokens() int64 {
	if p.SequenceParallel {
		return p.MicroBatch * p.Seq / int64(p.TP)
	}
	return p.MicroBatch * p.Seq
}

// SharesHeads reports whether several ranks share a head of the attention. The trace lacks the messages between them.
func (p *Params) SharesHeads() bool {
	return p.Heads%int64(p.TP) != 0
}

// SetGlobalBatch sets the number of micro-batches for the given number of sequences per step.
func (p *Params) SetGlobalBatch(sequences int64) error {
	each := p.MicroBatch * int64(max(p.DP, 0))
	if each < 1 || sequences < 1 || sequences%each != 0 || sequences/each > math.MaxInt32 {
		return fmt.Errorf("llm: global batch is %d, expected a multiple of micro-batch x dp, %d", sequences, each)
	}
	p.MicroBatches = int(sequences / each)
	return nil
}

// limit is a parameter and its range.
type limit struct {
	name        string
	value       int64
	least, most int64
}

// check returns an error that names the first parameter outside its range.
func (p *Params) check() error {
	kv := p.kvHeads()
	for _, l := range []limit{
		{"layers", int64(p.Layers), 1, 1 << 12},
		{"hidden", p.Hidden, 1, 1 << 20},
		{"ffn", p.FFN, 0, 1 << 22},
		{"heads", p.Heads, 1, p.Hidden},
		{"kv-heads", p.KVHeads, 0, p.Heads},
		{"vocab", p.Vocab, 0, 1 << 28},
		{"seq", p.Seq, 1, 1 << 28},
		{"experts", p.Experts, 0, 1 << 16},
		{"top-k", p.TopK, min(1, p.Experts), p.Experts},
		{"moe-every", int64(p.MoEEvery), 0, int64(p.Layers)},
		{"micro-batch", p.MicroBatch, 1, 1 << 20},
		{"micro-batches", int64(p.MicroBatches), 1, 1 << 24},
		{"steps", int64(p.Steps), 1, 1 << 24},
		{"dtype-bytes", p.DtypeBytes, 1, 8},
		{"tp", int64(p.TP), 1, maxRanks},
		{"dp", int64(p.DP), 1, maxRanks},
		{"ep", int64(p.EP), 1, maxRanks},
		{"pp", int64(p.PP), 1, 1 << 16},
		{"zero", int64(p.ZeRO), 0, 3},
		{"virtual-stages", int64(p.VirtualStages), 1, 1 << 16},
		{"peak-flops", p.PeakFlops, 0, math.MaxInt64},
		{"mem-bw", p.MemoryBandwidth, 0, math.MaxInt64},
	} {
		if l.value < l.least || l.value > l.most {
			return fmt.Errorf("%s is %d, expected %d..%d", l.name, l.value, l.least, l.most)
		}
	}
	tp := int64(p.TP)
	switch {
	case int64(p.TP)*int64(p.DP) > maxRanks || p.Ranks() > maxRanks:
		return fmt.Errorf("tp x dp x pp is %d x %d x %d, expected at most %d ranks", p.TP, p.DP, p.PP, maxRanks)
	case !p.Order.valid():
		return fmt.Errorf("order is %v, expected each of tp, dp and pp once", p.Order)
	case p.Schedule > Interleaved:
		return fmt.Errorf("no schedule %d", p.Schedule)
	case p.Recompute > Full:
		return fmt.Errorf("no recompute %d", p.Recompute)
	case p.Hidden%p.Heads != 0:
		return fmt.Errorf("hidden is %d, expected a multiple of heads, %d", p.Hidden, p.Heads)
	case p.Heads%kv != 0:
		return fmt.Errorf("heads is %d, expected a multiple of kv-heads, %d", p.Heads, kv)
	case p.Hidden%tp != 0 || p.ffn()%tp != 0:
		return fmt.Errorf("hidden is %d and ffn %d, expected multiples of tp, %d", p.Hidden, p.ffn(), tp)
	case kv != p.Heads && kv%tp != 0:
		return fmt.Errorf("kv-heads is %d, expected a multiple of tp, %d", kv, tp)
	case p.SequenceParallel && p.Seq%tp != 0:
		return fmt.Errorf("seq is %d, expected a multiple of tp, %d, for sequence parallelism", p.Seq, tp)
	case p.DP%p.EP != 0:
		return fmt.Errorf("dp is %d, expected a multiple of ep, %d", p.DP, p.EP)
	case p.Experts == 0 && p.EP > 1:
		return fmt.Errorf("ep is %d, expected 1 for a model without experts", p.EP)
	case p.Experts%int64(p.EP) != 0:
		return fmt.Errorf("experts is %d, expected a multiple of ep, %d", p.Experts, p.EP)
	case p.Schedule == Interleaved && (p.VirtualStages < 2 || p.PP < 2):
		return fmt.Errorf("the interleaved schedule has 2 or more stages and virtual stages, found %d and %d", p.PP,
			p.VirtualStages)
	case p.Schedule != Interleaved && p.VirtualStages > 1:
		return fmt.Errorf("virtual-stages is %d, expected 1 unless the schedule is interleaved", p.VirtualStages)
	case p.Schedule == Interleaved && p.MicroBatches%p.PP != 0:
		return fmt.Errorf("micro-batches is %d, expected a multiple of pp, %d, for the interleaved schedule",
			p.MicroBatches, p.PP)
	case p.virtualStages() > p.Layers:
		return fmt.Errorf("pp x virtual-stages is %d, expected at most as many as there are layers, %d",
			p.virtualStages(), p.Layers)
	case p.Pool > PoolAll || p.PoolGather > GatherInSwitch:
		return fmt.Errorf("no pool %d with pool-gather %d", p.Pool, p.PoolGather)
	case p.Offload && p.Pool != PoolNone:
		return errors.New("offload and pool exclude each other: --pool all keeps all parameters in remote memory")
	case p.Pool == PoolNone && p.PoolGather != GatherInNetwork:
		return errors.New("pool-gather needs a pool: experts or all")
	case p.Pool == PoolExperts && p.Experts == 0:
		return errors.New("pool is experts, expected none or all for a model without experts")
	case p.Offload && p.ZeRO < 3:
		return fmt.Errorf("zero is %d, expected 3 to offload parameters", p.ZeRO)
	case (p.PeakFlops == 0) != (p.MemoryBandwidth == 0):
		return fmt.Errorf("peak-flops is %d and mem-bw %d, expected both or neither", p.PeakFlops, p.MemoryBandwidth)
	}
	if ops := float64(p.Steps) * float64(p.MicroBatches) * 32 * float64(p.Layers/p.PP+2); ops > maxOps {
		return fmt.Errorf("up to about %.3g ops per rank, expected at most %d", ops, maxOps)
	}
	if tags := 2 * float64(p.Steps) * float64(p.MicroBatches) * float64(p.VirtualStages); tags > maxTag {
		return fmt.Errorf("%.3g messages between two stages, expected at most %.3g", tags, maxTag)
	}
	if _, err := p.network(); err != nil {
		return err
	}
	return p.checkSizes()
}

// checkSizes returns an error if a number of operations, bytes or picoseconds may not fit its field. It compares upper
// bounds of all of them.
func (p *Params) checkSizes() error {
	h, f, tp := float64(p.Hidden), float64(p.ffn()), float64(p.TP)
	tokens := float64(p.MicroBatch) * float64(p.Seq) * float64(max(p.TopK, 1))
	widest := max(3*h, 3*f, float64(p.Vocab)+tp, float64(p.Experts))
	flops := 8 * max(tokens*h*widest, tokens*float64(p.Seq)*h)
	parameters := float64(p.Layers)*h*(4*h+4*f*float64(max(p.Experts, 1))+widest) + h*(2*widest+float64(p.Seq))
	bytes := float64(2*optimizerStates+8*p.DtypeBytes) * max(parameters, 8*tokens*(h+widest))
	flops = max(flops, optimizerFlops*parameters)
	switch {
	case flops >= math.MaxInt64:
		return fmt.Errorf("a calc has up to %.3g operations, expected at most %d", flops, int64(math.MaxInt64))
	case bytes >= math.MaxInt64:
		return fmt.Errorf("a calc moves up to %.3g bytes, expected at most %d", bytes, int64(math.MaxInt64))
	}
	if p.PeakFlops > 0 {
		longest := max(flops/float64(p.PeakFlops), bytes/float64(p.MemoryBandwidth))
		if longest > float64(dag.MaxTime)/float64(dag.Second)/2 {
			return fmt.Errorf("a calc takes up to %.3g s, expected at most %v", longest, dag.MaxTime/2)
		}
	}
	return nil
}
