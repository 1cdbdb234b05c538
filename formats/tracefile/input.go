// This file opens inputs (regular files, pipes, compressed data) and detects their format.

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
	packed  io.Reader // decompressor; nil: stored uncompressed
	file    *os.File  // nil: standard input
	tail    *tail     // content of an input without random access
	damage  error     // of compressed data within Head, which reading repeats; nil: none

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
		r, in.file = f, f
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
			in.damage = in.readError(err)
			if damaged := (*format.DamagedError)(nil); len(head) == 0 || !errors.As(err, &damaged) {
				return in.damage
			}
		}
	}
	in.tail = &tail{r: r}
	in.Head, in.Reader = head, in.tail
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

// peek returns the beginning of r, and a reader of all of r. With an error of r, the beginning is what precedes it.
func peek(r io.Reader) ([]byte, io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(format.DetectBytes)
	if err == io.EOF {
		err = nil
	}
	return bytes.Clone(head), buffered, err
}

// decompress returns a reader of the decompressed content of r, or nil if the data is not compressed. A file whose name
// has the ending of a compression must be compressed so.
func (in *Input) decompress(head []byte, r io.Reader) (io.Reader, error) {
	kind := compression(head)
	if named := compressions[strings.ToLower(filepath.Ext(in.name))]; named != "" && kind != named {
		found := "other data"
		if kind != "" {
			found = kind + " data"
		} else if len(head) == 0 {
			found = "an empty file"
		}
		return nil, &format.DamagedError{Err: fmt.Errorf("expected %s data, as the name promises, found %s; rename "+
			"the file if it is intact", named, found)}
	}
	switch kind {
	case "gzip":
		in.packed = &decompressor{Reader: &gunzip{src: bufio.NewReader(r)}, kind: kind}
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		in.closers = append(in.closers, z.Close)
		in.packed = &decompressor{Reader: z, kind: kind}
	case "xz", "bzip2":
		return nil, in.unsupported(kind)
	}
	return in.packed, nil
}

// compressions are the endings of compressed files that are read.
var compressions = map[string]string{".gz": "gzip", ".zst": "zstd"}

// compression returns the program that compressed the data which begins with head, or "".
func compression(head []byte) string {
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return "gzip"
	case isZstd(head):
		return "zstd"
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return "xz"
	case bytes.HasPrefix(head, []byte("BZh")) && len(head) >= 10 && string(head[4:10]) == "1AY&SY":
		return "bzip2"
	}
	return ""
}

// finish reads the rest of compressed data, so that its checksums are verified even if the content ends before the
// data. Readers of traces stop at the end of the content.
func (in *Input) finish(ctx context.Context) error {
	if in.packed == nil {
		return nil
	}
	rest := &countingReader{in.packed, &opener{ctx: ctx}}
	if _, err := io.CopyBuffer(io.Discard, rest, make([]byte, 1<<16)); err != nil {
		return in.readError(err)
	}
	return nil
}

// Finish verifies the rest of the input: compressed data must be complete, have the right checksums and nothing may
// follow it. Call it after the content is read.
func (in *Input) Finish() error { return in.finish(context.Background()) }

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
// end. It repeats the first error.
type decompressor struct {
	io.Reader
	kind string
	err  error
}

func (d *decompressor) Read(b []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.Reader.Read(b)
	switch err {
	case nil, io.EOF:
	case io.ErrUnexpectedEOF:
		err = &format.DamagedError{Err: fmt.Errorf("truncated %s data", d.kind)}
	case zstd.ErrMagicMismatch:
		err = &format.DamagedError{Err: fmt.Errorf("damaged %s data: %w", d.kind, errTrailing)}
	default:
		err = &format.DamagedError{Err: fmt.Errorf("damaged %s data: %w", d.kind, err)}
	}
	d.err = err
	return n, err
}

var errTrailing = errors.New("expected the end of the data or more compressed data, found other data")

var gzipMagic = []byte{0x1f, 0x8b}

// gunzip reads the members of a gzip file, and the zeros that tapes and block devices append.
type gunzip struct {
	src    *bufio.Reader
	member *gzip.Reader // nil before the first
	open   bool         // whether the member has more content
}

func (g *gunzip) Read(b []byte) (int, error) {
	for {
		if !g.open {
			if err := g.next(); err != nil {
				return 0, err
			}
		}
		n, err := g.member.Read(b)
		if err != io.EOF {
			return n, err
		}
		g.open = false // the checksum is right
		if n > 0 {
			return n, nil
		}
	}
}

// next opens the next member. It returns io.EOF if there is none.
func (g *gunzip) next() (err error) {
	if g.member == nil {
		g.member = new(gzip.Reader)
	} else if head, err := g.src.Peek(len(gzipMagic)); err != nil && err != io.EOF {
		return err
	} else if !bytes.Equal(head, gzipMagic) {
		return g.padding()
	}
	if err = g.member.Reset(g.src); err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	g.member.Multistream(false)
	g.open = err == nil
	return err
}

// padding reads the rest, which must be zeros, and returns io.EOF.
func (g *gunzip) padding() error {
	for {
		switch c, err := g.src.ReadByte(); {
		case err != nil:
			return err
		case c != 0:
			return errTrailing
		}
	}
}

// tail keeps the last byte of a reader.
type tail struct {
	r     io.Reader
	last  byte
	ended bool // whether the reader is at its end
}

func (t *tail) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if n > 0 {
		t.last = b[n-1]
	}
	t.ended = t.ended || err == io.EOF
	return n, err
}

// endsInNumber reports whether the input is a text that ends in a number without a line end, as a text does that was
// cut inside the number. Call it after the content is read.
func (in *Input) endsInNumber() bool {
	if len(in.Head) == 0 || bytes.IndexByte(in.Head, 0) >= 0 {
		return false
	}
	var last [1]byte
	if in.At == nil {
		if last[0] = in.tail.last; !in.tail.ended {
			return false
		}
	} else if _, err := in.At.ReadAt(last[:], in.Size-1); err != nil && err != io.EOF {
		return false
	}
	return last[0] >= '0' && last[0] <= '9' || last[0] == '.'
}

// replaced reports whether the file has been replaced since it was opened.
func (in *Input) replaced() bool {
	if in.file == nil {
		return false
	}
	opened, err := in.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(in.name)
	return err != nil || !os.SameFile(opened, now)
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
		return nil, in.empty()
	}
	found := readable.Detect(in.Head)
	if len(found) == 0 && in.name != "-" {
		found = detectLists(readable, in)
	}
	switch len(found) {
	case 0:
		if in.damage != nil {
			return nil, in.damage
		}
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

// detectLists returns the formats in which the input is a list of files.
func detectLists(readable format.List, in *Input) (found format.List) {
	beside := func(name string) []byte {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(in.name), name)
		}
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return nil
		}
		first, err := new(opener).open(name)
		if err != nil {
			return nil
		}
		defer first.Close()
		return first.Head
	}
	for i := range readable {
		if list := readable[i].DetectList; list != nil && list(in.Head, beside) {
			found = append(found, readable[i])
		}
	}
	return found
}

// empty returns the error of an empty input.
func (in *Input) empty() error {
	return &format.SyntaxError{File: in.Name, Expected: "a trace", Found: "an empty input"}
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
