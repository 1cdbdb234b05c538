package flit

import (
	"math"

	"github.com/tracedag/tracedag/sim"
)

// Purposes of random streams; see [sim.NewRandom].
const (
	forRoute = iota + 1
	forTraffic
	forPattern
	forMisroute
	forPath
)

// uniform returns a number in (0, 1].
func uniform(g *sim.Random) float64 {
	return float64(g.Next()>>11+1) / (1 << 53)
}

// gap returns the number of trials up to and including the first success. logFail is log(1 - probability of success);
// with -Inf, each trial succeeds.
func gap(g *sim.Random, logFail float64) uint64 {
	return 1 + uint64(min(math.Log(uniform(g))/logFail, 1<<62))
}
