package analytical

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Reasons why an op with met dependencies waits.
const (
	opIssued = ^uint32(0) - 1 // it has started
	opEnded  = ^uint32(0)
)

// explain adds the incomplete ops of a run, with their causes, to its result.
func (e *engine) explain(r *sim.Result) {
	r.Unmatched = e.unmatched()
	r.Complete = r.Unmatched == nil
	for i := range e.npus {
		if e.npus[i].left > 0 {
			r.Complete = false
		}
	}
	if r.Complete {
		return
	}
	// First ops that started and did not end, which cause the others, then messages without a receive.
	for _, begun := range []bool{true, false} {
		if !begun {
			e.unreceived(r)
		}
		for i := range e.npus {
			n := &e.npus[i]
			for k, waits := range n.waits {
				if len(r.Stuck) == sim.MaxStuck || n.left == 0 {
					break
				}
				switch {
				case begun && waits == opIssued:
					e.stuck(r, i, k, e.partner(int32(i), n, uint32(k)))
				case !begun && waits < opIssued:
					e.stuck(r, i, k, e.unmet(int32(i), n, uint32(k)))
				}
			}
		}
	}
}

// unreceived lists the sends whose messages have no receive.
func (e *engine) unreceived(r *sim.Result) {
	var lost []access
	e.eachLeft(func(k *key, m uint32) {
		if m != 0 {
			lost = append(lost, access{k.from, e.matcher.messages[m].sender})
		}
	})
	slices.SortFunc(lost, func(a, b access) int { return cmp.Or(cmp.Compare(a.npu, b.npu), cmp.Compare(a.op, b.op)) })
	for _, send := range lost[:min(len(lost), sim.MaxStuck-len(r.Stuck))] {
		o := &e.npus[send.npu].g.ops[send.op]
		if e.npus[send.npu].waits[send.op] == opEnded { // otherwise it is already listed
			e.stuck(r, int(send.npu), int(send.op), fmt.Sprintf("a receive of %d bytes on rank %d, tag %d", o.bytes,
				o.peer, e.npus[send.npu].g.tag(send.op)))
		}
	}
}

// eachLeft calls found with the number of each message of the trace without a receive, and with 0 for each receive
// without a message.
func (e *engine) eachLeft(found func(k *key, m uint32)) {
	for i := range e.matcher.table {
		s := &e.matcher.table[i]
		if !s.used || s.key.context >= contextCollective {
			continue
		}
		for m := s.first; m != 0; {
			if s.posts {
				found(&s.key, 0)
				m = e.matcher.posts[m].next
			} else {
				next := e.matcher.messages[m].next
				if !e.matcher.messages[m].custom {
					found(&s.key, m)
				}
				m = next
			}
		}
	}
	if w := e.wild; w != nil {
		for npu := range w.posted {
			for _, m := range w.unexpected[npu] {
				k := key{tag: w.details[m].tag, context: w.details[m].comm, from: e.matcher.messages[m].from,
					to: int32(npu)}
				found(&k, m)
			}
			for _, p := range w.posted[npu] {
				found(&key{tag: uint64(p.tag), context: p.comm, from: p.from, to: int32(npu)}, 0)
			}
		}
	}
}

// tag returns the tag of an op.
func (g *graph) tag(i uint32) int64 {
	if g.tags == nil {
		return 0
	}
	return g.tags[i]
}

func (e *engine) stuck(r *sim.Result, rank, k int, waits string) {
	s := sim.Stuck{Rank: rank, Op: k, Kind: e.npus[rank].g.ops[k].dagKind().String(), Waits: waits}
	if e.o.Node != nil {
		s.Node = fmt.Sprint(e.o.Node(rank, k))
	}
	r.Stuck = append(r.Stuck, s)
}

func (o *op) dagKind() dag.Kind {
	switch o.kind {
	case opSend:
		return dag.Send
	case opRecv:
		return dag.Recv
	case opMemory:
		return dag.Mem
	case opCollective, opReplayed:
		return dag.Coll
	}
	return dag.Calc
}

