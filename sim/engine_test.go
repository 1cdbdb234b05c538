package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// bus is an event-driven network for tests: one wire for all ranks, which takes a picosecond per byte and serves the
// last waiting message first, so that messages overtake one another.
type bus struct {
	busy    bool
	waiting []uint32
	sent    map[uint32]uint64
}

const (
	busReady   NetworkEvent = iota // at the fabric: a message waits for the wire
	busFree                        // at the fabric: the wire is free
	busRequest                     // at the receiver
	busArrived                     // at the receiver
	busSent                        // at the sender
)

// Lookahead is none: the bus is one place.
func (b *bus) Lookahead() uint64 { return 0 }

func (b *bus) Ordered() bool { return false }

func (b *bus) Eager(a *Actor, m uint32, t uint64) { a.Schedule(a.Engine().Fabric(), t, busReady, m) }
func (b *bus) Request(a *Actor, m uint32, t uint64) {
	a.Schedule(uint32(a.Op(m).Peer), t, busRequest, m)
}
func (b *bus) Grant(a *Actor, m uint32, t uint64) { a.Schedule(a.Engine().Fabric(), t, busReady, m) }

func (b *bus) Event(a *Actor, kind NetworkEvent, m uint32) {
	send := a.Op(m)
	rendezvous := send.Size > a.Engine().host.Rendezvous
	switch kind {
	case busReady:
		b.waiting = append(b.waiting, m)
	case busFree:
		b.busy = false
	case busRequest:
		a.Announce(m)
	case busSent:
		a.Sent(m, a.Now())
	case busArrived:
		if !rendezvous {
			a.Announce(m)
		}
		a.Deliver(m, b.sent[m], a.Now())
	}
	last := len(b.waiting) - 1
	if a.At() != a.Engine().Fabric() || b.busy || last < 0 {
		return
	}
	next := b.waiting[last]
	b.waiting, b.busy, b.sent[next] = b.waiting[:last], true, a.Now()
	done := a.Now() + a.Op(next).Size
	a.Schedule(a.At(), done, busFree, next)
	a.Schedule(uint32(a.Op(next).Peer), done, busArrived, next)
	if a.Op(next).Size > a.Engine().host.Rendezvous {
		a.Schedule(a.Op(next).Rank, done, busSent, next)
	}
}

func runOverBus(t *testing.T, p *Program, host Host) (*Outcome, error) {
	t.Helper()
	e, err := NewEngine(p, host, &bus{sent: map[uint32]uint64{}}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	return e.Run()
}

// TestEventDrivenNetwork runs a schedule over the bus and compares it with hand-computed times: the engine supports
// networks that decide during the run like those with a formula, and keeps the message order of a pair of ranks.
func TestEventDrivenNetwork(t *testing.T) {
	b := dag.NewBuilder(3)
	send := func(rank int, peer int32, bytes int64, nic int32) int {
		return b.Rank(rank).Add(dag.Op{Kind: dag.Send, Peer: peer, Bytes: bytes, NIC: nic})
	}
	// At 10 the wire takes the first to come, rank 0's 100 bytes, until 110. Then the last to come, its 20 bytes on the
	// other NIC, until 130, which must wait for the 50 bytes sent before them, until 180.
	send(0, 2, 100, 0)
	send(0, 2, 50, 0)
	send(0, 2, 20, 1)
	send(1, 2, 30, 0)
	recv := func(peer int32, stream int32) int {
		return b.Rank(2).Add(dag.Op{Kind: dag.Recv, Peer: peer, Stream: stream})
	}
	recv(0, 0)
	recv(0, 1)
	third := recv(0, 2)
	recv(1, 3)
	b.Rank(2).Add(dag.Op{Duration: 1000, Stream: 4}, third)
	trace := b.Trace()
	p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
	if err != nil {
		t.Fatal(err)
	}
	host := Host{Busy: func(uint64) uint64 { return 10 }, Rendezvous: math.MaxUint64}
	out, err := runOverBus(t, p, host)
	if err != nil {
		t.Fatal(err)
	}
	// Rank 0's sends leave its stream at 10, 20, 30; rank 1's at 10.
	want := []uint64{30, 10, 180 + 10 + 1000}
	if !slices.Equal(out.Finish, want) {
		t.Errorf("finish %v, expected %v", out.Finish, want)
	}
	if r := out.Result(p); !r.Complete || r.Messages != 4 || r.Bytes != 200 {
		t.Errorf("result %+v", r)
	}
}

// TestRendezvousOverBus runs random rendezvous traffic over the bus, which must complete.
func TestRendezvousOverBus(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		const ranks = 5
		b := dag.NewBuilder(ranks)
		for range 200 {
			from, to := random.IntN(ranks), random.IntN(ranks)
			bytes, tag := random.Int64N(100), random.Int64N(3)
			b.Rank(from).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: tag, NIC: random.Int32N(2),
				Stream: random.Int32N(3)})
			b.Rank(to).Add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Tag: tag, Stream: random.Int32N(3)})
		}
		trace := b.Trace()
		p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
		if err != nil {
			t.Fatal(err)
		}
		host := Host{Busy: func(b uint64) uint64 { return 5 + b }, Rendezvous: 50}
		out, err := runOverBus(t, p, host)
		if err != nil {
			t.Fatal(err)
		}
		if r := out.Result(p); !r.Complete {
			t.Errorf("seed %d: not complete: %+v", seed, r.Stuck)
		}
	}
}

