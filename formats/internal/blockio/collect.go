package blockio

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// MaxUnits is the maximum number of units of a trace.
const MaxUnits = 1 << 16

// Record is one line of a trace.
type Record struct {
	Time     dag.Time // since the start of the trace
	Unit     int32    // 0 or more
	Address  int64    // in the unit, in bytes
	Bytes    int64
	Write    bool
	Duration dag.Time // response time; 0: unknown
	Attrs    []byte   // members of a JSON object, `"a":1,"b":2`: further data of the format
}

// Collector builds a trace from records.
type Collector struct {
	file    string
	options *format.ReadOptions
	own     *Options
	count   int64
	units   []*unit
	low     [256]*unit // by number
	high    map[int32]*unit

	last        dag.Time // of the last record
	top         int32    // highest unit at time last so far
	place       int      // of the last record among those of its time
	backward    occurrences
	earliest    dag.Time
	attrs       []byte
	commonPlace [64]string // attributes with only a place among records of equal time, by place
}

// unit collects the ops of a unit.
type unit struct {
	number    int32
	subkind   []dag.Subkind
	bytes     []int64
	address   []int64
	release   []dag.Time
	durations dag.Column[dag.Time]
	attrs     dag.Text
}

// NewCollector returns a collector for the records of a file.
func NewCollector(in *format.Input, o *format.ReadOptions) *Collector {
	return &Collector{file: in.Name, options: o, own: optionsOf(o), high: make(map[int32]*unit)}
}

// Add adds a record, which line l contains. It fails the line if a trace cannot represent the record. It returns
// End after the last record to read.
func (c *Collector) Add(l *Line, r *Record) Verdict {
	if l.failed {
		return Taken
	}
	if r.Address > math.MaxInt64-r.Bytes {
		l.FailWith("bytes at addresses below 2^63", fmt.Sprintf("%d at %d", r.Bytes, r.Address))
		return Taken
	}
	if r.Time < c.last && c.count > 0 {
		if !c.own.AnyOrder {
			l.FailWith(fmt.Sprintf("a time not before the previous record's, %v (--any-order accepts others)", c.last),
				r.Time.String())
			return Taken
		}
		c.backward.add(c.count + 1)
	}
	u := c.unit(r.Unit)
	if u == nil {
		l.FailWith(fmt.Sprintf("at most %d units", MaxUnits), "another")
		return Taken
	}
	c.put(l, u, r)
	if c.Full() {
		return End
	}
	return Taken
}

// unit returns the unit with a number, or nil if there are too many units.
func (c *Collector) unit(number int32) *unit {
	if number < int32(len(c.low)) {
		if u := c.low[number]; u != nil {
			return u
		}
	} else if u := c.high[number]; u != nil {
		return u
	}
	if len(c.units) == MaxUnits {
		return nil
	}
	u := &unit{number: number}
	c.units = append(c.units, u)
	if number < int32(len(c.low)) {
		c.low[number] = u
	} else {
		c.high[number] = u
	}
	return u
}

// put adds a record to its unit.
func (c *Collector) put(l *Line, u *unit, r *Record) {
	tied := false
	if r.Time == c.last && c.count > 0 {
		c.place++
		tied = r.Unit < c.top
		c.top = max(c.top, r.Unit)
	} else {
		c.last, c.top, c.place = r.Time, r.Unit, 0
		c.earliest = min(c.earliest, r.Time)
	}
	i := len(u.release)
	if (tied || len(r.Attrs) > 0) && !u.attrs.Append(i, c.attributes(tied, r.Attrs)) {
		l.FailWith("less than 4 GiB of attributes in a unit", "more")
		return
	}
	subkind := dag.Read
	if r.Write {
		subkind = dag.Write
	}
	u.subkind = append(u.subkind, subkind)
	u.bytes = append(u.bytes, r.Bytes)
	u.address = append(u.address, r.Address)
	u.release = append(u.release, r.Time)
	u.durations.Set(i, r.Duration)
	c.count++
}

// attributes returns the attributes of a record.
func (c *Collector) attributes(tied bool, members []byte) string {
	common := tied && len(members) == 0 && c.place < len(c.commonPlace)
	if common && c.commonPlace[c.place] != "" {
		return c.commonPlace[c.place]
	}
	text := append(c.attrs[:0], '{')
	if tied {
		text = attr.RecordTie(c.place).Append(text)
	}
	if tied && len(members) > 0 {
		text = append(text, ',')
	}
	text = append(text, members...)
	c.attrs = append(text, '}')
	attrs := string(c.attrs)
	if common {
		c.commonPlace[c.place] = attrs
	}
	return attrs
}

// Len returns the number of records.
func (c *Collector) Len() int64 {
	return c.count
}

// Full reports whether the trace has the maximum number of records.
func (c *Collector) Full() bool {
	return c.count > 0 && c.count == c.own.MaxRecords
}

// Start returns the record time that becomes time 0 of the trace: 0, or the earliest time if that is negative.
func (c *Collector) Start() dag.Time {
	return c.earliest
}

// Trace returns the trace of all records; there must be at least one. The collector cannot be used afterwards. If
// times decreased, it sorts the records by time. If some times are negative, it shifts all times so that the first
// is 0.
func (c *Collector) Trace() (*dag.Trace, error) {
	if c.count == 0 {
		return nil, &format.SyntaxError{File: c.file, Line: 1, Expected: "at least one read or write", Found: "none"}
	}
	slices.SortFunc(c.units, func(a, b *unit) int { return cmp.Compare(a.number, b.number) })
	t := &dag.Trace{Comms: []dag.Comm{dag.World(len(c.units))}, Ranks: dag.NewRanks(len(c.units))}
	for i, u := range c.units {
		if c.backward.count > 0 {
			if err := u.sort(c.earliest); err != nil {
				return nil, &format.FileError{File: c.file, Err: err}
			}
		}
		r := u.rank()
		t.Ranks[i] = r.Keep()
		c.units[i] = nil
	}
	if c.backward.count > 0 {
		c.options.Warn("%s: the time of record %d is before the previous record's; the records are sorted by time "+
			"(%d in all)", c.file, c.backward.first, c.backward.count)
	}
	return t, nil
}

// rank returns the ops of a unit.
func (u *unit) rank() dag.Rank {
	n := len(u.release)
	r := dag.Rank{Kind: make([]dag.Kind, n), Subkind: u.subkind, Bytes: u.bytes, Tag: u.address, Duration: u.durations,
		Release: u.release, Attrs: u.attrs}
	for i := range r.Kind {
		r.Kind[i] = dag.IO
	}
	if u.number != 0 {
		r.Peer = slices.Repeat([]int32{u.number}, n)
	}
	return r
}

// sort orders the ops by time and subtracts the earliest time of the trace.
func (u *unit) sort(earliest dag.Time) error {
	order := make([]int, len(u.release))
	for i := range order {
		order[i] = i
		if u.release[i] > math.MaxInt64+earliest {
			return errors.New("times must be within 106 days of each other")
		}
		u.release[i] -= earliest
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(u.release[a], u.release[b]) })
	sorted := unit{number: u.number}
	for i, from := range order {
		sorted.subkind = append(sorted.subkind, u.subkind[from])
		sorted.bytes = append(sorted.bytes, u.bytes[from])
		sorted.address = append(sorted.address, u.address[from])
		sorted.release = append(sorted.release, u.release[from])
		sorted.durations.Set(i, u.durations.At(from))
		sorted.attrs.Append(i, u.attrs.At(from))
	}
	*u = sorted
	return nil
}
