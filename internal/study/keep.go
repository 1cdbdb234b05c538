package study

import (
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/param"
)

// flowsFlag limits the rows of a backend that has it.
const flowsFlag = "--max-flows="

// listsFlows reports whether a backend lists messages.
func listsFlows(table param.Set) bool { return table.Find("max-flows") != nil }

// flowsListed returns the largest number of messages that a result lists: none unless they are kept.
func flowsListed(s *grid.Study) int {
	if len(s.Keep) > 0 {
		return 1_000_000_000
	}
	return 0
}
