package loggops

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Backend is the entry of this backend in a registry.
var Backend = sim.Kind{
	Name:  "loggops",
	Title: "LogGOPS message passing; no contention inside the network",
	New:   func() sim.Backend { return newBackend() },
}

// backend is the configuration of the backend.
type backend struct {
	model       Model
	params      Params
	noiseFile   string
	coscheduled bool
	seed        int64
	noise       *NoiseTrace
}

func newBackend() *backend {
	return &backend{model: Strict, params: presets[0].params, seed: 1}
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Timelines: []string{".json", ".viz"}}
}

func (b *backend) Params() param.Set {
	p := &b.params
	models := make([]string, len(Models))
	for i, m := range Models {
		models[i] = string(m)
	}
	return param.Set{
		param.Func("name", "model", "reading of LogGOPS: strict, or loggopsim or atlahs for the results of those "+
			"simulators",
			func(text string) (err error) {
				b.model, err = ParseModel(text)
				return err
			}).Among(models...).Default(string(Strict)),
		param.Func("name", "params", "preset of the parameters", func(text string) (err error) {
			*p, err = Preset(text)
			return err
		}).Among(PresetNames()...).Default(presets[0].name),
		param.TimeIn(&p.L, dag.Nanosecond, "L", "latency; a number without unit is in ns").Sweep(),
		param.TimeIn(&p.Overhead, dag.Nanosecond, "o", "overhead per message at a processor").Sweep(),
		param.TimeIn(&p.Gap, dag.Nanosecond, "g", "gap between messages at a NIC").Sweep(),
		param.RateIn(&p.GPerByte, "ns/B", "G", "gap per byte at a NIC: its bandwidth, or a time per byte; "+
			"without unit in ns/B").Sweep(),
		param.RateIn(&p.OPerByte, "ns/B", "O", "overhead per byte at a processor").Sweep(),
		param.Size(&p.S, "S", "largest message that is sent eagerly").Sweep(),
		param.File(&b.noiseFile, "noise-trace", "operating-system noise: lines of start and length in ns"),
		param.Bool(&b.coscheduled, "noise-cosched", "noise hits all ranks at the same time"),
		param.Int(&b.seed, "seed", "seed of random choices"),
	}
}

func (b *backend) Check(env *sim.Env) error {
	if !env.OrEmpty().Sweep { // in a sweep, a bad point does not stop the others
		if err := b.params.Check(b.model); err != nil {
			return &param.Error{Err: err}
		}
	}
	if b.noiseFile == "" {
		if b.coscheduled {
			return param.Needs("noise-cosched", "--noise-trace")
		}
		return nil
	}
	f, err := os.Open(b.noiseFile)
	if err != nil {
		return err
	}
	defer f.Close()
	if b.noise, err = ReadNoise(f, b.noiseFile); err != nil {
		return err
	}
	b.noise.Coscheduled, b.noise.Seed = b.coscheduled, b.seed
	return nil
}

func (b *backend) Lowers(dag.Source) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

// NewTimeline returns a timeline for Perfetto (.json) or the viewer of LogGOPSim (.viz).
func (b *backend) NewTimeline(w io.Writer, ending string, t *dag.Trace) (sim.Timeline, error) {
	switch strings.ToLower(ending) {
	case ".json":
		return sim.NewChromeTimeline(w, t), nil
	case ".viz":
		return NewVizTimeline(w, b.model, b.params), nil
	}
	return nil, fmt.Errorf("no timeline in a file that ends with %q", ending)
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	r, err := newReplay(s, b.model, env.OrEmpty())
	if err != nil {
		return nil, err
	}
	return &configured{b, r}, nil
}

// configured is a replay with the backend's configuration.
type configured struct {
	b      *backend
	replay *Replay
}

func (c *configured) Clone() sim.Replay {
	return &configured{c.b, c.replay.Clone()}
}

func (c *configured) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *c.b
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	result, err := c.replay.Run(Options{Context: o.Context, Params: b.params, Noise: b.noise, Timeline: o.Timeline,
		Threads: o.Threads, Progress: o.Progress})
	if err != nil {
		result = &sim.Result{Backend: Backend.Name, Model: string(b.model), Params: b.params.values()}
	}
	return result, err
}
