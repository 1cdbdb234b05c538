// This file declares the flags of lowering passes. docs/reference/lowering-nccl.md describes those for NCCL calls.

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nccl"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/manual"
)

// passSettings are the parameters of passes, set by flags.
type passSettings struct {
	nccl     nccl.Settings
	nodes    *nodes.Options
	grouping nccl.Grouping
}

// registerPasses adds the flags of the passes.
func (f *LowerFlags) registerPasses(cmd *cobra.Command) {
	f.options = NewOptions(cmd)
	s := passSettings{nodes: nodes.NewOptions()}
	table := slices.Concat(s.nccl.Params(), s.nodes.Params(), s.grouping.Params())
	f.options.Add(cmd, manual.Group{Owner: lowering, Topic: true, Params: table})
	cmd.MarkFlagsMutuallyExclusive("regroup", "gpus-per-node")
}

// regroups reports whether the flags assign the ranks to other nodes.
func (f *LowerFlags) regroups() bool {
	return f.options.Given("regroup") || f.options.Given("gpus-per-node")
}

// settings returns the parameters of the passes. lowersNCCL and joins report whether --lower selects nccl, and a pass
// that joins the ranks of a node.
func (f *LowerFlags) settings(lowersNCCL, joins bool) (*passSettings, error) {
	s := &passSettings{nodes: nodes.NewOptions()}
	grouping, calls, joining := s.grouping.Params(), s.nccl.Params(), s.nodes.Params()
	if err := f.options.Apply(append(append(grouping, calls...), joining...)); err != nil {
		return nil, err
	}
	f.files = nil
	for _, p := range append(slices.Clone(calls), grouping...) {
		if p.Value.Type() == "file" && f.options.Given(p.Name) {
			f.files = append(f.files, p.Value.String())
		}
	}
	for _, name := range calls.Names() {
		if f.options.Given(name) && !lowersNCCL {
			return nil, Usagef("--%s needs --lower nccl", name)
		}
	}
	for _, name := range joining.Names() {
		if f.options.Given(name) && !joins && !f.options.Given("job") { // jobs may share nodes
			return nil, Usagef("--%s needs --lower nccl, --lower nodes or jobs that share nodes", name)
		}
	}
	return s, nil
}

// Inputs returns the names and digests of the files that the flags of passes name, for the provenance. Call it after
// Pass.
func (f *LowerFlags) Inputs() (all []dag.Input, err error) {
	for _, name := range f.files {
		file, err := f.p.FileInput(name)
		if err != nil {
			return nil, err
		}
		all = append(all, file...)
	}
	return all, nil
}

// readFile calls read with the content of a file.
func (f *LowerFlags) readFile(name string, read func(io.Reader) error) error {
	in, err := f.p.Open(name, false)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := read(in.Reader); err != nil {
		return format.InFile(name, err)
	}
	return in.Finish()
}

// writeReport writes the report to the file of --report, if any.
func (f *LowerFlags) writeReport(report any) error {
	if f.Counts == "" {
		return nil
	}
	document, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	out, err := f.p.Create(f.Counts, false)
	if err != nil {
		return err
	}
	defer out.Close()
	out.Write(append(document, '\n'))
	return out.Commit()
}
