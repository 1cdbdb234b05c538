// Package packet simulates data-center networks packet by packet: hosts with NICs, switches with queues, load
// balancing, and transports with congestion control.
//
// The model is that of htsim. [Params].Compat also reproduces the accidents of its code.
// docs/reference/backends/packet.md defines the rules.
package packet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/platform"
	"github.com/tracedag/tracedag/sim/topology"
)

// Options are the options of a run.
type Options struct {
	Network   *topology.Network
	Platform  *platform.Platform // replaces Network, with links of Failures
	Params    Params
	Placement Placement
	Paths     Paths // paths of flows for the policy [Fixed]
	Failures  []Failure

	Timeline sim.Timeline    // nil: no timeline
	Path     bool            // record the critical path; not with CompatATLAHS
	Progress func(ops int64) // if not nil, called periodically with the number of ops since the last call
	Context  context.Context // ends the run early; see [sim.Interrupted]. nil: no limit

	// Window limits the flows in distributions of a Report. Bins divides them by size.
	Window measure.Window
	Bins   measure.Bins

	Sample   dag.Time                          // sampling period of queues; 0: no samples
	Warn     func(message string, args ...any) // if not nil, called for each parameter that the run replaces
	Given    func(name string) bool            // reports whether the caller set a parameter; nil: none
	OnSample func(Sample)                      // if not nil, called for each sampled non-empty queue by time and port

	named   func(names []string) // called with the names of ports; nil: not requested
	labels  *measure.Labels      // of the trace; nil: unknown
	figures bool                 // keep the data of figures; see [sim.RunOptions]
}

func (o *Options) warn(message string, args ...any) {
	if o.Warn != nil {
		o.Warn(message, args...)
	}
}

// hosts returns the number of hosts.
func (o *Options) hosts() int {
	if o.Platform != nil {
		return len(o.Platform.Hosts)
	}
	return o.Network.Hosts
}

// Paths maps source and destination host to the path of their flows. Paths are numbered as in topology.Routes.Choose.
type Paths map[[2]uint32]Path

// Path is the path number of a flow and of its reverse direction.
type Path struct{ Forward, Reverse uint32 }

// Coupling defines how ranks use the network.
type Coupling struct {
	// Rules selects the coupling. [CompatNone] follows the MPI rules of the engine. [CompatHTSim] runs a list of flows:
	// the send and the receive of a message both end when its last byte is acknowledged, and empty messages, which
	// represent triggers, take no time. [CompatATLAHS] runs GOAL like ATLAHS.
	Rules      Compat   `json:"rules,omitempty"`
	Overhead   dag.Time `json:"o_ps"`         // time for which a send or a receive occupies its stream
	Gap        dag.Time `json:"g_ps"`         // shortest time between the starts of two messages at a NIC
	Rendezvous int64    `json:"S_bytes"`      // largest message sent without waiting for its receive
	AckEnds    bool     `json:"ack_ends"`     // a send ends when its last byte is acknowledged
	LocalRate  int64    `json:"local_bits_s"` // rate between ranks on one host; 0: unlimited
	// LocalLatency is the latency between ranks on one host.
	LocalLatency dag.Time `json:"local_latency_ps"`
}

// Replay is a compiled trace. It can run once.
type Replay struct {
	program *sim.Program
	rules   Compat
	flows   bool // the trace is a list of flows
	used    bool
}

// Compile compiles a trace of sends, receives and calcs for the given rules of [Coupling]; see [sim.Compile]. It calls
// warn for each property that the rules cannot represent.
func Compile(t dag.Source, rules Compat, warn func(message string, args ...any)) (*Replay, error) {
	return newReplay(t, rules, &sim.Env{Warn: warn})
}

func newReplay(t dag.Source, rules Compat, env *sim.Env) (*Replay, error) {
	o := sim.CompileOptions{DenseStreams: true, Context: env.Context}
	if rules == CompatATLAHS {
		o = sim.CompileOptions{Unit: dag.Nanosecond, Context: env.Context}
	}
	p, err := sim.Compile(t, o)
	if err != nil {
		return nil, err
	}
	if rules == CompatATLAHS && p.Releases {
		return nil, errors.New("the coupling atlahs does not support the trace's release times; use another --coupling")
	}
	if p.Rounded > 0 {
		env.Warnf("%d calcs were rounded to whole nanoseconds, the unit of ATLAHS", p.Rounded)
	}
	h, err := t.Header()
	if err != nil {
		return nil, err
	}
	p.WarnShortReceives(env)
	return &Replay{program: p, rules: rules, flows: isFlowList(h.Meta.Attrs, p)}, nil
}