// TestStuck checks the result's description of ops that never end.
func TestStuck(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	recv := r.Recv(1, 8, 5)
	after := r.Calc(10, recv)
	r.RequiresStart(r.Calc(10), after)
	b.Rank(1).Send(0, 8, 6)
	x := b.Rank(1).Calc(1)
	b.Rank(1).Requires(x, x)
	trace := b.Trace()
	p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
	if err != nil {
		t.Fatal(err)
	}
	host := Host{Busy: func(uint64) uint64 { return 1 }, Rendezvous: math.MaxUint64}
	out, err := runOverBus(t, p, host)
	if err != nil {
		t.Fatal(err)
	}
	result := out.Result(p)
	want := []Stuck{
		{Rank: 0, Op: 0, Kind: "recv", Waits: "a message from rank 1, tag 5"},
		{Rank: 1, Op: 0, Kind: "send", Waits: "a receive on rank 0, tag 6"},
		{Rank: 0, Op: 1, Kind: "calc", Waits: "the end of op 0 (recv)"},
		{Rank: 0, Op: 2, Kind: "calc", Waits: "the start of op 1 (calc)"},
		{Rank: 1, Op: 1, Kind: "calc", Waits: "the end of op 1 (calc)"},
	}
	if result.Complete || result.NeverRun != 3 || !slices.Equal(result.Stuck, want) {
		t.Errorf("complete %v, %d never ran, stuck %v, expected %v", result.Complete, result.NeverRun, result.Stuck, want)
	}
}

func TestClockText(t *testing.T) {
	for _, c := range []struct {
		clock        Clock
		json, pretty string
	}{
		{Clock{0, dag.Nanosecond}, "0", "0s"},
		{Clock{1500, dag.Nanosecond}, "1500000", "1.5us"},
		{Clock{1500, dag.Picosecond}, "1500", "1.5ns"},
		{Clock{math.MaxUint64, dag.Nanosecond}, "18446744073709551615000", "18446744073709551615000ps (beyond 106 days)"},
	} {
		text, err := c.clock.MarshalJSON()
		if err != nil || string(text) != c.json || c.clock.String() != c.pretty {
			t.Errorf("%v: %s, %q, error %v; expected %s, %q", c.clock, text, c.clock.String(), err, c.json, c.pretty)
		}
	}
}

// pipe is a network for tests in which every message takes its size in picoseconds, and a latency.
type pipe struct{ latency uint64 }

const (
	pipeArrival NetworkEvent = iota
	pipeRequest
	pipeGrant
	pipeData
)

func (n *pipe) Lookahead() uint64 { return n.latency }

func (n *pipe) Ordered() bool { return false }

func (n *pipe) Eager(a *Actor, m uint32, t uint64) {
	a.Schedule(uint32(a.Op(m).Peer), t+n.latency, pipeArrival, m)
}

func (n *pipe) Request(a *Actor, m uint32, t uint64) {
	a.Schedule(uint32(a.Op(m).Peer), t+n.latency, pipeRequest, m)
}

func (n *pipe) Grant(a *Actor, m uint32, t uint64) {
	a.Schedule(a.Op(m).Rank, t+n.latency, pipeGrant, m)
}

