package openloop

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// maxBatch is the default limit of the ops in a batch of several ranks. A reader takes 30 bytes for each.
const maxBatch = 8 << 20

// MaxRankOps is the limit of the ops of a rank: it is in memory as a whole.
const MaxRankOps = 1 << 26

// Model is a workload given by its messages.
type Model struct {
	Meta  dag.Meta
	Tasks int // one per rank; 1..MaxTasks
	// Messages returns the messages from the first on, the same ones on each call.
	Messages func() Stream

	Context context.Context // ends counting and reading early, with an error that wraps its cause; nil: never
}

// Stream is messages in the order of their times.
type Stream interface {
	// Next returns the next messages, none at the end. They are valid until the next call.
	Next() []Message
}

// Source is the trace of a workload, made batch by batch. Each batch draws all messages and keeps those of its ranks:
// no more than a batch is in memory. It is a [dag.Source].
type Source struct {
	Model
	ops    []uint32 // per rank
	header dag.Header
}

// NewSource returns the trace of a workload. It draws the messages once, to count them.
func NewSource(w Workload) (*Source, error) {
	return newSource(w, maxBatch)
}

func newSource(w Workload, maxBatch int64) (*Source, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	p, err := newPlan(w)
	if err != nil {
		return nil, err
	}
	ops, err := p.count()
	if err != nil {
		return nil, err
	}
	m := Model{dag.Meta{Title: p.Title}, p.Tasks, func() Stream { return p.stream() }, w.Context}
	return NewCountedSource(m, ops, maxBatch), nil
}

// NewModelSource returns the trace of a model. It draws the messages once, to count them, and passes them to look.
func NewModelSource(m Model, look func([]Message)) (*Source, error) {
	ops := make([]uint32, m.Tasks)
	stream := m.Messages()
	messages := int64(0)
	for drawn := stream.Next(); len(drawn) > 0; drawn = stream.Next() {
		if err := par.Interrupted(m.Context); err != nil {
			return nil, err
		}
		messages += int64(len(drawn))
		for i := range drawn {
			from, to := &ops[drawn[i].Source], &ops[drawn[i].Destination]
			*from++
			*to++
			if max(*from, *to) > MaxRankOps {
				return nil, tooMany(messages, m.Tasks)
			}
		}
		look(drawn)
	}
	return NewCountedSource(m, ops, maxBatch), nil
}

// NewCountedSource returns the trace of a model with known numbers of ops per rank, at most MaxRankOps each, in batches
// of at most batchOps ops or one rank. It draws no messages.
func NewCountedSource(m Model, ops []uint32, batchOps int64) *Source {
	s := &Source{Model: m, ops: ops}
	s.header = dag.Header{
		Meta: m.Meta, Comms: []dag.Comm{dag.World(m.Tasks)}, Ranks: m.Tasks, Kinds: []dag.Kind{dag.Send, dag.Recv},
		Batches: divide(ops, batchOps),
	}
	for _, b := range s.header.Batches {
		s.header.Ops += b.Ops
	}
	return s
}

// count returns the number of ops of each rank.
func (p *plan) count() ([]uint32, error) {
	if p.Messages > MaxRankOps/2*int64(p.Tasks) {
		return nil, tooMany(p.Messages, p.Tasks)
	}
	ops := make([]uint32, p.Tasks)
	routes := p.routes()
	for left := p.Messages; left > 0; {
		// Rounds are short enough that no rank's count overflows within one, and that the context ends it soon.
		n := min(left, 1<<22)
		if err := par.Interrupted(p.Context); err != nil {
			return nil, err
		}
		left -= n
		for range n {
			_, source, destination := routes.next()
			ops[source]++
			ops[destination]++
		}
		if slices.Max(ops) > MaxRankOps {
			return nil, tooMany(p.Messages, p.Tasks)
		}
	}
	return ops, nil
}

func tooMany(messages int64, tasks int) error {
	return &ParamError{"messages", fmt.Sprint(messages),
		fmt.Sprintf("fewer, with at most %d ops on each of %d ranks", MaxRankOps, tasks)}
}

