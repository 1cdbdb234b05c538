// This file finds what device ops wait for beyond the order of their stream: events of other streams, and the host.

package kineto

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// waits is what device ops wait for.
type waits struct {
	events [][2]int32 // op and the op on another stream that it waits for, ascending
	host   []int32    // by call: the op for which the host waited before the call; -1: none
	synced []int32    // by call: the op for which the host waits in the call; -1: none

	contradicted int64 // waits for ops that ended later
}

// launches is the device ops in the order of their launches.
type launches struct {
	r        *recording
	byCall   []int32   // ops with a call, by call
	byStream [][]int32 // the same of each stream
}

func (r *recording) launchOrder() *launches {
	l := &launches{r: r, byStream: make([][]int32, len(r.streams))}
	for i := range r.ops {
		if r.ops[i].correlation >= 0 {
			l.byCall = append(l.byCall, int32(i))
		}
	}
	slices.SortStableFunc(l.byCall, func(a, b int32) int {
		return cmp.Compare(r.ops[a].correlation, r.ops[b].correlation)
	})
	for _, i := range l.byCall {
		s := r.ops[i].stream
		l.byStream[s] = append(l.byStream[s], i)
	}
	return l
}

// before returns the last op launched on a stream before a time, -1 if there is none.
func (l *launches) before(stream int32, at dag.Time) int32 {
	list := l.byStream[stream]
	n := sort.Search(len(list), func(k int) bool { return l.r.launchOf(list[k]).start >= at })
	if n == 0 {
		return -1
	}
	return list[n-1]
}

// after returns the first op that a thread launched on a stream after a time, -1 if there is none.
func (l *launches) after(stream, thread int32, at dag.Time) int32 {
	list := l.byStream[stream]
	n := sort.Search(len(list), func(k int) bool { return l.r.launchOf(list[k]).start > at })
	for end := min(len(list), n+mostPassed); n < end; n++ {
		if l.r.launchOf(list[n]).thread == thread {
			return list[n]
		}
	}
	return -1
}

// mostPassed bounds the searches among ops of other threads, and among streams.
const mostPassed = 1024

func (r *recording) launchOf(op int32) *call { return &r.calls[r.ops[op].correlation] }

