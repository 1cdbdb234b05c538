// Package nodes joins all ranks of a node to one rank, so that a backend simulates the network between nodes only. It
// works on any trace that states the nodes of its ranks; the ranks may belong to several jobs.
//
// Other passes use [Writer] and [Ranks] to write ranks that may be joined on the fly; package nccl is an example.
package nodes

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Options are the options for joining ranks. In the zero value, messages inside a node take no time and the ranks share
// one set of NICs.
type Options struct {
	// Bandwidth is the bandwidth of messages inside a node in bytes per second; 0: no time. Each end of such a message
	// is busy for half the transfer time, rounded down to whole nanoseconds.
	Bandwidth int64
	// OwnNICs gives every rank NICs of its own, numbered after those of earlier ranks on its node. Otherwise NICs of
	// equal numbers are the same.
	OwnNICs bool
	// SharedStreams merges streams of equal numbers. Otherwise every rank has streams of its own, numbered after those
	// of earlier ranks.
	SharedStreams bool
}

// maxNodes is the maximum number of nodes.
const maxNodes = 1 << 24

// Join returns the trace with one rank per node; rank i is node i. Nodes without ranks become empty ranks. The
// references of t must be in range ([dag.Rank.CheckReferences]). The result shares nothing with t.
//
// The ops of a node are the ops of its ranks in ascending order of rank, with their names, attributes and measured
// times. A calc of zero duration precedes them; ops without other dependencies wait for it. Another one follows them
// and waits for all ops without other dependents.
//
// A message between ranks of a node becomes two calcs; the calc of the receiver waits for that of the sender. Messages
// between nodes get new tags from 0 on and communicator 0; messages that could not match before do not match
// afterwards.
//
// Join returns an error for collectives, which must be lowered first; for receives from any source or with any tag,
// which could match messages of another rank; and for messages inside a node without partner.
//
// Join ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Join(ctx context.Context, t *dag.Trace, o Options) (*dag.Trace, error) {
	c, err := newCopier(t)
	if err != nil {
		return nil, fmt.Errorf("joining the ranks of nodes: %w", err)
	}
	s, err := Joined(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("joining the ranks of nodes: %w", err)
	}
	return s.ReadAll()
}

// layout maps old ranks to new ranks.
type layout struct {
	options Options
	joins   bool
	node    []int32   // new rank of each old rank
	place   []int32   // index of each old rank among those of its node
	of      [][]int32 // old ranks of each new rank, ascending
}

// identity returns the layout that does not join ranks.
func identity(ranks int) *layout {
	l := &layout{node: make([]int32, ranks), place: make([]int32, ranks), of: make([][]int32, ranks)}
	for i := range l.node {
		l.node[i] = int32(i)
		l.of[i] = l.node[i : i+1]
	}
	return l
}

func newLayout(nodes []int32, ranks int, o Options) (*layout, error) {
	l := identity(ranks)
	l.joins, l.options = true, o
	if nodes == nil {
		return l, nil
	}
	if len(nodes) != ranks {
		return nil, fmt.Errorf("the trace names the nodes of %d ranks, expected %d", len(nodes), ranks)
	}
	count := 0
	for rank, node := range nodes {
		if node < 0 || node >= maxNodes {
			return nil, fmt.Errorf("rank %d: node %d, expected 0..%d", rank, node, maxNodes-1)
		}
		count = max(count, int(node)+1)
	}
	l.node, l.of = nodes, make([][]int32, count)
	for rank, node := range nodes {
		l.place[rank] = int32(len(l.of[node]))
		l.of[node] = append(l.of[node], int32(rank))
	}
	return l, nil
}

// members returns the old ranks on the node of an old rank.
func (l *layout) members(rank int32) []int32 { return l.of[l.node[rank]] }

func (l *layout) ranks(rank int32) int { return len(l.members(rank)) }

// Ranks is a set of ranks that a pass writes.
type Ranks interface {
	Meta() dag.Meta
	NumRanks() int
	Kinds() []dag.Kind // kinds of the written ops besides calc, send and recv
	// Feed returns a function that writes all ops of a rank, for use in one goroutine. The function is called at least
	// twice per rank and must write the same ops each time.
	Feed() func(rank int, w *Writer) error
}

// Source is a [dag.Source] that makes each batch, one new rank, when it is read.
type Source struct {
	ctx    context.Context // ends counting and ReadAll early; nil: never
	ranks  Ranks
	layout *layout
	sizes  []extent
	header dag.Header
}

// Joined returns the trace with one rank per node, as [Join] describes it. Joined ends early, with an error that wraps
// the context's cause, when ctx ends; nil never ends.
func Joined(ctx context.Context, r Ranks, o Options) (*Source, error) {
	l, err := newLayout(r.Meta().Nodes, r.NumRanks(), o)
	if err != nil {
		return nil, err
	}
	return newSource(ctx, r, l)
}

