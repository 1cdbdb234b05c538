package sim

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
)

// Path is a critical path: a chain of steps from time 0 to the makespan, each of which waited last for the previous
// one. docs/reference/simulate.md defines it.
type Path struct {
	Unit   dag.Time
	Steps  []PathStep  // in time order; each begins when the previous one ends
	Counts *PathCounts // nil if the backend does not count
}

// PathStep is a stretch of a critical path. Times are in Path.Unit.
type PathStep struct {
	Rank, Op   uint32 // Op is the index within the rank; for a part of the network, the send of the message
	Kind       dag.Kind
	Part       PathPart
	Lead       Lead
	Start, End uint64
}

// PathPart is what happens in a step.
type PathPart uint8

// Parts of a path.
const (
	PathCompute  PathPart = iota
	PathOverhead          // o and O of LogGOPS: the processor's time of a message
	PathLatency           // L of LogGOPS; links and switches of an idle network
	PathBytes             // G of LogGOPS: the bytes of a message beyond the first; those on the link of the sender
	PathGap               // g of LogGOPS: the gap after an earlier message of the NIC
	PathQueueing          // the bytes of an earlier message of the NIC; all that an idle network does not take
	PathNetwork           // a message in any other network, with its queues
	PathMemory
	PathStorage
	PathNoise // operating-system noise
	PathWait  // time until the release of the first op
	pathParts
)

var pathPartNames = [pathParts]struct{ key, text string }{
	{"compute", "compute"}, {"overhead", "overhead"}, {"latency", "latency"}, {"bytes", "bytes"}, {"gap", "gaps"},
	{"queueing", "queueing"}, {"network", "network"}, {"mem", "memory"}, {"io", "I/O"}, {"noise", "noise"},
	{"wait", "waiting for a release time"},
}

// PathCounts are the derivatives of the path's length by the parameters of LogGOPS: numbers of latencies, overheads and
// gaps on the path, and bytes beyond the first of each message, on the wire and in the processor.
type PathCounts struct {
	L        int64 `json:"L"`
	Overhead int64 `json:"o"`
	Gap      int64 `json:"g"`
	GBytes   int64 `json:"G_bytes"`
	OBytes   int64 `json:"O_bytes"`
}

// Lead is the reason why a step begins or, for a step of length 0, why it ends.
type Lead uint8

// Reasons of a step.
const (
	AtZero       Lead = iota // none: the op starts at time 0
	ByRelease                // the op's release time
	ByDep                    // the end of the previous op, a dependency
	ByStartDep               // the start of the previous op, a start dependency
	ByMessage                // the op receives the message sent by the previous op
	ByCollective             // the op is a collective; the previous op was the last one that it waited for
	ByStream                 // the previous op occupied its stream
	ByNetwork                // the message of the previous step travels, or occupied the NIC
	ByPost                   // the post of the receive, for which the message waited
)

func (l Lead) String() string {
	return [...]string{"start", "release", "dep", "start_dep", "message", "collective", "stream", "network", "post"}[l]
}

// PathOptions select what a section about a critical path contains.
type PathOptions struct {
	// Names returns the name of an op and, for a message of a lowered collective, the name and the number of the
	// collective, otherwise -1. "": unnamed. nil: all are.
	Names func(rank, op int) (name string, number int64)
	Steps bool // list the steps
}

// Length returns the end of the last step.
func (p *Path) Length() uint64 {
	if len(p.Steps) == 0 {
		return 0
	}
	return p.Steps[len(p.Steps)-1].End
}

// Ops returns the number of ops of the path.
func (p *Path) Ops() int {
	n := 0
	for k := range p.Steps {
		if k == 0 || p.Steps[k].Rank != p.Steps[k-1].Rank || p.Steps[k].Op != p.Steps[k-1].Op {
			n++
		}
	}
	return n
}

