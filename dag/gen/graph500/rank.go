package graph500

// The ops of a rank, level by level.

import (
	"math"

	"github.com/tracedag/tracedag/dag"
)

// The tag of a message is 4 times its level plus its kind.
const (
	queryTag = iota
	noticeTag
	reduceTag
	broadcastTag
	tagsOfLevel
)

// writer generates a rank. All ops are on one stream: a process does one thing at a time. Within a level the ops of
// receiving stand first, so that backends that prefer the first ready op consume before they generate.
//
// Ops are indices; -1 is none.
type writer struct {
	*search
	rank, level int
	pace        pace
	b           *dag.RankBuilder
	began       int   // the op that began the level
	last        int   // latest op of the sequential ones
	received    []int // ops that must complete before the level ends
	order       []int32
}

func (w *writer) write() {
	first, end := w.written()
	for w.level = first; w.level < end; w.level++ {
		w.received, w.last = w.received[:0], w.began
		w.receive()
		w.send()
		w.reduce()
	}
}

// tag returns the tag of messages of a kind.
func (w *writer) tag(kind int64) int64 {
	return tagsOfLevel*int64(w.level) + kind
}

// add appends an op that depends on others, some of which may be none.
func (w *writer) add(op dag.Op, after ...int) int {
	i := w.b.Add(op)
	for _, a := range after {
		if a >= 0 {
			w.b.Requires(i, a)
		}
	}
	return i
}

// receive appends the receives of the level, except the broadcast's, and the consumption of messages.
func (w *writer) receive() {
	for source, a := range w.levels[w.level] {
		if a.messages == 0 || source == w.rank {
			continue
		}
		w.targets.received(w.level, source, w.rank, a, func(messages, queries int64) {
			time := max(w.pace.of(queries), w.p.ConsumeMin)
			for range messages {
				message := w.recv(source, queryTag, w.p.messageBytes())
				w.received = append(w.received, w.add(dag.Op{Kind: dag.Calc, Duration: time}, message))
			}
		})
	}
	for other := range w.p.Nodes {
		if other == w.rank {
			continue
		}
		if w.notifies(other) {
			w.received = append(w.received, w.recv(other, noticeTag, w.p.controlBytes()))
		}
		if w.rank == w.root {
			w.received = append(w.received, w.recv(other, reduceTag, w.p.controlBytes()))
		}
	}
}

func (w *writer) recv(from int, kind, bytes int64) int {
	return w.add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Tag: w.tag(kind)}, w.began)
}

// notifies reports whether a process sends notices of the end of the level. In level 0 only that of the root does.
func (w *writer) notifies(process int) bool {
	return w.p.Notices == AllNotices && (w.level > 0 || process == w.root)
}

// send appends the generation of messages, their sends, and the sends of notices, in sequence.
func (w *writer) send() {
	a := w.levels[w.level][w.rank]
	times := draws(w.seed, w.level, w.rank, "generation")
	w.order = w.targets.order(w.level, w.rank, a, w.order)
	for _, to := range w.order {
		w.last = w.add(dag.Op{Kind: dag.Calc, Duration: w.p.generation(w.pace, times.ExpFloat64())}, w.last)
		w.sendTo(int(to), queryTag, w.p.messageBytes())
	}
	if w.notifies(w.rank) {
		w.sendToAll(noticeTag)
	}
}

// generation returns the time to generate a message, given a sample of the exponential distribution with mean 1. With
// cycles it is geometric: a process succeeds with probability p_inj in each cycle (eq. 17), at most 1. Otherwise it is
// exponential with the same mean.
func (p *Params) generation(own pace, sample float64) dag.Time {
	mean := own.picoseconds() * float64(p.Coalescing)
	if p.Injection == ReferenceInjection {
		mean /= float64(p.PacketPhits)
	}
	cycle := float64(p.Cycle)
	switch {
	case cycle == 0:
		return dag.Time(sample * mean)
	case cycle >= mean:
		return p.Cycle
	}
	return p.Cycle * dag.Time(1+math.Floor(-sample/math.Log1p(-cycle/mean)))
}

// sendToAll appends sends to all others; the first depends on the given ops.
func (w *writer) sendToAll(kind int64, after ...int) {
	for to := range w.p.Nodes {
		if to != w.rank {
			w.sendTo(to, kind, w.p.controlBytes(), after...)
			after = nil
		}
	}
}

func (w *writer) sendTo(to int, kind, bytes int64, after ...int) {
	w.last = w.add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: w.tag(kind)}, append(after, w.last)...)
}

// reduce ends the level: the root's process receives from all others, then sends to them.
func (w *writer) reduce() {
	if w.rank != w.root {
		w.sendTo(w.root, reduceTag, w.p.controlBytes(), w.received...)
		w.began = w.last
		w.began = w.recv(w.root, broadcastTag, w.p.controlBytes())
		return
	}
	w.sendToAll(broadcastTag, w.received...)
	w.began = w.last
}
