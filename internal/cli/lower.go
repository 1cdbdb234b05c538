// This file declares the flag --lower.

package cli

import (
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/lower/nccl"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/manual"
)

// LowerFlags are the flags of a program that can lower high-level ops to sends, receives and calcs.
type LowerFlags struct {
	rules   []string
	options *Options // flags of passes
	Seed    *int64   // seed of sampled times; nil for the command's flag --seed

	// Counts is the JSON file for counts of lowered ops; "": none.
	Counts string

	// Lacks returns what the target lacks, for --lower needed. Set it before Pass.
	Lacks func(dag.Source) (lower.Lacks, error)
	// Choice is the choice of algorithms of --lower needed if no rule makes one; nil: the defaults.
	Choice *collective.Choice

	p     *Program
	files []string // that the flags of passes name
}

// Register adds the flags to the command.
func (f *LowerFlags) Register(p *Program, cmd *cobra.Command) {
	f.p = p
	passes := new(lower.Passes).Rules()
	cmd.Flags().StringArrayVar(&f.rules, "lower", nil,
		"lower ops by a `pass` such as collectives=ring")
	CompleteWith(cmd, "lower", append(passes.Names(), collective.Completions()...))
	OutputVar(cmd.Flags(), &f.Counts, "lowered", "JSON `FILE` for counts of lowered ops")
	if cmd.Flags().Lookup("report") == nil { // its former name, unless the command has such a flag
		OutputVar(cmd.Flags(), &f.Counts, "report", "as --lowered, JSON `FILE`")
		cmd.Flags().Lookup("report").Hidden = true
		Aside(cmd.Flags(), "report")
	}
	Aside(cmd.Flags(), "lowered")
	manual.Section(cmd, "Lowering")
	manual.Topic(cmd, manual.Group{
		Owner: lowering, Title: "passes that lower high-level ops to sends, receives and calcs", Names: passes.Names(),
		Params: append(passes, loweringKeys()...),
		File:   "docs/reference/lowering.md, docs/reference/lowering-nccl.md, docs/reference/storage.md",
	})
	f.registerPasses(cmd)
}

// loweringKeys returns the keys of passes for help. There are many, and programs make many commands.
var loweringKeys = sync.OnceValue(lower.Keys)

// lowering is the help topic of passes.
const lowering = "lowering"

// Asked reports whether the flags select any pass.
func (f *LowerFlags) Asked() bool {
	return len(f.rules) > 0 || f.regroups()
}

// Reports reports whether --lowered is set.
func (f *LowerFlags) Reports() bool {
	return f.Counts != ""
}

// For sets the ops that --lower needed lowers to those that the format lacks.
func (f *LowerFlags) For(target *format.Format) {
	f.Lacks = func(dag.Source) (lower.Lacks, error) { return target.Lacks, nil }
}

// Pass lowers a trace. Its warnings begin with the name of the trace, unless that is "".
type Pass = func(s dag.Source, name string) (dag.Source, error)

// Pass returns the pass that the flags select; without flags, the pass returns its argument. A pass that lowers only
// collectives works while its result is read; all other passes hold the trace in memory.
func (f *LowerFlags) Pass() (Pass, error) {
	do, err := lower.Parse(f.rules)
	if err != nil {
		return nil, Usagef("--lower: %v", err)
	}
	if f.Counts != "" && (do.Storage == nil) == (do.NCCL == nil) {
		return nil, Usagef("--lowered needs either --lower nccl or --lower of storage (%s)",
			strings.Join(storage.Names(), ", "))
	}
	s, err := f.settings(do.NCCL != nil, do.NCCL != nil || do.Join)
	if err != nil {
		return nil, err
	}
	do.Nodes, do.Report = *s.nodes, f.writeReport
	if do.Lacks = f.Lacks; do.Needed && do.DefaultChoice && f.Choice != nil {
		do.Choice = *f.Choice
	}
	if f.regroups() {
		do.Group = s.grouping.Regroup
	}
	if do.NCCL != nil {
		if do.NCCL.Seed, _ = f.options.flags.GetInt64("seed"); f.Seed != nil { // 0 for a program without a seed
			do.NCCL.Seed = *f.Seed
		}
		do.NCCL.Sample, do.NCCL.ZeroReduction, do.NCCL.Unmodelled = s.nccl.Sample, s.nccl.ZeroReduction,
			s.nccl.Unmodelled
		do.NCCL.Registered = s.nccl.Registered
		if s.nccl.Version != "" {
			if err := do.NCCL.Retuned(s.nccl.Version); err != nil {
				return nil, Usagef("--nccl-version: %v", err)
			}
		}
		do.NCCL.Tables = func(o *nccl.Options) error { return s.nccl.ReadTables(o, f.readFile) }
	}
	return func(s dag.Source, name string) (dag.Source, error) {
		prefixed := func(print func(format string, args ...any)) func(format string, args ...any) {
			if name == "" {
				return print
			}
			return func(format string, args ...any) { print("%s: "+format, append([]any{name}, args...)...) }
		}
		named := *do
		named.Context, named.Warn, named.Note = f.p.Context(), prefixed(f.p.Warn), prefixed(f.p.Info)
		return named.Lower(s)
	}, nil
}
