package analytical

import (
	"errors"

	"github.com/tracedag/tracedag/dag"
)

// wildcards matches messages on arrival, for traces with receives from any source or of any tag. Messages from one rank
// to another are matched in the order in which they were sent, as in MPI, even if a later one is faster.
type wildcards struct {
	pairs      map[[2]int32]*pair
	details    []detail   // by message
	posted     [][]wanted // by NPU: waiting receives
	unexpected [][]uint32 // by NPU: waiting messages
}

// pair is the state of the messages from one rank to another.
type pair struct {
	sent, matched uint64
	early         map[uint64]uint32 // messages that overtook others, by send order
}

type detail struct {
	known  bool
	number uint64 // number within its pair
	tag    uint64
	comm   uint32
}

type wanted struct {
	op   uint32
	from int32
	tag  int64
	comm uint32
}

// findWildcards returns the matcher for wildcards, or nil if no receive has one.
func findWildcards(p *Program) *wildcards {
	var last *graph
	for _, g := range p.graphs {
		if g == last {
			continue
		}
		last = g
		for i := range g.waits {
			if o := &g.ops[i]; o.kind == opRecv && (o.peer == dag.AnySource ||
				g.tags != nil && g.tags[i] == dag.AnyTag) {
				return &wildcards{pairs: make(map[[2]int32]*pair), posted: make([][]wanted, len(p.graphs)),
					unexpected: make([][]uint32, len(p.graphs))}
			}
		}
	}
	return nil
}

var errWildRendezvous = errors.New("--rendezvous: expected a source and a tag for every receive, found a wildcard")

// sent adds a message.
func (w *wildcards) sent(m uint32, k *key) {
	p := w.pairs[[2]int32{k.from, k.to}]
	if p == nil {
		p = &pair{early: make(map[uint64]uint32)}
		w.pairs[[2]int32{k.from, k.to}] = p
	}
	for len(w.details) <= int(m) {
		w.details = append(w.details, detail{})
	}
	w.details[m] = detail{known: true, number: p.sent, tag: k.tag, comm: k.context}
	p.sent++
}

// arrived matches an arrived message, and later messages that were faster, with their receives. It reports whether the
// message is one of the trace.
func (w *wildcards) arrived(e *engine, m uint32) bool {
	if int(m) >= len(w.details) || !w.details[m].known {
		return false
	}
	p := w.pairs[[2]int32{e.matcher.messages[m].from, e.matcher.messages[m].to}]
	p.early[w.details[m].number] = m
	for {
		m, ok := p.early[p.matched]
		if !ok {
			return true
		}
		delete(p.early, p.matched)
		p.matched++
		w.deliver(e, m)
	}
}

func (w *wildcards) deliver(e *engine, m uint32) {
	d, from, to := &w.details[m], e.matcher.messages[m].from, e.matcher.messages[m].to
	posted := w.posted[to]
	for i := range posted {
		if posted[i].takes(d, from) {
			op := posted[i].op
			w.posted[to] = append(posted[:i], posted[i+1:]...)
			e.transferred(m, op)
			w.forget(e, m)
			e.end(to, op)
			return
		}
	}
	w.unexpected[to] = append(w.unexpected[to], m)
}

func (w *wildcards) forget(e *engine, m uint32) {
	w.details[m].known = false
	e.matcher.forget(m)
}

func (r *wanted) takes(d *detail, from int32) bool {
	if r.comm != d.comm || r.from != dag.AnySource && r.from != from {
		return false
	}
	if r.tag == dag.AnyTag {
		return int64(d.tag) >= dag.AnyTag // not of lowered collectives
	}
	return uint64(r.tag) == d.tag
}

// recvAny posts a receive.
func (e *engine) recvAny(r int32, n *npu, o *op, i uint32) {
	want := wanted{op: i, from: o.peer, tag: n.g.tag(i), comm: uint32(o.comm)}
	w := e.wild
	for k, m := range w.unexpected[r] {
		if want.takes(&w.details[m], e.matcher.messages[m].from) {
			w.unexpected[r] = append(w.unexpected[r][:k], w.unexpected[r][k+1:]...)
			e.transferred(m, i)
			w.forget(e, m)
			e.queue.addNow(newEvent(recvMet, r, i))
			return
		}
	}
	w.posted[r] = append(w.posted[r], want)
}
