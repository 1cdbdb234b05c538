// This file opens inputs: plain files, pipes, compressed ones; and detects their format.

package cli

import (
	"bufio"
	"bytes"
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
	"github.com/tracedag/tracedag/formats"
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

// Open opens the input called name, "-" for standard input. Where digest is set, Input.Digest may be called. Where
// progress is not nil, it counts the bytes read, as stored.
func (p *Program) Open(name string, digest bool, progress *Progress) (*Input, error) {
	in := &Input{Input: format.Input{Name: name}, name: name}
	var r io.Reader
	if name == "-" {
		in.Name = "<stdin>"
		r = p.Stdin
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r = f
		in.closers = append(in.closers, func() { f.Close() })
	}
	if err := in.start(r, digest, progress); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// start sets up the reading of r.
func (in *Input) start(r io.Reader, digest bool, progress *Progress) error {
	if f, ok := r.(*os.File); ok {
		plain, err := plainFile(f)
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, cause(err))
		}
		if plain != nil {
			in.At, in.Size = &countingReaderAt{plain, progress}, plain.Size()
			r = io.NewSectionReader(in.At, 0, in.Size)
			if digest {
				in.digest = make(chan digestion, 1)
				go in.digestFile(plain)
			}
		}
	}
	if in.At == nil {
		r = &countingReader{r, progress}
		if digest {
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

func (in *Input) readError(err error) error {
	return fmt.Errorf("%s: reading: %w", in.Name, cause(err))
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

func (in *Input) digestFile(f *io.SectionReader) {
	sum := sha256.New()
	_, err := io.Copy(sum, io.NewSectionReader(f, 0, f.Size()))
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

// Detect returns the format of the input: the one called from, or where that is empty, the one its content shows.
func (p *Program) Detect(in *Input, from string) (*format.Format, error) {
	readable := p.Formats.Readable()
	if from != "" {
		return p.named(from, "--from", readable)
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
		return nil, fmt.Errorf("%s: the content shows no known format; name one with --from: %s",
			in.Name, strings.Join(readable.Names(), ", "))
	case 1:
		return &found[0], nil
	}
	return nil, fmt.Errorf("%s: the content may be of several formats; name one with --from: %s",
		in.Name, strings.Join(found.Names(), ", "))
}

// named returns the format called name, or a usage error about the flag.
func (p *Program) named(name, flag string, among formats.List) (*format.Format, error) {
	if f := among.Named(name); f != nil {
		return f, nil
	}
	return nil, Usagef("%s: expected one of %s, found %q", flag, strings.Join(among.Names(), ", "), name)
}

// StoredSize returns the size in bytes of the input called name, -1 where that cannot be known without reading it.
func (p *Program) StoredSize(name string) int64 {
	var info fs.FileInfo
	var err error
	if name != "-" {
		info, err = os.Stat(name)
	} else if f, ok := p.Stdin.(*os.File); ok {
		info, err = f.Stat()
	}
	if err != nil || info == nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// TotalSize returns how many bytes the inputs have, -1 where that is not known.
func (p *Program) TotalSize(names []string) int64 {
	total := int64(0)
	for _, name := range names {
		size := p.StoredSize(name)
		if size < 0 {
			return -1
		}
		total += size
	}
	return total
}

// InputNames returns the inputs that the arguments name: standard input where there are none, which then must not be a
// terminal.
func (p *Program) InputNames(args []string) ([]string, error) {
	if len(args) == 0 {
		if isTerminal(p.Stdin) {
			return nil, Usagef("no input: name a file, or pipe a trace into %s", p.name)
		}
		return []string{"-"}, nil
	}
	stdins := 0
	for _, name := range args {
		if name == "-" {
			stdins++
		}
		if name == "" {
			return nil, Usagef("an input has an empty name")
		}
	}
	if stdins > 1 {
		return nil, Usagef("standard input (-) can be read only once")
	}
	return args, nil
}

type countingReader struct {
	r        io.Reader
	progress *Progress
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.progress.Add(int64(n))
	return n, err
}

type countingReaderAt struct {
	r        io.ReaderAt
	progress *Progress
}

func (c *countingReaderAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	c.progress.Add(int64(n))
	return n, err
}
