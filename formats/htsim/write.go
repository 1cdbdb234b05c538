package htsim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/flowio"
)

// lineAttrs keeps the line of a flow that differs from the plain line.
type lineAttrs struct {
	Line string `json:"line"`
}

// notice is the attributes of ops that represent a trigger.
type notice struct {
	Trigger int64 `json:"trigger"`
}

func noticeAttrs(trigger int64) string { return attr.Encode("htsim", notice{trigger}) }

// isNotice reports whether an op represents a trigger.
func isNotice(r *dag.Rank, op int) bool {
	if op >= r.Attrs.Len() {
		return false
	}
	var n notice
	return attr.Decode(r.Attrs.At(op), "htsim", &n) && n.Trigger > 0
}

// appendLine appends the plain line of a flow with a start time.
func appendLine(line []byte, f *flowio.Flow, id, unit int) []byte {
	line = appendEnds(line, f, id)
	line = append(line, " start "...)
	line = flowio.AppendDecimal(line, f.Start, unit, 0)
	line = append(line, " size "...)
	return strconv.AppendInt(line, max(1, f.Bytes), 10)
}

func appendEnds(line []byte, f *flowio.Flow, id int) []byte {
	line = strconv.AppendInt(line, int64(f.Source), 10)
	line = append(line, "->"...)
	line = strconv.AppendInt(line, int64(f.Destination), 10)
	line = append(line, " id "...)
	return strconv.AppendInt(line, int64(id), 10)
}

// file is the content to write for a trace.
type file struct {
	attr.HTSim
	trace *dag.Trace
	sends []flowio.Send
	kept  []string // line of each flow, "" for a plain one; nil: triggers derive from dependencies
	own   func(r *dag.Rank, op int) bool

	// If triggers derive from dependencies: the triggers that start each flow and that its end activates (0: none),
	// and the number of ops whose dependencies no trigger can express.
	starts, ends []int64
	lost, late   int64 // late: flows with both a start time and a trigger
}

// newFile plans the file of a trace. It keeps the lines that the trace was read from if they still describe the
// trace.
func newFile(t *dag.Trace) *file {
	f := &file{trace: t}
	var known bool
	if f.HTSim, known = attr.ParseHTSim(t.Attrs); known && f.Unit >= 0 && f.Unit <= flowio.MaxUnit {
		f.own = isNotice
		f.sends = flowio.Sends(t, true, f.own)
		if f.keep() {
			return f
		}
	}
	*f = file{trace: t, sends: flowio.Sends(t, true, nil)}
	f.plan()
	return f
}

// keep reuses the lines that the trace was read from. It reports whether reading these lines gives the trace.
func (f *file) keep() bool {
	f.kept = make([]string, len(f.sends))
	connections := make([]connection, len(f.sends))
	for k, s := range f.sends {
		flow := flowio.Of(f.trace, s)
		var a lineAttrs
		attr.Decode(flow.Attrs, "htsim", &a)
		connections[k].Flow = flow
		if a.Line == "" {
			continue
		}
		l := textLine(a.Line)
		if l == nil || !strings.Contains(strings.Fields(a.Line)[0], "->") {
			return false
		}
		c := parseConnection(l, f.Unit)
		if l.Failed() || c.Source != flow.Source || c.Destination != flow.Destination || c.Bytes != flow.Bytes ||
			c.Start != flow.Start {
			return false
		}
		f.kept[k], connections[k] = a.Line, c
		connections[k].Attrs = flow.Attrs
	}
	var triggers []trigger
	known := map[int64]bool{}
	for _, text := range f.Triggers {
		l := textLine(text)
		if l == nil || strings.Fields(text)[0] != "trigger" {
			return false
		}
		t := parseTrigger(l)
		if l.Failed() || known[t.id] {
			return false
		}
		known[t.id] = true
		triggers = append(triggers, t)
	}
	for _, text := range f.Failures {
		l := textLine(text)
		if l == nil || strings.Fields(text)[0] != "failure" {
			return false
		}
		if parseFailure(l); l.Failed() {
			return false
		}
	}
	if checkTriggers(connections, triggers) != nil {
		return false
	}
	if len(triggers) == 0 {
		return !hasDeps(f.trace)
	}
	again, err := build(context.Background(), len(f.trace.Ranks), connections, triggers, func(string, ...any) {})
	return err == nil && sameDeps(f.trace, again)
}

