// Package format is the contract between trace formats and the programs that use them: capabilities
// ([Format]), inputs ([Input]), losses of conversion ([Loss]) and errors in inputs ([SyntaxError]).
//
// Every format is a package of its own that imports this package and dag, never another format.
package format

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower"
)

// Format is a trace format that can be read, written or both.
type Format struct {
	Name       string   // name on the command line, such as "goalbin"
	Title      string   // one line of help
	Extensions []string // file name endings of the format, such as ".bin", the preferred one first
	Binary     bool     // not printed on a terminal

	// Detect reports whether head, the first DetectBytes bytes of a file or all of a shorter one, identifies this
	// format. If nil, the user must name the format.
	Detect func(head []byte) bool

	// DetectList reports whether head, as for Detect, is the list of the files of a trace of this format, which are
	// beside it. beside returns the first bytes of a file that the list names, nil if there is no such file. It is
	// asked if no format detects head. If nil, the format has no lists.
	DetectList func(head []byte, beside func(name string) []byte) bool

	// Files selects, from the names in a folder, the files that belong to the same trace as name. If name is empty,
	// it selects the folder's only trace. If files of the trace are missing, it returns a *MissingError, with name if
	// that is not empty. If nil, a trace is one file.
	Files func(name string, folder []string) ([]string, error)

	// Read reads one trace from its files, usually one. If nil, the format is write-only.
	Read func(inputs []*Input, o ReadOptions) (*dag.Trace, error)

	// Open opens a trace for reading batch by batch, so that it need not fit in memory. For a trace that cannot be
	// read so, it returns nil and reads nothing; Read then reads the whole trace. If nil, no trace of the format can.
	// Open reads what it needs from an input without random access; the source reads only Input.At, which must stay
	// open until the source is closed. A source that reads other files lists them in a method Files() []string. A
	// source that can check its contents against a digest in the file has a method Unverified() string, which returns
	// why it cannot for this file, or "".
	Open func(in *Input, o ReadOptions) (dag.Source, error)

	// Stream opens a trace for a conversion that need not have it in memory, where Open returns nil. It returns nil if
	// the trace has to be read as a whole. If nil, every trace has to. Stream reads nothing; the source reads only
	// Input.At.
	Stream func(in *Input, o ReadOptions) (Stream, error)

	Modes        Modes        // modes that change how traces are read and written
	Options      *OptionTable // options of reading; nil: none
	WriteOptions *OptionTable // options of writing; nil: none

	// Paired reports that files state each message twice, at its send and at its receive, with its size. The ends of a
	// sound trace agree ([dag.Disagreement]).
	Paired bool

	// Survives reports that Read reads what precedes the damage of compressed data, a DamagedError, and warns about
	// it.
	Survives bool

	// Generates reports that Open opens descriptions of workload models, whose traces are generated during reading.
	Generates bool

	// Tensors returns a function that finds the tensors which an op of the trace reads and writes. If nil, ops have
	// none.
	Tensors func(t *dag.Trace) func(rank, op int) (reads, writes []attr.Tensor, err error)

	// Lacks describes the ops that the format does not have, for --lower needed.
	Lacks lower.Lacks

	// Losses lists the data that Write would drop or change, without writing. If nil, Write loses nothing.
	Losses func(t *dag.Trace) []Loss

	// Write writes the trace sequentially. If the format cannot represent the trace at all, it fails before the first
	// byte; Losses reports lesser losses. If nil, the format is read-only.
	Write func(w io.Writer, t *dag.Trace, o WriteOptions) error

	// WriteFiles writes a trace as several files, one after the other, under the rules of Write. It first passes the
	// result of Losses, which may depend on the options, to o.Losses. create begins the next file. The file's name is
	// the name of the output without an ending of the format, plus suffix, such as ".12.et". A file is complete when
	// create is called again or WriteFiles returns. One of Write and WriteFiles is nil.
	WriteFiles func(create func(suffix string) (io.Writer, error), t *dag.Trace, o WriteOptions) error

	// WriteSource writes the bytes of Write from a trace that need not fit in memory. It first passes the result of
	// Losses to o.Losses, unless there is o.Rewrite. It may be nil.
	WriteSource func(w io.Writer, s dag.Source, o WriteOptions) error

	// WriteOnce is WriteSource by Stream.Once, into an output with o.Rewrite, and returns the number of ops. It returns
	// ErrTwice for a trace that it cannot write so; the output is then useless. It may be nil.
	WriteOnce func(w io.Writer, s Stream, o WriteOptions) (ops int64, err error)
}

// Modes are the modes of ReadOptions and WriteOptions that a format has. In others, they change nothing.
type Modes struct {
	Compat       bool // of ReadOptions
	Lenient      bool
	CompatOutput bool // Compat of WriteOptions
}

