package ideal

import (
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
)

// oracle computes the times of all ops by the rules of docs/reference/backends/ideal.md, without regard to speed: it
// visits all ops again and again.
type oracle struct {
	trace      *dag.Trace
	start, end [][]dag.Time // Never: not known
	sender     map[[2]int][2]int
	sent       []waitingOp // messages that wait, as they arrived
	posted     []waitingOp // receives that wait, as posted
}

type waitingOp struct{ rank, op int }

func newOracle(trace *dag.Trace) *oracle {
	o := &oracle{trace: trace, sender: make(map[[2]int][2]int)}
	for r := range trace.Ranks {
		n := trace.Ranks[r].Len()
		o.start, o.end = append(o.start, make([]dag.Time, n)), append(o.end, make([]dag.Time, n))
		for i := range n {
			o.start[r][i], o.end[r][i] = Never, Never
		}
	}
	return o
}

func (o *oracle) run() {
	for {
		for o.settle() {
		}
		rank, op := o.next()
		if rank < 0 {
			return
		}
		o.communicate(rank, op)
	}
}

// startOf returns when an op can start, Never if that is not known yet.
func (o *oracle) startOf(rank, i int) dag.Time {
	r := o.trace.Ranks[rank]
	t := r.Release.At(i)
	for _, off := range r.Deps.Of(i) {
		end := o.end[rank][i-int(off)]
		if end == Never {
			return Never
		}
		t = max(t, end)
	}
	for _, off := range r.StartDeps.Of(i) {
		start := o.start[rank][i-int(off)]
		if start == Never {
			return Never
		}
		t = max(t, start)
	}
	return t
}

// settle starts and ends calcs and collectives, and reports whether it changed any.
func (o *oracle) settle() (some bool) {
	for rank := range o.trace.Ranks {
		r := o.trace.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send || kind == dag.Recv || o.end[rank][i] != Never {
				continue
			}
			if o.start[rank][i] == Never {
				if o.start[rank][i] = o.startOf(rank, i); o.start[rank][i] == Never {
					continue
				}
				some = true
			}
			if kind == dag.Coll {
				o.end[rank][i] = o.endOfCollective(rank, i)
			} else {
				o.end[rank][i] = o.start[rank][i] + r.Duration.At(i)
			}
			some = some || o.end[rank][i] != Never
		}
	}
	return some
}

// endOfCollective returns when a collective that has started ends, Never if that is not known yet.
func (o *oracle) endOfCollective(rank, i int) dag.Time {
	r := o.trace.Ranks[rank]
	comm, k := r.Comm.At(i), 0
	for j := range i {
		if r.Kind[j] == dag.Coll && r.Comm.At(j) == comm {
			k++
		}
	}
	members := o.trace.Comms[comm].Members()
	entries, me := make([]dag.Time, len(members)), 0
	for p, member := range members {
		if int(member) == rank {
			me = p
		}
		q := o.trace.Ranks[member]
		seen := 0
		for j := range q.Len() {
			if q.Kind[j] == dag.Coll && q.Comm.At(j) == comm {
				if seen == k {
					entries[p] = o.start[member][j]
				}
				seen++
			}
		}
	}
	end := entries[me]
	for p, entry := range entries {
		isRoot, meRoot := members[p] == r.Peer.At(i), rank == int(r.Peer.At(i))
		counts := true
		switch r.Subkind.At(i) {
		case dag.Bcast, dag.Scatter, dag.Scatterv:
			counts = isRoot
		case dag.Reduce, dag.Gather, dag.Gatherv:
			counts = meRoot
		case dag.Scan, dag.Exscan:
			counts = p < me
		}
		if counts && p != me {
			if entry == Never {
				return Never
			}
			end = max(end, entry)
		}
	}
	return end
}

// next returns the send or receive that goes next, -1 if there is none.
func (o *oracle) next() (rank, op int) {
	rank, first := -1, dag.MaxTime
	for r := range o.trace.Ranks {
		for i, kind := range o.trace.Ranks[r].Kind {
			if kind != dag.Send && kind != dag.Recv || o.start[r][i] != Never {
				continue
			}
			if t := o.startOf(r, i); t != Never && t < first {
				rank, op, first = r, i, t
			}
		}
	}
	return rank, op
}

func (o *oracle) communicate(rank, i int) {
	now := o.startOf(rank, i)
	o.start[rank][i] = now
	if o.trace.Ranks[rank].Kind[i] == dag.Send {
		o.end[rank][i] = now
		for k, recv := range o.posted {
			if o.fits(recv, waitingOp{rank, i}) {
				o.posted = append(o.posted[:k:k], o.posted[k+1:]...)
				o.meet(recv, waitingOp{rank, i}, now)
				return
			}
		}
		o.sent = append(o.sent, waitingOp{rank, i})
		return
	}
	for k, send := range o.sent {
		if o.fits(waitingOp{rank, i}, send) {
			o.sent = append(o.sent[:k:k], o.sent[k+1:]...)
			o.meet(waitingOp{rank, i}, send, now)
			return
		}
	}
	o.posted = append(o.posted, waitingOp{rank, i})
}

