package ideal

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim"
)

// Bits of sim.Op.Flags used by the replay loop.
const (
	started uint8 = 1 << 7
	ended   uint8 = 1 << 6 // set for receives and collectives; other ops end when they have started
)

// run is a replay.
//
// The order of message matching depends only on the times of sends and receives, so only these use the queue. Calcs and
// collectives run as soon as their start is known, even if it is in the future.
//
// After a receive or collective has ended, its Op.Link is the op whose start it waited for, by Program.Order: the send
// of its message, or the last op of the collective that it waited for. The end is the later one of both starts.
type run struct {
	p        *sim.Program
	ops      []sim.Op
	ready    []uint64 // by op: the latest time of its dependencies and its release so far, finally its start
	cause    []cause  // by op
	queue    eventQueue
	runnable []uint32 // calcs and collectives with known start
	matchers []sim.Matcher
	partial  []partial // by instance
	scans    []uint32  // by rank of every scan: its op after the start, otherwise sim.NoOp
	finish   []uint64  // by rank
	last     []uint32  // by rank: of the ops that end at finish, the lowest order; sim.NoOp: none
	history  *history  // nil: all ops are in memory

	dependents []uint32 // scratch space of end

	progress        sim.Progress
	messages, bytes int64
	err             error
}

// cause is the dependency that an op waited for last: the order of that op plus 1 and, in the lowest bit, whether it
// waited for the start. It is 0 if the op waited for no op, or longer for its release time.
type cause uint32

func causedBy(order uint32, byStart cause) cause {
	return cause(order+1)<<1 | byStart
}

const (
	byEnd cause = iota
	byStart
)

// op returns the order of the op of the dependency; c must not be 0.
func (c cause) op() uint32 {
	return uint32(c>>1) - 1
}

func newRun(p *sim.Program, o *Options) *run {
	r := &run{
		p: p, ops: p.Ops, ready: p.ReleaseTimes(), cause: make([]cause, len(p.Ops)),
		matchers: make([]sim.Matcher, p.Ranks()), finish: make([]uint64, p.Ranks()), last: make([]uint32, p.Ranks()),
	}
	for rank := range r.last {
		r.last[rank] = sim.NoOp
	}
	r.queue = newEventQueue(p, r.ready)
	r.progress.Func = sim.ProgressUntil(o.Context, o.Progress, func(err error) { r.err = cmp.Or(r.err, err) })
	r.err = sim.Interrupted(o.Context)
	for rank := range r.matchers {
		r.matchers[rank] = sim.NewMatcher(p)
	}
	r.beginCollectives()
	if p.Windowed() {
		var err error
		if r.history, err = newHistory(p.Chunks()); err != nil {
			r.err = cmp.Or(r.err, err)
			return r
		}
		p.OnDrop(func(chunk, first uint32, n int) { r.history.add(r, chunk, first, n) })
	}
	return r
}

