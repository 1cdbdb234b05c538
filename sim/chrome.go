package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
)

// ChromeTimeline writes a run in Chromium's Trace Event Format (JSON object form), which Perfetto and chrome://tracing
// open: one process per rank, one thread per stream, one slice per op, one arrow per message. Times are in microseconds
// with six decimals.
type ChromeTimeline struct {
	// About describes the run, as JSON; nil: nothing. Set it before End.
	About any

	w     *bufio.Writer
	trace *dag.Trace
	l     *Layout
	begun []uint64 // by send or receive op: start of its slice; unknown before
	lane  []int32  // by send or receive op: its stream
	sends []uint32 // by receive op whose message preceded its slice: the message's send; NoOp otherwise
	line  []byte
}

const unknown = math.MaxUint64

// NewChromeTimeline returns a timeline that writes a run of t to w.
func NewChromeTimeline(w io.Writer, t *dag.Trace) *ChromeTimeline {
	return &ChromeTimeline{w: bufio.NewWriterSize(w, 1<<16), trace: t}
}

// Begin writes the names of processes and threads.
func (c *ChromeTimeline) Begin(l *Layout) {
	c.l = l
	c.begun = make([]uint64, l.NumOps())
	c.lane = make([]int32, l.NumOps())
	c.sends = make([]uint32, l.NumOps())
	for i := range c.begun {
		c.begun[i], c.sends[i] = unknown, NoOp
	}
	c.w.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	for rank := range l.Ranks() {
		if rank > 0 {
			c.w.WriteByte(',')
		}
		fmt.Fprintf(c.w, "\n"+`{"ph":"M","name":"process_name","pid":%d,"args":{"name":"rank %d"}}`, rank, rank)
		fmt.Fprintf(c.w, ",\n"+`{"ph":"M","name":"process_sort_index","pid":%d,"args":{"sort_index":%d}}`, rank, rank)
		named := make(map[int32]bool)
		streams := &c.trace.Ranks[rank].Stream
		for i := range l.Start[rank+1] - l.Start[rank] {
			if stream := streams.At(int(i)); !named[stream] {
				named[stream] = true
				fmt.Fprintf(c.w, ",\n"+`{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":"stream %d"}}`,
					rank, stream, stream)
			}
		}
	}
}

// Span writes a slice of a busy stream, except for noise and calcs of length 0.
func (c *ChromeTimeline) Span(s Span) {
	if !s.Kind.Busy() || s.Start == s.End && (s.Kind == NoiseSpan || s.Kind == CalcSpan) {
		return
	}
	r, i := c.trace.Ranks[s.Rank], c.l.Index(s.Rank, s.Op)
	name, peer := r.Name.At(i), int64(r.Peer.At(i))
	c.line = append(c.line[:0], ",\n"+`{"ph":"X","pid":`...)
	c.line = strconv.AppendUint(c.line, uint64(s.Rank), 10)
	c.line = append(c.line, `,"tid":`...)
	c.line = strconv.AppendInt(c.line, int64(s.Stream), 10)
	c.line = append(c.line, `,"ts":`...)
	c.line = c.microseconds(c.line, s.Start)
	c.line = append(c.line, `,"dur":`...)
	c.line = c.microseconds(c.line, s.End-s.Start)
	c.line = append(c.line, `,"cat":"`...)
	switch s.Kind {
	case CalcSpan:
		c.line = append(c.line, `calc"`...)
		if name == "" {
			name = "calc"
		}
	case SendSpan:
		c.line = append(c.line, `send"`...)
		if name == "" {
			name = "send to " + strconv.FormatInt(peer, 10)
		}
	case RecvSpan:
		c.line = append(c.line, `recv"`...)
		if name == "" {
			name = "recv from " + strconv.FormatInt(peer, 10)
			if peer == dag.AnySource {
				name = "recv from any"
			}
		}
	case NoiseSpan:
		c.line = append(c.line, `noise"`...)
		name = "noise"
	}
	c.line = append(c.line, `,"name":`...)
	quoted, err := json.Marshal(name)
	if err != nil {
		quoted = []byte(`""`)
	}
	c.line = append(c.line, quoted...)
	c.line = append(c.line, `,"args":{"op":`...)
	c.line = strconv.AppendInt(c.line, int64(i), 10)
	if s.Kind == SendSpan || s.Kind == RecvSpan {
		c.line = append(c.line, `,"bytes":`...)
		c.line = strconv.AppendInt(c.line, r.Bytes.At(i), 10)
		c.line = append(c.line, `,"tag":`...)
		c.line = strconv.AppendInt(c.line, r.Tag.At(i), 10)
		c.begun[s.Op], c.lane[s.Op] = s.Start, s.Stream
	}
	c.line = append(c.line, `}}`...)
	c.w.Write(c.line)
	if s.Kind == RecvSpan && c.sends[s.Op] != NoOp {
		c.arrow(c.sends[s.Op], s.Op)
	}
}

// Transfer writes an arrow once the slices at both ends are known.
func (c *ChromeTimeline) Transfer(t Transfer) {
	if t.Recv == NoOp {
		return
	}
	if c.begun[t.Recv] == unknown {
		c.sends[t.Recv] = t.Send
		return
	}
	c.arrow(t.Send, t.Recv)
}

func (c *ChromeTimeline) arrow(send, recv uint32) {
	if c.begun[send] == unknown {
		return
	}
	for _, end := range [...]struct {
		phase string
		op    uint32
	}{{`s"`, send}, {`f","bp":"e"`, recv}} {
		rank := c.l.Rank(end.op)
		c.line = append(c.line[:0], ",\n"+`{"ph":"`...)
		c.line = append(c.line, end.phase...)
		c.line = append(c.line, `,"name":"message","cat":"message","id":`...)
		c.line = strconv.AppendUint(c.line, uint64(send), 10)
		c.line = append(c.line, `,"pid":`...)
		c.line = strconv.AppendUint(c.line, uint64(rank), 10)
		c.line = append(c.line, `,"tid":`...)
		c.line = strconv.AppendInt(c.line, int64(c.lane[end.op]), 10)
		c.line = append(c.line, `,"ts":`...)
		c.line = c.microseconds(c.line, c.begun[end.op])
		c.line = append(c.line, '}')
		c.w.Write(c.line)
	}
}

// microseconds appends a time in microseconds, exact to the picosecond.
func (c *ChromeTimeline) microseconds(b []byte, t uint64) []byte {
	perMicrosecond := uint64(dag.Microsecond / c.l.Unit)
	b = strconv.AppendUint(b, t/perMicrosecond, 10)
	if rest := t % perMicrosecond; rest != 0 {
		b = append(b, '.')
		b = append(b, strconv.FormatUint(perMicrosecond+rest, 10)[1:]...)
	}
	return b
}

// End completes the JSON document and flushes it. It returns the first write error.
func (c *ChromeTimeline) End() error {
	c.w.WriteString("\n]")
	if c.About != nil {
		about, err := MarshalJSON(c.About)
		if err != nil {
			return fmt.Errorf("writing the description of the run: %w", err)
		}
		fmt.Fprintf(c.w, `,"otherData":%s`, about)
	}
	c.w.WriteString("}\n")
	return c.w.Flush()
}
