package storage

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Limits of a lowered trace. The ops of a trace of this size take 30 GB of memory.
const (
	maxOps   = 1 << 30
	maxDeps  = 3 << 30
	maxRanks = 1 << 18
)

// maxMessage is the maximum size of a message of fixed size and of a header, 1 TiB.
const maxMessage = 1 << 40

// none, in place of an op, is no op.
const none = -1

// writer writes the ops of all ranks in two passes. The first pass counts, the second writes into columns of the
// counted size.
type writer struct {
	ranks   []rankWriter
	filling bool
	header  int64 // bytes added to every message
	comm    int32 // communicator of all messages
	tag     int64 // tag of the next message
	report  Report
	err     error // first error; later ops are not written

	ops, deps int64 // counts so far

	job, step, stream, nic, host int32 // of the op being lowered
	special                      bool  // job, step, stream, nic or comm is not 0
}

// rankWriter is a rank being written.
type rankWriter struct {
	ops   int32
	deps  int64
	timed bool // some op has a duration
	rank  dag.Rank
}

// fill allocates the columns after the counting pass and starts the writing pass.
func (w *writer) fill() {
	*w = writer{ranks: w.ranks, filling: true, header: w.header, comm: w.comm}
	for i := range w.ranks {
		r := &w.ranks[i]
		n := r.ops
		r.rank = dag.Rank{
			Kind: make([]dag.Kind, n), Bytes: make([]int64, n), Peer: make([]int32, n), Tag: make([]int64, n),
			Deps: dag.Edges{End: make([]uint32, n), Off: make([]int32, 0, r.deps)},
		}
		if r.timed {
			r.rank.Duration = make([]dag.Time, n)
		}
		r.ops, r.deps = 0, 0
	}
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// standFor sets the fields of the next ops, which replace op i of r: its job and step, and for ops on the host also its
// stream and NIC.
func (w *writer) standFor(r *dag.Rank, i int, host int32) {
	w.job, w.stream, w.nic, w.host = r.Job.At(i), r.Stream.At(i), r.NIC.At(i), host
	w.step = r.Step.At(i)
	w.special = w.job|w.step|w.stream|w.nic|w.comm != 0
}

// add appends an op.
func (w *writer) add(rank int32, kind dag.Kind) (op int32) {
	r := &w.ranks[rank]
	op = r.ops
	r.ops++
	if !w.filling {
		if w.ops++; w.ops > maxOps {
			w.fail("more than %d ops", maxOps)
		}
		return op
	}
	r.rank.Kind[op] = kind
	r.rank.Deps.End[op] = uint32(len(r.rank.Deps.Off))
	if w.special {
		w.distinguish(rank, op, kind)
	}
	return op
}

// distinguish sets the fields of an op that are usually 0.
func (w *writer) distinguish(rank, op int32, kind dag.Kind) {
	r, i := &w.ranks[rank].rank, int(op)
	r.Job.Set(i, w.job)
	r.Step.Set(i, w.step)
	if rank == w.host {
		r.Stream.Set(i, w.stream)
		r.NIC.Set(i, w.nic)
	}
	if kind != dag.Calc {
		r.Comm.Set(i, w.comm)
	}
}

// require makes the last op of a rank wait for the end of op on, unless on is none.
func (w *writer) require(rank, on int32) {
	if on == none {
		return
	}
	r := &w.ranks[rank]
	if !w.filling {
		w.count(r, 1)
		return
	}
	last := r.ops - 1
	r.rank.Deps.Off = append(r.rank.Deps.Off, last-on)
	r.rank.Deps.End[last]++
}

// requireAll makes the last op of a rank wait for the ends of other ops.
func (w *writer) requireAll(rank int32, on []int32) {
	if !w.filling {
		w.count(&w.ranks[rank], len(on))
		return
	}
	for _, op := range on {
		w.require(rank, op)
	}
}

func (w *writer) count(r *rankWriter, deps int) {
	r.deps += int64(deps)
	w.deps += int64(deps)
	if w.deps > maxDeps {
		w.fail("more than %d dependencies", int64(maxDeps))
	}
}

// message appends a message: a send at rank from, which waits for op after, and a receive at rank to, which waits for
// op then. after and then may be none. It returns both ops.
func (w *writer) message(from, after, to, then int32, bytes int64) (send, recv int32) {
	bytes += w.header
	send = w.add(from, dag.Send)
	w.require(from, after)
	recv = w.add(to, dag.Recv)
	w.require(to, then)
	if w.filling {
		f, t := &w.ranks[from].rank, &w.ranks[to].rank
		f.Peer[send], f.Bytes[send], f.Tag[send] = to, bytes, w.tag
		t.Peer[recv], t.Bytes[recv], t.Tag[recv] = from, bytes, w.tag
	}
	w.tag++
	w.report.Messages++
	if w.report.SendBytes += bytes; w.report.SendBytes < 0 || bytes < 0 {
		w.fail("more than %d bytes of messages", int64(math.MaxInt64))
	}
	return send, recv
}

// calc appends the service of a request at a rank, which takes ns nanoseconds and waits for op after.
func (w *writer) calc(rank, after int32, ns int64) (op int32) {
	op = w.busy(rank, ns)
	w.require(rank, after)
	w.report.Calcs++
	if w.report.CalcNS += ns; w.report.CalcNS < 0 {
		w.fail("calcs of more than %d ns in all", int64(math.MaxInt64))
	}
	return op
}

// serve appends the service of a request of the given size at rate r.
func (w *writer) serve(rank, after int32, r *rate, bytes int64) (op int32) {
	ns, ok := r.time(bytes)
	if !ok {
		w.fail("%d bytes take more than %v at %v", bytes, dag.MaxTime, r)
	}
	return w.calc(rank, after, ns)
}

// busy appends a calc of ns nanoseconds.
func (w *writer) busy(rank int32, ns int64) (op int32) {
	op = w.add(rank, dag.Calc)
	r := &w.ranks[rank]
	if w.filling {
		r.rank.Duration[op] = dag.Time(ns) * dag.Nanosecond
	}
	r.timed = true
	return op
}

// marker appends a calc of zero duration.
func (w *writer) marker(rank int32) (op int32) {
	op = w.add(rank, dag.Calc)
	if w.filling {
		w.ranks[rank].rank.Subkind.Set(int(op), dag.Marker)
	}
	w.report.Markers++
	return op
}
