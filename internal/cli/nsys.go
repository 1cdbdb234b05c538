// This file has the flags for exports of Nsight Systems.

package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/formats/format"
)

// NSysFlags are the flags for exports of Nsight Systems.
type NSysFlags struct {
	merge, ends, align, edges bool
	hosts                     string // file; "": none
}

// Register adds the flags to the command.
func (f *NSysFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.merge, "merge-non-overlap", false,
		"make the streams of each GPU in an nsys export one, where nothing on them overlaps on any GPU")
	flags.StringVar(&f.hosts, "nsys-hosts", "",
		"YAML or JSON `file` with the host of each nsys export, by file name (default: as the export says, or its name)")
	flags.BoolVar(&f.ends, "keep-ends", false,
		"keep the time before the first and after the last NCCL kernel of each GPU in an nsys export")
	flags.BoolVar(&f.align, "align-clocks", false,
		"correct the clocks of nsys exports of different hosts so that collectives end at the same time")
	flags.BoolVar(&f.edges, "sync-edges", false,
		"keep the waits of streams for each other in an nsys export as dependencies")
}

func (f *NSysFlags) options() (format.NSysOptions, error) {
	o := format.NSysOptions{MergeNonOverlap: f.merge, KeepEnds: f.ends, AlignClocks: f.align, SyncEdges: f.edges}
	if f.hosts == "" {
		return o, nil
	}
	text, err := os.ReadFile(f.hosts)
	if err != nil {
		return o, err
	}
	if err := yaml.Unmarshal(text, &o.Hosts); err != nil {
		return o, fmt.Errorf("%s: expected FILE: HOST on each line: %w", f.hosts, err)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Hosts)) {
		if host := o.Hosts[name]; name == "" || host == "" {
			return o, fmt.Errorf("%s: expected names of files and hosts, found %q: %q", f.hosts, name, host)
		}
	}
	return o, nil
}
