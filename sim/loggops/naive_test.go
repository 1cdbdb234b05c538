package loggops_test

import (
	"container/heap"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/loggops"
)

// naive simulates the strict model literally by docs/reference/backends/loggops.md: one queue for all ranks, ops as
// objects, linear search in lists. Times are picoseconds; G and O are whole picoseconds.
type naive struct {
	costs []naiveCosts // by size, ascending
	g     uint64
	S     int64

	queue  naiveQueue
	now    uint64
	ops    [][]*naiveOp
	number map[*naiveOp]uint64 // of each op through all ranks, which orders events of equal time

	scheduled    uint64 // events that ranks scheduled for themselves
	stream       map[[2]int]uint64
	sends, recvs map[[2]int]uint64 // when the NICs are free
	issued, turn map[[2]int]int    // by pair of ranks
	early        map[[2]int]map[int]*naiveOp
	arrived      [][]*naiveOp
	posted       [][]*naiveOp
	finish       []uint64
}

// naiveCosts are the parameters of messages from a size on. The overheads of send and receive differ.
type naiveCosts struct {
	from                           int64
	L, send, recv, G, sendO, recvO uint64
}

// of returns the parameters of a message of a size.
func (s *naive) of(bytes int64) (c naiveCosts) {
	for _, c = range slices.Backward(s.costs) {
		if bytes >= c.from {
			break
		}
	}
	return c
}

type naiveOp struct {
	dag.Op
	rank                        int
	dependents, startDependents []*naiveOp
	waits                       int
	ready                       uint64
	there                       uint64 // when the last byte of the message is there, if known
	known                       bool
	partner                     *naiveOp
	place                       int // among the messages of its pair
	ran                         bool
}

// naiveEvent orders events of equal time as the model does: those of the network by the number of the message, then those
// that ranks scheduled for themselves in that order.
type naiveEvent struct {
	time, message, scheduled uint64
	do                       func()
}

type naiveQueue []naiveEvent