// totals returns the time of each part.
func (p *Path) totals() (parts [pathParts]uint64) {
	for k := range p.Steps {
		parts[p.Steps[k].Part] += p.Steps[k].End - p.Steps[k].Start
	}
	return parts
}

// namedTime is the time of all steps of a name or rank.
type namedTime struct {
	name  string
	rank  uint32
	steps int
	ticks uint64
}

// listedNames is the largest number of names and ranks in the section.
const listedNames = 50

// byName returns the times of the names of the path's ops, the longest first. Ops without a name have that of their
// kind.
func (p *Path) byName(names func(rank, op int) (string, int64)) []namedTime {
	at := make(map[string]int)
	var all []namedTime
	for k := range p.Steps {
		s := &p.Steps[k]
		name := ""
		if names != nil {
			name, _ = names(int(s.Rank), int(s.Op))
		}
		if name == "" {
			name = s.Kind.String()
		}
		i, known := at[name]
		if !known {
			i = len(all)
			at[name] = i
			all = append(all, namedTime{name: name})
		}
		all[i].steps++
		all[i].ticks += s.End - s.Start
	}
	slices.SortStableFunc(all, func(a, b namedTime) int {
		return cmp.Or(cmp.Compare(b.ticks, a.ticks),
			cmp.Compare(a.name, b.name))
	})
	return all[:min(len(all), listedNames)]
}

// byRank returns the times of the path's ranks, the longest first.
func (p *Path) byRank() []namedTime {
	at := make(map[uint32]int)
	var all []namedTime
	for k := range p.Steps {
		s := &p.Steps[k]
		i, known := at[s.Rank]
		if !known {
			i = len(all)
			at[s.Rank] = i
			all = append(all, namedTime{rank: s.Rank})
		}
		all[i].steps++
		all[i].ticks += s.End - s.Start
	}
	slices.SortFunc(all, func(a, b namedTime) int {
		return cmp.Or(cmp.Compare(b.ticks, a.ticks), cmp.Compare(a.rank,
			b.rank))
	})
	return all[:min(len(all), listedNames)]
}

// Section returns the section "critical_path" of a result. o may be nil.
func (p *Path) Section(o *PathOptions) Section {
	if o == nil {
		o = &PathOptions{}
	}
	s := Section{
		Key: "critical_path", Value: &pathJSON{p, o}, At: Late, RowsAfter: "makespan",
		Rows: []Row{Rowf("critical path", "%d ops, %s", p.Ops(), p.shares())},
	}
	if c := p.Counts; c != nil {
		s.Rows = append(s.Rows, Rowf("sensitivity", "per unit of L %d, o %d, g %d, G %d bytes, O %d bytes", c.L,
			c.Overhead,
			c.Gap, c.GBytes, c.OBytes))
	}
	if o.Steps {
		s.Tables = func(w io.Writer) { p.print(w, o.Names) }
	}
	return s
}

// pathJSON is a critical path as a member of a result.
type pathJSON struct {
	path *Path
	o    *PathOptions
}

