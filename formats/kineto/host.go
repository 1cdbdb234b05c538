// This file makes ops of the host for recordings without devices: threads are streams.

package kineto

import (
	"cmp"
	"slices"
	"sort"

	"github.com/tracedag/tracedag/dag"
)

// useHost makes ops of the operators and communications of the host if the recording has no device ops. The time of an
// operator is that in which no operator called by it runs.
func (r *recording) useHost() {
	if len(r.ops) > 0 {
		return
	}
	slices.SortStableFunc(r.operators, func(a, b operator) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	for from := 0; from < len(r.operators); {
		to := from + 1
		for to < len(r.operators) && r.operators[to].thread == r.operators[from].thread {
			to++
		}
		r.addThread(r.operators[from:to])
		from = to
	}
	r.operators = nil
	r.onHost = make(map[int64]int32)
	ended := make(map[int32]dag.Time) // by thread
	for k := range r.marks {
		m := &r.marks[k]
		if m.record || m.op <= opNone {
			continue
		}
		start := m.start
		if e, ok := ended[m.thread]; ok { // the time in the queue of the thread is part of the recorded one
			start = max(start, e)
		}
		end := max(start, m.end)
		ended[m.thread] = end
		r.addHost(deviceOp{start: start, took: end - start, name: m.name, class: communicates}, m.thread, hostTalks)
		r.onHost[int64(len(r.ops)-1)] = int32(k)
	}
	order := make([]int32, len(r.ops))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(r.ops[a].start, r.ops[b].start) })
	sorted, marks := make([]deviceOp, len(order)), make(map[int64]int32, len(r.onHost))
	for i, from := range order {
		sorted[i] = r.ops[from]
		if m, ok := r.onHost[int64(from)]; ok {
			marks[int64(i)] = m
		}
	}
	r.ops, r.onHost = sorted, marks
}

// Numbers of the devices of threads, in place of devices: operators and communication of a thread are two streams.
const (
	hostRuns  = 0
	hostTalks = 1
)

// addHost adds an op of a thread.
func (r *recording) addHost(o deviceOp, thread int32, device int64) {
	s := deviceStream{device, int64(thread)}
	n, ok := r.streamOf[s]
	if !ok {
		n = int32(len(r.streams))
		r.streams = append(r.streams, s)
		r.streamOf[s] = n
	}
	o.stream, o.correlation, o.args = n, -1, -1
	r.ops = append(r.ops, o)
}

// addThread adds the operators of a thread, which are sorted, each in the parts between the operators that it calls.
func (r *recording) addThread(list []operator) {
	var open []operator
	at := list[0].start
	run := func(to dag.Time) { // runs the innermost operator
		if to > at {
			o := &open[len(open)-1]
			r.addHost(deviceOp{start: at, took: to - at, name: o.name}, o.thread, hostRuns)
			at = to
		}
	}
	for _, o := range list {
		for len(open) > 0 && open[len(open)-1].end <= o.start {
			run(open[len(open)-1].end)
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			run(o.start)
			o.end = min(o.end, open[len(open)-1].end)
		}
		at = max(at, o.start)
		open = append(open, o)
	}
	for len(open) > 0 {
		run(open[len(open)-1].end)
		open = open[:len(open)-1]
	}
}

// fromHost finds the waits between the threads of the host: a communication waits for the last operator that ended
// before it, and a thread without work at the end of a communication waits for that.
func (w *waits) fromHost(r *recording) {
	byStream := make([][]int32, len(r.streams))
	for i := range r.ops {
		byStream[r.ops[i].stream] = append(byStream[r.ops[i].stream], int32(i))
	}
	for i := range r.ops {
		o := &r.ops[i]
		if o.class != communicates {
			continue
		}
		latest := int32(-1)
		for s := range min(len(r.streams), mostPassed) {
			list := byStream[s]
			if int32(s) == o.stream || r.streams[s].device != hostRuns {
				continue
			}
			n := sort.Search(len(list), func(k int) bool { return r.ops[list[k]].end() > o.start })
			if n > 0 && (latest < 0 || r.ops[list[n-1]].end() > r.ops[latest].end()) {
				latest = list[n-1]
			}
			if n = sort.Search(len(list), func(k int) bool { return r.ops[list[k]].end() > o.end() }); n < len(list) &&
				r.ops[list[n]].start >= o.end() {
				w.guess(r, list[n], int32(i))
			}
		}
		w.guess(r, int32(i), latest)
	}
	w.host = nil
}
