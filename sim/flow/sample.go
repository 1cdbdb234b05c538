package flow

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// sampler writes the rates of ports at multiples of a period while there are flows. A nil sampler does nothing.
type sampler struct {
	period, next uint64 // picoseconds
	count        measure.SampleCount
	out          *csv.Writer
	rows         []portRow
	links        []uint32 // by row
}

func newSampler(out io.Writer, period uint64, c *coupling) *sampler {
	s := &sampler{period: period, out: csv.NewWriter(out), count: measure.SampleCount{Period: dag.Time(period)}}
	s.rows, s.links = c.paths.portRows()
	s.out.Write([]string{"time_ps", "port", "bytes_per_s", "utilisation"})
	return s
}

// until takes the samples before a time. Rates have not changed since the last event.
func (s *sampler) until(c *coupling, t uint64) {
	if s == nil {
		return
	}
	if c.running > 0 {
		for ; s.next < t && c.err == nil; s.next += s.period {
			if c.err = s.count.Take(dag.Time(s.next)); c.err == nil && s.count.Taken()%contextSteps == 0 {
				c.err = sim.Interrupted(c.ctx)
			}
			s.take(c)
		}
	}
	if s.next < t {
		s.next = (t + s.period - 1) / s.period * s.period
	}
}

// take writes a sample of each port in use.
func (s *sampler) take(c *coupling) {
	for k, i := range s.links {
		l := &c.fluid.links[i]
		rate := 0.0
		for _, u := range l.users {
			rate += u.ratio * c.fluid.limits[u.flow].level
		}
		if rate > 0 && c.err == nil {
			c.err = s.count.Row(dag.Time(s.next))
			s.out.Write([]string{strconv.FormatUint(s.next, 10), s.rows[k].name,
				strconv.FormatFloat(rate/float64(l.ports()), 'f', 0, 64),
				strconv.FormatFloat(min(1, rate/l.capacity), 'f', 4, 64)})
		}
	}
}

// finish completes the file.
func (s *sampler) finish() error {
	if s == nil {
		return nil
	}
	s.out.Flush()
	return s.out.Error()
}
