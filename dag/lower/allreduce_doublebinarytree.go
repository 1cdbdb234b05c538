package lower

// allreduceDoublebinarytree: each half goes up its tree, which doublebinarytree.go describes, to the first member, and
// down again as soon as it is there.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009. NCCL does so (src/device/all_reduce.h, tree).
func allreduceDoublebinarytree(c *Call, s *Schedule) {
	bothTrees(c, s, reduceDown)
}
