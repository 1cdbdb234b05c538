// Package pytorch reads the execution traces of PyTorch: the host traces of its ExecutionTraceObserver, and those to which
// Chakra's linker added what ran on the GPU. They become what the converter of Chakra makes of them, node for node.
//
// docs/formats/pytorch.md describes the files and the rules.
package pytorch

import (
	"regexp"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is PyTorch's, one file a rank.
var Format = format.Format{
	Name:   "pytorch",
	Title:  "execution traces of PyTorch (JSON), one file a rank",
	Detect: beginning.Match,
	Files:  nodejson.Files,
	Read:   read,
}

// beginning is how PyTorch writes the beginning of a file.
var beginning = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"`)

// schemas are those of which the converter knows the nodes, which are the same in all.
var schemas = map[string]bool{
	"1.0.2-chakra.0.0.4": true,
	"1.0.3-chakra.0.0.4": true,
	"1.1.0-chakra.0.0.4": true,
	"1.1.1-chakra.0.0.4": true,
	"1.1.1-chakra.1.0.0": true,
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	return nodejson.ReadRanks(inputs, o, func(in *format.Input) (chakra.File, error) { return readFile(in, o.Warn) })
}

func readFile(in *format.Input, warn func(string, ...any)) (chakra.File, error) {
	t := &trace{file: in.Name}
	if err := nodejson.Read(in, "nodes", t); err != nil {
		return chakra.File{}, err
	}
	metadata, err := t.metadata()
	if err != nil {
		return chakra.File{}, err
	}
	nodes, err := t.convert()
	if err != nil {
		return chakra.File{}, err
	}
	if t.syncs > 0 {
		warn("%s: sync_dep of %d nodes is ignored, as by Chakra's converter", in.Name, t.syncs)
	}
	return chakra.File{Metadata: metadata, Nodes: nodes}, nil
}
