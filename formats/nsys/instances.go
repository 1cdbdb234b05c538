// This file determines the collectives and messages that all their members have within the profiled part, and
// checks that the members agree.

package nsys

import (
	"fmt"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// pair is a direction between two ranks of a communicator.
type pair struct {
	comm     int32
	src, dst int32
}

// pieces are the pieces that a source sends to a destination, as recorded by both ends.
type pieces struct {
	ends [2][]pieceEnd // of sends, of receives
}

type pieceEnd struct {
	bytes int64
	in    bool // in the profiled part
}

// instance is a collective of a communicator.
type instance struct {
	first *member // of the first member found
	texts *report // report with its attributes
	rank  int32
	in    int32 // number of members that have it in the profiled part
}

// resolve numbers the instances of collectives and the pieces of messages over the whole trace, and removes those
// that some members lack within the profiled part.
func (j *job) resolve() error {
	colls := make([][]instance, len(j.comms))
	messages := make(map[pair]*pieces)
	for g := range j.gpus {
		if err := j.gpus[g].count(j, colls, messages); err != nil {
			return err
		}
	}
	if err := j.checkPieces(messages); err != nil {
		return err
	}
	dropped := int64(0)
	for c := range colls {
		for k := range colls[c] {
			if n := colls[c][k].in; n > 0 && int(n) < len(j.comms[c].gpus) {
				dropped++
			}
		}
	}
	for _, p := range messages {
		for k := range max(len(p.ends[0]), len(p.ends[1])) {
			if p.in(0, k) != p.in(1, k) {
				dropped++
			}
		}
	}
	for g := range j.gpus {
		if err := par.Interrupted(j.ctx); err != nil {
			return err
		}
		j.gpus[g].keep(j, colls, messages)
	}
	cut := int64(0)
	for _, r := range j.reports {
		cut += r.cut
	}
	if dropped+cut > 0 {
		j.warn("skipped beyond the end of a profile: %d calls without kernels, %d collectives and messages "+
			"that some members lack", cut, dropped)
	}
	return nil
}

// in reports whether an end has the k-th piece in the profiled part.
func (p *pieces) in(end, k int) bool {
	return k < len(p.ends[end]) && p.ends[end][k].in
}

// inWindow reports whether an event belongs to the profiled part.
func (r *report) inWindow(e *event) bool {
	w := &r.procs[e.proc].window
	return w.contains(e.at) && e.end >= w.start && e.start <= w.stop
}

// pair returns the ranks of a send or receive by the GPU, sender first, and which end the GPU is.
func (g *gpu) pair(m *member) (p pair, end int) {
	at := g.ranks[m.comm]
	if m.op == opSend {
		return pair{at.comm, at.rank, m.peer}, 0
	}
	return pair{at.comm, m.peer, at.rank}, 1
}

// count numbers the collectives and pieces of the GPU.
func (g *gpu) count(j *job, colls [][]instance, messages map[pair]*pieces) error {
	next := make([]int32, len(j.comms))
	r := g.report
	var last pair
	var list *pieces
	for _, i := range g.events {
		if err := r.watch.Err(); err != nil {
			return err
		}
		e := &r.events[i]
		in := r.inWindow(e)
		for k := e.first; k < e.first+e.count; k++ {
			m := &r.members[k]
			if m.op.p2p() {
				p, end := g.pair(m)
				if p != last || list == nil {
					if last, list = p, messages[p]; list == nil {
						list = new(pieces)
						messages[p] = list
					}
				}
				m.instance = int32(len(list.ends[end]))
				list.ends[end] = append(list.ends[end], pieceEnd{m.bytes, in})
				continue
			}
			at := g.ranks[m.comm]
			m.instance = next[at.comm]
			next[at.comm]++
			all := &colls[at.comm]
			if int(m.instance) == len(*all) {
				*all = append(*all, instance{first: m, texts: r, rank: at.rank})
			}
			x := &(*all)[m.instance]
			if in {
				x.in++
			}
			if difference := x.difference(r, m); difference != "" {
				return format.FileErrorf(r.name, "communicator %s: its collective number %d (from 0): "+
					"ranks %d and %d disagree: %s", j.comms[at.comm].name(), m.instance, x.rank, at.rank, difference)
			}
		}
	}
	return nil
}

// difference returns the difference between a member and the first one, or "".
func (x *instance) difference(r *report, m *member) string {
	f := x.first
	switch {
	case f.op != m.op:
		return fmt.Sprintf("%v and %v", f.op, m.op)
	case f.bytes != m.bytes:
		return fmt.Sprintf("%v of %d bytes and of %d", f.op, f.bytes, m.bytes)
	case (f.op == opBroadcast || f.op == opReduce) && f.peer != m.peer:
		return fmt.Sprintf("%v with root %d and %d", f.op, f.peer, m.peer)
	case f.algo != m.algo:
		return fmt.Sprintf("%v by algorithm %s and %s", f.op, algoNames[f.algo], algoNames[m.algo])
	case f.proto != m.proto:
		return fmt.Sprintf("%v by protocol %s and %s", f.op, protoNames[f.proto], protoNames[m.proto])
	}
	if x.texts == r && f.attrs == m.attrs {
		return ""
	}
	if a, b := x.texts.attrs.text(f.attrs), r.attrs.text(m.attrs); a != b {
		return fmt.Sprintf("%v as %s}} and as %s}}", f.op, a, b)
	}
	return ""
}

// text returns the text with a number.
func (t *texts) text(n int32) string {
	if n == 0 {
		return ""
	}
	return t.all[n]
}

// checkPieces returns an error if the two ends of a piece have different sizes.
func (j *job) checkPieces(messages map[pair]*pieces) error {
	var worst *pair // the first in order, so that the message is deterministic
	at := 0
	for p, list := range messages {
		for k := range min(len(list.ends[0]), len(list.ends[1])) {
			if list.ends[0][k].bytes != list.ends[1][k].bytes {
				if worst == nil || p.before(*worst) {
					q := p
					worst, at = &q, k
				}
				break
			}
		}
	}
	if worst == nil {
		return nil
	}
	c := &j.comms[worst.comm]
	ends := messages[*worst].ends
	return format.FileErrorf(j.gpus[c.gpus[worst.src]].report.name,
		"communicator %s: piece number %d (from 0) from rank %d to rank %d: %d bytes are sent, %d received", c.name(),
		at, worst.src, worst.dst, ends[0][at].bytes, ends[1][at].bytes)
}

func (p pair) before(q pair) bool {
	if p.comm != q.comm {
		return p.comm < q.comm
	}
	if p.src != q.src {
		return p.src < q.src
	}
	return p.dst < q.dst
}

// keep removes the members that are not in the trace from the GPU's events, and then the events without members.
func (g *gpu) keep(j *job, colls [][]instance, messages map[pair]*pieces) {
	r := g.report
	kept := g.events[:0]
	for _, i := range g.events {
		e := &r.events[i]
		if !r.inWindow(e) {
			continue
		}
		n := e.first
		for k := e.first; k < e.first+e.count; k++ {
			m := r.members[k]
			if m.op.p2p() {
				p, _ := g.pair(&m)
				if list := messages[p]; !list.in(0, int(m.instance)) || !list.in(1, int(m.instance)) {
					continue
				}
			} else if at := g.ranks[m.comm]; int(colls[at.comm][m.instance].in) < len(j.comms[at.comm].gpus) {
				continue
			}
			r.members[n] = m
			n++
		}
		if e.count = n - e.first; e.count > 0 {
			kept = append(kept, i)
		}
	}
	g.events = kept
}
