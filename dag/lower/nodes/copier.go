package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// copier writes the ranks of a trace op by op.
type copier struct {
	trace *dag.Trace
	tags  map[lane]int64 // offset that is added to the tags of each lane
}

// lane identifies messages that match by tag alone.
type lane struct{ from, to, comm int32 }

func (a lane) compare(b lane) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.comm, b.comm))
}

func newCopier(t *dag.Trace) (*copier, error) {
	c := &copier{trace: t}
	err := c.placeTags()
	if err == errSparse {
		c.trace = denseTags(t)
		err = c.placeTags()
	}
	if err == errSparse {
		err = errors.New("the messages from one node to another have more than 2^31 tags")
	}
	return c, err
}

// errSparse is the error for tags that span too large a range.
var errSparse = errors.New("sparse tags")

// placeTags sets tag offsets so that messages of different lanes between two nodes have different tags.
func (c *copier) placeTags() error {
	t := c.trace
	used, err := c.usedTags()
	if err != nil {
		return err
	}
	lanes := make([]lane, 0, len(used))
	for l := range used {
		lanes = append(lanes, l)
	}
	slices.SortFunc(lanes, lane.compare)
	node := func(rank int32) int32 {
		if t.Nodes == nil || int(rank) >= len(t.Nodes) {
			return rank
		}
		return t.Nodes[rank]
	}
	next := make(map[[2]int32]int64) // by node pair
	c.tags = make(map[lane]int64, len(lanes))
	for _, l := range lanes {
		tags := used[l]
		pair := [2]int32{node(l.from), node(l.to)}
		size := uint64(tags.last) - uint64(tags.first)
		if size >= math.MaxInt32 || next[pair]+int64(size) >= math.MaxInt32 {
			return errSparse
		}
		c.tags[l] = next[pair] - tags.first
		next[pair] += int64(size) + 1
	}
	return nil
}

// denseTags returns a trace whose tags are renumbered from 0 without gaps. The order and equality of tags are
// unchanged; [dag.AnyTag] remains. denseTags does not change t.
func denseTags(t *dag.Trace) *dag.Trace {
	number := make(map[int64]int64)
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send || kind == dag.Recv {
				number[r.Tag.At(i)] = 0
			}
		}
	}
	delete(number, dag.AnyTag)
	tags := slices.Sorted(maps.Keys(number))
	for i, tag := range tags {
		number[tag] = int64(i)
	}
	number[dag.AnyTag] = dag.AnyTag
	out := *t
	out.Ranks = dag.CopyRanks(t.Ranks)
	for _, r := range out.Ranks {
		if r.Len() == 0 {
			continue
		}
		r.Tag = slices.Clone(r.Tag)
		for i, kind := range r.Kind {
			if kind == dag.Send || kind == dag.Recv {
				r.Tag.Set(i, number[r.Tag.At(i)])
			}
		}
	}
	return &out
}

// span is the lowest and the highest tag of a lane.
type span struct{ first, last int64 }

// usedTags returns the tags of all lanes. It returns an error for ops that cannot be joined.
func (c *copier) usedTags() (map[lane]span, error) {
	used := make(map[lane]span)
	var at lane // of the last message; tags is its span
	tags := span{math.MaxInt64, math.MinInt64}
	for rank := range c.trace.Ranks {
		r := c.trace.Ranks[rank]
		for i, kind := range r.Kind {
			l := lane{int32(rank), r.Peer.At(i), r.Comm.At(i)}
			switch kind {
			case dag.Recv:
				l.from, l.to = l.to, l.from
				if l.from == dag.AnySource || r.Tag.At(i) == dag.AnyTag {
					return nil, fmt.Errorf("rank %d, op %d: receive from any source or with any tag may match "+
						"a message of another rank of the node", rank, i)
				}
			case dag.Coll:
				return nil, errors.New("the trace has collectives, which cannot be joined: add --lower collectives")
			}
			if kind != dag.Send && kind != dag.Recv {
				continue
			}
			if min(l.from, l.to) < 0 || int(max(l.from, l.to)) >= len(c.trace.Ranks) {
				return nil, fmt.Errorf("rank %d, op %d: %v with rank %d, expected 0..%d", rank, i, kind, r.Peer.At(i),
					len(c.trace.Ranks)-1)
			}
			tag := r.Tag.At(i)
			if l == at && tag >= tags.first && tag <= tags.last {
				continue
			}
			at = l
			known, ok := used[l]
			if !ok {
				known = span{tag, tag}
			}
			tags = span{min(known.first, tag), max(known.last, tag)}
			used[l] = tags
		}
	}
	return used, nil
}

