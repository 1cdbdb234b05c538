// This file has the message protocol of SMPI: processor time by size, three protocols by size, and an envelope.
// docs/reference/backends/flow.md defines the rules.

package flow

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Choices of --protocol.
const (
	protocolStrict = "strict"
	protocolSMPI   = "smpi"
)

// DefaultEnvelope is the number of bytes that SMPI adds to each message.
const DefaultEnvelope = 16

// smpi is the configuration of the protocol of SMPI.
type smpi struct {
	protocol string
	given    bool // one of its options is set, which selects the protocol
	file     string

	send, nonBlocking, receive overheads
	asyncSmall, detached       int64 // messages of fewer bytes start at once, and their sends end at once
	envelope                   int64 // bytes that travel with each message
}

// defaultSMPI returns the defaults of SimGrid 3.32.
func defaultSMPI() smpi {
	return smpi{protocol: protocolStrict, detached: 65536, envelope: DefaultEnvelope}
}

// overheads is the time of the processor by size: the entry with the largest from below the size applies, or the first.
type overheads []overhead

type overhead struct {
	from          uint64  // bytes
	seconds, each float64 // for a message, and per byte
}

// at returns the time for a message in picoseconds.
func (t overheads) at(bytes uint64) uint64 {
	if len(t) == 0 {
		return 0
	}
	i := 0
	for i+1 < len(t) && bytes > t[i+1].from {
		i++
	}
	ps := math.Round((t[i].seconds + t[i].each*float64(bytes)) * psPerSecond)
	if !(ps < math.MaxInt64) {
		return math.MaxInt64
	}
	return uint64(ps)
}

func (t overheads) String() string {
	var b strings.Builder
	for i, e := range t {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "%d:%g:%g", e.from, e.seconds, e.each)
	}
	return b.String()
}

// Limits of the tables: the sizes in bytes, the seconds of an overhead and those per byte.
const (
	largestFrom    = 1 << 62
	largestSeconds = 1e6
)

// tableEntry is an entry FROM:VALUE:VALUE... of a table.
type tableEntry struct {
	from   uint64
	values []float64
}

