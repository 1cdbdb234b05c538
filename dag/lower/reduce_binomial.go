package lower

// reduceBinomial: a member receives from its children in a binomial tree one after the other, the one with the
// smallest subtree first, then sends to its parent.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func reduceBinomial(c *Call, s *Schedule) {
	reduceUp(c, s, binomial, c.whole())
}
