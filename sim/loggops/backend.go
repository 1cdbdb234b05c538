package loggops

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Backend is the registry entry of this backend.
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
		param.Func("name", "model", "strict (LogGOPS as published), or loggopsim or atlahs (same results as these "+
			"simulators)",
			func(text string) (err error) {
				b.model, err = ParseModel(text)
				return err
			}).Among(models...).Default(string(Strict)),
		param.Func("name", "params", "parameter preset", func(text string) (err error) {
			*p, err = Preset(text)
			return err
		}).Among(PresetNames()...).Default(presets[0].name),
		param.TimeIn(&p.L, dag.Nanosecond, "L", "wire latency; without unit in ns").Sweep(),
		param.TimeIn(&p.Overhead, dag.Nanosecond, "o",
			"processor time per message at both ends; without unit in ns").Sweep(),
		param.TimeIn(&p.Gap, dag.Nanosecond, "g", "gap between messages of a NIC; without unit in ns").Sweep(),
		param.RateIn(&p.GPerByte, "ns/B", "G", "gap per byte of a NIC: bandwidth or time per byte; "+
			"without unit in ns/B").Sweep(),
		param.RateIn(&p.OPerByte, "ns/B", "O", "processor time per byte; without unit in ns/B").Sweep(),
		param.Size(&p.S, "S", "largest eager message; larger ones wait for their receive").Sweep(),
		param.File(&b.noiseFile, "noise-trace", "operating-system noise; each line has a start and a length in ns"),
		param.Bool(&b.coscheduled, "noise-cosched", "apply the noise to all ranks at the same time"),
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

// NewTimeline returns a timeline for Perfetto (.json) or for the viewer of LogGOPSim (.viz).
func (b *backend) NewTimeline(w io.Writer, ending string, t *dag.Trace) (sim.Timeline, error) {
	switch strings.ToLower(ending) {
	case ".json":
		return sim.NewChromeTimeline(w, t), nil
	case ".viz":
		return NewVizTimeline(w, b.model, b.params), nil
	}
	return nil, fmt.Errorf("timeline: expected a file name that ends with .json or .viz, found %q", ending)
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	r, err := newReplay(s, b.model, env.OrEmpty())
	if err != nil {
		return nil, err
	}
	b.warnDefaultNetwork(r.program.LargestMessage, env.OrEmpty())
	return &configured{b, r}, nil
}

// largestOnDefault is the size in bytes of the largest message that the default network carries without a warning.
const largestOnDefault = 1 << 20

// warnDefaultNetwork warns about a large message on the bandwidth of the default network, which users with current
// machines rarely intend. It does not warn if the caller chose the preset or G; a sweep may vary G.
func (b *backend) warnDefaultNetwork(largest uint64, env *sim.Env) {
	chosen := env.IsGiven("params") || env.IsGiven("G") || env.Sweep
	if largest <= largestOnDefault || chosen || b.params.GPerByte.Cmp(presets[0].params.GPerByte) != 0 {
		return
	}
	env.Warnf("messages of up to %s on the default network of 1.33 Gb/s (LogGOPSim's default); "+
		"set the bandwidth, such as --G 400Gbps, or use --params ai or hpc",
		units.FormatSize(int64(min(largest, math.MaxInt64))))
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
