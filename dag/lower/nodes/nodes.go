// Package nodes makes one rank of all ranks that share a node, so that backends which know of ranks alone see the network
// between nodes and nothing else. It works on any trace that says where its ranks run; ranks may be of several jobs.
//
// It also is how a pass writes ranks that may have to be joined as they are made (Writer, Ranks): package nccl does.
package nodes

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Options says how ranks of a node share it. The zero value is that messages inside a node take no time and that there is
// one set of network interfaces.
type Options struct {
	// Bandwidth is that of messages inside a node, in bytes a second. Either end of such a message is busy for half of what
	// its bytes take, in whole nanoseconds rounded down; 0: no time.
	Bandwidth int64
	// OwnNICs gives every rank network interfaces of its own, numbered after those of the ranks before it on its node;
	// otherwise interfaces of equal numbers are one.
	OwnNICs bool
	// SharedStreams makes streams of equal numbers one; otherwise every rank has streams of its own, numbered after those
	// of the ranks before it.
	SharedStreams bool
}

// maxNodes is how many nodes there may be.
const maxNodes = 1 << 24

// Join returns the trace with one rank for each node, rank i being node i. Nodes without ranks become empty ranks. It shares
// nothing with t, whose references must be in range ([dag.Rank.CheckReferences]).
//
// The ops of a node are those of its ranks, one rank after the other in ascending order, each with its name, attributes
// and measured times. Before them is a calc that takes no time, which all ops wait for that wait for nothing else; after
// them is another, which waits for all ops that nothing else waits for.
//
// A message between ranks of a node becomes two calcs, of which the one at the receiver waits for the other. Messages
// between nodes get tags from 0 on, so that what no two ranks could confuse before is not confused now; all are of
// communicator 0.
//
// It fails for collectives, which must be lowered before; for receives from any source or with any tag, for which another
// rank's message could be taken; and for messages inside a node that have no partner.
func Join(t *dag.Trace, o Options) (*dag.Trace, error) {
	c, err := newCopier(t)
	if err != nil {
		return nil, fmt.Errorf("joining the ranks of nodes: %w", err)
	}
	s, err := Joined(c, o)
	if err != nil {
		return nil, fmt.Errorf("joining the ranks of nodes: %w", err)
	}
	return s.ReadAll()
}

// layout is which ranks are on which node.
type layout struct {
	options Options
	joins   bool
	node    []int32   // of each old rank: the new rank
	place   []int32   // of each old rank among those of its node
	of      [][]int32 // the old ranks of each new rank, ascending
}

// plain is the layout that leaves ranks as they are.
func plain(ranks int) *layout {
	l := &layout{node: make([]int32, ranks), place: make([]int32, ranks), of: make([][]int32, ranks)}
	for i := range l.node {
		l.node[i] = int32(i)
		l.of[i] = l.node[i : i+1]
	}
	return l
}

func newLayout(nodes []int32, ranks int, o Options) (*layout, error) {
	l := plain(ranks)
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
			return nil, fmt.Errorf("rank %d is on node %d, expected 0..%d", rank, node, maxNodes-1)
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

// members returns the ranks on the node of one.
func (l *layout) members(rank int32) []int32 { return l.of[l.node[rank]] }

func (l *layout) ranks(rank int32) int { return len(l.members(rank)) }

// Ranks are ranks that can be written.
type Ranks interface {
	Meta() dag.Meta
	NumRanks() int
	Kinds() []dag.Kind // that the written ops may have besides calc, send and recv
	// Feed returns a function that writes all ops of a rank, in one goroutine. It is called for a rank at least twice and
	// writes the same each time.
	Feed() func(rank int, w *Writer) error
}

// Source is a trace that is made batch by batch, a batch being one new rank. It is a [dag.Source].
type Source struct {
	ranks  Ranks
	layout *layout
	sizes  []extent
	header dag.Header
}

// Joined returns the trace of one rank for each node, as [Join] describes it.
func Joined(r Ranks, o Options) (*Source, error) {
	l, err := newLayout(r.Meta().Nodes, r.NumRanks(), o)
	if err != nil {
		return nil, err
	}
	return newSource(r, l)
}

// Apart returns the trace of the ranks as they are.
func Apart(r Ranks) (*Source, error) {
	return newSource(r, plain(r.NumRanks()))
}

func newSource(r Ranks, l *layout) (*Source, error) {
	s := &Source{ranks: r, layout: l, sizes: make([]extent, len(l.of))}
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

// each calls work for every new rank, as par.EachWith does.
func (s *Source) each(work func(rank int, w *Writer, feed func(int, *Writer) error) error) error {
	type own struct {
		w    *Writer
		feed func(int, *Writer) error
	}
	newOwn := func() own { return own{newWriter(), s.ranks.Feed()} }
	_, err := par.EachWith(len(s.sizes), newOwn, func(o own, rank int) error { return work(rank, o.w, o.feed) })
	return err
}

// write has a new rank counted, where size is nil, or written.
func (s *Source) write(rank int, w *Writer, size *extent, feed func(int, *Writer) error) error {
	l := s.layout
	w.begin(l, size)
	joins := l.joins && len(l.of[rank]) > 0
	if joins {
		w.begins()
	}
	for _, old := range l.of[rank] {
		w.source(old)
		if err := feed(int(old), w); err != nil {
			return fmt.Errorf("rank %d: %w", old, err)
		}
	}
	if joins {
		w.ends()
	}
	return w.finish()
}

// makeHeader sets the header, given the sizes of the new ranks. It has no nodes and no attributes where ranks are joined,
// for they describe the ranks that were.
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

// Header returns the header, which costs nothing. It has a batch for each rank.
func (s *Source) Header() (*dag.Header, error) { return &s.header, nil }

// Close does nothing.
func (s *Source) Close() error { return nil }

// NewReader returns a reader of all columns.
func (s *Source) NewReader(dag.Columns) dag.Reader {
	w, feed := newWriter(), s.ranks.Feed()
	var rank [1]dag.Rank
	return func(b dag.Batch) ([]dag.Rank, error) {
		if b.First < 0 || b.First >= len(s.sizes) || b.Last != b.First+1 {
			return nil, fmt.Errorf("no batch of ranks %d to %d", b.First, b.Last-1)
		}
		if err := s.write(b.First, w, &s.sizes[b.First], feed); err != nil {
			return nil, err
		}
		rank[0] = w.rank
		return rank[:], nil
	}
}

// ReadAll returns the whole trace.
func (s *Source) ReadAll() (*dag.Trace, error) {
	t := &dag.Trace{Meta: s.header.Meta, Comms: s.header.Comms, Ranks: make([]dag.Rank, s.header.Ranks)}
	err := s.each(func(rank int, w *Writer, feed func(int, *Writer) error) error {
		w.rank = dag.Rank{}
		if err := s.write(rank, w, &s.sizes[rank], feed); err != nil {
			return err
		}
		t.Ranks[rank] = w.rank
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Calcs returns how many calcs a rank has, and how many nanoseconds those take in all that messages inside its node have
// become.
func (s *Source) Calcs(rank int) (calcs, transferNS int64) {
	return s.sizes[rank].calcs, s.sizes[rank].transferNS
}

func newWriter() *Writer { return &Writer{local: &local{}} }
