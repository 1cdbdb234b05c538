package analytical

import (
	"context"
	"fmt"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	simevent "github.com/tracedag/tracedag/sim/event"
)

// Options are the options of a run.
type Options struct {
	Network Network
	System  System
	Memory  Memory
	// ExactSizes matches a send and a receive only if they have the same size, as in ASTRA-sim. Otherwise those of a
	// pair of ranks with the same tag match in order, as in MPI.
	ExactSizes bool
	// FreeMarkers ends markers as soon as they are ready, unless the system replays durations. Otherwise they wait for
	// the NPU's place for communication, as nodes without work do in ASTRA-sim.
	FreeMarkers bool
	// Node returns the number of an op in the trace's format, which identifies the op in System.CustomNodes and in
	// messages. It may be nil.
	Node func(rank, op int) uint64
	// Tensors returns the tensors that an op reads and writes in the memory of its NPU, for Result.LocalMem. It is
	// called after all ops have run. It may be nil.
	Tensors func(rank, op int) (reads, writes []Tensor, err error)
	// Nodes are the nodes of the ranks, if the ranks on a node share its NICs. They may be nil.
	Nodes    []int32
	Timeline sim.Timeline    // receives the run; nil: none
	Path     bool            // record the critical path
	Progress func(ops int64) // nil, or called periodically with the number of additional ops run
	Context  context.Context // ends the run early; see [sim.Interrupted]. nil: no limit

	allMessages bool // simulate every message of collectives
}

// engine is a run of a program.
type engine struct {
	p       *Program
	o       *Options
	system  *System
	queue   *eventQueue
	matcher *matcher
	links   *links
	sharing *sharing // nil: no NICs are shared
	npus    []npu
	ready   []simevent.MinHeap // by lane of every NPU, plus one for ops without a lane: the ready ops
	servers []server
	buses   *buses    // nil: none
	opTimes []opTimes // by NPU; nil: not needed
	layout  *sim.Layout
	flights []flight // by message; nil without a timeline
	// lastIssues has an entry per collective of all ranks of a communicator; nil without a critical path.
	lastIssues []lastIssue

	collectives
	classes       *classTable // nil: collectives are simulated message by message
	mirror        *mirror     // nil: all NPUs run
	orders        []order     // by NPU, with classes
	issuedAt      []uint64    // by lane of every NPU, with classes: issue of its last op
	runs          []customRun // by NPU; nil: none
	requests      []request   // requests of the rendezvous protocol
	spareRequests []uint32    // unused numbers of requests

	wild *wildcards // nil if no receive has a wildcard

	events, messages    int64
	bytesHigh, bytesLow uint64 // bytes of messages: bytesHigh * 2^64 + bytesLow
	progress            sim.Progress
	err                 error
}

// npu is the state of an NPU's workload.
type npu struct {
	g        *graph
	waits    []uint32 // by op: number of its unmet dependencies
	left     int      // number of ops that have not ended
	lanes    int      // start of its lanes in engine.ready
	busy     uint64   // one bit per busy lane
	walking  bool
	deferred []uint32 // ops that became ready during a walk, for the next walk
	joins    []uint32 // free markers that are ready
	joining  bool

	outcome    *outcome // of the current collective, with classes; nil: none is running
	begun      uint64   // with classes: first issue of the current collective
	collective uint32   // current collective op
	tag        uint64   // tag of its first chunk
	chunks     int      // number of its chunks that have not ended
	priority   int64

	stats npuStats
}

// rendezvousSize is the size of a ready message in bytes.
const rendezvousSize = 8192

// request is a receive announced to the sender.
type request struct {
	key   key
	meets event
}

// server is a memory that serves one access at a time.
type server struct {
	busy  bool
	queue []access
	first int // index in queue
}

type access struct {
	npu int32
	op  uint32
}

// Run runs the program. It may be called repeatedly and concurrently. It returns a [*sim.TooLongError] if a time is out
// of range, and an error if the network, the system or the memory does not support an op or the context ends.
func (p *Program) Run(o Options) (*Result, error) {
	started := time.Now()
	r, err := p.runByClass(&o)
	if r == nil && err == nil {
		r, err = p.run(&o, false)
	}
	if err != nil {
		return nil, err
	}
	r.Finished(started)
	return r, nil
}

