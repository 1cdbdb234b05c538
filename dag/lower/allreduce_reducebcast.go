package lower

// allreduceReducebcast: a binomial reduction to the first member, then a binomial broadcast from it. A segment is
// broadcast as soon as it is reduced.
//
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH. International
// Journal of High Performance Computing Applications 19(1), 2005, under "Reduce and Allreduce".
func allreduceReducebcast(c *Call, s *Schedule) {
	reduceDown(c, s, binomial, c.whole())
}