func (q naiveQueue) Len() int { return len(q) }
func (q naiveQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.time != b.time:
		return a.time < b.time
	case a.scheduled != b.scheduled:
		return a.scheduled < b.scheduled // 0 for those of the network
	}
	return a.message < b.message
}
func (q naiveQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *naiveQueue) Push(x any)   { *q = append(*q, x.(naiveEvent)) }
func (q *naiveQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (s *naive) own(t uint64, do func()) {
	s.scheduled++
	heap.Push(&s.queue, naiveEvent{time: t, scheduled: s.scheduled, do: do})
}

func (s *naive) network(t uint64, m *naiveOp, do func()) {
	heap.Push(&s.queue, naiveEvent{time: t, message: s.number[m], do: do})
}

func beyondFirst(bytes int64) uint64 { return uint64(max(bytes, 1) - 1) }

func (s *naive) release(ops []*naiveOp, t uint64) {
	for _, op := range ops {
		op.ready = max(op.ready, t)
		if op.waits--; op.waits == 0 {
			s.own(op.ready, func() { s.start(op) })
		}
	}
}

func (s *naive) ended(op *naiveOp, t uint64) {
	s.finish[op.rank] = max(s.finish[op.rank], t)
	s.release(op.dependents, t)
}

func (s *naive) occupy(op *naiveOp, length uint64) (begin, end uint64) {
	key := [2]int{op.rank, int(op.Stream)}
	begin = max(s.now, s.stream[key])
	s.stream[key] = begin + length
	return begin, begin + length
}

func (s *naive) start(op *naiveOp) {
	op.ran = true
	switch {
	case op.Kind == dag.Calc && op.Duration == 0:
		s.release(op.startDependents, s.now)
		s.ended(op, s.now)
	case op.Kind == dag.Calc:
		begin, end := s.occupy(op, uint64(op.Duration))
		s.release(op.startDependents, begin)
		s.ended(op, end)
	case op.Kind == dag.Send:
		begin, end := s.occupy(op, s.of(op.Bytes).send+beyondFirst(op.Bytes)*s.of(op.Bytes).sendO)
		s.release(op.startDependents, begin)
		if op.Bytes <= s.S {
			s.ended(op, end)
		}
		s.own(end, func() { s.hand(op) })
	default:
		s.release(op.startDependents, s.now)
		for k, m := range s.arrived[op.rank] {
			if naiveFits(op, m) {
				s.arrived[op.rank] = slices.Delete(s.arrived[op.rank], k, k+1)
				s.meet(op, m)
				return
			}
		}
		s.posted[op.rank] = append(s.posted[op.rank], op)
	}
}

func naiveFits(recv, send *naiveOp) bool {
	if recv.Comm != send.Comm || recv.Peer != dag.AnySource && int(recv.Peer) != send.rank {
		return false
	}
	return recv.Tag == send.Tag || recv.Tag == dag.AnyTag && send.Tag > dag.AnyTag
}

func (s *naive) inject(m *naiveOp, bytes uint64) (first uint64) {
	key := [2]int{m.rank, int(m.NIC)}
	first = max(s.now, s.sends[key])
	s.sends[key] = first + s.g + bytes
	return first
}

func (s *naive) hand(m *naiveOp) {
	pair := [2]int{m.rank, int(m.Peer)}
	m.place = s.issued[pair]
	s.issued[pair]++
	if m.Bytes > s.S {
		s.network(s.inject(m, 0)+s.of(1).L, m, func() { s.announce(m) })
		return
	}
	s.network(s.inject(m, beyondFirst(m.Bytes)*s.of(m.Bytes).G)+s.of(m.Bytes).L, m, func() {
		s.announce(m)
		s.deliver(m)
	})
}

func (s *naive) announce(m *naiveOp) {
	pair := [2]int{m.rank, int(m.Peer)}
	if s.early[pair] == nil {
		s.early[pair] = map[int]*naiveOp{}
	}
	s.early[pair][m.place] = m
	for next := s.early[pair][s.turn[pair]]; next != nil; next = s.early[pair][s.turn[pair]] {
		delete(s.early[pair], s.turn[pair])
		s.turn[pair]++
		s.arrive(next)
	}
}

func (s *naive) arrive(m *naiveOp) {
	rank := int(m.Peer)
	for k, recv := range s.posted[rank] {
		if naiveFits(recv, m) {
			s.posted[rank] = slices.Delete(s.posted[rank], k, k+1)
			s.meet(recv, m)
			return
		}
	}
	s.arrived[rank] = append(s.arrived[rank], m)
}

func (s *naive) meet(recv, m *naiveOp) {
	recv.partner, m.partner = m, recv
	switch {
	case m.known:
		s.receiveAt(recv, m.there)
	case m.Bytes > s.S:
		s.network(s.now+s.of(1).L, m, func() {
			bytes := beyondFirst(m.Bytes) * s.of(m.Bytes).G
			first := s.inject(m, bytes)
			s.ended(m, first+bytes)
			s.network(first+s.of(m.Bytes).L, m, func() { s.deliver(m) })
		})
	}
}

func (s *naive) deliver(m *naiveOp) {
	key, bytes := [2]int{int(m.Peer), int(m.NIC)}, beyondFirst(m.Bytes)*s.of(m.Bytes).G
	first := max(s.now, s.recvs[key])
	s.recvs[key] = first + s.g + bytes
	m.there, m.known = first+bytes, true
	if m.partner != nil {
		s.receiveAt(m.partner, m.there)
	}
}

func (s *naive) receiveAt(recv *naiveOp, t uint64) {
	receive := func() {
		c := s.of(recv.partner.Bytes)
		_, end := s.occupy(recv, c.recv+beyondFirst(recv.partner.Bytes)*c.recvO)
		s.ended(recv, end)
	}
	if t > s.now {
		s.own(t, receive)
		return
	}
	receive()
}

// run simulates the trace and returns when each rank finishes, and how many ops never ran.
func (s *naive) run(t *dag.Trace) (finish []uint64, neverRan int64) {
	n := len(t.Ranks)
	s.number = map[*naiveOp]uint64{}
	s.stream, s.sends, s.recvs = map[[2]int]uint64{}, map[[2]int]uint64{}, map[[2]int]uint64{}
	s.issued, s.turn, s.early = map[[2]int]int{}, map[[2]int]int{}, map[[2]int]map[int]*naiveOp{}
	s.arrived, s.posted, s.finish = make([][]*naiveOp, n), make([][]*naiveOp, n), make([]uint64, n)
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		ops := make([]*naiveOp, r.Len())
		for i := range ops {
			ops[i] = &naiveOp{Op: r.Op(i), rank: rank, ready: uint64(r.Release.At(i))}
			s.number[ops[i]] = uint64(len(s.number))
		}
		for i, op := range ops {
			for _, off := range r.Deps.Of(i) {
				on := ops[i-int(off)]
				on.dependents = append(on.dependents, op)
				op.waits++
			}
			for _, off := range r.StartDeps.Of(i) {
				on := ops[i-int(off)]
				on.startDependents = append(on.startDependents, op)
				op.waits++
			}
		}
		s.ops = append(s.ops, ops)
	}
	for _, ops := range s.ops {
		for _, op := range ops {
			if op.waits == 0 {
				s.own(op.ready, func() { s.start(op) })
			}
		}
	}
	for len(s.queue) > 0 {
		e := heap.Pop(&s.queue).(naiveEvent)
		s.now = e.time
		e.do()
	}
	for _, ops := range s.ops {
		for _, op := range ops {
			if !op.ran {
				neverRan++
			}
		}
	}
	return s.finish, neverRan
}

