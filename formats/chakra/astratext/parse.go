// This file parses the lines of a text.

package astratext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
)

// workload is a parsed text.
type workload struct {
	kind       string
	lastBottom int   // HYBRID_DLRM: index of the layer that the embeddings must precede
	count      int64 // number of layers in line 2
	layers     []layer
	text       string // the whole text, with line feeds as line ends
}

// layer is the work of a layer: forward, for the input gradient, and for the weight gradient.
type layer struct {
	forward, input, weight phase
}

// phase is a computation and the collective after it, as nodes without ids and dependencies.
type phase struct {
	compute, collective chakra.Node
	comm                string // the text's name of the collective
}

// kinds are the kinds of workload and the function for one pass over their layers.
var kinds = map[string]func(*run){
	"MICRO":                (*run).micro,
	"DATA":                 (*run).data,
	"MODEL":                (*run).model,
	"HYBRID_DATA_MODEL":    (*run).model,
	"HYBRID_MODEL_DATA":    (*run).model,
	"HYBRID_DLRM":          (*run).dlrm,
	"HYBRID_DLRM_ENHANCED": (*run).dlrm,
}

// unsupported are the kinds of ASTRA-sim 1.0 that Chakra's converter does not convert.
var unsupported = map[string]bool{
	"HYBRID_TRANSFORMER":              true,
	"HYBRID_TRANSFORMER_FWD_IN_BCKWD": true,
	"HYBRID_CUSTOMIZED":               true,
	"DISTRIBUTED_INFERENCE":           true,
}

// comms are the collectives. NONE with a size is an all-reduce.
var comms = map[string]int64{
	none:            chakra.AllReduce,
	"ALLREDUCE":     chakra.AllReduce,
	allToAll:        chakra.AllToAll,
	"ALLGATHER":     chakra.AllGather,
	"REDUCESCATTER": chakra.ReduceScatter,
}

const (
	none     = "NONE"
	allToAll = "ALLTOALL"
)

// parser parses the lines of a text.
type parser struct {
	file  string
	line  int64
	w     *workload
	sized int64 // number of collectives NONE with a size
}

func (p *parser) fail(expected, found string) error {
	return &format.SyntaxError{File: p.file, Line: p.line, Expected: expected, Found: found}
}

func parse(file string, content []byte, warn func(string, ...any)) (*workload, error) {
	p := &parser{file: file, w: new(workload)}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	p.w.text = strings.ReplaceAll(text, "\r", "\n")
	for line := range strings.Lines(p.w.text) {
		p.line++
		if !utf8.ValidString(line) {
			return nil, p.fail("UTF-8", "other bytes")
		}
		if err := p.parseLine(strings.Fields(line)); err != nil {
			return nil, err
		}
	}
	if p.line < 2 {
		p.line++
		return nil, p.fail("a kind of workload, and on the second line a number of layers", "the end of the file")
	}
	p.line = 2
	return p.w, p.check(warn)
}

func (p *parser) parseLine(fields []string) error {
	switch {
	case p.line == 1:
		return p.parseKind(fields)
	case p.line == 2:
		return p.parseCount(fields)
	case len(fields) == 0:
		return nil
	}
	return p.parseLayer(fields)
}

// parseKind parses the first line: the kind, and for HYBRID_DLRM the last bottom layer, with the name that
// ASTRA-sim 1.0 requires.
func (p *parser) parseKind(fields []string) error {
	if len(fields) == 0 {
		return p.fail("a kind of workload, such as DATA", "an empty line")
	}
	kind := fields[0]
	switch {
	case unsupported[kind]:
		return p.fail("a kind that Chakra's converter supports", kind+", which only ASTRA-sim 1.0 supports "+
			"(transformers: --from simai)")
	case kinds[kind] == nil:
		return p.fail("MICRO, DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, HYBRID_DLRM or HYBRID_DLRM_ENHANCED",
			quote(kind))
	}
	p.w.kind = kind
	if !p.w.isDLRM() {
		return nil
	}
	words := fields[1:]
	if len(words) > 0 && words[0] == "DLRM_LAST_BOTTOM_LAYER:" {
		words = words[1:]
	}
	if len(words) == 0 {
		return p.fail(kind+" and the number of the last bottom layer", "the end of the line")
	}
	last, err := strconv.ParseInt(words[0], 10, 32)
	if err != nil || last < 1 {
		return p.fail("the number of the last bottom layer, 1 or more", quote(words[0]))
	}
	p.w.lastBottom = int(last)
	return nil
}

