package collective

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Source is a trace that is read, or made, batch by batch: it is what a formats/format.Source is, and promises the
// same. The references of its ranks must be in range ([dag.Rank.CheckReferences]).
type Source interface {
	Meta() dag.Meta
	Comms() []dag.Comm
	NumRanks() int
	NumOps() int64
	Kinds() ([]dag.Kind, error)
	Batches() []dag.Batch
	Reader() func(dag.Batch) ([]dag.Rank, error)
	Complete() bool
	Trace() (*dag.Trace, error)
	Close() error
}

// LowerSource returns the source's trace with its collectives lowered as [Lower] does, but each batch only when it is
// read: of what it makes, no more is in memory than the batches that readers have at the time. It reads the source four
// times beforehand, for what it must know of all ranks. It returns the source itself if there is nothing to lower.
func LowerSource(s Source, choice Choice) (Source, error) {
	return lowerSource(s, choice, every)
}

func every(dag.Subkind) bool { return true }

func lowerSource(s Source, choice Choice, which func(dag.Subkind) bool) (Source, error) {
	in, err := collectInstances(s, &choice, which)
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	if in == nil {
		return s, nil
	}
	l := &loweredSource{Source: s, in: in, choice: &choice, sizes: make([]extent, s.NumRanks()), inputs: s.Batches()}
	err = forEachRank(s, l.lowering, func(rank int, r *dag.Rank, w *lowering) (err error) {
		l.sizes[rank], err = w.place(rank, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	l.divide()
	return l, nil
}

// loweredSource is a source with its collectives lowered.
type loweredSource struct {
	Source
	in      *instances
	choice  *Choice
	sizes   []extent // of each rank, lowered
	inputs  []dag.Batch
	batches []dag.Batch
	input   []int32 // of each batch, the input's that it is a part of
}

func (l *loweredSource) lowering() *lowering {
	return newLowering(l.in, l.choice)
}

// batchOps is how many ops a batch of more than one rank has at most.
const batchOps = 1 << 16

// divide cuts the input's batches into batches that take little memory.
func (l *loweredSource) divide() {
	for k, input := range l.inputs {
		for rank := input.First; rank < input.Last; rank++ {
			size, last := l.sizes[rank], len(l.batches)-1
			if rank == input.First || l.batches[last].Ops+int64(size.ops) > batchOps {
				l.batches = append(l.batches, dag.Batch{First: rank})
				l.input = append(l.input, int32(k))
				last++
			}
			b := &l.batches[last]
			b.Last = rank + 1
			b.Ops += int64(size.ops)
			b.Deps += int64(size.deps)
			b.StartDeps += int64(size.startDeps)
		}
	}
}

func (l *loweredSource) NumOps() int64 {
	n := int64(0)
	for i := range l.batches {
		n += l.batches[i].Ops
	}
	return n
}

func (l *loweredSource) Kinds() ([]dag.Kind, error) {
	kinds, err := l.Source.Kinds()
	if err != nil {
		return nil, err
	}
	for _, kind := range []dag.Kind{dag.Calc, dag.Send, dag.Recv} {
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	lowered := func(kind dag.Kind) bool { return kind == dag.Coll } // LowerSelected, which leaves some, asks for no kinds
	return slices.DeleteFunc(slices.Clone(kinds), lowered), nil
}

func (l *loweredSource) Batches() []dag.Batch {
	return l.batches
}

func (l *loweredSource) Reader() func(dag.Batch) ([]dag.Rank, error) {
	read, w := l.Source.Reader(), l.lowering()
	at := int32(-1) // batch of the input
	var before []dag.Rank
	var after, memory []dag.Rank
	return func(b dag.Batch) ([]dag.Rank, error) {
		k, found := slices.BinarySearchFunc(l.batches, b.First, func(b dag.Batch, first int) int { return b.First - first })
		if !found || l.batches[k].Last != b.Last {
			return nil, fmt.Errorf("lowering collectives: no batch of ranks %d to %d", b.First, b.Last-1)
		}
		input := l.inputs[l.input[k]]
		if at != l.input[k] {
			at = -1
			var err error
			if before, err = readBatch(read, input); err != nil {
				return nil, err
			}
			at = l.input[k]
		}
		for len(memory) < b.Last-b.First {
			memory = append(memory, dag.Rank{})
		}
		after = after[:0]
		for rank := b.First; rank < b.Last; rank++ {
			lowered, err := w.write(rank, &before[rank-input.First], l.sizes[rank], &memory[rank-b.First])
			if err != nil {
				return nil, fmt.Errorf("lowering collectives: %w", err)
			}
			after = append(after, lowered)
		}
		return after, nil
	}
}

func (l *loweredSource) Trace() (*dag.Trace, error) {
	t, err := l.Source.Trace()
	if err != nil {
		return nil, err
	}
	out := *t
	out.Ranks = make([]dag.Rank, len(t.Ranks))
	err = forEachRank(dag.NewInMemory(t), l.lowering, func(rank int, r *dag.Rank, w *lowering) (err error) {
		out.Ranks[rank], err = w.write(rank, r, l.sizes[rank], &dag.Rank{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lowering collectives: %w", err)
	}
	return &out, nil
}
