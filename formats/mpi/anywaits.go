// This file chooses the requests that MPI_Waitany completes, which the trace does not have.
//
// Each call completes one request of its array: the one that was complete first by the measured times. A receive is so
// when both its call and that of its message end, a large send likewise, a small send when its call ends. A request
// whose variable is used again has been completed by an earlier call, which limits the choice. An array with both
// receives and large sends is treated as by MPI_Waitsome: their order depends on the time of transfers, and a wrong
// choice would make calls wait too long.

package mpi

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// anyWaits are the calls of MPI_Waitany of a rank with several pending requests.
type anyWaits struct {
	pools     []pool
	anyEvents []poolEvent
}

// pool is the requests of an array, each of which a call of MPI_Waitany may complete.
type pool struct {
	requests []int32 // known since the pool was empty
	pending  int     // requests that entered, less the calls
}

const noPool = -1

// poolEvent is an event of a pool, in the order of the file.
type poolEvent struct {
	do   poolAction
	pool int32
	op   int32 // of the request or of the call
}

type poolAction uint8

const (
	enters  poolAction = iota // a request
	waits                     // a call
	mayEnd                    // a request leaves: another call completes it, unless one of the pool has done so
	mustEnd                   // a request leaves: a call of the pool has completed it
)

// isMixed reports whether the requests found are receives as well as large sends.
func (r *rankReader) isMixed() bool {
	receive, large := false, false
	for _, k := range r.found {
		q := &r.all[k]
		receive = receive || q.kind == dag.Recv
		large = large || q.kind == dag.Send && q.bytes >= eager
	}
	return receive && large
}

// waitAny adds an op of duration 0 that waits for one of the requests found.
func (r *rankReader) waitAny(at span) {
	i := r.array.pool
	if i == noPool {
		i = int32(len(r.pools))
		r.pools = append(r.pools, pool{})
	}
	p := &r.pools[i]
	for _, k := range r.found {
		q := &r.all[k]
		if q.pool == i {
			continue
		}
		r.releaseTest(k)
		r.leavePool(q, mayEnd)
		q.pool = i
		p.pending++
		p.requests = append(p.requests, k)
		r.anyEvents = append(r.anyEvents, poolEvent{enters, i, q.op})
	}
	r.array.pool = i
	r.waitInPool(i, at)
	r.array.changes = r.changes
}

// waitInPool adds an op of duration 0 that waits for a request of a pool.
func (r *rankReader) waitInPool(i int32, at span) {
	r.closeGap(at.start)
	op := r.add(&dag.Op{Kind: dag.Calc}, at)
	r.after.clear()
	r.after.ends = append(r.after.ends, op)
	r.leave(at)
	r.anyEvents = append(r.anyEvents, poolEvent{waits, i, int32(op)})
	p := &r.pools[i]
	if p.pending--; p.pending > 0 {
		return
	}
	r.changes++ // all requests have ended
	for _, k := range p.requests {
		if q := &r.all[k]; q.pool == i {
			q.pool, q.active = noPool, false
		}
	}
	p.requests = p.requests[:0]
}

// leavePool removes a request from its pool.
func (r *rankReader) leavePool(q *request, do poolAction) {
	if q.pool != noPool {
		r.anyEvents = append(r.anyEvents, poolEvent{do, q.pool, q.op})
		q.pool = noPool
	}
}

