package lower

import "github.com/tracedag/tracedag/dag"

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
