// Package astratext reads the workloads of ASTRA-sim 1.0: a text that describes a model layer by layer, and how
// its training is distributed over NPUs. It converts them as Chakra's converter does, node for node.
//
// docs/reference/formats/astratext.md describes the texts and the traces.
package astratext

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// Format is the text format of ASTRA-sim 1.0. [Options] give the number of ranks and passes and the cycle.
var Format = format.Format{
	Name:    "astratext",
	Modes:   format.Modes{Compat: true, Lenient: true},
	Title:   "ASTRA-sim 1.0 text workloads, layer by layer",
	Detect:  detect,
	Read:    read,
	Options: Table,
}

// detect reports whether the first line begins with a kind of workload and the second is a number. Transformers are
// workloads of SimAI, which has its own format.
func detect(head []byte) bool {
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	words, count := bytes.Fields(first), bytes.Fields(second)
	if len(words) == 0 || len(count) != 1 {
		return false
	}
	_, known := kinds[string(words[0])]
	_, err := strconv.ParseInt(string(count[0]), 10, 64)
	return err == nil && (known || unsupported[string(words[0])] && !bytes.HasPrefix(words[0], []byte("HYBRID_TRANS")))
}

// Limits on the nodes of a text, because a few lines and two flags can request any number.
const (
	maxLayers   = 1 << 16
	maxNodes    = 1 << 22 // per rank
	maxAllNodes = 1 << 26 // over all ranks
)

// schema is the version that Chakra's converter writes.
const schema = "1.0.2-chakra.1.0.0"

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a workload of ASTRA-sim 1.0")
	if err != nil {
		return nil, err
	}
	content, err := memory.ReadContent(o.Context, in.Reader)
	if err != nil {
		return nil, format.FileErrorf(in.Name, "reading: %w", err)
	}
	w, err := parse(in.Name, content, o.Warn)
	if err != nil {
		return nil, err
	}
	own := format.Own(o.Own, func() *Options { return new(Options) })
	ranks, passes := max(own.Ranks, o.Ranks, 1), max(own.Passes, 1)
	perPass := max(len(w.run(1)), 1)
	if perPass > maxNodes/passes || perPass*passes > maxAllNodes/ranks {
		return nil, format.FileErrorf(in.Name, "%d ranks with %d passes of %d nodes: "+
			"expected at most %d nodes per rank, %d in total", ranks, passes, perPass, maxNodes, maxAllNodes)
	}
	f := w.file(passes)
	if max(own.Ranks, o.Ranks) == 0 {
		o.Warn("%s: read as the workload of 1 rank, because the text has no number of NPUs; set it with --ranks",
			in.Name)
	}
	if own.Cycle == 0 && slices.ContainsFunc(f.Nodes, func(n chakra.Node) bool { return n.DurationMicros > 0 }) {
		o.Warn("%s: a cycle is read as 1 us, as by Chakra's converter; "+
			"ASTRA-sim 1.0 uses --cycle 1ns", in.Name)
	}
	var durations dag.Column[dag.Time]
	if own.Cycle != 0 {
		if durations, err = takeDurations(f.Nodes, own.Cycle); err != nil {
			return nil, &format.FileError{File: in.Name, Err: err}
		}
	}
	o.Ranks = ranks // they all do the same
	o.Own = &own.Options
	t, err := chakra.Build([]chakra.File{f}, o, []string{in.Name})
	if err != nil {
		return nil, err
	}
	t.Ranks = dag.CopyRanks(t.Ranks) // they are one rank so far
	number(t)
	for _, r := range t.Ranks {
		if durations != nil && r.Len() > 0 {
			r.Duration = durations
		}
	}
	return t, nil
}

// file returns the file of rank 0.
func (w *workload) file(passes int) chakra.File {
	attrs := []chakra.Attr{chakra.String("schema", schema), chakra.String("input_file", w.text)}
	return chakra.File{Metadata: chakra.Metadata{Attr: attrs}, Nodes: w.run(passes)}
}

// number shifts the ids of each rank's ops behind those of the previous rank, as the converter does. Before, each
// rank has the ids of rank 0, from 0.
func number(t *dag.Trace) {
	first := t.Ranks[0]
	attrs := make([]string, first.Len())
	for op := range attrs {
		attrs[op] = first.Attrs.At(op)
	}
	if len(attrs) == 0 {
		return
	}
	others := "}" // of the first op
	if attrs[0] != "" {
		others = "," + strings.TrimPrefix(attrs[0], "{")
	}
	for rank := 1; rank < len(t.Ranks); rank++ {
		var numbered dag.Text
		numbered.Append(0, string(attr.NodeID(rank*len(attrs)).Append([]byte{'{'}))+others)
		for op, a := range attrs[1:] {
			numbered.Append(op+1, a)
		}
		t.Ranks[rank].Attrs = numbered
	}
}

// takeDurations removes the durations, in cycles, from nodes whose ids are those of ops, and returns them as
// times.
func takeDurations(nodes []chakra.Node, cycle dag.Time) (dag.Column[dag.Time], error) {
	durations := make(dag.Column[dag.Time], len(nodes))
	for op := range nodes {
		cycles := &nodes[op].DurationMicros
		if *cycles > uint64(dag.MaxTime/cycle) {
			return nil, fmt.Errorf("%d cycles of %v: expected less than %v", *cycles, cycle, dag.MaxTime)
		}
		durations[op] = dag.Time(*cycles) * cycle
		*cycles = 0
	}
	return durations, nil
}