func hasDeps(t *dag.Trace) bool {
	return slices.ContainsFunc(t.Ranks, func(r *dag.Rank) bool { return len(r.Deps.Off)+len(r.StartDeps.Off) > 0 })
}

// textLine returns a line to parse, or nil if the text is no line.
func textLine(text string) *blockio.Line {
	if strings.ContainsAny(text, "\r\n") || strings.TrimSpace(text) == "" || text[0] == '#' {
		return nil
	}
	return blockio.NewLine([]byte(text))
}

// sameDeps reports whether two traces have equal ops in order, peers and dependencies.
func sameDeps(a, b *dag.Trace) bool {
	for i := range a.Ranks {
		x, y := a.Ranks[i], b.Ranks[i]
		if !slices.Equal(x.Kind, y.Kind) {
			return false
		}
		for op := range x.Kind {
			if x.Peer.At(op) != y.Peer.At(op) || x.Tag.At(op) != y.Tag.At(op) || x.StartDeps.Count(op) > 0 ||
				!slices.Equal(x.Deps.Of(op), y.Deps.Of(op)) {
				return false
			}
		}
	}
	return true
}

// flowKey identifies matching sends and receives.
type flowKey struct {
	source, destination, comm int32
	tag                       int64
}

// plan derives triggers from dependencies: a set of flows becomes a trigger if the same flows wait for all of it,
// and no other flow waits for a part of it.
func (f *file) plan() {
	f.starts, f.ends = make([]int64, len(f.sends)), make([]int64, len(f.sends))
	if !hasDeps(f.trace) {
		return
	}
	flows := f.flows()
	groups := map[string]int64{} // trigger number for each set of flows that others wait for
	for k, s := range f.sends {
		r, op := f.trace.Ranks[s.Rank], int(s.Op)
		if r.Deps.Count(op)+r.StartDeps.Count(op) == 0 {
			continue
		}
		by := f.waitsFor(s, flows)
		id := groups[fmt.Sprint(by)]
		if id == 0 {
			if len(by) == 0 || slices.ContainsFunc(by, func(flow int32) bool { return f.ends[flow] != 0 }) {
				f.lost++
				continue
			}
			id = f.trigger(by)
			groups[fmt.Sprint(by)] = id
		}
		f.starts[k] = id
		if r.Release.At(op) != 0 {
			f.late++
		}
	}
	for rank := range f.trace.Ranks {
		r := f.trace.Ranks[rank]
		for op, kind := range r.Kind {
			if kind == dag.Recv && r.Deps.Count(op)+r.StartDeps.Count(op) > 0 {
				f.lost++
			}
		}
	}
}

// waitsFor returns the flows that a send waits for, ascending, or none if it also waits for another op.
func (f *file) waitsFor(s flowio.Send, flows map[flowio.Send]int32) []int32 {
	r := f.trace.Ranks[s.Rank]
	if r.StartDeps.Count(int(s.Op)) > 0 {
		return nil
	}
	var by []int32
	for _, off := range r.Deps.Of(int(s.Op)) {
		flow, ok := flows[flowio.Send{Rank: s.Rank, Op: s.Op - off}]
		if !ok {
			return nil
		}
		by = append(by, flow)
	}
	slices.Sort(by)
	return slices.Compact(by)
}

// trigger adds the trigger that the given flows activate.
func (f *file) trigger(by []int32) int64 {
	id := int64(len(f.Triggers) + 1)
	for _, flow := range by {
		f.ends[flow] = id
	}
	text := fmt.Sprintf("trigger id %d oneshot", id)
	if len(by) > 1 {
		text = fmt.Sprintf("trigger id %d barrier count %d", id, len(by))
	}
	f.Triggers = append(f.Triggers, text)
	return id
}