// Meta returns the metadata of the trace.
func (c *copier) Meta() dag.Meta { return c.trace.Meta }

// NumRanks returns how many ranks the trace has.
func (c *copier) NumRanks() int { return len(c.trace.Ranks) }

// Kinds returns the kinds of the ops of the trace.
func (c *copier) Kinds() []dag.Kind { return c.trace.Kinds() }

// Feed returns a function that writes a rank.
func (c *copier) Feed() func(rank int, w *Writer) error {
	return func(rank int, w *Writer) error {
		r := c.trace.Ranks[rank]
		w.LowestStream(lowestStream(r))
		base := w.Base()
		for i, kind := range r.Kind {
			w.SetJob(r.Job.At(i))
			w.SetStep(r.Step.At(i))
			w.copyOp(c, int32(rank), r, i, kind)
			for _, off := range r.Deps.Of(i) {
				w.Require(base + int32(i) - off)
			}
			for _, off := range r.StartDeps.Of(i) {
				w.RequireStart(base + int32(i) - off)
			}
			if w.Err() != nil {
				return w.Err()
			}
		}
		return nil
	}
}

func lowestStream(r *dag.Rank) int32 {
	lowest := int32(math.MaxInt32)
	for i := range r.Kind {
		lowest = min(lowest, r.Stream.At(i))
	}
	return max(lowest, 0)
}

// copyOp appends op i of a rank.
func (w *Writer) copyOp(c *copier, rank int32, r *dag.Rank, i int, kind dag.Kind) {
	peer, stream, nic := r.Peer.At(i), r.Stream.At(i), r.NIC.At(i)
	var op int32
	switch kind {
	case dag.Send:
		op = w.Send(peer, r.Bytes.At(i), r.Tag.At(i)+c.tags[lane{rank, peer, r.Comm.At(i)}], stream, nic)
	case dag.Recv:
		op = w.Recv(peer, r.Bytes.At(i), r.Tag.At(i)+c.tags[lane{peer, rank, r.Comm.At(i)}], stream, nic)
	default:
		op = w.Copy(r, i)
	}
	if !w.filling || w.err != nil {
		return
	}
	if kind == dag.Send || kind == dag.Recv {
		w.copyTexts(r, i, int(op))
		w.Release(r.Release.At(i))
	}
	if start, end := r.Measured(i); start != dag.Unmeasured || end != dag.Unmeasured {
		w.measure(int(op), start, end)
	}
}

// Copy appends op i of a rank, which must not be a message, without its measured times.
func (w *Writer) Copy(r *dag.Rank, i int) int32 {
	kind := r.Kind[i]
	op := w.add(kind, r.Stream.At(i))
	w.last(op, r.Duration.At(i))
	if w.filling && w.err == nil {
		w.copyRest(r, i, int(op), kind)
	}
	return op
}

// copyRest copies the fields that are usually unset.
func (w *Writer) copyRest(r *dag.Rank, i, op int, kind dag.Kind) {
	out := &w.rank
	out.Subkind.Set(op, r.Subkind.At(i))
	out.Bytes[op] = r.Bytes.At(i)
	out.Flops.Set(op, r.Flops.At(i))
	out.Host.Set(op, r.Host.At(i))
	out.Release.Set(op, r.Release.At(i))
	if kind != dag.Calc {
		out.Peer[op], out.Tag[op] = r.Peer.At(i), r.Tag.At(i)
	}
	w.copyTexts(r, i, op)
}

func (w *Writer) copyTexts(r *dag.Rank, i, op int) {
	if !w.rank.Name.Append(op, r.Name.At(i)) || !w.rank.Attrs.Append(op, r.Attrs.At(i)) {
		w.Fail(errors.New("more than 4 GiB of names or attributes on one rank"))
	}
}

func (w *Writer) measure(op int, start, end dag.Time) {
	out := &w.rank
	for len(out.MeasuredStart) <= op {
		out.MeasuredStart = append(out.MeasuredStart, dag.Unmeasured)
		out.MeasuredEnd = append(out.MeasuredEnd, dag.Unmeasured)
	}
	out.MeasuredStart[op], out.MeasuredEnd[op] = start, end
}
