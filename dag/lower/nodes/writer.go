package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Writer writes a new rank op by op, one old rank after the other, in two passes. The first pass counts, the second
// writes into columns of the counted size.
//
// Methods that add an op return its number. The dependencies of an op must follow it directly.
type Writer struct {
	layout  *layout
	filling bool
	rank    dag.Rank // when filling
	counts  extent
	err     error

	awaited []uint64 // one bit per op: another op waits for its end
	local   *local
	first   int32 // op before all others if ranks are joined; otherwise none

	// State of the current old rank.
	me, place     int32 // place is its index among the old ranks of its node
	job, step     int32
	stream, nic   int32 // offsets of its streams and NICs
	streams, nics int32 // number of streams and NICs of the new rank so far

	// State of the last op.
	open             bool  // may still get dependencies
	depsAt, startsAt int64 // number of dependencies before it
	receives         bool  // receives a message inside the node
	transferBytes    int64 // size of the last message inside the node
	transferTime     dag.Time
}

// local has the messages inside a node by the places of sender and receiver.
type local struct {
	sends, recvs [][]end
}

// end is the send or the receive of a message.
type end struct {
	tag int64
	op  int32
}

// extent is the counted size of a rank.
type extent struct {
	ops, deps, starts int64 // starts counts start dependencies
	calcs             int64
	transferNS        int64 // duration of messages inside the node, both ends
	wide              bool  // some stream is above 255
	timed             bool  // some op has a duration
}

var errOps = fmt.Errorf("more than %d ops on one rank", dag.MaxOps)

// none, in place of an op, is no op.
const none = -1

// Err returns the first error, after which the writer ignores ops.
func (w *Writer) Err() error { return w.err }

// Fail records an error unless there is one already.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Counting reports whether this is the counting pass.
func (w *Writer) Counting() bool { return !w.filling }

// SetJob sets the job of the next ops.
func (w *Writer) SetJob(job int32) { w.job = job }

// SetStep sets the step of the next ops.
func (w *Writer) SetStep(step int32) { w.step = step }

// Base returns the number of the next op.
func (w *Writer) Base() int32 { return int32(w.counts.ops) }

// Dry returns a writer that continues counting from the state of w without effect on w.
func (w *Writer) Dry() *Writer {
	dry := *w
	dry.awaited = slices.Clone(w.awaited)
	return &dry
}

// begin starts a new rank in the memory of the previous one: the counting pass if size is nil, else the writing pass.
func (w *Writer) begin(l *layout, size *extent) {
	memory := w.rank
	*w = Writer{layout: l, filling: size != nil, awaited: w.awaited[:0], local: w.local, first: none, transferBytes: -1}
	w.local.reset()
	if size == nil {
		return
	}
	n := int(size.ops)
	w.rank = dag.Rank{
		Kind: zeros(memory.Kind, n), Bytes: zeros(memory.Bytes, n), Peer: zeros(memory.Peer, n),
		Tag:  zeros(memory.Tag, n),
		Deps: dag.Edges{End: zeros(memory.Deps.End, n), Off: zeros(memory.Deps.Off, int(size.deps))[:0]},
	}
	if size.timed {
		w.rank.Duration = zeros(memory.Duration, n)
	}
	if size.wide {
		w.rank.Stream = dag.NewNarrow(nil, make([]int32, n))
	} else {
		w.rank.Stream = dag.NewNarrow(make([]uint8, n), nil)
	}
	if size.starts > 0 {
		w.rank.StartDeps = dag.Edges{End: zeros(memory.StartDeps.End, n), Off: zeros(memory.StartDeps.Off,
			int(size.starts))[:0]}
	}
}

