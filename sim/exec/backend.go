// Package exec runs a trace on a network simulator in another process, the peer, over a pair of pipes.
//
// docs/reference/backends/exec.md defines the protocol and the rules.
package exec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/shell"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "exec",
	Title: "a network simulator of your own, in another process",
	New:   func() sim.Backend { return newBackend("") },
	With:  func(command string) sim.Backend { return newBackend(command) },
}

// Choices of --send-ends.
const (
	endsAtStart    = "start"
	endsAtSent     = "sent"
	endsAtDelivery = "delivered"
)

// backend is the configuration of the backend.
type backend struct {
	command   string
	arguments []string
	config    []string // KEY=VALUE
	timeout   dag.Time
	window    dag.Time

	hosts     int // 0: as many as the ranks need
	nics      int
	placement topology.Placement
	placed    bool // the caller chose the placement
	seed      int64

	overhead dag.Time
	ends     string // "": endsAtSent if the peer has the feature, otherwise endsAtStart
	local    topology.Local

	split []string // words of the command
}

func newBackend(command string) *backend {
	return &backend{command: command, timeout: 60 * dag.Second, nics: 1, placement: topology.DefaultPlacement, seed: 1}
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Nodes: true, Path: true}
}

func (b *backend) Params() param.Set {
	set := param.Set{
		param.Strings(&b.arguments, "exec-arg", "further argument of the command; repeatable").Placeholder("text"),
		param.Func("key=value", "set", "setting for the peer, in a line \"config KEY VALUE\"", b.assign).Repeats(),
		param.Time(&b.timeout, "exec-timeout", "longest time without an answer of the peer; 0: unlimited"),
		param.Time(&b.window, "exec-window", "longest simulated time that the reports of one answer span").Sweep(),
		param.Func("ends", "send-ends", "event that ends a send: start (its handover), sent (its last byte leaves the "+
			"host) or delivered", func(text string) error {
			b.ends = text
			return nil
		}).Among(endsAtStart, endsAtSent, endsAtDelivery).Default("sent if the peer reports it, otherwise start"),
		param.Int(&b.hosts, "hosts", "hosts of the peer's network").Range(0, math.MaxInt32).
			Default("as many as the ranks need"),
		topology.PlacementParam(&b.placement),
		param.Int(&b.nics, "nics", "NICs per rank; each NIC is one host of the network"),
		param.TimeIn(&b.overhead, dag.Nanosecond, "o",
			"processor time per message at both ends; without unit in ns").Sweep(),
		param.Func("rate", "local-rate", "rate of messages between ranks on one host", b.local.SetRate).
			Default("unlimited"),
		param.Time(&b.local.Latency, "local-latency", "latency of messages between ranks on one host").Sweep(),
		param.Int(&b.seed, "seed", "seed of random choices").Sweep(),
	}
	for _, s := range b.settings() { // part of the identity of runs
		text, _ := s.Value.(string)
		set = append(set, param.String(&text, s.Name, "setting for the peer").Only())
	}
	return set
}

// assign adds a setting for the peer.
func (b *backend) assign(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" || value == "" || strings.ContainsAny(key, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
		return fmt.Errorf("expected KEY=VALUE without line ends and without spaces in KEY, found %q", text)
	}
	b.config = append(b.config, text)
	return nil
}

// cutSetting returns the key and the value of a setting.
func cutSetting(text string) (key, value string) {
	key, value, _ = strings.Cut(text, "=")
	return key, value
}

// settings returns the settings by key. The value of a repeated key has commas.
func (b *backend) settings() (all sim.Values) {
	for _, text := range b.config {
		key, value := cutSetting(text)
		if i := slices.IndexFunc(all, func(v sim.Value) bool { return v.Name == key }); i >= 0 {
			all[i].Value = fmt.Sprint(all[i].Value, ",", value)
		} else {
			all = append(all, sim.Value{Name: key, Value: value})
		}
	}
	return all
}