func (n *pipe) Event(a *Actor, kind NetworkEvent, m uint32) {
	switch kind {
	case pipeArrival:
		a.Announce(m)
		a.Deliver(m, a.Now()-n.latency, a.Now()+a.Op(m).Size)
	case pipeRequest:
		a.Announce(m)
	case pipeGrant:
		a.Sent(m, a.Now())
		a.Schedule(uint32(a.Op(m).Peer), a.Now()+n.latency, pipeData, m)
	case pipeData:
		a.Deliver(m, a.Now()-n.latency, a.Now()+a.Op(m).Size)
	}
}

// TestThreads checks that the result does not depend on the number of threads, nor on when they are used.
func TestThreads(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		ranks := 2 + random.IntN(200)
		b := dag.NewBuilder(ranks)
		for range 10 * ranks {
			from, to := random.IntN(ranks), random.IntN(ranks)
			bytes := random.Int64N(200)
			send := dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, NIC: random.Int32N(1 + int32(seed%2)),
				Stream: random.Int32N(2), Release: dag.Time(random.Int64N(20000))}
			recv := dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: bytes, Stream: random.Int32N(3)}
			if seed%3 == 0 && random.IntN(4) == 0 {
				recv.Peer = dag.AnySource
			}
			b.Rank(from).Add(send)
			b.Rank(to).Calc(dag.Time(random.Int64N(1000)), b.Rank(to).Add(recv))
		}
		trace := b.Trace()
		p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true})
		if err != nil {
			t.Fatal(err)
		}
		host := Host{Busy: func(b uint64) uint64 { return 5 + b }, Rendezvous: 150}
		latency := 1 + random.Uint64N(3000)
		var want *Outcome
		for _, threads := range []int{1, 2, 5} {
			for _, busy := range []int{0, 10, busy} {
				e, err := NewEngine(p.Clone(), host, &pipe{latency}, nil, threads)
				if err != nil {
					t.Fatal(err)
				}
				e.busy = busy
				got, err := e.Run()
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got.Finish, want.Finish) || got.Events != want.Events || !slices.Equal(got.Ran, want.Ran) {
					t.Errorf("seed %d: %d threads, busy %d: finish %v, expected %v", seed, threads, busy, got.Finish, want.Finish)
				}
			}
		}
		if r := want.Result(p); seed%3 > 0 && !r.Complete {
			t.Errorf("seed %d: not complete: %+v", seed, r.Stuck)
		}
	}
}

// TestThreadsTooLong checks that a run on threads ends with an error wherever the clock leaves its range, and that it
// reaches the end of that range.
func TestThreadsTooLong(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		const ranks = 70
		b := dag.NewBuilder(ranks)
		end := int64(math.MaxInt64)
		for r := range ranks {
			first := b.Rank(r).Calc(dag.Time(end - 1000 - random.Int64N(1000)))
			for range 5 {
				b.Rank(r).Add(dag.Op{Kind: dag.Send, Peer: int32((r + 1) % ranks), Bytes: 1}, first)
				first = b.Rank(r).Calc(dag.Time(random.Int64N(10)), b.Rank(r).Recv(int32((r+ranks-1)%ranks), 1, 0), first)
			}
		}
		host := Host{Busy: func(b uint64) uint64 { return b }, Rendezvous: 150}
		latency := 1 + random.Uint64N(40)
		late := seed%2 == 0
		if seed%3 == 0 {
			late, latency = true, 1<<40
		}
		if seed%2 == 0 { // one rank is too late, where the others would be in time
			b.Rank(int(seed)).Calc(dag.Time(end), b.Rank(int(seed)).Calc(1))
		}
		p, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{DenseStreams: true})
		if err != nil {
			t.Fatal(err)
		}
		var want *Outcome
		var wanted error
		for _, threads := range []int{1, 2, 5} {
			e, err := NewEngine(p.Clone(), host, &pipe{latency}, nil, threads)
			if err != nil {
				t.Fatal(err)
			}
			e.busy = 0
			got, err := e.Run()
			if want == nil {
				want = got
			}
			if threads == 1 {
				wanted = err
			}
			switch {
			case late && !errors.As(err, new(*TooLongError)) || !late && err != nil:
				t.Errorf("seed %d: %d threads: too late is %v, error %v", seed, threads, late, err)
			case late && err.Error() != wanted.Error():
				t.Errorf("seed %d: %d threads: error %q, on one thread %q", seed, threads, err, wanted)
			case !late && !slices.Equal(got.Finish, want.Finish):
				t.Errorf("seed %d: %d threads: finish %v, on one %v", seed, threads, got.Finish, want.Finish)
			}
		}
	}
}
