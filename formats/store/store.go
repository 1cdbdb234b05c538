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
	"context"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/spool"
	"github.com/tracedag/tracedag/internal/parquet"
	"github.com/tracedag/tracedag/memory"
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
	Read:        read,
	Open:        open,
	Write:       func(w io.Writer, t *dag.Trace, _ format.WriteOptions) error { return Write(w, t) },
	WriteSource: func(w io.Writer, s dag.Source, o format.WriteOptions) error { return writeSource(w, s, o.Frugal) },
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
func open(in *format.Input, o format.ReadOptions) (dag.Source, error) {
	if in.At != nil {
		f, err := Open(in.At, in.Size, in.Name)
		if err == nil {
			err = f.limitMemory(o.Context)
		}
		if err != nil {
			return nil, err // a nil *File would be a non-nil Source
		}
		return f, nil
	}
	copied, err := spool.Copy(o.Context, in, "tracedag-*.parquet", parquet.Magic, false)
	if err != nil {
		return nil, err
	}
	f, err := Open(copied, copied.Size, in.Name)
	if err == nil {
		err = f.limitMemory(o.Context)
	}
	if err != nil {
		copied.Close()
		return nil, err
	}
	f.spool = copied
	return f, nil
}

// limitMemory sets the limit of ReadAll to that of the context, and returns an error if a batch exceeds it.
func (f *File) limitMemory(ctx context.Context) error {
	f.ctx = ctx
	return format.InFile(f.name, memory.CheckBatches(ctx, &dag.Header{Batches: f.batches()}))
}