// run runs the program, with classes of collectives or message by message.
func (p *Program) run(o *Options, byClass bool) (*Result, error) {
	e, err := newEngine(p, o)
	if err != nil {
		return nil, err
	}
	if byClass {
		e.useClasses()
	}
	for r := range e.npus {
		e.start(int32(r))
	}
	e.loop()
	if e.err != nil {
		return nil, e.err
	}
	e.progress.Report()
	result := e.result()
	if o.Path {
		result.Path = e.path()
	}
	if o.Tensors != nil {
		if err := e.localMem(result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func newEngine(p *Program, o *Options) (*engine, error) {
	n := o.Network.NPUs()
	if n != p.NPUs() {
		return nil, fmt.Errorf("the network has %d NPUs, but the trace has %d ranks", n, p.NPUs())
	}
	if n >= maxNPUs {
		return nil, fmt.Errorf("the network has %d NPUs, expected fewer than %d", n, maxNPUs)
	}
	if err := o.Memory.Check(n); err != nil {
		return nil, err
	}
	e := &engine{p: p, o: o, system: &o.System, queue: newEventQueue(n), matcher: newMatcher(), npus: make([]npu, n)}
	e.progress.Func = sim.ProgressUntil(o.Context, o.Progress, e.fail)
	e.err = sim.Interrupted(o.Context)
	var err error
	if e.links, err = newLinks(&o.Network); err != nil {
		return nil, err
	}
	e.sharing = newSharing(o.Nodes, len(o.Network.Dims))
	lanes, ops := 0, 0
	for _, g := range p.graphs {
		lanes += g.lanes + 1
		ops += len(g.waits)
	}
	e.ready = make([]simevent.MinHeap, lanes)
	waits := make([]uint32, ops)
	lanes = 0
	for r, g := range p.graphs {
		e.npus[r] = npu{g: g, waits: waits[:copy(waits, g.waits)], left: len(g.waits), lanes: lanes}
		waits = waits[len(g.waits):]
		lanes += g.lanes + 1
	}
	if o.System.SharedBus != nil {
		e.buses = newBuses(o.System.SharedBus, n)
	}
	if o.Tensors != nil || o.Timeline != nil || o.Path {
		e.opTimes = newOpTimes(p.graphs, o.Path)
	}
	if o.Timeline != nil {
		if e.layout, err = p.layout(); err != nil {
			return nil, err
		}
		o.Timeline.Begin(e.layout)
	}
	if e.wild = findWildcards(p); e.wild != nil && e.system.Rendezvous {
		return nil, errWildRendezvous
	}
	if err := e.collectives.init(e); err != nil {
		return nil, err
	}
	return e, nil
}

// start starts the workload of an NPU.
func (e *engine) start(r int32) {
	n := &e.npus[r]
	for _, i := range n.g.roots {
		e.getReady(r, n, i)
	}
	e.walk(r, n)
	e.checkFinished(n)
}

// loop handles all events.
func (e *engine) loop() {
	for e.err == nil {
		ev, ok := e.queue.take()
		if !ok {
			return
		}
		if e.events++; e.events%progressEvents == 0 {
			e.progress.Report()
		}
		r, i := ev.npu(), ev.number()
		if e.classes != nil && e.classEvent(ev.kind(), r, i) {
			continue
		}
		switch ev.kind() {
		case stepOver:
			e.act(i)
		case delayOver:
			e.after(e.reduction(i), newEvent(stepOver, r, i))
		case packetMet:
			e.packet(i)
		case arrived:
			e.arrive(i)
		case hopped:
			e.reachDevice(i)
		case linkFree:
			e.freeLink(int32(i))
		case opOver, recvMet:
			e.end(r, i)
		case opReleased:
			e.release(r, i)
		case graphOver, graphMet:
			e.endCustom(r, i)
		case serverOver:
			e.serveNext(int(i))
		case busEvent:
			e.busEvent(r, i)
		case readyToSend:
			e.transmit(i)
		case nicFree:
			e.inject(i)
		}
	}
}

// after schedules an event after a delay in nanoseconds.
func (e *engine) after(delay uint64, ev event) {
	t := e.queue.now + delay
	if t < delay || t > latest {
		e.fail(e.tooLong(ev))
		return
	}
	e.queue.add(t, ev)
}

// latest is the latest time in nanoseconds, the range of dag.Time.
const latest = uint64(dag.MaxTime / dag.Nanosecond)

// tooLong returns the error about an event whose time is out of range: that of its op or, for an event of a collective,
// of the collective.
func (e *engine) tooLong(ev event) error {
	r, i := ev.npu(), uint32(noOp)
	switch ev.kind() {
	case opOver, opReleased, recvMet:
		i = ev.number()
	case arrived, hopped, nicFree:
		if m := &e.matcher.messages[ev.number()]; m.custom || m.control {
			r = m.from
		} else {
			r, i = m.from, m.sender
		}
	}
	n := &e.npus[r]
	for k := uint32(0); i == noOp && k < uint32(len(n.waits)); k++ {
		if o := &n.g.ops[k]; n.waits[k] == opIssued && o.kind != opCompute && o.kind != opMarker {
			i = k
		}
	}
	if i == noOp {
		return sim.ErrTooLong
	}
	return &sim.TooLongError{Rank: int(r), Op: int(i), Kind: n.g.ops[i].kind.model()}
}

// fail ends the run with an error.
func (e *engine) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// progressEvents is the largest number of events between progress reports, since the ops of some traces have many
// events.
const progressEvents = 1 << 20

// label returns the name of an op for messages: its number in the trace's format, if known.
func (e *engine) label(r int32, i uint32) string {
	if e.o.Node == nil {
		return fmt.Sprintf("op %d", i)
	}
	return fmt.Sprintf("node %d", e.o.Node(int(r), int(i)))
}

// failOp ends the run with an error about an op.
func (e *engine) failOp(r int32, i uint32, why string, args ...any) {
	e.fail(fmt.Errorf("rank %d %s %s", r, e.label(r, i), fmt.Sprintf(why, args...)))
}
