package lower

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/lower/nccl"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/internal/units"
)

// Names of passes.
const (
	rooflineName    = "roofline"
	ncclName        = "nccl"
	nodesName       = "nodes"
	collectivesName = "collectives"
)

// Passes are lowering passes, which run in the order of the fields.
type Passes struct {
	Group       func(*dag.Trace) (*dag.Trace, error) // assigns ranks to nodes first; nil: it does not
	Storage     *storage.Choice                      // lowers storage accesses; nil: not
	Machine     *Machine                             // gives calcs durations; nil: it does not
	NCCL        *NCCL                                // lowers NCCL calls; nil: not
	Collectives bool                                 // lowers collectives
	Choice      collective.Choice                    // of algorithms, also for the collectives that NCCL lacks
	Join        bool                                 // joins the ranks of each node
	Nodes       nodes.Options                        // of Join and NCCL

	Report func(report any) error           // receives the counts of Storage and NCCL; nil discards them
	Warn   func(format string, args ...any) // nil discards warnings
}

// Machine is a machine that gives calcs durations, see [Roofline].
type Machine struct {
	Peak      int64 // floating-point operations per second
	Bandwidth int64 // of the memory, in bytes per second
}

// NCCL describes how NCCL calls are lowered. Set [Passes.Nodes] for the nodes.
type NCCL struct {
	nccl.Options
	Machine string // whose tables of times are used; one of nccl.Machines
	// Unmodelled replaces algorithms without a model: "ring", or "none" for no messages. Otherwise they are an error.
	Unmodelled string
	// Tables, if not nil, replaces tables of the machine.
	Tables func(*nccl.Options) error
}

// Parse parses the rules of --lower; docs/reference/lowering.md, docs/reference/lowering-nccl.md and docs/reference/storage.md describe them. Several
// rules for collectives are one choice of algorithms.
func Parse(rules []string) (*Passes, error) {
	p := &Passes{}
	var choices []string
	for _, rule := range rules {
		var err error
		twice := false
		switch name, _, _ := strings.Cut(rule, ":"); {
		case storage.IsChoice(rule):
			var c storage.Choice
			c, err = storage.ParseChoice(rule)
			twice, p.Storage = p.Storage != nil, &c
		case strings.TrimSpace(name) == rooflineName:
			p.Machine, err = parseMachine(rule)
		case strings.TrimSpace(name) == ncclName:
			twice = p.NCCL != nil
			p.NCCL, err = parseNCCL(rule)
		case strings.TrimSpace(rule) == nodesName:
			p.Join = true
		case strings.TrimSpace(rule) == collectivesName:
			p.Collectives = true
		default:
			p.Collectives = true
			choices = append(choices, rule)
		}
		if err == nil && twice {
			err = fmt.Errorf("%s: a storage system or nccl is named twice", rule)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	p.Choice, err = collective.ParseChoice(strings.Join(choices, ";"))
	return p, err
}

// parseMachine parses "roofline:peak-flops=RATE,mem-bw=RATE".
func parseMachine(text string) (*Machine, error) {
	_, parameters, _ := strings.Cut(text, ":")
	var m Machine
	for parameter := range strings.SplitSeq(parameters, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		value = strings.TrimSpace(value)
		var err error
		switch name {
		case "peak-flops":
			m.Peak, err = units.ParseFLOPS(value)
		case "mem-bw":
			m.Bandwidth, err = units.ParseBandwidth(value)
		default:
			return nil, fmt.Errorf("%s: expected peak-flops=RATE,mem-bw=RATE, found %q", rooflineName, parameter)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", rooflineName, name, err)
		}
	}
	if m.Peak == 0 || m.Bandwidth == 0 {
		return nil, fmt.Errorf("%s: expected both peak-flops and mem-bw", rooflineName)
	}
	return &m, nil
}

// parseNCCL parses "nccl" or "nccl:PARAMETER=VALUE,...".
func parseNCCL(text string) (*NCCL, error) {
	r := &NCCL{Machine: nccl.Machines[0]}
	_, parameters, some := strings.Cut(text, ":")
	if !some {
		return r, nil
	}
	for parameter := range strings.SplitSeq(parameters, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		var err error
		switch name {
		case "machine":
			if r.Machine = value; !slices.Contains(nccl.Machines, value) {
				err = fmt.Errorf("expected one of %s, found %q", strings.Join(nccl.Machines, ", "), value)
			}
		case "algorithm":
			r.Algorithm = value
		case "protocol":
			r.Protocol = value
		case "channels":
			if r.Channels, err = strconv.Atoi(value); err != nil || r.Channels < 1 {
				err = fmt.Errorf("expected a number of channels, found %q", value)
			}
		case "ranks":
			if r.Apart = value == "gpus"; value != "gpus" && value != "nodes" {
				err = fmt.Errorf("expected gpus or nodes, found %q", value)
			}
		default:
			return nil, fmt.Errorf("%s: expected machine, algorithm, protocol, channels or ranks, found %q",
				ncclName, parameter)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", ncclName, name, err)
		}
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", ncclName, err)
	}
	return r, nil
}

// None reports whether there are no passes.
func (p *Passes) None() bool {
	return !p.whole() && !p.Collectives && !p.Join
}

// whole reports whether a pass before Collectives needs the whole trace.
func (p *Passes) whole() bool {
	return p.Group != nil || p.Storage != nil || p.Machine != nil || p.NCCL != nil
}

// Lower returns the lowered trace, s itself if there are no passes. A pass over collectives alone runs while the result
// is read; all others have the trace in memory.
func (p *Passes) Lower(s dag.Source) (dag.Source, error) {
	if p.whole() {
		t, err := dag.ReadAll(s)
		if err == nil {
			s, err = p.lower(t)
		}
		if err != nil {
			return nil, err
		}
	}
	if p.Collectives {
		var err error
		if s, err = collective.LowerSource(s, p.Choice); err != nil {
			return nil, err
		}
	}
	if !p.Join {
		return s, nil
	}
	t, err := dag.ReadAll(s)
	if err == nil {
		t, err = nodes.Join(t, p.Nodes)
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
		lowered, report, err := storage.Lower(t, *p.Storage)
		if err == nil {
			err = p.report(report)
		}
		if err != nil {
			return nil, err
		}
		t = lowered
	}
	if p.Machine != nil {
		t = Roofline(t, p.Machine.Peak, p.Machine.Bandwidth)
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
		if t, err = collective.LowerSelected(t, p.Choice, unknown); err != nil {
			return nil, err
		}
	}
	o := p.NCCL.Options
	o.AssumeRing = p.NCCL.Unmodelled == "ring"
	o.Nodes = p.Nodes
	if o.Simple, o.LL, err = nccl.MachineTables(p.NCCL.Machine); err != nil {
		return nil, err
	}
	if p.NCCL.Tables != nil {
		if err := p.NCCL.Tables(&o); err != nil {
			return nil, err
		}
	}
	lowered, err := nccl.Lower(t, o)
	if err == nil {
		err = p.report(&lowered.Report)
	}
	if err != nil {
		return nil, err
	}
	if calls := lowered.Report.UnsupportedCalls(); calls != "" {
		if p.NCCL.Unmodelled == "" {
			return nil, fmt.Errorf("NCCL calls by algorithms that are not modelled: %s; "+
				"--assume ring has them carried out as rings, --assume none leaves out their messages", calls)
		}
		p.warn("no messages for NCCL calls by algorithms that are not modelled: %s", calls)
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
