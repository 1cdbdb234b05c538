// Package hpcc reads and writes the flow lists of HPCC's simulator and its successors (ConWeave and others on
// ns-3): the number of flows, then one flow per line. docs/reference/formats/hpcc.md specifies them.
package hpcc

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/flowio"
)

// Format is the flow-list format.
var Format = format.Format{
	Name:       "hpcc",
	Modes:      format.Modes{Lenient: true},
	Title:      "HPCC flow lists, also used by other ns-3 simulators",
	Extensions: []string{".flow"},
	Detect:     detect,
	Read:       read,
	Options:    flowio.Table,
	Lacks:      lower.Everything(),
	Losses:     losses,
	Write:      write,
}

// style is the layout of a file's lines, the content of dag.Meta.Attrs under the key "hpcc".
type style struct {
	Priority int64  `json:"priority"`       // group of flows
	Port     *int64 `json:"port,omitempty"` // at the destination; nil: lines have no port field
	Decimals int    `json:"decimals"`       // decimals of times; 0: no point
}

// usual is the style of HPCC's own generator.
func usual() style {
	port := int64(100)
	return style{Priority: 3, Port: &port, Decimals: 9}
}

// maxDecimals is the number of decimals of a time in whole picoseconds.
const maxDecimals = flowio.MaxUnit

// parse parses a line: source, destination, priority group, an optional port, size and start.
func parse(l *blockio.Line, f *flowio.Flow) style {
	var s style
	fields := len(bytes.Fields(l.Text()))
	if fields != 5 && fields != 6 {
		l.Fail("source, destination, priority group, port (or none), size and start")
		return s
	}
	node := func(what string) int32 {
		n := int32(l.Number(what, flowio.MaxRanks-1))
		l.Gap()
		return n
	}
	l.Blanks()
	f.Source = node("a source node")
	f.Destination = node("a destination node")
	s.Priority = l.Number("a priority group", math.MaxInt32)
	l.Gap()
	if fields == 6 {
		port := l.Number("a port", math.MaxInt32)
		l.Gap()
		s.Port = &port
	}
	f.Bytes = l.Number("a size in bytes", math.MaxInt64)
	l.Gap()
	f.Start, s.Decimals = l.Time("a start in seconds", maxDecimals)
	s.Decimals = max(0, s.Decimals)
	if l.Blanks(); !l.End() {
		l.Fail("the end of the line")
	}
	return s
}

func count(l *blockio.Line) int64 {
	l.Blanks()
	n := l.Number("the number of flows", math.MaxInt64)
	if l.Blanks(); !l.End() {
		l.Fail("the number of flows and no other field")
	}
	return n
}

func detect(head []byte) bool {
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	l := blockio.NewLine(bytes.TrimSuffix(first, []byte("\r")))
	if count(l); l.Failed() {
		return false
	}
	return blockio.FirstLine(rest, func(l *blockio.Line) bool {
		parse(l, &flowio.Flow{})
		return !l.Failed()
	})
}

// lineAttrs keeps the line of a flow that is not in the file's style.
type lineAttrs struct {
	Line string `json:"line"`
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a list of flows")
	if err != nil {
		return nil, err
	}
	var flows []flowio.Flow
	var s style
	var canonical []byte
	stated, most := int64(-1), int32(0)
	err = blockio.EachLine(in, &o, func(l *blockio.Line) blockio.Verdict {
		if stated < 0 {
			if n := count(l); !l.Failed() {
				stated = n
			}
			return blockio.Taken
		}
		if int64(len(flows)) == stated {
			o.Warn("%s: lines after the %d flows that the first line announces are skipped", in.Name, stated)
			return blockio.End
		}
		var f flowio.Flow
		of := parse(l, &f)
		if l.Failed() {
			return blockio.Taken
		}
		if len(flows) == 0 {
			s = of
			s.Decimals = min(s.Decimals, maxDecimals)
		}
		if canonical = s.append(canonical[:0], &f); !bytes.Equal(canonical, l.Text()) {
			f.Attrs = attr.Encode("hpcc", lineAttrs{string(l.Text())})
		}
		most = max(most, f.Source+1, f.Destination+1)
		flows = append(flows, f)
		return blockio.Taken
	})
	switch {
	case err != nil:
		return nil, err
	case stated < 0:
		return nil, &format.SyntaxError{File: in.Name, Line: 1, Expected: "the number of flows",
			Found: "the end of the file"}
	case int64(len(flows)) < stated && !o.Lenient:
		return nil, &format.SyntaxError{File: in.Name, Line: int64(len(flows)) + 1,
			Expected: fmt.Sprintf("%d flows, as in the first line", stated), Found: fmt.Sprint(len(flows))}
	case len(flows) == 0:
		s = usual()
	}
	if int64(len(flows)) < stated {
		o.Warn("%s: %d flows, %d fewer than the first line announces", in.Name, len(flows), stated-int64(len(flows)))
	}
	t, err := flowio.Trace(o.Context, flowio.Ranks(most, &o), flows)
	if err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	t.Attrs = attr.Encode("hpcc", s)
	return t, nil
}

// styleOf returns the style in which a trace is written.
func styleOf(t *dag.Trace) style {
	var s style
	if !attr.Decode(t.Attrs, "hpcc", &s) || s.Priority < 0 || s.Decimals < 0 || s.Decimals > maxDecimals ||
		s.Port != nil && *s.Port < 0 {
		return usual()
	}
	return s
}

// append appends the line of a flow.
func (s *style) append(line []byte, f *flowio.Flow) []byte {
	number := func(n int64) {
		line = append(strconv.AppendInt(line, n, 10), ' ')
	}
	number(int64(f.Source))
	number(int64(f.Destination))
	number(s.Priority)
	if s.Port != nil {
		number(*s.Port)
	}
	number(f.Bytes)
	return flowio.AppendDecimal(line, f.Start, maxDecimals, s.Decimals)
}

func losses(t *dag.Trace) []format.Loss {
	sends := flowio.Sends(t, false, nil)
	return flowio.Losses(t, sends, flowio.Known{
		Attrs: func(attrs string) bool { return keptLine(attrs) != "" },
		Nodes: flowio.Highest(t, sends),
	})
}

func write(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	sends := flowio.Sends(t, false, nil)
	if err := flowio.Check(t, sends); err != nil {
		return fmt.Errorf("an HPCC flow list cannot represent the trace: %w", err)
	}
	s := styleOf(t)
	out := bufio.NewWriterSize(w, 1<<18)
	fmt.Fprintln(out, len(sends))
	for _, send := range sends {
		f := flowio.Of(t, send)
		line := out.AvailableBuffer()
		if kept := keptLine(f.Attrs); matches(kept, &f) {
			line = append(line, kept...)
		} else {
			line = s.append(line, &f)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// keptLine returns the line in the attributes, or "".
func keptLine(attrs string) string {
	var a lineAttrs
	attr.Decode(attrs, "hpcc", &a)
	return a.Line
}

// matches reports whether a line describes a flow.
func matches(line string, f *flowio.Flow) bool {
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return false
	}
	l := blockio.NewLine([]byte(line))
	var said flowio.Flow
	parse(l, &said)
	return !l.Failed() && said.Source == f.Source && said.Destination == f.Destination && said.Bytes == f.Bytes &&
		said.Start == f.Start
}
