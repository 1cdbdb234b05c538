// This file passes extended traces to package model.

package vef

import (
	"bytes"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/model"
)

// modelText is the part of an extended trace that describes the model.
type modelText struct {
	kind  model.Line // the record EXT, without that word
	lines []model.Line
}

// open opens an extended trace, which is generated batch by batch. It returns nil for a plain trace.
func open(in *format.Input, o format.ReadOptions) (dag.Source, error) {
	if !isModel(in.Head) {
		return nil, nil
	}
	r, err := readFile(in, o)
	if err != nil {
		return nil, err
	}
	return r.source(o)
}

// isModel reports whether the second record begins with EXT. If head ends before it, isModel returns false.
func isModel(head []byte) bool {
	records := 0
	for line := range bytes.Lines(head) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || line[0] == '#' {
			continue
		}
		if records++; records == 2 {
			return bytes.EqualFold(fields[0], []byte("EXT"))
		}
	}
	return false
}

// source returns the trace of the model in an extended trace.
func (r *reader) source(o format.ReadOptions) (dag.Source, error) {
	h := model.Header{Line: r.header.line, Tasks: r.header.tasks, Messages: r.header.messages, Clock: r.header.clock}
	m, err := model.Parse(r.file, h, r.model.kind, r.model.lines, o)
	if err != nil {
		return nil, err
	}
	source, err := m.Source(o.Context)
	if err != nil {
		return nil, err
	}
	attrs, err := m.Attrs()
	if err != nil {
		return nil, err
	}
	header, err := source.Header()
	if err != nil {
		return nil, err
	}
	described := *header
	described.Attrs = `{"vef":` + string(attrs) + `}`
	return &modelSource{dag.WithHeader(source, &described), m.Files()}, nil
}

// modelSource is the trace of a model, whose description may refer to further files.
type modelSource struct {
	dag.Source
	files []string
}

func (s *modelSource) Files() []string {
	return s.files
}

func (s *modelSource) ReadAll() (*dag.Trace, error) {
	return dag.ReadAll(s.Source)
}