// WriteJSON writes the path as a JSON object.
func (j *pathJSON) WriteJSON(w io.Writer) error {
	out, p := bufio.NewWriter(w), j.path
	ps := func(ticks uint64) string {
		b, _ := Clock{ticks, p.Unit}.AppendText(nil)
		return string(b)
	}
	totals := p.totals()
	fmt.Fprintf(out, `{"length_ps":%s,"compute_share":%s`, ps(p.Length()),
		strconv.FormatFloat(ratio(totals[PathCompute], p.Length()), 'g', -1, 64))
	for k, ticks := range totals {
		fmt.Fprintf(out, `,"%s_ps":%s`, pathPartNames[k].key, ps(ticks))
	}
	fmt.Fprintf(out, `,"ops":%d`, p.Ops())
	if p.Counts != nil {
		b, err := MarshalJSON(p.Counts)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, `,"sensitivity":%s`, b)
	}
	out.WriteString(`,"by_name":[`)
	for k, t := range p.byName(j.o.Names) {
		if k > 0 {
			out.WriteByte(',')
		}
		name, err := MarshalJSON(t.name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, `{"name":%s,"steps":%d,"time_ps":%s}`, name, t.steps, ps(t.ticks))
	}
	out.WriteString(`],"by_rank":[`)
	for k, t := range p.byRank() {
		if k > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, `{"rank":%d,"steps":%d,"time_ps":%s}`, t.rank, t.steps, ps(t.ticks))
	}
	out.WriteByte(']')
	if j.o.Steps {
		out.WriteString(`,"path":[`)
		for k := range p.Steps {
			s := &p.Steps[k]
			if s.Part == PathWait { // the first one
				continue
			}
			if k > 0 && p.Steps[k-1].Part != PathWait {
				out.WriteByte(',')
			}
			fmt.Fprintf(out, `{"rank":%d,"op":%d,"kind":"%s","part":"%s","start_ps":%s,"end_ps":%s,"led_by":"%s"`,
				s.Rank,
				s.Op, s.Kind, pathPartNames[s.Part].key, ps(s.Start), ps(s.End), s.Lead)
			if err := writeName(out, j.o.Names, s); err != nil {
				return err
			}
			out.WriteByte('}')
		}
		out.WriteByte(']')
	}
	out.WriteByte('}')
	return out.Flush()
}

// writeName writes the name of a step's op, if it has one, such as "allreduce #17".
func writeName(out *bufio.Writer, names func(rank, op int) (string, int64), s *PathStep) error {
	if names == nil {
		return nil
	}
	name, number := names(int(s.Rank), int(s.Op))
	if name == "" {
		return nil
	}
	if number >= 0 {
		name += fmt.Sprintf(" #%d", number)
	}
	quoted, err := MarshalJSON(name)
	fmt.Fprintf(out, `,"name":%s`, quoted)
	return err
}

// ratio returns part/whole, or 0 if both are 0.
func ratio(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// shares returns the composition of the path, such as "75% compute, 25% latency".
func (p *Path) shares() string {
	totals := p.totals()
	text := fmt.Sprintf("%.4g%% compute", 100*ratio(totals[PathCompute], p.Length()))
	for k := PathCompute + 1; k < pathParts; k++ {
		if totals[k] > 0 {
			text += fmt.Sprintf(", %.4g%% %s", 100*ratio(totals[k], p.Length()), pathPartNames[k].text)
		}
	}
	return text
}

// print prints the path as a table with one line per stretch on one rank, and one of the names.
func (p *Path) print(w io.Writer, names func(rank, op int) (string, int64)) {
	clock := func(t uint64) Clock { return Clock{t, p.Unit} }
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "\nfrom\tto\trank\tops\tcount\tbusy\tled by")
	for k := 0; k < len(p.Steps); {
		first := &p.Steps[k]
		if first.Part == PathWait {
			k++
			continue
		}
		last, busy, next, count := first, first.End-first.Start, k+1, 1
		for ; next < len(p.Steps); next++ {
			s := &p.Steps[next]
			if s.Rank != first.Rank {
				break
			}
			if s.Op != last.Op {
				count++
			}
			last, busy = s, busy+s.End-s.Start
		}
		ops := strconv.Itoa(int(first.Op))
		if last.Op != first.Op {
			ops += fmt.Sprintf("..%d", last.Op)
		}
		fmt.Fprintf(tab, "%v\t%v\t%d\t%s\t%d\t%v\t%s\n", clock(first.Start), clock(last.End), first.Rank, ops, count,
			clock(busy), first.Lead)
		k = next
	}
	if names != nil {
		fmt.Fprintln(tab, "\non the critical path\tsteps\ttime\tshare")
		for _, t := range p.byName(names) {
			fmt.Fprintf(tab, "%s\t%d\t%v\t%.4g%%\n", strconv.Quote(t.name), t.steps, clock(t.ticks),
				100*ratio(t.ticks, p.Length()))
		}
	}
	tab.Flush()
}

