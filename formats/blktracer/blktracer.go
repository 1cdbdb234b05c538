// Package blktracer reads the output of ATLAHS's block I/O tracer: one line for each request that Linux issues to
// a driver on behalf of the traced applications. docs/reference/formats/blocktraces.md describes the mapping.
package blktracer

import (
	"bytes"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
)

// Format is the format of the tracer's output.
var Format = format.Format{
	Name:       "blktracer",
	Modes:      format.Modes{Lenient: true},
	Title:      "ATLAHS block I/O traces",
	Extensions: []string{".io"},
	Detect:     detect,
	Read:       read,
	Options:    blockio.Table,
}

// Exponents of the units of time: 10^n picoseconds.
const (
	inNanoseconds = 3
	inSeconds     = 12
)

// banner begins the first line that bpftrace prints.
const banner = "Attaching "

// detect reports whether the first line, without a banner, is a record with a time in whole nanoseconds. A time in
// seconds would make it an SPC record.
func detect(head []byte) bool {
	if bytes.HasPrefix(head, []byte(banner)) {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	return blockio.FirstLine(head, func(l *blockio.Line) bool {
		return mayBeRecord(l.Text()) && bytes.IndexByte(l.Text(), '.') < 0 &&
			parse(l, &blockio.Record{}) == blockio.Taken && !l.Failed()
	})
}

// mayBeRecord reports whether a line has five fields, the first of which begins with a digit. Other lines are
// messages.
func mayBeRecord(line []byte) bool {
	return len(line) > 0 && '0' <= line[0] && line[0] <= '9' && bytes.Count(line, []byte(",")) == 4
}

// parse parses APPLICATION,SECTOR,BYTES,FLAGS,TIME. It skips a line that is neither a read nor a write, whose
// other fields have no fixed meaning.
func parse(l *blockio.Line, r *blockio.Record) blockio.Verdict {
	isRead, ok := blockio.Direction(bytes.Split(l.Text(), []byte(","))[3])
	if !ok {
		return blockio.Skipped
	}
	r.Write = !isRead
	r.Unit = int32(l.Number("an application number", math.MaxInt32))
	l.Comma()
	r.Address = l.Number("a sector", math.MaxInt64/blockio.SectorSize) * blockio.SectorSize
	l.Comma()
	r.Bytes = l.Number("a size in bytes", math.MaxInt64)
	l.Comma()
	l.Word()
	l.Comma()
	unit := inNanoseconds
	if bytes.IndexByte(l.Peek(), '.') >= 0 {
		unit = inSeconds
	}
	r.Time, _ = l.Time("a time in nanoseconds", unit)
	if !l.End() {
		l.Fail("the end of the line")
	}
	return blockio.Taken
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a storage trace")
	if err != nil {
		return nil, err
	}
	c := blockio.NewCollector(in, &o)
	var record blockio.Record
	err = blockio.EachLine(in, &o, func(l *blockio.Line) blockio.Verdict {
		if !mayBeRecord(l.Text()) {
			if bytes.HasPrefix(l.Text(), []byte(banner)) || bytes.HasPrefix(l.Text(), []byte("Time limit reached")) {
				return blockio.Taken
			}
			return blockio.Skipped
		}
		if parse(l, &record) == blockio.Skipped {
			return blockio.Skipped
		}
		return c.Add(l, &record)
	})
	if err != nil {
		return nil, err
	}
	return c.Trace()
}
