package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/event"
)

// hub is a network for tests with its own queue at the fabric: every message takes some steps, some of them of length
// 0, then arrives; its sender is notified later.
type hub struct {
	t      *testing.T
	ahead  bool // run ahead of the ranks; otherwise handle one time per call
	steps  func(bytes uint64) uint64
	length func(m uint32, step uint64) uint64 // of a step
	lost   func(m uint32) bool                // messages that stay at the hub
	silent func(m uint32) bool                // messages that arrive without a notification of the sender

	queue event.Queue       // by message
	left  map[uint32]uint64 // steps of each message
	sent  map[uint32]uint64
	past  uint64 // no call may come from before
	calls int    // at the fabric
}

const (
	hubInject  NetworkEvent = iota // at the fabric: a message comes
	hubRequest                     // at the receiver
	hubArrived                     // at the receiver
	hubSent                        // at the sender
)

// hubAnswer is how long a sender does not know that its message has arrived.
const hubAnswer = 3

func newHub(t *testing.T, ahead bool) *hub {
	none := func(uint32) bool { return false }
	return &hub{
		t: t, ahead: ahead, lost: none, silent: none, left: map[uint32]uint64{}, sent: map[uint32]uint64{},
		steps:  func(bytes uint64) uint64 { return 1 + bytes/10 },
		length: func(m uint32, step uint64) uint64 { return (uint64(m)*7 + step) % 5 },
	}
}

func (h *hub) Lookahead() uint64 { return 0 }
func (h *hub) Ordered() bool     { return false }

func (h *hub) check(a *Actor) {
	if a.Now() < h.past {
		h.t.Errorf("called at %d, after the hub was at %d", a.Now(), h.past)
	}
}

func (h *hub) Eager(a *Actor, m uint32, t uint64) {
	h.check(a)
	a.Schedule(a.Engine().Fabric(), t, hubInject, m)
}

func (h *hub) Request(a *Actor, m uint32, t uint64) {
	h.check(a)
	a.Schedule(uint32(a.Op(m).Peer), t, hubRequest, m)
}

func (h *hub) Grant(a *Actor, m uint32, t uint64) {
	h.Eager(a, m, t)
}

func (h *hub) Event(a *Actor, kind NetworkEvent, m uint32) {
	h.check(a)
	switch kind {
	case hubRequest:
		a.Announce(m)
		return
	case hubArrived:
		if a.Op(m).Size <= a.Engine().host.Rendezvous {
			a.Announce(m)
		}
		a.Deliver(m, h.sent[m], a.Now())
		return
	case hubSent:
		a.Sent(m, a.Now())
		return
	case hubInject:
		h.left[m], h.sent[m] = h.steps(a.Op(m).Size), a.Now()
		if !h.lost(m) {
			h.queue.Push(event.Event{Time: a.Now(), Key: uint64(m)})
		}
	}
	h.calls++
	for h.queue.Len() > 0 && h.queue.Next() < a.Until() {
		if h.queue.Next() > a.Now() && !h.ahead {
			break
		}
		for h.past = h.queue.Next(); h.queue.Next() == h.past; {
			h.step(a, h.queue.Pop().Payload(), h.past)
		}
	}
	if h.queue.Len() > 0 {
		a.Wake(h.queue.Next())
	}
}

func (h *hub) step(a *Actor, m uint32, t uint64) {
	if h.left[m] > 0 {
		h.left[m]--
		h.queue.Push(event.Event{Time: t + h.length(m, h.left[m]), Key: uint64(m)})
		return
	}
	op := a.Op(m)
	a.Schedule(uint32(op.Peer), t, hubArrived, m)
	if host := &a.Engine().host; !h.silent(m) && (host.Acknowledged || op.Size > host.Rendezvous) {
		a.Schedule(op.Rank, t+hubAnswer, hubSent, m)
	}
}

func (h *hub) run(p *Program, host Host) (*Outcome, error) {
	e, err := NewEngine(p, host, h, nil, 2)
	if err != nil {
		h.t.Fatal(err)
	}
	return e.Run()
}

