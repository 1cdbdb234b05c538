// Package blkparse reads the text output of blkparse, a trace of Linux's block layer (blktrace) with one line for
// each event of a request. docs/reference/formats/blocktraces.md describes the mapping.
package blkparse

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// Format is blkparse's default output format.
var Format = format.Format{
	Name:    "blkparse",
	Modes:   format.Modes{Lenient: true},
	Title:   "blkparse text output: block-layer traces of Linux (blktrace)",
	Detect:  func(head []byte) bool { return blockio.FirstLine(head, isEvent) },
	Read:    read,
	Options: blockio.Table,
}

// facts is the content of dag.Meta.Attrs under the key "blkparse".
type facts struct {
	Action string   `json:"action"` // of the events that became records: "D" or "Q"
	Units  []string `json:"units"`  // MAJOR,MINOR of each unit
}

// event is the part of a line that does not depend on its action.
type event struct {
	device []byte // MAJOR,MINOR
	time   dag.Time
	action []byte
	kind   []byte // read, write or another kind, with flag letters
}

// parseEvent parses MAJOR,MINOR CPU SEQUENCE TIME PID ACTION KIND.
func parseEvent(l *blockio.Line) (e event) {
	l.Blanks()
	from := l.Offset()
	l.Number("a major device number", math.MaxInt32)
	l.Comma()
	l.Number("a minor device number", math.MaxInt32)
	e.device = l.Text()[from:l.Offset()]
	l.Gap()
	l.Number("a CPU number", math.MaxInt32)
	l.Gap()
	l.Number("a sequence number", math.MaxInt64)
	l.Gap()
	e.time, _ = l.Time("a time in seconds", 12)
	l.Gap()
	l.Number("a process ID", math.MaxInt64)
	l.Gap()
	if e.action = l.Word(); len(e.action) == 0 {
		l.Fail("an action")
	}
	l.Blanks()
	e.kind = l.Word()
	return e
}

func isEvent(l *blockio.Line) bool {
	parseEvent(l)
	return !l.Failed()
}

// parseRange parses SECTOR + SECTORS. It reports whether the line has sectors.
func parseRange(l *blockio.Line, r *blockio.Record) bool {
	l.Gap()
	sector := l.Number("a sector", math.MaxInt64/blockio.SectorSize)
	l.Gap()
	if l.Next() != '+' {
		return false // command bytes for the device
	}
	l.Word()
	l.Gap()
	sectors := l.Number("a number of sectors", math.MaxInt64/blockio.SectorSize)
	r.Address, r.Bytes = sector*blockio.SectorSize, sectors*blockio.SectorSize
	return true
}

// reader collects the events of both actions; one of the two becomes the trace.
type reader struct {
	issued, queued *blockio.Collector
	devices        [2]blockio.Names // of issued and queued
	record         blockio.Record
}

// line reads a line.
func (r *reader) line(l *blockio.Line) blockio.Verdict {
	if isSummary(l.Text()) {
		return blockio.End
	}
	e := parseEvent(l)
	if l.Failed() || len(e.action) != 1 || e.action[0] != 'D' && e.action[0] != 'Q' {
		return blockio.Taken
	}
	isRead, ok := blockio.Direction(e.kind)
	if !ok {
		return blockio.Skipped
	}
	if r.record.Write = !isRead; !parseRange(l, &r.record) {
		return blockio.Skipped
	}
	r.record.Time = e.time
	if l.Failed() {
		return blockio.Taken
	}
	if e.action[0] == 'D' {
		r.record.Unit = r.devices[0].Number(e.device)
		return r.issued.Add(l, &r.record)
	}
	r.record.Unit = r.devices[1].Number(e.device)
	if r.queued.Full() {
		return blockio.Taken
	}
	r.queued.Add(l, &r.record)
	return blockio.Taken
}

// isSummary reports whether a line begins the summary behind the events.
func isSummary(line []byte) bool {
	return bytes.HasPrefix(line, []byte("CPU")) || bytes.HasPrefix(line, []byte("Total ("))
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a storage trace")
	if err != nil {
		return nil, err
	}
	r := &reader{issued: blockio.NewCollector(in, &o), queued: blockio.NewCollector(in, &o)}
	if err := blockio.EachLine(in, &o, r.line); err != nil {
		return nil, err
	}
	c, f := r.issued, facts{Action: "D", Units: r.devices[0].List()}
	if c.Len() == 0 && r.queued.Len() > 0 {
		c, f = r.queued, facts{Action: "Q", Units: r.devices[1].List()}
		o.Warn("%s: no request was issued to a device (action D); the queued requests (action Q) are read instead",
			in.Name)
	}
	t, err := c.Trace()
	if err != nil {
		return nil, err
	}
	attrs, err := json.Marshal(map[string]facts{"blkparse": f})
	t.Attrs = string(attrs)
	return t, err
}
