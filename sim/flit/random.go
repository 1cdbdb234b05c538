package flit

import (
	"math"

	"github.com/tracedag/tracedag/sim"
)

// The purposes of generators, see [sim.Random].
const (
	forRoute = iota + 1
	forTraffic
	forPattern
)

// uniform returns a number above 0 and at most 1.
func uniform(g *sim.Random) float64 {
	return float64(g.Next()>>11+1) / (1 << 53)
}

// gap returns the number of trials up to and with the first that succeeds, where each does with a probability of which
// logFail is log(1 - probability); -Inf is certainty.
func gap(g *sim.Random, logFail float64) uint64 {
	return 1 + uint64(min(math.Log(uniform(g))/logFail, 1<<62))
}
