// Package pytorch reads the execution traces of PyTorch: the host traces of its ExecutionTraceObserver, and traces
// to which Chakra's linker added the GPU ops. It converts them as Chakra's converter does, node for node.
//
// docs/reference/formats/pytorch.md describes the files and the rules.
package pytorch

import (
	"context"
	"regexp"
	"sync/atomic"

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

// schemas are the schemas that the converter supports. All have the same nodes.
var schemas = map[string]bool{
	"1.0.2-chakra.0.0.4": true,
	"1.0.3-chakra.0.0.4": true,
	"1.1.0-chakra.0.0.4": true,
	"1.1.1-chakra.0.0.4": true,
	"1.1.1-chakra.1.0.0": true,
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	var syncs atomic.Int64
	t, err := nodejson.ReadRanks(inputs, o, func(in *format.Input) (chakra.File, error) {
		t := &trace{file: in.Name}
		f, err := t.read(o.Context, in)
		syncs.Add(t.syncs)
		return f, err
	})
	if err == nil && syncs.Load() > 0 {
		o.Warn("%s: sync_dep of %d nodes is ignored, as by Chakra's converter", inputs[0].Name, syncs.Load())
	}
	return t, err
}

// read reads the file.
func (t *trace) read(ctx context.Context, in *format.Input) (f chakra.File, err error) {
	if err := nodejson.Read(ctx, in, "nodes", t); err != nil {
		return f, err
	}
	if f.Metadata, err = t.metadata(); err != nil {
		return f, err
	}
	f.Nodes, err = t.convert()
	return f, err
}
