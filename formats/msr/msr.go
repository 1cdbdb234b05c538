// Package msr reads the block-storage traces of Microsoft Research Cambridge: one line of comma-separated values
// for each read or write, with the time in Windows file time. docs/reference/formats/blocktraces.md describes the
// mapping.
package msr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// Format is the format of the MSR Cambridge traces.
var Format = format.Format{
	Name:    "msr",
	Modes:   format.Modes{Lenient: true},
	Title:   "MSR Cambridge block-storage traces (CSV)",
	Detect:  func(head []byte) bool { return blockio.FirstLine(head, isRecord) },
	Read:    read,
	Options: blockio.Table,
}

// tick is the unit of Windows file time.
const tick = 100 * dag.Nanosecond

// facts is the content of dag.Meta.Attrs under the key "msr".
type facts struct {
	Start int64    `json:"start"` // time 0, in ticks since 1601-01-01 UTC
	Units []string `json:"units"` // HOST.DISK of each unit
}

// parse parses a line. It returns the time in ticks and the unit as HOST,DISK.
func parse(l *blockio.Line, r *blockio.Record) (ticks int64, unit []byte) {
	ticks = l.Number("a time in units of 100 ns", math.MaxInt64)
	l.Comma()
	from := l.Offset()
	if len(l.Word()) == 0 {
		l.Fail("a host name")
	}
	l.Comma()
	l.Number("a disk number", math.MaxInt32)
	unit = l.Text()[from:l.Offset()]
	l.Comma()
	switch kind := l.Peek(); {
	case bytes.EqualFold(kind, []byte("Read")):
		r.Write = false
	case bytes.EqualFold(kind, []byte("Write")):
		r.Write = true
	default:
		l.Fail("Read or Write")
	}
	l.Word()
	l.Comma()
	r.Address = l.Number("an offset in bytes", math.MaxInt64)
	l.Comma()
	r.Bytes = l.Number("a size in bytes", math.MaxInt64)
	l.Comma()
	r.Duration = dag.Time(l.Number("a response time in units of 100 ns", int64(dag.MaxTime/tick))) * tick
	if !l.End() {
		l.Fail("the end of the line")
	}
	return ticks, unit
}

func isRecord(l *blockio.Line) bool {
	parse(l, &blockio.Record{})
	return !l.Failed()
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a storage trace")
	if err != nil {
		return nil, err
	}
	c := blockio.NewCollector(in, &o)
	var units blockio.Names
	var record blockio.Record
	start := int64(-1)
	err = blockio.EachLine(in, &o, func(l *blockio.Line) blockio.Verdict {
		ticks, unit := parse(l, &record)
		if l.Failed() {
			return blockio.Taken
		}
		if start < 0 {
			start = ticks
		}
		since := ticks - start
		if since < -int64(dag.MaxTime/tick) || since > int64(dag.MaxTime/tick) {
			l.FailWith("a time within 106 days of the first", fmt.Sprint(ticks))
		}
		record.Time, record.Unit = dag.Time(since)*tick, units.Number(unit)
		return c.Add(l, &record)
	})
	if err != nil {
		return nil, err
	}
	t, err := c.Trace()
	if err != nil {
		return nil, err
	}
	names := units.List()
	for i, name := range names {
		names[i] = string(bytes.Replace([]byte(name), []byte(","), []byte("."), 1))
	}
	attrs, err := json.Marshal(map[string]facts{"msr": {Start: start + int64(c.Start()/tick), Units: names}})
	t.Attrs = string(attrs)
	return t, err
}
