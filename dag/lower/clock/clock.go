// Package clock expresses release times by dependencies, for formats that have streams but no release times: on a
// stream of its own, each rank gets a chain of calcs that end at its release times, and an op that is released at such
// a time waits for that calc. [Add] inserts the clocks; [Remove] restores the release times.
package clock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Options are the properties of a target.
type Options struct {
	Unit          dag.Time // release times are rounded to it, halves up, so that durations are whole numbers of it
	HighestStream int32    // that a clock can have
	Readers       int      // of the source at the same time, 1 or more
}

// Clock is a source with clocks in place of release times.
type Clock struct {
	dag.Source
	unit   dag.Time
	stream int32
	ticks  []int32     // calcs of the clock of each rank
	inputs []dag.Batch // of the source, one for each batch of the header
	header dag.Header

	Released int64 // ops that wait for a clock
	Rounded  int64 // ops whose release time is rounded
}

// lowStreams is the number of streams among which Add looks for a free one before it takes the one above all.
const lowStreams = 1 << 16

// usage is the streams in use.
type usage struct {
	low     [lowStreams]bool
	highest int32
}

func (u *usage) add(r *dag.Rank) {
	if r.Len() > r.Stream.Len() {
		u.low[0] = true
	}
	for i := range r.Stream.Len() {
		stream := r.Stream.At(i)
		if uint32(stream) < lowStreams {
			u.low[stream] = true
		}
		u.highest = max(u.highest, stream)
	}
}

// free returns the lowest stream that is not in use or, if all low ones are, the one above the highest.
func free(all []*usage) int64 {
	highest := int32(0)
	for stream := range lowStreams {
		used := func(u *usage) bool { return u.low[stream] }
		if !slices.ContainsFunc(all, used) {
			return int64(stream)
		}
	}
	for _, u := range all {
		highest = max(highest, u.highest)
	}
	return int64(highest) + 1
}

// Add returns the source with a clock on every rank that has release times, on the lowest stream that no op of the
// trace uses. The calcs of a clock precede all other ops. Add reads s once; the result inserts the clocks while it is
// read. It ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
//
// Add returns an error if no stream up to the highest is free, or if a rank gets too many ops or dependencies.
func Add(ctx context.Context, s dag.Source, o Options) (*Clock, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	c := &Clock{Source: s, unit: o.Unit, ticks: make([]int32, h.Ranks), inputs: h.Batches, header: *h}
	c.header.Batches = slices.Clone(h.Batches)
	var released, rounded atomic.Int64
	type scanner struct {
		read  dag.Reader
		times []int64
		used  usage
	}
	start := func() *scanner { return &scanner{read: s.NewReader(dag.Replay)} }
	scan := func(w *scanner, k int) error {
		if err := par.Interrupted(ctx); err != nil {
			return fmt.Errorf("release times: %w", err)
		}
		b := &c.header.Batches[k]
		first := b.First
		ranks, err := w.read.Ranks(h.Batches[k])
		if err != nil {
			return err
		}
		for i := range ranks {
			r := ranks[i]
			w.used.add(r)
			w.times = c.times(w.times[:0], r)
			waits := int64(0)
			for _, t := range r.Release {
				if t > 0 {
					if t%c.unit != 0 {
						rounded.Add(1)
					}
					if c.round(t) > 0 {
						waits++
						released.Add(1)
					}
				}
			}
			ticks := int64(len(w.times))
			if ticks+int64(r.Len()) > dag.MaxOps || ticks+waits+int64(len(r.Deps.Off)) > dag.MaxDeps {
				return fmt.Errorf("rank %d: a clock of %d calcs for its release times exceeds the limit of %d ops or "+
					"%d dependencies", first+i, ticks, dag.MaxOps, int64(dag.MaxDeps))
			}
			c.ticks[first+i] = int32(ticks)
			b.Ops += ticks
			b.Deps += max(ticks-1, 0) + waits
		}
		return nil
	}
	scanners, err := par.EachOnWith(o.Readers, len(h.Batches), start, scan)
	if err != nil {
		return nil, err
	}
	c.Released, c.Rounded = released.Load(), rounded.Load()
	used := make([]*usage, len(scanners))
	for i, w := range scanners {
		used[i] = &w.used
	}
	return c, c.finish(used, o.HighestStream)
}

// NoStreamError reports that the trace uses all streams that a clock could have.
type NoStreamError struct{ Highest int32 }

func (e *NoStreamError) Error() string {
	return fmt.Sprintf("release times need a stream of their own in 0..%d, and the trace uses all of these", e.Highest)
}

