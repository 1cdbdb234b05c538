package goal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/clock"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of reading GOAL.
type Options struct {
	// Clock is the choice of the stream whose calcs become release times.
	Clock  ClockChoice
	Stream int32 // of ClockStream
}

// ClockChoice is the choice of the stream that is read as a clock.
type ClockChoice uint8

// The choices.
const (
	ClockMarked ClockChoice = iota // the stream that the comment of a text marks
	ClockAuto                      // the stream that looks like a clock, if there is one
	ClockStream                    // the stream of the options
	ClockNone                      // no stream
)

const (
	clockStream = "clock-stream"
	noClock     = "no-clock"
)

var readTable = &format.OptionTable{
	Name: "goal", Title: "GOAL schedules, read",
	New: func() format.Options { return new(Options) },
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	stream := param.Func("STREAM", clockStream, "cpu whose chain of calcs becomes release times; auto to find "+
		"it; none to keep all calcs (default: the cpu that a comment marks)", func(text string) error {
		switch text {
		case "auto":
			o.Clock = ClockAuto
			return nil
		case "none":
			o.Clock = ClockNone
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("expected auto, none or a cpu in 0..%d, found %q", math.MaxInt32, text)
		}
		o.Clock, o.Stream = ClockStream, int32(n)
		return nil
	})
	return param.Set{stream}
}

// WriteOptions are the options of writing GOAL.
type WriteOptions struct {
	NoClock bool // discard release times
}

var writeTable = &format.OptionTable{
	Name: "goal", Title: "GOAL schedules, written",
	New: func() format.Options { return new(WriteOptions) },
}

// Params returns the parameters of the options.
func (o *WriteOptions) Params() param.Set {
	return param.Set{param.Bool(&o.NoClock, noClock,
		"discard release times instead of writing them as calcs of a clock on a cpu of its own")}
}

// highestClock is the highest cpu of a clock in a binary: simulators count cpus in 8 bits.
const highestClock = math.MaxUint8 - 1

// withClock returns the source with clocks in place of release times.
func withClock(s dag.Source, binary bool) (*clock.Clock, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	_, readers, err := divide(h)
	if err != nil {
		return nil, err
	}
	o := clock.Options{Unit: dag.Nanosecond, HighestStream: math.MaxInt32, Readers: readers}
	if binary {
		o.HighestStream = highestClock
	}
	c, err := clock.Add(context.Background(), s, o)
	if full := new(clock.NoStreamError); errors.As(err, &full) {
		return nil, fmt.Errorf("GOAL cannot represent the trace: %w; --%s discards the release times", err, noClock)
	}
	return c, err
}

// restoreReleases replaces the clocks of the ranks by release times. marked are the streams that the file marks as the
// clocks of the ranks; nil: it marks none.
func restoreReleases(ranks []*dag.Rank, o format.ReadOptions, marked []int32) error {
	own := format.Own(o.Own, func() *Options { return new(Options) })
	all := int32(unmarked)
	if own.Clock == ClockAuto {
		if stream, found := clock.Find(ranks); found {
			all = stream
		}
		marked = nil
	}
	for rank, r := range ranks {
		mark := all
		if marked != nil {
			mark = marked[rank]
		}
		restored, err := own.restored(rank, r, mark)
		if err != nil {
			return err
		}
		ranks[rank] = restored
	}
	return nil
}

// restored returns a rank with release times in place of its clock, the calcs of a stream. marked is the stream that
// the file marks or that looks like a clock, or unmarked. A stream that is no clock stays, or is an error if the
// options name it.
func (o *Options) restored(rank int, r *dag.Rank, marked int32) (*dag.Rank, error) {
	stream := marked
	switch o.Clock {
	case ClockNone:
		return r, nil
	case ClockStream:
		stream = o.Stream
	}
	if stream == unmarked {
		return r, nil
	}
	ops := clock.On(r, stream)
	restored, found := clock.Remove(r, ops)
	switch {
	case found:
		return restored.Keep(), nil
	case o.Clock == ClockStream && len(ops) > 0:
		return nil, fmt.Errorf("rank %d: --%s %d: expected a chain of calcs that wait for nothing else, found other "+
			"ops or dependencies", rank, clockStream, stream)
	}
	return r, nil
}
