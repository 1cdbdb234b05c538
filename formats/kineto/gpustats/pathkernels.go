// This file adds the ops of devices to the graph of the critical path.

package gpustats

import (
	"cmp"
	"slices"
	"sort"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/kineto"
)

// streamKey is a stream of a device. Devices are processes in the file.
type streamKey struct {
	process string
	stream  int64
}

// launchList is calls of the host that launch on a stream, or that wait with it, by start.
type launchList []int32

// gpuCalls are the calls of the whole trace on which the waits of devices depend.
type gpuCalls struct {
	onStream map[streamKey]launchList // launches, by device and stream
	byThread map[threadStream]launchList
	record   map[int64]int32 // recording of an event: by correlation, the last launch on its stream before it; -1: none
	lengths  map[int32]int   // by row of a launch and of its op: length of the queue after it
}

// threadStream is the launches of a thread on a stream.
type threadStream struct {
	threadKey
	stream int64
}

// launchRows returns the calls that launched an op, by start.
func (g *pathGraph) launchRows() []int32 {
	var list []int32
	for i := range g.rows {
		if launchCalls[g.rows[i].Name] && g.linked[i] >= 0 {
			list = append(list, int32(i))
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(g.rows[a].Start, g.rows[b].Start) })
	return list
}

// calls finds the calls of the whole trace.
func (g *pathGraph) calls() *gpuCalls {
	c := &gpuCalls{onStream: make(map[streamKey]launchList), byThread: make(map[threadStream]launchList),
		record: make(map[int64]int32)}
	launches := g.launchRows()
	for _, i := range launches {
		op, d := g.linked[i], &g.details[i]
		r := &g.rows[op]
		if r.Stream == -1 {
			continue
		}
		device := streamKey{g.details[op].Process, r.Stream}
		c.onStream[device] = append(c.onStream[device], i)
		thread := threadStream{threadKey{d.Process, d.Thread}, r.Stream}
		c.byThread[thread] = append(c.byThread[thread], i)
	}
	stream := make(map[int64]streamKey) // of recordings, by correlation
	for i := range g.rows {
		if d := &g.details[i]; d.Source > -1 {
			if _, ok := stream[d.Record]; !ok {
				stream[d.Record] = streamKey{d.Process, d.Source}
			}
		}
	}
	for i := range g.rows {
		r := &g.rows[i]
		if name := r.Name; name != "cudaEventRecord" && (!g.hip || name != "hipEventRecord") {
			continue
		}
		key, ok := stream[r.Correlation]
		if !ok {
			continue
		}
		list := c.onStream[key]
		n := sort.Search(len(list), func(k int) bool { return g.rows[list[k]].Start > r.Start })
		c.record[r.Correlation] = -1
		if n > 0 {
			c.record[r.Correlation] = list[n-1]
		}
	}
	c.lengths = g.queueLengths(launches)
	return c
}

