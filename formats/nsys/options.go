package nsys

import (
	"context"
	"maps"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of exports of Nsight Systems. docs/reference/formats/nsys.md describes them.
type Options struct {
	MergeNonOverlap bool              // merge the streams of each GPU if no work on them overlaps on any GPU
	HostsFile       string            // file of the hosts, YAML or JSON; "": none
	Hosts           map[string]string // host of each file by its name, with or without the ending
	KeepEnds        bool              // keep the time before the first and after the last kernel of each GPU
	AlignClocks     bool              // correct the clocks of hosts so that collectives end at the same time
	SyncEdges       bool              // keep the waits between streams as dependencies
	StepRange       string            // name of the ranges of steps, before their number; "": the common ones
}

var table = &format.OptionTable{
	Name: "nsys", Title: "Nsight Systems exports",
	New: func() format.Options { return new(Options) },
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	return param.Set{
		param.Bool(&o.MergeNonOverlap, "merge-non-overlap",
			"merge the streams of each GPU in an nsys export if no work overlaps on any GPU"),
		param.File(&o.HostsFile, "nsys-hosts",
			"YAML or JSON file with the host of each nsys export, by file name (default: from the export, "+
				"else its name)"),
		param.Bool(&o.KeepEnds, "keep-ends",
			"keep the time before the first and after the last NCCL kernel of each GPU in an nsys export"),
		param.Bool(&o.AlignClocks, "align-clocks",
			"correct the clocks of nsys exports of different hosts so that collectives end at the same time"),
		param.Bool(&o.SyncEdges, "sync-edges",
			"keep the waits between streams in an nsys export as dependencies"),
		param.String(&o.StepRange, "step-range",
			"word before the number in NVTX ranges of steps in an nsys export (default: iteration, iter or step)"),
	}
}

// stepNames returns the names of steps in annotations.
func (o *Options) stepNames() []string {
	if o.StepRange != "" {
		return []string{o.StepRange}
	}
	return stepNames
}

// Check reads the file of the hosts.
func (o *Options) Check() error {
	if o.HostsFile == "" {
		return nil
	}
	text, err := memory.ReadFile(context.Background(), o.HostsFile)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, &o.Hosts); err != nil {
		return format.FileErrorf(o.HostsFile, "expected FILE: HOST on each line: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Hosts)) {
		if host := o.Hosts[name]; name == "" || host == "" {
			return format.FileErrorf(o.HostsFile, "expected file names and hosts, found %q: %q", name, host)
		}
	}
	return nil
}