// chooseRequests makes each call of MPI_Waitany wait for one of its requests.
func chooseRequests(t *dag.Trace, ranks []*rankReader) error {
	if !slices.ContainsFunc(ranks, func(r *rankReader) bool { return len(r.anyEvents) > 0 }) {
		return nil
	}
	needed := map[channel]struct{}{}
	for i, r := range ranks {
		for _, e := range r.anyEvents {
			if c, ok := channelOf(&r.dag, i, e.op); ok && e.do == enters {
				needed[c] = struct{}{}
			}
		}
	}
	var ends [2][]map[channel][]dag.Time // of sends and receives, by rank
	for i := range ends {
		ends[i] = make([]map[channel][]dag.Time, len(ranks))
	}
	err := par.Each(len(ranks), func(i int) error {
		ends[0][i] = messageEnds(&ranks[i].dag, i, dag.Send, needed)
		ends[1][i] = messageEnds(&ranks[i].dag, i, dag.Recv, needed)
		return nil
	})
	if err != nil {
		return err
	}
	return par.Each(len(ranks), func(i int) error {
		if r := ranks[i]; len(r.anyEvents) > 0 {
			(&chooser{r: &r.dag, ends: r.requestEnds(i, ends[0], ends[1])}).choose(r.anyEvents, len(r.pools))
			t.Ranks[i] = r.dag.Keep()
		}
		return nil
	})
}

// channel identifies messages that match in their order.
type channel struct {
	from, to, comm int32
	tag            int64
}

// channelOf returns the channel of a message of a rank; ok is false for other ops, and for receives of any source or
// tag.
func channelOf(r *dag.Rank, rank int, op int32) (c channel, ok bool) {
	i := int(op)
	c = channel{r.Peer.At(i), int32(rank), r.Comm.At(i), r.Tag.At(i)}
	switch r.Kind[i] {
	case dag.Recv:
		return c, c.from != dag.AnySource && c.tag != dag.AnyTag
	case dag.Send:
		c.from, c.to = c.to, c.from
		return c, true
	}
	return c, false
}

// messageEnds returns the measured ends of the calls of the sends or receives of a rank on the needed channels.
func messageEnds(r *dag.Rank, rank int, kind dag.Kind, needed map[channel]struct{}) map[channel][]dag.Time {
	ends := map[channel][]dag.Time{}
	for i, k := range r.Kind {
		if k != kind {
			continue
		}
		if c, ok := channelOf(r, rank, int32(i)); ok {
			if _, ok := needed[c]; ok {
				_, end := r.Measured(i)
				ends[c] = append(ends[c], end)
			}
		}
	}
	return ends
}

// atOnce is the time of sends that SMPI completes first, even if other requests are complete.
const atOnce = math.MinInt64

// eager is the size in bytes from which a send usually waits for its receive.
const eager = 64 << 10

// requestEnds returns the times at which the requests in pools were complete at the earliest, by op, from the ends of
// the calls of the sends and receives of all ranks.
func (r *rankReader) requestEnds(rank int, sends, recvs []map[channel][]dag.Time) map[int32]dag.Time {
	ends := map[int32]dag.Time{}
	for _, e := range r.anyEvents {
		if e.do == enters {
			_, ends[e.op] = r.dag.Measured(int(e.op))
		}
	}
	next := map[channel]int{} // by channel to or from the rank
	for i, kind := range r.dag.Kind {
		c, ok := channelOf(&r.dag, rank, int32(i))
		if !ok {
			continue
		}
		partner, others := c.from, sends
		if kind == dag.Send {
			partner, others = c.to, recvs
		}
		if partner < 0 || int(partner) >= len(others) || int(partner) == rank {
			continue
		}
		times := others[partner][c]
		if times == nil {
			continue
		}
		k := next[c]
		next[c]++
		end, in := ends[int32(i)]
		switch {
		case !in || k >= len(times):
		case kind == dag.Recv || r.dag.Bytes.At(i) >= eager:
			ends[int32(i)] = max(end, times[k])
		case r.library == smpi:
			ends[int32(i)] = atOnce
		}
	}
	return ends
}

// chooser chooses the requests of a rank.
type chooser struct {
	r     *dag.Rank
	ends  map[int32]dag.Time
	waits map[int32][]int32 // by op of a call: ops of the requests that it completes
	by    map[int32]int32   // inverse
}

// poolMember is a request in a pool: the calls first to limit-1 may complete it.
type poolMember struct {
	op           int32
	first, limit int
	must         bool // one of them has
	slot         int  // call that completes it at the latest, if must; -1: none is free
	end          dag.Time
	done         bool
}

