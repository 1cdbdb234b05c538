// This file has the flags for lowering NCCL calls and for joining the ranks of nodes. docs/lowering-nccl.md describes them for
// users.

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nccl"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/formats/format"
)

// ncclFlags are the flags for NCCL calls and for ranks that share a node.
type ncclFlags struct {
	simple, ll, ll128 string // files of tables; "": that of the machine
	sample            bool
	zero              bool
	assume            string
	uniqueNIC         bool
	bandwidth         Bandwidth
	regroup           string // file; "": none
	perNode           int
	flags             *pflag.FlagSet
}

// defaultBandwidth is that inside the nodes of ATLAHS' validation.
const defaultBandwidth = 150e9

func (f *ncclFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags, f.bandwidth = flags, defaultBandwidth
	flags.StringVar(&f.simple, "npkit-simple", "",
		"NPKit `file` with times to reduce and copy for NCCL's protocol Simple (default: the machine's)")
	flags.StringVar(&f.ll, "npkit-ll", "", "NPKit `file` for the protocol LL (default: the machine's)")
	flags.StringVar(&f.ll128, "npkit-ll128", "", "NPKit `file` for the protocol LL128 (default: no time, with a warning)")
	flags.BoolVar(&f.sample, "npkit-sample", false, "draw these times at random by --seed, in place of their means")
	flags.BoolVar(&f.zero, "zero-reduction", false, "reductions, copies and messages inside a node take no time")
	flags.StringVar(&f.assume, "assume", "",
		"replacement of algorithms without a model: `ring`, or none for no messages")
	CompleteWith(cmd, "assume", []string{"ring", "none"})
	flags.BoolVar(&f.uniqueNIC, "unique-nic", false, "joined ranks of a node keep NICs of their own")
	flags.Var(&f.bandwidth, "intra-bw", "bandwidth of messages between joined ranks of a node; half of the time is spent at "+
		"each end")
	flags.StringVar(&f.regroup, "regroup", "",
		"distribute the ranks over nodes by a YAML `file` with num_of_nodes and num_gpus_per_node, or num_gpus_list")
	flags.IntVar(&f.perNode, "gpus-per-node", 0, "distribute the ranks over nodes of `N` ranks each")
	flags.Lookup("gpus-per-node").DefValue = "0" // prints no default
	cmd.MarkFlagsMutuallyExclusive("regroup", "gpus-per-node")
}

// regroups reports whether the ranks are to be dealt to nodes.
func (f *ncclFlags) regroups() bool { return f.regroup != "" || f.flags.Changed("gpus-per-node") }

// check returns what is wrong with the flags, given what --lower asks for.
func (f *ncclFlags) check(nccl, joins bool) error {
	if f.flags.Changed("gpus-per-node") && (f.perNode < 1 || f.perNode > math.MaxInt32) {
		return Usagef("--gpus-per-node: expected 1 to %d, found %d", math.MaxInt32, f.perNode)
	}
	if f.assume != "" && f.assume != "ring" && f.assume != "none" {
		return Usagef("--assume: expected ring or none, found %q", f.assume)
	}
	for _, name := range []string{"npkit-simple", "npkit-ll", "npkit-ll128", "npkit-sample", "zero-reduction", "assume"} {
		if f.flags.Changed(name) && !nccl {
			return Usagef("--%s needs --lower nccl", name)
		}
	}
	for _, name := range []string{"unique-nic", "intra-bw"} {
		if f.flags.Changed(name) && !joins && !f.flags.Changed("job") { // jobs may share nodes
			return Usagef("--%s needs --lower nccl, --lower nodes or jobs that share nodes", name)
		}
	}
	return nil
}

// nodeOptions returns how ranks of a node are joined.
func (f *ncclFlags) nodeOptions() nodes.Options {
	return nodes.Options{Bandwidth: int64(f.bandwidth), OwnNICs: f.uniqueNIC}
}

// setTables reads the tables of times.
func (f *LowerFlags) setTables(o *nccl.Options) error {
	for _, table := range []struct {
		path string
		to   **nccl.Table
	}{{f.nccl.simple, &o.Simple}, {f.nccl.ll, &o.LL}, {f.nccl.ll128, &o.LL128}} {
		if table.path == "" {
			continue
		}
		in, err := f.p.Open(table.path, false)
		if err != nil {
			return err
		}
		*table.to, err = nccl.ReadTable(in.Reader)
		in.Close()
		if err != nil {
			return format.InFile(table.path, err)
		}
	}
	return nil
}

// writeReport writes the report that was asked for.
func (f *LowerFlags) writeReport(report any) error {
	if f.report == "" {
		return nil
	}
	document, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	out, err := f.p.Create(f.report, false)
	if err != nil {
		return err
	}
	defer out.Close()
	out.Write(append(document, '\n'))
	return out.Commit()
}

// group assigns the ranks of a trace to nodes as the flags ask for.
func (f *ncclFlags) group(t *dag.Trace) (*dag.Trace, error) {
	ranks := len(t.Ranks)
	if f.regroup == "" {
		if ranks%f.perNode != 0 {
			return nil, fmt.Errorf("--gpus-per-node: the trace has %d ranks, which is no multiple of %d", ranks, f.perNode)
		}
		return nccl.Regroup(t, slices.Repeat([]int{f.perNode}, ranks/f.perNode))
	}
	counts, err := nccl.ReadGrouping(f.regroup, ranks)
	if err != nil {
		return nil, err
	}
	return nccl.Regroup(t, counts)
}
