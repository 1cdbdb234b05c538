package tracedag

import (
	"context"
	"math/big"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/internal/par/partest"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim/topology"
)

// generate returns the trace of a generator.
func generate(t *testing.T, name string, texts param.Texts) *dag.Trace {
	t.Helper()
	s, err := source(name, texts, nil)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func source(name string, texts param.Texts, env *generator.Env) (dag.Source, error) {
	config := gen.Named(name).New()
	if err := config.Params().Apply(texts); err != nil {
		return nil, err
	}
	return config.Source(env)
}

// read reads all of a source.
func read(s dag.Source, err error) error {
	if err == nil {
		_, err = dag.ReadAll(s)
	}
	return err
}

// TestLongCallsEndWithContext cancels the context of each call that may be long.
func TestLongCallsEndWithContext(t *testing.T) {
	folder := t.TempDir()
	collectives := generate(t, "collective", param.Texts{"ranks": {"40"}, "repeat": {"20"}})
	messages, err := collective.Lower(t.Context(), collectives, collective.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	messages.Nodes = make([]int32, len(messages.Ranks))
	for rank := range messages.Nodes {
		messages.Nodes[rank] = int32(rank / 4)
	}
	training := generate(t, "llm", param.Texts{"dp": {"16"}, "layers": {"4"}})
	storage := generate(t, "storage", param.Texts{"records": {"40000"}})
	pass := func(rules ...string) func(t *dag.Trace) func(ctx context.Context) error {
		return func(t *dag.Trace) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				p, err := lower.Parse(rules)
				if err != nil {
					return err
				}
				p.Context = ctx
				return read(p.Lower(dag.FromTrace(t)))
			}
		}
	}
	plan := func(settings []compose.Setting, jobs ...[]compose.Setting) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			p, err := compose.NewPlan(settings, jobs)
			if err != nil {
				return err
			}
			_, err = compose.Build(p, compose.Env{Context: ctx, Open: func(string, string) (*compose.Opened, error) {
				return &compose.Opened{Trace: messages}, nil
			}})
			return err
		}
	}
	edit := func(t *dag.Trace, e compose.Edits) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.Apply(ctx, t, "x", compose.Notes{})
			return err
		}
	}
	write := func(name string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			s := dag.FromTrace(messages)
			_, err := formats.WriteSource(filepath.Join(folder, name), s, formats.WriteOptions{Context: ctx})
			return err
		}
	}
	network, err := topology.Parse("fattree:k=16")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(ctx context.Context) error{
		"lower collectives": pass("collectives")(collectives),
		"lower selected collectives": func(ctx context.Context) error {
			only := func(s dag.Subkind) bool { return s == dag.Allreduce }
			_, err := collective.LowerSelected(ctx, collectives, collective.Choice{}, only)
			return err
		},
		"lower storage":     pass("directdrive")(storage),
		"lower NCCL":        pass("nccl")(collectives),
		"lower nodes":       pass("nodes")(messages),
		"lower calcs":       pass("roofline:peak-flops=312TFLOPS,mem-bw=2TB/s")(training),
		"plan side by side": plan(nil, []compose.Setting{{Key: "file", Value: "a"}, {Key: "count", Value: "3"}}),
		"edit scale":        edit(messages, compose.Edits{Scale: big.NewRat(1, 2)}),
		"edit repeat":       edit(messages, compose.Edits{Repeat: 2}),
		"edit window":       edit(storage, compose.Edits{Window: &compose.Span{From: 0, To: dag.Second}}),
		"edit ranks":        edit(messages, compose.Edits{Only: compose.Ranges{{First: 0, Last: 29}}}),
		"write store":       write("x.parquet"),
		"write text":        write("x.goal"),
		"routes": func(ctx context.Context) error {
			_, err := topology.NewRoutes(ctx, network, nil)
			return err
		},
	}
	for name, texts := range map[string]param.Texts{
		"dcnw":     {"tasks": {"8"}, "messages": {"20000"}},
		"flows":    {"tasks": {"8"}, "messages": {"20000"}},
		"workload": {"ranks": {"8"}, "flows": {"20000"}},
		"matrix":   {"nodes": {"8"}, "flows": {"70000"}, "threshold": {"1"}},
		"graph500": {"scale": {"14"}, "nodes": {"16"}},
		"llm":      {"dp": {"8"}, "layers": {"8"}},
		"horovod":  {},
		"storage":  {"records": {"80000"}},
	} {
		calls["generate "+name] = func(ctx context.Context) error {
			return read(source(name, texts, &generator.Env{Context: ctx}))
		}
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { partest.EndsWithContext(t, 3, call) })
	}
}
