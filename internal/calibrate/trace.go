package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
	"github.com/tracedag/tracedag/sim/loggops"
)

// traceTool is the tool of tables of recorded traces.
const traceTool = "trace"

// envelopeShare is the part of the samples of a size that are below its time.
const envelopeShare = 0.05

// fewSamples is the number of samples of a size below which its shortest one counts.
const fewSamples = 20

// ErrUnmeasured is the error about a trace without measured times.
var ErrUnmeasured = errors.New("the trace has no measured times: record it with a tracer that writes the start and " +
	"end of each call, or give tables of a micro-benchmark")

// FromTrace returns the times of messages in a recorded trace, as a benchmark would measure them. Names and digest of
// the table are the caller's. It returns [ErrUnmeasured] for a trace without measured times, and errors for receives
// from any source, for a trace without messages whose times it can use, and for a backend without estimates from
// traces.
//
// For loggops, a blocking receive that was posted before its send started ends when the message is there: from the
// start of the send to the end of the receive is a sample of the time of a message. Contention and busy partners
// prolong most samples, so the time of a size is the 5th percentile of its samples, the lower envelope.
//
// For flow, see flowTimes.
func FromTrace(ctx context.Context, t *dag.Trace, o Options) (*fit.Table, error) {
	on := cmp.Or(o.Backend, Backends[0])
	if on != loggops.Backend.Name && on != flow.Backend.Name {
		return nil, fmt.Errorf("expected the backend %s or %s for the times of a trace, found %s; give tables of a "+
			"micro-benchmark", loggops.Backend.Name, flow.Backend.Name, on)
	}
	rec, err := readRecording(ctx, t)
	if err != nil {
		return nil, err
	}
	table := &fit.Table{Tool: traceTool}
	if on == flow.Backend.Name {
		err = flowTimes(ctx, rec, table, o)
	} else {
		err = rec.envelope(table)
	}
	if err != nil {
		return nil, err
	}
	if e, ok := dag.ClockErrorOf(t); ok && e.AtLeast > 0 {
		table.Remark("clocks of ranks differ by at least %.3g s: so may the times of messages", seconds(e.AtLeast))
	}
	return table, nil
}

func seconds(t dag.Time) float64 { return float64(t) / float64(dag.Second) }

// envelope adds ping-pongs between any two ranks, for loggops.
func (rec *recording) envelope(table *fit.Table) error {
	var found series
	total, early := 0, 0
	for i := range rec.messages {
		m := &rec.messages[i]
		if m.taking == noCompletion {
			continue
		}
		switch c := &rec.completions[m.taking]; {
		case c.start != m.posted: // a receive that returns at once
		case m.posted >= m.sent:
		case c.end <= m.sent:
			early++
		default:
			found.add(m.bytes, c.end-m.sent)
			total++
		}
	}
	if total == 0 {
		return errors.New("expected blocking receives that were posted before their sends started, with " +
			"measured times of both; found none: give tables of a micro-benchmark")
	}
	few := 0
	for _, times := range found {
		if int(envelopeShare*float64(len(times))) == 0 {
			few++
		}
	}
	table.Rows = append(table.Rows, found.rows(fit.PingPong)...)
	table.Remark("times of a trace instead of a ping-pong: the lower envelope, which is the 5th percentile of each "+
		"size, of %d receives that waited, of %d sizes; contention may prolong it", total, len(found))
	if few > 0 {
		table.Remark("%d of %d sizes have fewer than %d receives that waited: their shortest one counts", few,
			len(found), fewSamples)
	}
	if early > 0 {
		table.Remark("%d receives end before their sends start, and are discarded: clocks of ranks differ", early)
	}
	return nil
}

// series are times by size.
type series map[int64][]dag.Time

func (s *series) add(bytes int64, t dag.Time) {
	if *s == nil {
		*s = series{}
	}
	(*s)[bytes] = append((*s)[bytes], t)
}

// rows returns the lower envelope of the times as measurements of a test, by size.
func (s series) rows(test string) (rows []fit.Measurement) {
	for _, bytes := range slices.Sorted(maps.Keys(s)) {
		times := s[bytes]
		slices.Sort(times)
		rows = append(rows, fit.Measurement{Test: test, Bytes: bytes,
			Seconds: seconds(times[int(envelopeShare*float64(len(times)))])})
	}
	return rows
}

// checkPlaces returns an error about tables of traces for a backend that has no estimates from them.
func checkPlaces(tables []*fit.Table, backend string) error {
	for _, t := range tables {
		if t.Tool == traceTool {
			return fmt.Errorf("%s: expected times with places for the backend %s, found those of a trace, which are "+
				"of any two ranks; fit loggops or flow, or give tables of a micro-benchmark", t.Name, backend)
		}
	}
	return nil
}
