// Package disksim reads the ASCII traces of the simulators DiskSim, SSDsim and MQSim: five numbers per line for
// each read or write. DiskSim's times are in milliseconds, the others' in nanoseconds.
// docs/reference/formats/blocktraces.md describes the mapping.
package disksim

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// DiskSim is the format of DiskSim.
var DiskSim = milliseconds.format("disksim", "DiskSim ASCII traces, times in milliseconds")

// MQSim is the format of MQSim and SSDsim.
var MQSim = nanoseconds.format("mqsim", "MQSim and SSDsim ASCII traces, times in nanoseconds")

// clock is the unit of times, 10^clock picoseconds.
type clock int

const (
	milliseconds clock = 9
	nanoseconds  clock = 3
)

func (c clock) format(name, title string) format.Format {
	return format.Format{
		Name:    name,
		Modes:   format.Modes{Lenient: true},
		Title:   title,
		Detect:  func(head []byte) bool { return blockio.FirstLine(head, c.isRecord) },
		Read:    c.read,
		Options: blockio.Table,
	}
}

// parse parses TIME DEVICE SECTOR SECTORS FLAG.
func (c clock) parse(l *blockio.Line, size, step int64, r *blockio.Record) {
	l.Blanks()
	if c == milliseconds {
		r.Time, _ = l.Time("a time in milliseconds", int(c))
	} else {
		r.Time = dag.Time(l.Number("a time in nanoseconds", int64(dag.MaxTime/dag.Nanosecond))) * dag.Nanosecond
	}
	l.Gap()
	r.Unit = int32(l.Number("a device number", math.MaxInt32))
	l.Gap()
	r.Address = l.Number("a sector", math.MaxInt64/step) * step
	l.Gap()
	r.Bytes = l.Number("a number of sectors", math.MaxInt64/size) * size
	l.Gap()
	r.Write = l.Number("1 for a read or 0 for a write", 1) == 0
	if l.Blanks(); !l.End() {
		l.Fail("the end of the line")
	}
}

func (c clock) isRecord(l *blockio.Line) bool {
	c.parse(l, 1, 1, &blockio.Record{})
	return !l.Failed()
}

func (c clock) read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a storage trace")
	if err != nil {
		return nil, err
	}
	size, step, err := blockio.BlockSize(&o)
	if err != nil {
		return nil, err
	}
	collector := blockio.NewCollector(in, &o)
	var record blockio.Record
	err = blockio.EachLine(in, &o, func(l *blockio.Line) blockio.Verdict {
		c.parse(l, size, step, &record)
		return collector.Add(l, &record)
	})
	if err != nil {
		return nil, err
	}
	return collector.Trace()
}
