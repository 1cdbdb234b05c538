package loggops

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strings"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
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
	paramsFile  string // of params; "": a preset
	noiseFile   string
	coscheduled bool
	seed        int64
	noise       *NoiseTrace
	distances   distances
}

func newBackend() *backend {
	return &backend{model: Strict, params: presets[0].params, seed: 1,
		distances: distances{placement: topology.DefaultPlacement}}
}

func (b *backend) Traits() sim.Traits {
	return sim.Traits{Timelines: []string{".viz"}, Path: b.model == Strict, Nodes: b.distances.topology != ""}
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
		param.Func("name", "params", "parameter preset, ai or hpc, or a file that --fit wrote",
			func(text string) error { return b.setParams(text) }).
			Offer(PresetNames()...).Default(presets[0].name).OrFile(),
		param.TimeIn(&p.L, dag.Nanosecond, "L", "wire latency; without unit in ns").Sweep().
			Check(p.inSegments(func(s *Segment) { s.L = p.L })),
		param.TimeIn(&p.Overhead, dag.Nanosecond, "o", "processor time per message at both ends; without unit in ns").
			Sweep().Check(p.inSegments(func(s *Segment) { s.Send, s.Recv = p.Overhead, p.Overhead })),
		param.TimeIn(&p.Gap, dag.Nanosecond, "g", "gap between messages of a NIC; without unit in ns").Sweep(),
		param.RateIn(&p.GPerByte, "ns/B", "G", "gap per byte of a NIC: bandwidth or time per byte; "+
			"without unit in ns/B").Sweep().Check(p.inSegments(func(s *Segment) { s.GPerByte = p.GPerByte })),
		param.RateIn(&p.OPerByte, "ns/B", "O", "processor time per byte; without unit in ns/B").Sweep().
			Check(p.inSegments(func(s *Segment) { s.SendPerByte, s.RecvPerByte = p.OPerByte, p.OPerByte })),
		param.Size(&p.S, "S", "largest eager message; larger ones wait for their receive").Sweep(),
		param.Func("rate", "local-rate", "gap per byte between ranks that share the NICs of their node; without unit "+
			"in ns/B", func(text string) error {
			r, err := units.ParseRate(text, "ns/B")
			if err == nil {
				p.LocalPerByte = cmp.Or(r.PerByte(), new(big.Rat))
			}
			return err
		}).Default("as --G"),
		param.Func("time", "local-latency", "latency between ranks that share the NICs of their node; without unit "+
			"in ns", func(text string) error {
			t, err := units.ParseTime(text, dag.Nanosecond)
			if err == nil {
				p.LocalLatency = &t
			}
			return err
		}).Default("as --L"),
		param.File(&b.noiseFile, "noise-trace", "operating-system noise; each line has a start and a length in ns"),
		param.Bool(&b.coscheduled, "noise-cosched", "apply the noise to all ranks at the same time"),
		param.String(&b.distances.topology, "topology", "network whose paths give the latency of messages in place of "+
			"--L: specification such as fattree:k=8, .topo file, link list or platform of SimGrid (.xml)").
			Placeholder("network").Offer(topology.Completions()...).OrFile(),
		topology.PlacementParam(&b.distances.placement),
		param.Int(&b.seed, "seed", "seed of random choices"),
	}
}

// setParams sets the parameters of a preset or a parameter file.
func (b *backend) setParams(text string) (err error) {
	file := ""
	named, err := Preset(text)
	if err != nil && strings.ContainsAny(text, "./") {
		file = text
		named, err = readParams(text)
	} else if err != nil {
		err = fmt.Errorf("%w; a parameter file needs a path, such as ./%s", err, text)
	}
	if err == nil {
		b.params, b.paramsFile = named, file
	}
	return err
}