func denseProgram(t *testing.T, b *dag.Builder) *Program {
	t.Helper()
	p, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{DenseStreams: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRunAhead checks that a network that runs ahead of the ranks gives the same result as one call per time, in far
// fewer calls, with many events of equal time.
func TestRunAhead(t *testing.T) {
	calls := [2]int{}
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 17))
		ranks := 2 + random.IntN(80)
		b := dag.NewBuilder(ranks)
		for range 6 * ranks {
			from, to := random.IntN(ranks), random.IntN(ranks)
			bytes := random.Int64N(400)
			send := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Stream: random.Int32N(1 + int32(seed%2))}
			recv := dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes}
			if random.IntN(4) == 0 {
				send.Release = dag.Time(random.Int64N(5000))
			}
			if seed%3 == 0 && random.IntN(4) == 0 {
				recv.Peer = dag.AnySource
			}
			sent := b.Rank(from).Add(send)
			if random.IntN(2) == 0 {
				b.Rank(from).Calc(dag.Time(random.Int64N(20)), sent)
			}
			b.Rank(to).Calc(dag.Time(random.Int64N(20)), b.Rank(to).Add(recv))
		}
		p := denseProgram(t, b)
		host := Host{
			Busy: func(b uint64) uint64 { return b % 4 }, Rendezvous: 300 + 50*(seed%4), Acknowledged: seed%4 < 2,
		}
		byMoment, ahead := newHub(t, false), newHub(t, true)
		want, err := byMoment.run(p.Clone(), host)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ahead.run(p, host)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Finish, want.Finish) || !slices.Equal(got.Ran, want.Ran) ||
			fmt.Sprint(got.Unexpected, got.Posted, got.Unended) != fmt.Sprint(want.Unexpected, want.Posted, want.Unended) {
			t.Errorf("seed %d: finish %v, one call per time %v", seed, got.Finish, want.Finish)
		}
		if r := got.Result(p); seed%3 > 0 && !r.Complete {
			t.Errorf("seed %d: not complete: %+v", seed, r.Stuck)
		}
		calls[0] += byMoment.calls
		calls[1] += ahead.calls
	}
	if calls[1] >= calls[0]*3/4 {
		t.Errorf("%d calls with one per time, %d ahead", calls[0], calls[1])
	}
}

// TestRunAheadTooLong checks that an endless network stays within the range of times, and that the run then ends.
func TestRunAheadTooLong(t *testing.T) {
	for _, length := range []uint64{1 << 40, 1 << 58, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 + 1} {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, 8, 0)
		b.Rank(1).Recv(0, 8, 0)
		h := newHub(t, true)
		h.steps = func(uint64) uint64 { return math.MaxUint64 }
		h.length = func(uint32, uint64) uint64 { return length }
		if _, err := h.run(denseProgram(t, b), Host{Busy: func(uint64) uint64 { return 1 }, Rendezvous: 8}); !errors.Is(err, ErrTooLong) {
			t.Errorf("steps of %d: error %v", length, err)
		}
		if h.past > math.MaxInt64 {
			t.Errorf("steps of %d: the hub got to %d", length, h.past)
		}
	}
}

// TestAcknowledged compares the end of sends that the network ends with hand-computed times, with and without early
// handover, which ranks with one stream use.
func TestAcknowledged(t *testing.T) {
	for _, streams := range []int32{1, 2} {
		b := dag.NewBuilder(2)
		first := b.Rank(0).Send(1, 20, 0)
		second := b.Rank(0).Send(1, 0, 1)
		b.Rank(0).Calc(1000, first)
		b.Rank(0).Calc(1, second)
		b.Rank(0).Add(dag.Op{Duration: 1, Stream: streams - 1})
		b.Rank(1).Recv(0, 20, 0)
		b.Rank(1).Recv(0, 0, 1)
		p := denseProgram(t, b)
		h := newHub(t, true)
		h.length = func(uint32, uint64) uint64 { return 100 }
		out, err := h.run(p, Host{Busy: func(uint64) uint64 { return 10 }, Rendezvous: 50, Acknowledged: true})
		if err != nil {
			t.Fatal(err)
		}
		// The stream is done with the sends at 10 and 20. The second takes one step of 100, so it ends at 123, and the
		// calc after it at 124; the first takes three, so it ends at 313, and the calc after it at 1313. The receives
		// take 10 each from 310 on, for messages of a pair are announced in their order.
		if want := []uint64{1313, 330}; !slices.Equal(out.Finish, want) {
			t.Errorf("%d streams: finish %v, expected %v", streams, out.Finish, want)
		}
		if r := out.Result(p); !r.Complete || r.Unended != 0 {
			t.Errorf("%d streams: result %+v", streams, r)
		}
	}
}

