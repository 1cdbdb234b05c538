// Package loggops is the backend of the LogGOPS communication model. It has three models: strict, which follows the
// papers, and bit-exact reproductions of two widely used simulators, LogGOPSim and that of ATLAHS.
//
// docs/reference/backends/loggops.md defines the rules of all three.
package loggops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// Options are the options of a run.
type Options struct {
	Params   Params
	Noise    *NoiseTrace  // nil: none
	Timeline sim.Timeline // nil: none
	Path     bool         // record the critical path; strict only
	Threads  int          // maximum number of threads, which does not change the result; 0: one thread

	// Latencies replace L, strict only: the latency of a message is that between the hosts of its ranks. Hosts are by
	// rank. nil: none.
	Latencies *topology.Latencies
	Hosts     []uint32

	Context context.Context // ends the run early; see [sim.Interrupted]. nil: no limit

	// Progress, if not nil, is called periodically with the number of additional ops run. Several threads may call it
	// concurrently.
	Progress func(ops int64)
}

// Stats is the section "backend_stats" in results of runs with noise.
type Stats struct {
	Noise       []sim.Clock `json:"noise_ps"`    // by rank: noise that delayed it
	NoiseTrace  string      `json:"noise_trace"` // file name
	Coscheduled bool        `json:"noise_cosched"`
	Seed        int64       `json:"seed"`
}

// Replay is a trace compiled for one of the models. It can run once.
type Replay struct {
	model   Model
	program *sim.Program
	nodes   []int32 // by rank: its node, whose NICs it shares; nil: ranks have NICs of their own
	used    bool
}

// Compile compiles a trace of sends, receives and calcs for a model; see [sim.Compile]. It calls warn for each property
// that the model cannot represent exactly; nil discards warnings.
func Compile(t dag.Source, m Model, warn func(message string, args ...any)) (*Replay, error) {
	return newReplay(t, m, &sim.Env{Warn: warn})
}

func newReplay(t dag.Source, m Model, env *sim.Env) (*Replay, error) {
	o := sim.CompileOptions{Context: env.Context, Windows: true, Explain: env.Explain, Fold: m != ATLAHS}
	if m == Strict {
		o.DenseStreams = true
	} else {
		o.Unit = dag.Nanosecond
	}
	p, err := sim.Compile(t, o)
	if err != nil {
		return nil, err
	}
	if m != Strict && p.Releases {
		return nil, fmt.Errorf("the %s model does not support the trace's release times; use --model strict, or "+
			"convert the trace to GOAL, which expresses them by calcs", m)
	}
	if p.Rounded > 0 {
		env.Warnf("%d calcs were rounded to whole nanoseconds, the unit of the %s model", p.Rounded, m)
	}
	r := &Replay{model: m, program: p}
	shared, err := env.SharesNICs(t)
	switch {
	case err != nil:
		return nil, err
	case shared && m != Strict:
		env.Warnf("jobs share nodes, but every rank has NICs of its own in the %s model; join the ranks of nodes "+
			"(--one-rank-per-node of traceconv), or use --model strict", m)
	case shared:
		h, err := t.Header()
		if err != nil {
			return nil, err
		}
		r.nodes = h.Nodes
	}
	return r, nil
}

// Clone returns another replay of the same trace. Call it before Run.
func (r *Replay) Clone() *Replay {
	return &Replay{model: r.model, program: r.program.Clone(), nodes: r.nodes}
}

// Run replays the trace. It returns an error if the replay has already run, if a time is out of range, and if the
// context ends.
func (r *Replay) Run(o Options) (*sim.Result, error) {
	p := r.program
	if r.used {
		return nil, errors.New("a replay can be run only once")
	}
	r.used = true
	o.Params.byDistance = o.Latencies != nil
	if o.Timeline != nil {
		o.Timeline.Begin(p.Layout())
	}
	started := time.Now()
	out, err := r.replay(p, o)
	if err != nil {
		return nil, err
	}
	result := out.Result(p)
	result.Finished(started)
	result.Backend, result.Model, result.Params = Backend.Name, string(r.model), o.Params.values()
	result.Settings = o.Params.String()
	result.AddOverflow(p, out.wrapped)
	result.AddSharedNICs(r.nodes)
	if o.Noise != nil {
		stats := Stats{Noise: make([]sim.Clock, len(out.noise)), NoiseTrace: o.Noise.Name,
			Coscheduled: o.Noise.Coscheduled, Seed: o.Noise.Seed}
		for rank, n := range out.noise {
			stats.Noise[rank] = sim.Clock{Ticks: n, Unit: p.Unit}
		}
		result.Add(sim.Section{Key: "backend_stats", Value: stats, At: sim.Early})
	}
	result.Path = out.path
	return result, nil
}

func (r *Replay) replay(p *sim.Program, o Options) (*outcome, error) {
	if r.model == Strict {
		return runStrict(p, r.nodes, o)
	}
	n, err := o.Params.nanoseconds(r.model == ATLAHS)
	if err != nil {
		return nil, fmt.Errorf("the %s model: %w", r.model, err)
	}
	if r.model == ATLAHS {
		return runATLAHS(p, n, o)
	}
	return runLogGOPSim(p, n, o)
}

// outcome is a sim.Outcome with the noise per rank.
type outcome struct {
	sim.Outcome
	noise []uint64
	path  *sim.Path // nil unless it was recorded
	// number of the first op whose event made a clock of a reference model wrap around; sim.NoOp: none
	wrapped uint32
}
