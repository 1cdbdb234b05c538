package main

import (
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/analytical"
	"github.com/tracedag/tracedag/sim/ideal"
	"github.com/tracedag/tracedag/sim/loggops"
)

// backend is a simulation backend as this command knows it. A new one is a line in backends.
type backend struct {
	name     string
	register func(p *cli.Program, cmd *cobra.Command, o *options) runner // defines the backend's flags
	shares   []string                                                    // flags of backends before it that it takes, too
}

var backends = []backend{
	{"loggops", registerLogGOPS, nil},
	{"analytical", registerAnalytical, nil},
	{"packet", registerPacket, packetShares},
	{"flit", registerFlit, flitShares},
	{"ideal", registerIdeal, nil},
}

func backendNames() []string {
	names := make([]string, 0, len(backends))
	for _, b := range backends {
		names = append(names, b.name)
	}
	return names
}

// runner runs a backend by its flags.
type runner interface {
	// check returns what is wrong with the flags, before the trace is read.
	check() error
	// parameters lists what a sweep can vary.
	parameters() []parameter
	// lowers returns which collectives of a trace are to be lowered before it is compiled; nil: none of any trace. It is
	// asked with nil for the trace, too, before that is in memory.
	lowers(t *dag.Trace) func(dag.Subkind) bool
	// timeline returns what writes a timeline to w in the form that the path asks for.
	timeline(w io.Writer, path string, t *dag.Trace) (sim.Timeline, error)
	// compile prepares the trace. It passes warnings to warn, which discards them if nil.
	compile(t dag.Source, warn func(message string, args ...any)) error
	// params returns the model and the parameters of a run with the given settings, as its result has them.
	params(settings []setting) (model string, params any)
	// run replays the trace with the given settings.
	run(settings []setting, r replay) (*result, error)
	// opTimes returns when each op of the last run ran; nil if the backend does not tell.
	opTimes() *ideal.Timeline
}

// result is the outcome of a run, with what its backend alone has.
type result struct {
	*sim.Result
	NPUs      *analytical.NPUStats `json:"npu_stats,omitempty"`
	IOLatency *ioLatency           `json:"io_latency,omitempty"` // of storage accesses that were lowered
	Compare   *comparison          `json:"compare,omitempty"`    // with --compare
	*packetResult
	flit *flitResult // what Stats holds, of the flit backend
}

// replay is how to run a trace.
type replay struct {
	timeline sim.Timeline    // nil: none
	threads  int             // to use
	progress func(ops int64) // nil, or called now and then with how many more ops ran
	again    bool            // not the only run: others may come, or go on at the same time
	part     bool            // of a job alone, so it leaves no files

	// opEnded is nil, or called when an op has ended, by backends that have neither timelines nor op times.
	opEnded func(rank, op int, issued, ended uint64)
}

// messages is what backends have in common that run sends, receives and calcs only: collectives are lowered for them, they do
// not tell when ops ran, and write timelines for Perfetto.
type messages struct{}

func (messages) lowers(*dag.Trace) func(dag.Subkind) bool {
	return func(dag.Subkind) bool { return true }
}

func (messages) opTimes() *ideal.Timeline {
	return nil
}

func (messages) timeline(w io.Writer, path string, t *dag.Trace) (sim.Timeline, error) {
	if strings.ToLower(filepath.Ext(path)) != ".json" {
		return nil, cli.Usagef("--timeline: %s: expected a name that ends with .json", path)
	}
	return sim.NewChromeTimeline(w, t), nil
}

// logGOPS runs the loggops backend.
type logGOPS struct {
	messages
	p            *cli.Program
	cmd          *cobra.Command
	common       *options
	model        string
	preset       string
	flags        *logGOPSFlags
	noise        string
	coscheduled  bool
	noiseTrace   *loggops.NoiseTrace
	checkedModel loggops.Model
	base         loggops.Params
	replay       *loggops.Replay
}

// logGOPSFlags are the parameters that flags give; those of the preset stand where a flag is not used.
type logGOPSFlags struct {
	L, o, g dag.Time
	G, O    units.Rate
	S       int64
}

