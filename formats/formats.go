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

// Open opens the trace that the named files are together, in any format, compressed or not, without reading it yet. A
// single name is a file, "-" for standard input, or of a trace that is many files their folder, the file of rank 0, or
// what comes before its number. The caller must close the result.
func Open(names []string, o Options) (*Opened, error) {
	return tracefile.Open(All, names, o)
}

// Read reads the trace in the file called name, as [Open] names it.
func Read(name string, o Options) (*dag.Trace, error) {
	return tracefile.Read(All, name, o)
}

// Write writes the trace to path, "-" for standard output, in the format that o.To or the ending of path names, else in
// [Default]. On an error no file is left, and one that was there before is still there.
func Write(path string, t *dag.Trace, o WriteOptions) (*Written, error) {
	return tracefile.Write(All, path, t, o)
}

// WriteSource is [Write] for a trace that need not be in memory. It is written batch by batch if the format can.
func WriteSource(path string, s dag.Source, o WriteOptions) (*Written, error) {
	return tracefile.WriteSource(All, path, s, o)
}