func (b *backend) Check(env *sim.Env) (err error) {
	b.placed = env.IsGiven("placement")
	switch {
	case strings.TrimSpace(b.command) == "":
		return param.Errorf("backend", "exec needs a command, as in --backend \"exec:./peer --latency 500ns\"; "+
			"\"simulate --help exec\" has the protocol")
	case b.nics < 1 || b.nics > math.MaxInt32:
		return param.Errorf("nics", "expected 1 to %d, found %d", math.MaxInt32, b.nics)
	case b.timeout < 0 || b.window < 0 || b.overhead < 0 || b.local.Latency < 0:
		return errors.New("expected times of at least 0, found a negative one")
	}
	if b.split, err = shell.Split(b.command); err != nil {
		return param.Errorf("backend", "%s: %v", b.command, err)
	}
	return b.placement.Check()
}

// words returns the command and its arguments.
func (b *backend) words() []string {
	return slices.Concat(b.split, b.arguments)
}

// Lowers selects all collectives: the backend runs sends, receives and calcs only.
func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// place returns the hosts of the ranks and the number of hosts.
func (b *backend) place(ranks int, nodes []int32, shared bool) (first []uint32, hosts int, err error) {
	by := b.placement.OrNodes(shared, b.placed)
	hosts = b.hosts
	switch {
	case hosts > 0:
	case by.ByRank():
		hosts = math.MaxInt32 // for now
	default:
		hosts = max(1, ranks) * b.nics
	}
	if hosts > math.MaxInt32 {
		return nil, 0, fmt.Errorf("%d ranks with %d NICs each need more than %d hosts; use fewer --nics", ranks, b.nics,
			math.MaxInt32)
	}
	if first, err = by.Place(ranks, hosts, b.nics, b.seed, nodes); err != nil {
		return nil, 0, err
	}
	if err := topology.CheckHosts(first, b.nics, ranks, hosts); err != nil {
		return nil, 0, err
	}
	if b.hosts == 0 && by.ByRank() {
		hosts = b.nics
		for _, host := range first {
			hosts = max(hosts, int(host)+b.nics)
		}
	}
	return first, hosts, nil
}

// replay is a compiled trace with the backend's configuration.
type replay struct {
	b       *backend
	env     *sim.Env
	program *sim.Program
	nodes   []int32 // by rank; nil: the trace has none
	shared  bool    // the ranks on a node share its NICs
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	env = env.OrEmpty()
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	r := &replay{b: b, env: env, nodes: h.Nodes}
	if r.shared, err = env.SharesNICs(s); err != nil {
		return nil, err
	}
	if r.program, err = sim.Compile(s, sim.CompileOptions{DenseStreams: true, Context: env.Context}); err != nil {
		return nil, err
	}
	r.program.WarnShortReceives(env)
	return r, nil
}

func (r *replay) Clone() sim.Replay {
	clone := *r
	clone.program = r.program.Clone()
	return &clone
}

func (r *replay) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *r.b
	b.config = slices.Clone(b.config)
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	failed := &sim.Result{Backend: Backend.Name, Params: b.values()}
	if err := sim.Interrupted(o.Context); err != nil {
		return failed, err
	}
	first, hosts, err := b.place(r.program.Ranks(), r.nodes, r.shared)
	if err != nil {
		return failed, err
	}
	result, err := r.runOn(&b, first, hosts, &o)
	if err != nil {
		return failed, err
	}
	if r.shared && !b.placed {
		result.AddSharedNICs(r.nodes)
	}
	return result, nil
}

