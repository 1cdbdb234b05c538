package lower

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/lower/nccl"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// Passes are lowering passes, which run in the order of the fields. Needed runs in the place of Storage for memory and
// storage accesses, and in the place of Collectives for collectives.
type Passes struct {
	Group       func(*dag.Trace) (*dag.Trace, error) // assigns ranks to nodes first; nil: it does not
	Storage     *storage.Choice                      // lowers storage accesses; nil: not
	Machine     *Machine                             // gives calcs durations; nil: it does not
	NCCL        *NCCL                                // lowers NCCL calls; nil: not
	Collectives bool                                 // lowers collectives
	Needed      bool                                 // lowers the ops that the target lacks, see Lacks
	Choice      collective.Choice                    // of algorithms, also for the collectives that NCCL lacks
	// DefaultChoice reports that no rule chooses algorithms.
	DefaultChoice bool
	Join          bool          // joins the ranks of each node
	Nodes         nodes.Options // of Join and NCCL

	// Lacks returns what the target of a trace lacks, for Needed; nil: nothing.
	Lacks func(s dag.Source) (Lacks, error)

	Context context.Context // ends Lower early; nil: never

	Report func(report any) error           // receives the counts of Storage and NCCL; nil discards them
	Warn   func(format string, args ...any) // nil discards warnings
	Note   func(format string, args ...any) // receives a line per kind of op that Needed lowers; nil discards them
}

// NCCL describes how NCCL calls are lowered. Set [Passes.Nodes] for the nodes.
type NCCL struct {
	nccl.Options
	// Unmodelled replaces algorithms without a model: "ring", or "none" for no messages. Otherwise they are an error.
	Unmodelled string
	// Tables, if not nil, sets tables that replace those of the machine.
	Tables func(*nccl.Options) error
}

// Rules returns the table of the values of --lower. A value of the table is a whole rule, such as "nccl:channels=8".
// Rules for single collectives, such as "allreduce=ring", are in [collective.Choice.Params].
func (p *Passes) Rules() param.Set {
	const keys = "[:KEY=VALUE,...]"
	set := param.Set{
		param.Func("[=ALGORITHMS]", "collectives", "lower collectives by algorithms such as ring or "+
			"'mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling'", func(rule string) error {
			p.Collectives = true
			return setKeys(nil, rule)
		}),
		param.Func("", "needed", "lower only the ops that the output format or the backend lacks: collectives, and "+
			"storage and memory accesses", func(rule string) error {
			p.Needed = true
			return setKeys(nil, rule)
		}),
		param.Func(":KEY=VALUE,...", "roofline", "give a duration to calcs with operations and no duration: "+
			"the longer of the operations at the peak rate and the bytes at the memory bandwidth",
			func(rule string) (err error) {
				p.Machine, err = parseMachine(rule)
				return err
			}),
		param.Func(keys, "nccl", "lower NCCL calls as NCCL executes them, and join the ranks of each node",
			func(rule string) error {
				if p.NCCL != nil {
					return errTwice
				}
				p.NCCL = &NCCL{Options: *nccl.NewOptions()}
				if err := setKeys(p.NCCL.Params(), rule); err != nil {
					return err
				}
				return p.NCCL.Check()
			}),
		param.Func("", "nodes", "join the ranks of each node to one", func(rule string) error {
			p.Join = true
			return setKeys(nil, rule)
		}),
	}
	for _, name := range storage.Names() {
		about := "lower storage accesses by " + storage.Default(name).About()
		set = append(set, param.Func(keys, name, about, func(rule string) error {
			if p.Storage != nil {
				return errTwice
			}
			c, err := storage.ParseChoice(rule)
			p.Storage = &c
			return err
		}))
	}
	return set.AsKeys("Values of --lower")
}

// Keys returns the tables of the keys of all passes, each below a heading of its own.
func Keys() param.Set {
	set := slices.Concat((&collective.Choice{}).Params(), (&Machine{}).Params(), nccl.NewOptions().Params())
	for _, name := range storage.Names() {
		set = append(set, storage.Default(name).Params()...)
	}
	return set
}

// errTwice is the error of a second rule for the same pass.
var errTwice = errors.New("a storage system or nccl is named twice")

