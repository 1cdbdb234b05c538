package dag

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// Source is a trace that is read or generated batch by batch, so it need not fit in memory.
//
// The references of its ranks must be in range ([Rank.CheckReferences]). A source that can deliver the whole trace
// faster than batch by batch implements ReadAll() (*Trace, error), which [ReadAll] calls.
type Source interface {
	// Header returns the header. The first call may read part of the trace, for example to find the kinds of op;
	// later calls return the same header at once. The header must not be changed. Header may be called concurrently.
	Header() (*Header, error)
	// NewReader returns a reader of the given columns. Several readers may be used concurrently.
	NewReader(Columns) Reader
	// Close releases the resources of the source. An input that the source reads must stay open until then.
	Close() error
}

// Header describes a trace before its ops are read.
type Header struct {
	Meta
	Comms []Comm
	Ranks int
	Ops   int64  // exact
	Kinds []Kind // kinds of op that the trace may have

	// Unreleased reports that no op has a release time. If false, ops may have some.
	Unreleased bool

	// Batches divides all ranks, in ascending order. No two batches share a part of the input, so each part is read
	// once.
	Batches []Batch

	// Stable reports that a reader's ranks stay valid and unchanged after its next call, and that ranks with the same
	// columns may share them. It is true for a trace in memory.
	Stable bool
}

// Find returns the index in Batches of the batch with the ranks of b, and whether there is one.
func (h *Header) Find(b Batch) (k int, found bool) {
	k, found = slices.BinarySearchFunc(h.Batches, b.First, func(b Batch, first int) int { return b.First - first })
	return k, found && h.Batches[k].Last == b.Last
}

// Batch is a run of ranks that a reader delivers together. Its size bounds let callers allocate buffers in advance.
type Batch struct {
	First, Last     int   // ranks First to Last-1
	Ops             int64 // number of ops
	Deps, StartDeps int64 // upper bounds on the number of dependencies of each kind
}

// Columns selects the columns that a reader delivers.
type Columns uint8

// Selections of columns.
const (
	Replay  Columns = iota // what a replay needs; names, attributes, measured times, jobs and steps may be absent
	Stepped                // those and steps
	All                    // all columns
)

// Has reports whether a reader of the columns must deliver a field.
func (c Columns) Has(id FieldID) bool {
	return c == All || Fields[id].Replay || c == Stepped && id == FieldStep
}

// Reader reads a batch of Header.Batches and returns its ranks in ascending order. The ranks are valid until the next
// call. They may share columns, so callers must not change these. A reader is for one goroutine.
type Reader func(Batch) ([]*Rank, error)

// Ranks calls the reader, and returns an error unless it returns the ranks of the batch.
func (r Reader) Ranks(b Batch) ([]*Rank, error) {
	ranks, err := r(b)
	if err == nil && len(ranks) != b.Last-b.First {
		err = fmt.Errorf("reader returned %d ranks, expected ranks %d to %d", len(ranks), b.First, b.Last-1)
	}
	return ranks, err
}

// ReadAll reads the whole trace, several batches in parallel. The result for a trace in memory shares its columns. If
// several batches fail, it returns the error of the first of them.
func ReadAll(s Source) (*Trace, error) {
	if whole, ok := s.(wholeReader); ok {
		return whole.ReadAll()
	}
	return readBatches(s)
}

// wholeReader is implemented by sources that deliver the whole trace faster than batch by batch.
type wholeReader interface{ ReadAll() (*Trace, error) }

// readBatches reads the whole trace batch by batch.
func readBatches(s Source) (*Trace, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	t := &Trace{Meta: h.Meta, Comms: h.Comms, Ranks: NewRanks(h.Ranks)}
	newReader := func() Reader { return s.NewReader(All) }
	_, err = par.EachWith(len(h.Batches), newReader, func(read Reader, i int) error {
		return readBatch(t, read, h.Batches[i], h.Stable)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// readBatch reads a batch into the trace. It copies the columns unless they are stable.
func readBatch(t *Trace, read Reader, b Batch, stable bool) error {
	ranks, err := read.Ranks(b)
	if err != nil {
		return err
	}
	for i, r := range ranks {
		switch {
		case stable:
			t.Ranks[b.First+i] = r
		case r.Len() > 0:
			t.Ranks[b.First+i] = r.Clone()
		}
	}
	return nil
}

// Gradual returns a source of the same trace for consumers to which memory matters more than time: with smaller
// batches, if s can divide its own (Gradual() Source), else s itself.
func Gradual(s Source) Source {
	if g, ok := s.(interface{ Gradual() Source }); ok {
		return g.Gradual()
	}
	return s
}

// WithContext returns the source with readers that fail once ctx has ended; their error wraps the cause of the
// context. Consumers of batches, such as lowering, writing and compiling, then end within one batch.
func WithContext(ctx context.Context, s Source) Source {
	return &cancellable{s, ctx}
}

type cancellable struct {
	Source
	ctx context.Context
}

func (c *cancellable) Header() (*Header, error) {
	if err := c.err(); err != nil {
		return nil, err
	}
	return c.Source.Header()
}

func (c *cancellable) NewReader(columns Columns) Reader {
	read := c.Source.NewReader(columns)
	return func(b Batch) ([]*Rank, error) {
		if err := c.err(); err != nil {
			return nil, err
		}
		return read(b)
	}
}

func (c *cancellable) ReadAll() (*Trace, error) {
	whole, ok := c.Source.(wholeReader)
	if !ok {
		return readBatches(c)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return whole.ReadAll()
}

func (c *cancellable) err() error {
	if err := par.Interrupted(c.ctx); err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	return nil
}

// WithHeader returns the source with another header. Only its metadata and communicators may differ from the
// original.
func WithHeader(s Source, h *Header) Source {
	return &headed{s, h}
}

type headed struct {
	Source
	header *Header
}

func (h *headed) Header() (*Header, error) {
	return h.header, nil
}

func (h *headed) ReadAll() (*Trace, error) {
	t, err := ReadAll(h.Source)
	if err != nil {
		return nil, err
	}
	whole := *t
	whole.Meta, whole.Comms = h.header.Meta, h.header.Comms
	return &whole, nil
}

// Kinds returns the kinds of op that the trace has, ascending.
func (t *Trace) Kinds() []Kind {
	all := par.ForWith(len(t.Ranks), func() *[256]bool { return new([256]bool) }, func(seen *[256]bool, rank int) {
		for _, kind := range t.Ranks[rank].Kind {
			seen[kind] = true
		}
	})
	return KindsOf(func(kind Kind) bool {
		return slices.ContainsFunc(all, func(seen *[256]bool) bool { return seen[kind] })
	})
}

// KindsOf returns the kinds that has reports, ascending.
func KindsOf(has func(Kind) bool) (kinds []Kind) {
	for kind := range Kind(NumKinds) {
		if has(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
