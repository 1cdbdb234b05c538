// This file replays traces. It couples the engine, which handles ranks and messages, with the network, which handles
// hosts and packets.

package flit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
	"github.com/tracedag/tracedag/sim/topology"
)

// Options are the options of a run.
type Options struct {
	Network   *topology.Network
	Params    Params
	Placement Placement

	Timeline sim.Timeline    // nil: none
	Path     bool            // record the critical path
	Progress func(ops int64) // nil, or called periodically with the number of additional ops run
	Context  context.Context // ends the run early; see [sim.Interrupted]. nil: no limit

	// Threads is the number of threads; 0: as many as are worthwhile. Results do not depend on it.
	Threads int
	// MaxCycles ends the run with an error after this number of cycles; 0: no limit.
	MaxCycles uint64
	// Warn prints warnings about the network and about long runs; nil: discard. Rates names the source of the
	// topology's rates in them; "" if they are defaults, which may differ from those of the links.
	Warn  func(message string, args ...any)
	Rates string
}

// Placement assigns ranks to hosts.
type Placement struct {
	Hosts []uint32 // by rank; nil: rank r is on host r / Cores
	Cores int      // ranks per host; 0: one
}

// hosts returns the hosts of the ranks.
func (p *Placement) hosts(ranks, hosts int) ([]uint32, error) {
	at := p.Hosts
	if at == nil {
		if p.Cores < 0 {
			return nil, fmt.Errorf("expected at least 1 core per host, found %d", p.Cores)
		}
		at = make([]uint32, ranks)
		for r := range at {
			at[r] = uint32(r / max(1, p.Cores))
		}
	}
	if len(at) != ranks {
		return nil, fmt.Errorf("the placement has hosts for %d ranks, expected %d as in the trace", len(at), ranks)
	}
	for r, h := range at {
		if int(h) >= hosts {
			return nil, fmt.Errorf("rank %d is placed on host %d, expected hosts 0 to %d of the network", r, h, hosts-1)
		}
	}
	return at, nil
}

// Replay is a compiled trace. It can run once.
type Replay struct {
	program *sim.Program
	used    bool
}

// Compile compiles a trace of sends, receives and calcs; see [sim.Compile].
func Compile(t dag.Source) (*Replay, error) {
	return newReplay(context.Background(), t)
}

func newReplay(ctx context.Context, t dag.Source) (*Replay, error) {
	p, err := sim.Compile(t, sim.CompileOptions{DenseStreams: true, Context: ctx})
	if err != nil {
		return nil, err
	}
	return &Replay{program: p}, nil
}

// Clone returns another replay of the same trace. Call it before Run.
func (r *Replay) Clone() *Replay {
	return &Replay{program: r.program.Clone()}
}

// Run replays the trace. It returns a [*DeadlockError] if packets wait for each other in a circle, and an error if the
// replay has already run or the context ends.
func (r *Replay) Run(o Options) (*sim.Result, *Report, error) {
	if r.used {
		return nil, nil, errors.New("a replay can be run only once")
	}
	r.used = true
	p := r.program
	n, err := newNetwork(o.Context, o.Network, &o.Params)
	if err != nil {
		return nil, nil, err
	}
	return run(p, n, &o)
}