// divide divides all ranks into batches of at most maxOps ops, or one rank.
func divide(ops []uint32, maxOps int64) []dag.Batch {
	var batches []dag.Batch
	b := dag.Batch{}
	for rank, n := range ops {
		if b.Last > b.First && b.Ops+int64(n) > maxOps {
			batches = append(batches, b)
			b = dag.Batch{First: rank}
		}
		b.Last = rank + 1
		b.Ops += int64(n)
	}
	return append(batches, b)
}

// Header returns the header, which costs nothing. The number of ops of each batch is exact.
func (s *Source) Header() (*dag.Header, error) {
	return &s.header, nil
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}

// NewReader returns a reader that generates all columns of the ranks of a batch.
func (s *Source) NewReader(dag.Columns) dag.Reader {
	var c columns
	return func(b dag.Batch) ([]*dag.Rank, error) {
		if c.kind == nil { // large enough for every batch
			c = s.newColumns(slices.MaxFunc(s.header.Batches, func(a, b dag.Batch) int {
				return cmp.Compare(a.Ops, b.Ops)
			}).Ops)
		}
		return s.fill(b, &c)
	}
}

// ReadAll generates the whole trace in one pass through the messages.
func (s *Source) ReadAll() (*dag.Trace, error) {
	h := &s.header
	c := s.newColumns(h.Ops)
	ranks, err := s.fill(dag.Batch{Last: h.Ranks, Ops: h.Ops}, &c)
	if err != nil {
		return nil, err
	}
	return &dag.Trace{Meta: h.Meta, Comms: h.Comms, Ranks: ranks}, nil
}

// columns are the columns of the ops of a batch, rank after rank.
type columns struct {
	kind    []dag.Kind
	bytes   []int64
	peer    []int32
	tag     []int64
	release []dag.Time
	job     []uint8 // nil: one job
}

func (s *Source) newColumns(ops int64) columns {
	c := columns{
		make([]dag.Kind, ops), make([]int64, ops), make([]int32, ops), make([]int64, ops), make([]dag.Time, ops), nil,
	}
	if len(s.Model.Meta.Jobs) > 1 {
		c.job = make([]uint8, ops)
	}
	return c
}

// fill draws all messages and enters the ops of the batch's ranks into the columns.
func (s *Source) fill(b dag.Batch, c *columns) ([]*dag.Rank, error) {
	at := make([]int64, b.Last-b.First) // index of each rank's next op
	end := int64(0)
	for i := range at {
		at[i] = end
		end += int64(s.ops[b.First+i])
	}
	add := func(rank int32, kind dag.Kind, m *Message, peer int32, tag int64, release dag.Time) {
		i := uint(int(rank) - b.First)
		if i >= uint(len(at)) {
			return
		}
		op := at[i]
		at[i]++
		c.kind[op], c.bytes[op], c.peer[op], c.tag[op], c.release[op] = kind, m.Bytes, peer, tag, release
		if c.job != nil {
			c.job[op] = m.Job
		}
	}
	stream := s.Messages()
	tag := int64(0)
	for messages := stream.Next(); len(messages) > 0; messages = stream.Next() {
		if err := par.Interrupted(s.Context); err != nil {
			return nil, err
		}
		for i := range messages {
			m := &messages[i]
			add(m.Source, dag.Send, m, m.Destination, tag, m.Time)
			add(m.Destination, dag.Recv, m, m.Source, tag, 0)
			tag++
		}
	}
	ranks := dag.NewRanks(len(at))
	first := int64(0)
	for i, end := range at {
		if first == end {
			continue
		}
		ranks[i] = &dag.Rank{
			Kind:    c.kind[first:end:end],
			Bytes:   c.bytes[first:end:end],
			Peer:    c.peer[first:end:end],
			Tag:     c.tag[first:end:end],
			Release: c.release[first:end:end],
		}
		if c.job != nil {
			ranks[i].Job = dag.NewNarrow(c.job[first:end:end], nil)
		}
		first = end
	}
	return ranks, nil
}
