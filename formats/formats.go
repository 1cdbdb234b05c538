package formats

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/tracefile"
)

// Options configures [Open] and [Read]. The zero value detects the format and discards warnings.
type Options = tracefile.Options

// Opened is an open trace of a known format that is not read yet.
type Opened = tracefile.Opened

// WriteOptions configures [Write] and [WriteSource]. The zero value writes the format that the file's name suggests.
type WriteOptions = tracefile.WriteOptions

// Written reports the format and the losses of a written trace.
type Written = tracefile.Written

// Open opens a trace, which may be several files, in any format, compressed or not, without reading it. A single
// name is a file, "-" for standard input, or, for a format with many files per trace, their folder, the file of
// rank 0, or the part of the name before the rank number. The caller must close the result.
func Open(names []string, o Options) (*Opened, error) {
	return tracefile.Open(All, names, o)
}

// Read reads a trace from the input called name; [Open] lists the accepted names.
func Read(name string, o Options) (*dag.Trace, error) {
	return tracefile.Read(All, name, o)
}

// Write writes the trace to path ("-": standard output) in the format of o.To, of the ending of path, or in
// [Default]. After an error, a file that existed before is unchanged and no new file remains.
func Write(path string, t *dag.Trace, o WriteOptions) (*Written, error) {
	return tracefile.Write(All, path, t, o)
}

// WriteSource is [Write] for a trace that need not fit in memory. It writes batch by batch if the format supports
// that.
func WriteSource(path string, s dag.Source, o WriteOptions) (*Written, error) {
	return tracefile.WriteSource(All, path, s, o)
}
