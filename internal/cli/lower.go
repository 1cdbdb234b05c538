// This file has the flag for lowering high-level ops.

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/dag/lower/storage"
)

// LowerFlags are the flags of a program that can turn high-level ops into sends, receives and calcs.
type LowerFlags struct {
	rules  []string
	report string
	nccl   ncclFlags
	Seed   *int64 // of sampled times; nil: that of the command's flag --seed
	p      *Program
}

// Register adds the flags to the command.
func (f *LowerFlags) Register(p *Program, cmd *cobra.Command) {
	f.p = p
	cmd.Flags().StringArrayVar(&f.rules, "lower", nil,
		"turn high-level ops into sends, receives and calcs. Collectives: a `choice` of algorithms such as collectives=ring "+
			"or 'mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling', or just collectives for the default ones. Storage: "+
			"a system with its parameters, such as "+strings.Join(storage.Names(), ", ")+
			":replicas=3. Calcs without a duration: roofline:peak-flops=312TFLOPS,mem-bw=2TB/s. NCCL calls: nccl, which joins the "+
			"ranks of each node to one, or nccl:ranks=gpus,algorithm=ring,protocol=simple,channels=8,machine=clariden. The ranks of "+
			"each node to one: nodes. May be repeated")
	f.nccl.register(cmd)
	cmd.Flags().StringVar(&f.report, "report", "",
		"with --lower of storage or of NCCL calls: write counts of what was made to `FILE`, as JSON")
}

// Asked reports whether the flags ask for anything.
func (f *LowerFlags) Asked() bool {
	return len(f.rules) > 0 || f.nccl.regroups()
}

// Reports reports whether there is to be a report.
func (f *LowerFlags) Reports() bool {
	return f.report != ""
}

// roofline is a machine that gives calcs durations.
type roofline struct {
	peak      FlopRate
	bandwidth Bandwidth
}

const rooflineName = "roofline"

// parseRoofline reads "roofline:peak-flops=RATE,mem-bw=RATE".
func parseRoofline(text string) (*roofline, error) {
	_, parameters, _ := strings.Cut(text, ":")
	var m roofline
	values := map[string]pflag.Value{"peak-flops": &m.peak, "mem-bw": &m.bandwidth}
	for parameter := range strings.SplitSeq(parameters, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		v := values[name]
		if v == nil {
			return nil, fmt.Errorf("%s: expected peak-flops=RATE,mem-bw=RATE, found %q", rooflineName, parameter)
		}
		if err := v.Set(strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", rooflineName, name, err)
		}
	}
	if m.peak == 0 || m.bandwidth == 0 {
		return nil, fmt.Errorf("%s: expected both peak-flops and mem-bw", rooflineName)
	}
	return &m, nil
}

// passes are what the flags ask for, in the order in which it is done.
type passes struct {
	storage     *storage.Choice
	machine     *roofline
	nccl        *ncclRule
	joins       bool
	collectives bool
	choice      collective.Choice // of algorithms of collectives
}

// Pass lowers a trace.
type Pass = func(dag.Source) (dag.Source, error)

// Pass returns the function that the flags ask for, one that returns its argument where they ask for nothing. What lowers
// collectives alone does so while it is read; all else has the trace in memory.
func (f *LowerFlags) Pass() (Pass, error) {
	do, err := f.passes()
	if err != nil {
		return nil, err
	}
	return func(s dag.Source) (dag.Source, error) {
		if do.storage != nil || do.machine != nil || do.nccl != nil || f.nccl.regroups() {
			t, err := dag.ReadAll(s)
			if err == nil {
				s, err = f.lower(t, do)
			}
			if err != nil {
				return nil, err
			}
		}
		if do.collectives {
			var err error
			if s, err = collective.LowerSource(s, do.choice); err != nil {
				return nil, err
			}
		}
		if !do.joins {
			return s, nil
		}
		t, err := dag.ReadAll(s)
		if err == nil {
			t, err = nodes.Join(t, f.nccl.nodeOptions())
		}
		if err != nil {
			return nil, err
		}
		return dag.FromTrace(t), nil
	}, nil
}

// lower does what comes before collectives.
func (f *LowerFlags) lower(t *dag.Trace, do *passes) (s dag.Source, err error) {
	if f.nccl.regroups() {
		if t, err = f.nccl.regrouped(t); err != nil {
			return nil, err
		}
	}
	if do.storage != nil {
		if t, err = f.lowerStorage(t, *do.storage); err != nil {
			return nil, err
		}
	}
	if do.machine != nil {
		t = lower.Roofline(t, int64(do.machine.peak), int64(do.machine.bandwidth))
	}
	if do.nccl != nil {
		return f.lowerNCCL(t, do.nccl, do.choice)
	}
	return dag.FromTrace(t), nil
}

// passes reads the flags.
func (f *LowerFlags) passes() (*passes, error) {
	do := &passes{}
	var rules []string
	for _, rule := range f.rules {
		var err error
		twice := false
		switch name, _, _ := strings.Cut(rule, ":"); {
		case storage.IsChoice(rule):
			var c storage.Choice
			c, err = storage.ParseChoice(rule)
			twice, do.storage = do.storage != nil, &c
		case strings.TrimSpace(name) == rooflineName:
			do.machine, err = parseRoofline(rule)
		case strings.TrimSpace(name) == ncclName:
			twice = do.nccl != nil
			do.nccl, err = parseNCCL(rule)
		case strings.TrimSpace(rule) == nodesName:
			do.joins = true
		case strings.TrimSpace(rule) == "collectives":
			do.collectives = true
		default:
			do.collectives = true
			rules = append(rules, rule)
		}
		if err == nil && twice {
			err = fmt.Errorf("%s: a storage system or nccl is named twice", rule)
		}
		if err != nil {
			return nil, Usagef("--lower: %v", err)
		}
	}
	if f.report != "" && (do.storage == nil) == (do.nccl == nil) {
		return nil, Usagef("--report is for --lower of storage (%s) or of nccl", strings.Join(storage.Names(), ", "))
	}
	if err := f.nccl.check(do.nccl != nil, do.nccl != nil || do.joins); err != nil {
		return nil, err
	}
	var err error
	if do.choice, err = collective.ParseChoice(strings.Join(rules, ";")); err != nil {
		return nil, Usagef("--lower: %v", err)
	}
	return do, nil
}

// lowerStorage lowers the io ops of a trace, and writes the report.
func (f *LowerFlags) lowerStorage(t *dag.Trace, c storage.Choice) (*dag.Trace, error) {
	lowered, report, err := storage.Lower(t, c)
	if err == nil {
		err = f.writeReport(report)
	}
	return lowered, err
}