// Tracer is implemented by networks that explain their part of the critical path.
type Tracer interface {
	// Trace walks back from the time at which the last byte of message m arrives or, if it leaves, leaves the sender,
	// to the time at which the path enters the network. It reports the steps in between to w. It returns the message
	// with which the path enters, and whether the post of its receive made it enter, not the end of its overhead.
	Trace(w *PathWalk, m uint32, leaves bool) (message uint32, posted bool)
}

// PathWalk is the critical path of a run as it is found, from its end to its start.
type PathWalk struct {
	e    *Engine
	path *Path
	now  uint64 // start of the last step
}

// Step adds a step of an op with the given length, which ends where the previous one starts.
func (w *PathWalk) Step(i uint32, part PathPart, length uint64, l Lead) {
	p := w.e.p
	w.path.Steps = append(w.path.Steps, PathStep{Rank: p.Ops[i].Rank, Op: uint32(p.Index(i)), Kind: p.Kind(i),
		Part: part,
		Lead: l, Start: w.now - length, End: w.now})
	w.now -= length
}

// Op returns an op.
func (w *PathWalk) Op(i uint32) *Op {
	return &w.e.p.Ops[i]
}

// Counts returns the counters of the path.
func (w *PathWalk) Counts() *PathCounts {
	return w.path.Counts
}

// Posted reports whether message m waited for the post of its receive, not the receive for its request.
func (w *PathWalk) Posted(m uint32) bool {
	return w.e.causes.match[m]&byPost != 0
}

// Path returns the critical path of a run with RecordPath: to the op that ends at the makespan, the one of the lowest
// rank if there are several.
func (e *Engine) Path() *Path {
	w := &PathWalk{e: e, path: &Path{Unit: dag.Picosecond}}
	tracer, _ := e.network.(Tracer)
	if tracer != nil {
		w.path.Counts = &PathCounts{}
	}
	last, latest := uint32(NoOp), uint64(0)
	for r := range e.p.Ranks() {
		if i := e.causes.ends[r]; i != NoOp && (last == NoOp || e.ranks[r].finish > latest) {
			last, latest = i, e.ranks[r].finish
		}
	}
	if last == NoOp {
		return w.path
	}
	w.now = latest
	w.walk(last, tracer)
	slices.Reverse(w.path.Steps)
	return w.path
}

// walk walks back from the end of op i at the time now.
func (w *PathWalk) walk(i uint32, tracer Tracer) {
	e, c := w.e, w.e.causes
	l := afterEnd | lead(i)
	for {
		i := l.op()
		op := &e.p.Ops[i]
		switch event := l.event(); {
		case event == afterStart && e.host.Returns && op.Flags&IsColl == IsSend:
			w.span(i, e.sending(i, op), PathOverhead, leadOf(c.lead[i]))
			l = w.start(i, c.lead[i])
		case event == afterStart || event == onPost:
			l = w.start(i, c.lead[i])
		case event == onArrival:
			l = w.network(op.Link(), false, tracer)
		case event == afterEnd && op.Flags&IsColl == IsSend && e.leavesEnd(i, op):
			l = w.network(i, true, tracer)
		case op.Flags&IsColl == IsRecv:
			taken := lead(c.taken[i])
			w.span(i, e.receiving(op.Link(), &e.p.Ops[op.Link()]), PathOverhead, leadOf(taken))
			l = taken
		case op.Flags&IsSend != 0:
			w.span(i, e.sending(i, op), PathOverhead, leadOf(c.lead[i]))
			l = w.start(i, c.lead[i])
		default:
			w.span(i, op.Size, [...]PathPart{CalcSpan: PathCompute, MemSpan: PathMemory,
				IOSpan: PathStorage}[workSpan(op)],
				leadOf(c.lead[i]))
			l = w.start(i, c.lead[i])
		}
		if l == noLead {
			return
		}
	}
}