// findWaits finds the waits of the recording.
func (r *recording) findWaits() *waits {
	w := &waits{}
	l := r.launchOrder()
	if r.onHost != nil {
		w.fromHost(r)
	} else if slices.ContainsFunc(r.syncs, func(s deviceSync) bool { return s.kind == syncWait }) {
		w.fromSyncs(r, l)
	} else {
		w.fromPattern(r, l)
	}
	slices.SortFunc(w.events, func(a, b [2]int32) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	w.events = slices.Compact(w.events)
	w.findHost(r, l)
	return w
}

// fromSyncs finds the waits that devices recorded.
func (w *waits) fromSyncs(r *recording, l *launches) {
	for i := range r.syncs {
		s := &r.syncs[i]
		if s.kind != syncWait || s.correlation < 0 || s.record < 0 || s.source < 0 || s.source == s.stream {
			continue
		}
		from, ok := r.streamOf[deviceStream{s.device, s.source}]
		to, also := r.streamOf[deviceStream{s.device, s.stream}]
		if !ok || !also {
			continue
		}
		wait := &r.calls[s.correlation]
		src, dst := l.before(from, r.calls[s.record].start), l.after(to, wait.thread, wait.start)
		switch {
		case src < 0 || dst < 0:
		case src >= dst: // ops are in the order of their starts
			w.contradicted++
		default:
			w.events = append(w.events, [2]int32{dst, src})
		}
	}
}

// fromPattern finds the waits by the order in which PyTorch launches and makes streams wait: a communication waits for
// the computation launched before it, and after a wait outside communication the computation waits for the last
// communication or copy before it.
func (w *waits) fromPattern(r *recording, l *launches) {
	copiesOnly := make([]bool, len(r.streams))
	for i := range copiesOnly {
		copiesOnly[i] = true
	}
	for i := range r.ops {
		if r.ops[i].class != copies {
			copiesOnly[r.ops[i].stream] = false
		}
	}
	outside := r.waitsOutside()
	stream := int32(-1)                   // of computation
	var sources []int32                   // ops for which the next computation waits
	last := make([]int32, len(r.streams)) // op launched on each stream
	for i := range last {
		last[i] = -1
	}
	moved := [2]int32{-1, -1} // last communications or copies on two different streams, the later one first
	next := 0
	for c := range r.calls {
		if r.calls[c].kind == callStreamWait && outside[int32(c)] {
			for _, m := range moved {
				if m >= 0 && r.ops[m].stream != stream {
					sources = append(sources, m)
					break
				}
			}
		}
		for ; next < len(l.byCall) && r.ops[l.byCall[next]].correlation == int64(c); next++ {
			i := l.byCall[next]
			o := &r.ops[i]
			if o.class == communicates {
				if stream >= 0 && stream != o.stream {
					w.guess(r, i, last[stream])
				}
			} else if !copiesOnly[o.stream] {
				stream = o.stream
			}
			if o.stream == stream {
				for _, on := range sources {
					w.guess(r, i, on)
				}
				sources = sources[:0]
			}
			last[o.stream] = i
			if o.class == communicates || o.class == copies {
				if moved[0] < 0 || r.ops[moved[0]].stream != o.stream {
					moved[1] = moved[0]
				}
				moved[0] = i
			}
		}
	}
}

// guess adds a wait unless the times contradict it.
func (w *waits) guess(r *recording, op, on int32) {
	switch {
	case on < 0 || r.ops[on].stream == r.ops[op].stream:
	case r.ops[on].end() > r.ops[op].start || on > op:
		w.contradicted++
	default:
		w.events = append(w.events, [2]int32{op, on})
	}
}

// waitsOutside returns the calls that make a stream wait and are no part of communication, except of its wait.
func (r *recording) waitsOutside() map[int32]bool {
	var list []int32
	for c := range r.calls {
		if r.calls[c].kind == callStreamWait {
			list = append(list, int32(c))
		}
	}
	outside := make(map[int32]bool, len(list))
	r.around(list, func(c int32, open []int32) {
		outside[c] = !slices.ContainsFunc(open, func(k int32) bool { return !r.marks[k].wait })
	})
	return outside
}

// findHost finds the op for which each thread waited before each of its launches.
func (w *waits) findHost(r *recording, l *launches) {
	told := make(map[int32]*deviceSync)
	for i := range r.syncs {
		if s := &r.syncs[i]; s.kind != syncWait && s.correlation >= 0 {
			told[int32(s.correlation)] = s
		}
	}
	w.host, w.synced = make([]int32, len(r.calls)), make([]int32, len(r.calls))
	waited := make(map[int32]int32) // by thread
	latest := int32(-1)             // op launched so far that ends last
	next := 0
	for c := range r.calls {
		x := &r.calls[c]
		w.host[c] = -1
		if op, ok := waited[x.thread]; ok {
			w.host[c] = op
		}
		launched := int32(-1)
		for ; next < len(l.byCall) && r.ops[l.byCall[next]].correlation == int64(c); next++ {
			launched = l.byCall[next]
			if latest < 0 || r.ops[launched].end() > r.ops[latest].end() {
				latest = launched
			}
		}
		on := int32(-1)
		switch x.kind {
		case callDeviceSync:
			on = latest
		case callBlockingCopy:
			on = launched
		case callStreamSync, callEventSync:
			on = w.syncedBy(r, l, x, told[int32(c)])
		default:
			if launched >= 0 && r.ops[launched].class == copies && r.toPageable(launched) {
				on = launched
			}
		}
		if w.synced[c] = on; on >= 0 {
			waited[x.thread] = on
		}
	}
}

// syncedBy returns the op for which a call waited on a stream or an event: by the record of the device, else the last
// op of a stream that ended last before the end of the call.
func (w *waits) syncedBy(r *recording, l *launches, x *call, s *deviceSync) int32 {
	if s != nil {
		stream, at := s.stream, x.start
		if s.kind == syncEvent && s.record >= 0 {
			stream, at = max(s.source, s.stream), r.calls[s.record].start
		}
		if n, ok := r.streamOf[deviceStream{s.device, stream}]; ok && stream >= 0 {
			return l.before(n, at)
		}
	}
	found := int32(-1)
	for n := range min(len(r.streams), mostPassed) {
		on := l.before(int32(n), x.start)
		if on >= 0 && r.ops[on].end() <= x.end()+2*dag.Microsecond &&
			(found < 0 || r.ops[on].end() > r.ops[found].end()) {
			found = on
		}
	}
	return found
}

// toPageable reports whether an op copies to memory of the host that the device cannot write, so that the call waits.
func (r *recording) toPageable(op int32) bool {
	name := r.texts.text(r.ops[op].name)
	return strings.Contains(name, "DtoH") && strings.Contains(name, "Pageable")
}