// parseTable reads a table FROM:VALUE[:VALUE]..;.. with at most the given number of values that matter in an entry;
// further ones must be 0, as in SimGrid's defaults. The entries are in ascending order.
func parseTable(text string, values int, least, most float64) (table []tableEntry, err error) {
	for _, part := range strings.Split(strings.TrimSuffix(text, ";"), ";") {
		cells := strings.Split(part, ":")
		if len(cells) < 2 {
			return nil, fmt.Errorf("expected entries FROM:VALUE separated by semicolons, found %.40q", part)
		}
		var e tableEntry
		if e.from, err = strconv.ParseUint(cells[0], 10, 64); err != nil || e.from > largestFrom {
			return nil, fmt.Errorf("expected a size in bytes without unit at the start of %.40q", part)
		}
		for i, cell := range cells[1:] {
			v, err := strconv.ParseFloat(cell, 64)
			switch {
			case err != nil || !(v >= least && v <= most):
				return nil, fmt.Errorf("expected numbers from %g to %g, found %.40q", least, most, cell)
			case i >= values && v != 0:
				return nil, fmt.Errorf("expected at most %d values after the size, found %.40q", values, part)
			}
			e.values = append(e.values, v)
		}
		table = append(table, e)
	}
	slices.SortStableFunc(table, func(a, b tableEntry) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	for i := range table[1:] {
		if table[i].from == table[i+1].from {
			return nil, fmt.Errorf("expected each size once, found %d twice", table[i].from)
		}
	}
	return table, nil
}

// setOverheads returns a function that sets a table of overheads.
func (s *smpi) setOverheads(to *overheads) func(string) error {
	return func(text string) error {
		table, err := parseTable(text, 2, 0, largestSeconds)
		if err != nil {
			return err
		}
		*to, s.given = nil, true
		for _, e := range table {
			o := overhead{from: e.from, seconds: e.values[0]}
			if len(e.values) > 1 {
				o.each = e.values[1]
			}
			*to = append(*to, o)
		}
		return nil
	}
}

// parseFactors reads a table of factors by size.
func parseFactors(text string, least float64) (factors []sizeFactor, err error) {
	table, err := parseTable(text, 1, least, largestFactor)
	for _, e := range table {
		factors = append(factors, sizeFactor{e.from, e.values[0]})
	}
	return factors, err
}

// setLatencies sets the latency factors by size.
func (b *backend) setLatencies(text string) error {
	factors, err := parseFactors(text, 0)
	if err == nil {
		b.model.latencyFactor, b.model.latencies, b.fixed.latency = 1, factors, true
	}
	return err
}

// setBandwidths sets the bandwidth factors by size.
func (b *backend) setBandwidths(text string) error {
	factors, err := parseFactors(text, 1/largestFactor)
	if err == nil {
		b.model.bandwidthFactor, b.model.bandwidths, b.fixed.bandwidth = 1, factors, true
	}
	return err
}

// smpiNames are the parameters of the protocol.
var smpiNames = []string{"protocol", "smpi-options", "os", "ois", "or", "async-small", "detached", "envelope",
	"lat-factors", "bw-factors"}

// smpiParams returns the parameters of the protocol. The names of SimGrid are aliases.
func (b *backend) smpiParams() param.Set {
	s := &b.smpi
	given := func() error { s.given = true; return nil }
	return param.Set{
		param.Choice(&s.protocol, "protocol", "rules of messages: strict (--o and --S), or smpi, which an option "+
			"--smpi-options, --os, --ois, --or, --async-small, --detached or --envelope selects", protocolStrict,
			protocolSMPI),
		param.File(&s.file, "smpi-options", "options of smpirun, one per line, such as --cfg=smpi/os:0:1e-6:0; they "+
			"select the protocol smpi, and --flow-model smpi unless it is given"),
		param.Func("table", "os", "processor time of a blocking send by size: FROM:SECONDS:SECONDS_PER_BYTE;... "+
			"(SimGrid: smpi/os)", s.setOverheads(&s.send)).Alias("smpi/os"),
		param.Func("table", "ois", "processor time of a non-blocking send by size (SimGrid: smpi/ois)",
			s.setOverheads(&s.nonBlocking)).Alias("smpi/ois"),
		param.Func("table", "or", "processor time of a receive of a detached send by size (SimGrid: smpi/or)",
			s.setOverheads(&s.receive)).Alias("smpi/or"),
		param.Size(&s.asyncSmall, "async-small", "messages of fewer bytes do not wait for their receive "+
			"(SimGrid: smpi/async-small-thresh)").Check(given).Alias("async-small-thresh", "smpi/async-small-thresh").
			Sweep(),
		param.Size(&s.detached, "detached", "sends of fewer bytes end after their overhead "+
			"(SimGrid: smpi/send-is-detached-thresh)").Check(given).
			Alias("send-is-detached-thresh", "smpi/send-is-detached-thresh").Sweep(),
		param.Size(&s.envelope, "envelope", "bytes that travel with each message, 1 or more").Check(given).Sweep(),
		param.Func("table", "lat-factors", "latency factors by size, in any protocol: FROM:FACTOR;... "+
			"(SimGrid: smpi/lat-factor)", b.setLatencies).Default(byModel).Alias("lat-factor", "smpi/lat-factor"),
		param.Func("table", "bw-factors", "bandwidth factors by size, in any protocol: FROM:FACTOR;... "+
			"(SimGrid: smpi/bw-factor)", b.setBandwidths).Default(byModel).Alias("bw-factor", "smpi/bw-factor"),
	}
}

// on reports whether messages follow the protocol.
func (s *smpi) on() bool { return s.given || s.protocol == protocolSMPI }

// detaches reports whether a send ends after its overhead.
func (s *smpi) detaches(mode sim.SendMode, bytes uint64) bool {
	switch mode {
	case sim.SynchronousSend:
		return false
	case sim.BufferedSend:
		return true
	}
	return bytes < uint64(s.detached)
}

// check returns an error if the parameters exclude each other.
func (s *smpi) check(b *backend, env *sim.Env) error {
	switch {
	case min(s.asyncSmall, s.detached) < 0:
		return errors.New("expected thresholds of at least 0, found a negative one")
	case s.envelope < 1 || s.envelope > largestFrom:
		return param.Errorf("envelope", "expected 1 byte to 4 EiB, found %d bytes", s.envelope)
	case s.on() && s.protocol == protocolStrict && env.IsGiven("protocol"):
		return param.Errorf("protocol", "expected smpi with options of SMPI, found strict")
	}
	return s.checkRun(b, nil)
}

// checkRun returns an error if the parameters of a run exclude each other, or if the program lacks what the protocol
// needs.
func (s *smpi) checkRun(b *backend, p *sim.Program) error {
	switch {
	case !s.on():
	case b.overhead != 0:
		return param.Errorf("o", "the protocol smpi has --os, --ois and --or instead")
	case b.rendezvous != math.MaxInt64:
		return param.Errorf("S", "the protocol smpi has --async-small and --detached instead")
	case p != nil && p.Windowed():
		return errors.New("the trace is too large for a sweep of thresholds of SMPI; add --protocol smpi")
	}
	return nil
}

// setHost sets how ranks handle messages.
func (s *smpi) setHost(host *sim.Host, p *sim.Program, modes sendModes, calls []sendCall) {
	mode := modes.of(p)
	host.Sending = func(m uint32, bytes uint64) uint64 {
		switch {
		case calls[m] == copies:
			return 0
		case calls[m] == returns && !modes.isPersistent(p, m) && !isLocal(p, m, mode(m)):
			return s.nonBlocking.at(bytes)
		case mode(m) != sim.StandardSend || s.detaches(sim.StandardSend, bytes):
			return s.send.at(bytes)
		}
		return 0
	}
	host.Mode = mode
	host.Behind = func(m uint32) bool { return calls[m] == behind }
	host.ReceivingOf = func(m uint32, bytes uint64) uint64 {
		if calls[m] != copies && s.detaches(mode(m), bytes) {
			return s.receive.at(bytes)
		}
		return 0
	}
	host.Rendezvous, host.Synchronous = uint64(max(s.asyncSmall-1, 0)), s.asyncSmall == 0
	host.Detached, host.Returns, host.Deferred = uint64(s.detached), true, true
}

// sendModes has the modes of the sends of a trace. Those of persistent requests are marked.
type sendModes [][]sim.SendMode // by rank and op; nil for ranks whose sends are standard

// persistent marks the mode of a send of a persistent request.
const persistent sim.SendMode = 1 << 7

// modeSource is a source that records the modes of the sends read.
type modeSource struct {
	dag.Source
	modes sendModes
}

func (s *modeSource) NewReader(dag.Columns) dag.Reader {
	read := s.Source.NewReader(dag.All)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		ranks, err := read(b)
		if err != nil {
			return nil, err
		}
		for i := range min(len(ranks), b.Last-b.First) {
			s.modes[b.First+i] = modesOf(ranks[i])
		}
		return ranks, nil
	}
}