func run(p *sim.Program, n *worker, o *Options) (*sim.Result, *Report, error) {
	hosts, err := o.Placement.hosts(p.Ranks(), o.Network.Hosts)
	if err != nil {
		return nil, nil, err
	}
	warn := (&sim.Env{Warn: o.Warn}).WarnOnce()
	amount := measureWork(p, n, hosts)
	if err := amount.check(p, &o.Params, o.MaxCycles, warn); err != nil {
		return nil, nil, err
	}
	unused := o.Network.UnusedFabric(func(yield func(from, to uint32) bool) {
		for i := range p.Ops {
			if op := &p.Ops[i]; op.Flags&sim.IsColl == sim.IsSend && !yield(hosts[op.Rank], hosts[op.Peer]) {
				return
			}
		}
	})
	if unused != "" {
		warn("%s", unused)
	}
	n.warnBuffers(warn)
	n.warnRates(o.Rates, warn)
	if o.Timeline != nil {
		o.Timeline.Begin(p.Layout())
	}
	started := time.Now()
	c := &coupling{ctx: o.Context, n: n, p: p, hosts: hosts, cycle: uint64(o.Params.Cycle), c: &o.Params.Coupling,
		posted: make([]uint64, p.NumOps()), last: never}
	if o.MaxCycles > 0 {
		c.last = o.MaxCycles
	}
	n.driver = c
	threads, least := o.Threads, 0
	if threads == 0 {
		threads, least = n.threadsFor(), leastActive
	}
	if threads > 1 {
		c.team = n.newTeam(o.Context, threads, n.fewestFlits(p), least)
		defer c.team.end()
	}
	overhead := uint64(o.Params.Coupling.Overhead)
	host := sim.Host{Busy: func(uint64) uint64 {
		return overhead
	}, Rendezvous: math.MaxUint64, Acknowledged: c.c.Injected}
	e, err := sim.NewEngine(p, host, c, o.Timeline, 1)
	if err != nil {
		return nil, nil, err
	}
	if o.Path {
		e.RecordPath()
		idle := &idle{known: make(map[idleMessage]idleTimes)}
		if idle.n, err = newUnchecked(o.Network, &o.Params); err != nil { // n passed the check
			return nil, nil, err
		}
		idle.n.driver = idle
		c.idle = idle
	}
	e.SetProgress(o.Progress)
	e.SetContext(o.Context)
	out, err := e.Run()
	if err = cmp.Or(err, c.err); err != nil {
		return nil, nil, err
	}
	if c.team != nil {
		n.merge()
	}
	out.Events += n.events
	result := out.Result(p)
	cycles := (result.Makespan.Ticks + c.cycle - 1) / c.cycle
	if cycles > c.last {
		return nil, nil, &LimitError{c.last, 0}
	}
	result.Finished(started)
	result.Backend, result.Model, result.Params = Backend.Name, o.Params.Routing.String(), sim.ValuesOf(o.Params)
	result.Settings = o.Params.String()
	if o.Path {
		result.Path = e.Path()
	}
	return result, n.report(cycles), nil
}

// coupling is the sim.Network of the backend. A message reaches its NIC in the first cycle that begins at or after its
// handover. Messages of the same time are ordered by rank. Cycle k begins at k times the cycle time.
type coupling struct {
	n      *worker
	p      *sim.Program
	c      *Coupling
	actor  *sim.Actor  // actor of the current call
	hosts  []uint32    // by rank
	cycle  uint64      // cycle time in picoseconds
	posted []uint64    // by message: time of its handover
	next   event.Queue // messages that have not reached their NICs yet
	err    error
	ctx    context.Context // nil: no limit
	cycles int             // number of cycles run by advance

	team *team // nil: one thread
	idle *idle // nil without a critical path

	last    uint64 // last cycle in which messages may be in the network; never: no limit
	waiting uint64 // messages in the network
}

// Events of the coupling in the engine's queues.
const (
	delivered sim.NetworkEvent = iota // at the receiver: a message has arrived
	ended                             // at the sender: a send has ended
)

func (*coupling) Lookahead() uint64 { return 0 }
func (*coupling) Ordered() bool     { return false }

// Eager hands over a message to the network.
func (c *coupling) Eager(a *sim.Actor, m uint32, t uint64) {
	op := a.Op(m)
	c.posted[m] = t
	if from, to := c.hosts[op.Rank], c.hosts[op.Peer]; from == to {
		if c.c.Injected {
			a.Schedule(op.Rank, t, ended, m)
		}
		a.Schedule(uint32(op.Peer), t+uint64(c.c.Local)*c.cycle, delivered, m)
		return
	}
	c.waiting++
	c.next.Push(event.Event{Time: t, Key: uint64(op.Rank)<<32 | uint64(m)})
	a.Wake(c.begins(t))
}