func (b *backend) Check(env *sim.Env) error {
	if !env.OrEmpty().Sweep { // in a sweep, a bad point does not stop the others
		if err := b.params.Check(b.model); err != nil {
			return &param.Error{Err: err}
		}
	}
	if err := b.distances.check(b.model, env.OrEmpty()); err != nil {
		return err
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

// NewTimeline returns a timeline for the viewer of LogGOPSim.
func (b *backend) NewTimeline(w io.Writer, _ string) (sim.Timeline, error) {
	return NewVizTimeline(w, b.model, b.params), nil
}

func (b *backend) Compile(s dag.Source, env *sim.Env) (sim.Replay, error) {
	r, err := newReplay(s, b.model, env.OrEmpty())
	if err != nil {
		return nil, err
	}
	r.program.WarnShortReceives(env)
	if b.paramsFile != "" && b.distances.topology != "" {
		env.Warnf("--topology %s: its latencies replace L of %s, which measured times determined; without --topology, "+
			"L is that of the file", b.distances.topology, b.paramsFile)
	}
	c := &configured{b, r, b.adviser(r.program, env.OrEmpty()), nil}
	if b.distances.latencies != nil {
		h, err := s.Header()
		if err != nil {
			return nil, err
		}
		if c.hosts, err = b.distances.place(r, h.Nodes, b.seed); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// largestOnDefault is the size in bytes of the largest message that the default network carries without a warning.
const largestOnDefault = 1 << 20

const (
	onDefault = "on the default network of 1.33 Gb/s (LogGOPSim's default)"
	setG      = "set the bandwidth, such as --G 400Gbps, or use --params ai or hpc"
)

// adviser advises once about the bandwidth of the default network, which users with current machines rarely intend.
type adviser struct {
	advise   func(message string, args ...any)
	advised  atomic.Bool
	elapsed  uint64  // in picoseconds: computation of the busiest rank or, if later, the last release
	transfer float64 // share of the bytes in the time of all messages, without waiting
}

// adviser warns about a large message. Otherwise, it returns an adviser for the results of the program, unless the
// caller chose the preset or G, varies them in a sweep, or takes no advice; then it returns nil.
func (b *backend) adviser(p *sim.Program, env *sim.Env) *adviser {
	chosen := env.IsGiven("params") || env.IsGiven("G") || env.Sweep
	if chosen || b.params.GPerByte.Cmp(presets[0].params.GPerByte) != 0 {
		return nil
	}
	if p.LargestMessage > largestOnDefault {
		env.Warnf("messages of up to %s "+onDefault+"; "+setG,
			units.FormatSize(int64(min(p.LargestMessage, math.MaxInt64))))
		return nil
	}
	if env.Advise == nil || p.Sends == 0 {
		return nil
	}
	a := &adviser{advise: env.Advise}
	perByte, _ := b.params.GPerByte.Float64()
	bytes := float64(p.SendBytes) * perByte
	a.transfer = bytes / (bytes + float64(p.Sends)*float64(b.params.L+2*b.params.Overhead+b.params.Gap))
	a.elapsed = max(p.LatestRelease(), p.MostCalcTime()*uint64(p.Unit))
	return a
}

// result advises if the bandwidth takes at least half of the makespan: the part of the rest after all computation and
// release times that is the share of the bytes in the time of messages.
func (a *adviser) result(makespan dag.Time) {
	rest := float64(max(0, int64(makespan)-int64(min(a.elapsed, math.MaxInt64))))
	if share := rest * a.transfer / max(1, float64(makespan)); share >= 0.5 && !a.advised.Swap(true) {
		a.advise("the bandwidth takes about %.0f %% of the makespan "+onDefault+"; "+setG, 100*share)
	}
}

// configured is a replay with the backend's configuration.
type configured struct {
	b       *backend
	replay  *Replay
	adviser *adviser // nil: none
	hosts   []uint32 // by rank, with a topology
}

func (c *configured) Clone() sim.Replay {
	return &configured{c.b, c.replay.Clone(), c.adviser, c.hosts}
}

func (c *configured) Recycle() { c.replay.program.Recycle() }

func (c *configured) Room() *sim.Room { return c.replay.program.Room() }

func (c *configured) Close() error { return c.replay.program.Close() }

func (c *configured) Run(o sim.RunOptions) (*sim.Result, error) {
	b := *c.b
	if err := b.Params().Override(o.Settings); err != nil {
		return nil, err
	}
	if b.params.byDistance = c.hosts != nil; b.params.byDistance && b.params.L != c.b.params.L {
		return nil, param.Exclude("topology", "L")
	}
	result, err := c.replay.Run(Options{Context: o.Context, Params: b.params, Noise: b.noise, Timeline: o.Timeline,
		Threads: o.Threads, Progress: o.Progress, Path: o.Path != nil && b.model == Strict,
		Latencies: b.distances.latencies, Hosts: c.hosts})
	if err == nil && c.hosts != nil {
		t := b.distances.latencies.Topology
		t.Placement = b.distances.placement.String()
		result.Topology = &t
	}
	if err == nil && result.Path != nil {
		result.Add(result.Path.Section(o.Path))
	}
	if err != nil {
		result = &sim.Result{Backend: Backend.Name, Model: string(b.model), Params: b.params.values()}
	} else if c.adviser != nil && result.Complete {
		c.adviser.result(dag.Time(min(result.Makespan.Ticks*uint64(result.Makespan.Unit), math.MaxInt64)))
	}
	return result, err
}
