package dag

import "slices"

// InMemory is a trace that is in memory, with the methods of one that is read batch by batch: a batch for each rank.
type InMemory struct{ trace *Trace }

// NewInMemory returns a trace as one that is read batch by batch.
func NewInMemory(t *Trace) InMemory {
	return InMemory{t}
}

// Meta returns the trace's metadata.
func (m InMemory) Meta() Meta { return m.trace.Meta }

// Comms returns its communicators.
func (m InMemory) Comms() []Comm { return m.trace.Comms }

// NumRanks returns how many ranks it has.
func (m InMemory) NumRanks() int { return len(m.trace.Ranks) }

// NumOps returns how many ops it has.
func (m InMemory) NumOps() int64 { return m.trace.Ops() }

// Complete reports that readers leave nothing out.
func (m InMemory) Complete() bool { return true }

// Close does nothing.
func (m InMemory) Close() error { return nil }

// Trace returns a copy of the trace that shares all columns.
func (m InMemory) Trace() (*Trace, error) {
	t := *m.trace
	return &t, nil
}

// Kinds returns the kinds of op that it has.
func (m InMemory) Kinds() (kinds []Kind, err error) {
	for kind := range Kind(NumKinds) {
		has := func(r Rank) bool { return slices.Contains(r.Kind, kind) }
		if slices.ContainsFunc(m.trace.Ranks, has) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// Batches returns a batch for each rank.
func (m InMemory) Batches() []Batch {
	batches := make([]Batch, len(m.trace.Ranks))
	for i := range batches {
		r := &m.trace.Ranks[i]
		batches[i] = Batch{First: i, Last: i + 1, Ops: int64(r.Len()), Deps: int64(len(r.Deps.Off)),
			StartDeps: int64(len(r.StartDeps.Off))}
	}
	return batches
}

// Reader returns a function that returns the ranks of a batch.
func (m InMemory) Reader() func(Batch) ([]Rank, error) {
	return func(b Batch) ([]Rank, error) { return m.trace.Ranks[b.First:b.Last], nil }
}
