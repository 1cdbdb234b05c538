// This file opens inputs: plain files, pipes, compressed ones. It detects their format.

package tracefile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// maxWindow is the most memory that a zstd input may ask for to be decompressed, as in the zstd program.
const maxWindow = 128 << 20

// Input is an open input file or pipe, decompressed.
type Input struct {
	format.Input
	name    string // as given, "-" for standard input
	closers []func()

	stored io.Reader      // a pipe's bytes as stored, digested as they are read
	sum    hash.Hash      // of what was read of it
	digest chan digestion // of a plain file, computed beside
}

type digestion struct {
	sum []byte
	err error
}

// opener opens the inputs of a trace.
type opener struct {
	ctx    context.Context // nil: reading cannot be cancelled
	stdin  io.Reader       // nil: that of the process
	digest bool            // inputs have digests
	add    func(n int64)   // counts the bytes read, as stored; may be nil
}

// OpenInput opens one input, "-" for standard input, with o.Context, o.Stdin and o.Digest.
func OpenInput(name string, o Options) (*Input, error) {
	return o.opener().open(name)
}

func (o *Options) opener() *opener {
	return &opener{ctx: o.Context, stdin: o.Stdin, digest: o.Digest}
}

func (o *opener) open(name string) (*Input, error) {
	in := &Input{Input: format.Input{Name: name}, name: name}
	var r io.Reader
	if name == "-" {
		in.Name = "<stdin>"
		r = standardInput(o.stdin)
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r = f
		in.closers = append(in.closers, func() { f.Close() })
	}
	if err := in.start(r, o); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// standardInput returns the reader that "-" names.
func standardInput(stdin io.Reader) io.Reader {
	if stdin == nil {
		return os.Stdin
	}
	return stdin
}

// start sets up the reading of r.
func (in *Input) start(r io.Reader, o *opener) error {
	if f, ok := r.(*os.File); ok {
		plain, err := plainFile(f)
		if err != nil {
			return &format.FileError{File: in.Name, Err: format.Cause(err)}
		}
		if plain != nil {
			in.At, in.Size = &countingReaderAt{plain, o}, plain.Size()
			r = io.NewSectionReader(in.At, 0, in.Size)
			if o.digest {
				in.digest = make(chan digestion, 1)
				go in.digestFile(plain, o.ctx)
			}
		}
	}
	if in.At == nil {
		r = &countingReader{r, o}
		if o.digest {
			in.sum = sha256.New()
			r = io.TeeReader(r, in.sum)
		}
		in.stored = r
	}
	head, r, err := peek(r)
	if err != nil {
		return in.readError(err)
	}
	if decompressed, err := in.decompress(head, r); err != nil {
		return in.readError(err)
	} else if decompressed != nil {
		in.At, in.Size = nil, 0
		if head, r, err = peek(decompressed); err != nil {
			return in.readError(err)
		}
	}
	in.Head, in.Reader = head, r
	if in.At != nil { // so that it does not begin with bytes that were read already
		in.Reader = io.NewSectionReader(in.At, 0, in.Size)
	}
	return nil
}

// readError is the reason why an input cannot be read.
type readError struct{ err error }

func (e *readError) Error() string { return "reading: " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func (in *Input) readError(err error) error {
	return &format.FileError{File: in.Name, Err: &readError{format.Cause(err)}}
}

// plainFile returns the rest of f if that is a plain file with random access, nil if not.
func plainFile(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("expected a file, found a directory")
	}
	if !info.Mode().IsRegular() || info.Size() == 0 { // files of size 0 need not be empty, as those in /proc
		return nil, nil
	}
	at, err := f.Seek(0, io.SeekCurrent) // standard input may have been read from
	if err != nil || at >= info.Size() {
		return nil, nil
	}
	return io.NewSectionReader(f, at, info.Size()-at), nil
}

// peek returns the beginning of r, and a reader of the whole.
func peek(r io.Reader) ([]byte, io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(format.DetectBytes)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	return bytes.Clone(head), buffered, nil
}

// decompress returns what r decompresses to, nil if it is not compressed as far as its head tells.
func (in *Input) decompress(head []byte, r io.Reader) (io.Reader, error) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b, 8}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("damaged gzip data: %w", err)
		}
		return &decompressor{z, "gzip"}, nil
	case isZstd(head):
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		in.closers = append(in.closers, z.Close)
		return &decompressor{z, "zstd"}, nil
	}
	return nil, nil
}

// decompressor gives the errors of a decompressor their name: those of some look like a regular end of the data.
type decompressor struct {
	io.Reader
	kind string
}

