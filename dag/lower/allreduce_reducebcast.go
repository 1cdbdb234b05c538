package lower

// allreduceReducebcast: a binomial reduction to the first member, then a binomial broadcast from it.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceReducebcast(c *Call, s *Schedule) {
	toFirst := *c
	toFirst.Root = 0
	reduceBinomial(&toFirst, s)
	bcastTree(&toFirst, s, s.last())
}
