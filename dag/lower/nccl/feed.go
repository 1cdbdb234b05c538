package nccl

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nodes"
)

// feed writes the ranks of the lowered trace.
type feed struct {
	*lowering
	*nodes.Writer
	clock  *clock
	cut    cut
	labels [][]int32 // streams of the channels of each communicator on the current rank
	label  int32     // next free stream

	rank      int32
	plan      *plan
	figures   *figures
	in        int32   // first op of the kernel
	terminals []int32 // ops that the last op of the kernel waits for
	stream    int32   // stream of the current channel
	nic       int32   // NIC of the kernel
	protocol  protocol
	typeSize  int64
	next, prv link
	near, far []link // links to several members: the children in a tree, or of PAT
	switched  switched
	waits     patWaits

	// Data of the current chunk, for proofs.
	channel int64 // index of the channel
	at      int64 // first element
	part    int64
}

// link counts the messages that the rank exchanges with a peer on a channel.
type link struct {
	peer           int32
	send, recv     int64 // first tag of each direction
	sent, received int64 // messages
	bytes          int64 // bytes sent
	bytesReceived  int64
}

// Feed returns a function that writes a rank.
func (l *lowering) Feed() func(rank int, w *nodes.Writer) error {
	f := &feed{lowering: l, clock: newClock(l.o), labels: make([][]int32, len(l.comms)+1)}
	return func(rank int, w *nodes.Writer) error {
		if w.Counting() && l.ranks[rank].forward { // a first pass computes the indices of later ops
			f.Writer = w.Dry()
			f.begin(int32(rank))
			if err := f.write(); err != nil {
				return err
			}
		}
		f.Writer = w
		f.begin(int32(rank))
		return f.write()
	}
}

func (f *feed) begin(rank int32) {
	f.rank, f.plan = rank, &f.ranks[rank]
	for i := range f.labels {
		f.labels[i] = f.labels[i][:0]
	}
	f.label = f.plan.stream
	f.LowestStream(f.plan.lowest)
	f.figures = &figures{} // discarded
	if f.Counting() {
		f.plan.figures = newFigures()
		f.figures = &f.plan.figures
	}
}

// write writes the rank.
func (f *feed) write() error {
	r, p := f.trace.Ranks[f.rank], f.plan
	base := f.Base()
	for first := 0; first < r.Len(); {
		last := first + 1
		for last < r.Len() && p.event[last] == p.event[first] {
			last++
		}
		f.SetJob(r.Job.At(first))
		f.SetStep(r.Step.At(first))
		start := f.Base()
		if f.isEvent(r, first, last) {
			f.kernel(r, first, last, base)
		} else {
			f.single(r, first, base)
		}
		if err := f.Err(); err != nil {
			return err
		}
		if f.Counting() {
			end := f.Base() - 1
			for i := first; i < last; i++ {
				p.start[i], p.end[i] = start-base, end-base
			}
		}
		first = last
	}
	return nil
}

// isEvent reports whether the ops are calls of one NCCL kernel.
func (f *feed) isEvent(r *dag.Rank, first, last int) bool {
	c := f.plan.calls[first]
	return c != nil && (r.Kind[first] == dag.Coll || !c.chosen || last > first+1)
}

// require copies the dependencies and release times of ops of the rank to the last op.
func (f *feed) require(r *dag.Rank, first, last int, base int32) {
	p, before := f.plan, int32(none)
	for i := first; i < last; i++ {
		for _, off := range r.Deps.Of(i) {
			on := int32(i) - off
			if event := p.event[on]; event != before {
				f.Require(base + p.end[on])
				before = event
			}
		}
		for _, off := range r.StartDeps.Of(i) {
			f.RequireStart(base + p.start[int32(i)-off])
		}
		f.Release(r.Release.At(i))
	}
}

// single writes an op that is not part of an NCCL kernel.
func (f *feed) single(r *dag.Rank, i int, base int32) {
	peer, bytes, tag := r.Peer.At(i), r.Bytes.At(i), int64(f.plan.number[i])
	switch r.Kind[i] {
	case dag.Send:
		f.Send(peer, bytes, tag, r.Stream.At(i), r.NIC.At(i))
		f.count(peer, 1, bytes, 0, 0)
		f.figures.kinds[sendKind]++
	case dag.Recv:
		f.Recv(peer, bytes, tag, r.Stream.At(i), r.NIC.At(i))
		f.count(peer, 0, 0, 1, bytes)
		f.figures.kinds[recvKind]++
	default:
		f.Copy(r, i)
		if r.Kind[i] == dag.Calc {
			f.figures.gapNS += int64(r.CalcTime(i) / dag.Nanosecond)
		}
	}
	f.require(r, i, i+1, base)
}

