package lower

// bcastDoublebinarytree: each half goes down its tree, which doublebinarytree.go describes.
//
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan. Parallel
// Computing 35(12), 2009.
func bcastDoublebinarytree(c *Call, s *Schedule) {
	bothTrees(c, s, bcastDown)
}