// zeros returns n zeros, in the memory of s if it is large enough.
func zeros[S ~[]E, E any](s S, n int) S {
	if n > cap(s) {
		return make(S, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// source starts the ops of an old rank.
func (w *Writer) source(rank int32) {
	w.me, w.job, w.step = rank, 0, 0
	w.place = w.layout.place[rank]
	w.stream, w.nic = 0, 0
	if w.place > 0 && w.layout.options.OwnNICs {
		w.nic = max(w.nics, w.place)
	}
	w.LowestStream(0)
}

// LowestStream declares that the next ops of the old rank have no stream below lowest.
func (w *Writer) LowestStream(lowest int32) {
	if w.place > 0 && !w.layout.options.SharedStreams {
		w.stream = w.streams - lowest
	}
}

// add appends an op.
func (w *Writer) add(kind dag.Kind, stream int32) int32 {
	w.close()
	op := w.Base()
	if op == dag.MaxOps {
		w.Fail(errOps)
		return op
	}
	w.counts.ops++
	w.open = true
	stream = w.streamOf(stream)
	if !w.filling {
		if kind == dag.Calc {
			w.counts.calcs++
		}
		if stream > 255 {
			w.counts.wide = true
		}
		return op
	}
	w.rank.Kind[op] = kind
	w.rank.Stream.Set(int(op), stream)
	if w.job != 0 {
		w.rank.Job.Set(int(op), w.job)
	}
	if w.step != 0 {
		w.rank.Step.Set(int(op), w.step)
	}
	return op
}

// streamOf returns the new rank's stream for a stream of the old rank.
func (w *Writer) streamOf(stream int32) int32 {
	stream += w.stream
	if stream >= w.streams {
		w.streams = stream + 1
	}
	return stream
}

// close ends the dependencies of the last op.
func (w *Writer) close() {
	if !w.open {
		return
	}
	w.open = false
	op := w.Base() - 1
	if w.first != none && w.counts.deps == w.depsAt && w.counts.starts == w.startsAt && op != w.first {
		w.require(op, w.first)
	}
	if w.receives { // reserves the dependency on its send, which join sets
		w.receives = false
		if w.filling {
			w.rank.Deps.Off = append(w.rank.Deps.Off, 0)
		}
		w.counts.deps++
	}
	if w.filling {
		w.rank.Deps.End[op] = uint32(len(w.rank.Deps.Off))
		if w.rank.StartDeps.End != nil {
			w.rank.StartDeps.End[op] = uint32(len(w.rank.StartDeps.Off))
		}
	}
	w.depsAt, w.startsAt = w.counts.deps, w.counts.starts
}

// Require makes the last op wait for the end of op on.
func (w *Writer) Require(on int32) { w.require(w.Base()-1, on) }

func (w *Writer) require(op, on int32) {
	w.counts.deps++
	w.await(on)
	if w.filling {
		w.rank.Deps.Off = append(w.rank.Deps.Off, op-on)
	} else if w.counts.deps > dag.MaxDeps {
		w.Fail(fmt.Errorf("more than %d dependencies on one rank", int64(dag.MaxDeps)))
	}
}

// await marks an op that another op waits for.
func (w *Writer) await(on int32) {
	for int(on>>6) >= len(w.awaited) {
		w.awaited = append(w.awaited, 0)
	}
	w.awaited[on>>6] |= 1 << (on & 63)
}

// RequireStart makes the last op wait for the start of op on.
func (w *Writer) RequireStart(on int32) {
	w.counts.starts++
	if w.filling {
		w.rank.StartDeps.Off = append(w.rank.StartDeps.Off, w.Base()-1-on)
	}
}

// Release sets the release time of the last op to at least t.
func (w *Writer) Release(t dag.Time) {
	if w.filling && w.err == nil && t > w.rank.Release.At(int(w.counts.ops-1)) {
		w.rank.Release.Set(int(w.counts.ops-1), t)
	}
}

// Calc appends a calc of duration d.
func (w *Writer) Calc(stream int32, d dag.Time) int32 {
	op := w.add(dag.Calc, stream)
	w.last(op, d)
	return op
}

func (w *Writer) last(op int32, d dag.Time) {
	if d == 0 {
		return
	}
	w.counts.timed = true
	if w.filling {
		w.rank.Duration[op] = d
	}
}

// Send appends a send to an old rank. Tags must be unique among the messages from one new rank to another.
func (w *Writer) Send(peer int32, bytes, tag int64, stream, nic int32) int32 {
	if w.isLocal(peer) {
		op := w.transfer(&w.local.sends, w.place, w.layout.place[peer], bytes, tag, stream)
		w.await(op) // by its receive
		return op
	}
	return w.message(dag.Send, peer, bytes, tag, stream, nic)
}

// Recv appends a receive from an old rank.
func (w *Writer) Recv(peer int32, bytes, tag int64, stream, nic int32) int32 {
	if w.isLocal(peer) {
		op := w.transfer(&w.local.recvs, w.layout.place[peer], w.place, bytes, tag, stream)
		w.receives = true
		return op
	}
	return w.message(dag.Recv, peer, bytes, tag, stream, nic)
}

func (w *Writer) isLocal(peer int32) bool {
	l := w.layout
	return l.joins && l.node[peer] == l.node[w.me]
}

func (w *Writer) message(kind dag.Kind, peer int32, bytes, tag int64, stream, nic int32) int32 {
	op := w.add(kind, stream)
	nic += w.nic
	if nic >= w.nics {
		w.nics = nic + 1
	}
	if w.filling {
		w.rank.Bytes[op], w.rank.Peer[op], w.rank.Tag[op] = bytes, w.layout.node[peer], tag
		if nic != 0 {
			w.rank.NIC.Set(int(op), nic)
		}
	}
	return op
}

// transfer appends one end of a message inside the node, a calc.
func (w *Writer) transfer(ends *[][]end, from, to int32, bytes, tag int64, stream int32) int32 {
	if bytes != w.transferBytes {
		w.transferBytes, w.transferTime = bytes, halfTransfer(bytes, w.layout.options.Bandwidth)
	}
	op := w.Calc(stream, w.transferTime)
	if !w.filling {
		w.counts.transferNS += int64(w.transferTime / dag.Nanosecond)
		return op
	}
	e := w.local.of(ends, from, to, w.layout.ranks(w.me))
	*e = append(*e, end{tag, op})
	return op
}

// halfTransfer returns the duration of either end of a message inside a node: half the transfer time at the bandwidth,
// rounded down to whole nanoseconds.
func halfTransfer(bytes, bandwidth int64) dag.Time {
	if bandwidth <= 0 || bytes <= 0 {
		return 0
	}
	return transferTime(bytes, 2*uint64(bandwidth))
}

// Transfer returns the time to transfer the bytes inside a node, rounded down to whole nanoseconds.
func (o *Options) Transfer(bytes int64) dag.Time {
	if o.Bandwidth <= 0 || bytes <= 0 {
		return 0
	}
	return transferTime(bytes, uint64(o.Bandwidth))
}

func transferTime(bytes int64, bandwidth uint64) dag.Time {
	high, low := bits.Mul64(uint64(bytes), 1e9)
	if high >= bandwidth {
		return dag.MaxTime / dag.Nanosecond * dag.Nanosecond
	}
	ns, _ := bits.Div64(high, low, bandwidth)
	return dag.Time(min(ns, uint64(dag.MaxTime/dag.Nanosecond))) * dag.Nanosecond
}

func (l *local) reset() {
	for i := range l.sends {
		l.sends[i] = l.sends[i][:0]
	}
	for i := range l.recvs {
		l.recvs[i] = l.recvs[i][:0]
	}
}

// of returns one end's list of the messages between two of the given number of places.
func (l *local) of(ends *[][]end, from, to int32, places int) *[]end {
	for len(*ends) < places*places {
		*ends = append(*ends, nil)
	}
	return &(*ends)[int(from)*places+int(to)]
}

// addFirst appends the op before all others.
func (w *Writer) addFirst() {
	w.first = w.Calc(0, 0)
}

// addLast appends the op after all others.
func (w *Writer) addLast() {
	w.close()
	n := w.Base()
	w.job, w.step, w.stream = 0, 0, 0
	last := w.Calc(0, 0)
	for op := range n {
		if int(op>>6) >= len(w.awaited) || w.awaited[op>>6]&(1<<(op&63)) == 0 {
			w.require(last, op)
		}
	}
}

// join makes the receive of each message inside the node wait for its send.
func (w *Writer) join() error {
	l := w.local
	for i := range max(len(l.sends), len(l.recvs)) {
		var sends, recvs []end
		if i < len(l.sends) {
			sends = l.sends[i]
		}
		if i < len(l.recvs) {
			recvs = l.recvs[i]
		}
		sortByTag(sends)
		sortByTag(recvs)
		for k := range max(len(sends), len(recvs)) {
			if k >= len(sends) || k >= len(recvs) || sends[k].tag != recvs[k].tag {
				return w.unmatched(i, sends, recvs, k)
			}
			send, recv := sends[k].op, recvs[k].op
			w.rank.Deps.Off[w.rank.Deps.End[recv]-1] = recv - send
		}
	}
	return nil
}

func sortByTag(ends []end) {
	byTag := func(a, b end) int { return cmp.Compare(a.tag, b.tag) }
	if !slices.IsSortedFunc(ends, byTag) {
		slices.SortStableFunc(ends, byTag)
	}
}

func (w *Writer) unmatched(i int, sends, recvs []end, k int) error {
	ranks := w.layout.members(w.me)
	from, to := ranks[i/len(ranks)], ranks[i%len(ranks)]
	side, tag := "send of", int64(0)
	if k < len(sends) && (k >= len(recvs) || sends[k].tag < recvs[k].tag) {
		tag = sends[k].tag
	} else {
		side, tag = "receive of", recvs[k].tag
	}
	return fmt.Errorf("a %s a message from rank %d to rank %d on the same node, number %d among theirs, has no partner",
		side, from, to, tag)
}

// finish completes the rank.
func (w *Writer) finish() error {
	w.close()
	if w.err != nil {
		return w.err
	}
	if !w.filling {
		return nil
	}
	if int(w.counts.ops) != len(w.rank.Kind) {
		return errors.New("the ops changed between counting and writing")
	}
	return w.join()
}
