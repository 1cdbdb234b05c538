package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
)

// LowerSource returns a source of the trace that [Lower] returns. It lowers each batch when the batch is read, so that
// only the current batches of the readers are in memory. LowerSource itself reads s three times to collect the
// instances and the sizes of the lowered ranks, and once more the batches with first members of communicators. It
// returns s if s has no collectives. LowerSource ends early, with an error that wraps the context's cause, when ctx
// ends; nil never ends.
func LowerSource(ctx context.Context, s dag.Source, choice Choice) (dag.Source, error) {
	return lowerSource(ctx, s, choice, Selection{Kinds: every})
}

func every(dag.Subkind) bool { return true }

func lowerSource(ctx context.Context, s dag.Source, choice Choice,
	selected Selection) (dag.Source, error) {
	in, err := collectInstances(ctx, s, &choice, selected)
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	if in == nil {
		return s, nil
	}
	h := in.header
	l := &loweredSource{Source: s, ctx: ctx, in: in, choice: &choice, sizes: make([]extent, h.Ranks), inputs: h.Batches}
	columns := in.columns(dag.Replay)
	err = forEachRankWith(ctx, s, columns, nil, l.lowering, func(rank int, r *dag.Rank, w *lowering) (err error) {
		l.sizes[rank], err = w.place(rank, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	l.makeHeader(h)
	if err := memory.CheckBatches(ctx, &l.header); err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	return l, nil
}

// loweredSource is a source with its collectives lowered.
type loweredSource struct {
	dag.Source
	ctx    context.Context // ends ReadAll early; nil: never
	in     *instances
	choice *Choice
	sizes  []extent // sizes of the lowered ranks
	inputs []dag.Batch
	header dag.Header
	input  []int32 // input batch of each batch
}

func (l *loweredSource) lowering() *lowering {
	return newLowering(l.in, l.choice)
}

// batchOps is the maximum number of ops of a batch of more than one rank.
const batchOps = 1 << 16

// makeHeader sets the header from that of the input.
func (l *loweredSource) makeHeader(input *dag.Header) {
	l.header = *input
	h := &l.header
	h.Ops, h.Stable = 0, false
	h.Kinds = slices.Clone(input.Kinds)
	for _, kind := range []dag.Kind{dag.Calc, dag.Send, dag.Recv} {
		if !slices.Contains(h.Kinds, kind) {
			h.Kinds = append(h.Kinds, kind)
		}
	}
	remains := func(kind dag.Subkind) bool { return !l.in.lowered[kind] || l.in.uneven[kind] }
	if !slices.ContainsFunc(allCollectives, remains) {
		h.Kinds = slices.DeleteFunc(h.Kinds, func(kind dag.Kind) bool { return kind == dag.Coll })
	}
	h.Batches, l.input = l.divide()
	for i := range h.Batches {
		h.Ops += h.Batches[i].Ops
	}
}

// divide splits the batches of the input into smaller ones, and returns the input batch of each.
func (l *loweredSource) divide() (batches []dag.Batch, of []int32) {
	for k, input := range l.inputs {
		for rank := input.First; rank < input.Last; rank++ {
			size, last := l.sizes[rank], len(batches)-1
			if rank == input.First || batches[last].Ops+int64(size.ops) > batchOps {
				batches = append(batches, dag.Batch{First: rank})
				of = append(of, int32(k))
				last++
			}
			b := &batches[last]
			b.Last = rank + 1
			b.Ops += int64(size.ops)
			b.Deps += int64(size.deps)
			b.StartDeps += int64(size.startDeps)
		}
	}
	return batches, of
}

func (l *loweredSource) Header() (*dag.Header, error) {
	return &l.header, nil
}

func (l *loweredSource) NewReader(columns dag.Columns) dag.Reader {
	read, w := l.Source.NewReader(l.in.columns(columns)), l.lowering()
	at := int32(-1) // batch of the input
	var before, after []*dag.Rank
	var lowered, memory []dag.Rank // of ranks with ops
	return func(b dag.Batch) ([]*dag.Rank, error) {
		k, found := l.header.Find(b)
		if !found {
			return nil, fmt.Errorf("lowering collectives: no batch of ranks %d to %d", b.First, b.Last-1)
		}
		input := l.inputs[l.input[k]]
		if at != l.input[k] {
			at = -1
			var err error
			if before, err = read.Ranks(input); err != nil {
				return nil, err
			}
			at = l.input[k]
		}
		busy := 0
		for _, r := range before[b.First-input.First : b.Last-input.First] {
			busy += min(r.Len(), 1)
		}
		for len(memory) < busy {
			memory = append(memory, dag.Rank{})
			lowered = append(lowered, dag.Rank{})
		}
		after, busy = after[:0], 0
		for rank := b.First; rank < b.Last; rank++ {
			r := before[rank-input.First]
			if r.Len() == 0 {
				after = append(after, r)
				continue
			}
			var err error
			if lowered[busy], err = w.write(rank, r, l.sizes[rank], &memory[busy]); err != nil {
				return nil, fmt.Errorf("lowering collectives: %w", err)
			}
			after = append(after, &lowered[busy])
			busy++
		}
		return after, nil
	}
}

func (l *loweredSource) ReadAll() (*dag.Trace, error) {
	t, err := dag.ReadAll(l.Source)
	if err != nil {
		return nil, err
	}
	out := *t
	out.Ranks = dag.NewRanks(len(t.Ranks))
	err = forEachRank(l.ctx, dag.FromTrace(t), l.lowering, func(rank int, r *dag.Rank, w *lowering) (err error) {
		if r.Len() > 0 {
			var lowered dag.Rank
			lowered, err = w.write(rank, r, l.sizes[rank], &dag.Rank{})
			out.Ranks[rank] = lowered.Keep()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	return &out, nil
}
