package nccl

import "github.com/tracedag/tracedag/dag"

// slotLoops is the number of loops of NVLS under way on a channel: each uses 2 of the 8 slots of a buffer.
const slotLoops = 4

// signalBytes is the size of the messages by which the GPUs of a node wait for each other.
const signalBytes = 1

// Streams of a channel of NVLS. NCCL has separate warps for each.
const (
	scatterStream = iota
	reduceStream
	spreadStream // of NVLS Tree
	gatherStream
	signalStream
	switchStreams = iota
)

// Lanes of a member on a channel of NVLS: its signal to the first GPU of the node and the answer; of NVLS Tree also its
// data to the parent and the parent's to it.
const (
	signalLane = iota
	answerLane
	upLane
	downLane
)

// switched is the state of a channel of NVLS or NVLS Tree at one member.
type switched struct {
	inst    *instance
	stream  int // index of the first stream
	group   *[]int32
	place   int64 // of the member on its node
	heads   int64 // GPUs of the node, each of which reduces and broadcasts one part
	isChild bool  // the member has a parent on another node
	signals []link
	slots   [slotLoops]int32 // last op of the last loops
	loops   int
}

// loop is the data of one loop, in elements.
type loop struct {
	off  int64 // first element
	size int64 // of a part
	own  int64 // of the member's part, at most size
	all  int64 // of the parts of all heads
}

// nvls writes one channel of a collective by NVLS or NVLS Tree at the member at position me. k is the index of the
// channel.
//
// In each loop the GPUs of a node copy their data to buffers (scatter), each GPU reduces one part through the switch
// and
// writes the result through the switch to the buffers of all, and they copy all parts out of the buffers (gather). NVLS
// Tree in between reduces and broadcasts every part between nodes, in a tree of the GPUs at the same place.
func (f *feed) nvls(c *comm, inst *instance, ch *channel, lanes, me int32, k int, group *[]int32) {
	t, n := c.topology, int32(len(c.members))
	local := t.groups[t.node[me]]
	s := &f.switched
	*s = switched{inst: inst, stream: k * switchStreams, group: group, place: int64(t.place[me]),
		heads: int64(len(local)), signals: s.signals[:0]}
	lane := func(kind, rank int32) int32 { return lanes + kind*n + rank }
	tag := func(kind, rank int32) int64 {
		if f.Counting() {
			return 0
		}
		return int64(c.tags[lane(kind, rank)])
	}
	if s.place > 0 {
		s.signals = append(s.signals, link{peer: c.members[local[0]], send: tag(signalLane, me),
			recv: tag(answerLane, me)})
	} else {
		for _, peer := range local[1:] {
			s.signals = append(s.signals, link{peer: c.members[peer], send: tag(answerLane, peer),
				recv: tag(signalLane, peer)})
		}
	}
	f.near = f.near[:0]
	var children []int32
	if inst.algorithm == nvlsTree {
		heads := t.headTree(ch.ring)
		if up := heads.parent[me]; up != none {
			s.isChild = true
			f.next = link{peer: c.members[up], send: tag(upLane, me), recv: tag(downLane, me)}
		}
		children = heads.children[me]
		for _, child := range children {
			f.near = append(f.near, link{peer: c.members[child], send: tag(downLane, child), recv: tag(upLane, child)})
		}
	}

	if inst.kind == dag.Allreduce {
		for off := int64(0); off < ch.work && f.Err() == nil; off += s.heads * ch.chunk {
			rest, size := ch.work-off, ch.chunk
			if rest < s.heads*size {
				size = min(size, max(ch.last, (rest+s.heads-1)/s.heads))
			}
			f.nvlsLoop(loop{off, size, min(size, max(0, rest-s.place*size)), min(rest, s.heads*size)})
		}
	} else {
		for off := int64(0); off < ch.work && f.Err() == nil; off += ch.chunk {
			size := min(ch.chunk, ch.work-off)
			f.nvlsLoop(loop{off, size, size, s.heads * size})
		}
	}

	for i := range s.signals {
		if s.place > 0 {
			f.countLane(c, lane(signalLane, me), &s.signals[i])
		} else {
			f.countLane(c, lane(answerLane, local[i+1]), &s.signals[i])
		}
	}
	if s.isChild {
		f.countLane(c, lane(upLane, me), &f.next)
	}
	for i, child := range children {
		f.countLane(c, lane(downLane, child), &f.near[i])
	}
}