func (o *oracle) fits(recv, send waitingOp) bool {
	r, s := o.trace.Ranks[recv.rank].Op(recv.op), o.trace.Ranks[send.rank].Op(send.op)
	return int(s.Peer) == recv.rank && r.Comm == s.Comm && (r.Peer == dag.AnySource || int(r.Peer) == send.rank) &&
		(r.Tag == s.Tag || r.Tag == dag.AnyTag && s.Tag >= 0)
}

func (o *oracle) meet(recv, send waitingOp, now dag.Time) {
	o.end[recv.rank][recv.op] = now
	o.sender[[2]int{recv.rank, recv.op}] = [2]int{send.rank, send.op}
}

func (o *oracle) makespan() dag.Time {
	latest := dag.Time(0)
	for _, ends := range o.end {
		for _, end := range ends {
			latest = max(latest, end)
		}
	}
	return latest
}

// wild selects features of random traces besides exact sends and receives.
type wild struct {
	wildcards, startDeps, forward, high, unmatched bool

	long bool // more ops, of which nearly all wait for an op shortly before
}

// randomTrace returns a trace of messages and optional collectives, mem and io ops, in which few ops take time, so that
// many times are equal. Without wildcards, a receive matches one message only. Ops may wait for each other forever.
func randomTrace(random *rand.Rand, w wild) *dag.Trace {
	ranks := 1 + random.IntN(6)
	b := dag.NewBuilder(ranks)
	if ranks > 1 {
		b.AddComm(dag.NewComm("", []int32{int32(ranks) - 1, 0})) // in another order
	}
	duration := func() dag.Time { return dag.Time(random.IntN(3) * random.IntN(50)) }
	add := func(rank int, op dag.Op) {
		if random.IntN(8) == 0 {
			op.Release = dag.Time(random.IntN(100))
		}
		op.Stream, op.NIC = random.Int32N(3), random.Int32N(2)
		r := b.Rank(rank)
		i := r.Add(op)
		deps := random.IntN(3)
		if w.long && random.IntN(200) > 0 {
			deps++
		}
		for range deps {
			if i == 0 {
				break
			}
			if on := i - 1 - random.IntN(min(i, 6)); w.startDeps && random.IntN(4) == 0 {
				r.RequiresStart(i, on)
			} else {
				r.Requires(i, on)
			}
		}
		if w.forward && i > 0 && random.IntN(10) == 0 {
			r.Requires(i-1, i)
		}
	}
	most := 60
	if w.long {
		most = 600
	}
	for n := range 5 + random.IntN(most) {
		rank, kind := random.IntN(ranks), random.IntN(10)
		switch {
		case kind < 3:
			op := dag.Op{Kind: dag.Calc, Duration: duration()}
			if w.high && random.IntN(3) == 0 {
				op.Kind, op.Subkind, op.Bytes = dag.Mem, dag.Load, 5
			} else if w.high && random.IntN(3) == 0 {
				op.Kind, op.Subkind, op.Bytes = dag.IO, dag.Write, 5
			}
			add(rank, op)
		case kind < 8 || !w.high:
			to := random.IntN(ranks)
			send := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: random.Int64N(9), Tag: int64(n)}
			recv := dag.Op{Kind: dag.Recv, Peer: int32(rank), Bytes: send.Bytes, Tag: int64(n)}
			if w.wildcards {
				send.Tag, recv.Tag = random.Int64N(3), random.Int64N(3)
				send.Comm = random.Int32N(int32(min(ranks, 2)))
				recv.Comm = send.Comm
				if random.IntN(3) == 0 {
					recv.Tag = dag.AnyTag
				}
				if random.IntN(3) == 0 {
					recv.Peer = dag.AnySource
				}
			}
			if !w.unmatched || random.IntN(20) > 0 {
				add(rank, send)
			}
			add(to, recv)
		default:
			comm := random.Int32N(int32(min(ranks, 2)))
			kind := dag.Barrier + dag.Subkind(random.IntN(int(dag.Exscan-dag.Barrier)+1))
			op := dag.Op{Kind: dag.Coll, Subkind: kind, Comm: comm, Bytes: 8, Tag: random.Int64N(1 << 40), Duration: 7}
			members := []int32{0, int32(ranks) - 1}
			if comm == 0 {
				world := dag.World(ranks)
				members = world.Members()
			}
			op.Peer = members[random.IntN(len(members))]
			if !op.Subkind.Rooted() {
				op.Peer = random.Int32N(50) - 10
			}
			for _, member := range members {
				add(int(member), op)
			}
		}
	}
	return b.Trace()
}
