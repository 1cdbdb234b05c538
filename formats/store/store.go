// Package store reads and writes the Parquet store: one file per trace, one row per op. docs/reference/store.md
// specifies the schema, https://parquet.apache.org/docs/file-format/ Parquet itself.
//
// The package maps the columns of package dag to Parquet columns. Package internal/parquet encodes and decodes
// pages, one column of a row group at a time, directly from and into those columns, whereas a general library
// takes one value at a time. It stores dictionary indices in whole bytes so that zstd finds the repetition of a
// periodic schedule. Files of other programs are read in every encoding, codec and page version that fits the
// columns.
package store

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/parquet"
)

// Format is the store.
var Format = format.Format{
	Name:       "store",
	Title:      "Parquet store: lossless, compressed, readable by any data tool",
	Extensions: []string{".parquet"},
	Binary:     true,
	Detect: func(head []byte) bool {
		return len(head) >= len(parquet.Magic) && string(head[:len(parquet.Magic)]) == parquet.Magic
	},
	Read:  read,
	Open:  open,
	Write: func(w io.Writer, t *dag.Trace, _ format.WriteOptions) error { return Write(w, t) },
	WriteSource: func(w io.Writer, s dag.Source, _ format.WriteOptions) error {
		return WriteSource(w, s)
	},
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a store")
	if err != nil {
		return nil, err
	}
	f, err := open(in, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return dag.ReadAll(f)
}

// open opens the store in an input. It first copies a pipe to a temporary file.
func open(in *format.Input, _ format.ReadOptions) (dag.Source, error) {
	if in.At != nil {
		f, err := Open(in.At, in.Size, in.Name)
		if err != nil {
			return nil, err // a nil *File would be a non-nil Source
		}
		return f, nil
	}
	spool, size, err := spool(in.Reader)
	if err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	f, err := Open(spool, size, in.Name)
	if err != nil {
		spool.Close()
		return nil, err
	}
	f.spool = spool
	return f, nil
}

// spooled is a temporary file.
type spooled struct {
	*os.File
	linked bool // it still has a name
}

// spool copies r to a temporary file, because the footer at the end must be read first. It removes the file's name
// at once, so that no file remains in any case; if the system does not support that, Close removes it.
func spool(r io.Reader) (*spooled, int64, error) {
	file, err := os.CreateTemp("", "tracedag-*.parquet")
	if err != nil {
		return nil, 0, fmt.Errorf("creating a temporary file: %w", err)
	}
	s := &spooled{File: file, linked: os.Remove(file.Name()) != nil}
	n, err := io.Copy(file, r)
	if err != nil {
		s.Close()
		return nil, 0, fmt.Errorf("copying to a temporary file: %w", err)
	}
	return s, n, nil
}

// Close closes and removes the file.
func (s *spooled) Close() error {
	err := s.File.Close()
	if s.linked {
		return errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