func (c *chooser) choose(events []poolEvent, pools int) {
	c.waits, c.by = map[int32][]int32{}, map[int32]int32{}
	type contents struct {
		calls   []int32
		members []*poolMember
	}
	all := make([]contents, pools)
	at := map[int32]*poolMember{}
	for _, e := range events {
		p := &all[e.pool]
		switch e.do {
		case enters:
			at[e.op] = &poolMember{op: e.op, first: len(p.calls), limit: math.MaxInt, slot: -1, end: c.ends[e.op]}
			p.members = append(p.members, at[e.op])
		case waits:
			p.calls = append(p.calls, e.op)
		default:
			m := at[e.op]
			m.limit, m.must = len(p.calls), e.do == mustEnd
		}
	}
	for i := range all {
		c.assign(all[i].calls, all[i].members)
	}
	c.rebuild()
}

// assign assigns a member of a pool to each call.
func (c *chooser) assign(calls []int32, members []*poolMember) {
	reserved := reserve(calls, members)
	pending := &queue{}
	next := 0
	for k, call := range calls {
		for ; next < len(members) && members[next].first <= k; next++ {
			heap.Push(pending, members[next])
		}
		chosen := reserved[k]
		if m := pending.first(k); m != nil {
			switch {
			case chosen == nil || chosen.done:
				chosen = m
			case m != chosen && m.slot > k && m.slot < chosen.limit:
				reserved[m.slot], chosen.slot = chosen, m.slot
				chosen = m
			}
		}
		if chosen != nil && !chosen.done {
			c.complete(call, chosen)
		}
	}
	for _, m := range members {
		if last := min(m.limit, len(calls)) - 1; m.must && !m.done && last >= 0 {
			c.complete(calls[last], m)
		}
	}
}

func (c *chooser) complete(call int32, m *poolMember) {
	m.done = true
	c.waits[call] = append(c.waits[call], m.op)
	c.by[m.op] = call
}

// reserve reserves a call for each member that must be complete, the latest possible one, and returns the member by
// call.
func reserve(calls []int32, members []*poolMember) []*poolMember {
	reserved := make([]*poolMember, len(calls))
	var due []*poolMember
	for _, m := range members {
		if m.must {
			due = append(due, m)
		}
	}
	slices.SortStableFunc(due, func(a, b *poolMember) int { return cmp.Compare(b.limit, a.limit) })
	free := len(calls)
	for _, m := range due {
		if slot := min(free, m.limit) - 1; slot >= m.first {
			m.slot, reserved[slot], free = slot, m, slot
		}
	}
	return reserved
}

// rebuild makes each call depend on the requests that it completes, and drops the dependencies of later ops on these
// requests.
func (c *chooser) rebuild() {
	var deps dag.Edges
	for i := range c.r.Kind {
		for _, off := range c.r.Deps.Of(i) {
			if by, ok := c.by[int32(i)-off]; !ok || int(by) > i {
				deps.Append(i, off)
			}
		}
		for _, on := range c.waits[int32(i)] {
			deps.Append(i, int32(i)-on)
		}
	}
	c.r.Deps = deps
}

// queue is a min-heap of requests by the time of their end.
type queue struct {
	members []*poolMember
}

// first returns the first request that call k may complete, or nil.
func (q *queue) first(k int) *poolMember {
	for len(q.members) > 0 {
		m := q.members[0]
		if !m.done && m.limit > k {
			return m
		}
		heap.Pop(q)
	}
	return nil
}

func (q *queue) Len() int { return len(q.members) }
func (q *queue) Less(i, j int) bool {
	a, b := q.members[i], q.members[j]
	return a.end < b.end || a.end == b.end && a.op < b.op
}
func (q *queue) Swap(i, j int) { q.members[i], q.members[j] = q.members[j], q.members[i] }
func (q *queue) Push(x any)    { q.members = append(q.members, x.(*poolMember)) }
func (q *queue) Pop() any {
	last := q.members[len(q.members)-1]
	q.members = q.members[:len(q.members)-1]
	return last
}
