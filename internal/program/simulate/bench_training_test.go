// This file generates the training of a language model for the benchmark: all of tensor, pipeline and data parallelism,
// many streams on every rank, messages both eager and rendezvous.
//
// The pipeline works in the order "1F1B" of Narayanan et al., Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM, SC 2021; layers are split as in Shoeybi et al., Megatron-LM, 2019: two allreduces over
// the tensor-parallel ranks in each direction.

package simulate

import (
	"context"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// training describes a job of tensor x pipeline x data ranks. The tensor-parallel ranks of a stage are neighbours.
type training struct {
	tensor, pipeline, data int
	layers                 int // of a stage
	microbatches           int // of a step
	steps                  int
}

// Streams of a rank.
const (
	computeStream int32 = iota
	tensorStream
	forwardSendStream
	forwardRecvStream
	backwardSendStream
	backwardRecvStream
	gradientStream
)

// Sizes: with the usual parts of an allreduce in a ring of eight, tensor-parallel messages are eager, those of the
// pipeline and of the gradients are not.
const (
	tensorBytes     = 384 << 10 // of the allreduce in a half layer
	activationBytes = 2 << 20   // from stage to stage
	gradientBytes   = 16 << 20  // of a layer
)

// Mean durations of the ops of a half layer.
const (
	forwardTime   = 10 * dag.Millisecond
	inputTime     = 10 * dag.Millisecond // gradient of the input, which the layer before waits for
	weightTime    = 10 * dag.Millisecond // gradient of the weights
	optimizerTime = 20 * dag.Millisecond
)

// trace returns the job with its collectives as rings of sends and receives.
func (j training) trace() (*dag.Trace, error) {
	ranks := j.tensor * j.pipeline * j.data
	b := dag.NewBuilder(ranks)
	stageRanks := j.tensor * j.pipeline
	var tensorComms, dataComms []int32
	for first := 0; first < ranks; first += j.tensor {
		tensorComms = append(tensorComms, b.AddComm(dag.Comm{Ranges: []dag.Range{
			{First: int32(first), Stride: 1, Count: int32(j.tensor)},
		}}))
	}
	for first := range stageRanks {
		dataComms = append(dataComms, b.AddComm(dag.Comm{Ranges: []dag.Range{
			{First: int32(first), Stride: int32(stageRanks), Count: int32(j.data)},
		}}))
	}
	for rank := range ranks {
		w := worker{
			training: j, ops: b.Rank(rank), rank: int32(rank), stage: rank / j.tensor % j.pipeline,
			tensorComm: tensorComms[rank/j.tensor], dataComm: dataComms[rank%stageRanks],
			random: rand.New(rand.NewPCG(1, uint64(rank))),
		}
		w.run()
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	choice, err := collective.ParseChoice("allreduce=ring")
	if err != nil {
		return nil, err
	}
	return collective.Lower(context.Background(), b.Trace(), choice)
}

// worker builds the ops of one rank.
type worker struct {
	training
	ops                  *dag.RankBuilder
	rank                 int32
	stage                int
	tensorComm, dataComm int32
	random               *rand.Rand
	last                 []int // predecessors of the next computation
	loose                []int // predecessors of the end of the step only
}

func (w *worker) run() {
	for range w.steps {
		warmup := min(w.pipeline-w.stage-1, w.microbatches)
		for m := range w.microbatches + warmup {
			if m < w.microbatches {
				w.forward(m)
			}
			if m >= warmup {
				w.backward(m - warmup)
			}
		}
		w.last = append(w.last, w.loose...)
		w.loose = nil
		w.compute(optimizerTime)
	}
}

func (w *worker) forward(microbatch int) {
	tag := int64(microbatch)
	if w.stage > 0 {
		w.receive(-1, tag, forwardRecvStream)
	}
	for range 2 * w.layers {
		w.compute(forwardTime)
		w.last = []int{w.allreduce(tensorBytes, w.tensorComm, tensorStream)}
	}
	if w.stage < w.pipeline-1 {
		w.send(+1, tag, forwardSendStream)
	}
}

func (w *worker) backward(microbatch int) {
	tag := int64(w.microbatches + microbatch)
	if w.stage < w.pipeline-1 {
		w.receive(+1, tag, backwardRecvStream)
	}
	for range w.layers {
		for range 2 {
			w.compute(inputTime)
			reduced := w.allreduce(tensorBytes, w.tensorComm, tensorStream)
			w.compute(weightTime)
			w.last = append(w.last, reduced)
		}
		if microbatch == w.microbatches-1 { // the gradients of the layer are complete
			w.loose = append(w.loose, w.allreduce(gradientBytes, w.dataComm, gradientStream))
		}
	}
	if w.stage > 0 {
		w.send(-1, tag, backwardSendStream)
	}
}

// compute appends a computation that takes up to a tenth more or less than the given time, in whole nanoseconds.
func (w *worker) compute(mean dag.Time) {
	tenth := int64(mean / dag.Nanosecond / 10)
	duration := mean + dag.Time(w.random.Int64N(2*tenth+1)-tenth)*dag.Nanosecond
	w.last = []int{w.ops.Calc(duration, w.last...)}
}

func (w *worker) allreduce(bytes int64, comm, stream int32) int {
	return w.ops.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: bytes, Comm: comm, Stream: stream},
		w.last...)
}

// receive posts a receive from the stage at a distance; the next computation waits for it.
func (w *worker) receive(stages int, tag int64, stream int32) {
	w.last = append(w.last, w.message(dag.Recv, stages, tag, stream))
}

// send sends to the stage at a distance; no computation waits for it.
func (w *worker) send(stages int, tag int64, stream int32) {
	w.loose = append(w.loose, w.message(dag.Send, stages, tag, stream))
}

func (w *worker) message(kind dag.Kind, stages int, tag int64, stream int32) int {
	peer := w.rank + int32(stages*w.tensor)
	return w.ops.Add(dag.Op{Kind: kind, Peer: peer, Bytes: activationBytes, Tag: tag, Stream: stream}, w.last...)
}
