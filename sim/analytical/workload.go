package analytical

// An NPU issues its ops as follows. Whenever an op has ended, it visits the ready ops in order, and issues each one
// whose lane is free at that time.

// getReady records that an op has no unmet dependencies.
func (e *engine) getReady(r int32, n *npu, i uint32) {
	if n.g.release != nil {
		if t := n.g.release[i]; t > e.queue.now {
			e.after(t-e.queue.now, newEvent(opReleased, r, i))
			return
		}
	}
	e.released(r, n, i)
}

// released takes a ready op whose release time has come.
func (e *engine) released(r int32, n *npu, i uint32) {
	if e.opTimes != nil {
		e.opTimes[r].becomesReady(i, e.queue.now, n.g.release != nil && n.g.release[i] == e.queue.now)
	}
	e.touches(r, n.g.ops[i].lane)
	switch {
	case e.o.FreeMarkers && n.g.ops[i].kind == opMarker && !e.system.ReplayOnly:
		e.join(r, n, i)
	case n.walking:
		n.deferred = append(n.deferred, i)
	default:
		e.makeReady(n, i)
	}
}

// join ends a marker that takes no time and no place, and all such markers that become ready by that.
func (e *engine) join(r int32, n *npu, i uint32) {
	n.joins = append(n.joins, i)
	if n.joining {
		return
	}
	n.joining = true
	for len(n.joins) > 0 {
		i := n.joins[len(n.joins)-1]
		n.joins = n.joins[:len(n.joins)-1]
		n.waits[i] = opIssued
		n.stats.issued++
		if e.opTimes != nil {
			e.opTimes[r].issued[i] = e.queue.now
		}
		if n.g.startFirst != nil {
			e.meet(r, n, n.startDependents(int(i)), leadBy(i, ledByStart))
		}
		n.waits[i] = opEnded
		if e.opTimes != nil {
			e.hasEnded(r, i)
		}
		n.left--
		e.progress.Ran()
		e.meet(r, n, n.dependents(int(i)), leadBy(i, ledByEnd))
	}
	n.joining = false
}

func (e *engine) makeReady(n *npu, i uint32) {
	lane := int(n.g.ops[i].lane)
	if lane == laneUnneeded {
		lane = n.g.lanes
	}
	e.ready[n.lanes+lane].Push(i)
}

// release issues ops when an op's release time is reached.
func (e *engine) release(r int32, i uint32) {
	n := &e.npus[r]
	e.released(r, n, i)
	e.walk(r, n)
	e.checkFinished(n)
}

// walk issues the ready ops whose lanes are free. Ops that become ready meanwhile follow.
func (e *engine) walk(r int32, n *npu) {
	n.walking = true
	for {
		for e.err == nil {
			lane := -1
			lowest := uint32(noOp)
			for k, h := range e.ready[n.lanes : n.lanes+n.g.lanes+1] {
				if len(h) > 0 && h[0] < lowest && (n.busy>>k&1 == 0 || k == n.g.lanes) {
					lane, lowest = k, h[0]
				}
			}
			if lane < 0 {
				break
			}
			e.issue(r, n, e.ready[n.lanes+lane].Pop())
		}
		if len(n.deferred) == 0 {
			break
		}
		for _, i := range n.deferred {
			e.makeReady(n, i)
		}
		n.deferred = n.deferred[:0]
	}
	n.walking = false
}

// issue starts an op.
func (e *engine) issue(r int32, n *npu, i uint32) {
	g := n.g
	o := &g.ops[i]
	if o.lane != laneUnneeded {
		n.busy |= 1 << o.lane
	}
	if e.orders != nil {
		e.orderIssue(r, n, o, i)
	}
	n.waits[i] = opIssued
	n.stats.begin(o, e.part(o), e.queue.now)
	if e.opTimes != nil {
		e.opTimes[r].issues(i, o.lane, e.queue.now)
	}
	if g.startFirst != nil {
		e.meet(r, n, n.startDependents(int(i)), leadBy(i, ledByStart))
	}
	if e.system.ReplayOnly {
		e.run(r, n, o, i, o.time)
		return
	}
	switch o.kind {
	case opMarker:
		e.finish(r, n, i)
	case opCompute:
		e.compute(r, n, o, i)
	case opReplayed:
		e.after(o.time, newEvent(opOver, r, i))
	case opMemory:
		e.accessMemory(r, n, o, i)
	case opSend:
		e.sendOp(r, n, o, i)
	case opRecv:
		e.recvOp(r, n, o, i)
	case opCollective:
		e.collective(r, n, o, i)
	}
}

// run makes an op take the given time in nanoseconds.
func (e *engine) run(r int32, n *npu, o *op, i uint32, t uint64) {
	if o.lane != laneHost {
		n.stats.computing += t
	}
	if o.kind == opCompute {
		n.stats.calcs += t
	}
	e.after(t, newEvent(opOver, r, i))
}