// flows returns the flow of each send, and of each receive that names its source and tag.
func (f *file) flows() map[flowio.Send]int32 {
	flows := make(map[flowio.Send]int32, 2*len(f.sends))
	for k, s := range f.sends {
		flows[s] = int32(k)
	}
	queues := map[flowKey][]int32{} // messages with equal keys are received in op order
	for rank := range f.trace.Ranks {
		r := f.trace.Ranks[rank]
		for op, kind := range r.Kind {
			if kind == dag.Send {
				key := flowKey{int32(rank), r.Peer.At(op), r.Comm.At(op), r.Tag.At(op)}
				queues[key] = append(queues[key], flows[flowio.Send{Rank: int32(rank), Op: int32(op)}])
			}
		}
	}
	for rank := range f.trace.Ranks {
		r := f.trace.Ranks[rank]
		for op, kind := range r.Kind {
			key := flowKey{r.Peer.At(op), int32(rank), r.Comm.At(op), r.Tag.At(op)}
			if queue := queues[key]; kind == dag.Recv && len(queue) > 0 {
				flows[flowio.Send{Rank: int32(rank), Op: int32(op)}] = queue[0]
				queues[key] = queue[1:]
			}
		}
	}
	return flows
}

func losses(t *dag.Trace) []format.Loss {
	f := newFile(t)
	l := flowio.Losses(t, f.sends, flowio.Known{
		Own:   f.own,
		Attrs: func(attrs string) bool { return f.kept != nil && strings.Contains(attrs, `"htsim"`) },
		Deps:  true,
	})
	l.Add("dependencies that no trigger can express", f.lost)
	l.Add("start times of flows with a trigger", f.late)
	empty := int64(0)
	for _, s := range f.sends {
		if t.Ranks[s.Rank].Bytes.At(int(s.Op)) == 0 {
			empty++
		}
	}
	l.Add("sizes of 0 bytes, written as 1 because 0 means endless", empty)
	return l
}

// maxBytes is the largest size that htsim reads.
const maxBytes = math.MaxInt32

func write(w io.Writer, t *dag.Trace, o format.WriteOptions) error {
	f := newFile(t)
	if err := f.check(o.Warn); err != nil {
		return fmt.Errorf("a connection matrix cannot represent the trace: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<18)
	fmt.Fprintf(out, "Nodes %d\nConnections %d\n", len(t.Ranks), len(f.sends))
	if len(f.Triggers) > 0 {
		fmt.Fprintf(out, "Triggers %d\n", len(f.Triggers))
	}
	if len(f.Failures) > 0 {
		fmt.Fprintf(out, "Failures %d\n", len(f.Failures))
	}
	for k := range f.sends {
		line := f.appendFlow(out.AvailableBuffer(), k)
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	for _, line := range slices.Concat(f.Triggers, f.Failures) {
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// appendFlow appends the line of flow number k.
func (f *file) appendFlow(line []byte, k int) []byte {
	flow := flowio.Of(f.trace, f.sends[k])
	if f.kept != nil {
		if f.kept[k] != "" {
			return append(line, f.kept[k]...)
		}
		return appendLine(line, &flow, k+1, f.Unit)
	}
	if id := f.starts[k]; id == 0 {
		line = appendLine(line, &flow, k+1, f.Unit)
	} else {
		line = appendEnds(line, &flow, k+1)
		line = append(line, " trigger "...)
		line = strconv.AppendInt(line, id, 10)
		line = append(line, " size "...)
		line = strconv.AppendInt(line, max(1, flow.Bytes), 10)
	}
	if id := f.ends[k]; id != 0 {
		line = append(line, " send_done_trigger "...)
		line = strconv.AppendInt(line, id, 10)
	}
	return line
}

// check returns an error for values that htsim cannot read, and warns about inexact ones.
func (f *file) check(warn func(string, ...any)) error {
	if err := flowio.Check(f.trace, f.sends); err != nil {
		return err
	}
	if len(f.sends) > maxTrigger {
		return fmt.Errorf("expected at most 2147483647 flows, found %d", len(f.sends))
	}
	inexact := int64(0)
	for _, s := range f.sends {
		r, op := f.trace.Ranks[s.Rank], int(s.Op)
		if bytes := r.Bytes.At(op); bytes > maxBytes && f.kept == nil {
			return fmt.Errorf("rank %d, op %d: expected a size of at most %d bytes, found %d", s.Rank, op,
				maxBytes, bytes)
		}
		if start := r.Release.At(op); dag.Time(float32(start)) != start {
			inexact++
		}
	}
	if inexact > 0 && warn != nil && f.kept == nil {
		warn("htsim reads start times as 32-bit floats (24-bit precision) and rounds %d of them", inexact)
	}
	return nil
}
