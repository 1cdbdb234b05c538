// Package spool copies inputs without random access to temporary files, for formats that need it.
package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// File is a temporary file.
type File struct {
	*os.File
	Size   int64
	linked bool // it still has a name
}

// Copy copies the content of an input to a temporary file, whose name follows a pattern of [os.CreateTemp]. The content
// must begin with the magic bytes, unless it is shorter, which Copy checks before it creates the file, and have at most
// as many bytes as the limit of memory of the context, which may be nil: the folder of temporary files may be in
// memory, and a small compressed file can have any content. Unless the file has to keep its name, Copy removes the name
// before it copies, so that no file remains even if the process is killed, if the system supports that. Errors name the
// input.
func Copy(ctx context.Context, in *format.Input, pattern, magic string, named bool) (*File, error) {
	head := make([]byte, len(magic))
	n, err := io.ReadFull(in.Reader, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, format.InFile(in.Name, fmt.Errorf("reading: %w", err))
	}
	if head = head[:n]; string(head) != magic[:n] {
		return nil, &format.SyntaxError{File: in.Name, Expected: strconv.Quote(magic),
			Found: strconv.Quote(string(head))}
	}
	fail := func(err error) error {
		return format.FileErrorf(in.Name, "copying to a temporary file: %w", format.Cause(err))
	}
	file, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, fail(err)
	}
	f := &File{File: file, linked: true}
	if !named {
		f.linked = os.Remove(file.Name()) != nil
	}
	limit := memory.Limit(ctx)
	content := io.MultiReader(bytes.NewReader(head), in.Reader)
	if f.Size, err = io.Copy(file, io.LimitReader(content, limit)); err == nil && f.Size == limit {
		if more, _ := io.ReadFull(content, make([]byte, 1)); more > 0 {
			err = &memory.Error{What: "temporary files of more bytes", Limit: limit}
			err = fmt.Errorf("%w, or name an uncompressed file", err)
		}
	}
	if err != nil {
		f.Close()
		return nil, fail(err)
	}
	return f, nil
}

// Close closes and removes the file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.linked {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
