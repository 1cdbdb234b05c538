package lower

import "github.com/tracedag/tracedag/dag"

// bcastScatterrecdoubling: as bcastScatterallgather, but the members gather the blocks by allgatherRecdoubling.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastScatterrecdoubling(c *Call, s *Schedule) {
	blocks := *c
	blocks.Kind = dag.Scatter
	scatterBinomial(&blocks, s)
	doubleBlocks(&blocks, newExchange(s, s.last()))
}