// setKeys sets the keys of a rule such as "nccl:channels=8,protocol=ll". Spaces around names and values are ignored.
func setKeys(set param.Set, rule string) error {
	_, keys, found := strings.Cut(rule, ":")
	switch {
	case !found:
		return nil
	case len(set) == 0:
		return fmt.Errorf("expected no keys, found %q", keys)
	}
	for key := range strings.SplitSeq(keys, ",") {
		name, value, _ := strings.Cut(key, "=")
		if err := set.SetKey(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

// Parse parses the rules of --lower; docs/reference/lowering.md, docs/reference/lowering-nccl.md and
// docs/reference/storage.md describe them. Several rules for collectives are one choice of algorithms.
func Parse(rules []string) (*Passes, error) {
	p := &Passes{}
	passes := p.Rules()
	var choices []string
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, ":")
		name = strings.TrimSpace(name)
		if pass := passes.Find(name); pass == nil {
			choices = append(choices, rule)
		} else if err := pass.Value.Set(rule); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if p.Needed && p.Collectives {
		return nil, errors.New("needed and collectives exclude each other; with needed, rules such as allreduce=ring " +
			"choose the algorithms of the collectives that are lowered")
	}
	p.Collectives = p.Collectives || len(choices) > 0 && !p.Needed
	p.DefaultChoice = len(choices) == 0
	var err error
	if p.Choice, err = collective.ParseChoice(strings.Join(choices, ";")); err != nil {
		name, _, _ := strings.Cut(choices[0], ":")
		if strings.Contains(name, "=") {
			return nil, err // of an algorithm, not of the name of a pass
		}
		return nil, fmt.Errorf("%w%s", err, param.Suggest(name, append(passes.Names(), collective.Tables()...)))
	}
	return p, nil
}

// None reports whether there are no passes.
func (p *Passes) None() bool {
	return !p.whole() && !p.Collectives && !p.Needed && !p.Join
}

// whole reports whether a pass before Collectives needs the whole trace.
func (p *Passes) whole() bool {
	return p.Group != nil || p.Storage != nil || p.Machine != nil || p.NCCL != nil
}

// Lower returns the lowered trace, s itself if there are no passes. A pass over collectives alone runs while the result
// is read; all others have the trace in memory.
func (p *Passes) Lower(s dag.Source) (dag.Source, error) {
	if p.Context != nil && !p.None() {
		s = dag.WithContext(p.Context, s)
	}
	lacks := Lacks{}
	if p.Needed {
		var err error
		if s, lacks, err = p.prepareNeeded(s); err != nil {
			return nil, err
		}
	}
	if p.whole() {
		t, err := memory.ReadTrace(p.Context, s)
		if err == nil {
			s, err = p.lower(t)
		}
		if err != nil {
			return nil, err
		}
	}
	if p.Collectives {
		var err error
		if s, err = collective.LowerSource(p.Context, s, p.Choice); err != nil {
			return nil, err
		}
	}
	if p.Needed {
		var err error
		if s, err = p.lowerNeeded(s, lacks); err != nil {
			return nil, err
		}
	}
	if !p.Join {
		return s, nil
	}
	t, err := memory.ReadTrace(p.Context, s)
	if err == nil {
		t, err = nodes.Join(p.Context, t, p.Nodes)
	}
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(t), nil
}

// lower runs the passes before Collectives.
func (p *Passes) lower(t *dag.Trace) (s dag.Source, err error) {
	if p.Group != nil {
		if t, err = p.Group(t); err != nil {
			return nil, err
		}
	}
	if p.Storage != nil {
		lowered, report, err := storage.Lower(p.Context, t, *p.Storage)
		if err == nil {
			err = p.report(report)
		}
		if err != nil {
			return nil, err
		}
		t = lowered
	}
	if p.Machine != nil {
		if t, err = Roofline(p.Context, t, p.Machine.Peak, p.Machine.Bandwidth); err != nil {
			return nil, err
		}
	}
	if p.NCCL != nil {
		return p.lowerNCCL(t)
	}
	return dag.FromTrace(t), nil
}

// lowerNCCL lowers the NCCL calls of a trace, and before them the collectives that NCCL does not know.
func (p *Passes) lowerNCCL(t *dag.Trace) (_ dag.Source, err error) {
	unknown := func(s dag.Subkind) bool { return !nccl.Knows(s) }
	if some, _ := collective.Covers(t, unknown); some { // otherwise the whole trace would be copied
		if t, err = collective.LowerSelected(p.Context, t, p.Choice, unknown); err != nil {
			return nil, err
		}
	}
	o := p.NCCL.Options
	o.AssumeRing = p.NCCL.Unmodelled == "ring"
	o.Nodes = p.Nodes
	if p.NCCL.Tables != nil {
		if err := p.NCCL.Tables(&o); err != nil {
			return nil, err
		}
	}
	lowered, err := nccl.Lower(p.Context, t, o)
	if err == nil {
		err = p.report(&lowered.Report)
	}
	if err != nil {
		return nil, err
	}
	if calls := lowered.Report.UnsupportedCalls(); calls != "" {
		if p.NCCL.Unmodelled == "" {
			return nil, fmt.Errorf("NCCL calls by algorithms without a model: %s; CollNet, the reduction inside "+
				"the network, is not modelled, which NVLS between nodes uses, too; NVLS Tree needs equal numbers of "+
				"GPUs on all nodes; --nccl-version chooses other algorithms, --assume ring has the calls carried "+
				"out as rings, --assume none leaves out their messages", calls)
		}
		p.warn("no messages for NCCL calls by algorithms without a model: %s", calls)
	}
	if lowered.Report.Estimated > 0 {
		p.warn("LL128 times estimated from Simple's; --npkit-ll128 states measured ones")
	}
	if n := lowered.Report.Untimed; n > 0 {
		p.warn("%d pieces of data take no time to reduce or copy with the protocol LL128: --npkit-ll128 says how long "+
			"they take", n)
	}
	return lowered, nil
}

func (p *Passes) report(report any) error {
	if p.Report == nil {
		return nil
	}
	return p.Report(report)
}

func (p *Passes) warn(format string, args ...any) {
	if p.Warn != nil {
		p.Warn(format, args...)
	}
}
