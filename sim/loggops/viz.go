package loggops

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// vizTimeline writes a run in the format of the reference simulators' option -V, in whole nanoseconds.
type vizTimeline struct {
	w     *bufio.Writer
	model Model
	g     string // G in the reference's number format
	unit  dag.Time
}

// NewVizTimeline returns a timeline that writes the format of the reference simulators to w.
func NewVizTimeline(w io.Writer, model Model, params Params) sim.Timeline {
	whole, _ := params.GPerByte.Float64()
	return &vizTimeline{w: bufio.NewWriterSize(w, 1<<16), model: model,
		g: fmt.Sprint(int64(whole) / int64(dag.Nanosecond))}
}

// Begin writes the header.
func (v *vizTimeline) Begin(l *sim.Layout) {
	v.unit = l.Unit
	fmt.Fprintf(v.w, "numranks %d;\n", l.Ranks())
}

// Span writes a busy interval with its color in the reference's viewer.
func (v *vizTimeline) Span(s sim.Span) {
	if !s.Kind.Busy() {
		return
	}
	word, color := "loclop", "1 0 0"
	switch s.Kind {
	case sim.SendSpan:
		word, color = "osend", "0 0 1"
	case sim.RecvSpan:
		word, color = "orecv", "0 0 1"
	case sim.NoiseSpan:
		word, color = "noise", "0 1 0"
	}
	fmt.Fprintf(v.w, "%s %d %d %s %s %s;\n", word, s.Rank, s.Stream, v.time(s.Start),
		v.time(s.End), color)
}

// Transfer writes a message. Its size is truncated to 32 bits, as in the reference.
func (v *vizTimeline) Transfer(t sim.Transfer) {
	if t.Recv == sim.NoOp {
		return
	}
	if t.Swapped {
		t.Source, t.Target = t.Target, t.Source
	}
	fmt.Fprintf(v.w, "transmission %d %d %s %s %d %s 0 0 1;\n", t.Source, t.Target, v.time(t.Start), v.time(t.End),
		int32(t.Bytes), v.g)
}

// time formats a time in nanoseconds. For ATLAHS it is truncated to 32 bits.
func (v *vizTimeline) time(t uint64) string {
	if v.unit != dag.Nanosecond {
		t /= uint64(dag.Nanosecond / v.unit)
	}
	if v.model == ATLAHS {
		return fmt.Sprint(int32(t))
	}
	return fmt.Sprint(t)
}

// End flushes the output.
func (v *vizTimeline) End() error {
	return v.w.Flush()
}
