// Package model reads and writes the parameters of a workload model, which follow the header of an extended VEF
// trace. The generators in dag/gen generate the trace.
//
// The four models and their parameters are those of F. J. Andújar et al., "Extending the VEF traces framework to
// model data center network workloads", The Journal of Supercomputing, 2023 (doi:10.1007/s11227-022-04692-0).
// docs/reference/generators/dcnw.md, cdcnw.md, flows.md and horovod.md specify their spelling.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// Header is the part of a trace's header that models use.
type Header struct {
	Line     int64    // line number of the header, from 1
	Tasks    int64    // ntasks
	Messages int64    // nmsgs
	Clock    dag.Time // duration of a tick
}

// Line is a record.
type Line struct {
	Number int64    // from 1
	Fields []string // one or more
}

// Model is a workload model with its parameters.
type Model struct {
	header  Header
	kind    string
	model   model
	seed    int64
	records place
	files   []string
}

// model is one of the four models.
type model interface {
	// attrs returns the parameters, to be marshalled after those that all models have.
	attrs(common) any
	// records returns the records after the one with the model's name.
	records() [][]string
	source(ctx context.Context, seed int64) (dag.Source, error)
}

// The parsers of the models, by the name that follows EXT.
var parsers = map[string]func(p *parser) (model, error){
	kindDCNW:    parseDCNW,
	kindCDCNW:   parseCDCNW,
	kindFlows:   parseFlows,
	kindHorovod: parseHorovod,
}

// The names of the models.
const (
	kindDCNW    = "DCNW"
	kindCDCNW   = "CDCNW"
	kindFlows   = "FLOWS"
	kindHorovod = "HOROVOD"
)

// Parse reads the model of an extended trace: kind is the record that begins with EXT, without that field, and
// lines are the records after it. The messages name file. Files that a model names are relative to the folder of
// file, or to the working directory for standard input. Errors in the records are a format.SyntaxError of class
// "ext".
func Parse(file string, h Header, kind Line, lines []Line, o format.ReadOptions) (*Model, error) {
	p := &parser{header: h, options: format.Own(o.Own, newOptions), warn: o.Warn,
		record: record{place{file, kind.Number}, kind.Fields}, rest: lines}
	if h.Tasks < 2 {
		return nil, place{file, h.Line}.fail("2 tasks or more", strconv.FormatInt(h.Tasks, 10))
	}
	if len(kind.Fields) != 1 {
		return nil, p.fail("EXT and the name of a model", strconv.Itoa(len(kind.Fields))+" fields after EXT")
	}
	name := strings.ToUpper(kind.Fields[0])
	parse := parsers[name]
	if parse == nil {
		return nil, p.fail("EXT DCNW, CDCNW, FLOWS or HOROVOD", quote(kind.Fields[0]))
	}
	parsed, err := parse(p)
	if err != nil {
		return nil, p.explain(err)
	}
	return &Model{header: h, kind: name, model: parsed, seed: p.options.Seed, records: p.place, files: p.files}, nil
}

// Files returns the names of the files, other than the trace, that the model was read from.
func (m *Model) Files() []string {
	return m.files
}

// Source returns the trace that the model generates. Errors in the records that only generation detects are a
// format.SyntaxError as from Parse. The end of the context, which may be nil, ends generation. A trace that does not
// fit into its limit of memory in batches is an error.
func (m *Model) Source(ctx context.Context) (dag.Source, error) {
	s, err := m.model.source(ctx, m.seed)
	if err == nil {
		var h *dag.Header
		if h, err = s.Header(); err == nil {
			err = memory.CheckBatches(ctx, h)
		}
	}
	if err != nil {
		return nil, m.records.explain(err, m.header)
	}
	return s, nil
}

// common are the attributes that all models have.
type common struct {
	Kind     string   `json:"kind"`
	Model    string   `json:"model"`
	Tasks    int64    `json:"tasks"`
	Messages int64    `json:"header_msgs"`
	Clock    dag.Time `json:"clock_ps"`
}

// Attrs returns the parameters of the model, with defaults filled in, as a JSON object.
func (m *Model) Attrs() ([]byte, error) {
	attrs, err := json.Marshal(m.model.attrs(common{"ext", m.kind, m.header.Tasks, m.header.Messages, m.header.Clock}))
	if err != nil {
		return nil, fmt.Errorf("parameters of the model %s: %w", m.kind, err)
	}
	return attrs, nil
}

// Spec returns the extended trace, header included, that Parse reads as this model.
func (m *Model) Spec() []byte {
	h := m.header
	text := fmt.Appendf(nil, "VEF3 %d %d 0 0 0 FALSE %d\nEXT %s\n", h.Tasks, h.Messages, h.Clock, m.kind)
	for _, fields := range m.model.records() {
		text = append(text, strings.Join(fields, " ")...)
		text = append(text, '\n')
	}
	return text
}

// explain converts an error about parameters of a generator to one about the records. The width of Gaussian
// destinations does not come from the records.
func (l place) explain(err error, h Header) error {
	var syntax *format.SyntaxError
	var param *openloop.ParamError
	var limit *memory.Error
	switch {
	case errors.As(err, &syntax):
		return err
	case errors.As(err, &limit):
		return format.FileErrorf(l.file, "line %d: %w", l.line, err)
	case !errors.As(err, &param):
		return l.fail("valid parameters", err.Error())
	case param.Param == "gauss-sigma-frac":
		return err
	}
	name, at := param.Param, l
	if written, ok := names[name]; ok {
		name = written.name
		if written.inHeader {
			at.line = h.Line
		}
	}
	return at.fail(name+" "+param.Expected, param.Found)
}

// names are the names of generator parameters in an extended trace.
var names = map[string]struct {
	name     string
	inHeader bool
}{
	"tasks":    {"ntasks", true},
	"messages": {"nmsgs", true},
	"clock":    {"clock", true},
	"time":     {"TIME", false},
	"load":     {"LOAD", false},
	"class":    {"PERC of all classes together to be", false},
}
