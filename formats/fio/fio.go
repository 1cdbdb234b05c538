// Package fio reads the I/O logs of the benchmark fio (options write_iolog and read_iolog), versions 2 and 3, and
// writes version 3. docs/reference/formats/fio.md describes the mapping.
package fio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// Format is fio's I/O log format.
var Format = format.Format{
	Name:       "fio",
	Modes:      format.Modes{Lenient: true},
	Title:      "fio I/O logs, versions 2 and 3; version 3 is written",
	Extensions: []string{".iolog"},
	Detect:     func(head []byte) bool { return blockio.FirstLine(head, isHeader) },
	Read:       read,
	Options:    blockio.Table,
	Losses:     losses,
	Write:      write,
}

// Text of the first line before and after the version.
const headerStart, headerEnd = "fio version ", " iolog"

// facts is the content of dag.Meta.Attrs under the key "fio".
type facts struct {
	Version int      `json:"version"`
	Units   []string `json:"units"` // file names, indexed by unit
}

func isHeader(l *blockio.Line) bool {
	return version(l) != 0
}

// version returns the version in the first line of a file, or 0 if the line has none.
func version(l *blockio.Line) int {
	for _, v := range []int{2, 3} {
		if string(bytes.TrimRight(l.Text(), " \t")) == headerStart+strconv.Itoa(v)+headerEnd {
			return v
		}
	}
	l.FailWith(fmt.Sprintf("%q or %q", headerStart+"2"+headerEnd, headerStart+"3"+headerEnd),
		fmt.Sprintf("%.60q", l.Text()))
	return 0
}

// reader reads the lines of a log.
type reader struct {
	version int
	clock   dag.Time // version 2: sum of the waits so far
	files   blockio.Names
	records *blockio.Collector
	record  blockio.Record
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a storage trace")
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

// line parses [TIME] FILE ACTION [OFFSET LENGTH]; only version 3 has the time.
func (r *reader) line(l *blockio.Line) blockio.Verdict {
	if r.version == 0 {
		r.version = version(l)
		return blockio.Taken
	}
	r.record.Time = r.clock
	if r.version == 3 {
		r.record.Time = dag.Time(l.Number("a time in microseconds",
			int64(dag.MaxTime/dag.Microsecond))) * dag.Microsecond
		l.Gap()
	}
	file := l.Name()
	if len(file) == 0 {
		l.Fail("a file name")
	}
	l.Gap()
	switch action := l.Peek(); string(action) {
	case "add", "open", "close":
		l.Word()
		if end(l); !l.Failed() {
			r.files.Number(file)
		}
		return blockio.Taken
	case "read", "write":
		r.record.Write = string(action) == "write"
	case "wait":
		if r.version == 2 {
			return r.wait(l)
		}
		l.Fail("read, write or another action of version 3, which has no wait")
	case "sync", "datasync", "trim":
		return blockio.Skipped
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

// wait parses the rest of a line that advances the clock by OFFSET microseconds.
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

// end skips blanks at the end of the line.
func end(l *blockio.Line) {
	if l.Blanks(); !l.End() {
		l.Fail("the end of the line")
	}
}