// finish sets the stream and the header.
func (c *Clock) finish(used []*usage, highest int32) error {
	total := int64(0)
	for _, ticks := range c.ticks {
		total += int64(ticks)
	}
	if total == 0 {
		return nil
	}
	stream := free(used)
	if stream > int64(highest) {
		return &NoStreamError{highest}
	}
	c.stream = int32(stream)
	c.header.Ops += total
	if !slices.Contains(c.header.Kinds, dag.Calc) {
		c.header.Kinds = append([]dag.Kind{dag.Calc}, c.header.Kinds...)
	}
	return nil
}

// Ticks returns the number of calcs of a rank's clock, which are its first ops.
func (c *Clock) Ticks(rank int) int {
	return int(c.ticks[rank])
}

// round returns a release time in units, rounded half up unless the result exceeds the largest time.
func (c *Clock) round(t dag.Time) int64 {
	n, rest := int64(t/c.unit), t%c.unit
	if rest >= c.unit-rest && rest > 0 && n < int64(dag.MaxTime/c.unit) {
		n++
	}
	return n
}

// times appends the distinct release times of a rank in units, ascending and above 0.
func (c *Clock) times(times []int64, r *dag.Rank) []int64 {
	for _, t := range r.Release {
		if t <= 0 {
			continue
		}
		if n := c.round(t); n > 0 && (len(times) == 0 || times[len(times)-1] != n) {
			times = append(times, n)
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// Header returns the header of the trace with clocks.
func (c *Clock) Header() (*dag.Header, error) {
	return &c.header, nil
}

// NewReader returns a reader that inserts the clocks.
func (c *Clock) NewReader(columns dag.Columns) dag.Reader {
	read := c.Source.NewReader(columns)
	var times []int64
	var out []*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		k, found := c.header.Find(b)
		if !found {
			return nil, fmt.Errorf("no batch of ranks %d to %d", b.First, b.Last-1)
		}
		ranks, err := read.Ranks(c.inputs[k])
		if err != nil {
			return nil, err
		}
		out = out[:0]
		for i := range ranks {
			r := ranks[i]
			if len(r.Release) > 0 {
				times = c.times(times[:0], r)
				if len(times) != int(c.ticks[b.First+i]) {
					return nil, fmt.Errorf("rank %d changed between two passes", b.First+i)
				}
				clocked, err := c.insert(r, times)
				if err != nil {
					return nil, fmt.Errorf("rank %d: %w", b.First+i, err)
				}
				r = clocked.Keep()
			}
			out = append(out, r)
		}
		return out, nil
	}
}

// insert returns the rank with a clock for the given times in place of its release times.
func (c *Clock) insert(r *dag.Rank, times []int64) (dag.Rank, error) {
	bare := *r
	bare.Release = nil
	if len(times) == 0 {
		return bare, nil
	}
	n, ticks := r.Len(), len(times)
	ops := make([]int32, ticks+n)
	for i := range ops {
		ops[i] = max(int32(i-ticks), -1)
	}
	out, ok := bare.Gather(ops)
	if !ok {
		return out, errors.New("more than 4 GiB of names or attributes")
	}
	last := int64(0)
	for i, t := range times {
		out.Duration.Set(i, dag.Time(t-last)*c.unit)
		out.Stream.Set(i, c.stream)
		if job := r.Job.At(0); job != 0 {
			out.Job.Set(i, job)
		}
		last = t
	}
	out.Deps = dag.Edges{End: make([]uint32, 0, ticks+n), Off: make([]int32, 0, ticks+len(r.Deps.Off)+len(r.Release))}
	for i := 1; i < ticks; i++ {
		out.Deps.Append(i, 1)
	}
	for i := range n {
		if t := r.Release.At(i); t > 0 {
			if at, found := slices.BinarySearch(times, c.round(t)); found {
				out.Deps.Append(ticks+i, int32(ticks+i-at))
			}
		}
		for _, off := range r.Deps.Of(i) {
			out.Deps.Append(ticks+i, off)
		}
	}
	out.StartDeps = shift(&r.StartDeps, ticks)
	out.Order, out.StartOrder = shift(&r.Order, ticks), shift(&r.StartOrder, ticks)
	return out, nil
}

// shift returns the lists for ops that follow n new ones.
func shift(e *dag.Edges, n int) dag.Edges {
	if len(e.Off) == 0 {
		return dag.Edges{}
	}
	return dag.Edges{End: append(make([]uint32, n, n+len(e.End)), e.End...), Off: e.Off}
}