// compute runs a calc.
func (e *engine) compute(r int32, n *npu, o *op, i uint32) {
	s := e.system
	if !s.Roofline || o.lane == laneHost || o.bare {
		e.run(r, n, o, i, o.time)
		return
	}
	if o.bytes == 0 {
		e.finish(r, n, i)
		return
	}
	flops := 0.0
	if n.g.flops != nil {
		flops = float64(n.g.flops[i])
	}
	point := s.roofline(flops, float64(o.bytes))
	t, ok := truncate(point.time)
	if !ok {
		e.failOp(r, i, "takes %v s on the NPU of the system file, which is out of range", point.time/1e9)
		return
	}
	n.stats.roofline(&point, t)
	if point.memoryBound {
		n.stats.boundByMemory(e.queue.now, t)
	}
	e.run(r, n, o, i, t)
}

// point is the position of a calc in the roofline model of an NPU (S. Williams et al., "Roofline", CACM 52(4), 2009).
type point struct {
	time        float64 // in nanoseconds
	intensity   float64 // flops per byte
	computeUse  float64 // share of the peak performance
	memoryUse   float64 // share of the memory bandwidth
	memoryBound bool
}

// roofline returns the position of a calc with the given flops and bytes. Without flops, the bytes determine its time.
func (s *System) roofline(flops, bytes float64) point {
	bandwidth, peak := s.LocalMemBW*1e9, s.PeakPerf*1e12
	if flops == 0 {
		return point{time: bytes / bandwidth * 1e9, memoryUse: 1, memoryBound: true}
	}
	intensity := flops / bytes
	perf := min(bandwidth*intensity, peak)
	return point{
		time: flops / perf * 1e9, intensity: intensity, computeUse: perf / peak,
		memoryUse:   perf / intensity / bandwidth,
		memoryBound: perf < peak,
	}
}

// end ends an op and issues ready ops.
func (e *engine) end(r int32, i uint32) {
	n := &e.npus[r]
	e.finish(r, n, i)
	e.walk(r, n)
	e.checkFinished(n)
}

// finish ends an op.
func (e *engine) finish(r int32, n *npu, i uint32) {
	o := &n.g.ops[i]
	if o.lane != laneUnneeded {
		n.busy &^= 1 << o.lane
	}
	n.waits[i] = opEnded
	n.stats.end(o, e.part(o), e.queue.now)
	if e.opTimes != nil {
		e.hasEnded(r, i)
	}
	n.left--
	e.progress.Ran()
	e.meet(r, n, n.dependents(int(i)), leadBy(i, ledByEnd))
}

// meet marks a dependency of ops as met.
func (e *engine) meet(r int32, n *npu, waiting []uint32, by opLead) {
	for _, d := range waiting {
		if n.waits[d]--; n.waits[d] == 0 {
			if e.o.Path {
				e.opTimes[r].causes[d].lead = by
			}
			e.getReady(r, n, d)
		}
	}
}

func (e *engine) checkFinished(n *npu) {
	if n.left == 0 && !n.stats.finished {
		n.stats.finished, n.stats.cycles = true, e.queue.now
	}
}

// accessMemory runs a load or store of remote memory.
func (e *engine) accessMemory(r int32, n *npu, o *op, i uint32) {
	m := &e.o.Memory
	if m.Kind == NoExpansion {
		e.failOp(r, i, "accesses remote memory, which the memory configuration lacks; set it with --memory")
		return
	}
	if err := m.gathers(o.peer); err != nil {
		e.failOp(r, i, "%v", err)
		return
	}
	k := m.server(int(r))
	if k == noServer {
		e.after(e.accessTime(o), newEvent(opOver, r, i))
		return
	}
	if e.orders != nil { // the order of NPUs matters
		e.fail(errOrder)
		return
	}
	for len(e.servers) <= k {
		e.servers = append(e.servers, server{})
	}
	if s := &e.servers[k]; s.busy {
		s.queue = append(s.queue, access{r, i})
		return
	}
	e.serve(k, access{r, i})
}

func (e *engine) accessTime(o *op) uint64 {
	return uint64(e.o.Memory.accessTime(int64(o.bytes), o.peer))
}

// serve starts an access at a server.
func (e *engine) serve(k int, a access) {
	e.servers[k].busy = true
	t := e.accessTime(&e.npus[a.npu].g.ops[a.op])
	e.after(t, newEvent(opOver, a.npu, a.op))
	e.after(t, newEvent(serverOver, a.npu, uint32(k)))
}

// serveNext starts the access that has waited longest.
func (e *engine) serveNext(k int) {
	s := &e.servers[k]
	if s.first == len(s.queue) {
		s.busy, s.queue, s.first = false, s.queue[:0], 0
		return
	}
	s.first++
	e.serve(k, s.queue[s.first-1])
}
