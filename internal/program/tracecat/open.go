// This file opens traces for streaming.

package tracecat

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
)

// source is an open trace that is read batch by batch if its format supports that, and else is in memory. Its errors
// name the input.
type source struct {
	dag.Source
	in *cli.OpenTrace
}

// open opens a trace. The caller must close it.
func open(p *cli.Program, name string, flags cli.ReadFlags) (*source, error) {
	in, err := p.OpenTrace(name, flags, cli.ReadOptions{})
	if err != nil {
		return nil, err
	}
	s := &source{in.Source, in}
	if s.Source == nil {
		t, err := in.Read()
		if err != nil {
			in.Close()
			return nil, err
		}
		in.DoneReading()
		s.Source = dag.FromTrace(t)
	}
	return s, nil
}

// outline returns the header, and the source if it has sections. The header has then no kinds of op, which take
// reading of all sections.
func (s *source) outline() (dag.Sectioned, *dag.Header, error) {
	if sectioned, ok := s.Source.(dag.Sectioned); ok && len(sectioned.Sections()) > 0 {
		return sectioned, sectioned.Outline(), nil
	}
	h, err := s.Header()
	return nil, h, err
}

// Header returns the header.
func (s *source) Header() (*dag.Header, error) {
	h, err := s.Source.Header()
	return h, s.named(err)
}

// NewReader returns a reader.
func (s *source) NewReader(columns dag.Columns) dag.Reader {
	read := s.Source.NewReader(columns)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		ranks, err := read(b)
		return ranks, s.named(err)
	}
}

// Digest returns the digest of the ops, "" if the input has none.
func (s *source) Digest() string {
	if d, ok := s.Source.(dag.Digester); ok {
		return d.Digest()
	}
	return ""
}

// Verify returns an error unless the ops have the digest.
func (s *source) Verify() error {
	return s.named(s.Source.(dag.Digester).Verify())
}

// Close closes the input.
func (s *source) Close() error {
	s.in.Close()
	return nil
}

func (s *source) named(err error) error {
	if err == nil {
		return nil
	}
	return format.InFile(s.in.Name, err)
}
