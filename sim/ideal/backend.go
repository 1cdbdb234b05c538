package ideal

import (
	"errors"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Backend is the registry entry of this backend.
var Backend = sim.Kind{
	Name:  "ideal",
	Title: "no network; lower bound and critical path",
	New:   func() sim.Backend { return new(backend) },
}

// backend is the configuration of the backend.
type backend struct {
	ops    bool
	replay bool
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Path: true, Memory: true, Storage: true}
}

func (b *backend) Params() param.Set {
	return param.Set{
		param.Bool(&b.replay, "replay",
			"end collectives and messages after their recorded durations, without waiting for other ranks"),
		param.Bool(&b.ops, "ops", "print the start and end of each op as tab-separated values, or as JSON with --json"),
	}
}

func (b *backend) Check(env *sim.Env) error {
	env = env.OrEmpty()
	switch {
	case b.ops && env.Jobs && !env.JSON:
		return &param.Error{Err: errors.New("--ops prints only the ops: " +
			"add --json to use it with --alone or --compare")}
	case b.ops && env.Path && !env.JSON:
		return &param.Error{Err: errors.New("--ops and --critical-path print different tables; add --json to get both")}
	}
	return nil
}

func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool { return nil }

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	run := s
	if b.replay {
		run = recorded{s}
	}
	env = env.OrEmpty()
	r, err := newReplay(env.Context, run, !b.ops, env.Explain)
	if err != nil {
		return nil, err
	}
	r.program.WarnShortReceives(env)
	return &reported{b, s, r}, nil
}

// reported is a replay whose result contains the critical path and the times of ops.
type reported struct {
	b      *backend
	source dag.Source
	replay *Replay
}

func (r *reported) Clone() sim.Replay {
	return &reported{r.b, r.source, r.replay.Clone()}
}

func (r *reported) Recycle() { r.replay.program.Recycle() }

func (r *reported) Room() *sim.Room { return r.replay.program.Room() }

func (r *reported) Close() error { return r.replay.program.Close() }

func (r *reported) Run(o sim.RunOptions) (*sim.Result, error) {
	if o.Timeline != nil && r.replay.program.Windowed() {
		return nil, sim.ErrWindowedTimeline
	}
	result, err := r.replay.Run(Options{Context: o.Context, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	times := r.replay.Timeline()
	if o.Timeline != nil {
		times.report(o.Timeline)
	}
	if result.Path = times.CriticalPath().report(); times.history != nil {
		err = errors.Join(times.history.err, times.history.file.Close())
	}
	if err != nil {
		return nil, err
	}
	result.Add(result.Path.Section(o.Path))
	if r.b.ops {
		table := &opTable{r.source, times}
		result.Add(sim.Section{Key: "op_times", Value: table, At: sim.Late, Instead: table.print})
	}
	return result, nil
}