// isFlowList reports whether a trace is a list of flows: it comes from a file of flows, or its messages have start
// times or numbers and no op depends on another.
func isFlowList(attrs string, p *sim.Program) bool {
	if attr.IsFlowList(attrs) {
		return true
	}
	for i := range p.Ops {
		op := &p.Ops[i]
		if kind := op.Flags & sim.IsColl; op.Waits > 0 || kind != sim.IsSend && kind != sim.IsRecv {
			return false
		}
	}
	return p.Sends > 0 && (p.Releases || numbered(p))
}

// numbered reports whether the tags of the sends are 0, 1 and so on, each once, as those of generated flows.
func numbered(p *sim.Program) bool {
	seen := make([]bool, p.Sends)
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Flags&sim.IsColl != sim.IsSend {
			continue
		}
		tag := p.Tag(op)
		if uint64(tag) >= p.Sends || seen[tag] {
			return false
		}
		seen[tag] = true
	}
	return p.Sends > 1
}

// Clone returns another replay of the same trace. Call it before Run.
func (r *Replay) Clone() *Replay {
	return &Replay{program: r.program.Clone(), rules: r.rules, flows: r.flows}
}

// Run replays the trace. A second call returns an error.
func (r *Replay) Run(o Options) (*sim.Result, *Report, error) {
	if r.used {
		return nil, nil, errors.New("a replay can be run only once")
	}
	r.used = true
	o.Params.Coupling.Rules = r.rules
	if on, ok := o.Params.TransportParams[handshake]; ok && on < 0 {
		o.Params.TransportParams = maps.Clone(o.Params.TransportParams)
		o.Params.TransportParams[handshake] = 0
		if r.flows {
			o.Params.TransportParams[handshake] = 1
		}
	}
	p := r.program
	if err := o.Placement.check(p.Ranks(), o.hosts()); err != nil {
		return nil, nil, err
	}
	if err := o.Params.Check(); err != nil {
		return nil, nil, err
	}
	if o.Platform != nil {
		if err := o.give(p); err != nil {
			return nil, nil, err
		}
	}
	if most := uint64(math.MaxUint32) * uint64(o.Params.MSS); p.LargestMessage >= most {
		i := uint32(slices.IndexFunc(p.Ops, func(op sim.Op) bool { return op.IsMessage() && op.Size >= most }))
		return nil, nil,
			fmt.Errorf("rank %d op %d (%v): expected a message of less than %d bytes (2^32-1 packets), found "+
				"%d bytes", p.Ops[i].Rank, p.Index(i), p.Kind(i), most, p.Ops[i].Size)
	}
	if o.Timeline != nil {
		o.Timeline.Begin(p.Layout())
	}
	started := time.Now()
	n, err := newNetwork(&o)
	if err != nil {
		return nil, nil, err
	}
	if o.named != nil && o.OnSample != nil {
		o.named(o.Network.PortNames())
	}
	n.observe(o.Timeline, p.Unit)
	n.ends = topology.NewEnds(n.topology, n.intact, o.Placement.Hosts, o.Placement.NICs, p)
	if n.failures != nil {
		n.ends.SetWorks(n.connects)
	}
	warnBefore(p, n, &o)
	var out *sim.Outcome
	var path *sim.Path
	if r.rules == CompatATLAHS {
		out, err = runATLAHS(p, n, &o)
	} else {
		out, path, err = runEngine(p, n, &o)
	}
	if err != nil {
		return nil, nil, err
	}
	out.Events += n.events
	result := out.Result(p)
	result.Finished(started)
	result.Backend, result.Model, result.Params = Backend.Name, o.Params.Transport, o.Params.values()
	result.Settings = o.Params.String()
	result.Path = path
	report := newReport(p, n, &o)
	warnAfter(report, n, &o, r.flows)
	return result, report, nil
}

// runEngine replays on the engine. It returns the critical path if the options ask for it.
func runEngine(p *sim.Program, n *network, o *Options) (*sim.Outcome, *sim.Path, error) {
	rules := o.Params.Coupling.Rules
	c := &coupling{program: p, n: n, params: &o.Params.Coupling,
		quirks: couplingQuirksOf(rules)}
	c.end = math.MaxUint64
	if o.Params.End > 0 {
		c.end = uint64(o.Params.End)
	}
	if rules == CompatHTSim { // the other fields have no effect then
		o.Params.Coupling = Coupling{Rules: CompatHTSim}
	}
	if c.quirks.numberByTag {
		c.flowIDs = flowNumbers(p)
	}
	host := sim.Host{
		Busy:       func(uint64) uint64 { return uint64(o.Params.Coupling.Overhead) },
		Rendezvous: uint64(o.Params.Coupling.Rendezvous), Acknowledged: true,
	}
	c.nicFree = make([]uint64, p.Ranks()*max(1, p.NICs))
	c.nics = max(1, p.NICs)
	if o.Timeline != nil {
		c.sent = make([]uint64, p.NumOps())
	}
	e, err := sim.NewEngine(p, host, c, o.Timeline, 1)
	if err != nil {
		return nil, nil, err
	}
	if o.Path {
		e.RecordPath()
		c.unloaded = newUnloaded(n, o)
	}
	e.SetProgress(o.Progress)
	e.SetContext(o.Context)
	n.driver = c
	out, err := e.Run()
	if err = cmp.Or(err, n.err); err != nil {
		return nil, nil, err
	}
	if c.stopped {
		out.Aborted = fmt.Sprintf("the run stopped at --end %v", o.Params.End)
	}
	if o.Path {
		return out, e.Path(), nil
	}
	return out, nil, nil
}