func (p *parser) parseCount(fields []string) (err error) {
	if len(fields) != 1 {
		return p.fail("a number of layers and no other field", strconv.Itoa(len(fields))+" fields")
	}
	if p.w.count, err = strconv.ParseInt(fields[0], 10, 64); err != nil || p.w.count < 0 {
		return p.fail("a number of layers", quote(fields[0]))
	}
	return nil
}

// parseLayer parses
//
//	name reserved fwd_time fwd_comm fwd_size ig_time ig_comm ig_size wg_time wg_comm wg_size update_time
//
// It ignores further fields, the reserved number and the last field.
func (p *parser) parseLayer(fields []string) (err error) {
	const columns = 12
	if len(fields) < columns {
		return p.fail(fmt.Sprintf("the %d fields of a layer", columns), strconv.Itoa(len(fields)))
	}
	name := fields[0]
	collective := name
	if p.w.kind == "HYBRID_DATA_MODEL" {
		collective += "_IG_COMM_"
	}
	if len(p.w.layers) == maxLayers {
		return p.fail(fmt.Sprintf("at most %d layers", maxLayers), "another")
	}
	var l layer
	if l.forward, err = p.parsePhase(name+"_FWD", name, fields[2:5]); err != nil {
		return err
	}
	if l.input, err = p.parsePhase(name+"_BWD_IG", collective, fields[5:8]); err != nil {
		return err
	}
	if l.weight, err = p.parsePhase(name+"_BWD_WG", name, fields[8:11]); err != nil {
		return err
	}
	p.w.layers = append(p.w.layers, l)
	return nil
}

// parsePhase parses a time, a collective and its size. compute and collective are the names of the two nodes.
func (p *parser) parsePhase(compute, collective string, fields []string) (phase, error) {
	cycles, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || cycles < 0 {
		return phase{}, p.fail("a time in cycles", quote(fields[0]))
	}
	comm, known := comms[fields[1]]
	if !known {
		return phase{}, p.fail("NONE, ALLREDUCE, ALLTOALL, ALLGATHER or REDUCESCATTER", quote(fields[1]))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return phase{}, p.fail("a size in bytes", quote(fields[2]))
	}
	if fields[1] == none && size > 0 {
		p.sized++
	}
	return phase{
		compute: chakra.Node{
			Name: "COMP_NODE_" + compute, Type: chakra.CompNode, DurationMicros: uint64(cycles),
		},
		collective: chakra.Node{
			Name: "COMM_COLL_NODE_" + collective + "_" + fields[1], Type: chakra.CommCollNode,
			Attr: []chakra.Attr{chakra.Int64("comm_type", comm), chakra.Int64("comm_size", size)},
		},
		comm: fields[1],
	}, nil
}

// check performs the checks that need the whole text. The current line is the second.
func (p *parser) check(warn func(string, ...any)) error {
	w, layers := p.w, int64(len(p.w.layers))
	if w.count != layers {
		warn("%s:%d: the text announces %d layers and has %d; all of them are used", p.file, p.line,
			w.count, layers)
	}
	if p.sized > 0 && !w.isDLRM() {
		warn("%s: %d collectives NONE with a size are read as all-reduces of that size, as by Chakra's "+
			"converter", p.file, p.sized)
	}
	if w.isModel() && 0 < w.count && w.count < layers {
		// The layer of that number would be the last, and later layers would wait for a collective that it lacks.
		return p.fail(fmt.Sprintf("%d, the number of layers", layers), strconv.FormatInt(w.count, 10))
	}
	if w.isDLRM() && int64(w.lastBottom) < layers && w.layers[0].forward.comm != allToAll {
		p.line = 3
		return p.fail("ALLTOALL forward in the first layer, because the last bottom layer waits for it",
			w.layers[0].forward.comm)
	}
	return nil
}

func (w *workload) isDLRM() bool {
	return w.kind == "HYBRID_DLRM" || w.kind == "HYBRID_DLRM_ENHANCED"
}

// isModel reports whether some or all layers are distributed over NPUs.
func (w *workload) isModel() bool {
	return w.kind == "MODEL" || w.kind == "HYBRID_DATA_MODEL" || w.kind == "HYBRID_MODEL_DATA"
}

// quote returns a field for a message, shortened if it is long.
func quote(field string) string {
	const most = 60
	if len(field) > most {
		return strconv.Quote(field[:most]) + "..."
	}
	return strconv.Quote(field)
}