// Stream is a source whose first call of Header or Once reads the whole trace, with the errors and warnings of Read.
type Stream interface {
	dag.Source

	// Once calls take with the ranks of the trace in order, some at a time, of which first is the first. It keeps what
	// Header needs. ranks is the number of ranks of the trace. An error of take ends it.
	Once(take func(ranks, first int, next []*dag.Rank) error) error

	// Disagreement returns dag.Disagreement of the trace.
	Disagreement() (string, error)
}

// ErrTwice reports that a trace has to be read twice to be written.
var ErrTwice = errors.New("the trace cannot be written in one pass")

// DetectBytes is the number of bytes at the beginning of a file that Format.Detect receives.
const DetectBytes = 4096

// Input is a file or pipe with a trace or a part of one.
type Input struct {
	Name   string    // name for messages: the path as given, or "<stdin>"
	Reader io.Reader // decompressed content from its start
	Head   []byte    // the first DetectBytes bytes of the content, or all of it

	// At gives random access to the content, which has Size bytes, if the input is an uncompressed regular file; else
	// it is nil. Use either At or Reader.
	At   io.ReaderAt
	Size int64
}

// Single returns the only input of a trace whose format has one file per trace; trace names such a trace, as in "a
// GOAL schedule".
func Single(inputs []*Input, trace string) (*Input, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("%s is one file, not %d", trace, len(inputs))
	}
	return inputs[0], nil
}

// ReadOptions are the options of reading that all formats share, and those of the format. The zero value reads
// strictly.
type ReadOptions struct {
	Compat  bool // accept the inputs of the format's reference program, including its bugs
	Lenient bool // warn about and skip errors that allow it

	// Own has the format's own options, of the type that Format.Options creates; nil: the defaults.
	Own Options

	// CheckedComms suppresses the warning about undefined communicators; the caller checks them itself.
	CheckedComms bool

	// Ranks is the number of ranks of a trace whose only file describes every rank; 0: each rank has a file.
	Ranks int

	Warn func(message string, args ...any) // reports deviations that may surprise the user; never nil

	// Context ends Read early; Read then returns an error that wraps the context's. The inputs may end early, too. If
	// nil, reading cannot be cancelled.
	Context context.Context

	// OpenFile returns a file beside the trace that an option names, and opens it at the first read. WriteFile writes
	// such a file, completely or not at all. If nil, there are no such files.
	OpenFile  func(name string) *Input
	WriteFile func(name string, content []byte) error
}

// WriteOptions are the options of writing that all formats share, and those of the format.
type WriteOptions struct {
	Compat bool    // write the output of the format's reference program, including its bugs
	Own    Options // of the type that Format.WriteOptions creates; nil: the defaults
	Warn   func(message string, args ...any)
	// Losses receives, from WriteSource and WriteFiles, the losses before the first byte or, with Rewrite, at the end;
	// an error stops writing. nil: discarded.
	Losses func([]Loss) error

	// Frugal asks WriteSource to prefer little memory to the use of all processors.
	Frugal bool

	// Rewrite overwrites bytes that were written. An output that it can change is seen by nobody before WriteSource
	// returns, and not at all after an error, so WriteSource may call Losses at the end. If nil, written bytes are
	// final.
	Rewrite io.WriterAt
}

// MissingError reports that a file of a trace with many files is missing.
type MissingError struct {
	Rank int // rank of the missing file
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the file of rank %d is missing", e.Rank)
}

// Loss is one kind of data that a format cannot represent, and the number of ops that have it.
type Loss struct {
	Kind  string // such as "release times", "durations rounded to whole nanoseconds"
	Count int64  // ops affected
}

// String returns the loss for a message: "12 ops: release times".
func (l Loss) String() string {
	return CountOps(l.Count) + ": " + l.Kind
}

// CountOps returns a number of ops for a message: "12 ops".
func CountOps(n int64) string {
	if n == 1 {
		return "1 op"
	}
	return fmt.Sprintf("%d ops", n)
}

// SyntaxError reports where and why an input violates its format.
type SyntaxError struct {
	File     string
	Line     int64  // from 1; 0: Offset applies
	Offset   int64  // in bytes, if Line is 0
	Class    string // the format's name for this kind of error; may be empty
	Expected string
	Found    string // may be empty
}

// Error returns "FILE:LINE: CLASS: expected X, found Y", or "FILE: offset N: ...".
func (e *SyntaxError) Error() string {
	where := fmt.Sprintf("%s: offset %d", e.File, e.Offset)
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Class != "" {
		where += ": " + e.Class
	}
	if e.Found == "" {
		return fmt.Sprintf("%s: expected %s", where, e.Expected)
	}
	return fmt.Sprintf("%s: expected %s, found %s", where, e.Expected, e.Found)
}