// TestStrictIsNaive compares the engine and its network with the naive simulation, on one thread and on several, with
// many events of equal time and with none.
func TestStrictIsNaive(t *testing.T) {
	for seed := range uint64(1200) {
		random := rand.New(rand.NewPCG(seed, 77))
		pick := func(of ...int64) uint64 { return uint64(of[random.IntN(len(of))]) }
		ties := random.IntN(2) == 0
		streams, nics, wild := 1+random.Int32N(1+int32(seed%3)), 1+random.Int32N(1+int32(seed/3%3)), random.IntN(2) == 0
		trace := strictTrace(random, ties, streams, nics, wild)
		s := naive{g: random.Uint64N(100000), S: int64(pick(0, 5000, 10000, 1000000))}
		if ties {
			s.g, s.S = pick(0, 10, 20), int64(pick(0, 1, 10, 1000000))
		}
		params := nanoParams(0, 0, 0, 0, 0, s.S)
		params.Gap = dag.Time(s.g)
		segments := 1
		if seed%4 == 3 {
			segments += random.IntN(3)
		}
		for i := range segments {
			c := naiveCosts{from: int64(i) * int64(pick(2, 10, 6000)), L: pick(1, 1000, 100003, 3000017, 1<<40),
				send: random.Uint64N(100000), G: random.Uint64N(50), sendO: random.Uint64N(5)}
			if ties {
				c.L, c.send, c.G, c.sendO = pick(1, 10, 20, 100, 100000), pick(0, 10, 20), pick(0, 1, 10), pick(0, 1)
			}
			c.recv, c.recvO = c.send, c.sendO
			if segments > 1 {
				c.recv, c.recvO = pick(0, 10, 50000), pick(0, 1, 3)
				if i > 0 && c.from <= s.costs[i-1].from {
					c.from = s.costs[i-1].from + 1
				}
				params.Segments = append(params.Segments, loggops.Segment{From: c.from, L: dag.Time(c.L),
					Send: dag.Time(c.send), Recv: dag.Time(c.recv), GPerByte: rat(c.G), SendPerByte: rat(c.sendO),
					RecvPerByte: rat(c.recvO)})
			}
			s.costs = append(s.costs, c)
		}
		if segments == 1 {
			c := s.costs[0]
			params.L, params.Overhead = dag.Time(c.L), dag.Time(c.send)
			params.GPerByte, params.OPerByte = rat(c.G), rat(c.sendO)
		}
		s.compare(t, seed, trace, params)
	}
}

