// This file opens inputs (regular files, pipes, compressed data) and detects their format.

package tracefile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// maxWindow is the largest zstd window in bytes, the limit of the zstd program. It bounds the memory for
// decompression.
const maxWindow = 128 << 20

// Input is an open input file or pipe, decompressed.
type Input struct {
	format.Input
	name    string // as given, "-" for standard input
	closers []func()

	stored io.Reader      // bytes of a pipe as stored; reading updates sum
	sum    hash.Hash      // SHA-256 of the bytes read from stored
	digest chan digestion // digest of a regular file, computed in the background
}

type digestion struct {
	sum []byte
	err error
}

// opener opens the inputs of a trace.
type opener struct {
	ctx    context.Context // nil: reading cannot be cancelled
	stdin  io.Reader       // nil: standard input of the process
	digest bool            // compute digests of the inputs
	add    func(n int64)   // counts the bytes read, as stored; may be nil
}

// OpenInput opens one input, "-" for standard input. It uses o.Context, o.Stdin and o.Digest.
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

// standardInput returns the reader for "-".
func standardInput(stdin io.Reader) io.Reader {
	if stdin == nil {
		return os.Stdin
	}
	return stdin
}

// start prepares reading from r: digest, decompression and random access.
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
	if in.At != nil { // r has already consumed the head
		in.Reader = io.NewSectionReader(in.At, 0, in.Size)
	}
	return nil
}

// readError is an error of reading an input.
type readError struct{ err error }

func (e *readError) Error() string { return "reading: " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func (in *Input) readError(err error) error {
	return &format.FileError{File: in.Name, Err: &readError{format.Cause(err)}}
}

// plainFile returns the rest of f if f is a regular file with random access, else nil.
func plainFile(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("expected a file or the folder of one trace, found another folder; "+
			"name the files in it, as in %s", filepath.Join(f.Name(), "*"))
	}
	if !info.Mode().IsRegular() || info.Size() == 0 { // files of size 0, as in /proc, may have content
		return nil, nil
	}
	at, err := f.Seek(0, io.SeekCurrent) // part of standard input may be consumed
	if err != nil || at >= info.Size() {
		return nil, nil
	}
	return io.NewSectionReader(f, at, info.Size()-at), nil
}

// peek returns the beginning of r, and a reader of all of r.
func peek(r io.Reader) ([]byte, io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(format.DetectBytes)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	return bytes.Clone(head), buffered, nil
}

// decompress returns a reader of the decompressed content of r, or nil if head shows no compression.
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
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return nil, in.unsupported("xz")
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) >= 10 && string(head[4:10]) == "1AY&SY":
		return nil, in.unsupported("bzip2")
	}
	return nil, nil
}

// unsupported returns the error for a compression that only an external program reads.
func (in *Input) unsupported(program string) error {
	command := program + " -dc"
	if in.name != "-" {
		command += " " + in.name
	}
	return fmt.Errorf("expected plain, gzip or zstd data, found %s data; decompress it in a pipe, as in %q", program,
		command+" | traceconv")
}

// decompressor adds the name of the compression to errors: some decompressors report a truncated file as a regular
// end.
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
		return n, fmt.Errorf("truncated %s data", d.kind)
	}
	return n, fmt.Errorf("damaged %s data: %w", d.kind, err)
}

// isZstd reports whether head begins a zstd frame, or a skippable frame, with which parallel compressors begin.
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

// Digest returns the input's name and the SHA-256 of its bytes as stored. It reads the rest of a pipe. Call it at
// most once.
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

// Detect returns the format called from, or, if that is empty, the format that the content shows. An unknown name
// is an [*OptionError].
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
			return f, nil // its reader gives the best error
		}
		return nil, format.FileErrorf(in.Name, "unknown format; name the format with --from, one of %s",
			strings.Join(readable.Names(), ", "))
	case 1:
		return &found[0], nil
	}
	return nil, format.FileErrorf(in.Name, "the content fits several formats; select one with --from: %s",
		strings.Join(found.Names(), ", "))
}

// OptionError is an error in an option of the caller, not in a file.
type OptionError struct {
	Option string // flag name: "from", "to" or "output"
	Value  string // value in error, if the message does not include it; else ""
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
	err := fmt.Errorf("expected one of %s, found %q%s", strings.Join(formats.Names(), ", "), name,
		param.Suggest(name, formats.Names()))
	return nil, &OptionError{Option: option, Err: err}
}

// storedSize returns the size in bytes of the input called name, or -1 if it is unknown before reading.
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

// TotalSize returns the size of the inputs in bytes, as stored, or -1 if it is unknown. The name "-" is stdin, or
// standard input of the process if stdin is nil.
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

// count counts n bytes. It returns an error if reading is cancelled.
func (o *opener) count(n int) error {
	if o.add != nil {
		o.add(int64(n))
	}
	return cancelled(o.ctx)
}

// cancelled returns the cause if ctx has ended, else nil.
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
