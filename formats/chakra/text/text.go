// Package text reads the workloads of ASTRA-sim 1.0: a text that describes a model layer by layer, and how its training
// is spread over NPUs. They become what the converter of Chakra makes of them, node for node.
//
// docs/formats/astratext.md describes the texts and the traces.
package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
)

// Format is the text of ASTRA-sim 1.0. How many ranks, how many passes and how long a cycle is are
// [format.ModelOptions].
var Format = format.Format{
	Name:       "astratext",
	Title:      "workloads of ASTRA-sim 1.0, a text of layers",
	Extensions: []string{".txt"},
	Detect:     detect,
	Read:       read,
}

// detect reports whether the first line begins with a kind of workload and the second is a number.
func detect(head []byte) bool {
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	words, count := bytes.Fields(first), bytes.Fields(second)
	if len(words) == 0 || len(count) != 1 {
		return false
	}
	_, known := kinds[string(words[0])]
	_, err := strconv.ParseInt(string(count[0]), 10, 64)
	return err == nil && (known || unsupported[string(words[0])])
}

// What is made of a text is bounded, for a few lines and two flags can ask for any number of nodes.
const maxNodes = 1 << 23 // of all ranks

// schema is what the converter of Chakra calls its own version.
const schema = "1.0.2-chakra.1.0.0"

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in := inputs[0]
	content, err := io.ReadAll(in.Reader)
	if err != nil {
		return nil, fmt.Errorf("%s: reading: %w", in.Name, err)
	}
	w, err := parse(in.Name, content, o.Warn)
	if err != nil {
		return nil, err
	}
	files, err := w.files(in.Name, o)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i := range names {
		names[i] = in.Name
	}
	t, err := chakra.Build(files, o, names)
	if err != nil {
		return nil, err
	}
	if o.Model.Cycle != 0 {
		err = setCycle(t, o.Model.Cycle)
	}
	return t, err
}

// files returns the file of each rank. The ids of a rank's nodes go on counting where those of the rank before end.
func (w *workload) files(name string, o format.ReadOptions) ([]chakra.File, error) {
	ranks, passes := max(o.Model.Ranks, 1), max(o.Model.Passes, 1)
	perPass := max(len(w.run(1)), 1)
	if perPass > maxNodes/ranks/passes {
		return nil, fmt.Errorf("%s: %d nodes a pass, %d passes and %d ranks, expected %d nodes at most", name, perPass, passes,
			ranks, maxNodes)
	}
	if o.Model.Ranks == 0 {
		o.Warn("%s: read as the workload of 1 rank: --ranks says how many NPUs there are, which the text does not", name)
	}
	nodes := w.run(passes)
	if o.Model.Cycle == 0 && slices.ContainsFunc(nodes, func(n chakra.Node) bool { return n.DurationMicros > 0 }) {
		o.Warn("%s: each cycle is read as a microsecond, as Chakra's converter does; "+
			"--cycle 1ns is what ASTRA-sim 1.0 meant", name)
	}
	metadata := chakra.Metadata{Attr: []chakra.Attr{chakra.String("schema", schema), chakra.String("input_file", w.text)}}
	files := make([]chakra.File, ranks)
	for rank := range files {
		files[rank] = chakra.File{Metadata: metadata, Nodes: numberedFrom(nodes, uint64(rank*len(nodes)))}
	}
	return files, nil
}

// numberedFrom returns the nodes with ids from first on instead of 0.
func numberedFrom(nodes []chakra.Node, first uint64) []chakra.Node {
	if first == 0 {
		return nodes
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		n.ID += first
		n.DataDeps = slices.Clone(n.DataDeps)
		for k := range n.DataDeps {
			n.DataDeps[k] += first
		}
	}
	return nodes
}

// setCycle makes the cycles of a trace, which are a microsecond each, as long as they should be.
func setCycle(t *dag.Trace, cycle dag.Time) error {
	for rank := range t.Ranks {
		durations := t.Ranks[rank].Duration
		for op, d := range durations {
			cycles := d / dag.Microsecond
			if cycles > dag.MaxTime/cycle {
				return fmt.Errorf("rank %d, op %d: %d cycles of %v are longer than a trace can be", rank, op, cycles, cycle)
			}
			durations[op] = cycles * cycle
		}
	}
	return nil
}