// leadOf returns the reason of a step that begins with an event.
func leadOf(l lead) Lead {
	return [...]Lead{ByRelease, ByDep, ByStartDep, ByStream, ByMessage, ByPost}[l>>opBits]
}

// start returns the event before the start of an op. Without one, it ends the path with the wait for its release.
func (w *PathWalk) start(i uint32, before lead) lead {
	if before != noLead {
		return before
	}
	if n := len(w.path.Steps); n > 0 && w.path.Steps[n-1].Lead == ByRelease && w.now == 0 {
		w.path.Steps[n-1].Lead = AtZero
	}
	if w.now > 0 {
		w.Step(i, PathWait, w.now, AtZero)
	}
	return noLead
}

// span adds the span of op i, which has the given length without noise.
func (w *PathWalk) span(i uint32, length uint64, part PathPart, l Lead) {
	if part == PathOverhead && w.path.Counts != nil {
		op := &w.e.p.Ops[i]
		if op.Flags&IsRecv != 0 {
			op = &w.e.p.Ops[op.Link()]
		}
		w.path.Counts.Overhead++
		w.path.Counts.OBytes += int64(min(max(op.Size, 1)-1, math.MaxInt64))
	}
	if start := w.e.causes.start; start != nil && w.e.host.Work != nil && w.now-start[i] > length {
		w.Step(i, PathNoise, w.now-start[i]-length, l)
	}
	w.Step(i, part, length, l)
}

// network walks back from the time at which message m arrives or, if it leaves, ends its send.
func (w *PathWalk) network(m uint32, leaves bool, tracer Tracer) lead {
	e, c := w.e, w.e.causes
	send := &e.p.Ops[m]
	if tracer != nil {
		m, posted := tracer.Trace(w, m, leaves)
		if posted {
			return onPost | lead(e.p.Ops[m].Link())
		}
		return afterSpan | lead(m)
	}
	begun := c.start[m] + e.sending(m, send)
	if e.waits(m, send) {
		match := c.match[m] &^ byPost
		w.transit(m, w.now-match, leaves, ByNetwork)
		if w.Posted(m) {
			return onPost | lead(send.Link())
		}
		part := PathNetwork
		if _, knows := e.network.(Unloader); knows {
			part = PathLatency // a request has no queues
		}
		w.Step(m, part, w.now-begun, ByDep)
		return afterSpan | lead(m)
	}
	w.transit(m, w.now-begun, leaves, ByDep)
	return afterSpan | lead(m)
}

// Unloader is implemented by networks that know the time of a message in an idle network.
type Unloader interface {
	// Unloaded returns the time of message m in an idle network in picoseconds, with the answer to its request if it
	// waits for its receive, until its last byte arrives or, if it leaves, until its send ends: the time of its bytes
	// on the link of the sender, and the rest.
	Unloaded(m uint32, leaves bool) (bytes, latency uint64)
}

// transit adds the steps of a message in the network, which take the given time: first what an idle network does not
// take, then the rest.
func (w *PathWalk) transit(m uint32, length uint64, leaves bool, l Lead) {
	network, knows := w.e.network.(Unloader)
	if !knows {
		w.Step(m, PathNetwork, length, l)
		return
	}
	bytes, latency := network.Unloaded(m, leaves)
	bytes = min(bytes, length)
	latency = min(latency, length-bytes)
	queueing := length - bytes - latency
	if latency > 0 {
		w.Step(m, PathLatency, latency, leadWithin(bytes+queueing, l))
	}
	if bytes > 0 || length == 0 {
		w.Step(m, PathBytes, bytes, leadWithin(queueing, l))
	}
	if queueing > 0 {
		w.Step(m, PathQueueing, queueing, l)
	}
}

// leadWithin returns the reason of a step of a message that follows others of the given length, which begin by l.
func leadWithin(before uint64, l Lead) Lead {
	if before > 0 {
		return ByNetwork
	}
	return l
}
