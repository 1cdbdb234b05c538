package backends

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Option modifies a call of [Run] or [Compile].
type Option func(*call)

// call is the configuration of a call of Run or Compile.
type call struct {
	texts  param.Texts
	bad    error
	env    *sim.Env
	choice collective.Choice
	run    sim.RunOptions
}

// Set sets backend parameters by texts such as "transport=dctcp", with the syntax of the command-line flags. A
// repeatable parameter accepts several texts. Transport parameters, which the command line sets with --set, have their
// own names.
func Set(texts ...string) Option {
	return func(c *call) {
		for _, text := range texts {
			name, value, found := strings.Cut(text, "=")
			if !found && c.bad == nil {
				c.bad = fmt.Errorf("expected NAME=VALUE, found %q", text)
			}
			c.texts[name] = append(c.texts[name], value)
		}
	}
}

// SetAll sets backend parameters by name; see [Set].
func SetAll(values map[string]string) Option {
	return func(c *call) {
		for name, value := range values {
			c.texts[name] = append(c.texts[name], value)
		}
	}
}

// Context ends the work early when ctx ends; see [sim.Interrupted].
func Context(ctx context.Context) Option {
	return func(c *call) { c.run.Context = ctx }
}

// Env connects the backend with its caller for warnings and files.
func Env(env *sim.Env) Option {
	return func(c *call) { c.env = env }
}

// Collectives chooses the algorithms of collectives that the backend does not run itself, instead of the defaults.
func Collectives(choice collective.Choice) Option {
	return func(c *call) { c.choice = choice }
}

// Options sets the run options. Its settings extend the parameters of [Set].
func Options(o sim.RunOptions) Option {
	return func(c *call) {
		if o.Context == nil {
			o.Context = c.run.Context
		}
		c.run = o
	}
}

// Run runs a trace on the named backend: it lowers the collectives that the backend does not run itself, compiles the
// trace and returns the result. An error about a parameter wraps a [*param.Error].
func Run(trace *dag.Trace, name string, options ...Option) (*sim.Result, error) {
	c := newCall(options)
	replay, err := c.compile(trace, name)
	if err != nil {
		return nil, err
	}
	result, err := replay.Run(c.run)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	return result, nil
}

// Compile is Run without the run. For several runs, clone the result before each.
func Compile(trace *dag.Trace, name string, options ...Option) (sim.Replay, error) {
	return newCall(options).compile(trace, name)
}

func newCall(options []Option) *call {
	c := &call{texts: make(param.Texts), env: &sim.Env{}}
	for _, option := range options {
		option(c)
	}
	return c
}

func (c *call) compile(trace *dag.Trace, name string) (sim.Replay, error) {
	kind := Named(name)
	if kind == nil {
		return nil, fmt.Errorf("unknown backend %q, expected one of %s", name, strings.Join(Names(), ", "))
	}
	replay, err := c.compileOn(kind.New(), trace)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	return replay, nil
}

func (c *call) compileOn(b sim.Backend, trace *dag.Trace) (sim.Replay, error) {
	settings, err := c.configure(b)
	if err != nil {
		return nil, err
	}
	source := dag.FromTrace(trace)
	if ctx := c.env.Context; ctx != nil {
		source = dag.WithContext(ctx, source)
	}
	if source, err = c.lower(source, b.Lowers(source)); err != nil {
		return nil, err
	}
	replay, err := b.Compile(source, c.env)
	if err != nil || len(settings) == 0 {
		return replay, err
	}
	return &preset{replay, settings}, nil
}

// lower returns the source with the selected collectives lowered. If all are selected, it lowers during reading.
func (c *call) lower(source dag.Source, which func(dag.Subkind) bool) (dag.Source, error) {
	lowered, counts, err := collective.LowerNeeded(c.env.Context, source, c.choice, collective.Selection{Kinds: which})
	if err != nil || counts.Kept == 0 {
		return lowered, err
	}
	whole, err := memory.ReadTrace(c.env.Context, lowered)
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(whole), nil
}

// configure sets and checks the backend's parameters. It returns the settings of numeric parameters without flags,
// which may depend on files that the check reads.
func (c *call) configure(b sim.Backend) ([]param.Setting, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	env := *c.env.OrEmpty()
	if env.Context == nil {
		env.Context = c.run.Context
	}
	c.env = &env
	if env.Given == nil {
		set := func(name string) bool { return len(c.texts[name]) > 0 }
		env.Given = func(name string) bool {
			p := b.Params().Find(name)
			return set(name) || p != nil && slices.ContainsFunc(p.Aliases, set)
		}
	}
	flags := b.Params().Flags()
	if err := flags.Apply(c.texts); err != nil {
		return nil, err
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(c.texts)) {
		if flags.Find(name) != nil {
			continue
		}
		p := b.Params().Find(name) // the table may depend on earlier parameters
		if p != nil && !p.Sweeps {
			if err := b.Params().Apply(param.Texts{name: c.texts[name]}); err != nil {
				return nil, err
			}
			continue
		}
		others = append(others, name)
	}
	if err := b.Check(c.env); err != nil {
		return nil, err
	}
	var settings []param.Setting
	for _, name := range others {
		p := b.Params().Find(name)
		if p == nil {
			return nil, param.Errorf(name, "unknown parameter, expected one of %s",
				strings.Join(b.Params().Names(), ", "))
		}
		for _, text := range c.texts[name] {
			n, err := p.Value.(param.Number).Parse(text)
			if err != nil {
				return nil, &param.Error{Name: name, Text: text, Err: err}
			}
			settings = append(settings, param.Setting{Name: p.Name, Number: n})
		}
	}
	return settings, nil
}

// preset is a replay with settings that precede those of a run.
type preset struct {
	replay   sim.Replay
	settings []param.Setting
}

func (p *preset) Clone() sim.Replay {
	return &preset{p.replay.Clone(), p.settings}
}

func (p *preset) Room() *sim.Room {
	if r, is := p.replay.(sim.WindowedReplay); is {
		return r.Room()
	}
	return nil
}

func (p *preset) Run(o sim.RunOptions) (*sim.Result, error) {
	o.Settings = slices.Concat(p.settings, o.Settings)
	return p.replay.Run(o)
}
