package analytical

import (
	"fmt"
	"slices"
)

// customRun runs a collective given as a graph of sends, receives and calcs at an NPU. Only dependencies order its ops.
type customRun struct {
	stream  int32
	g       *graph
	waits   []uint32
	left    int
	members []int32 // NPUs of the graph's ranks; nil: equal numbers
}

// customOf returns the program of an op's custom collective, or nil.
func (e *engine) customOf(r int32, o *op, i uint32) *Program {
	s := e.system
	if len(s.CustomNodes) > 0 && e.o.Node != nil {
		if p := s.CustomNodes[e.o.Node(int(r), int(i))]; p != nil {
			return p
		}
	}
	return s.Custom[o.coll]
}

// customPlan returns the plan of a custom collective: one phase, in the first queue.
func (e *engine) customPlan(p *Program, o *op) plan {
	return e.plans.intern([]phase{{op: o.coll, algorithm: customAlgorithm, custom: p, comm: o.comm, size: o.bytes,
		out: o.bytes, n: 1, stride: 1}})
}

// beginCustom starts the graph of a stream at an NPU.
func (e *engine) beginCustom(k int32) {
	s := &e.streams[k]
	p := e.phaseOf(s)
	r := s.npu
	run := customRun{stream: k}
	position := r
	if members := e.p.groups[p.comm].members; p.comm != 0 {
		run.members = members
		// an NPU's own position is by number, the positions of the others by order
		sorted := slices.Sorted(slices.Values(members))
		i, _ := slices.BinarySearch(sorted, r)
		position = int32(i)
	}
	if int(position) >= len(p.custom.graphs) {
		e.fail(fmt.Errorf("the custom %v has %d ranks, expected one per NPU, %d", p.op, len(p.custom.graphs),
			len(e.p.groups[p.comm].members)))
		return
	}
	run.g = p.custom.graphs[position]
	run.waits, run.left = slices.Clone(run.g.waits), len(run.g.waits)
	if e.runs == nil {
		e.runs = make([]customRun, len(e.npus))
	}
	e.runs[r] = run
	for _, i := range run.g.roots {
		e.issueCustom(r, i)
	}
	if run.left == 0 {
		e.endPhase(k)
	}
}

// issueCustom starts an op of an NPU's graph.
func (e *engine) issueCustom(r int32, i uint32) {
	run := &e.runs[r]
	o := &run.g.ops[i]
	peer := o.peer
	if o.kind == opSend || o.kind == opRecv {
		if run.members != nil {
			if peer < 0 || int(peer) >= len(run.members) {
				e.fail(fmt.Errorf("op %d of a custom collective has peer %d, expected 0..%d", i, peer,
					len(run.members)-1))
				return
			}
			peer = run.members[peer]
		} else if peer < 0 || int(peer) >= len(e.npus) {
			e.fail(fmt.Errorf("op %d of a custom collective has peer %d, expected 0..%d", i, peer, len(e.npus)-1))
			return
		}
	}
	k := key{tag: shortTag(uint64(run.g.tag(i))), size: o.bytes}
	switch o.kind {
	case opSend:
		k.from, k.to = r, peer
		e.sendAs(&k, o.bytes, i, true)
	case opRecv:
		k.from, k.to = peer, r
		e.receive(&k, newEvent(graphMet, r, i))
	case opCompute:
		e.after(o.time, newEvent(graphOver, r, i))
	default:
		e.fail(fmt.Errorf("op %d of a custom collective is a %v, expected sends, receives and calcs", i, o.dagKind()))
	}
}

// endCustom ends an op of an NPU's graph.
func (e *engine) endCustom(r int32, i uint32) {
	run := &e.runs[r]
	run.left--
	for _, d := range run.g.dependents[run.g.ops[i].first:run.g.ops[i+1].first] {
		if run.waits[d]--; run.waits[d] == 0 {
			e.issueCustom(r, d)
		}
	}
	if run.left == 0 {
		e.endPhase(run.stream)
	}
}
