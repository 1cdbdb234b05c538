// Package mpi reads the traces of MPI programs from liballprof: one text file per rank, one line per call.
//
// A trace becomes a DAG at the level of MPI: messages become sends and receives, a collective becomes one op on
// each member, and the time between two calls becomes computation. Alternatively, it becomes the schedule of
// Schedgen, op for op ([Options].Variant). docs/reference/formats/mpi.md describes the files and both mappings.
package mpi

import (
	"bytes"

	"github.com/tracedag/tracedag/formats/format"
)

// Format is the trace format of liballprof.
var Format = format.Format{
	Name:    "mpi",
	Modes:   format.Modes{Compat: true, Lenient: true},
	Title:   "MPI traces of liballprof, one file per rank",
	Detect:  detect,
	Files:   files,
	Read:    read,
	Options: table,
}

// The classes of errors.
const (
	inFiles = "files" // a rank's file is missing or duplicate
	inLine  = "line"  // a line does not match its call
	inCall  = "call"  // a call that is not supported
	inValue = "value" // a size, rank or time out of range
)

// detect reports whether the first line behind comments is a call, or the comments are a tracer's.
func detect(head []byte) bool {
	for {
		line, rest, more := bytes.Cut(head, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		switch {
		case len(line) == 0:
		case line[0] == '#':
			if bytes.HasPrefix(line, []byte("# htor's PMPI Tracer")) || bytes.HasPrefix(line, []byte("# collprof")) {
				return true
			}
		default:
			name, _, isCall := bytes.Cut(line, []byte(":"))
			return isCall && isCallName(name)
		}
		if !more {
			return false
		}
		head = rest
	}
}

// isCallName reports whether a word is MPI_ and letters, in any case.
func isCallName(word []byte) bool {
	const prefix = "MPI_"
	if len(word) <= len(prefix) || !bytes.EqualFold(word[:len(prefix)], []byte(prefix)) {
		return false
	}
	for _, c := range word[len(prefix):] {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
