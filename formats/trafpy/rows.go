// This file builds the rows of a trace's table.

package trafpy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio"
)

// rows are the flows of a trace in time order.
type rows struct {
	trace *dag.Trace
	style style
	sends []flowio.Send
}

func newRows(t *dag.Trace) (*rows, error) {
	r := &rows{t, styleOf(t), flowio.Sends(t, false, nil)}
	if err := flowio.Check(t, r.sends); err != nil {
		return nil, fmt.Errorf("TrafPy demand data cannot represent the trace: %w", err)
	}
	return r, nil
}

// styleOf returns the style in which a trace is written.
func styleOf(t *dag.Trace) style {
	var s style
	if !attr.Decode(t.Attrs, "trafpy", &s) || s.Unit < 0 || s.Unit > flowio.MaxUnit || s.Decimals < 0 ||
		s.Decimals > 1 || len(s.Labels) > 0 && len(s.Labels) != len(t.Ranks) {
		return usual
	}
	return s
}

// append appends a value of flow number k, without quotes.
func (r *rows) append(text []byte, k, column int) []byte {
	s := r.sends[k]
	ops, op := r.trace.Ranks[s.Rank], int(s.Op)
	switch column {
	case flowID:
		if name := ops.Name.At(op); name != "" {
			return append(text, strings.ToValidUTF8(name, "\ufffd")...)
		}
		return strconv.AppendInt(append(text, "flow_"...), int64(k), 10)
	case sourceNode:
		return r.appendLabel(text, s.Rank)
	case destinationNode:
		return r.appendLabel(text, ops.Peer.At(op))
	case flowSize:
		return r.appendSize(text, ops, op)
	case eventTime:
		return r.appendTime(text, ops, op)
	case establish:
		return append(text, '1')
	}
	return strconv.AppendInt(text, int64(k), 10)
}

func (r *rows) appendLabel(text []byte, rank int32) []byte {
	if len(r.style.Labels) > 0 {
		return append(text, r.style.Labels[rank]...)
	}
	return strconv.AppendInt(append(text, r.style.Prefix...), int64(rank), 10)
}

// appendSize appends a size, as it was read if that text still describes the size.
func (r *rows) appendSize(text []byte, ops *dag.Rank, op int) []byte {
	bytes := ops.Bytes.At(op)
	if kept := keptValues(ops, op).Size; kept != "" {
		said := oneValue(r.style)
		if said.size(0, []byte(kept)) == nil && said.flows[0].Bytes == bytes {
			return append(text, kept...)
		}
	}
	return r.style.appendSize(text, bytes)
}

// appendTime appends a time, as it was read if that text still describes the time.
func (r *rows) appendTime(text []byte, ops *dag.Rank, op int) []byte {
	start := ops.Release.At(op)
	if kept := keptValues(ops, op).Time; kept != "" {
		said := oneValue(r.style)
		if said.time(0, []byte(kept)) == nil && said.flows[0].Start == start {
			return append(text, kept...)
		}
	}
	return r.style.appendTime(text, start)
}

// oneValue returns a table for reading one value.
func oneValue(s style) *table {
	return &table{style: s, flows: make([]flowio.Flow, 1)}
}

func keptValues(ops *dag.Rank, op int) valueAttrs {
	var a valueAttrs
	if op < ops.Attrs.Len() {
		attr.Decode(ops.Attrs.At(op), "trafpy", &a)
	}
	return a
}

// lossesOfJSON returns the losses of JSON, which has the graphs of jobs.
func lossesOfJSON(t *dag.Trace) []format.Loss {
	if jobs, err := jobgraph.Read(t); err == nil && jobs != nil {
		return jobLosses(t)
	}
	return losses(t)
}

func losses(t *dag.Trace) []format.Loss {
	sends := flowio.Sends(t, false, nil)
	s := styleOf(t)
	nodes := flowio.Highest(t, sends)
	if len(s.Labels) > 0 {
		nodes = len(t.Ranks)
	}
	l := flowio.Losses(t, sends, flowio.Known{
		Attrs: func(attrs string) bool { return strings.HasPrefix(attrs, attrsPrefix) },
		Names: true,
		Nodes: nodes,
	})
	invalid := int64(0)
	for _, send := range sends {
		if !utf8.ValidString(t.Ranks[send.Rank].Name.At(int(send.Op))) {
			invalid++
		}
	}
	l.Add("names in invalid UTF-8", invalid)
	return l
}