func (d *decompressor) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	switch err {
	case nil, io.EOF:
		return n, err
	case io.ErrUnexpectedEOF:
		return n, fmt.Errorf("the %s data ends early", d.kind)
	}
	return n, fmt.Errorf("damaged %s data: %w", d.kind, err)
}

// isZstd reports whether head begins a zstd frame, or a skippable frame as parallel compressors put first.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

func (in *Input) digestFile(f *io.SectionReader, ctx context.Context) {
	sum := sha256.New()
	content := io.NewSectionReader(f, 0, f.Size())
	_, err := io.Copy(sum, &countingReader{content, &opener{ctx: ctx}})
	in.digest <- digestion{sum.Sum(nil), err}
}

// Digest returns the input's name and the SHA-256 of its bytes as stored. Of a pipe, it first reads what is left. It
// may be called once.
func (in *Input) Digest() (dag.Input, error) {
	var d digestion
	if in.digest != nil {
		d = <-in.digest
	} else {
		_, d.err = io.Copy(io.Discard, in.stored)
		d.sum = in.sum.Sum(nil)
	}
	if d.err != nil {
		return dag.Input{}, in.readError(d.err)
	}
	return dag.Input{Name: in.name, SHA256: hex.EncodeToString(d.sum)}, nil
}

// Close closes the input.
func (in *Input) Close() {
	for i := len(in.closers) - 1; i >= 0; i-- {
		in.closers[i]()
	}
}

// Detect returns the format of the input: the one called from, or if that is empty, the one its content shows. An
// unknown name is an [*OptionError].
func Detect(formats format.List, in *Input, from string) (*format.Format, error) {
	readable := formats.Readable()
	if from != "" {
		return named(readable, from, "from")
	}
	if len(in.Head) == 0 && readable.ForPath(in.name) == nil {
		return nil, &format.SyntaxError{File: in.Name, Expected: "a trace", Found: "an empty input"}
	}
	found := readable.Detect(in.Head)
	switch len(found) {
	case 0:
		if f := readable.ForPath(in.name); f != nil {
			return f, nil // whose reader says best what is wrong with the content
		}
		return nil, format.FileErrorf(in.Name, "the content shows no known format; name one with --from: %s",
			strings.Join(readable.Names(), ", "))
	case 1:
		return &found[0], nil
	}
	return nil, format.FileErrorf(in.Name, "the content may be of several formats; name one with --from: %s",
		strings.Join(found.Names(), ", "))
}

// OptionError is an error in an option of the caller, not in a file.
type OptionError struct {
	Option string // its name as a flag: "from", "to" or "output"
	Value  string // the value that is at fault, if the message does not give it; else ""
	Err    error
}

func (e *OptionError) Error() string {
	if e.Value != "" {
		return e.Option + " " + e.Value + ": " + e.Err.Error()
	}
	return e.Option + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }

// named returns the format called name.
func named(formats format.List, name, option string) (*format.Format, error) {
	if f := formats.Named(name); f != nil {
		return f, nil
	}
	err := fmt.Errorf("expected one of %s, found %q", strings.Join(formats.Names(), ", "), name)
	return nil, &OptionError{Option: option, Err: err}
}

// storedSize returns the size in bytes of the input called name, -1 if only reading it could tell.
func storedSize(name string, stdin io.Reader) int64 {
	var info fs.FileInfo
	var err error
	if name != "-" {
		info, err = os.Stat(name)
	} else if f, ok := standardInput(stdin).(*os.File); ok {
		info, err = f.Stat()
	}
	if err != nil || info == nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// TotalSize returns the size of the inputs in bytes, as stored, -1 if it is not known. "-" is stdin, nil for that of
// the process.
func TotalSize(names []string, stdin io.Reader) int64 {
	total := int64(0)
	for _, name := range names {
		size := storedSize(name, stdin)
		if size < 0 {
			return -1
		}
		total += size
	}
	return total
}

// count counts the bytes that were read. It returns an error when reading is cancelled.
func (o *opener) count(n int) error {
	if o.add != nil {
		o.add(int64(n))
	}
	return cancelled(o.ctx)
}

// cancelled returns why a context has ended, nil if it has not.
func cancelled(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return context.Cause(ctx)
}

type countingReader struct {
	r io.Reader
	o *opener
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if ended := c.o.count(n); ended != nil {
		return n, ended
	}
	return n, err
}

type countingReaderAt struct {
	r io.ReaderAt
	o *opener
}

func (c *countingReaderAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	if ended := c.o.count(n); ended != nil {
		return n, ended
	}
	return n, err
}
