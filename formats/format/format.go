// Package format is the contract between the trace formats and the programs that use them: what a format can do
// ([Format]), what it reads from ([Input]), how it reports what it cannot express ([Loss]) and what it cannot
// understand ([SyntaxError]).
//
// Every format is a package of its own that imports this one and dag, never another format.
package format

import (
	"context"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// Format is a trace format that can be read, written or both.
type Format struct {
	Name       string   // on the command line, such as "goalbin"
	Title      string   // one line of help
	Extensions []string // file name endings that suggest it, such as ".bin", the usual one first
	Binary     bool     // not for a terminal

	// Detect reports whether a file that begins with head (at most DetectBytes of it) is surely in this format.
	// nil: the format must be named.
	Detect func(head []byte) bool

	// Files returns, of a trace that is many files, which of the files of a folder it is: those that belong to the file
	// called name, or where that is "" to whatever trace the folder has. All are names without the folder. Where some
	// of the trace's files are missing it returns a *MissingError, and name, if that is not "". nil: a trace is one
	// file.
	Files func(name string, folder []string) ([]string, error)

	// Read reads one trace from its files, most often one. nil: the format is only written.
	Read func(inputs []*Input, o ReadOptions) (*dag.Trace, error)

	// Open opens a trace that can be read batch by batch, without having all of it in memory. It returns nil for one
	// that cannot, having read nothing; Read then reads the whole. nil: none can. The input must stay open until the
	// source is closed. A source that depends on other files, too, names them in a method Files() []string.
	Open func(in *Input, o ReadOptions) (dag.Source, error)

	Options      *OptionTable // of reading; nil: none of its own
	WriteOptions *OptionTable // of writing; nil: none of its own

	// Generates reports that what Open opens are descriptions of workload models. Their traces are generated
	// while they are read.
	Generates bool

	// Tensors returns a function that finds the tensors which an op of the trace reads and writes. nil: ops have none.
	Tensors func(t *dag.Trace) func(rank, op int) (reads, writes []attr.Tensor, err error)

	// Losses lists what Write would leave out or change, without writing. nil: nothing ever.
	Losses func(t *dag.Trace) []Loss

	// Write writes the trace, front to back. It fails, before the first byte, on a trace that the format cannot hold at
	// all; what it merely loses is for Losses to say. nil: the format is only read.
	Write func(w io.Writer, t *dag.Trace, o WriteOptions) error

	// WriteFiles writes a trace as several files instead, one after the other. create begins the next one, whose name
	// is that of the output, without the ending it may have, and suffix, such as ".12.et"; it is complete when create
	// is called again or WriteFiles returns. What holds for Write holds for it. One of Write and WriteFiles is nil.
	WriteFiles func(create func(suffix string) (io.Writer, error), t *dag.Trace, o WriteOptions) error

	// WriteSource writes what Write writes, of a trace that need not be in memory, and tells o.Losses what Losses lists
	// of it. It may be nil.
	WriteSource func(w io.Writer, s dag.Source, o WriteOptions) error
}

// DetectBytes is how much of a file Format.Detect gets to see.
const DetectBytes = 4096

// Input is a file, or a pipe, that holds a trace or a part of one.
type Input struct {
	Name   string    // for messages: the path as given, or "<stdin>"
	Reader io.Reader // the content from its start, decompressed
	Head   []byte    // the first DetectBytes of it, or all there is

	// At gives random access to the content, Size bytes of it, where it is a plain file; nil where it comes through a
	// pipe or a decompressor. Use either At or Reader.
	At   io.ReaderAt
	Size int64
}

// Single returns the one input of a trace, such as "a GOAL schedule", that is always one file.
func Single(inputs []*Input, trace string) (*Input, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("%s is one file, not %d", trace, len(inputs))
	}
	return inputs[0], nil
}

// ReadOptions are the options of reading that all formats share, and those of the format. The zero value reads
// strictly.
type ReadOptions struct {
	Compat  bool // accept what the format's reference program accepts, its mistakes included
	Lenient bool // continue after what can be skipped, with a warning

	// Own is the format's own options, of the type that Format.Options makes; nil: the defaults.
	Own Options

	// CheckedComms suppresses the warning about undefined communicators, for callers that look for them.
	CheckedComms bool

	// Ranks is the number of ranks of a trace whose files are equal for all of them, of which there is only the first;
	// 0: there is a file for every rank.
	Ranks int

	Warn func(message string, args ...any) // reports deviations that the user may not expect; never nil

	// Context ends Read early: it then returns an error that wraps the context's. The inputs may end, too. nil: never.
	Context context.Context

	// OpenFile returns a file beside the trace that an option names. It is opened when it is first read. WriteFile
	// writes such a file, complete or not at all. nil: there are no such files.
	OpenFile  func(name string) *Input
	WriteFile func(name string, content []byte) error
}

// WriteOptions are the options of writing that all formats share, and those of the format.
type WriteOptions struct {
	Compat bool    // write what the format's reference program writes, its mistakes included
	Own    Options // of the type that Format.WriteOptions makes; nil: the defaults
	Warn   func(message string, args ...any)
	// Losses is told by WriteSource what the format would leave out or change, before the first byte; an error ends the
	// writing. nil: nobody asks.
	Losses func([]Loss) error
}

// MissingError says that a trace that is many files lacks one.
type MissingError struct {
	Rank int // whose file is missing
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the file of rank %d is missing", e.Rank)
}

// Loss is one kind of thing that a format cannot express, and how often the trace has it.
type Loss struct {
	What  string // such as "release times", "durations rounded to whole nanoseconds"
	Count int64  // how many ops it touches
}

// String returns the loss as a message says it: "12 ops: release times".
func (l Loss) String() string {
	if l.Count == 1 {
		return "1 op: " + l.What
	}
	return fmt.Sprintf("%d ops: %s", l.Count, l.What)
}

// SyntaxError says where and why an input cannot be understood.
type SyntaxError struct {
	File     string
	Line     int64  // from 1; 0 for binary formats
	Offset   int64  // byte offset, where Line is 0
	Class    string // the format's name for this kind of mistake, where it has such names
	Expected string
	Found    string // may be empty, where there is nothing to show
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
