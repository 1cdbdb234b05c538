package calibrate

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
)

// distinct is the share of the error by which a parameter of messages at once has to improve on another one.
const distinct = 0.02

// doubtful is the ratio of errors from which another value than the usual one is the better one.
const doubtful = 1.5

// tuner estimates parameters that only several messages at once show, by simulations of the tests that have them.
type tuner struct {
	ctx     context.Context
	threads int
	file    *fit.File
}

// error returns the mean error of the predictions with a parameter, each counted up to 20 %.
func (t *tuner) error(rows []fit.Measurement, name string, p fit.Parameter) (mean float64, err error) {
	with := *t.file
	with.Parameters = maps.Clone(with.Parameters)
	with.Parameters[name] = p
	time, err := replayFlow(&with)
	if err != nil {
		return 0, err
	}
	errs, err := errorsOf(t.ctx, rows, t.threads, time)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range errs {
		if e == e {
			mean += min(math.Abs(e), 0.2)
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	return mean / float64(n), nil
}

// decide selects the value with the smallest error, the first of those that do not differ. It reports whether the
// measurements distinguish them, and the range of values that are about as good.
func (t *tuner) decide(rows []fit.Measurement, name, unit string, values ...float64) (p fit.Parameter, decided bool,
	err error) {
	errs := make([]float64, len(values))
	for i, v := range values {
		if errs[i], err = t.error(rows, name, fit.Parameter{Value: v, Unit: unit}); err != nil {
			return p, false, err
		}
	}
	best := slices.Index(errs, slices.Min(errs))
	same := func(i int) bool { return errs[i] <= errs[best]*(1+distinct)+1e-4 }
	if same(0) {
		best = 0
	}
	p = fit.Parameter{Value: values[best], Low: values[best], High: values[best], Unit: unit}
	for i, v := range values {
		if same(i) {
			p.Low, p.High = min(p.Low, v), max(p.High, v)
		}
	}
	return p, p.High-p.Low < slices.Max(values)-slices.Min(values), nil
}

// weight estimates the weight of links.
func (t *tuner) weight(rows []fit.Measurement, weights []float64) error {
	several := slices.DeleteFunc(slices.Clone(rows), func(m fit.Measurement) bool { return m.Test == fit.Window })
	p, decided, err := t.decide(several, "weight_s", "1", weights...)
	if err != nil {
		return err
	}
	if !decided {
		t.file.Remark("weight_s is not determined: no link has messages of routes that differ; %g is assumed", p.Value)
	}
	t.file.Parameters["weight_s"] = p
	return nil
}

// envelope estimates the bytes that travel with each message from windows of small messages, which share a link: the
// file has one estimate per number of bytes.
func envelope(ctx context.Context, rows []fit.Measurement, threads int, at func(bytes int64) (*fit.File, error)) (
	p fit.Parameter, decided bool, err error) {
	small := smallWindows(rows)
	p = fit.Parameter{Value: flow.DefaultEnvelope, Low: 1, High: 256, Unit: "B"}
	if len(small) == 0 {
		return p, false, nil
	}
	errs := map[int64]float64{}
	of := func(bytes int64) float64 {
		e, done := errs[bytes]
		if done || err != nil {
			return e
		}
		var f *fit.File
		if f, err = at(bytes); err == nil {
			t := tuner{ctx, threads, f}
			e, err = t.error(small, "envelope", f.Parameters["envelope"])
		}
		errs[bytes] = e
		return e
	}
	best := int64(flow.DefaultEnvelope)
	for bytes := int64(1); bytes <= 256; bytes *= 2 {
		if of(bytes) < of(best) {
			best = bytes
		}
	}
	for step := best / 4; step > 0; step /= 2 {
		for _, bytes := range []int64{best - step, best + step} {
			if of(bytes) < of(best) {
				best = bytes
			}
		}
	}
	if of(flow.DefaultEnvelope) <= of(best)*1.5+5e-4 {
		best = flow.DefaultEnvelope
	}
	p = fit.Parameter{Value: float64(best), Low: float64(best), High: float64(best), Unit: "B"}
	for bytes, e := range errs {
		if e <= 2*of(best)+1e-3 {
			p.Low, p.High = min(p.Low, float64(bytes)), max(p.High, float64(bytes))
		}
	}
	return p, p.High < 256 || p.Low > 1, err
}

// smallWindows returns the windows of messages that an envelope makes much longer.
func smallWindows(rows []fit.Measurement) []fit.Measurement {
	return slices.DeleteFunc(slices.Clone(rows), func(m fit.Measurement) bool {
		return m.Test != fit.Window || m.Bytes > 64
	})
}

// explains returns an estimate with the usual envelope, in which windows determine times in receives, if it explains
// the windows of small messages as well as an estimated envelope without these times, which then is the usual one; else
// nil.
func explains(ctx context.Context, tables []*fit.Table, usual fit.FlowOptions, rows []fit.Measurement, threads int,
	envelope *fit.Parameter) (*fit.File, error) {
	plain := usual
	plain.Simulate, plain.Envelope, plain.Draws = nil, int64(envelope.Value), 1
	var files [2]*fit.File
	var errs [2]float64
	for i, with := range []fit.FlowOptions{usual, plain} {
		var err error
		if files[i], err = fit.Flow(tables, with); err != nil {
			return nil, err
		}
		t := tuner{ctx, threads, files[i]}
		errs[i], err = t.error(smallWindows(rows), "envelope", files[i].Parameters["envelope"])
		if err != nil {
			return nil, err
		}
	}
	if errs[0] > errs[1]*doubtful+5e-4 {
		return nil, nil
	}
	envelope.Value = float64(usual.Envelope)
	envelope.Low, envelope.High = min(envelope.Low, envelope.Value), max(envelope.High, envelope.Value)
	return files[0], nil
}