// queueLengths returns the lengths of queues after launches and starts of ops, by row.
func (g *pathGraph) queueLengths(launches []int32) map[int32]int {
	type step struct {
		row, change int32
		at          dag.Time
		stream      int64
	}
	byCorrelation := make(map[int64][]int32) // ops
	for i := range g.rows {
		if r := &g.rows[i]; r.Stream != -1 && r.Correlation != -1 {
			byCorrelation[r.Correlation] = append(byCorrelation[r.Correlation], int32(i))
		}
	}
	var steps []step
	launched := make(map[int64]bool)
	for _, i := range launches {
		r := &g.rows[i]
		if launched[r.Correlation] {
			continue
		}
		launched[r.Correlation] = true
		for _, op := range byCorrelation[r.Correlation] {
			steps = append(steps, step{i, 1, r.Start, g.rows[op].Stream})
		}
	}
	for i := range g.rows {
		if r := &g.rows[i]; r.Stream != -1 && launched[r.Correlation] {
			steps = append(steps, step{int32(i), -1, r.Start, r.Stream})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	now, after := make(map[int64]int), make(map[int32]int, len(steps))
	for _, s := range steps {
		now[s.stream] += int(s.change)
		after[s.row] = now[s.stream]
	}
	return after
}

// nextLaunch returns the first launch of a thread on a stream from the start of a call on, -1 if there is none.
func (g *pathGraph) nextLaunch(c *gpuCalls, call int32, stream int64) int32 {
	d := &g.details[call]
	list := c.byThread[threadStream{threadKey{d.Process, d.Thread}, stream}]
	n := sort.Search(len(list), func(k int) bool { return g.rows[list[k]].Start >= g.rows[call].Start })
	if n == len(list) {
		return -1
	}
	return list[n]
}

// streamTails is the ends of the last ops of streams, in the order of the streams' first ops.
type streamTails struct {
	of    map[int64]int32
	order []int64
}

func (t *streamTails) last(stream int64) int32 {
	if p, ok := t.of[stream]; ok {
		return p
	}
	return -1
}

func (t *streamTails) set(stream int64, p int32) {
	if _, ok := t.of[stream]; !ok {
		t.order = append(t.order, stream)
	}
	t.of[stream] = p
}

// addKernels adds the edges of the ops of devices.
func (g *pathGraph) addKernels() {
	c := g.calls()
	var ops []int32
	for _, i := range g.part {
		r := &g.rows[i]
		if (r.Stream != -1 || r.Name == "Event Sync" || r.Name == "Context Sync") && g.linked[i] != unlinked {
			ops = append(ops, i)
		}
	}
	at := func(i int32) dag.Time {
		if g.isSync(i) { // a wait overlaps with the ops for which it waits
			return g.rows[i].End
		}
		return g.rows[i].Start
	}
	slices.SortStableFunc(ops, func(a, b int32) int { return cmp.Compare(at(a), at(b)) })
	tails := &streamTails{of: make(map[int64]int32)}
	waits := make(map[int32]int32) // op and the one for which it waits
	for _, i := range ops {
		if g.isSync(i) {
			g.addSync(c, i, tails, waits)
		} else {
			g.addKernel(c, i, tails, waits)
		}
	}
}

// isSync reports whether a row is a wait that a device recorded.
func (g *pathGraph) isSync(i int32) bool { return g.details[i].Kind == kineto.SyncEvent }

// addSync adds the edges of a wait that a device recorded.
func (g *pathGraph) addSync(c *gpuCalls, i int32, tails *streamTails, waits map[int32]int32) {
	r := &g.rows[i]
	call := g.linked[i]
	hostWaits := func(on int32) {
		if on >= 0 && call >= 0 && g.ends[call] >= 0 {
			g.add(on, g.ends[call], edgeWait, true, -1)
		}
	}
	switch r.Name {
	case "Stream Wait Event", "Event Sync":
		launch, ok := c.record[g.details[i].Record]
		if !ok || launch < 0 {
			return
		}
		source := g.linked[launch]
		if r.Name == "Event Sync" {
			hostWaits(g.ends[source])
			return
		}
		if call < 0 {
			return
		}
		if next := g.nextLaunch(c, call, r.Stream); next >= 0 {
			waits[g.linked[next]] = source
		}
	case "Context Sync":
		if g.full = g.full || len(g.edges) > most(len(g.rows)); g.full {
			return
		}
		for _, stream := range tails.order {
			hostWaits(tails.of[stream])
		}
	case "Stream Sync":
		hostWaits(tails.last(r.Stream))
	}
}

// addKernel adds the edges of an op.
func (g *pathGraph) addKernel(c *gpuCalls, i int32, tails *streamTails, waits map[int32]int32) {
	start, end, stream, call := g.starts[i], g.ends[i], g.rows[i].Stream, g.linked[i]
	if start < 0 || call < 0 {
		return
	}
	g.add(start, end, edgeRuns, false, i)
	source := int32(-1) // end of the op of another stream for which it waits
	if on, ok := waits[i]; ok {
		delete(waits, i)
		if source = g.ends[on]; source >= 0 {
			g.add(source, start, edgeWait, true, -1)
		}
	}
	launched, last := g.rows[call].Start, tails.last(stream)
	before := func(p int32, at dag.Time) bool { return p < 0 || g.points[p].at < at }
	queued, known := c.lengths[call]
	waiting, also := c.lengths[i]
	late := false
	switch {
	case known && also && queued == 1 && waiting == 0 && before(last, launched) && before(source, launched):
		if late = g.starts[call] >= 0; late {
			g.add(g.starts[call], start, edgeLaunch, false, -1)
		}
	case last >= 0 && g.points[start].at-g.points[last].at < longestGap && before(source, g.points[last].at):
		g.add(last, start, edgeGap, false, g.points[last].row)
	}
	if !late && g.starts[call] >= 0 {
		g.add(g.starts[call], start, edgeLaunch, true, -1)
	}
	tails.set(stream, end)
}
