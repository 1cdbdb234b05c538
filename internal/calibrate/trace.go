package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/sim/fit"
)

// traceTool is the tool of tables of recorded traces.
const traceTool = "trace"

// envelopeShare is the part of the samples of a size that are below its time.
const envelopeShare = 0.05

// ErrUnmeasured is the error about a trace without measured times.
var ErrUnmeasured = errors.New("the trace has no measured times: record it with a tracer that writes the start and " +
	"end of each call, or give tables of a micro-benchmark")

// FromTrace returns the times of messages in a recorded trace as ping-pongs. A blocking receive that was posted before
// its send started ends when the message is there: from the start of the send to the end of the receive is a sample of
// the time of a message. Contention and busy partners prolong most samples, so the time of a size is the 5th percentile
// of its samples, the lower envelope. Names and digest of the table are the caller's. It returns [ErrUnmeasured] for a
// trace without measured times, and errors for receives from any source and for a trace without such receives.
func FromTrace(ctx context.Context, t *dag.Trace) (*fit.Table, error) {
	measured := slices.ContainsFunc(t.Ranks, func(r *dag.Rank) bool {
		return len(r.MeasuredStart) > 0 && len(r.MeasuredEnd) > 0
	})
	if !measured {
		return nil, ErrUnmeasured
	}
	graphs := make([]dag.Dependents, len(t.Ranks))
	for rank, r := range t.Ranks {
		graphs[rank] = r.StartDependents()
	}
	samples, early, total := map[int64][]dag.Time{}, 0, 0
	err := compose.Messages(ctx, t, func(from, send, to, recv int) {
		sent, _ := t.Ranks[from].Measured(send)
		posted, end := t.Ranks[to].Measured(recv)
		switch {
		case from == to || sent == dag.Unmeasured || posted == dag.Unmeasured || end == dag.Unmeasured:
		case len(graphs[to].Of(recv)) > 0: // another op starts with it: a receive that returns at once
		case posted >= sent:
		case end <= sent:
			early++
		default:
			bytes := t.Ranks[from].Bytes.At(send)
			samples[bytes] = append(samples[bytes], end-sent)
			total++
		}
	})
	if err != nil {
		return nil, err
	}
	if total == 0 {
		return nil, errors.New("expected blocking receives that were posted before their sends started, with " +
			"measured times of both; found none: give tables of a micro-benchmark")
	}
	table := &fit.Table{Tool: traceTool}
	few := 0
	for bytes, times := range samples {
		slices.Sort(times)
		at := int(envelopeShare * float64(len(times)))
		if at == 0 {
			few++
		}
		table.Rows = append(table.Rows, fit.Measurement{Test: fit.PingPong, Bytes: bytes,
			Seconds: float64(times[at]) / float64(dag.Second)})
	}
	slices.SortFunc(table.Rows, func(a, b fit.Measurement) int { return cmp.Compare(a.Bytes, b.Bytes) })
	table.Remark("times of a trace instead of a ping-pong: the lower envelope, which is the 5th percentile of each "+
		"size, of %d receives that waited, of %d sizes; contention may prolong it", total, len(samples))
	if few > 0 {
		table.Remark("%d of %d sizes have fewer than 20 receives that waited: their shortest one counts", few,
			len(samples))
	}
	if early > 0 {
		table.Remark("%d receives end before their sends start, and are discarded: clocks of ranks differ", early)
	}
	if e, ok := dag.ClockErrorOf(t); ok && e.AtLeast > 0 {
		table.Remark("clocks of ranks differ by at least %.3g s: so may the times of messages", float64(e.AtLeast)/
			float64(dag.Second))
	}
	return table, nil
}

// checkPlaces returns an error about tables without places for a backend that needs them.
func checkPlaces(tables []*fit.Table, backend string) error {
	for _, t := range tables {
		if t.Tool == traceTool {
			return fmt.Errorf("%s: expected times with places for the backend %s, found those of a trace, which are "+
				"of any two ranks; fit loggops, or give tables of a micro-benchmark", t.Name, backend)
		}
	}
	return nil
}
