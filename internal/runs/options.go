// Package runs opens traces, lowers and compiles them, and runs them on a backend: one run, or the points of a sweep or
// study, which share what they have in common. Program simulate prints its results.
package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/jobs"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Options are what a run does. Flags of program simulate set them.
type Options struct {
	Read                    cli.ReadFlags
	Simulated               map[string][]string // backends that reproduce a simulator of Read.Simulators
	Lower                   cli.LowerFlags
	Jobs                    jobs.Flags
	Own                     *cli.Options // flags of backends
	Flags                   *pflag.FlagSet
	Backend                 string // name; "": the default one
	Collective              string
	Threads                 int
	JSON                    bool
	Timing                  bool // adds wall-clock figures to JSON
	Timeline                TimelineFlags
	Accesses                string // file name
	Alone                   bool
	Compare                 bool
	ExcludeOutliers         bool   // of Compare
	Start                   string // StartTogether or StartMeasured
	Breakdown, CriticalPath bool
	Outputs                 report.Outputs // page and pictures
	Grid                    bool           // runs points of a grid
	Ideal                   *sim.Kind      // backend of lower bounds; nil: none

	// Lowering is called with each trace in memory, the algorithms and the kinds of collectives that are lowered; may
	// be nil.
	Lowering func(t *dag.Trace, choice collective.Choice, kinds func(dag.Subkind) bool)
}

// Values of Options.Start.
const (
	StartTogether = "together" // all ranks start at 0; also ""
	StartMeasured = "measured" // each rank starts at its own recorded time
)

// KindOf returns the backend with a name such as packet or exec:COMMAND; "" is the default one.
func KindOf(kinds []sim.Kind, name string) (*sim.Kind, error) {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].Name
	}
	if name == "" {
		name = names[0]
	}
	name, text, with := strings.Cut(name, ":")
	found := param.Resolve(name, names)
	if with {
		found += ":" + text
	}
	kind := sim.FindKind(kinds, found)
	switch {
	case kind != nil:
		return kind, nil
	case slices.Contains(names, param.Resolve(name, names)):
		return nil, cli.Usagef("--backend: %s takes no text after its name, found %q", name, text)
	}
	return nil, cli.NoSuch("backend", name, names)
}

// CheckThreads returns an error about a number of threads below 1.
func (o *Options) CheckThreads() error {
	if o.Threads < 1 {
		return cli.Usagef("--threads: expected 1 or more, found %d", o.Threads)
	}
	return nil
}

// CheckOwners returns an error if a flag belongs only to other backends.
func (o *Options) CheckOwners(kind *sim.Kind) error {
	if err := o.Own.Foreign("backend", kind.Name); err != nil {
		return err
	}
	if s := o.Read.Simulator; s != "" && !slices.Contains(o.Simulated[s], kind.Name) {
		return cli.Usagef("--compat %s is for the %s backend, not for %s", s, strings.Join(o.Simulated[s], " and the "),
			kind.Name)
	}
	switch {
	case o.ExcludeOutliers && !o.Compare:
		return cli.Usagef("--exclude-outliers needs --compare")
	case !slices.Contains([]string{"", StartTogether, StartMeasured}, o.Start):
		return cli.Usagef("--start: expected %s or %s, found %q", StartTogether, StartMeasured, o.Start)
	}
	if o.Compare && (o.Own.Given("regroup") || o.Own.Given("gpus-per-node")) {
		return cli.Usagef("--compare: the trace was measured on its own nodes, not on those of --regroup or " +
			"--gpus-per-node")
	}
	return nil
}

// Label names the traces of the command line in messages.
func (e *Engine) Label() string {
	if len(e.args) == 0 {
		return "<stdin>"
	}
	return strings.Join(e.args, " + ")
}

// NumbersOf returns the parameters of options of a backend, or of others if it has none with the name.
func (e *Engine) NumbersOf(backend string) grid.Numbers {
	tables := []param.Set{e.Table(backend)}
	for i := range e.kinds {
		tables = append(tables, e.kinds[i].New().Params())
	}
	return func(name string) param.Number {
		for _, table := range tables {
			if p := table.Find(strings.TrimPrefix(name, "set.")); p != nil {
				if n, is := p.Value.(param.Number); is {
					return n
				}
			}
		}
		return nil
	}
}

// Check returns an error about a name that is no option of a run.
func (e *Engine) Check(name string) error {
	flag, key, isKey := strings.Cut(name, ".")
	switch {
	case name == "trace" || name == "generator.seed" || name == "simulate.seed" || name == "seed" || name == "backend":
		return nil
	case flag == "set" && isKey && key != "":
		return nil
	}
	own := e.Table(e.common.Backend)
	names := append(own.Swept(), "trace", "seed", "backend")
	numbered := strings.TrimRight(flag, "0123456789") // as in bw0, the bandwidth of dimension 0
	for i := range e.kinds {
		table := e.kinds[i].New().Params()
		for _, name := range []string{flag, numbered} {
			if p := table.Find(name); p != nil && (p.Key && !isKey ||
				provenance.Shapes(&pflag.Flag{Name: name}, table)) {
				return nil
			}
		}
	}
	found := false
	e.common.Flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || !provenance.Shapes(f, nil) || slices.Contains(forwarded, f.Name) {
			return
		}
		found = found || f.Name == flag
		names = append(names, f.Name)
	})
	if found {
		return nil
	}
	return fmt.Errorf("expected one of the parameters %s, or another option that changes results, found %q%s",
		strings.Join(own.Swept(), ", "), name, param.Suggest(name, names))
}

// forwarded are flags that do not describe the run itself but what is reported about it.
var forwarded = []string{"seed", "backend", "compare", "exclude-outliers", "breakdown", "critical-path"}

// BaseArgs returns the flags of the command line that belong to each point, one argument each.
func (e *Engine) BaseArgs() (args []string, err error) {
	table := e.Table(e.common.Backend)
	err = e.common.Flags.ParseAll(e.p.Args[1:], func(f *pflag.Flag, value string) error {
		if f.Name == "compat" && value == f.NoOptDefVal && e.common.Read.Simulator != "" {
			value = e.common.Read.Simulator
		}
		if provenance.Shapes(f, table) || slices.Contains(forwarded, f.Name) || table.Find(f.Name) != nil {
			args = append(args, "--"+f.Name+"="+value)
		}
		return nil
	})
	return args, err
}
