package lower

// bcastBinomial: a member receives from its parent in a binomial tree, then sends to its children one after the
// other, the one with the largest subtree first.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Broadcast".
func bcastBinomial(c *Call, s *Schedule) {
	bcastDown(c, s, binomial, c.whole())
}