// nvlsLoop writes one loop at one GPU.
func (f *feed) nvlsLoop(l loop) {
	s := &f.switched
	kind := s.inst.kind
	reduces, spreadsAll := kind != dag.Allgather, kind != dag.ReduceScatter
	ready, free := f.in, f.in // op after which the data, and the buffers are ready
	if s.loops >= slotLoops {
		free = s.slots[s.loops%slotLoops]
	}
	source := f.in
	if reduces && !f.o.Registered {
		f.use(scatterStream)
		ready = f.copyParts(l)
		f.Require(free)
		free, source = ready, ready
	}
	if reduces {
		f.proveParts(source, publishes, l)
	}

	begin := f.await(ready, free)
	head := begin
	if s.inst.algorithm == nvlsTree {
		head = f.nvlsTreePart(l, begin)
	} else {
		through := l.all // elements on the link of the GPU, in its busier direction
		if kind == dag.Allreduce {
			through += l.own
		}
		f.use(reduceStream)
		head = f.through(through)
		f.Require(begin)
		if reduces {
			f.provePart(head, reducesInSwitch, l)
		}
		if spreadsAll {
			f.provePart(head, spreads, l)
		}
	}
	done := f.await(head, head)
	if spreadsAll {
		if !f.o.Registered {
			f.use(gatherStream)
			gather := f.copyParts(l)
			f.Require(done)
			done = gather
		}
		f.proveParts(done, gathers, l)
	}
	f.terminals = append(f.terminals, done)
	s.slots[s.loops%slotLoops] = done
	s.loops++
}

// nvlsTreePart writes the reduction and broadcast of the member's part inside its node and between nodes, after op
// begin.
// It returns the last op.
func (f *feed) nvlsTreePart(l loop, begin int32) int32 {
	s := &f.switched
	f.use(reduceStream)
	ready := f.through(l.all)
	f.Require(begin)
	f.provePart(ready, reducesInSwitch, l)
	bytes := l.own * f.typeSize
	if bytes > 0 {
		if len(f.near) > 0 {
			first := f.Base()
			for i := range f.near {
				f.provePart(f.recvOn(&f.near[i], bytes), holds, l)
			}
			reduced := f.computes(reduces, bytes)
			f.Require(ready)
			for i := range f.near {
				f.Require(first + int32(i))
			}
			f.provePart(reduced, reducesInto, l)
			ready = reduced
		}
		if s.isChild {
			sent := f.sendOn(&f.next, bytes, ready)
			f.provePart(sent, sendsOn, l)
			f.terminals = append(f.terminals, sent)
			ready = f.recvOn(&f.next, bytes)
			f.provePart(ready, keeps, l)
		}
	}
	f.use(spreadStream)
	spread := f.through(l.all)
	f.Require(ready)
	f.provePart(spread, spreads, l)
	if bytes > 0 {
		for i := range f.near {
			sent := f.sendOn(&f.near[i], bytes, ready)
			f.provePart(sent, sendsOn, l)
			f.terminals = append(f.terminals, sent)
		}
	}
	return spread
}

// use selects a stream of the channel.
func (f *feed) use(stream int) {
	f.stream = f.channelStream(f.switched.group, f.switched.stream+stream)
}

// await makes the GPUs of the node wait for each other: it returns an op of this GPU after ready and free of all GPUs.
func (f *feed) await(ready, free int32) int32 {
	s := &f.switched
	f.use(signalStream)
	waits := func() {
		if free != ready {
			f.Require(free)
		}
	}
	if s.place > 0 {
		f.sendOn(&s.signals[0], signalBytes, ready)
		waits()
		return f.recvOn(&s.signals[0], signalBytes)
	}
	first := f.Base()
	for i := range s.signals {
		f.recvOn(&s.signals[i], signalBytes)
	}
	all := f.Calc(f.stream, 0)
	f.Require(ready)
	waits()
	for i := range s.signals {
		f.Require(first + int32(i))
	}
	for i := range s.signals {
		f.terminals = append(f.terminals, f.sendOn(&s.signals[i], signalBytes, all))
	}
	return all
}

// copyParts appends the copy of all parts of a loop, without dependencies.
func (f *feed) copyParts(l loop) int32 {
	whole := l.all / l.size
	ns := f.timeOf(copies, l.size*f.typeSize, whole)
	if rest := l.all % l.size; rest > 0 {
		ns += f.timeOf(copies, rest*f.typeSize, 1)
	}
	return f.Calc(f.stream, duration(ns))
}

// through appends the transfer of elements over the link between the GPU and the switch, without dependencies.
func (f *feed) through(elements int64) int32 {
	bytes := elements * f.typeSize
	f.figures.switchBytes += bytes
	d := f.o.Nodes.Transfer(bytes)
	if f.o.ZeroReduction {
		d = 0
	}
	f.figures.switchNS += int64(d / dag.Nanosecond)
	return f.Calc(f.stream, d)
}

// provePart records what an op does with the member's part of a loop.
func (f *feed) provePart(op int32, d does, l loop) {
	if f.proof != nil {
		f.proveSome(op, d, l, f.switched.place, f.switched.place+1)
	}
}

// proveParts records what an op does with all parts of a loop.
func (f *feed) proveParts(op int32, d does, l loop) {
	if f.proof != nil {
		f.proveSome(op, d, l, 0, f.switched.heads)
	}
}

func (f *feed) proveSome(op int32, d does, l loop, from, to int64) {
	for i := from; i < to; i++ {
		if f.switched.inst.kind == dag.Allreduce {
			at := i * l.size
			f.prove(op, d, cell{f.channel, 0, l.off + at, min(l.size, max(0, l.all-at))})
		} else {
			f.prove(op, d, cell{f.channel, i, l.off, l.size})
		}
	}
}
