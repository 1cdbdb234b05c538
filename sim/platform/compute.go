package platform

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
)

// processor is the processor of a host.
type processor struct {
	speed float64 // operations per second of a core; 0: not given
	cores int
}

// Computed is a source whose calcs take their operations at the speed of the hosts of a platform, as in SimGrid.
type Computed struct {
	dag.Source
	p     *Platform
	hosts []uint32    // by rank
	timed atomic.Bool // calcs have got a duration
	kept  atomic.Bool // calcs with operations keep the duration of the trace
}

// Compute returns the source with a duration for each calc that has operations but none: the operations at the speed of
// one core of the host of its rank. Calcs on a host without a speed stay as they are.
func (p *Platform) Compute(s dag.Source, hosts []uint32) *Computed {
	return &Computed{Source: s, p: p, hosts: hosts}
}

// NewReader returns a reader of the given columns.
func (c *Computed) NewReader(columns dag.Columns) dag.Reader {
	read := c.Source.NewReader(columns)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		ranks, err := read.Ranks(b)
		if err != nil {
			return nil, err
		}
		var timed []*dag.Rank // the reader's own list stays as it is
		for i, r := range ranks {
			changed := c.rank(r, b.First+i)
			if changed == r {
				continue
			}
			if timed == nil {
				timed = append(timed, ranks...)
				ranks = timed
			}
			ranks[i] = changed
		}
		return ranks, nil
	}
}

// rank returns a rank with the durations, or the rank itself if it needs none.
func (c *Computed) rank(r *dag.Rank, number int) *dag.Rank {
	if len(r.Flops) == 0 || number >= len(c.hosts) || uint64(c.hosts[number]) >= uint64(len(c.p.processors)) {
		return r // a later check of the placement fails
	}
	speed := c.p.processors[c.hosts[number]].speed
	if speed <= 0 {
		return r
	}
	for i, flops := range r.Flops {
		if flops > 0 && i < len(r.Kind) && r.Kind[i] == dag.Calc && r.Duration.At(i) != 0 {
			c.kept.Store(true)
			break
		}
	}
	timed := r.Timed(func(i int) dag.Time { return timeOf(r.Flops[i], speed) })
	if timed != r {
		c.timed.Store(true)
	}
	return timed
}

// timeOf returns the time of operations at a speed per second, at most [dag.MaxTime].
func timeOf(flops int64, speed float64) dag.Time {
	if whole := int64(min(speed, math.MaxInt64/2)); float64(whole) == speed {
		return dag.AtRate(flops, whole)
	}
	if t := math.Ceil(float64(flops) / speed * float64(dag.Second)); t < math.MaxInt64 {
		return dag.Time(t)
	}
	return dag.MaxTime
}

// Check returns an error if the calcs that got a duration have other ones on the given hosts. It calls warn if more
// ranks compute on a host than it has cores, if a host has a profile of its speed, and if calcs keep durations that do
// not depend on the speeds of their hosts.
func (c *Computed) Check(hosts []uint32, warn func(format string, args ...any)) error {
	if c == nil {
		return nil
	}
	ranks, timed, differ := make([]int, len(c.p.Hosts)), c.timed.Load(), false
	for rank, host := range hosts[:min(len(hosts), len(c.hosts))] {
		now, before := c.p.processors[host].speed, c.p.processors[c.hosts[rank]].speed
		if timed && now != before {
			return fmt.Errorf("expected placements whose hosts have equal speeds, because the durations of "+
				"computations follow from them, found %g and %g operations per second for rank %d; run one "+
				"placement at a time", before, now, rank)
		}
		ranks[host]++
		differ = differ || now != c.p.processors[hosts[0]].speed
	}
	if differ && c.kept.Load() {
		warn("computations keep the durations of the trace, though the speeds of hosts differ; " +
			"operations without a duration (no --host-speed) take the speed of their host")
	}
	if timed && c.p.profiled != "" {
		warn("profiles of hosts, such as that of %s, are not read: computations take the speed of their host as if it "+
			"were constant, while SimGrid changes it", c.p.profiled)
	}
	for host, n := range ranks {
		if cores := c.p.processors[host].cores; timed && n > cores {
			warn("%d ranks compute on host %s with %d cores: each has the speed of a core, while SimGrid divides it", n,
				c.p.Hosts[host], cores)
			break
		}
	}
	return nil
}
