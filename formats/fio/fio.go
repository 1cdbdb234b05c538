// Package fio reads the I/O logs of the benchmark fio (options write_iolog and read_iolog), versions 2 and 3, and writes
// version 3. docs/formats/fio.md describes the mapping.
package fio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/blockio"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is fio's.
var Format = format.Format{
	Name:       "fio",
	Title:      "I/O logs of fio, versions 2 and 3 (written: 3)",
	Extensions: []string{".iolog"},
	Detect:     func(head []byte) bool { return blockio.FirstLine(head, isHeader) },
	Read:       read,
	Losses:     losses,
	Write:      write,
}

// header is the first line, around the version.
const headerStart, headerEnd = "fio version ", " iolog"

// facts is what dag.Meta.Attrs says of a trace, under the key "fio".
type facts struct {
	Version int      `json:"version"`
	Units   []string `json:"units"` // the file of each unit
}

func isHeader(l *blockio.Line) bool {
	return version(l) != 0
}

// version returns the version that the first line of a file states, 0 if it does not.
func version(l *blockio.Line) int {
	for _, v := range []int{2, 3} {
		if string(bytes.TrimRight(l.Text(), " \t")) == headerStart+strconv.Itoa(v)+headerEnd {
			return v
		}
	}
	l.FailWith(fmt.Sprintf("%q or %q", headerStart+"2"+headerEnd, headerStart+"3"+headerEnd), fmt.Sprintf("%.60q", l.Text()))
	return 0
}

// reader reads the lines of a log.
type reader struct {
	version int
	clock   dag.Time // version 2: the sum of all waits so far
	files   blockio.Names
	records *blockio.Collector
	record  blockio.Record
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := blockio.Single(inputs)
	if err != nil {
		return nil, err
	}
	r := &reader{records: blockio.NewCollector(in, &o)}
	if err := blockio.EachLine(in, &o, r.line); err != nil {
		return nil, err
	}
	t, err := r.records.Trace()
	if err != nil {
		return nil, err
	}
	attrs, err := json.Marshal(map[string]facts{"fio": {Version: r.version, Units: r.files.List()}})
	t.Attrs = string(attrs)
	return t, err
}

// line parses [TIME] FILE ACTION [OFFSET LENGTH], of which version 3 has the time.
func (r *reader) line(l *blockio.Line) blockio.Verdict {
	if r.version == 0 {
		if r.version = version(l); r.version == 0 {
			return blockio.Taken
		}
		return blockio.Taken
	}
	r.record.Time = r.clock
	if r.version == 3 {
		r.record.Time = dag.Time(l.Number("a time in microseconds", int64(dag.MaxTime/dag.Microsecond))) * dag.Microsecond
		l.Gap()
	}
	file := l.Name()
	if len(file) == 0 {
		l.Fail("the name of a file")
	}
	l.Gap()
	switch action := l.Peek(); string(action) {
	case "add", "open", "close":
		l.Word()
		end(l)
		return blockio.Taken
	case "read", "write":
		r.record.Write = string(action) == "write"
	case "wait":
		if r.version == 2 {
			return r.wait(l)
		}
		l.Fail("read, write or another action but wait, which version 3 does not have")
	case "sync", "datasync", "trim":
		return blockio.LeftOut
	default:
		l.Fail("an action such as read, write, add, open or close")
	}
	l.Word()
	l.Gap()
	r.record.Address = l.Number("an offset in bytes", math.MaxInt64)
	l.Gap()
	r.record.Bytes = l.Number("a length in bytes", math.MaxInt64)
	end(l)
	if l.Failed() {
		return blockio.Taken
	}
	r.record.Unit = r.files.Number(file)
	return r.records.Add(l, &r.record)
}

// wait parses the rest of a line that lets the clock go on by OFFSET microseconds.
func (r *reader) wait(l *blockio.Line) blockio.Verdict {
	l.Word()
	l.Gap()
	most := int64((dag.MaxTime - r.clock) / dag.Microsecond)
	wait := dag.Time(l.Number("microseconds to wait", most)) * dag.Microsecond
	l.Gap()
	l.Number("a length", math.MaxInt64)
	if end(l); !l.Failed() {
		r.clock += wait
	}
	return blockio.Taken
}

// end steps over blanks at the end of the line.
func end(l *blockio.Line) {
	if l.Blanks(); !l.End() {
		l.Fail("the end of the line")
	}
}

// maxName is how long the name of a file can be that fio reads.
const maxName = 255

// names returns the name of the file of each unit: the one that the trace was read with, where it is one that fio can read
// and no other unit's.
func names(t *dag.Trace) map[int32]string {
	var attrs struct {
		Fio facts `json:"fio"`
	}
	if t.Attrs != "" && json.Unmarshal([]byte(t.Attrs), &attrs) != nil {
		attrs.Fio.Units = nil
	}
	names := make(map[int32]string)
	taken := make(map[string]bool)
	for i := range t.Ranks {
		r := &t.Ranks[i]
		for op, kind := range r.Kind {
			unit := r.Peer.At(op)
			if kind != dag.IO || names[unit] != "" {
				continue
			}
			name := fmt.Sprintf("unit%d", unit)
			if int(unit) < len(attrs.Fio.Units) {
				if known := attrs.Fio.Units[unit]; isName(known) {
					name = known
				}
			}
			for taken[name] {
				name += "_"
			}
			names[unit], taken[name] = name, true
		}
	}
	return names
}

// isName reports whether fio can read the name of a file in a log.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, isSpace)
}

func isSpace(c rune) bool {
	return c == ' ' || '\t' <= c && c <= '\r'
}

func losses(t *dag.Trace) []format.Loss {
	l := blockio.Losses(t, func(string) bool { return false })
	rounded := int64(0)
	for i := range t.Ranks {
		for op, release := range t.Ranks[i].Release {
			if t.Ranks[i].Kind[op] == dag.IO && release%dag.Microsecond != 0 {
				rounded++
			}
		}
	}
	l.Add("times rounded to whole microseconds", rounded)
	return l
}

func write(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	if err := blockio.Check(t); err != nil {
		return fmt.Errorf("fio cannot hold the trace: %w", err)
	}
	return nil
}

var _ = bufio.NewWriter