// modesOf returns the modes of the sends of a rank by op, or nil if all are standard.
func modesOf(r *dag.Rank) (modes []sim.SendMode) {
	for op := range min(r.Len(), r.Attrs.Len()) {
		attrs := r.Attrs.At(op)
		if r.Kind[op] != dag.Send || attrs == "" {
			continue
		}
		mode := sim.StandardSend
		name, isPersistent := attr.ParseSendMode(attrs)
		switch name {
		case attr.Synchronous:
			mode = sim.SynchronousSend
		case attr.Buffered:
			mode = sim.BufferedSend
		}
		if isPersistent {
			mode |= persistent
		}
		if mode == sim.StandardSend {
			continue
		}
		if modes == nil {
			modes = make([]sim.SendMode, r.Len())
		}
		modes[op] = mode
	}
	return modes
}

// of returns a function for the mode of a send.
func (s sendModes) of(p *sim.Program) func(m uint32) sim.SendMode {
	return func(m uint32) sim.SendMode {
		if rank := p.Ops[m].Rank; s != nil && s[rank] != nil {
			return s[rank][p.Index(m)] &^ persistent
		}
		return sim.StandardSend
	}
}

// isPersistent reports whether a send is one of a persistent request.
func (s sendModes) isPersistent(p *sim.Program, m uint32) bool {
	rank := p.Ops[m].Rank
	return s != nil && s[rank] != nil && s[rank][p.Index(m)]&persistent != 0
}

// sendCall is what the call of a send does, beside its mode.
type sendCall uint8

const (
	waits   sendCall = iota // a blocking send
	returns                 // a non-blocking send: the call returns before the end of the send
	copies                  // MPI_Sendrecv of a rank with itself: the message does not enter the network
	behind                  // the receive of MPI_Sendrecv, which begins behind the send
)

// sendCalls returns the calls of sends by op, and the receives behind them. A send is non-blocking if others wait for
// its start, or if it and another message of its stream depend on the end or start of the same op, or both on no op. In
// the second case, a send of a rank to itself, followed by a receive of the rank from itself, is a copy.
func sendCalls(p *sim.Program) []sendCall {
	calls := make([]sendCall, p.NumOps())
	messages := make([]int, max(1, p.Streams)) // by stream
	mark := func(ops []uint32) {
		if len(ops) < 2 {
			return
		}
		for _, i := range ops {
			if op := &p.Ops[i]; op.IsMessage() {
				messages[op.Stream]++
			}
		}
		for k, i := range ops {
			op := &p.Ops[i]
			switch {
			case op.Kind() != dag.Send || messages[op.Stream] < 2 || calls[i] != waits:
			case k+1 < len(ops) && ops[k+1] == i+1 && isExchange(p, i):
				calls[i] = copies
			default:
				calls[i] = returns
				if messages[op.Stream] == 2 && k+1 < len(ops) && ops[k+1] == i+1 && isBehind(p, i) {
					calls[i+1] = behind
				}
			}
		}
		for _, i := range ops {
			messages[p.Ops[i].Stream] = 0
		}
	}
	var list []uint32
	for r := range p.Ranks() {
		mark(p.Roots(r))
	}
	for i := range uint32(p.NumOps()) {
		starts := p.StartDependents(i)
		if len(starts) > 0 && p.Ops[i].Kind() == dag.Send {
			calls[i] = returns
		}
		mark(starts)
		list = p.AppendDependents(list[:0], i)
		mark(list)
	}
	return calls
}

