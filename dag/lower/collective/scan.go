package collective

import "github.com/tracedag/tracedag/dag"

// scanRecdoubling: members whose positions differ in one bit exchange the partial results of their blocks of 2^k
// members, one bit a round; a member without a partner skips the round. What comes from a lower position enters the
// member's own prefix. The inclusive and the exclusive scan send the same messages.
//
// MPICH, src/mpi/coll/scan/scan_intra_recursive_doubling.c and exscan/exscan_intra_recursive_doubling.c.
func scanRecdoubling(c *Call, s *Schedule) {
	x := newExchange(s, None)
	for bit := 1; bit < c.Members; bit *= 2 {
		if partner := c.Me ^ bit; partner < c.Members {
			how := reduce
			if partner < c.Me {
				how = reduceAll
			}
			x.do(partner, c.whole(), partner, c.whole(), how)
		}
	}
}

// scanLinear: every member receives from the one before what all up to that one have together, and sends it on with its
// own. The inclusive and the exclusive scan send the same messages.
//
// Open MPI, ompi/mca/coll/base/coll_base_scan.c and coll_base_exscan.c (linear).
func scanLinear(c *Call, s *Schedule) {
	rcvd := None
	if c.Me > 0 {
		rcvd = s.add(dag.Recv, c.Me-1, c.whole(), reduceAll, nil)
	}
	if c.Me < c.Members-1 {
		s.send(c.Me+1, c.whole(), rcvd)
	}
}
