package dag

import "sync"

// inMemory is a source for a trace in memory.
type inMemory struct {
	trace  *Trace
	header func() *Header
}

// FromTrace returns a source for a trace in memory, with one batch per rank. Its readers return the ranks themselves,
// not copies, with all columns. The first call of Header fixes the header; it does not show later changes of the
// trace.
func FromTrace(t *Trace) Source {
	m := &inMemory{trace: t}
	m.header = sync.OnceValue(m.makeHeader)
	return m
}

func (m *inMemory) makeHeader() *Header {
	h := &Header{
		Meta: m.trace.Meta, Comms: m.trace.Comms, Ranks: len(m.trace.Ranks), Ops: m.trace.Ops(), Kinds: m.trace.Kinds(),
		Batches: make([]Batch, len(m.trace.Ranks)), Stable: true,
	}
	for i := range h.Batches {
		r := &m.trace.Ranks[i]
		h.Batches[i] = Batch{First: i, Last: i + 1, Ops: int64(r.Len()), Deps: int64(len(r.Deps.Off)),
			StartDeps: int64(len(r.StartDeps.Off))}
	}
	return h
}

func (m *inMemory) Header() (*Header, error) {
	return m.header(), nil
}

func (m *inMemory) NewReader(Columns) Reader {
	return func(b Batch) ([]Rank, error) { return m.trace.Ranks[b.First:b.Last], nil }
}

func (m *inMemory) Close() error {
	return nil
}

// ReadAll returns a copy of the trace that shares all columns.
func (m *inMemory) ReadAll() (*Trace, error) {
	t := *m.trace
	return &t, nil
}