// unmatched lists the messages and receives of the trace without a partner, nil if there are none.
func (e *engine) unmatched() *sim.Unmatched {
	l := &sim.Unmatched{Unexpected: map[int][][2]int64{}, Receive: map[int][][2]int64{}}
	e.eachLeft(func(k *key, m uint32) {
		list := l.Unexpected
		if m == 0 {
			list = l.Receive
		}
		list[int(k.to)] = append(list[int(k.to)], [2]int64{int64(k.from), int64(k.tag)})
	})
	if len(l.Unexpected)+len(l.Receive) == 0 {
		return nil
	}
	for _, lists := range []map[int][][2]int64{l.Unexpected, l.Receive} {
		for npu := range lists {
			slices.SortFunc(lists[npu], func(a, b [2]int64) int {
				return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
			})
		}
	}
	return l
}

// partner describes the partner that a started op waits for.
func (e *engine) partner(r int32, n *npu, i uint32) string {
	o := &n.g.ops[i]
	tag := n.g.tag(i)
	switch o.kind {
	case opRecv:
		s := fmt.Sprintf("a message of %d bytes from %s, %s", o.bytes, sim.OrAny("rank", int64(o.peer)),
			sim.OrAny("tag", tag))
		return s + e.otherSize(r, o, tag)
	case opSend:
		return fmt.Sprintf("rank %d to be ready to receive a message of %d bytes, %s", o.peer, o.bytes,
			sim.OrAny("tag", tag))
	case opCollective:
		return e.absent(r, n, o)
	}
	return "its end, which the run did not reach"
}

// otherSize reports a message of another size for a receive, if there is one.
func (e *engine) otherSize(r int32, o *op, tag int64) string {
	if !e.o.ExactSizes {
		return ""
	}
	var sizes []uint64
	for i := range e.matcher.table {
		s := &e.matcher.table[i]
		k := &s.key
		if s.used && !s.posts && k.from == o.peer && k.to == r && k.tag == shortTag(uint64(tag)) &&
			k.context == uint32(o.comm) {
			sizes = append(sizes, k.size)
		}
	}
	if len(sizes) == 0 {
		return ""
	}
	return fmt.Sprintf("; rank %d sent one of %d bytes, which does not match", o.peer, slices.Min(sizes))
}

// absent describes the ranks that a collective waits for.
func (e *engine) absent(r int32, n *npu, o *op) string {
	g := &e.p.groups[o.comm]
	dims := uint32(0)
	if n.g.dims != nil && o.comm == 0 {
		dims = uint32(n.g.dims[n.collective])
	}
	first, more := int32(-1), 0
	for position, npu := range g.members {
		switch {
		case e.issued[o.comm][position] > n.tag || !e.inRow(r, npu, dims):
		case first < 0:
			first = npu
		default:
			more++
		}
	}
	name := fmt.Sprintf("%v of communicator %d", o.coll, o.comm)
	switch {
	case first < 0:
		return fmt.Sprintf("messages of an %s: all ranks have started it, with their chunks in different orders; "+
			"change endpoint-delay or the number of chunks in the system file", name)
	case more > 0:
		return fmt.Sprintf("rank %d and %d more to come to an %s", first, more, name)
	}
	return fmt.Sprintf("rank %d to come to an %s", first, name)
}

// unmet describes the unmet dependencies of an op that has not started.
func (e *engine) unmet(r int32, n *npu, i uint32) string {
	if n.waits[i] == 0 {
		return "the end of an op of its own rank that uses the same resource"
	}
	var unmet sim.Unmet
	for _, by := range []struct {
		event      string
		dependents func(k int) []uint32
		met        func(waits uint32) bool
	}{
		{"end", n.dependents, func(waits uint32) bool { return waits == opEnded }},
		{"start", n.startDependents, func(waits uint32) bool { return waits >= opIssued }},
	} {
		for k, waits := range n.waits {
			if by.met(waits) || !slices.Contains(by.dependents(k), i) {
				continue
			}
			unmet.Add(by.event, e.label(r, uint32(k)), n.g.ops[k].dagKind())
		}
	}
	return unmet.String()
}

func (n *npu) dependents(k int) []uint32 {
	return n.g.dependents[n.g.ops[k].first:n.g.ops[k+1].first]
}

func (n *npu) startDependents(k int) []uint32 {
	if n.g.startFirst == nil {
		return nil
	}
	return n.g.startDependents[n.g.startFirst[k]:n.g.startFirst[k+1]]
}