// begins returns the start of the first cycle that begins at or after t.
func (c *coupling) begins(t uint64) uint64 {
	if rest := t % c.cycle; rest > 0 {
		t += c.cycle - rest
	}
	return t
}

// Request is not called, since all messages are eager.
func (*coupling) Request(*sim.Actor, uint32, uint64) {}

// Grant is not called, since all messages are eager.
func (*coupling) Grant(*sim.Actor, uint32, uint64) {}

// Event handles an event of the coupling.
func (c *coupling) Event(a *sim.Actor, kind sim.NetworkEvent, m uint32) {
	switch kind {
	case delivered:
		a.Announce(m)
		a.Deliver(m, c.posted[m], a.Now())
	case ended:
		a.Sent(m, a.Now())
	case sim.WakeUp:
		c.actor = a
		if c.err == nil {
			c.err = c.advance()
		}
	}
}

// checkCycles is the number of cycles between two checks of the context. In large networks a cycle takes milliseconds.
const checkCycles = 64

// advance runs the network until a rank has events. It stops between the routers' and the NICs' parts of a cycle, so
// that ranks can react to receptions within the cycle.
func (c *coupling) advance() error {
	a, n := c.actor, c.n
	for {
		t := c.nextCycle()
		if c.next.Len() > 0 {
			earliest := n.over
			if n.nicsPending {
				earliest = n.now
			}
			t = min(t, max(earliest, c.begins(c.next.Next())/c.cycle))
		}
		if t == never {
			if n.inNetwork() > 0 {
				n.merge()
				return n.deadlock()
			}
			return nil
		}
		if t > c.last && c.waiting > 0 {
			return &LimitError{c.last, c.waiting}
		}
		if t > math.MaxInt64/c.cycle {
			return a.Engine().TooLong()
		}
		at := t * c.cycle
		if at > a.Now() && at >= a.Until() {
			a.Wake(at)
			return nil
		}
		if !n.nicsPending {
			c.runRouters(t)
			if a.Until() <= at {
				a.Wake(at)
				return nil
			}
		}
		c.post(t)
		c.runNICs()
		if c.cycles++; c.cycles%checkCycles == 0 {
			if err := sim.Interrupted(c.ctx); err != nil {
				return err
			}
		}
	}
}

// nextCycle, runRouters and runNICs are those of the network or, with several threads, of all workers.
func (c *coupling) nextCycle() uint64 {
	if c.team != nil {
		return c.team.nextCycle(c.n)
	}
	return c.n.nextCycle()
}

func (c *coupling) runRouters(t uint64) {
	if c.team != nil {
		c.team.runRouters(c.n, t)
		return
	}
	c.n.runRouters(t)
}

func (c *coupling) runNICs() {
	if c.team != nil {
		c.team.runNICs(c.n)
		return
	}
	c.n.runNICs()
}

// post queues at their NICs all messages handed over by the start of a cycle.
func (c *coupling) post(t uint64) {
	for c.next.Len() > 0 && c.next.Next() <= t*c.cycle {
		m := c.next.Pop().Payload()
		op := &c.p.Ops[m]
		c.n.post(m, c.hosts[op.Rank], c.hosts[op.Peer], op.Size, t)
	}
}

// taken ends a send whose end is its injection.
func (c *coupling) taken(m uint32, began, t uint64) {
	if !c.c.Injected {
		return
	}
	op := &c.p.Ops[m]
	if c.c.Paced {
		t = max(t, began+max(1, (op.Size+uint64(c.n.p.FlitBytes)-1)/uint64(c.n.p.FlitBytes))-1)
	}
	c.actor.Schedule(op.Rank, t*c.cycle, ended, m)
}

// received ends the receive of a message.
func (c *coupling) received(m uint32, t uint64) {
	op := &c.p.Ops[m]
	c.waiting--
	c.n.counters.messages++
	c.n.counters.waited += t - c.posted[m]/c.cycle
	c.actor.Schedule(uint32(op.Peer), t*c.cycle, delivered, m)
}