// isBehind reports whether the next op of the rank of a send is the receive of the same call, as in MPI_Sendrecv.
func isBehind(p *sim.Program, send uint32) bool {
	s, r := &p.Ops[send], &p.Ops[send+1]
	return r.Kind() == dag.Recv && r.Stream == s.Stream && len(p.StartDependents(send+1)) == 0
}

// isLocal reports whether a send is MPI_Bsend: others depend on its start only. For MPI_Ibsend, a call waits.
func isLocal(p *sim.Program, send uint32, mode sim.SendMode) bool {
	var ends [1]uint32
	return mode == sim.BufferedSend && len(p.AppendDependents(ends[:0], send)) == 0
}

// isExchange reports whether a send and the next op of its rank are MPI_Sendrecv of the rank with itself.
func isExchange(p *sim.Program, send uint32) bool {
	s, r := &p.Ops[send], &p.Ops[send+1]
	return isBehind(p, send) && r.Flags&sim.AnySource == 0 && s.Peer == int32(s.Rank) && r.Peer == s.Peer &&
		len(p.StartDependents(send)) == 0
}

// values returns the parameters for results.
func (s *smpi) values() sim.Values {
	if !s.on() {
		return nil
	}
	return sim.Values{
		{Name: "protocol", Value: protocolSMPI}, {Name: "os", Value: s.send.String()},
		{Name: "ois", Value: s.nonBlocking.String()}, {Name: "or", Value: s.receive.String()},
		{Name: "async_small_bytes", Value: s.asyncSmall}, {Name: "detached_bytes", Value: s.detached},
		{Name: "envelope_bytes", Value: s.envelope},
	}
}

// option is a line of a file of options.
type option struct {
	line        int
	name, value string
}

// parseOptions reads a file of options of SimGrid, one NAME:VALUE per line, with or without --cfg= before it.
func parseOptions(text string) (options []option, err error) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, is := strings.Cut(strings.TrimPrefix(line, "--cfg="), ":")
		if !is || name == "" || strings.ContainsAny(name, " \t<>=") {
			return nil, fmt.Errorf("line %d: expected an option of SimGrid such as --cfg=smpi/os:0:1e-6:0, found %.60q",
				i+1, line)
		}
		options = append(options, option{i + 1, name, strings.TrimSpace(value)})
	}
	return options, nil
}

// mostOptions is the largest size of a file of options in bytes.
const mostOptions = 1 << 20

// sameFactor is the other flag that sets the same factors.
var sameFactor = map[string]string{"latency-factor": "lat-factors", "lat-factors": "latency-factor",
	"bandwidth-factor": "bw-factors", "bw-factors": "bandwidth-factor"}

// readOptions applies the file of options that the caller has not set otherwise. It warns about those without effect.
func (b *backend) readOptions(env *sim.Env) error {
	if b.smpi.file == "" {
		return nil
	}
	text, err := readLimited(b.smpi.file)
	if err != nil {
		return fmt.Errorf("--smpi-options: %w", err)
	}
	options, err := parseOptions(text)
	if err != nil {
		return fmt.Errorf("--smpi-options: %s: %w", b.smpi.file, err)
	}
	b.smpi.given = true
	if _, given := b.settings()["network/model"]; !given && !env.IsGiven("flow-model") {
		if err := b.setModel("smpi"); err != nil {
			return err
		}
	}
	set := b.Params()
	var unused []string
	for _, o := range options {
		i := slices.IndexFunc(set, func(p param.Param) bool { return slices.Contains(p.Aliases, o.name) })
		switch {
		case i < 0:
			unused = append(unused, o.name)
			continue
		case env.IsGiven(set[i].Name) || env.IsGiven(sameFactor[set[i].Name]):
			continue
		}
		if err := set[i].Value.Set(simGridSwitch(set[i].Name, o.value)); err != nil {
			return fmt.Errorf("--smpi-options: %s: line %d: %s: %w", b.smpi.file, o.line, o.name, err)
		}
	}
	if len(unused) > 0 {
		env.Warnf("%s: these options have no effect here: %s", b.smpi.file, strings.Join(unused, ", "))
	}
	return nil
}

// settings returns the options of the platform file.
func (b *backend) settings() map[string]string {
	if b.platform == nil {
		return nil
	}
	return b.platform.Settings
}

// readLimited reads a file of at most mostOptions bytes.
func readLimited(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostOptions+1))
	if err == nil && len(text) > mostOptions {
		err = fmt.Errorf("%s: expected at most %d bytes", name, mostOptions)
	}
	return string(text), err
}
