package openloop

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
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
}

// Stream is messages in the order of their times.
type Stream interface {
	// Next returns the next messages, none at the end. They are valid until the next call.
	Next() []Message
}

// Source is the trace of a workload, made batch by batch. Each batch draws all messages and keeps those of its ranks:
// no more than a batch is in memory.
type Source struct {
	Model
	messages int64
	ops      []uint32 // per rank
	batches  []dag.Batch
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
	m := Model{dag.Meta{Title: p.Title}, p.Tasks, func() Stream { return p.stream() }}
	return &Source{m, p.Messages, ops, divide(ops, maxBatch)}, nil
}

// NewModelSource returns the trace of a model. It draws the messages once, to count them, and passes them to look.
func NewModelSource(m Model, look func([]Message)) (*Source, error) {
	s := &Source{Model: m, ops: make([]uint32, m.Tasks)}
	stream := m.Messages()
	for drawn := stream.Next(); len(drawn) > 0; drawn = stream.Next() {
		s.messages += int64(len(drawn))
		for i := range drawn {
			from, to := &s.ops[drawn[i].Source], &s.ops[drawn[i].Destination]
			*from++
			*to++
			if max(*from, *to) > MaxRankOps {
				return nil, tooMany(s.messages, m.Tasks)
			}
		}
		look(drawn)
	}
	s.batches = divide(s.ops, maxBatch)
	return s, nil
}

// NewCountedSource returns the trace of a model with known numbers of ops per rank, at most MaxRankOps each, in batches
// of at most batchOps ops or one rank. It draws no messages.
func NewCountedSource(m Model, ops []uint32, batchOps int64) *Source {
	s := &Source{Model: m, ops: ops, batches: divide(ops, batchOps)}
	for _, b := range s.batches {
		s.messages += b.Ops / 2
	}
	return s
}

// count returns how many ops each rank has.
func (p *plan) count() ([]uint32, error) {
	if p.Messages > MaxRankOps/2*int64(p.Tasks) {
		return nil, tooMany(p.Messages, p.Tasks)
	}
	ops := make([]uint32, p.Tasks)
	routes := p.routes()
	for left := p.Messages; left > 0; {
		// No rank gets more ops in a round than it may still have without overflow.
		n := min(left, 1<<30)
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
		fmt.Sprintf("so few that none of %d ranks has more than %d ops", tasks, MaxRankOps)}
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

// Meta returns the trace's metadata: its title, and the names of jobs where there are several.
func (s *Source) Meta() dag.Meta {
	return s.Model.Meta
}

// Comms returns the communicator of all ranks.
func (s *Source) Comms() []dag.Comm {
	return []dag.Comm{dag.World(s.NumRanks())}
}

// NumRanks returns the number of tasks.
func (s *Source) NumRanks() int {
	return s.Tasks
}

// NumOps returns the number of ops, which is exact.
func (s *Source) NumOps() int64 {
	return 2 * s.messages
}

// Kinds returns sends and receives.
func (s *Source) Kinds() ([]dag.Kind, error) {
	return []dag.Kind{dag.Send, dag.Recv}, nil
}

// Batches divides all ranks. The number of ops of each batch is exact.
func (s *Source) Batches() []dag.Batch {
	return s.batches
}

// Complete reports that readers leave nothing out.
func (s *Source) Complete() bool {
	return true
}

// Close does nothing.
func (s *Source) Close() error {
	return nil
}

// Reader returns a function that makes the ranks of a batch. What it returns is good until it is called again. A reader
// is for one goroutine; several may be used at the same time.
func (s *Source) Reader() func(dag.Batch) ([]dag.Rank, error) {
	var c columns
	return func(b dag.Batch) ([]dag.Rank, error) {
		if c.kind == nil { // large enough for every batch
			c = s.newColumns(slices.MaxFunc(s.batches, func(a, b dag.Batch) int { return cmp.Compare(a.Ops, b.Ops) }).Ops)
		}
		return s.fill(b, &c), nil
	}
}

// Trace makes the whole trace.
func (s *Source) Trace() (*dag.Trace, error) {
	all := dag.Batch{Last: s.NumRanks(), Ops: s.NumOps()}
	c := s.newColumns(all.Ops)
	return &dag.Trace{Meta: s.Meta(), Comms: s.Comms(), Ranks: s.fill(all, &c)}, nil
}

// columns are those of the ops of a batch, rank after rank.
type columns struct {
	kind    []dag.Kind
	bytes   []int64
	peer    []int32
	tag     []int64
	release []dag.Time
	job     []uint8 // nil: there is one
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
func (s *Source) fill(b dag.Batch, c *columns) []dag.Rank {
	at := make([]int64, b.Last-b.First) // where each rank's next op goes
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
		for i := range messages {
			m := &messages[i]
			add(m.Source, dag.Send, m, m.Destination, tag, m.Time)
			add(m.Destination, dag.Recv, m, m.Source, tag, 0)
			tag++
		}
	}
	ranks := make([]dag.Rank, len(at))
	first := int64(0)
	for i, end := range at {
		ranks[i] = dag.Rank{
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
	return ranks
}