func registerLogGOPS(p *cli.Program, cmd *cobra.Command, o *options) runner {
	b := &logGOPS{p: p, cmd: cmd, common: o, flags: &o.costs}
	preset, err := loggops.Preset("default")
	if err != nil {
		panic(err) // it is there
	}
	flags := cmd.Flags()
	flags.StringVar(&b.model, "model", string(loggops.Strict),
		"`reading` of LogGOPS: strict; loggopsim or atlahs to get what those simulators compute")
	cli.CompleteWith(cmd, "model", modelNames())
	flags.StringVar(&b.preset, "params", "default", "`set` of parameters: "+strings.Join(loggops.PresetNames(), ", "))
	cli.CompleteWith(cmd, "params", loggops.PresetNames())
	cli.TimeVar(flags, &b.flags.L, "L", preset.L, dag.Nanosecond, "latency; a number without unit is in ns")
	cli.TimeVar(flags, &b.flags.o, "o", preset.Overhead, dag.Nanosecond, "overhead per message at a processor")
	cli.TimeVar(flags, &b.flags.g, "g", preset.Gap, dag.Nanosecond, "gap between messages at a NIC")
	cli.RateVar(flags, &b.flags.G, "G", rate(preset.GPerByte), "ns/B",
		"gap per byte at a NIC: its bandwidth, or time per byte; without unit ns/B")
	cli.RateVar(flags, &b.flags.O, "O", rate(preset.OPerByte), "ns/B", "overhead per byte at a processor")
	cli.SizeVar(flags, &b.flags.S, "S", preset.S, "largest message that is sent eagerly")
	flags.StringVar(&b.noise, "noise-trace", "", "`FILE` of operating-system noise: lines of start and length in ns")
	flags.BoolVar(&b.coscheduled, "noise-cosched", false, "have the noise hit all ranks at the same time")
	return b
}

func modelNames() []string {
	names := make([]string, 0, len(loggops.Models))
	for _, m := range loggops.Models {
		names = append(names, string(m))
	}
	return names
}

// rate returns picoseconds per byte as a flag's value; those of the presets fit.
func rate(r *big.Rat) units.Rate {
	return units.Rate{Num: r.Num().Int64(), Den: r.Denom().Int64()}
}

func (b *logGOPS) check() (err error) {
	if b.checkedModel, err = loggops.ParseModel(b.model); err != nil {
		return cli.Usagef("--model: %v", err)
	}
	if b.base, err = loggops.Preset(b.preset); err != nil {
		return cli.Usagef("--params: %v", err)
	}
	changed := b.cmd.Flags().Changed
	for name, set := range map[string]func(){
		"L": func() { b.base.L = b.flags.L },
		"o": func() { b.base.Overhead = b.flags.o },
		"g": func() { b.base.Gap = b.flags.g },
		"G": func() { b.base.GPerByte = b.flags.G.PerByte() },
		"O": func() { b.base.OPerByte = b.flags.O.PerByte() },
		"S": func() { b.base.S = b.flags.S },
	} {
		if changed(name) {
			set()
		}
	}
	if b.common.sweep == "" { // in a sweep, a bad point does not stop the others
		if err := b.base.Check(b.checkedModel); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	if b.noise == "" && b.coscheduled {
		return cli.Usagef("--noise-cosched needs --noise-trace")
	}
	if b.noise != "" {
		f, err := os.Open(b.noise)
		if err != nil {
			return err
		}
		defer f.Close()
		if b.noiseTrace, err = loggops.ReadNoise(f, b.noise); err != nil {
			return err
		}
		b.noiseTrace.Coscheduled, b.noiseTrace.Seed = b.coscheduled, b.common.seed
	}
	if b.common.timeline != "" {
		_, err = b.timeline(io.Discard, b.common.timeline, nil)
	}
	return err
}

func (b *logGOPS) timeline(w io.Writer, path string, t *dag.Trace) (sim.Timeline, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return sim.NewChromeTimeline(w, t), nil
	case ".viz":
		return loggops.NewVizTimeline(w, b.checkedModel, b.base), nil
	}
	return nil, cli.Usagef("--timeline: %s: expected a name that ends with .json or .viz", path)
}

func (b *logGOPS) parameters() []parameter {
	return []parameter{
		timeParameter("L", dag.Nanosecond), timeParameter("o", dag.Nanosecond), timeParameter("g", dag.Nanosecond),
		rateParameter("G", "ns/B"), rateParameter("O", "ns/B"), sizeParameter("S"),
	}
}

func (b *logGOPS) compile(t dag.Source, warn func(string, ...any)) (err error) {
	b.replay, err = loggops.Compile(t, b.checkedModel, warn)
	return err
}

func (b *logGOPS) params(settings []setting) (model string, params any) {
	return b.model, b.with(settings)
}

// with returns the parameters of the flags, with the given settings.
func (b *logGOPS) with(settings []setting) loggops.Params {
	params := b.base
	for _, s := range settings {
		switch s.name {
		case "L":
			params.L = dag.Time(s.rounded())
		case "o":
			params.Overhead = dag.Time(s.rounded())
		case "g":
			params.Gap = dag.Time(s.rounded())
		case "G":
			params.GPerByte = s.value
		case "O":
			params.OPerByte = s.value
		case "S":
			params.S = s.rounded()
		}
	}
	return params
}

func (b *logGOPS) run(settings []setting, r replay) (*result, error) {
	compiled := b.replay
	if r.again {
		compiled = compiled.Clone()
	}
	done, err := compiled.Run(loggops.Options{Params: b.with(settings), Noise: b.noiseTrace, Timeline: r.timeline,
		Threads: r.threads, Progress: r.progress})
	return &result{Result: done}, err
}