// flowNumbers returns a number for each message, from 1. htsim numbers flows by their line in the connection matrix,
// which is the tag; ties are ordered by rank.
func flowNumbers(p *sim.Program) []uint32 {
	ids := make([]uint32, p.NumOps())
	var sends []uint32
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Flags&sim.IsColl == sim.IsSend && op.Size > 0 {
			sends = append(sends, uint32(i))
		}
	}
	slices.SortStableFunc(sends, func(a, b uint32) int { return cmp.Compare(p.Tag(&p.Ops[a]), p.Tag(&p.Ops[b])) })
	for k, i := range sends {
		ids[i] = uint32(k + 1)
	}
	return ids
}

// maxHeader is the largest header or control packet in bytes.
const maxHeader = 4096

// Check returns an error if a parameter is missing or out of range.
func (p *Params) Check() error {
	t, err := FindTransport(p.Transport)
	if err != nil {
		return err
	}
	for name, v := range p.TransportParams {
		parameter, err := t.Find(name)
		if err != nil {
			return err
		}
		if err := parameter.check(v); err != nil {
			return err
		}
		least := math.Ceil(parameter.Min * float64(p.MSS))
		if parameter.Unit == Packets && v >= sizes && v-sizes < least {
			return fmt.Errorf("%s: expected at least %v bytes, %v packets, found %v bytes", name, least, parameter.Min,
				v-sizes)
		}
	}
	for i := range t.Parameters {
		if _, ok := p.TransportParams[t.Parameters[i].Name]; !ok {
			return fmt.Errorf("transport %s: expected a value of %s, found none", t.Name, t.Parameters[i].Name)
		}
	}
	if _, err := p.discipline(t); err != nil {
		return err
	}
	c := &p.Coupling
	switch {
	case p.HeaderSize < 0 || p.HeaderSize > maxHeader || p.HeaderSize == 0 && t.discipline == trimming:
		return fmt.Errorf("--header-size: expected 1 to %[2]d bytes, found %[1]d", p.HeaderSize, maxHeader)
	case p.ControlSize < 1 || p.ControlSize > maxHeader:
		return fmt.Errorf("--control-size: expected 1 to %[2]d bytes, found %[1]d", p.ControlSize, maxHeader)
	case p.MSS < 1 || p.MSS > math.MaxUint16-max(64, p.HeaderSize):
		return fmt.Errorf("--mss: expected 1 to %[2]d bytes, found %[1]d", p.MSS, math.MaxUint16-max(64, p.HeaderSize))
	case p.Queue < 0 || p.ControlQueue < 0:
		return fmt.Errorf("--queue and --control-queue: expected 0 or more bytes, found %d and %d", p.Queue,
			p.ControlQueue)
	case p.SharedBuffer < 0 || p.SharedBuffer > 0 && p.SharedBuffer < p.MSS+p.HeaderSize:
		return fmt.Errorf("--buffer: expected at least a full packet of %d bytes, found %d", p.MSS+p.HeaderSize,
			p.SharedBuffer)
	case p.BufferShare != 0 && !(p.BufferShare >= 0.001 && p.BufferShare <= maxBufferShare):
		return fmt.Errorf("--buffer-share: expected 0.001 to %d, found %v", maxBufferShare, p.BufferShare)
	case p.ControlRatio < 0 || p.ControlRatio > math.MaxInt32:
		return fmt.Errorf("--control-ratio: expected 1 to %[2]d packets, found %[1]d", p.ControlRatio, math.MaxInt32)
	case p.ECNMin < 0 || p.ECNMax < p.ECNMin:
		return fmt.Errorf("--ecn: expected KMIN <= KMAX, found %d and %d bytes",
			p.ECNMin, p.ECNMax)
	case p.Entropy < 1 || p.Entropy > math.MaxUint16+1:
		return fmt.Errorf("--entropy: expected 1 to %[2]d values, found %[1]d", p.Entropy, math.MaxUint16+1)
	case int(p.Balance) >= len(balances):
		return fmt.Errorf("balance: expected 0 to %[2]d, found %[1]d", p.Balance, len(balances)-1)
	case min(p.Flowlet, p.End, c.Overhead, c.Gap, c.LocalLatency) < 0 || min(c.Rendezvous, c.LocalRate) < 0:
		return errors.New("expected times, sizes and rates of at least 0, found a negative one")
	}
	return nil
}