// kernel writes the calls of one kernel.
func (f *feed) kernel(r *dag.Rank, first, last int, base int32) {
	f.clock.begin(f.rank, int32(first))
	f.nic = r.NIC.At(first)
	f.terminals = f.terminals[:0]
	group := &f.labels[r.Comm.At(first)]
	stream := f.channelStream(group, 0)
	f.in = f.Calc(stream, 0)
	f.require(r, first, last, base)
	for i := first; i < last && f.Err() == nil; i++ {
		group := &f.labels[r.Comm.At(i)]
		if r.Kind[i] == dag.Coll {
			f.collective(r, i, group)
		} else {
			f.stream = f.channelStream(group, i-first)
			f.messages(r, i)
		}
	}
	out := f.Calc(stream, 0)
	if len(f.terminals) == 0 {
		f.Require(f.in)
	}
	for _, op := range f.terminals {
		f.Require(op)
	}
	f.Calc(r.Stream.At(first), 0)
	f.Require(out)
}

// channelStream returns the stream of a channel of a communicator.
func (f *feed) channelStream(group *[]int32, channel int) int32 {
	for len(*group) <= channel {
		if f.label == math.MaxInt32 {
			f.Fail(fmt.Errorf("no free stream number is left"))
			return 0
		}
		*group = append(*group, f.label)
		f.label++
	}
	return (*group)[channel]
}

// messages writes the messages of a send or receive in a kernel.
func (f *feed) messages(r *dag.Rank, i int) {
	c, peer, left := f.plan.calls[i], r.Peer.At(i), r.Bytes.At(i)
	step := c.step()
	if step == 0 {
		step = max(left, 1)
	}
	link := link{peer: peer, send: int64(f.plan.number[i])}
	link.recv = link.send
	for ; left > 0 && f.Err() == nil; left -= step {
		bytes := min(step, left)
		if c.protocol == ll {
			bytes = lineBytes(bytes)
		}
		if r.Kind[i] == dag.Send {
			f.terminals = append(f.terminals, f.sendOn(&link, bytes, f.in))
		} else {
			f.terminals = append(f.terminals, f.recvOn(&link, bytes))
		}
	}
	kind := recvKind
	if r.Kind[i] == dag.Send {
		kind = sendKind
	}
	f.figures.kinds[kind]++
	f.countLink(&link)
}

// sendOn appends a send of the next message of a link, which waits for op on.
func (f *feed) sendOn(l *link, bytes int64, on int32) int32 {
	op := f.sendParts(l, bytes)
	f.Require(on)
	return op
}

// sendParts appends a send of the next message of a link without dependencies.
func (f *feed) sendParts(l *link, bytes int64) int32 {
	op := f.Send(l.peer, bytes, l.send+l.sent, f.stream, f.nic)
	l.sent++
	l.bytes += bytes
	return op
}

// recvOn appends a receive of the next message of a link.
func (f *feed) recvOn(l *link, bytes int64) int32 {
	op := f.Recv(l.peer, bytes, l.recv+l.received, f.stream, f.nic)
	f.Require(f.in)
	l.received++
	l.bytesReceived += bytes
	return op
}

// work appends work on the given bytes, which waits for op on.
func (f *feed) work(w work, bytes int64, on int32) int32 {
	op := f.computes(w, bytes)
	f.Require(on)
	return op
}

// computes appends work on the given bytes without dependencies.
func (f *feed) computes(w work, bytes int64) int32 {
	return f.Calc(f.stream, duration(f.timeOf(w, bytes, 1)))
}

// timeOf returns the time in ns of work on count pieces of data of the given bytes, one after the other.
func (f *feed) timeOf(w work, bytes, count int64) int64 {
	ns, known := f.clock.time(f.protocol, w, bytes)
	if !known {
		f.figures.untimed += count
	}
	if f.o.estimated && f.protocol == ll128 {
		f.figures.estimated += count
	}
	ns *= count
	f.figures.workNS += ns
	return ns
}

// maxMembers is the maximum size of a communicator. It keeps products with message sizes in range.
const maxMembers = 1 << 22

// collective writes a collective.
func (f *feed) collective(r *dag.Rank, i int, group *[]int32) {
	c := f.comms[r.Comm.At(i)]
	inst := &c.instances[f.plan.number[i]]
	f.figures.kinds[kindOf(inst.kind)]++
	n := int32(len(c.members))
	call := inst.call
	if n == 1 {
		return
	}
	if inst.omitted {
		f.figures.unsupported[call.algorithm]++
		return
	}
	if n > maxMembers {
		f.Fail(fmt.Errorf("a communicator of %d ranks, expected at most %d", n, maxMembers))
		return
	}
	me := c.position[f.rank]
	f.protocol, f.typeSize = call.protocol, call.typeSize
	f.cut.begin(call)
	lane := inst.lanes
	for k := range call.channels {
		ch := &call.channels[k]
		f.channel = int64(k)
		f.stream = f.channelStream(group, k)
		switch inst.algorithm {
		case tree:
			f.tree(c, ch, lane, me)
		case nvls, nvlsTree:
			f.nvls(c, inst, ch, lane, me, k, group)
		case pat:
			f.pat(c, inst, ch, lane, me, f.plan.calls[i].inPlace)
		default:
			f.ring(c, inst, ch, lane, me, f.plan.calls[i].inPlace)
		}
		lane += int32(inst.lanesPerChannel(int64(n)))
	}
}
