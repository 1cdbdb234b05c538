package calibrate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
)

// estimateFlow estimates the parameters of flow on a network: those of single messages from ping-pongs and calls, then
// those that messages show that share links, by simulations.
func estimateFlow(ctx context.Context, tables []*fit.Table, o Options) (*fit.File, replayer, error) {
	fo := fit.FlowOptions{Options: fit.Options{Seed: o.Seed}, Topology: o.Topology, Models: flow.Factors()}
	_, hosts, err := flow.Routes(ctx, o.Topology, true)
	if err == nil {
		err = checkRanks(tables, hosts, o.Topology)
	}
	if err != nil {
		return nil, nil, err
	}
	rows := sharedRows(tables)
	fo, cross, decided, err := crossTraffic(ctx, tables, fo, rows, o.Threads)
	if err != nil {
		return nil, nil, err
	}
	rough := fo
	rough.Draws = 1
	e, found, err := envelope(ctx, rows, o.Threads, func(bytes int64) (*fit.File, error) {
		rough.Envelope = bytes
		return fit.Flow(tables, rough)
	})
	if err != nil {
		return nil, nil, err
	}
	fo.Simulate = func(f *fit.File, rows []fit.Measurement) ([]float64, error) {
		f.Parameters["cross_traffic"] = cross
		time, err := replayFlow(f)
		if err != nil {
			return nil, err
		}
		return predictions(ctx, rows, o.Threads, time)
	}
	var f *fit.File
	if e.Value != flow.DefaultEnvelope { // or times in receives explain what seems to be an envelope
		fo.Envelope = flow.DefaultEnvelope
		if f, err = explains(ctx, tables, fo, rows, o.Threads, &e); err != nil {
			return nil, nil, err
		}
	}
	receives := f != nil
	if fo.Envelope = int64(e.Value); !receives {
		if f, err = fit.Flow(tables, fo); err != nil {
			return nil, nil, err
		}
	}
	f.Parameters["envelope"] = e
	if !found {
		f.Remark("envelope is not determined: the tables have no windows of small messages (window16); %d bytes are "+
			"assumed", fo.Envelope)
	}
	if receives {
		f.Remark("envelope is not determined: or explains the windows of small messages (window16) with %d bytes, "+
			"which are assumed", fo.Envelope)
	}
	f.Parameters["cross_traffic"] = cross
	if !decided {
		f.Remark("cross_traffic is not determined: the tables have no messages in both directions at once " +
			"(exchange, allexchange) that show it; 1 is assumed")
	}
	tuning := tuner{ctx, o.Threads, f}
	if err := tuning.weight(rows, weights(f.Model, fo.Models)); err != nil {
		return nil, nil, err
	}
	time, err := replayFlow(f)
	if err != nil {
		return nil, nil, err
	}
	return f, time, addResiduals(ctx, f, rows, o.Threads, time)
}

// crossTraffic decides between cross-traffic and none by messages in both directions at once. It returns the options
// with the routes that are then right: acknowledgements also take their share of a link that is on both ways.
func crossTraffic(ctx context.Context, tables []*fit.Table, fo fit.FlowOptions, rows []fit.Measurement, threads int) (
	best fit.FlowOptions, p fit.Parameter, decided bool, err error) {
	both := slices.DeleteFunc(slices.Clone(rows), func(m fit.Measurement) bool {
		return m.Test != fit.Exchange && m.Test != fit.AllExchange
	})
	var errs [2]float64 // by the parameter
	for _, cross := range []int{1, 0} {
		with := fo
		route, _, err := flow.Routes(ctx, fo.Topology, cross == 1)
		if err != nil {
			return fo, p, false, err
		}
		with.Route, with.Draws, with.Envelope = roundTrips(route), 1, flow.DefaultEnvelope
		f, err := fit.Flow(tables, with)
		if err != nil {
			return fo, p, false, err
		}
		t := tuner{ctx, threads, f}
		if errs[cross], err = t.error(both, "cross_traffic", fit.Parameter{Value: float64(cross),
			Unit: "1"}); err != nil {
			return fo, p, false, err
		}
		with.Draws = fo.Draws
		// Errors that neither value explains do not decide.
		if cross == 1 || errs[1] > errs[0]*doubtful+1e-4 {
			best, p = with, fit.Parameter{Value: float64(cross), Low: float64(cross), High: float64(cross), Unit: "1"}
		}
	}
	if other := errs[1-int(p.Value)]; other <= errs[int(p.Value)]*(1+distinct)+1e-4 {
		p.Low, p.High = 0, 1
		return best, p, false, nil
	}
	return best, p, true, nil
}

// weights returns the weights of links that models have, that of the model first.
func weights(model string, models []fit.Factors) (all []float64) {
	for _, m := range models {
		if m.Model == model {
			all = append(all, m.WeightS)
		}
	}
	for _, m := range models {
		if !slices.Contains(all, m.WeightS) {
			all = append(all, m.WeightS)
		}
	}
	return all
}

// roundTrips returns a function for the mean of both directions between the ranks that a table names: ping-pongs are
// half of round trips, and routes need not be symmetric.
func roundTrips(route func(from, to int) (fit.Route, error)) func(where string) (fit.Route, error) {
	return func(where string) (fit.Route, error) {
		from, to, err := ends(where)
		if err != nil {
			return fit.Route{}, err
		}
		there, err := route(from, to)
		if err != nil {
			return there, err
		}
		back, err := route(to, from)
		if err != nil {
			return back, err
		}
		return fit.Route{Latency: (there.Latency + back.Latency) / 2, Rate: 2 / (1/there.Rate + 1/back.Rate)}, nil
	}
}

// ends returns the ranks that a table names, such as 0-15. Without a name they are 0 and 1.
func ends(where string) (from, to int, err error) {
	if where == "" {
		return 0, 1, nil
	}
	a, b, _ := strings.Cut(where, "-")
	from, err = strconv.Atoi(strings.TrimSpace(a))
	if err == nil {
		to, err = strconv.Atoi(strings.TrimSpace(b))
	}
	if err != nil || from == to {
		return 0, 0, fmt.Errorf("expected two ranks such as 0-15 as the place of a measurement, found %q", where)
	}
	return from, to, nil
}

// replayFlow returns the times of ranks on the flow backend with the parameters of a file.
func replayFlow(f *fit.File) (replayer, error) {
	settings, err := flow.Settings(f)
	if err != nil {
		return nil, err
	}
	return replayOn(flow.Backend.Name, append(settings, [2]string{"topology", f.Topology})), nil
}

// replayOn returns the times of ranks on a backend with settings.
func replayOn(backend string, settings [][2]string) replayer {
	var texts []string
	for _, s := range settings {
		texts = append(texts, s[0]+"="+s[1])
	}
	return func(ctx context.Context, t *dag.Trace, marks [][]int) (at [][]float64, end []float64, err error) {
		c := &clock{marks: marks}
		result, err := backends.Run(t, backend, backends.Set(texts...),
			backends.Options(sim.RunOptions{Context: ctx, Timeline: c}))
		return c.times(result, err)
	}
}