// TestUnended checks the result's description of messages that the network does not deliver.
func TestUnended(t *testing.T) {
	const unmet, silent, granted, lost = 1, 2, 3, 4
	both := []Stuck{
		{Rank: 0, Op: 0, Kind: "send", Waits: "a receive on rank 1, tag 1"},
		{Rank: 1, Op: 2, Kind: "recv", Waits: "a message from rank 0, tag 4"},
		{Rank: 0, Op: 4, Kind: "send", Waits: "its message to reach rank 1, tag 3"},
		{Rank: 1, Op: 1, Kind: "recv", Waits: "its message to arrive from rank 0"},
		{Rank: 0, Op: 5, Kind: "calc", Waits: "the end of op 4 (send)"},
	}
	for _, c := range []struct {
		acknowledged bool
		unended      int64
		stuck        []Stuck
	}{
		{false, 2, both},
		{true, 4, []Stuck{both[0], both[1],
			{Rank: 0, Op: 2, Kind: "send", Waits: "its message to reach rank 1, tag 2"},
			both[2],
			{Rank: 0, Op: 6, Kind: "send", Waits: "its message to reach rank 1, tag 4"},
			both[3],
			{Rank: 0, Op: 3, Kind: "calc", Waits: "the end of op 2 (send)"},
			both[4],
			{Rank: 0, Op: 7, Kind: "calc", Waits: "the end of op 6 (send)"},
		}},
	} {
		b := dag.NewBuilder(2)
		for _, tag := range []int64{unmet, silent, granted, lost} {
			bytes := int64(8)
			if tag == granted {
				bytes = 80
			}
			b.Rank(0).Calc(1, b.Rank(0).Send(1, bytes, tag))
			if tag != unmet {
				b.Rank(1).Recv(0, bytes, tag)
			}
		}
		p := denseProgram(t, b)
		h := newHub(t, true)
		h.lost = func(m uint32) bool { tag := p.Tag(&p.Ops[m]); return tag == lost || tag == granted }
		h.silent = func(m uint32) bool { return p.Tag(&p.Ops[m]) == silent }
		out, err := h.run(p, Host{Busy: func(uint64) uint64 { return 1 }, Rendezvous: 50, Acknowledged: c.acknowledged})
		if err != nil {
			t.Fatal(err)
		}
		r := out.Result(p)
		if r.Complete || r.Unended != c.unended || !slices.Equal(r.Stuck, c.stuck) {
			t.Errorf("acknowledged %v: complete %v, %d did not end, expected %d; stuck %v, expected %v", c.acknowledged,
				r.Complete, r.Unended, c.unended, r.Stuck, c.stuck)
		}
	}
}

// relay is a network at the fabric that forwards every message after a delay, for the benchmark.
type relay struct {
	queue *event.Wheel
	calls int
}

func (n *relay) Lookahead() uint64                    { return 0 }
func (n *relay) Ordered() bool                        { return true }
func (n *relay) Request(a *Actor, m uint32, t uint64) {}
func (n *relay) Grant(a *Actor, m uint32, t uint64)   {}
func (n *relay) Eager(a *Actor, m uint32, t uint64) {
	a.Schedule(a.Engine().Fabric(), t, hubInject, m)
}

func (n *relay) Event(a *Actor, kind NetworkEvent, m uint32) {
	switch kind {
	case hubArrived:
		a.Announce(m)
		a.Deliver(m, a.Now()-500_000, a.Now())
		return
	case hubInject:
		n.queue.Push(event.Event{Time: a.Now() + 500_000, Key: uint64(m)})
	}
	n.calls++
	for n.queue.Len() > 0 && n.queue.Next() < a.Until() {
		e := n.queue.Pop()
		a.Schedule(uint32(a.Op(e.Payload()).Peer), e.Time, hubArrived, e.Payload())
	}
	if n.queue.Len() > 0 {
		a.Wake(n.queue.Next())
	}
}

// BenchmarkFabric replays messages around a ring over a fabric network, with ranks active at different times. It
// measures the engine's cost of such a network.
func BenchmarkFabric(b *testing.B) {
	for _, ranks := range []int{16, 1024, 16384} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			builder := dag.NewBuilder(ranks)
			rounds := 1 << 18 / ranks
			for r := range ranks {
				rank, last := builder.Rank(r), -1
				for range rounds {
					var deps []int
					if last >= 0 {
						deps = append(deps, last)
					}
					work := rank.Calc(dag.Time(random.Int64N(1_000_000)), deps...)
					rank.Send(int32((r+1)%ranks), 8, 0, work)
					last = rank.Recv(int32((r+ranks-1)%ranks), 8, 0, work)
				}
			}
			p, err := Compile(dag.FromTrace(builder.Trace()), CompileOptions{DenseStreams: true})
			if err != nil {
				b.Fatal(err)
			}
			host := Host{Busy: func(uint64) uint64 { return 1000 }, Rendezvous: math.MaxUint64}
			messages, calls := int64(0), 0
			for b.Loop() {
				b.StopTimer()
				n := &relay{queue: event.NewWheel(8)}
				e, err := NewEngine(p.Clone(), host, n, nil, 1)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				out, err := e.Run()
				if err != nil {
					b.Fatal(err)
				}
				messages += out.Messages
				calls += n.calls
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
			b.ReportMetric(float64(calls)/float64(messages), "calls/message")
		})
	}
}
