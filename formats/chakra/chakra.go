// Package chakra reads and writes Chakra execution traces.
package chakra

import (
	"errors"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// Build makes a trace of the files of its ranks, in order. The names of the files are for messages.
func Build(files []File, o format.ReadOptions, names []string) (*dag.Trace, error) {
	return nil, errors.New("to come")
}
