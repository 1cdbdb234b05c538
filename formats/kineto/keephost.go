// This file adds the threads of the host to the trace, with --keep-host.

package kineto

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// hostPart is a part of the time of a thread in which one operator or call runs and none that it calls.
type hostPart struct {
	start, end dag.Time
	thread     int32
	name       string
	call       int32 // -1: an operator

	at dag.Time // order among other parts and ops: its start, or after the op for which its call waits
}

// callNames are the names of calls by their kind.
var callNames = [...]string{callOther: "launch", callRecord: "event record", callStreamWait: "stream wait",
	callDeviceSync: "device synchronization", callStreamSync: "stream synchronization",
	callEventSync: "event synchronization", callBlockingCopy: "blocking copy"}

// hostParts returns the parts of all threads of the host, by thread and start.
func (r *recording) hostParts() []hostPart {
	type running struct {
		hostPart
		until dag.Time
	}
	all := make([]running, 0, len(r.operators)+len(r.calls))
	for _, o := range r.operators {
		all = append(all, running{hostPart{o.start, o.end, o.thread, r.texts.text(o.name), -1, 0}, o.end})
	}
	for i := range r.calls {
		c := &r.calls[i]
		all = append(all, running{hostPart{c.start, c.end(), c.thread, callNames[c.kind], int32(i), 0}, c.end()})
	}
	slices.SortStableFunc(all, func(a, b running) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var parts []hostPart
	var open []running
	at := dag.Time(0)
	run := func(to dag.Time) { // runs the innermost one
		if to > at {
			p := open[len(open)-1].hostPart
			p.start, p.end = at, to
			parts = append(parts, p)
			at = to
		}
	}
	closeUntil := func(start dag.Time) {
		for len(open) > 0 && open[len(open)-1].until <= start {
			run(open[len(open)-1].until)
			open = open[:len(open)-1]
		}
	}
	for i := range all {
		x := all[i]
		if i == 0 || x.thread != all[i-1].thread {
			closeUntil(noTime)
			at = x.start
		}
		if closeUntil(x.start); len(open) > 0 {
			run(x.start)
			x.until = min(x.until, open[len(open)-1].until)
		}
		at = max(at, x.start)
		open = append(open, x)
	}
	closeUntil(noTime)
	return parts
}

// orderParts sorts the parts of all threads, which are sorted by thread and start.
func (b *rankBuilder) orderParts(parts []hostPart) {
	for i := range parts {
		p := &parts[i]
		if p.at = p.start; p.call >= 0 {
			if on := b.waits.synced[p.call]; on >= 0 {
				p.at = max(p.at, b.ops[on].start+1)
			}
		}
		if i > 0 && parts[i-1].thread == p.thread {
			p.at = max(p.at, parts[i-1].at)
		}
	}
	slices.SortStableFunc(parts, func(x, y hostPart) int { return cmp.Compare(x.at, y.at) })
}

// hostBuilder adds the parts of threads to a rank.
type hostBuilder struct {
	parts []hostPart
	next  int             // part to add
	calls map[int32]place // of the first part of each call; end is its start
	tails map[int32]place // last part by thread
	label map[int32]int32 // streams of threads
}

// newHost returns the builder of the threads of a rank; nil: they are not kept.
func (b *rankBuilder) newHost() *hostBuilder {
	if !b.job.o.keepHost || b.onHost != nil || len(b.ops) == 0 {
		return nil
	}
	h := &hostBuilder{parts: b.hostParts(), calls: make(map[int32]place), tails: make(map[int32]place),
		label: make(map[int32]int32)}
	if keep := b.job.o.own.steps; keep.some {
		first, last := b.ops[0].start, b.ops[0].start // of the launches that are kept
		for i := range b.ops {
			if c := b.ops[i].correlation; c >= 0 {
				first, last = min(first, b.calls[c].start), max(last, b.calls[c].end())
			}
		}
		h.parts = slices.DeleteFunc(h.parts, func(p hostPart) bool { return p.end < first || p.start > last })
	}
	b.orderParts(h.parts)
	for i := range h.parts {
		if t := h.parts[i].thread; h.label[t] == 0 {
			h.label[t] = int32(len(b.rank.streams)+len(h.label)) + 1
		}
	}
	for i := range h.parts {
		b.zero = min(b.zero, h.parts[i].start)
	}
	return h
}

// addUntil adds the parts that start before a time, and those up to the first part of a call; -1: none.
func (b *rankBuilder) addUntil(at dag.Time, call int64) {
	h := b.host
	for h.next < len(h.parts) {
		p := &h.parts[h.next]
		_, known := h.calls[int32(call)]
		if p.at >= at && (call < 0 || known || p.at > b.calls[call].start) {
			return
		}
		b.addPart(p)
		h.next++
	}
}

// addPart adds a part of a thread, after the time in which nothing known runs.
func (b *rankBuilder) addPart(p *hostPart) {
	h := b.host
	b.deps = b.deps[:0]
	ready := dag.Time(0)
	if t, ok := h.tails[p.thread]; ok {
		b.deps, ready = append(b.deps, int(t.op)), t.end
	}
	b.Step(b.stepAt(p.start, b.firstStep))
	label := h.label[p.thread]
	if gap := p.start - b.zero - ready; gap > 0 && b.job.o.own.Gaps != gapsNone {
		op := dag.Op{Kind: dag.Calc, Duration: gap, Stream: label, Host: 1, Name: gapName, Timed: true,
			MeasuredStart: p.start - gap + b.offset, MeasuredEnd: p.start + b.offset}
		b.vary.apply(&op)
		b.deps, ready = append(b.deps[:0], b.Add(op, b.deps...)), ready+gap
	}
	start, took := ready, p.end-p.start
	if p.call >= 0 {
		if on := b.waits.synced[p.call]; on >= 0 && b.places[on].count > 0 { // the call waits for it
			for k := range b.places[on].count {
				b.deps = append(b.deps, int(b.places[on].op+k))
			}
			took = max(0, p.end-max(p.start, b.ops[on].end()))
			ready = max(ready, b.places[on].end)
		}
	}
	op := dag.Op{Kind: dag.Calc, Duration: took, Stream: label, Host: 1, Name: p.name, Timed: true,
		MeasuredStart: p.start + b.offset, MeasuredEnd: p.end + b.offset}
	b.vary.apply(&op)
	added := place{op: int32(b.Add(op, b.deps...)), count: 1, end: ready + took}
	h.tails[p.thread] = added
	if _, ok := h.calls[p.call]; p.call >= 0 && !ok {
		added.end = start
		h.calls[p.call] = added
	}
}

// launched returns the call that launched an op, as a place whose end is its start; ok is false if it is not in the
// trace.
func (b *rankBuilder) launched(o *deviceOp) (p place, ok bool) {
	if b.host == nil || o.correlation < 0 {
		return p, false
	}
	p, ok = b.host.calls[int32(o.correlation)]
	return p, ok
}