func (r *run) run() (*sim.Outcome, error) {
	for rank := range r.matchers {
		r.begin(rank)
	}
	for r.err == nil {
		i, ok := r.queue.take()
		if !ok {
			break
		}
		r.communicate(i, &r.ops[i])
		r.runReady()
		if r.history != nil {
			r.err = cmp.Or(r.err, r.p.Failed(), r.history.err)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	r.progress.Report()
	return r.outcome(), nil
}

// begin runs the calcs and collectives of a rank without dependencies, and queues its sends and receives without
// dependencies.
func (r *run) begin(rank int) {
	roots := r.p.Roots(rank)
	other := func(i uint32) bool { return !r.ops[i].IsMessage() }
	if slices.ContainsFunc(roots, other) {
		for _, i := range roots {
			if other(i) {
				r.runnable = append(r.runnable, i)
			}
		}
		roots = slices.DeleteFunc(slices.Clone(roots), other)
	}
	for _, i := range roots {
		if r.ready[i] > math.MaxInt64 {
			r.err = r.p.TooLong(i)
			return
		}
	}
	r.queue.addRoots(uint32(rank), roots)
	r.runReady()
	r.err = cmp.Or(r.err, r.p.Failed())
}

// communicate runs a send or receive.
func (r *run) communicate(i uint32, op *sim.Op) {
	r.p.PrefetchOps(op)
	r.start(i, op)
	if op.Flags&sim.IsRecv != 0 {
		if m := r.matchers[op.Rank].Post(i, op); m != sim.NoOp {
			r.receive(i, m, r.ready[i])
		}
		return
	}
	r.messages++
	r.bytes += int64(op.Size)
	r.end(i, op, r.ready[i])
	if k := r.matchers[op.Peer].Arrive(i, op); k != sim.NoOp {
		r.receive(k, i, r.ready[i])
	}
	r.p.Drop(i)
}

// receive ends receive i, which matches message m now.
func (r *run) receive(i, m uint32, now uint64) {
	op := &r.ops[i]
	op.SetLink(r.p.Order(m))
	op.Flags |= ended
	r.end(i, op, now)
	r.p.Drop(i)
	r.p.Drop(m)
}

// runReady runs the calcs and collectives that are ready, and those that become ready as a result.
func (r *run) runReady() {
	for len(r.runnable) > 0 && r.err == nil {
		i := r.runnable[len(r.runnable)-1]
		r.runnable = r.runnable[:len(r.runnable)-1]
		op := &r.ops[i]
		start := r.ready[i]
		if start > math.MaxInt64 {
			r.err = r.p.TooLong(i)
			return
		}
		r.p.PrefetchOps(op)
		r.start(i, op)
		if op.Flags&sim.IsColl == sim.IsColl {
			r.enter(i, op)
			continue
		}
		if op.Size > math.MaxInt64-start {
			r.err = r.p.TooLong(i)
			return
		}
		r.end(i, op, start+op.Size)
		r.p.Drop(i)
	}
}

// start reports the start of op i to its start dependents.
func (r *run) start(i uint32, op *sim.Op) {
	op.Flags |= started
	if waiting := r.p.StartDependents(i); len(waiting) > 0 {
		r.release(waiting, r.ready[i], causedBy(r.p.Order(i), byStart))
	}
	r.progress.Ran()
}

// end reports the end of op i at time t to its dependents.
func (r *run) end(i uint32, op *sim.Op, t uint64) {
	order := r.p.Order(i)
	if finish, last := &r.finish[op.Rank], &r.last[op.Rank]; t > *finish || t == *finish && order < *last {
		*finish, *last = t, order
	}
	r.dependents = r.p.AppendDependents(r.dependents[:0], i)
	r.release(r.dependents, t, causedBy(order, byEnd))
}

// release marks a dependency of ops as met at time t.
func (r *run) release(waiting []uint32, t uint64, by cause) {
	for _, d := range waiting {
		op, ready := &r.ops[d], &r.ready[d]
		// Among several dependencies that end last at the same time, the one with the lowest number counts.
		if t > *ready || t == *ready && r.cause[d]-1 >= by-1 {
			*ready, r.cause[d] = t, by
		}
		if op.Waits--; op.Waits > 0 {
			continue
		}
		switch {
		case !op.IsMessage():
			r.runnable = append(r.runnable, d)
		case *ready > math.MaxInt64:
			r.err = cmp.Or(r.err, r.p.TooLong(d))
		default:
			r.queue.add(d)
		}
	}
}

func (r *run) outcome() *sim.Outcome {
	out := &sim.Outcome{
		Finish: r.finish, Eager: math.MaxUint64, Events: r.progress.Ops, Messages: r.messages, Bytes: r.bytes,
		Ran: r.p.Ran(r.progress.Ops, started),
	}
	out.Unexpected, out.Posted = sim.UnmatchedOf(r.matchers)
	if r.progress.Ops < int64(len(r.ops)) && !r.p.Windowed() {
		for i := range r.ops {
			if op := &r.ops[i]; op.Flags&sim.IsColl == sim.IsColl && op.Flags&(started|ended) == started {
				out.Unended = append(out.Unended, uint32(i))
			}
		}
	}
	return out
}
