// Package pytorch reads the execution traces of PyTorch: the host traces of its ExecutionTraceObserver, and traces
// to which Chakra's linker added the GPU ops. It converts them as Chakra's converter does, node for node.
//
// docs/reference/formats/pytorch.md describes the files and the rules.
package pytorch

import (
	"context"
	"errors"
	"regexp"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is PyTorch's execution trace format, one file per rank.
var Format = format.Format{
	Name:    "pytorch",
	Title:   "PyTorch execution traces (JSON), one file per rank",
	Detect:  beginning.Match,
	Files:   nodejson.Files,
	Read:    read,
	Options: chakra.Table,
}

// beginning matches the beginning of a file from PyTorch.
var beginning = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"`)

// schemas are the schemas that are read. The nodes of 1.0.1 are flat, those of all others are the same.
var schemas = map[string]bool{
	"1.0.1":              true,
	"1.0.2-chakra.0.0.4": true,
	"1.0.3-chakra.0.0.4": true,
	"1.0.4-chakra.0.0.4": true,
	"1.1.0-chakra.0.0.4": true,
	"1.1.1-chakra.0.0.4": true,
	"1.1.1-chakra.1.0.0": true,
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	traces := make([]*trace, len(inputs))
	result, err := nodejson.ReadRanks(inputs, o, func(rank int, in *format.Input) (chakra.File, error) {
		t := &trace{file: in.Name, compat: o.Compat}
		traces[rank] = t
		return t.read(o.Context, in)
	})
	if err == nil {
		warn(traces, o)
	}
	return result, err
}

// warn reports what the traces lack.
func warn(traces []*trace, o format.ReadOptions) {
	syncs, untimed := int64(0), 0
	for _, t := range traces {
		syncs += t.syncs
		if t.cut > 0 {
			o.Warn("%s: the file ends early; its %d whole nodes were read", t.file, t.cut)
		}
		if !t.linked {
			untimed++
		}
	}
	first := traces[0].file
	if syncs > 0 {
		o.Warn("%s: sync_dep of %d nodes is ignored, as by Chakra's converter", first, syncs)
	}
	if untimed > 0 && !o.Compat {
		o.Warn("%s: the execution traces of %d ranks have no times and no kernels: computation takes no time", first,
			untimed)
	}
}

// read reads the file.
func (t *trace) read(ctx context.Context, in *format.Input) (f chakra.File, err error) {
	var cut *nodejson.CutError
	err = nodejson.Read(ctx, in, "nodes", t)
	if errors.As(err, &cut) {
		t.cut, err = cut.Elements, nil
	}
	if err != nil {
		return f, err
	}
	if f.Metadata, err = t.metadata(); err != nil {
		return f, err
	}
	if !t.linked && !t.compat {
		t.communicate()
	}
	f.Nodes, err = t.convert()
	return f, err
}
