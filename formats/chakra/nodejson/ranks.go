// This file reads the files of all ranks.

package nodejson

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
)

// ReadRanks reads the file of each rank, several at the same time, and makes a trace of them. The error is that of the
// lowest rank.
func ReadRanks(inputs []*format.Input, o format.ReadOptions,
	readFile func(*format.Input) (chakra.File, error)) (*dag.Trace, error) {
	inputs, err := byRank(inputs)
	if err != nil {
		return nil, err
	}
	n := len(inputs)
	files, names := make([]chakra.File, n), make([]string, n)
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !failed.Load(); i = int(next.Add(1)) - 1 {
				names[i] = inputs[i].Name
				if files[i], errs[i] = readFile(inputs[i]); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return chakra.Build(files, o, names)
}
