// This file has the flag for lowering high-level ops.

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
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

// Pass lowers a trace.
type Pass = func(dag.Source) (dag.Source, error)

// Pass returns the function that the flags ask for, one that returns its argument if they ask for nothing. Collectives
// alone are lowered while the result is read; all other passes have the trace in memory.
func (f *LowerFlags) Pass() (Pass, error) {
	do, err := lower.Parse(f.rules)
	if err != nil {
		return nil, Usagef("--lower: %v", err)
	}
	if f.report != "" && (do.Storage == nil) == (do.NCCL == nil) {
		return nil, Usagef("--report is for --lower of storage (%s) or of nccl", strings.Join(storage.Names(), ", "))
	}
	if err := f.nccl.check(do.NCCL != nil, do.NCCL != nil || do.Join); err != nil {
		return nil, err
	}
	do.Nodes, do.Report, do.Warn = f.nccl.nodeOptions(), f.writeReport, f.p.Warn
	if f.nccl.regroups() {
		do.Group = f.nccl.group
	}
	if do.NCCL != nil {
		if do.NCCL.Seed, _ = f.nccl.flags.GetInt64("seed"); f.Seed != nil { // 0 for a program without a seed
			do.NCCL.Seed = *f.Seed
		}
		do.NCCL.Sample, do.NCCL.ZeroReduction, do.NCCL.Unmodelled = f.nccl.sample, f.nccl.zero, f.nccl.assume
		do.NCCL.Tables = f.setTables
	}
	return do.Lower, nil
}
