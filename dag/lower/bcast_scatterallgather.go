package lower

import "github.com/tracedag/tracedag/dag"

// bcastScatterallgather: the root scatters n blocks down a binomial tree, then all members gather them in a ring, in
// which the root takes part like the others (van de Geijn's algorithm).
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastScatterallgather(c *Call, s *Schedule) {
	blocks := *c
	blocks.Kind = dag.Scatter
	scatterBinomial(&blocks, s)
	passRound(&blocks, newExchange(s, s.last()))
}