// TestStrictAheadIsNaive compares the engine with the naive simulation on traces whose ranks run ahead: one stream and
// NIC, eager messages and no wildcards, mostly with many events of equal time.
func TestStrictAheadIsNaive(t *testing.T) {
	seeds := uint64(1500)
	if os.Getenv("TRACEDAG_LONG") != "" {
		seeds = 40000
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 78))
		pick := func(of ...uint64) uint64 { return of[random.IntN(len(of))] }
		ties := random.IntN(4) > 0
		trace := strictTrace(random, ties, 1, 1, false)
		c := naiveCosts{L: pick(1000, 100003, 3000017), send: random.Uint64N(100000), G: random.Uint64N(50)}
		s := naive{g: 1 + random.Uint64N(100000), S: 1000000}
		if ties {
			c = naiveCosts{L: pick(1, 10, 20, 100), send: pick(0, 5, 10, 20), G: pick(0, 1, 10), sendO: pick(0, 1)}
			s.g = pick(1, 5, 10, 20)
		}
		c.recv, c.recvO = c.send, c.sendO
		s.costs = []naiveCosts{c}
		params := nanoParams(0, 0, 0, 0, 0, s.S)
		params.Gap, params.L, params.Overhead = dag.Time(s.g), dag.Time(c.L), dag.Time(c.send)
		params.GPerByte, params.OPerByte = rat(c.G), rat(c.sendO)
		s.compare(t, seed, trace, params)
	}
}

// compare compares the engine on one thread and on several with the naive simulation.
func (s *naive) compare(t *testing.T, seed uint64, trace *dag.Trace, params loggops.Params) {
	t.Helper()
	finish, neverRan := s.run(trace)
	for _, threads := range []int{1, 3} {
		r, err := run(trace, loggops.Strict, loggops.Options{Params: params, Threads: threads}, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, c := range r.Finish {
			got = append(got, c.Ticks)
		}
		if !slices.Equal(got, finish) || r.NeverRun != neverRan {
			t.Errorf("seed %d, %v, %d threads: finish %v, %d never ran; expected %v, %d", seed, params, threads, got,
				r.NeverRun, finish, neverRan)
		}
	}
}

func rat(n uint64) *big.Rat { return new(big.Rat).SetUint64(n) }

func strictTrace(random *rand.Rand, ties bool, streams, nics int32, wild bool) *dag.Trace {
	ranks, density := 1+random.IntN(8), random.IntN(4)
	b := dag.NewBuilder(ranks)
	add := func(rank int, op dag.Op) {
		r := b.Rank(rank)
		k := r.Len()
		var deps []int
		for range density {
			if k > 0 && random.IntN(2) == 0 {
				deps = append(deps, k-1-random.IntN(min(k, 6)))
			}
		}
		if random.IntN(30) == 0 {
			op.Release = dag.Time(random.Int64N(10000000))
		}
		op.Stream = 5 * random.Int32N(streams)
		i := r.Add(op, deps...)
		if k > 0 && random.IntN(10) == 0 {
			r.RequiresStart(i, k-1-random.IntN(min(k, 6)))
		}
	}
	for range 5 + random.IntN(300) {
		if random.IntN(3) == 0 {
			duration := dag.Time(random.Int64N(1000000))
			if ties {
				duration = dag.Time(10 * random.IntN(4))
			}
			add(random.IntN(ranks), dag.Op{Duration: duration})
			continue
		}
		from, to, tag, bytes := random.IntN(ranks), random.IntN(ranks), random.Int64N(3), random.Int64N(20000)
		if ties {
			bytes = []int64{0, 1, 2, 11, 100}[random.IntN(5)]
		}
		recv := dag.Op{Kind: dag.Recv, Peer: int32(from), Tag: tag, Bytes: bytes}
		if wild && random.IntN(4) == 0 {
			recv.Peer = dag.AnySource
		}
		if wild && random.IntN(20) == 0 {
			tag, recv.Tag = dag.CollectiveTag, dag.CollectiveTag
		}
		if wild && random.IntN(4) == 0 {
			recv.Tag = dag.AnyTag
		}
		send := dag.Op{Kind: dag.Send, Peer: int32(to), Tag: tag, Bytes: bytes, NIC: random.Int32N(nics)}
		if random.IntN(2) == 0 {
			add(from, send)
			add(to, recv)
		} else {
			add(to, recv)
			add(from, send)
		}
	}
	return b.Trace()
}
