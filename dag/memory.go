package dag

import "sync"

// inMemory is a source for a trace in memory.
type inMemory struct {
	trace  *Trace
	header func() *Header
}

// batchRanks is the limit of ranks without ops in a batch.
const batchRanks = 1 << 12

// FromTrace returns a source for a trace in memory, with one batch per rank with ops. Its readers return the ranks
// themselves, not copies, with all columns. The first call of Header fixes the header; it does not show later changes
// of the trace.
func FromTrace(t *Trace) Source {
	m := &inMemory{trace: t}
	m.header = sync.OnceValue(m.makeHeader)
	return m
}

func (m *inMemory) makeHeader() *Header {
	checkNone()
	h := &Header{
		Meta: m.trace.Meta, Comms: m.trace.Comms, Ranks: len(m.trace.Ranks), Ops: m.trace.Ops(), Kinds: m.trace.Kinds(),
		Stable: true,
	}
	last := Batch{}
	for i, r := range m.trace.Ranks {
		if last.Last > last.First && last.Ops > 0 || last.Last-last.First == batchRanks {
			h.Batches = append(h.Batches, last)
			last = Batch{First: i}
		}
		last.Last = i + 1
		last.Ops += int64(r.Len())
		last.Deps += int64(len(r.Deps.Off))
		last.StartDeps += int64(len(r.StartDeps.Off))
	}
	if last.Last > last.First {
		h.Batches = append(h.Batches, last)
	}
	return h
}

func (m *inMemory) Header() (*Header, error) {
	return m.header(), nil
}

func (m *inMemory) NewReader(Columns) Reader {
	return func(b Batch) ([]*Rank, error) { return m.trace.Ranks[b.First:b.Last], nil }
}

func (m *inMemory) Close() error {
	return nil
}

// ReadAll returns a copy of the trace that shares all columns.
func (m *inMemory) ReadAll() (*Trace, error) {
	t := *m.trace
	return &t, nil
}