// runOn starts the peer, runs the trace and ends the peer.
func (r *replay) runOn(b *backend, first []uint32, hosts int, o *sim.RunOptions) (*sim.Result, error) {
	fail := func(err error) error { return fmt.Errorf("exec:%s: %w", b.command, err) }
	started := time.Now()
	p, err := startPeer(o.Context, b, hosts, r.env)
	if err != nil {
		return nil, fail(err)
	}
	c := &coupling{peer: p.conversation, hosts: first, nics: b.nics, local: b.local, ends: b.ends}
	result, err := r.converse(b, p, c, o)
	state := p.process.end(err != nil)
	switch {
	case err != nil:
		if errors.Is(err, sim.ErrTooLong) { // not the fault of the peer
			return nil, err
		}
		return nil, fail(p.reason(err))
	case state == nil:
		r.env.Warnf("exec:%s: it did not end within %v after \"bye\", and was terminated", b.command, politeTime)
	case !state.Success():
		return nil, fail(fmt.Errorf("expected exit status 0 after \"bye\", found %v", state))
	}
	result.Finished(started)
	result.Backend, result.Model = Backend.Name, p.peer.name
	b.ends = c.ends
	result.Params = append(b.values(), sim.Value{Name: "peer", Value: p.peer.name + " " + p.peer.version},
		sim.Value{Name: "hosts", Value: hosts})
	result.Settings = fmt.Sprintf("hosts=%d send-ends=%s o=%v", hosts, c.ends, b.overhead)
	return result, nil
}

// converse runs the trace on a peer that has answered hello.
func (r *replay) converse(b *backend, p *peer, c *coupling, o *sim.RunOptions) (*sim.Result, error) {
	if c.ends == "" {
		if c.ends = endsAtStart; p.sent {
			c.ends = endsAtSent
		}
	}
	if c.ends == endsAtSent && !p.sent {
		return nil, fmt.Errorf("the simulator %s lacks the feature sent; use another --send-ends", p.peer.name)
	}
	c.arrived = make([]inbox, r.program.Ranks())
	if o.Timeline != nil {
		c.sent = make([]uint64, r.program.NumOps())
		o.Timeline.Begin(r.program.Layout())
	}
	host := sim.Host{
		Busy:       func(uint64) uint64 { return uint64(b.overhead) },
		Rendezvous: math.MaxUint64, Timely: true, Acknowledged: !c.endsAtHandover(),
	}
	e, err := sim.NewEngine(r.program, host, c, o.Timeline, 1)
	if err != nil {
		return nil, err
	}
	if o.Path != nil {
		e.RecordPath()
	}
	e.SetProgress(o.Progress)
	e.SetContext(o.Context)
	out, err := e.Run()
	if err = cmp.Or(c.err, err); err != nil {
		return nil, err
	}
	stats, err := p.finish()
	if err != nil {
		return nil, err
	}
	result := out.Result(r.program)
	if o.Path != nil {
		result.Path = e.Path()
		result.Add(result.Path.Section(o.Path))
	}
	c.addSections(result, stats, b.window > 0)
	return result, nil
}

// addSections adds the counters of the peer and those of late messages.
func (c *coupling) addSections(result *sim.Result, stats sim.Values, window bool) {
	if window {
		result.Add(sim.Section{Key: "late_sends", Value: c.late.sends, At: sim.Early,
			Rows: []sim.Row{sim.Rowf("late sends", "%d, by at most %v", c.late.sends, dag.Time(c.late.largest))}})
		result.Add(sim.Section{Key: "largest_lateness_ps", Value: c.late.largest, At: sim.Early})
	}
	if len(stats) == 0 {
		return
	}
	var rows []sim.Row
	for _, s := range stats[:min(len(stats), listedStats)] {
		rows = append(rows, sim.Rowf(s.Name, "%v", s.Value))
	}
	result.Add(sim.Section{Key: "backend_stats", Value: stats, At: sim.Early, Rows: rows})
}

// listedStats is the largest number of counters in the summary.
const listedStats = 20

// values returns the parameters for results.
func (b *backend) values() sim.Values {
	all := sim.Values{
		{Name: "command", Value: shell.Join(b.words()...)}, {Name: "send_ends", Value: b.ends},
		{Name: "o_ps", Value: b.overhead}, {Name: "nics", Value: b.nics},
		{Name: "placement", Value: b.placement.String()}, {Name: "local_bits_s", Value: b.local.Rate},
		{Name: "local_latency_ps", Value: b.local.Latency},
	}
	if b.window > 0 {
		all = append(all, sim.Value{Name: "window_ps", Value: b.window})
	}
	if settings := b.settings(); len(settings) > 0 {
		all = append(all, sim.Value{Name: "set", Value: settings})
	}
	return all
}