// Apart returns the trace of the ranks without joining them. Apart ends early, with an error that wraps the context's
// cause, when ctx ends; nil never ends.
func Apart(ctx context.Context, r Ranks) (*Source, error) {
	return newSource(ctx, r, identity(r.NumRanks()))
}

func newSource(ctx context.Context, r Ranks, l *layout) (*Source, error) {
	s := &Source{ctx: ctx, ranks: r, layout: l, sizes: make([]extent, len(l.of))}
	err := s.each(func(rank int, w *Writer, feed func(int, *Writer) error) error {
		if err := s.write(rank, w, nil, feed); err != nil {
			return err
		}
		s.sizes[rank] = w.counts
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.makeHeader()
	return s, nil
}

// each calls work for every new rank in parallel, as par.EachWith does.
func (s *Source) each(work func(rank int, w *Writer, feed func(int, *Writer) error) error) error {
	type own struct {
		w    *Writer
		feed func(int, *Writer) error
	}
	newOwn := func() own { return own{newWriter(), s.ranks.Feed()} }
	_, err := par.EachWith(len(s.sizes), newOwn, func(o own, rank int) error { return work(rank, o.w, o.feed) })
	return err
}

// write counts a new rank if size is nil, and writes it otherwise.
func (s *Source) write(rank int, w *Writer, size *extent, feed func(int, *Writer) error) error {
	l := s.layout
	w.begin(l, size)
	joins := l.joins && len(l.of[rank]) > 0
	if joins {
		w.addFirst()
	}
	for _, old := range l.of[rank] {
		if err := par.Interrupted(s.ctx); err != nil {
			return err
		}
		w.source(old)
		if err := feed(int(old), w); err != nil {
			return fmt.Errorf("rank %d: %w", old, err)
		}
	}
	if joins {
		w.addLast()
	}
	return w.finish()
}

// makeHeader sets the header from the sizes of the new ranks. A trace of joined ranks has no nodes and no attributes,
// because these describe the old ranks.
func (s *Source) makeHeader() {
	h := &s.header
	h.Meta = s.ranks.Meta()
	if s.layout.joins {
		h.Nodes, h.Attrs = nil, ""
	}
	h.Ranks = len(s.sizes)
	h.Comms = []dag.Comm{dag.World(h.Ranks)}
	h.Batches = make([]dag.Batch, h.Ranks)
	for i := range h.Batches {
		size := &s.sizes[i]
		h.Batches[i] = dag.Batch{First: i, Last: i + 1, Ops: size.ops, Deps: size.deps, StartDeps: size.starts}
		h.Ops += size.ops
	}
	h.Kinds = []dag.Kind{dag.Calc, dag.Send, dag.Recv}
	for _, kind := range s.ranks.Kinds() {
		if !slices.Contains(h.Kinds, kind) {
			h.Kinds = append(h.Kinds, kind)
		}
	}
}

// Header returns the header, which has one batch per rank.
func (s *Source) Header() (*dag.Header, error) { return &s.header, nil }

// Close does nothing.
func (s *Source) Close() error { return nil }

// NewReader returns a reader of all columns.
func (s *Source) NewReader(dag.Columns) dag.Reader {
	w, feed := newWriter(), s.ranks.Feed()
	var rank [1]*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		if b.First < 0 || b.First >= len(s.sizes) || b.Last != b.First+1 {
			return nil, fmt.Errorf("no batch of ranks %d to %d", b.First, b.Last-1)
		}
		if err := s.write(b.First, w, &s.sizes[b.First], feed); err != nil {
			return nil, err
		}
		rank[0] = &w.rank
		return rank[:], nil
	}
}

// ReadAll returns the whole trace.
func (s *Source) ReadAll() (*dag.Trace, error) {
	t := &dag.Trace{Meta: s.header.Meta, Comms: s.header.Comms, Ranks: dag.NewRanks(s.header.Ranks)}
	err := s.each(func(rank int, w *Writer, feed func(int, *Writer) error) error {
		w.rank = dag.Rank{}
		if err := s.write(rank, w, &s.sizes[rank], feed); err != nil {
			return err
		}
		t.Ranks[rank] = w.rank.Keep()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Calcs returns the number of calcs of a rank, and the total duration in ns of the calcs that replace messages inside
// its node.
func (s *Source) Calcs(rank int) (calcs, transferNS int64) {
	return s.sizes[rank].calcs, s.sizes[rank].transferNS
}

func newWriter() *Writer { return &Writer{local: &local{}} }
