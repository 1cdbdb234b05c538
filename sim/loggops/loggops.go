// Package loggops is the backend of the LogGOPS model of communication, in three readings: strict, the model as its
// papers mean it, and the two simulators that people quote, LogGOPSim and the one of ATLAHS, bit for bit.
//
// docs/backends/loggops.md has the rules of all three, one by one.
package loggops

import (
	"fmt"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Options says how to replay.
type Options struct {
	Model    Model
	Params   Params
	Noise    *NoiseTrace  // nil: none
	Timeline sim.Timeline // nil: none
	Threads  int          // how many the strict model may use, with the same result; 0: one
}

// Stats is what this backend adds to a [sim.Result].
type Stats struct {
	Noise []sim.Clock `json:"noise_ps,omitempty"` // by rank, the noise that hit it
}

// Run replays a trace of sends, receives and calcs. Warn hears of what the model cannot represent exactly.
func Run(t *dag.Trace, o Options, warn func(message string, args ...any)) (*sim.Result, error) {
	replay := runStrict
	compile := sim.CompileOptions{DenseStreams: true}
	if o.Model != Strict {
		replay = runReference
		compile = sim.CompileOptions{Unit: dag.Nanosecond}
	}
	p, err := sim.Compile(t, compile)
	if err != nil {
		return nil, err
	}
	if p.Rounded > 0 {
		warn("%d calcs were rounded to whole nanoseconds, the unit of the %s model", p.Rounded, o.Model)
	}
	if o.Timeline != nil {
		o.Timeline.Begin(p)
	}
	started := time.Now()
	out, err := replay(p, o)
	if err != nil {
		return nil, err
	}
	r := out.Result(p, t)
	r.Finished(started)
	r.Backend, r.Model, r.Params = "loggops", string(o.Model), o.Params
	if o.Noise != nil {
		stats := Stats{Noise: make([]sim.Clock, len(out.noise))}
		for rank, n := range out.noise {
			stats.Noise[rank] = sim.Clock{Ticks: n, Unit: p.Unit}
		}
		r.Stats = stats
	}
	return r, nil
}

// outcome is a sim.Outcome and the noise that hit each rank.
type outcome struct {
	sim.Outcome
	noise []uint64
}

func runReference(p *sim.Program, o Options) (*outcome, error) {
	if p.Release != nil {
		return nil, fmt.Errorf("the %s model has no release times, which the trace has; use the strict model", o.Model)
	}
	n, err := o.Params.nanoseconds(o.Model == ATLAHS)
	if err != nil {
		return nil, fmt.Errorf("the %s model: %w", o.Model, err)
	}
	if o.Model == ATLAHS {
		return runATLAHS(p, n, o)
	}
	return runLogGOPSim(p, n, o)
}
