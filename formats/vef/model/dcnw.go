// This file has the models DCNW and CDCNW.

package model

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
)

type dcnwModel struct {
	params   dcnw.Params
	sizeFile string // of CDCNW, as written in the record
}

// DCNW returns the model DCNW, which uses one of the generator's own curves.
func DCNW(p dcnw.Params) *Model {
	return newDCNW(kindDCNW, p, "")
}

// CDCNW returns the model CDCNW. The path of the size file is relative to the folder of the trace.
func CDCNW(p dcnw.Params, sizeFile string) (*Model, error) {
	sizeFile = filepath.ToSlash(sizeFile)
	if len(strings.Fields(sizeFile)) != 1 || strings.TrimSpace(sizeFile) != sizeFile {
		return nil, fmt.Errorf("expected a file name without blanks in an extended trace, found %q", sizeFile)
	}
	if sizeFile[0] == '#' {
		sizeFile = "./" + sizeFile // a name that begins with # would be a comment
	}
	return newDCNW(kindCDCNW, p, sizeFile), nil
}

func newDCNW(kind string, p dcnw.Params, sizeFile string) *Model {
	return &Model{
		header: Header{Tasks: int64(p.Tasks), Messages: p.Messages, Clock: p.Clock},
		kind:   kind,
		model:  &dcnwModel{p, sizeFile},
	}
}

func parseDCNW(p *parser) (model, error) {
	names := strings.Join(dcnw.Workloads(), ", ")
	if err := p.next("a record of one of " + names); err != nil {
		return nil, err
	}
	name, err := p.word("one of " + names)
	if err != nil {
		return nil, err
	}
	sizes, ok := dcnw.Workload(name)
	if !ok {
		return nil, p.fail("one of "+names, quote(name))
	}
	return p.traffic(sizes, "")
}

func parseCDCNW(p *parser) (model, error) {
	if err := p.next("a record of a size file"); err != nil {
		return nil, err
	}
	name, err := p.word("a size file")
	if err != nil {
		return nil, err
	}
	sizes, err := p.sizes(name)
	if err != nil {
		return nil, err
	}
	return p.traffic(sizes, name)
}

// traffic reads the fields that follow the sizes in both models.
func (p *parser) traffic(sizes *dcnw.Curve, sizeFile string) (model, error) {
	m := &dcnwModel{sizeFile: sizeFile, params: dcnw.Params{
		Messages: p.header.Messages, Clock: p.header.Clock, Sizes: sizes,
		Destination: p.destinations(openloop.UniformTask), Load: 1,
	}}
	err := p.keywords(&m.params.Destination.Distribution,
		keyword{"LOAD", number{&m.params.Load, positive, "above 0"}, true})
	if err != nil {
		return nil, err
	}
	if m.params.Tasks, err = p.tasks(); err != nil {
		return nil, err
	}
	if err := m.params.Check(); err != nil {
		return nil, err
	}
	return m, p.end()
}

// destinations returns the destination policy of a distribution.
func (p *parser) destinations(d openloop.Distribution) openloop.DestinationPolicy {
	policy := openloop.DestinationPolicy{Distribution: d, Sigma: openloop.DefaultSigma}
	if sigma := p.options.GaussSigma; sigma != nil {
		policy.Sigma = *sigma
	}
	return policy
}

// tasks returns the number of tasks of an open-loop model.
func (p *parser) tasks() (int, error) {
	return int(p.header.Tasks), openloop.InRange("tasks", p.header.Tasks, 2, openloop.MaxTasks)
}

// sizes reads the size file of the given name.
func (p *parser) sizes(name string) (*dcnw.Curve, error) {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) && p.file != "<stdin>" {
		path = filepath.Join(filepath.Dir(p.file), path)
	}
	file, err := openRegular(path)
	if err == nil {
		defer file.Close()
		var c *dcnw.Curve
		if c, err = ReadSizes(path, bufio.NewReader(file), p.warn); err == nil {
			p.files = append(p.files, path)
			return c, nil
		}
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = &format.FileError{File: path, Err: cause.Err}
	}
	return nil, p.fail("a file of message sizes", err.Error())
}

// openRegular opens a regular file; other files may be endless.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, format.FileErrorf(path, "not a regular file")
	}
	return os.Open(path)
}

// ReadSizes reads a size file of CDCNW, called file in messages. It warns if the mean of the sizes differs from
// the stated mean. Errors in the file are a format.SyntaxError.
func ReadSizes(file string, r io.Reader, warn func(message string, args ...any)) (*dcnw.Curve, error) {
	c, err := dcnw.ReadSizes(file, r, warn)
	var wrong *openloop.LineError
	switch {
	case errors.As(err, &wrong):
		return nil, &format.SyntaxError{File: file, Line: wrong.Line, Expected: wrong.Expected, Found: wrong.Found}
	case err != nil:
		return nil, &format.FileError{File: file, Err: err}
	}
	return c, nil
}

func (m *dcnwModel) attrs(c common) any {
	type attrs struct {
		common
		SizeModel string  `json:"size_model,omitempty"`
		SizeFile  string  `json:"size_file,omitempty"`
		Dist      string  `json:"dist"`
		Load      float64 `json:"load_gbps_per_task"`
	}
	a := attrs{common: c, SizeFile: m.sizeFile, Dist: m.params.Destination.String(), Load: m.params.Load}
	if m.sizeFile == "" {
		a.SizeModel = m.params.Sizes.Name
	}
	return a
}

func (m *dcnwModel) records() [][]string {
	sizes := m.sizeFile
	if sizes == "" {
		sizes = m.params.Sizes.Name
	}
	return [][]string{{sizes, m.params.Destination.String(), "LOAD", formatFloat(m.params.Load)}}
}

func (m *dcnwModel) source(ctx context.Context, seed int64) (dag.Source, error) {
	p := m.params
	p.Context = ctx
	return dcnw.NewSource(p, seed)
}
