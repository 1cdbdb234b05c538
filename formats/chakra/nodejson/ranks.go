// This file reads the files of all ranks.

package nodejson

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// ReadRanks reads the file of each rank, several at the same time, and builds a trace of them. The error is that
// of the lowest rank.
func ReadRanks(inputs []*format.Input, o format.ReadOptions,
	readFile func(rank int, in *format.Input) (chakra.File, error)) (*dag.Trace, error) {
	inputs, err := byRank(inputs)
	if err != nil {
		return nil, err
	}
	n := len(inputs)
	files, names := make([]chakra.File, n), make([]string, n)
	err = par.Each(n, func(i int) (err error) {
		names[i] = inputs[i].Name
		files[i], err = readFile(i, inputs[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return chakra.Build(files, o, names)
}
